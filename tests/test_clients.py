"""Real drivers and tools, used as people use them."""

import asyncio
import datetime as dt
import decimal
import os
import shutil
import subprocess
import uuid

import asyncpg
import psycopg
import pytest
import sqlalchemy as sa
from psycopg.types.json import Jsonb

TABLES = [
    "CREATE TABLE items (id int PRIMARY KEY, name text NOT NULL, price numeric(10,2), tags text[], doc jsonb, made timestamptz, ok boolean DEFAULT true)",
    "INSERT INTO items VALUES (1, 'one', 1.50, '{a,b}', '{\"k\": 1}', '2024-01-01 00:00:00+00', true), (2, 'two', NULL, NULL, NULL, NULL, false)",
    "CREATE VIEW cheap AS SELECT id, name FROM items WHERE price < 10",
    "CREATE MATERIALIZED VIEW totals AS SELECT ok, count(*) AS n, sum(price) AS total FROM items GROUP BY ok",
    "CREATE INDEX totals_ok ON totals (ok)",
]


@pytest.fixture(scope="module")
def shop(rd):
    rd.sql(*TABLES)
    return rd


# --- psql -----------------------------------------------------------------------------------------


def psql(server, *args: str, stdin: str | None = None) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["psql", "-X", "-h", "127.0.0.1", "-p", str(server.port), "-U", "riverdelta", "-d", "riverdelta", "-v", "ON_ERROR_STOP=1", *args],
        input=stdin, capture_output=True, text=True, timeout=60, env={**os.environ, "PAGER": "cat", "PGCLIENTENCODING": "UTF8"},
    )


@pytest.mark.parametrize("command, expected", [
    (r"\d", ["items", "cheap", "totals"]),
    (r"\dt", ["items"]),
    (r"\dv", ["cheap"]),
    (r"\dm", ["totals"]),
    (r"\di", ["totals_ok"]),
    (r"\d items", ["id", "integer", "not null", "numeric(10,2)", "text[]", "jsonb", "timestamp with time zone", "true", "PRIMARY KEY"]),
    (r"\d cheap", ["id", "name"]),
    (r"\d+ totals", ["ok", "total", "numeric"]),
    (r"\dn", ["public"]),
    (r"\l", ["riverdelta", "UTF8"]),
    (r"\du", ["riverdelta"]),
    (r"\dT", []),
    (r"\df abs", ["abs"]),
    (r"\dx", []),
    (r"\conninfo", ["riverdelta"]),
    (r"\d nope*", []),
], ids=lambda v: v if isinstance(v, str) else "")
def test_psql_describes(shop, command, expected):
    r = psql(shop, "-c", command)
    assert "ERROR" not in r.stderr, r.stderr
    if expected:
        assert r.returncode == 0, r.stderr
    for word in expected:
        assert word in r.stdout, r.stdout


def test_psql_backslash_commands_all_run(shop):
    commands = """da dA des det deu dew df df+ dF dFd dg di di+ dl dL dm dm+ dn dn+ do dO dp dP drds dRp dRs ds dS dt dt+ dtS dT dT+ du du+ dv dv+ dx dX dy
        dE ddp db dc dC dD l l+ z dconfig conninfo encoding d+ x timing""".split() + ["d items", "d+ items", "d items_pkey", "d pg_class", "d+ pg_type", "sv cheap"]
    commands = ["\\" + c for c in commands]
    done = psql(shop, "-v", "ON_ERROR_STOP=0", stdin="\n".join([*commands, "SELECT 1 AS done"]) + ";\n")
    assert "ERROR" not in done.stderr + done.stdout, done.stderr
    assert "done" in done.stdout
    assert "items_pkey" in psql(shop, "-c", "\\di").stdout


def test_psql_runs_a_script(shop):
    script = r"""
\set n 41
SELECT :n + 1 AS answer \gset
\echo answer :answer
\x on
SELECT 1 AS a, 'x' AS b;
\x off
\pset null '-'
SELECT NULL AS n;
BEGIN;
INSERT INTO items (id, name) VALUES (50, 'fifty');
SELECT count(*) FROM items WHERE id = 50;
ROLLBACK;
SELECT count(*) FROM items WHERE id = 50;
\copy (SELECT id, name FROM items ORDER BY id) TO STDOUT WITH CSV HEADER
\timing on
SELECT 1 AS timed;
"""
    r = psql(shop, "-A", stdin=script)
    assert r.returncode == 0, r.stderr
    for line in ("answer 42", "a|1", "b|x", "id,name", "1,one", "2,two"):
        assert line in r.stdout.splitlines(), r.stdout


