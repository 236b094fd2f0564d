"""Sources that need no service: load generators and files. What cannot be done is refused when it is declared, never ignored."""

import gzip
import os
import time

import psycopg
import pytest

REFUSED = [
    # Generators: intervals without a length, without time, or that nobody would wait for.
    ("LOAD GENERATOR COUNTER (TICK INTERVAL '0s')", "22023", "TICK INTERVAL"),
    ("LOAD GENERATOR COUNTER (TICK INTERVAL '-1s')", "22023", "TICK INTERVAL"),
    ("LOAD GENERATOR COUNTER (TICK INTERVAL 0)", "22023", "TICK INTERVAL"),
    ("LOAD GENERATOR COUNTER (TICK INTERVAL '1 month')", "22023", "TICK INTERVAL"),
    ("LOAD GENERATOR COUNTER (TICK INTERVAL '1 month -29 days')", "22023", "TICK INTERVAL"),
    ("LOAD GENERATOR COUNTER (TICK INTERVAL '10 us')", "22023", "TICK INTERVAL"),
    ("LOAD GENERATOR COUNTER (TICK INTERVAL '100 years')", "22023", "TICK INTERVAL"),
    ("LOAD GENERATOR COUNTER (TICK INTERVAL 'soon')", "22007", "soon"),
    ("LOAD GENERATOR COUNTER (TICK INTERVAL '1s', TICK INTERVAL '2s')", "22023", "more than once"),
    ("LOAD GENERATOR COUNTER (MAX CARDINALITY 0)", "22023", "MAX CARDINALITY"),
    ("LOAD GENERATOR COUNTER (KEYS 3)", "22023", "KEYS"),
    ("LOAD GENERATOR KEY VALUE (KEYS 99999999999999)", "22023", "KEYS"),
    ("LOAD GENERATOR KEY VALUE (KEYS 1000000000)", "22023", "KEYS"),
    ("LOAD GENERATOR KEY VALUE (KEYS 1000000, VALUE SIZE 1000000)", "22023", "KEYS"),
    ("LOAD GENERATOR KEY VALUE (KEYS 20000000, BATCH SIZE 16000000, VALUE SIZE 100)", "22023", "BATCH SIZE"),
    ("LOAD GENERATOR KEY VALUE (UPDATES maybe)", "22023", "UPDATES"),
    ("LOAD GENERATOR COUNTER FORMAT JSON", "0A000", "FORMAT"),
    ("LOAD GENERATOR COUNTER INCLUDE OFFSET", "0A000", "INCLUDE"),
    ("LOAD GENERATOR COUNTER ENVELOPE UPSERT", "0A000", "ENVELOPE"),
    ("LOAD GENERATOR COUNTER WITH (SIZE = '1')", "22023", "size"),
    ("LOAD GENERATOR TPCH FOR ALL TABLES", "0A000", "TPCH"),
    # Files.
    ("FILE (PATH '{dir}') FORMAT TEXT", "42809", "is a directory"),
    ("FILE (PATH '{dir}/none') FORMAT TEXT", "42704", "no file matches"),
    ("FILE (PATH '{dir}/a.csv', COMPRESSION 'gzip') FORMAT TEXT", "22023", "compression"),
    ("FILE (PATH '{dir}/a.csv', PATH '{dir}/b.csv') FORMAT TEXT", "22023", "more than once"),
    ("FILE (PATH '{dir}/a.csv', TAIL 'maybe') FORMAT TEXT", "22023", "tail"),
    ("FILE (PATH '{dir}/a.csv.gz') FORMAT TEXT", "0A000", "compressed"),
    ("FILE (PATH '{dir}/a.csv')", "22023", "FORMAT"),
    ("FILE (PATH '{dir}/a.csv') FORMAT CSV", "22023", "columns"),
    ("FILE (PATH '{dir}/a.csv') FORMAT CSV WITH 0 COLUMNS", "22023", "between 1 and"),
    ("FILE (PATH '{dir}/a.csv') FORMAT CSV WITH 1000000000 COLUMNS", "22023", "between 1 and"),
    ("FILE (PATH '{dir}/a.csv') FORMAT CSV WITH HEADER", "22023", "column list"),
    ("FILE (PATH '{dir}/a.csv') FORMAT CSV WITH HEADER (a, b)", "0A000", "column list"),
    ("FILE (PATH '{dir}/a.csv') FORMAT CSV WITH 2 COLUMNS DELIMITED BY 'ab'", "22023", "delimiter"),
    ("FILE (PATH '{dir}/a.csv') FORMAT BYTES", "0A000", "BYTES"),
    ("FILE (PATH '{dir}/a.csv') FORMAT TEXT FORMAT JSON", "42601", "more than once"),
    ("FILE (PATH '{dir}/a.csv') KEY FORMAT TEXT VALUE FORMAT TEXT", "0A000", "KEY FORMAT"),
    ("FILE (PATH '{dir}/a.csv') FORMAT TEXT INCLUDE PARTITION", "0A000", "INCLUDE"),
    ("FILE (PATH '{dir}/a.csv') FORMAT TEXT ENVELOPE UPSERT", "0A000", "envelope"),
    ("FILE (PATH '{dir}/a.csv') FORMAT TEXT FOR ALL TABLES", "0A000", "TABLES"),
    ("FILE (PATH '{dir}/a.csv') FORMAT TEXT CHECK (true)", "0A000", "CHECK"),
    ("FILE (PATH '{dir}/a.csv') FORMAT TEXT WITH (BOGUS = 1)", "22023", "bogus"),
    ("FILE (PATH '{dir}/a.csv') FORMAT TEXT WITH (ON ERROR = 'ignore')", "22023", "ON ERROR"),
]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    d = tmp_path_factory.mktemp("files")
    (d / "a.csv").write_text("1,x\n2,y\n")
    with gzip.open(d / "a.csv.gz", "wb") as f:
        f.write(b"1,x\n")
    return d


