"""Many runs of one query: the same results as one by one, on one state, and together where that is possible."""

from __future__ import annotations

from typing import Any

import pytest

import omnigraph
from omnigraph.errors import LimitExceeded, OmnigraphError, OptionInvalid
from omnigraph.graph import Graph
from omnigraph.model.limits import Limits
from omnigraph.read import PROCESS, run_query

SCHEMA = """
node Person { name: String @key
  age: I32?
  city: String? }
edge Knows: Person -> Person
"""
TOGETHER = {
    "by key": "match { $p: Person $p.name = $n } return { $p.name as name, $p.age as age }",
    "by value": "match { $p: Person $p.city = $n } return { $p.name as name } order { $p.name asc }",
    "one hop": "match { $p: Person $p.name = $n $p knows $f } return { $f.name as name }",
    "two hops": "match { $p: Person $p.name = $n $p knows $f $f knows $g } return { $g.name as name }",
    "conditions": "match { $p: Person $p.name = $n $p.age > 3 $p knows $f $f.age > $p.age } "
    "return { $f.name as name }",
    "exists": "match { $p: Person $p.name = $n not { $p knows $x } } return { $p.name as name }",
    "distinct": "match { $p: Person $p.city = $n $p knows $f } return distinct { $f.city as city }",
    "in order": "match { $p: Person $p.city = $n $p knows $f } return { $f.name as name, $p.age as age } "
    "order { $f.age desc, $f.name asc }",
}
ALONE = {
    "a limit": "match { $p: Person $p.city = $n } return { $p.name as name } order { $p.name asc } limit 2",
    "a count": "match { $p: Person $p.city = $n } return { count($p) as people }",
    "two uses": "match { $p: Person $p.city = $n $p.name != $n } return { $p.name as name }",
    "no look-up": "match { $p: Person $p.name > $n } return { $p.name as name } order { $p.name asc }",
}
NAMES = ["p1", "p7", "nobody", "c2", "p1", "c0", ""]


@pytest.fixture(scope="module")
def graph() -> Graph:
    made = omnigraph.init("memory://many", SCHEMA)
    people = [{"name": f"p{n}", "age": n % 11, "city": f"c{n % 4}"} for n in range(40)]
    edges = [{"from": f"p{n}", "to": f"p{(n * k + 1) % 40}"} for n in range(40) for k in (3, 7)]
    made.load({"Person": people, "Knows": edges})
    return made


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every run of a query by `run_many`."""
    seen: list[Any] = []

    def counted(query: Any, *given: Any, **named: Any) -> Any:
        seen.append(query)
        return run_query(query, *given, **named)

    monkeypatch.setattr("omnigraph.read.many.run_query", counted)
    return seen


def _text(body: str) -> str:
    return f"query q($n: String) {{ {body} }}"


def _same(graph: Graph, text: str, sets: list[Any]) -> None:
    found = graph.query_many(text, sets)
    alone = [graph.query(text, given) for given in sets]
    assert [each.columns for each in found] == [each.columns for each in alone]
    key = repr if "order" not in text else None
    for ours, theirs in zip(found, alone, strict=True):
        left, right = (
            (ours.rows, theirs.rows)
            if key is None
            else (
                sorted(ours.rows, key=key),
                sorted(theirs.rows, key=key),
            )
        )
        assert left == right
        assert ours.commit == theirs.commit
        assert ours.to_arrow().schema == theirs.to_arrow().schema


@pytest.mark.parametrize("body", TOGETHER.values(), ids=TOGETHER)
def test_what_can_be_looked_up_together_is(graph: Graph, runs: list[Any], body: str) -> None:
    _same(graph, _text(body), [{"n": name} for name in NAMES])
    assert len(runs) == 1, "it was run more than once"


@pytest.mark.parametrize("body", ALONE.values(), ids=ALONE)
def test_what_cannot_is_run_one_by_one(graph: Graph, runs: list[Any], body: str) -> None:
    _same(graph, _text(body), [{"n": name} for name in NAMES])
    assert len(runs) == len(NAMES)


def test_other_parameters_may_be_there_if_they_do_not_differ(graph: Graph, runs: list[Any]) -> None:
    text = """query q($n: String, $age: I32?) {
      match { $p: Person $p.name = $n $p.age > $age } return { $p.name as name } }"""
    _same(graph, text, [{"n": name, "age": 2} for name in NAMES])
    assert len(runs) == 1
    _same(graph, text, [{"n": "p1", "age": age} for age in (0, 5)])
    assert len(runs) == 3


def test_numbers_and_nulls(graph: Graph, runs: list[Any]) -> None:
    text = "query q($age: I32?) { match { $p: Person $p.age = $age } return { $p.name as name } }"
    _same(graph, text, [{"age": 3}, {"age": None}, {}, {"age": 99}, {"age": 3}])
    assert len(runs) == 1


def test_one_set_and_none(graph: Graph) -> None:
    text = _text(TOGETHER["by key"])
    assert [each.rows for each in graph.query_many(text, [{"n": "p1"}])] == [
        [{"name": "p1", "age": 1}]
    ]
    assert graph.query_many(text, []) == []


def test_a_mistake_says_where_it_is(graph: Graph) -> None:
    with pytest.raises(OmnigraphError) as caught:
        graph.query_many(_text(TOGETHER["by key"]), [{"n": "p1"}, {"n": 5}])
    assert (caught.value.code, caught.value.details["params"]) == ("param_invalid", 1)
    with pytest.raises(OptionInvalid):
        graph.query_many(_text(TOGETHER["by key"]), {"n": "p1"})  # type: ignore[arg-type]


@pytest.mark.parametrize("body", [TOGETHER["by value"], ALONE["no look-up"]])
def test_rows_are_limited_in_all(graph: Graph, body: str) -> None:
    with pytest.raises(LimitExceeded):
        graph.query_many(_text(body), [{"n": "c1"}, {"n": "c2"}], max_rows=15)


@pytest.mark.parametrize("body", ["a count", "a limit"])
def test_memory_is_that_of_all_runs(graph: Graph, body: str) -> None:
    text = f"query q($n: String) {{ {ALONE[body]} }}"
    bounded = omnigraph.open("memory://many", limits=Limits(query_memory_bytes_max=20_000))
    assert len(bounded.query_many(text, [{"n": "c1"}] * 5)) == 5
    with pytest.raises(OmnigraphError) as error:
        bounded.query_many(text, [{"n": f"c{i % 4}"} for i in range(200)])
    assert error.value.code == "memory_exceeded"
    assert PROCESS.bytes_used == 0
