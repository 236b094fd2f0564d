"""The process aborts at named points (`RIVERDELTA_KILL_AT`): during snapshots, between staged parts and commit, between commit and slot feedback,
during DDL, folding and compaction, and inside large transactions. The next start finds what was acknowledged, once, and goes on."""

import json
import os
import time
import uuid

import psycopg
import pytest
from harness.procs import wait_until
from harness.riverdelta import Riverdelta
from harness.postgres import connect_pg


@pytest.fixture
def server(tmp_path):
    r = Riverdelta(tmp_path / "rd")
    yield r
    assert not r.panics(), r.panics()
    r.stop()


def start_to_die(r: Riverdelta, at: str):
    r.env["RIVERDELTA_KILL_AT"] = at
    try:
        r.start()
    except RuntimeError:
        pass  # it died while it started


def start_again(r: Riverdelta, at: str):
    """After the server died at that point, and nowhere else."""
    wait_until(lambda: not r.proc.running(), 60, what=f"death at {at}")
    assert f"killed at {at.split(':')[0]}" in r.proc.tail(), r.proc.tail()
    del r.env["RIVERDELTA_KILL_AT"]
    r.start()


def shard_files(r: Riverdelta) -> int:
    return sum(len(files) for _, _, files in os.walk(os.path.join(r.data_dir, "shards")))


ROWS = 230_000  # more than what is held before parts are staged


@pytest.mark.timeout(300)
@pytest.mark.parametrize("at", ["stage-before-sync", "stage-after-sync", "source-unit-complete", "append-before-sync:4", "append-after-sync:4", "source-before-acknowledge"])
def test_the_snapshot_of_a_postgres_source(server, pg, upstream, at):
    db, up = upstream
    up("CREATE TABLE big (id int PRIMARY KEY, v int)", f"INSERT INTO big SELECT g, g % 7 FROM generate_series(1, {ROWS}) g", "CREATE TABLE small (id int PRIMARY KEY)",
       "INSERT INTO small VALUES (1)", "CREATE PUBLICATION p FOR ALL TABLES")
    r = server
    start_to_die(r, at)
    try:
        connect_pg(r, pg, db)
        r.sql("CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR ALL TABLES")
    except psycopg.Error:
        pass
    start_again(r, at)
    r.sql("CREATE CONNECTION IF NOT EXISTS c TO POSTGRES (HOST '127.0.0.1', PORT %d, USER 'postgres', DATABASE '%s')" % (pg.port, db),
          "CREATE SOURCE IF NOT EXISTS s FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR ALL TABLES")
    up("UPDATE big SET v = 100 WHERE id <= 10", "INSERT INTO small VALUES (2)")
    r.settled("SELECT count(*), sum(v) FROM big", pg.sql("SELECT count(*), sum(v) FROM big", dbname=db), seconds=60)
    r.settled("SELECT id FROM small", [(1,), (2,)])
    # What the first try left behind is gone: its slot, its parts.
    assert len(pg.sql(f"SELECT 1 FROM pg_replication_slots WHERE database = '{db}'")) == 1
    r.restart()
    assert r.sql("SELECT count(*) FROM big") == [(ROWS,)]
    r.sql("DROP SOURCE s CASCADE")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("at", ["source-unit-complete:4", "append-before-sync:9", "tick-after-append:4", "source-before-acknowledge:3"])
def test_the_stream_of_a_postgres_source(server, pg, upstream, at):
    """Between what upstream sent, the commit, and the feedback to the slot."""
    db, up = upstream
    up("CREATE TABLE a (id int PRIMARY KEY, v int)", "CREATE TABLE b (id int PRIMARY KEY, v int)", "INSERT INTO a VALUES (0, 0)", "INSERT INTO b VALUES (0, 0)", "CREATE PUBLICATION p FOR ALL TABLES")
    r = server
    start_to_die(r, at)
    done = 0
    try:
        connect_pg(r, pg, db)
        r.sql("CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR ALL TABLES")
        for n in range(1, 60):
            with pg.connect(db) as c, c.transaction():
                c.execute("INSERT INTO a VALUES (%s, 0)", [n])
                c.execute("UPDATE a SET v = v + 1 WHERE id = 0")
                c.execute("UPDATE b SET v = v + 1 WHERE id = 0")
            done = n
            for _ in range(3):
                assert r.sql("SELECT (SELECT v FROM a WHERE id = 0) - (SELECT v FROM b WHERE id = 0)") == [(0,)]
                time.sleep(0.02)
    except psycopg.Error:
        pass
    start_again(r, at)
    r.settled("SELECT (SELECT count(*) FROM a), (SELECT v FROM a WHERE id = 0), (SELECT v FROM b WHERE id = 0)", [(done + 1, done, done)], seconds=60)
    r.sql("DROP SOURCE s CASCADE")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("at", ["stage-before-sync", "stage-after-sync:2", "source-unit-complete:2", "tick-after-append:2", "source-before-acknowledge:2"])
