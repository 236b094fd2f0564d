"""Postgres sources: upstream transactions are whole, at every time, whatever dies."""

import random
import threading
import time
import uuid

import psycopg
import pytest
from harness.postgres import connect_pg, status
from harness.procs import wait_until
from harness.subscribe import Follower, Subscription


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
    columns = [
        ("int2", "-32768"), ("int4", "2147483647"), ("int8", "-9223372036854775808"), ("float4", "1.1"), ("float8", "1e-300"), ("float8", "NaN"), ("float8", "-Infinity"), ("float8", "-0"),
        ("numeric", "12345678901234567890.000100"), ("numeric", "NaN"), ("numeric", "Infinity"), ("numeric(12,3)", "1.5"), ("bool", "t"), ("text", "é|\\n'\"\t\n\\."), ("text", ""),
        ("varchar(9)", "abc"), ("char(4)", "ab"), ("bytea", "\\x00ff"), ("date", "0044-03-15 BC"), ("date", "infinity"), ("time", "23:59:59.999999"), ("timetz", "12:00:00+05:30"),
        ("timestamp", "infinity"), ("timestamp", "294276-12-31 23:59:59"), ("timestamptz", "2024-02-29 12:34:56.789+00"), ("timestamptz", "-infinity"),
        ("interval", "1 year 2 mons -3 days 04:05:06.7"), ("uuid", str(uuid.UUID(int=7))), ("jsonb", '{"a": [1.50, null], "b": "\\u00e9"}'), ("json", '{"b" : 1}'),
        ("int4[]", "{1,NULL,3}"), ("int4[]", "[0:1]={7,8}"), ("int4[]", "{{1,2},{3,NULL}}"), ("int4[]", "{}"), ("text[]", '{"a b",NULL,"q\\"uote","NULL"}'), ("numeric[]", "{NaN,1.50}"),
        ("date[]", "{infinity,2024-01-01}"), ("int4range", "[1,5)"), ("tstzrange", '("2024-01-01 00:00:00+00",)'), ("inet", "10.0.0.1/8"), ("mood", "it's ok"), ("mood[]", "{sad,NULL}"),
        ("posint", "7"), ("small", "7"), ("cents", "1.50"), ("point", "(1,2)"), ("pair", '(1,"a b")'), ("bit(3)", "101"), ("tsvector", "'a':1 'b'"), ("oid", "4294967295"), ("name", "n"), ("regclass", "pg_class"),
    ]
    up("CREATE TYPE mood AS ENUM ('sad', 'it''s ok')", "CREATE DOMAIN posint AS int CHECK (value > 0)", "CREATE DOMAIN small AS posint CHECK (value < 9)", "CREATE DOMAIN amount AS numeric(9,2)", "CREATE DOMAIN cents AS amount",
       "CREATE TYPE pair AS (a int, b text)")
    cols = ", ".join(f"c{i} {t}" for i, (t, _) in enumerate(columns))
    up(f"CREATE TABLE vals (id int PRIMARY KEY, {cols})", "CREATE PUBLICATION p FOR TABLE vals")
    insert = lambda i: up("INSERT INTO vals VALUES (" + ", ".join([str(i), *("'" + v.replace("'", "''") + "'" for _, v in columns)]) + ")")  # noqa: E731
    insert(1)
    up("INSERT INTO vals (id) VALUES (2)")
    r = riverdelta
    connect_pg(r, pg, db)
    r.sql("CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR TABLES (public.vals)")
    insert(3)
    r.settled("SELECT count(*) FROM vals", [(3,)])
    text = "SELECT id, " + ", ".join(f"c{i}::text" for i in range(len(columns))) + " FROM vals ORDER BY id"
    assert r.sql(text) == pg.sql(text, dbname=db)
    types = {ty: r.sql(f"SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'vals'::regclass AND attname = 'c{i}'")[0][0] for i, (ty, _) in enumerate(columns)}
    assert (types["posint"], types["small"], types["cents"], types["mood"], types["int4[]"]) == ("integer", "integer", "numeric(9,2)", "text", "integer[]"), types


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


