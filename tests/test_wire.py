"""The wire protocol, message by message: PostgreSQL's own answers are the expected ones."""

import re
import struct
import threading
import time

import psycopg
import pytest
from harness.procs import wait_until
from harness.wire import FLUSH, SYNC, TERMINATE, Raw, bind, close, cstr, describe, execute, gone, msg, parse, query, transcript

i4 = lambda n: struct.pack("!i", n)  # noqa: E731

SETUP = ["DROP TABLE IF EXISTS wt", "CREATE TABLE wt (a int, b text)", "INSERT INTO wt VALUES (1, 'one'), (2, 'two'), (3, NULL)"]

# name: messages; each runs on a connection of its own.
SCRIPTS = {
    "simple": [query("SELECT 1 AS a, 'x' AS b, NULL AS c")],
    "empty string": [query("")],
    "only a semicolon": [query(" ; ;; ")],
    "only a comment": [query("-- nothing")],
    "several statements": [query("SELECT 1; SELECT 2, 3; SELECT 'x'")],
    "an error ends the string": [query("SELECT 1; SELECT 1/(a-a) FROM wt; SELECT 2"), query("SELECT 3")],
    "a syntax error runs nothing": [query("SELECT 1; SELEC 2")],
    "zero columns": [query("SELECT"), query("SELECT FROM wt")],
    "zero rows": [query("SELECT a, b FROM wt WHERE false")],
    "block": [query("BEGIN"), query("SELECT 1"), query("COMMIT")],
    "failed block": [query("BEGIN"), query("SELECT 1/(a-a) FROM wt"), query("SELECT 1"), query("COMMIT"), query("SELECT 1")],
    "rollback of a failed block": [query("BEGIN"), query("nonsense"), query("ROLLBACK")],
    "a block in one string": [query("BEGIN; SELECT 1; COMMIT; SELECT 2")],
    "a block left open in a string": [query("BEGIN; SELECT 1"), query("ROLLBACK")],
    "an error in a block in one string": [query("BEGIN; SELECT 1/(a-a) FROM wt; COMMIT"), query("ROLLBACK")],
    "commit outside": [query("COMMIT")],
    "a write that a later error undoes": [query("INSERT INTO wt VALUES (9, 'x'); SELECT 1/(a-a) FROM wt"), query("SELECT count(*) FROM wt")],
    "parameters in a simple query": [query("SELECT $1")],
    "extended": [parse("SELECT $1::int + 1 AS n"), bind([b"41"]), describe(), execute(), SYNC],
    "described statement": [parse("SELECT a, b FROM wt WHERE a = $1 AND b LIKE $2", "s"), describe("S", "s"), SYNC],
    "no data": [parse("INSERT INTO wt VALUES ($1, $2)", "s"), describe("S", "s"), SYNC],
    "binary in and out": [parse("SELECT $1::int + 1, 'x'::text, true, 1.5::float8, 2::int8, 3::int2"), bind([i4(41)], formats=[1], results=[1]), describe(), execute(), SYNC],
    "mixed formats": [parse("SELECT $1::int, $2::int, $1 + $2"), bind([i4(1), b"2"], formats=[1, 0], results=[0, 1, 0]), describe(), execute(), SYNC],
    "binary of more types": [
        parse("SELECT date '2024-02-29', timestamp '2024-02-29 12:34:56.789', timestamptz '2024-02-29 12:34:56+02', time '01:02:03', interval '1 mon 2 days 3 sec', "
              "1234.5600::numeric, -0.0001::numeric, 'NaN'::numeric, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid, '\\x00ff'::bytea, array[1,null,3], "
              "array['a','b'], '{\"a\": 1}'::jsonb, '[1]'::json, row(1,'a'::text), 1.5::float4, 'v'::varchar, 'c'::char(3), 5::oid, int4range(1,5), '12:00+02'::timetz"),
        bind(results=[1]), execute(), SYNC],
    "null parameter": [parse("SELECT $1::text IS NULL, $1"), bind([None]), execute(), SYNC],
    "given types": [parse("SELECT $1", types=[20]), describe("S"), bind([b"5"]), execute(), SYNC],
    "untyped parameter": [parse("SELECT $1"), describe("S"), bind([b"x"]), execute(), SYNC],
    "row limit": [parse("SELECT a FROM wt ORDER BY a"), bind(), execute(2), execute(2), execute(2), SYNC],
    "row limit reached exactly": [parse("SELECT a FROM wt ORDER BY a"), bind(), execute(3), execute(3), SYNC],
    "a portal ends with its transaction": [parse("SELECT a FROM wt ORDER BY a"), bind(portal="p"), execute(1, "p"), SYNC, execute(1, "p"), SYNC],
    "a portal lives in a block": [query("BEGIN"), parse("SELECT a FROM wt ORDER BY a"), bind(portal="p"), execute(1, "p"), SYNC, execute(1, "p"), SYNC, execute(5, "p"), SYNC, query("COMMIT")],
    "two portals": [query("BEGIN"), parse("SELECT a FROM wt ORDER BY a", "s"), bind(name="s", portal="p"), bind(name="s", portal="q"), execute(1, "p"), execute(2, "q"), execute(1, "p"), close("P", "p"), execute(1, "p"), SYNC, query("ROLLBACK")],
    "portal twice": [query("BEGIN"), parse("SELECT 1"), bind(portal="p"), bind(portal="p"), SYNC, query("ROLLBACK")],
    "named statement": [parse("SELECT 1", "s"), SYNC, bind(name="s"), execute(), SYNC, bind(name="s"), execute(), SYNC],
    "named statement twice": [parse("SELECT 1", "s"), SYNC, parse("SELECT 2", "s"), SYNC],
    "close and parse again": [parse("SELECT 1", "s"), close("S", "s"), parse("SELECT 2", "s"), bind(name="s"), execute(), SYNC],
    "close of nothing": [close("S", "nope"), close("P", "nope"), SYNC],
    "no such statement": [bind(name="nope"), SYNC, describe("S", "nope"), SYNC, describe("P", "nope"), SYNC, execute(0, "nope"), SYNC],
    "Latin 1": [
        query("SET client_encoding = 'LATIN1'"), query("SELECT 'naïve' AS \"é\", length('naïve')".encode("latin1")), query("SELECT 'é'::int".encode("latin1")),
        parse("SELECT $1::text || 'ü', $2::bytea, to_jsonb($1::text)".encode("latin1")), bind([b"\xe9", b"\xe9"], formats=[0, 1], results=[1]), describe(), execute(), SYNC,
        query("SELECT U&'\\20AC'"), query("SELECT 1"), query("SHOW client_encoding")],
    "Shift JIS": [
        query("SET client_encoding TO 'sjis'"), query("SELECT 'ソ表', length('日本')".encode("sjis")), query(b"SELECT '\x82'"), query("SELECT U&'\\00E9\\D55C'"), query("RESET client_encoding"),
        query("SELECT '日本'")],
    "an encoding that is none": [query("SET client_encoding = 'klingon'"), query("SHOW client_encoding")],
    "a domain is told as what it is over": [
        query("CREATE DOMAIN wd AS numeric(5,2) CHECK (VALUE > 0)"), query("SELECT 1.5::wd AS d, NULL::wd"), parse("SELECT $1::wd"),
        bind([b"2"]), describe(), execute(), SYNC, query("DROP DOMAIN wd")],
    "unnamed is replaced": [parse("SELECT 1"), parse("SELECT 2"), bind(), execute(), SYNC],
    "skipped until sync": [parse("SELECT 1/(a-a) FROM wt"), bind(), execute(), parse("SELECT 1"), bind(), execute(), SYNC, parse("SELECT 2"), bind(), execute(), SYNC],
    "error in parse": [parse("SELECT nope"), bind(), describe(), execute(), SYNC],
    "several statements in parse": [parse("SELECT 1; SELECT 2"), SYNC],
    "empty statement": [parse(""), bind(), describe(), execute(), SYNC],
    "too few parameters": [parse("SELECT $1::int"), bind(), SYNC],
    "too many parameters": [parse("SELECT $1::int"), bind([b"1", b"2"]), SYNC],
    "bad parameter text": [parse("SELECT $1::int"), bind([b"x"]), SYNC],
    "bad parameter binary": [parse("SELECT $1::int"), bind([b"\0\0"], formats=[1]), SYNC],
    "bad utf8 parameter": [parse("SELECT $1::text"), bind([b"\xff"]), SYNC],
    "bad number of formats": [parse("SELECT $1::int, $2::int"), bind([b"1", b"2"], formats=[0, 0, 0]), SYNC],
    "bad number of result formats": [parse("SELECT 1, 2"), bind(results=[0, 0, 0]), SYNC],
    "a short bind": [parse("SELECT $1::int"), msg(b"B", b"\0\0\0\0\0\1\0\0\0\x63x"), SYNC],
    "extended implicit transaction": [parse("INSERT INTO wt VALUES (7, 'seven')"), bind(), execute(), parse("SELECT 1/(a-a) FROM wt"), bind(), execute(), SYNC, query("SELECT count(*) FROM wt WHERE a = 7")],
    "extended in a failed block": [query("BEGIN"), query("SELECT 1/(a-a) FROM wt"), parse("SELECT 1"), SYNC, parse("ROLLBACK"), bind(), execute(), SYNC],
    "tags": [query("INSERT INTO wt VALUES (8, 'x'), (8, 'y')"), query("UPDATE wt SET b = 'z' WHERE a = 8"), query("DELETE FROM wt WHERE a = 8"), query("SELECT a FROM wt WHERE a = 1"),
             query("CREATE TABLE wt2 (a int)"), query("INSERT INTO wt2 SELECT 1 WHERE false"), query("DROP TABLE wt2"), query("SET TimeZone = 'UTC'"), query("SHOW TimeZone"), query("VALUES (1), (2)")],
    "returning": [query("INSERT INTO wt VALUES (8, 'x') RETURNING a, b"), query("DELETE FROM wt WHERE a = 8 RETURNING b")],
    "copy out": [query("COPY (SELECT a, b FROM wt ORDER BY a) TO STDOUT")],
    "copy out csv": [query("COPY (SELECT a, b FROM wt ORDER BY a) TO STDOUT WITH (FORMAT csv, HEADER)")],
    "copy in": [query("COPY wt FROM STDIN"), msg(b"d", b"4\tfour\n5\t\\N"), msg(b"d", b"\n6\ta\\tb\n"), msg(b"c"), query("SELECT * FROM wt WHERE a > 3 ORDER BY a"), query("DELETE FROM wt WHERE a > 3")],
    "copy in fails": [query("COPY wt FROM STDIN"), msg(b"d", b"4\tfour\n"), msg(b"f", cstr("no more")), query("SELECT count(*) FROM wt")],
    "copy in with a bad row": [query("COPY wt FROM STDIN"), msg(b"d", b"4\tfour\nx\ty\n"), msg(b"c"), query("SELECT count(*) FROM wt")],
    "copy in, extended": [parse("COPY wt FROM STDIN"), bind(), execute(), msg(b"d", b"4\tfour\n"), msg(b"c"), SYNC, query("DELETE FROM wt WHERE a = 4")],
    "copy out, extended": [parse("COPY (SELECT a FROM wt ORDER BY a) TO STDOUT"), bind(), execute(), SYNC],
    "prepared by SQL": [query("PREPARE q AS SELECT 41 + 1"), bind(name="q"), execute(), SYNC, query("DEALLOCATE q"), bind(name="q"), SYNC],
    "declared cursor": [query("BEGIN"), query("DECLARE c CURSOR FOR SELECT a FROM wt ORDER BY a"), query("FETCH 2 FROM c"), query("FETCH ALL FROM c"), query("FETCH 1 FROM c"), query("CLOSE c"), query("COMMIT")],
    "cursor outside": [query("DECLARE c CURSOR FOR SELECT 1"), query("FETCH 1 FROM nope")],
    "a statement whose table gets a column": [
        query("CREATE TABLE wt_s (a int, b int)"), query("CREATE VIEW wt_v AS SELECT * FROM wt_s"),
        parse("SELECT * FROM wt_s WHERE a = $1", "s"), parse("SELECT * FROM wt_v", "v"), parse("INSERT INTO wt_s VALUES ($1, 2) RETURNING *", "i"), parse("SELECT a FROM wt_s", "k"), SYNC,
        query("ALTER TABLE wt_s ADD COLUMN c int"),
        describe("S", "s"), SYNC, bind([b"1"], name="s"), SYNC, describe("S", "v"), bind(name="v"), execute(), SYNC, describe("S", "i"), SYNC, describe("S", "k"), bind(name="k"), execute(), SYNC,
        query("ALTER TABLE wt_s DROP COLUMN c"), describe("S", "s"), bind([b"1"], name="s"), execute(), SYNC,
        query("DROP TABLE wt_s CASCADE"), describe("S", "s"), SYNC],
    "a parameter of type unknown": [parse("SELECT $1::unknown"), describe("S"), bind([b"x"]), execute(), SYNC, parse("SELECT $1 + 1", types=[705]), describe("S"), bind([b"2"]), execute(), SYNC],
    "a materialized view with a parameter": [parse("CREATE MATERIALIZED VIEW wt_m AS SELECT $1::int AS x"), SYNC],
    "flush": [parse("SELECT 1"), FLUSH, bind(), FLUSH, execute(), FLUSH, SYNC],
    "error position": [query("SELECT   nope FROM wt")],
}


