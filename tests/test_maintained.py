"""The corpus of `sql-tests/slt`: plain, and as views that change with their tables, with one worker and two, and over a restart.

`sql-tests/slt/open.txt` lists the records that do not hold yet (file and query); `REWRITE=1 ./test -k maintained` writes it anew.
"""

import os

import pytest
import slt
from corpus import Wire
from harness.riverdelta import Riverdelta

FILES = slt.files()
OPEN = os.path.join(os.path.dirname(slt.__file__), "slt", "open.txt")


def judge(kind: str, path: str, failures: list[str]):
    """Fails on what fails newly."""
    name = os.path.basename(path)
    key = lambda f: f"{kind}\t{name}\t{f.splitlines()[0].split(': ', 1)[1]}"  # noqa: E731
    with open(OPEN, encoding="utf-8") as f:
        known = set(f.read().splitlines())
    if os.environ.get("REWRITE"):
        known = {k for k in known if not k.startswith(f"{kind}\t{name}\t")} | {key(f) for f in failures}
        with open(OPEN, "w", encoding="utf-8") as f:
            f.writelines(k + "\n" for k in sorted(known))
    fresh = [f for f in failures if key(f) not in known]
    assert not fresh, f"{len(fresh)} of {name}:\n" + "\n".join(fresh[:20])


@pytest.mark.parametrize("path", FILES, ids=os.path.basename)
def test_plain(rd, path):
    judge("plain", path, slt.run_plain(Wire(rd.dsn), slt.load(path)))


@pytest.fixture(scope="module", params=[1, 2], ids=["one worker", "two workers"])
def server(request, tmp_path_factory):
    s = Riverdelta(tmp_path_factory.mktemp("slt"), workers=request.param).start()
    yield s
    s.stop()
    assert not s.panics(), s.panics()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", FILES, ids=os.path.basename)
def test_views(server, path, long):
    m = slt.Maintained(Wire(server.dsn), slt.load(path), seed=server.workers)
    for n in range(20 if long else 4):
        m.batch()
        m.check(f"after batch {n}")
    m.refill()
    m.check_recorded("at the end")
    server.restart(kill=server.workers == 1, workers=3 - server.workers)
    m.wire = Wire(server.dsn)
    m.check_recorded("after a restart")
    m.batch()
    m.check("after a change after a restart")
    m.wire.run(f"DROP SCHEMA {m.schema} CASCADE")
    server.restart(workers=3 - server.workers)
    judge("view", path, m.failures)
