"""Rules about single rows: each is found, named, and placed."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import Violation
from omnigraph.lang.schema import catalog_of, compile_schema
from omnigraph.model.changes import Origin
from omnigraph.model.columns import arrow_schema
from omnigraph.validate import row_violations

SCHEMA = """
node Port {
  code: String @key
  depth: F64?
  berths: I32?
  narrow: F32?
  load: U64?
  region: enum(north, south)?
  shape: Vector(2)?
  label: String
  @range(depth, 0.0..60.0)
  @range(berths, 1..)
  @range(narrow, ..0.1)
  @range(load, 0..18446744073709551615)
  @check(code, "^[A-Z]{3}$")
}
edge Lane: Port -> Port { lane: enum(a, b)? }
"""
CATALOG = catalog_of(compile_schema(SCHEMA))
PORT = CATALOG.nodes["Port"]
LANE = CATALOG.edges["Lane"]
GOOD = {"id": "OSL", "code": "OSL", "label": "Oslo"}


def port(**fields: Any) -> list[Violation]:
    """What is wrong with a port of these fields."""
    rows = pa.Table.from_pylist([{**GOOD, **fields}], schema=arrow_schema(PORT))
    return row_violations(rows, PORT)


def rules(found: list[Violation]) -> list[tuple[str, str | None]]:
    return [(v.rule, v.property) for v in found]


def test_a_row_that_obeys_every_rule_is_valid() -> None:
    fields = {"depth": 60.0, "berths": 1, "narrow": 0.1, "load": 2**64 - 1, "region": "north"}
    assert port(**fields, shape=[0.0, -1.5]) == []


def test_a_required_value_may_not_be_null() -> None:
    assert rules(port(label=None)) == [("required", "label")]


def test_null_is_exempt_from_every_other_rule() -> None:
    assert port(depth=None, berths=None, region=None, shape=None) == []


@pytest.mark.parametrize("depth", [-0.5, 60.5, math.nan, math.inf, -math.inf])
def test_a_range_holds_at_both_ends_and_for_what_is_no_number(depth: float) -> None:
    assert rules(port(depth=depth)) == [("range", "depth")]


@pytest.mark.parametrize(("depth", "word"), [(-1.0, "minimum 0"), (61.0, "maximum 60")])
def test_a_range_violation_names_the_bound(depth: float, word: str) -> None:
    [found] = port(depth=depth)
    assert word in found.message
    assert str(depth) in found.message
    assert "Port.depth of 'OSL'" in found.message


def test_an_open_range_has_one_bound() -> None:
    assert rules(port(berths=0)) == [("range", "berths")]
    assert port(berths=2**31 - 1) == []


def test_a_bound_is_compared_at_the_width_of_the_property() -> None:
    assert port(narrow=0.1) == []
    assert rules(port(narrow=0.2)) == [("range", "narrow")]


def test_a_bound_between_integers_excludes_the_integers_beyond_it() -> None:
    catalog = catalog_of(compile_schema("node N { k: I32? @range(k, 1.5..3.5) }"))
    rows = pa.table({"id": ["1", "2", "3", "4"], "k": pa.array([1, 2, 3, 4], pa.int32())})
    assert [v.value for v in row_violations(rows, catalog.nodes["N"])] == [1, 4]


def test_bounds_no_value_can_reach_are_all_or_nothing() -> None:
    catalog = catalog_of(compile_schema("node N { k: I32? @range(k, 3000000000..) }"))
    rows = pa.table({"id": ["1", "2"], "k": pa.array([1, None], pa.int32())})
    assert [v.value for v in row_violations(rows, catalog.nodes["N"])] == [1]


@pytest.mark.parametrize(
    ("kind", "bounds", "values", "wrong"),
    [
        ("U64", "0..0", [0, 1], [1]),
        ("U64", "18446744073709551615..", [2**64 - 1, 5], [5]),
        ("I32", "2147483647..", [2**31 - 1, 5], [5]),
        ("I32", "..-2147483648", [-(2**31), 5], [5]),
    ],
)
def test_bounds_at_the_ends_of_a_type_allow_what_is_there(
    kind: str, bounds: str, values: list[int], wrong: list[int]
) -> None:
    node = catalog_of(compile_schema(f"node N {{ k: {kind}? @range(k, {bounds}) }}")).nodes["N"]
    rows = [{"id": str(number), "k": value} for number, value in enumerate(values)]
    table = pa.Table.from_pylist(rows, schema=arrow_schema(node))
    assert [v.value for v in row_violations(table, node)] == wrong


def test_a_pattern_is_searched_for_anywhere_in_the_text() -> None:
    [found] = port(code="oslo")
    assert (found.rule, found.property, found.value) == ("check", "code", "oslo")
    assert "^[A-Z]{3}$" in found.message


def test_an_enum_value_is_one_of_the_declared() -> None:
    [found] = port(region="west")
    assert (found.rule, found.value) == ("enum", "west")
    assert "north, south" in found.message


@pytest.mark.parametrize("shape", [[1.0, None], [math.nan, 0.0], [math.inf, 0.0]])
def test_a_vector_holds_finite_numbers(shape: list[float | None]) -> None:
    assert rules(port(shape=shape)) == [("type", "shape")]


def test_vectors_of_a_slice_are_judged_by_their_own_members() -> None:
    rows = [{**GOOD, "shape": shape} for shape in ([math.nan, 0.0], [1.0, 2.0], None)]
    table = pa.Table.from_pylist(rows, schema=arrow_schema(PORT))
    assert row_violations(table.slice(1), PORT) == []


def test_edges_obey_enums_and_have_both_ends() -> None:
    row = {"id": "e", "src": None, "dst": "OSL", "lane": "c"}
    table = pa.table({name: pa.array([value], pa.string()) for name, value in row.items()})
    assert rules(row_violations(table, LANE)) == [("required", "src"), ("enum", "lane")]


def test_every_broken_rule_of_a_row_is_reported() -> None:
    found = port(depth=61.0, berths=0, region="west", label=None)
    assert sorted(rules(found)) == [
        ("enum", "region"),
        ("range", "berths"),
        ("range", "depth"),
        ("required", "label"),
    ]


def test_a_violation_names_the_file_and_line_of_its_row() -> None:
    rows = [GOOD, {**GOOD, "id": "RTM", "label": None}]
    table = pa.Table.from_pylist(rows, schema=arrow_schema(PORT))
    origin = Origin("ports.jsonl", pa.array([7, 9]))
    [found] = row_violations(table, PORT, origin)
    assert (found.id, found.file, found.line) == ("RTM", "ports.jsonl", 9)


def test_the_number_of_violations_is_bounded_and_the_smallest_ids_come_first() -> None:
    ids = [f"n{i:04d}" for i in range(1_000)]
    rows = [{**GOOD, "id": name, "label": None} for name in reversed(ids)]
    found = row_violations(pa.Table.from_pylist(rows, schema=arrow_schema(PORT)), PORT, limit=10)
    assert [v.id for v in found] == ids[:10]


def test_rows_in_chunks_are_judged_alike() -> None:
    rows = pa.Table.from_pylist([GOOD], schema=arrow_schema(PORT))
    bad = pa.Table.from_pylist(
        [{**GOOD, "id": "x", "depth": 99.0, "shape": [math.nan, 1.0]}], schema=arrow_schema(PORT)
    )
    found = row_violations(pa.concat_tables([rows, bad]), PORT)
    assert [(v.rule, v.id) for v in found] == [("type", "x"), ("range", "x")]
