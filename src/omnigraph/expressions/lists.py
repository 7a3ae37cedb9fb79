"""Lists in Arrow columns, split and reassembled by their offsets."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.frozen import frozen

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@frozen
class Lists:
    """The members of all lists of a column, one list after the other; a null list has none."""

    counts: Ints
    members: pa.Array
    valid: Mask

    @property
    def starts(self) -> Ints:
        found: Ints = np.cumsum(self.counts) - self.counts
        return found

    @property
    def owners(self) -> Ints:
        """For each member the row it belongs to."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def made(self) -> pa.Array:
        """As one column."""
        offsets = np.concatenate(([0], np.cumsum(self.counts))).astype(np.int32)
        mask = None if self.valid.all() else pa.array(~self.valid)
        return pa.ListArray.from_arrays(pa.array(offsets), self.members, mask=mask)


def taken_apart(values: pa.Array) -> Lists:
    """A column of lists."""
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    counts = pc.list_value_length(values).fill_null(0).to_numpy(zero_copy_only=False)
    return Lists(counts.astype(np.int64), values.flatten(), valid)


def ranges(starts: Ints, counts: Ints) -> Ints:
    """The numbers start, start + 1, … of every range, one range after the other."""
    total = int(counts.sum())
    if not total:
        return np.empty(0, np.int64)
    ends = np.cumsum(counts)
    found: Ints = np.repeat(starts - (ends - counts), counts)
    found += np.arange(total)
    return found


