"""Postgres sources whose upstream misbehaves: stopped, restored, with another password, with tables of every kind."""

import os
import shutil
import signal
import subprocess
import time

import pytest
from harness.postgres import Postgres, connect_pg, status
from harness.procs import wait_until


@pytest.fixture
def own(tmp_path_factory):
    """A PostgreSQL for one test, which may do to it what it likes."""
    server = Postgres(tmp_path_factory.mktemp("own")).init().start()
    yield server
    server.stop()


def processes(server) -> list[int]:
    """The postmaster and its children."""
    with open(os.path.join(server.data_dir, "postmaster.pid")) as f:
        postmaster = int(f.readline())
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(postmaster)], capture_output=True, text=True).stdout.split()
    return [postmaster, *map(int, children)]


def test_a_password_that_was_changed(riverdelta, own):
    """The source says so and goes on with the new one, once the secret has it."""
    r = riverdelta
    own.sql("CREATE ROLE reader LOGIN REPLICATION PASSWORD 'old'", "CREATE TABLE t (id int PRIMARY KEY)", "GRANT SELECT ON t TO reader", "CREATE PUBLICATION p FOR TABLE t")
    with open(f"{own.data_dir}/pg_hba.conf", "w") as f:
        f.write("host all postgres all trust\nhost all reader all scram-sha-256\nhost replication reader all scram-sha-256\n")
    own.sql("SELECT pg_reload_conf()")
    r.sql("CREATE SECRET word AS 'wrong'",
          f"CREATE CONNECTION c TO POSTGRES (HOST '127.0.0.1', PORT {own.port}, USER 'reader', PASSWORD SECRET word, DATABASE 'postgres')")
    with pytest.raises(Exception, match="password authentication failed"):
        r.sql("VALIDATE CONNECTION c")
    r.sql("ALTER SECRET word AS 'old'", "VALIDATE CONNECTION c", "CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR ALL TABLES")
    own.sql("INSERT INTO t VALUES (1)")
    r.settled("SELECT * FROM t", [(1,)])
    own.sql("ALTER ROLE reader PASSWORD 'new'", "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots", "INSERT INTO t VALUES (2)")
    wait_until(lambda: status(r) == ("stalled", status(r)[1]) and "password authentication failed" in status(r)[1], 20, what="stalled")
    assert [row[0] for row in r.sql("SHOW SOURCES")] == ["s"] and "password" in r.sql("SHOW SOURCES")[0][5]
    r.sql("ALTER SECRET word AS 'new'")
    r.settled("SELECT * FROM t", [(1,), (2,)])
    wait_until(lambda: status(r)[0] == "running", 20, what="running")


@pytest.mark.timeout(120)
def test_an_upstream_that_is_silent(riverdelta, own):
    """A server that stops answering without a word is told within half a minute; nothing is lost once it is back."""
    r = riverdelta
    own.sql("ALTER SYSTEM SET wal_sender_timeout = 0", "SELECT pg_reload_conf()", "CREATE TABLE t (id int PRIMARY KEY)", "CREATE PUBLICATION p FOR TABLE t")
    connect_pg(r, own, "postgres")
    r.sql("CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR ALL TABLES")
    own.sql("INSERT INTO t VALUES (1)")
    r.settled("SELECT * FROM t", [(1,)])
    stopped = processes(own)
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: status(r)[0] == "stalled", 40, every=0.2, what="stalled")
        assert "answer" in status(r)[1], status(r)
    finally:
        # runuser stopped itself when its child stopped.
        for pid in [*stopped, own.proc.popen.pid]:
            os.kill(pid, signal.SIGCONT)
    own.sql("INSERT INTO t VALUES (2)")
    r.settled("SELECT * FROM t", [(1,), (2,)], seconds=60)


