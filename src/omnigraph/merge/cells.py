"""Equality of values, whole columns at a time: null equals null, and what is not a number equals itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


def one_array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    if isinstance(values, pa.Array):
        return values
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()


def equal_cells(one: pa.Array | pa.ChunkedArray, other: pa.Array | pa.ChunkedArray) -> Mask:
    """Where two columns hold the same."""
    a, b = one_array(one), one_array(other)
    if pa.types.is_nested(a.type):
        return _equal_nested(a, b)
    same = pc.fill_null(pc.equal(a, b), False)
    same = pc.or_(same, pc.and_(a.is_null(), b.is_null()))
    if pa.types.is_floating(a.type):
        both = pc.and_(pc.fill_null(pc.is_nan(a), False), pc.fill_null(pc.is_nan(b), False))
        same = pc.or_(same, both)
    found: Mask = same.to_numpy(zero_copy_only=False)
    return found


def _equal_nested(a: pa.Array, b: pa.Array) -> Mask:
    if pa.types.is_fixed_size_list(a.type) and not a.null_count and not b.null_count:
        width = a.type.list_size
        left, right = a.flatten(), b.flatten()
        if not left.null_count and not right.null_count:
            x, y = (v.to_numpy(zero_copy_only=False).reshape(-1, width) for v in (left, right))
            return np.asarray(((x == y) | (np.isnan(x) & np.isnan(y))).all(axis=1))
    pairs = zip(a.to_pylist(), b.to_pylist(), strict=True)
    return np.fromiter((same_value(x, y) for x, y in pairs), np.bool_, len(a))


def same_value(one: Any, other: Any) -> bool:
    """Whether two values of one property are the same."""
    if isinstance(one, list) and isinstance(other, list):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(same_value(a, b) for a, b in pairs)
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return bool(one == other)


def same_row(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> bool:
    """Whether two images of a row are the same; None: there is no row."""
    if one is None or other is None:
        return one is other
    return all(same_value(value, other[name]) for name, value in one.items())


def equal_rows(one: pa.Table, other: pa.Table, columns: Sequence[str]) -> Mask:
    """Where two tables of the same length hold the same in all of the columns."""
    same: Mask = np.ones(one.num_rows, np.bool_)
    for name in columns:
        if not same.any():
            break
        same &= equal_cells(one[name], other[name])
    return same


def positions(ids: pa.Array | pa.ChunkedArray, among: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Where each id is among others; null where it is not."""
    if not len(among):
        return pa.nulls(len(ids), pa.int32())
    return pc.index_in(one_array(ids), value_set=one_array(among))


def only(rows: pa.Table, ids: pa.Array | pa.ChunkedArray) -> pa.Table:
    """The rows with one of these ids."""
    return rows.filter(pc.is_in(rows["id"], value_set=one_array(ids)))


def without(rows: pa.Table, ids: pa.Array | pa.ChunkedArray) -> pa.Table:
    """The rows with none of these ids."""
    return rows.filter(pc.invert(pc.is_in(rows["id"], value_set=one_array(ids))))
