"""Results larger than what is held in memory: they go through temporary files, and leave none."""

import os
import struct
import threading
import time

import psycopg
import pytest

from harness.procs import wait_until
from harness.riverdelta import on_a_disk_of
from harness.wire import Raw, query
from test_wire import resident_mb

ROWS = 200_000
# 100 MB of rows, three times what is sorted in memory.
WIDE = f"SELECT CASE WHEN g % 7 > 0 THEN g % 1000 END AS k, g, repeat('x', 450) FROM generate_series(1, {ROWS}) g"


def temp_files(r) -> list[str]:
    return os.listdir(os.path.join(r.data_dir, "temp"))


def no_temp_files(r):
    wait_until(lambda: not temp_files(r), 10, what="temporary files are gone")


def peak_mb(r) -> float:
    with open(f"/proc/{r.proc.popen.pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM")) / 1024


def reset_peak(r):
    with open(f"/proc/{r.proc.popen.pid}/clear_refs", "w") as f:
        f.write("5")


def keys(k):
    """The column k as above."""
    return [(g % 1000 if g % 7 else None, g) for g in range(1, k + 1)]


@pytest.mark.parametrize(
    "order, key",
    [
        # Ties are in the order of the rows: by k with NULL last, then by g.
        ("k DESC", lambda r: (r[0] is not None, -(r[0] or 0), r[1])),
        ("k NULLS FIRST, g DESC", lambda r: (r[0] is not None, r[0] or 0, -r[1])),
        ("k", lambda r: (r[0] is None, r[0] or 0, r[1])),
    ],
)
def test_an_ordered_result_is_bounded(rd, order, key):
    before = resident_mb(rd)
    reset_peak(rd)
    want = sorted(keys(ROWS), key=key)
    with rd.connect() as db, db.cursor(name="c", withhold=True) as c:
        c.itersize = 20_000
        c.execute(f"{WIDE} ORDER BY {order}")
        seen_files = False
        for i, row in enumerate(c):
            seen_files = seen_files or i % 50_000 == 0 and bool(temp_files(rd))
            assert row[:2] == want[i], i
        assert i + 1 == ROWS
        assert seen_files, "it should not have fit"
    no_temp_files(rd)
    assert peak_mb(rd) - before < 250, "100 MB of rows, of which 32 are to be in memory"


def test_limit_and_offset_of_an_ordered_result(rd):
    want = sorted(keys(ROWS), key=lambda r: (r[0] is not None, -(r[0] or 0), r[1]))
    with rd.connect() as db:
        for limit, offset in [(5, 0), (10, 3000), (20, ROWS - 10), (0, 5), (3, ROWS + 1)]:
            got = db.execute(f"SELECT k, g FROM ({WIDE}) s ORDER BY k DESC LIMIT {limit} OFFSET {offset}").fetchall()
            assert got == want[offset : offset + limit]
        # So many that they do not fit either.
        got = db.execute(f"SELECT k, g, repeat FROM ({WIDE}) s ORDER BY k DESC LIMIT 150000 OFFSET 149990").fetchall()
        assert [r[:2] for r in got] == want[149_990:]
    no_temp_files(rd)


def test_copy_out_of_an_ordered_result(rd):
    want = sorted(keys(ROWS), key=lambda r: -r[1])
    with rd.connect() as db, db.cursor() as c:
        with c.copy(f"COPY ({WIDE} ORDER BY g DESC) TO STDOUT") as copy:
            for i, row in enumerate(copy.rows()):
                assert int(row[1]) == want[i][1]
        assert i + 1 == ROWS
    no_temp_files(rd)


def begun(rd) -> Raw:
    """A client that does not read what it asked for; its result lies in files."""
    raw = Raw(rd.port)
    raw.send(query(f"{WIDE} ORDER BY 1 DESC"))
    wait_until(lambda: temp_files(rd), 30, what="temporary files")
    return raw


def test_nothing_is_left_of_a_cancelled_result(rd):
    raw = begun(rd)
    other = Raw(rd.port, start=False)
    other.send(struct.pack("!iiii", 16, 80877102, *raw.key))
    assert [m[2] for m in raw.until_ready() if m[0] == "E"] == ["57014"]
    no_temp_files(rd)


def test_nothing_is_left_of_a_result_nobody_waits_for(rd):
    begun(rd).close()
    no_temp_files(rd)


def test_nothing_is_left_after_a_kill(riverdelta):
    begun(riverdelta)
    riverdelta.restart(kill=True)
    assert temp_files(riverdelta) == []
    assert riverdelta.sql("SELECT 1") == [(1,)]


