"""Membership in lists, whole columns at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.predicates import Op
from omnigraph.read import numbers
from omnigraph.read.arrays import Mask, Value, to_mask


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
    if isinstance(members, pa.Scalar):
        return _in_constant(item, members, n)
    flat = pc.list_flatten(members)
    parents = pc.list_parent_indices(members).to_numpy(zero_copy_only=False)
    wanted = item if isinstance(item, pa.Scalar) else item.take(pa.array(parents))
    equal = to_mask(numbers.compare(Op.EQ, flat, wanted))
    found = np.zeros(n, np.bool_)
    found[parents[equal]] = True
    return found


def _in_constant(item: Value, members: pa.Scalar, n: int) -> Mask:
    wanted = (
        members.values.drop_null() if members.is_valid else pa.array([], members.type.value_type)
    )
    found = np.zeros(n, np.bool_)
    if isinstance(item, pa.Scalar):
        return found
    if item.type == wanted.type:
        return to_mask(pc.is_in(item, value_set=wanted))
    for member in wanted:
        found |= to_mask(numbers.compare(Op.EQ, item, member))
    return found
