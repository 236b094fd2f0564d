"""Postgres sources: upstream transactions are whole, at every time, whatever dies."""

import random
import threading
import time
import uuid

import psycopg
import pytest
from harness.procs import wait_until
from harness.subscribe import Follower, Subscription


@pytest.fixture
def upstream(pg):
    """A database of its own. Yields (name, run): run executes statements in it."""
    name = "up" + uuid.uuid4().hex[:8]
    pg.sql(f"CREATE DATABASE {name}")
    yield name, lambda *s: pg.sql(*s, dbname=name)

    def dropped():
        for (slot,) in pg.sql(f"SELECT slot_name FROM pg_replication_slots WHERE database = '{name}' AND NOT active"):
            pg.sql(f"SELECT pg_drop_replication_slot('{slot}')", dbname=name)
        pg.sql(f"DROP DATABASE {name} WITH (FORCE)")
        return True

    try:
        wait_until(dropped, 15, every=0.5)
    except TimeoutError:
        pass  # a source that still runs keeps it; the whole server goes at the end


def connect_pg(server, pg, db: str, name: str = "c"):
    server.sql(f"CREATE CONNECTION {name} TO POSTGRES (HOST '127.0.0.1', PORT {pg.port}, USER 'postgres', DATABASE '{db}')")


def test_snapshot_and_changes(riverdelta, pg, upstream):
    db, up = upstream
    up("CREATE TABLE items (id int PRIMARY KEY, name text, price numeric(10,2), tags text[], doc jsonb, at timestamptz, ok bool)",
       "INSERT INTO items SELECT g, 'n' || g, g * 1.5, ARRAY['a', NULL], '{\"k\": [1]}', '2024-01-01 00:00+00', g % 2 = 0 FROM generate_series(1, 1000) g",
       "CREATE TABLE other (a int, b text)", "ALTER TABLE other REPLICA IDENTITY FULL", "INSERT INTO other VALUES (1, 'x'), (1, 'x'), (2, NULL)",
       "CREATE PUBLICATION p FOR ALL TABLES")
    r = riverdelta
    connect_pg(r, pg, db)
    r.sql("CREATE SOURCE shop FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR ALL TABLES",
          "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(price) AS s, count(*) FILTER (WHERE ok) AS k FROM items")
    assert r.sql("SELECT n, s::text, k FROM v") == [(1000, "750750.00", 500)]
    assert sorted(r.sql("SELECT * FROM other"), key=repr) == sorted([(1, "x"), (1, "x"), (2, None)], key=repr)
    up("UPDATE items SET price = price + 1 WHERE id <= 10", "DELETE FROM items WHERE id > 990", "INSERT INTO items (id) VALUES (5000)",
       "UPDATE other SET b = 'y' WHERE a = 2", "INSERT INTO other VALUES (3, 'z')", "DELETE FROM other WHERE a = 1")
    r.settled("SELECT n, s::text, k FROM v", [(991, "735826.00" if False else str(pg.sql("SELECT sum(price) FROM items", dbname=db)[0][0]), 495)])
    r.settled("SELECT * FROM other", [(2, "y"), (3, "z")])
    up("UPDATE items SET id = 6000 WHERE id = 5000")
    r.settled("SELECT id FROM items WHERE id >= 5000", [(6000,)])
    up("TRUNCATE items")
    r.settled("SELECT n FROM v", [(0,)])


def test_values_are_the_same(riverdelta, pg, upstream):
    """Every type arrives as PostgreSQL prints it, from the snapshot and from the stream."""
    db, up = upstream
    columns = {
        "int2": "-32768", "int4": "2147483647", "int8": "-9223372036854775808", "float4": "1.1", "float8": "1e-300", "numeric": "12345678901234567890.000100",
        "numeric(12,3)": "1.5", "bool": "t", "text": "é|\\n'\"", "varchar(9)": "abc", "char(4)": "ab", "bytea": "\\x00ff", "date": "0044-03-15 BC", "time": "23:59:59.999999",
        "timetz": "12:00:00+05:30", "timestamp": "infinity", "timestamptz": "2024-02-29 12:34:56.789+00", "interval": "1 year 2 mons -3 days 04:05:06.7", "uuid": str(uuid.UUID(int=7)),
        "jsonb": '{"a": [1.50, null], "b": "\\u00e9"}', "json": '{"b" : 1}', "int4[]": "{1,NULL,{2}}" if False else "{1,NULL,3}", "text[]": '{"a b",NULL,"q\\"uote"}', "int4range": "[1,5)", "inet": "10.0.0.1/8",
    }
    cols = ", ".join(f"c{i} {t}" for i, t in enumerate(columns))
    up(f"CREATE TABLE vals (id int PRIMARY KEY, {cols})", "CREATE PUBLICATION p FOR TABLE vals")
    insert = lambda i: up("INSERT INTO vals VALUES (" + ", ".join([str(i), *("'" + v.replace("'", "''") + "'" for v in columns.values())]) + ")")  # noqa: E731
    insert(1)
    up("INSERT INTO vals (id) VALUES (2)")
    r = riverdelta
    connect_pg(r, pg, db)
    r.sql("CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR TABLES (public.vals)")
    insert(3)
    r.settled("SELECT count(*) FROM vals", [(3,)])
    text = "SELECT id, " + ", ".join(f"c{i}::text" for i in range(len(columns))) + " FROM vals ORDER BY id"
    assert r.sql(text) == pg.sql(text, dbname=db)


