"""Random queries as one-off queries and as maintained views over changing tables (sql-tests/random_queries.py), and random sessions beside each other
(sql-tests/random_sessions.py): beside PostgreSQL.

A failure names its seed: `python sql-tests/random_queries.py --pg DSN --seed N --rounds 1` shows it alone and shrinks it.
"""

import random

import pytest
import random_queries
import random_sessions
from harness.riverdelta import Riverdelta

ROUNDS, ROUNDS_LONG = 20, 1000
SESSIONS, SESSIONS_LONG = 12, 1000
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


@pytest.mark.timeout(7200)
def test_sessions_beside_each_other(pg, tmp_path, long):
    """Blocks of three sessions, mixed: each answers as if it had been alone, in the order of the commits (sql-tests/random_sessions.py)."""
    first = random.randrange(1 << 30) if long else 1
    server = Riverdelta(tmp_path / "rd", workers=2).start()
    judge = random_sessions.Judge(pg.dsn, server, "random_sessions")
    rounds = SESSIONS_LONG if long else SESSIONS
    try:
        for seed in range(first, first + rounds):
            try:
                random_sessions.run_round(judge, seed, kill=seed % RESTART_EVERY == 0, keyed=seed % 2 == 0)
            except random_sessions.Fault as e:
                pytest.fail(f"seed {seed}: {e}\n" + "\n".join(judge.log))
        assert not server.panics(), server.panics()
    finally:
        server.stop()
    assert judge.counts["blocks beside others"] > rounds, judge.counts