def test_rows_that_were_taken_back_are_added_up(rd):
    """A join of an arrangement from which rows were deleted: what it makes of them comes and goes, and none of it is seen."""
    with rd.connect() as db:
        db.execute("CREATE TABLE la (k int, v text)")
        db.execute("CREATE TABLE lb (k int, w int)")
        db.execute("CREATE INDEX la_k ON la (k)")
        db.execute("CREATE INDEX lb_k ON lb (k)")
        db.execute("INSERT INTO lb SELECT g % 100, g FROM generate_series(1, 3000) g")
        db.execute("INSERT INTO la SELECT g % 100, 'old ' || g FROM generate_series(1, 2000) g")
        db.execute("UPDATE la SET v = repeat('n', 200) || k WHERE k < 50")
        db.execute("DELETE FROM la WHERE k >= 90")
        db.execute("INSERT INTO la SELECT 7, repeat('n', 200) || 7 FROM generate_series(1, 5)")
        before = resident_mb(rd)
        reset_peak(rd)
        # 25 rows of la with key 7, 20 with the others below 90; 30 of lb.
        n, n7, wrong = 0, 0, 0
        for k, v in db.cursor(name="j", withhold=True).execute("SELECT k, v FROM la JOIN lb USING (k)"):
            n, n7 = n + 1, n7 + (k == 7)
            wrong += k >= 90 or v.startswith("old") == (k < 50)
        assert (n, n7, wrong) == (90 * 20 * 30 + 5 * 30, 25 * 30, 0)
        assert db.execute("SELECT k, count(*) FROM (SELECT la.k FROM la JOIN lb USING (k) ORDER BY v LIMIT 100) s GROUP BY 1").fetchall() == [(0, 100)]
        assert db.execute("SELECT v, w FROM la JOIN lb USING (k) WHERE la.k IN (7, 95) ORDER BY w DESC, v LIMIT 2").fetchall() == [("n" * 200 + "7", 2907)] * 2
        assert peak_mb(rd) - before < 250
    no_temp_files(rd)


def test_a_result_on_a_full_disk(tmp_path):
    """53100, and the server goes on."""
    with on_a_disk_of(4, tmp_path) as r:
        random = "SELECT md5(g::text) || md5((g * 3)::text) || md5((g * 5)::text) AS m FROM generate_series(1, 400000) g"
        for _ in range(2):
            with pytest.raises(psycopg.errors.DiskFull):
                r.sql(f"{random} ORDER BY 1")
            no_temp_files(r)
        r.sql("CREATE TABLE t (k int)", "INSERT INTO t VALUES (1)")
        assert r.sql("SELECT k FROM t ORDER BY k") == [(1,)]


PAD = "p" * 800
# Some 80 MB, more than a transaction holds in memory.
MANY = 100_000


def copied(c, table: str, first: int, n: int = MANY):
    with c.cursor().copy(f"COPY {table} FROM STDIN") as copy:
        for k in range(first, first + n, 1000):
            copy.write("".join(f"{i}\t{PAD}\n" for i in range(k, k + 1000)))


def parts(r) -> set[str]:
    return {f for f in os.listdir(os.path.join(r.data_dir, "shards")) if f.endswith(".arrow")}


