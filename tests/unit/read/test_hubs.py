"""Hubs: however many edges leave a node, they are followed in blocks of bounded size, and the clock is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import OmnigraphError
from omnigraph.read import adjacency, budget, expand
from omnigraph.read.arrays import Ints, runs

SCHEMA = """
node Person { name: String @key }
node Town { name: String @key }
edge Knows: Person -> Person
edge Likes: Person -> Person
edge LivesIn: Person -> Town
"""
BLOCK = 16
PEOPLE = 20
HUB = 'match { $a: Person { name: "p0" } '
QUERIES = (
    HUB + "$a knows|likes|livesIn $b } return { $b.name as b }",
    HUB + "$a $e:knows|likes $b } return { $e.id as e }",
    HUB + "$a <likes> $b } return { $a.name as a, $b.name as b }",
    "match { $a: Person $a likes $b $b <likes> $c } return { $a.name as a, $b.name as b, $c.name as c }",
    HUB + "$w = path $a <knows|likes>{1,3} $b } return { $b.name as b, edges($w) as w }",
    HUB + "$w = path $b <knows|likes>{1,3} $a } return { $b.name as b, edges($w) as w }",
    HUB + "$w = paths $a <likes>{1,2} $b } return { $b.name as b, edges($w) as w }",
    "match { $a: Person $w = path $a knows{1,3} $b } return { $a.name as a, nodes($w) as w }",
    "match { $a: Person $b: Person $w = path $a knows{1,3} $b } return { nodes($w) as w }",
    "MATCH (a:Person {name: 'p0'})-[:Knows|Likes*1..2]->(b) RETURN b.name AS b",
    "MATCH p = (a:Person {name: 'p0'})-[:Knows*0..3]-(b) RETURN nodes(p) AS p",
    "MATCH p = (a:Person {name: 'p1'})-[:Knows*1..2]-(:Person {name: 'p0'}) RETURN length(p) AS n",
    "MATCH (a:Person {name: 'p0'})-[r:Knows*1..2]->(b) RETURN r",
)


@pytest.fixture(scope="module")
def graph() -> Graph:
    """Everybody knows p0 and is known by it; it likes everybody three times, and has a town in common with nobody."""
    names = [f"p{i}" for i in range(PEOPLE)]
    knows = [("p0", p) for p in names] + [(p, "p0") for p in names[1:]] + [("p1", "p2")]
    likes = [("p0", p) for p in names for _ in range(3)]
    found = omnigraph.init("memory://hubs", schema=SCHEMA)
    rows: dict[str, list[dict[str, Any]]] = {
        "Person": [{"name": p} for p in names],
        "Town": [{"name": f"t{i}"} for i in range(PEOPLE)],
        "Knows": [{"id": f"k{i}", "from": a, "to": b} for i, (a, b) in enumerate(knows)],
        "Likes": [{"id": f"l{i}", "from": a, "to": b} for i, (a, b) in enumerate(likes)],
        "LivesIn": [{"id": f"h{i}", "from": "p0", "to": f"t{i}"} for i in range(PEOPLE)],
    }
    found.load(rows)
    return found


class Blocks:
    """What is read of edges between two looks at the clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.largest = self.unseen = self.most_unseen = 0
        looked = budget.Budget.check

        def check(self_: budget.Budget) -> None:
            self.unseen = 0
            looked(self_)

        def counted(
            starts: Ints, counts: Ints, sizes: Iterator[int]
        ) -> Iterator[tuple[Ints, Ints]]:
            for index, at in runs(starts, counts, sizes):
                self.largest = max(self.largest, len(at))
                self.unseen += len(at)
                self.most_unseen = max(self.most_unseen, self.unseen)
                yield index, at

        monkeypatch.setattr(budget.Budget, "check", check)
        monkeypatch.setattr(adjacency, "runs", counted)
        monkeypatch.setattr(budget, "BLOCK_ROWS_MIN", BLOCK)
        monkeypatch.setattr(budget, "BLOCK_ROWS_MAX", BLOCK)
        monkeypatch.setattr(expand, "WRITE_OUT_MAX", BLOCK)


@pytest.mark.parametrize("text", QUERIES)
def test_edges_are_followed_in_blocks(
    graph: Graph, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = sorted(map(str, graph.query(text).rows))
    with monkeypatch.context() as patched:
        blocks = Blocks(patched)
        assert sorted(map(str, graph.query(text).rows)) == whole
    assert 0 < blocks.largest <= BLOCK
    assert blocks.most_unseen <= 3 * BLOCK


def test_walks_that_wait_are_charged(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "BLOCK_ROWS_MIN", 4_096)
    monkeypatch.setattr(budget, "BLOCK_ROWS_MAX", 4_096)
    monkeypatch.setattr(budget.Budget, "fits", lambda self, size: self.bytes_used + size < 500_000)
    with pytest.raises(OmnigraphError) as error:
        graph.query("MATCH (a:Person)-[:Likes*]-(b) RETURN count(*) AS n", timeout=20)
    assert error.value.code == "memory_exceeded"
    assert error.value.details["operator"] == "Trail"


def test_best_edges_of_a_level_are_charged(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget.Budget, "fits", lambda self, size: self.bytes_used + size < 1_000)
    for word in ("path", "paths"):
        with pytest.raises(OmnigraphError) as error:
            graph.query(
                HUB + f"$w = {word} $a <likes>{{1,2}} $b }} return {{ nodes($w) as w }} limit 1"
            )
        assert error.value.code == "memory_exceeded"
        assert error.value.details["operator"] == "ShortestPath"


def test_lengths_of_paths_take_less_than_paths(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget.Budget, "fits", lambda self, size: self.bytes_used + size < 6_500)
    text = HUB + "$w = path $a knows{1,2} $b } return { "
    assert len(graph.query(text + "length($w) as n }").rows) == PEOPLE
    with pytest.raises(OmnigraphError) as error:
        graph.query(text + "nodes($w) as w }")
    assert error.value.code == "memory_exceeded"
