"""What Riverdelta's SQL has beyond PostgreSQL's: QUALIFY, SELECT * EXCEPT, unsigned integers, lists and maps."""

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
]


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


def test_except_names_a_column(db):
    with pytest.raises(Exception, match='column "z" does not exist'):
        db.execute(f"SELECT * EXCEPT (z) FROM {ROWS}")


def test_show_all(riverdelta):
    rows = riverdelta.sql("SHOW ALL")
    assert ("statement_timeout", "0") in [r[:2] for r in rows] and all(len(r) == 3 for r in rows)
