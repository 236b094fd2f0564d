"""Kafka sources: every record once, at the right offset, whatever dies."""

import json
import threading
import time
import uuid

import psycopg
import pytest
from harness.procs import wait_until


@pytest.fixture
def topic(kafka):
    name = "t" + uuid.uuid4().hex[:8]
    kafka.create_topic(name, 3)
    return name


def connect_kafka(server, kafka):
    server.sql(f"CREATE CONNECTION IF NOT EXISTS k TO KAFKA (BROKER '{kafka.broker}', SECURITY PROTOCOL 'PLAINTEXT')")


def test_json_columns(rd, kafka, topic):
    connect_kafka(rd, kafka)
    kafka.produce(topic, *[json.dumps({"id": n, "name": f"n{n}", "price": "1.50", "at": "2024-01-01T00:00:00Z", "more": {"x": [n]}}) for n in range(100)])
    rd.sql(f"CREATE SOURCE js (id int8, name text, price numeric(10,2), at timestamptz, more jsonb, absent text) FROM KAFKA CONNECTION k (TOPIC '{topic}') FORMAT JSON",
           "CREATE MATERIALIZED VIEW js_v AS SELECT count(*) AS n, sum(id) AS s, sum(price) AS p, count(absent) AS a, sum((more->'x'->>0)::int) AS m FROM js")
    rd.settled("SELECT n, s, p::text, a, m FROM js_v", [(100, 4950, "150.00", 0, 4950)])
    kafka.produce(topic, json.dumps({"id": 1000}))
    rd.settled("SELECT n, s FROM js_v", [(101, 5950)])


def test_json_as_one_column(rd, kafka, topic):
    connect_kafka(rd, kafka)
    kafka.produce(topic, '{"a": 1}', "[2]", '"x"')
    rd.sql(f"CREATE SOURCE jd FROM KAFKA CONNECTION k (TOPIC '{topic}') FORMAT JSON")
    rd.settled("SELECT data::text FROM jd", [('{"a": 1}',), ("[2]",), ('"x"',)])


def test_text_csv_bytes(rd, kafka):
    connect_kafka(rd, kafka)
    for form, message, columns, expected in (
        ("TEXT", "héllo", "text", [("héllo",)]), ("BYTES", "ab", "data", [(b"ab",)]), ("CSV WITH 3 COLUMNS", '1,"a,b",', "column1, column2, column3", [("1", "a,b", None)]),
    ):
        name = "f" + uuid.uuid4().hex[:8]
        kafka.create_topic(name)
        kafka.produce(name, message)
        rd.sql(f"CREATE SOURCE {name} FROM KAFKA CONNECTION k (TOPIC '{name}') FORMAT {form}")
        rd.settled(f"SELECT {columns} FROM {name}", expected)


def test_compressed_batches(rd, kafka, topic):
    """Each of Kafka's codecs, in one topic."""
    connect_kafka(rd, kafka)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        p = kafka.producer(**{"compression.type": codec, "linger.ms": 50})
        for n in range(200):
            p.produce(topic, json.dumps({"codec": codec, "n": n}))
        assert p.flush(20) == 0
    rd.sql(f"CREATE SOURCE packed (codec text, n int) FROM KAFKA CONNECTION k (TOPIC '{topic}') FORMAT JSON")
    rd.settled("SELECT codec, count(*), sum(n) FROM packed GROUP BY codec", [(c, 200, 19900) for c in ("none", "gzip", "snappy", "lz4", "zstd")])


def test_metadata_columns(rd, kafka, topic):
    connect_kafka(rd, kafka)
    for p in range(3):
        kafka.produce(topic, *[{"key": f"k{p}", "value": f"v{n}", "partition": p, "timestamp": 1704067200000 + n, "headers": [("h", b"x")]} for n in range(4)])
    rd.sql(f"CREATE SOURCE meta FROM KAFKA CONNECTION k (TOPIC '{topic}') KEY FORMAT TEXT VALUE FORMAT TEXT "
           "INCLUDE KEY AS key, PARTITION, OFFSET, TIMESTAMP AS ts, HEADER 'h' AS h")
    rd.settled('SELECT key, text, partition, "offset", extract(epoch FROM ts)::int8 FROM meta', [(f"k{p}", f"v{n}", p, n, 1704067200) for p in range(3) for n in range(4)])


