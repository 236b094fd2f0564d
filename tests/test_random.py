"""Random queries as one-off queries and as maintained views over changing tables, beside PostgreSQL (sql-tests/random_queries.py).

A failure names its seed: `python sql-tests/random_queries.py --pg DSN --seed N --rounds 1` shows it alone and shrinks it.
"""

import random

import pytest
import random_queries
from harness.riverdelta import Riverdelta

ROUNDS, ROUNDS_LONG = 20, 1000
RESTART_EVERY = 10


@pytest.mark.timeout(7200)
def test_rounds(pg, tmp_path, long):
    first = random.randrange(1 << 30) if long else 1
    server = Riverdelta(tmp_path / "rd", workers=2).start()
    judge = random_queries.Judge(pg.dsn, server, "random_queries")
    try:
        for seed in range(first, first + (ROUNDS_LONG if long else ROUNDS)):
            again = (lambda: server.restart(kill=True, workers=3 - server.workers)) if seed % RESTART_EVERY == 0 else None
            _, _, faults = random_queries.run_round(judge, seed, restart=again)
            assert not faults, f"seed {seed}:\n" + "\n".join(f"batch {n}: {f}\n  {sql}" for sql, f, n in faults)
        assert not server.panics(), server.panics()
    finally:
        server.stop()
    assert judge.counts["compared"] > 20 * ROUNDS, judge.counts
