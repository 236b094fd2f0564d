"""Statements that write through foreign keys, WITH, MERGE and views: no orphan ever, under races and kills, and every view equals its query."""

import random

import psycopg
import pytest
from test_concurrency import run_all, transaction

REFUSED = (psycopg.errors.ForeignKeyViolation, psycopg.errors.SerializationFailure)


@pytest.mark.parametrize("action", ["NO ACTION", "CASCADE", "SET NULL"])
def test_no_orphan_when_children_come_while_parents_go(rd, db, action):
    """Half the clients insert children, half delete and make parents. Whatever commits in which order, every child has its parent."""
    p, c = f"p_{action[:2].lower()}", f"c_{action[:2].lower()}"
    db.execute(f"CREATE TABLE {p} (id int PRIMARY KEY)")
    db.execute(f"CREATE TABLE {c} (id serial PRIMARY KEY, pid int REFERENCES {p} ON DELETE {action})")
    db.execute(f"CREATE MATERIALIZED VIEW {c}_orphans AS SELECT count(*) AS n FROM {c} WHERE pid IS NOT NULL AND pid NOT IN (SELECT id FROM {p})")
    db.execute(f"INSERT INTO {p} SELECT generate_series(1, 6)")

    def work(i):
        rng = random.Random(i)
        with rd.connect() as conn:
            for _ in range(25):
                k = rng.randrange(1, 7)
                try:
                    if i % 2:
                        conn.execute(f"DELETE FROM {p} WHERE id = %s", [k])
                        conn.execute(f"INSERT INTO {p} VALUES (%s) ON CONFLICT DO NOTHING", [k])
                    elif rng.random() < 0.5:
                        conn.execute(f"INSERT INTO {c} (pid) VALUES (%s)", [k])
                    else:
                        with conn.transaction():
                            conn.execute(f"INSERT INTO {c} (pid) VALUES (%s)", [k])
                            conn.execute(f"INSERT INTO {c} (pid) VALUES (%s)", [k % 6 + 1])
                except REFUSED:
                    pass
                assert conn.execute(f"SELECT n FROM {c}_orphans").fetchone() == (0,)

    run_all(work, 4)
    assert db.execute(f"SELECT count(*) FROM {c} WHERE pid IS NOT NULL AND pid NOT IN (SELECT id FROM {p})").fetchone() == (0,)


def test_a_child_in_an_open_block_meets_a_deleted_parent(rd, db):
    """The block has inserted the child, the parent goes, the block commits: it is refused."""
    db.execute("CREATE TABLE fp (id int PRIMARY KEY)")
    db.execute("CREATE TABLE fc (pid int REFERENCES fp)")
    db.execute("INSERT INTO fp VALUES (1)")
    with rd.connect() as one:
        one.execute("BEGIN")
        one.execute("INSERT INTO fc VALUES (1)")
        db.execute("DELETE FROM fp WHERE id = 1")
        with pytest.raises(REFUSED):
            one.execute("COMMIT")
    assert db.execute("SELECT count(*) FROM fc").fetchone() == (0,)


def test_a_cascade_misses_no_child_that_comes_meanwhile(rd, db):
    """The block has deleted the parent and its children, another child comes, the block commits: 40001, and all of it stands."""
    db.execute("CREATE TABLE gp (id int PRIMARY KEY)")
    db.execute("CREATE TABLE gc (id int PRIMARY KEY, pid int REFERENCES gp ON DELETE CASCADE)")
    db.execute("INSERT INTO gp VALUES (1)")
    db.execute("INSERT INTO gc VALUES (1, 1)")
    with rd.connect() as one:
        one.execute("BEGIN")
        one.execute("DELETE FROM gp")
        db.execute("INSERT INTO gc VALUES (2, 1)")
        with pytest.raises(psycopg.errors.SerializationFailure):
            one.execute("COMMIT")
    assert db.execute("SELECT count(*) FROM gc JOIN gp ON gp.id = pid").fetchone() == (2,)


def test_constraints_survive_a_kill(riverdelta):
    with riverdelta.connect() as c:
        c.execute("CREATE TABLE kp (id int PRIMARY KEY, v int)")
        c.execute("CREATE TABLE kc (id int PRIMARY KEY, pid int REFERENCES kp ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED)")
        c.execute("CREATE VIEW kv AS SELECT id, v FROM kp WHERE v < 10 WITH CHECK OPTION")
        c.execute("INSERT INTO kp VALUES (1, 1), (2, 2)")
        c.execute("INSERT INTO kc VALUES (1, 1), (2, 2), (3, 2)")
        c.execute("ALTER TABLE kp ADD COLUMN w int DEFAULT 5")
    riverdelta.restart(kill=True)
    with riverdelta.connect() as c:
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            c.execute("INSERT INTO kc VALUES (4, 9)")
        with pytest.raises(psycopg.errors.WithCheckOptionViolation):
            c.execute("INSERT INTO kv VALUES (5, 50)")
        c.execute("DELETE FROM kp WHERE id = 2")
        assert c.execute("SELECT id FROM kc").fetchall() == [(1,)]
        with pytest.raises(psycopg.errors.DependentObjectsStillExist):
            c.execute("DROP TABLE kp")


