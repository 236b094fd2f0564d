"""What is declared to happen with errors: ON ERROR = 'fail' of sources, ON ERROR = 'quarantine' of views."""

import json
import uuid

import psycopg
import pytest
from harness.procs import wait_until
from harness.subscribe import Subscription


def fails(server, query: str, code: str, word: str = ""):
    try:
        rows = server.sql(query)
    except psycopg.Error as e:
        assert e.sqlstate == code and word in str(e), (e.sqlstate, str(e))
    else:
        raise AssertionError(f"{query} gave {rows}")


def in_time(check, seconds: float = 30):
    """Waits until `check` asserts nothing any more."""

    def passes():
        try:
            check()
            return True
        except AssertionError:
            return False

    try:
        wait_until(passes, seconds, every=0.1, what="the state that is checked")
    except TimeoutError:
        check()


def test_a_quarantine_view_serves_the_rest(riverdelta):
    r = riverdelta
    r.sql("CREATE TABLE q (id int PRIMARY KEY, d int)", "INSERT INTO q VALUES (1, 1), (2, 0), (3, 2), (4, 0)")
    with r.connect() as c:
        notices = []
        c.add_notice_handler(lambda n: notices.append(n.message_primary))
        c.execute("CREATE MATERIALIZED VIEW qv WITH (ON ERROR = 'quarantine') AS SELECT id, 10 / d AS x FROM q")
        assert any("qv_errors" in n for n in notices), notices
    r.sql("CREATE MATERIALIZED VIEW strict AS SELECT id, 10 / d AS x FROM q",
          "CREATE MATERIALIZED VIEW above AS SELECT count(*) AS n, sum(x) AS s FROM qv",
          "CREATE MATERIALIZED VIEW watched AS SELECT count(*) AS n FROM qv_errors")
    listed = [("22012", "division by zero", None, None)]

    def holds():
        assert sorted(r.sql("SELECT * FROM qv")) == [(1, 10), (3, 5)]
        assert r.sql("SELECT x FROM qv WHERE id = 3") == [(5,)]
        # Equal errors are one.
        assert r.sql("SELECT code, message, detail, hint FROM qv_errors") == listed
        assert r.sql("SELECT * FROM above") == [(2, 15)] and r.sql("SELECT n FROM watched") == [(1,)]
        fails(r, "SELECT * FROM strict", "22012")

    holds()
    r.restart(kill=True)
    holds()
    sub = Subscription(r, "(SELECT id, x FROM qv)")
    errors = Subscription(r, "(SELECT code FROM qv_errors)")
    sub.wait_for([("1", "10"), ("3", "5")])
    errors.wait_for([("22012",)])
    r.sql("UPDATE q SET d = 5 WHERE id = 2")
    sub.wait_for([("1", "10"), ("2", "2"), ("3", "5")])
    assert r.sql("SELECT count(*) FROM qv_errors") == [(1,)]
    r.sql("DELETE FROM q WHERE id = 4")
    errors.wait_for([])
    assert r.sql("SELECT n FROM watched") == [(0,)] and r.sql("SELECT * FROM above") == [(3, 17)]
    assert len(r.sql("SELECT * FROM strict")) == 3
    sub.close(), errors.close()
    # A block reads it as of before its own writes, or not at all.
    with r.connect(autocommit=False) as c:
        c.execute("INSERT INTO q VALUES (9, 0)")
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            c.execute("SELECT * FROM qv")
        c.rollback()
    fails(r, "DROP MATERIALIZED VIEW qv_errors", "42809")
    fails(r, "DROP MATERIALIZED VIEW qv", "2BP01")
    r.sql("DROP MATERIALIZED VIEW qv CASCADE")
    fails(r, "SELECT * FROM qv_errors", "42P01")
    r.sql("CREATE MATERIALIZED VIEW qv WITH (ON ERROR = 'quarantine') AS SELECT 1 / d AS x FROM q")
    r.restart()
    assert r.sql("SELECT count(*) FROM qv, qv_errors") == [(0,)]


