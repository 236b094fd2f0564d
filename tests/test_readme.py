"""The README's tour is run as it stands, and the names in the documents exist."""

import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def text(path):
    with open(os.path.join(ROOT, path)) as f:
        return f.read()


def test_the_tour(riverdelta):
    """Each block of SQL runs in order; a table below a block is what its last statement returns."""
    tour = text("README.md").split("## Five minutes")[1].split("\n## ")[0]
    blocks = re.findall(r"```sql\n(.*?)```\n(?:\n((?:\|[^\n]*\n)+))?", tour, re.S)
    assert len(blocks) >= 4
    for sql, table in blocks:
        rows = None
        for statement in [s for s in re.split(r";\n", sql) if s.strip()]:
            rows = riverdelta.sql(statement)
        if table:
            lines = [[c.strip() for c in line.strip().strip("|").split("|")] for line in table.strip().splitlines()]
            assert [[str(v) for v in row] for row in rows] == lines[2:], sql


def test_names_in_the_life_of_a_row_exist():
    words = set(re.findall(r"`([A-Za-z_][A-Za-z_:/.]*)`", text("docs/life-of-a-row.md")))
    sources = ""
    for folder, _, files in os.walk(os.path.join(ROOT, "src")):
        sources += "".join(text(os.path.join(folder, f)) for f in files if f.endswith(".rs"))
        sources += " ".join(os.path.relpath(os.path.join(folder, f), ROOT) for f in files) + " " + folder + "/ "
    missing = {w for w in words if w.split("::")[-1] not in sources and w.lower() not in sources.lower()}
    assert not missing, missing
