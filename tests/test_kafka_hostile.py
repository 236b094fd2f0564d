"""Kafka sources whose topics are unkind: huge records, compaction, transactions that leave nothing, a frozen broker, millions to catch up with."""

import json
import os
import signal
import uuid

import pytest
from harness.kafka import Kafka
from harness.procs import wait_until


@pytest.fixture
def r(riverdelta, kafka):
    riverdelta.sql(f"CREATE CONNECTION k TO KAFKA (BROKER '{kafka.broker}', SECURITY PROTOCOL 'PLAINTEXT')")
    return riverdelta


def new_topic(kafka, partitions=1, **config) -> str:
    name = "h" + uuid.uuid4().hex[:8]
    kafka.create_topic(name, partitions, **config)
    return name


def test_huge_and_odd_records(r, kafka):
    """Records beyond every default size; empty and null keys, values and headers, header names twice."""
    topic = new_topic(kafka, max_message_bytes=30_000_000)
    p = kafka.producer(message_max_bytes=30_000_000)
    sizes = [0, 1, 900_000, 1_100_000, 9_000_000, 3, 25_000_000, 4]
    for n, size in enumerate(sizes):
        p.produce(topic, key=str(n), value="x" * size)
        p.flush(60)
    kafka.produce(topic, {"value": "h", "headers": [("a", None), ("a", b""), ("b", b"\xff\x00"), ("", b"1")]}, {"value": None, "key": "null"}, {"value": "", "key": ""}, {"value": "\0"}, {"value": b"\xff"})
    r.sql(f"CREATE SOURCE s FROM KAFKA CONNECTION k (TOPIC '{topic}') FORMAT TEXT INCLUDE KEY AS key, OFFSET, HEADERS, HEADER 'a' AS a")
    r.settled('SELECT "offset", length(text) FROM s WHERE "offset" < 8', list(enumerate(sizes)), seconds=60)
    rows = r.sql('SELECT "offset", key, text, headers::text, a FROM s WHERE "offset" >= 8 ORDER BY 1')
    assert [(o, k, t) for o, k, t, _, _ in rows] == [(8, None, "h"), (9, "null", None), (10, "", "")], rows
    assert [h["key"] for h in json.loads(rows[0][3])] == ["a", "a", "b", ""] and json.loads(rows[0][3])[0]["value"] is None
    assert [(int(pos.split(":")[1]), bytes(v)) for pos, v in r.sql("SELECT position, value FROM s_errors ORDER BY 1")] == [(11, b"\0"), (12, b"\xff")]


def test_a_compacted_topic(r, kafka, long):
    """Offsets with holes, tombstones; what is compacted away while nobody reads is no gap for a source that keeps the last of each key."""
    topic = new_topic(kafka, 2, cleanup_policy="compact", segment_ms=100, min_cleanable_dirty_ratio=0.01, delete_retention_ms=0, max_compaction_lag_ms=200)
    r.sql(f"CREATE SOURCE s (id int PRIMARY KEY, v int) FROM KAFKA CONNECTION k (TOPIC '{topic}') FORMAT JSON ENVELOPE UPSERT")

    def put(rounds, keys=20):
        for n in rounds:
            kafka.produce(topic, *[(json.dumps({"id": k}), json.dumps({"v": n}) if (k + n) % 5 else None) for k in range(keys)])

    def last():
        state = {}
        for m in kafka.consume(topic, 2):
            state[json.loads(m.key())["id"]] = m.value() and json.loads(m.value())["v"]
        return [(k, v) for k, v in state.items() if v is not None]

    many = 20 if long else 4
    put(range(many))
    r.settled("SELECT * FROM s", last())
    r.kill()
    put(range(many, 3 * many))
    r.start()
    put(range(3 * many, 4 * many))
    r.settled("SELECT * FROM s", last())
    r.restart(kill=True)
    put([70])
    r.settled("SELECT * FROM s", last())


def test_transactions_that_leave_nothing(r, kafka):
    """A partition of aborted records only, one that holds an open transaction, one that is empty: the snapshot is complete, nothing uncommitted is seen."""
    topic = new_topic(kafka, 3)
    p = kafka.producer(transactional_id=uuid.uuid4().hex)
    p.init_transactions(30)
    for _ in range(3):
        p.begin_transaction()
        for n in range(50):
            p.produce(topic, value=f"aborted {n}", partition=0)
        p.flush(30)
        p.abort_transaction(30)
    kafka.produce(topic, {"value": "before", "partition": 1})
    p.begin_transaction()
    p.produce(topic, value="open", partition=1)
    p.flush(30)
    kafka.produce(topic, {"value": "behind", "partition": 1})
    r.sql(f"CREATE SOURCE s FROM KAFKA CONNECTION k (TOPIC '{topic}') FORMAT TEXT")
    r.settled("SELECT text FROM s", [("before",)], seconds=30)
    r.restart(kill=True)
    r.settled("SELECT text FROM s", [("before",)], seconds=30)
    p.commit_transaction(30)
    r.settled("SELECT text FROM s", [("before",), ("open",), ("behind",)], seconds=30)


@pytest.mark.long
@pytest.mark.timeout(240)
def test_a_broker_that_is_frozen(riverdelta, tmp_path_factory):
    """A broker that stops answering while its connections stand is told as stalled; it goes on when the broker does, also one that was killed and restarted."""
    own = Kafka(tmp_path_factory.mktemp("kafka3")).init().start()
    r = riverdelta
    status = lambda: r.sql("SELECT status FROM rd_catalog.sources")[0][0]  # noqa: E731
    try:
        own.create_topic("g")
        own.produce("g", "1")
        r.sql(f"CREATE CONNECTION k TO KAFKA (BROKER '{own.broker}', SECURITY PROTOCOL 'PLAINTEXT')", "CREATE SOURCE s FROM KAFKA CONNECTION k (TOPIC 'g') FORMAT TEXT")
        r.settled("SELECT text FROM s", [("1",)])
        os.kill(own.proc.popen.pid, signal.SIGSTOP)
        try:
            wait_until(lambda: status() == "stalled", 90, every=0.2, what="stalled")
        finally:
            os.kill(own.proc.popen.pid, signal.SIGCONT)
        own.produce("g", "2")
        r.settled("SELECT text FROM s", [("1",), ("2",)], seconds=60)
        own.stop()
        own.start()
        own.produce("g", "3")
        r.settled("SELECT text FROM s", [("1",), ("2",), ("3",)], seconds=60)
        wait_until(lambda: status() == "running", 30, what="running")
    finally:
        own.stop()


def test_catching_up_through_kills(r, kafka, long):
    """Much to catch up with, the server killed on the way: each record once."""
    topic = new_topic(kafka, 4)
    n = 2_000_000 if long else 150_000
    p = kafka.producer(compression_type="lz4")
    for i in range(n):
        p.produce(topic, value=str(i), partition=i % 4)
        if i % 50_000 == 0:
            p.flush(30)
    p.flush(60)
    r.sql(f"CREATE SOURCE s FROM KAFKA CONNECTION k (TOPIC '{topic}') FORMAT TEXT", "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(text::int8) AS s, count(DISTINCT text) AS d FROM s")
    for _ in range(3):
        r.restart(kill=True)
    r.settled("SELECT n, s, d FROM v", [(n, n * (n - 1) // 2, n)], seconds=120)
