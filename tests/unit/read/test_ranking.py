"""Rankings inside patterns: what is filtered before the cut, what after, and scores as columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.snapshots import Graph, ask, make_graph

SCHEMA = """
interface Text { title: String  body: String?  place: Vector(2)? }
node Doc implements Text { title: String @key  body: String?  place: Vector(2)?  year: I64? }
node Note implements Text { title: String @key  body: String?  place: Vector(2)? }
node Author { name: String @key }
edge Wrote: Author -> Doc
"""
DOCS: list[dict[str, Any]] = [
    {"title": "a", "body": "red fox jumps", "place": [0.0, 0.0], "year": 1},
    {"title": "b", "body": "red red red", "place": [1.0, 0.0], "year": 2},
    {"title": "c", "body": "blue whale", "place": [2.0, 0.0], "year": 1},
    {"title": "d", "body": None, "place": [0.0, 3.0], "year": 2},
    {"title": "e", "body": "fox and whale", "place": None, "year": 2},
]


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    docs = [{"id": d["title"], **d} for d in DOCS]
    notes = [{"id": "a", "title": "a", "body": "red", "place": [0.5, 0.0]}]
    authors = [{"id": n, "name": n} for n in "xy"]
    pairs = ["xa", "xb", "xc", "xe", "yc", "yd", "ye"]
    wrote = [{"id": f"w{i}", "src": p[0], "dst": p[1]} for i, p in enumerate(pairs)]
    data = {"Doc": docs, "Note": notes, "Author": authors, "Wrote": wrote}
    return make_graph(tmp_path, SCHEMA, data)


def column(graph: Graph, text: str, **params: Any) -> list[Any]:
    return [next(iter(row.values())) for row in ask(graph, text, params).rows]


HERE = [0.0, 0.0]


def test_nearest_is_exact_and_leaves_out_nulls(graph: Graph) -> None:
    text = "match { $d: Doc } return { $d.@id as d } order { nearest($d.place, $v) } limit 9"
    assert column(graph, text, v=HERE) == ["a", "b", "c", "d"]


def test_a_condition_on_the_ranked_variable_selects_before_the_cut(graph: Graph) -> None:
    text = "match { $d: Doc $d.year = 2 } return { $d.@id as d } order { nearest($d.place, $v) } limit 1"
    assert column(graph, text, v=HERE) == ["b"]


def test_a_ranking_works_on_what_a_traversal_introduced(graph: Graph) -> None:
    text = (
        'match { $x: Author { name: "y" } $x wrote $d } return { $d.@id as d }'
        " order { nearest($d.place, $v) } limit 1"
    )
    assert column(graph, text, v=HERE) == ["c"]


def test_bm25_keeps_matching_rows_in_descending_order(graph: Graph) -> None:
    text = 'match { $d: Doc } return { $d.@id as d } order { bm25($d.body, "red") }'
    assert column(graph, text) == ["b", "a"]


def test_scores_are_columns_and_do_not_drop_rows_unless_ordered_by(graph: Graph) -> None:
    kept = 'match { $d: Doc } return { $d.@id as d, bm25($d.body, "red") as s } order { $d.title }'
    assert [row["s"] is None for row in ask(graph, kept).rows] == [False, False, True, True, True]
    ranked = 'match { $d: Doc } return { $d.@id as d, bm25($d.body, "red") as s } order { s desc }'
    assert column(graph, ranked) == ["b", "a"]


def test_fused_rankings_add_reciprocal_places(graph: Graph) -> None:
    text = (
        'match { $d: Doc } return { $d.@id as d, rrf(nearest($d.place, $v), bm25($d.body, "red")) as s }'
        " order { s desc } limit 3"
    )
    rows = ask(graph, text, {"v": HERE}).rows
    assert [row["d"] for row in rows] == ["a", "b", "c"]
    assert rows[0]["s"] == pytest.approx(1 / 61 + 1 / 62)
    assert rows[1]["s"] == pytest.approx(1 / 62 + 1 / 61)
    assert rows[2]["s"] == pytest.approx(1 / 63)


def test_ties_of_fused_rankings_keep_the_order_of_the_first(graph: Graph) -> None:
    """Each of a and b is first in one ranking and second in the other."""
    nearest, bm25 = "nearest($d.place, $v)", 'bm25($d.body, "red")'
    text = "match { $d: Doc } return { $d.@id as d } order { rrf(%s, %s)%s } limit %d"
    assert column(graph, text % (nearest, bm25, "", 2), v=HERE) == ["a", "b"]
    assert column(graph, text % (bm25, nearest, "", 2), v=HERE) == ["b", "a"]
    assert column(graph, text % (bm25, nearest, ", $d.title", 2), v=HERE) == ["a", "b"]


def test_a_text_search_is_a_condition_and_can_be_negated(graph: Graph) -> None:
    text = "match { $d: Doc %s } return { $d.@id as d } order { $d.title }"
    assert column(graph, text % 'search($d.body, "foxes")') == ["a", "e"]
    assert column(graph, text % 'not search($d.body, "fox")') == ["b", "c"]
    assert column(graph, text % 'search($d.body, "fox") search($d.body, "whale")') == ["e"]


def test_a_search_in_a_traversal_and_over_several_types(graph: Graph) -> None:
    text = 'match { $x: Author { name: "x" } $x wrote $d search($d.body, "fox") } return { $d.@id as d }'
    assert sorted(column(graph, text)) == ["a", "e"]
    text = 'match { $t: Text search($t.body, "red") } return { entity($t) as e }'
    assert sorted(e["type"] for e in column(graph, text)) == ["Doc", "Doc", "Note"]


def test_nearest_over_several_types_ranks_them_together(graph: Graph) -> None:
    text = "match { $t: Text } return { entity($t) as e } order { nearest($t.place, $v) } limit 2"
    found = column(graph, text, v=HERE)
    assert [(e["type"], e["id"]) for e in found] == [("Doc", "a"), ("Note", "a")]


def test_deleted_rows_are_neither_found_nor_counted(graph: Graph) -> None:
    graph.delete("Doc", ["a"])
    text = "match { $d: Doc } return { $d.@id as d } order { nearest($d.place, $v) } limit 1"
    assert column(graph, text, v=HERE) == ["b"]
    assert column(
        graph, 'match { $d: Doc } return { $d.@id as d } order { bm25($d.body, "red") }'
    ) == ["b"]
