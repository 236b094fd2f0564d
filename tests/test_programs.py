"""What programs and libraries ask of the system relations, and what they are told besides, as PostgreSQL answers it.

The queries are those of Drizzle, Sequelize, TypeORM and gorm, cut to what they read; each is sent to both servers over one schema.
"""

import corpus
import psycopg
import pytest

SCHEMA = """
CREATE SCHEMA prog;
CREATE TYPE prog.role AS ENUM ('admin', 'user');
CREATE TABLE prog.users (zip text, id serial PRIMARY KEY, name varchar(50) NOT NULL DEFAULT 'anon', email text UNIQUE, roles prog.role[] DEFAULT '{}', role prog.role,
  amount numeric(10,2), big bigint);
COMMENT ON COLUMN prog.users.name IS 'the name';
CREATE INDEX users_name ON prog.users (name, amount DESC);
CREATE UNIQUE INDEX users_email_low ON prog.users (lower(email));
CREATE TABLE prog.posts (id int PRIMARY KEY, uid int REFERENCES prog.users);
"""

QUERIES = {
    "drizzle tells the indexes of constraints from others": """
        SELECT idx.indexrelname AS index_name, idx.relname AS table_name, schemaname, CASE WHEN con.conname IS NOT NULL THEN 1 ELSE 0 END AS by_constraint
        FROM pg_stat_user_indexes idx LEFT JOIN pg_constraint con ON con.conindid = idx.indexrelid AND con.contype <> 'f'
        WHERE schemaname = 'prog' GROUP BY 1, 2, 3, 4 ORDER BY 1""",
    "sequelize reads comments through the statistics": """
        SELECT c.column_name, (SELECT d.description FROM pg_statio_all_tables st JOIN pg_description d ON d.objoid = st.relid
        WHERE c.ordinal_position = d.objsubid AND c.table_name = st.relname AND st.schemaname = 'prog') AS comment
        FROM information_schema.columns c WHERE c.table_schema = 'prog' AND c.table_name = 'users' ORDER BY ordinal_position""",
    "typeorm asks for each column's type by its name": """
        SELECT column_name, ('"' || udt_schema || '"."' || udt_name || '"')::regtype::text AS regtype, format_type(a.atttypid, a.atttypmod)
        FROM information_schema.columns LEFT JOIN pg_attribute a ON a.attname = column_name AND a.attrelid = 'prog.users'::regclass
        WHERE table_schema = 'prog' AND table_name = 'users' ORDER BY ordinal_position""",
    "gorm takes columns as they come": """
        SELECT c.column_name, c.udt_name, pd.description FROM information_schema.columns c JOIN pg_type t ON c.udt_name = t.typname
        LEFT JOIN pg_description pd ON pd.objsubid = c.ordinal_position AND pd.objoid = 'prog.users'::regclass
        WHERE table_schema = 'prog' AND table_name = 'users' AND t.typnamespace = 'pg_catalog'::regnamespace""",
    "monitors list tables": "SELECT schemaname, relname, idx_scan, n_dead_tup, last_vacuum, vacuum_count FROM pg_stat_user_tables WHERE schemaname = 'prog' ORDER BY 2",
    "and sequences": "SELECT schemaname, relname FROM pg_statio_user_sequences WHERE schemaname = 'prog'",
}


@pytest.fixture(scope="module")
def both(pg, rd):
    pg.sql("CREATE DATABASE programs")
    servers = [psycopg.connect(pg.dsn.replace("dbname=postgres", "dbname=programs"), autocommit=True), rd.connect()]
    for c in servers:
        for statement in corpus.statements(SCHEMA):
            c.execute(statement)
    yield servers
    for c in servers:
        c.close()


@pytest.mark.parametrize("query", QUERIES.values(), ids=list(QUERIES))
def test_system_relations_answer_alike(both, query):
    postgres, ours = (c.execute(query).fetchall() for c in both)
    assert postgres and ours == postgres


def told(c: psycopg.Connection, *statements: str) -> list:
    heard = []
    handler = lambda d: heard.append((d.severity, d.sqlstate, d.message_primary, d.message_detail, d.message_hint))  # noqa: E731
    c.add_notice_handler(handler)
    for s in statements:
        c.execute(s)
    c.remove_notice_handler(handler)
    return heard


@pytest.mark.parametrize("level", ["notice", "warning", "error", "log"])
def test_do_tells_what_is_wanted(both, level):
    code = """DO $$ DECLARE t timestamptz := '2024-01-01 00:00:00+00'; BEGIN
        RAISE NOTICE 'n % %% % %', 1 + 1, NULL::text, true; RAISE WARNING 'w' USING HINT = 'h', DETAIL = 'd', ERRCODE = '01007'; RAISE INFO 'i'; RAISE DEBUG 'd'; RAISE LOG 'l';
        DROP TABLE IF EXISTS nope; RAISE NOTICE '% %', '{1,2}'::int[], t; END $$"""
    statements = ["SET timezone = 'UTC'", f"SET client_min_messages = {level}", code, "DROP TABLE IF EXISTS nope", "RESET client_min_messages"]
    postgres, ours = (told(c, *statements) for c in both)
    assert len(postgres) > 0 and ours == postgres


def test_do_is_one_transaction_and_is_run_again(both):
    ours = both[1]
    ours.execute("CREATE TABLE counted (n int)")
    with pytest.raises(psycopg.errors.DivisionByZero):
        ours.execute("DO $$ BEGIN INSERT INTO counted VALUES (1); CREATE TABLE made (a int); PERFORM 1 / 0; END $$")
    assert ours.execute("SELECT count(*) FROM counted").fetchone() == (0,)
    assert ours.execute("SELECT to_regclass('made')").fetchone() == (None,)
    for refused in ["COMMIT", "SAVEPOINT a", "COPY counted FROM STDIN"]:
        with pytest.raises(psycopg.errors.FeatureNotSupported) as e:
            ours.execute(f"DO $$ BEGIN INSERT INTO counted VALUES (1); {refused}; END $$")
        assert e.value.diag.message_hint
    with pytest.raises(psycopg.errors.CaseNotFound):
        ours.execute("DO $$ BEGIN INSERT INTO counted VALUES (1); CASE 2 WHEN 1 THEN NULL; END CASE; END $$")
    ours.execute("SET statement_timeout = '300ms'")
    with pytest.raises(psycopg.errors.QueryCanceled):
        ours.execute("DO $$ BEGIN LOOP NULL; END LOOP; EXCEPTION WHEN OTHERS THEN NULL; END $$")
    ours.execute("RESET statement_timeout")
    assert ours.execute("SELECT count(*) FROM counted").fetchone() == (0,)


def test_read_only_default_is_reported(both):
    for c in both:
        assert c.info.parameter_status("default_transaction_read_only") == "off"
        c.execute("SET default_transaction_read_only = on")
        assert c.info.parameter_status("default_transaction_read_only") == "on"
        c.execute("RESET default_transaction_read_only")
