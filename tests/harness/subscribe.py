"""A reader of SUBSCRIBE: keeps the collection that the changes add up to."""

import collections
import threading

from .procs import wait_until


class Subscription:
    """Reads `COPY (SUBSCRIBE ..) TO STDOUT` on a connection and a thread of its own.

    Rows come as text: time, progressed (with PROGRESS), diff, columns.
    """

    def __init__(self, server, what: str, options: str = "PROGRESS"):
        self.conn = server.connect()
        self.state: collections.Counter = collections.Counter()
        self.updates: list[tuple] = []
        self.frontier = 0
        self.error: Exception | None = None
        self.bad: list[str] = []
        self.closed_states: list[tuple] = []
        self.on_close = None
        self.thread = threading.Thread(target=self._read, args=(f"COPY (SUBSCRIBE {what} WITH ({options})) TO STDOUT",), daemon=True)
        self.thread.start()

    def _read(self, sql: str):
        rest = b""
        try:
            with self.conn.cursor() as cur, cur.copy(sql) as copy:
                for block in copy:
                    *lines, rest = (rest + bytes(block)).split(b"\n")
                    for line in lines:
                        self._take(line.decode().split("\t"))
        except Exception as e:  # noqa: BLE001 - the end of the connection, most often
            self.error = e

    def _take(self, fields: list[str]):
        time, progressed, diff, *row = fields
        t = int(time)
        if progressed == "t":
            if t < self.frontier:
                self.bad.append(f"progress went back from {self.frontier} to {t}")
            self.frontier = t
            negative = {r: n for r, n in self.state.items() if n < 0}
            if negative:
                self.bad.append(f"at {t}: {negative}")
            if self.on_close:
                self.on_close(t, self.rows())
            return
        if t < self.frontier:
            self.bad.append(f"a change at {t} after the frontier {self.frontier}")
        row = tuple(None if f == "\\N" else f for f in row)
        self.updates.append((t, int(diff), row))
        self.state[row] += int(diff)
        if self.state[row] == 0:
            del self.state[row]

    def rows(self) -> list[tuple]:
        return sorted(self.state.elements(), key=repr)

    def wait_for(self, expected, seconds: float = 20):
        want = sorted((tuple(r) for r in expected), key=repr)
        try:
            wait_until(lambda: self.rows() == want, seconds, what="the subscription")
        except TimeoutError:
            assert self.rows() == want, self.error
        assert not self.bad, self.bad[:5]

    def close(self):
        self.conn.cancel()
        self.thread.join(10)
        self.conn.close()
