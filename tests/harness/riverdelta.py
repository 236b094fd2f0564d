"""A Riverdelta server with its own data directory."""

import contextlib
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request

import psycopg
import pytest

from .procs import Proc, free_port, wait_until

BINARY = os.environ.get("RIVERDELTA_BIN") or os.path.expanduser(
    os.path.join(os.environ.get("CARGO_TARGET_DIR", "~/.cache/riverdelta/target"), "release/riverdelta")
)


class Riverdelta:
    """The ports stay the same over restarts, as an operator's would."""

    def __init__(self, directory: str, workers: int = 2, env: dict | None = None):
        self.directory = str(directory)
        self.data_dir = os.path.join(self.directory, "data")
        self.log = os.path.join(self.directory, "riverdelta.log")
        self.workers = workers
        self.env = {"RUST_LOG": "info", "RUST_BACKTRACE": "1", **(env or {})}
        self.port, self.http_port = free_port(), free_port()
        self.proc: Proc | None = None

    def start(self, wait: bool = True, seconds: float = 60) -> "Riverdelta":
        os.makedirs(self.directory, exist_ok=True)
        self.proc = Proc(
            [BINARY, "serve", "--data-dir", self.data_dir, "--pg-listen", f"127.0.0.1:{self.port}",
             "--http-listen", f"127.0.0.1:{self.http_port}", "--workers", str(self.workers)],
            self.log, self.env,
        )
        if wait:
            self.wait_ready(seconds)
        return self

    def wait_ready(self, seconds: float = 60):
        def ready():
            if not self.proc.running():
                return True
            return self.http("/health/ready")[0] == 200

        wait_until(ready, seconds, what="riverdelta ready")
        if not self.proc.running():
            raise RuntimeError(f"riverdelta ended with {self.proc.popen.returncode}:\n{self.proc.tail()}")

    def stop(self) -> int:
        return self.proc.stop(signal.SIGTERM) if self.proc else 0

    def kill(self):
        """kill -9."""
        if self.proc:
            self.proc.kill()

    def restart(self, kill: bool = False, workers: int | None = None):
        self.kill() if kill else self.stop()
        self.workers = workers or self.workers
        return self.start()

    def http(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}{path}", timeout=5) as r:
                return r.status, r.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()

    @property
    def dsn(self) -> str:
        return f"host=127.0.0.1 port={self.port} user=riverdelta dbname=riverdelta"

    def connect(self, **kwargs) -> psycopg.Connection:
        return psycopg.connect(self.dsn, **{"autocommit": True, "connect_timeout": 10, **kwargs})

    def sql(self, *statements: str):
        """Runs statements on a connection of their own. Returns the rows of the last, if it has any."""
        with self.connect() as c:
            rows = None
            for s in statements:
                cur = c.execute(s)
                rows = cur.fetchall() if cur.description else None
            return rows

    def settled(self, query: str, expected, seconds: float = 30):
        """Waits until `query` gives `expected` (rows, in any order)."""
        want = sorted(expected, key=repr)
        got = None

        def same():
            nonlocal got
            got = sorted(self.sql(query), key=repr)
            return got == want

        try:
            wait_until(same, seconds, every=0.1, what=query)
        except TimeoutError:
            assert got == want, query
            raise

    def panics(self) -> list[str]:
        """Panics in the log: there must be none, ever."""
        with open(self.log, errors="replace") as f:
            return re.findall(r"^.*panicked at.*$", f.read(), re.M)


@contextlib.contextmanager
def on_a_disk_of(megabytes: int, tmp_path):
    """A server whose directory is a file system of this size; no panic may be in its log, which lies elsewhere."""
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", str(small)], capture_output=True).returncode != 0:
        pytest.skip("a file system cannot be mounted here")
    r = Riverdelta(small)
    r.log = str(tmp_path / "log")
    try:
        yield r.start()
        assert not r.panics()
    finally:
        r.kill()
        subprocess.run(["umount", "-l", str(small)], check=True)
