"""kill -9 and restart: what was acknowledged is there, nothing is there twice, views are right at once."""

import os
import random
import subprocess
import threading
import time

import psycopg
import pytest
from harness.procs import wait_until
from harness.riverdelta import Riverdelta, on_a_disk_of


def test_everything_survives_a_restart(riverdelta):
    r = riverdelta
    r.sql(
        "CREATE SCHEMA app", "CREATE TABLE app.t (k int PRIMARY KEY, v numeric(10,2) DEFAULT 1.5, d jsonb, a text[], at timestamptz)",
        "INSERT INTO app.t VALUES (1, 1.10, '{\"b\": 1, \"a\": [null, 1.50]}', '{x,NULL,\"y z\"}', '2024-02-29 12:00+00'), (2, NULL, NULL, NULL, NULL)",
        "CREATE VIEW app.plain AS SELECT k, v * 2 AS w FROM app.t",
        "CREATE MATERIALIZED VIEW app.mv AS SELECT count(*) AS n, sum(w) AS s FROM app.plain",
        "CREATE INDEX app_mv ON app.mv (n)",
        "CREATE VIEW app.dropped AS SELECT 1 AS x", "DROP VIEW app.dropped",
    )
    before = [r.sql(q) for q in ("SELECT * FROM app.t ORDER BY k", "SELECT * FROM app.plain ORDER BY k", "SELECT * FROM app.mv")]
    for kill in (False, True, True, False):
        r.restart(kill=kill)
        assert [r.sql(q) for q in ("SELECT * FROM app.t ORDER BY k", "SELECT * FROM app.plain ORDER BY k", "SELECT * FROM app.mv")] == before
        with pytest.raises(psycopg.errors.UndefinedTable):
            r.sql("SELECT * FROM app.dropped")
        with pytest.raises(psycopg.errors.UniqueViolation):
            r.sql("INSERT INTO app.t (k) VALUES (1)")
    r.sql("INSERT INTO app.t (k) VALUES (3)")
    assert r.sql("SELECT * FROM app.mv") == [(3, before[2][0][1] + 3)]


def test_what_alterations_wrote_survives_a_restart(riverdelta):
    """A view's text follows the columns of what it reads; what is said of the database is kept."""
    r = riverdelta
    r.sql(
        "CREATE TABLE a (id int PRIMARY KEY, v text)", "CREATE TABLE b (id int PRIMARY KEY, w text)",
        "INSERT INTO a VALUES (1, 'x')", "INSERT INTO b VALUES (1, 'y')",
        "CREATE VIEW plain AS SELECT * FROM a NATURAL JOIN b", "CREATE MATERIALIZED VIEW mv AS SELECT id, v, w FROM a NATURAL JOIN b",
        "ALTER TABLE a ADD COLUMN w text DEFAULT 'other'", "ALTER TABLE b RENAME COLUMN id TO key", "ALTER TABLE b RENAME COLUMN w TO v2",
        "COMMENT ON DATABASE riverdelta IS 'all of it'",
    )
    for kill in (False, True, False):
        assert r.sql("SELECT * FROM plain") == r.sql("SELECT * FROM mv") == [(1, "x", "y")]
        assert r.sql("SELECT shobj_description(oid, 'pg_database'), (SELECT description FROM pg_shdescription WHERE objoid = oid) FROM pg_database") == [
            ("all of it", "all of it")
        ]
        r.restart(kill=kill)
    r.sql("COMMENT ON DATABASE riverdelta IS NULL")
    r.restart()
    assert r.sql("SELECT shobj_description(oid, 'pg_database') FROM pg_database") == [(None,)]


def test_workers_may_change(riverdelta):
    riverdelta.sql("CREATE TABLE t (k int, v int)", "CREATE MATERIALIZED VIEW mv AS SELECT k % 7 AS g, count(*) AS n, sum(v) AS s FROM t GROUP BY 1",
                   "INSERT INTO t SELECT g, g * 3 FROM generate_series(1, 5000) g")
    want = riverdelta.sql("SELECT * FROM mv ORDER BY g")
    for workers in (1, 3, 2):
        riverdelta.restart(workers=workers)
        assert riverdelta.sql("SELECT * FROM mv ORDER BY g") == want