def play(port: int, messages: list[bytes], **kwargs) -> list[tuple]:
    raw = Raw(port, **kwargs)
    try:
        for m in messages:
            raw.send(m)
        copies = any(m[:1] == b"Q" and m[5:].startswith(b"COPY wt FROM") for m in messages)
        ready = sum(m[:1] == b"Q" or m == SYNC for m in messages)
        return transcript(raw.until_ready(ready if not copies else ready))
    finally:
        raw.send(TERMINATE)
        raw.close()


@pytest.fixture(scope="module")
def judges(pg, rd):
    """Both servers, with the same table. Yields functions that play a script."""
    pg.sql("CREATE DATABASE wire")
    pg.sql(*SETUP, dbname="wire")
    rd.sql(*SETUP)
    return (lambda m: play(pg.port, m, user="postgres", database="wire")), (lambda m: play(rd.port, m))


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(judges, name):
    expected, got = (play(SCRIPTS[name]) for play in judges)
    assert got == expected


def test_startup_parameters(rd):
    raw = Raw(rd.port, application_name="me", client_encoding="UTF8")
    for name in ("server_version", "server_encoding", "client_encoding", "DateStyle", "TimeZone", "integer_datetimes",
                 "standard_conforming_strings", "IntervalStyle", "application_name", "is_superuser", "session_authorization"):
        assert name in raw.params, name
    assert raw.params["server_version"].startswith("15")
    assert raw.params["application_name"] == "me"
    assert raw.params["session_authorization"] == "riverdelta"
    assert raw.key