def test_upsert(rd, kafka, topic):
    connect_kafka(rd, kafka)
    rd.sql(f"CREATE SOURCE up (v int) FROM KAFKA CONNECTION k (TOPIC '{topic}') KEY FORMAT TEXT VALUE FORMAT JSON INCLUDE KEY AS key ENVELOPE UPSERT",
           "CREATE MATERIALIZED VIEW up_v AS SELECT count(*) AS n, sum(v) AS s FROM up")
    kafka.produce(topic, *[(f"k{n % 10}", json.dumps({"v": n})) for n in range(100)])
    rd.settled("SELECT * FROM up_v", [(10, sum(range(90, 100)))])
    kafka.produce(topic, ("k1", None), ("k2", None), ("k2", json.dumps({"v": 7})), ("nope", None))
    rd.settled("SELECT * FROM up_v", [(9, sum(range(90, 100)) - 91 - 92 + 7)])
    rd.settled("SELECT v FROM up WHERE key = 'k2'", [(7,)])


def test_debezium(rd, kafka, topic):
    connect_kafka(rd, kafka)
    row = lambda i, v: {"id": i, "v": v}  # noqa: E731
    change = lambda i, before, after, op: (json.dumps({"id": i}), json.dumps({"before": before, "after": after, "op": op}))  # noqa: E731
    rd.sql(f"CREATE SOURCE dbz (id int, v text, PRIMARY KEY (id)) FROM KAFKA CONNECTION k (TOPIC '{topic}') KEY FORMAT JSON VALUE FORMAT JSON ENVELOPE DEBEZIUM")
    messages = [change(1, None, row(1, "a"), "c"), change(2, None, row(2, "b"), "c"), change(1, row(1, "a"), row(1, "c"), "u"), change(2, row(2, "b"), None, "d"), (json.dumps({"id": 2}), None)]
    kafka.produce(topic, *messages)
    rd.settled("SELECT id, v FROM dbz", [(1, "c")])
    kafka.produce(topic, messages[2])  # a connector that repeats itself
    kafka.produce(topic, change(3, None, row(3, "z"), "r"))
    rd.settled("SELECT id, v FROM dbz", [(1, "c"), (3, "z")])


def test_bad_records_are_listed_and_counted(rd, kafka, topic):
    connect_kafka(rd, kafka)
    rd.sql(f"CREATE SOURCE bad (a int) FROM KAFKA CONNECTION k (TOPIC '{topic}') FORMAT JSON")
    kafka.produce(topic, '{"a": 1}', "not json", '{"a": "x"}', b"\xff\xfe", '{"a": 99999999999}', '{"a": 2}')
    rd.settled("SELECT a FROM bad", [(1,), (2,)])
    # Raw, where it stood, and why.
    rd.settled("SELECT value, bad_errors.position ~ '^[0-2]:[0-9]+$', length(reason) > 5, key, relation FROM bad_errors",
               [(v, True, True, None, "bad") for v in (b"not json", b'{"a": "x"}', b"\xff\xfe", b'{"a": 99999999999}')])
    wait_until(lambda: 'source="bad",statistic="errors"' in rd.http("/metrics")[1], 10, what="the metric of errors")


def test_start_offset_and_timestamp(rd, kafka):
    connect_kafka(rd, kafka)
    name = "s" + uuid.uuid4().hex[:8]
    kafka.create_topic(name, 2)
    for p in range(2):
        kafka.produce(name, *[{"value": f"{p}{n}", "partition": p, "timestamp": 1704067200000 + n * 1000} for n in range(5)])
    rd.sql(f"CREATE SOURCE so FROM KAFKA CONNECTION k (TOPIC '{name}', START OFFSET (3, 4)) FORMAT TEXT")
    rd.settled("SELECT text FROM so", [("03",), ("04",), ("14",)])
    rd.sql(f"CREATE SOURCE st FROM KAFKA CONNECTION k (TOPIC '{name}', START TIMESTAMP 1704067203000) FORMAT TEXT")
    rd.settled("SELECT text FROM st", [("03",), ("04",), ("13",), ("14",)])


