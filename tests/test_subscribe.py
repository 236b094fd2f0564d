"""SUBSCRIBE: the snapshot and the changes after it add up to the view, at every closed time."""

import random
import threading

import psycopg
import pytest
from harness.subscribe import Follower, Subscription


def test_snapshot_then_changes(rd, db):
    db.execute("CREATE TABLE s1 (k int, v text)")
    db.execute("INSERT INTO s1 VALUES (1, 'a'), (1, 'a'), (2, NULL)")
    sub = Subscription(rd, "s1")
    sub.wait_for([("1", "a"), ("1", "a"), ("2", None)])
    db.execute("UPDATE s1 SET v = 'b' WHERE k = 2")
    db.execute("DELETE FROM s1 WHERE k = 1")
    sub.wait_for([("2", "b")])
    sub.close()


def test_without_snapshot(rd, db):
    db.execute("CREATE TABLE s2 (k int)")
    db.execute("INSERT INTO s2 VALUES (1)")
    sub = Subscription(rd, "s2", "SNAPSHOT = false, PROGRESS")
    from harness.procs import wait_until

    wait_until(lambda: sub.frontier, what="first progress")
    db.execute("INSERT INTO s2 VALUES (2)")
    sub.wait_for([("2",)])
    sub.close()


def test_of_a_query(rd, db):
    db.execute("CREATE TABLE s3 (k int, v int)")
    sub = Subscription(rd, "(SELECT k, sum(v) FROM s3 GROUP BY k HAVING sum(v) > 10)")
    db.execute("INSERT INTO s3 VALUES (1, 5), (2, 20)")
    sub.wait_for([("2", "20")])
    db.execute("INSERT INTO s3 VALUES (1, 6), (2, -15)")
    sub.wait_for([("1", "11")])
    sub.close()


def test_a_transaction_is_one_time(rd, db):
    db.execute("CREATE TABLE s4 (k int, v int)")
    db.execute("INSERT INTO s4 VALUES (1, 50), (2, 50)")
    db.execute("CREATE MATERIALIZED VIEW s4_sum AS SELECT sum(v) AS s FROM s4")
    sub = Subscription(rd, "s4_sum")
    seen = []
    sub.on_close = lambda t, rows: seen.append(rows)
    sub.wait_for([("100",)])
    for n in range(30):
        db.execute("BEGIN")
        db.execute(f"UPDATE s4 SET v = v - {n} WHERE k = 1")
        db.execute(f"UPDATE s4 SET v = v + {n} WHERE k = 2")
        db.execute("COMMIT")
    db.execute("INSERT INTO s4 VALUES (3, 1)")
    sub.wait_for([("101",)])
    assert {tuple(r) for r in map(tuple, seen)} <= {(), (("100",),), (("101",),)}
    sub.close()


def test_many_readers_and_writers(rd, db):
    """Every subscription ends with what SELECT gives, and progress never goes back."""
    db.execute("CREATE TABLE s5 (k int, v int)")
    db.execute("CREATE MATERIALIZED VIEW s5_v AS SELECT k, count(*) AS n, sum(v) AS s FROM s5 GROUP BY k")
    subs = [Subscription(rd, what) for what in ("s5", "s5_v", "s5_v", "(SELECT v FROM s5 WHERE k = 1)")]

    def write(seed):
        rng = random.Random(seed)
        with rd.connect() as c:
            for _ in range(60):
                k = rng.randint(1, 5)
                c.execute(rng.choice([f"INSERT INTO s5 VALUES ({k}, {rng.randint(1, 9)})", f"DELETE FROM s5 WHERE k = {k} AND v = {rng.randint(1, 9)}",
                                      f"UPDATE s5 SET v = v + 1 WHERE k = {k}", f"INSERT INTO s5 SELECT {k}, g FROM generate_series(1, 5) g"]))

    threads = [threading.Thread(target=write, args=(s,)) for s in range(3)]
    for th in threads:
        th.start()
    for th in threads:
        th.join()
    text = lambda sql: [tuple(None if v is None else str(v) for v in r) for r in db.execute(sql).fetchall()]  # noqa: E731
    for sub, sql in zip(subs, ("TABLE s5", "TABLE s5_v", "TABLE s5_v", "SELECT v FROM s5 WHERE k = 1")):
        sub.wait_for(text(sql))
        sub.close()