def total(k: int) -> tuple[int, int]:
    return (k, k * (k + 1) // 2)


SUM = "SELECT count(*), coalesce(sum(k), 0)::int8 FROM "


def test_a_large_transaction_reads_its_writes(riverdelta):
    r = riverdelta
    r.sql("CREATE TABLE t (k int PRIMARY KEY, v text)", "CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n, sum(k)::int8 AS s FROM t")
    with r.connect(autocommit=False) as c:
        c.execute("SELECT 1")
        before = resident_mb(r)
        reset_peak(r)
        copied(c, "t", 1)
        assert parts(r), "a part of it is in files"
        assert c.execute(SUM + "t").fetchone() == total(MANY)
        assert c.execute("SELECT n FROM m").fetchone() == (MANY,)
        assert c.execute("SELECT length(v) FROM t WHERE k = 77").fetchall() == [(800,)]
        assert r.sql(SUM + "t") == [(0, 0)], "nobody else sees them"
        c.execute("SAVEPOINT s")
        assert c.execute("DELETE FROM t WHERE k > 10").rowcount == MANY - 10
        assert c.execute(SUM + "t").fetchone() == total(10)
        copied(c, "t", MANY + 1)
        assert c.execute("SELECT count(*) FROM t").fetchone() == (MANY + 10,)
        c.execute("ROLLBACK TO s")
        assert c.execute(SUM + "t").fetchone() == total(MANY)
        with pytest.raises(psycopg.errors.UniqueViolation):
            c.execute("INSERT INTO t VALUES (500, '')")
        c.execute("ROLLBACK TO s")
        c.execute("UPDATE t SET k = k + 1")
        c.execute("INSERT INTO t VALUES (1, '')")
        assert c.execute(SUM + "t").fetchone() == total(MANY + 1)
        c.commit()
    assert r.sql(SUM + "t") == [total(MANY + 1)] == r.sql("SELECT n, s FROM m")
    r.restart(kill=True)
    assert r.sql(SUM + "t") == [total(MANY + 1)] == r.sql("SELECT n, s FROM m")
    with pytest.raises(psycopg.errors.UniqueViolation):
        r.sql(f"INSERT INTO t VALUES ({MANY + 1}, '')")


def test_a_large_transaction_leaves_nothing_when_it_ends_otherwise(riverdelta):
    r = riverdelta
    r.sql("CREATE TABLE t (k int, v text)", "CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM t")
    before = parts(r)
    with r.connect(autocommit=False) as c:
        copied(c, "t", 1)
        assert parts(r) - before
        c.rollback()
        wait_until(lambda: parts(r) == before, 10, what="the parts are gone after ROLLBACK")
        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            with c.cursor().copy("COPY t FROM STDIN") as copy:
                for i in range(MANY):
                    copy.write(f"{i}\t{PAD}\n")
                copy.write("x\ty\n")
        wait_until(lambda: parts(r) == before, 10, what="the parts are gone after an error")
        c.rollback()
    c = r.connect(autocommit=False)
    copied(c, "t", 1)
    c.close()
    wait_until(lambda: parts(r) == before, 10, what="the parts are gone with the client")
    c = r.connect(autocommit=False)
    copied(c, "t", 1)
    assert parts(r) - before
    r.restart(kill=True)
    assert parts(r) <= before, "a start removes what no tick names"
    assert r.sql("SELECT count(*) FROM t") == [(0,)] == r.sql("SELECT n FROM m")


def test_keys_and_conflicts_of_large_transactions(riverdelta):
    r = riverdelta
    r.sql("CREATE TABLE t (k int PRIMARY KEY, v text)", f"INSERT INTO t VALUES ({MANY}, 'old'), (-1, '')")
    with pytest.raises(psycopg.errors.UniqueViolation):
        with r.connect() as c:
            copied(c, "t", 1)
    assert r.sql(SUM + "t") == [(2, MANY - 1)]
    # Two that meet in one key: the second to commit is told.
    with r.connect(autocommit=False) as a, r.connect() as b:
        copied(a, "t", 10_000_000)
        b.execute("INSERT INTO t VALUES (10000007, 'b')")
        with pytest.raises(psycopg.errors.UniqueViolation):
            a.commit()
    # What a transaction has read must not have changed through a large one, and the other way round.
    with r.connect(autocommit=False) as a, r.connect(autocommit=False) as b:
        a.execute("SELECT v FROM t WHERE k = 5")
        a.execute("UPDATE t SET v = 'a' WHERE k = -1")
        copied(b, "t", 1_000_000)
        b.commit()
        with pytest.raises(psycopg.errors.SerializationFailure):
            a.commit()
    with r.connect(autocommit=False) as a, r.connect() as b:
        assert a.execute("SELECT count(*) FROM t").fetchone()[0] > MANY
        copied(a, "t", 2_000_000)
        b.execute("INSERT INTO t VALUES (-2, 'b')")
        with pytest.raises(psycopg.errors.SerializationFailure):
            a.commit()
    assert r.sql("SELECT count(*) FROM t") == [(MANY + 4,)]


def test_large_statements_that_make_their_table(riverdelta):
    r = riverdelta
    source = f"SELECT g AS k, repeat('w', 800) || g AS v FROM generate_series(1, {MANY}) g"
    before = parts(r)
    with r.connect(autocommit=False) as c:
        reset_peak(r)
        resident = resident_mb(r)
        assert c.execute(f"CREATE TABLE made AS {source}").statusmessage == f"SELECT {MANY}"
        assert peak_mb(r) - resident < 300
        assert parts(r) - before
        assert c.execute(SUM + "made").fetchone() == total(MANY)
        c.execute("DELETE FROM made WHERE k % 2 = 0")
        assert c.execute("SELECT count(*) FROM made").fetchone() == (MANY // 2,)
        c.execute("CREATE TABLE other (k int UNIQUE, v text)")
        assert c.execute("INSERT INTO other SELECT * FROM made").rowcount == MANY // 2
        assert c.execute("SELECT count(*), count(DISTINCT v) FROM made JOIN other USING (k, v)").fetchone() == (MANY // 2, MANY // 2)
        with pytest.raises(psycopg.errors.UniqueViolation):
            c.execute("INSERT INTO other SELECT * FROM made WHERE k = 3")
        c.rollback()
    wait_until(lambda: parts(r) == before, 10, what="the parts are gone")
    r.sql(f"CREATE TABLE made AS {source}")
    r.sql("CREATE TABLE other (k int UNIQUE, v text)", "INSERT INTO other SELECT * FROM made", "INSERT INTO made SELECT k + 1, v FROM made")
    r.restart(kill=True)
    assert r.sql("SELECT count(*), count(DISTINCT k) FROM made") == [(2 * MANY, MANY + 1)]
    assert r.sql(SUM + "other") == [total(MANY)]
    r.sql("TRUNCATE made", "TRUNCATE other")
    assert r.sql("SELECT (SELECT count(*) FROM made), (SELECT count(*) FROM other)") == [(0, 0)]


def test_a_large_table_is_altered_in_pieces(riverdelta):
    """Rows go through all changes some at a time; what one row breaks leaves the table as it was."""
    r = riverdelta
    r.sql("CREATE TABLE t (k int PRIMARY KEY, v text, w int)", "CREATE VIEW m AS SELECT count(*) AS n, sum(k)::int8 AS s FROM t",
          f"INSERT INTO t SELECT g, repeat('w', 800) || g, 3 FROM generate_series(1, {MANY}) g")
    before = parts(r)
    with r.connect() as c:
        reset_peak(r)
        resident = resident_mb(r)
        c.execute("ALTER TABLE t ADD COLUMN n int DEFAULT 7, ADD COLUMN twice int8 GENERATED ALWAYS AS (k::int8 * 2) STORED, ALTER w TYPE text USING w::text || v, ADD CHECK (k > 0)")
        c.execute("ALTER TABLE t DROP COLUMN v")
        assert peak_mb(r) - resident < 350
        for change, error in ((f"ADD CHECK (k < {MANY})", "CheckViolation"), (f"ALTER n TYPE int USING nullif({MANY} / (k - {MANY} + 1), 0)", "DivisionByZero"), ("ADD UNIQUE (n)", "UniqueViolation"),
                              (f"ALTER n TYPE int USING nullif(k, {MANY}), ALTER n SET NOT NULL", "NotNullViolation")):
            with pytest.raises(getattr(psycopg.errors, error)):
                c.execute(f"ALTER TABLE t {change}")
    for _ in range(2):
        assert r.sql("SELECT n, s FROM m") == [total(MANY)]
        assert r.sql("SELECT sum(n), sum(twice)::int8, count(DISTINCT w), min(length(w)), max(length(w)) FROM t") == [(7 * MANY, 2 * total(MANY)[1], MANY, 802, 801 + len(str(MANY)))]
        r.restart(kill=True)
    assert parts(r) != before
    r.sql("DROP TABLE t CASCADE")


def test_many_small_statements_in_one_block(riverdelta):
    """They are put into files together."""
    r = riverdelta
    r.sql("CREATE TABLE t (k int PRIMARY KEY, v text)")
    before = parts(r)
    with r.connect(autocommit=False) as c:
        for k in range(100):
            c.execute("INSERT INTO t SELECT %s * 1000 + g, repeat('v', 1000) FROM generate_series(1, 1000) g", (k,))
            if k == 40:
                c.execute("SAVEPOINT s")
        assert 0 < len(parts(r) - before) < 10
        c.execute("ROLLBACK TO s")
        assert c.execute("SELECT count(*), max(k) FROM t").fetchone() == (41_000, 41_000)
        c.execute("INSERT INTO t VALUES (41001, '')")
        c.commit()
    assert r.sql("SELECT count(*), max(k) FROM t") == [(41_001, 41_001)]


def test_a_large_transaction_on_a_full_disk(tmp_path):
    """53100; nothing of it is left, and the server goes on."""
    with on_a_disk_of(20, tmp_path) as r:
        r.sql("CREATE TABLE t (k int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'old')")
        many = "SELECT g, md5(g::text) || md5((g * 3)::text) || md5((g * 5)::text) || md5((g * 7)::text) FROM generate_series(2, 600000) g"
        for _ in range(2):
            with pytest.raises(psycopg.errors.DiskFull):
                r.sql(f"INSERT INTO t {many}")
            assert r.sql("SELECT count(*) FROM t") == [(1,)]
        r.sql("INSERT INTO t VALUES (2, 'new')")
        r.restart(kill=True)
        assert r.sql("SELECT k FROM t ORDER BY k") == [(1,), (2,)]
