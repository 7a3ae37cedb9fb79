"""Membership in lists, whole columns at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model import ordering
from omnigraph.model.predicates import Op
from omnigraph.read import numbers
from omnigraph.read.arrays import Mask, Value, to_mask


def is_one_of(item: pa.Array, values: Iterable[Any] | None, two_valued: bool) -> pa.Array:
    """Whether the item equals one of some constants, null for a null item or list; `two_valued`: false instead."""
    if values is None:
        return pa.array(np.zeros(len(item), np.bool_), mask=np.full(len(item), not two_valued))
    found = ordering.is_in(item, ordering.members(values, item.type))
    return found.fill_null(False) if two_valued else found


def is_in(item: Value, members: Value, n: int) -> pa.Array:
    """Whether the item equals a member; null for a null item or list."""
    unknown = ~(_known(item, n) & _known(members, n))
    return pa.array(_holds_member(members, item, n), mask=unknown)


def has(members: Value, item: Value, n: int) -> pa.Array:
    """Whether the list has the item; false for a null list or item."""
    return pa.array(_holds_member(members, item, n) & _known(members, n) & _known(item, n))


def _known(value: Value, n: int) -> Mask:
    if isinstance(value, pa.Scalar):
        return np.full(n, value.is_valid)
    found: Mask = value.is_valid().to_numpy(zero_copy_only=False)
    return found


def _holds_member(members: Value, item: Value, n: int) -> Mask:
    flat = pc.list_flatten(members)
    parents = pc.list_parent_indices(members).to_numpy(zero_copy_only=False)
    wanted = item if isinstance(item, pa.Scalar) else item.take(pa.array(parents))
    equal = to_mask(numbers.compare(Op.EQ, flat, wanted))
    found = np.zeros(n, np.bool_)
    found[parents[equal]] = True
    return found
