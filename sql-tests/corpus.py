"""Runs the statements of `pg/*.sql` on PostgreSQL and on Riverdelta and compares what the wire brings.

A statement is one line or several, up to `;`. Directives stand on lines of their own:

    --@tz Z         the session's TimeZone from here on
    --@nosplit      run statements as they stand from here on; --@split ends it
    --@new          begin with fresh tables: the setup is run again on both servers

Elsewhere a select list is taken apart, one expression a case, so that one fault does not hide the rest (if PostgreSQL takes the
parts as it takes the whole). Compared are rows as text, type OIDs, column names, and the SQLSTATE where PostgreSQL refuses. Rows are a
list under a top-level ORDER BY, else a multiset.

    python corpus.py --pg DSN --rd DSN [--show] [FILE...]
"""

import argparse
import collections
import glob
import os
import re
import sys
from dataclasses import dataclass, field

from psycopg import pq

HERE = os.path.dirname(os.path.abspath(__file__))
TIMEOUT_MS = 10_000
# OIDs from here on are given out as things are made: they are only known to be such.
FIRST_USER_OID = 16384


@dataclass
class Outcome:
    """What one statement gave."""

    state: str | None = None  # SQLSTATE
    message: str = ""
    names: list = field(default_factory=list)
    oids: list = field(default_factory=list)
    rows: list = field(default_factory=list)
    tag: str = ""


def outcome(r: pq.PGresult) -> Outcome:
    if r.status in (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE):
        state = r.error_field(pq.DiagnosticField.SQLSTATE)
        message = r.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or r.error_message or b""
        return Outcome(state=state.decode() if state else "lost", message=message.decode(errors="replace"))
    text = lambda v: None if v is None else v.decode(errors="surrogateescape")  # noqa: E731
    return Outcome(
        names=[text(r.fname(i)) for i in range(r.nfields)],
        oids=[r.ftype(i) for i in range(r.nfields)],
        rows=[tuple(text(r.get_value(i, j)) for j in range(r.nfields)) for i in range(r.ntuples)],
        tag=text(r.command_status) or "",
    )


class Wire:
    """A connection that keeps text as it comes."""

    def __init__(self, dsn: str):
        self.dsn = dsn
        self.conn = None

    def connect(self):
        self.conn = pq.PGconn.connect(self.dsn.encode())
        if self.conn.status != pq.ConnStatus.OK:
            raise ConnectionError(self.conn.error_message.decode())
        self.conn.notice_handler = lambda _: None

    def run(self, sql: str) -> Outcome:
        if self.conn is None or self.conn.status != pq.ConnStatus.OK:
            self.connect()
        return outcome(self.conn.exec_(sql.encode()))

    def script(self, sql: str):
        for statement in statements(sql):
            o = self.run(statement)
            if o.state:
                raise RuntimeError(f"{o.state} {o.message}: {statement}")


def tokens(sql: str):
    """Splits SQL into (kind, text): strings, quoted names, comments, words, blanks and single characters."""
    pattern = re.compile(
        r"(?P<string>(?:[eE]|[bB]|[xX]|[uU]&)?'(?:[^'\\]|''|\\.)*')|(?P<name>\"(?:[^\"]|\"\")*\")|(?P<dollar>\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)"
        r"|(?P<comment>--[^\n]*|/\*.*?\*/)|(?P<word>\w+)|(?P<blank>\s+)|(?P<other>.)",
        re.S,
    )
    plain = re.compile(r"'(?:[^']|'')*'", re.S)
    at = 0
    while at < len(sql):
        if sql[at] == "'":  # no backslash escapes in a plain string
            m = plain.match(sql, at)
            if m:
                yield "string", m.group()
                at = m.end()
                continue
        m = pattern.match(sql, at)
        kind = m.lastgroup if m.lastgroup != "tag" else "dollar"
        yield kind, m.group()
        at = m.end()


def statements(sql: str) -> list[str]:
    """The statements of a script, without comments before them."""
    out, current = [], ""
    for kind, text in tokens(sql):
        if kind == "comment" and not current.strip():
            continue
        if kind == "other" and text == ";":
            if current.strip():
                out.append(current.strip())
            current = ""
        else:
            current += text
    if current.strip():
        out.append(current.strip())
    return out


