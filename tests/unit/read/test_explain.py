"""Explaining a run: the operators, their rows, and how they went about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import OmnigraphError
from omnigraph.read import edges as edges_module
from omnigraph.read.cache import Cache
from tests.support.snapshots import Graph, ask, make_graph

SCHEMA = "node Item { code: String @key  size: I64? }\nedge Next: Item -> Item"
TEXT = 'match { $a: Item { code: "i1" } $a next $b $b.size >= 0 } return { $b.code as b }'


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    items = [{"id": f"i{i}", "code": f"i{i}", "size": i} for i in range(40)]
    links = [{"id": f"n{i}", "src": f"i{i}", "dst": f"i{(i + 1) % 40}"} for i in range(40)]
    return make_graph(tmp_path, SCHEMA, {"Item": items, "Next": links})


def operators(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(o for part in plan["inputs"] for o in operators(part))]


def test_every_operator_says_what_it_did(graph: Graph) -> None:
    plan = ask(graph, TEXT, explain=True).explain().to_json()
    assert json.loads(json.dumps(plan)) == plan
    project, expand, scan = operators(plan)
    assert [o["operator"] for o in (project, expand, scan)] == ["Project", "Expand", "NodeScan"]
    assert (scan["rows"], scan["access"]) == (1, "by id")
    assert (expand["rows"], expand["topology"]) == (1, "built")
    assert expand["requests"] > 0
    assert expand["bytes_read"] > 0


def test_the_text_reads_from_the_result_down(graph: Graph) -> None:
    lines = str(ask(graph, TEXT, explain=True).explain()).splitlines()
    assert lines[1].startswith("  Expand $a -Next-> $b: Item where $b.size >= 0")
    assert lines[2].startswith('    NodeScan $a: Item where $a.code = "i1"')
    assert "access: by id" in lines[2]


def test_counted_patterns_show_how_many_rows_they_stand_for(graph: Graph) -> None:
    text = "match { $a: Item $b: Item } return { count(*) as n }"
    plan = ask(graph, text, explain=True).explain().to_json()
    join = next(o for o in operators(plan) if o["operator"] == "Join")
    assert join["stands_for"] == 1600
    assert join["rows"] == 40


def test_a_look_up_is_shown_instead_of_a_topology(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edges_module, "LOOKUP_EDGES_MIN", 1)
    graph.index("Next", "src", "dst")
    plan = ask(graph, TEXT, explain=True).explain().to_json()
    expand = next(o for o in operators(plan) if o["operator"] == "Expand")
    assert expand["edges"] == "looked up by src"
    assert "topology" not in expand


def test_few_nodes_of_a_large_table_are_looked_up_a_few_times_without_an_index(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edges_module, "LOOKUP_EDGES_MIN", 1)
    cache = Cache()

    def how() -> tuple[object, object]:
        plan = ask(graph, TEXT, explain=True, cache=cache).explain().to_json()
        expand = next(o for o in operators(plan) if o["operator"] == "Expand")
        return expand.get("edges"), expand.get("topology")

    assert how() == (None, "built")
    cache.clear()
    monkeypatch.setattr(edges_module, "IN_MEMORY_EDGES_MAX", 0)
    for _ in range(edges_module.SCANS_MAX):
        assert how() == ("looked up by src", None)
    assert how() == (None, "built")


def test_a_run_that_was_not_recorded_cannot_be_explained(graph: Graph) -> None:
    with pytest.raises(OmnigraphError) as refused:
        ask(graph, TEXT).explain()
    assert refused.value.code == "not_explained"