def test_cursor(rd):
    with rd.connect() as c:
        c.execute("CREATE TABLE s6 (k int)")
        c.execute("INSERT INTO s6 VALUES (1)")
        c.execute("BEGIN")
        c.execute("DECLARE c CURSOR FOR SUBSCRIBE s6")
        rows = c.execute("FETCH 10 FROM c WITH (timeout = '2s')").fetchall()
        assert [(r[1], r[2]) for r in rows] == [(1, 1)]
        assert c.execute("FETCH 10 FROM c WITH (timeout = '100ms')").fetchall() == []
        with rd.connect() as other:
            other.execute("INSERT INTO s6 VALUES (2)")
        assert [(r[1], r[2]) for r in c.execute("FETCH 10 FROM c WITH (timeout = '5s')").fetchall()] == [(1, 2)]
        c.execute("COMMIT")


def test_up_to_ends(rd, db):
    db.execute("CREATE TABLE s7 (k int)")
    db.execute("INSERT INTO s7 VALUES (1)")
    sub = Subscription(rd, "s7")
    sub.wait_for([("1",)])
    t = sub.updates[0][0]
    sub.close()
    with db.cursor() as cur, cur.copy(f"COPY (SUBSCRIBE s7 AS OF {t} UP TO {t + 1}) TO STDOUT") as copy:
        lines = b"".join(bytes(b) for b in copy).decode().splitlines()
    assert [line.split("\t")[1:] for line in lines] == [["1", "1"]]


def test_dropping_the_relation_ends_it(rd, db):
    db.execute("CREATE TABLE s8 (k int)")
    sub = Subscription(rd, "s8")
    sub.wait_for([])
    db.execute("DROP TABLE s8")
    sub.thread.join(10)
    assert not sub.thread.is_alive()
    assert isinstance(sub.error, psycopg.Error)


@pytest.mark.parametrize("of", ["rep_v", "rep_m", "(SELECT sum(k) FROM rep_w)"])
def test_replacing_a_view_below_ends_it(rd, db, of):
    db.execute("DROP TABLE IF EXISTS rep CASCADE; CREATE TABLE rep (k int); INSERT INTO rep VALUES (1)")
    db.execute("CREATE VIEW rep_v AS SELECT k FROM rep; CREATE VIEW rep_w AS SELECT k FROM rep_v; CREATE MATERIALIZED VIEW rep_m AS SELECT k FROM rep_w")
    sub = Subscription(rd, of)
    sub.wait_for([("1",)])
    db.execute("CREATE OR REPLACE VIEW rep_v AS SELECT k + 1 AS k FROM rep")
    sub.thread.join(10)
    assert isinstance(sub.error, psycopg.errors.ObjectNotInPrerequisiteState) and "altered or replaced" in str(sub.error)
    again = Subscription(rd, of)
    again.wait_for([("2",)])
    again.close()


def test_an_error_ends_it_with_its_state(rd, db):
    db.execute("CREATE TABLE s9 (a int)")
    db.execute("INSERT INTO s9 VALUES (1)")
    sub = Subscription(rd, "(SELECT 10 / a FROM s9)")
    sub.wait_for([("10",)])
    db.execute("INSERT INTO s9 VALUES (0)")
    sub.thread.join(10)
    assert isinstance(sub.error, psycopg.errors.DivisionByZero)


@pytest.mark.parametrize("n", [50_000])
def test_a_reader_that_stops_reading_does_not_fill_memory(rd, db, n):
    from test_wire import resident_mb

    db.execute("CREATE TABLE s10 (k int, v text)")
    db.execute(f"INSERT INTO s10 SELECT g, repeat('x', 500) FROM generate_series(1, {n}) g")
    from harness.wire import Raw, query

    raw = Raw(rd.port)
    before = resident_mb(rd)
    raw.send(query("COPY (SUBSCRIBE s10) TO STDOUT"))
    for _ in range(6):
        db.execute("UPDATE s10 SET k = k + 1")
    grown = resident_mb(rd) - before
    assert grown < 1200, f"{grown} MB"
    raw.close()