@pytest.mark.parametrize("source, code, word", REFUSED)
def test_refused(db, files, source, code, word):
    with pytest.raises(psycopg.Error) as e:
        db.execute(f"CREATE SOURCE refused FROM {source.format(dir=files)}")
    assert e.value.sqlstate == code and word in str(e.value), (e.value.sqlstate, str(e.value))


def test_a_column_list_says_how_many_columns_a_csv_has(rd, db, files):
    db.execute(f"CREATE SOURCE listed (a int, b text) FROM FILE (PATH '{files}/a.csv') FORMAT CSV")
    rd.settled("SELECT a, b FROM listed", [(1, "x"), (2, "y")])


def test_generators_go_on_where_they_were(riverdelta):
    r = riverdelta
    r.sql("CREATE SOURCE n FROM LOAD GENERATOR COUNTER (TICK INTERVAL '5ms')",
          "CREATE SOURCE last FROM LOAD GENERATOR COUNTER (TICK INTERVAL '5ms', MAX CARDINALITY 7)",
          "CREATE SOURCE kv FROM LOAD GENERATOR KEY VALUE (KEYS 50, PARTITIONS 4, BATCH SIZE 5, VALUE SIZE 10, TICK INTERVAL '5ms')",
          "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, max(counter) AS m FROM n")
    before = 0
    for _ in range(4):
        time.sleep(0.2)
        r.restart(kill=True)
        n, m = r.sql("SELECT n, m FROM v")[0]
        assert n == m > before
        before = n
        assert r.sql("SELECT count(*) <= 7, max(counter) - min(counter) < 7 FROM last") == [(True, True)]
        assert r.sql('SELECT count(*), count(DISTINCT key), min(length(value)), max(partition), count(DISTINCT "offset") FROM kv') == [(50, 50, 10, 3, 50)]


def test_a_table_of_a_generator_later(rd, db):
    db.execute("CREATE SOURCE house FROM LOAD GENERATOR AUCTION (TICK INTERVAL '10ms')")
    db.execute("CREATE TABLE house_bids FROM SOURCE house (REFERENCE bids)")
    time.sleep(0.3)
    db.execute("CREATE TABLE house_auctions FROM SOURCE house (REFERENCE auctions)")
    assert db.execute("SELECT count(*) FROM house_bids b LEFT JOIN house_auctions a ON a.id = b.auction_id WHERE a.id IS NULL").fetchone() == (0,)
    with pytest.raises(psycopg.errors.UndefinedTable):
        db.execute("CREATE TABLE house_nope FROM SOURCE house (REFERENCE nope)")


