"""Tables and transactions: what a writer may count on, alone and beside others."""

import re
import threading
import time

import psycopg
import pytest


@pytest.fixture
def t(db, request):
    name = "t_" + request.node.name.split("[")[0].removeprefix("test_")
    db.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v int)")
    return name


def test_a_commit_is_seen_at_once_by_everyone(rd, db, t):
    db.execute(f"CREATE MATERIALIZED VIEW {t}_sum AS SELECT count(*) AS n, sum(v) AS s FROM {t}")
    with rd.connect() as other:
        total = 0
        for n in range(50):
            db.execute(f"INSERT INTO {t} VALUES ({n}, {n})")
            total += n
            assert other.execute(f"SELECT n, s FROM {t}_sum").fetchone() == (n + 1, total)
            assert other.execute(f"SELECT count(*) FROM {t}").fetchone() == (n + 1,)


def test_a_transaction_sees_its_own_writes_and_nobody_else_does(rd, db, t):
    db.execute(f"CREATE VIEW {t}_sum AS SELECT sum(v) AS s FROM {t}")
    with rd.connect() as other:
        db.execute("BEGIN")
        db.execute(f"INSERT INTO {t} VALUES (1, 10), (2, 20)")
        db.execute(f"UPDATE {t} SET v = v + 1 WHERE k = 1")
        db.execute(f"DELETE FROM {t} WHERE k = 2")
        assert db.execute(f"SELECT * FROM {t}").fetchall() == [(1, 11)]
        assert db.execute(f"SELECT s FROM {t}_sum").fetchone() == (11,)
        assert other.execute(f"SELECT count(*) FROM {t}").fetchone() == (0,)
        db.execute("COMMIT")
        assert other.execute(f"SELECT * FROM {t}").fetchall() == [(1, 11)]


def test_rollback_leaves_nothing(db, t):
    db.execute("BEGIN")
    db.execute(f"INSERT INTO {t} VALUES (1, 1)")
    db.execute("ROLLBACK")
    assert db.execute(f"SELECT count(*) FROM {t}").fetchone() == (0,)


def test_a_read_block_reads_at_one_time(rd, db, t):
    with rd.connect() as other:
        db.execute("BEGIN")
        assert db.execute(f"SELECT count(*) FROM {t}").fetchone() == (0,)
        other.execute(f"INSERT INTO {t} VALUES (1, 1)")
        assert db.execute(f"SELECT count(*) FROM {t}").fetchone() == (0,)
        db.execute("COMMIT")
        assert db.execute(f"SELECT count(*) FROM {t}").fetchone() == (1,)


def test_keys_are_unique(db, t):
    db.execute(f"INSERT INTO {t} VALUES (1, 1)")
    for statement in (f"INSERT INTO {t} VALUES (1, 2)", f"INSERT INTO {t} VALUES (5, 1), (5, 2)", f"INSERT INTO {t} SELECT 1, v FROM {t}"):
        with pytest.raises(psycopg.errors.UniqueViolation) as e:
            db.execute(statement)
        assert "(k)=(" in (e.value.diag.message_detail or "")
    db.execute(f"INSERT INTO {t} VALUES (2, 2)")
    with pytest.raises(psycopg.errors.UniqueViolation):
        db.execute(f"UPDATE {t} SET k = 1 WHERE k = 2")
    db.execute(f"UPDATE {t} SET k = k + 1")  # each new key is another's old one
    assert db.execute(f"SELECT k FROM {t} ORDER BY k").fetchall() == [(2,), (3,)]
    db.execute("BEGIN")
    db.execute(f"DELETE FROM {t} WHERE k = 2")
    db.execute(f"INSERT INTO {t} VALUES (2, 9)")
    db.execute("COMMIT")
    with pytest.raises(psycopg.errors.NotNullViolation):
        db.execute(f"INSERT INTO {t} VALUES (NULL, 1)")


def test_of_equal_keys_at_once_one_wins(rd, t):
    outcomes = []

    def work(n):
        with rd.connect() as c:
            for k in range(40):
                try:
                    c.execute(f"INSERT INTO {t} VALUES ({k}, {n})")
                    outcomes.append("ok")
                except psycopg.errors.UniqueViolation:
                    outcomes.append("dup")

    run([lambda n=n: work(n) for n in range(4)])
    assert outcomes.count("ok") == 40 and outcomes.count("dup") == 120
    assert rd.sql(f"SELECT count(*), count(DISTINCT k) FROM {t}") == [(40, 40)]


def test_no_increment_is_lost(rd, db, t):
    db.execute(f"INSERT INTO {t} VALUES (1, 0)")

    def work():
        with rd.connect() as c:
            for _ in range(25):
                c.execute(f"UPDATE {t} SET v = v + 1 WHERE k = 1")

    run([work] * 4)
    assert db.execute(f"SELECT v FROM {t}").fetchone() == (100,)