def test_startup_options_are_settings(rd):
    raw = Raw(rd.port, TimeZone="Asia/Tokyo", options="-c statement_timeout=5000")
    raw.send(query("SHOW TimeZone"), query("SHOW statement_timeout"))
    rows = [m[1] for m in raw.until_ready(2) if m[0] == "D"]
    assert rows == [(b"Asia/Tokyo",), (b"5s",)]


def test_a_changed_setting_is_reported(rd):
    raw = Raw(rd.port)
    raw.send(query("SET TimeZone = 'Europe/Berlin'"))
    assert ("S", "TimeZone", "Europe/Berlin") in raw.until_ready()
    raw.send(query("SET application_name = 'other'"))
    assert ("S", "application_name", "other") in raw.until_ready()


def test_ssl_and_gss_are_refused_and_the_connection_goes_on(rd):
    raw = Raw(rd.port, start=False)
    for code in (80877104, 80877103):
        raw.send(struct.pack("!ii", 8, code))
        assert raw.exactly(1) == b"N"
    raw.send(Raw.startup(user="a", database="riverdelta"))
    assert raw.until_ready()[-1] == ("Z", "I")


def test_an_unknown_minor_version_is_negotiated(rd):
    raw = Raw(rd.port, start=False)
    raw.send(Raw.startup(version=(3 << 16) + 9, user="a", database="riverdelta", **{"_pq_.nope": "1"}))
    messages = raw.until_ready()
    assert messages[0] == ("v", struct.pack("!ii", 3 << 16, 1) + b"_pq_.nope\0")


