"""Which changes turn a block back: those of rows that it has read by their key, present or not, and no others."""

import threading

import psycopg
import pytest

SETUP = """
CREATE TABLE acc (id int PRIMARY KEY, v int);
INSERT INTO acc SELECT g, 0 FROM generate_series(1, 9) g;
CREATE TABLE wide (id bigint PRIMARY KEY, v int);
INSERT INTO wide SELECT g, 0 FROM generate_series(1, 9) g;
CREATE TABLE narrow (id smallint PRIMARY KEY, v int);
INSERT INTO narrow SELECT g, 0 FROM generate_series(1, 9) g;
CREATE TABLE num (id numeric PRIMARY KEY, v int);
INSERT INTO num SELECT g, 0 FROM generate_series(1, 9) g;
CREATE TABLE word (id varchar(10) PRIMARY KEY, v int);
INSERT INTO word SELECT 'w' || g, 0 FROM generate_series(1, 9) g;
CREATE TABLE day (id date PRIMARY KEY, v int);
INSERT INTO day SELECT date '2024-01-01' + g, 0 FROM generate_series(1, 9) g;
CREATE TABLE uid (id uuid PRIMARY KEY, v int);
INSERT INTO uid SELECT ('00000000-0000-0000-0000-00000000000' || g)::uuid, 0 FROM generate_series(1, 9) g;
CREATE TABLE pair (a int, b int, v int, PRIMARY KEY (a, b));
INSERT INTO pair SELECT g, g, 0 FROM generate_series(1, 9) g;
CREATE TABLE person (id int PRIMARY KEY, mail text UNIQUE, nick text, v int);
CREATE UNIQUE INDEX person_nick ON person (nick);
INSERT INTO person SELECT g, 'm' || g, 'n' || g, 0 FROM generate_series(1, 9) g;
CREATE TABLE loose (id int, v int);
INSERT INTO loose SELECT g, 0 FROM generate_series(1, 9) g;
"""

