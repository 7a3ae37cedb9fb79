"""Comparing what an engine answers with what the plain interpreter answers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import OmnigraphError
from omnigraph.lang import ir
from omnigraph.lang.query import bind_params
from omnigraph.read import Cache, run_query
from tests.support.interpreter import Interpreter, PlainGraph

OVERFLOW = "error arithmetic_overflow"
NODE_TYPES = ("Person", "City", "Pet")
EDGE_TYPES = ("Knows", "Likes", "LivesIn", "Owns", "Near")


def plain_graph(data: Mapping[str, Sequence[Mapping[str, Any]]]) -> PlainGraph:
    def by_id(kind: str) -> dict[str, dict[str, Any]]:
        return {r["id"]: {k: v for k, v in r.items() if k != "id"} for r in data[kind]}

    return PlainGraph({t: by_id(t) for t in NODE_TYPES}, {t: by_id(t) for t in EDGE_TYPES})


def difference(query: ir.Query, graph: PlainGraph, snapshot: Snapshot, cache: Cache) -> str | None:
    """What is wrong with the engine's answer; None when it is right."""
    assert isinstance(query.body, ir.Read)
    wanted = _outcome(lambda: Interpreter(graph, bind_params(query, {})).run(query.body))
    got = _outcome(lambda: _values(run_query(query, {}, snapshot, cache=cache).rows))
    if OVERFLOW in (wanted, got):
        return (
            None  # which values are calculated, and so which of them overflow, is up to the engine
        )
    ordered = isinstance(wanted, str) or isinstance(got, str) or _is_ordered(query.body.plan)
    same = wanted == got if ordered else Counter(wanted) == Counter(got)
    return None if same else f"wanted {wanted}\n   got {got}"


def differently(one: ir.Query, other: ir.Query, snapshot: Snapshot, cache: Cache) -> str | None:
    """What differs between the engine's answers to two queries that mean the same; None when nothing does."""
    assert isinstance(one.body, ir.Read)
    first, second = (
        _outcome(lambda q=query: _values(run_query(q, {}, snapshot, cache=cache).rows))
        for query in (one, other)
    )
    if OVERFLOW in (first, second):
        return None
    ordered = isinstance(first, str) or isinstance(second, str) or _is_ordered(one.body.plan)
    same = first == second if ordered else Counter(first) == Counter(second)
    return None if same else f"one {first}\nother {second}"


def _values(rows: list[dict[str, Any]]) -> list[list[Any]]:
    return [list(row.values()) for row in rows]


def _outcome(run: Any) -> list[Any] | str:
    try:
        return [normal(row) for row in run()]
    except OmnigraphError as error:
        return f"error {error.code}"


def normal(value: Any) -> Any:
    """Numbers by value up to the order in which floats were added, everything hashable."""
    match value:
        case bool():
            return ("bool", value)
        case float() if math.isnan(value):
            return "NaN"
        case float() if math.isfinite(value):
            return float(f"{value:.9g}")
        case int() if abs(value) < 2**53:
            return float(f"{value:.9g}")
        case list() | tuple():
            return tuple(normal(v) for v in value)
        case dict():  # an entity: what its own type does not have is null
            return tuple((k, normal(v)) for k, v in sorted(value.items()) if v is not None)
        case _:
            return value


def _is_ordered(op: ir.Op) -> bool:
    match op:
        case ir.Sort():
            return True
        case ir.Project(source) | ir.Slice(source) | ir.Filter(source):
            return _is_ordered(source)
        case _:
            return False
