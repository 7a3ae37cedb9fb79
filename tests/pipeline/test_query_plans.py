"""Queries hand Spark plans without work that nobody needs: columns, joins and ways through Python."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.pipeline import query as on_spark
from omnigraph.pipeline import scans
from tests.pipeline.planes import kept_frames

SCHEMA = """
node P { name: String @key  age: I32?  note: String? }
edge K: P -> P { w: F64? }
edge Once: P -> P { @key(src, dst) }
"""
PEOPLE = 30


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    made = omnigraph.init(tmp_path_factory.mktemp("plans") / "graph", schema=SCHEMA)
    people = [{"name": f"p{n}", "age": n} for n in range(PEOPLE)]
    edges = [{"from": f"p{n}", "to": f"p{(n * 7) % PEOPLE}", "w": n / 3} for n in range(PEOPLE)]
    ends = [{"from": edge["from"], "to": edge["to"]} for edge in edges]
    made.load({"P": people, "K": edges, "Once": ends}, engine="local")
    return made


@pytest.fixture
def plan_of(graph: Graph, spark: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The physical plan of a query, which gives as many rows on Spark as in process."""
    seen: list[Any] = []
    kept = on_spark._result

    def noted(read: Any, bag: Any, ctx: Any) -> Any:
        seen.append(bag.frame)
        return kept(read, bag, ctx)

    monkeypatch.setattr(on_spark, "_result", noted)

    def plan(match: str, wanted: str) -> str:
        text = f"query q() {{ match {{ {match} }} return {{ {wanted} }} }}"
        rows = [sorted(map(repr, graph.query(text, engine=e).rows)) for e in ("local", "spark")]
        assert rows[0] == rows[1]
        return str(seen[-1]._jdf.queryExecution().sparkPlan().toString())

    return plan


def columns_read(plan: str) -> list[int]:
    """How many columns leave the tasks of each scan."""
    return [found.count("#") for found in re.findall(r"MapInArrow run\(.*?\)#\d+, \[(.*?)\]", plan)]


PLANS: Mapping[str, tuple[str, str, list[int], int]] = {
    # the pattern, what is returned, columns of each scan, joins
    "a column and a test": ("$p: P $p.age > 3", "$p.name as n", [2], 0),
    "a test among scanned rows": ('$p: P { note: "x" }', "$p.name as n", [2], 0),
    "no property of either end": ("$p: P $p k $q", "count(*) as n", [2], 0),
    "two hops": ("$p: P $p k $q $q k $r", "count(*) as n", [2, 2], 1),
    "a property of the far end": ("$p: P $p k $q", "max($q.age) as n", [2, 2], 1),
    "the edges between both ends": (
        "$p: P $p $e:k $q",
        "max($e.w) as w, max($p.age) as n",
        [2, 4],
        1,
    ),
    "a test between both ends": ("$p: P $p k $q $p.name = $q.name", "$p.name as n", [2, 2, 2], 2),
}


@pytest.mark.parametrize("name", PLANS)
def test_what_nobody_needs_is_not_done(name: str, plan_of: Any) -> None:
    match, wanted, columns, joins = PLANS[name]
    found = plan_of(match, wanted)
    assert sorted(columns_read(found)) == sorted(columns), found
    assert len(re.findall(r"\w*Join\b", found)) == joins, found
    assert found.count("MapInArrow") == len(columns), "rows went through Python once more"


def test_pairs_that_are_unique_are_not_compared(plan_of: Any) -> None:
    assert "Aggregate" in plan_of("$p: P $p k $q", "$p.id as p, $q.id as q")
    assert "Aggregate" not in plan_of("$p: P $p once $q", "$p.id as p, $q.id as q")


def test_edges_are_asked_for_by_the_nodes_they_start_from(
    graph: Graph, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    task = scans._scan_task

    def noted(type_name: str, edge: bool, shares: Any, pushed: Any, formula: Any) -> Any:
        asked.append((type_name, pushed))
        return task(type_name, edge, shares, pushed, formula)

    monkeypatch.setattr(scans, "_scan_task", noted)
    named = 'match { $p: P $p.name in ["p2", "p3"] $p k $q $q k $r } return { $r.name as name }'
    found = graph.query(f"query q() {{ {named} }}", engine="spark").rows
    assert sorted(row["name"] for row in found) == ["p27", "p8"]
    ends = [str(pushed) for name, pushed in asked if name == "K"]
    assert len(ends) == 2
    assert all(name in ends[0] for name in ("'p2'", "'p3'"))
    assert all(name in ends[1] for name in ("'p14'", "'p21'"))


def test_first_rows_are_counted_on_from_and_nothing_stays(graph: Graph, spark: Any) -> None:
    graph.apply_checks("query all() { match { $p: P $p k $q } return { $p.name as n } }")
    before = kept_frames(spark)
    found = graph.check(only=["all"], engine="spark", record=False).results[0]
    assert (found.measured, len(found.rows)) == (PEOPLE, 20)
    assert kept_frames(spark) <= before
