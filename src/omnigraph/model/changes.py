"""What a write wants, in the one form every way in shares: mutation, load, merge and schema change.

`Incoming` is what somebody gave: rows of one type that may leave fields out. `Changes` is what will be there then:
whole rows, split into new ones, changed ones and those that go. Checks look at `Changes`; plans are made from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Origin:
    """Where rows came from, for messages: a file (or none) and the line or record number of each row."""

    file: str | None = None
    lines: pa.Int64Array | None = None

    def place(self, row: int) -> tuple[str | None, int | None]:
        """File and line of one row."""
        return self.file, None if self.lines is None else self.lines[row].as_py()


@dataclass(frozen=True, slots=True)
class Incoming:
    """Rows of one type as they were given, in the columns of its table.

    `rows` has `id` (edges: `src`, `dst`) and any of the properties. A property that is no column was given by no row.
    `absent` marks, per property, the rows that left it out: there a stored value stays, while a null that is not absent
    clears it.
    """

    type_name: str
    rows: pa.Table
    absent: Mapping[str, pa.BooleanArray] = field(default_factory=dict)
    origin: Origin = Origin()


@dataclass(frozen=True, slots=True)
class TypeChanges:
    """What will happen to the rows of one type; whole rows in the columns of its table, each id once.

    `before` and `deletes` hold the stored rows that change or go: `id` (edges: `src`, `dst`), the members of unique
    groups, and the row address (null for rows an earlier statement of the same write made).
    """

    type_name: str
    inserts: pa.Table | None = None
    updates: pa.Table | None = None
    before: pa.Table | None = None
    deletes: pa.Table | None = None
    replaces: bool = False  # everything stored goes first; `inserts` is all there will be
    insert_origin: Origin = Origin()
    update_origin: Origin = Origin()

    @property
    def is_empty(self) -> bool:
        parts = (self.inserts, self.updates, self.deletes)
        return not self.replaces and not any(p is not None and p.num_rows for p in parts)


@dataclass(frozen=True, slots=True)
class Changes:
    """What will happen, by type name."""

    types: Mapping[str, TypeChanges] = field(default_factory=dict)

    def __iter__(self) -> Iterator[TypeChanges]:
        """Nodes and edges alike, in order of their names."""
        return (self.types[name] for name in sorted(self.types))

    def of(self, type_name: str) -> TypeChanges:
        return self.types.get(type_name) or TypeChanges(type_name)
