"""The layout is the architecture: what the source tree promises about itself."""

import os
import re
import tomllib

import pytest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))

# Which crate may know which: arrows go down only (docs/ARCHITECTURE.md).
EDGES = {
    "repr": set(),
    "expr": {"repr"},
    "plan": {"repr", "expr"},
    "storage": {"repr"},
    "sql": {"repr", "expr", "plan"},
    "optimize": {"repr", "expr", "plan"},
    "dataflow": {"repr", "expr", "plan"},
    "ingest": {"repr", "expr"},
    "adapter": {"repr", "expr", "plan", "storage", "sql", "optimize", "dataflow", "ingest"},
    "server": {"repr", "expr", "adapter"},
}


def rust_files():
    for d, dirs, files in os.walk(os.path.join(ROOT, "src")):
        dirs[:] = [x for x in dirs if x != "target"]
        yield from (os.path.join(d, f) for f in files if f.endswith(".rs"))


def read(path: str) -> str:
    with open(path, encoding="utf-8") as f:
        return f.read()


def test_crates_know_only_those_below():
    for crate in sorted(os.listdir(os.path.join(ROOT, "src"))):
        path = os.path.join(ROOT, "src", crate, "Cargo.toml")
        if not os.path.exists(path):
            continue
        with open(path, "rb") as f:
            known = set(tomllib.load(f).get("dependencies", {})) & set(EDGES)
        assert crate in EDGES, f"{crate} is not in the table of edges"
        assert known <= EDGES[crate], f"{crate} may not know {known - EDGES[crate]}"


def test_every_file_says_what_it_is():
    silent = [os.path.relpath(p, ROOT) for p in rust_files() if not any(line.startswith("//!") for line in read(p).splitlines()[:5])]
    assert not silent, silent


def test_nothing_is_left_to_do():
    pattern = re.compile(r"\b(todo!|unimplemented!|dbg!)\(|\b(TODO|FIXME|XXX)\b(?!\d)")
    found = [f"{os.path.relpath(p, ROOT)}:{n}: {line.strip()}" for p in rust_files() for n, line in enumerate(read(p).splitlines(), 1) if pattern.search(line)]
    assert not found, found


def test_files_are_not_long():
    """A file of more than a thousand lines holds two nouns (tables of data aside)."""
    long = {os.path.relpath(p, ROOT): n for p in rust_files() if (n := len(read(p).splitlines())) > 1000}
    assert not long, long


def documents():
    for d, dirs, files in os.walk(ROOT):
        dirs[:] = [x for x in dirs if not x.startswith(".") and x not in ("target", "node_modules")]
        yield from (os.path.join(d, f) for f in files if f.endswith(".md"))


@pytest.mark.parametrize("path", sorted(documents()), ids=lambda p: os.path.relpath(p, ROOT))
def test_links_resolve(path):
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", read(path)):
        if "://" not in target and not target.startswith("mailto:"):
            assert os.path.exists(os.path.join(os.path.dirname(path), target)), f"{target} is not there"
