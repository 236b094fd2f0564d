"""The corpus of maintained answers: each query as a plain SELECT, and again as a view that is kept right while its tables change.

A file `slt/*.slt` begins with its claim. Records, separated by empty lines:

    table t (a int, b text)       a table and its rows, fields separated by |, NULL as \\N, backslash escapes | \\ and newline (\\n)
    1|x
    2|\\N

    query [noview]                a SELECT and its rows as PostgreSQL 15 gives them, as text, in any order
    SELECT a, b FROM t
    ----
    1|x
    2|\\N

`python slt.py record --pg DSN [FILE...]` writes the rows anew. `noview`: not a query that can be maintained (volatile, `now()`).
"""

import argparse
import collections
import glob
import os
import random
import sys
import zlib
from dataclasses import dataclass, field

from corpus import Outcome, Wire

HERE = os.path.dirname(os.path.abspath(__file__))


@dataclass
class Table:
    name: str
    columns: str
    rows: list[tuple]

    def column_names(self) -> list[str]:
        depth, names, word = 0, [], ""
        for ch in self.columns + ",":
            depth += (ch == "(") - (ch == ")")
            if ch == "," and depth == 0:
                names.append(word.split()[0])
                word = ""
            else:
                word += ch
        return names

    def create(self) -> str:
        return f"CREATE TABLE {self.name} ({self.columns})"

    def insert(self, rows) -> str:
        return f"INSERT INTO {self.name} VALUES " + ", ".join("(" + ", ".join(literal(v) for v in r) + ")" for r in rows)


@dataclass
class Query:
    sql: str
    rows: list[tuple]
    view: bool
    line: int
    error: str | None = None


@dataclass
class File:
    path: str
    claim: str
    tables: list[Table] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)

    @property
    def name(self) -> str:
        return os.path.basename(self.path)


def literal(v: str | None) -> str:
    if v is None:
        return "NULL"
    return "'" + v.replace("'", "''") + "'"


def encode(v: str | None) -> str:
    return r"\N" if v is None else v.replace("\\", "\\\\").replace("|", r"\|").replace("\n", r"\n")


def decode_line(line: str) -> tuple:
    fields, current, i, null = [], "", 0, False
    while i < len(line):
        ch = line[i]
        if ch == "\\":
            nxt = line[i + 1]
            i += 1
            if nxt == "N":
                null = True
            else:
                current += "\n" if nxt == "n" else nxt
        elif ch == "|":
            fields.append(None if null else current)
            current, null = "", False
        else:
            current += ch
        i += 1
    fields.append(None if null else current)
    return tuple(fields)


def load(path: str) -> File:
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    assert lines[0].startswith("# "), f"{path}: the first line says the claim"
    file = File(path, lines[0][2:])
    i = 1
    while i < len(lines):
        line = lines[i]
        i += 1
        if not line.strip() or line.startswith("#"):
            continue
        at = i
        block = []
        while i < len(lines) and lines[i] != "":
            block.append(lines[i])
            i += 1
        if line.startswith("table "):
            name, columns = line[6:].split(" ", 1)
            file.tables.append(Table(name, columns.strip()[1:-1], [decode_line(b) for b in block]))
        elif line.split()[0] == "query":
            cut = block.index("----") if "----" in block else len(block)
            rows, error = block[cut + 1:], None
            if rows and rows[0].startswith("error "):
                rows, error = [], rows[0][6:]
            # a row of one empty string is written as ""
            file.queries.append(Query("\n".join(block[:cut]), [("",) if r == '""' else decode_line(r) for r in rows], "noview" not in line, at, error))
        else:
            raise ValueError(f"{path}:{at}: {line}")
    return file


