"""What fills the memory is ended, with an error that says so, before the kernel ends the server; nothing else is."""

import threading
import time

import psycopg
import pytest

from harness.procs import wait_until
from harness.riverdelta import Riverdelta
from harness.subscribe import Subscription
from test_large import peak_mb
from test_wire import resident_mb

LIMIT_MB = 320
# It may grow while what fills it lets go.
PEAK_MB = LIMIT_MB + 1200
# Resident and of files, which the limit does not count.
FILES_MB = 100


@pytest.fixture(scope="module")
def rd(tmp_path_factory):
    server = Riverdelta(tmp_path_factory.mktemp("rd"), env={"RIVERDELTA_MEMORY_LIMIT": f"{LIMIT_MB}MB"}).start()
    server.sql(
        "CREATE TABLE t (n int)",
        "INSERT INTO t SELECT g FROM generate_series(1, 20000) g",
        "CREATE TABLE small (n int)",
        "INSERT INTO small VALUES (1), (2)",
        "CREATE MATERIALIZED VIEW fine AS SELECT count(*) AS n, sum(n) AS s FROM small",
    )
    yield server
    assert server.stop() == 0
    assert not server.panics(), server.panics()


def out_of_memory(db, statement) -> psycopg.Error:
    with pytest.raises(psycopg.Error) as e:
        db.execute(statement).fetchall()
    assert e.value.sqlstate == "53200", e.value
    return e.value


MILLIONS = "generate_series(1, 1000000) a, generate_series(1, 1000000) b"
FILL = {
    "an array by order of arrival": f"SELECT array_agg(1) FROM {MILLIONS}",
    "an array of what is distinct": "SELECT array_agg(DISTINCT a.n::bigint * 30000 + b.n) FROM t a, t b",
    "distinct rows": "SELECT count(*) FROM (SELECT DISTINCT a.n, b.n FROM t a, t b) d",
    "groups": "SELECT max(c) FROM (SELECT a.n, b.n, count(*) AS c FROM t a, t b GROUP BY 1, 2) d",
    "a window": "SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY a.n) + lag(b.n) OVER (ORDER BY b.n) AS r FROM t a, t b) d",
    "recursion": "WITH RECURSIVE r (n) AS (SELECT 1::numeric UNION SELECT n * 10 + x FROM r, generate_series(0, 9) x) SELECT count(*) FROM r",
}


@pytest.mark.parametrize("what", FILL)
def test_a_statement_that_fills_the_memory_is_ended(rd, what):
    with rd.connect() as db:
        e = out_of_memory(db, FILL[what])
        assert "the server came to its limit of 320 MB" in e.diag.message_detail
        assert "--memory-limit" in e.diag.message_hint
        assert db.execute("SELECT * FROM fine").fetchall() == [(2, 3)]
    wait_until(lambda: resident_mb(rd) < LIMIT_MB + FILES_MB, 30, what="the memory is given back")
    assert peak_mb(rd) < PEAK_MB


SESSIONS = {
    "a variable that doubles": ["DO $$ DECLARE a text := 'x'; BEGIN LOOP a := a || a; END LOOP; END $$"],
    "an array that doubles": ["DO $$ DECLARE a int[] := ARRAY[1]; BEGIN LOOP a := a || a; END LOOP; END $$"],
    "a loop over rows": ["DO $$ DECLARE r record; BEGIN FOR r IN SELECT a.t || b.n AS x FROM wide a, t b LOOP NULL; END LOOP; END $$"],
    "all rows of a cursor": ["BEGIN", "DECLARE c CURSOR FOR SELECT * FROM wide a, t b", "FETCH ALL c"],
    "rows that are changed": ["UPDATE wide SET n = n + 1 RETURNING *"],
}