def test_a_table_made_by_itself_blocks_its_source(riverdelta):
    """What the source's own statement made goes with it; what was made from it afterwards is a dependant like any other, across a restart too."""
    r = riverdelta
    r.sql("CREATE SOURCE house FROM LOAD GENERATOR AUCTION (TICK INTERVAL '50ms') FOR ALL TABLES",
          "CREATE TABLE more_bids FROM SOURCE house (REFERENCE bids)", "CREATE VIEW v AS SELECT count(*) AS n FROM more_bids")
    for _ in range(2):
        with pytest.raises(psycopg.errors.DependentObjectsStillExist) as e:
            r.sql("DROP SOURCE house")
        assert e.value.diag.message_primary == "cannot drop source house because other objects depend on it"
        assert e.value.diag.message_detail == "table more_bids depends on source house\nview v depends on table more_bids"
        assert e.value.diag.message_hint == "Use DROP ... CASCADE to drop the dependent objects too."
        r.restart(kill=True)
    r.sql("DROP VIEW v", "DROP TABLE more_bids, bids", "DROP SOURCE house")
    assert r.sql("SHOW SOURCES") == [] and r.sql("SHOW TABLES") == []
    r.sql("CREATE SOURCE house FROM LOAD GENERATOR AUCTION (TICK INTERVAL '50ms')", "CREATE TABLE bids FROM SOURCE house (REFERENCE bids)")
    with r.connect() as c:
        notices = []
        c.add_notice_handler(lambda n: notices.append(n.message_primary))
        c.execute("DROP SOURCE house CASCADE")
    assert notices == ["drop cascades to table bids"], notices


def append(path, text):
    with open(path, "a") as f:
        f.write(text)


def test_a_glob_read_once(rd, db, tmp_path):
    for n in range(3):
        (tmp_path / f"p{n}.jsonl").write_text(f'{{"a": {n}}}\n{{"a": {n + 10}}}')
    (tmp_path / "other.txt").write_text("x")
    db.execute(f"CREATE SOURCE globbed (a int) FROM FILE (PATH '{tmp_path}/*.jsonl') FORMAT JSON INCLUDE OFFSET, PATH")
    rd.settled('SELECT a, "offset", path FROM globbed',
               [(n + 10 * k, k * len(f'{{"a": {n}}}\n'), f"{tmp_path}/p{n}.jsonl") for n in range(3) for k in range(2)])
    (tmp_path / "p9.jsonl").write_text('{"a": 99}\n')
    time.sleep(0.3)
    assert db.execute("SELECT max(a) FROM globbed").fetchone() == (12,)


def test_bad_lines_are_listed(rd, db, tmp_path):
    (tmp_path / "b.jsonl").write_bytes(b'{"a": 1}\n\n  \nnot json\n{"a": "x"}\r\n\xff\xfe\n{"a": 2}\r\n{"a": null')
    db.execute(f"CREATE SOURCE badly (a int) FROM FILE (PATH '{tmp_path}/b.jsonl') FORMAT JSON")
    rd.settled("SELECT a FROM badly", [(1,), (2,)])
    rd.settled("SELECT value, split_part(badly_errors.position, ':', 2)::int, length(reason) > 5 FROM badly_errors",
               [(b"not json", 13, True), (b'{"a": "x"}', 22, True), (b"\xff\xfe", 34, True), (b'{"a": null', 47, True)])


@pytest.mark.timeout(120)
def test_tail_follows_rotation_and_truncation_through_kills(riverdelta, tmp_path):
    """As tail -F: appended lines, a half line that is finished later, rotation by rename while running and while down, truncation, new files."""
    r = riverdelta
    log = tmp_path / "app.log"
    log.write_text("1\n2\n3")
    r.sql(f"CREATE SOURCE t FROM FILE (PATH '{tmp_path}/*.log', TAIL true) FORMAT TEXT", "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, count(DISTINCT text) AS d FROM t")
    lines = lambda *texts: r.settled("SELECT text FROM t", [(str(x),) for x in texts], seconds=20)  # noqa: E731
    lines(1, 2)
    append(log, "3\n4\n")
    lines(1, 2, 33, 4)
    r.restart(kill=True)
    append(log, "5\n")
    lines(1, 2, 33, 4, 5)
    # Rotated while it is followed: what the old file still gets is read, then the new one.
    os.rename(log, tmp_path / "app.log.1")
    append(tmp_path / "app.log.1", "6\n")
    log.write_text("7\n")
    lines(1, 2, 33, 4, 5, 6, 7)
    # Rotated while the server is down.
    r.kill()
    append(log, "8\n")
    os.rename(log, tmp_path / "app.log.2")
    log.write_text("9\n")
    r.start()
    lines(1, 2, 33, 4, 5, 6, 7, 8, 9)
    # Truncated: its lines are new lines.
    with open(log, "w"):
        pass
    time.sleep(0.5)
    append(log, "10\n")
    lines(1, 2, 33, 4, 5, 6, 7, 8, 9, 10)
    (tmp_path / "more.log").write_text("11\n")
    lines(1, 2, 33, 4, 5, 6, 7, 8, 9, 10, 11)
    r.restart(kill=True)
    r.settled("SELECT n, d FROM v", [(11, 11)])