def test_psql_tells_errors(shop):
    r = psql(shop, "-c", "SELECT nope FROM items")
    assert r.returncode == 1
    assert 'column "nope" does not exist' in r.stderr
    assert "LINE 1: SELECT nope FROM items" in r.stderr and "^" in r.stderr


def test_psql_copies_in(shop):
    r = psql(shop, stdin="CREATE TABLE copied (a int, b text);\n\\copy copied FROM STDIN WITH CSV\n1,x\n2,\"y,z\"\n3,\n\\.\nSELECT count(*), count(b) FROM copied;\n")
    assert r.returncode == 0, r.stderr
    assert "COPY 3" in r.stdout and "3 |     2" in r.stdout


# --- psycopg --------------------------------------------------------------------------------------


def test_psycopg_types(shop):
    values = {
        "int4": 7, "int8": 1 << 40, "numeric": decimal.Decimal("1.50"), "float8": 1.5, "text": "é", "bool": True, "bytea": b"\0\xff",
        "date": dt.date(2024, 2, 29), "timestamptz": dt.datetime(2024, 2, 29, 12, tzinfo=dt.timezone.utc), "interval": dt.timedelta(days=1, seconds=2),
        "uuid": uuid.UUID(int=5), "int4[]": [1, 2, None], "text[]": ["a", "b,c"],
    }
    for binary in (False, True):
        with shop.connect() as c:
            cur = c.cursor(binary=binary)
            for ty, value in values.items():
                assert cur.execute(f"SELECT %s::{ty}, NULL::{ty}", [value]).fetchone() == (value, None), (ty, binary)
            assert cur.execute("SELECT %s::jsonb", [Jsonb({"a": [1, None]})]).fetchone() == ({"a": [1, None]},)


def test_psycopg_transactions(shop):
    with shop.connect(autocommit=False) as c:
        c.execute("INSERT INTO items (id, name) VALUES (60, 'sixty')")
        c.rollback()
        assert c.execute("SELECT count(*) FROM items WHERE id = 60").fetchone() == (0,)
        c.execute("INSERT INTO items (id, name) VALUES (60, 'sixty')")
        c.commit()
        c.execute("DELETE FROM items WHERE id = 60")
        c.commit()
        with pytest.raises(psycopg.errors.UniqueViolation):
            c.execute("INSERT INTO items (id, name) VALUES (1, 'again')")
            c.commit()
        c.rollback()
        with pytest.raises(psycopg.errors.DivisionByZero):
            c.execute("SELECT 1/0")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            c.execute("SELECT 1")
        c.rollback()


def test_psycopg_executemany_and_pipeline(shop):
    with shop.connect() as c:
        c.execute("CREATE TABLE many (a int, b text)")
        with c.cursor() as cur:
            cur.executemany("INSERT INTO many VALUES (%s, %s)", [(n, str(n)) for n in range(200)])
        with c.pipeline():
            cursors = [c.execute("SELECT b FROM many WHERE a = %s", [n]) for n in range(20)]
        assert [cur.fetchone() for cur in cursors] == [(str(n),) for n in range(20)]
        assert c.execute("SELECT count(*), sum(a) FROM many").fetchone() == (200, 19900)


def test_psycopg_prepared_statements(shop):
    with shop.connect(prepare_threshold=1) as c:
        for n in range(20):
            assert c.execute("SELECT %s::int + 1", [n]).fetchone() == (n + 1,)
        assert c.execute("SELECT count(*) > 0 FROM pg_prepared_statements").fetchone() in ((True,), (False,))


def test_psycopg_server_side_cursor(shop):
    with shop.connect(autocommit=False) as c:
        with c.cursor(name="big") as cur:
            cur.itersize = 100
            cur.execute("SELECT g FROM generate_series(1, 1000) g ORDER BY g")
            assert [r[0] for r in cur] == list(range(1, 1001))


