"""What Riverdelta's SQL has beyond PostgreSQL's: QUALIFY, SELECT * EXCEPT, unsigned integers, lists and maps."""

import psycopg
import pytest

ROWS = "(VALUES (1, 10, 'x'), (1, 30, 'y'), (2, 20, 'z')) v (a, b, c)"

ANSWERS = [
    (f"SELECT * EXCEPT (b) FROM {ROWS} ORDER BY c", [(1, "x"), (1, "y"), (2, "z")]),
    (f"SELECT v.* EXCEPT (a, c), b + 1 FROM {ROWS} ORDER BY 1", [(10, 11), (20, 21), (30, 31)]),
    ("SELECT * FROM (VALUES (1), (2)) v (a) EXCEPT (SELECT 1)", [(2,)]),
    (f"SELECT c FROM {ROWS} QUALIFY row_number() OVER (PARTITION BY a ORDER BY b DESC) = 1 ORDER BY c", [("y",), ("z",)]),
    (f"SELECT c, rank() OVER (ORDER BY b) AS r FROM {ROWS} QUALIFY r <= 2 AND NOT r = 1", [("z", 2)]),
    (f"SELECT a, sum(b) FROM {ROWS} GROUP BY a QUALIFY rank() OVER (ORDER BY sum(b) DESC) = 1", [(1, 40)]),
    ("SELECT * FROM (VALUES (1)) qualify", [(1,)]),
    ("SELECT pg_typeof(5::uint2)::text, 4294967295::uint4::text, '18446744073709551615'::uint8::text", [("uint2", "4294967295", "18446744073709551615")]),
    ("SELECT '{1,2,3}'::int list::text, ('{1,2,3}'::int list)[2]", [("{1,2,3}", 2)]),
    ("SELECT '{b=>2,a=>1}'::map[text=>int]::text", [("{a=>1,b=>2}",)]),
    ("SELECT LIST[1, 2, NULL]::text, LIST[[1], [2, 3]]::text, (LIST[]::int list)::text", [("{1,2,NULL}", "{{1},{2,3}}", "{}")]),
    ("SELECT MAP['b' => 2, 'a' => 1, 'b' => 3]::text, MAP['x' => LIST[1]]::text", [("{a=>1,b=>3}", "{x=>{1}}")]),
    ("SELECT LIST[1.5, 2]::text, (LIST[LIST['a']])::text", [("{1.5,2}", "{{a}}")]),
    ("SELECT l::text, count(*) FROM (VALUES (LIST[2]), (LIST[1, 5]), (LIST[2])) v (l) GROUP BY l ORDER BY l", [("{1,5}", 1), ("{2}", 2)]),
    ("SELECT MAP['a' => 1] = MAP['a' => 1], MAP['a' => 1] <> '{a=>2}', LIST[1] = '{1}'", [(True, True, True)]),
    ("SELECT (LIST[1, 2] || LIST[3])::text, (LIST[1] || 2)::text, (0 || LIST[1])::text", [("{1,2,3}", "{1,2}", "{0,1}")]),
    ("SELECT list_append(LIST[1], 2)::text, list_prepend(0, LIST[1])::text, list_cat(LIST[1], NULL)::text", [("{1,2}", "{0,1}", "{1}")]),
    ("SELECT list_remove(LIST[1, 2, 1], 1)::text, list_append(NULL::int list, 5)::text", [("{2}", "{5}")]),
    ("SELECT list_length(LIST[1, 2]), list_length(NULL::int list), list_n_layers(LIST[[1]]), list_length_max(LIST[[1], [2, 3]], 2)", [(2, None, 2, 2)]),
    ("SELECT LIST[1, 2] @> LIST[2], LIST[1] @> LIST[2], LIST[2] <@ LIST[1, 2], LIST[1, 2] = LIST[1, 2], LIST[1] < LIST[2]", [(True, False, True, True, True)]),
    ("SELECT (LIST[5, 6, 7])[2], (LIST[5, 6, 7])[9], (LIST[[1, 2], [3]])[2][1], (LIST[5, 6, 7])[2:3]::text, (LIST[5, 6])[:1]::text", [(6, None, 3, "{6,7}", "{5}")]),
    ("SELECT * FROM unnest(LIST['x', 'y']) u ORDER BY 1", [("x",), ("y",)]),
    ("SELECT unnest(LIST[[1, 2], [3]])::text", [("{1,2}",), ("{3}",)]),
    (f"SELECT a, list_agg(c ORDER BY b DESC)::text FROM {ROWS} GROUP BY a ORDER BY a", [(1, "{y,x}"), (2, "{z}")]),
    (f"SELECT map_agg(c, b)::text, map_agg(c, b ORDER BY b) FILTER (WHERE a = 1)::text FROM {ROWS}", [("{x=>10,y=>30,z=>20}", "{x=>10,y=>30}")]),
    ("SELECT map_build(LIST[ROW('k', 1), ROW('l', 2)])::text, map_length(MAP['a' => 1])", [("{k=>1,l=>2}", 1)]),
    ("SELECT MAP['a' => 1] -> 'a', MAP['a' => 1] -> 'b', (MAP['a' => 7])['a']", [(1, None, 7)]),
    ("SELECT MAP['a' => 1] ? 'a', MAP['a' => 1] ?& ARRAY['a', 'b'], MAP['a' => 1] ?| ARRAY['a', 'b']", [(True, False, True)]),
    ("SELECT MAP['a' => 1, 'b' => 2] @> MAP['a' => 1], MAP['a' => 1] <@ MAP['a' => 2]", [(True, False)]),
    ("SELECT list[1] FROM (VALUES (ARRAY[8, 9])) t (list)", [(8,)]),
    ("SELECT list[1:1] FROM (VALUES (ARRAY[8, 9])) t (list)", [([8],)]),
    ("SELECT map[2] FROM (VALUES (ARRAY[8, 9])) t (map)", [(9,)]),
    ("SELECT ('{1,2}'::int list)::text list::text, LIST[1, 2]::int8 list::text", [("{1,2}", "{1,2}")]),
]