@pytest.mark.timeout(600)
def test_kill_loop(riverdelta, long):
    """Writers insert numbered rows one by one and in blocks of three; the server dies again and again. Every acknowledged row is there once,
    blocks are whole, a row not acknowledged is there once or not at all, and the view agrees with the table."""
    r = riverdelta
    r.sql("CREATE TABLE log (writer int, n int)", "CREATE MATERIALIZED VIEW log_v AS SELECT writer, count(*) AS n, sum(n) AS s, max(n) AS m FROM log GROUP BY writer")
    acknowledged: dict[int, set[int]] = {0: set(), 1: set(), 2: set()}
    tried: dict[int, int] = {0: 0, 1: 0, 2: 0}
    stop = threading.Event()

    def write(w: int):
        while not stop.is_set():
            try:
                with r.connect() as c:
                    while not stop.is_set():
                        n = tried[w]
                        tried[w] += 3
                        if w == 2:
                            with c.transaction():
                                for i in range(3):
                                    c.execute("INSERT INTO log VALUES (%s, %s)", [w, n + i])
                        else:
                            c.execute("INSERT INTO log VALUES (%s, %s), (%s, %s), (%s, %s)", [w, n, w, n + 1, w, n + 2])
                        acknowledged[w].update((n, n + 1, n + 2))
            except psycopg.Error:
                time.sleep(0.02)

    threads = [threading.Thread(target=write, args=(w,), daemon=True) for w in acknowledged]
    for t in threads:
        t.start()
    rng = random.Random(1)
    for _ in range(30 if long else 8):
        time.sleep(rng.uniform(0.2, 1.2))
        r.restart(kill=True)
        with r.connect() as c:
            c.execute("BEGIN")
            table = c.execute("SELECT writer, count(*), sum(n), max(n) FROM log GROUP BY writer ORDER BY 1").fetchall()
            view = c.execute("SELECT * FROM log_v ORDER BY 1").fetchall()
            c.execute("COMMIT")
            assert table == view
    stop.set()
    for t in threads:
        t.join(30)
    for w in acknowledged:
        rows = [n for (n,) in r.sql(f"SELECT n FROM log WHERE writer = {w} ORDER BY n")]
        assert len(rows) == len(set(rows)), "rows twice"
        assert acknowledged[w] <= set(rows), f"lost: {sorted(acknowledged[w] - set(rows))[:10]}"
        assert all(len({n + i for i in range(3)} & set(rows)) in (0, 3) for n in range(0, tried[w], 3)), "a part of a block"
        assert len(acknowledged[w]) > 50


def test_a_kill_while_ddl_runs(riverdelta):
    """DDL is all or nothing."""
    r = riverdelta
    r.sql("CREATE TABLE t (k int)", "INSERT INTO t VALUES (1), (2)")
    made, n = [], 0
    for _ in range(5):
        def ddl():
            nonlocal n
            try:
                with r.connect() as c:
                    while True:
                        n += 1
                        c.execute(f"CREATE MATERIALIZED VIEW mv{n} AS SELECT sum(k) + {n} AS s FROM t")
                        made.append(n)
            except psycopg.Error:
                pass

        th = threading.Thread(target=ddl, daemon=True)
        th.start()
        time.sleep(0.4)
        r.restart(kill=True)
        th.join(10)
        for i in made:
            assert r.sql(f"SELECT s FROM mv{i}") == [(3 + i,)]
    assert len(made) > 3
    r.sql("DROP TABLE t CASCADE")
    r.restart(kill=True)
    with pytest.raises(psycopg.errors.UndefinedTable):
        r.sql(f"SELECT * FROM mv{made[0]}")