def test_a_block_that_read_what_another_wrote_gets_40001(rd, db, t):
    db.execute(f"INSERT INTO {t} VALUES (1, 0), (2, 0)")
    with rd.connect() as other:
        db.execute("BEGIN")
        v = db.execute(f"SELECT v FROM {t} WHERE k = 1").fetchone()[0]
        other.execute(f"UPDATE {t} SET v = 5 WHERE k = 1")
        with pytest.raises(psycopg.errors.SerializationFailure):
            db.execute(f"UPDATE {t} SET v = {v + 1} WHERE k = 2")
            db.execute("COMMIT")
        db.execute("ROLLBACK")
    assert db.execute(f"SELECT k, v FROM {t} ORDER BY k").fetchall() == [(1, 5), (2, 0)]


def test_write_skew_does_not_happen(rd, db, t):
    """Two on call; each may leave if the other stays: never both."""
    for _ in range(15):
        db.execute(f"DELETE FROM {t}")
        db.execute(f"INSERT INTO {t} VALUES (1, 1), (2, 1)")

        def leave(k):
            with rd.connect() as c:
                try:
                    c.execute("BEGIN")
                    if c.execute(f"SELECT sum(v) FROM {t}").fetchone()[0] > 1:
                        c.execute(f"UPDATE {t} SET v = 0 WHERE k = {k}")
                    c.execute("COMMIT")
                except psycopg.errors.SerializationFailure:
                    c.execute("ROLLBACK")

        run([lambda: leave(1), lambda: leave(2)])
        assert db.execute(f"SELECT sum(v) FROM {t}").fetchone()[0] >= 1


def test_transfers_keep_the_total(rd, db, t):
    """Money moves between accounts in blocks that retry; at no time does any reader see another total."""
    import random

    accounts, total = 10, 1000
    db.execute(f"INSERT INTO {t} SELECT g, 100 FROM generate_series(1, {accounts}) g")
    db.execute(f"CREATE MATERIALIZED VIEW {t}_total AS SELECT sum(v) AS total, count(*) AS n FROM {t}")
    stop = threading.Event()
    done = []

    def move(seed):
        rng = random.Random(seed)
        with rd.connect() as c:
            while not stop.is_set():
                a, b = rng.sample(range(1, accounts + 1), 2)
                try:
                    c.execute("BEGIN")
                    have = c.execute(f"SELECT v FROM {t} WHERE k = {a}").fetchone()[0]
                    amount = rng.randint(0, max(have, 0))
                    c.execute(f"UPDATE {t} SET v = v - {amount} WHERE k = {a}")
                    c.execute(f"UPDATE {t} SET v = v + {amount} WHERE k = {b}")
                    c.execute("COMMIT")
                    done.append(1)
                    if len(done) >= 100:
                        stop.set()
                except psycopg.errors.SerializationFailure:
                    c.execute("ROLLBACK")

    def watch():
        with rd.connect() as c:
            while not stop.is_set():
                assert c.execute(f"SELECT total, n FROM {t}_total").fetchall() == [(total, accounts)]
                assert c.execute(f"SELECT sum(v), min(v) >= 0 FROM {t}").fetchall() == [(total, True)]

    late = threading.Timer(60, stop.set)
    late.start()
    run([lambda s=s: move(s) for s in range(3)] + [watch, watch])
    late.cancel()
    assert len(done) > 30, len(done)


def test_constraints(db):
    db.execute("CREATE TABLE con (a int NOT NULL, b int DEFAULT 7, c numeric(4,1), d varchar(3), e int CHECK (e > 0))")
    db.execute("INSERT INTO con (a, c, d) VALUES (1, 1.26, 'abc')")
    assert db.execute("SELECT * FROM con").fetchall()[0][1] == 7
    for values, state in (("(NULL)", "23502"), ("(1, 2, 99999)", "22003"), ("(1, 2, 3, 'abcd')", "22001"), ("('x')", "22P02"), ("(1, 2, 3, 'a', 0)", "23514")):
        with pytest.raises(psycopg.Error) as e:
            db.execute(f"INSERT INTO con VALUES {values}")
        assert e.value.sqlstate == state, values


def test_large_inserts(rd, db):
    db.execute("CREATE TABLE big (a int, b text)")
    db.execute("CREATE MATERIALIZED VIEW big_n AS SELECT a % 10 AS k, count(*) AS n FROM big GROUP BY 1")
    db.execute("INSERT INTO big SELECT g, 'row ' || g FROM generate_series(1, 200000) g")
    assert db.execute("SELECT sum(n), count(*) FROM big_n").fetchone() == (200000, 10)
    db.execute("DELETE FROM big WHERE a % 2 = 0")
    assert db.execute("SELECT sum(n), count(*) FROM big_n").fetchone() == (100000, 5)
    db.execute("UPDATE big SET a = a + 1")
    assert db.execute("SELECT k, n FROM big_n ORDER BY k").fetchall() == [(k, 20000) for k in (0, 2, 4, 6, 8)]


