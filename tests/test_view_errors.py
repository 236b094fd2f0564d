"""Errors in maintained views: they come with the rows that cause them and go with them; a reader sees the SQLSTATE that the query has."""

import psycopg
import pytest
from harness.riverdelta import Riverdelta

# view, its query, the state while `bad` is there, what adds the bad row, what takes it away again
FAULTS = [
    ("quotient", "SELECT k, 10 / x AS q FROM d", "22012", "INSERT INTO d VALUES (9, 0)", "DELETE FROM d WHERE k = 9"),
    ("filtered", "SELECT k FROM d WHERE 10 / x > 1", "22012", "INSERT INTO d VALUES (9, 0)", "UPDATE d SET x = 5 WHERE k = 9"),
    ("summed", "SELECT sum(10 / x) AS s FROM d", "22012", "INSERT INTO d VALUES (9, 0)", "DELETE FROM d WHERE x = 0"),
    ("overflow", "SELECT k % 2 AS g, sum(b)::int8 AS s FROM wide GROUP BY 1", "22003", "INSERT INTO wide SELECT 2, 9223372036854775807 FROM generate_series(1, 3)",
     "DELETE FROM wide WHERE b > 5"),
    ("extreme", "SELECT max(10 / x) AS m, min(k) AS k FROM d GROUP BY k", "22012", "INSERT INTO d VALUES (9, 0), (9, 1)", "DELETE FROM d WHERE k = 9"),
    ("joined", "SELECT a.k, b.x FROM d a JOIN d b ON a.k = b.k AND 10 / b.x > 0", "22012", "INSERT INTO d VALUES (9, 0)", "DELETE FROM d WHERE k = 9"),
    ("single", "SELECT k, (SELECT y.x FROM d y WHERE y.k = d.k) AS x FROM d", "21000", "INSERT INTO d VALUES (1, 7)", "DELETE FROM d WHERE x = 7"),
    ("casts", "SELECT s::int AS n FROM words", "22P02", "INSERT INTO words VALUES ('x1')", "DELETE FROM words WHERE s LIKE 'x%'"),
    ("windowed", "SELECT k, sum(10 / x) OVER (ORDER BY k) AS s FROM d", "22012", "INSERT INTO d VALUES (9, 0)", "DELETE FROM d WHERE k = 9"),
    ("uniques", "SELECT DISTINCT 10 / x AS q FROM d", "22012", "INSERT INTO d VALUES (9, 0), (9, 0)", "DELETE FROM d WHERE k = 9"),
    ("topmost", "SELECT 10 / x AS q FROM d ORDER BY 1 LIMIT 1", "22012", "INSERT INTO d VALUES (9, 0)", "DELETE FROM d WHERE k = 9"),
    ("union_all", "SELECT k FROM d UNION ALL SELECT 10 / x FROM d", "22012", "INSERT INTO d VALUES (9, 0)", "DELETE FROM d WHERE k = 9"),
    ("recursing", "WITH RECURSIVE r(n) AS (SELECT k FROM d UNION SELECT 10 / x FROM d JOIN r ON r.n = d.k) SELECT n FROM r", "22012",
     "INSERT INTO d VALUES (9, 0)", "DELETE FROM d WHERE k = 9"),
    ("series", "SELECT g FROM d, generate_series(1, 3, x) g", "22023", "INSERT INTO d VALUES (9, 0)", "DELETE FROM d WHERE k = 9"),
    ("on_view", "SELECT q + 1 AS q FROM quotient", "22012", "INSERT INTO d VALUES (9, 0)", "DELETE FROM d WHERE k = 9"),
]


def state(server, sql: str):
    try:
        return sorted(server.sql(sql), key=repr)
    except psycopg.Error as e:
        return e.sqlstate


@pytest.mark.timeout(300)
@pytest.mark.parametrize("workers", [1, 2])
def test_errors_come_and_go(tmp_path, workers):
    server = Riverdelta(tmp_path / "rd", workers=workers).start()
    server.sql("CREATE TABLE d (k int, x int)", "CREATE TABLE wide (k int, b int8)", "CREATE TABLE words (s text)")
    for name, sql, *_ in FAULTS:
        server.sql(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
    server.sql("INSERT INTO d VALUES (1, 1), (2, 2), (3, NULL), (4, -5)", "INSERT INTO wide VALUES (1, 1), (2, 5)", "INSERT INTO words VALUES ('12')")
    good = {name: state(server, f"SELECT * FROM {name}") for name, *_ in FAULTS}
    for name, sql, *_ in FAULTS:
        assert isinstance(good[name], list) and good[name] == state(server, sql), name
    for i, (name, sql, code, breaks, heals) in enumerate(FAULTS):
        server.sql(breaks)
        assert state(server, sql) == code, f"{name} as a query"
        assert state(server, f"SELECT * FROM {name}") == code, name
        if i % 5 == 0:
            server.restart(kill=True, workers=3 - server.workers)
            assert state(server, f"SELECT * FROM {name}") == code, f"{name} after a restart"
        # A view in error hurts nobody else.
        assert state(server, "SELECT 1 AS one") == [(1,)]
        server.sql(heals)
        assert state(server, f"SELECT * FROM {name}") == state(server, sql), f"{name} healed"
        if "UPDATE" in heals:
            server.sql("DELETE FROM d WHERE k = 9")
        assert state(server, f"SELECT * FROM {name}") == good[name], f"{name} healed"
    server.restart(kill=True)
    assert {name: state(server, f"SELECT * FROM {name}") for name, *_ in FAULTS} == good
    assert server.stop() == 0 and not server.panics(), server.panics()
