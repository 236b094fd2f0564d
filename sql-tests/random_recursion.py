"""Random WITH MUTUALLY RECURSIVE, judged by PostgreSQL, which has no such thing but computes each round of it.

The bodies are drawn as in `random_queries.py`, and name each other at will: negation, aggregates, windows and limits in a recursion are as good as joins.
What such a query is, is said by its rounds: relations begin empty, a round computes each from what is there, in their order, and after LIMIT rounds, or when
a round changes nothing, they are what the query behind reads.

    python random_recursion.py --pg DSN [--seed N] [--rounds N]
"""

import collections
import random
import sys

import rounds
from random_queries import SQL_TYPE, Changes, Draw, Fault, Gen, Judge, difference, plain

TYPES = ["int", "int", "int", "txt", "bool", "num", "date", "big"]


class Mutual:
    """Relations that are made of each other: (name, types, body), and the query that reads them."""

    def __init__(self, rng: random.Random):
        d = Draw(rng=rng)
        gen = Gen(d)
        self.limit = 2 + d.below(6)
        self.relations = []
        shapes = [(f"b{i}", [d.pick(TYPES) for _ in range(1 + d.below(2))]) for i in range(1 + d.below(3))]
        for name, types in shapes:
            gen.ctes = [(n, [(f"c{i}", t) for i, t in enumerate(ts)]) for n, ts in shapes]
            gen.budget = 25
            body, _ = gen.query(1 + d.below(2), [], types)
            columns = ", ".join(f"c{i}" for i in range(len(types)))
            if d.chance(50):
                other, _ = gen.query(1, [], types)
                body = f"({body}) {d.pick(['UNION', 'UNION ALL', 'EXCEPT', 'UNION'])} ({other})"
            kind = d.below(3)
            if kind == 0:
                order = ", ".join(f"{i + 1}" for i in range(len(types)))
                body = f"SELECT DISTINCT * FROM ({body}) AS b({columns}) ORDER BY {order} LIMIT 12"
            elif kind == 1:
                body = f"SELECT DISTINCT * FROM ({body}) AS b({columns})"
            self.relations.append((name, types, body))
        gen.budget = 15
        if d.chance(60):
            name, types = d.pick(shapes)
            self.body, self.types = f"SELECT * FROM {name}", types
        else:
            self.body, self.types = gen.query(1, [], None)

    def sql(self) -> str:
        columns = lambda ts: ", ".join(f"c{i} {SQL_TYPE[t]}" for i, t in enumerate(ts))  # noqa: E731
        withs = ", ".join(f"{n} ({columns(ts)}) AS ({b})" for n, ts, b in self.relations)
        names = ", ".join(f"c{i}" for i in range(len(self.types)))
        return f"WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT {self.limit}) {withs} SELECT * FROM ({self.body}) AS whole({names})"

    def judged(self, wire):
        """The outcome by PostgreSQL, round for round, or that of the statement that failed."""
        for n, ts, _ in self.relations:
            wire.run(f"DROP TABLE IF EXISTS pg_temp.{n}")
            wire.run(f"CREATE TEMPORARY TABLE {n} ({', '.join(f'c{i} {SQL_TYPE[t]}' for i, t in enumerate(ts))})")
        for _ in range(self.limit):
            same = True
            for n, ts, body in self.relations:
                for sql in ("DROP TABLE IF EXISTS pg_temp.fresh", f"CREATE TEMPORARY TABLE fresh AS {body}"):
                    if (o := wire.run(sql)).state:
                        return o
                o = wire.run(f"SELECT count(*) FROM ((TABLE fresh EXCEPT ALL TABLE {n}) UNION ALL (TABLE {n} EXCEPT ALL TABLE fresh)) q")
                same = same and o.rows == [("0",)]
                for sql in (f"TRUNCATE {n}", f"INSERT INTO {n} TABLE fresh"):
                    if (o := wire.run(sql)).state:
                        return o
            if same:
                break
        return wire.run(self.body)


def run_round(judge: Judge, seed: int, queries: int = 5, batches: int = 5, restart=None) -> list[tuple[str, Fault, int]]:
    judge.begin()
    faults, views = [], {}
    for i in range(queries):
        m = Mutual(random.Random(f"{seed}/{i}"))
        if m.judged(judge.pg).state:
            judge.counts["refused by PostgreSQL"] += 1
            continue
        o = judge.rd.run(f"CREATE MATERIALIZED VIEW v{i} AS {m.sql()}")
        if o.state:
            faults.append((m.sql(), Fault("refused", f"{o.state} {o.message}"), -1))
        else:
            views[f"v{i}"] = m
    changes = Changes(random.Random(f"{seed}/changes"))
    for n in range(batches):
        judge.apply(changes.batch(n))
        if restart and n == batches // 2:
            restart()
            judge.rd = type(judge.rd)(judge.server.dsn)
            judge.path()
        for view, m in list(views.items()):
            sql = m.sql()
            want, once, kept = m.judged(judge.pg), judge.rd.run(sql), judge.rd.run(f"SELECT * FROM {view}")
            fault = None
            if once.state != kept.state:
                fault = Fault("states", f"{once.state} {once.message}, view {kept.state} {kept.message}")
            elif collections.Counter(once.rows) != collections.Counter(kept.rows):
                fault = Fault("view", difference(collections.Counter(once.rows), collections.Counter(kept.rows)))
            elif want.state or once.state in ("22012", "21000"):
                judge.counts[f"fails ({want.state}, {once.state})"] += 1
            elif once.state:
                fault = Fault("one-off fails", f"{once.state} {once.message}")
            elif plain(want.rows, want.oids) != plain(once.rows, want.oids):
                fault = Fault("one-off", difference(plain(want.rows, want.oids), plain(once.rows, want.oids)))
            else:
                judge.counts["compared"] += 1
                judge.counts["rows"] += len(want.rows)
            if fault:
                faults.append((sql, fault, n))
                del views[view]
    judge.end()
    return faults


def main():
    p = rounds.options(__doc__, 20)
    p.add_argument("--restart-every", type=int, default=10)
    p.add_argument("--workers", type=int, default=2)
    a = p.parse_args()

    def each(judge, seed):
        faults = run_round(judge, seed, restart=rounds.again(judge.server, seed, a.restart_every))
        for sql, fault, when in faults:
            print(f"seed {seed}, batch {when}, {fault}\n  {sql}", flush=True)
        return len(faults)

    return rounds.run(a, "recursion", Judge, each, a.workers)


if __name__ == "__main__":
    sys.exit(main())