def test_views_on_views_on_views(db):
    db.execute("CREATE TABLE base (k int, v int)")
    db.execute("CREATE MATERIALIZED VIEW l1 AS SELECT k, sum(v) AS s FROM base GROUP BY k")
    db.execute("CREATE VIEW l2 AS SELECT s, count(*) AS n FROM l1 GROUP BY s")
    db.execute("CREATE MATERIALIZED VIEW l3 AS SELECT max(s) AS m, sum(n) AS n FROM l2")
    db.execute("INSERT INTO base VALUES (1, 1), (1, 2), (2, 3), (3, 4)")
    assert db.execute("SELECT * FROM l3").fetchall() == [(4, 3)]
    db.execute("DELETE FROM base WHERE k = 3")
    assert db.execute("SELECT * FROM l3").fetchall() == [(3, 2)]
    with pytest.raises(psycopg.errors.DependentObjectsStillExist):
        db.execute("DROP TABLE base")
    db.execute("DROP TABLE base CASCADE")
    with pytest.raises(psycopg.errors.UndefinedTable):
        db.execute("SELECT * FROM l3")


def test_an_error_in_a_view_hurts_while_it_stands(db):
    db.execute("CREATE TABLE ratios (a int, b int)")
    db.execute("CREATE MATERIALIZED VIEW ratio AS SELECT a / b AS q FROM ratios")
    db.execute("INSERT INTO ratios VALUES (6, 2), (1, 0)")
    with pytest.raises(psycopg.errors.DivisionByZero):
        db.execute("SELECT * FROM ratio")
    db.execute("DELETE FROM ratios WHERE b = 0")
    assert db.execute("SELECT * FROM ratio").fetchall() == [(3,)]


def test_temporal_filter(db):
    db.execute("CREATE TABLE live (id int, until timestamptz)")
    db.execute("CREATE MATERIALIZED VIEW live_now AS SELECT id FROM live WHERE now() < until")
    db.execute("INSERT INTO live VALUES (1, now() + interval '2 seconds'), (2, now() + interval '1 hour'), (3, now() - interval '1 hour')")
    assert db.execute("SELECT id FROM live_now ORDER BY id").fetchall() == [(1,), (2,)]
    time.sleep(2.5)
    assert db.execute("SELECT id FROM live_now ORDER BY id").fetchall() == [(2,)]


def run(jobs):
    """All at once; the first failure is raised."""
    failures = []

    def guarded(job):
        try:
            job()
        except BaseException as e:  # noqa: BLE001
            failures.append(e)

    threads = [threading.Thread(target=guarded, args=(j,)) for j in jobs]
    for th in threads:
        th.start()
    for th in threads:
        th.join(120)
    if failures:
        raise failures[0]


def test_two_blocks_that_lock_and_change_a_row_are_serialized(rd):
    t = "locked"
    with rd.connect(autocommit=False) as a, rd.connect(autocommit=False) as b:
        a.execute(f"CREATE TABLE {t} (id int PRIMARY KEY, n int)")
        a.execute(f"INSERT INTO {t} VALUES (1, 10), (2, 20)")
        a.commit()
        for c in (a, b):
            assert c.execute(f"SELECT n FROM {t} WHERE id = 1 FOR UPDATE").fetchone() == (10,)
            c.execute(f"UPDATE {t} SET n = n + 1 WHERE id = 1")
        a.commit()
        with pytest.raises(psycopg.errors.SerializationFailure):
            b.commit()
        # What was only locked counts as read too.
        for c, mine, other in ((a, 1, 2), (b, 2, 1)):
            c.execute(f"SELECT n FROM {t} WHERE id = {other} FOR SHARE").fetchone()
            c.execute(f"UPDATE {t} SET n = 0 WHERE id = {mine}")
        b.commit()
        with pytest.raises(psycopg.errors.SerializationFailure):
            a.commit()
        assert a.execute(f"SELECT n FROM {t} ORDER BY id").fetchall() == [(11,), (0,)]


def test_ddl_is_seen_by_nobody_before_its_commit(rd, db):
    t = "fresh"
    with rd.connect(autocommit=False) as other:
        other.execute(f"CREATE TABLE {t} (id int PRIMARY KEY, n int)")
        other.execute(f"INSERT INTO {t} SELECT g, g FROM generate_series(1, 100) g")
        other.execute(f"CREATE MATERIALIZED VIEW {t}_m AS SELECT sum(n) AS s FROM {t}")
        other.execute(f"CREATE INDEX {t}_i ON {t} (n)")
        assert other.execute(f"SELECT s FROM {t}_m").fetchone() == (5050,)
        assert other.execute(f"SELECT id FROM {t} WHERE n = 7").fetchone() == (7,)
        with pytest.raises(psycopg.errors.UndefinedTable):
            db.execute(f"SELECT * FROM {t}")
        other.commit()
        assert db.execute(f"SELECT s FROM {t}_m").fetchone() == (5050,)
        db.execute(f"INSERT INTO {t} VALUES (101, 1)")
        assert db.execute(f"SELECT s FROM {t}_m").fetchone() == (5051,)
        with pytest.raises(psycopg.errors.UniqueViolation):
            db.execute(f"INSERT INTO {t} VALUES (50, 1)")
        # Two make the same name: the later commit fails whole.
        other.execute(f"CREATE TABLE {t}_2 (a int)")
        other.execute(f"INSERT INTO {t} VALUES (200, 0)")
        db.execute(f"CREATE TABLE {t}_2 (b int)")
        with pytest.raises(psycopg.errors.DuplicateTable):
            other.commit()
        assert other.execute(f"SELECT count(*) FROM {t}").fetchone() == (101,)


