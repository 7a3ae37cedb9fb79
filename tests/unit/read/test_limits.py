"""Budgets: what a query may take, and errors that name the limit and what was observed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import omnigraph.graph
from omnigraph.errors import Kind, OmnigraphError
from omnigraph.lang.query import compile_query
from omnigraph.read import context
from tests.support.snapshots import Graph, ask, make_graph

SCHEMA = "node Item { code: String @key }\nedge Next: Item -> Item"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    items = [{"id": f"i{i}", "code": f"i{i}"} for i in range(40)]
    links = [{"id": f"n{i}", "src": f"i{i}", "dst": f"i{(i + 1) % 40}"} for i in range(40)]
    return make_graph(tmp_path, SCHEMA, {"Item": items, "Next": links})


def refused(graph: Graph, text: str, **options: object) -> OmnigraphError:
    with pytest.raises(OmnigraphError) as error:
        ask(graph, text, **options)  # type: ignore[arg-type]
    assert error.value.kind is Kind.LIMIT
    assert error.value.help
    return error.value


def test_more_rows_than_allowed_are_refused(graph: Graph) -> None:
    text = "match { $i: Item } return { $i as i }"
    assert refused(graph, text, max_rows=39).details == {
        "limit": "max_rows",
        "limit_value": 39,
        "observed": 40,
    }
    assert len(ask(graph, text, max_rows=40)) == 40


def test_a_query_stops_when_its_time_is_over(graph: Graph) -> None:
    error = refused(graph, "match { $i: Item } return { $i as i }", timeout=0.0)
    assert error.code == "deadline_exceeded"
    assert error.details["limit_seconds"] == 0.0


def test_a_query_stops_when_it_is_cancelled(graph: Graph) -> None:
    error = refused(graph, "match { $i: Item } return { $i as i }", cancelled=lambda: True)
    assert error.code == "cancelled"


def test_pairs_that_would_not_fit_are_refused_before_they_are_made(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context.Context.__init__, "__defaults__", _with_rows_held(1000))
    error = refused(graph, "match { $a: Item $b: Item } return { $a as a, $b as b }")
    assert error.details["limit"] == "rows_held_max"
    assert error.details["observed"] == 3200


def test_counting_the_same_pairs_needs_no_rows(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context.Context.__init__, "__defaults__", _with_rows_held(1000))
    assert ask(graph, "match { $a: Item $b: Item } return { count(*) as n }").scalar() == 1600


def test_a_count_that_does_not_fit_is_refused(graph: Graph) -> None:
    text = "match { %s } return { count(*) as n }"
    most = " ".join(f"$v{i}: Item" for i in range(11))
    assert ask(graph, text % most).scalar() == 40**11
    error = refused(graph, text % (most + " $w: Item"))
    assert error.details["observed"] == 40**12


def _with_rows_held(most: int) -> tuple[object, ...]:
    kept = context.Context.__init__.__defaults__ or ()
    return tuple(most if value == context.ROWS_HELD_MAX else value for value in kept)


def test_the_time_of_a_query_includes_that_of_compiling_it(monkeypatch: pytest.MonkeyPatch) -> None:
    served = omnigraph.init("memory://slow-compiler", schema=SCHEMA)
    real, late = time.monotonic, [0.0]

    def slow(*args: Any, **options: Any) -> Any:
        late[0] += 60.0
        return compile_query(*args, **options)

    monkeypatch.setattr(time, "monotonic", lambda: real() + late[0])
    monkeypatch.setattr(omnigraph.graph, "compile_query", slow)
    text = "match { $i: Item } return { $i as i }"
    with pytest.raises(OmnigraphError) as error:
        served.query(text, timeout=30)
    assert error.value.code == "deadline_exceeded"
    assert served.query(text, timeout=30).rows == []  # compiled now
