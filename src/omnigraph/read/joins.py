"""Joins: the right side is held, with its keys as numbers; the left side is read block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.expressions.comparing import can_equal, canonical, exactly
from omnigraph.lang import ir
from omnigraph.model.frozen import frozen
from omnigraph.read.arrays import AnyArray, Ints, runs
from omnigraph.read.blocks import all_pairs, beside
from omnigraph.read.budget import Held, checked
from omnigraph.read.context import Context
from omnigraph.read.expressions import column
from omnigraph.read.keyed import keyed_join
from omnigraph.read.plan import PlanStep
from omnigraph.read.rows import Rows, collect

KEY_BYTES = 32  # that numbering a key takes for a row


def join(
    step: PlanStep, left: Iterator[Rows], right: Callable[[PlanStep], Iterator[Rows]], ctx: Context
) -> Iterator[Rows]:
    """All pairs of rows that agree on every pair of keys.

    Of nodes that are named by their keys only those are held that some rows of the left name.
    """
    op = step.op
    assert isinstance(op, ir.Join)  # noqa: S101
    keyed = keyed_join(op, ctx)
    with ctx.hold("Join") as held:
        whole: _Right | None = None
        for rows in left:
            named = None if keyed is None else keyed.named(step.inputs[1], rows, ctx)
            if named is not None and whole is None:
                held.set(0)
                kept = _Right(op, collect(right(named), held), held, ctx)
            else:
                if whole is None:
                    whole = _Right(op, collect(right(step.inputs[1]), held), held, ctx)
                kept = whole
            for pairs in checked(kept.pairs(rows, ctx.sizes(step.early))):
                yield pairs.keep(step.live)


class _Right:
    """The rows of the right side, and their keys once a block of the left side has shown the types to compare in."""

    def __init__(self, op: ir.Join, rows: Rows, held: Held, ctx: Context) -> None:
        self._op, self._rows, self._held, self._ctx = op, rows, held, ctx
        self._kinds: list[pa.DataType] = []
        self._keys: _Keys | None = None

    def pairs(self, left: Rows, sizes: Iterator[int]) -> Iterator[Rows]:
        if not self._op.on:
            yield from all_pairs(left, self._rows, sizes)
            return
        given = [column(ours, left, self._ctx) for ours, _ in self._op.on]
        keys = self._known([values.type for values in given])
        group = keys.groups(given)
        known = group >= 0
        group = np.where(known, group, 0)
        low, counts = keys.starts[group], np.where(known, keys.counts[group], 0)
        for at, member in runs(low, counts, sizes):
            yield beside(left.take(at), self._rows.take(keys.order[member]))

    def _known(self, kinds: list[pa.DataType]) -> _Keys:
        if self._keys is None or self._kinds != kinds:
            rows = self._rows
            self._keys = None
            self._held.set(rows.nbytes + rows.n * KEY_BYTES * len(kinds))
            values = [column(theirs, rows, self._ctx) for _, theirs in self._op.on]
            self._kinds, self._keys = kinds, _Keys.of(values, kinds)
            self._held.set(rows.nbytes + self._keys.nbytes)
        return self._keys


@frozen
class _Keys:
    """Rows grouped by their keys; rows with null or NaN among them are left out."""

    kinds: list[pa.DataType]  # in which keys are compared
    values: list[pa.Array]  # of each key, every value once
    combined: list[Ints]  # the numbers of the groups so far together with the next key, ascending
    order: Ints  # the rows, group by group
    starts: Ints
    counts: Ints

    @classmethod
    def of(cls, given: Sequence[pa.Array], kinds: Sequence[pa.DataType]) -> _Keys:
        common = [_common(a.type, kind) for a, kind in zip(given, kinds, strict=True)]
        values, combined = [], []
        group, known = np.empty(0, np.int64), np.ones(len(given[0]), np.bool_)
        for i, (array, kind) in enumerate(zip(given, common, strict=True)):
            encoded = _as_key(array, kind).dictionary_encode()
            number: Ints = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            values.append(encoded.dictionary)
            known &= number >= 0
            if i:
                both = group * (len(encoded.dictionary) + 1) + number
                combined.append(np.unique(both[known]))
                number = combined[-1].searchsorted(both)
            group = number.astype(np.int64, copy=False)
        rows = np.flatnonzero(known)
        order = rows[np.argsort(group[rows], kind="stable")]
        counts = np.bincount(group[rows], minlength=1)
        return cls(common, values, combined, order, np.cumsum(counts) - counts, counts)

    def groups(self, given: Sequence[pa.Array]) -> Ints:
        """The group each row of the left side joins; -1 for none."""
        group: Ints = np.empty(0, np.int64)
        for i, (array, kind) in enumerate(zip(given, self.kinds, strict=True)):
            values = self.values[i]
            found = pc.index_in(_as_key(array, kind), value_set=values).fill_null(-1)
            number = found.to_numpy(zero_copy_only=False)
            if i:
                both = group * (len(values) + 1) + number
                both[(group < 0) | (number < 0)] = -1
                number = _places(both, self.combined[i - 1])
            group = number.astype(np.int64, copy=False)
        return group

    @property
    def nbytes(self) -> int:
        arrays = (*self.values, *self.combined, self.order, self.starts, self.counts)
        return sum(int(array.nbytes) for array in arrays)


def _places(wanted: Ints, among: Ints) -> Ints:
    """Where each number stands among ascending ones; -1 if it does not."""
    if not len(among):
        return np.full(len(wanted), -1, np.int64)
    at = np.minimum(among.searchsorted(wanted), len(among) - 1)
    return np.where(among[at] == wanted, at, -1)


def _as_key(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values in the type they are compared in; null where they equal nothing."""
    if values.type != kind:
        values = values.cast(kind) if pa.types.is_large_string(kind) else exactly(values, kind)
    found = canonical(values)
    kept: AnyArray = can_equal(found)
    return found if kept.all() else pc.if_else(pa.array(kept), found, None)


def _common(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    """The type in which keys of two types are compared; a number it cannot hold equals none of the other type."""
    if a == b:
        return a
    if pa.types.is_large_string(a) or pa.types.is_large_string(b):  # of a long column
        return pa.large_string()
    return pa.float64() if pa.types.is_floating(a) or pa.types.is_floating(b) else pa.int64()
