"""Who is connected, what they do, and how others stop them."""

import threading
import time

import psycopg
import pytest

# Statements and sessions end when they are told, whatever waits for what.
LONG = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b WHERE a + b < 0"


def activity(c, pid: int):
    columns = "usename, application_name, host(client_addr), client_port, state, query, xact_start IS NOT NULL, backend_start <= state_change, backend_type"
    return c.execute(f"SELECT {columns} FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone()


def wait_for(c, pid: int, state: str, query: str):
    deadline = time.monotonic() + 20
    while True:
        seen = activity(c, pid)
        if seen and seen[4] == state and seen[5] == query:
            return
        assert time.monotonic() < deadline, seen
        time.sleep(0.02)


def test_sessions_are_seen(rd, db):
    with rd.connect(application_name="one that waits") as c:
        pid = c.info.backend_pid
        port = c.execute("SELECT inet_client_port(), inet_server_port(), host(inet_client_addr()), pg_backend_pid()").fetchone()
        assert port[1:] == (rd.port, "127.0.0.1", pid)
        c.execute("SELECT 41 + 1")
        assert activity(db, pid) == ("riverdelta", "one that waits", "127.0.0.1", port[0], "idle", "SELECT 41 + 1", False, True, "client backend")
        c.execute("BEGIN")
        assert activity(db, pid)[4:7] == ("idle in transaction", "BEGIN", True)
        with pytest.raises(psycopg.errors.DivisionByZero):
            c.execute("SELECT 1/0")
        assert activity(db, pid)[4:7] == ("idle in transaction (aborted)", "SELECT 1/0", True)
        c.execute("ROLLBACK")
        c.execute("SET application_name = 'renamed'")
        assert activity(db, pid)[1] == "renamed"
        own = activity(c, pid)
        assert own[4] == "active" and own[5].startswith("SELECT usename")
    deadline = time.monotonic() + 20
    while activity(db, pid):
        assert time.monotonic() < deadline, "a session that left is seen"
        time.sleep(0.02)


def running(rd, statement: str):
    """A session that runs the statement, its number and what it ended with."""
    c = rd.connect()
    ended = []

    def work():
        try:
            c.execute(statement)
            ended.append("it went through")
        except psycopg.Error as e:
            # A client that finds the connection closed tells the server's last words without their code.
            ended.append(e.sqlstate or ("57P01" if "terminating connection due to administrator command" in str(e) else str(e)))

    t = threading.Thread(target=work, daemon=True)
    t.start()
    return c, c.info.backend_pid, t, ended


@pytest.mark.parametrize("statement", [LONG, "SELECT pg_sleep(600)", "COPY (SUBSCRIBE watched) TO STDOUT"])
def test_statements_are_cancelled_and_sessions_ended(rd, db, statement):
    db.execute("CREATE TABLE IF NOT EXISTS watched (k int)")
    if statement.startswith("COPY"):
        statement = "SUBSCRIBE watched"
    for function, code in [("pg_cancel_backend", "57014"), ("pg_terminate_backend", "57P01")]:
        c, pid, t, ended = running(rd, statement)
        wait_for(db, pid, "active", statement)
        assert db.execute(f"SELECT {function}(pid) FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone() == (True,)
        t.join(30)
        assert ended == [code]
        if code == "57014":
            assert c.execute("SELECT 1").fetchone() == (1,)
        c.close()


def test_an_idle_block_is_ended(rd, db):
    db.execute("CREATE TABLE left_open (k int PRIMARY KEY)")
    c = rd.connect()
    c.execute("BEGIN")
    c.execute("INSERT INTO left_open VALUES (1)")
    c.execute("SELECT pg_advisory_lock(77)")
    assert db.execute("SELECT pid, mode, granted FROM pg_locks WHERE objid = 77").fetchall() == [(c.info.backend_pid, "ExclusiveLock", True)]
    assert db.execute("SELECT pg_terminate_backend(%s)", [c.info.backend_pid]).fetchone() == (True,)
    with pytest.raises(psycopg.OperationalError, match="terminating connection"):
        c.execute("COMMIT")
    db.execute("SELECT pg_advisory_lock(77)")
    db.execute("SELECT pg_advisory_unlock(77)")
    assert db.execute("SELECT count(*) FROM left_open").fetchone() == (0,)


def test_nobody_of_that_number(db):
    assert db.execute("SELECT pg_cancel_backend(1000000), pg_terminate_backend(1000000, 100)").fetchone() == (False, False)


def test_the_server_tells_when_it_started(rd, db):
    assert db.execute("SELECT pg_postmaster_start_time() < min(backend_start) FROM pg_stat_activity").fetchone() == (True,)
    assert int(db.execute("SHOW max_connections").fetchone()[0]) > 0


def test_a_view_does_not_keep_who_asked(rd):
    with rd.connect() as c:
        for call in ("txid_current()", "pg_current_xact_id()", "pg_current_snapshot()", "pg_xact_status('5')", "age('5'::xid)", "inet_client_addr()", "pg_my_temp_schema()"):
            with pytest.raises(psycopg.errors.FeatureNotSupported, match="in a maintained query"):
                c.execute(f"CREATE MATERIALIZED VIEW asked AS SELECT {call} AS a")
            c.rollback()
