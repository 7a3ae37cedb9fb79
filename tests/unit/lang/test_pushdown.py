"""Conditions as predicates of a stored table."""

from __future__ import annotations

import datetime as dt

import pytest

from omnigraph.lang import ir
from omnigraph.lang.evaluate import Bound
from omnigraph.lang.pushdown import split, to_predicate
from omnigraph.lang.query import compile_query
from omnigraph.model import predicates as p
from tests.unit.lang.query.casefile import harbour

BOUND = Bound({"s": "NO", "n": 3, "none": None, "list": ("a", None), "nolist": None})
PARAMS = "$s: String, $n: I64, $none: String?, $list: [String], $nolist: [String]?"


def condition(text: str) -> ir.Expr:
    """A condition on `$v: Vessel` or `$p: Port`, as the scan of its variable holds it."""
    query = compile_query(
        f"query q({PARAMS}) {{ match {{ $v: Vessel $p: Port {text} }} return {{ $v.name }} }}",
        harbour(),
    )
    assert isinstance(query.body, ir.Read)
    join = query.body.plan
    assert isinstance(join, ir.Project)
    assert isinstance(join.input, ir.Join)
    for side in (join.input.left, join.input.right):
        if isinstance(side, ir.NodeScan) and side.predicate is not None:
            return side.predicate
    raise AssertionError(f"{text} is in no scan")


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("$v.teu > 3", p.Compare("teu", p.Op.GT, 3)),
        ("3 < $v.teu", p.Compare("teu", p.Op.GT, 3)),
        ("$v.teu >= $n + 1", p.Compare("teu", p.Op.GE, 4)),
        ("$v.flag = $s", p.Compare("flag", p.Op.EQ, "NO")),
        ("$v.flag != $none", p.Compare("flag", p.Op.NE, None)),
        ('$v.id = "x"', p.Compare("id", p.Op.EQ, "x")),
        ("$v.active", p.Compare("active", p.Op.EQ, True)),
        ("not $v.active", p.Not(p.Compare("active", p.Op.EQ, True))),
        ("$v.flag is null", p.IsNull("flag")),
        ("$v.flag is not null", p.IsNull("flag", negated=True)),
        ("$v.flag in $list", p.In("flag", ("a",))),
        ("$v.flag in $nolist", p.Always(None)),
        ("$v.teu in [1, 2]", p.In("teu", (1, 2))),
        ('$v.name contains "a"', p.Contains("name", "a")),
        ("$v.name starts_with $s", p.StartsWith("name", "NO")),
        ("$v.name contains $none", p.Always(None)),
        ('$p.tags contains "a"', p.Has("tags", "a")),
        ("$p.tags contains $none", p.Always(False)),
        (
            "$list contains $v.flag",
            p.And((p.IsNull("flag", negated=True), p.In("flag", ("a",)))),
        ),
        ('$v.built < date("2024-01-01")', p.Compare("built", p.Op.LT, dt.date(2024, 1, 1))),
        (
            '$v.teu > 1 or $v.flag = "a"',
            p.Or((p.Compare("teu", p.Op.GT, 1), p.Compare("flag", p.Op.EQ, "a"))),
        ),
    ],
)
def test_expressible(text: str, predicate: p.Predicate) -> None:
    assert to_predicate(condition(text), "p" if "$p." in text else "v", BOUND) == predicate


@pytest.mark.parametrize(
    "text",
    [
        'lower($v.name) = "a"',
        "$v.teu + 1 > 3",
        "$v.name = $v.flag",
        'search($v.notes, "a")',
        '$v.teu > 1 or lower($v.name) = "a"',
        'regex_match($v.name, "a")',
        '"abc" contains $v.name',
    ],
)
def test_inexpressible(text: str) -> None:
    assert to_predicate(condition(text), "v", BOUND) is None


def test_what_can_be_told_is_split_from_the_rest() -> None:
    both = condition('$v.teu > 3 lower($v.name) = "a" $v.active')
    told, rest = split(both, "v", BOUND)
    compare, active = p.Compare("teu", p.Op.GT, 3), p.Compare("active", p.Op.EQ, True)
    assert told == p.And((compare, active))
    assert rest == condition('lower($v.name) = "a"')
    assert split(None, "v", BOUND) == (None, None)
