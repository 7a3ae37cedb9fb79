"""Values that the merged schema has no place for, each a conflict: a merge never silently turns a value into null.

One side may have dropped a property, or reverted its widening, while the other side wrote values that only the
former schema can hold. Only columns that the merged schema drops or narrows are read, and of those only the rows
that differ from the base.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.merge.changed import Between
from omnigraph.merge.conflicts import LOST_VALUE, OURS, THEIRS, Conflict, Decisions
from omnigraph.merge.rows import Delta, equal_cells, only, positions, without
from omnigraph.merge.schema_view import kinds_of
from omnigraph.merge.three_way import Part, lookup
from omnigraph.model.catalog import Catalog, NodeOrEdgeType, Property
from omnigraph.model.columns import arrow_type, fitted
from omnigraph.model.frozen import frozen
from omnigraph.values.columns import default_of


@frozen
class States:
    """Base, ours and theirs, each under its own schema."""

    repo: Repository
    base: Snapshot
    ours: Snapshot
    theirs: Snapshot
    part: Part | None = None

    def of(self, side: str) -> Snapshot:
        return self.ours if side == OURS else self.theirs

    def delta(self, side: str, view: NodeOrEdgeType) -> Delta:
        """What a side did since the base, in some columns."""
        found = Between(self.repo, self.base, self.of(side)).delta(view.table_id, view)
        if side == OURS or self.part is None:
            return found
        ids = self.part.get(view.table_id, pa.array([], pa.string()))
        return found if ids is None else found.filter(ids)


def lost_cells(states: States, merged: Catalog, decided: Decisions) -> Iterator[Conflict]:
    """The values of either side that cannot be carried over; except those decided to be dropped."""
    kept = kinds_of(merged)
    for side, other in ((OURS, THEIRS), (THEIRS, OURS)):
        for table, kind in kinds_of(states.of(side).catalog).items():
            if table not in kept or table not in states.of(side).commit.tables:
                continue
            places = {p.property_id: p for p in kept[table].properties.values()}
            for prop in kind.properties.values():
                place = places.get(prop.property_id)
                if place is None and not _is_made_anew(prop, kept[table]):
                    found = _dropped(states, side, kind, prop)
                    name = kind.name
                    yield from (c for c in found if decided.side(name, c.id, c.field) != other)
                elif place is not None and arrow_type(place.type) != arrow_type(prop.type):
                    yield from _narrowed(states, side, kind, prop, place)


def _is_made_anew(prop: Property, merged: NodeOrEdgeType) -> bool:
    """Whether the merged schema makes a vector from another text, or by another model."""
    other = merged.properties.get(prop.name)
    return prop.embed is not None and other is not None and other.embed is not None


def _view(kind: NodeOrEdgeType, prop: Property) -> NodeOrEdgeType:
    """The type with only one property."""
    return replace(
        kind, properties={prop.name: prop}, key=None, uniques=(), indices=(), ranges=(), checks=()
    )


def _dropped(states: States, side: str, kind: NodeOrEdgeType, prop: Property) -> Iterator[Conflict]:
    """What a side wrote to a property since the base, while the other side dropped it."""
    delta = states.delta(side, _view(kind, prop))
    fill = pa.repeat(default_of(prop), delta.inserted.num_rows)
    new = delta.inserted.filter(pa.array(~equal_cells(delta.inserted[prop.name], fill)))
    for rows in (delta.updated, new):
        written = rows.filter(rows[prop.name].is_valid())
        why = f"and the other side has no property {prop.name}"
        yield from _conflicts(states, side, (kind, prop), written, why)


def _narrowed(
    states: States, side: str, kind: NodeOrEdgeType, prop: Property, place: Property
) -> Iterator[Conflict]:
    """Values of a side that do not fit the narrower type of the other."""
    view = _view(kind, prop)
    table = states.of(side).table(kind.table_id)
    rows = table.scan(["id", prop.name])
    fits = fitted(rows[prop.name], arrow_type(place.type))
    lost = rows.filter(pc.and_(fits.is_null(), rows[prop.name].is_valid()))
    if not lost.num_rows:
        return
    own = only(lost, states.delta(side, view).after["id"])
    why = f"which does not fit {place.type}, the type the other side gave {prop.name}"
    yield from _conflicts(states, side, (kind, prop), own, why)
    if side == OURS:  # an unchanged value would have to stay
        rest = without(lost, own["id"])
        gone = states.delta(THEIRS, view).before["id"]
        yield from _conflicts(states, side, (kind, prop), without(rest, gone), why)


def _conflicts(
    states: States, side: str, what: tuple[NodeOrEdgeType, Property], rows: pa.Table, why: str
) -> Iterator[Conflict]:
    if not rows.num_rows:
        return
    kind, prop = what
    other = THEIRS if side == OURS else OURS
    ids = rows["id"].combine_chunks()
    images = {side: rows[prop.name].to_pylist()}
    for name, state in (("base", states.base), (other, states.of(other))):
        images[name] = _values(state, kind, prop, ids)
    for number, id in enumerate(ids.to_pylist()):
        cells: dict[str, Any] = {name: values[number] for name, values in images.items()}
        message = f"{kind.name} {id!r}: {side} set {prop.name} to {cells[side]!r}, {why}"
        yield Conflict(LOST_VALUE, kind.name, id, prop.name, message=message, **cells)


def _values(state: Snapshot, kind: NodeOrEdgeType, prop: Property, ids: pa.Array) -> list[Any]:
    """The values of a property by id, as a state has them under its own schema; None if it has none."""
    stored = kinds_of(state.catalog).get(kind.table_id)
    held = [] if stored is None else stored.properties.values()
    name = next((p.name for p in held if p.property_id == prop.property_id), None)
    if stored is None or name is None:
        return [None] * len(ids)
    rows = lookup(state, stored, ids)
    values: list[Any] = rows[name].take(positions(ids, rows["id"])).to_pylist()
    return values
