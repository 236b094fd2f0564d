"""A client that speaks the wire protocol message by message, to say things that drivers never say."""

import socket
import struct

from .procs import wait_until


def cstr(s: str | bytes) -> bytes:
    return (s.encode() if isinstance(s, str) else s) + b"\0"


def msg(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def query(sql: str) -> bytes:
    return msg(b"Q", cstr(sql))


def parse(sql: str, name: str = "", types=()) -> bytes:
    return msg(b"P", cstr(name) + cstr(sql) + struct.pack("!h", len(types)) + b"".join(struct.pack("!I", t) for t in types))


def bind(params=(), name: str = "", portal: str = "", formats=(), results=()) -> bytes:
    body = cstr(portal) + cstr(name) + struct.pack("!h", len(formats)) + b"".join(struct.pack("!h", f) for f in formats)
    body += struct.pack("!h", len(params))
    for p in params:
        body += struct.pack("!i", -1) if p is None else struct.pack("!i", len(p)) + p
    return msg(b"B", body + struct.pack("!h", len(results)) + b"".join(struct.pack("!h", f) for f in results))


def describe(kind: str = "P", name: str = "") -> bytes:
    return msg(b"D", kind.encode() + cstr(name))


def execute(rows: int = 0, portal: str = "") -> bytes:
    return msg(b"E", cstr(portal) + struct.pack("!i", rows))


def close(kind: str = "S", name: str = "") -> bytes:
    return msg(b"C", kind.encode() + cstr(name))


SYNC, FLUSH, TERMINATE = msg(b"S"), msg(b"H"), msg(b"X")


class Raw:
    def __init__(self, port: int, user: str = "riverdelta", database: str = "riverdelta", start: bool = True, timeout: float = 15, **params):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout)
        self.port = port
        self.key = None
        self.params = {}
        if start:
            self.send(self.startup(user=user, database=database, **params))
            self.until_ready()

    @staticmethod
    def startup(version: int = 196608, **params) -> bytes:
        body = struct.pack("!i", version) + b"".join(cstr(k) + cstr(v) for k, v in params.items()) + b"\0"
        return struct.pack("!i", len(body) + 4) + body

    def send(self, *messages: bytes):
        self.sock.sendall(b"".join(messages))

    def exactly(self, n: int) -> bytes:
        out = b""
        while len(out) < n:
            part = self.sock.recv(n - len(out))
            if not part:
                raise EOFError
            out += part
        return out

    def read(self) -> tuple:
        """The next message: (kind, what it says)."""
        kind = self.exactly(1)
        body = self.exactly(struct.unpack("!i", self.exactly(4))[0] - 4)
        return self.decode(kind.decode(), body)

    def decode(self, kind: str, body: bytes) -> tuple:
        if kind in "EN":
            fields = {f[:1].decode(): f[1:].decode(errors="backslashreplace") for f in body.split(b"\0") if f}
            return (kind, fields["S"], fields["C"], fields["M"], fields)
        if kind == "Z":
            return (kind, body.decode(errors="backslashreplace"))
        if kind == "C":
            return (kind, body[:-1].decode(errors="backslashreplace"))
        if kind == "S":
            name, value = body[:-1].decode(errors="backslashreplace").split("\0")
            self.params[name] = value
            return (kind, name, value)
        if kind == "K":
            self.key = struct.unpack("!ii", body)
            return (kind,)
        if kind == "T":
            n, at, cols = struct.unpack_from("!h", body)[0], 2, []
            for _ in range(n):
                end = body.index(b"\0", at)
                _, _, oid, size, typmod, fmt = struct.unpack_from("!IhIhih", body, end + 1)
                cols.append((body[at:end].decode(errors="backslashreplace"), oid, size, typmod, fmt))
                at = end + 19
            return (kind, tuple(cols))
        if kind == "t":
            n = struct.unpack_from("!h", body)[0]
            return (kind, struct.unpack_from(f"!{n}I", body, 2))
        if kind == "D":
            n, at, values = struct.unpack_from("!h", body)[0], 2, []
            for _ in range(n):
                size = struct.unpack_from("!i", body, at)[0]
                at += 4
                values.append(None if size < 0 else body[at:at + size])
                at += max(size, 0)
            return (kind, tuple(values))
        return (kind, body)

    def until_ready(self, times: int = 1) -> list[tuple]:
        """All messages up to and with the given number of ReadyForQuery, or the end of the connection."""
        out = []
        while times:
            try:
                m = self.read()
            except (EOFError, ConnectionResetError):
                return [*out, ("closed",)]
            out.append(m)
            times -= m[0] == "Z"
        return out

    def close(self):
        self.sock.close()


def transcript(messages: list[tuple]) -> list[tuple]:
    """What two servers must have in common: errors by severity and SQLSTATE, COPY data whole, no notices, no parameters."""
    out = []
    for m in messages:
        if m[0] == "E":
            out.append(m[:3])
        elif m[0] == "d" and out and out[-1][0] == "d":
            out[-1] = ("d", out[-1][1] + m[1])
        elif m[0] not in "NS":
            out.append(m)
    return out


def gone(raw: Raw) -> bool:
    """Whether the server closed the connection."""

    def closed():
        try:
            return raw.sock.recv(4096) == b""
        except ConnectionResetError:
            return True

    return wait_until(closed, 10, what="closed by the server")
