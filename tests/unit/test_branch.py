"""Verbs bound to a branch, and blocks that publish once."""

from __future__ import annotations

import pytest

import omnigraph
from omnigraph.errors import OptionInvalid
from omnigraph.graph import Graph
from omnigraph.validate import ValidationFailed

SCHEMA = "node Person { name: String @key  photo: Blob? }\nedge Knows: Person -> Person"
NAMES = "query q() { match { $p: Person } return { $p.name as n } order { n } }"


@pytest.fixture
def graph(memory_root: str) -> Graph:
    graph = omnigraph.init(memory_root, schema=SCHEMA)
    graph.create_branch("draft")
    return graph


def names(graph: Graph, branch: str) -> list[str]:
    return [row["n"] for row in graph.query(NAMES, branch=branch).rows]


def test_a_block_is_one_commit_and_its_writes_see_each_other(graph: Graph) -> None:
    before = len(graph.log("draft"))
    with graph.branch("draft").write("people and an edge", actor="ann") as block:
        block.load({"Person": [{"name": "Ada"}, {"name": "Grace"}]})
        block.mutate('query m() { insert Knows { from: "Ada", to: "Grace" } }')
    assert len(graph.log("draft")) == before + 1
    assert block.commit is not None
    assert (block.commit.message, block.commit.actor) == ("people and an edge", "ann")
    assert set(block.commit.changes) == {"Person", "Knows"}
    assert names(graph, "draft") == ["Ada", "Grace"]
    assert names(graph, "main") == []


def test_a_block_that_raises_publishes_nothing(graph: Graph) -> None:
    before = graph.log("draft")
    with pytest.raises(ZeroDivisionError):
        interrupted(graph)
    assert graph.log("draft") == before


def interrupted(graph: Graph) -> None:
    with graph.branch("draft").write() as block:
        block.mutate('query m() { insert Person { name: "Ada" } }')
        raise ZeroDivisionError


def test_a_block_with_one_bad_write_publishes_nothing(graph: Graph) -> None:
    before = graph.log("draft")
    with pytest.raises(ValidationFailed):
        half_bad(graph)
    assert graph.log("draft") == before


def half_bad(graph: Graph) -> None:
    with graph.branch("draft").write() as block:
        block.mutate('query m() { insert Person { name: "Ada" } }')
        block.mutate('query m() { insert Knows { from: "Ada", to: "Nobody" } }')


def test_an_empty_block_makes_no_commit(graph: Graph) -> None:
    with graph.branch("draft").write() as block:
        block.mutate('query m() { delete Person where name = "Nobody" }')
    assert block.commit is None


def test_an_overwrite_is_no_part_of_a_block(graph: Graph) -> None:
    with pytest.raises(OptionInvalid), graph.branch("draft").write() as block:
        block.load({"Person": []}, mode="overwrite")


def test_the_verbs_of_a_branch_are_those_of_the_graph(graph: Graph) -> None:
    draft = graph.branch("draft")
    draft.mutate('query m() { insert Person { name: "Ada" } }')
    assert draft.log(limit=1)[0].branch == "draft"
    assert draft.schema() == SCHEMA
    assert graph.branch("main").merge("draft").outcome == "fast_forward"
    assert "query" in dir(draft)
    with pytest.raises(AttributeError):
        draft.delete_branch("main")  # type: ignore[attr-defined]


def test_a_blob_is_read_in_ranges(graph: Graph) -> None:
    graph.load([{"type": "Person", "data": {"name": "Ada", "photo": "base64:AAECAwQ="}}])
    blob = graph.blob("Person", "Ada", "photo")
    assert blob.read(1, 3) == b"\x01\x02"