def test_ddl_and_writes_of_a_transaction_survive_a_kill_together(riverdelta):
    with riverdelta.connect(autocommit=False) as c:
        c.execute("CREATE TABLE k (id int PRIMARY KEY)")
        c.execute("INSERT INTO k SELECT generate_series(1, 1000)")
        c.execute("CREATE MATERIALIZED VIEW km AS SELECT count(*) AS n FROM k")
        c.commit()
        c.execute("CREATE TABLE never (id int)")
        c.execute("INSERT INTO k VALUES (5000)")
        riverdelta.restart(kill=True)
        c.close()
    with riverdelta.connect() as c:
        assert c.execute("SELECT n FROM km").fetchone() == (1000,)
        with pytest.raises(psycopg.errors.UndefinedTable):
            c.execute("SELECT * FROM never")
        with pytest.raises(psycopg.errors.UniqueViolation):
            c.execute("INSERT INTO k VALUES (7)")


def test_errors_say_what_they_are_about(db):
    t = "constrained"
    db.execute(f"CREATE TABLE {t} (id int PRIMARY KEY, n int NOT NULL, u int UNIQUE, CHECK (n > 0))")
    db.execute(f"INSERT INTO {t} VALUES (1, 1, 1)")
    for row, column, constraint in [("1, 1, 2", None, f"{t}_pkey"), ("2, NULL, 2", "n", None), ("2, 1, 1", None, f"{t}_u_key"), ("2, 0, 2", None, f"{t}_n_check")]:
        with pytest.raises(psycopg.errors.IntegrityError) as e:
            db.execute(f"INSERT INTO {t} VALUES ({row})")
        d = e.value.diag
        assert (d.schema_name, d.table_name, d.column_name, d.constraint_name) == ("public", t, column, constraint)