def test_a_large_upstream_transaction_and_an_added_table(server, pg, upstream, at):
    """One upstream transaction that is staged in parts, beside a table that is copied while it comes: all of each or nothing."""
    db, up = upstream
    up("CREATE TABLE big (id int PRIMARY KEY, v int)", "CREATE TABLE late (id int PRIMARY KEY, v int)", "INSERT INTO late SELECT g, g FROM generate_series(1, 1000) g", "CREATE PUBLICATION p FOR ALL TABLES")
    r = server
    r.start()
    connect_pg(r, pg, db)
    r.sql("CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR TABLES (big)", "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(v)::int8 AS s FROM big")
    assert r.sql("SELECT * FROM v") == [(0, None)]
    r.kill()
    start_to_die(r, at)
    up(f"BEGIN; INSERT INTO big SELECT g, 1 FROM generate_series(1, {ROWS}) g; UPDATE big SET v = 2 WHERE id <= 1000; DELETE FROM big WHERE id > {ROWS - 10}; UPDATE late SET v = -v; COMMIT")
    try:
        r.sql("CREATE TABLE IF NOT EXISTS late FROM SOURCE s (REFERENCE public.late)")
        for _ in range(600):
            assert r.sql("SELECT n FROM v")[0][0] in (0, ROWS - 10)
            up("UPDATE late SET v = v - 1 WHERE id = 1")
    except psycopg.OperationalError:
        pass
    start_again(r, at)
    r.sql("CREATE TABLE IF NOT EXISTS late FROM SOURCE s (REFERENCE public.late)")
    assert r.sql("SELECT n FROM v")[0][0] in (0, ROWS - 10)
    r.settled("SELECT * FROM v", [(ROWS - 10, ROWS - 10 + 1000)], seconds=60)
    r.settled("SELECT count(*), sum(v)::int8 FROM late", pg.sql("SELECT count(*), sum(v)::int8 FROM late", dbname=db), seconds=60)
    assert r.sql("SELECT count(*) FROM s_errors") == [(0,)]
    r.sql("DROP SOURCE s CASCADE")