def test_new_partitions_are_found(rd, kafka):
    from confluent_kafka.admin import NewPartitions

    connect_kafka(rd, kafka)
    name = "p" + uuid.uuid4().hex[:8]
    kafka.create_topic(name)
    rd.sql(f"CREATE SOURCE np FROM KAFKA CONNECTION k (TOPIC '{name}') FORMAT TEXT")
    kafka.produce(name, "a")
    rd.settled("SELECT text FROM np", [("a",)])
    admin = kafka.admin()
    admin.create_partitions([NewPartitions(name, 3)])[name].result(20)
    wait_until(lambda: len(admin.list_topics(name, timeout=2).topics[name].partitions) == 3)
    kafka.produce(name, {"value": "b", "partition": 1}, {"value": "c", "partition": 2})
    rd.settled("SELECT text FROM np", [("a",), ("b",), ("c",)], seconds=60)


def test_a_wrong_broker_or_topic_is_said(rd, kafka):
    connect_kafka(rd, kafka)
    with pytest.raises(psycopg.Error) as e:
        rd.sql("CREATE SOURCE nope FROM KAFKA CONNECTION k (TOPIC 'not-there') FORMAT TEXT")
    assert "not-there" in str(e.value)
    with pytest.raises(psycopg.Error):
        rd.sql("CREATE CONNECTION wrong TO KAFKA (BROKER '127.0.0.1:1', SECURITY PROTOCOL 'PLAINTEXT')",
               "CREATE SOURCE nope FROM KAFKA CONNECTION wrong (TOPIC 'x') FORMAT TEXT")


def test_drop_and_create_again(rd, kafka, topic):
    connect_kafka(rd, kafka)
    kafka.produce(topic, "a", "b")
    for _ in range(3):
        rd.sql(f"CREATE SOURCE again FROM KAFKA CONNECTION k (TOPIC '{topic}') FORMAT TEXT")
        rd.settled("SELECT count(*) FROM again", [(2,)])
        rd.sql("DROP SOURCE again")


@pytest.mark.timeout(600)
def test_exactly_once_through_kills(riverdelta, kafka, long):
    """A transactional producer writes to three partitions and aborts one transaction in three; the server dies ten times. The source
    holds each committed record once and no aborted one."""
    topic = "x" + uuid.uuid4().hex[:8]
    kafka.create_topic(topic, 3)
    r = riverdelta
    connect_kafka(r, kafka)
    r.sql(f"CREATE SOURCE ev (id int8, part int) FROM KAFKA CONNECTION k (TOPIC '{topic}') FORMAT JSON INCLUDE PARTITION AS p, OFFSET AS o",
          "CREATE MATERIALIZED VIEW ev_v AS SELECT count(*) AS n, sum(id) AS s, count(DISTINCT id) AS d FROM ev")
    stop, committed, aborted = threading.Event(), [], []
    failures = []

    def produce():
        try:
            p = kafka.producer(**{"transactional.id": topic})
            p.init_transactions(30)
            n = turn = 0
            while not stop.is_set():
                turn += 1
                p.begin_transaction()
                ids = list(range(n, n + 20))
                n += 20
                for i in ids:
                    p.produce(topic, json.dumps({"id": i, "part": i % 3}), partition=i % 3)
                p.flush(10)
                if turn % 3 == 0:
                    p.abort_transaction(30)
                    aborted.extend(ids)
                else:
                    p.commit_transaction(30)
                    committed.extend(ids)
                time.sleep(0.01)
        except Exception as e:  # noqa: BLE001
            failures.append(e)

    th = threading.Thread(target=produce, daemon=True)
    th.start()
    for i in range(30 if long else 10):
        time.sleep(0.3 + 0.13 * i % 1)
        r.restart(kill=True)
        n, d = r.sql("SELECT n, d FROM ev_v")[0]
        assert n == d, f"{n} records, {d} different"
    stop.set()
    th.join(60)
    assert not failures, failures
    r.settled("SELECT n, s, d FROM ev_v", [(len(committed), sum(committed), len(committed))], seconds=60)
    assert aborted and committed
    got = {i for (i,) in r.sql("SELECT id FROM ev")}
    assert got == set(committed)
    assert r.sql("SELECT count(*) FROM (SELECT p, o FROM ev GROUP BY p, o HAVING count(*) > 1) d") == [(0,)]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("form", ["upsert", "debezium", "debezium with schema"])