def test_what_a_session_holds_is_ended(rd):
    # In parts that are not to blame themselves, while what the statement before had is not given back yet.
    part = "INSERT INTO wide SELECT g, repeat('x', 400) FROM generate_series({} * 20000 + 1, {} * 20000 + 20000) g"
    rd.sql("CREATE TABLE wide (n int, t text)", *(part.format(i, i) for i in range(20)))
    for statements in SESSIONS.values():
        with rd.connect(autocommit=True) as db, pytest.raises(psycopg.Error) as e:
            for s in statements:
                db.execute(s)
        assert e.value.sqlstate == "53200", (statements, e.value)
        assert "the server came to its limit of 320 MB" in e.value.diag.message_detail
    assert rd.sql("SELECT count(*), sum(n) FROM wide") == [(400_000, 400_000 * 400_001 // 2)]
    rd.sql("DROP TABLE wide")
    wait_until(lambda: resident_mb(rd) < LIMIT_MB + FILES_MB, 30, what="the memory is given back")
    assert peak_mb(rd) < PEAK_MB


def test_who_is_not_to_blame_goes_on(rd):
    watcher = Subscription(rd, "fine")
    done = threading.Event()

    def work():
        with rd.connect() as db:
            while not done.wait(0.02):
                db.execute("SELECT count(*), sum(a.n) FROM small a, small b").fetchall()

    worker = threading.Thread(target=work)
    worker.start()
    with rd.connect() as reader, rd.connect() as other:
        page = reader.cursor("c", withhold=True)
        page.execute("SELECT a.n, b.n FROM t a, t b")
        rows = len(page.fetchmany(1000))
        out_of_memory(other, FILL["an array by order of arrival"])
        rd.sql("INSERT INTO small VALUES (4)")
        wait_until(lambda: watcher.rows() == [("3", "7")], 20, what="the subscription goes on")
        while rows < 50_000:
            rows += len(page.fetchmany(5000))
    done.set()
    worker.join()
    watcher.close()
    rd.sql("DELETE FROM small WHERE n = 4")
    assert peak_mb(rd) < PEAK_MB


def test_a_view_that_fills_the_memory_is_stopped(rd):
    rd.sql(
        "CREATE MATERIALIZED VIEW bomb AS SELECT DISTINCT a.n AS a, b.n AS b FROM t a, t b",
        "CREATE VIEW plain AS SELECT a FROM bomb",
        "CREATE MATERIALIZED VIEW above AS SELECT count(*) AS n FROM plain, small",
        "CREATE INDEX bomb_b ON bomb (b)",
    )
    watcher = Subscription(rd, "above")

    def stopped():
        with rd.connect() as db:
            for relation in ("bomb", "plain", "above"):
                e = out_of_memory(db, f"SELECT * FROM {relation}")
                assert 'materialized view "bomb" was stopped' in e.diag.message_primary
                assert "Drop it" in e.diag.message_hint
            out_of_memory(db, "SELECT * FROM bomb WHERE b = 7")
            (why,) = db.execute("SELECT stopped FROM rd_catalog.arrangements WHERE name = 'bomb'").fetchone()
            assert why.startswith('materialized view "bomb" was stopped')
            assert db.execute("SELECT count(*) FROM rd_catalog.arrangements WHERE stopped IS NULL AND name IN ('fine', 'above')").fetchone() == (2,)
            assert db.execute("SELECT * FROM fine").fetchall() == [(2, 3)]

    stopped()
    wait_until(lambda: watcher.error, 20, what="the subscription ends")
    assert watcher.error.sqlstate == "53200"
    watcher.close()
    # What is made of it later has its error too; what writes goes on.
    rd.sql("CREATE MATERIALIZED VIEW later AS SELECT max(b) FROM bomb", "INSERT INTO t VALUES (20001)", "DELETE FROM t WHERE n = 20001")
    with rd.connect() as db:
        out_of_memory(db, "SELECT * FROM later")
    wait_until(lambda: resident_mb(rd) < LIMIT_MB + FILES_MB, 30, what="the memory is given back")
    rd.restart(kill=True)
    stopped()
    assert peak_mb(rd) < PEAK_MB
    rd.sql("DROP MATERIALIZED VIEW bomb CASCADE", "CREATE MATERIALIZED VIEW bomb AS SELECT count(*) AS n FROM t")
    assert rd.sql("SELECT * FROM bomb") == [(20000,)]


def test_a_view_that_a_change_lets_fill_the_memory_is_stopped(rd):
    rd.sql(
        "CREATE TABLE l (n int)",
        "CREATE TABLE r (n int)",
        "CREATE MATERIALIZED VIEW pairs WITH (ON ERROR = 'quarantine') AS SELECT DISTINCT l.n AS l, r.n AS r FROM l, r WHERE 1 / l.n > 0 OR r.n > 0",
        "INSERT INTO l VALUES (1)",
        "INSERT INTO r SELECT g FROM generate_series(1, 20000) g",
    )
    assert rd.sql("SELECT count(*) FROM pairs") == [(20000,)]
    rd.sql("INSERT INTO l SELECT g FROM generate_series(2, 20000) g")
    with rd.connect() as db:
        out_of_memory(db, "SELECT count(*) FROM pairs")
        # The error is the view's, not one of its rows'.
        out_of_memory(db, "SELECT * FROM pairs_errors")
    rd.sql("DROP MATERIALIZED VIEW pairs", "DROP TABLE l, r")


def test_an_index_that_fills_the_memory_is_not_used(rd):
    rd.sql("CREATE VIEW pairs AS SELECT a.n AS a, b.n AS b FROM t a, t b", "CREATE INDEX pairs_a ON pairs (a)")

    def stopped():
        return rd.sql("SELECT 1 FROM rd_catalog.arrangements WHERE name = 'pairs_a' AND stopped LIKE 'index \"pairs_a\" was stopped%'")

    wait_until(stopped, 60, what="the index is stopped")
    assert rd.sql("SELECT count(*) FROM pairs WHERE a = 3") == [(20000,)]
    rd.sql("DROP VIEW pairs CASCADE")


def test_statements_that_fill_it_together_end_one_by_one(rd):
    errors, started = [], time.monotonic()

    def fill():
        with rd.connect() as db:
            try:
                db.execute(FILL["distinct rows"]).fetchall()
            except psycopg.Error as e:
                errors.append(e.sqlstate)

    threads = [threading.Thread(target=fill) for _ in range(3)]
    for t in threads:
        t.start()
    while any(t.is_alive() for t in threads):
        assert rd.sql("SELECT n FROM fine") == [(2,)]
        time.sleep(0.1)
        assert time.monotonic() < started + 300
    assert errors == ["53200"] * 3
    assert peak_mb(rd) < PEAK_MB
