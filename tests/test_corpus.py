"""PostgreSQL is the judge: the statements of `sql-tests/pg` give the same rows, types, names and SQLSTATEs.

`sql-tests/pg/open.txt` lists the statements that do not agree yet: what agrees today must agree tomorrow. Statements that shall differ
are in `docs/sql/differences.md`. `REWRITE=1 ./test -k corpus` writes the list anew.
"""

import os

import corpus

OPEN = os.path.join(os.path.dirname(corpus.__file__), "pg", "open.txt")


def test_corpus_agrees_with_postgres(pg, rd, tmp_path, capsys):
    pg.sql("CREATE DATABASE corpus")
    report = corpus.run(corpus.Wire(pg.dsn.replace("dbname=postgres", "dbname=corpus")), corpus.Wire(rd.dsn), corpus.corpus_files())
    with capsys.disabled():
        print("\n" + report.table())
    key = lambda d: f"{d.file}\t{corpus.fingerprint(d.sql)}"  # noqa: E731
    found = {key(d): d for d in report.differences}
    if os.environ.get("REWRITE"):
        with open(OPEN, "w", encoding="utf-8", errors="surrogateescape") as f:
            f.writelines(k + "\n" for k in sorted(found))
    with open(OPEN, encoding="utf-8", errors="surrogateescape") as f:
        known = set(f.read().splitlines())
    fresh = [str(d) for k, d in found.items() if k not in known]
    healed = sorted(known - set(found))
    assert not fresh, f"{len(fresh)} statements differ from PostgreSQL that did not before:\n" + "\n".join(fresh[:40])
    if healed:
        with capsys.disabled():
            print(f"{len(healed)} statements of open.txt agree now (REWRITE=1 takes them out)")
