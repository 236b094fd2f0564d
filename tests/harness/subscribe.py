"""A reader of SUBSCRIBE: keeps the collection that the changes add up to."""

import collections
import threading

import psycopg

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


class Follower:
    """A subscription that outlives the server: it comes back AS OF its last progress, without a snapshot, and goes on.

    Updates count once progress has passed them, so what a cut connection had sent of an open time is forgotten, as a client must. `seen` gets
    the collection at every progress.
    """

    def __init__(self, server, what: str):
        self.server, self.what = server, what
        self.state: collections.Counter = collections.Counter()
        self.frontier: int | None = None
        self.resumed = 0
        self.bad: list[str] = []
        self.seen: set[tuple] = set()
        self.stopping = threading.Event()
        self.conn = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.stopping.is_set():
            try:
                with self.server.connect() as self.conn:
                    self._read(self.conn)
            except psycopg.OperationalError:
                self.stopping.wait(0.02)  # the server is away
            except psycopg.Error as e:
                if not self.stopping.is_set() and e.sqlstate not in (None, "57P01", "57014"):
                    self.bad.append(repr(e))
                    return

    def _read(self, conn):
        as_of, options = "", "PROGRESS"
        if self.frontier is not None:
            as_of, options = f"AS OF {self.frontier}", "PROGRESS, SNAPSHOT = false"
            self.resumed += 1
        pending: list[tuple[int, int, tuple]] = []
        rest = b""
        with conn.cursor() as cur, cur.copy(f"COPY (SUBSCRIBE {self.what} {as_of} WITH ({options})) TO STDOUT") as copy:
            for block in copy:
                *lines, rest = (rest + bytes(block)).split(b"\n")
                for line in lines:
                    time, progressed, diff, *row = line.decode().split("\t")
                    t = int(time)
                    if self.frontier is not None and t < self.frontier:
                        self.bad.append(f"{line!r} after progress {self.frontier}")
                    if progressed != "t":
                        pending.append((t, int(diff), tuple(None if f == "\\N" else f for f in row)))
                        continue
                    for u in [u for u in pending if u[0] < t]:
                        self.state[u[2]] += u[1]
                    pending = [u for u in pending if u[0] >= t]
                    if negative := {r: n for r, n in self.state.items() if n < 0}:
                        self.bad.append(f"at {t}: {negative}")
                    # The first progress says where the snapshot will stand, before it has come.
                    if self.frontier is not None or self.state:
                        self.seen.add(tuple(self.rows()))
                        self.frontier = t

    def cut(self):
        """Ends the connection; the next one goes on."""
        self.conn.cancel()

    def rows(self) -> list[tuple]:
        return sorted((+self.state).elements(), key=repr)

    def wait_for(self, expected, seconds: float = 30):
        want = sorted((tuple(r) for r in expected), key=repr)
        try:
            wait_until(lambda: self.bad or self.rows() == want, seconds, what="the subscription")
        except TimeoutError:
            assert self.rows() == want, self.bad
        assert not self.bad, self.bad[:5]

    def close(self):
        self.stopping.set()
        if self.conn:
            try:
                self.conn.cancel()
            except psycopg.Error:
                pass
        self.thread.join(10)
