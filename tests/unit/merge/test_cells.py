"""Equality of whole columns is equality of their values, one by one, whatever their type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.merge.rows import (
    equal_cells,
    equal_rows,
    only,
    positions,
    same_value,
    without,
)
from omnigraph.model.columns import one_array

NAN = float("nan")
VALUES: dict[pa.DataType, Sequence[Any]] = {
    pa.string(): (None, "", "a", "b"),
    pa.int64(): (None, 0, 1, -1),
    pa.float64(): (None, 0.0, 1.5, NAN),
    pa.bool_(): (None, True, False),
    pa.list_(pa.string()): (None, [], ["a"], ["a", "b"], ["b", "a"], ["a", None]),
    pa.list_(pa.float64()): (None, [], [NAN], [1.0], [1.0, NAN], [NAN, 1.0]),
    pa.list_(pa.float32(), 2): (None, [1.0, 2.0], [1.0, 3.0], [0.0, 2.0], [NAN, 2.0], [1.0, NAN]),
}
OF_VECTORS = pa.list_(pa.float32(), 2)


def is_same(one: Any, other: Any) -> bool:
    """Null is null, what is not a number is itself, and a list is what it holds in its order."""
    if one is None or other is None:
        return one is other
    if isinstance(one, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    return bool(one == other)


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_columns_are_compared_like_their_values(kind: pa.DataType) -> None:
    pairs = [(a, b) for a in VALUES[kind] for b in VALUES[kind]]
    expected = [is_same(a, b) for a, b in pairs]
    one, other = (pa.array([pair[i] for pair in pairs], kind) for i in (0, 1))
    assert equal_cells(one, other).tolist() == expected
    assert [same_value(a, b) for a, b in pairs] == expected


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_columns_without_nulls_are_compared_like_their_values(kind: pa.DataType) -> None:
    values = VALUES[kind][1:]
    pairs = [(a, b) for a in values for b in values]
    one, other = (pa.array([pair[i] for pair in pairs], kind) for i in (0, 1))
    assert equal_cells(one, other).tolist() == [is_same(a, b) for a, b in pairs]


@pytest.mark.parametrize("side", [0, 1])
def test_vectors_of_which_one_column_alone_has_nulls(side: int) -> None:
    for hole in (None, [1.0, None]):
        columns = [pa.array([[1.0, 2.0], [3.0, 4.0]], OF_VECTORS), None]
        columns[1] = pa.array([[1.0, 2.0], hole], OF_VECTORS)
        one, other = columns if side else columns[::-1]
        assert equal_cells(one, other).tolist() == [True, False], f"{hole}"


def test_a_list_is_no_single_value() -> None:
    assert not same_value([1], 1)
    assert not same_value(1, [1])
    assert not same_value([1.0], None)
    assert not same_value(1.0, NAN)
    assert not same_value(NAN, "text")


def test_columns_in_pieces_are_compared_as_one() -> None:
    whole = pa.array(["a", "b", "c"])
    pieces = pa.chunked_array([["a"], ["x", "c"]])
    assert equal_cells(whole, pieces).tolist() == [True, False, True]
    assert one_array(pieces).to_pylist() == ["a", "x", "c"]
    assert one_array(pa.chunked_array([["a"]])).to_pylist() == ["a"]
    assert one_array(pa.chunked_array([], pa.string())).to_pylist() == []
    assert one_array(whole) is whole


def test_rows_are_equal_where_all_their_columns_are() -> None:
    one = pa.table({"id": ["a", "b", "c", "d"], "x": [1, 2, 3, None], "y": [1, 1, 1, 1]})
    other = pa.table({"id": ["a", "b", "c", "d"], "x": [1, 9, 3, None], "y": [1, 1, 9, 9]})
    assert equal_rows(one, other, ["id", "x"]).tolist() == [True, False, True, True]
    assert equal_rows(one, other, ["id", "x", "y"]).tolist() == [True, False, False, False]
    assert equal_rows(one, other, ["y", "x", "id"]).tolist() == [True, False, False, False]
    assert equal_rows(one.slice(1, 1), other.slice(1, 1), ["x", "y"]).tolist() == [False]
    assert equal_rows(one, other, []).tolist() == [True] * 4


def test_places_among_others() -> None:
    ids = pa.chunked_array([["a"], ["b", "c"]])
    assert positions(ids, pa.chunked_array([["c"], ["a"]])).to_pylist() == [1, None, 0]
    assert positions(ids, pa.array([], pa.string())).to_pylist() == [None, None, None]


def test_rows_by_id() -> None:
    rows = pa.table({"id": ["a", "b", "c"], "x": [1, 2, 3]})
    ids = pa.array(["c", "a", "z"])
    assert only(rows, ids)["x"].to_pylist() == [1, 3]
    assert without(rows, ids)["x"].to_pylist() == [2]