@pytest.mark.timeout(120)
def test_a_growing_file_through_kills(riverdelta, tmp_path):
    """A writer that never stops, and a server that dies again and again: each line once."""
    import threading

    r = riverdelta
    log = tmp_path / "grow.log"
    log.write_text("")
    r.sql(f"CREATE SOURCE t (n int) FROM FILE (PATH '{log}', TAIL true) FORMAT CSV", "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(n) AS s, count(DISTINCT n) AS d FROM t")
    stop, written = threading.Event(), 0

    def write():
        nonlocal written
        with open(log, "a", buffering=1) as f:
            while not stop.is_set():
                for _ in range(20):
                    f.write(f"{written}\n")
                    written += 1
                time.sleep(0.005)

    th = threading.Thread(target=write)
    th.start()
    for i in range(6):
        time.sleep(0.2 + 0.1 * (i % 3))
        r.restart(kill=True)
        n, d = r.sql("SELECT n, d FROM v")[0]
        assert n == d
    stop.set()
    th.join()
    r.settled("SELECT n, s, d FROM v", [(written, written * (written - 1) // 2, written)])


def test_extrema_of_what_only_grows(riverdelta, tmp_path):
    """Of a relation that only appends extrema keep no rows; of one that may lose rows they do. Through views, restarts and kills."""
    r = riverdelta
    log = tmp_path / "grow.csv"
    log.write_text("")
    r.sql(
        f"CREATE SOURCE s (k int, n numeric, t text) FROM FILE (PATH '{log}', TAIL true) FORMAT CSV",
        "CREATE TABLE gone (k int)",
        "CREATE MATERIALIZED VIEW passed AS SELECT k % 3 AS k, n, t FROM s WHERE n <> 77",
        "CREATE MATERIALIZED VIEW less AS SELECT * FROM s WHERE k NOT IN (SELECT k FROM gone)",
    )
    extrema = "SELECT k, count(*) AS c, min(n) AS lo, max(n) AS hi, min(t) AS first, max(t) FILTER (WHERE k > 0) AS last FROM {} GROUP BY k"
    plans = {"s": "monotonic", "passed": "monotonic", "less": "hierarchical", "(SELECT DISTINCT k, t, 1 AS n FROM passed) d": "monotonic",
             "(SELECT DISTINCT k, n, 'x' AS t FROM passed) d": "hierarchical", "(SELECT a.k, a.n, b.t FROM s a JOIN passed b ON a.k = b.k) j": "monotonic"}
    for i, (relation, plan) in enumerate(plans.items()):
        query = extrema.format(relation)
        r.sql(f"CREATE MATERIALIZED VIEW v{i} AS {query}")
        shown = "\n".join(row[0] for row in r.sql(f"EXPLAIN PHYSICAL PLAN FOR MATERIALIZED VIEW v{i}"))
        assert plan in shown and len(set(plans.values()) & set(shown.split())) == 1, (relation, shown)
    written = 0
    for round in range(5):
        with open(log, "a") as f:
            for _ in range(30):
                f.write(f"{written * 7 % 5},{written * 31 % 100}{['', '.0', '.00'][written % 3]},{written * 17 % 50}\n")
                written += 1
        if round == 3:
            r.sql("INSERT INTO gone VALUES (1), (4)")
        if round % 2:
            r.restart(kill=round == 3)
        r.settled("SELECT count(*) FROM s", [(written,)])
        for i, relation in enumerate(plans):
            # As text: 1.0 and 1.00 differ.
            text = "SELECT k, c, lo::text, hi::text, first, last FROM {} x ORDER BY k"
            assert r.sql(text.format(f"v{i}")) == r.sql(text.format(f"({extrema.format(relation)})")), (round, relation)


def test_a_key_needs_an_envelope(db, files):
    with pytest.raises(psycopg.errors.FeatureNotSupported) as e:
        db.execute(f"CREATE SOURCE keyed (a int PRIMARY KEY, b text) FROM FILE (PATH '{files}/a.csv') FORMAT CSV")
    assert "ENVELOPE UPSERT" in str(e.value)


def test_a_source_can_be_renamed(riverdelta):
    """What it feeds stays; its errors relation goes with it and cannot be dropped alone."""
    r = riverdelta
    r.sql("CREATE SOURCE c FROM LOAD GENERATOR COUNTER (TICK INTERVAL '20ms')", "ALTER SOURCE c RENAME TO d")
    for statement in ("DROP SOURCE c_errors", "DROP TABLE c_errors"):
        with pytest.raises(psycopg.errors.WrongObjectType) as e:
            r.sql(statement)
        assert "goes with its source" in (e.value.diag.message_hint or "")
    r.restart(kill=True)
    assert r.sql("SELECT count(*) >= 0 FROM d") == [(True,)]
    r.sql("DROP SOURCE d")
