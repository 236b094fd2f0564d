"""TPC-DS queries as maintained views, filled in batches, then changed: PostgreSQL's answer after each step."""

import collections
import random

import pytest
import tpcds
from corpus import Wire


def run(wire: Wire, sql: str):
    o = wire.run(sql)
    assert o.state is None, f"{o.state} {o.message}: {sql[:200]}"
    return o


@pytest.mark.timeout(1200)
def test_views(pg, rd, long):
    data = tpcds.Data(scale=1 if long else 0.35)
    pg.sql("CREATE DATABASE tpcds")
    judge, wire = Wire(pg.dsn.replace("dbname=postgres", "dbname=tpcds")), Wire(rd.dsn)
    run(wire, "CREATE SCHEMA tpcds")
    run(wire, "SET search_path = tpcds")
    for table, columns in tpcds.TABLES.items():
        key = "" if table in tpcds.FACTS else " PRIMARY KEY"
        for w in (judge, wire):
            run(w, f"CREATE TABLE {table} ({', '.join(f'{c} {t}{key if i == 0 else str()}' for i, (c, t) in enumerate(columns))})")
    for n, sql in tpcds.QUERIES.items():
        # Columns of a view need different names; those of a query do not.
        names = ", ".join(f"c{i}" for i in range(len(run(judge, sql).names)))
        run(wire, f"CREATE MATERIALIZED VIEW q{n} ({names}) AS {sql}")
    rows = collections.Counter()

    def step(statements: list[str], when: str):
        for sql in ["BEGIN", *statements, "COMMIT"]:
            run(judge, sql)
            run(wire, sql)
        bad = []
        for n, sql in tpcds.QUERIES.items():
            want, got = run(judge, sql), wire.run(f"SELECT * FROM q{n}")
            rows[n] = max(rows[n], len(want.rows))
            if got.state or collections.Counter(want.rows) != collections.Counter(got.rows):
                w, g = collections.Counter(want.rows), collections.Counter(got.rows)
                bad.append(f"{when}: query {n}: {got.state or ''} {got.message} missing {list((w - g).elements())[:3]} too many {list((g - w).elements())[:3]}")
        assert not bad, "\n".join(bad)

    rng = random.Random(5)
    parts = {t: rng.sample(r, len(r)) for t, r in data.rows.items()}
    count = 20 if long else 4
    for b in range(count):
        cut = {t: r[len(r) * b // count:len(r) * (b + 1) // count] for t, r in parts.items()}
        step([tpcds.insert(t, r) for t, r in cut.items() if r], f"batch {b}")
    seldom = [n for n, most in rows.items() if not most]
    assert len(seldom) < 6, f"no rows to compare in queries {seldom}"
    step(["DELETE FROM store_sales WHERE ss_item_sk % 3 = 0", "DELETE FROM web_returns WHERE wr_item_sk % 2 = 0", "UPDATE item SET i_category = 'Books' WHERE i_item_sk % 5 = 0"], "changes")
    step(["UPDATE catalog_sales SET cs_quantity = cs_quantity + 1, cs_bill_customer_sk = NULL WHERE cs_order_number % 4 = 0", "DELETE FROM customer WHERE c_customer_sk % 7 = 0",
          "UPDATE date_dim SET d_year = d_year + 1 WHERE d_dow = 3"], "more changes")
    step([f"DELETE FROM {t}" for t in tpcds.FACTS], "no facts")
