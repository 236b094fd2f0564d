"""Views and one-off queries over rows that are stored, beside PostgreSQL.

    python benches/stored.py --bin target/release/riverdelta [--pg DSN] [--rows 2000000] [--workers 2] [--rounds 3] [--only NAME]

For each query: CREATE MATERIALIZED VIEW until it answers, and the query once, counted. Medians of `--rounds`, interleaved with the same on the PostgreSQL of
`--pg` (CREATE MATERIALIZED VIEW there too), wall time and CPU time of our process; by how much its memory grew with the view.
"""

import argparse
import statistics
import time

import psycopg
from served import Fresh, cpu, memory

QUERIES = {
    "sum, 1000 groups": "SELECT k, count(*) AS n, sum(v) AS s FROM e GROUP BY k",
    "max, 1000 groups": "SELECT k, count(*) AS n, sum(v) AS s, max(v) AS m FROM e GROUP BY k",
    "sum, 500000 groups": "SELECT id % 500000 AS g, count(*) AS n, sum(v) AS s FROM e GROUP BY 1",
    "sum by text": "SELECT s, count(*) AS n, sum(v) AS x FROM e GROUP BY s",
    "distinct": "SELECT DISTINCT v FROM e",
    "join, 1000 rows": "SELECT e.id, e.v, d.name FROM e JOIN d ON e.k = d.k WHERE e.v % 10 = 0",
    "join, half as many": "SELECT e.id, e.v, b.w FROM e JOIN b ON e.id = b.id",
    "DISTINCT ON": "SELECT DISTINCT ON (k) k, id, v FROM e ORDER BY k, v DESC, id",
}


def fill(db, rows):
    db.execute("CREATE TABLE e (id int8, k int8, v int8, s text)")
    db.execute(f"INSERT INTO e SELECT g, g * 7919 % 1000, g * 104729 % 65536, 'name ' || (g * 31 % 50000) FROM generate_series(1::int8, {rows}) g")
    db.execute("CREATE TABLE d (k int8 PRIMARY KEY, name text)")
    db.execute("INSERT INTO d SELECT g, 'name ' || g FROM generate_series(0, 999) g")
    db.execute("CREATE TABLE b (id int8 PRIMARY KEY, w int8)")
    db.execute(f"INSERT INTO b SELECT g * 2, g FROM generate_series(1::int8, {rows // 2}) g")


def view(db, query):
    db.execute(f"CREATE MATERIALIZED VIEW stored AS {query}")
    return db.execute("SELECT count(*) FROM stored").fetchone()[0]


def once(db, query):
    return db.execute(f"SELECT count(*) FROM ({query}) x").fetchone()[0]


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--bin", required=True)
    args.add_argument("--pg")
    args.add_argument("--rows", type=int, default=2_000_000)
    args.add_argument("--workers", type=int, default=2)
    args.add_argument("--rounds", type=int, default=3)
    args.add_argument("--only", choices=QUERIES)
    a = args.parse_args()
    pg = psycopg.connect(a.pg, autocommit=True) if a.pg else None
    if pg:
        pg.execute("DROP TABLE IF EXISTS e, d, b CASCADE")
        fill(pg, a.rows)
        pg.execute("VACUUM ANALYZE")
    with Fresh(a.workers, a.bin) as server, server.connect() as db:
        fill(db, a.rows)
        # What was written last is folded by then.
        time.sleep(5)
        for name, query in QUERIES.items():
            if a.only not in (None, name):
                continue
            took = {}
            for _ in range(a.rounds):
                for kind, run in (("view", view), ("once", once)):
                    used, grown, begun = cpu(server), memory(server), time.monotonic()
                    rows = run(db, query)
                    took.setdefault(kind, []).append(time.monotonic() - begun)
                    took.setdefault(f"{kind} cpu", []).append(cpu(server) - used)
                    if kind == "view":
                        time.sleep(1)
                        took.setdefault("grown", []).append((memory(server) - grown) / (1 << 20))
                        db.execute("DROP MATERIALIZED VIEW stored")
                    if pg:
                        begun = time.monotonic()
                        if run(pg, query) != rows:
                            raise SystemExit(f"{name}: {rows} rows, PostgreSQL has another number")
                        took.setdefault(f"{kind} pg", []).append(time.monotonic() - begun)
                        pg.execute("DROP MATERIALIZED VIEW IF EXISTS stored")
            m = {k: statistics.median(v) for k, v in took.items()}
            line = f"{name:20} {rows:8} rows"
            for kind in ("view", "once"):
                line += f" | {kind} {m[kind]:6.2f} s wall {m[f'{kind} cpu']:5.2f} s cpu"
                if pg:
                    line += f", PostgreSQL {m[f'{kind} pg']:6.2f} s, ratio {m[f'{kind} pg'] / m[kind]:4.2f}"
            print(f"{line} | {m['grown']:+5.0f} MB", flush=True)
    if pg:
        pg.execute("DROP TABLE e, d, b")


if __name__ == "__main__":
    main()
