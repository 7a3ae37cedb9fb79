"""Checks find the same on Spark as in process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import omnigraph
from omnigraph.errors import OmnigraphError
from omnigraph.pipeline import engine
from omnigraph.read.checking import ROWS_SHOWN_MAX

CHECKS = """
query ageless() { match { $p: Person $p.age is null } return { $p.name as name } }
query lonely() @rows("..3") { match { $p: Person not { $p knows $q } } return { $p.name as name } }
query lost() @lost_rows("..1%") { match { $p: Person } return { $p.name as name } }
query named() { match { $p: Person } return { $p.name as name } }
query edges() @lost_rows("0") { match { $p: Person $p knows $q } return { $p.name as one, $q.name as other } }
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
        "named",
    }
    by_name = {result.name: result for result in distributed.results}
    named = by_name.pop("named")
    assert (named.measured, len(named.rows)) == (21, ROWS_SHOWN_MAX), "counted there, shown in part"
    for one in local.results:
        if one.name in by_name:
            assert sorted(map(str, one.rows)) == sorted(map(str, by_name[one.name].rows))
    _moves_to_spark(graph)


def _moves_to_spark(graph: omnigraph.Graph) -> None:
    """What does not fit into the memory of this process, or is much where a cluster is named, runs on Spark."""
    roomy = graph.repository.limits
    tight = replace(roomy, query_memory_bytes_max=1)
    with patch.object(graph.repository, "limits", tight):
        with pytest.raises(OmnigraphError) as refused:
            graph.check(only=["lonely"], engine="local", record=False)
        assert refused.value.code == "memory_exceeded"
        moved = graph.check(only=["lonely"], record=False).results[0]
        assert moved.measured == 6
    with (
        patch.object(graph.repository, "limits", replace(roomy, interactive_rows_max=10)),
        patch.object(engine, "is_configured", lambda: True),
        patch.object(engine, "counted_on_spark", wraps=engine.counted_on_spark) as asked,
    ):
        assert graph.check(only=["lonely"], record=False).results[0].measured == 6
    assert asked.call_count == 1