# What the block does (statements apart), what another session does meanwhile on other keys, and what it does on one of these.
CASES = [
    ("UPDATE acc SET v = 1 WHERE id = 1", "UPDATE acc SET v = 2 WHERE id = 2", "UPDATE acc SET v = 2 WHERE id = 1"),
    ("UPDATE acc SET v = 1 WHERE id = 1; UPDATE acc SET v = 1 WHERE id = 2", "UPDATE acc SET v = 2 WHERE id = 3", "DELETE FROM acc WHERE id = 2"),
    ("UPDATE acc SET v = 1 WHERE id = 1; SELECT * FROM acc WHERE id = 2", "UPDATE acc SET v = 2 WHERE id = 3", "UPDATE acc SET v = 2 WHERE id = 2"),
    ("SELECT * FROM acc WHERE id = 77; UPDATE acc SET v = 1 WHERE id = 1", "INSERT INTO acc VALUES (78, 0)", "INSERT INTO acc VALUES (77, 0)"),
    ("DELETE FROM acc WHERE id = 1; INSERT INTO acc VALUES (1, 5)", "DELETE FROM acc WHERE id = 2", "UPDATE acc SET v = 2 WHERE id = 1"),
    ("UPDATE wide SET v = 1 WHERE id = 1", "UPDATE wide SET v = 2 WHERE id = 2", "UPDATE wide SET v = 2 WHERE id = 1"),
    ("UPDATE wide SET v = 1 WHERE id = 1::bigint", "UPDATE wide SET v = 2 WHERE id = '2'", "UPDATE wide SET v = 2 WHERE id = '1'"),
    ("UPDATE narrow SET v = 1 WHERE id = 1", "UPDATE narrow SET v = 2 WHERE id = 2", "UPDATE narrow SET v = 2 WHERE id = 1"),
    ("UPDATE num SET v = 1 WHERE id = 1", "UPDATE num SET v = 2 WHERE id = 2", "UPDATE num SET v = 2 WHERE id = 1.00"),
    ("UPDATE word SET v = 1 WHERE id = 'w1'", "UPDATE word SET v = 2 WHERE id = 'w2'", "UPDATE word SET v = 2 WHERE id::text = 'w1'"),
    ("UPDATE day SET v = 1 WHERE id = '2024-01-02'", "UPDATE day SET v = 2 WHERE id = '2024-01-03'", "UPDATE day SET v = 2 WHERE id = date '2024-01-02'"),
    (
        "UPDATE uid SET v = 1 WHERE id = '00000000-0000-0000-0000-000000000001'",
        "UPDATE uid SET v = 2 WHERE id = '00000000-0000-0000-0000-000000000002'",
        "UPDATE uid SET v = 2 WHERE id = '00000000-0000-0000-0000-000000000001'::uuid",
    ),
    ("UPDATE acc SET v = 1 WHERE id IN (1, 2)", "UPDATE acc SET v = 2 WHERE id = 3", "UPDATE acc SET v = 2 WHERE id = 2"),
    ("UPDATE acc SET v = 1 WHERE id = ANY ('{1,2}')", "UPDATE acc SET v = 2 WHERE id = 3", "UPDATE acc SET v = 2 WHERE id = 2"),
    ("UPDATE acc SET v = 1 WHERE id = 1 OR id = 2", "UPDATE acc SET v = 2 WHERE id = 3", "UPDATE acc SET v = 2 WHERE id = 2"),
    ("UPDATE acc SET v = 1 WHERE id = 1 AND v >= 0", "UPDATE acc SET v = 2 WHERE id = 2", "UPDATE acc SET v = -1 WHERE id = 1"),
    ("SELECT * FROM acc WHERE id = 1 FOR UPDATE; UPDATE acc SET v = 1 WHERE id = 1", "UPDATE acc SET v = 2 WHERE id = 2", "UPDATE acc SET v = 2 WHERE id = 1"),
    ("UPDATE pair SET v = 1 WHERE a = 1 AND b = 1", "UPDATE pair SET v = 2 WHERE a = 2", "UPDATE pair SET v = 2 WHERE b = 1"),
    ("UPDATE pair SET v = 1 WHERE (a, b) IN ((1, 1), (2, 2))", "UPDATE pair SET v = 2 WHERE a = 3", "UPDATE pair SET v = 2 WHERE a = 2"),
    ("UPDATE person SET v = 1 WHERE mail = 'm1'", "UPDATE person SET v = 2 WHERE id = 2", "UPDATE person SET v = 2 WHERE id = 1"),
    # Another row takes the value that was looked up.
    ("SELECT * FROM person WHERE mail = 'new'; UPDATE person SET v = 1 WHERE id = 1", "UPDATE person SET mail = 'other' WHERE id = 2", "UPDATE person SET mail = 'new' WHERE id = 2"),
    ("UPDATE person SET v = 1 WHERE nick = 'n1'", "UPDATE person SET v = 2 WHERE nick = 'n2'", "UPDATE person SET nick = 'x' WHERE id = 1"),
    (
        "SELECT * FROM acc JOIN wide USING (id) WHERE acc.id = 1; UPDATE acc SET v = 1 WHERE id = 1",
        "UPDATE wide SET v = 2 WHERE id = 2",
        "UPDATE wide SET v = 2 WHERE id = 1",
    ),
    (
        "SELECT a.v, b.v FROM acc a LEFT JOIN person b ON b.id = a.id WHERE a.id = 1; UPDATE acc SET v = 1 WHERE id = 1",
        "UPDATE person SET v = 2 WHERE id = 2",
        "UPDATE person SET v = 2 WHERE id = 1",
    ),
    (
        "UPDATE acc SET v = (SELECT v FROM wide WHERE wide.id = acc.id) WHERE id = 1",
        "UPDATE wide SET v = 2 WHERE id = 2",
        "UPDATE wide SET v = 2 WHERE id = 1",
    ),
    (
        "UPDATE acc SET v = 1 WHERE id = 1 AND EXISTS (SELECT FROM wide WHERE id = 3)",
        "UPDATE wide SET v = 2 WHERE id = 2",
        "DELETE FROM wide WHERE id = 3",
    ),
    ("INSERT INTO loose SELECT id, v FROM acc WHERE id = 1", "UPDATE acc SET v = 2 WHERE id = 2", "UPDATE acc SET v = 2 WHERE id = 1"),
    ("INSERT INTO acc VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET v = acc.v + 1", "UPDATE acc SET v = 2 WHERE id = 2", "UPDATE acc SET v = 2 WHERE id = 1"),
    ("INSERT INTO acc VALUES (50, 5) ON CONFLICT (id) DO NOTHING", "INSERT INTO acc VALUES (51, 5)", "INSERT INTO acc VALUES (50, 5)"),
    ("INSERT INTO pair VALUES (1, 1, 5) ON CONFLICT (a, b) DO UPDATE SET v = 7", "UPDATE pair SET v = 2 WHERE a = 2", "UPDATE pair SET v = 2 WHERE a = 1"),
    ("INSERT INTO person VALUES (60, 'm1') ON CONFLICT (mail) DO UPDATE SET v = 7", "UPDATE person SET v = 2 WHERE id = 2", "UPDATE person SET v = 2 WHERE id = 1"),
    ("SELECT sum(v), count(*) FROM acc WHERE id = 1; UPDATE acc SET v = 1 WHERE id = 2", "UPDATE acc SET v = 2 WHERE id = 3", "UPDATE acc SET v = 2 WHERE id = 1"),
    # Rows that no key tells: the relation counts. An operator that only looks like equality binds no key.
    ("UPDATE loose SET v = 1 WHERE id = 1", None, "UPDATE loose SET v = 2 WHERE id = 2"),
    ("UPDATE word SET v = 1 WHERE id ~ 'w1'", None, "INSERT INTO word VALUES ('w11', 0)"),
    ("UPDATE acc SET v = 1 WHERE id > 8", None, "INSERT INTO acc VALUES (100, 0)"),
    ("UPDATE acc SET v = 1 WHERE id = 1 OR v = 100", None, "UPDATE acc SET v = 100 WHERE id = 5"),
    ("SELECT * FROM acc a JOIN acc b ON b.id = a.v WHERE a.id = 1; UPDATE acc SET v = 1 WHERE id = 1", None, "INSERT INTO acc VALUES (0, 0)"),
]