def test_merge_by_many_is_serial(rd, db):
    """Each MERGE inserts a counter or counts it up; none is lost."""
    db.execute("CREATE TABLE mc (k int PRIMARY KEY, n int)")

    def work(i):
        with rd.connect() as c:
            for n in range(20):
                merge = "MERGE INTO mc USING (SELECT %s::int AS k) s ON mc.k = s.k WHEN MATCHED THEN UPDATE SET n = n + 1 WHEN NOT MATCHED THEN INSERT VALUES (s.k, 1)"
                if n % 2:
                    c.execute(merge, [n % 3])
                else:
                    transaction(c, lambda: c.execute(merge, [n % 3]))

    db.execute("INSERT INTO mc VALUES (0, 0), (1, 0), (2, 0)")
    run_all(work, 3)
    assert db.execute("SELECT sum(n) FROM mc").fetchone() == (60,)


def test_views_follow_every_kind_of_write(db):
    """After each statement the materialized view equals its query."""
    db.execute("CREATE TABLE wp (id int PRIMARY KEY, kind text DEFAULT 'a')")
    db.execute("CREATE TABLE wc (id int PRIMARY KEY, pid int REFERENCES wp ON DELETE CASCADE ON UPDATE CASCADE, v numeric)")
    db.execute("CREATE VIEW wv AS SELECT id, kind FROM wp WHERE id > 0 WITH CHECK OPTION")
    query = "SELECT kind, count(wc.id) AS n, sum(v) AS total FROM wp LEFT JOIN wc ON wc.pid = wp.id GROUP BY kind"
    db.execute(f"CREATE MATERIALIZED VIEW wm AS {query}")
    statements = [
        "INSERT INTO wv VALUES (1, 'x'), (2, 'y'), (3, DEFAULT)",
        "INSERT INTO wc SELECT g, g % 3 + 1, g / 2.0 FROM generate_series(1, 30) g",
        "WITH d AS (DELETE FROM wc WHERE v < 2 RETURNING *), i AS (INSERT INTO wp VALUES (9, 'from d') RETURNING id) INSERT INTO wc SELECT d.id + 100, 3, v FROM d, i",
        "UPDATE wp SET id = id + 10 WHERE kind IN ('x', 'y')",
        "MERGE INTO wc USING (SELECT id, 5 AS v FROM wc WHERE id % 2 = 0 UNION ALL SELECT 500, 1) s ON s.id = wc.id"
        " WHEN MATCHED AND wc.v > 10 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, 3, s.v)",
        "UPDATE wv SET kind = 'z' WHERE id = 11",
        "DELETE FROM wv WHERE kind = 'y'",
        "INSERT INTO wc VALUES (500, 11, 7) ON CONFLICT (id) DO UPDATE SET pid = excluded.pid, v = (SELECT max(v) FROM wc)",
        "TRUNCATE wp CASCADE",
    ]
    for s in statements:
        db.execute(s)
        assert sorted(db.execute("SELECT * FROM wm").fetchall()) == sorted(db.execute(query).fetchall()), s
    assert db.execute("SELECT count(*) FROM wc").fetchone() == (0,)


def test_computed_keys_survive_a_kill(riverdelta):
    """Unique indexes on expressions and of some rows hold after a restart, and with rows that were there."""
    with riverdelta.connect() as c:
        c.execute("CREATE TABLE ck (id int PRIMARY KEY, addr text, live boolean)")
        c.execute("INSERT INTO ck VALUES (1, 'A', true), (2, 'b', false), (3, 'b2', false)")
        c.execute("CREATE UNIQUE INDEX ck_addr ON ck (lower(addr))")
        c.execute("CREATE UNIQUE INDEX ck_live ON ck (live) WHERE live")
    riverdelta.restart(kill=True)
    with riverdelta.connect() as c:
        for row in ["(4, 'a', NULL)", "(4, 'd', true)"]:
            with pytest.raises(psycopg.errors.UniqueViolation):
                c.execute(f"INSERT INTO ck VALUES {row}")
        assert c.execute("INSERT INTO ck VALUES (4, 'B', NULL) ON CONFLICT (lower(addr)) DO UPDATE SET live = NULL RETURNING id").fetchone() == (2,)
        c.execute("INSERT INTO ck VALUES (5, 'd', false)")


