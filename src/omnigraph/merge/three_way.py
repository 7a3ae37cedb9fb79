"""From base, ours and theirs to the changes of ours: row by row, and field by field if both changed a row.

Only rows that theirs changed are read. If ours has them unchanged since the base, theirs' images are taken, whole
columns at a time; the few rows both sides changed are merged one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.core.footprints import NO_IDS
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.merge.changed import Between
from omnigraph.merge.conflicts import (
    DELETE_VS_UPDATE,
    DIVERGENT_INSERT,
    DIVERGENT_UPDATE,
    THEIRS,
    ChosenValue,
    Conflict,
    Decisions,
    value_of,
)
from omnigraph.merge.rows import (
    Delta,
    Mask,
    equal_rows,
    no_rows,
    positions,
    same_row,
    same_value,
    unmoved,
    without,
)
from omnigraph.merge.schema_view import seen_as
from omnigraph.model.catalog import Catalog, NodeOrEdgeType
from omnigraph.model.changes import TypeChanges
from omnigraph.model.columns import arrow_schema
from omnigraph.model.frozen import frozen
from omnigraph.storage.tables import ADDRESS

Row = Mapping[str, Any]
Part = Mapping[str, pa.Array | None]  # by table the ids to include; None: all of them


@frozen
class Sides:
    """Three states under the merged schema."""

    repo: Repository
    base: Snapshot
    ours: Snapshot
    theirs: Snapshot
    done: Between = field(repr=False)  # what theirs did since the base
    part: Part | None = None

    @classmethod
    def of(
        cls,
        repo: Repository,
        states: tuple[Snapshot, Snapshot, Snapshot],
        catalog: Catalog,
        part: Part | None = None,
    ) -> Sides:
        """From base, ours and theirs under their own schemas."""
        base, ours, theirs = (seen_as(state, catalog) for state in states)
        return cls(repo, base, ours, theirs, Between(repo, base, theirs), part)

    @property
    def catalog(self) -> Catalog:
        return self.ours.catalog

    def delta(self, kind: NodeOrEdgeType) -> Delta:
        """What theirs did to the rows of one type."""
        found = self.done.delta(kind.table_id, kind)
        if self.part is None:
            return found
        ids = self.part.get(kind.table_id, NO_IDS)
        return found if ids is None else found.filter(ids)

    def swapped(self) -> Sides:
        """The same merge, seen from the other side."""
        done = Between(self.repo, self.base, self.ours)
        return replace(self, ours=self.theirs, theirs=self.ours, done=done, part=None)


@frozen
class MergedTable:
    """The changes of theirs to a table, the resulting changes of ours, and the conflicts."""

    delta: Delta
    change: TypeChanges
    conflicts: tuple[Conflict, ...] = ()
    as_theirs: bool = True  # wherever theirs changed a row, the result is theirs' row


def merge_table(sides: Sides, kind: NodeOrEdgeType, decided: Decisions) -> MergedTable:
    """Merge the rows of one type."""
    delta = sides.delta(kind)
    if delta.is_empty:
        return MergedTable(delta, TypeChanges(kind))
    stored = _stored(sides, kind, delta)
    aligned = Aligned.of(delta, stored, kind)
    clean, both = aligned.split()
    taken = aligned.take(clean)
    if not both.any():
        return MergedTable(delta, taken)
    rows = RowMerge(kind, decided)
    for base, ours, theirs in aligned.images(both):
        rows.merge(base, ours, theirs)
    change = _joined(taken, rows, stored)
    return MergedTable(delta, change, tuple(rows.conflicts), rows.as_theirs)


def _stored(sides: Sides, kind: NodeOrEdgeType, delta: Delta) -> pa.Table:
    """The rows theirs changed, as ours has them. Most have not moved since the base; the others are looked up."""
    there = (sides.base.commit.tables, sides.ours.commit.tables)
    if any(kind.table_id not in tables for tables in there):
        return lookup(sides.ours, kind, delta.ids)
    base, ours = sides.base.table(kind.table_id), sides.ours.table(kind.table_id)
    if base.ref == ours.ref:
        return delta.before
    same = unmoved(delta.before, base, ours, arrow_schema(kind).names)
    rest = without(pa.table({"id": delta.ids}), same["id"])["id"]
    if not len(rest):
        return same
    return pa.concat_tables([same, lookup(sides.ours, kind, rest).cast(same.schema)])


def lookup(snapshot: Snapshot, kind: NodeOrEdgeType, ids: pa.Array) -> pa.Table:
    """Whole rows by id, with addresses; empty for a table the state does not have."""
    if kind.table_id not in snapshot.commit.tables:
        return no_rows(arrow_schema(kind))
    table = snapshot.table(kind.table_id)
    return table.lookup("id", ids, arrow_schema(kind).names, with_address=True)


# --- whole columns -----------------------------------------------------------------------------------------------


@frozen
class Aligned:
    """Three images of every id that theirs changed; position -1: the row does not exist."""

    kind: NodeOrEdgeType
    sides: tuple[pa.Table, pa.Table, pa.Table]  # base, ours, theirs
    places: tuple[np.ndarray[Any, np.dtype[np.int64]], ...]

    @classmethod
    def of(cls, delta: Delta, stored: pa.Table, kind: NodeOrEdgeType) -> Aligned:
        sides = (delta.before, stored, delta.after)
        ids = delta.ids
        return cls(kind, sides, tuple(_places(ids, rows) for rows in sides))

    def split(self) -> tuple[Mask, Mask]:
        """Ids that ours did not change, and those both sides changed."""
        base, ours, _ = self.places
        clean: Mask = (base < 0) & (ours < 0)
        there = np.flatnonzero((base >= 0) & (ours >= 0))
        rows = [self.sides[i].take(pa.array(self.places[i][there])) for i in (0, 1)]
        clean[there] = equal_rows(rows[0], rows[1], arrow_schema(self.kind).names)
        return clean, ~clean

    def take(self, chosen: Mask) -> TypeChanges:
        """Theirs' images of some ids, as changes of ours."""
        base, ours, theirs = (places[chosen] for places in self.places)
        changed = (base >= 0) & (theirs >= 0)
        names = arrow_schema(self.kind).names
        _, stored, after = self.sides
        return TypeChanges(
            self.kind,
            inserts=_rows(after, theirs[(base < 0) & (theirs >= 0)], names),
            updates=_rows(after, theirs[changed], names),
            before=_rows(stored, ours[changed]),
            deletes=_rows(stored, ours[(base >= 0) & (theirs < 0)]),
        )

    def images(self, chosen: Mask) -> Iterator[tuple[Row | None, Row | None, Row | None]]:
        """Base, ours and theirs of some ids, one by one."""
        columns = [
            _dicts(rows, places[chosen])
            for rows, places in zip(self.sides, self.places, strict=True)
        ]
        yield from zip(*columns, strict=True)


