"""Checks find the same on Spark as in process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph

pytestmark = pytest.mark.xdist_group("spark")
CHECKS = """
query ageless() { match { $p: Person $p.age is null } return { $p.name as name } }
query lonely() @rows("..3") { match { $p: Person not { $p knows $q } } return { $p.name as name } }
query lost() @lost_rows("..1%") { match { $p: Person } return { $p.name as name } }
query mean() @value("-5%..5%") { match { $p: Person } return { avg($p.age) as age } }
"""


def test_checks_find_the_same_on_both_planes(tmp_path: Path, spark: Any) -> None:
    assert spark is not None
    schema = "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person"
    graph = omnigraph.init(tmp_path / "graph", schema=schema)
    people = [{"type": "Person", "data": {"name": f"p{n}", "age": n}} for n in range(20)]
    edges = [{"edge": "Knows", "from": f"p{n}", "to": f"p{n + 1}"} for n in range(15)]
    graph.load([*people, *edges], engine="local")
    graph.apply_checks(CHECKS)
    graph.load({"Person": [{"name": "unborn"}, {"name": "new", "age": 99}]}, engine="local")
    graph.mutate('query d() { delete Person where name = "p19" }')
    local, distributed = (
        graph.check(before="main~3", engine=engine, record=False) for engine in ("local", "spark")
    )
    assert [(r.name, r.outcome, r.measured) for r in distributed.results] == [
        (r.name, r.outcome, r.measured) for r in local.results
    ]
    assert {r.name for r in local.results if r.outcome == "failed"} == {
        "ageless",
        "lonely",
        "lost",
        "mean",
    }
    for one, other in zip(local.results, distributed.results, strict=True):
        assert sorted(map(str, one.rows)) == sorted(map(str, other.rows))