def test_what_is_not_valid_stands_until_it_is_validated(riverdelta):
    with riverdelta.connect() as a:
        a.execute("CREATE TABLE np (id int PRIMARY KEY); CREATE TABLE nc (id int PRIMARY KEY, pid int, n int); INSERT INTO np VALUES (1); INSERT INTO nc VALUES (1, 9, -1)")
        a.execute("ALTER TABLE nc ADD CONSTRAINT fk FOREIGN KEY (pid) REFERENCES np NOT VALID, ADD CONSTRAINT pos CHECK (n > 0) NOT VALID")
    riverdelta.restart(kill=True)
    with riverdelta.connect() as a, riverdelta.connect() as b:
        # The table is made anew with the row that breaks both, and takes no other.
        a.execute("ALTER TABLE nc ADD COLUMN more int DEFAULT 1")
        for sql, error in [("INSERT INTO nc VALUES (2, 9, 1)", psycopg.errors.ForeignKeyViolation), ("INSERT INTO nc VALUES (2, 1, 0)", psycopg.errors.CheckViolation),
                           ("ALTER TABLE nc VALIDATE CONSTRAINT fk", psycopg.errors.ForeignKeyViolation),
                           ("ALTER TABLE nc VALIDATE CONSTRAINT pos", psycopg.errors.CheckViolation)]:
            with pytest.raises(error):
                a.execute(sql)
        a.execute("BEGIN; ALTER TABLE nc ADD COLUMN again int; INSERT INTO np VALUES (2)")
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            a.execute("INSERT INTO nc VALUES (3, 9, 1)")
        a.execute("ROLLBACK")
        # Validated beside a writer: one of the two does not go through.
        a.execute("UPDATE nc SET pid = 1, n = 1")
        b.execute("BEGIN; UPDATE nc SET more = 2")
        a.execute("ALTER TABLE nc VALIDATE CONSTRAINT pos, VALIDATE CONSTRAINT fk")
        with pytest.raises(psycopg.errors.SerializationFailure):
            b.execute("COMMIT")
        valid = "SELECT bool_and(convalidated) FROM pg_constraint WHERE conrelid = 'nc'::regclass"
        assert a.execute(valid).fetchone() == (True,)
    riverdelta.restart(kill=True)
    with riverdelta.connect() as a:
        assert a.execute(valid).fetchone() == (True,)
        assert a.execute("SELECT * FROM nc").fetchall() == [(1, 1, 1, 1)]


def test_keys_that_wait_for_the_commit(riverdelta):
    with riverdelta.connect() as a, riverdelta.connect() as b:
        a.execute("CREATE TABLE dk (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, v int); CREATE MATERIALIZED VIEW dm AS SELECT id, count(*) FROM dk GROUP BY id")
        a.execute("INSERT INTO dk VALUES (1, 1)")
        a.execute("BEGIN; INSERT INTO dk VALUES (1, 2)")
        assert a.execute("SELECT count(*), count(DISTINCT id) FROM dk").fetchone() == (2, 1)
        assert a.execute("SELECT * FROM dm").fetchall() == [(1, 2)]
        with pytest.raises(psycopg.errors.UniqueViolation):
            a.execute("COMMIT")
        a.execute("BEGIN; INSERT INTO dk VALUES (1, 2); UPDATE dk SET id = 2 WHERE v = 1")
        a.execute("COMMIT")
        # Two at once.
        a.execute("BEGIN; INSERT INTO dk VALUES (7, 1)")
        b.execute("INSERT INTO dk VALUES (7, 2)")
        with pytest.raises(psycopg.errors.UniqueViolation):
            a.execute("COMMIT")
    riverdelta.restart(kill=True)
    with riverdelta.connect() as a:
        assert a.execute("SELECT * FROM dk ORDER BY id").fetchall() == [(1, 2), (2, 1), (7, 2)]
        with pytest.raises(psycopg.errors.UniqueViolation):
            a.execute("INSERT INTO dk VALUES (2, 2)")


def test_all_that_keeps_a_table_from_going_is_told(pg, db):
    """Of one table, of several, with views and foreign keys: the lines that PostgreSQL tells."""
    pg.sql("CREATE DATABASE kept")
    with psycopg.connect(pg.dsn.replace("dbname=postgres", "dbname=kept"), autocommit=True) as judge:
        told = []
        for c in (judge, db):
            c.execute("CREATE TABLE kept_p (id int PRIMARY KEY)")
            c.execute("CREATE TABLE kept_c (id int PRIMARY KEY, p int REFERENCES kept_p, self int REFERENCES kept_c)")
            c.execute("CREATE VIEW kept_v AS SELECT * FROM kept_p")
            c.execute("CREATE VIEW kept_w AS SELECT * FROM kept_c")
            mine = []
            for drop in ("kept_p", "kept_c", "kept_p, kept_c", "kept_c, kept_p"):
                with pytest.raises(psycopg.errors.DependentObjectsStillExist) as e:
                    c.execute(f"DROP TABLE {drop}")
                mine.append((e.value.diag.message_primary, sorted(e.value.diag.message_detail.splitlines()), e.value.diag.message_hint))
            c.execute("DROP VIEW kept_v, kept_w")
            c.execute("DROP TABLE kept_p, kept_c")
            told.append(mine)
        assert told[0] == told[1]