def _places(ids: pa.Array, rows: pa.Table) -> np.ndarray[Any, np.dtype[np.int64]]:
    at = positions(ids, rows["id"]).fill_null(-1)
    return np.asarray(at.to_numpy().astype(np.int64))


def _rows(
    rows: pa.Table, at: np.ndarray[Any, np.dtype[np.int64]], names: Sequence[str] | None = None
) -> pa.Table | None:
    if not len(at):
        return None
    return (rows if names is None else rows.select(names)).take(pa.array(at))


def _dicts(rows: pa.Table, at: np.ndarray[Any, np.dtype[np.int64]]) -> list[Row | None]:
    there = at >= 0
    found = iter(rows.drop_columns([ADDRESS]).take(pa.array(at[there])).to_pylist())
    return [next(found) if is_there else None for is_there in there]


# --- single rows -------------------------------------------------------------------------------------------------


class RowMerge:
    """Merges rows that both sides changed, and remembers the outcome."""

    def __init__(self, kind: NodeOrEdgeType, decided: Decisions) -> None:
        self.kind = kind
        self.decided = decided
        self.conflicts: list[Conflict] = []
        self.inserts: list[Row] = []
        self.updates: list[Row] = []
        self.deletes: list[str] = []
        self.as_theirs = True

    def merge(self, base: Row | None, ours: Row | None, theirs: Row | None) -> None:
        """Merge one row; the result is recorded relative to ours."""
        result = self._result(base, ours, theirs)
        if not same_row(result, theirs):
            self.as_theirs = False
        if result is None and ours is not None:
            self.deletes.append(ours["id"])
        elif result is not None and ours is None:
            self.inserts.append(result)
        elif result is not None and not same_row(result, ours):
            self.updates.append(result)

    def _result(self, base: Row | None, ours: Row | None, theirs: Row | None) -> Row | None:
        if same_row(ours, theirs):
            return ours
        if ours is None or theirs is None:
            return self._delete_or_update(base, ours, theirs)
        kind = DIVERGENT_INSERT if base is None else DIVERGENT_UPDATE
        merged = dict(ours)
        for name, mine in ours.items():
            old = None if base is None else base[name]
            if same_value(mine, theirs[name]) or (base and same_value(theirs[name], old)):
                continue
            if base and same_value(mine, old):
                merged[name] = theirs[name]
            else:
                merged[name] = self._field(kind, name, (base, ours, theirs))
        return merged

    def _delete_or_update(
        self, base: Row | None, ours: Row | None, theirs: Row | None
    ) -> Row | None:
        there = ours if ours is not None else theirs
        key = self.kind.name, (there or {})["id"], None
        who = "ours deleted it, theirs changed it" if ours is None else "theirs deleted it"
        side = self.decided.side(*key)
        if side is None:
            message = f"{key[0]} {key[1]!r}: {who}" + (", ours changed it" if ours else "")
            self.conflicts.append(
                Conflict(DELETE_VS_UPDATE, key[0], key[1], None, base, ours, theirs, message)
            )
        return theirs if side == THEIRS else ours

    def _field(self, kind: str, name: str, rows: tuple[Row | None, Row, Row]) -> Any:
        base, ours, theirs = rows
        key = self.kind.name, ours["id"], name
        decision = self.decided.of(*key)
        match decision:
            case ChosenValue():
                return value_of(decision, self.kind, name)
            case None:
                did = "inserted" if kind == DIVERGENT_INSERT else "changed"
                message = f"{key[0]} {key[1]!r}: both sides {did} it with another {name}"
                values = (None if base is None else base[name], ours[name], theirs[name])
                self.conflicts.append(Conflict(kind, *key, *values, message))
        return theirs[name] if decision == THEIRS else ours[name]


def _joined(taken: TypeChanges, rows: RowMerge, stored: pa.Table) -> TypeChanges:
    schema = arrow_schema(taken.kind)
    changed = [row["id"] for row in rows.updates]
    return replace(
        taken,
        inserts=stacked(taken.inserts, _table(rows.inserts, schema)),
        updates=stacked(taken.updates, _table(rows.updates, schema)),
        before=stacked(taken.before, _with_ids(stored, changed)),
        deletes=stacked(taken.deletes, _with_ids(stored, rows.deletes)),
    )


def _table(rows: Sequence[Row], schema: pa.Schema) -> pa.Table | None:
    return pa.Table.from_pylist(list(rows), schema) if rows else None


def _with_ids(rows: pa.Table, ids: list[str]) -> pa.Table | None:
    return rows.take(positions(pa.array(ids, pa.string()), rows["id"])) if ids else None


def stacked(*parts: pa.Table | None) -> pa.Table | None:
    """Tables of the same columns, concatenated."""
    filled = [part for part in parts if part is not None and part.num_rows]
    if not filled:
        return None
    return pa.concat_tables([filled[0], *(part.cast(filled[0].schema) for part in filled[1:])])
