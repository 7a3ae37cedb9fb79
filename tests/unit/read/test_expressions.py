"""Expressions on whole columns mean what they mean for one row."""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import OmnigraphError
from omnigraph.lang import ir
from omnigraph.lang.query import compile_query
from omnigraph.read import Cache, run_query
from tests.support.comparing import normal
from tests.support.interpreter import Interpreter, PlainGraph
from tests.support.snapshots import Graph, ask, make_graph

SCHEMA = """
node Row {
  code: String @key
  text: String?
  other: String?
  small: I32?
  big: I64?
  huge: U64?
  half: F32?
  real: F64?
  day: Date?
  at: DateTime?
  flag: Bool?
  words: [String]?
  numbers: [I64]?
}
"""
UTC = dt.UTC
ROWS: list[dict[str, Any]] = [
    {
        "text": "Straße ÄÖ",
        "other": "aße",
        "small": 7,
        "big": 2**53 + 1,
        "huge": 2**64 - 1,
        "half": 0.1,
        "real": 0.1,
        "day": dt.date(2024, 2, 29),
        "at": dt.datetime(2024, 2, 29, 23, 59, 59, 999000, UTC),
        "flag": True,
        "words": ["a", "b", None],
        "numbers": [1, 2, 2**53 + 1],
    },
    {
        "text": "  pad\t",
        "other": "",
        "small": -7,
        "big": -(2**63),
        "huge": 0,
        "half": -2.5,
        "real": -2.5,
        "day": dt.date(1969, 12, 31),
        "at": dt.datetime(1969, 12, 31, 12, 0, 0, 1000, UTC),
        "flag": False,
        "words": [],
        "numbers": [],
    },
    {
        "text": "12",
        "other": "1",
        "small": 0,
        "big": 2**63 - 1,
        "huge": 2**53 + 1,
        "half": 0.5,
        "real": float(2**53),
        "day": dt.date(2000, 1, 1),
        "at": dt.datetime(2000, 1, 1, tzinfo=UTC),
        "flag": None,
        "words": None,
        "numbers": [0],
    },
    {"text": "-3.5e2", "other": "é", "small": 3, "big": 0, "huge": 5, "real": 1e300, "half": 3.0},
    {},
]
EXPRESSIONS = [
    "$r.small + 1",
    "$r.small - $r.real",
    "$r.small * $r.small",
    "$r.small / 2",
    "$r.small / $r.small",
    "$r.small % 4",
    "$r.real % 3",
    "$r.real / 0",
    "-$r.small",
    "lower($r.text)",
    "upper($r.text)",
    "trim($r.text)",
    "length($r.text)",
    "length($r.words)",
    'concat($r.text, "-", $r.other)',
    "substring($r.text, 1)",
    "substring($r.text, 2, 3)",
    "substring($r.text, $r.small, 2)",
    'coalesce($r.other, $r.text, "none")',
    "coalesce($r.small, 5)",
    "year($r.day)",
    "month($r.at)",
    "day($r.at)",
    "hour($r.at)",
    "hour($r.day)",
    "minute($r.at)",
    "second($r.at)",
    "date_add($r.day, 1)",
    "date_add($r.at, $r.small)",
    "date_sub($r.day, $r.small)",
    'days_between($r.day, date("2024-01-01"))',
    'days_between($r.at, datetime("2000-01-01T00:00:00Z"))',
    "cast($r.small as String)",
    "cast($r.real as String)",
    "cast($r.text as I64)",
    "cast($r.text as F64)",
    "cast($r.big as I32)",
    "cast($r.huge as I64)",
    "cast($r.real as I64)",
    "cast($r.big as F64)",
    "cast($r.day as DateTime)",
    "cast($r.at as Date)",
    "cast($r.at as String)",
    "cast($r.flag as I32)",
    "cast($r.small as Bool)",
]
CONDITIONS = [
    "$r.big = $r.huge",
    "$r.big < $r.real",
    "$r.real = $r.big",
    "$r.huge > $r.real",
    "$r.huge >= 9007199254740993",
    "$r.big > 9007199254740992.0",
    "$r.big = 9007199254740992.0",
    "$r.real = 9007199254740993",
    "$r.real < 9007199254740993",
    "$r.small > 2.5",
    "$r.small = 2.5",
    "$r.huge > -1",
    "$r.half = 0.1",
    "$r.half = $r.real",
    "$r.flag",
    "$r.flag != true",
    "not $r.flag",
    "$r.text < $r.other",
    "$r.text contains $r.other",
    "$r.text starts_with $r.other",
    '$r.text contains "ß"',
    '$r.text contains ""',
    "$r.words contains $r.other",
    '$r.words contains "a"',
    "$r.numbers contains $r.big",
    "$r.numbers contains 2",
    "$r.small in [7, 0, null]",
    "$r.small not in [7, 0]",
    "$r.small in $r.numbers",
    'regex_match($r.text, "^[0-9]+$")',
    '$r.day >= date("2000-01-01") or $r.at is null',
    "$r.words is null and $r.text is not null",
    "$r.real > $r.small and ($r.flag or $r.small < 0)",
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    rows = [{"id": f"r{i}", "code": f"r{i}", **row} for i, row in enumerate(ROWS)]
    return make_graph(tmp_path_factory.mktemp("rows"), SCHEMA, {"Row": rows})


def both(graph: Graph, text: str) -> tuple[list[Any], list[Any]]:
    """What the engine answers, and what the plain interpreter does."""
    names = graph.catalog.nodes["Row"].properties
    nodes = {f"r{i}": {n: row.get(n) for n in names} for i, row in enumerate(ROWS)}
    for i, row in enumerate(nodes.values()):
        row["code"] = f"r{i}"
        row["half"] = None if row["half"] is None else float(_float32(row["half"]))
    query = compile_query(f"query q() {{ {text} }}", graph.catalog)
    assert isinstance(query.body, ir.Read)
    found = run_query(query, {}, graph.snapshot, cache=Cache()).rows
    wanted = Interpreter(PlainGraph({"Row": nodes}, {})).run(query.body)
    return [normal(list(row.values())) for row in found], [normal(row) for row in wanted]


def _float32(value: float) -> float:
    import numpy as np

    return float(np.float32(value))


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_a_column_of_values_is_what_one_value_at_a_time_is(graph: Graph, text: str) -> None:
    found, wanted = both(
        graph, f"match {{ $r: Row }} return {{ $r.@id as id, {text} as v }} order {{ $r.code }}"
    )
    assert found == wanted


@pytest.mark.parametrize("text", CONDITIONS)
def test_a_filter_keeps_exactly_what_is_true(graph: Graph, text: str) -> None:
    for condition in (text, f"not ({text})"):
        found, wanted = both(graph, f"match {{ $r: Row ({condition}) }} return {{ $r.@id as id }}")
        assert sorted(found) == sorted(wanted)


def test_an_integer_overflow_is_an_error(graph: Graph) -> None:
    with pytest.raises(OmnigraphError) as overflow:
        ask(graph, "match { $r: Row } return { $r.big + 1 as v }")
    assert overflow.value.code == "arithmetic_overflow"


def test_a_null_parameter_matches_nothing(graph: Graph) -> None:
    assert (
        ask(graph, "match { $r: Row $r.text = $t } return { $r.@id as id }", {"t": None}).rows == []
    )
    assert (
        ask(graph, "match { $r: Row $r.text != $t } return { $r.@id as id }", {"t": None}).rows
        == []
    )


def test_now_is_one_instant(graph: Graph) -> None:
    when = dt.datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
    text = "match { $r: Row } return distinct { now() as a }"
    assert ask(graph, text, now=when).scalar() == when


def test_not_a_number_is_larger_than_every_number(tmp_path: Path) -> None:
    values = {"a": math.nan, "b": 1.0, "c": None, "d": math.inf}
    rows = [{"id": k, "code": k, "real": v} for k, v in values.items()]
    found = make_graph(tmp_path, SCHEMA, {"Row": rows})
    text = "match { $r: Row } return { $r.@id as r } order { $r.real %s }"
    assert [r["r"] for r in ask(found, text % "asc").rows] == ["c", "b", "d", "a"]
    assert [r["r"] for r in ask(found, text % "desc").rows] == ["a", "d", "b", "c"]
