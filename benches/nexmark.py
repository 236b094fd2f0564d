"""Nexmark q1, q3, q4, q18 over JSON files, beside hand-written differential programs in the same run.

    python benches/nexmark.py --bin target/release/riverdelta --peers DIR [--events 1000000] [--workers 2]

`--peers` is a folder with the crates `nexgen` (makes the events) and `differential` (the hand-written q3, q4, q18). Each
query gets a fresh data directory: the time is from CREATE SOURCE until the view is complete, durability included; the peers neither
store nor serve. CPU seconds are of the whole process. One line a query, ratios of the peer's wall and CPU time to ours: on a machine that does
other work beside, only CPU time says something.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import tempfile
import time

from served import Fresh, cpu, memory

COLUMNS = {
    "person": 'id int8, name text, "emailAddress" text, "creditCard" text, city text, state text, "dateTime" timestamp, extra text',
    "auction": 'id int8, "itemName" text, description text, "initialBid" int8, reserve int8, "dateTime" timestamp, expires timestamp, seller int8, category int8, extra text',
    "bid": 'auction int8, bidder int8, price int8, channel text, url text, "dateTime" timestamp, extra text',
}
QUERIES = {
    "q1": (["bid"], 'SELECT auction, bidder, 0.908 * price AS price, "dateTime", extra FROM bid'),
    "q3": (["person", "auction"], "SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id WHERE a.category = 10 AND p.state IN ('or', 'id', 'ca')"),
    "q4": (
        ["auction", "bid"],
        'SELECT category, avg(final) AS final FROM (SELECT max(b.price) AS final, a.id, a.category FROM auction a JOIN bid b ON a.id = b.auction '
        'WHERE b."dateTime" BETWEEN a."dateTime" AND a.expires GROUP BY a.id, a.category) q GROUP BY category',
    ),
    "q18": (["bid"], 'SELECT DISTINCT ON (bidder, auction) * FROM bid ORDER BY bidder, auction, "dateTime" DESC'),
}


def ours(binary, data, workers, name):
    tables, query = QUERIES[name]
    with Fresh(workers, binary) as server, server.connect() as db:
        before, begun = cpu(server), time.time()
        for t in tables:
            db.execute(f"CREATE SOURCE {t} ({COLUMNS[t]}) FROM FILE (PATH '{data}/p2/{t}/part-*.json') FORMAT JSON")
        db.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
        # A read of the view waits until its sources are complete and it has caught up.
        rows = db.execute("SELECT count(*) FROM v").fetchone()[0]
        wall = time.time() - begun
        return wall, cpu(server) - before, rows, memory(server, "VmHWM") / (1 << 20)


def children() -> float:
    """CPU seconds of processes that have ended; a server that was killed is waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--bin", required=True)
    args.add_argument("--peers", required=True)
    args.add_argument("--events", type=int, default=1_000_000)
    args.add_argument("--workers", type=int, default=2)
    args.add_argument("--target", default=os.path.join(tempfile.gettempdir(), "nexmark-target"))
    a = args.parse_args()
    env = {**os.environ, "CARGO_TARGET_DIR": a.target}
    for crate in ("nexgen", "differential"):
        source = os.path.join(a.target, "src", crate)
        shutil.copytree(os.path.join(a.peers, crate), source, dirs_exist_ok=True, copy_function=shutil.copy)
        subprocess.run(["chmod", "-R", "u+w", source], check=True)
        subprocess.run(["cargo", "build", "--release", "-q", "--manifest-path", os.path.join(source, "Cargo.toml")], check=True, env=env)
    data = os.path.join(a.target, f"events-{a.events}")
    if not os.path.exists(data):
        subprocess.run([os.path.join(a.target, "release", "nexgen"), str(a.events), data], check=True)
    print(f"{a.events} events, {a.workers} workers")
    for name in QUERIES:
        wall, cpu, rows, rss = ours(a.bin, data, a.workers, name)
        line = f"{name:4} riverdelta {wall:7.2f} s wall {cpu:7.2f} s cpu {rss:6.0f} MB peak, {rows} rows"
        if name != "q1":
            begun, before = time.time(), children()
            out = subprocess.run([os.path.join(a.target, "release", "nexdd"), name, os.path.join(data, "p2"), str(a.workers)], check=True, capture_output=True, text=True).stdout
            peer = json.loads(out.strip().splitlines()[-1])["job_wall"]
            used = children() - before
            line += f" | hand-written {peer:6.2f} s wall {used:6.2f} s cpu, ratios {peer / wall:4.2f} and {used / cpu:4.2f} (process {time.time() - begun:.2f} s)"
        print(line, flush=True)


if __name__ == "__main__":
    main()
