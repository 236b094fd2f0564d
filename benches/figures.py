"""First figures, one line each: events a second, freshness, memory a row, hydration.

    python benches/figures.py --bin target/release/riverdelta [--rows 1000000] [--only kafka]

Everything runs on this machine, one thing at a time, and starts what it needs (a Kafka broker, a PostgreSQL 15) as the tests do. Beside it stands what a
user would do instead where there is something to run: PostgreSQL with the same rows, its query again or REFRESH MATERIALIZED VIEW.

    events a second   from CREATE SOURCE (a topic or generator that holds everything) until the view of it is complete, durability included
    freshness         from before produce()/INSERT until a SUBSCRIBE of a view delivers the change, in a steady trickle
    memory            bytes of an arrangement, by rd_catalog.arrangements
    hydration         from CREATE MATERIALIZED VIEW on rows that are there until it answers
"""

import argparse
import contextlib
import os
import shutil
import tempfile
import threading
import time

import psycopg
from served import Fresh, cpu


def figure(name: str, value: float, unit: str, more: str = ""):
    print(f"{name:44} {value:14,.2f} {unit:10} {more}".rstrip(), flush=True)


# What is asked of a stream `e (id, k, v)`, with a table `d (k, name)` of a thousand rows to join with.
VIEWS = {
    "filter": "SELECT id, k, v FROM e WHERE v % 100 = 0",
    "join": "SELECT e.id, e.v, d.name FROM e JOIN d ON e.k = d.k WHERE e.v % 10 = 0",
    "aggregate": "SELECT k, count(*) AS n, sum(v) AS s, max(v) AS m FROM e GROUP BY k",
}
DIMENSION = ["CREATE TABLE d (k int8 PRIMARY KEY, name text)", "INSERT INTO d SELECT g, 'name ' || g FROM generate_series(0, 999) g"]


def complete(r, source: list[str], view: str) -> tuple[float, float]:
    """Wall and CPU seconds until the view of the source is complete."""
    r.sql(*DIMENSION)
    cpu_before, began = cpu(r), time.monotonic()
    r.sql(*source, f"CREATE MATERIALIZED VIEW figure_view AS {VIEWS[view]}")
    r.sql("SELECT count(*) FROM figure_view")  # waits for the source's snapshot and the view
    return time.monotonic() - began, cpu(r) - cpu_before


def generator(a):
    for view in VIEWS:
        with Fresh(a.workers) as r:
            # 8 random bytes of value: the first four are the number, the next decide the key.
            source = [f"CREATE SOURCE g FROM LOAD GENERATOR KEY VALUE (KEYS {a.rows}, BATCH SIZE 10000, VALUE SIZE 8, UPDATES false, TICK INTERVAL '1s')",
                      "CREATE VIEW e AS SELECT key AS id, (get_byte(value, 4) * 256 + get_byte(value, 5)) % 1000::int8 AS k, get_byte(value, 0) * 256 + get_byte(value, 1) AS v FROM g"]
            wall, used = complete(r, source, view)
            figure(f"generator, {view}", a.rows / wall, "events/s", f"{wall:.2f} s wall, {used:.2f} s cpu")


def kafka(a):
    from harness.kafka import Kafka

    directory = tempfile.mkdtemp(prefix="figures-kafka-")
    broker = Kafka(directory).init().start()
    try:
        broker.create_topic("e", 2)
        p = broker.producer(**{"queue.buffering.max.messages": 1_000_000, "linger.ms": 20})
        began = time.monotonic()
        for n in range(a.rows):
            p.produce("e", f'{{"id": {n}, "k": {n * 7919 % 1000}, "v": {n * 104729 % 65536}, "text": "some text that is not read"}}', partition=n % 2)
            if n % 10_000 == 0:
                p.poll(0)
        p.flush(120)
        figure("kafka, produced by this script", a.rows / (time.monotonic() - began), "events/s")
        began = time.monotonic()
        consumed = len(broker.consume("e", 2))
        figure("kafka, consumed by this script, undecoded", consumed / (time.monotonic() - began), "events/s")
        source = lambda r: [f"CREATE CONNECTION kc TO KAFKA (BROKER '{broker.broker}', SECURITY PROTOCOL 'PLAINTEXT')",  # noqa: E731
                            "CREATE SOURCE e (id int8, k int8, v int8) FROM KAFKA CONNECTION kc (TOPIC 'e') FORMAT JSON"]
        for view in VIEWS:
            with Fresh(a.workers) as r:
                wall, used = complete(r, source(r), view)
                figure(f"kafka JSON, {view}", a.rows / wall, "events/s", f"{wall:.2f} s wall, {used:.2f} s cpu")
        broker.create_topic("fresh", 2)
        with Fresh(a.workers) as r:
            r.sql(source(r)[0], "CREATE SOURCE f (id int8, k int8, v int8) FROM KAFKA CONNECTION kc (TOPIC 'fresh') FORMAT JSON",
                  "CREATE MATERIALIZED VIEW figure_view AS SELECT k, count(*) AS n, max(id) AS last FROM f GROUP BY k")
            p = broker.producer(**{"linger.ms": 0})

            def send(n):
                p.produce("fresh", f'{{"id": {n}, "k": {n % 50}, "v": 1}}', partition=n % 2)
                p.poll(0)

            freshness("produce to SUBSCRIBE, kafka", r, send, a.events, flush=p.flush)
    finally:
        broker.stop()
        shutil.rmtree(directory, ignore_errors=True)


