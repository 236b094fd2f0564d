"""TPC-H as 22 maintained views: filled in 20 batches, then orders come and go. After each step every view is PostgreSQL's answer."""

import collections
import random

import pytest
import tpch
from corpus import Wire

BATCHES, REFRESHES = 20, 4


def run(wire: Wire, sql: str):
    o = wire.run(sql)
    assert o.state is None, f"{o.state} {o.message}: {sql[:200]}"
    return o


class Both:
    def __init__(self, pg: Wire, rd: Wire):
        self.pg, self.rd = pg, rd

    def apply(self, statements: list[str]):
        for sql in ["BEGIN", *statements, "COMMIT"]:
            run(self.pg, sql)
            run(self.rd, sql)

    def compare(self, when: str) -> collections.Counter:
        """Errors: which views differ. Returns the number of rows of each."""
        rows, bad = collections.Counter(), []
        for n, sql in tpch.QUERIES.items():
            want, got = run(self.pg, sql), self.rd.run(f"SELECT * FROM q{n}")
            rows[n] = len(want.rows)
            if got.state or collections.Counter(want.rows) != collections.Counter(got.rows):
                bad.append(f"{when}: query {n}: {got.state or ''} {got.message}\n  PostgreSQL {want.rows[:5]}\n  view       {got.rows[:5]}")
        assert not bad, "\n".join(bad)
        return rows


@pytest.mark.timeout(600)
def test_views(pg, rd, long):
    data = tpch.Data(scale=4 if long else 0.6)
    pg.sql("CREATE DATABASE tpch")
    both = Both(Wire(pg.dsn.replace("dbname=postgres", "dbname=tpch")), Wire(rd.dsn))
    run(both.rd, "CREATE SCHEMA tpch")
    run(both.rd, "SET search_path = tpch")
    for table, columns in tpch.TABLES.items():
        for wire in (both.pg, both.rd):
            run(wire, f"CREATE TABLE {table} ({columns})")
    for n, sql in tpch.QUERIES.items():
        run(both.rd, f"CREATE MATERIALIZED VIEW q{n} AS {sql}")
    rng = random.Random(7)
    parts = {t: rng.sample(rows, len(rows)) for t, rows in data.rows.items()}
    both.compare("empty")
    for b in range(BATCHES):
        cut = {t: rows[len(rows) * b // BATCHES:len(rows) * (b + 1) // BATCHES] for t, rows in parts.items()}
        both.apply([tpch.insert(t, rows) for t, rows in cut.items() if rows])
        rows = both.compare(f"batch {b}")
    seldom = [n for n, count in rows.items() if not count]
    assert not seldom, f"no rows to compare in queries {seldom}"
    present = {o[0] for o in data.rows["orders"]}
    for r in range(REFRESHES):
        gone = rng.sample(sorted(present), len(present) // 10)
        made = [data.order() for _ in gone]
        present = present - set(gone) | {order[0] for order, _ in made}
        keys = ", ".join(map(str, gone))
        both.apply([tpch.insert("orders", [order for order, _ in made]), tpch.insert("lineitem", [i for _, items in made for i in items])])
        both.compare(f"refresh {r}: orders came")
        both.apply([f"DELETE FROM orders WHERE o_orderkey IN ({keys})", f"DELETE FROM lineitem WHERE l_orderkey IN ({keys})"])
        both.compare(f"refresh {r}: orders went")