def dump(file: File) -> str:
    out = [f"# {file.claim}", ""]
    for t in file.tables:
        out += [f"table {t.name} ({t.columns})", *("|".join(map(encode, r)) for r in t.rows), ""]
    for q in file.queries:
        out += ["query" + ("" if q.view else " noview"), q.sql, "----"]
        out += [f"error {q.error}"] if q.error else sorted("|".join(map(encode, r)) or '""' for r in q.rows)
        out.append("")
    return "\n".join(out)


def files(names: list[str] | None = None) -> list[str]:
    found = sorted(glob.glob(os.path.join(HERE, "slt", "*.slt")))
    return [f for f in found if not names or any(n in os.path.basename(f) for n in names)]


def must(wire: Wire, sql: str) -> Outcome:
    o = wire.run(sql)
    if o.state:
        raise RuntimeError(f"{o.state} {o.message}: {sql[:300]}")
    return o


def setup(wire: Wire, file: File, schema: str, fill: bool = True):
    """A schema of its own for the file's tables."""
    wire.run(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    must(wire, f"CREATE SCHEMA {schema}")
    must(wire, f"SET search_path = {schema}")
    for t in file.tables:
        must(wire, t.create())
        if fill and t.rows:
            must(wire, t.insert(t.rows))


def describe(o: Outcome) -> str:
    return f"{o.state} {o.message}" if o.state else f"{len(o.rows)} rows: {sorted(o.rows, key=repr)[:8]}"


def unequal(want: Outcome, got: Outcome) -> bool:
    if want.state or got.state:
        return want.state != got.state
    return collections.Counter(want.rows) != collections.Counter(got.rows)


def differs_from_recorded(q: Query, got: Outcome) -> bool:
    """Floating-point columns are compared to eleven digits: PostgreSQL's last ones depend on the order in which it adds."""
    floats = [oid in (700, 701) for oid in got.oids]

    def short(rows):
        return [tuple(f"{float(v):.11g}" if v is not None and f else v for v, f in zip(r, floats)) for r in rows]

    if q.error or got.state:
        return q.error != got.state
    return unequal(Outcome(rows=short(q.rows)), Outcome(rows=short(got.rows))) or any(len(r) != len(floats) for r in q.rows)


def run_plain(wire: Wire, file: File) -> list[str]:
    """Returns what differs from the recorded rows."""
    setup(wire, file, "slt_" + file.name.split(".")[0])
    failures = []
    for q in file.queries:
        got, want = wire.run(q.sql), Outcome(state=q.error, rows=q.rows)
        if differs_from_recorded(q, got):
            failures.append(f"{file.name}:{q.line}: {' '.join(q.sql.split())}\n    recorded   {describe(want)}\n    riverdelta {describe(got)}")
    return failures


class Maintained:
    """A file's queries as materialized views over tables that change."""

    def __init__(self, wire: Wire, file: File, seed: int):
        self.wire, self.file = wire, file
        self.rng = random.Random(seed ^ zlib.crc32(file.name.encode()))
        self.schema = "slv_" + file.name.split(".")[0]
        self.failures: list[str] = []
        setup(wire, file, self.schema, fill=False)
        self.views = []
        for n, q in enumerate(q for q in file.queries if q.view and not q.error):
            arity = self.arity(q)
            names = ", ".join(f"c{i}" for i in range(arity))
            body = f"SELECT * FROM ({q.sql}) AS q({names})" if arity else q.sql
            o = wire.run(f"CREATE MATERIALIZED VIEW v{n} AS {body}")
            if o.state:
                self.fail(q, f"as a view: {o.state} {o.message}")
            else:
                self.views.append((f"v{n}", q))

    def arity(self, q: Query) -> int:
        if q.rows:
            return len(q.rows[0])
        return len(self.wire.run(q.sql).names)

    def fail(self, q: Query, what: str):
        self.failures.append(f"{self.file.name}:{q.line}: {' '.join(q.sql.split())}\n    {what}")

    def check(self, when: str):
        """Each view is its query evaluated now."""
        must(self.wire, f"SET search_path = {self.schema}")
        for view, q in list(self.views):
            want, got = self.wire.run(q.sql), self.wire.run(f"SELECT * FROM {view}")
            if unequal(want, got):
                self.fail(q, f"{when}\n    select {describe(want)}\n    view   {describe(got)}")
                self.views.remove((view, q))

    def check_recorded(self, when: str):
        """Each view is what PostgreSQL recorded for the whole tables."""
        must(self.wire, f"SET search_path = {self.schema}")
        for view, q in list(self.views):
            want, got = Outcome(rows=q.rows), self.wire.run(f"SELECT * FROM {view}")
            if differs_from_recorded(q, got):
                self.fail(q, f"{when}\n    recorded {describe(want)}\n    view     {describe(got)}")
                self.views.remove((view, q))

    def some(self, rows: list) -> list:
        return self.rng.sample(rows, self.rng.randint(1, len(rows))) if rows else []

    def batch(self):
        """One random change of one or more tables, in one transaction or in several."""
        rng = self.rng
        ops = []
        for t in rng.sample(self.file.tables, rng.randint(1, len(self.file.tables))):
            if not t.rows:
                continue
            names, row = t.column_names(), rng.choice(t.rows)
            where = f"WHERE {names[0]} IS NOT DISTINCT FROM {literal(row[0])}"
            kind = rng.random()
            if kind < 0.55:
                ops.append(t.insert(self.some(t.rows)))
            elif kind < 0.65:
                ops.append(t.insert([tuple(None if rng.random() < 0.5 else v for v in row)]))
            elif kind < 0.8:
                ops.append(f"DELETE FROM {t.name} {where}")
            else:
                other, column = rng.choice(t.rows), rng.randrange(len(names))
                ops.append(f"UPDATE {t.name} SET {names[column]} = {literal(other[column])} {where}")
        if rng.random() < 0.5:
            for op in ops:
                must(self.wire, op)
        else:
            must(self.wire, "BEGIN")
            for op in ops:
                must(self.wire, op)
            must(self.wire, "COMMIT")

    def refill(self):
        """Everything is taken back, then the tables are filled with what was recorded, in shuffled parts."""
        for t in self.file.tables:
            must(self.wire, f"DELETE FROM {t.name}")
        self.check("with empty tables")
        parts = [(t, r) for t in self.file.tables for r in t.rows]
        self.rng.shuffle(parts)
        cut = max(1, len(parts) // 3)
        for at in range(0, len(parts), cut):
            by_table: dict = {}
            for t, r in parts[at:at + cut]:
                by_table.setdefault(t.name, (t, []))[1].append(r)
            for t, rows in by_table.values():
                must(self.wire, t.insert(rows))


def record(wire: Wire, path: str):
    file = load(path)
    setup(wire, file, "slt_record")
    for q in file.queries:
        o = wire.run(q.sql)
        q.rows, q.error = ([], o.state) if o.state else (o.rows, None)
    with open(path, "w", encoding="utf-8") as f:
        f.write(dump(file))


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("what", choices=["record", "plain", "views"])
    args.add_argument("--pg", help="PostgreSQL's connection string")
    args.add_argument("--rd", help="Riverdelta's")
    args.add_argument("--batches", type=int, default=6)
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("files", nargs="*", help="parts of file names")
    a = args.parse_args()
    failures, total = [], 0
    for path in files(a.files):
        if a.what == "record":
            record(Wire(a.pg), path)
            continue
        file = load(path)
        total += len(file.queries)
        if a.what == "plain":
            failures += run_plain(Wire(a.rd), file)
            continue
        m = Maintained(Wire(a.rd), file, a.seed)
        for n in range(a.batches):
            m.batch()
            m.check(f"after batch {n}")
        m.refill()
        m.check_recorded("at the end")
        failures += m.failures
    print("\n".join(failures))
    if a.what != "record":
        print(f"{total - len(failures)} / {total}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