def freshness(name: str, r, send, events: int, rate: int = 200, flush=lambda: None):
    """Sends events with rising ids at a steady rate, and notes when a subscription of `figure_view (k, n, last)` shows each."""
    sent, seen, ready = {}, {}, threading.Event()

    def read():
        rest = b""
        with contextlib.suppress(psycopg.Error), r.connect() as c, c.cursor() as cur, cur.copy("COPY (SUBSCRIBE figure_view) TO STDOUT") as copy:
            for block in copy:
                now = time.monotonic()
                *lines, rest = (rest + bytes(block)).split(b"\n")
                for line in lines:
                    _, diff, _, _, last = line.split(b"\t")
                    if diff == b"1" and last != b"\\N":
                        seen.setdefault(int(last), now)
                ready.set()
                if len(seen) >= events:
                    c.cancel()  # ends the copy with an error

    th = threading.Thread(target=read, daemon=True)
    th.start()
    time.sleep(1)
    began = time.monotonic()
    for n in range(events):
        time.sleep(max(0, began + n / rate - time.monotonic()))
        sent[n] = time.monotonic()
        send(n)
    flush()
    th.join(10)
    waits = sorted(1000 * (seen[n] - sent[n]) for n in sent if n in seen and n >= events // 10)
    # An id that a later one of its group overtook within one tick never shows.
    figure(f"{name}, p50", waits[len(waits) // 2], "ms", f"{rate}/s, {len(waits)} of {events - events // 10} seen alone")
    figure(f"{name}, p99", waits[len(waits) * 99 // 100], "ms")


def tables(a):
    from harness.postgres import Postgres

    rows = f"SELECT g, g * 7919 % 1000, g * 104729 % 65536 FROM generate_series(1::int8, {a.rows}) g"
    with Fresh(a.workers) as r:
        r.sql(*DIMENSION, "CREATE TABLE e (id int8, k int8, v int8)")
        began = time.monotonic()
        r.sql(f"INSERT INTO e {rows}")
        figure("table, INSERT SELECT", a.rows / (time.monotonic() - began), "rows/s")
        for view, query in VIEWS.items():
            began = time.monotonic()
            r.sql(f"CREATE MATERIALIZED VIEW v_{view} AS {query}", f"SELECT count(*) FROM v_{view}")
            figure(f"hydration, {view}", a.rows / (time.monotonic() - began), "rows/s")
        began = time.monotonic()
        r.sql("CREATE INDEX e_id ON e (id)", "SELECT v FROM e WHERE id = 77")
        figure("hydration, index on a bigint", a.rows / (time.monotonic() - began), "rows/s")
        for _ in range(2):  # counts follow the ticks
            time.sleep(1)
            r.sql("INSERT INTO e VALUES (0, 0, 0)")
        time.sleep(1)
        records, size = r.sql("SELECT records, bytes FROM rd_catalog.arrangements WHERE name = 'e_id'")[0]
        figure("arrangement of three bigints", size / max(records, 1), "bytes/row", f"{records} rows")
        began = time.monotonic()
        r.restart()
        r.sql(*[f"SELECT count(*) FROM v_{view}" for view in VIEWS], "SELECT v FROM e WHERE id = 77")
        figure("restart until three views and an index answer", time.monotonic() - began, "s", f"{a.rows} rows")
        r.sql("CREATE TABLE f (id int8, k int8)", "CREATE MATERIALIZED VIEW figure_view AS SELECT k, count(*) AS n, max(id) AS last FROM f GROUP BY k")
        with r.connect() as c:
            freshness("INSERT to SUBSCRIBE", r, lambda n: c.execute(f"INSERT INTO f VALUES ({n}, {n % 50})"), a.events)
        with r.connect() as c:
            waits = []
            for n in range(300):
                began = time.monotonic()
                c.execute(f"INSERT INTO e VALUES ({a.rows + n}, {n % 1000}, 7)")
                c.execute(f"SELECT n FROM v_aggregate WHERE k = {n % 1000}").fetchone()
                waits.append(1000 * (time.monotonic() - began))
            waits.sort()
            figure("INSERT, then the aggregate's new row, p50", waits[150], "ms")
            figure("INSERT, then the aggregate's new row, p99", waits[297], "ms")
    directory = tempfile.mkdtemp(prefix="figures-pg-")
    pg = Postgres(directory).init().start()
    try:
        pg.sql(*DIMENSION, "CREATE TABLE e (id int8, k int8, v int8)")
        began = time.monotonic()
        pg.sql(f"INSERT INTO e {rows}")
        figure("PostgreSQL: INSERT SELECT (fsync off)", a.rows / (time.monotonic() - began), "rows/s")
        pg.sql("ANALYZE e")
        for view, query in VIEWS.items():
            began = time.monotonic()
            pg.sql(f"CREATE MATERIALIZED VIEW v_{view} AS {query}")
            figure(f"PostgreSQL: CREATE MATERIALIZED VIEW, {view}", a.rows / (time.monotonic() - began), "rows/s")
        began = time.monotonic()
        pg.sql("INSERT INTO e VALUES (0, 1, 7)", "REFRESH MATERIALIZED VIEW v_aggregate", "SELECT n FROM v_aggregate WHERE k = 1")
        figure("PostgreSQL: INSERT, REFRESH, the new row", 1000 * (time.monotonic() - began), "ms")
    finally:
        pg.stop()
        shutil.rmtree(directory, ignore_errors=True)


def main():
    parts = {"generator": generator, "kafka": kafka, "tables": tables}
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--bin", required=True)
    args.add_argument("--rows", type=int, default=1_000_000)
    args.add_argument("--events", type=int, default=2_000)
    args.add_argument("--workers", type=int, default=2)
    args.add_argument("--only", choices=parts)
    a = args.parse_args()
    os.environ["RIVERDELTA_BIN"] = a.bin
    for name, part in parts.items():
        if a.only in (None, name):
            part(a)


if __name__ == "__main__":
    main()