def test_copy_of_many_rows(rd, db, long):
    """A large COPY is held as columns until it ends: whole, with defaults, or not at all."""
    from test_wire import resident_mb

    rows = 3_000_000 if long else 60_000
    db.execute("CREATE TABLE many_rows (id int8 PRIMARY KEY, d int DEFAULT 7, s text NOT NULL CHECK (s <> 'bad'))")

    def copy(last: str):
        with db.cursor() as cur, cur.copy("COPY many_rows (s, id) FROM STDIN") as c:
            for at in range(0, rows, 1000):
                c.write("".join(f"text {n}\t{n}\n" for n in range(at, at + 1000)))
            c.write(last)

    for last, error in (("bad\t-1\n", psycopg.errors.CheckViolation), ("\\N\t-1\n", psycopg.errors.NotNullViolation), ("twice\t5\n", psycopg.errors.UniqueViolation)):
        with pytest.raises(error):
            copy(last)
    assert db.execute("SELECT count(*) FROM many_rows").fetchone() == (0,)
    before = resident_mb(rd)
    copy("")
    assert db.execute("SELECT count(*), sum(id), sum(d), max(s) FROM many_rows").fetchone() == (rows, rows * (rows - 1) // 2, 7 * rows, max(f"text {n}" for n in (rows - 1, 99_999, 9_999) if n < rows))
    # Beside the rows there is the set of their keys.
    assert resident_mb(rd) - before < 300 + rows * 500 // 1_000_000


def test_explain_tells_the_look_up(db):
    db.execute("CREATE TABLE looked (a int, b int)")
    db.execute("CREATE INDEX looked_a ON looked (a)")
    text = "\n".join(r[0] for r in db.execute("EXPLAIN SELECT b FROM looked WHERE a IN (1, 2)"))
    assert "public.looked_a on public.looked (look-up of 2 keys)" in text
    (told,) = db.execute("EXPLAIN (FORMAT json, SUMMARY) SELECT b FROM looked WHERE a IN (1, 2) ORDER BY b").fetchone()[0]
    assert told["Used Indexes"] == ["public.looked_a on public.looked (look-up of 2 keys)"] and told["Planning Time"] > 0
    assert told["Plan"]["Node Type"] == "Plan" and told["Plan"]["Plans"][0] == {"Node Type": "Finish", "Detail": "order by #0"}, told
    assert told["Plan"]["Plans"][1]["Plans"], told


def test_explain_tells_order_and_limit(db):
    db.execute("CREATE TABLE sorted (a int, b int)")
    text = [r[0] for r in db.execute("EXPLAIN SELECT b FROM sorted ORDER BY b DESC LIMIT 3 OFFSET 1")]
    assert text[0] == "Finish order by #0 desc, limit 3, offset 1", text


def test_explain_analyze_carries_the_statement_out(db):
    db.execute("CREATE TABLE ea (k int PRIMARY KEY, v int)")
    told = lambda sql: [r[0] for r in db.execute(sql).fetchall()]  # noqa: E731
    plan = told("EXPLAIN ANALYZE INSERT INTO ea SELECT g, g FROM generate_series(1, 30) g")
    assert "Actual Rows: 30" in plan and plan[-1].startswith("Execution Time: ") and any(line.startswith("Planning Time: ") for line in plan)
    assert db.execute("SELECT count(*) FROM ea").fetchone() == (30,)
    plan = told("EXPLAIN (ANALYZE, BUFFERS, TIMING off, SUMMARY off, COSTS false) SELECT * FROM ea WHERE k < 11")
    assert plan[-1] == "Actual Rows: 10" and not any("Time" in line for line in plan)
    assert "Actual" not in "".join(told("EXPLAIN (ANALYZE false) DELETE FROM ea"))
    assert "Actual Rows: 4" in told("EXPLAIN ANALYZE DELETE FROM ea WHERE k > 26 RETURNING *")
    db.execute("BEGIN READ ONLY")
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        db.execute("EXPLAIN ANALYZE DELETE FROM ea")
    db.execute("ROLLBACK")
    db.execute("BEGIN; EXPLAIN ANALYZE DELETE FROM ea; ROLLBACK")
    assert db.execute("SELECT count(*) FROM ea").fetchone() == (26,)
    for sql, state in [("(WAL) SELECT 1", "22023"), ("(TIMING) SELECT 1", "22023"), ("(NOPE) SELECT 1", "42601"), ("(ANALYZE, FORMAT nope) SELECT 1", "22023"),
                       ("(FORMAT yaml) SELECT 1", "0A000"), ("(BUFFERS maybe) SELECT 1", "42601"), ("ANALYZE SUBSCRIBE ea", "0A000"), ("ANALYZE SELECT 1 / (k - k) FROM ea", "22012")]:
        with pytest.raises(psycopg.Error) as e:
            db.execute(f"EXPLAIN {sql}")
        assert e.value.sqlstate == state, sql


def test_as_of_in_a_block_is_the_past(riverdelta):
    """What a block has written is not part of any past; what it has made has none."""
    riverdelta.sql("CREATE TABLE t (k int)", "INSERT INTO t VALUES (1), (2)", "CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM t")
    past = riverdelta.sql("SELECT mz_now()")[0][0]
    time.sleep(0.01)
    with riverdelta.connect(autocommit=False) as c:
        c.execute("INSERT INTO t VALUES (3)")
        assert c.execute("SELECT count(*) FROM t").fetchone() == (3,)
        assert c.execute(f"SELECT count(*) FROM t AS OF {past}").fetchone() == (2,)
        assert c.execute(f"SELECT n FROM n AS OF {past}").fetchone() == (2,)
        c.execute("CREATE TABLE made (k int)")
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            c.execute(f"SELECT * FROM made AS OF {past}")
        c.rollback()


def test_nothing_is_read_before_it_was_made(riverdelta):
    """Whatever serves the read; after a kill and after an ALTER TABLE that makes the table anew too."""
    r = riverdelta
    past = r.sql("SELECT mz_now()")[0][0]
    r.sql("CREATE TABLE made (k int)", "CREATE VIEW over AS SELECT count(*) AS n FROM made", "INSERT INTO made VALUES (1)")

    def refused(past):
        for query in ("SELECT * FROM made", "SELECT * FROM over", "SELECT * FROM made JOIN over ON k = n", "SUBSCRIBE made", "SUBSCRIBE over"):
            with pytest.raises(psycopg.errors.InvalidParameterValue):
                r.sql(f"{query} AS OF {past}")
        assert r.sql(f"SELECT count(*) <= 1 FROM made AS OF AT LEAST {past}") == [(True,)]

    refused(past)
    r.restart(kill=True)
    refused(past)
    past = r.sql("SELECT mz_now()")[0][0]
    assert r.sql(f"SELECT k FROM made AS OF {past}") == [(1,)]
    time.sleep(0.01)
    r.sql("ALTER TABLE made ADD COLUMN more int")
    refused(past)


@pytest.mark.parametrize("ty", ["numeric", "float8", "float4"])
def test_mz_now_is_compared_with_any_number(riverdelta, ty):
    """A view holds what its query gives, beyond the range of bigint and at NaN too."""
    riverdelta.sql(f"CREATE TABLE t (id int, x {ty})")
    riverdelta.sql("INSERT INTO t VALUES (1, 5.5), (2, 1e30), (3, -1e30), (4, 'NaN'), (5, NULL), (6, 9223372036854775807), (7, 1e15)")
    for n, condition in enumerate(["mz_now() < x", "mz_now() <= x", "x < mz_now()", "mz_now() >= x", "x = mz_now()", "NOT mz_now() < x"]):
        riverdelta.sql(f"CREATE MATERIALIZED VIEW v{n} AS SELECT id FROM t WHERE {condition}")
        assert riverdelta.sql(f"SELECT id FROM v{n} ORDER BY 1") == riverdelta.sql(f"SELECT id FROM t WHERE {condition} ORDER BY 1"), condition


def test_a_misplaced_time_is_told_by_its_name(riverdelta):
    for written in ["mz_now()", "now()", "CURRENT_DATE"]:
        with pytest.raises(psycopg.errors.FeatureNotSupported, match=re.escape(f"{written} here")):
            riverdelta.sql(f"CREATE MATERIALIZED VIEW m AS SELECT {written}")


@pytest.mark.parametrize("clause", ["CHECK ((SELECT 1) > 0)", "DEFAULT (SELECT 7)", "CHECK (EXISTS (SELECT 1))", "CHECK (a IN (SELECT 1))"])
def test_no_subquery_in_a_column(riverdelta, clause):
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="cannot use subquery in"):
        riverdelta.sql(f"CREATE TABLE t (a int {clause})")