@pytest.mark.parametrize("first", [b"GET / HTTP/1.1\r\n\r\n", struct.pack("!ii", 8, 2 << 16), struct.pack("!i", 4), struct.pack("!ii", 9, 196608) + b"x", b"\xff" * 100],
                         ids=["http", "version 2", "too short", "no terminator", "noise"])
def test_bad_openings(rd, first):
    raw = Raw(rd.port, start=False)
    raw.send(first)
    assert gone(raw)
    assert rd.sql("SELECT 1") == [(1,)]


@pytest.mark.parametrize("bytes_", [b"z\0\0\0\4", b"Q\0\0\0\3", b"Q\xff\xff\xff\xff", b"S\x7f\xff\xff\xff", msg(b"p", b"x\0")], ids=["kind", "short", "negative", "huge", "password"])
def test_bad_frames_end_the_connection(rd, bytes_):
    raw = Raw(rd.port)
    raw.send(bytes_)
    kind, severity, code, *_ = raw.read()
    assert (kind, severity, code) == ("E", "FATAL", "08P01")
    assert gone(raw)


def test_bodies_cut_anywhere_do_no_harm(rd):
    """Every prefix of a body, framed as if it were whole: an error, or an answer, and the connection goes on."""
    bodies = [bind([b"1", None], formats=[0], results=[1, 1]), parse("SELECT $1", "x", [23, 25]), describe(), execute(3), close(), query("SELECT 1")]
    raw = Raw(rd.port)
    for m in bodies:
        for cut in range(len(m) - 5):
            raw.send(msg(m[:1], m[5:5 + cut]), SYNC)
            raw.until_ready(2 if m[:1] == b"Q" else 1)
    raw.send(query("SELECT 42"))
    assert ("D", (b"42",)) in raw.until_ready()


