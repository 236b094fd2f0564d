"""Statements that ask for too much end in a clear error, soon, and the server goes on."""

import pytest
from corpus import Wire

DEEP = 5000

# What is asked, and the SQLSTATE of the answer; None: it is answered.
BOMBS = {
    "a text of 2 GB": ("SELECT repeat('x', 2000000000)", "54000"),
    "texts of 3 GB in one batch": ("SELECT string_agg(repeat('x', 1000000), ',') FROM generate_series(1, 3000)", "54000"),
    "texts of 2 GB chosen by CASE": ("SELECT count(CASE WHEN g % 2 = 0 THEN repeat('x', 1000000) ELSE 'a' END) FROM generate_series(1, 4400) g", None),
    "aggregates of 3 GB": ("SELECT array_agg(repeat('x', 500000000)) FROM generate_series(1, 6)", "54000"),
    "literal rows of 2.7 GB": ("SELECT count(x) FROM (VALUES (repeat('x', 900000000)), (repeat('y', 900000000)), (repeat('z', 900000000))) v (x)", None),
    "one call's rows of 3 GB": ("SELECT count(*) FROM jsonb_path_query(jsonb_build_array(repeat('x', 10000000)), ('$[' || repeat('0,', 299) || '0]')::jsonpath)", None),
    "error messages of 3 GB": ("SELECT sum((repeat('x', 1000000) || g)::int) FROM generate_series(1, 3000) g", "22P02"),
    "padding": ("SELECT lpad('x', 2000000000)", "54000"),
    "padding by a length": ("SELECT bpchar('a'::bpchar, 2147483647, false)", "54000"),
    "a format's width": ("SELECT format('%2000000000s', 'x')", "54000"),
    "an array of 2,000,000,000": ("SELECT array_fill(0, ARRAY[2000000000])", "54000"),
    "a subscript far away": ("UPDATE bombs SET a[2000000000] = 1", "54000"),
    "nested quantifiers": ("SELECT repeat('a', 100000) ~ '(a+)+$b'", None),
    "a regular expression of 10,000 parentheses": ("SELECT 'x' ~ (repeat('(', 10000) || repeat(')', 10000))", "2201B"),
    "repetition of repetition": ("SELECT 'x' ~ '((a{0,255}){0,255}){0,255}'", "2201B"),
    "parentheses": (f"SELECT {'(' * DEEP}1{')' * DEEP}", "54001"),
    "arrays in arrays": (f"SELECT ARRAY{'[' * DEEP}1{']' * DEEP}", "54001"),
    "subqueries": (f"SELECT {'(SELECT ' * DEEP}1{')' * DEEP}", "54001"),
    "CASE in CASE": (f"SELECT {'CASE WHEN true THEN ' * DEEP}1{' END' * DEEP}", "54001"),
    "calls": (f"SELECT {'abs(' * DEEP}1{')' * DEEP}", "54001"),
    "NOT": (f"SELECT {'NOT ' * DEEP}true", "54001"),
    "json": (f"SELECT '{'[' * 100000}{']' * 100000}'::json", "54001"),
    "jsonb": (f"SELECT '{'[' * 100000}{']' * 100000}'::jsonb", "54001"),
    "a jsonpath": (f"SELECT '{'(' * 20000}1{')' * 20000}'::jsonpath", "54001"),
    "a power": ("SELECT 10::numeric ^ (10::numeric ^ 9)", "22003"),
    "a factorial": ("SELECT factorial(100000)", "22003"),
    "an exponent": ("SELECT '1e1000000000'::numeric", "22003"),
    "a table of 5,000 columns": (f"CREATE TABLE wide ({', '.join(f'c{i} int' for i in range(5000))})", "54011"),
    "a result of 5,000 columns": (f"SELECT {', '.join(map(str, range(5000)))}", "54011"),
    "IN of 100,000 values": (f"SELECT 1 IN ({', '.join(map(str, range(100000)))})", None),
    "a join of 100 relations": (f"SELECT count(*) FROM {', '.join(f'(SELECT 1) t{i}' for i in range(100))}", None),
    "40 bindings read by 40 subqueries": (f"WITH {', '.join(f'c{i} AS (SELECT a[{i}] AS x FROM bombs WHERE a[1] = {i})' for i in range(40))} SELECT {', '.join(f'(SELECT x FROM c{i})' for i in range(40))}", None),
    "100,000 rows whose keys are all taken": ("INSERT INTO taken SELECT g FROM generate_series(1, 100000) g RETURNING a", "23505"),
    "a million million bits": ("SELECT bit_or(1), bit_and(3), bit_xor(5) FROM MILLIONS", None),
    "the middle of a million million": ("SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY 1), sum(2), mode() WITHIN GROUP (ORDER BY 1) FROM MILLIONS", None),
    "an array of a million million": ("SELECT array_agg(x ORDER BY x) FROM (SELECT 1 AS x FROM MILLIONS) q", "54000"),
    "a jsonb array of a million million": ("SELECT jsonb_agg(x ORDER BY x) FROM (SELECT 1 AS x FROM MILLIONS) q", "54000"),
    "a text of a million million": ("SELECT string_agg(x, '' ORDER BY x) FROM (SELECT 'x' AS x FROM MILLIONS) q", "54000"),
    "a pattern of 500,000 bytes": ("SELECT length(to_char(date '2024-01-01', repeat('YYYY ', 100000)))", None),
}


