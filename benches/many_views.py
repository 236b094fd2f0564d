"""Many views over one table: what a tick costs, how fresh they are, how long a restart takes.

    python benches/many_views.py --bin target/release/riverdelta [--views 200] [--rows 2000000] [--workers 2] [--changes 300]

A third each of the views are sums by group, filters and maxima, each of its own share of the rows. Reported: CPU seconds until all views answer; CPU time of an
INSERT among many, one after another (ticks share the work); CPU time and wall time of an INSERT and the read of a view that must contain it (each tick
goes through all views alone); a restart until the first answer, and until every view answers.
"""

import argparse
import time

from served import Fresh, cpu, memory


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--bin", required=True)
    args.add_argument("--views", type=int, default=200)
    args.add_argument("--rows", type=int, default=2_000_000)
    args.add_argument("--workers", type=int, default=2)
    args.add_argument("--changes", type=int, default=300)
    a = args.parse_args()
    shapes = (
        "SELECT k, count(*) AS n, sum(v) AS s FROM e WHERE v % {n} = {i} GROUP BY k",
        "SELECT id, v FROM e WHERE v % {n} = {i}",
        "SELECT k, max(v) AS m FROM e WHERE id % {n} = {i} GROUP BY k",
    )

    def read_all(db):
        for i in range(a.views):
            db.execute(f"SELECT count(*) FROM v{i}").fetchone()

    with Fresh(a.workers, a.bin) as server:
        with server.connect() as db:
            db.execute("CREATE TABLE e (id int8, k int8, v int8)")
            db.execute(f"INSERT INTO e SELECT g, g * 7919 % 1000, g * 104729 % 65536 FROM generate_series(1::int8, {a.rows}) g")
            used = cpu(server)
            for i in range(a.views):
                db.execute(f"CREATE MATERIALIZED VIEW v{i} AS {shapes[i % 3].format(n=a.views, i=i)}")
            read_all(db)
            print(f"{a.views} views over {a.rows} rows: {cpu(server) - used:.2f} s cpu, {memory(server) / (1 << 20):.0f} MB", flush=True)
            insert = lambda n: db.execute(f"INSERT INTO e VALUES ({a.rows + n + 1}, {n % 1000}, {n * 7919 % 65536})")  # noqa: E731
            used = cpu(server)
            for n in range(a.changes):
                insert(n)
            read_all(db)
            print(f"an INSERT among many: {1000 * (cpu(server) - used) / a.changes:.2f} ms cpu", flush=True)
            used, waits = cpu(server), []
            for n in range(a.changes):
                begun = time.monotonic()
                insert(a.changes + n)
                db.execute("SELECT count(*) FROM v1").fetchone()
                waits.append(1000 * (time.monotonic() - begun))
                time.sleep(0.005)
            waits.sort()
            each = 1000 * (cpu(server) - used) / a.changes
            print(f"INSERT, then a view with it: {each:.2f} ms cpu, p50 {waits[len(waits) // 2]:.1f} ms, p99 {waits[len(waits) * 99 // 100]:.1f} ms", flush=True)
        begun = time.monotonic()
        server.restart()
        with server.connect() as db:
            db.execute("SELECT 1")
            first = time.monotonic() - begun
            read_all(db)
            print(f"restart: first answer after {first:.2f} s, all views after {time.monotonic() - begun:.2f} s, {cpu(server):.2f} s cpu", flush=True)


if __name__ == "__main__":
    main()