def test_cancel(rd):
    raw = Raw(rd.port)
    raw.send(query("SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 10000000) b"))
    time.sleep(0.3)
    began = time.monotonic()
    other = Raw(rd.port, start=False)
    other.send(struct.pack("!iiii", 16, 80877102, *raw.key))
    errors = [m for m in raw.until_ready() if m[0] == "E"]
    assert errors[0][2] == "57014"
    assert time.monotonic() - began < 5
    raw.send(query("SELECT 1"))
    assert ("D", (b"1",)) in raw.until_ready()


def test_cancel_with_a_wrong_secret_does_nothing(rd):
    raw = Raw(rd.port)
    other = Raw(rd.port, start=False)
    other.send(struct.pack("!iiii", 16, 80877102, raw.key[0], raw.key[1] ^ 1))
    assert gone(other)
    raw.send(query("SELECT 1"))
    assert ("D", (b"1",)) in raw.until_ready()


def test_statement_timeout(rd):
    raw = Raw(rd.port)
    raw.send(query("SET statement_timeout = 300"), query("SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 10000000) b"))
    assert [m[2] for m in raw.until_ready(2) if m[0] == "E"] == ["57014"]


def resident_mb(rd) -> float:
    with open(f"/proc/{rd.proc.popen.pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) / 1024


def test_a_slow_client_is_waited_for(rd):
    """A client that does not read must not make the server buffer its rows."""
    with rd.connect() as db:
        db.execute("CREATE TABLE slow (g int)")
        db.execute("INSERT INTO slow SELECT generate_series(1, 300000)")
        db.execute("CREATE TABLE slow_copy (g int, x text)")
        db.execute("CREATE MATERIALIZED VIEW slow_view AS SELECT g FROM slow")
    before = resident_mb(rd)
    wide = "SELECT g, repeat('x', 1000) FROM "
    raws = [Raw(rd.port) for _ in range(4)]
    raws[0].send(query(wide + "generate_series(1, 300000) g"))
    raws[1].send(query(wide + "slow"))
    raws[2].send(query(wide + "slow_view"))
    raws[3].send(query(wide + "slow JOIN slow s USING (g)"))
    time.sleep(3)
    # Others go on meanwhile.
    with rd.connect() as db:
        assert db.execute("SELECT count(*) FROM slow WHERE g % 3 = 0").fetchone() == (100000,)
    grown = resident_mb(rd) - before
    raws.pop().close()
    assert [sum(m[0] == "D" for m in raw.until_ready()) for raw in raws] == [300000] * 3
    # 1,200 MB of rows.
    assert grown < 400, f"{grown} MB"


def test_a_client_that_vanishes_ends_its_statement(rd):
    busy = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 10000000) b"
    for _ in range(4):
        raw = Raw(rd.port)
        raw.send(query(busy))
        time.sleep(0.1)
        raw.close()

    def cpu():
        with open(f"/proc/{rd.proc.popen.pid}/stat") as f:
            parts = f.read().rsplit(")", 1)[1].split()
        return int(parts[11]) + int(parts[12])

    def quiet():
        before = cpu()
        time.sleep(0.5)
        return cpu() - before < 15  # of 50 ticks a core

    wait_until(quiet, 20, what="the abandoned statements ended")


def test_many_idle_connections_are_cheap(rd):
    before = resident_mb(rd)
    connections = [Raw(rd.port) for _ in range(500)]
    assert resident_mb(rd) - before < 60
    connections[-1].send(query("SELECT 1"))
    assert ("D", (b"1",)) in connections[-1].until_ready()
    for c in connections:
        c.close()


