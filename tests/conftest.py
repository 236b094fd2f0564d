"""Fixtures: servers, started once a run or once a module, each on free ports in a temporary directory."""

import os
import sys
import uuid

import pytest

sys.path.insert(0, os.path.dirname(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "sql-tests"))

from harness.kafka import Kafka  # noqa: E402
from harness.postgres import Postgres  # noqa: E402
from harness.procs import wait_until  # noqa: E402
from harness.riverdelta import Riverdelta  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="run the storms and long loops too")


def pytest_configure(config):
    config.addinivalue_line("markers", "long: only with --long")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--long"):
        return
    for item in items:
        if "long" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="only with --long"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failed test shows the end of the logs of the servers it used."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for value in getattr(item, "funcargs", {}).values():
            if isinstance(value, (Riverdelta, Postgres, Kafka)) and value.proc:
                report.sections.append((f"{type(value).__name__}'s log", value.proc.tail()))


@pytest.fixture(scope="session")
def long(request) -> bool:
    return request.config.getoption("--long")


@pytest.fixture(scope="session")
def pg(tmp_path_factory):
    """One PostgreSQL for the whole run: make databases or schemas in it."""
    server = Postgres(tmp_path_factory.mktemp("pg")).init().start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory):
    """One broker for the whole run: make topics in it."""
    server = Kafka(tmp_path_factory.mktemp("kafka")).init().start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def rd(tmp_path_factory, request):
    """One Riverdelta for the tests of a module: they use names of their own."""
    server = Riverdelta(tmp_path_factory.mktemp("rd")).start()
    yield server
    code = server.stop()
    assert not server.panics(), server.panics()
    assert code == 0, f"the server ended with {code}"


@pytest.fixture
def riverdelta(tmp_path):
    """A fresh Riverdelta for one test, which may kill and restart it."""
    server = Riverdelta(tmp_path / "rd").start()
    yield server
    running = server.proc.running()
    code = server.stop()
    assert not server.panics(), server.panics()
    assert not running or code == 0, f"the server ended with {code}"


@pytest.fixture
def db(rd):
    """A connection to the module's server."""
    with rd.connect() as c:
        yield c


@pytest.fixture
def upstream(pg):
    """A database of its own. Yields (name, run): run executes statements in it."""
    name = "up" + uuid.uuid4().hex[:8]
    pg.sql(f"CREATE DATABASE {name}")
    yield name, lambda *s: pg.sql(*s, dbname=name)

    def dropped():
        # The source may still run: its connection goes first, and it has not come back yet.
        slots = f"FROM pg_replication_slots WHERE database = '{name}'"
        pg.sql(f"SELECT pg_terminate_backend(active_pid) {slots} AND active_pid IS NOT NULL")
        pg.sql(f"SELECT pg_drop_replication_slot(slot_name) {slots}", f"DROP DATABASE {name} WITH (FORCE)", dbname="postgres")
        return True

    wait_until(dropped, 15, every=0.01)