def test_an_upstream_that_was_restored(riverdelta, own):
    """A backup knows nothing of what was read since: to go on would skip what comes until its log is as long again."""
    r = riverdelta
    own.sql("CREATE TABLE t (id int PRIMARY KEY)", "CREATE PUBLICATION p FOR TABLE t")
    connect_pg(r, own, "postgres")
    r.sql("CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR ALL TABLES")
    own.sql("INSERT INTO t VALUES (1)")
    r.settled("SELECT * FROM t", [(1,)])
    own.stop()
    backup = own.data_dir + "-backup"
    subprocess.run(["cp", "-a", own.data_dir, backup], check=True)
    own.start()
    own.sql("INSERT INTO t SELECT g FROM generate_series(2, 30000) g")
    r.settled("SELECT count(*) FROM t", [(30_000,)])
    own.stop()
    shutil.rmtree(own.data_dir)
    os.rename(backup, own.data_dir)
    own.start()
    own.sql("INSERT INTO t VALUES (2)")
    wait_until(lambda: status(r)[0] == "failed", 30, every=0.2, what="failed")
    assert "restored" in status(r)[1] and "new snapshot" in status(r)[1], status(r)
    assert r.sql("SELECT count(*) FROM t") == [(30_000,)]


@pytest.mark.parametrize("through_root", [False, True])
def test_partitioned_tables(riverdelta, pg, upstream, through_root):
    """Partitions one by one, or their root: rows that move between them, ones that are attached and detached later."""
    db, up = upstream
    up("CREATE TABLE m (id int, region text, v int, PRIMARY KEY (region, id)) PARTITION BY LIST (region)", "CREATE TABLE m_a PARTITION OF m FOR VALUES IN ('a')",
       "CREATE TABLE m_b PARTITION OF m FOR VALUES IN ('b')", "INSERT INTO m SELECT g, CASE g % 2 WHEN 0 THEN 'a' ELSE 'b' END, g FROM generate_series(1, 100) g",
       f"CREATE PUBLICATION p FOR TABLE m WITH (publish_via_partition_root = {str(through_root).lower()})")
    r = riverdelta
    connect_pg(r, pg, db)
    r.sql("CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR ALL TABLES")
    tables = ["m"] if through_root else ["m_a", "m_b"]
    r.sql("CREATE MATERIALIZED VIEW v AS " + " UNION ALL ".join(f"SELECT * FROM {t}" for t in tables))
    check = lambda: r.settled("SELECT * FROM v", pg.sql("SELECT * FROM m", dbname=db))  # noqa: E731
    check()
    up("UPDATE m SET region = 'b', v = -v WHERE id = 2", "DELETE FROM m WHERE id % 10 = 0", "UPDATE m SET v = v + 1", "INSERT INTO m VALUES (200, 'a', 1), (201, 'b', 1)")
    check()
    if through_root:
        up("CREATE TABLE m_c PARTITION OF m FOR VALUES IN ('c')", "INSERT INTO m VALUES (300, 'c', 1)", "UPDATE m SET region = 'c' WHERE id = 2", "DELETE FROM m WHERE id = 300")
        check()
    r.restart(kill=True)
    up("TRUNCATE m_b") if not through_root else up("TRUNCATE m")
    up("INSERT INTO m VALUES (1, 'b', 7)")
    check()