def test_an_altered_table_keeps_rows_views_and_indexes_through_a_kill(riverdelta):
    r = riverdelta
    with r.connect() as db:
        db.execute("CREATE TABLE at (id serial PRIMARY KEY, name text, qty int)")
        db.execute("INSERT INTO at (name, qty) SELECT 'n' || g % 3, g FROM generate_series(1, 100) g")
        db.execute("CREATE MATERIALIZED VIEW at_sum AS SELECT name, sum(qty) AS s FROM at GROUP BY name")
        db.execute("CREATE INDEX at_name ON at (name)")
        db.execute("ALTER TABLE at ADD COLUMN price int NOT NULL DEFAULT 3, ALTER qty TYPE int USING qty * 1")
        db.execute("ALTER TABLE at ADD CHECK (price > 0)")
        sums = db.execute("SELECT * FROM at_sum ORDER BY 1").fetchall()
        assert sum(s for _, s in sums) == 5050
    r.restart(kill=True)
    with r.connect() as db:
        assert db.execute("SELECT * FROM at_sum ORDER BY 1").fetchall() == sums
        assert db.execute("SELECT count(*), sum(price) FROM at WHERE name = 'n1'").fetchone() == (34, 102)
        # What the sequence had given out is known.
        assert db.execute("INSERT INTO at (name, qty) VALUES ('n9', 1) RETURNING id, price").fetchone() == (101, 3)
        with pytest.raises(psycopg.errors.CheckViolation):
            db.execute("INSERT INTO at (price) VALUES (0)")
        db.execute("ALTER TABLE at RENAME COLUMN qty TO amount")
        db.execute("ALTER TABLE at RENAME TO at_new")
        db.execute("UPDATE at_new SET amount = 0 WHERE name = 'n9'")
        assert ("n9", 0) in db.execute("SELECT * FROM at_sum").fetchall()
    r.restart(kill=True)
    with r.connect() as db:
        assert ("n9", 0) in db.execute("SELECT * FROM at_sum").fetchall()


def test_views_over_a_replaced_view_compute_by_its_new_query(riverdelta):
    def seen(server):
        with server.connect() as c:
            return [c.execute(f"SELECT * FROM {r} ORDER BY 1").fetchall() for r in ("rm", "rx", "rw")] + c.execute("SELECT count(*) FROM rv_errors").fetchall()

    with riverdelta.connect() as a, riverdelta.connect() as b:
        a.execute("CREATE TABLE rt (id int PRIMARY KEY, v int); INSERT INTO rt VALUES (1, 1), (2, 2)")
        a.execute("CREATE VIEW r AS SELECT id, v FROM rt; CREATE VIEW rw AS SELECT v, count(*) FROM r GROUP BY v; CREATE INDEX rwi ON rw (v)")
        a.execute("CREATE MATERIALIZED VIEW rm AS SELECT sum(v) FROM r; CREATE MATERIALIZED VIEW rx AS SELECT sum + 1 AS n FROM rm")
        a.execute("CREATE MATERIALIZED VIEW rv WITH (ON ERROR = 'quarantine') AS SELECT 1 / (v - 1) FROM r")
        assert seen(riverdelta) == [[(3,)], [(4,)], [(1, 1), (2, 1)], (1,)]
        a.execute("BEGIN")
        a.execute("CREATE OR REPLACE VIEW r AS SELECT id, 5 AS v, v AS was FROM rt")
        assert a.execute("SELECT * FROM rx").fetchall() == [(11,)]
        assert b.execute("SELECT * FROM rx").fetchall() == [(4,)]
        b.execute("INSERT INTO rt VALUES (3, 3)")
        a.execute("COMMIT")
        new = [[(15,)], [(16,)], [(5, 3)], (0,)]
        assert seen(riverdelta) == new
        # One cannot be made by the new query: all stays as it was.
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="cannot replace view r because materialized view rm cannot be made from it"):
            a.execute("CREATE OR REPLACE VIEW r AS SELECT id, (random() * v)::int AS v, v AS was FROM rt")
        with pytest.raises(psycopg.errors.InvalidObjectDefinition):
            a.execute("CREATE OR REPLACE VIEW r AS SELECT 1 AS id, 1 AS v, 1 AS was FROM rx")
    riverdelta.restart(kill=True)
    assert seen(riverdelta) == new
    with riverdelta.connect() as a:
        a.execute("INSERT INTO rt VALUES (4, 4)")
        a.execute("CREATE OR REPLACE MATERIALIZED VIEW rm AS SELECT max(was)::bigint AS sum FROM r")
    assert seen(riverdelta) == [[(4,)], [(5,)], [(5, 4)], (0,)]


