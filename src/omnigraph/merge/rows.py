"""The rows in which two versions of a table differ.

A fragment both versions share is skipped. One they share but for deletions is compared by the places of its live rows,
and only rows at differing places are read. Other fragments are read, and rows equal on both sides cancel out. So the
cost follows the change, not the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.merge.cells import equal_rows, one_array, only, positions, without
from omnigraph.storage.session import Lru
from omnigraph.storage.tables import ADDRESS, FragmentInfo, Table

DELETIONS_BYTES_MAX = 64 * 2**20
Offsets: TypeAlias = np.ndarray[Any, np.dtype[np.uint32]]

NOWHERE: Offsets = np.empty(0, np.uint32)

_deleted: Lru[str, Offsets] = Lru(DELETIONS_BYTES_MAX, lambda offsets: offsets.nbytes + 64)


@dataclass(frozen=True, slots=True)
class Delta:
    """Changed rows: as they were in the first version (`before`) and are in the second (`after`), with addresses.

    An id in both was updated, in `before` alone deleted, in `after` alone inserted.
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
        """The changes of some ids alone."""
        return Delta(only(self.before, ids), only(self.after, ids))


def no_rows(schema: pa.Schema) -> pa.Table:
    """No rows, with their addresses."""
    return schema.append(pa.field(ADDRESS, pa.uint64())).empty_table()


def everything(table: Table) -> pa.Table:
    """All rows with their addresses."""
    return table.scan(table.schema.names, with_address=True)


def by_ids(one: Table, other: Table, ids: pa.Array) -> Delta:
    """The changes of rows with these ids, looked up in both versions."""
    columns = one.schema.names
    before = one.lookup("id", ids, columns, with_address=True)
    return cancelled(before, other.lookup("id", ids, columns, with_address=True), columns)


def by_fragments(one: Table, other: Table) -> Delta:
    """The changes found by comparing fragments. Both versions must be seen in the same columns."""
    columns = one.schema.names
    compared = Comparison.of(one, other)
    return cancelled(compared.before(columns), compared.after(columns), columns)


def unmoved(rows: pa.Table, one: Table, other: Table) -> pa.Table:
    """Those of a version's rows that another version has as they are, with their addresses there.

    A row is only ever replaced by deleting it, so one that lives in a fragment both share is the same in both.
    """
    there = {_data(f): f for f in other.fragments()}
    places = rows[ADDRESS].to_numpy()
    own = (places >> np.uint64(32)).astype(np.int64)
    offsets = (places & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    found, kept = np.zeros_like(places), np.zeros(len(places), np.bool_)
    for fragment in one.fragments():
        twin = there.get(_data(fragment))
        if twin is not None:
            lives = (own == fragment.fragment_id) & ~np.isin(offsets, _deleted_rows(other, twin))
            found[lives] = _places(twin, offsets[lives])
            kept |= lives
    addressed = rows.drop_columns([ADDRESS]).append_column(ADDRESS, pa.array(found))
    return addressed.filter(pa.array(kept))


def ids_by_fragments(one: Table, other: Table) -> pa.Array:
    """The ids of all rows that may differ."""
    compared = Comparison.of(one, other)
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


@dataclass(frozen=True, slots=True)
class Comparison:
    """What has to be looked at: whole fragments of either version, and single rows of fragments both have."""

    one: Table
    other: Table
    mine: tuple[FragmentInfo, ...]  # of the first version alone
    yours: tuple[FragmentInfo, ...]  # of the second version alone
    shared: tuple[tuple[FragmentInfo, FragmentInfo], ...]  # same data, other deletions

    @classmethod
    def of(cls, one: Table, other: Table) -> Comparison:
        here = {_data(f): f for f in one.fragments()}
        there = {_data(f): f for f in other.fragments()}
        return cls(
            one,
            other,
            tuple(f for key, f in here.items() if key not in there),
            tuple(f for key, f in there.items() if key not in here),
            tuple(
                (f, there[key])
                for key, f in here.items()
                if key in there and _deletions_differ(f, there[key])
            ),
        )

    @property
    def rows(self) -> int:
        """How many rows would be read, about."""
        whole = sum(f.physical_rows - f.deleted_rows for f in (*self.mine, *self.yours))
        return whole + sum(abs(a.deleted_rows - b.deleted_rows) for a, b in self.shared)

    def before(self, columns: Sequence[str]) -> pa.Table:
        gone = [_places(a, _missing(self.one, a, self.other, b)) for a, b in self.shared]
        return _read(self.one, columns, self.mine, gone)

    def after(self, columns: Sequence[str]) -> pa.Table:
        came = [_places(b, _missing(self.other, b, self.one, a)) for a, b in self.shared]
        return _read(self.other, columns, self.yours, came)


def _data(fragment: FragmentInfo) -> str:
    """What makes two fragments the same rows: rows are only ever rewritten whole, so columns that were added beside
    them, with files of their own, hold what a lens shows."""
    return fragment.files.split(",", 1)[0]


def _deletions_differ(one: FragmentInfo, other: FragmentInfo) -> bool:
    return one.identity.rsplit("|", 1)[-1] != other.identity.rsplit("|", 1)[-1]


def _missing(table: Table, fragment: FragmentInfo, other: Table, there: FragmentInfo) -> Offsets:
    """Rows that live in the first fragment and not in the second."""
    gone = _deleted_rows(other, there)
    return np.setdiff1d(gone, _deleted_rows(table, fragment))


def _deleted_rows(table: Table, fragment: FragmentInfo) -> Offsets:
    known = _deleted.get(fragment.identity) if fragment.deleted_rows else NOWHERE
    if known is None:
        known = np.asarray(table.deleted_rows(fragment).to_numpy())
        _deleted.put(fragment.identity, known)
    return known


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
