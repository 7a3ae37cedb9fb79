"""Graphs of every released format can be opened, read, written and travelled through."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.records import FORMAT
from omnigraph.graph import Graph
from tests.golden.make import archive


@pytest.fixture(params=range(1, FORMAT + 1))
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> Graph:
    with tarfile.open(archive(request.param)) as packed:
        packed.extractall(tmp_path, filter="data")
    return omnigraph.open(tmp_path / "graph")


PORTS = "query ports() { match { $p: Port } return { $p.code as code, $p.depth as depth } order { code } }"
LANES = "query lanes() { match { $a: Port $a $l:lane $b } return { $a.code as a, $b.code as b } }"


def test_its_head_reads_as_it_was_written(graph: Graph) -> None:
    assert graph.query(PORTS).rows == [
        {"code": "OSL", "depth": 15.5},
        {"code": "RTM", "depth": 24.0},
        {"code": "VAL", "depth": 16.0},
    ]
    assert graph.query(LANES).rows == [{"a": "RTM", "b": "VAL"}]


def test_its_branches_tags_and_log_are_there(graph: Graph) -> None:
    assert graph.branches() == ["main", "review"]
    assert list(graph.tags()) == ["v1"]
    log = [(c.kind, c.message) for c in graph.log()]
    assert log[0] == ("schema", "tolls")
    assert [kind for kind, _ in log] == ["schema", "mutation", "mutation", "load", "init"]
    assert len(graph.query(PORTS, branch="review").rows) == 4


def test_its_tagged_state_is_readable(graph: Graph) -> None:
    assert len(graph.query(LANES, at="v1").rows) == 2
    assert graph.query(PORTS, at="v1").rows[-1] == {"code": "VAL", "depth": None}


def test_it_can_be_written_and_collected(graph: Graph) -> None:
    graph.mutate('query add() { insert Port { code: "SIN", region: "south" } }')
    graph.cleanup(keep=1)
    assert len(omnigraph.open(graph.uri).query(PORTS).rows) == 4


def test_a_request_repeated_across_versions_is_recognised(graph: Graph) -> None:
    again = graph.mutate("query cut() { delete Lane where nm = 560 }", idempotency_key="cut-once")
    assert again.replayed
    assert graph.query(LANES).rows == [{"a": "RTM", "b": "VAL"}]