def test_toasted_columns_that_do_not_change(riverdelta, pg, upstream):
    db, up = upstream
    up("CREATE TABLE docs (id int PRIMARY KEY, n int, body text)", "ALTER TABLE docs ALTER body SET STORAGE EXTERNAL",
       "INSERT INTO docs VALUES (1, 0, repeat('x', 100000))", "CREATE PUBLICATION p FOR TABLE docs")
    r = riverdelta
    connect_pg(r, pg, db)
    r.sql("CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR ALL TABLES")
    up("INSERT INTO docs VALUES (2, 0, repeat('y', 100000))", *["UPDATE docs SET n = n + 1"] * 5)
    r.settled("SELECT id, n, length(body), left(body, 1) FROM docs", [(1, 5, 100000, "x"), (2, 5, 100000, "y")])


def test_a_table_from_a_source_later(riverdelta, pg, upstream):
    db, up = upstream
    up("CREATE TABLE a (id int PRIMARY KEY, v int)", "CREATE TABLE b (id int PRIMARY KEY, v int)", "INSERT INTO a VALUES (1, 1)", "INSERT INTO b VALUES (1, 10)", "CREATE PUBLICATION p FOR ALL TABLES")
    r = riverdelta
    connect_pg(r, pg, db)
    r.sql("CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'p')", "CREATE TABLE a FROM SOURCE s (REFERENCE public.a)")
    r.settled("SELECT * FROM a", [(1, 1)])
    up("INSERT INTO a VALUES (2, 2)", "INSERT INTO b VALUES (2, 20)")
    r.sql("CREATE TABLE renamed FROM SOURCE s (REFERENCE public.b)")
    up("INSERT INTO b VALUES (3, 30)")
    r.settled("SELECT * FROM renamed", [(1, 10), (2, 20), (3, 30)])
    r.settled("SELECT * FROM a", [(1, 1), (2, 2)])


def test_clear_errors(riverdelta, pg, upstream):
    db, up = upstream
    r = riverdelta
    connect_pg(r, pg, db)
    for statement, word in (("CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'nope') FOR ALL TABLES", "nope"),):
        with pytest.raises(psycopg.Error) as e:
            r.sql(statement)
        assert word in str(e.value)
    connect_pg(r, pg, "not_there", "c2")
    with pytest.raises(psycopg.Error) as e:
        r.sql("CREATE SOURCE s FROM POSTGRES CONNECTION c2 (PUBLICATION 'p') FOR ALL TABLES")
    assert "not_there" in str(e.value)


def test_the_slot_goes_with_the_source(riverdelta, pg, upstream):
    db, up = upstream
    up("CREATE TABLE t (id int PRIMARY KEY)", "CREATE PUBLICATION p FOR ALL TABLES")
    r = riverdelta
    connect_pg(r, pg, db)
    slots = lambda: pg.sql(f"SELECT count(*) FROM pg_replication_slots WHERE database = '{db}'")[0][0]  # noqa: E731
    r.sql("CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR ALL TABLES")
    wait_until(lambda: slots() == 1, 20, what="the slot is made")
    r.sql("DROP SOURCE s CASCADE")
    wait_until(lambda: slots() == 0, 20, what="the slot is dropped")