def test_what_policies_are_refused(rd):
    rd.sql("CREATE TABLE qr (d int)")
    fails(rd, "CREATE VIEW qx WITH (ON ERROR = 'quarantine') AS SELECT 1 / d FROM qr", "0A000", "not materialized")
    fails(rd, "CREATE MATERIALIZED VIEW qx WITH (ON ERROR = 'nope') AS SELECT 1 / d FROM qr", "22023", "nope")


def test_a_failing_source_heals_by_key(riverdelta, kafka):
    """A key whose message cannot be decoded makes the source unreadable until the next message of that key."""
    topic = "e" + uuid.uuid4().hex[:8]
    kafka.create_topic(topic)
    r = riverdelta
    r.sql(f"CREATE CONNECTION k TO KAFKA (BROKER '{kafka.broker}', SECURITY PROTOCOL 'PLAINTEXT')",
          f"CREATE SOURCE f (id int, v int, PRIMARY KEY (id)) FROM KAFKA CONNECTION k (TOPIC '{topic}') KEY FORMAT JSON VALUE FORMAT JSON ENVELOPE UPSERT WITH (ON ERROR = 'fail')",
          "CREATE MATERIALIZED VIEW fv AS SELECT sum(v) AS s FROM f", "CREATE INDEX fi ON f (id)")
    kafka.produce(topic, ('{"id": 1}', '{"v": 1}'), ('{"id": 2}', '{"v": 2}'))
    r.settled("SELECT s FROM fv", [(3,)])
    kafka.produce(topic, ('{"id": 2}', "not json"), ('{"id": 3}', '{"v": 3}'))

    def in_error():
        for q in ("SELECT * FROM f", "SELECT count(*) FROM f", "SELECT s FROM fv", "SELECT v FROM f WHERE id = 1", "SELECT v FROM f WHERE v IS NULL", "SELECT 1 FROM f LIMIT 1"):
            fails(r, q, "22000", "cannot be decoded")
        assert r.sql("SELECT position, key, value FROM f_errors") == [("0:2", b'{"id": 2}', b"not json")]

    in_time(in_error)
    assert r.sql("SELECT status FROM rd_catalog.sources WHERE name = 'f'") == [("running",)]
    r.restart(kill=True)
    in_time(in_error)
    kafka.produce(topic, ('{"id": 2}', '{"v": 20}'))
    r.settled("SELECT count(*) FROM f_errors", [(0,)])
    assert r.sql("SELECT s FROM fv") == [(24,)] and sorted(r.sql("SELECT id, v FROM f")) == [(1, 1), (2, 20), (3, 3)]
    assert r.sql("SELECT v FROM f WHERE id = 2") == [(20,)]
    kafka.produce(topic, ('{"id": 9}', "x"))
    in_time(lambda: fails(r, "SELECT * FROM f", "22000", "0:5"))
    kafka.produce(topic, ('{"id": 9}', None))
    r.settled("SELECT count(*) FROM f", [(3,)])


def test_a_failing_source_without_keys(rd, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n{"n": "x"}\n{"n": 3}\n')
    rd.sql(f"CREATE SOURCE ff (n int) FROM FILE (PATH '{tmp_path}/a.jsonl') FORMAT JSON WITH (ON ERROR = 'fail')")
    in_time(lambda: fails(rd, "SELECT * FROM ff", "22000", "a.jsonl:9"))
    rd.settled("SELECT status FROM rd_catalog.sources WHERE name = 'ff'", [("finished",)])
    assert rd.sql("SELECT value FROM ff_errors") == [(b'{"n": "x"}',)]
    fails(rd, "CREATE SOURCE fx (n int) FROM FILE (PATH 'x') FORMAT JSON WITH (ON ERROR = 'nope')", "22023", "nope")
    sub = Subscription(rd, "(SELECT * FROM ff)")
    wait_until(lambda: sub.error, 10, what="the subscription's error")
    assert "cannot be decoded" in str(sub.error)
    assert json.dumps(sub.rows()) == "[]"
