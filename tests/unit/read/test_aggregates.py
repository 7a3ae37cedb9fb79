"""Grouping, aggregates, order, distinct, cutting and unions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import OmnigraphError
from tests.support.snapshots import Graph, ask, make_graph

SCHEMA = """
node Item { code: String @key  kind: String?  size: I64?  weight: F64?  day: Date?  tags: [String]? }
edge Next: Item -> Item { since: I64? }
"""
ITEMS = [
    {"id": "a", "code": "a", "kind": "x", "size": 3, "weight": 0.5},
    {"id": "b", "code": "b", "kind": "x", "size": None, "weight": 1.5},
    {"id": "c", "code": "c", "kind": None, "size": 1, "weight": None},
    {"id": "d", "code": "d", "kind": "y", "size": 3, "weight": 2.0},
    {"id": "e", "code": "e", "kind": None, "size": 2, "weight": 4.0},
]


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    following = [
        {"id": f"n{i}", "src": s, "dst": d}
        for i, (s, d) in enumerate([("a", "b"), ("a", "c"), ("b", "c")])
    ]
    return make_graph(tmp_path, SCHEMA, {"Item": ITEMS, "Next": following})


def values(graph: Graph, text: str, **params: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in ask(graph, text, params).rows]


def test_nulls_are_one_group(graph: Graph) -> None:
    text = (
        "match { $i: Item } return { $i.kind as k, count($i) as n, sum($i.size) as s } order { k }"
    )
    assert values(graph, text) == [(None, 2, 3.0), ("x", 2, 3.0), ("y", 1, 3.0)]


def test_aggregates_of_nothing_are_one_row_with_typed_nulls(graph: Graph) -> None:
    text = (
        'match { $i: Item $i.code = "none" } return { count(*) as n, sum($i.size) as s, avg($i.size) as a,'
        " min($i.kind) as least, max($i.day) as latest, collect($i.size) as all }"
    )
    result = ask(graph, text)
    assert result.rows == [{"n": 0, "s": None, "a": None, "least": None, "latest": None, "all": []}]
    kinds = [field.type for field in result.to_arrow().schema]
    wanted = [pa.int64(), pa.float64(), pa.float64(), pa.string(), pa.date32()]
    assert kinds[:5] == wanted


def test_groups_of_nothing_are_no_rows(graph: Graph) -> None:
    text = 'match { $i: Item $i.code = "none" } return { $i.kind as k, count(*) as n }'
    assert values(graph, text) == []


def test_count_of_a_value_skips_nulls_and_distinct_counts_values_once(graph: Graph) -> None:
    text = "match { $i: Item } return { count($i.size) as n, count(distinct $i.size) as d, count(*) as all }"
    assert values(graph, text) == [(4, 3, 5)]


def test_collect_is_in_order_and_leaves_nulls_out(graph: Graph) -> None:
    assert values(graph, "match { $i: Item } return { collect($i.size) as s }") == [([1, 2, 3, 3],)]


def test_having_selects_groups(graph: Graph) -> None:
    text = "match { $i: Item } return { $i.kind as k, count(*) as n } having { n > 1 } order { k }"
    assert values(graph, text) == [(None, 2), ("x", 2)]


def test_null_is_first_ascending_and_last_descending_and_ties_go_by_id(graph: Graph) -> None:
    text = "match { $i: Item } return { $i.code as c } order { $i.size %s }"
    assert [v[0] for v in values(graph, text % "asc")] == ["b", "c", "e", "a", "d"]
    assert [v[0] for v in values(graph, text % "desc")] == ["a", "d", "e", "c", "b"]


def test_ties_of_groups_go_by_their_keys(graph: Graph) -> None:
    text = "match { $i: Item } return { $i.kind as k, count(*) as n } order { n desc }"
    assert values(graph, text) == [(None, 2), ("x", 2), ("y", 1)]


def test_skip_and_limit_take_parameters(graph: Graph) -> None:
    text = "match { $i: Item } return { $i.code as c } order { $i.code } skip $s limit $l"
    assert values(graph, text, s=1, l=2) == [("b",), ("c",)]
    assert values(graph, text, s=9, l=2) == []
    assert values(graph, text, s=0, l=0) == []


def test_a_negative_limit_is_refused(graph: Graph) -> None:
    with pytest.raises(OmnigraphError) as refused:
        values(graph, "match { $i: Item } return { $i.code as c } limit $l", l=-1)
    assert refused.value.help


def test_distinct_rows_keep_one_null(graph: Graph) -> None:
    text = "match { $i: Item } return distinct { $i.kind as k } order { k }"
    assert values(graph, text) == [(None,), ("x",), ("y",)]


def test_union_removes_equal_rows_and_union_all_keeps_them(graph: Graph) -> None:
    one = "match { $i: Item } return { $i.kind as k }"
    assert len(values(graph, f"{one} union {one}")) == 3
    assert len(values(graph, f"{one} union all {one}")) == 10


def test_rows_without_a_traversal_match_make_no_group(graph: Graph) -> None:
    text = "match { $i: Item $i next $j } return { $i.@id as i, count($j) as n } order { $i }"
    assert values(graph, text.replace("order { $i }", "order { i }")) == [("a", 2), ("b", 1)]


def test_the_first_of_many_groups_are_the_same_as_of_all(tmp_path: Path) -> None:
    """A limit over many rows picks candidates first; equal keys must all stay candidates."""
    items = [
        {"id": f"i{i:05d}", "code": f"i{i:05d}", "size": i % 7, "kind": f"k{i % 1500}"}
        for i in range(6000)
    ]
    graph = make_graph(tmp_path, SCHEMA, {"Item": items})
    text = "match { $i: Item } return { $i.kind as k, max($i.size) as m } order { m desc }"
    assert values(graph, text + " limit 5") == values(graph, text)[:5]
    text = "match { $i: Item } return { $i.code as c } order { $i.kind desc, $i.size }"
    assert values(graph, text + " skip 2 limit 9") == values(graph, text)[2:11]