def test_a_block_that_has_written_reads_kept_views_by_their_queries(db):
    db.execute("CREATE TABLE ka (id int PRIMARY KEY, g int); CREATE TABLE kb (id int PRIMARY KEY, a int)")
    db.execute("INSERT INTO ka VALUES (1, 1), (2, 1), (3, 2); INSERT INTO kb VALUES (1, 1)")
    db.execute("CREATE MATERIALIZED VIEW ke AS SELECT a.id, EXISTS (SELECT FROM kb b WHERE b.a = a.id) AS has FROM ka a")
    db.execute("CREATE MATERIALIZED VIEW kc AS SELECT x.id, y.id AS other FROM ke x LEFT JOIN ke y ON y.has AND NOT x.has AND y.id <> x.id")
    db.execute("BEGIN; INSERT INTO kb VALUES (9, 2)")
    joined = "SELECT a.id, e.has FROM ka a {} JOIN ke e ON e.id = a.id AND a.g = 1 ORDER BY 1"
    assert db.execute(joined.format("LEFT")).fetchall() == [(1, True), (2, True), (3, None)]
    assert db.execute(joined.format("FULL")).fetchall() == [(1, True), (2, True), (3, None), (None, False)]
    assert db.execute("SELECT * FROM kc ORDER BY 1, 2").fetchall() == [(1, None), (2, None), (3, 1), (3, 2)]
    assert db.execute("SELECT count(*) FROM kc x LEFT JOIN kc y ON y.other = x.id AND x.other IS NULL LEFT JOIN ke z ON z.id > y.id").fetchone() == (4,)
    db.execute("COMMIT")


def test_a_kept_view_calls_the_fields_of_rows_as_their_columns_are_called(riverdelta):
    def seen():
        return [riverdelta.sql(f"SELECT * FROM {view} ORDER BY 1") for view in ("fj", "fw", "fi")]

    with riverdelta.connect() as a:
        a.execute("CREATE TABLE ft (id int PRIMARY KEY, name text); INSERT INTO ft VALUES (1, 'a')")
        a.execute("CREATE MATERIALIZED VIEW fj AS SELECT to_jsonb(t) AS j FROM ft t; CREATE MATERIALIZED VIEW fr AS SELECT t AS r FROM ft t")
        a.execute("CREATE VIEW fw AS SELECT to_jsonb(r) AS j, (r).name FROM fr; CREATE VIEW fi AS SELECT (r).name AS n FROM fr; CREATE INDEX ON fi (n)")
        a.execute("CREATE MATERIALIZED VIEW fe WITH (ON ERROR = 'quarantine') AS SELECT 1 / (id - 2) AS n, to_jsonb(t) AS j FROM ft t")
        a.execute("ALTER TABLE ft RENAME COLUMN name TO fname; INSERT INTO ft VALUES (2, 'b')")
        one, two = {"id": 1, "fname": "a"}, {"id": 2, "fname": "b"}
        want = [[(one,), (two,)], [(one, "a"), (two, "b")], [("a",), ("b",)]]
        assert seen() == want
        assert a.execute("SELECT j FROM fe").fetchall() == [(one,)] and a.execute("SELECT count(*) FROM fe_errors").fetchone() == (1,)
        assert a.execute("SELECT (r).fname FROM fr ORDER BY 1").fetchall() == [("a",), ("b",)]
        with pytest.raises(psycopg.errors.UndefinedColumn):
            a.execute("SELECT (r).name FROM fr")
    riverdelta.restart(kill=True)
    assert seen() == want
    with riverdelta.connect() as a:
        a.execute("ALTER TABLE ft ADD COLUMN name int; ALTER TABLE ft DROP COLUMN name; DELETE FROM ft WHERE id = 2")
        assert seen() == [w[:1] for w in want]
        a.execute("CREATE TABLE fh (r ft)")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match='table "fh" has a column of its row type'):
            a.execute("ALTER TABLE ft RENAME COLUMN fname TO again")