@pytest.mark.timeout(240)
@pytest.mark.parametrize("at", ["stage-before-sync", "stage-after-sync", "source-unit-complete", "source-unit-complete:2", "tick-after-append:2", "source-before-acknowledge"])
def test_a_file_source(server, tmp_path, at):
    """A snapshot, also one in staged parts, and lines that come later."""
    r = server
    log = tmp_path / "lines.log"
    rows = ROWS * 2 if at.startswith("stage") else ROWS
    log.write_text("".join(f"{n}\n" for n in range(rows)))
    start_to_die(r, at)
    create = f"CREATE SOURCE IF NOT EXISTS t (n int) FROM FILE (PATH '{log}', TAIL true) FORMAT CSV"
    more = 0
    try:
        r.sql(create)
        for more in range(1, 200):
            with open(log, "a") as f:
                f.write(f"{rows + more - 1}\n")
            r.sql("SELECT count(*) FROM t")
            time.sleep(0.02)
    except psycopg.OperationalError:
        pass
    start_again(r, at)
    r.sql(create)
    n = rows + more
    r.settled("SELECT count(*), count(DISTINCT n), sum(n)::int8 FROM t", [(n, n, n * (n - 1) // 2)], seconds=60)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("at", ["source-unit-complete", "source-unit-complete:5", "tick-after-append:4", "source-before-acknowledge:3"])
def test_a_keyed_kafka_source(server, kafka, at):
    """Between what the broker sent, the commit, and what the connector thinks is durable: each key has its last message's row."""
    topic = "kill" + uuid.uuid4().hex[:8]
    kafka.create_topic(topic, 2)
    kafka.produce(topic, *[(f"k{n % 50}", json.dumps({"v": n})) for n in range(500)])
    r = server
    start_to_die(r, at)
    sql = (f"CREATE CONNECTION IF NOT EXISTS k TO KAFKA (BROKER '{kafka.broker}', SECURITY PROTOCOL 'PLAINTEXT')",
           f"CREATE SOURCE IF NOT EXISTS u (v int) FROM KAFKA CONNECTION k (TOPIC '{topic}') KEY FORMAT TEXT VALUE FORMAT JSON INCLUDE KEY AS key ENVELOPE UPSERT",
           f"CREATE SOURCE IF NOT EXISTS all_of FROM KAFKA CONNECTION k (TOPIC '{topic}') FORMAT BYTES")
    last = {f"k{n % 50}": n for n in range(500)}
    count = 500
    try:
        r.sql(*sql)
        for n in range(500, 700):
            key = f"k{n % 60}"
            value = None if n % 7 == 0 else n
            kafka.produce(topic, (key, None if value is None else json.dumps({"v": n})))
            count += 1
            last.pop(key, None) if value is None else last.update({key: n})
            r.sql("SELECT count(*) FROM u")
    except psycopg.OperationalError:
        pass
    start_again(r, at)
    r.sql(*sql)
    r.settled("SELECT key, v FROM u", list(last.items()), seconds=60)
    r.settled("SELECT count(*) FROM all_of", [(count,)], seconds=60)
    assert r.sql("SELECT (SELECT count(*) FROM u_errors) + (SELECT count(*) FROM all_of_errors)") == [(0,)]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("at", ["ddl-before-append:5", "ddl-after-append:5", "append-before-sync:5", "append-after-sync:5"])
def test_ddl(server, at):
    r = server
    start_to_die(r, at)
    made = []
    try:
        for n in range(20):
            r.sql(f"CREATE TABLE t{n} (k int PRIMARY KEY)", )
            made.append(f"t{n}")
            r.sql(f"CREATE MATERIALIZED VIEW v{n} AS SELECT count(*) AS n FROM t{n}")
            made.append(f"v{n}")
    except psycopg.Error:
        pass
    start_again(r, at)
    there = {n for (n,) in r.sql("SELECT relname FROM pg_class WHERE relname ~ '^[tv][0-9]+$'")}
    assert set(made) <= there and len(there) <= len(made) + 1, (made, there)
    for name in sorted(there):
        if name[0] == "t":
            r.sql(f"INSERT INTO {name} VALUES (1)")
            with pytest.raises(psycopg.errors.UniqueViolation):
                r.sql(f"INSERT INTO {name} VALUES (1)")
        else:
            assert r.sql(f"SELECT n FROM {name}") == [(1,)]
    r.sql(*[f"DROP TABLE {n} CASCADE" for n in there if n[0] == "t"])
    assert r.sql("SELECT count(*) FROM pg_class WHERE relname ~ '^[tv][0-9]+$'") == [(0,)]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("at", ["append-before-sync:12", "append-after-sync:12", "tick-after-append:9"])
def test_commits(server, at):
    r = server
    start_to_die(r, at)
    acknowledged = 0
    try:
        r.sql("CREATE TABLE t (n int PRIMARY KEY)", "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, max(n) AS m FROM t")
        for n in range(1, 40):
            r.sql(f"INSERT INTO t VALUES ({n})")
            acknowledged = n
    except psycopg.Error:
        pass
    start_again(r, at)
    n, m = r.sql("SELECT n, m FROM v")[0]
    # One insert was under way: its record was on disk (a kill keeps the page cache) or was not.
    assert acknowledged <= n <= acknowledged + 1 and m == n
    assert r.sql("SELECT n FROM t ORDER BY n") == [(k,) for k in range(1, n + 1)]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("at", ["fold-before-sync", "fold-after-batches", "fold-after-meta", "fold-after-free", "compact-before-sync", "compact-after-files", "compact-after-meta"])
def test_folding_and_compaction(server, at):
    """Each start folds what the log holds, and merges what has become many files."""
    r = server
    r.start()
    r.sql("CREATE TABLE t (k int PRIMARY KEY, v int)", "CREATE MATERIALIZED VIEW s AS SELECT count(*) AS n, sum(v) AS s FROM t", "INSERT INTO t SELECT g, 0 FROM generate_series(1, 500) g")
    rounds = 0
    while True:
        r.kill()
        r.env["RIVERDELTA_KILL_AT"] = at
        try:
            r.start()
            rounds += 1
            r.sql("UPDATE t SET v = v + 1")
        except (RuntimeError, psycopg.OperationalError):
            pass
        try:
            wait_until(lambda: not r.proc.running(), 2)
            break
        except TimeoutError:
            assert rounds < 12, f"{at} is not passed"
    start_again(r, at)
    n, least, most = r.sql("SELECT count(*), min(v), max(v) FROM t")[0]
    assert n == 500 and least == most and most in (rounds - 1, rounds), (n, least, most, rounds)
    assert r.sql("SELECT n, s FROM s") == [(500, 500 * most)]
    for _ in range(3):
        r.sql("UPDATE t SET v = v + 1")
        r.restart(kill=True)
    assert r.sql("SELECT n, s FROM s") == [(500, 500 * (most + 3))]
    wait_until(lambda: shard_files(r) < 20, 20, what="files that nothing names go")


@pytest.mark.timeout(240)
@pytest.mark.parametrize("at", ["stage-before-sync:2", "stage-after-sync:3", ""])
def test_a_transaction_that_is_staged(server, at):
    """A transaction too large for one log record: all of it or nothing, also when the process dies between its parts."""
    r = server
    if at:
        start_to_die(r, at)
    else:
        r.start()
    r.sql("CREATE TABLE t (k int PRIMARY KEY, v text)", "INSERT INTO t VALUES (0, 'before')")
    fill = "INSERT INTO t SELECT g, repeat(md5(g::text), 16) FROM generate_series(1, 300000) g"
    if at:
        with pytest.raises(psycopg.Error):
            r.sql(fill)
        start_again(r, at)
        assert r.sql("SELECT k, v FROM t") == [(0, "before")]
        assert shard_files(r) <= 1
    r.sql(fill, "UPDATE t SET v = 'after' WHERE k = 7")
    want = [(300_001, 299_999 * 512 + 6 + 5)]
    assert r.sql("SELECT count(*), sum(length(v)) FROM t") == want
    r.restart(kill=True)
    assert r.sql("SELECT count(*), sum(length(v)) FROM t") == want
    with pytest.raises(psycopg.errors.UniqueViolation):
        r.sql("INSERT INTO t VALUES (200000, 'twice')")
