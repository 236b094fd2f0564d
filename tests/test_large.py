"""Results larger than what is held in memory: they go through temporary files, and leave none."""

import os
import struct
import subprocess
import threading
import time

import psycopg
import pytest

from harness.procs import wait_until
from harness.riverdelta import Riverdelta
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
    assert peak_mb(rd) - before < 200, "100 MB of rows, of which 32 are to be in memory"


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
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(small)], capture_output=True).returncode != 0:
        pytest.skip("a file system cannot be mounted here")
    r = Riverdelta(small)
    r.log = str(tmp_path / "log")
    try:
        r.start()
        random = "SELECT md5(g::text) || md5((g * 3)::text) || md5((g * 5)::text) AS m FROM generate_series(1, 400000) g"
        for _ in range(2):
            with pytest.raises(psycopg.errors.DiskFull):
                r.sql(f"{random} ORDER BY 1")
            no_temp_files(r)
        r.sql("CREATE TABLE t (k int)", "INSERT INTO t VALUES (1)")
        assert r.sql("SELECT k FROM t ORDER BY k") == [(1,)]
        assert not r.panics()
    finally:
        r.kill()
        subprocess.run(["umount", "-l", str(small)], check=True)
