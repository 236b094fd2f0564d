"""WITH RECURSIVE and WITH MUTUALLY RECURSIVE: maintained beside PostgreSQL while their inputs change, and endless ones."""

import collections
import random

import pytest
import random_queries
import random_recursion
from corpus import Wire
from harness.riverdelta import Riverdelta

GRAPH = "CREATE TABLE edge (a int, b int, w int)"
PARTS = "CREATE TABLE part (whole int, part int, n int)"

# Names of columns come from the outer list.
VIEWS = {
    "reach (a, b)": "WITH RECURSIVE r(a, b) AS (SELECT a, b FROM edge UNION SELECT r.a, e.b FROM r JOIN edge e ON r.b = e.a) SELECT a, b FROM r",
    "components (n, c)": """WITH RECURSIVE both_ways(a, b) AS (SELECT a, b FROM edge UNION SELECT b, a FROM edge),
                            r(n, c) AS (SELECT a, a FROM both_ways UNION SELECT x.b, r.c FROM r JOIN both_ways x ON x.a = r.n)
                            SELECT n, min(c) FROM r GROUP BY n""",
    "shortest (a, b, d)": """WITH RECURSIVE r(a, b, d) AS (SELECT a, b, w FROM edge UNION SELECT r.a, e.b, r.d + e.w FROM r JOIN edge e ON r.b = e.a WHERE r.d + e.w < 12)
                             SELECT a, b, min(d) FROM r GROUP BY a, b""",
    "hops (b, n, paths)": """WITH RECURSIVE r(b, n) AS (SELECT b, 1 FROM edge WHERE a = 1 UNION ALL SELECT e.b, r.n + 1 FROM r JOIN edge e ON r.b = e.a WHERE r.n < 5)
                             SELECT b, n, count(*) FROM r GROUP BY b, n""",
    "paths (b, path)": """WITH RECURSIVE r(b, path) AS (SELECT b, ARRAY[a, b] FROM edge WHERE a = 1
                                                        UNION ALL SELECT e.b, r.path || e.b FROM r JOIN edge e ON e.a = r.b WHERE e.b <> ALL (r.path))
                          SELECT b, path FROM r""",
    "unreached (a)": """WITH RECURSIVE r(b) AS (SELECT 1 UNION SELECT e.b FROM r, edge e WHERE r.b = e.a)
                        SELECT DISTINCT a FROM edge WHERE a NOT IN (SELECT b FROM r)""",
    "materials (whole, part, n)": """WITH RECURSIVE r(whole, part, n) AS (SELECT whole, part, n FROM part UNION ALL
                                                                         SELECT r.whole, p.part, r.n * p.n FROM r JOIN part p ON p.whole = r.part)
                                     SELECT whole, part, sum(n) FROM r GROUP BY whole, part""",
    "below (whole, n)": """SELECT t.whole, (WITH RECURSIVE r(part) AS (SELECT p.part FROM part p WHERE p.whole = t.whole
                                                                  UNION SELECT p.part FROM r JOIN part p ON p.whole = r.part) SELECT count(*) FROM r)
                           FROM (SELECT DISTINCT whole FROM part) t""",
    "two (b)": """WITH RECURSIVE r(b) AS (SELECT b FROM edge WHERE a = 1 UNION SELECT e.b FROM r JOIN edge e ON e.a = r.b),
                  s(b) AS (SELECT b FROM r WHERE b % 2 = 0 UNION SELECT e.b FROM s JOIN edge e ON e.a = s.b AND e.w < 3) SELECT b FROM s""",
    # A recursion in each round of another.
    "parts_and_edges (n)": """WITH RECURSIVE t(n) AS (SELECT 1 UNION
                                (WITH RECURSIVE s(i) AS (SELECT n FROM t UNION SELECT e.b FROM s JOIN edge e ON e.a = s.i AND e.w < 3)
                                 SELECT p.part FROM s JOIN part p ON p.whole = s.i)) SELECT n FROM t""",
    "deepest (n)": """WITH RECURSIVE t(n) AS (SELECT a FROM edge UNION
                        SELECT q.m FROM t, LATERAL (WITH RECURSIVE s(i) AS (SELECT t.n UNION SELECT p.part FROM s JOIN part p ON p.whole = s.i)
                                                    SELECT max(i) AS m FROM s) q) SELECT n FROM t""",
    "sums (n, k)": """WITH RECURSIVE t(n, k) AS (SELECT 1::bigint, 0 UNION ALL
                        SELECT n + (WITH RECURSIVE s(i) AS (SELECT t.k + 1 UNION SELECT e.b FROM s JOIN edge e ON e.a = s.i) SELECT count(*) FROM s), k + 1
                        FROM t WHERE k < 5) SELECT n, k FROM t""",
}


