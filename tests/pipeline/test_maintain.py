"""Maintenance on Spark: the same rows in fewer fragments, indices over them, one commit, nothing lost to others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.core.leases import stored_plans
from omnigraph.pipeline.failures import SparkFailed
from omnigraph.pipeline.maintain import BulkUpkeep
from omnigraph.pipeline.pinned import NotShared
from omnigraph.storage.tables import Table
from omnigraph.write.load import load

SCHEMA = "node Item { code: String @key  size: I64 @index }"
FILES = 6
ROWS = 2_000


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """A table in fragments too large to be absorbed by the next write."""
    made = omnigraph.init(tmp_path / "graph", schema=SCHEMA)
    for part in range(FILES):
        rows = [{"code": f"i{part}-{i:05}", "size": i} for i in range(ROWS)]
        made.load({"Item": rows}, mode="append", engine="local")
    made.mutate("query q() { delete Item where size < 10 }")
    return made


def items(graph: Graph) -> Table:
    snapshot = graph.snapshot()
    return snapshot.table_of(snapshot.catalog.nodes["Item"])


def codes(graph: Graph) -> list[str]:
    return sorted(items(graph).scan(["code"])["code"].to_pylist())


def test_spark_rewrites_and_indexes_in_one_commit(graph: Graph, spark: Any) -> None:
    before, fragments = codes(graph), len(items(graph).fragments())
    commits = len(graph.log(maintenance=True))
    (report,) = graph.optimize(engine="spark")
    assert fragments > 1
    assert (report.fragments_before, report.fragments_after) == (fragments, 1)
    assert {"id", "size"} <= set(report.indexed)
    assert codes(graph) == before
    assert len(graph.log(maintenance=True)) == commits + 1
    covered = {i.column: i.covered_fragments for i in items(graph).indices()}
    assert covered["id"] == covered["size"] == {f.fragment_id for f in items(graph).fragments()}
    assert not list(stored_plans(graph._repo)), "the lease is over"
    found = graph.query('query q() { match { $i: Item { code: "i3-00777" } } return { $i.size } }')
    assert found.scalar() == 777
    (again,) = graph.optimize(engine="spark")
    assert again.indexed == ()
    assert len(graph.log(maintenance=True)) == commits + 1, "there was nothing more to do"


def test_an_index_over_many_fragments_is_built_in_several_segments(
    graph: Graph, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnigraph.write.maintain._is_scattered", lambda fragments: False)
    (report,) = graph.optimize(engine="spark")
    assert report.fragments_after == report.fragments_before > 1
    live = {f.fragment_id for f in items(graph).fragments()}
    assert frozenset().union(*(i.covered_fragments for i in items(graph).indices())) == live
    for size in (10, 1_500):
        text = f"query q() {{ match {{ $i: Item {{ size: {size} }} }} return {{ count(*) as n }} }}"
        assert graph.query(text).scalar() == FILES


def test_what_others_wrote_meanwhile_is_not_lost(
    graph: Graph, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table_id = graph.snapshot().catalog.nodes["Item"].table_id
    work = BulkUpkeep(graph._repo, spark, table_id, "main")
    work.prepare(graph.snapshot())
    before = codes(graph)
    graph.publish(load({"Item": [{"code": "late", "size": 1}]}, "append"), alone=True)
    monkeypatch.delattr(BulkUpkeep, "prepare")  # it must not be done again
    graph.publish(work.verb, alone=True)
    work.finish()
    assert codes(graph) == sorted([*before, "late"])
    assert len(items(graph).fragments()) == 2, "what was rewritten, and what came meanwhile"


def test_work_done_while_publishing_fails_with_an_error_of_ours(
    graph: Graph, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Any) -> Any:
        raise KeyError("on purpose")

    monkeypatch.setattr("omnigraph.pipeline.maintain._task", lambda *_: broken)
    work = BulkUpkeep(graph._repo, spark, graph.snapshot().catalog.nodes["Item"].table_id, "main")
    with pytest.raises(SparkFailed, match="on purpose"):
        graph.publish(work.verb, alone=True)
    work.finish()


def test_a_graph_in_memory_cannot_be_maintained_by_tasks(memory_root: str) -> None:
    graph = omnigraph.init(memory_root, schema=SCHEMA)
    with pytest.raises(NotShared):
        graph.optimize(engine="spark")