def top_level(sql: str):
    """Tokens with their depth of parentheses, brackets and CASE."""
    depth = 0
    for kind, text in tokens(sql):
        word = text.upper() if kind == "word" else text if kind == "other" else ""
        if word in (")", "]", "END"):
            depth -= 1
        yield depth, kind, text
        if word in ("(", "[", "CASE"):
            depth += 1


CLAUSES = {"FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "OFFSET", "FETCH", "FOR"}


def split_select(sql: str) -> list[str]:
    """One statement for each expression of the select list; the statement itself if that is not safe."""
    items, current, rest, in_rest, seen_select = [], "", "", False, False
    for depth, kind, text in top_level(sql):
        word = text.upper() if kind == "word" and depth == 0 else ""
        if not seen_select:
            if kind == "blank":
                continue
            if word != "SELECT":
                return [sql]
            seen_select = True
            continue
        if word in ("UNION", "INTERSECT", "EXCEPT", "DISTINCT", "INTO", "ALL") and not in_rest and word in ("DISTINCT", "INTO", "ALL") or word in ("UNION", "INTERSECT", "EXCEPT"):
            return [sql]
        if not in_rest and word in CLAUSES:
            # `x IS DISTINCT FROM y` is not a clause
            if word == "FROM" and re.search(r"\bDISTINCT\s*$", current, re.I):
                current += text
                continue
            in_rest = True
        if in_rest:
            rest += text
        elif depth == 0 and kind == "other" and text == ",":
            items.append(current.strip())
            current = ""
        else:
            current += text
    items.append(current.strip())
    if len(items) < 2 or any(not i or i.endswith("*") for i in items) or re.search(r"\b(ORDER|GROUP)\s+BY\s+[^()]*\b\d", rest, re.I):
        return [sql]
    return [f"SELECT {i} {rest}".strip() for i in items]


def ordered(sql: str) -> bool:
    words = [t.upper() for d, k, t in top_level(sql) if d == 0 and k == "word"]
    return any(a == "ORDER" and b == "BY" for a, b in zip(words, words[1:]))


@dataclass
class Case:
    file: str
    sql: str
    tz: str | None
    split: bool
    new: bool = False


def load(path: str) -> list[Case]:
    """The cases of a file, as they stand (not yet split)."""
    cases, split, tz, new = [], True, None, False
    buffer = ""
    name = os.path.basename(path)
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.startswith("--@"):
                word, _, rest = line[3:].strip().partition(" ")
                if word == "tz":
                    tz = rest.strip()
                elif word in ("split", "nosplit"):
                    split = word == "split"
                elif word == "new":
                    new = True
                else:
                    raise ValueError(f"{path}: unknown directive {line.strip()}")
                continue
            if line.startswith("--") and not buffer.strip():
                continue
            buffer += line
            if line.rstrip().endswith(";"):
                for s in statements(buffer):
                    cases.append(Case(name, s, tz, split, new))
                    new = False
                buffer = ""
    for s in statements(buffer):
        cases.append(Case(name, s, tz, split, new))
    return cases


def same(want: Outcome, got: Outcome, sql: str) -> str | None:
    """What differs, in one word or two; None if nothing does."""
    if want.state or got.state:
        return None if want.state == got.state else "sqlstate" if want.state else "error"
    if want.names != got.names:
        return "names"
    if [min(o, FIRST_USER_OID) for o in want.oids] != [min(o, FIRST_USER_OID) for o in got.oids]:
        return "types"
    if ordered(sql):
        if want.rows != got.rows:
            return "order" if collections.Counter(want.rows) == collections.Counter(got.rows) else "rows"
    elif collections.Counter(want.rows) != collections.Counter(got.rows):
        return "rows"
    return None


@dataclass
class Difference:
    file: str
    sql: str
    what: str
    want: Outcome
    got: Outcome

    def __str__(self):
        def show(o: Outcome):
            if o.state:
                return f"{o.state} {o.message}"
            return f"{list(zip(o.names, o.oids))} {o.rows[:6]}{' ..' if len(o.rows) > 6 else ''}"

        return f"{self.file}: {self.what}: {' '.join(self.sql.split())}\n    postgres   {show(self.want)}\n    riverdelta {show(self.got)}"


@dataclass
class Report:
    agreed: collections.Counter = field(default_factory=collections.Counter)
    total: collections.Counter = field(default_factory=collections.Counter)
    accepted: collections.Counter = field(default_factory=collections.Counter)
    differences: list = field(default_factory=list)

    def table(self) -> str:
        lines = [f"{f:24} {self.agreed[f]:5} / {n:5} {100 * self.agreed[f] / n:6.1f} %" + (f"  ({self.accepted[f]} accepted)" if self.accepted[f] else "")
                 for f, n in self.total.items()]
        agreed, total = sum(self.agreed.values()), sum(self.total.values())
        lines.append(f"{'together':24} {agreed:5} / {total:5} {100 * agreed / max(total, 1):6.1f} %")
        return "\n".join(lines)


def fingerprint(sql: str) -> str:
    return " ".join(sql.split())


def accepted_differences(path: str = os.path.join(HERE, "..", "docs", "sql", "differences.md")) -> set[str]:
    """The statements in the ```sql blocks of the page of differences."""
    if not os.path.exists(path):
        return set()
    with open(path, encoding="utf-8") as f:
        text = f.read()
    return {fingerprint(s) for block in re.findall(r"```sql\n(.*?)```", text, re.S) for s in statements(block)}


def run(pg: Wire, rd: Wire, files: list[str], report: Report | None = None, on_case=None) -> Report:
    report = report or Report()
    accepted = accepted_differences()
    with open(os.path.join(HERE, "pg", "setup.sql"), encoding="utf-8") as f:
        setup = f.read()

    def fresh():
        for wire in (pg, rd):
            wire.run("SET TimeZone = 'UTC'")
            for s in statements(setup):
                o = wire.run(s)
                if o.state and not s.upper().startswith("DROP"):
                    raise RuntimeError(f"setup: {o.state} {o.message}: {s}")
            wire.run(f"SET statement_timeout = {TIMEOUT_MS}")

    fresh()
    for path in files:
        tz = "UTC"
        for case in load(path):
            if case.new:
                fresh()
                tz = "UTC"
            if (case.tz or "UTC") != tz:
                tz = case.tz or "UTC"
                for wire in (pg, rd):
                    wire.run(f"SET TimeZone = '{tz}'")
            parts = split_select(case.sql) if case.split else [case.sql]
            if len(parts) > 1:
                whole = pg.run(case.sql)
                outcomes = [pg.run(p) for p in parts]
                if not whole.state and any(o.state for o in outcomes):
                    parts, outcomes = [case.sql], [whole]
            else:
                outcomes = [pg.run(case.sql)]
            for sql, want in zip(parts, outcomes):
                try:
                    got = rd.run(sql)
                except ConnectionError as e:
                    got = Outcome(state="lost", message=str(e))
                report.total[case.file] += 1
                what = same(want, got, sql)
                if what is None:
                    report.agreed[case.file] += 1
                elif fingerprint(sql) in accepted:
                    report.accepted[case.file] += 1
                else:
                    report.differences.append(Difference(case.file, sql, what, want, got))
                if on_case:
                    on_case(case, sql, want, got, what)
        if tz != "UTC":
            for wire in (pg, rd):
                wire.run("SET TimeZone = 'UTC'")
    return report


def corpus_files(names: list[str] | None = None) -> list[str]:
    files = sorted(f for f in glob.glob(os.path.join(HERE, "pg", "*.sql")) if not f.endswith("setup.sql"))
    return [f for f in files if not names or any(n in os.path.basename(f) for n in names)]


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--pg", required=True, help="PostgreSQL's connection string; tables are made in it")
    args.add_argument("--rd", required=True, help="Riverdelta's")
    args.add_argument("--show", action="store_true", help="print the differences")
    args.add_argument("files", nargs="*", help="parts of file names")
    a = args.parse_args()
    report = run(Wire(a.pg), Wire(a.rd), corpus_files(a.files))
    if a.show:
        for d in report.differences:
            print(d)
    kinds = collections.Counter(d.what if d.what != "error" else f"error {d.got.state}" for d in report.differences)
    print(report.table())
    for k, n in kinds.most_common():
        print(f"    {k:24} {n}")
    return 1 if report.differences else 0


if __name__ == "__main__":
    sys.exit(main())