def test_keyed_topics_through_kills(riverdelta, kafka, long, form):
    """Rows that change and go, by their keys, while the server dies: what stands in the end is the last message of each key, and every sum on
    the way is one that whole messages make."""
    import random

    topic = "u" + uuid.uuid4().hex[:8]
    kafka.create_topic(topic, 3)
    r = riverdelta
    connect_kafka(r, kafka)
    shape = "KEY FORMAT JSON VALUE FORMAT JSON ENVELOPE " + form.split()[0].upper()
    r.sql(f"CREATE SOURCE u (id int, v int, w int, PRIMARY KEY (id)) FROM KAFKA CONNECTION k (TOPIC '{topic}') {shape}",
          "CREATE MATERIALIZED VIEW uv AS SELECT count(*) AS n, sum(v) AS v, sum(w) AS w, count(*) - count(DISTINCT id) AS twice FROM u")
    now: dict[int, int] = {}
    stop, failures = threading.Event(), []

    def message(i, before, after):
        if form == "upsert":
            return None if after is None else {"v": after, "w": -after}
        row = lambda v: None if v is None else {"id": i, "v": v, "w": -v}  # noqa: E731
        m = {"before": row(before), "after": row(after), "op": "d" if after is None else "c" if before is None else "u", "ts_ms": 1}
        return m if form == "debezium" else {"schema": {"type": "struct", "fields": [{"field": "after", "type": "struct", "fields": [{"field": f, "type": "int32"} for f in ("id", "v", "w")]}]}, "payload": m}

    def produce():
        rng = random.Random(form)
        p = kafka.producer()
        try:
            while not stop.is_set():
                for _ in range(20):
                    i = rng.randrange(40)
                    before, after = now.get(i), None if rng.random() < 0.3 else rng.randrange(1000)
                    if before is None and after is None:
                        continue
                    key = json.dumps({"schema": {"type": "struct"}, "payload": {"id": i}} if "with" in form else {"id": i})
                    value = message(i, before, after)
                    p.produce(topic, key=key, value=None if value is None else json.dumps(value))
                    if value is not None and after is None:
                        p.produce(topic, key=key, value=None)  # the tombstone after a delete
                    now.pop(i, None) if after is None else now.update({i: after})
                p.flush(10)
                time.sleep(0.01)
        except Exception as e:  # noqa: BLE001
            failures.append(e)

    th = threading.Thread(target=produce, daemon=True)
    th.start()
    for i in range(12 if long else 4):
        time.sleep(0.4 + 0.2 * (i % 3))
        r.restart(kill=True)
        n, v, w, twice = r.sql("SELECT * FROM uv")[0]
        assert twice == 0 and (v or 0) == -(w or 0) and n <= 40
    stop.set()
    th.join(30)
    assert not failures, failures
    r.settled("SELECT id, v, w FROM u", [(i, v, -v) for i, v in now.items()], seconds=60)
    r.settled("SELECT n, v, w, twice FROM uv", [(len(now), sum(now.values()), -sum(now.values()), 0)])
    assert r.sql("SELECT count(*) FROM u_errors") == [(0,)]


def test_control_records_that_retention_removes(riverdelta, kafka):
    """Behind the last record stands the mark of its transaction: the position contains it, so nothing is missed when retention removes all."""
    from confluent_kafka import TopicPartition

    topic = "c" + uuid.uuid4().hex[:8]
    kafka.create_topic(topic)
    r = riverdelta
    connect_kafka(r, kafka)
    r.sql(f"CREATE SOURCE ctl FROM KAFKA CONNECTION k (TOPIC '{topic}') FORMAT TEXT")
    p = kafka.producer(**{"transactional.id": topic})
    p.init_transactions(30)

    def transaction(*values):
        p.begin_transaction()
        for v in values:
            p.produce(topic, v)
        p.flush(10)

    for v in "ab":
        transaction(v)
        p.commit_transaction(30)
    transaction("gone")
    p.abort_transaction(30)
    r.settled("SELECT text FROM ctl", [("a",), ("b",)])
    position = "SELECT position::jsonb->'partitions'->'0'->>'next' FROM rd_catalog.sources WHERE name = 'ctl'"
    wait_until(lambda: r.sql(position) == [("6",)], 20, every=0.2, what="the position behind the marks")
    # What an open transaction holds is not passed over.
    transaction("open")
    time.sleep(4)
    admin = kafka.admin()  # the handle must outlive the future
    admin.delete_records([TopicPartition(topic, 0, 6)])[TopicPartition(topic, 0, 6)].result(20)
    r.restart(kill=True)
    p.commit_transaction(30)
    r.settled("SELECT text FROM ctl", [("a",), ("b",), ("open",)])
    assert r.sql("SELECT status FROM rd_catalog.sources WHERE name = 'ctl'") == [("running",)]