def follow(r, pg, db, *more):
    connect_pg(r, pg, db)
    r.sql("CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR ALL TABLES", *more)


def test_keys_change_hands_within_one_transaction(riverdelta, pg, upstream):
    """Keys that are negated, swapped, freed and taken again, rows that come and go, savepoints that are rolled back: all in one upstream transaction."""
    db, up = upstream
    up("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, 20) g",
       "CREATE TABLE twin (a int, b int, v int, UNIQUE (a, b))", "ALTER TABLE twin ALTER a SET NOT NULL, ALTER b SET NOT NULL", "ALTER TABLE twin REPLICA IDENTITY USING INDEX twin_a_b_key",
       "INSERT INTO twin SELECT g, g, 0 FROM generate_series(1, 5) g",
       "CREATE TABLE bag (v int)", "ALTER TABLE bag REPLICA IDENTITY FULL", "INSERT INTO bag SELECT 1 FROM generate_series(1, 3)", "CREATE PUBLICATION p FOR ALL TABLES")
    r = riverdelta
    follow(r, pg, db, "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, count(DISTINCT id) AS d FROM t")
    sub = Subscription(r, "(SELECT (SELECT n FROM v) - (SELECT d FROM v), (SELECT count(*) FROM bag) - (SELECT count(*) FROM twin))")
    states = set()
    sub.on_close = lambda _, rows: states.add(tuple(rows))
    with pg.connect(db) as c:
        for _ in range(3):
            with c.transaction():
                c.execute("UPDATE t SET id = -id")
                c.execute("UPDATE t SET id = 1000 WHERE id = (SELECT min(id) FROM t)")
                c.execute("DELETE FROM t WHERE abs(id) = 7")
                c.execute("INSERT INTO t VALUES (7, 'again')")
                c.execute("UPDATE t SET id = 8000 WHERE abs(id) = 8")
                c.execute("UPDATE t SET id = 8, v = 'moved' WHERE id = 7")
                c.execute("UPDATE t SET id = 7 WHERE id = 8000")
                c.execute("SAVEPOINT x")
                c.execute("DELETE FROM t")
                c.execute("ROLLBACK TO x")
                c.execute("UPDATE twin SET a = b + 100, v = v + 1")
                c.execute("UPDATE twin SET a = b")
                c.execute("INSERT INTO twin SELECT max(a) + 1, max(a) + 1, 0 FROM twin")
                c.execute("INSERT INTO bag VALUES (1), (2)")
                c.execute("DELETE FROM bag WHERE ctid = (SELECT min(ctid) FROM bag)")
                c.execute("DELETE FROM t WHERE id = 1000")
    for table in ("t", "twin", "bag"):
        r.settled(f"SELECT * FROM {table}", pg.sql(f"SELECT * FROM {table}", dbname=db))
    r.restart(kill=True)
    up("UPDATE t SET v = v || '!', id = id + 100000", "DELETE FROM bag WHERE v = 2", "TRUNCATE t, twin", "INSERT INTO t VALUES (1, 'new')")
    with pg.connect(db) as c, c.transaction():
        c.execute("INSERT INTO bag VALUES (9)")
        c.execute("TRUNCATE bag")
        c.execute("INSERT INTO bag VALUES (10), (10)")
    for table in ("t", "twin", "bag"):
        r.settled(f"SELECT * FROM {table}", pg.sql(f"SELECT * FROM {table}", dbname=db))
    assert states <= {(), (("0", "-2"),)}, states
    assert r.sql("SELECT count(*) FROM s_errors") == [(0,)]


