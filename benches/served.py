"""The server under measurement, with an empty data directory, and what it takes of the machine."""

import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))


class Fresh:
    """A Riverdelta of its own: `RIVERDELTA_BIN`, or the binary given."""

    def __init__(self, workers: int, binary: str | None = None):
        from harness import riverdelta

        if binary:
            riverdelta.BINARY = binary
        self.dir = tempfile.mkdtemp(prefix="bench-")
        self.server = riverdelta.Riverdelta(self.dir, workers)

    def __enter__(self):
        return self.server.start()

    def __exit__(self, *_):
        self.server.kill()
        shutil.rmtree(self.dir, ignore_errors=True)


def cpu(server) -> float:
    """CPU seconds so far."""
    with open(f"/proc/{server.proc.popen.pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(server, what: str = "VmRSS") -> int:
    """Resident bytes now; `VmHWM`: at most so far."""
    with open(f"/proc/{server.proc.popen.pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(what)) * 1024