def test_as_of_the_past_sends_what_went_by(riverdelta):
    """A subscription that begins in the past sends every change since, also of a relation that nothing arranges."""
    r = riverdelta
    r.sql("CREATE TABLE past (i int)", "INSERT INTO past VALUES (9)")
    with r.connect() as c:
        c.execute("BEGIN")
        c.execute("DECLARE s CURSOR FOR SUBSCRIBE past WITH (PROGRESS)")
        seen = c.execute("FETCH 3 s WITH (timeout = '2s')").fetchall()
        at = max(row[0] for row in seen if row[1])
        c.execute("COMMIT")
        r.sql("INSERT INTO past VALUES (10), (11), (11)", "DELETE FROM past WHERE i = 9")
        c.execute("BEGIN")
        c.execute(f"DECLARE s CURSOR FOR SUBSCRIBE past AS OF {at} WITH (SNAPSHOT = false)")
        changes = c.execute("FETCH 4 s WITH (timeout = '5s')").fetchall()
        while len(changes) < 3:
            more = c.execute("FETCH 4 s WITH (timeout = '5s')").fetchall()
            assert more, changes
            changes += more
        assert sorted(row[1:] for row in changes) == [(-1, 9), (1, 10), (2, 11)]


def test_coming_back_as_of_the_last_progress_misses_nothing(rd, db):
    """However often the connection is cut, while ticks come as fast as they can, and time itself changes the view."""
    db.execute("CREATE TABLE s11 (i int, till int8)")
    db.execute("CREATE MATERIALIZED VIEW s11_v AS SELECT count(*) AS n, max(i) AS last FROM s11")
    db.execute("CREATE MATERIALIZED VIEW s11_t AS SELECT i FROM s11 WHERE mz_now() < till")
    followers = [Follower(rd, "s11_v"), Follower(rd, "s11_t")]
    done = threading.Event()

    def write(from_i):
        with rd.connect() as c:
            for i in range(from_i, from_i + 400):
                c.execute(f"INSERT INTO s11 VALUES ({i}, (SELECT mz_now()::text::int8) + {i % 50})")
                threading.Event().wait(0.002)
        done.set()

    writers = [threading.Thread(target=write, args=(w * 1000,)) for w in range(2)]
    for th in writers:
        th.start()
    rng = random.Random(7)
    while not done.is_set():
        done.wait(rng.uniform(0.01, 0.08))
        for f in followers:
            f.cut()
    for th in writers:
        th.join()
    followers[0].wait_for([("800", "1399")])
    followers[1].wait_for([])
    assert all(f.resumed > 3 for f in followers)
    assert all(len(rows) == 1 for rows in followers[0].seen)
    for f in followers:
        f.close()


def test_as_of_a_time_to_come_waits_for_it(rd, db):
    db.execute("CREATE TABLE s12 (i int)")
    closed = lambda: db.execute("SELECT closed FROM rd_catalog.timeline").fetchone()[0]  # noqa: E731
    now = closed()
    assert db.execute(f"SELECT count(*) FROM s12 AS OF {now + 500}").fetchone() == (0,)
    assert closed() >= now + 500
    with db.cursor() as cur, cur.copy(f"COPY (SUBSCRIBE s12 AS OF {now + 1001} UP TO {now + 1100} WITH (PROGRESS)) TO STDOUT") as copy:
        assert b"".join(bytes(b) for b in copy).startswith(str(now + 1001).encode())
    db.execute("SET statement_timeout = '200ms'")
    with pytest.raises(psycopg.errors.QueryCanceled):
        db.execute(f"SELECT * FROM s12 AS OF {now + 3_600_000}")
    db.execute("RESET statement_timeout")


def test_a_subscription_that_would_end_before_it_begins_is_refused(db):
    db.execute("CREATE TABLE past (a int)")
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        db.execute("COPY (SUBSCRIBE past UP TO 5) TO STDOUT")


def test_statement_timeout_ends_a_subscription(rd):
    with rd.connect() as c:
        c.execute("SET statement_timeout = 200")
        with pytest.raises(psycopg.errors.QueryCanceled):
            c.execute("SUBSCRIBE past")