def must(wire, sql):
    o = wire.run(sql)
    assert o.state is None, f"{o.state} {o.message}: {sql[:200]}"
    return o


def batches(rng, n):
    """Changes of a cyclic graph and of a tree of parts (which stays without cycles, or the bill of materials would not end)."""
    for i in range(n):
        out = []
        if i == n - 2:
            out += ["DELETE FROM edge", "DELETE FROM part"]
        elif rng.random() < 0.6 or i < 3:
            out.append("INSERT INTO edge VALUES " + ", ".join(f"({rng.randint(1, 7)}, {rng.randint(1, 7)}, {rng.randint(1, 4)})" for _ in range(rng.randint(1, 4))))
            out.append("INSERT INTO part VALUES " + ", ".join(f"({a}, {a + rng.randint(1, 3)}, {rng.randint(1, 3)})" for a in rng.sample(range(1, 8), 2)))
        else:
            out.append(f"DELETE FROM edge WHERE {rng.choice(['a', 'b', 'w'])} = {rng.randint(1, 7)}")
            out.append(f"UPDATE edge SET w = w % 4 + 1 WHERE a = {rng.randint(1, 7)}")
            out.append(f"UPDATE part SET n = n + 1 WHERE whole = {rng.randint(1, 7)}")
            out.append(f"DELETE FROM part WHERE part = {rng.randint(2, 9)}")
        yield out


@pytest.mark.timeout(600)
@pytest.mark.parametrize("workers", [1, 2])
def test_maintained(pg, tmp_path, workers, long):
    pg.sql(f"DROP DATABASE IF EXISTS recursion{workers}", f"CREATE DATABASE recursion{workers}")
    server = Riverdelta(tmp_path / "rd", workers=workers).start()
    judge, rd = Wire(pg.dsn.replace("dbname=postgres", f"dbname=recursion{workers}")), Wire(server.dsn)
    for sql in (GRAPH, PARTS):
        must(judge, sql), must(rd, sql)
    for head, sql in VIEWS.items():
        must(rd, f"CREATE MATERIALIZED VIEW {head} AS {sql}")
    rng = random.Random(workers)
    count = 60 if long else 14
    for n, batch in enumerate(batches(rng, count)):
        for sql in ["BEGIN", *batch, "COMMIT"]:
            must(judge, sql), must(rd, sql)
        if n == count // 2:
            server.restart(kill=True, workers=3 - workers)
            rd = Wire(server.dsn)
        for head, sql in VIEWS.items():
            want, once, kept = must(judge, sql), must(rd, sql), must(rd, f"SELECT * FROM {head.split()[0]}")
            assert collections.Counter(want.rows) == collections.Counter(once.rows) == collections.Counter(kept.rows), f"batch {n}, {head}"
    assert server.stop() == 0 and not server.panics()


@pytest.mark.timeout(3600)
def test_random_mutual(pg, tmp_path, long):
    """Bodies that name each other at will, round for round beside PostgreSQL (sql-tests/random_recursion.py)."""
    first = random.randrange(1 << 30) if long else 1
    server = Riverdelta(tmp_path / "rd", workers=2).start()
    judge = random_queries.Judge(pg.dsn, server, "random_recursion")
    try:
        for seed in range(first, first + (300 if long else 3)):
            again = (lambda: server.restart(kill=True, workers=3 - server.workers)) if seed % 3 == 0 else None
            faults = random_recursion.run_round(judge, seed, restart=again)
            assert not faults, f"seed {seed}:\n" + "\n".join(f"batch {n}: {f}\n  {sql}" for sql, f, n in faults)
        assert not server.panics(), server.panics()
    finally:
        server.stop()
    assert judge.counts["compared"] > 30, judge.counts


