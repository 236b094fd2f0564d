"""Clients that read, change and race: what is committed is a serial history, and every reader sees a state that it went through."""

import collections
import random
import threading

import psycopg
import pytest
from harness.subscribe import Subscription

CONFLICT = (psycopg.errors.SerializationFailure,)


def run_all(work, n: int):
    """Runs `work(i)` on n threads; the first failure is the test's."""
    failures = []

    def guarded(i):
        try:
            work(i)
        except Exception as e:  # noqa: BLE001
            failures.append(e)

    threads = [threading.Thread(target=guarded, args=(i,), daemon=True) for i in range(n)]
    for th in threads:
        th.start()
    for th in threads:
        th.join(120)
        assert not th.is_alive(), "a client hangs"
    if failures:
        raise failures[0]


def transaction(c, body):
    """Runs the block until it commits; returns how often it was turned back with 40001."""
    turned_back = 0
    while True:
        try:
            with c.transaction():
                body()
            return turned_back
        except CONFLICT:
            turned_back += 1


def test_autocommit_statements_are_run_again(rd, db):
    """UPDATE t SET v = v + 1 by many at once: each counts, none fails."""
    db.execute("CREATE TABLE c1 (k int PRIMARY KEY, v int)")
    db.execute("INSERT INTO c1 VALUES (1, 0), (2, 0)")

    def work(i):
        with rd.connect() as c:
            for n in range(25):
                c.execute("UPDATE c1 SET v = v + 1 WHERE k = %s", [1 + n % 2])
                c.execute("INSERT INTO c1 SELECT 1000 * %s + %s, v FROM c1 WHERE k = 1", [i + 1, n])

    run_all(work, 4)
    assert db.execute("SELECT k, v FROM c1 WHERE k <= 2 ORDER BY k").fetchall() == [(1, 52), (2, 48)]
    assert db.execute("SELECT count(*) FROM c1 WHERE k > 2").fetchone() == (100,)


def test_read_modify_write_blocks_are_serial(rd, db):
    """Each block reads a list and writes it back with its own name at the end. A serial history loses no name, repeats none, and every block
    that committed has read exactly what stands before its name."""
    db.execute("CREATE TABLE c2 (k int PRIMARY KEY, names text)")
    db.execute("INSERT INTO c2 VALUES (0, ''), (1, ''), (2, '')")
    read: dict[str, str] = {}
    turned_back = [0]

    def work(i):
        rng = random.Random(i)
        with rd.connect() as c:
            for n in range(15):
                name, k = f"{i}.{n};", rng.randrange(3)

                def body():
                    before = c.execute("SELECT names FROM c2 WHERE k = %s", [k]).fetchone()[0]
                    c.execute("UPDATE c2 SET names = %s WHERE k = %s", [before + name, k])
                    read[name] = before

                turned_back[0] += transaction(c, body)

    run_all(work, 5)
    lists = {k: names for k, names in db.execute("SELECT k, names FROM c2")}
    every = [name + ";" for names in lists.values() for name in names.split(";") if name]
    assert sorted(every) == sorted(read), "a block was lost or counted twice"
    for name, before in read.items():
        assert any((before + name) == names[: len(before + name)] for names in lists.values()), f"{name} had read {before!r}"
    assert turned_back[0] > 0, "nobody met anybody"


def test_no_write_skew(rd, db):
    """Two doctors look whether the other is there before they leave: reading the whole relation conflicts with any change of it."""
    db.execute("CREATE TABLE c3 (name text PRIMARY KEY, here bool)")

    for _ in range(8):
        db.execute("DELETE FROM c3")
        db.execute("INSERT INTO c3 VALUES ('a', true), ('b', true)")
        barrier = threading.Barrier(2)

        def work(i):
            with rd.connect() as c:
                first = True

                def body():
                    nonlocal first
                    there = c.execute("SELECT count(*) FROM c3 WHERE here").fetchone()[0]
                    if first:
                        first = False
                        barrier.wait(20)
                    if there > 1:
                        c.execute("UPDATE c3 SET here = false WHERE name = %s", ["ab"[i]])

                transaction(c, body)

        run_all(work, 2)
        assert db.execute("SELECT count(*) FROM c3 WHERE here").fetchone() == (1,)


def test_a_key_is_won_once(rd, db):
    """Clients race to insert the same keys, alone and in blocks with others: one wins each, the others get 23505 (40001 if they had read)."""
    db.execute("CREATE TABLE c4 (k int PRIMARY KEY, who int)")
    won: list[dict] = [{} for _ in range(5)]

    def work(i):
        rng = random.Random(i)
        with rd.connect() as c:
            for turn in range(12):
                keys = rng.sample(range(turn * 4, turn * 4 + 4), 2)
                try:
                    with c.transaction():
                        for k in keys:
                            c.execute("INSERT INTO c4 VALUES (%s, %s)", [k, i])
                    won[i].update({k: i for k in keys})
                except (psycopg.errors.UniqueViolation, *CONFLICT):
                    pass
                k = turn * 4 + 100_000
                try:
                    c.execute("INSERT INTO c4 VALUES (%s, %s)", [k, i])
                    won[i][k] = i
                except psycopg.errors.UniqueViolation:
                    pass

    run_all(work, 5)
    claims = collections.Counter(k for w in won for k in w)
    assert max(claims.values()) == 1, "a key was won twice"
    assert dict(db.execute("SELECT k, who FROM c4").fetchall()) == {k: w for winner in won for k, w in winner.items()}
    assert sum(k >= 100_000 for k in claims) == 12