def test_connections_at_once(rd):
    """Statements of many connections run side by side, each with its own answers."""
    failures = []

    def work(n: int):
        try:
            raw = Raw(rd.port)
            for i in range(30):
                raw.send(query(f"SELECT {n}, {i}"))
                assert ("D", (str(n).encode(), str(i).encode())) in raw.until_ready()
        except Exception as e:  # noqa: BLE001
            failures.append(e)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures[:3]


def test_pipelined_queries_are_answered_in_order(rd):
    raw = Raw(rd.port)
    raw.send(*(query(f"SELECT {n}") for n in range(500)))
    assert [m[1] for m in raw.until_ready(500) if m[0] == "D"] == [(str(n).encode(),) for n in range(500)]


def test_large_values(rd):
    raw = Raw(rd.port)
    text = b"x" * 5_000_000
    raw.send(parse("SELECT length($1::text), $1::text"), bind([text]), execute(), SYNC)
    assert ("D", (b"5000000", text)) in raw.until_ready()


def test_error_fields(rd):
    raw = Raw(rd.port)
    raw.send(query("SELECT   nope FROM (SELECT 1 AS a) t"))
    fields = next(m for m in raw.until_ready() if m[0] == "E")[4]
    assert (fields["S"], fields["V"], fields["C"], fields["P"]) == ("ERROR", "ERROR", "42703", "10")
    assert fields["M"] == 'column "nope" does not exist'


def test_http(rd):
    assert rd.http("/health/live") == (200, "live\n")
    assert rd.http("/health/ready") == (200, "ready\n")
    # What the data directory holds is measured about once a second.
    wait_until(lambda: "riverdelta_storage" in rd.http("/metrics")[1], 20, what="the metrics of the storage")
    status, text = rd.http("/metrics")
    assert status == 200
    # Each line is a sample or says something of those that follow; each sample belongs to a family that has a type.
    families = set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            families.add(line.split()[2])
        elif not line.startswith("# HELP "):
            m = re.fullmatch(r'([a-z_]+)(\{[a-z]+="(?:[^"\\\\]|\\\\.)*"(?:,[a-z]+="(?:[^"\\\\]|\\\\.)*")*\})? [-+0-9.e]+', line)
            assert m, line
            assert m[1] in families or re.sub("_(bucket|sum|count)$", "", m[1]) in families, line
    for wanted in ("riverdelta_log_sync_seconds", "riverdelta_ticks_abandoned_total", "process_resident_memory_bytes", "riverdelta_storage"):
        assert wanted in families, wanted
    assert rd.http("/nope")[0] == 404


def test_sigterm_ends_sessions_with_a_word(riverdelta):
    raw = Raw(riverdelta.port)
    assert riverdelta.stop() == 0
    assert raw.read()[:3] == ("E", "FATAL", "57P01")
    assert gone(raw)


def test_a_second_process_on_the_data_is_refused(riverdelta):
    from harness.riverdelta import Riverdelta

    other = Riverdelta(riverdelta.directory + "-other")
    other.data_dir = riverdelta.data_dir
    other.start(wait=False)
    assert other.proc.popen.wait(30) != 0
    assert "riverdelta:" in other.proc.tail()
    assert riverdelta.sql("SELECT 1") == [(1,)]


def test_a_prepared_statement_keeps_its_columns(riverdelta):
    """As on PostgreSQL: what a client was told of the result stays true, or the statement fails."""
    with riverdelta.connect() as c:
        c.execute("CREATE TABLE t (a int, b int)")
        c.execute("INSERT INTO t VALUES (1, 2)")
        for _ in range(2):
            assert c.execute("SELECT * FROM t WHERE a = %s", [1], prepare=True).fetchall() == [(1, 2)]
        c.execute("PREPARE p AS SELECT * FROM t")
        riverdelta.sql("DROP TABLE t", "CREATE TABLE t (a int, b int, c int)", "INSERT INTO t VALUES (1, 2, 3)")
        for text in ("SELECT * FROM t WHERE a = %s", "EXECUTE p"):
            with pytest.raises(psycopg.errors.FeatureNotSupported, match="cached plan must not change result type"):
                c.execute(text, [1] if "%s" in text else None)
        c.execute("DEALLOCATE ALL")
        assert c.execute("SELECT * FROM t").fetchall() == [(1, 2, 3)]
