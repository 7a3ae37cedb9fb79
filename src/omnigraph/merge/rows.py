"""The rows in which two versions of a table differ.

A fragment both versions share is skipped. One they share except for deletions is compared by the positions of its live
rows, and only rows at differing positions are read; if a column of it is in other files, only that column is compared
first. Other fragments are read, and rows equal on both sides cancel out. So the cost follows the change, not the table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.columns import one_array
from omnigraph.model.frozen import frozen
from omnigraph.storage.tables import ADDRESS, FragmentInfo, Table

Offsets: TypeAlias = np.ndarray[Any, np.dtype[np.uint32]]

NOWHERE: Offsets = np.empty(0, np.uint32)


@frozen
class Delta:
    """Changed rows: as they were in the first version (`before`) and are in the second (`after`), with addresses.

    An id in both was updated, only in `before` deleted, only in `after` inserted.
    """

    before: pa.Table
    after: pa.Table

    @property
    def is_empty(self) -> bool:
        return not (self.before.num_rows or self.after.num_rows)

    @property
    def inserted(self) -> pa.Table:
        return without(self.after, self.before["id"])

    @property
    def updated(self) -> pa.Table:
        return only(self.after, self.before["id"])

    @property
    def deleted(self) -> pa.Table:
        return without(self.before, self.after["id"])

    @property
    def ids(self) -> pa.Array:
        """Every changed id once: those before, then the new ones."""
        both = (self.before, self.inserted)
        return pa.concat_arrays([one_array(part["id"]).cast(pa.string()) for part in both])

    def filter(self, ids: pa.Array) -> Delta:
        """The changes of only these ids."""
        return Delta(only(self.before, ids), only(self.after, ids))


def no_rows(schema: pa.Schema) -> pa.Table:
    """No rows, with their addresses."""
    return schema.append(pa.field(ADDRESS, pa.uint64())).empty_table()


def everything(table: Table, columns: Sequence[str] | None = None) -> pa.Table:
    """All rows with their addresses."""
    return table.scan(table.schema.names if columns is None else columns, with_address=True)


def by_ids(one: Table, other: Table, ids: pa.Array, columns: Sequence[str] | None = None) -> Delta:
    """The changes of rows with these ids, looked up in both versions."""
    columns = one.schema.names if columns is None else columns
    before = one.lookup("id", ids, columns, with_address=True)
    return cancelled(before, other.lookup("id", ids, columns, with_address=True), columns)


def by_fragments(one: Table, other: Table, columns: Sequence[str] | None = None) -> Delta:
    """The changes found by comparing fragments. Both versions must be seen in the same columns."""
    columns = one.schema.names if columns is None else columns
    compared = Comparison.of(one, other, columns)
    return cancelled(compared.before(columns), compared.after(columns), columns)


def unmoved(
    rows: pa.Table, one: Table, other: Table, columns: Sequence[str] | None = None
) -> pa.Table:
    """The rows of a version that another version has unchanged, with their addresses there.

    A row is only ever replaced by deleting it, so one that lives in a fragment both share is the same in both, unless a
    column of the fragment is stored elsewhere now.
    """
    columns = one.schema.names if columns is None else columns
    there = {f.rows_file: f for f in other.fragments()}
    places = rows[ADDRESS].to_numpy()
    own = (places >> np.uint64(32)).astype(np.int64)
    offsets = (places & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    found, kept = np.zeros_like(places), np.zeros(len(places), np.bool_)
    for fragment in one.fragments():
        mine = own == fragment.fragment_id
        twin = there.get(fragment.rows_file)
        if twin is None or not mine.any():
            continue
        pair = Twins(fragment, twin, _moved(one, fragment, other, twin, columns))
        gone = np.union1d(_deleted_rows(other, twin), pair.changed(one, other))
        lives = mine & ~np.isin(offsets, gone)
        found[lives] = _places(twin, offsets[lives])
        kept |= lives
    addressed = rows.drop_columns([ADDRESS]).append_column(ADDRESS, pa.array(found))
    return addressed.filter(pa.array(kept))


def ids_by_fragments(one: Table, other: Table) -> pa.Array:
    """The ids of all rows that may differ, ignoring added, dropped or moved columns."""
    compared = Comparison.of(one, other, ["id"])
    rows = [compared.before(["id"]), compared.after(["id"])]
    return pc.unique(pa.concat_arrays([one_array(part["id"]).cast(pa.string()) for part in rows]))


def cancelled(before: pa.Table, after: pa.Table, columns: Sequence[str]) -> Delta:
    """Without the rows that are equal on both sides."""
    at = positions(before["id"], after["id"])
    here = np.flatnonzero(at.is_valid().to_numpy(zero_copy_only=False))
    there = at.drop_null().to_numpy()
    same = equal_rows(before.take(pa.array(here)), after.take(pa.array(there)), columns)
    return Delta(_drop(before, here[same]), _drop(after, there[same]))


def _drop(rows: pa.Table, at: np.ndarray[Any, Any]) -> pa.Table:
    if not len(at):
        return rows
    kept = np.ones(rows.num_rows, np.bool_)
    kept[at] = False
    return rows.filter(pa.array(kept))


# --- comparing fragments -----------------------------------------------------------------------------------------


@frozen
class Twins:
    """A fragment that two versions share: the same rows at the same positions, with other deletions or columns."""

    one: FragmentInfo
    other: FragmentInfo
    moved: tuple[str, ...] = ()  # columns whose values may differ

    def changed(self, one: Table, other: Table) -> Offsets:
        """The shared positions where a moved column has another value."""
        if not self.moved:
            return NOWHERE
        gone = np.union1d(_deleted_rows(one, self.one), _deleted_rows(other, self.other))
        sides = [_live(one, self.one, self.moved, gone), _live(other, self.other, self.moved, gone)]
        at = sides[0][ADDRESS].to_numpy() & np.uint64(0xFFFFFFFF)
        same = equal_rows(sides[0], sides[1], self.moved)
        places: Offsets = at[~same].astype(np.uint32)
        return places


def _live(table: Table, fragment: FragmentInfo, columns: Sequence[str], gone: Offsets) -> pa.Table:
    """Some columns of a fragment, by position, without some rows."""
    rows = _read(table, columns, [fragment], [])
    at = rows[ADDRESS].to_numpy() & np.uint64(0xFFFFFFFF)
    return rows.filter(pa.array(~np.isin(at, gone))).sort_by(ADDRESS)


def _moved(
    one: Table, here: FragmentInfo, other: Table, there: FragmentInfo, columns: Sequence[str]
) -> tuple[str, ...]:
    return tuple(c for c in columns if one.cells(c, here) != other.cells(c, there))


@frozen
class Comparison:
    """What has to be read: whole fragments of either version, and single rows of shared fragments."""

    one: Table
    other: Table
    mine: tuple[FragmentInfo, ...]  # only in the first version
    yours: tuple[FragmentInfo, ...]  # only in the second version
    shared: tuple[Twins, ...]  # the same rows, other deletions or columns

    @classmethod
    def of(cls, one: Table, other: Table, columns: Sequence[str] | None = None) -> Comparison:
        columns = one.schema.names if columns is None else columns
        here = {f.rows_file: f for f in one.fragments()}
        there = {f.rows_file: f for f in other.fragments()}
        twins = (
            Twins(f, there[file], _moved(one, f, other, there[file], columns))
            for file, f in here.items()
            if file in there
        )
        return cls(
            one,
            other,
            tuple(f for file, f in here.items() if file not in there),
            tuple(f for file, f in there.items() if file not in here),
            tuple(t for t in twins if t.moved or _deletions_differ(t.one, t.other)),
        )

    @property
    def rows(self) -> int:
        """About how many rows would be read."""
        whole = sum(f.physical_rows - f.deleted_rows for f in (*self.mine, *self.yours))
        return whole + sum(abs(t.one.deleted_rows - t.other.deleted_rows) for t in self.shared)

    def before(self, columns: Sequence[str]) -> pa.Table:
        places = [
            _places(t.one, np.union1d(_missing(self.one, t.one, self.other, t.other), changed))
            for t, changed in self._changed()
        ]
        return _read(self.one, columns, self.mine, places)

    def after(self, columns: Sequence[str]) -> pa.Table:
        places = [
            _places(t.other, np.union1d(_missing(self.other, t.other, self.one, t.one), changed))
            for t, changed in self._changed()
        ]
        return _read(self.other, columns, self.yours, places)

    def _changed(self) -> Iterator[tuple[Twins, Offsets]]:
        return ((twins, twins.changed(self.one, self.other)) for twins in self.shared)


def _deletions_differ(one: FragmentInfo, other: FragmentInfo) -> bool:
    return one.identity.rsplit("|", 1)[-1] != other.identity.rsplit("|", 1)[-1]


def _missing(table: Table, fragment: FragmentInfo, other: Table, there: FragmentInfo) -> Offsets:
    """Rows that live in the first fragment and not in the second."""
    gone = _deleted_rows(other, there)
    return np.setdiff1d(gone, _deleted_rows(table, fragment))


def _deleted_rows(table: Table, fragment: FragmentInfo) -> Offsets:
    return np.asarray(table.deleted_rows(fragment).to_numpy())


def _places(fragment: FragmentInfo, offsets: Offsets) -> np.ndarray[Any, np.dtype[np.uint64]]:
    return offsets.astype(np.uint64) + np.uint64(fragment.fragment_id << 32)


def _read(
    table: Table,
    columns: Sequence[str],
    whole: Sequence[FragmentInfo],
    places: Sequence[np.ndarray[Any, np.dtype[np.uint64]]],
) -> pa.Table:
    schema = pa.schema([*(table.schema.field(n) for n in columns), pa.field(ADDRESS, pa.uint64())])
    parts = []
    ids = [f.fragment_id for f in whole]
    if ids:
        batches = table.batches(columns, with_address=True, fragments=ids)
        parts.append(pa.Table.from_batches([b.cast(schema) for b in batches], schema))
    single = np.concatenate(places) if places else np.empty(0, np.uint64)
    if len(single):
        addresses = pa.array(single, pa.uint64())
        rows = table.take(addresses, columns).append_column(ADDRESS, addresses)
        parts.append(rows.select(schema.names).cast(schema))
    return pa.concat_tables(parts) if parts else schema.empty_table()


Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


def equal_cells(one: pa.Array | pa.ChunkedArray, other: pa.Array | pa.ChunkedArray) -> Mask:
    """Where two columns have equal values."""
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
    """Whether two images of a row are the same; None: the row does not exist."""
    if one is None or other is None:
        return one is other
    return all(same_value(value, other[name]) for name, value in one.items())


def equal_rows(one: pa.Table, other: pa.Table, columns: Sequence[str]) -> Mask:
    """Where two tables of the same length have equal values in all of the columns."""
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
