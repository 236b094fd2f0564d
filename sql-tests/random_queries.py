"""Random queries, judged by PostgreSQL: as one-off queries, and as views over tables that change.

A round has a seed, from which tables, queries and changes follow. Its queries become materialized views on empty tables; then batches of
inserts, updates and deletes go to both servers, and after each batch

    view == the query run by Riverdelta (text for text) == the query run by PostgreSQL (value for value)

also after a kill and a restart with another number of workers; a SUBSCRIBE's changes add up to its view. A query that PostgreSQL
refuses, or that fails there, says nothing and is passed over.

Queries are made so that their result is determined: orders that decide anything are total, floating-point values are sums of powers of two,
and what depends on which of two equal values a group shows (1.0 or 1.00) does not become text. Every decision is drawn from a list of numbers in
which smaller is simpler, so a failing query is shrunk by dropping and lowering numbers of its list.

    python random_queries.py --pg DSN [--seed N] [--rounds N] [--keep-going]

starts a Riverdelta of its own (the binary of RIVERDELTA_BIN).
"""

import collections
import decimal
import json
import os
import random
import re
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests"))

import rounds  # noqa: E402
from corpus import FIRST_USER_OID, Outcome, Wire  # noqa: E402
from harness.riverdelta import Riverdelta  # noqa: E402
from harness.subscribe import Subscription  # noqa: E402

# name -> columns with their types
TABLES = {
    "t": [("k", "int"), ("a", "int"), ("n", "num"), ("s", "txt")],
    "u": [("k", "int"), ("b", "int"), ("f", "flt"), ("s", "txt")],
    "w": [("id", "int"), ("k", "int"), ("d", "date"), ("p", "bool"), ("n", "num")],
    "e": [("x", "int"), ("y", "int")],
    "z": [("k", "int"), ("c", "chr"), ("i", "ivl"), ("j", "jsb"), ("m", "stamp")],
    "h": [("k", "int"), ("v", "arr"), ("r", "rng"), ("s", "txt")],
    "c": [("k", "int"), ("g", "row"), ("l", "nar"), ("q", "mrg"), ("o", "enu")],
    "y": [("k", "int"), ("mz", "ttz"), ("bt", "bit"), ("nt", "net"), ("ta", "tar")],
    "v": [("k", "int"), ("dg", "dom"), ("vc", "vch"), ("re", "rea"), ("by", "byt"), ("en", "ear")],
}
# What the schema has beside them.
MADE = ["CREATE TYPE pair AS (a int, b numeric)", "CREATE TYPE mood AS ENUM ('sad', 'ok', 'glad')", "CREATE DOMAIN digit AS int CHECK (VALUE BETWEEN -9 AND 9)"]
SQL_TYPE = {"int": "int", "big": "int8", "num": "numeric", "flt": "float8", "txt": "text", "bool": "bool", "date": "date",
            "chr": "char(3)", "ivl": "interval", "jsb": "jsonb", "stamp": "timestamptz", "arr": "int[]", "rng": "int4range", "row": "pair", "nar": "numeric[]",
            "mrg": "nummultirange", "enu": "mood", "ttz": "timetz", "bit": "varbit", "net": "inet", "tar": "text[]", "dom": "digit", "vch": "varchar(4)",
            "rea": "float4", "byt": "bytea", "ear": "mood[]"}
VALUES = {
    "int": ["NULL", "0", "1", "2", "3", "4", "-1", "1", "2"],
    "num": ["NULL", "1", "1.0", "1.00", "2.5", "0", "2.50", "-3", "10", "7.125", "'NaN'", "'Infinity'"],
    "flt": ["NULL", "0", "'-0'", "1.5", "2.25", "-0.5", "1024", "'NaN'", "'-Infinity'"],
    "txt": ["NULL", "''", "'a'", "'b'", "'A'", "'ab'", "'ba '", "'é'"],
    "date": ["NULL", "'2024-02-28'", "'2024-02-29'", "'2024-03-01'", "'2023-12-31'"],
    "bool": ["NULL", "true", "false"],
    "chr": ["NULL", "'a'", "'a  '", "'b'", "'ab'", "''"],
    "ivl": ["NULL", "'1 day'", "'24:00'", "'1 month'", "'30 days'", "'-1 hour'", "'0'"],
    "jsb": ["NULL", "'1'", "'1.0'", "'null'", "'[1, 2.00]'", "'{\"a\": 1.50, \"b\": null}'", "'\"x\"'", "'[1.0, 2]'"],
    "arr": ["NULL", "'{}'", "'{1}'", "'{2,1}'", "'{1,NULL,2}'", "'{3,3}'"],
    "rng": ["NULL", "'empty'", "'[1,3)'", "'(0,2]'", "'[2,)'", "'(,)'"],
    "row": ["NULL", "'(1,1.0)'", "'(1,1.00)'", "'(,)'", "'(2,)'", "'(,NaN)'"],
    "nar": ["NULL", "'{}'", "'{1.0}'", "'{1.00}'", "'{NULL,2.5}'", "'{{1,2},{3,4.0}}'"],
    "mrg": ["NULL", "'{}'", "'{[1.0,2.5)}'", "'{[1.00,2.50)}'", "'{(,0],[3,)}'", "'{[1,1]}'"],
    "enu": ["NULL", "'sad'", "'glad'", "'ok'"],
    "ttz": ["NULL", "'12:00+00'", "'13:00+01'", "'12:00+01'", "'24:00-12'"],
    "bit": ["NULL", "B''", "B'0'", "B'1'", "B'01'", "B'100000000'"],
    "net": ["NULL", "'10.0.0.1'", "'10.0.0.0/8'", "'10.0.0.1/8'", "'::1'", "'0.0.0.0/0'"],
    "tar": ["NULL", "'{}'", "'{a}'", "'[0:1]={a,b}'", "'{a,b}'", "'{NULL,\"\"}'", "'{{a},{b}}'"],
    "dom": ["NULL", "0", "1", "2", "-9", "2"],
    "vch": ["NULL", "''", "'a'", "'a '", "'ab'", "'B'"],
    "rea": ["NULL", "0", "'-0'", "1.5", "0.1", "'NaN'", "'Infinity'"],
    "byt": ["NULL", "''", "'a'", "'\\x00'", "'\\xff00'"],
    "ear": ["NULL", "'{}'", "'{ok}'", "'{glad,sad}'", "'{NULL}'"],
    "stamp": ["NULL", "'2024-03-31 01:30:00+00'", "'2024-03-31 02:30:00+01'", "'-infinity'", "'1999-12-31 23:59:59.999999+00'"],
}


FALLIBLE = "/"  # the one operator that may fail; what PostgreSQL does not evaluate, by its plan, may fail here


class Draw:
    """The numbers that decide. A given list first, then fresh ones of `rng` (or zeros without it); all are kept in `taken`."""

    def __init__(self, given=(), rng: random.Random | None = None):
        self.given, self.rng, self.taken = list(given), rng, []

    def below(self, n: int) -> int:
        at = len(self.taken)
        if at < len(self.given):
            v = min(self.given[at], n - 1)
        else:
            v = self.rng.randrange(n) if self.rng else 0
        self.taken.append(v)
        return v

    def pick(self, options):
        return options[self.below(len(options))]

    def chance(self, percent: int) -> bool:
        return self.below(100) >= 100 - percent


class Ref:
    """Something an expression may name: its text, type, and whether subqueries may name it too."""

    def __init__(self, sql: str, typ: str, plain: bool = True):
        self.sql, self.typ, self.plain = sql, typ, plain


