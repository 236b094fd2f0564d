"""Rounds of a random generator, from the command line: a server of their own, a seed each, and what is done when one does not hold."""

import argparse
import os
import shutil
import tempfile
import time

from harness.riverdelta import Riverdelta


def options(doc: str, rounds: int) -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--pg", required=True, help="the DSN of PostgreSQL")
    p.add_argument("--seed", type=int, default=int(time.time()))
    p.add_argument("--rounds", type=int, default=rounds)
    p.add_argument("--keep-going", action="store_true", help="go on with the next seed after a fault")
    return p


def run(a: argparse.Namespace, kind: str, judge_of, each, workers: int = 2) -> int:
    """`judge_of(dsn, server, schema)` makes a judge, with `counts`; `each(judge, seed)` is a round, which tells its faults and gives their number.
    Returns what the process exits with. The server's directory stays if there were faults."""
    directory = tempfile.mkdtemp(prefix=f"{kind}-")
    server = Riverdelta(directory, workers=workers).start()
    judge = judge_of(a.pg, server, f"{kind}_{os.getpid()}")
    bad, began = 0, time.monotonic()
    print(f"seed {a.seed}", flush=True)
    try:
        for seed in range(a.seed, a.seed + a.rounds):
            try:
                faults = each(judge, seed)
            except (RuntimeError, ConnectionError, OSError) as e:
                print(f"seed {seed}: {e}\n" + "\n".join(server.panics()[-3:]), flush=True)
                faults = 1
                if not server.proc.running():
                    server.restart(kill=True)
                judge = judge_of(a.pg, server, judge.schema)
            bad += faults
            if faults and not a.keep_going:
                break
    finally:
        print(f"{dict(judge.counts)}, {bad} faults, {time.monotonic() - began:.0f} s; panics: {len(server.panics())}")
        server.stop()
        if bad:
            print(server.log)
        else:
            shutil.rmtree(directory, ignore_errors=True)
    return 1 if bad else 0


def again(server: Riverdelta, seed: int, every: int):
    """For each so many seeds, what kills the server in the middle of the round and starts it with another number of workers."""
    return (lambda: server.restart(kill=True, workers=3 - server.workers)) if every and seed % every == 0 else None
