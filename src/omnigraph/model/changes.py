"""The changes of a write, in one form for all of them: mutation, load, merge and schema change.

`Incoming` is the input: rows of one type that may leave fields out. `Changes` is the result: whole rows, split into
new, changed and deleted ones. Checks read `Changes`; plans are made from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

import pyarrow as pa

from omnigraph.model.catalog import EdgeType, NodeOrEdgeType
from omnigraph.model.frozen import frozen


@frozen
class Origin:
    """Where rows came from, for messages: a file (or none, or one per row), and each row's line or record number."""

    file: str | None = None
    lines: pa.Int64Array | None = None
    files: pa.StringArray | None = None  # if the rows are from several files

    def place(self, row: int) -> tuple[str | None, int | None]:
        """File and line of one row."""
        file = self.file if self.files is None else self.files[row].as_py()
        return file, None if self.lines is None else self.lines[row].as_py()

    def filter(self, mask: pa.BooleanArray) -> Origin:
        """The origin of some of the rows."""
        lines = None if self.lines is None else self.lines.filter(mask)
        return Origin(self.file, lines, None if self.files is None else self.files.filter(mask))

    def take(self, rows: pa.Array) -> Origin:
        """The origin of rows by number."""
        lines = None if self.lines is None else self.lines.take(rows)
        return Origin(self.file, lines, None if self.files is None else self.files.take(rows))


NOWHERE = Origin()


@frozen
class Marks:
    """What change records say about their rows: which of several is newer, and which are deletions."""

    order: pa.Int64Array | None = None
    deleted: pa.BooleanArray | None = None

    @property
    def are_given(self) -> bool:
        return self.order is not None or self.deleted is not None

    def filter(self, mask: pa.BooleanArray) -> Marks:
        """The marks of some of the rows."""
        return Marks(
            *(None if one is None else one.filter(mask) for one in (self.order, self.deleted))
        )

    def take(self, rows: pa.Array) -> Marks:
        """The marks of rows by number."""
        return Marks(
            *(None if one is None else one.take(rows) for one in (self.order, self.deleted))
        )


UNMARKED = Marks()


def joined(marks: Sequence[Marks], rows: Sequence[int]) -> Marks:
    """The concatenated marks of parts; a part without marks has no order and no deletions."""
    if not any(one.are_given for one in marks):
        return UNMARKED
    nothing, stays = pa.scalar(None, pa.int64()), pa.scalar(False)
    both = zip(marks, rows, strict=True)
    filled = [
        (
            pa.repeat(nothing, n) if one.order is None else one.order,
            pa.repeat(stays, n) if one.deleted is None else one.deleted,
        )
        for one, n in both
    ]
    return Marks(*(pa.concat_arrays(parts) for parts in zip(*filled, strict=True)))


@frozen
class Incoming:
    """Rows of one type as given, in the columns of its table.

    `rows` may have `id` (edges: has `src` and `dst`) and any of the properties. If `id` is missing or null, it is
    derived from the key or fresh. A property without a column was given by no row. `absent` marks, per property, the
    rows that left it out: there a stored value stays, while a null that is not absent clears it.
    """

    type_name: str
    rows: pa.Table
    absent: Mapping[str, pa.BooleanArray] = field(default_factory=dict)
    origin: Origin = NOWHERE
    edge: bool = False  # an edge type is meant even where a node type has the same name
    marks: Marks = UNMARKED


@frozen
class TypeChanges:
    """What will happen to the rows of one type; whole rows in the columns of its table, each id once.

    `before` and `deletes` hold the stored rows that change or are deleted: `id` (edges: `src`, `dst`), the members of
    unique groups, and the row address (null for rows an earlier statement of the same write made).
    """

    kind: NodeOrEdgeType
    inserts: pa.Table | None = None
    updates: pa.Table | None = None
    before: pa.Table | None = None
    deletes: pa.Table | None = None
    replaces: bool = False  # all stored rows are deleted first; only `inserts` remain
    insert_origin: Origin = NOWHERE
    update_origin: Origin = NOWHERE

    @property
    def is_empty(self) -> bool:
        parts = (self.inserts, self.updates, self.deletes)
        return not self.replaces and not any(p is not None and p.num_rows for p in parts)


@frozen
class Changes:
    """What will happen, by table id: a node type and an edge type may share a name, never a table."""

    tables: Mapping[str, TypeChanges] = field(default_factory=dict)

    def __iter__(self) -> Iterator[TypeChanges]:
        """Node types, then edge types, each by name."""
        return iter(
            sorted(self.tables.values(), key=lambda c: (isinstance(c.kind, EdgeType), c.kind.name))
        )

    def of(self, kind: NodeOrEdgeType) -> TypeChanges:
        """What happens to one type, possibly nothing."""
        return self.tables.get(kind.table_id) or TypeChanges(kind)

    @property
    def is_empty(self) -> bool:
        return all(change.is_empty for change in self.tables.values())