class Gen:
    """Makes one query."""

    def __init__(self, draw: Draw):
        self.d, self.names = draw, 0
        self.ctes: list[tuple[str, list]] = []
        self.budget = 40  # parts that may still be made: a bound on the size

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def small(self) -> bool:
        self.budget -= 1
        return self.budget <= 0

    # Expressions. `refs`: what is in scope here; `outer`: what is in scope around, for subqueries and for themselves.

    def expr(self, typ: str, refs: list, depth: int) -> str:
        here = [r.sql for r in refs if r.typ == typ]
        if depth <= 0 or self.small() or self.d.chance(35):
            if here and not self.d.chance(10):
                return self.d.pick(here)
            return self.literal(typ)
        return getattr(self, f"{typ}_expr")(refs, depth - 1)

    def literal(self, typ: str) -> str:
        if typ == "big":
            return self.d.pick(["1", "0", "5"]) + "::int8"
        values = VALUES[typ]
        v = self.d.pick(values[1:] + values[:1])
        return v if typ in ("int", "bool") and v != "NULL" else f"({v})::{SQL_TYPE[typ]}"

    def general(self, typ: str, refs: list, depth: int) -> str:
        kind = self.d.below(6)
        x = self.expr(typ, refs, depth)
        if kind == 0:
            return f"coalesce({x}, {self.expr(typ, refs, depth)})"
        if kind == 1:
            c = self.expr("bool", refs, depth)
            return f"CASE WHEN {c} THEN {x} ELSE {self.expr(typ, refs, depth)} END"
        if kind == 2:
            return f"CASE {self.expr('int', refs, depth)} WHEN {self.expr('int', refs, depth)} THEN {x} WHEN 2 THEN {self.expr(typ, refs, depth)} END"
        if kind == 3:
            return f"nullif({x}, {self.expr(typ, refs, depth)})"
        if kind == 4:
            return f"{self.d.pick(['greatest', 'least'])}({x}, {self.expr(typ, refs, depth)})"
        return self.scalar_subquery(typ, refs, depth)

    def int_expr(self, refs, depth):
        kind = self.d.below(8)
        x = lambda: self.expr("int", refs, depth)  # noqa: E731
        if kind <= 1:
            return f"({x()} {self.d.pick('+-')} {x()})"
        if kind == 2:
            return f"(({x()} * {x()}) % 11)"
        if kind == 3:
            return f"length({self.expr('txt', refs, depth)})"
        if kind == 4:
            return f"({self.expr('bool', refs, depth)})::int"
        if kind == 5 and self.d.chance(50):
            return f"extract(day FROM {self.expr('date', refs, depth)})::int"
        if kind == 5 and any(r.typ in ("arr", "rng") for r in refs):
            a = self.expr("arr", refs, depth)
            return self.d.pick([f"({a})[1]", f"cardinality({a})", f"upper({self.expr('rng', refs, depth)})"])
        if kind == 6 and self.d.chance(10):
            return f"(10 {FALLIBLE} {x()})"
        if kind == 6 and any(r.typ == "row" for r in refs):
            return f"({self.expr('row', refs, depth)}).a"
        return self.general("int", refs, depth)

    def big_expr(self, refs, depth):
        kind = self.d.below(4)
        if kind == 0:
            return f"({self.expr('int', refs, depth)})::int8"
        if kind == 1:
            return f"({self.expr('big', refs, depth)} + {self.expr('int', refs, depth)})"
        return self.general("big", refs, depth)

    def num_expr(self, refs, depth):
        kind = self.d.below(6)
        x = lambda: self.expr("num", refs, depth)  # noqa: E731
        if kind == 0:
            return f"({x()} {self.d.pick('+-*')} {x()})"
        if kind == 1:
            return f"round({x()}, 1)"
        if kind == 2:
            return f"({x()} / nullif({self.expr('int', refs, depth)}, 0))"
        if kind == 3:
            return f"({self.expr('int', refs, depth)})::numeric"
        return self.general("num", refs, depth)

    def flt_expr(self, refs, depth):
        kind = self.d.below(4)
        if kind == 0:
            return f"({self.expr('flt', refs, depth)} {self.d.pick('+-')} {self.expr('flt', refs, depth)})"
        if kind == 1:
            return f"({self.expr('int', refs, depth)})::float8"
        return self.general("flt", refs, depth)

    def txt_expr(self, refs, depth):
        kind = self.d.below(6)
        x = lambda: self.expr("txt", refs, depth)  # noqa: E731
        if kind == 0:
            return f"({x()} || {x()})"
        if kind == 1:
            return f"upper({x()})"
        if kind == 2:
            return f"left({x()}, 1)"
        if kind == 3:
            return f"({self.expr('int', refs, depth)})::text"
        if kind == 4 and self.d.chance(30):
            return f"(SELECT string_agg(x::text, '-') FROM unnest({self.expr('arr', self.visible(refs), depth)}) x)"
        return self.general("txt", refs, depth)

    def date_expr(self, refs, depth):
        if self.d.chance(40):
            return f"({self.expr('date', refs, depth)} + {self.d.pick(['1', '-1', '30'])})"
        return self.general("date", refs, depth)

    def chr_expr(self, refs, depth):
        return self.general("chr", refs, depth)

    def ivl_expr(self, refs, depth):
        return self.general("ivl", refs, depth)

    def arr_expr(self, refs, depth):
        kind = self.d.below(5)
        if kind == 0:
            return f"ARRAY[{self.expr('int', refs, depth)}, {self.expr('int', refs, depth)}]"
        if kind == 1:
            return f"({self.expr('arr', refs, depth)} || {self.expr('int', refs, depth)})"
        if kind == 2:
            return f"({self.expr('arr', refs, depth)})[1:{self.d.pick('21')}]"
        if kind == 3:
            # The function's own order.
            return f"ARRAY(SELECT x + 1 FROM unnest({self.expr('arr', self.visible(refs), depth)}) x)"
        return self.general("arr", refs, depth)

    def rng_expr(self, refs, depth):
        kind = self.d.below(3)
        if kind == 0:
            low = self.expr("int", refs, depth)
            return f"int4range({low}, {low} + {self.d.pick('120')})"
        if kind == 1:
            return f"({self.expr('rng', refs, depth)} * {self.expr('rng', refs, depth)})"
        return self.general("rng", refs, depth)

    def jsb_expr(self, refs, depth):
        kind = self.d.below(3)
        if kind == 0:
            return f"jsonb_build_object('k', {self.expr('int', refs, depth)})"
        if kind == 1:
            return f"({self.expr('jsb', refs, depth)} -> 'a')"
        return f"CASE WHEN {self.expr('bool', refs, depth)} THEN {self.expr('jsb', refs, depth)} ELSE {self.expr('jsb', refs, depth)} END"

    def row_expr(self, refs, depth):
        if self.d.chance(40):
            return f"(ROW({self.expr('int', refs, depth)}, {self.expr('num', refs, depth)})::pair)"
        return self.general("row", refs, depth)

    def nar_expr(self, refs, depth):
        if self.d.chance(40):
            return f"ARRAY[{self.expr('num', refs, depth)}, {self.expr('num', refs, depth)}]"
        return self.general("nar", refs, depth)

    def mrg_expr(self, refs, depth):
        if self.d.chance(40):
            return f"({self.expr('mrg', refs, depth)} {self.d.pick('+*-')} {self.expr('mrg', refs, depth)})"
        return self.general("mrg", refs, depth)

    def enu_expr(self, refs, depth):
        return self.general("enu", refs, depth)

    def ttz_expr(self, refs, depth):
        if self.d.chance(20):
            return f"({self.expr('ttz', refs, depth)} + interval '1 hour')"
        return self.general("ttz", refs, depth)

    def bit_expr(self, refs, depth):
        if self.d.chance(40):
            return f"({self.expr('bit', refs, depth)} || {self.expr('bit', refs, depth)})::varbit"
        return self.general("bit", refs, depth)

    def net_expr(self, refs, depth):
        if self.d.chance(40):
            return self.d.pick(["set_masklen({}, 8)", "({} + 1)", "host({})::inet"]).format(self.expr("net", refs, depth))
        return self.general("net", refs, depth)

    def tar_expr(self, refs, depth):
        kind = self.d.below(5)
        if kind == 0:
            return f"array_append({self.expr('tar', refs, depth)}, {self.expr('txt', refs, depth)})"
        if kind == 1:
            return f"({self.expr('tar', refs, depth)})[1:1]"
        if kind == 2:
            return f"ARRAY[{self.expr('txt', refs, depth)}]"
        return self.general("tar", refs, depth)

    def dom_expr(self, refs, depth):
        if self.d.chance(30):
            return f"(({self.expr('int', refs, depth)}) % 10)::digit"
        return self.general("dom", refs, depth)

    def vch_expr(self, refs, depth):
        if self.d.chance(30):
            return f"({self.expr('txt', refs, depth)})::varchar(4)"
        return self.general("vch", refs, depth)

    def rea_expr(self, refs, depth):
        return self.general("rea", refs, depth)

    def byt_expr(self, refs, depth):
        if self.d.chance(30):
            return f"({self.expr('byt', refs, depth)} || {self.expr('byt', refs, depth)})"
        return self.general("byt", refs, depth)

    def ear_expr(self, refs, depth):
        if self.d.chance(40):
            return f"ARRAY[{self.expr('enu', refs, depth)}, {self.expr('enu', refs, depth)}]"
        return self.general("ear", refs, depth)

    def stamp_expr(self, refs, depth):
        if self.d.chance(30):
            return f"({self.expr('stamp', refs, depth)} + interval '1 day')"
        return self.general("stamp", refs, depth)

    def bool_expr(self, refs, depth):
        kind = self.d.below(22)
        if kind >= 18:
            return self.compared_with_query(refs, depth, kind)
        if kind == 17:
            typ = self.d.pick(["rng", "arr", "mrg", "nar"])
            if typ == "rng" and self.d.chance(50):
                return f"({self.expr('rng', refs, depth)} @> {self.expr('int', refs, depth)})"
            if typ == "arr" and self.d.chance(50):
                return f"({self.expr('int', refs, depth)} = {self.d.pick(['ANY', 'ALL'])} ({self.expr('arr', refs, depth)}))"
            return f"({self.expr(typ, refs, depth)} {self.d.pick(['@>', '<@', '&&'])} {self.expr(typ, refs, depth)})"
        if kind <= 2:
            typ = self.some_type(refs)
            return f"({self.expr(typ, refs, depth)} {self.d.pick(['=', '<', '<>', '>=', '<=', '>'])} {self.expr(typ, refs, depth)})"
        x = lambda: self.expr("bool", refs, depth)  # noqa: E731
        if kind <= 4:
            return f"({x()} {self.d.pick(['AND', 'OR'])} {x()})"
        if kind == 5:
            return f"(NOT {x()})"
        typ = self.some_type(refs)
        y = lambda: self.expr(typ, refs, depth)  # noqa: E731
        if kind == 6:
            return f"({y()} IS {self.d.pick(['NULL', 'NOT NULL'])})"
        if kind == 7:
            return f"({y()} IS {self.d.pick(['', 'NOT '])}DISTINCT FROM {y()})"
        if kind == 8:
            return f"({y()} {self.d.pick(['IN', 'NOT IN'])} ({y()}, {self.literal(typ)}))"
        if kind == 9:
            return f"({y()} BETWEEN {y()} AND {y()})"
        if kind == 10:
            return f"({self.expr('txt', refs, depth)} LIKE '{self.d.pick(['%a%', 'a_', '%'])}')"
        if kind == 11:
            return f"({x()} IS {self.d.pick(['TRUE', 'NOT TRUE', 'FALSE', 'UNKNOWN', 'NOT UNKNOWN'])})"
        if kind == 12:
            a, b = self.some_type(refs), self.some_type(refs)
            e = lambda t: self.expr(t, refs, depth)  # noqa: E731
            return f"(({e(a)}, {e(b)}) {self.d.pick(['=', '<>', '<', '>=', 'IS DISTINCT FROM'])} ({e(a)}, {e(b)}))"
        if kind == 13:
            sub, _ = self.query(depth, self.visible(refs), None)
            return f"({self.d.pick(['', 'NOT '])}EXISTS ({sub}))"
        if kind == 14:
            sub, _ = self.query(depth, self.visible(refs), [typ])
            return f"({y()} {self.d.pick(['IN', 'NOT IN'])} ({sub}))"
        if kind == 15:
            sub, _ = self.query(depth, self.visible(refs), [typ])
            return f"({y()} {self.d.pick(['=', '<', '>=', '<>'])} {self.d.pick(['ANY', 'ALL'])} ({sub}))"
        other = self.some_type(refs)
        sub, _ = self.query(depth, self.visible(refs), [typ, other])
        return f"(({y()}, {self.expr(other, refs, depth)}) {self.d.pick(['IN', 'NOT IN'])} ({sub}))"

    def compared_with_query(self, refs, depth, kind) -> str:
        """Comparisons with each row of a query, with its one row, and of whole rows."""
        typ, other = self.some_type(refs), self.some_type(refs)
        op = self.d.pick(["=", "<>", "<", ">=", ">", "<="])
        if kind == 18:
            sub, _ = self.query(depth, self.visible(refs), [typ])
            return f"({self.expr(typ, refs, depth)} {op} {self.d.pick(['ANY', 'ALL'])} ({sub}))"
        if kind == 19:
            sub, _ = self.query(depth, self.visible(refs), [typ, other])
            return f"(({self.expr(typ, refs, depth)}, {self.expr(other, refs, depth)}) {op} {self.d.pick(['ANY', 'ALL'])} ({sub}))"
        rows = [r for r in refs if r.typ.startswith("whole ")]
        if kind == 20 or not rows:
            sub, _ = self.query(depth, self.visible(refs), [typ, other])
            return f"(({self.expr(typ, refs, depth)}, {self.expr(other, refs, depth)}) {op} (SELECT * FROM ({sub}) {self.name('q')} ORDER BY 1, 2 LIMIT 1))"
        r = self.d.pick(rows)
        alike = self.d.pick([x for x in rows if x.typ == r.typ])
        table, q = r.typ.removeprefix("whole "), self.name("q")
        return self.d.pick([f"({r.sql} IS NULL)", f"({r.sql} IS NOT NULL)", f"({r.sql} IS DISTINCT FROM NULL)", f"({r.sql} {op} {alike.sql})",
                            f"({r.sql} IS NOT DISTINCT FROM {alike.sql})", f"({r.sql} IN (SELECT {q} FROM {table} {q}))", f"({r.sql} = ANY (ARRAY(SELECT {q} FROM {table} {q})))"])

    def some_type(self, refs) -> str:
        types = [r.typ for r in refs if r.typ in SQL_TYPE] or ["int"]
        return self.d.pick(types)

    def visible(self, refs) -> list:
        return [r for r in refs if r.plain]

    def scalar_subquery(self, typ, refs, depth):
        outer = self.visible(refs)
        kind = self.d.below(3)
        if kind == 0:
            return f"(SELECT {self.expr(typ, outer, depth)})"
        frm, inner = self.source(depth, outer)
        where = self.where(inner + outer, depth)
        if kind == 1:
            agg = self.aggregate_of(typ, inner, outer, depth)
            if agg:
                return f"(SELECT {agg} FROM {frm}{where})"
        x = self.expr(typ, inner + outer, depth)
        # LIMIT may read what is around the subquery.
        around = [r.sql for r in outer if r.typ == "int"]
        limit = f"least(1, abs({self.d.pick(around)}))" if around and self.d.chance(20) else "1"
        return f"(SELECT {x} FROM {frm}{where} ORDER BY 1{self.d.pick(['', ' DESC', ' NULLS FIRST'])} LIMIT {limit})"

    # Aggregates.

    def aggregate_of(self, typ, inner, outer, depth) -> str | None:
        refs = inner + outer
        arg = lambda t: self.expr(t, refs, depth)  # noqa: E731
        distinct = lambda: "DISTINCT " if self.d.chance(20) else ""  # noqa: E731
        filt = f" FILTER (WHERE {self.expr('bool', refs, depth)})" if self.d.chance(15) else ""
        if typ == "big":
            kind = self.d.below(4)
            if kind == 0:
                return f"count(*){filt}"
            if kind == 1:
                rows = [r.sql for r in refs if r.typ.startswith("whole ")]
                return f"count({distinct()}{self.d.pick(rows) if rows and self.d.chance(30) else arg(self.some_type(refs))}){filt}"
            if kind == 2 and self.d.chance(40):
                fn = self.d.pick(["rank", "dense_rank"])
                return f"{fn}({self.literal('int')}) WITHIN GROUP (ORDER BY {arg('int')}{self.d.pick(['', ' DESC', ' NULLS FIRST'])}){filt}"
            return f"{self.d.pick(['sum'])}({distinct()}{arg('int')}){filt}"
        if typ in ("int", "txt", "date", "num") and self.d.chance(15):
            fn = self.d.pick(["percentile_disc(0.5)", "percentile_disc(0.25)", "mode()"])
            return f"{fn} WITHIN GROUP (ORDER BY {arg(typ)}{self.d.pick(['', ' DESC'])}){filt}"
        if typ == "arr":
            x = arg("int")
            return f"array_agg({distinct()}{x} ORDER BY {x}{self.d.pick(['', ' DESC'])}){filt}"
        if typ == "rng":
            return f"range_merge(range_agg({arg('rng')}){filt})"
        if typ == "mrg":
            return f"range_intersect_agg({arg('mrg')}){filt}"
        if typ == "nar":
            x = arg("num")
            return self.d.pick([f"array_agg({distinct()}{x} ORDER BY {x}){filt}", f"max({arg('nar')}){filt}"])
        if typ == "int":
            return f"{self.d.pick(['min', 'max', 'bit_or', 'bit_and', 'bit_xor'])}({distinct()}{arg('int')}){filt}"
        if typ == "num":
            kind = self.d.below(5)
            if kind == 0:
                return f"{self.d.pick(['min', 'max'])}({arg('num')}){filt}"
            if kind == 1:
                return f"avg({distinct()}{arg('int')}){filt}"
            if kind == 2:
                return f"sum({arg('big')}){filt}"
            return f"{self.d.pick(['sum', 'avg', 'sum', 'var_pop', 'stddev'])}({distinct()}{arg('num')}){filt}"
        if typ == "flt" and self.d.chance(20):
            return f"percentile_cont({self.d.pick(['0.5', '0.25', '1'])}) WITHIN GROUP (ORDER BY {arg('int')}{self.d.pick(['', ' DESC'])}){filt}"
        if typ == "flt":
            return f"{self.d.pick(['sum', 'min', 'max', 'avg'])}({distinct()}{arg('flt')}){filt}"
        if typ == "txt":
            kind = self.d.below(3)
            x = arg("txt")
            if kind == 0:
                return f"{self.d.pick(['min', 'max'])}({x}){filt}"
            if kind == 1:
                return f"array_agg({distinct()}{x} ORDER BY {x}{self.d.pick(['', ' DESC'])}){filt}::text"
            return f"string_agg({distinct()}{x}, ',' ORDER BY {x}{self.d.pick(['', ' DESC NULLS LAST'])}){filt}"
        if typ == "bool":
            return f"{self.d.pick(['bool_and', 'bool_or'])}({arg('bool')}){filt}"
        if typ == "tar":
            x, y = arg("txt"), arg("int")
            return self.d.pick([f"array_agg({x} ORDER BY {y} DESC, {x}){filt}", f"max({arg('tar')}){filt}"])
        if typ == "byt":
            x = arg("byt")
            return f"string_agg({distinct()}{x}, '\\x2c' ORDER BY {x}){filt}"
        if typ == "ear":
            x = arg("enu")
            return f"array_agg({distinct()}{x} ORDER BY {x} DESC){filt}"
        if typ in ("bit", "dom", "vch"):
            return None
        if typ in ("date", "chr", "ivl", "stamp", "enu", "ttz", "net", "rea"):
            return f"{self.d.pick(['min', 'max'])}({arg(typ)}){filt}"
        if typ == "jsb":
            x = arg("jsb")
            return f"jsonb_agg({x} ORDER BY {x}){filt}"
        return None

    # FROM.

    def relation(self, depth, outer, lateral_refs) -> tuple[str, list]:
        """One item of FROM with its columns; `lateral_refs` may be named by a LATERAL one."""
        alias = self.name("q")
        kind = self.d.below(14)
        if kind == 13 and lateral_refs:
            return self.for_each(alias, outer, lateral_refs)
        if kind >= 12:
            a, b = self.expr("int", lateral_refs, 1) if lateral_refs else "2", self.d.pick(["1", "3", "0"])
            return (f"ROWS FROM (generate_series(1, least({a}, 3)), generate_series(0, {b})) WITH ORDINALITY {alias}(g, h, o)",
                    [Ref(f"{alias}.g", "int"), Ref(f"{alias}.h", "int"), Ref(f"{alias}.o", "big")])
        if kind <= 5 or depth <= 0 or self.small():
            cte = self.ctes and self.d.chance(50)
            table, columns = self.d.pick(self.ctes) if cte else self.d.pick(list(TABLES.items()))
            whole = [Ref(alias, f"whole {table}")] if not cte and self.d.chance(30) else []
            return f"{table} {alias}", [Ref(f"{alias}.{c}", t) for c, t in columns] + whole
        if kind == 6:
            return self.merged(depth, alias)
        if kind == 7:
            types = [self.d.pick(["int", "txt", "num"]) for _ in range(1 + self.d.below(2))]
            rows = ", ".join("(" + ", ".join(self.literal(t) for t in types) + ")" for _ in range(1 + self.d.below(3)))
            columns = [f"v{i}" for i in range(len(types))]
            return f"(VALUES {rows}) {alias}({', '.join(columns)})", [Ref(f"{alias}.{c}", t) for c, t in zip(columns, types)]
        if kind == 8:
            to = self.expr("int", lateral_refs, 1) if lateral_refs else "2"
            if self.d.chance(30):
                return f"generate_series(0, least({to}, 4)) WITH ORDINALITY {alias}(g, o)", [Ref(f"{alias}.g", "int"), Ref(f"{alias}.o", "big")]
            if self.d.chance(15):
                jsb, txt = self.expr("jsb", lateral_refs, 1) if lateral_refs else "'{\"a\": [1]}'::jsonb", [Ref(f"{alias}.g", "txt"), Ref(f"{alias}.h", "jsb")]
                return f"jsonb_each(CASE WHEN jsonb_typeof({jsb}) = 'object' THEN {jsb} END) {alias}(g, h)", txt
            if self.d.chance(20) and lateral_refs:
                item = lambda: f"({self.expr('int', lateral_refs, 1)}, {self.expr('txt', lateral_refs, 1)})"  # noqa: E731
                return f"LATERAL (VALUES {item()}, {item()}) {alias}(g, h)", [Ref(f"{alias}.g", "int"), Ref(f"{alias}.h", "txt")]
            if self.d.chance(20):
                a, b = (self.expr("arr", lateral_refs, 1), self.expr("tar", lateral_refs, 1)) if lateral_refs else ("ARRAY[1, 2]", "ARRAY['a']")
                return f"unnest({a}, {b}) {alias}(g, h)", [Ref(f"{alias}.g", "int"), Ref(f"{alias}.h", "txt")]
            if self.d.chance(30):
                item = lambda: self.expr("int", lateral_refs, 1)  # noqa: E731
                return f"unnest(ARRAY[{item()}, {item()}]) {alias}(g)", [Ref(f"{alias}.g", "int")]
            return f"generate_series(1, least({to}, 4)) {alias}(g)", [Ref(f"{alias}.g", "int")]
        lateral = kind >= 10
        sub, columns = self.query(depth - 1, outer + (lateral_refs if lateral else []), None)
        names = [f"c{i}" for i in range(len(columns))]
        head = "LATERAL " if lateral else ""
        return f"{head}({sub}) {alias}({', '.join(names)})", [Ref(f"{alias}.{n}", t) for n, t in zip(names, columns)]

    def for_each(self, alias, outer, refs):
        """LATERAL: an aggregate, or the first rows, of what a table has for each row."""
        table, columns = self.d.pick(list(TABLES.items()))
        q = self.name("q")
        inner = [Ref(f"{q}.{c}", t) for c, t in columns]
        pairs = [(a, b) for a in inner for b in refs if a.typ == b.typ]
        a, b = self.d.pick(pairs) if pairs else (Ref("1", "int"), Ref("1", "int"))
        where = f"{a.sql} {self.d.pick(['=', '=', '<=', '<>', 'IS NOT DISTINCT FROM'])} {b.sql}"
        if self.d.chance(50):
            typ = self.d.pick(["big", "int", "txt", "num"])
            agg = self.aggregate_of(typ, inner, [], 1)
            return f"LATERAL (SELECT {agg} FROM {table} {q} WHERE {where}) {alias}(c0)", [Ref(f"{alias}.c0", typ)]
        names = [f"c{i}" for i in range(len(columns))]
        order = ", ".join(f"{r.sql}{self.d.pick(['', ' DESC'])}" for r in inner)
        return (f"LATERAL (SELECT * FROM {table} {q} WHERE {where} ORDER BY {order} LIMIT {self.d.pick('12')}{self.d.pick(['', ' OFFSET 1'])}) {alias}({', '.join(names)})",
                [Ref(f"{alias}.{n}", t) for n, (_, t) in zip(names, columns)])

    def merged(self, depth, alias):
        """A join with USING or NATURAL, all columns."""
        if self.d.chance(20):
            tables = [self.d.pick([t for t in TABLES.items() if ("k", "int") in t[1]]) for _ in range(3)]
            sql = f"{tables[0][0]} x1"
            for i, (t, _) in enumerate(tables[1:]):
                sql += f" {self.d.pick(['FULL', 'FULL', 'LEFT', 'RIGHT', 'INNER'])} JOIN {t} x{i + 2} USING (k)"
            types = ["int"] + [ty for _, columns in tables for c, ty in columns if c != "k"]
            names = [f"m{i}" for i in range(len(types))]
            return f"(SELECT * FROM {sql}) {alias}({', '.join(names)})", [Ref(f"{alias}.{n}", t) for n, t in zip(names, types)]
        (a, left), (b, right) = self.d.pick(list(TABLES.items())), self.d.pick(list(TABLES.items()))
        common = [c for c in left if c in right]
        kind = self.d.pick(["", "LEFT ", "RIGHT ", "FULL "])
        types = dict(left + right)
        if not common or self.d.chance(30):
            using = common
            join = f"NATURAL {kind}JOIN {b} y"
        else:
            using = [c for c in common if not self.d.chance(40)] or common[:1]
            join = f"{kind}JOIN {b} y USING ({', '.join(c for c, _ in using)})"
        columns = using + [c for c in left if c not in using] + [c for c in right if c not in using]
        names = [f"m{i}" for i in range(len(columns))]
        return f"(SELECT * FROM {a} x {join}) {alias}({', '.join(names)})", [Ref(f"{alias}.{n}", types[c]) for n, (c, _) in zip(names, columns)]

    def source(self, depth, outer) -> tuple[str, list]:
        sql, refs = self.relation(depth, outer, [])
        while len(refs) < 14 and self.d.chance(45 if depth > 0 else 25):
            kind = self.d.below(7)
            if kind == 0:
                right, more = self.relation(depth, outer, refs)
                sql, refs = f"{sql}, {right}", refs + more
                continue
            join = ["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "FULL JOIN", "RIGHT JOIN", "CROSS JOIN"][kind]
            right, more = self.relation(depth, outer, refs if "RIGHT" not in join and "FULL" not in join else [])
            if join == "CROSS JOIN":
                sql = f"{sql} CROSS JOIN {right}"
            else:
                sql = f"{sql} {join} {right} ON {self.join_condition(refs, more, outer, depth, join)}"
            refs = refs + more
        return sql, refs

    def join_condition(self, left, right, outer, depth, join) -> str:
        pairs = [(a, b) for a in left for b in right if a.typ == b.typ]
        parts = []
        if pairs:
            a, b = self.d.pick(pairs)
            parts.append(f"{a.sql} = {b.sql}")
            if self.d.chance(25):
                a, b = self.d.pick(pairs)
                parts.append(f"{a.sql} {self.d.pick(['=', '<', 'IS NOT DISTINCT FROM'])} {b.sql}" if "FULL" not in join else f"{a.sql} = {b.sql}")
        if not parts or ("FULL" not in join and self.d.chance(25)):
            parts.append(self.expr("bool", left + right + outer, min(depth, 2)))
        if "FULL" not in join and parts and self.d.chance(8):
            parts = parts[-1:]
        return " AND ".join(parts)

    def where(self, refs, depth) -> str:
        return f" WHERE {self.expr('bool', refs, depth)}" if self.d.chance(50) else ""

    # Queries. `types`: of the columns wanted, or None for any.

    def query(self, depth, outer, types) -> tuple[str, list[str]]:
        types = types or [self.d.pick(["int", "int", "txt", "num", "big", "flt", "bool", "date", "chr", "ivl", "jsb", "stamp", "arr", "rng",
                                      "row", "nar", "mrg", "enu", "ttz", "bit", "net", "tar", "dom", "vch", "rea", "byt", "ear"]) for _ in range(1 + self.d.below(3))]
        if depth > 0 and not self.small() and self.d.chance(12):
            return self.set_operation(depth, outer, types)
        sql = self.select(depth, outer, types)
        if self.d.chance(15):
            sql = self.limited(sql, len(types))
        if depth > 0 and self.d.chance(5):
            sub, inner = self.query(depth - 1, outer, None)
            name = self.name("cte")
            self.ctes.append((name, [(f"c{i}", t) for i, t in enumerate(inner)]))
            sql = f"WITH {name}({', '.join(f'c{i}' for i in range(len(inner)))}) AS ({sub}) {self.select(depth - 1, outer, types)}"
            self.ctes.pop()
        return sql, types

    def limited(self, sql, n) -> str:
        if " ORDER BY o" in sql and sql.startswith("SELECT DISTINCT ON"):
            sql = f"SELECT * FROM ({sql}) {self.name('q')}"
        orders = [f"{i + 1}{self.d.pick(['', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST'])}" for i in range(n)]
        kind = self.d.below(5)
        if kind == 4:
            return f"{sql} ORDER BY {', '.join(orders)} LIMIT (SELECT count(*) % 4 FROM e WHERE x {self.d.pick(['=', '<>', '>'])} 1)"
        if kind == 0:
            return f"{sql} ORDER BY {', '.join(orders)} LIMIT {self.d.pick([2, 1, 3, 0])}"
        if kind == 1:
            return f"{sql} ORDER BY {', '.join(orders)} OFFSET {self.d.below(3)}"
        if kind == 2:
            return f"{sql} ORDER BY {orders[0]} FETCH FIRST {1 + self.d.below(3)} ROWS WITH TIES"
        return f"{sql} ORDER BY {', '.join(orders)} LIMIT {1 + self.d.below(3)} OFFSET {self.d.below(3)}"

    def set_operation(self, depth, outer, types):
        op = self.d.pick(["UNION ALL", "UNION", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL"])
        (a, _), (b, _) = self.query(depth - 1, outer, types), self.query(depth - 1, outer, types)
        sql = f"({a}) {op} ({b})"
        if self.d.chance(20):
            c, _ = self.query(depth - 1, outer, types)
            sql = f"({sql}) {self.d.pick(['UNION ALL', 'EXCEPT', 'INTERSECT', 'EXCEPT ALL'])} ({c})"
        return (self.limited(sql, len(types)) if self.d.chance(20) else sql), types

    def select(self, depth, outer, types) -> str:
        frm, refs = self.source(depth, outer)
        where = self.where(refs + outer, depth)
        kind = self.d.below(10)
        if self.d.chance(6):
            return self.top_of_each(f"{frm}{where}", refs + outer, depth, types)
        if kind <= 5:
            distinct = self.d.pick(["", "", "", "DISTINCT "])
            items = [self.expr(t, refs + outer, depth) for t in types]
            if types.count("int") > 1 and self.d.chance(20):
                # Several go in step; one in another goes for each of its.
                a, b = (i for i, t in enumerate(types) if t == "int" and i < 3 and (i == types.index("int") or types[:i].count("int") == 1))
                items[a] = f"generate_series(1, least({items[a]}, 3))"
                items[b] = self.d.pick([f"unnest({self.expr('arr', refs + outer, depth)})", f"generate_series(1, generate_series(0, least({items[b]}, 2)))", f"abs(generate_series(-1, least({items[b]}, 2)))"])
            elif "int" in types and self.d.chance(8):
                at = types.index("int")
                items[at] = self.d.pick([f"generate_series(1, least({items[at]}, 3))", f"unnest({self.expr('arr', refs + outer, depth)})"])
            elif self.d.chance(12):
                n = 1 + self.d.below(len(types))
                return (f"SELECT DISTINCT ON ({', '.join(f'o{i}' for i in range(n))}) * FROM (SELECT {', '.join(f'{x} AS o{i}' for i, x in enumerate(items))} "
                        f"FROM {frm}{where}) {self.name('q')} ORDER BY {', '.join(f'o{i}' for i in range(len(types)))}")
            return f"SELECT {distinct}{', '.join(items)} FROM {frm}{where}"
        if kind <= 7:
            return self.grouped(frm, refs, where, depth, outer, types)
        return self.windowed(f"{frm}{where}", refs, "", depth, outer, types)

    def top_of_each(self, body, refs, depth, types) -> str:
        """The first rows of each group, by number or by rank."""
        names = [f"o{i}" for i in range(len(types))]
        items = ", ".join(f"{self.expr(t, refs, depth)} AS {n}" for t, n in zip(types, names))
        order = ", ".join(n + self.d.pick(["", " DESC", " NULLS FIRST"]) for n in reversed(names))
        fn = self.d.pick(["row_number", "rank", "dense_rank"])
        q = self.name("q")
        return (f"SELECT {', '.join(names)} FROM (SELECT *, {fn}() OVER (PARTITION BY {self.d.pick(names)} ORDER BY {order}) AS place FROM (SELECT {items} FROM {body}) {q}) "
                f"{self.name('q')} WHERE place {self.d.pick(['<= 1', '<= 2', '= 2', '< 3', '> 1'])}")

    def grouped(self, frm, refs, where, depth, outer, types) -> str:
        keys = []
        for _ in range(self.d.below(3)):
            if self.d.chance(25):
                t = self.d.pick(["int", "txt", "bool"])
                x = self.expr(t, refs, 1)
                if any(r.sql in x for r in refs):
                    keys.append(Ref(x, t, plain=False))
            elif refs:
                r = self.d.pick(refs)
                if r.sql not in [k.sql for k in keys]:
                    keys.append(r)
        aggs = []
        for _ in range(1 + self.d.below(3)):
            t = self.d.pick(types + ["big"])
            sql = self.aggregate_of(t, refs, outer, min(depth, 1))
            if sql and any(r.sql in sql for r in refs) or sql and sql.startswith("count(*)"):
                # In a subquery too it is the aggregate of this query, if all that it names is of here.
                own = "SELECT" not in sql and any(f"({r.sql}" in sql for r in refs) and not any(r.sql in sql for r in outer)
                aggs.append(Ref(sql, t, plain=own))
        names = [k.sql for k in keys]
        extra = []
        if not keys:
            clause = self.d.pick(["", "", " GROUP BY ()"]) if aggs else " GROUP BY ()"
        else:
            # PostgreSQL 15 forgets that a grouping set makes an expression (no plain column) NULL.
            kind = self.d.below(10) if all(k.plain for k in keys) else 0
            if kind <= 3:
                clause = f" GROUP BY {', '.join(names)}"
            elif kind == 4:
                clause = f" GROUP BY ROLLUP ({', '.join(names)})"
            elif kind == 5:
                clause = f" GROUP BY CUBE ({', '.join(names)})"
            elif kind == 6:
                clause = f" GROUP BY GROUPING SETS (({', '.join(names)}), ({names[0]}), ())"
            elif kind == 7:
                clause = f" GROUP BY {names[0]}, ROLLUP ({', '.join(names)})"
            elif kind == 8:
                clause = f" GROUP BY DISTINCT ROLLUP ({', '.join(names)}), CUBE ({names[-1]})"
            else:
                clause = f" GROUP BY GROUPING SETS (ROLLUP ({', '.join(names)}), CUBE ({names[0]}), ())"
            if kind >= 4:
                extra = [Ref(f"grouping({', '.join(names)})", "int", plain=False)]
        inside = keys + aggs + extra
        # A constant key would be taken for a position.
        having = f" HAVING {self.expr('bool', inside + outer, min(depth, 2))}" if self.d.chance(30) else ""
        if self.d.chance(15):
            return self.windowed(f"{frm}{where}{clause}{having}", inside, "", depth, outer, types)
        items = [self.expr(t, inside + outer, depth) for t in types]
        return f"SELECT {', '.join(items)} FROM {frm}{where}{clause}{having}"

    def windowed(self, body, refs, tail, depth, outer, types) -> str:
        # One that tells equal rows apart: between copies of a row it is nowhere said which has the first number of one window and which that of another.
        windows = [Ref(*self.window(self.d.pick(types + ["big"]), refs, depth), plain=False)]
        while refs and self.d.chance(25):
            windows.append(Ref(*self.window_of_peers(refs), plain=False))
        items = [self.expr(t, refs + windows + outer, min(depth, 2)) for t in types]
        if not any(w.sql in x for w in windows for x in items):
            w = windows[0]
            if w.typ in types:
                items[types.index(w.typ)] = w.sql
        return f"SELECT {', '.join(items)} FROM {body}{tail}"

    def window(self, typ, refs, depth) -> tuple[str, str]:
        partition = ""
        if refs and self.d.chance(60):
            partition = f"PARTITION BY {self.d.pick(refs).sql} "
        directions = ["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]
        total = ", ".join(f"{r.sql}{self.d.pick(directions)}" for r in refs)
        if self.d.chance(30) and refs:
            first = self.d.pick(refs).sql
            total = f"{first}{self.d.pick(directions)}, {total}"
        order = f"ORDER BY {total}" if total else ""
        arg = self.expr(typ, refs, 1)
        kind = self.d.below(6)
        if kind == 0 or not refs:
            return f"row_number() OVER ({partition}{order})", "big"
        if kind == 1:
            loose = f"ORDER BY {self.d.pick(refs).sql}{self.d.pick(directions)}"
            return f"{self.d.pick(['rank', 'dense_rank'])}() OVER ({partition}{self.d.pick([order, loose])})", "big"
        if kind == 2:
            extra = self.d.pick(["", ", 2", f", 1, {self.expr(typ, refs, 0)}", ", 0"])
            return f"{self.d.pick(['lag', 'lead'])}({arg}{extra}) OVER ({partition}{order})", typ
        if kind == 3 and self.d.chance(30):
            return f"ntile({1 + self.d.below(3)}) OVER ({partition}{order})", "int"
        frame, order = self.frame(refs, order)
        if kind == 3:
            fn = self.d.pick([f"first_value({arg})", f"last_value({arg})", f"nth_value({arg}, 2)"])
            return f"{fn} OVER ({partition}ORDER BY {total}{frame if 'RANGE' not in frame or 'UNBOUNDED' in frame else ''})", typ
        agg = {"int": f"{self.d.pick(['max', 'min'])}({arg})", "big": f"{self.d.pick(['count', 'sum'])}({self.expr('int', refs, 1)})",
               "num": f"{self.d.pick(['sum', 'avg', 'min', 'max'])}({arg})", "flt": f"{self.d.pick(['sum', 'max'])}({arg})",
               "txt": f"{self.d.pick(['min', 'max'])}({arg})", "bool": f"bool_or({arg})", "date": f"max({arg})", "chr": f"min({arg})", "ivl": f"sum({arg})",
               "stamp": f"max({arg})", "jsb": f"first_value({arg})", "arr": f"max({arg})", "rng": f"last_value({arg})",
               "row": f"last_value({arg})", "ttz": f"max({arg})", "bit": f"last_value({arg})", "net": f"min({arg})", "tar": f"max({arg})", "dom": f"first_value({arg})",
               "vch": f"last_value({arg})", "rea": f"max({arg})", "byt": f"last_value({arg})", "ear": f"max({arg})", "nar": f"max({arg})", "mrg": f"range_agg({arg})", "enu": f"min({arg})"}[typ]
        if typ in ("jsb", "rng", "row", "bit", "dom", "vch", "byt"):
            return f"{agg} OVER ({partition}ORDER BY {total})", typ
        filt = f" FILTER (WHERE {self.expr('bool', refs, 1)})" if self.d.chance(15) else ""
        return f"{agg}{filt} OVER ({partition}{order}{frame})", typ

    def window_of_peers(self, refs) -> tuple[str, str]:
        """A window function that gives equal rows the same."""
        over = f"PARTITION BY {self.d.pick(refs).sql} " if self.d.chance(50) else ""
        over += f"ORDER BY {self.d.pick(refs).sql}{self.d.pick(['', ' DESC', ' NULLS FIRST'])}"
        kind = self.d.below(4)
        if kind == 0:
            return f"{self.d.pick(['rank', 'dense_rank'])}() OVER ({over})", "big"
        if kind == 1:
            return f"round({self.d.pick(['cume_dist', 'percent_rank'])}() OVER ({over})::numeric, 4)", "num"
        bounds = [("UNBOUNDED PRECEDING", "CURRENT ROW"), ("1 PRECEDING", "1 FOLLOWING"), ("CURRENT ROW", "UNBOUNDED FOLLOWING"), ("2 PRECEDING", "1 PRECEDING"),
                  ("1 FOLLOWING", "UNBOUNDED FOLLOWING"), ("UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING")]
        start, end = self.d.pick(bounds)
        exclude = self.d.pick(["", " EXCLUDE GROUP", " EXCLUDE NO OTHERS"])
        arg = self.expr("int", refs, 1)
        agg = self.d.pick([f"count({arg})", f"sum({arg})", f"max({arg})::int8", "count(*)"])
        return f"{agg} OVER ({over} GROUPS BETWEEN {start} AND {end}{exclude})", "big"

    def frame(self, refs, order) -> tuple[str, str]:
        """A frame and the order that it needs."""
        mode = self.d.pick(["", "ROWS", "RANGE", "GROUPS"])
        if not mode:
            return "", order
        offset = lambda: self.d.pick(["1", "2", "0"])  # noqa: E731
        if mode == "RANGE":
            ordered = [r for r in refs if r.typ in ("int", "num", "flt", "date", "big")]
            if not ordered:
                return "", order
            r = self.d.pick(ordered)
            order = f"ORDER BY {r.sql}{self.d.pick(['', ' DESC', ' NULLS FIRST'])}"
            step = {"int": "1", "big": "1", "num": "1.5", "flt": "0.5::float8", "date": "'1 day'::interval"}[r.typ]
            offset = lambda: step  # noqa: E731
        elif mode == "GROUPS":
            order = f"ORDER BY {self.d.pick(refs).sql}{self.d.pick(['', ' DESC'])}"
        start = self.d.pick(["UNBOUNDED PRECEDING", "{} PRECEDING", "CURRENT ROW", "{} FOLLOWING"])
        ends = ["CURRENT ROW", "UNBOUNDED FOLLOWING", "{} FOLLOWING", "{} PRECEDING"]
        if "CURRENT" in start:
            ends = ends[:3]
        if "FOLLOWING" in start:
            ends = ends[1:3]
        end = self.d.pick(ends)
        exclude = self.d.pick(["", "", "", " EXCLUDE CURRENT ROW", " EXCLUDE TIES", " EXCLUDE GROUP"])
        return f" {mode} BETWEEN {start.format(offset())} AND {end.format(offset())}{exclude}", order

    # The whole.

    def recursive(self) -> tuple[str, list]:
        """A recursive CTE that ends, and its columns."""
        kind = self.d.below(7)
        if kind == 5:
            return ("r(x, d) AS (SELECT x, 1 FROM e UNION ALL SELECT e.y, r.d + 1 FROM e JOIN r ON e.x = r.x WHERE r.d < 2) SEARCH "
                    f"{self.d.pick(['BREADTH', 'DEPTH'])} FIRST BY x SET o", [("x", "int"), ("d", "int")])
        if kind == 6:
            return ("r(x, n) AS (SELECT k, count(*) FROM t GROUP BY k UNION SELECT e.y, min(r.n) OVER (PARTITION BY e.y) FROM e, r WHERE e.x = r.x)",
                    [("x", "int"), ("n", "big")])
        filt = self.expr("bool", [Ref("e.x", "int"), Ref("e.y", "int")], 1) if self.d.chance(30) else "true"
        if kind == 0:
            return f"r(x, y) AS (SELECT x, y FROM e WHERE {filt} UNION SELECT r.x, e.y FROM r JOIN e ON r.y = e.x)", [("x", "int"), ("y", "int")]
        if kind == 1:
            return ("r(x, d) AS (SELECT k, 0 FROM t UNION SELECT e.y, r.d + 1 FROM r, e WHERE r.x = e.x AND r.d < 3)",
                    [("x", "int"), ("d", "int")])
        if kind == 2:
            return (f"r(x, d) AS (SELECT x, 1 FROM e WHERE {filt} UNION ALL SELECT e.y, r.d + 1 FROM e JOIN r ON e.x = r.x WHERE r.d < 3)",
                    [("x", "int"), ("d", "int")])
        if kind == 3:
            return ("r(x, s) AS (SELECT x, ''::text FROM e UNION SELECT e.y, left(r.s || coalesce(t.s, '-'), 2) FROM r JOIN e USING (x) "
                    "LEFT JOIN t ON t.k = e.y)", [("x", "int"), ("s", "txt")])
        return ("r(x) AS (SELECT a FROM t UNION SELECT DISTINCT e.y FROM r JOIN e ON e.x = r.x AND EXISTS (SELECT FROM u WHERE u.k = e.y))",
                [("x", "int")])

    def whole(self) -> str:
        d = self.d
        withs = []
        if d.chance(12):
            sql, columns = self.recursive()
            withs.append(sql)
            self.ctes.append(("r", columns))
        for _ in range(d.below(3) if d.chance(25) else 0):
            name = self.name("cte")
            sql, types = self.query(2, [], None)
            columns = [(f"c{i}", t) for i, t in enumerate(types)]
            withs.append(f"{name}({', '.join(c for c, _ in columns)}) AS {d.pick(['', 'MATERIALIZED ', 'NOT MATERIALIZED '])}({sql})")
            self.ctes.append((name, columns))
        self.budget = 40
        sql, types = self.query(1 + d.below(4), [], None)
        if withs:
            sql = f"({sql})" if sql.startswith("WITH") else sql
            sql = f"WITH {'RECURSIVE ' if self.ctes[0][0] == 'r' else ''}{', '.join(withs)} {sql}"
        names = ", ".join(f"c{i}" for i in range(len(types)))
        return f"SELECT * FROM ({sql}) AS whole({names})"


# Changes.


class Changes:
    """The changes of a round: batches of statements that both servers take."""

    def __init__(self, rng: random.Random):
        self.rng, self.next_id = rng, 0

    def rows(self, table: str, n: int) -> str:
        out = []
        for _ in range(n):
            row = [self.rng.choice(VALUES[t][:-1] if t in ("num", "flt") and self.rng.random() < 0.95 else VALUES[t]) for _, t in TABLES[table]]
            if table == "w":
                self.next_id += 1
                row[0] = str(self.next_id)
            out.append("(" + ", ".join(row) + ")")
            if table != "w" and self.rng.random() < 0.2:
                out.append(out[-1])
        return f"INSERT INTO {table} VALUES {', '.join(out)}"

    def where(self, table: str) -> str:
        c, t = self.rng.choice(TABLES[table])
        return f"{c} IS NOT DISTINCT FROM ({self.rng.choice(VALUES[t])})::{SQL_TYPE[t]}"

    def batch(self, n: int) -> list[str]:
        rng, out = self.rng, []
        for table in rng.sample(list(TABLES), rng.randint(1, len(TABLES))):
            kind = rng.random()
            undone = n > 0 and rng.random() < 0.15
            if undone:
                out.append("SAVEPOINT before")
            if n == 0 or kind < 0.45:
                out.append(self.rows(table, rng.randint(1, 6)))
            elif kind < 0.5 and self.next_id:
                out.append(f"INSERT INTO {table} SELECT * FROM {table} WHERE {self.where(table)}" if table != "w" else
                           f"INSERT INTO w (id, k) VALUES ({rng.randint(1, self.next_id)}, 7) ON CONFLICT (id) DO UPDATE SET k = w.k + 1")
            elif kind < 0.68:
                out.append(f"DELETE FROM {table} WHERE {self.where(table)}")
            elif kind < 0.72:
                out.append(rng.choice(["DELETE FROM {}", "TRUNCATE {}"]).format(table))
            else:
                settable = [c for c in TABLES[table] if c[0] != "id"]
                c, t = rng.choice(settable)
                value = f"{c} + 1" if t == "int" and rng.random() < 0.3 else f"({rng.choice(VALUES[t])})::{SQL_TYPE[t]}"
                out.append(f"UPDATE {table} SET {c} = {value} WHERE {self.where(table)}")
            if undone:
                out.append(rng.choice(["ROLLBACK TO before", "RELEASE before"]))
        return out


# Judging.


def span(text: str) -> int:
    """An interval's microseconds, with months of 30 days of 24 hours, as PostgreSQL compares them."""
    total = 0
    for number, unit in re.findall(r"(-?\d+) (year|mon|day)", text):
        total += int(number) * {"year": 360, "mon": 30, "day": 1}[unit] * 86_400_000_000
    if m := re.search(r"(-?)(\d+):(\d+):(\d+)(?:\.(\d+))?", text):
        micros = (int(m[2]) * 3600 + int(m[3]) * 60 + int(m[4])) * 1_000_000 + int((m[5] or "").ljust(6, "0"))
        total += -micros if m[1] else micros
    return total


def plain(rows: list[tuple], oids: list[int]) -> collections.Counter:
    """Rows as values: numbers without their scale, floating-point numbers to eleven digits."""

    def value(v, oid):
        if v is None:
            return None
        if oid == 1700 and v[-1].isdigit():
            return str(+decimal.Decimal(v).normalize()) if decimal.Decimal(v) else "0"
        if oid == 1186:
            return f"{span(v)}"
        if oid == 3802:
            return json.dumps(json.loads(v, parse_int=decimal.Decimal, parse_float=decimal.Decimal), sort_keys=True, default=lambda d: float(d))
        if oid in (1231, 4532) or oid >= FIRST_USER_OID:
            return re.sub(r"\d+\.\d+", lambda m: f"{decimal.Decimal(m[0]).normalize():f}", v)
        if oid in (700, 701):
            return f"{float(v) + 0.0:.11g}".replace("-0", "0") if float(v) == 0 else f"{float(v):.11g}"
        return v

    return collections.Counter(tuple(value(v, o) for v, o in zip(r, oids)) for r in rows)


def difference(want: collections.Counter, got: collections.Counter) -> str:
    return f"missing {sorted((want - got).elements(), key=repr)[:6]}, too many {sorted((got - want).elements(), key=repr)[:6]}"


class Fault(Exception):
    """What did not hold, and for which query."""

    def __init__(self, kind: str, what: str):
        super().__init__(f"{kind}: {what}")
        self.kind = kind


class Judge:
    """Two connections, the tables on both, views on one."""

    def __init__(self, pg_dsn: str, server: Riverdelta, schema: str):
        self.pg, self.server, self.schema = Wire(pg_dsn), server, schema
        self.rd = Wire(server.dsn)
        self.counts = collections.Counter()

    def both(self, sql: str):
        for wire in (self.pg, self.rd):
            o = wire.run(sql)
            if o.state:
                raise RuntimeError(f"{o.state} {o.message}: {sql}")

    def begin(self):
        self.both(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE")
        self.both(f"CREATE SCHEMA {self.schema}")
        self.path()
        for sql in MADE:
            self.both(sql)
        for t, columns in TABLES.items():
            self.both(f"CREATE TABLE {t} ({', '.join(f'{c} {SQL_TYPE[ty]}' + (' PRIMARY KEY' if c == 'id' else '') for c, ty in columns)})")

    def path(self):
        self.pg.run("SET statement_timeout = '3s'")
        self.rd.run("SET statement_timeout = '60s'")
        self.both("SET TimeZone = 'UTC'")
        self.both(f"SET search_path = {self.schema}")

    def end(self):
        self.both(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE")

    def create(self, view: str, sql: str, definition: str | None = None) -> bool:
        """Makes the view, if PostgreSQL knows the query at all. `definition`: the query with other views in it by name."""
        if self.pg.run(f"EXPLAIN {sql}").state:
            self.counts["refused by PostgreSQL"] += 1
            return False
        o = self.rd.run(f"CREATE MATERIALIZED VIEW {view} AS {definition or sql}")
        if o.state:
            raise Fault("refused", f"{o.state} {o.message}")
        return True

    def apply(self, batch: list[str]):
        for sql in ["BEGIN", *batch, "COMMIT"]:
            self.both(sql)

    def turn(self, rng: random.Random, views: dict):
        """What must change no answer: indexes, views made again or built upon, columns that come and go."""
        kind, table, view = rng.randrange(6), rng.choice(list(TABLES)), rng.choice(list(views) or [""])
        column = rng.choice(TABLES[table])[0]
        if kind == 0:
            self.index(table, column)
        elif kind == 1:
            self.rd.run(f"DROP INDEX IF EXISTS {table}_{column}_i")
        elif kind == 2 and view:
            self.must(f"CREATE INDEX IF NOT EXISTS {view}_i ON {view} (c0)")
        elif kind == 3 and view.startswith("v") and f"w{view[1:]}" not in views:
            self.must(f"CREATE OR REPLACE MATERIALIZED VIEW {view} AS {views[view]}")
        elif kind == 4:
            self.both(f"ALTER TABLE {table} ADD COLUMN more int DEFAULT 7")
            # A view keeps what `*` was, a query does not.
            if rng.random() < 0.5 or any(re.search(r"\* FROM \w", sql) for sql in views.values()):
                self.both(f"ALTER TABLE {table} DROP COLUMN more")
            else:
                self.both(f"ALTER TABLE {table} RENAME more TO other_{rng.randrange(1 << 30)}")
        elif view:
            self.must(f"CREATE TEMPORARY VIEW x_{rng.randrange(1 << 30)} AS SELECT * FROM {view}")

    def index(self, table: str, *columns: str):
        self.rd.run(f"CREATE INDEX IF NOT EXISTS {table}_{'_'.join(columns)}_i ON {table} ({', '.join(columns)})")

    def index_most(self, rng: random.Random):
        """So that both sides of a join are read from indexes, and views are made over them."""
        for table, columns in TABLES.items():
            names = [c for c, _ in columns]
            self.index(table, names[0])
            self.index(table, rng.choice(names))
            self.index(table, *rng.sample(names, 2))

    def must(self, sql: str):
        o = self.rd.run(sql)
        if o.state:
            raise RuntimeError(f"{o.state} {o.message}: {sql}")

    def check(self, view: str, sql: str):
        want = self.pg.run(sql)
        once, kept = self.rd.run(sql), self.rd.run(f"SELECT * FROM {view}")
        if want.state and not once.state or once.state == kept.state == "22012" and f"10 {FALLIBLE}" in sql:
            # Which rows meet a division depends on the plan; views and queries agree all the same.
            self.counts[f"errors differ or fail on PostgreSQL ({want.state})"] += 1
            if not once.state and collections.Counter(once.rows) != collections.Counter(kept.rows):
                raise Fault("view", f"{kept.state} {kept.message}" if kept.state else difference(collections.Counter(once.rows), collections.Counter(kept.rows)))
            return
        if want.state:
            self.counts[f"fails on PostgreSQL ({want.state})"] += 1
            return
        if once.state == kept.state == "21000":
            # A scalar subquery of several rows in a column that nothing reads: PostgreSQL does not run it.
            self.counts["fails here only (21000)"] += 1
            return
        if kept.state and view[0] in "wx" and self.rd.run(f"SELECT * FROM v{view[1:]}").state == kept.state:
            # The view below fails as a whole, also for a column of it that the one above does not read.
            self.counts[f"a view below fails ({kept.state})"] += 1
            return
        for what, o in (("one-off", once), ("view", kept)):
            if o.state:
                raise Fault(f"{what} fails", f"{o.state} {o.message}")
        w, g = plain(want.rows, want.oids), plain(once.rows, want.oids)
        if w != g:
            raise Fault("one-off", difference(w, g))
        w, g = collections.Counter(once.rows), collections.Counter(kept.rows)
        if w != g:
            raise Fault("view", difference(w, g))
        self.counts["compared"] += 1
        self.counts["rows"] += len(want.rows)


def run_queries(judge: Judge, queries: list[str], changes: list, restart=None, subscribe=False, turns: random.Random | None = None) -> list[tuple[str, Fault, int]]:
    """The round for these queries. Returns the faults: the query, what did not hold, after which batch."""
    judge.begin()
    if turns and turns.random() < 0.5:
        judge.index_most(turns)
    faults, views = [], {}
    for n, sql in enumerate(queries):
        try:
            if judge.create(f"v{n}", sql):
                views[f"v{n}"] = sql
                over = "SELECT c0, count(*) AS n FROM {} q GROUP BY c0", "SELECT q.c0, x FROM {} q LEFT JOIN e ON e.x = 1", "SELECT DISTINCT c0 FROM {} q"
                if n % 2 == 0 and judge.create(f"w{n}", over[n // 2 % 3].format(f"({sql})"), over[n // 2 % 3].format(f"v{n}")):
                    views[f"w{n}"] = over[n // 2 % 3].format(f"({sql})")
                    if judge.create(f"x{n}", f"SELECT q.c0, count(*) OVER () AS n FROM ({views[f'w{n}']}) q", f"SELECT q.c0, count(*) OVER () AS n FROM w{n} q"):
                        views[f"x{n}"] = f"SELECT q.c0, count(*) OVER () AS n FROM ({views[f'w{n}']}) q"
        except Fault as f:
            faults.append((sql, f, -1))
    subscription, states = None, {}
    # A subscription ends with the first error of its view.
    lasting = [v for v, sql in views.items() if f"10 {FALLIBLE}" not in sql]
    if subscribe and lasting:
        name = max(lasting)
        subscription = Subscription(judge.server, f"{judge.schema}.{name}")
        subscription.on_close = lambda t, rows: states.update({t: rows})
        subscribed = views[name]
    for n, batch in enumerate(changes):
        judge.apply(batch)
        if restart and n == len(changes) // 2:
            if subscription:
                subscription.close()
                subscription = None
            restart()
            judge.rd = Wire(judge.server.dsn)
            judge.path()
        if turns and turns.random() < 0.3:
            judge.turn(turns, views)
        for view, sql in list(views.items()):
            try:
                judge.check(view, sql)
            except Fault as f:
                faults.append((sql, f, n))
                del views[view]
    if subscription:
        want = judge.rd.run(f"SELECT * FROM {name}")
        if not want.state:
            try:
                escaped = [tuple(None if v is None else v.replace("\\", "\\\\") for v in r) for r in want.rows]
                subscription.wait_for(escaped, 20)
                # At each progress the sum is the view as of then. The first tells the time of the snapshot, which comes after it.
                for t in sorted(states)[1:]:
                    o = judge.rd.run(f"SELECT * FROM {name} AS OF {t}")
                    escaped = sorted((tuple(None if v is None else v.replace("\\", "\\\\") for v in r) for r in o.rows), key=repr)
                    if o.state == "22023":
                        continue  # before it was made, or too long ago
                    if o.state or escaped != states[t]:
                        raise AssertionError(f"as of {t}: {o.state} {o.message}, sum {states[t][:6]}, view {escaped[:6]}")
                    judge.counts["progress"] += 1
            except (AssertionError, TimeoutError) as e:
                # ALTER TABLE makes the views over the table anew.
                if not re.search("was dropped|was altered or replaced", str(subscription.error)):
                    faults.append((subscribed, Fault("subscribe", str(e)[:500]), len(changes)))
        subscription.close()
    judge.end()
    return faults


def make(taken: list[int]) -> str:
    return Gen(Draw(taken)).whole()


def shrink(judge: Judge, taken: list[int], changes: list, kind: str, seconds: float) -> tuple[str, list, Fault]:
    """A simpler query, and fewer changes, with a fault of the same kind."""
    until = time.monotonic() + seconds

    def fails(sql, batches):
        if time.monotonic() > until:
            return None
        try:
            found = run_queries(judge, [sql], batches)
        except (RuntimeError, ConnectionError) as e:
            if not judge.server.proc.running():
                judge.server.start()
            judge.rd = Wire(judge.server.dsn)
            found = [(sql, Fault("lost", str(e)), 0)]
        return next((f for _, f, _ in found if f.kind == kind), None)

    best, fault = make(taken), None
    size = max(1, len(taken) // 2)
    while size >= 1 and time.monotonic() < until:
        at, progress = 0, False
        while at < len(taken) and time.monotonic() < until:
            for other in (taken[:at] + taken[at + size:], taken[:at] + [0] * size + taken[at + size:]):
                d = Draw(other)
                sql = Gen(d).whole()
                if sql == best or len(sql) > len(best) or len(sql) == len(best) and len(d.taken) >= len(taken):
                    continue
                if f := fails(sql, changes):
                    taken, best, fault, progress = d.taken, sql, f, True
                    break
            else:
                at += size
        if not progress or size > 1:
            size //= 2
    for n in range(len(changes) - 1, -1, -1):
        for m in range(len(changes[n]) - 1, -1, -1):
            other = [b if i != n else b[:m] + b[m + 1:] for i, b in enumerate(changes)]
            if f := fails(best, other):
                changes, fault = other, f
    return best, [b for b in changes if b], fault


def queries_of(seed: int, n: int) -> list[tuple[str, list[int]]]:
    out = []
    for i in range(n):
        d = Draw(rng=random.Random(f"{seed}/{i}"))
        out.append((Gen(d).whole(), d.taken))
    return out


def run_round(judge: Judge, seed: int, queries: int = 6, batches: int = 5, restart=None, subscribe=True):
    made = queries_of(seed, queries)
    changes = Changes(random.Random(f"{seed}/changes"))
    batches = [changes.batch(n) for n in range(batches)]
    return made, batches, run_queries(judge, [sql for sql, _ in made], batches, restart, subscribe, random.Random(f"{seed}/turns"))


def main():
    p = rounds.options(__doc__, 20)
    p.add_argument("--queries", type=int, default=6)
    p.add_argument("--restart-every", type=int, default=10)
    p.add_argument("--shrink", type=float, default=30, help="seconds for each fault; 0 for none")
    p.add_argument("--show", action="store_true", help="print the queries")
    a = p.parse_args()

    def each(judge, seed):
        if a.show:
            print("\n".join(sql for sql, _ in queries_of(seed, a.queries)))
        made, batches, faults = run_round(judge, seed, a.queries, restart=rounds.again(judge.server, seed, a.restart_every))
        for sql, fault, when in faults:
            print(f"seed {seed}, batch {when}, {fault}\n  {sql}", flush=True)
            taken = next((t for s, t in made if s == sql), None)
            if taken is None:
                print("  a view over a view", flush=True)
            elif a.shrink and fault.kind != "subscribe":
                best, changes, f = shrink(judge, taken, batches, fault.kind, a.shrink)
                print(f"  shrunk: {f or 'no simpler one'}\n    {best}", flush=True)
                if f and f.kind != "refused":
                    print("\n".join(f"      {'; '.join(c)}" for c in changes), flush=True)
        return len(faults)

    return rounds.run(a, "random", Judge, each)


if __name__ == "__main__":
    sys.exit(main())
