"""The interface of stored tables. `lance/` is the one implementation; simulations bring another.

A table is a folder with immutable versions. `Table` is one opened version: concurrent writes do not change what it
reads. `stage` makes a new version that stays invisible until a graph commit names it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
import pyarrow as pa

from omnigraph.lang.ir import Expr
from omnigraph.model.frozen import frozen

ADDRESS = "_rowaddr"  # the column name under which row addresses are returned
FRAGMENT_ROWS_MAX = 2**20  # of a full one
CHEAP_ROWS = 2**16  # fragments up to this size are always merged
DELETED_PART_MAX = 0.1  # of a fragment, before it is rewritten without its deleted rows


@frozen
class TableRef:
    """A table version: the folder relative to the graph's root, and the version (unsigned 64-bit)."""

    path: str
    version: int


@frozen
class FragmentInfo:
    """A fragment of a version. Two fragments are the same data exactly when `identity` is equal."""

    fragment_id: int
    physical_rows: int
    deleted_rows: int
    identity: str  # data files and deletion file
    files: str  # only data files
    beside: tuple[
        tuple[str, frozenset[int]], ...
    ] = ()  # files added later, and the columns they hold

    @property
    def rows_file(self) -> str:
        """The file the rows were written to: fragments that share it have the same rows in the same places."""
        return self.files.split(",", 1)[0]

    @property
    def live_rows(self) -> int:
        return self.physical_rows - self.deleted_rows


Group: TypeAlias = tuple[
    int, tuple[int, ...]
]  # live rows, and the ids of the fragments they are in


def rewrite_groups(fragments: Iterable[FragmentInfo]) -> tuple[tuple[int, ...], ...]:
    """The ids of fragments to rewrite, each group into one; empty if rewriting would gain nothing.

    Small fragments are merged; a large one is rewritten when at least as many rows are added to it, so that a row is
    rewritten only a few times and a table has few fragments. The result is a fixed point.
    """
    each = {f.fragment_id: f for f in fragments}
    groups: list[Group] = [(f.live_rows, (i,)) for i, f in each.items()]
    fewer = _together(groups)
    while len(fewer) < len(groups):
        groups, fewer = fewer, _together(fewer)
    worn = {i for i, f in each.items() if f.deleted_rows > DELETED_PART_MAX * f.physical_rows}
    chosen = (ids for _, ids in groups if len(ids) > 1 or worn & set(ids))
    return tuple(sorted(tuple(sorted(ids)) for ids in chosen))


def _together(groups: Iterable[Group]) -> list[Group]:
    """From the largest to the smallest, each with the one before it if they belong together."""
    stack: list[Group] = []
    for group in sorted(groups, reverse=True):
        stack.append(group)
        while len(stack) > 1 and _belong_together(stack[-2][0], stack[-1][0]):
            (rows, ids), (more, others) = stack.pop(), stack.pop()
            stack.append((rows + more, others + ids))
    return stack


def _belong_together(larger: int, smaller: int) -> bool:
    fits = larger + smaller <= FRAGMENT_ROWS_MAX
    return fits and larger <= max(smaller, CHEAP_ROWS)


class Cells(NamedTuple):
    """See `Table.cells`: the values of a column as they lie in one data file."""

    file: str
    column: str  # the column as the file knows it, and its type


@frozen
class IndexInfo:
    """An index of a version and the fragments it covers."""

    name: str
    column: str
    kind: str
    covered_fragments: frozenset[int]
    bytes: int = 0
    metric: str = ""  # of an index on vectors: l2, cosine or dot


@frozen
class NewFragments:
    """Data files written beforehand (by Spark tasks, or by a merge that adopts them), as opaque descriptions."""

    descriptions: tuple[str, ...]  # JSON of each fragment
    rows: int


@frozen
class RowAddresses:
    """Stored rows of a version by their addresses alone, in order, each once: there may be many."""

    addresses: pa.UInt64Array

    @classmethod
    def of(cls, addresses: Any) -> RowAddresses:
        """From numbers in any order."""
        return cls(pa.array(np.unique(np.asarray(addresses, np.uint64))))

    def __len__(self) -> int:
        return len(self.addresses)


@frozen
class ColumnEdit:
    """A change of a table's columns. Renaming moves no data; adding fills the given constant, or null."""

    add: tuple[tuple[pa.Field, Any], ...] = ()
    rename: tuple[tuple[str, str], ...] = ()
    drop: tuple[str, ...] = ()
    cast: tuple[pa.Field, ...] = ()


@frozen
class IndexEdit:
    """Build missing coverage: an index of this kind over the fragments it does not cover yet, or anew (`replace`)."""

    column: str
    kind: str  # BTREE, BITMAP, IVF_FLAT, ...
    replace: bool = False
    options: tuple[tuple[str, Any], ...] = ()


@frozen
class TableEdit:
    """Everything that turns one version of a table into the next; all of it becomes ONE version.

    Order of meaning: columns are edited, `delete` (addresses of rows in the base) is removed or, with `replace_all`,
    every row; then `append` rows are added; then indices are built over the result. `earlier` is the result of
    the same edit on another version: its files may be reused.
    """

    columns: ColumnEdit | None = None
    replace_all: bool = False
    delete: pa.UInt64Array | None = None
    append: pa.Table | Iterable[pa.RecordBatch] | NewFragments | None = None
    indices: tuple[IndexEdit, ...] = ()
    drop_indices: tuple[str, ...] = ()
    compact: bool = False
    earlier: Staged | None = None


