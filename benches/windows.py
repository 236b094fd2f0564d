"""What one change costs a view over one group: 10 thousand rows and a million, beside PostgreSQL's refresh.

    python benches/windows.py --bin target/release/riverdelta [--pg DSN] [--rows 1000000] [--workers 2] [--changes 40]

For each view: the median of (insert one row at a random place of the group, read the view's row of it by index), with a group of ten thousand
rows and with one of `--rows`. A cost in proportion to the group shows as a ratio near 100, one in proportion to the change as one near 1.
`--pg`: a PostgreSQL that does the same with REFRESH MATERIALIZED VIEW, once.
"""

import argparse
import random
import statistics
import time

import psycopg
from served import Fresh, memory

VIEWS = {
    "count": "SELECT g, count(*) AS n, 0 AS id FROM t GROUP BY g",
    "min, max": "SELECT g, min(o) AS lo, max(o) AS hi, 0 AS id FROM t GROUP BY g",
    "top 10": "SELECT g, o, v, id FROM t ORDER BY o, id LIMIT 10",
    "DISTINCT ON": "SELECT DISTINCT ON (g) g, o, v, 0 AS id FROM t ORDER BY g, o, id",
    "row_number <= 10": "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY o DESC, id) AS n FROM t) x WHERE n <= 10",
    "lag, lead": "SELECT *, lag(v) OVER w AS a, lead(v, 2) OVER w AS b FROM t WINDOW w AS (PARTITION BY g ORDER BY o, id)",
    "sum of 10 rows": "SELECT *, sum(v) OVER (PARTITION BY g ORDER BY o, id ROWS BETWEEN 5 PRECEDING AND 5 FOLLOWING) AS s FROM t",
    "avg by range": "SELECT *, avg(v) OVER (PARTITION BY g ORDER BY o RANGE BETWEEN 20 PRECEDING AND CURRENT ROW) AS s FROM t",
}
# A row at the end: what comes before it is not read again.
AT_END = {
    "rank at the end": "SELECT *, rank() OVER (PARTITION BY g ORDER BY o) AS r, row_number() OVER (PARTITION BY g ORDER BY o, id) AS n FROM t",
    "running sum at the end": "SELECT *, sum(v) OVER (PARTITION BY g ORDER BY o, id) AS s FROM t",
    "running avg, float sum": "SELECT *, avg(v) OVER w AS a, sum(v::float8) OVER w AS s FROM t WINDOW w AS (PARTITION BY g ORDER BY o, id)",
    "variance of all before": "SELECT *, variance(v::numeric) OVER (PARTITION BY g ORDER BY o, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS a FROM t",
}


def fill(db, rows):
    db.execute("CREATE TABLE t (id int8, g int8, o int8, v int8)")
    db.execute(f"INSERT INTO t SELECT i, 1, (i::int8 * 7919) % {rows * 4}, i % 1000 FROM generate_series(1, {rows}) i")


def change(db, query, rows, n, at_end, rng):
    """Median seconds of one insert and the look-up that shows it."""
    db.execute(f"CREATE MATERIALIZED VIEW w AS {query}")
    db.execute("CREATE INDEX w_id ON w (id)")
    begun = time.time()
    db.execute("SELECT * FROM w WHERE id = 1").fetchall()
    hydrated = time.time() - begun
    took = []
    for k in range(n):
        place = rows * 4 + k if at_end else rng.randrange(rows * 4)
        begun = time.perf_counter()
        db.execute("INSERT INTO t VALUES (%s, 1, %s, 5)", [rows + k + 1, place])
        db.execute("SELECT * FROM w WHERE id = %s", [rows + k + 1]).fetchall()
        took.append(time.perf_counter() - begun)
    db.execute("DROP MATERIALIZED VIEW w")
    db.execute(f"DELETE FROM t WHERE id > {rows}")
    return statistics.median(took), hydrated


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--bin", required=True)
    args.add_argument("--pg")
    args.add_argument("--rows", type=int, default=1_000_000)
    args.add_argument("--workers", type=int, default=2)
    args.add_argument("--changes", type=int, default=40)
    a = args.parse_args()
    found = {}
    for rows in (10_000, a.rows):
        with Fresh(a.workers, a.bin) as server:
            with server.connect() as db:
                fill(db, rows)
            for name, query in {**VIEWS, **AT_END}.items():
                # Prepared statements of one view do not fit the next.
                with server.connect() as db:
                    found[name, rows] = change(db, query, rows, a.changes, name in AT_END, random.Random(1))
            print(f"{rows} rows: peak {memory(server, 'VmHWM') / (1 << 20):.0f} MB", flush=True)
    refresh = {}
    if a.pg:
        with psycopg.connect(a.pg, autocommit=True) as pg:
            pg.execute("DROP TABLE IF EXISTS t CASCADE")
            fill(pg, a.rows)
            for name, query in {**VIEWS, **AT_END}.items():
                pg.execute(f"CREATE MATERIALIZED VIEW w AS {query}")
                begun = time.perf_counter()
                pg.execute("REFRESH MATERIALIZED VIEW w")
                refresh[name] = time.perf_counter() - begun
                pg.execute("DROP MATERIALIZED VIEW w")
            pg.execute("DROP TABLE t")
    for name in {**VIEWS, **AT_END}:
        (small, _), (large, hydrated) = found[name, 10_000], found[name, a.rows]
        line = f"{name:22} {small * 1e3:8.2f} ms of 10000 rows, {large * 1e3:8.2f} ms of {a.rows}: ratio {large / small:6.2f}; hydrated in {hydrated:.1f} s"
        if name in refresh:
            line += f" | PostgreSQL refresh {refresh[name] * 1e3:7.0f} ms, {refresh[name] / large:6.0f} times ours"
        print(line)


if __name__ == "__main__":
    main()