def test_many_kinds_of_identity(riverdelta, pg, upstream):
    """Tables without a key, with another unique index as identity, with the full row, changed from one to the other while rows change."""
    db, up = upstream
    up("CREATE TABLE bare (a int, b text)", "CREATE TABLE other (id int PRIMARY KEY, code text NOT NULL, v int)", "CREATE UNIQUE INDEX other_code ON other (code)",
       "ALTER TABLE other REPLICA IDENTITY USING INDEX other_code", "INSERT INTO bare SELECT 1, 'same' FROM generate_series(1, 3)",
       "INSERT INTO other SELECT g, 'c' || g, 0 FROM generate_series(1, 50) g", "CREATE PUBLICATION p FOR TABLE bare, other")
    r = riverdelta
    connect_pg(r, pg, db)
    r.sql("CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR ALL TABLES")
    check = lambda: [r.settled(f"SELECT * FROM {t}", pg.sql(f"SELECT * FROM {t}", dbname=db)) for t in ("bare", "other")]  # noqa: E731
    check()
    up("INSERT INTO bare VALUES (1, 'same'), (NULL, NULL)", "UPDATE other SET v = id, code = code || 'x' WHERE id < 10", "DELETE FROM other WHERE id = 20",
       "ALTER TABLE bare REPLICA IDENTITY FULL", "DELETE FROM bare WHERE ctid = (SELECT min(ctid) FROM bare)", "UPDATE bare SET b = 'other' WHERE a IS NULL")
    check()
    up("BEGIN; UPDATE other SET id = id + 100 WHERE id < 5; ALTER TABLE other REPLICA IDENTITY DEFAULT; UPDATE other SET v = v + 1; COMMIT", "DELETE FROM other WHERE id = 30",
       "ALTER TABLE other REPLICA IDENTITY FULL", "UPDATE other SET code = 'z' || code", "ALTER TABLE other REPLICA IDENTITY DEFAULT", "UPDATE other SET v = v + 1, id = id + 1000")
    check()
    r.restart(kill=True)
    up("UPDATE other SET v = -v", "TRUNCATE bare", "INSERT INTO bare VALUES (5, 'x')")
    check()
    assert r.sql("SELECT count(*) FROM s_errors") == [(0,)]


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_generated_column_in_the_key(riverdelta, pg, upstream, is_killed):
    """The stream does not have it: what names rows by it cannot be followed, what names them whole can."""
    db, up = upstream
    up("CREATE TABLE t (a int, b int, g int GENERATED ALWAYS AS (b * 2) STORED, PRIMARY KEY (a, g))", "INSERT INTO t SELECT 1, g FROM generate_series(1, 5) g", "CREATE PUBLICATION p FOR TABLE t")
    r = riverdelta
    connect_pg(r, pg, db)
    r.sql("CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR ALL TABLES", "CREATE MATERIALIZED VIEW v AS SELECT DISTINCT a FROM t")
    up("INSERT INTO t VALUES (1, 6)", "ALTER TABLE t REPLICA IDENTITY FULL", "UPDATE t SET b = 7 WHERE b = 2", "DELETE FROM t WHERE b = 3")
    r.settled("SELECT * FROM t", [(1, 1), (1, 4), (1, 5), (1, 6), (1, 7)])
    if is_killed:
        r.restart(kill=True)
    up("ALTER TABLE t REPLICA IDENTITY DEFAULT", "UPDATE t SET b = 9 WHERE b = 7", "ALTER TABLE t REPLICA IDENTITY FULL")
    wait_until(lambda: status(r)[0] == "failed", 20, what="failed")
    assert "REPLICA IDENTITY FULL" in status(r)[1], status(r)
    assert r.sql("SELECT * FROM v") == [(1,)]


def test_two_sources_of_one_database(riverdelta, pg, upstream):
    """Each has its slot and its errors; a transaction over both is whole in each; one goes, the other stays."""
    db, up = upstream
    up("CREATE TABLE t (id int PRIMARY KEY, v int)", "CREATE PUBLICATION p FOR ALL TABLES")
    r = riverdelta
    connect_pg(r, pg, db)
    r.sql("CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR TABLES (t AS t1)", "CREATE SOURCE s2 FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR TABLES (t AS t2)")
    for i in range(20):
        up(f"BEGIN; INSERT INTO t VALUES ({i}, 1); UPDATE t SET v = v + 1; COMMIT")
    rows = pg.sql("SELECT * FROM t", dbname=db)
    r.settled("SELECT * FROM t1", rows)
    r.settled("SELECT * FROM t2", rows)
    r.sql("DROP SOURCE s")
    up("DELETE FROM t WHERE id > 3")
    r.settled("SELECT * FROM t2", pg.sql("SELECT * FROM t", dbname=db))
    wait_until(lambda: pg.sql(f"SELECT count(*) FROM pg_replication_slots WHERE database = '{db}'") == [(1,)], 20, what="one slot")