@frozen
class Staged:
    """A version that was written but not published.

    `replaced` names base fragments (by identity) this version removes or rewrites, `appended` describes the fragments
    it adds, which is enough to add them to another base. With `only_appends` it adds rows and absorbs small fragments
    and does nothing else, so `recommit` may move it. `extra` belongs to the store; `indices_failed` in it lists
    indices that could not be built during a write.
    """

    ref: TableRef
    base: TableRef
    rows: int  # live rows of the new version
    replaced: frozenset[str] = frozenset()
    appended: tuple[str, ...] = ()
    only_appends: bool = False
    written: NewFragments | None = None  # only the new rows, for another base
    bytes_written: int = 0
    extra: dict[str, Any] = field(default_factory=dict)


class Table(Protocol):
    """One opened version of a table. Immutable, and safe to share between threads."""

    @property
    def ref(self) -> TableRef: ...
    @property
    def schema(self) -> pa.Schema: ...
    def count(self, predicate: Expr | None = None) -> int: ...

    def scan(
        self,
        columns: Sequence[str],
        predicate: Expr | None = None,
        *,
        limit: int | None = None,
        with_address: bool = False,
    ) -> pa.Table:
        """All rows that satisfy the predicate, in storage order."""
        ...

    def batches(
        self,
        columns: Sequence[str],
        predicate: Expr | None = None,
        *,
        with_address: bool = False,
        batch_rows: int = 65_536,
        fragments: Sequence[int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The same, as a stream; optionally of some fragments only."""
        ...

    def lookup(
        self, column: str, values: pa.Array, columns: Sequence[str], *, with_address: bool = False
    ) -> pa.Table:
        """The rows whose column equals one of the values: through an index where it covers, by scan elsewhere."""
        ...

    def take(self, addresses: pa.UInt64Array, columns: Sequence[str]) -> pa.Table:
        """The rows at these addresses, in the given order."""
        ...

    def fragments(self) -> tuple[FragmentInfo, ...]: ...

    def cells(self, column: str, fragment: FragmentInfo) -> Hashable:
        """An identity of a column's values in a fragment: if two are equal, so are the values, position by position.

        Unlike a column's name, it changes when the name is reused or the column moves to another file.
        """
        ...

    def deleted_rows(self, fragment: FragmentInfo) -> pa.UInt32Array:
        """The positions of deleted rows in a fragment, in order."""
        ...

    def indices(self) -> tuple[IndexInfo, ...]: ...

    def files(self) -> frozenset[str]:
        """Every object this version needs, relative to the table's folder; a trailing slash names a whole folder."""
        ...


@runtime_checkable
class WrittenTable(Protocol):
    """A table whose data files can be read as written, ignoring later deletions."""

    def cells(self, column: str, fragment: FragmentInfo) -> Cells: ...

    def written(self, column: str, fragment: FragmentInfo) -> Iterator[pa.Array]:
        """The values of a column in a fragment, those of deleted rows included."""
        ...


@runtime_checkable
class VectorTable(Protocol):
    """A table that may have indices over vectors."""

    def near(self, column: str, vector: Sequence[float], count: int, probes: int) -> pa.UInt64Array:
        """Addresses of rows that are likely among the nearest: by the index on the column, and by exact distances for
        rows it does not cover."""
        ...


class StoredBlob(Protocol):
    """The bytes of one blob, read piece by piece."""

    def size(self) -> int: ...
    def read_range(self, start: int, length: int, /) -> bytes: ...


@runtime_checkable
class BlobTable(Protocol):
    """A table whose blobs can be read without loading them whole."""

    def blob(self, column: str, address: int) -> StoredBlob | None:
        """The blob of the row at an address; None for null."""
        ...


class TableStore(Protocol):
    """Opens and stages versions of tables under one graph's root."""

    def create(self, path: str, schema: pa.Schema) -> TableRef:
        """A new, empty table; its first version is its only ordinary (not detached) one.

        A field of `large_binary` with the metadata `omnigraph.blob` = `true` is stored beside the other columns.
        """
        ...

    def open(self, ref: TableRef) -> Table:
        """Through the shared cache of handles; a version opened before costs nothing."""
        ...

    def stage(self, base: TableRef, edit: TableEdit) -> Staged:
        """Write a new version of the table on top of exactly `base`."""
        ...

    def recommit(self, staged: Staged, base: TableRef) -> Staged | None:
        """Move the data of a staged version to another base without rewriting it.

        None if that is not possible: it did more than append (or than build indices), or a fragment it absorbed has
        changed, or the columns have.
        """
        ...

    def write_fragments(
        self, base: TableRef, rows: pa.Table | Iterable[pa.RecordBatch]
    ) -> NewFragments:
        """Write data files for a later `append`, without making a version."""
        ...

    def sync(self, staged: Sequence[Staged]) -> None:
        """Make everything written for these versions durable. A no-op on object stores."""
        ...