def test_two_relations_of_one_upstream_table(riverdelta, pg, upstream):
    """Each follows it, whatever the change and whenever it was made."""
    db, up = upstream
    up("CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 1), (2, 2)", "CREATE TABLE f (v int)", "ALTER TABLE f REPLICA IDENTITY FULL", "CREATE PUBLICATION p FOR ALL TABLES")
    r = riverdelta
    connect_pg(r, pg, db)
    r.sql("CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR TABLES (t AS a, t AS b, f AS f1, f AS f2)")
    up("INSERT INTO t VALUES (3, 3)", "UPDATE t SET v = v + 1", "INSERT INTO f VALUES (1), (1), (2)", "DELETE FROM f WHERE v = 2")
    for table, rows in (("a", [(1, 2), (2, 3), (3, 4)]), ("b", [(1, 2), (2, 3), (3, 4)]), ("f1", [(1,), (1,)]), ("f2", [(1,), (1,)])):
        r.settled(f"SELECT * FROM {table}", rows)
    r.restart(kill=True)
    r.sql("CREATE TABLE b2 FROM SOURCE s (REFERENCE public.t)")
    up("UPDATE t SET id = id + 10 WHERE v > 2", "TRUNCATE f", "DELETE FROM t WHERE id = 1")
    for table in ("a", "b", "b2"):
        r.settled(f"SELECT * FROM {table}", [(12, 3), (13, 4)])
    r.settled("SELECT count(*) FROM f1", [(0,)])
    with pytest.raises(psycopg.errors.WrongObjectType) as e:
        r.sql("SELECT * FROM s")
    assert "no rows of its own" in str(e.value)
    with pytest.raises(psycopg.errors.SyntaxError) as e:
        r.sql("CREATE TABLE x FROM SOURCE s")
    assert "REFERENCE" in str(e.value)


def test_schemas_and_tables_are_chosen(riverdelta, pg, upstream):
    db, up = upstream
    up("CREATE SCHEMA one", "CREATE SCHEMA two", *[f"CREATE TABLE {n} (id int PRIMARY KEY)" for n in ("one.a", "one.b", "two.a", "two.\"Odd name\"", "public.z")],
       *[f"INSERT INTO {n} VALUES (1)" for n in ("one.a", "one.b", "two.a", "two.\"Odd name\"", "public.z")], "CREATE PUBLICATION p FOR ALL TABLES")
    r = riverdelta
    connect_pg(r, pg, db)
    source = "FROM POSTGRES CONNECTION c (PUBLICATION 'p')"
    for clause, code, word in (("FOR ALL TABLES", "42P07", '"a"'), ("FOR SCHEMAS (nope)", "42P01", "no table"), ("FOR TABLES (one.nope)", "42P01", "nope"), ("FOR TABLES (a)", "42P09", "schema")):
        with pytest.raises(psycopg.Error) as e:
            r.sql(f"CREATE SOURCE s {source} {clause}")
        assert e.value.sqlstate == code and word in str(e.value), (e.value.sqlstate, str(e.value))
    r.sql(f"CREATE SOURCE s1 {source} FOR SCHEMAS (one)", f"CREATE SOURCE s2 {source} FOR TABLES (two.a AS two_a, two.\"Odd name\" AS odd, z)")
    up("INSERT INTO one.a VALUES (2)", "INSERT INTO two.a VALUES (3)", "INSERT INTO public.z VALUES (4)")
    r.sql("CREATE SCHEMA elsewhere", f"CREATE SOURCE elsewhere.s3 {source} FOR TABLES (z AS zz, one.b)")
    for table, rows in (("elsewhere.zz", [(1,), (4,)]), ("elsewhere.b", [(1,)]), ("a", [(1,), (2,)]), ("b", [(1,)]), ("two_a", [(1,), (3,)]), ("odd", [(1,)]), ("z", [(1,), (4,)])):
        r.settled(f"SELECT * FROM {table}", rows)