def test_endless_with_limit(db):
    """LIMIT ends what has no end; without it a statement's time does."""
    r = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r)"
    assert db.execute(f"{r} SELECT n FROM r LIMIT 5").fetchall() == [(i,) for i in range(1, 6)]
    assert db.execute(f"{r} SELECT n FROM r WHERE n % 10 = 0 LIMIT 3 OFFSET 1").fetchall() == [(20,), (30,), (40,)]
    assert db.execute(f"{r.replace(' ALL', '')} SELECT n * n FROM r LIMIT 3").fetchall() == [(1,), (4,), (9,)]
    assert db.execute(f"SELECT count(*), max(n) FROM ({r} SELECT n FROM r LIMIT 7) q").fetchall() == [(7, 7)]
    fib = "WITH RECURSIVE f(a, b) AS (SELECT 0::numeric, 1::numeric UNION ALL SELECT b, a + b FROM f) SELECT a FROM f LIMIT 90"
    assert db.execute(fib).fetchall()[-1] == (1779979416004714189,)
    db.execute("SET statement_timeout = '300ms'")
    try:
        with pytest.raises(Exception, match="statement timeout"):
            db.execute(f"{r} SELECT count(*) FROM r")
    finally:
        db.execute("RESET statement_timeout")


def test_mutual(db):
    """Mutual recursion, its limits, and rules that PostgreSQL has no words for, while their inputs change."""
    db.execute("CREATE TABLE next (a int, b int)")
    db.execute("""CREATE MATERIALIZED VIEW even_odd AS WITH MUTUALLY RECURSIVE
                    even (a int) AS (SELECT 0 UNION SELECT b FROM odd JOIN next USING (a)),
                    odd (a int) AS (SELECT b FROM even JOIN next USING (a))
                  SELECT a, 'even' AS kind FROM even UNION ALL SELECT a, 'odd' FROM odd""")
    db.execute("""CREATE MATERIALIZED VIEW dist AS WITH MUTUALLY RECURSIVE
                    d (a int, n int) AS (SELECT 0, 0 UNION ALL SELECT a, min(n) FROM (SELECT next.b, d.n + 1 FROM d JOIN next USING (a)) s(a, n) WHERE a <> 0 GROUP BY a)
                  SELECT * FROM d""")
    limited = "WITH MUTUALLY RECURSIVE ({}) r (n int) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT max(n) FROM r"
    assert db.execute(limited.format("RETURN AT RECURSION LIMIT 12")).fetchall() == [(12,)]
    with pytest.raises(Exception, match="recursion limit 12"):
        db.execute(limited.format("RECURSION LIMIT 12"))
    edges: set = set()
    rng = random.Random(3)
    for _ in range(12):
        a, b = rng.randrange(6), rng.randrange(6)
        if (a, b) in edges:
            edges.discard((a, b))
            db.execute("DELETE FROM next WHERE a = %s AND b = %s", (a, b))
        else:
            edges.add((a, b))
            db.execute("INSERT INTO next VALUES (%s, %s)", (a, b))
        even, odd, dist = {0}, [], {0: 0}
        while True:
            odd = [y for x, y in edges if x in even]
            grown = {0} | {y for o in set(odd) for x, y in edges if x == o}
            if grown == even:
                break
            even |= grown
        while True:
            grown = {0: 0}
            for x, y in edges:
                if x in dist and y != 0:
                    grown[y] = min(grown.get(y, 99), dist[x] + 1)
            if grown == dist:
                break
            dist = grown
        want = sorted([(a, "even") for a in even] + [(a, "odd") for a in odd])
        got = sorted(db.execute("SELECT * FROM even_odd").fetchall())
        assert set(got) == set(want)
        assert sorted(db.execute("SELECT * FROM dist").fetchall()) == sorted(dist.items())
