"""Queries of unusual shape: long, wide, deep. Each is answered, as PostgreSQL answers it, or refused with a clear error, soon."""

import pytest
from corpus import Wire

UNIONS = " UNION ALL ".join(f"SELECT a + {i} FROM t" for i in range(1000))
DISTINCT_UNIONS = " UNION ".join(f"SELECT {i % 700}" for i in range(3000))
DEEP_IN = "SELECT id FROM t"
for _ in range(25):
    DEEP_IN = f"SELECT id FROM t WHERE id IN ({DEEP_IN})"
CORRELATED = "t.a"
for i in range(8):
    CORRELATED = f"(SELECT max(x{i}.id) FROM t x{i} WHERE x{i}.a = {CORRELATED})"
CASES = "1"
for i in range(200):
    CASES = f"CASE WHEN a = {i} THEN {i} ELSE {CASES} END"

SHAPES = {
    "1,000 branches of UNION ALL": f"SELECT count(*), sum(x) FROM ({UNIONS}) q(x)",
    "3,000 branches of UNION": f"SELECT count(*), sum(x) FROM ({DISTINCT_UNIONS}) q(x)",
    "a sum of 3,000 terms": f"SELECT {'+'.join(['a'] * 3000)} FROM t WHERE id = 7",
    "3,000 parentheses": f"SELECT {'(' * 3000}1{')' * 3000}",
    "IN of 10,000 values": f"SELECT count(*) FROM t WHERE a IN ({','.join(map(str, range(5, 10005)))})",
    "OR of 2,000 terms": f"SELECT count(*) FROM t WHERE {' OR '.join(f'a = {i}' for i in range(5, 2005))}",
    "25 INs in each other": f"SELECT count(*) FROM ({DEEP_IN}) q",
    "8 correlated subqueries in each other": f"SELECT sum({CORRELATED}) FROM t",
    "200 CASEs in each other": f"SELECT sum({CASES}) FROM t",
    "a join of 60 relations": f"SELECT count(*) FROM {', '.join(f't t{i}' for i in range(60))} WHERE {' AND '.join(f't{i}.id = t{i + 1}.id' for i in range(59))}",
    "a join of 60 relations, by expressions": f"SELECT count(*) FROM {', '.join(f't t{i}' for i in range(60))} WHERE {' AND '.join(f't{i}.id = t{i + 1}.id + 1' for i in range(59))}",
    "the first of three billion rows": "SELECT generate_series(1, 3000000000) LIMIT 2",
    "the first seconds of 288,000 years": "SELECT generate_series(timestamp '2024-01-01', timestamp '290000-01-01', '1 second') OFFSET 10 LIMIT 2",
    "a chain of 60 LEFT JOINs": f"SELECT count(*), sum(t59.a) FROM t t0 {' '.join(f'LEFT JOIN t t{i} ON t{i}.id = t{i - 1}.id + 1' for i in range(1, 60))}",
    "views on views": "SELECT count(*), sum(a) FROM v50",
    "500 expressions": f"SELECT {', '.join(f'a + {i}' for i in range(500))} FROM t WHERE id = 3",
    "100 aggregates": f"SELECT {', '.join(f'sum(a + {i}), count(DISTINCT a % {i + 1})' for i in range(50))} FROM t",
    "1,024 grouping sets": "SELECT count(*), sum(n) FROM (SELECT count(*) AS n FROM wide GROUP BY CUBE (c0, c1, c2, c3, c4, c5, c6, c7, c8, c9)) q",
}


@pytest.fixture(scope="module")
def wires(pg, rd):
    pg.sql("CREATE DATABASE shapes")
    both = [Wire(pg.dsn.replace("dbname=postgres", "dbname=shapes")), Wire(rd.dsn)]
    setup = ["CREATE TABLE t (id int PRIMARY KEY, a int)", "INSERT INTO t SELECT g, g % 10 FROM generate_series(1, 100) g",
             f"CREATE TABLE wide ({', '.join(f'c{i} int' for i in range(1600))})", "INSERT INTO wide (c0, c1599) VALUES (1, 2)", "CREATE VIEW v0 AS SELECT id, a FROM t",
             *(f"CREATE VIEW v{i} AS SELECT x.id, x.a + 1 AS a FROM v{i - 1} x JOIN t USING (id)" for i in range(1, 51))]
    for wire in both:
        for sql in setup:
            o = wire.run(sql)
            assert o.state is None, f"{o.message}: {sql[:100]}"
        wire.run("SET jit = off")
        wire.run("SET join_collapse_limit = 1")
        wire.run("SET from_collapse_limit = 1")
    return both


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", SHAPES)
def test_shape(wires, name):
    want, got = (w.run(SHAPES[name]) for w in wires)
    assert (want.state, sorted(want.rows)) == (got.state, sorted(got.rows)), f"{want.message} {got.message}"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("sql", [f"SELECT {'(' * 50000}1{')' * 50000}", f"SELECT {'- ' * 50000}1", f"SELECT {'+'.join(['1'] * 50000)}",
                                 f"SELECT {'ARRAY[' * 50000}1{']' * 50000}", f"SELECT {'(SELECT ' * 20000}1{')' * 20000}"], ids=lambda s: s[:30])
def test_too_deep(wires, sql):
    assert wires[1].run(sql).state == "54001"
    assert wires[1].run("SELECT 1").rows == [("1",)]