def test_bank_transfers_over_kafka(rd, db, kafka, topic):
    """As test_concurrency's, with a topic as the stream."""
    from test_concurrency import VIEWS, ZERO, EMPTY, watch_totals

    connect_kafka(rd, kafka)
    db.execute(f"CREATE SOURCE kt (id int, from_account int, to_account int, amount int) FROM KAFKA CONNECTION k (TOPIC '{topic}') FORMAT JSON")
    for v in VIEWS:
        db.execute(v.format(p="kb", t="kt"))
    done, seen = threading.Event(), set()
    th = threading.Thread(target=lambda: seen.update(watch_totals(rd, "kb", done)))
    th.start()
    p = kafka.producer()
    for n in range(5000):
        p.produce(topic, json.dumps({"id": n, "from_account": n % 10, "to_account": (n * 7) % 10, "amount": n % 100}), partition=n % 3)
        if n % 200 == 0:
            p.flush(10)
    p.flush(10)
    try:
        rd.settled("SELECT count(*) FROM kt", [(5000,)])
    finally:
        done.set()
        th.join(60)
    assert ZERO in seen and seen <= {EMPTY, ZERO}, seen


def test_a_topic_that_was_made_again_is_said(riverdelta, kafka):
    """Deleted and made again, the topic's records are others: the source stops and says so, what it has stays readable."""
    topic = "r" + uuid.uuid4().hex[:8]
    kafka.create_topic(topic)
    kafka.produce(topic, "a", "b", "c")
    r = riverdelta
    connect_kafka(r, kafka)
    r.sql(f"CREATE SOURCE again FROM KAFKA CONNECTION k (TOPIC '{topic}') FORMAT TEXT")
    r.settled("SELECT text FROM again", [("a",), ("b",), ("c",)])
    kafka.delete_topic(topic)
    wait_until(lambda: r.sql("SELECT status FROM rd_catalog.sources WHERE name = 'again'") == [("stalled",)], 30, every=0.2, what="stalled")
    kafka.create_topic(topic)
    kafka.produce(topic, "x")
    wait_until(lambda: r.sql("SELECT status FROM rd_catalog.sources WHERE name = 'again'") == [("failed",)], 60, every=0.2, what="failed")
    assert "made again" in r.sql("SELECT detail FROM rd_catalog.sources WHERE name = 'again'")[0][0]
    assert r.sql("SELECT count(*) FROM again") == [(3,)]
    r.restart(kill=True)
    assert r.sql("SELECT count(*) FROM again") == [(3,)]
    r.sql("DROP SOURCE again", f"CREATE SOURCE again FROM KAFKA CONNECTION k (TOPIC '{topic}') FORMAT TEXT")
    r.settled("SELECT text FROM again", [("x",)])


def test_every_metadata_column_of_an_upsert(rd, kafka, topic):
    connect_kafka(rd, kafka)
    rd.sql(f"CREATE SOURCE um (v int) FROM KAFKA CONNECTION k (TOPIC '{topic}') KEY FORMAT TEXT VALUE FORMAT JSON "
           "INCLUDE KEY AS key, PARTITION AS p, OFFSET AS o, TIMESTAMP AS ts, HEADERS AS hs, HEADER 'h' AS h ENVELOPE UPSERT")
    at = lambda n: {"key": "k", "value": json.dumps({"v": n}), "partition": 1, "timestamp": 1704067200000 + n, "headers": [("h", b"a"), ("h", f"b{n}".encode()), ("raw", b"\xff"), ("no", None)]}  # noqa: E731
    kafka.produce(topic, at(1), at(2), at(3))
    rd.settled("SELECT v, key, p, o, (extract(epoch FROM ts) * 1000)::int8, hs::text, h FROM um",
               [(3, "k", 1, 2, 1704067200003, '[{"key": "h", "value": "a"}, {"key": "h", "value": "b3"}, {"key": "raw", "value": "\\\\xff"}, {"key": "no", "value": null}]', "b3")])
    kafka.produce(topic, {"key": "k", "value": None, "partition": 1})
    rd.settled("SELECT count(*) FROM um", [(0,)])


