"""The transaction of a verb: one pinned state, seen through the writes that come before it.

`WriteTxn` is resolved once and cannot see anything newer. `plus` returns the same transaction after some actions, which
is how a statement sees the ones before it, and a folded writer the writers before it. Nothing is stored meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.clock import NEVER, Deadline
from omnigraph.core.plan import (
    Append,
    DropTable,
    Overwrite,
    PublishPlan,
    Register,
    Remove,
    TableAction,
    Upsert,
)
from omnigraph.core.snapshot import Snapshot
from omnigraph.expressions.arrow import selected
from omnigraph.expressions.comparing import is_in
from omnigraph.lang.ir import Expr
from omnigraph.model.catalog import Catalog
from omnigraph.model.columns import one_array
from omnigraph.model.frozen import frozen
from omnigraph.storage.tables import ADDRESS, NewFragments, RowAddresses, Table

EMPTY_MASK = pa.table({"id": pa.array([], pa.string()), ADDRESS: pa.array([], pa.uint64())})


@frozen
class Overlay:
    """What earlier actions did to one table: stored rows that are gone or superseded, and rows on top."""

    replaced: bool = False  # all stored rows are gone
    masked: pa.Table = field(default_factory=lambda: EMPTY_MASK)  # id and address of stored rows
    rows: pa.Table | None = None
    fragments: NewFragments | None = None  # rows written beforehand; not seen by later statements
    gone: tuple[
        RowAddresses, ...
    ] = ()  # stored rows that these replace, or that are removed likewise

    def plus(self, action: TableAction) -> Overlay:
        """The overlay after one more action."""
        match action:
            case Append(_, NewFragments() as fragments):
                return replace(self, fragments=fragments)
            case Append(_, rows):
                return replace(self, rows=_stacked(self.rows, rows))
            case Overwrite(_, NewFragments() as fragments):
                return Overlay(replaced=True, fragments=fragments)
            case Overwrite(_, rows):
                return Overlay(replaced=True, rows=rows)
            case Upsert(_, NewFragments() as fragments, RowAddresses() as gone):
                return replace(self, gone=(*self.gone, gone), fragments=fragments)
            case Upsert(_, pa.Table() as rows, before):
                left = _without(self.rows, rows["id"])
                return replace(self, masked=self._mask(before), rows=_stacked(left, rows))
            case Remove(_, RowAddresses() as gone):
                return replace(self, gone=(*self.gone, gone))
            case Remove(_, pa.Table() as before):
                return replace(
                    self, masked=self._mask(before), rows=_without(self.rows, before["id"])
                )
            case _:
                return self

    def _mask(self, before: pa.Table) -> pa.Table:
        stored = before.select(["id", ADDRESS]).cast(EMPTY_MASK.schema)
        if stored[ADDRESS].null_count:  # rows of the overlay itself have no address
            stored = stored.filter(pc.is_valid(stored[ADDRESS]))
        return pa.concat_tables([self.masked, stored]) if stored.num_rows else self.masked


def _stacked(under: pa.Table | None, over: pa.Table) -> pa.Table:
    if under is None or not under.num_rows:
        return over
    return pa.concat_tables([under, over.select(under.column_names).cast(under.schema)])


def _without(rows: pa.Table | None, ids: pa.ChunkedArray) -> pa.Table | None:
    if rows is None or not rows.num_rows or not len(ids):
        return rows
    return rows.filter(pc.invert(pc.is_in(rows["id"], value_set=one_array(ids))))


NO_OVERLAY = Overlay()


@frozen
class TableView:
    """A table as a verb sees it: a stored version under an overlay. Every result carries the rows' addresses."""

    stored: Table | None  # None for a table that is new in this transaction
    overlay: Overlay
    schema: pa.Schema

    def lookup(self, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The rows whose column equals one of the values."""
        wanted = _with_id(columns)
        found = []
        if self.stored is not None and not self.overlay.replaced and len(values):
            found.append(
                self._unmasked(self.stored.lookup(column, values, wanted, with_address=True))
            )
        if self.overlay.rows is not None:
            rows = self.overlay.rows
            held = one_array(rows[column])
            rows = rows.filter(is_in(held, values.cast(held.type)))
            found.append(self._addressless(rows, wanted))
        return self._joined(found, wanted)

    def scan(self, columns: Sequence[str], predicate: Expr | None = None) -> pa.Table:
        """The rows that satisfy a predicate."""
        wanted = _with_id(columns)
        found = []
        if self.stored is not None and not self.overlay.replaced:
            found.append(self._unmasked(self.stored.scan(wanted, predicate, with_address=True)))
        if self.overlay.rows is not None:
            rows = self.overlay.rows
            rows = rows if predicate is None else selected(predicate, rows)
            found.append(self._addressless(rows, wanted))
        return self._joined(found, wanted)

    def existing(self, ids: pa.Array) -> pa.Array:
        """Those of the ids that exist."""
        return one_array(self.lookup("id", ids, ["id"])["id"])

    def count(self) -> int:
        """The number of rows."""
        over: int = self.overlay.rows.num_rows if self.overlay.rows is not None else 0
        over += self.overlay.fragments.rows if self.overlay.fragments is not None else 0
        if self.stored is None or self.overlay.replaced:
            return over
        gone = int(self.overlay.masked.num_rows) + sum(map(len, self.overlay.gone))
        return self.stored.count() - gone + over

    def _unmasked(self, rows: pa.Table) -> pa.Table:
        masked = self.overlay.masked
        for gone in self.overlay.gone:
            known = pc.is_in(rows[ADDRESS], value_set=gone.addresses)
            rows = rows.filter(pc.invert(known))
        if not masked.num_rows or not rows.num_rows:
            return rows
        return rows.filter(pc.invert(pc.is_in(rows["id"], value_set=one_array(masked["id"]))))

    def _addressless(self, rows: pa.Table, columns: Sequence[str]) -> pa.Table:
        return rows.select(columns).append_column(ADDRESS, pa.nulls(rows.num_rows, pa.uint64()))

    def _joined(self, parts: list[pa.Table], columns: Sequence[str]) -> pa.Table:
        fields = [self.schema.field(name) for name in columns] + [pa.field(ADDRESS, pa.uint64())]
        schema = pa.schema(fields)
        whole = [part.select(schema.names).cast(schema) for part in parts if part.num_rows]
        return pa.concat_tables(whole) if whole else schema.empty_table()


def _with_id(columns: Sequence[str]) -> list[str]:
    return list(columns) if "id" in columns else ["id", *columns]


@frozen
class WriteTxn:
    """The base of a write. A verb reads through it and returns a plan."""

    snapshot: Snapshot
    branch: str
    now: datetime  # one instant for the whole write, the same in every retry
    catalog: Catalog  # the schema in force, including one from an earlier folded write
    overlays: Mapping[str, Overlay] = field(default_factory=dict)
    registered: Mapping[str, Register] = field(default_factory=dict)
    deadline: Deadline = NEVER  # of the writer, whose queries end with it
    memory_bytes_max: int | None = None  # of one of its queries

    def view(self, table_id: str) -> TableView:
        """A table as this write sees it."""
        new = self.registered.get(table_id)
        if new is not None:
            return TableView(None, self.overlays.get(table_id, NO_OVERLAY), new.schema)
        stored = self.snapshot.table(table_id)
        return TableView(stored, self.overlays.get(table_id, NO_OVERLAY), stored.schema)

    def plus(self, actions: Iterable[TableAction]) -> WriteTxn:
        """The same transaction after these actions."""
        overlays, registered = dict(self.overlays), dict(self.registered)
        for action in actions:
            match action:
                case Register(table_id):
                    registered[table_id] = action
                case DropTable(table_id):
                    overlays.pop(table_id, None)
                case _:
                    overlays[action.table_id] = overlays.get(action.table_id, NO_OVERLAY).plus(
                        action
                    )
        return replace(self, overlays=overlays, registered=registered)

    def by(self, now: datetime, deadline: Deadline, memory_bytes_max: int | None) -> WriteTxn:
        """The same state for a writer: at its instant, within its time and memory."""
        return replace(self, now=now, deadline=deadline, memory_bytes_max=memory_bytes_max)

    def after(self, plan: PublishPlan) -> WriteTxn:
        """The transaction the next folded writer sees."""
        following = self.plus(plan.actions)
        return following if plan.schema is None else replace(following, catalog=plan.schema.catalog)