@pytest.mark.parametrize("change, word", [
    ("ALTER TABLE t DROP COLUMN v", '"v"'), ("ALTER TABLE t RENAME v TO w", '"v"'), ("ALTER TABLE t ALTER v TYPE text", "text"), ("ALTER PUBLICATION p DROP TABLE t", "is not in publication"),
    ("DROP TABLE t CASCADE", "is not in publication"), ("ALTER PUBLICATION p SET (publish = 'insert, truncate')", "updates"),
    ("ALTER TABLE t RENAME TO old; CREATE TABLE t (id int PRIMARY KEY, v int, n int); ALTER PUBLICATION p ADD TABLE t", "made again"),
    ("ALTER TABLE t DROP CONSTRAINT t_pkey; ALTER TABLE t REPLICA IDENTITY FULL; INSERT INTO t VALUES (1, 9)", "primary key"),
    ("ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id, n); INSERT INTO t VALUES (1, 9, 9)", "primary key"),
    ("ALTER TABLE t REPLICA IDENTITY FULL; UPDATE t SET n = 0; ALTER TABLE t DROP CONSTRAINT t_pkey; INSERT INTO t VALUES (1, 9)", "primary key"),
    ("ALTER PUBLICATION p SET TABLE t WHERE (id > 0), other", "row filter"), ("ALTER TABLE t ALTER n DROP NOT NULL, ALTER n SET DEFAULT NULL", '"n"'),
])
def test_upstream_ddl_that_cannot_be_followed(riverdelta, pg, upstream, change, word):
    """The source stops and says which column; what it has stays readable, also after a restart; made again, it goes on."""
    db, up = upstream
    up("CREATE TABLE t (id int PRIMARY KEY, v int, n int NOT NULL DEFAULT 0)", "INSERT INTO t VALUES (1, 1)", "CREATE TABLE other (id int PRIMARY KEY)",
       "CREATE PUBLICATION p FOR TABLE t, other")
    r = riverdelta
    follow(r, pg, db)
    r.settled("SELECT * FROM t", [(1, 1, 0)])
    up(change, "INSERT INTO other VALUES (1)")
    if "t" in [t for (t,) in up("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]:
        up("INSERT INTO t VALUES (2)")
    if "DROP TABLE" in change:
        r.restart(kill=True)  # looks at once
    wait_until(lambda: status(r)[0] == "failed", 30, every=0.2, what="failed")
    assert word in status(r)[1], status(r)
    held = sorted(r.sql("SELECT id FROM t"))
    # What is found out by looking lets pass what came before.
    assert held == [(1,)] or held == [(1,), (2,)] and "PUBLICATION" in change
    r.restart(kill=True)
    assert sorted(r.sql("SELECT id FROM t")) == held
    r.sql("DROP SOURCE s CASCADE", "CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR ALL TABLES")
    r.settled("SELECT * FROM other", [(1,)])


def test_a_table_that_went_upstream_goes_here(riverdelta, pg, upstream):
    """The others go on once the table is dropped here too."""
    db, up = upstream
    up("CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE other (id int PRIMARY KEY)", "CREATE PUBLICATION p FOR ALL TABLES")
    r = riverdelta
    follow(r, pg, db)
    r.settled("SELECT * FROM t", [])
    up("DROP TABLE t", "INSERT INTO other VALUES (1)")
    wait_until(lambda: status(r)[0] == "failed", 30, every=0.2, what="failed")
    up("INSERT INTO other VALUES (2)")
    r.sql("DROP TABLE t")
    r.settled("SELECT * FROM other", [(1,), (2,)])
    assert status(r)[0] == "running"


def test_upstream_ddl_that_can_be_followed(riverdelta, pg, upstream):
    db, up = upstream
    up("CREATE TABLE t (id int PRIMARY KEY, v varchar(5))", "INSERT INTO t VALUES (1, 'a')", "CREATE PUBLICATION p FOR ALL TABLES")
    r = riverdelta
    follow(r, pg, db)
    up("ALTER TABLE t ADD COLUMN w int DEFAULT 7", "INSERT INTO t VALUES (2, 'b', 8)", "ALTER TABLE t ALTER v TYPE varchar(50)", "INSERT INTO t VALUES (3, repeat('c', 40))", "ALTER TABLE t ALTER v TYPE text",
       "CREATE INDEX ON t (v)", "CREATE TABLE later (id int PRIMARY KEY)", "INSERT INTO later VALUES (1)", "ALTER TABLE t REPLICA IDENTITY FULL", "UPDATE t SET v = 'full' WHERE id = 1",
       "ALTER TABLE t REPLICA IDENTITY DEFAULT", "DELETE FROM t WHERE id = 2", "VACUUM FULL t", "UPDATE t SET v = v || '!'")
    r.settled("SELECT * FROM t", [(1, "full!"), (3, "c" * 40 + "!")])
    r.restart(kill=True)
    up("UPDATE t SET v = v || '?'")
    r.settled("SELECT * FROM t", [(1, "full!?"), (3, "c" * 40 + "!?")])
    r.sql("CREATE TABLE later FROM SOURCE s (REFERENCE later)")
    r.settled("SELECT * FROM later", [(1,)])
    assert r.sql("SELECT count(*) FROM s_errors") == [(0,)]


def test_nothing_is_read_before_the_snapshot(riverdelta, pg, upstream):
    """A source without its first rows is not an empty one: reads wait, a block fixes its time once they are there, and the time before is refused."""
    db, up = upstream
    up("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)", "CREATE PUBLICATION p FOR TABLE t")
    r = riverdelta
    r.sql("CREATE TABLE mine (k int)", "INSERT INTO mine VALUES (1)")
    got = []
    with pg.connect(db, autocommit=False) as older, r.connect(autocommit=False) as early, r.connect(autocommit=False) as block:
        # The slot is made once no older transaction runs upstream.
        older.execute("INSERT INTO t VALUES (3)")
        follow(r, pg, db, "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
        past = r.sql("SELECT mz_now()")[0][0]
        assert early.execute("SELECT k FROM mine").fetchall() == [(1,)]
        reader = threading.Thread(target=lambda: got.append(block.execute("SELECT n, (SELECT count(*) FROM t) FROM v").fetchall()))
        reader.start()
        with r.connect() as c:
            c.execute("SET statement_timeout = '300ms'")
            with pytest.raises(psycopg.errors.QueryCanceled), c.transaction():
                c.execute("SELECT * FROM v")
        assert not got
        older.commit()
        reader.join(30)
        assert got == [[(3, 3)]]
        with pytest.raises(psycopg.errors.SerializationFailure, match="first rows"):
            early.execute("SELECT * FROM v")
        early.rollback()
        assert early.execute("SELECT n, (SELECT count(*) FROM t) FROM v").fetchall() == [(3, 3)]
    for _ in range(2):
        for query in ("SELECT * FROM t", "SELECT * FROM v", "SELECT * FROM t JOIN v ON true", "SUBSCRIBE t", "SUBSCRIBE v"):
            with pytest.raises(psycopg.errors.InvalidParameterValue, match="not readable"):
                r.sql(f"{query} AS OF {past}")
        assert r.sql(f"SELECT n FROM v AS OF AT LEAST {past}") == r.sql(f"SELECT count(*) FROM t AS OF AT LEAST {past}") == [(3,)]
        r.restart(kill=True)
    r.sql("CREATE TABLE again FROM SOURCE s (REFERENCE public.t)")
    assert r.sql("SELECT count(*) FROM again") == [(3,)]
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="not readable"):
        r.sql(f"SELECT * FROM again AS OF {past}")
    later = r.sql("SELECT mz_now()")[0][0]
    assert r.sql(f"SELECT count(*) FROM again, t AS OF {later}") == [(9,)]


@pytest.mark.parametrize("while_up", [True, False])
def test_a_slot_that_was_dropped_is_said(riverdelta, pg, upstream, while_up):
    db, up = upstream
    up("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)", "CREATE PUBLICATION p FOR ALL TABLES")
    r = riverdelta
    follow(r, pg, db)
    r.settled("SELECT * FROM t", [(1,)])
    slots = f"FROM pg_replication_slots WHERE database = '{db}'"
    if not while_up:
        r.kill()

    def drop():
        up(f"SELECT pg_terminate_backend(active_pid) {slots} AND active_pid IS NOT NULL")
        up(f"SELECT pg_drop_replication_slot(slot_name) {slots}")
        return pg.sql(f"SELECT count(*) {slots}") == [(0,)]

    wait_until(drop, 20, every=0.001, what="the slot is gone")
    up("INSERT INTO t VALUES (2)")
    if not while_up:
        r.start()
    wait_until(lambda: status(r)[0] == "failed", 30, every=0.2, what="failed")
    assert "new snapshot" in status(r)[1], status(r)
    assert r.sql("SELECT id FROM t") == [(1,)]
    r.sql("DROP SOURCE s CASCADE", "CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR ALL TABLES")
    r.settled("SELECT * FROM t", [(1,), (2,)])


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
    seconds = 2 * kills
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
        # Both have come back and gone on before the next kill.
        before = (diff.frontier, totals.frontier)
        wait_until(lambda: diff.frontier != before[0] and totals.frontier != before[1], 60, what="the subscriptions go on")
        time.sleep(rng.uniform(0, 1))
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
    assert diff.resumed >= kills - 1 and totals.resumed >= kills - 1
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


@pytest.mark.timeout(120)
def test_tls_to_upstream(riverdelta, tmp_path_factory):
    """SSL MODE means what it means to libpq; queries, snapshot and stream are encrypted alike."""
    from harness.postgres import Postgres

    own = Postgres(tmp_path_factory.mktemp("pgtls")).init().with_tls().start()
    r = riverdelta
    try:
        own.sql("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)", "CREATE PUBLICATION p FOR ALL TABLES")
        r.sql(f"CREATE SECRET ca AS '{own.ca}'", f"CREATE SECRET other_ca AS '{own.other_ca}'")
        connections = 0

        def connect(host: str, mode: str, more: str = "") -> str:
            nonlocal connections
            connections += 1
            r.sql(f"CREATE CONNECTION c{connections} TO POSTGRES (HOST '{host}', PORT {own.port}, USER 'postgres', DATABASE 'postgres', SSL MODE '{mode}' {more})")
            try:
                r.sql(f"VALIDATE CONNECTION c{connections}")
            except psycopg.Error as e:
                return str(e)
            return ""

        good, other = ", SSL CERTIFICATE AUTHORITY SECRET ca", ", SSL CERTIFICATE AUTHORITY SECRET other_ca"
        cases = [
            ("127.0.0.1", "disable", "", "pg_hba"), ("127.0.0.1", "require", "", None), ("127.0.0.1", "prefer", "", None), ("127.0.0.1", "require", other, "TLS"),
            ("127.0.0.1", "verify-ca", good, None), ("127.0.0.1", "verify-ca", other, "TLS"), ("127.0.0.1", "verify-full", good, "TLS"), ("localhost", "verify-full", good, None),
            ("localhost", "verify-full", other, "TLS"), ("localhost", "verify-full", "", "TLS"), ("localhost", "always", "", "unknown SSL MODE"),
            ("localhost", "verify-full", ", SSL CERTIFICATE AUTHORITY 'no PEM'", "SSL CERTIFICATE AUTHORITY"),
        ]
        for host, mode, more, word in cases:
            said = connect(host, mode, more)
            assert (word in said) if word else not said, (host, mode, more, said)
        for certificate, cases in (("old", [("prefer", "", None), ("require", "", None)]), ("own", [("require", "", None), ("verify-full", f", SSL CERTIFICATE AUTHORITY '{own.own}'", None), ("verify-full", good, "TLS")])):
            own.use_certificate(certificate)
            for mode, more, word in cases:
                wait_until(lambda: (word in connect("localhost", mode, more)) if word else not connect("localhost", mode, more), 10, what=f"{certificate}, {mode}")
        own.use_certificate("server")
        wait_until(lambda: not connect("localhost", "verify-full", good), 10, what="the first certificate")
        r.sql(f"CREATE SOURCE s FROM POSTGRES CONNECTION c{connections} (PUBLICATION 'p') FOR ALL TABLES")
        r.settled("SELECT * FROM t", [(1,)])
        own.sql("INSERT INTO t SELECT g FROM generate_series(2, 50000) g")
        r.settled("SELECT count(*) FROM t", [(50_000,)])
        r.restart(kill=True)
        own.sql("DELETE FROM t WHERE id > 10")
        r.settled("SELECT count(*) FROM t", [(10,)])
        assert own.sql("SELECT bool_and(ssl), count(*) FROM pg_stat_ssl JOIN pg_stat_replication USING (pid)") == [(True, 1)]
        r.sql("DROP SOURCE s CASCADE")
        wait_until(lambda: own.sql("SELECT count(*) FROM pg_replication_slots") == [(0,)], 20, what="the slot is dropped")
    finally:
        own.stop()