def test_deleted_keys_are_free_and_moved_keys_are_taken(rd, db):
    db.execute("CREATE TABLE c5 (k int PRIMARY KEY)")
    db.execute("INSERT INTO c5 SELECT generate_series(1, 20)")

    def work(i):
        rng = random.Random(i)
        with rd.connect() as c:
            for _ in range(30):
                a, b = rng.sample(range(1, 41), 2)
                try:
                    c.execute("UPDATE c5 SET k = %s WHERE k = %s", [b, a])
                except psycopg.errors.UniqueViolation:
                    pass

    run_all(work, 4)
    # Moves keep the number of rows, and a key is never there twice.
    assert db.execute("SELECT count(*), count(DISTINCT k) FROM c5").fetchone() == (20, 20)


VIEWS = [
    "CREATE MATERIALIZED VIEW {p}_credits AS SELECT to_account AS account, sum(amount) AS credits FROM {t} GROUP BY to_account",
    "CREATE MATERIALIZED VIEW {p}_debits AS SELECT from_account AS account, sum(amount) AS debits FROM {t} GROUP BY from_account",
    # The same balances by an inner join, by an outer join, and without any.
    "CREATE MATERIALIZED VIEW {p}_balance AS SELECT c.account, credits - debits AS balance FROM {p}_credits c JOIN {p}_debits d ON c.account = d.account",
    "CREATE MATERIALIZED VIEW {p}_full AS SELECT account, coalesce(credits, 0) - coalesce(debits, 0) AS balance FROM {p}_credits FULL JOIN {p}_debits USING (account)",
    "CREATE MATERIALIZED VIEW {p}_signed AS SELECT account, sum(x) AS balance FROM (SELECT to_account AS account, amount AS x FROM {t} "
    "UNION ALL SELECT from_account, -amount FROM {t}) u GROUP BY account",
    "CREATE MATERIALIZED VIEW {p}_total AS SELECT (SELECT sum(balance) FROM {p}_full) AS by_outer_join, (SELECT sum(balance) FROM {p}_signed) AS by_union, "
    "(SELECT count(*) FROM {p}_full f JOIN {p}_signed s USING (account) WHERE f.balance <> s.balance) AS different, "
    "(SELECT count(*) FROM {p}_balance b LEFT JOIN {p}_full f ON b.account = f.account AND b.balance = f.balance WHERE f.account IS NULL) AS missing, "
    "(SELECT coalesce(sum(credits), 0) FROM {p}_credits) - (SELECT coalesce(sum(debits), 0) FROM {p}_debits) AS by_subtraction",
]
EMPTY, ZERO = (None, None, 0, 0, 0), (0, 0, 0, 0, 0)


def watch_totals(server, prefix: str, until: threading.Event):
    """Reads and subscribes the totals until then. Returns all that was seen."""
    seen = set()
    sub = Subscription(server, f"{prefix}_total")
    sub.on_close = lambda _, rows: seen.add(tuple(None if v is None else int(v) for v in rows[0])) if rows else None
    with server.connect() as c:
        while not until.is_set():
            seen.add(tuple(c.execute(f"SELECT * FROM {prefix}_total").fetchone()))
            # The same from scratch, in the same statement.
            a, b = c.execute(f"SELECT (SELECT sum(balance) FROM {prefix}_signed), (SELECT coalesce(sum(credits), 0) FROM {prefix}_credits) - (SELECT coalesce(sum(debits), 0) FROM {prefix}_debits)").fetchone()
            assert a in (None, 0) and b == 0
    assert not sub.bad, sub.bad[:5]
    sub.close()
    return seen


@pytest.mark.timeout(180)
def test_bank_transfers_sum_to_zero_at_every_time(rd, db, long):
    """The check from the literature on internal consistency: credits and debits of one stream of transfers, through different join paths.
    Money is neither made nor lost at any time that anybody sees."""
    db.execute("CREATE TABLE transfers (id int, from_account int, to_account int, amount int)")
    for v in VIEWS:
        db.execute(v.format(p="bank", t="transfers"))
    done, seen = threading.Event(), set()
    reader = threading.Thread(target=lambda: seen.update(watch_totals(rd, "bank", done)))
    reader.start()

    def work(i):
        rng = random.Random(i)
        with rd.connect() as c:
            for n in range(400 if long else 60):
                kind = rng.random()
                if kind < 0.6:
                    c.execute("INSERT INTO transfers VALUES (%s, %s, %s, %s)", [i * 1000 + n, rng.randrange(10), rng.randrange(10), rng.randrange(100)])
                elif kind < 0.75:
                    c.execute("DELETE FROM transfers WHERE id = %s", [i * 1000 + rng.randrange(n + 1)])
                elif kind < 0.9:
                    c.execute("UPDATE transfers SET amount = amount + 1, to_account = (to_account + 1) %% 10 WHERE id = %s", [i * 1000 + rng.randrange(n + 1)])
                else:
                    c.execute("INSERT INTO transfers SELECT %s + g, g %% 10, (g * 7) %% 10, g FROM generate_series(1, 50) g", [i * 1000 + 100_000])

    try:
        run_all(work, 3)
    finally:
        done.set()
        reader.join(60)
    assert ZERO in seen and seen <= {EMPTY, ZERO}, seen
    want = dict(db.execute("SELECT a, sum(x) FROM (SELECT to_account AS a, amount AS x FROM transfers UNION ALL SELECT from_account, -amount FROM transfers) u GROUP BY a").fetchall())
    assert dict(db.execute("SELECT * FROM bank_full").fetchall()) == want


