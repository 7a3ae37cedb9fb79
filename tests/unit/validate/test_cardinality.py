"""Edges per source: counted by edge, at both sources of one that moves, and when edges go."""

from __future__ import annotations

from typing import Any

import pytest

from omnigraph.errors import OmnigraphError
from omnigraph.write.resolve import Mode
from tests.support.writing import Bench, Rows, bench

SCHEMA = """
node Crew { badge: String @key }
node Ship { name: String @key }
edge Serves: Crew -> Ship @card(0..1) { since: I32? }
edge Wears: Crew -> Ship @card(1..2)
"""


@pytest.fixture
def graph() -> Bench:
    made = bench(SCHEMA)
    made.put(
        Crew=[{"badge": "K1"}, {"badge": "K2"}],
        Ship=[{"name": "A"}, {"name": "B"}],
        Serves=[{"id": "s1", "src": "K1", "dst": "A"}],
        Wears=[{"id": "w1", "src": "K1", "dst": "A"}, {"id": "w2", "src": "K1", "dst": "B"}],
    )
    return made


def violation(graph: Bench, mode: Mode = Mode.MERGE, /, **rows: Rows) -> dict[str, Any]:
    with pytest.raises(OmnigraphError) as caught:
        graph.put(mode, **rows)
    [found] = caught.value.details["violations"]
    return dict(found)


def test_a_source_may_not_exceed_the_maximum(graph: Bench) -> None:
    found = violation(graph, Serves=[{"src": "K1", "dst": "B"}])
    assert (found["rule"], found["type"], found["value"]) == ("cardinality", "Serves", "K1")
    assert (found["count"], found["maximum"]) == (2, 1)
    assert "K1" in found["message"]
    assert "Serves" in found["message"]


def test_edges_of_one_input_count_together(graph: Bench) -> None:
    two = [{"src": "K2", "dst": "A"}, {"src": "K2", "dst": "B"}]
    assert violation(graph, Serves=two)["count"] == 2


def test_an_edge_written_again_counts_once(graph: Bench) -> None:
    graph.put(Serves=[{"id": "s1", "src": "K1", "dst": "B", "since": 3}])
    assert graph.rows("Serves")[0]["dst"] == "B"


def test_an_edge_given_twice_counts_where_it_ends_up(graph: Bench) -> None:
    graph.put(Serves=[{"id": "s2", "src": "K1", "dst": "B"}, {"id": "s2", "src": "K2", "dst": "B"}])
    assert [(r["id"], r["src"]) for r in graph.rows("Serves")] == [("s1", "K1"), ("s2", "K2")]


def test_an_edge_that_moves_counts_at_its_new_source(graph: Bench) -> None:
    graph.put(Serves=[{"id": "s2", "src": "K2", "dst": "A"}])
    assert violation(graph, Serves=[{"id": "s1", "src": "K2", "dst": "A"}])["value"] == "K2"


def test_an_edge_that_moves_is_missed_at_its_old_source(graph: Bench) -> None:
    graph.put(Wears=[{"id": "w1", "src": "K2", "dst": "A"}])
    found = violation(graph, Wears=[{"id": "w2", "src": "K2", "dst": "B"}])
    assert (found["value"], found["count"], found["minimum"]) == ("K1", 0, 1)


def test_a_new_node_without_edges_is_not_judged(graph: Bench) -> None:
    graph.put(Crew=[{"badge": "K3"}])
    assert graph.ids("Crew") == ["K1", "K2", "K3"]


def test_deleting_an_edge_below_the_minimum_is_refused(graph: Bench) -> None:
    graph.mutate('query m() { delete Wears where to = "A" }')
    error = graph.refused('query m() { delete Wears where to = "B" }')
    [found] = error.details["violations"]
    assert (found["rule"], found["value"], found["count"]) == ("cardinality", "K1", 0)
    assert "at least 1" in found["message"]


def test_a_source_below_its_maximum_is_told_the_maximum_it_exceeds(graph: Bench) -> None:
    graph.put(Wears=[{"src": "K2", "dst": "A"}])
    found = violation(graph, Wears=[{"src": "K2", "dst": "B"}, {"src": "K2", "dst": "A"}])
    assert (found["count"], found["minimum"], found["maximum"]) == (3, 1, 2)
    assert "at most 2" in found["message"]


def test_sources_replaced_with_their_edges_are_judged_if_they_stay(graph: Bench) -> None:
    others = {"Serves": [{"src": "K2", "dst": "A"}], "Wears": [{"src": "K2", "dst": "A"}]}
    graph.put(Mode.OVERWRITE, Crew=[{"badge": "K2"}], **others)
    assert graph.ids("Crew") == ["K2"]
    new = {"Crew": [{"badge": "K2"}, {"badge": "K3"}], "Serves": [{"src": "K3", "dst": "A"}]}
    found = violation(graph, Mode.OVERWRITE, **new, Wears=[{"src": "K3", "dst": "A"}])
    assert (found["rule"], found["value"], found["count"]) == ("cardinality", "K2", 0)


def test_a_cascade_that_takes_a_source_below_the_minimum_is_refused(graph: Bench) -> None:
    graph.mutate('query m() { delete Ship where name = "B" }')
    error = graph.refused('query m() { delete Ship where name = "A" }')
    assert [v["value"] for v in error.details["violations"]] == ["K1"]


def test_a_source_that_goes_itself_needs_no_edges(graph: Bench) -> None:
    graph.mutate('query m() { delete Crew where badge = "K1" }')
    assert graph.rows("Wears") == []


def test_an_overwrite_counts_the_new_edges_alone(graph: Bench) -> None:
    graph.put(Mode.OVERWRITE, Serves=[{"src": "K1", "dst": "B"}, {"src": "K2", "dst": "B"}])
    assert len(graph.rows("Serves")) == 2


def test_an_overwrite_misses_the_edges_of_sources_that_stay(graph: Bench) -> None:
    found = violation(graph, Mode.OVERWRITE, Wears=[{"src": "K2", "dst": "A"}])
    assert (found["value"], found["count"]) == ("K1", 0)


def test_another_property_of_an_edge_may_change_at_a_full_source(graph: Bench) -> None:
    graph.mutate('query m() { update Serves set { since: 1 } where from = "K1" }')
    assert graph.rows("Serves")[0]["since"] == 1


def test_an_edge_without_source_is_refused_for_that(graph: Bench) -> None:
    text = 'query m($from: String?) { insert Serves { from: $from, to: "A" } }'
    [found] = graph.refused(text, **{"from": None}).details["violations"]
    assert (found["rule"], found["property"]) == ("required", "src")