ERRORS = [
    ("SELECT LIST[]", "42P18"),
    ("SELECT MAP[NULL => 1]", "22004"),
    ("SELECT LIST[1, 'x'::text]", "42804"),
    ("SELECT list_length_max(LIST[1], 2)", "22023"),
    ("SELECT (MAP['a' => 1])[1:2]", "42804"),
    ("SELECT list_length(5)", "42883"),
    ("SELECT LIST[1] -> 'a'", "42883"),
    # what may be said once is said twice
    ("SUBSCRIBE (SELECT 1 AS a) WITH (PROGRESS, PROGRESS = false)", "22023"),
    ("SUBSCRIBE (SELECT 1 AS a) ENVELOPE UPSERT (KEY (a, a))", "42701"),
    ("SUBSCRIBE (SELECT 1 AS a) ENVELOPE DEBEZIUM (KEY (a, a))", "42701"),
    ("CREATE MATERIALIZED VIEW twice WITH (ON ERROR = 'strict', ON ERROR = 'quarantine') AS SELECT 1 AS a", "22023"),
]


@pytest.mark.parametrize("sql, code", ERRORS)
def test_errors(db, sql, code):
    with pytest.raises(Exception) as e:
        db.execute(sql)
    assert e.value.sqlstate == code


@pytest.mark.parametrize("sql, answer", ANSWERS, ids=[str(i) for i in range(len(ANSWERS))])
def test_answers(db, sql, answer):
    assert db.execute(sql).fetchall() == answer


def test_qualify_is_maintained(db):
    db.execute("CREATE TABLE qualified (a int, b int)")
    db.execute("CREATE MATERIALIZED VIEW best AS SELECT * FROM qualified QUALIFY row_number() OVER (PARTITION BY a ORDER BY b DESC) = 1")
    db.execute("INSERT INTO qualified VALUES (1, 1), (1, 2), (2, 5)")
    assert db.execute("SELECT * FROM best ORDER BY a").fetchall() == [(1, 2), (2, 5)]
    db.execute("DELETE FROM qualified WHERE b = 2")
    assert db.execute("SELECT * FROM best ORDER BY a").fetchall() == [(1, 1), (2, 5)]


def test_lists_and_maps_are_maintained(db):
    db.execute("CREATE TABLE gathered (k int, name text, n int)")
    db.execute(
        "CREATE MATERIALIZED VIEW by_k AS SELECT k, list_agg(n ORDER BY n) AS l, map_agg(name, n) AS m, list_length(list_agg(n)) AS len FROM gathered GROUP BY k"
    )
    db.execute("INSERT INTO gathered VALUES (1, 'a', 2), (1, 'b', 1), (2, 'c', 5)")
    read = "SELECT k, l::text, m::text, len, l[1], m -> 'a' FROM by_k ORDER BY k"
    assert db.execute(read).fetchall() == [(1, "{1,2}", "{a=>2,b=>1}", 2, 1, 2), (2, "{5}", "{c=>5}", 1, 5, None)]
    db.execute("DELETE FROM gathered WHERE name IN ('b', 'c')")
    assert db.execute(read).fetchall() == [(1, "{2}", "{a=>2}", 1, 2, 2)]


def test_user_ranges_are_maintained(db):
    db.execute("CREATE TYPE heights AS RANGE (subtype = numeric)")
    db.execute("CREATE TABLE walls (id int, h heights)")
    db.execute("CREATE MATERIALIZED VIEW all_heights AS SELECT range_agg(h) AS r, count(*) AS n FROM walls WHERE h && heights(0, 10)")
    db.execute("INSERT INTO walls VALUES (1, '[1,3)'), (2, heights(2, 5)), (3, '[20,30)'), (4, '[7,8]')")
    assert db.execute("SELECT r::text, n FROM all_heights").fetchall() == [("{[1,5),[7,8]}", 3)]
    db.execute("DELETE FROM walls WHERE id = 2")
    assert db.execute("SELECT r::text, n FROM all_heights").fetchall() == [("{[1,3),[7,8]}", 2)]
    with pytest.raises(Exception) as e:
        db.execute("DROP TYPE heights")
    assert e.value.sqlstate == "2BP01"