def test_time_does_not_run_away_from_the_clock(rd, db):
    """Each tick takes two milliseconds of time; where they come faster, they wait for the clock."""
    import time

    db.execute("CREATE TABLE c6 (k int)")

    def work(i):
        with rd.connect() as c:
            for n in range(400):
                c.execute(f"INSERT INTO c6 VALUES ({n})")

    run_all(work, 3)
    ahead = db.execute("SELECT closed FROM rd_catalog.timeline").fetchone()[0] - time.time() * 1000
    assert ahead < 250, f"{ahead} ms ahead"


BESIDE_ALTER = {
    "drop table": ("DROP TABLE d CASCADE", "SELECT to_regclass('d') IS NULL AND to_regclass('dv') IS NULL"),
    "drop view": ("DROP MATERIALIZED VIEW dv", "SELECT to_regclass('dv') IS NULL"),
    "drop index": ("DROP INDEX di", "SELECT to_regclass('di') IS NULL"),
    "rename table": ("ALTER TABLE d RENAME TO e", "SELECT to_regclass('d') IS NULL"),
    "rename view": ("ALTER MATERIALIZED VIEW dv RENAME TO ev", "SELECT to_regclass('dv') IS NULL"),
    "comment": ("COMMENT ON TABLE d IS 'of mine'", "SELECT obj_description('d'::regclass) = 'of mine'"),
    "alter": ("ALTER TABLE d ADD COLUMN y int", "SELECT count(*) = 3 FROM information_schema.columns WHERE table_name = 'd' AND table_schema = current_schema"),
    "view on it": ("CREATE VIEW dw AS SELECT v FROM d", "SELECT count(*) = 0 FROM dw"),
    "replace": ("CREATE OR REPLACE VIEW dp AS SELECT id + 1 AS id FROM d", "SELECT pg_get_viewdef('dp'::regclass) LIKE '%+ 1%'"),
}


@pytest.mark.parametrize("name", BESIDE_ALTER)
def test_what_others_change_beside_an_alter_table_stays(rd, db, name):
    """A block's ALTER TABLE makes the table and what depends on it anew: it must not bring back what another session has changed since."""
    statement, holds = BESIDE_ALTER[name]
    schema = "beside_" + name.replace(" ", "_")
    db.execute(f"CREATE SCHEMA {schema}")
    with rd.connect() as a, rd.connect() as b:
        for c in (a, b):
            c.execute(f"SET search_path = {schema}")
        b.execute("CREATE TABLE d (id int PRIMARY KEY, v int)")
        b.execute("CREATE MATERIALIZED VIEW dv AS SELECT * FROM d")
        b.execute("CREATE INDEX di ON dv (v)")
        b.execute("CREATE VIEW dp AS SELECT id FROM d")
        a.execute("BEGIN")
        a.execute("ALTER TABLE d ADD COLUMN z int")
        b.execute(statement)
        with pytest.raises(CONFLICT):
            a.execute("COMMIT")
        assert b.execute(holds).fetchone() == (True,)


def test_changes_of_the_catalog_race_and_none_is_lost(rd, db):
    """Autocommit statements are planned again: each ALTER adds its column, no view that was dropped comes back."""
    db.execute("CREATE TABLE race (id int PRIMARY KEY, v int)")
    db.execute("INSERT INTO race VALUES (1, 0)")

    def work(i):
        with rd.connect() as c:
            for n in range(8):
                if i == 0:
                    c.execute(f"ALTER TABLE race ADD COLUMN c{n} int")
                elif i == 1:
                    c.execute(f"CREATE MATERIALIZED VIEW race_v{n} AS SELECT v FROM race")
                    c.execute(f"DROP MATERIALIZED VIEW race_v{n}")
                else:
                    c.execute("UPDATE race SET v = v + 1 WHERE id = 1")

    run_all(work, 3)
    assert db.execute("SELECT v FROM race").fetchone() == (8,)
    assert db.execute("SELECT count(*) FROM information_schema.columns WHERE table_name = 'race'").fetchone() == (10,)
    assert db.execute("SELECT count(*) FROM pg_class WHERE relname LIKE 'race_v%'").fetchone() == (0,)
