"""The state during a write: stored tables under the changes made so far, read like any other state.

A stored fragment loses the rows that are gone or superseded, and the new rows are one more fragment; so everything
cached for stored fragments stays usable, and anything derived from the state has its own version.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.snapshot import Snapshot, table_ref
from omnigraph.core.txn import Overlay, WriteTxn
from omnigraph.errors import WritesUnseen
from omnigraph.expressions.arrow import selected
from omnigraph.expressions.comparing import is_in
from omnigraph.lang.ir import Expr
from omnigraph.lang.tree import stored_columns
from omnigraph.model.columns import one_array
from omnigraph.model.frozen import frozen
from omnigraph.storage.tables import (
    ADDRESS,
    FragmentInfo,
    IndexInfo,
    NewFragments,
    Staged,
    Table,
    TableEdit,
    TableRef,
    TableStore,
)

PLACE_BITS = 32
# Versions of Lance tables that are not Lance's own commits have their highest bit set; these do not.
_versions = itertools.count(1 << 62)


def overlaid(txn: WriteTxn) -> Snapshot:
    """The current state of a write, as queries see it."""
    base = txn.snapshot
    if not txn.overlays:
        return base
    hidden = any(overlay.fragments is not None for overlay in txn.overlays.values())
    if hidden or txn.registered or txn.catalog is not base.catalog:
        raise WritesUnseen(
            "an earlier write of the same commit adds rows or types that this one cannot read yet"
        )
    tables: dict[TableRef, Table] = {}
    entries = dict(base.commit.tables)
    for table_id, overlay in txn.overlays.items():
        entry = msgspec.structs.replace(entries[table_id], version=str(next(_versions)))
        entries[table_id] = entry
        ref = table_ref(entry)
        tables[ref] = OverlaidTable(base.table(table_id), overlay, ref)
    commit = msgspec.structs.replace(base.commit, tables=entries)
    store = _OverlaidStore(base.tables, tables)
    return replace(base, commit=commit, tables=store, passing=True)


@frozen
class _OverlaidStore:
    """A store with additional tables; writes go to the store itself."""

    stored: TableStore
    tables: Mapping[TableRef, Table]

    def open(self, ref: TableRef) -> Table:
        return self.tables.get(ref) or self.stored.open(ref)

    def create(self, path: str, schema: pa.Schema) -> TableRef:
        return self.stored.create(path, schema)

    def stage(self, base: TableRef, edit: TableEdit) -> Staged:
        return self.stored.stage(base, edit)

    def recommit(self, staged: Staged, base: TableRef) -> Staged | None:
        return self.stored.recommit(staged, base)

    def write_fragments(
        self, base: TableRef, rows: pa.Table | Iterable[pa.RecordBatch]
    ) -> NewFragments:
        return self.stored.write_fragments(base, rows)

    def sync(self, staged: Sequence[Staged]) -> None:
        self.stored.sync(staged)


@dataclass(frozen=True)
class OverlaidTable:
    """See `storage.tables.Table`: a stored version without some rows and with others."""

    stored: Table
    overlay: Overlay
    ref: TableRef

    @property
    def schema(self) -> pa.Schema:
        return self.stored.schema

    # --- fragments -------------------------------------------------------------------------------------------------

    @cached_property
    def _kept(self) -> tuple[FragmentInfo, ...]:
        return () if self.overlay.replaced else self.stored.fragments()

    @cached_property
    def _own(self) -> FragmentInfo | None:
        """The fragment of the new rows."""
        rows = 0 if self.overlay.rows is None else self.overlay.rows.num_rows
        if not rows:
            return None
        number = 1 + max((f.fragment_id for f in self.stored.fragments()), default=0)
        name = f"overlay-{self.ref.version}"
        return FragmentInfo(number, rows, 0, name, name)

    @cached_property
    def _masked(self) -> pa.Array:
        """The addresses of stored rows that are gone, each once."""
        gone = (rows.addresses for rows in self.overlay.gone)
        return pc.unique(pa.concat_arrays([one_array(self.overlay.masked[ADDRESS]), *gone]))

    def fragments(self) -> tuple[FragmentInfo, ...]:
        gone = np.bincount(
            (self._masked.to_numpy(zero_copy_only=False) >> np.uint64(PLACE_BITS)).astype(np.int64),
            minlength=1,
        )
        found = [self._less(f, gone) for f in self._kept]
        return (*found, *([self._own] if self._own is not None else []))

    def _less(self, fragment: FragmentInfo, gone: np.ndarray) -> FragmentInfo:
        count = int(gone[fragment.fragment_id]) if fragment.fragment_id < len(gone) else 0
        if not count:
            return fragment
        identity = f"{fragment.identity}-overlay-{self.ref.version}"
        return replace(fragment, deleted_rows=fragment.deleted_rows + count, identity=identity)

    def cells(self, column: str, fragment: FragmentInfo) -> Hashable:
        if fragment == self._own:
            return (fragment.identity, column)
        return self.stored.cells(column, self._stored_form(fragment))

    def _stored_form(self, fragment: FragmentInfo) -> FragmentInfo:
        return next(f for f in self._kept if f.fragment_id == fragment.fragment_id)

    def deleted_rows(self, fragment: FragmentInfo) -> pa.UInt32Array:
        if fragment == self._own:
            return pa.array([], pa.uint32())
        before = self.stored.deleted_rows(self._stored_form(fragment))
        masked = self._masked.to_numpy(zero_copy_only=False)
        mine = masked[masked >> np.uint64(PLACE_BITS) == fragment.fragment_id]
        places = (mine & np.uint64(2**PLACE_BITS - 1)).astype(np.uint32)
        return pa.array(np.union1d(before.to_numpy(zero_copy_only=False), places))

    def indices(self) -> tuple[IndexInfo, ...]:
        return () if self.overlay.replaced else self.stored.indices()

    def files(self) -> frozenset[str]:
        return self.stored.files()

    # --- rows ------------------------------------------------------------------------------------------------------

    def count(self, predicate: Expr | None = None) -> int:
        return int(self.scan([], predicate, with_address=True).num_rows)

    def scan(
        self,
        columns: Sequence[str],
        predicate: Expr | None = None,
        *,
        limit: int | None = None,
        with_address: bool = False,
    ) -> pa.Table:
        batches = list(self.batches(columns, predicate, with_address=with_address))
        whole = pa.Table.from_batches(batches, self._shape(columns, with_address))
        return whole if limit is None else whole.slice(0, limit)

    def batches(
        self,
        columns: Sequence[str],
        predicate: Expr | None = None,
        *,
        with_address: bool = False,
        batch_rows: int = 65_536,
        fragments: Sequence[int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        kept = [f.fragment_id for f in self._kept]
        some = kept if fragments is None else [i for i in fragments if i in kept]
        shape = self._shape(columns, with_address)
        if some:
            every = None if len(some) == len(kept) else some
            for batch in self.stored.batches(
                columns, predicate, with_address=True, batch_rows=batch_rows, fragments=every
            ):
                left = self._unmasked(pa.Table.from_batches([batch]))
                yield from left.select(shape.names).cast(shape).to_batches()
        own = self._own
        if own is not None and (fragments is None or own.fragment_id in fragments):
            rows = self._new_rows([*columns, *stored_columns(predicate)])
            rows = rows if predicate is None else selected(predicate, rows)
            yield from rows.select(shape.names).cast(shape).to_batches(max_chunksize=batch_rows)

    def lookup(
        self, column: str, values: pa.Array, columns: Sequence[str], *, with_address: bool = False
    ) -> pa.Table:
        shape, parts = self._shape(columns, with_address), []
        if self._kept and len(values):
            parts.append(
                self._unmasked(self.stored.lookup(column, values, columns, with_address=True))
            )
        if self._own is not None:
            rows = self._new_rows([*columns, column])
            held = one_array(rows[column])
            parts.append(rows.filter(is_in(held, values.cast(held.type))))
        found = [part.select(shape.names).cast(shape) for part in parts if part.num_rows]
        return pa.concat_tables(found) if found else shape.empty_table()

    def take(self, addresses: pa.UInt64Array, columns: Sequence[str]) -> pa.Table:
        shape, own = self._shape(columns, False), self._own
        if own is None:
            return self.stored.take(addresses, columns)
        raw = addresses.to_numpy(zero_copy_only=False)
        new = raw >> np.uint64(PLACE_BITS) == own.fragment_id
        places = (raw[new] & np.uint64(2**PLACE_BITS - 1)).astype(np.int64)
        mine = self._new_rows(columns).select(shape.names).cast(shape).take(pa.array(places))
        if new.all():
            return mine
        theirs = self.stored.take(pa.array(raw[~new]), columns).select(shape.names).cast(shape)
        order = np.empty(len(raw), np.int64)
        order[~new] = np.arange(theirs.num_rows)
        order[new] = np.arange(mine.num_rows) + theirs.num_rows
        return pa.concat_tables([theirs, mine]).take(pa.array(order))

    def _shape(self, columns: Sequence[str], with_address: bool) -> pa.Schema:
        address = [pa.field(ADDRESS, pa.uint64())] if with_address else []
        return pa.schema([self.schema.field(name) for name in dict.fromkeys(columns)] + address)

    def _unmasked(self, rows: pa.Table) -> pa.Table:
        if not len(self._masked) or not rows.num_rows:
            return rows
        return rows.filter(pc.invert(pc.is_in(rows[ADDRESS], value_set=self._masked)))

    def _new_rows(self, columns: Sequence[str]) -> pa.Table:
        """The new rows with their addresses."""
        own, rows = self._own, self.overlay.rows
        assert own is not None and rows is not None  # noqa: S101, PT018 - only called if there are some
        first = own.fragment_id << PLACE_BITS
        places = pa.array(np.arange(first, first + own.physical_rows, dtype=np.uint64))
        return rows.select(list(dict.fromkeys(columns))).append_column(ADDRESS, places)