def test_labels_added_reach_running_views(db):
    db.execute("CREATE TYPE state AS ENUM ('new', 'done')")
    db.execute("CREATE TABLE jobs (id int, s state)")
    db.execute("CREATE MATERIALIZED VIEW names AS SELECT id, s, s::text AS name FROM jobs WHERE s > 'new'")
    db.execute("INSERT INTO jobs VALUES (1, 'new'), (2, 'done')")
    db.execute("ALTER TYPE state ADD VALUE 'half' BEFORE 'done'")
    db.execute("ALTER TYPE state ADD VALUE 'late'")
    db.execute("INSERT INTO jobs VALUES (3, 'half'), (4, 'late')")
    assert db.execute("SELECT id, name FROM names ORDER BY s").fetchall() == [(3, "half"), (2, "done"), (4, "late")]
    with pytest.raises(Exception) as e:
        db.execute("ALTER TYPE state RENAME VALUE 'half' TO 'middle'")
    assert e.value.sqlstate == "2BP01"


def test_except_names_a_column(db):
    with pytest.raises(Exception, match='column "z" does not exist'):
        db.execute(f"SELECT * EXCEPT (z) FROM {ROWS}")


def test_show_all(riverdelta):
    rows = riverdelta.sql("SHOW ALL")
    assert ("statement_timeout", "0") in [r[:2] for r in rows] and all(len(r) == 3 for r in rows)


def test_advisory_locks(rd):
    one, two = rd.connect(), rd.connect()
    take = "SELECT pg_try_advisory_lock(7)"
    assert [one.execute(take).fetchone()[0], one.execute(take).fetchone()[0], two.execute(take).fetchone()[0]] == [True, True, False]
    assert two.execute("SELECT pg_try_advisory_lock(7, 0), pg_advisory_unlock(7)").fetchone() == (True, False)
    one.execute("SELECT pg_advisory_unlock(7)")
    assert two.execute("SELECT pg_try_advisory_lock_shared(7)").fetchone() == (False,)
    one.execute("SELECT pg_advisory_unlock(7)")
    assert two.execute("SELECT pg_try_advisory_lock_shared(7)").fetchone() == (True,)
    assert one.execute("SELECT pg_try_advisory_lock_shared(7), pg_try_advisory_lock(7)").fetchone() == (True, False)
    # Those of a transaction go with it, those of a session with the session.
    with one.transaction():
        one.execute("SELECT pg_advisory_xact_lock(8)")
        assert two.execute("SELECT pg_try_advisory_xact_lock(8)").fetchone() == (False,)
    assert two.execute("SELECT pg_try_advisory_lock(8)").fetchone() == (True,)
    one.execute("SET statement_timeout = '300ms'")
    with pytest.raises(Exception) as e:
        one.execute("SELECT pg_advisory_lock(8)")
    assert e.value.sqlstate == "57014"
    two.close()
    one.execute("SET statement_timeout = 0")
    one.execute("SELECT pg_advisory_lock(8)")
    one.close()


def test_show_create_tells_objects_as_they_are_now(db):
    """What it says can be run: after renames too, and with the options."""
    db.execute("CREATE SCHEMA shown")
    db.execute("CREATE TABLE shown.t (x int, y text)")
    db.execute("CREATE MATERIALIZED VIEW shown.m WITH (ON ERROR = 'quarantine') AS SELECT 1 / x AS q, y FROM shown.t")
    db.execute("CREATE VIEW shown.v (a, b) AS SELECT x, y FROM shown.t WHERE x > 0 WITH CHECK OPTION")
    db.execute("CREATE INDEX i ON shown.m (q)")
    db.execute("ALTER VIEW shown.v RENAME COLUMN a TO \"A b\"")
    db.execute("ALTER VIEW shown.v RENAME TO w")
    db.execute("ALTER INDEX shown.i RENAME TO j")

    def shown(what):
        return db.execute(f"SHOW CREATE {what}").fetchone()[1]

    view, materialized, index = shown("VIEW shown.w"), shown("MATERIALIZED VIEW shown.m"), shown("INDEX shown.j")
    assert view == 'CREATE VIEW shown.w ("A b", b) AS SELECT x, y FROM shown.t WHERE x > 0 WITH CASCADED CHECK OPTION'
    assert "(ON ERROR = 'quarantine')" in materialized
    db.execute("DROP VIEW shown.w")
    db.execute("DROP MATERIALIZED VIEW shown.m CASCADE")
    for statement in (view, materialized, index):
        db.execute(statement)
    assert (shown("VIEW shown.w"), shown("MATERIALIZED VIEW shown.m"), shown("INDEX shown.j")) == (view, materialized, index)


def test_a_temporal_filter_in_a_recursion_is_refused_before_the_view_is_made(db):
    db.execute("CREATE TABLE moments (id int, at timestamptz)")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="temporal filter inside WITH RECURSIVE"):
        db.execute("CREATE MATERIALIZED VIEW never AS WITH RECURSIVE r (n) AS "
                   "(SELECT id FROM moments WHERE at < now() UNION SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r")
    assert db.execute("SELECT to_regclass('never')").fetchone() == (None,)