@pytest.fixture(scope="module")
def wire(rd):
    wire = Wire(rd.dsn)
    wire.run("CREATE TABLE bombs (a int[])")
    wire.run("INSERT INTO bombs VALUES ('{1}')")
    wire.run("CREATE TABLE taken (a int PRIMARY KEY)")
    wire.run("INSERT INTO taken SELECT * FROM generate_series(1, 100000)")
    wire.run("CREATE TABLE slow AS SELECT generate_series(1, 3000) AS n")
    wire.run("CREATE TABLE one AS SELECT 1 AS n")
    return wire


@pytest.mark.parametrize("bomb", BOMBS)
def test_it_is_refused_or_answered(wire, bomb):
    sql, state = BOMBS[bomb]
    sql = sql.replace("MILLIONS", "generate_series(1, 1000000) a, generate_series(1, 1000000) b")
    got = wire.run(sql)
    assert got.state == state, got.message
    assert wire.run("SELECT 1").rows == [("1",)]


# Minutes of work in one batch of rows, which a timeout ends between two rows; the constants, while they are folded.
SLOW = {
    "a function of rows": "SELECT sum(length(repeat('x', 100000000 + n))) FROM slow",
    "a function of rows on values": "SELECT count(format('%s%s', n, repeat('x', 100000000))) FROM slow",
    "text of rows": "SELECT count(md5((n || repeat('x', 50000000))::bytea::text)) FROM slow",
    "constants": "SELECT " + " + ".join(f"length(md5(repeat('x', {100_000_000 + i})))" for i in range(1500)),
    "rows of a call": "SELECT count(*) FROM slow, regexp_split_to_table(repeat('x ', 30000000 + n), ' ') x",
}


def assert_free(wire):
    """The workers are free again, each: what they would need hours for is not waited for."""
    wire.run("SET statement_timeout = '30s'")
    for i in range(4):
        assert wire.run(f"SELECT count(*) FROM slow, generate_series(n, n + {i}) WHERE n > 1").rows == [(str(2999 * (i + 1)),)]
    wire.run("RESET statement_timeout")


@pytest.mark.parametrize("slow", SLOW)
def test_a_timeout_ends_a_batch_of_slow_rows(wire, slow):
    wire.run("SET statement_timeout = '300ms'")
    got = wire.run(SLOW[slow])
    assert got.state == "57014" and "timeout" in got.message
    assert_free(wire)


# Hours of work on one value, which a timeout ends in the middle of the call.
CALLS = {
    "a pattern": "SELECT repeat('a', 1000000 + n) LIKE '%' || repeat('a', 500000) || 'b%' FROM one",
    "trimming": "SELECT length(btrim(repeat('é', 10000000 + n), repeat('ab', 10000000) || 'é')) FROM one",
    "a document in a document": "SELECT a @> b FROM (SELECT jsonb_agg(g + n) AS a, jsonb_agg(g + n) AS b FROM one, generate_series(1, 300000) g) x",
    "a path": "SELECT jsonb_path_exists(a, '$ ? (@[*] < $[*])') FROM (SELECT jsonb_agg(n) AS a FROM one, generate_series(1, 300000) g) x",
    "empty texts": "SELECT string_agg(x, '' ORDER BY x) FROM (SELECT '' AS x FROM slow a, slow b, slow c) q",
    "covers": """SELECT ts_rank_cd(to_tsvector('simple', string_agg('w' || g, ' ') || ' z'), ('w:* & z' || repeat(' & !y', 900))::tsquery)
                 FROM one, generate_series(n, 16000) g""",
    "paths": """SELECT p <-> (p + point(1000000, 0)) FROM (SELECT path('(' || string_agg(format('(%s,%s)', g % 2 * 100, g * n), ',') || ')') AS p
                FROM one, generate_series(1, 300000) g) x""",
}


@pytest.mark.parametrize("call", CALLS)
def test_a_timeout_ends_one_call(wire, call):
    wire.run("SET statement_timeout = '300ms'")
    got = wire.run(CALLS[call])
    assert got.state == "57014" and "timeout" in got.message, got.message
    assert_free(wire)


def test_dropping_a_view_ends_what_it_computes(wire):
    assert wire.run(f"CREATE MATERIALIZED VIEW hours AS {CALLS['a pattern']}").state is None
    assert wire.run("DROP MATERIALIZED VIEW hours").state is None
    assert_free(wire)


def test_a_view_of_too_many_copies(wire):
    """27,000 million times the same row: a window function would have to number them."""
    assert wire.run("CREATE MATERIALIZED VIEW copies AS SELECT x, sum(x) OVER (ORDER BY x) FROM (SELECT 1 AS x FROM slow a, slow b, slow c) q").state is None
    got = wire.run("SELECT * FROM copies LIMIT 1")
    assert got.state == "54000" and "copies" not in got.message, got.message
    assert wire.run("DROP MATERIALIZED VIEW copies").state is None
    assert_free(wire)


def test_large_arrays_are_compared_as_sets(wire):
    many = "SELECT array_agg(g * 2) FROM generate_series(1, 100000) g"
    assert wire.run(f"SELECT ({many}) && ARRAY(SELECT g * 2 + 1 FROM generate_series(1, 20000) g)").rows == [("f",)]
    assert wire.run(f"SELECT ({many}) @> ARRAY(SELECT g * 4 FROM generate_series(1, 20000) g)").rows == [("t",)]
    assert wire.run(f"SELECT ({many}) @> ARRAY(SELECT CASE WHEN g <> 7777 THEN g * 4 END FROM generate_series(1, 20000) g)").rows == [("f",)]