@pytest.mark.timeout(600)
def test_pgbench_through_kills(riverdelta, pg, upstream, long):
    """pgbench moves money (its TPC-B script, its tables as it makes them); each transaction adds the same delta to an account, a teller, a branch
    and the history. The differences of the sums are zero at every time, read and subscribed, over ten kills; the subscription comes back AS OF its
    last progress, without gap and without a new snapshot. At the end all tables are the same."""
    db, up = upstream
    assert pg.pgbench("-i", "-s", "1", "-q", dbname=db).wait(120) == 0
    up("CREATE PUBLICATION p FOR TABLE pgbench_accounts, pgbench_tellers, pgbench_branches, pgbench_history")
    r = riverdelta
    connect_pg(r, pg, db)
    r.sql("CREATE SOURCE bank FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR ALL TABLES",
          "CREATE MATERIALIZED VIEW diff AS SELECT (SELECT sum(abalance) FROM pgbench_accounts) - (SELECT sum(tbalance) FROM pgbench_tellers) AS a_t, "
          "(SELECT sum(tbalance) FROM pgbench_tellers) - (SELECT sum(bbalance) FROM pgbench_branches) AS t_b, "
          "(SELECT sum(bbalance) FROM pgbench_branches) - (SELECT coalesce(sum(delta), 0) FROM pgbench_history) AS b_h",
          # Changes all the time, so that a gap in a subscription would show.
          "CREATE MATERIALIZED VIEW totals AS SELECT count(*) AS n, sum(delta) AS s FROM pgbench_history")
    kills = 20 if long else 10
    seconds = 3 * kills
    bench = pg.pgbench("-n", "-c", "4", "-j", "2", "-T", str(seconds), "-R", "300", dbname=db)
    seen, stop = set(), threading.Event()

    def watch():
        while not stop.is_set():
            try:
                with r.connect() as c:
                    while not stop.is_set():
                        seen.add(tuple(c.execute("SELECT * FROM diff").fetchone()))
            except psycopg.Error:
                time.sleep(0.05)

    th = threading.Thread(target=watch, daemon=True)
    th.start()
    diff, totals = Follower(r, "diff"), Follower(r, "totals")
    rng = random.Random(4)
    for _ in range(kills):
        time.sleep(rng.uniform(0.3, 2.5))
        r.restart(kill=True)
    out, _ = bench.communicate(timeout=120)
    assert bench.returncode == 0, out
    want = pg.sql("SELECT count(*), sum(delta) FROM pgbench_history", dbname=db)
    assert want[0][0] > 1000
    r.settled("SELECT n, s FROM totals", want, seconds=60)
    totals.wait_for([tuple(map(str, want[0]))])
    diff.wait_for([("0", "0", "0")])
    stop.set()
    th.join(10)
    assert seen == {(0, 0, 0)}, "a transaction was split"
    assert diff.seen <= {(("0", "0", "0"),)}, "a transaction was split"
    # One row a time, and never an older one again: what was skipped or repeated would have left a second row, or a negative count.
    assert all(len(rows) == 1 for rows in totals.seen)
    assert diff.resumed > kills // 2 and totals.resumed > kills // 2
    diff.close()
    totals.close()
    for table in ("accounts", "tellers", "branches", "history"):
        rows = lambda got: sorted((tuple(map(str, row)) for row in got), key=repr)  # noqa: E731
        sql = f"SELECT * FROM pgbench_{table}"
        assert rows(r.sql(sql)) == rows(pg.sql(sql, dbname=db)), table


@pytest.mark.timeout(300)
def test_a_large_transaction_is_one_time(riverdelta, pg, upstream):
    db, up = upstream
    up("CREATE TABLE big (id int PRIMARY KEY, v int)", "CREATE PUBLICATION p FOR TABLE big")
    r = riverdelta
    connect_pg(r, pg, db)
    r.sql("CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR ALL TABLES", "CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n, sum(v) AS s FROM big")
    sub = Subscription(r, "n")
    states = []
    sub.on_close = lambda t, rows: states.append(tuple(rows))
    up("INSERT INTO big SELECT g, 1 FROM generate_series(1, 300000) g")
    up("UPDATE big SET v = 2")
    r.settled("SELECT n, s FROM n", [(300000, 600000)], seconds=120)
    sub.wait_for([("300000", "600000")])
    assert {s for s in states} <= {(), (("0", None),), (("300000", "300000"),), (("300000", "600000"),)}
    sub.close()


def test_upstream_may_go_away(riverdelta, tmp_path_factory):
    from harness.postgres import Postgres

    own = Postgres(tmp_path_factory.mktemp("pg2")).init().start()
    try:
        own.sql("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)", "CREATE PUBLICATION p FOR ALL TABLES")
        connect_pg(riverdelta, own, "postgres")
        riverdelta.sql("CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR ALL TABLES")
        riverdelta.settled("SELECT * FROM t", [(1,)])
        own.stop()
        time.sleep(1)
        assert riverdelta.sql("SELECT count(*) FROM t") == [(1,)]
        own.start()
        own.sql("INSERT INTO t VALUES (2)")
        riverdelta.settled("SELECT * FROM t", [(1,), (2,)], seconds=60)
    finally:
        own.stop()
