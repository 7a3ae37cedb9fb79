"""The rows of a commit, read by Lance alone: any tool can, once it knows where they lie and which version counts."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest

from omnigraph.errors import OmnigraphError
from omnigraph.graph import Graph, init

SCHEMA = "node Person { name: String @key age: I32? } edge Knows: Person -> Person"
PEOPLE = [{"name": "ann", "age": 1}, {"name": "bob", "age": 2}]


def names(graph: Graph, **point: str) -> list[str]:
    found = graph.snapshot(**point).dataset("Person")
    return sorted(lance.dataset(found.uri, version=found.version).to_table()["name"].to_pylist())


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = init(tmp_path / "graph", schema=SCHEMA)
    made.load({"Person": PEOPLE, "Knows": [{"from": "ann", "to": "bob"}]})
    return made


def test_lance_reads_the_rows_of_any_commit_and_branch(graph: Graph) -> None:
    graph.create_branch("dev")
    graph.load({"Person": [{"name": "dee"}]}, branch="dev")
    graph.mutate('query q() { update Person set { age: 9 } where name = "ann" }')
    graph.mutate('query q() { delete Person where name = "bob" }')
    graph.optimize()
    assert names(graph) == ["ann"]
    assert names(graph, at="main~2") == ["ann", "bob"]
    assert names(graph, branch="dev") == ["ann", "bob", "dee"]


def test_edges_have_their_ends(graph: Graph) -> None:
    found = graph.snapshot().dataset("Knows")
    rows = lance.dataset(found.uri, version=found.version).to_table().to_pylist()
    assert [(row["src"], row["dst"]) for row in rows] == [("ann", "bob")]


def test_without_the_version_lance_shows_the_table_as_it_was_made(graph: Graph) -> None:
    """Which is why the version is part of the answer."""
    assert lance.dataset(graph.snapshot().dataset("Person").uri).count_rows() == 0


def test_a_type_that_is_not_there(graph: Graph) -> None:
    with pytest.raises(OmnigraphError) as refused:
        graph.snapshot().dataset("Nobody")
    assert refused.value.code == "type_not_found"


def test_it_works_on_s3(s3_root: str) -> None:
    graph = init(s3_root, schema=SCHEMA)
    graph.load({"Person": PEOPLE})
    found = graph.snapshot().dataset("Person")
    options = dict(graph._repo.place.options)
    opened = lance.dataset(found.uri, version=found.version, storage_options=options)
    assert opened.count_rows() == 2