def fitted(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values in a type that holds them."""
    if values.type == kind:
        return values
    if pa.types.is_struct(kind) and pa.types.is_struct(values.type):
        own = {field.name: i for i, field in enumerate(values.type)}
        parts = [
            fitted(pc.struct_field(values, [own[f.name]]), f.type)
            if f.name in own
            else pa.nulls(len(values), f.type)
            for f in kind
        ]
        return structs(parts, kind, values.is_valid().to_numpy(zero_copy_only=False))
    if pa.types.is_list(kind) and (
        pa.types.is_list(values.type) or pa.types.is_fixed_size_list(values.type)
    ):
        apart = taken_apart(values)
        return Lists(apart.counts, fitted(apart.members, kind.value_type), apart.valid).made()
    if values.null_count == len(values):
        return pa.nulls(len(values), kind)
    return values.cast(kind)


def structs(parts: list[pa.Array], kind: pa.StructType, valid: Mask) -> pa.Array:
    """A column of maps."""
    if not len(kind):
        whole = pa.array([{}] * len(valid), kind)
        return whole if valid.all() else whole.take(pa.array(np.arange(len(valid)), mask=~valid))
    mask = None if valid.all() else pa.array(~valid)
    return pa.StructArray.from_arrays(parts, fields=list(kind), mask=mask)


def joined(columns: list[pa.Array]) -> pa.Array:
    """Row by row the members of several lists, one after the other; null where one of them is."""
    parts = [taken_apart(column) for column in columns]
    kind = parts[0].members.type
    members = pa.concat_arrays([fitted(p.members, kind) for p in parts])
    bases = np.cumsum([0, *(len(p.members) for p in parts)])[:-1]
    starts = np.stack([p.starts + base for p, base in zip(parts, bases, strict=True)], axis=1)
    counts = np.stack([p.counts for p in parts], axis=1)
    valid = np.logical_and.reduce([p.valid for p in parts])
    counts[~valid] = 0
    index = ranges(starts.ravel(), counts.ravel())
    return Lists(counts.sum(axis=1), members.take(pa.array(index)), valid).made()


def single(values: pa.Array) -> pa.Array:
    """Each value as a list of itself; null where it is null."""
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    counts = valid.astype(np.int64)
    return Lists(counts, values.filter(pa.array(valid)), valid).made()


def sliced(values: pa.Array, low: pa.Array | None, high: pa.Array | None) -> pa.Array:
    """The members from one index on and before another, negative ones from the end."""
    apart = taken_apart(values)
    valid = apart.valid.copy()
    bounds = []
    for given, missing in ((low, np.zeros_like(apart.counts)), (high, apart.counts)):
        if given is None:
            bounds.append(missing)
            continue
        valid &= given.is_valid().to_numpy(zero_copy_only=False)
        number = given.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        number = np.where(number < 0, number + apart.counts, number)
        bounds.append(np.clip(number, 0, apart.counts))
    counts = np.where(valid, np.maximum(bounds[1] - bounds[0], 0), 0)
    index = ranges(apart.starts + bounds[0], counts)
    return Lists(counts, apart.members.take(pa.array(index)), valid).made()


def member(values: pa.Array, index: pa.Array) -> pa.Array:
    """The member at an index, from the end if negative; null outside the list."""
    apart = taken_apart(values)
    wanted = index.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    wanted = np.where(wanted < 0, wanted + apart.counts, wanted)
    inside = (wanted >= 0) & (wanted < apart.counts)
    inside &= index.is_valid().to_numpy(zero_copy_only=False)
    at = np.where(inside, apart.starts + wanted, 0)
    return apart.members.take(pa.array(at, mask=~inside))


def reversed_lists(values: pa.Array) -> pa.Array:
    apart = taken_apart(values)
    ends = np.cumsum(apart.counts)
    owners = apart.owners
    index = (ends + apart.starts - 1)[owners] - np.arange(len(owners))
    return Lists(apart.counts, apart.members.take(pa.array(index)), apart.valid).made()


# --- equality and truth --------------------------------------------------------------------------------------------


def alike(left: pa.Array, right: pa.Array) -> pa.Array:
    """Whether values are equal, row by row: unknown where a null inside decides."""
    kind = left.type
    if pa.types.is_list(kind):
        return _alike_lists(left, right)
    if pa.types.is_struct(kind):
        return _alike_structs(left, right)
    return pc.equal(left, right)


def _alike_lists(left: pa.Array, right: pa.Array) -> pa.Array:
    one, other = taken_apart(left), taken_apart(right)
    known = one.valid & other.valid
    same = known & (one.counts == other.counts)
    counts = np.where(same, one.counts, 0)
    ours = one.members.take(pa.array(ranges(one.starts, counts)))
    theirs = other.members.take(pa.array(ranges(other.starts, counts)))
    members = alike(ours, fitted(theirs, ours.type))
    owners = np.repeat(np.arange(len(counts)), counts)
    truth, unknown = all_of(members, owners, len(counts))
    return pa.array(truth & same, mask=~known | (same & unknown))


def _alike_structs(left: pa.Array, right: pa.Array) -> pa.Array:
    known = left.is_valid().to_numpy(False) & right.is_valid().to_numpy(False)
    found = pa.array(np.ones(len(left), np.bool_))
    for i in range(left.type.num_fields):
        ours, theirs = pc.struct_field(left, [i]), pc.struct_field(right, [i])
        found = pc.and_kleene(found, alike(ours, theirs))
    return found.take(pa.array(np.arange(len(left)), mask=~known))


def all_of(truth: pa.Array, owners: Ints, rows: int) -> tuple[Mask, Mask]:
    """Per row whether all its members are true, and whether that is unknown."""
    _, no, unknown = counted(truth, owners, rows)
    return no + unknown == 0, (no == 0) & (unknown > 0)


def counted(truth: pa.Array, owners: Ints, rows: int) -> tuple[Ints, Ints, Ints]:
    """Per row the number of its true, false and unknown members."""
    known = truth.is_valid().to_numpy(zero_copy_only=False)
    true = truth.fill_null(False).to_numpy(zero_copy_only=False)
    found = (true, known & ~true, ~known)
    return tuple(np.bincount(owners[mask], minlength=rows) for mask in found)  # type: ignore[return-value]
