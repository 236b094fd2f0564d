"""Rows that come in bulk, with and without keys, beside PostgreSQL; and the start after a kill.

    python benches/load.py --bin target/release/riverdelta [--pg DSN] [--rows 1000000] [--workers 2] [--rounds 3]

For each table: one INSERT ... SELECT of all rows, wall time, CPU time of our process, and PostgreSQL's time over ours. Then what another session waits
for one row meanwhile, at most; then SIGKILL, and the time until a first answer over all the tables. Medians of `--rounds`, the two servers in turns.
"""

import argparse
import statistics
import threading
import time

import psycopg
from served import Fresh, cpu

TABLES = {
    "no key": ("CREATE TABLE l0 (id int8, k int8, v text)", "INSERT INTO l0 SELECT g, g * 7919 % 1000, 'name ' || g FROM generate_series(1::int8, {rows}) g"),
    "primary key": ("CREATE TABLE l1 (id int8 PRIMARY KEY, k int8, v text)", "INSERT INTO l1 SELECT * FROM l0"),
    "and a unique text": ("CREATE TABLE l2 (id int8 PRIMARY KEY, k int8, v text UNIQUE)", "INSERT INTO l2 SELECT * FROM l0"),
    "and a foreign key": ("CREATE TABLE l3 (id int8 PRIMARY KEY, k int8 REFERENCES l1 (id), v text)", "INSERT INTO l3 SELECT id, id, v FROM l0"),
}


class Waits:
    """Another session that looks up one row again and again: its longest wait."""

    def __init__(self, connect):
        self.db, self.longest, self.ended = connect(), 0.0, False
        self.db.execute("CREATE TABLE IF NOT EXISTS small AS SELECT 1 AS a")
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.ended:
            begun = time.monotonic()
            self.db.execute("SELECT a FROM small").fetchall()
            self.longest = max(self.longest, time.monotonic() - begun)
            time.sleep(0.005)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended = True
        self.thread.join()
        self.db.close()


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--bin", required=True)
    args.add_argument("--pg")
    args.add_argument("--rows", type=int, default=1_000_000)
    args.add_argument("--workers", type=int, default=2)
    args.add_argument("--rounds", type=int, default=3)
    a = args.parse_args()
    took = {}
    for _ in range(a.rounds):
        pg = psycopg.connect(a.pg, autocommit=True) if a.pg else None
        if pg:
            pg.execute("DROP TABLE IF EXISTS l0, l1, l2, l3")
        with Fresh(a.workers, a.bin) as server:
            with server.connect() as db:
                for name, (create, insert) in TABLES.items():
                    db.execute(create)
                    with Waits(server.connect) as waits:
                        used, begun = cpu(server), time.monotonic()
                        db.execute(insert.format(rows=a.rows))
                        took.setdefault(name, []).append(time.monotonic() - begun)
                        took.setdefault(f"{name} cpu", []).append(cpu(server) - used)
                    took.setdefault(f"{name} wait", []).append(waits.longest)
                    if pg:
                        pg.execute(create)
                        begun = time.monotonic()
                        pg.execute(insert.format(rows=a.rows))
                        took.setdefault(f"{name} pg", []).append(time.monotonic() - begun)
            # What was written last is folded by then.
            time.sleep(5)
            server.kill()
            begun = time.monotonic()
            server.start()
            with server.connect() as db:
                counted = db.execute("SELECT (SELECT count(*) FROM l0) + (SELECT count(*) FROM l3)").fetchone()[0]
            took.setdefault("start", []).append(time.monotonic() - begun)
            if counted != 2 * a.rows:
                raise SystemExit(f"{counted} rows are there after the kill")
        if pg:
            pg.execute("DROP TABLE l3, l2, l1, l0")
            pg.close()
    m = {k: statistics.median(v) for k, v in took.items()}
    for name in TABLES:
        line = f"{name:20} {a.rows} rows: {m[name]:6.2f} s wall {m[f'{name} cpu']:6.2f} s cpu, others wait {m[f'{name} wait']:5.2f} s at most"
        if a.pg:
            line += f"; PostgreSQL {m[f'{name} pg']:6.2f} s, ratio {m[f'{name} pg'] / m[name]:4.2f}"
        print(line)
    print(f"start after a kill: {m['start']:.2f} s until counts over the first and the last table are answered")


if __name__ == "__main__":
    main()