def test_views_forget_what_an_altered_table_does_not_promise_any_more(db):
    db.execute("CREATE TABLE vk (id int PRIMARY KEY, v int NOT NULL); CREATE MATERIALIZED VIEW vm AS SELECT id, v FROM vk")
    db.execute("CREATE VIEW vd AS SELECT DISTINCT id, v FROM vm; CREATE MATERIALIZED VIEW vn AS SELECT count(v), sum((v IS NULL)::int) FROM vm")
    db.execute("ALTER TABLE vk DROP CONSTRAINT vk_pkey, ALTER v DROP NOT NULL")
    db.execute("INSERT INTO vk VALUES (1, 1), (1, 1), (2, NULL)")
    assert db.execute("SELECT * FROM vd ORDER BY 1").fetchall() == [(1, 1), (2, None)]
    assert db.execute("SELECT * FROM vn").fetchall() == [(2, 1)]


def test_writers_beside_alter_table_lose_nothing(rd, db, t):
    db.execute(f"CREATE MATERIALIZED VIEW {t}_n AS SELECT count(*) AS n FROM {t}")
    done, errors = [0], []

    def write(base):
        with rd.connect() as c:
            for i in range(40):
                try:
                    c.execute(f"INSERT INTO {t} (k, v) VALUES ({base + i}, 1)")
                    done[0] += 1
                except psycopg.Error as e:
                    errors.append(e)

    writers = [threading.Thread(target=write, args=(1000 * n,)) for n in range(3)]
    [w.start() for w in writers]
    for i in range(6):
        db.execute(f"ALTER TABLE {t} ADD COLUMN c{i} int DEFAULT {i}")
    [w.join() for w in writers]
    assert not errors and done[0] == 120
    assert db.execute(f"SELECT count(*), count(c5) FROM {t}").fetchone()[0] == 120
    assert db.execute(f"SELECT n FROM {t}_n").fetchone() == (120,)


def test_a_block_reads_on_beside_alter_table_and_new_indexes(rd, db, t):
    db.execute(f"INSERT INTO {t} VALUES (1, 1), (2, 2)")
    db.execute(f"CREATE TABLE {t}_other (k int)")
    with rd.connect() as other:
        db.execute("BEGIN")
        assert db.execute(f"SELECT count(*) FROM {t}").fetchone() == (2,)
        other.execute(f"CREATE INDEX ON {t} (v)")
        other.execute(f"CREATE MATERIALIZED VIEW {t}_late AS SELECT sum(v) AS s FROM {t}")
        other.execute(f"INSERT INTO {t} VALUES (3, 3)")
        assert db.execute(f"SELECT k FROM {t} WHERE v = 2").fetchall() == [(2,)]
        assert db.execute(f"SELECT s FROM {t}_late").fetchone() == (3,)
        other.execute(f"ALTER TABLE {t} ADD COLUMN w int")
        with pytest.raises(psycopg.errors.SerializationFailure):
            db.execute(f"SELECT count(*) FROM {t}")
        db.execute("ROLLBACK")
        assert db.execute(f"SELECT s FROM {t}_late").fetchone() == (6,)


def test_copy_takes_the_rows_that_where_names(db):
    db.execute("CREATE TABLE cw (a int PRIMARY KEY, b text DEFAULT 'd', c int GENERATED ALWAYS AS (a + 1) STORED)")

    def copy(condition, data="1\n2\n3\n"):
        with db.cursor() as cur:
            with cur.copy(f"COPY cw (a) FROM STDIN WHERE {condition}") as c:
                c.write(data)
            return cur.rowcount

    assert copy("a > 1 AND b = 'd'") == 2
    assert db.execute("SELECT * FROM cw ORDER BY a").fetchall() == [(2, "d", 3), (3, "d", 4)]
    # What is left out meets no constraint.
    assert copy("a IS NOT NULL AND a NOT IN (2, 3)", "1\n2\n\\N\n") == 1
    for condition, error in [
        ("nope", psycopg.errors.UndefinedColumn),
        ("a", psycopg.errors.DatatypeMismatch),
        ("max(a) > 1", psycopg.errors.GroupingError),
        ("a IN (SELECT 1)", psycopg.errors.FeatureNotSupported),
        ("1 / (a - 2) > 0", psycopg.errors.DivisionByZero),
    ]:
        with pytest.raises(error):
            copy(condition, "20\n2\n")
    with pytest.raises(psycopg.errors.SyntaxError):
        db.execute("COPY cw TO STDOUT WHERE a > 1")
    assert db.execute("SELECT count(*) FROM cw").fetchone() == (3,)