NAMES = ["acc", "wide", "narrow", "num", "word", "day", "uid", "pair", "person", "loose"]
# One string is one transaction.
RESET = "".join(f"DELETE FROM {name};" for name in NAMES) + "".join(line for line in SETUP.splitlines() if line.startswith("INSERT"))


@pytest.fixture
def tables(db):
    db.execute(SETUP)
    yield db
    db.execute("DROP TABLE " + ", ".join(NAMES))


def outcome(rd, block: str, other: str) -> bool:
    """Whether the block is turned back if the other statement commits before it."""
    with rd.connect() as a, rd.connect() as b:
        a.execute("BEGIN")
        for statement in block.split("; "):
            a.execute(statement)
        b.execute(other)
        try:
            a.execute("COMMIT")
            return False
        except psycopg.errors.SerializationFailure:
            a.execute("ROLLBACK")
            return True


def test_a_block_conflicts_with_the_keys_that_it_has_read(rd, tables):
    wrong = []
    for block, apart, meets in CASES:
        for other, expected in [(apart, False), (meets, True)]:
            if other is None:
                continue
            tables.execute(RESET)
            if outcome(rd, block, other) != expected:
                wrong.append((block, other, "no conflict" if expected else "conflict"))
    assert not wrong, wrong


@pytest.mark.parametrize("cast", ["", "::int", "::bigint", "::text::int"])
def test_parameters_bind_keys(rd, tables, cast):
    for table in ["acc", "wide"]:
        with rd.connect() as a, rd.connect() as b:
            a.execute("BEGIN")
            a.execute(f"SELECT * FROM {table} WHERE id = %s{cast}", [1])
            a.execute(f"UPDATE {table} SET v = v + 1 WHERE id = %s{cast}", [2])
            b.execute(f"UPDATE {table} SET v = v + 1 WHERE id = %s", [3])
            a.execute("COMMIT")


def test_a_key_of_a_later_constraint_is_exact_too(rd, tables):
    """The unique index comes between the first statement of the block and its look-up."""
    with rd.connect() as a, rd.connect() as b:
        a.execute("BEGIN")
        a.execute("SELECT * FROM wide WHERE id = 1")
        b.execute("UPDATE loose SET v = 3 WHERE id = 3")
        b.execute("CREATE UNIQUE INDEX loose_id ON loose (id)")
        with pytest.raises(psycopg.errors.SerializationFailure):
            a.execute("SELECT * FROM loose WHERE id = 3")
            a.execute("UPDATE wide SET v = 1 WHERE id = 1")
            a.execute("COMMIT")


def test_blocks_that_take_an_advisory_lock_first_wait_in_line(rd, tables):
    """As the documentation advises: none of them is turned back, and no increment is lost."""

    def work():
        with rd.connect() as c:
            for _ in range(10):
                c.execute("BEGIN")
                c.execute("SELECT pg_advisory_xact_lock(1)")
                v = c.execute("SELECT v FROM acc WHERE id = 1").fetchone()[0]
                c.execute("UPDATE acc SET v = %s WHERE id = 1", [v + 1])
                c.execute("COMMIT")

    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join(120) for t in threads]
    assert tables.execute("SELECT v FROM acc WHERE id = 1").fetchone() == (40,)