@pytest.mark.parametrize("form", ["", "(FORMAT csv)", "(FORMAT binary)"])
def test_psycopg_copy(shop, form):
    with shop.connect() as c:
        c.execute("DROP TABLE IF EXISTS copies")
        c.execute("CREATE TABLE copies (a int, b text, c numeric)")
        rows = [(1, "x\ty\\z\n\"q\"", decimal.Decimal("1.50")), (2, None, None), (3, "", decimal.Decimal("-7"))]
        with c.cursor() as cur:
            if "csv" in form:
                with cur.copy(f"COPY copies FROM STDIN WITH {form}") as copy:
                    copy.write(b'1,"x\ty\\z\n""q""",1.50\n2,,\n3,"",-7\n')
            else:
                with cur.copy(f"COPY copies FROM STDIN {form and 'WITH ' + form}") as copy:
                    if form:
                        copy.set_types(["int4", "text", "numeric"])
                    for r in rows:
                        copy.write_row(r)
        assert c.execute("SELECT * FROM copies ORDER BY a").fetchall() == rows
        with c.cursor() as cur, cur.copy(f"COPY (SELECT * FROM copies ORDER BY a) TO STDOUT {form and 'WITH ' + form}") as copy:
            if "csv" not in form:
                copy.set_types(["int4", "text", "numeric"])
                assert list(copy.rows()) == rows
            else:
                assert b"".join(bytes(b) for b in copy) == b'1,"x\ty\\z\n""q""",1.50\n2,,\n3,"",-7\n'


