"""Whole sessions: each script of `sessions/` gives through psql what it gives on PostgreSQL, tags, notices, errors and all their fields."""

import glob
import os
import subprocess

import pytest

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sessions")
SCRIPTS = sorted(os.path.basename(p) for p in glob.glob(os.path.join(HERE, "*.sql")))


def play(dsn: str, script: str) -> list[str]:
    command = ["psql", "-X", "-a", "-v", "VERBOSITY=verbose", "-f", script, dsn]
    done = subprocess.run(command, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    return [line for line in done.stdout.split("\n") if not line.startswith("LOCATION:")]


@pytest.mark.parametrize("script", SCRIPTS)
def test_script(pg, riverdelta, script):
    database = "sessions_" + script.removesuffix(".sql")
    pg.sql(f"CREATE DATABASE {database}")
    assert play(riverdelta.dsn, script) == play(pg.dsn.replace("dbname=postgres", f"dbname={database}"), script)
