"""Processes and ports: what all the servers here have in common."""

import contextlib
import os
import signal
import socket
import subprocess
import time


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_until(check, seconds: float = 30, every: float = 0.02, what: str = "the condition"):
    """Calls `check` until it gives something true, and returns that. An exception counts as false; the last one is shown."""
    until = time.monotonic() + seconds
    last = None
    while True:
        try:
            if got := check():
                return got
            last = None
        except Exception as e:  # noqa: BLE001 - whatever it is, it may pass
            last = e
        if time.monotonic() > until:
            raise TimeoutError(f"{what} did not come true in {seconds} s") from last
        time.sleep(every)


class Proc:
    """One child process with its output in a log file."""

    def __init__(self, args: list[str], log: str, env: dict | None = None, cwd: str | None = None):
        self.log = log
        with open(log, "ab") as out:
            self.popen = subprocess.Popen(
                args, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})}, cwd=cwd, start_new_session=True,
            )

    def running(self) -> bool:
        return self.popen.poll() is None

    def stop(self, sig: int = signal.SIGTERM, seconds: float = 30) -> int:
        """Sends the signal and waits; SIGKILL if that does not help. Returns the exit code."""
        if self.running():
            self.popen.send_signal(sig)
            try:
                self.popen.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kill()
        return self.popen.returncode

    def kill(self):
        """SIGKILL, to the whole process group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait(30)

    def tail(self, lines: int = 60) -> str:
        with open(self.log, errors="replace") as f:
            return "".join(f.readlines()[-lines:])