def test_a_slow_upstream_transaction(riverdelta, pg, upstream):
    """Savepoints that are rolled back, a transaction that is open for long, prepared changes of many tables: only what is committed is seen, whole."""
    db, up = upstream
    up("CREATE TABLE t (id int PRIMARY KEY, v int)", "CREATE TABLE u (id int PRIMARY KEY, v int)", "CREATE PUBLICATION p FOR ALL TABLES")
    r = riverdelta
    connect_pg(r, pg, db)
    r.sql("CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR ALL TABLES",
          "CREATE MATERIALIZED VIEW v AS SELECT (SELECT count(*) FROM t) AS t, (SELECT count(*) FROM u) AS u")
    r.settled("SELECT * FROM v", [(0, 0)])  # the slot is made once no older transaction runs
    with pg.connect(dbname=db, autocommit=False) as c:
        c.execute("INSERT INTO t VALUES (1, 1)")
        c.execute("SAVEPOINT a")
        c.execute("INSERT INTO u SELECT g, g FROM generate_series(1, 1000) g")
        c.execute("ROLLBACK TO a")
        up("INSERT INTO t VALUES (2, 2)")
        r.settled("SELECT * FROM v", [(1, 0)])
        c.execute("INSERT INTO u VALUES (7, 7)")
        time.sleep(0.3)
        assert r.sql("SELECT * FROM v") == [(1, 0)]
        c.commit()
        c.execute("DELETE FROM t")
        c.rollback()
    r.settled("SELECT * FROM v", [(2, 1)])


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_a_bulk_load_is_not_kept(riverdelta, pg, upstream, identity):
    """A large transaction that only inserts costs no memory for keys; what it changes itself later, and what others change, finds its rows."""
    db, up = upstream
    up("CREATE TABLE t (id int PRIMARY KEY, v int)", f"ALTER TABLE t REPLICA IDENTITY {identity}", "INSERT INTO t VALUES (0, 0)", "CREATE PUBLICATION p FOR ALL TABLES")
    r = riverdelta
    connect_pg(r, pg, db)
    r.sql("CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR ALL TABLES", "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(id) AS i, sum(v) AS s FROM t")
    kept = lambda: r.sql("SELECT value FROM rd_catalog.source_statistics WHERE statistic = 'state_rows'")[0][0]  # noqa: E731
    check = lambda: r.settled("SELECT * FROM v", pg.sql("SELECT count(*), sum(id), sum(v) FROM t", dbname=db), seconds=60)  # noqa: E731
    up("INSERT INTO t SELECT g, g FROM generate_series(1, 80000) g")
    check()
    assert kept() == "0"
    up("BEGIN; INSERT INTO t SELECT g, g FROM generate_series(100001, 180000) g; UPDATE t SET v = -v WHERE id % 1000 = 0; DELETE FROM t WHERE id % 1000 = 1;"
       "UPDATE t SET id = -id WHERE id % 1000 = 2; INSERT INTO t SELECT g, 1 FROM generate_series(200001, 240000) g; COMMIT")
    check()
    assert kept() == ("0" if identity == "FULL" else str(r.sql("SELECT n FROM v")[0][0]))
    r.restart(kill=True)
    up("BEGIN; INSERT INTO t SELECT g, g FROM generate_series(300001, 340000) g; TRUNCATE t; INSERT INTO t SELECT g, 7 FROM generate_series(1, 50000) g; DELETE FROM t WHERE id > 40000; COMMIT")
    check()


@pytest.mark.long
@pytest.mark.timeout(300)
def test_long_rows(riverdelta, pg, upstream):
    """Memory is bounded in bytes, not in rows."""
    db, up = upstream
    up("CREATE TABLE t (id int PRIMARY KEY, body text)", "ALTER TABLE t ALTER body SET STORAGE EXTERNAL", "INSERT INTO t SELECT g, repeat(chr(97 + g % 26), 1000000) FROM generate_series(1, 300) g",
       "CREATE PUBLICATION p FOR ALL TABLES")
    r = riverdelta
    connect_pg(r, pg, db)
    r.sql("CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR ALL TABLES")
    want = lambda: pg.sql("SELECT count(*), sum(length(body)), sum(ascii(body)) FROM t", dbname=db)  # noqa: E731
    r.settled("SELECT count(*), sum(length(body)), sum(ascii(body)) FROM t", want(), seconds=60)
    up("INSERT INTO t SELECT g, repeat('z', 1000000) FROM generate_series(1000, 1200) g")
    r.settled("SELECT count(*), sum(length(body)), sum(ascii(body)) FROM t", want(), seconds=60)
    up("UPDATE t SET id = -id WHERE id % 3 = 0")
    r.settled("SELECT count(*), sum(length(body)), sum(ascii(body)) FROM t WHERE id < 0", pg.sql("SELECT count(*), sum(length(body)), sum(ascii(body)) FROM t WHERE id < 0", dbname=db), seconds=60)
