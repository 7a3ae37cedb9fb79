"""Measures of whole graphs, against plain definitions."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

import networkx as nx
import pytest

import omnigraph
from omnigraph import Graph, OmnigraphError
from omnigraph.analytics import Analytics

SCHEMA = """
node P { name: String @key  rank: F64? }
node Q { name: String @key }
edge Knows: P -> P
edge Likes: P -> P
edge At: P -> Q
"""
NODES = 40


@pytest.fixture(scope="module")
def edges() -> list[tuple[str, str]]:
    rng = random.Random(7)
    names = [f"n{i:02}" for i in range(NODES)]
    return [(rng.choice(names), rng.choice(names[: NODES // 2])) for _ in range(70)]


@pytest.fixture(scope="module")
def graph(edges: list[tuple[str, str]]) -> Graph:
    made = omnigraph.init("memory://analytics-tests", schema=SCHEMA)
    rows = [{"from": a, "to": b} for a, b in edges]
    nodes = [{"name": f"n{i:02}"} for i in range(NODES)]
    made.load({"P": nodes, "Knows": rows[:50], "Likes": rows[50:]}, mode="append")
    return made


@pytest.fixture(scope="module")
def measure(graph: Graph) -> Analytics:
    return graph.analytics()


BOTH = ["Knows", "Likes"]


def plain(edges: list[tuple[str, str]]) -> nx.MultiDiGraph:
    found = nx.MultiDiGraph()
    found.add_nodes_from(f"n{i:02}" for i in range(NODES))
    found.add_edges_from(edges)
    return found


def test_degrees_count_every_edge(measure: Analytics, edges: list[tuple[str, str]]) -> None:
    out, into = Counter(a for a, _ in edges), Counter(b for _, b in edges)
    assert measure.degrees("P", BOTH, "out").to_dict() == {n: out[n] for n in plain(edges)}
    both = measure.degrees("P", BOTH).to_dict()
    assert both == {n: out[n] + into[n] for n in plain(edges)}


def test_pagerank_shares_along_edges(measure: Analytics, edges: list[tuple[str, str]]) -> None:
    out = Counter(a for a, _ in edges)
    rank = dict.fromkeys(plain(edges), 1 / NODES)
    for _ in range(20):
        lost = sum(value for n, value in rank.items() if not out[n]) / NODES
        new = dict.fromkeys(rank, 0.15 / NODES + 0.85 * lost)
        for a, b in edges:
            new[b] += 0.85 * rank[a] / out[a]
        rank = new
    found = measure.pagerank("P", BOTH).to_dict()
    assert found == pytest.approx(rank, abs=1e-12)
    assert sum(found.values()) == pytest.approx(1.0)


def test_components_are_named_by_their_smallest_node(
    measure: Analytics, edges: list[tuple[str, str]]
) -> None:
    expected = {n: min(part) for part in nx.weakly_connected_components(plain(edges)) for n in part}
    assert measure.components("P", BOTH).to_dict() == expected


@pytest.mark.parametrize("hops", [0, 1, 3])
def test_reach_counts_other_nodes(
    hops: int, measure: Analytics, edges: list[tuple[str, str]]
) -> None:
    whole = plain(edges)
    expected = {
        n: len(nx.single_source_shortest_path_length(whole, n, cutoff=hops)) - 1 for n in whole
    }
    assert measure.reach("P", BOTH, hops).to_dict() == expected


def test_triangles_ignore_directions_and_repetitions(
    measure: Analytics, edges: list[tuple[str, str]]
) -> None:
    simple = nx.Graph((a, b) for a, b in edges if a != b)
    found = measure.triangles("P", BOTH).to_dict()
    assert {n: c for n, c in found.items() if c} == {
        n: c for n, c in nx.triangles(simple).items() if c
    }


def test_labels_take_the_most_frequent_neighbour(
    measure: Analytics, edges: list[tuple[str, str]]
) -> None:
    simple = nx.Graph((a, b) for a, b in edges if a != b)
    label = {n: n for n in plain(edges)}
    for _ in range(3):
        votes = {n: Counter(label[m] for m in simple[n]) for n in simple}
        best = {n: min(v, key=lambda w, v=v: (-v[w], w)) for n, v in votes.items()}  # type: ignore[misc]
        label = {n: best.get(n, old) for n, old in label.items()}
    assert measure.labels("P", BOTH, iterations=3).to_dict() == label


def test_distances_are_hops_from_the_nearest_source(
    measure: Analytics, edges: list[tuple[str, str]]
) -> None:
    whole = plain(edges)
    from_both = [nx.single_source_shortest_path_length(whole, s) for s in ("n00", "n30")]
    expected = {n: min((d[n] for d in from_both if n in d), default=None) for n in whole}
    assert measure.distances("P", BOTH, ["n00", "n30"]).to_dict() == expected


def test_values_are_written_back_in_one_commit(graph: Graph, measure: Analytics) -> None:
    ranks = measure.pagerank("P", BOTH)
    before = len(graph.log())
    ranks.write("rank")
    assert len(graph.log()) == before + 1
    rows = graph.query("query q() { match { $p: P } return { $p.name as n, $p.rank as r } }").rows
    assert {row["n"]: row["r"] for row in rows} == ranks.to_dict()


def test_edges_must_stay_within_the_type(measure: Analytics) -> None:
    with pytest.raises(OmnigraphError, match="At is not an edge type from P to P"):
        measure.degrees("P", ["At"])
    assert all(a < b for a, b in combinations(measure.components("P", []).to_dict(), 2))