def test_psycopg_binary_copy_takes_the_columns_modifiers(shop):
    with shop.connect() as c:
        c.execute("DROP TABLE IF EXISTS measured")
        c.execute("CREATE TABLE measured (n numeric(6,2), v varchar(3), b char(3))")
        with c.cursor() as cur, cur.copy("COPY measured FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(["numeric", "varchar", "text"])
            copy.write_row((decimal.Decimal("1.5"), "abc", "x"))
        assert c.execute("SELECT n::text, v, b::bytea FROM measured").fetchall() == [("1.50", "abc", b"x  ")]
        for row in [(decimal.Decimal("12345.6"), "a", "b"), (decimal.Decimal(1), "abcd", "b"), (decimal.Decimal(1), "a", "bcde")]:
            with pytest.raises(psycopg.DataError), c.cursor() as cur, cur.copy("COPY measured FROM STDIN (FORMAT binary)") as copy:
                copy.set_types(["numeric", "varchar", "text"])
                copy.write_row(row)


BAD_COPIES = {
    "a zero byte": ("", b"1\ta\0b\n", "22021"),
    "a zero byte in CSV": ("CSV", b"1,a\0b\n", "22021"),
    "a zero by its number": ("", b"1\ta\\000b\n", "22021"),
    "a byte that is no UTF-8, by its number": ("", b"1\t\\xff\n", "22021"),
    "a header of other names": ("(FORMAT csv, HEADER match)", b"b,a\n55,66\n", "22P04"),
    "a header of fewer names": ("(FORMAT text, HEADER match)", b"a\n5\t6\n", "22P04"),
}


@pytest.mark.parametrize("case", BAD_COPIES)
def test_psycopg_copy_of_what_is_no_row(shop, case):
    form, data, state = BAD_COPIES[case]
    with shop.connect() as c:
        c.execute("CREATE TABLE IF NOT EXISTS strict (a int, b text)")
        with pytest.raises(psycopg.Error) as e, c.cursor() as cur, cur.copy(f"COPY strict FROM STDIN {form}") as copy:
            copy.write(data)
        assert e.value.sqlstate == state, e.value
        with c.cursor() as cur, cur.copy("COPY strict FROM STDIN (FORMAT csv, HEADER match)") as copy:
            copy.write(b"a,b\n7,x\n")
        assert c.execute("DELETE FROM strict RETURNING a, b").fetchall() == [(7, "x")]


def test_psycopg_copy_that_fails_leaves_nothing(shop):
    with shop.connect() as c:
        c.execute("CREATE TABLE failing (a int)")
        with pytest.raises(psycopg.errors.InvalidTextRepresentation), c.cursor() as cur, cur.copy("COPY failing FROM STDIN") as copy:
            copy.write(b"1\nx\n")
        assert c.execute("SELECT count(*) FROM failing").fetchone() == (0,)
        with pytest.raises(KeyError), c.cursor() as cur, cur.copy("COPY failing FROM STDIN") as copy:
            copy.write(b"1\n")
            raise KeyError
        assert c.execute("SELECT count(*) FROM failing").fetchone() == (0,)


def test_psycopg_notices(shop):
    got = []
    with shop.connect() as c:
        c.add_notice_handler(lambda d: got.append((d.severity, d.sqlstate, d.message_primary)))
        c.execute("DROP TABLE IF EXISTS not_there")
        c.execute("COMMIT")
    assert got == [("NOTICE", "00000", 'table "not_there" does not exist, skipping'), ("WARNING", "25P01", "there is no transaction in progress")]


def test_psycopg_cancel(shop):
    with shop.connect() as c:
        import threading

        threading.Timer(0.5, c.cancel).start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            c.execute("SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b WHERE a + b < 0")
        assert c.execute("SELECT 1").fetchone() == (1,)


# --- asyncpg --------------------------------------------------------------------------------------


def test_asyncpg(shop):
    async def run():
        c = await asyncpg.connect(host="127.0.0.1", port=shop.port, user="riverdelta", database="riverdelta", timeout=20)
        try:
            assert await c.fetchval("SELECT $1::int + 1", 41) == 42
            row = await c.fetchrow("SELECT * FROM items WHERE id = $1", 1)
            assert row["price"] == decimal.Decimal("1.50") and row["tags"] == ["a", "b"] and row["ok"] is True
            assert row["made"] == dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
            assert await c.fetchval("SELECT row(1, 'a'::text)") == (1, "a")
            assert await c.fetchval("SELECT $1::interval", dt.timedelta(days=3)) == dt.timedelta(days=3)
            await c.execute("CREATE TYPE place AS (x int, label text)")
            assert (await c.fetchval("SELECT ROW(1, 'q')::place"))["label"] == "q"
            assert await c.fetchval("SELECT ($1::place[])[2]", [(1, "a"), (2, "b")]) == (2, "b")
            assert await c.fetchval("SELECT int4range(1, 5)") == asyncpg.Range(1, 5)
            await c.execute("CREATE TABLE a1 (a int, b text)")
            await c.executemany("INSERT INTO a1 VALUES ($1, $2)", [(n, str(n)) for n in range(50)])
            async with c.transaction():
                assert [r["a"] async for r in c.cursor("SELECT a FROM a1 ORDER BY a", prefetch=7)] == list(range(50))
            with pytest.raises(asyncpg.ZeroDivisionError if hasattr(asyncpg, "ZeroDivisionError") else asyncpg.DivisionByZeroError):
                await c.fetchval("SELECT 1 / $1::int", 0)
            with pytest.raises(asyncpg.UniqueViolationError):
                await c.execute("INSERT INTO items (id, name) VALUES (1, 'again')")
            await c.copy_records_to_table("a1", records=[(100, "x"), (101, None)])
            assert await c.fetchval("SELECT count(*) FROM a1 WHERE a >= 100") == 2
            stmt = await c.prepare("SELECT a, b FROM a1 WHERE a < $1 ORDER BY a")
            assert [a.name for a in stmt.get_attributes()] == ["a", "b"]
            assert len(await stmt.fetch(10)) == 10
            with pytest.raises(asyncio.TimeoutError):
                await c.fetchval("SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b WHERE a + b < 0", timeout=0.5)
            assert await c.fetchval("SELECT 1") == 1
            await c.reset()
        finally:
            await c.close()

    asyncio.run(run())


def test_asyncpg_pool(shop):
    async def run():
        async with asyncpg.create_pool(host="127.0.0.1", port=shop.port, user="riverdelta", database="riverdelta", min_size=4, max_size=8) as pool:
            assert await asyncio.gather(*(pool.fetchval("SELECT $1::int", n) for n in range(100))) == list(range(100))

    asyncio.run(run())


def test_asyncpg_prepares_again_after_alter_table(shop):
    async def run():
        c = await asyncpg.connect(host="127.0.0.1", port=shop.port, user="riverdelta", database="riverdelta", timeout=20)
        try:
            await c.execute("CREATE TABLE a2 (a int)")
            await c.execute("INSERT INTO a2 VALUES (1)")
            assert [tuple(r) for r in await c.fetch("SELECT * FROM a2")] == [(1,)]
            with shop.connect() as other:
                other.execute("ALTER TABLE a2 ADD COLUMN b text DEFAULT 'new'")
            assert [tuple(r) for r in await c.fetch("SELECT * FROM a2")] == [(1, "new")]
        finally:
            await c.close()

    asyncio.run(run())


def test_asyncpg_moves_a_portal(shop):
    """forward() is a MOVE by the portal's name, in a query of its own."""

    async def run():
        c = await asyncpg.connect(host="127.0.0.1", port=shop.port, user="riverdelta", database="riverdelta", timeout=20)
        try:
            async with c.transaction():
                cursor = await c.cursor("SELECT g FROM generate_series(1, 3000) g ORDER BY g")
                assert await cursor.forward(5) == 5
                assert await cursor.fetchval() == 6 if hasattr(cursor, "fetchval") else (await cursor.fetchrow())[0] == 6
                assert await cursor.forward(2000) == 2000
                assert [r[0] for r in await cursor.fetch(2)] == [2007, 2008]
                assert await cursor.forward(5000) == 992
                assert await cursor.fetchrow() is None
        finally:
            await c.close()

    asyncio.run(run())


def test_a_binary_cursor_sends_binary(shop):
    with shop.connect() as c, c.transaction():
        c.execute("DECLARE b BINARY CURSOR FOR SELECT 258::int, 'x'::text")
        result = c.pgconn.exec_(b"FETCH b")
        assert result.fformat(0) == 1 and result.get_value(0, 0) == b"\x00\x00\x01\x02" and result.get_value(0, 1) == b"x"


# --- SQLAlchemy -----------------------------------------------------------------------------------


def test_sqlalchemy(shop):
    engine = sa.create_engine(f"postgresql+psycopg://riverdelta@127.0.0.1:{shop.port}/riverdelta")
    meta = sa.MetaData()
    users = sa.Table("sa_users", meta, sa.Column("id", sa.Integer, primary_key=True, autoincrement=False), sa.Column("name", sa.String(20), nullable=False), sa.Column("at", sa.DateTime(timezone=True)))
    meta.create_all(engine)
    meta.create_all(engine)  # asks whether the table is there
    with engine.begin() as c:
        c.execute(users.insert(), [{"id": 1, "name": "ann"}, {"id": 2, "name": "bob"}])
    with engine.connect() as c:
        assert c.execute(sa.select(users.c.name).where(users.c.id > 1)).all() == [("bob",)]
        assert c.execute(sa.select(sa.func.count()).select_from(users)).scalar() == 2
    with pytest.raises(sa.exc.IntegrityError), engine.begin() as c:
        c.execute(users.insert(), {"id": 1, "name": "again"})
    # The level that a connection had is set again when it goes back.
    with engine.connect().execution_options(isolation_level="READ COMMITTED") as c:
        assert c.get_isolation_level() == "READ COMMITTED"
    with engine.connect() as c:
        assert c.get_isolation_level() == "SERIALIZABLE"
    meta.drop_all(engine)
    engine.dispose()


def test_sqlalchemy_reflection(shop):
    engine = sa.create_engine(f"postgresql+psycopg://riverdelta@127.0.0.1:{shop.port}/riverdelta")
    inspector = sa.inspect(engine)
    assert "public" in inspector.get_schema_names()
    assert "items" in inspector.get_table_names()
    assert "cheap" in inspector.get_view_names()
    assert "totals" in inspector.get_materialized_view_names()
    columns = {c["name"]: c for c in inspector.get_columns("items")}
    assert str(columns["price"]["type"]) == "NUMERIC(10, 2)"
    assert not columns["name"]["nullable"] and columns["tags"]["nullable"]
    assert inspector.get_pk_constraint("items")["constrained_columns"] == ["id"]
    assert inspector.get_foreign_keys("items") == []
    inspector.get_indexes("items")
    inspector.get_unique_constraints("items")
    inspector.get_check_constraints("items")
    inspector.get_table_comment("items")
    table = sa.Table("items", sa.MetaData(), autoload_with=engine)
    with engine.connect() as c:
        assert len(c.execute(sa.select(table)).all()) >= 2
    engine.dispose()


# --- node-postgres --------------------------------------------------------------------------------

NODE = r"""
const assert = require('assert');
const { Client, Pool } = require('pg');
const Cursor = require('pg-cursor');
(async () => {
  const config = { host: '127.0.0.1', port: +process.argv[2], user: 'riverdelta', database: 'riverdelta' };
  const c = new Client(config);
  await c.connect();
  assert.deepStrictEqual((await c.query('SELECT $1::int + 1 AS n', [41])).rows, [{ n: 42 }]);
  assert.deepStrictEqual((await c.query({ text: 'SELECT name FROM items WHERE id = $1', values: [1], name: 'by-id', rowMode: 'array' })).rows, [['one']]);
  assert.deepStrictEqual((await c.query({ text: 'SELECT name FROM items WHERE id = $1', values: [2], name: 'by-id', rowMode: 'array' })).rows, [['two']]);
  const many = await c.query('SELECT 1 AS a; SELECT 2 AS b');
  assert.deepStrictEqual(many.map(r => r.rows), [[{ a: 1 }], [{ b: 2 }]]);
  const one = (await c.query('SELECT doc, tags, made, price FROM items WHERE id = 1')).rows[0];
  assert.deepStrictEqual([one.doc, one.tags, one.made.toISOString(), one.price], [{ k: 1 }, ['a', 'b'], '2024-01-01T00:00:00.000Z', '1.50']);
  await assert.rejects(c.query('SELECT 1 / $1::int', [0]), e => e.code === '22012');
  await assert.rejects(c.query('SELECT nope'), e => e.code === '42703' && e.position === '8');
  await c.query('BEGIN'); await c.query("INSERT INTO items (id, name) VALUES (70, 'x')"); await c.query('ROLLBACK');
  assert.strictEqual((await c.query('SELECT id FROM items WHERE id = 70')).rowCount, 0);
  const cursor = c.query(new Cursor('SELECT g FROM generate_series(1, 10) g ORDER BY g'));
  assert.deepStrictEqual((await cursor.read(4)).map(r => r.g), [1, 2, 3, 4]);
  assert.deepStrictEqual((await cursor.read(100)).map(r => r.g), [5, 6, 7, 8, 9, 10]);
  await cursor.close();
  await c.end();
  const pool = new Pool({ ...config, max: 5 });
  const all = await Promise.all([...Array(50).keys()].map(n => pool.query('SELECT $1::int AS n', [n])));
  assert.deepStrictEqual(all.map(r => r.rows[0].n), [...Array(50).keys()]);
  await pool.end();
  console.log('done');
})().catch(e => { console.error(e); process.exit(1); });
"""


def test_node_postgres(shop, tmp_path):
    modules = os.path.join(os.environ.get("RIVERDELTA_CACHE", os.path.expanduser("~/.cache/riverdelta")), "node", "node_modules")
    assert shutil.which("node")
    script = tmp_path / "main.js"
    script.write_text(NODE)
    r = subprocess.run(["node", str(script), str(shop.port)], capture_output=True, text=True, timeout=60, env={**os.environ, "NODE_PATH": modules})
    assert (r.returncode, r.stdout) == (0, "done\n"), r.stderr


# --- Java -----------------------------------------------------------------------------------------


def test_pgjdbc(pg, riverdelta):
    """The program of `java/Shop.java` prints the same on PostgreSQL: statements, cursors, errors, metadata."""
    cache = os.environ.get("RIVERDELTA_CACHE", os.path.expanduser("~/.cache/riverdelta"))
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "java", "Shop.java")
    pg.sql("CREATE DATABASE jdbc")

    def run(url: str) -> list[str]:
        done = subprocess.run(["java", "-cp", os.path.join(cache, "java", "*"), program, url], capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.split("\n")

    want = run(f"jdbc:postgresql://127.0.0.1:{pg.port}/jdbc?user=postgres")
    assert run(f"jdbc:postgresql://127.0.0.1:{riverdelta.port}/riverdelta?user=riverdelta") == want