def test_a_whole_key_is_text_where_nothing_else_is_said(rd, kafka, topic):
    connect_kafka(rd, kafka)
    kafka.produce(topic, *[{"key": k, "value": json.dumps({"v": n}), "partition": 0} for n, k in enumerate(("user-1", "user-2", '{"id": 3}', "user-1", None))])
    rd.sql(f"CREATE SOURCE wk (v int) FROM KAFKA CONNECTION k (TOPIC '{topic}') FORMAT JSON INCLUDE KEY AS key, OFFSET",
           f"CREATE SOURCE wu (v int) FROM KAFKA CONNECTION k (TOPIC '{topic}') FORMAT JSON ENVELOPE UPSERT",
           f"CREATE SOURCE wj (v int) FROM KAFKA CONNECTION k (TOPIC '{topic}') KEY FORMAT JSON VALUE FORMAT JSON INCLUDE KEY AS key")
    rd.settled('SELECT v, key, "offset" FROM wk', [(0, "user-1", 0), (1, "user-2", 1), (2, '{"id": 3}', 2), (3, "user-1", 3), (4, None, 4)])
    rd.settled("SELECT v, key FROM wu", [(3, "user-1"), (1, "user-2"), (2, '{"id": 3}')])
    rd.settled("SELECT v, key->>'id' FROM wj", [(2, "3"), (4, None)])
    rd.settled("SELECT count(*) FROM wj_errors", [(3,)])


@pytest.mark.parametrize("statement, code, word", [
    ("(TOPIC '{t}') FORMAT JSON ENVELOPE DEBEZIUM", "22023", "column list"),
    ("(TOPIC '{t}', GROUP ID 'x') FORMAT TEXT", "0A000", "group id"),
    ("(TOPIC '{t}', NOPE 1) FORMAT TEXT", "22023", "nope"),
    ("(TOPIC '{t}', START OFFSET ('x')) FORMAT TEXT", "22023", "integers"),
    ("(TOPIC '{t}') FORMAT CSV WITH HEADER", "22023", "column list"),
    ("(TOPIC '{t}') FORMAT TEXT FOR ALL TABLES", "0A000", "TABLES"),
    ("(TOPIC '{t}') FORMAT TEXT INCLUDE PATH", "0A000", "PATH"),
    ("(FORMAT 'x') FORMAT TEXT", "22023", "format"),
    ("FORMAT TEXT", "22023", "topic"),
    ("(TOPIC '') FORMAT TEXT", "22023", "topic"),
    ("(TOPIC '{t}', START OFFSET (3, -1)) FORMAT TEXT", "22023", "negative"),
    ("(TOPIC '{t}', START OFFSET (3, 1), START TIMESTAMP -1) FORMAT TEXT", "22023", "both say where to start"),
    ("(TOPIC '{t}', START 'latest', START OFFSET (3)) FORMAT TEXT", "22023", "both say where to start"),
    ("(TOPIC '{t}', TOPIC 'b') FORMAT TEXT", "22023", "more than once"),
])
def test_what_a_kafka_source_refuses(db, rd, kafka, statement, code, word):
    connect_kafka(rd, kafka)
    with pytest.raises(psycopg.Error) as e:
        db.execute("CREATE SOURCE refused FROM KAFKA CONNECTION k " + statement.format(t="any"))
    assert e.value.sqlstate == code and word in str(e.value), (e.value.sqlstate, str(e.value))


@pytest.mark.timeout(300)
def test_the_broker_may_go_away(rd, kafka, tmp_path_factory):
    """A broker that is away for a while is waited for, and nothing is lost or doubled."""
    from harness.kafka import Kafka

    own = Kafka(tmp_path_factory.mktemp("kafka2")).init().start()
    try:
        own.create_topic("g")
        own.produce("g", "1", "2")
        rd.sql(f"CREATE CONNECTION k2 TO KAFKA (BROKER '{own.broker}', SECURITY PROTOCOL 'PLAINTEXT')", "CREATE SOURCE away FROM KAFKA CONNECTION k2 (TOPIC 'g') FORMAT TEXT")
        rd.settled("SELECT text FROM away", [("1",), ("2",)])
        own.stop()
        time.sleep(2)
        assert rd.sql("SELECT count(*) FROM away") == [(2,)]
        own.start()
        own.produce("g", "3")
        rd.settled("SELECT text FROM away", [("1",), ("2",), ("3",)], seconds=90)
        rd.sql("DROP SOURCE away")
    finally:
        own.stop()