def test_damage_is_said_not_hidden(riverdelta):
    """A durable file that was changed behind our back is a clear error at start, not a hole in the data."""
    r = riverdelta
    r.sql("CREATE TABLE t (k int)", "INSERT INTO t SELECT g FROM generate_series(1, 50000) g")
    r.sql("INSERT INTO t VALUES (0)")
    r.stop()
    victims = [os.path.join(d, f) for d, _, fs in os.walk(r.data_dir) for f in fs]
    victim = max(victims, key=os.path.getsize)
    with open(victim, "r+b") as f:
        f.seek(os.path.getsize(victim) // 2)
        b = f.read(8)
        f.seek(-len(b), 1)
        f.write(bytes(x ^ 0xFF for x in b))
    r.start(wait=False)
    try:
        r.wait_ready(20)
    except RuntimeError:
        assert "riverdelta:" in r.proc.tail() and os.path.basename(victim) in r.proc.tail(), r.proc.tail()
        return
    # The file was not needed, or is read when asked for: then the answer is right or an error.
    try:
        assert r.sql("SELECT count(*) FROM t") == [(50001,)]
    except psycopg.Error as e:
        assert e.sqlstate in ("XX001", "58030"), e


def test_a_torn_tail_is_cut(riverdelta):
    """Half a record at the end of the log is what a power cut leaves: the start goes on without it."""
    r = riverdelta
    r.sql("CREATE TABLE t (k int)", *[f"INSERT INTO t VALUES ({n})" for n in range(20)])
    r.kill()
    logs = [os.path.join(d, f) for d, _, fs in os.walk(r.data_dir) for f in fs if "log" in d.split("/")[-1] or "log" in f or f.startswith("seg")]
    logs = [f for f in logs if os.path.getsize(f) > 0]
    assert logs, "no log segments found"
    newest = max(logs, key=os.path.getmtime)
    with open(newest, "ab") as f:
        f.write(b"\x13\x00\x00\x00garbage that is no record")
    r.start()
    assert r.sql("SELECT count(*), sum(k) FROM t") == [(20, 190)]
    r.sql("INSERT INTO t VALUES (100)")
    r.restart(kill=True)
    assert r.sql("SELECT count(*) FROM t") == [(21,)]


def test_one_process_on_a_data_directory(riverdelta, tmp_path):
    """A second process is refused in words, and the first goes on."""
    r = riverdelta
    r.sql("CREATE TABLE t (k int)", "INSERT INTO t VALUES (1)")
    second = Riverdelta(tmp_path / "second")
    second.data_dir = r.data_dir
    with pytest.raises(RuntimeError) as e:
        second.start()
    assert "another riverdelta process" in str(e.value) and second.proc.popen.returncode not in (0, -6, -11)
    r.sql("INSERT INTO t VALUES (2)")
    r.restart(kill=True)
    assert r.sql("SELECT k FROM t ORDER BY k") == [(1,), (2,)]


def test_a_full_disk(tmp_path):
    """Writes get 53100 and reads go on; what was acknowledged survives kills on the full disk; with space again, writes go on."""
    with on_a_disk_of(10, tmp_path) as r:
        r.sql("CREATE TABLE t (k int PRIMARY KEY, v text)", "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(k) AS s FROM t")
        rows, full = 0, 0
        while full < 3:
            assert rows < 100_000
            try:
                r.sql(f"INSERT INTO t SELECT g, repeat(md5(g::text), 10) FROM generate_series({rows + 1}, {rows + 1000}) g")
                rows += 1000
            except psycopg.errors.DiskFull:
                full += 1
        want = [(rows, rows * (rows + 1) // 2)]
        assert r.sql("SELECT * FROM v") == want
        with open(os.path.join(r.directory, "fill"), "wb") as f:
            try:
                f.write(bytes(10 << 20))
            except OSError:
                pass
        for _ in range(2):
            r.restart(kill=True)
            assert r.sql("SELECT * FROM v") == want == r.sql("SELECT count(*), sum(k) FROM t")
            with pytest.raises(psycopg.errors.DiskFull):
                r.sql(f"INSERT INTO t SELECT g, repeat(md5(g::text), 10) FROM generate_series({rows + 1}, {rows + 1000}) g")
        subprocess.run(["mount", "-o", "remount,size=100m", r.directory], check=True)
        r.sql(f"INSERT INTO t SELECT g, repeat(md5(g::text), 10) FROM generate_series({rows + 1}, {rows + 1000}) g")
        r.restart(kill=True)
        assert r.sql("SELECT n FROM v") == [(rows + 1000,)]


def fill_disk(r):
    """Takes what is left of the server's disk, so that not a page is free."""
    with open(os.path.join(r.directory, "fill"), "ab", buffering=0) as f:
        for size in (1 << 20, 1 << 12):
            try:
                while True:
                    f.write(bytes(size))
            except OSError:
                pass


def test_a_full_disk_is_freed_by_dropping(tmp_path):
    """DROP finds room where nothing else does, what was dropped goes from the disk, and writes go on by themselves; twice, and over kills."""
    with on_a_disk_of(24, tmp_path) as r:
        r.sql("CREATE TABLE kept (k int PRIMARY KEY, v text)", "INSERT INTO kept SELECT g, repeat(md5(g::text), 10) FROM generate_series(1, 3000) g", "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(k) AS s FROM kept")
        kept = 3000
        insert = lambda t, k: f"INSERT INTO {t} SELECT g, repeat(md5(g::text), 10) FROM generate_series({k + 1}, {k + 1000}) g"  # noqa: E731
        reserve = os.path.join(r.data_dir, "reserve")
        for turn in range(2):
            wait_until(lambda: os.path.exists(reserve), 20, what="room is set aside")
            r.sql("CREATE TABLE big (k int PRIMARY KEY, v text)", "CREATE MATERIALIZED VIEW of_big AS SELECT count(*) AS n FROM big")
            with pytest.raises(psycopg.errors.DiskFull):
                for n in range(100):
                    r.sql(insert("big", n * 1000), f"INSERT INTO kept VALUES ({kept + 1}, 'x')")
                    kept += 1
            fill_disk(r)
            if turn == 1:
                r.restart(kill=True)
            with pytest.raises(psycopg.errors.DiskFull):
                r.sql(insert("kept", kept))
            assert r.sql("SELECT n FROM v") == [(kept,)]
            r.sql("DROP TABLE big CASCADE")

            def goes_on():
                r.sql(insert("kept", kept))
                return True

            wait_until(goes_on, 30, every=0.2, what="writes go on")
            kept += 1000
            r.restart(kill=True)
            want = [(kept, kept * (kept + 1) // 2)]
            assert r.sql("SELECT * FROM v") == want == r.sql("SELECT count(*), sum(k) FROM kept")
            assert r.sql("SELECT count(*) FROM pg_class WHERE relname IN ('big', 'of_big')") == [(0,)]


def test_a_full_disk_without_rows_to_fold(tmp_path):
    """A log that holds objects alone is not folded either, and the server stays up."""
    with on_a_disk_of(8, tmp_path) as r:
        r.sql("CREATE TABLE t (k int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
        r.restart()
        wait_until(lambda: os.path.exists(os.path.join(r.data_dir, "reserve")), 20, what="room is set aside")
        r.sql("CREATE VIEW v AS SELECT k FROM t", "CREATE TABLE u (k int)")
        r.kill()
        fill_disk(r)
        for _ in range(2):
            r.start()
            for _ in range(10):
                assert r.sql("SELECT * FROM v") == [(1,)]
                time.sleep(0.1)
            with pytest.raises(psycopg.errors.DiskFull):
                r.sql("INSERT INTO u SELECT g FROM generate_series(1, 100000) g")
            r.kill()


@pytest.mark.parametrize("last", ["CREATE TEMP TABLE q (a int)", "CREATE TEMP VIEW q AS SELECT 1 AS a", "CREATE TEMP SEQUENCE q"])
def test_temporary_objects_end_before_views_are_filled(riverdelta, last):
    """They are dropped at the start, in a tick of its own, whose time is beyond that of all rows."""
    r = riverdelta
    r.sql("CREATE TABLE t (x int PRIMARY KEY)", "CREATE MATERIALIZED VIEW v AS SELECT * FROM t", "INSERT INTO t VALUES (1)")
    with psycopg.connect(r.dsn, autocommit=True) as c:
        c.execute(last)
        r.restart(kill=True)
    assert r.sql("SELECT * FROM v") == [(1,)]
    assert r.sql("SELECT * FROM t") == [(1,)]
    r.sql("INSERT INTO t VALUES (2)")
    assert r.sql("SELECT * FROM v ORDER BY x") == [(1,), (2,)]
