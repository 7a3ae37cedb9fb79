"""Floats compare alike wherever a query compares them: 0.0 equals -0.0, and NaN satisfies no comparison but `!=`.

For groups, distinct rows, uniqueness and order NaN is itself and comes last.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.core.plan import PublishPlan, Remove
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import OmnigraphError
from omnigraph.read import columns, scan
from tests.support.random_queries import json_value

SCHEMA = """
node A { k: String @key  f: F64?  g: F32?  i: F64? @index  lf: [F64]?  u: F64? @unique  n: I64? }
"""
VALUES = {
    "neg": -0.0, "pos": 0.0, "nan": math.nan, "inf": math.inf, "ninf": -math.inf, "one": 1.0, "two": 2.0, "null": None,
}  # fmt: skip
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
TEXTS = {"nan": 'cast("NaN" as F64)', "inf": 'cast("inf" as F64)', "ninf": 'cast("-inf" as F64)'}


def wanted(op: str, other: float) -> list[str]:
    """The rows whose value compares so with another."""
    known = [(k, v) for k, v in VALUES.items() if v is not None]
    return sorted(k for k, v in known if OPERATORS[op](v, other))


def literal(name: str) -> str:
    return TEXTS.get(name, repr(VALUES[name]))


@pytest.fixture(scope="module")
def graph() -> Graph:
    return loaded("memory://floats")


def loaded(root: str) -> Graph:
    made = omnigraph.init(root, schema=SCHEMA)
    rows = [
        {"k": k, "n": 1} | ({} if v is None else {"f": v, "g": v, "i": v, "lf": [v]})
        for k, v in VALUES.items()
    ]
    made.load([{"type": "A", "data": {n: json_value(v) for n, v in row.items()}} for row in rows])
    return made


def found(graph: Graph, pattern: str) -> list[str]:
    rows = graph.query(f"match {{ $a: A {pattern} }} return {{ $a.k as k }}").rows
    return sorted(row["k"] for row in rows)


def deleted(graph: Graph, kind: str, condition: str) -> list[str]:
    """The ids a delete would take."""
    taken: list[str] = []

    def verb(txn: WriteTxn) -> PublishPlan:
        plan = graph.mutation(f"query d() {{ delete {kind} where {condition} }}")(txn)
        table = graph._repo.snapshot(graph._repo.head("main").commit).catalog.entity(kind).table_id  # type: ignore[union-attr]
        for action in plan.actions:
            if isinstance(action, Remove) and action.table_id == table:
                assert isinstance(action.before, pa.Table)
                taken.extend(action.before["id"].to_pylist())
        return replace(plan, empty=True)

    graph.publish(verb)
    return sorted(taken)


@pytest.mark.parametrize("where", ["columns", "storage"])
@pytest.mark.parametrize("column", ["f", "g", "i"])
@pytest.mark.parametrize("op", OPERATORS)
def test_comparisons_are_the_same_in_patterns_joins_statements_and_storage(
    graph: Graph, column: str, op: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if where == "storage":
        monkeypatch.setattr(scan, "LOAD_ROWS_MAX", 0)
        monkeypatch.setattr(columns, "LOAD_ROWS_MAX", 0)
        graph = loaded(f"memory://floats-in-storage-{column}{ord(op[0])}{len(op)}")
        told = graph.query(
            f"match {{ $a: A $a.{column} {op} 1.0 }} return {{ $a.@id as a }}", explain=True
        )
        assert "scanned in storage" in str(told.explain().to_json())
    for name, value in VALUES.items():
        if value is None:
            continue
        expected = wanted(op, value)
        constant = literal(name)
        assert found(graph, f"$a.{column} {op} {constant}") == expected, name
        assert found(graph, f"not (not ($a.{column} {op} {constant}))") == expected, name
        assert found(graph, f'$b: A {{ k: "{name}" }} $a.{column} {op} $b.f') == expected, name
        assert found(graph, f'$b: A {{ k: "{name}" }} $a.{column} {op} $b.g') == expected, name
        assert deleted(graph, "A", f"{column} {op} {constant}") == expected, name
        complement = sorted(set(VALUES) - set(expected) - {"null"})
        assert found(graph, f"not ($a.{column} {op} {constant})") == complement, name
        assert deleted(graph, "A", f"not ({column} {op} {constant})") == complement, name


@pytest.mark.parametrize("column", ["f", "g", "i"])
def test_membership_is_equality(graph: Graph, column: str) -> None:
    for name, value in VALUES.items():
        if value is None:
            continue
        expected = wanted("=", value)
        constant = literal(name)
        assert found(graph, f"$a.{column} in [{constant}]") == expected
        assert found(graph, f"$a.{column} in [{constant}, 77.5]") == expected
        assert found(graph, f"[{constant}] contains $a.{column}") == expected
        assert found(graph, f"$a.lf contains {constant}") == expected
        assert found(graph, f'$b: A {{ k: "{name}" }} $a.{column} in $b.lf') == expected
        assert deleted(graph, "A", f"{column} in [{constant}]") == expected
        missing = sorted(set(VALUES) - set(expected) - {"null"})
        assert found(graph, f"$a.{column} not in [{constant}]") == missing
        assert deleted(graph, "A", f"{column} not in [{constant}]") == missing
    assert found(graph, f"$a.{column} in [0]") == ["neg", "pos"]
    assert found(graph, f"$a.{column} = $a.{column}") == sorted(set(VALUES) - {"null", "nan"})
    assert found(graph, f"$a.{column} != $a.{column}") == ["nan"]


def test_an_equality_that_joins_is_one_that_filters(graph: Graph) -> None:
    text = "match { $a: A $b: A %s } return { count(*) as n }"
    for one, other in (("f", "f"), ("f", "g"), ("g", "g"), ("f", "n")):
        joined = graph.query(text % f"$a.{one} = $b.{other}").scalar()
        filtered = graph.query(text % f"($a.{one} = $b.{other} or false)").scalar()
        assert joined == filtered == 8, (one, other)


def test_groups_distinct_rows_and_order_follow(graph: Graph) -> None:
    def column(text: str) -> list[Any]:
        return [next(iter(row.values())) for row in graph.query(f"match {{ $a: A }} {text}").rows]

    order = ["null", "ninf", "neg", "pos", "one", "two", "inf", "nan"]
    assert column("return { $a.k as k } order { $a.f, $a.k }") == order
    assert column("return { $a.k as k } order { $a.f desc, $a.k desc }") == order[::-1]
    assert [str(v) for v in column("return { $a.f as f } order { f desc } limit 2")] == [
        "nan",
        "inf",
    ]
    distinct = column("return distinct { $a.f as f } order { f }")
    assert [abs(v) if v == 0 else v for v in distinct[:-1]] == [
        None,
        -math.inf,
        0.0,
        1.0,
        2.0,
        math.inf,
    ]
    assert math.isnan(distinct[-1])
    assert column("return { count(*) as n, $a.f as f } order { f }") == [1, 1, 2, 1, 1, 1, 1]
    assert column("return { count(distinct $a.f) as n }") == [6]
    assert column("return distinct { $a.lf as l }").count([0.0]) == 1
    assert math.isnan(column("return { max($a.f) as m }")[0])
    assert column("return { min($a.f) as m }") == [-math.inf]


def test_a_narrow_float_is_compared_by_its_value() -> None:
    graph = omnigraph.init("memory://narrow-floats", schema=SCHEMA)
    graph.load({"A": [{"k": "x", "f": 0.1, "g": 0.1}]})
    for condition, holds in (
        ("$a.g = 0.1", False),
        ("$a.g in [0.1]", False),
        ("$a.g = $a.f", False),
        ("$a.g > 0.1", True),
        ("$a.g = 0.10000000149011612", True),
        ("$a.g in [0.10000000149011612, 3]", True),
        ("$a.g = cast(0.1 as F32)", True),
    ):
        assert found(graph, condition) == (["x"] if holds else []), condition
        own = condition.replace("$a.", "")
        assert deleted(graph, "A", own) == (["x"] if holds else []), condition


def test_unique_values_are_unique_by_the_same_equality() -> None:
    graph = omnigraph.init("memory://unique-floats", schema=SCHEMA)
    graph.load(
        [{"type": "A", "data": {"k": "a", "u": "NaN"}}, {"type": "A", "data": {"k": "b", "u": 0.0}}]
    )
    for value in ("NaN", -0.0):
        with pytest.raises(OmnigraphError) as refused:
            graph.load([{"type": "A", "data": {"k": "c", "u": value}}])
        assert refused.value.code == "validation_failed"
