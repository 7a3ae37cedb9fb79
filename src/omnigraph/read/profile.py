"""A profile of a state: the rows of each type, statistics of its columns, and how edges are distributed over nodes.

Columns are read one at a time, so a profile needs the memory of one column, whatever the number of columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import TableNotFound
from omnigraph.model.catalog import NodeOrEdgeType
from omnigraph.model.frozen import frozen
from omnigraph.values.spelling import fields_json, to_json

ENDS = ("src", "dst")


@frozen
class ColumnProfile:
    """A column's values: how many are missing, how many are distinct, their minimum and maximum."""

    name: str
    type: str
    nulls: int
    distinct: int | None = None  # none for lists, vectors and blobs
    least: Any = None
    most: Any = None
    mean: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The shape every surface uses."""
        return {
            "name": self.name,
            "type": self.type,
            "nulls": self.nulls,
            "distinct": self.distinct,
            "least": to_json(self.least),
            "most": to_json(self.most),
            "mean": self.mean,
        }


@frozen
class Degrees:
    """How many edges of a type the nodes at one end have, those without any left out."""

    nodes: int  # that have one at least
    mean: float
    most: int

    def to_json(self) -> dict[str, Any]:
        """The shape every surface uses."""
        return fields_json(self)


@frozen
class TypeProfile:
    """One type: its rows, its columns, and for edges their ends."""

    type: str
    kind: str
    rows: int
    columns: tuple[ColumnProfile, ...] = ()
    degrees: Mapping[str, Degrees] = field(default_factory=dict)  # "out" and "in"

    def to_json(self) -> dict[str, Any]:
        """The shape every surface uses."""
        return fields_json(self)


@frozen
class Profile:
    """The profile of a state; with `before`, beside that of an earlier one."""

    commit: str
    types: tuple[TypeProfile, ...]
    before: Profile | None = None

    def to_json(self) -> dict[str, Any]:
        """The shape every surface uses."""
        return fields_json(self)


def profile(snapshot: Snapshot, types: Iterable[str] | None = None) -> Profile:
    """The profile of the types of a state, or of some of them."""
    kinds = list(snapshot.catalog.entities())
    if types is not None:
        wanted = set(types)
        missing = wanted - {kind.name for kind in kinds}
        if missing:
            raise TableNotFound(f"there is no type {', '.join(sorted(missing))}")
        kinds = [kind for kind in kinds if kind.name in wanted]
    return Profile(snapshot.commit_id, tuple(_type(snapshot, kind) for kind in kinds))


def _type(snapshot: Snapshot, kind: NodeOrEdgeType) -> TypeProfile:
    table = snapshot.table_of(kind)
    columns = tuple(
        _column(name, str(prop.type), table.scan([name])[name])
        for name, prop in kind.properties.items()
        if not prop.type.is_blob
    )
    degrees = {}
    if kind.kind == "edge":
        ends = table.scan(list(ENDS))
        degrees = {way: _degrees(ends[end]) for way, end in zip(("out", "in"), ENDS, strict=True)}
    return TypeProfile(kind.name, kind.kind, table.count(), columns, degrees)


def _column(name: str, type_name: str, values: pa.ChunkedArray) -> ColumnProfile:
    kind, nulls = values.type, values.null_count
    if pa.types.is_nested(kind):
        return ColumnProfile(name, type_name, nulls)
    distinct = pc.count_distinct(values, mode="only_valid").as_py()
    if pa.types.is_boolean(kind) or nulls == len(values):
        return ColumnProfile(name, type_name, nulls, distinct)
    ends = pc.min_max(values).as_py()
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    mean = pc.mean(values).as_py() if numeric else None
    return ColumnProfile(name, type_name, nulls, distinct, ends["min"], ends["max"], mean)


def _degrees(ends: pa.ChunkedArray) -> Degrees:
    if not len(ends):
        return Degrees(0, 0.0, 0)
    counts = ends.value_counts().field("counts")
    return Degrees(len(counts), pc.mean(counts).as_py(), pc.max(counts).as_py())
