"""The columns of one table version, cached by fragment, and rows found by id or by address.

A position counts the physical rows of a version in storage order, deleted ones included: `live` says which rows exist.
So positions do not move when rows are appended or deleted, and what was read of a fragment serves every version that
has the fragment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import LimitExceeded
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.model.columns import one_array
from omnigraph.read.arrays import NO_ROW, Ints, Mask, Positions
from omnigraph.read.budget import checked
from omnigraph.read.cache import Cache
from omnigraph.read.ids import IdIndex
from omnigraph.storage.objects import LargeObjects, locate, open_objects
from omnigraph.storage.tables import ADDRESS, FragmentInfo, Table

T = TypeVar("T")

POSITIONS_MAX = 2**31 - 1
LOAD_ROWS_MAX = 4_000_000  # a larger table's column is loaded only when much of it is wanted
WANTED_PART = 16  # "much" is more than one row in this many
TAKES_MAX = 8  # times a few rows of a column are read alone, before the column is loaded
TAKEN_ROWS_MAX = 1_000
TAKEN_FROM_ROWS_MIN = 50_000  # a smaller table's column is loaded right away
PROBES_MAX = 3  # times ids of a table not loaded yet are looked up in storage
PROBE_ROWS_MIN = 20_000
PROBE_IDS_MAX = 2_000
STRING_BYTES_MAX = 1 << 30  # beyond this a column of strings needs 64-bit offsets


class TableColumns:
    """What queries read of one table version. It is light: the arrays live in the cache."""

    def __init__(self, root: str, table: Table, kind: NodeType | EdgeType, cache: Cache) -> None:
        self.table = table
        self.kind = kind
        self.identity = (root, table.ref.path, table.ref.version)
        self.fragments = table.fragments()
        self._home = (root, table.ref.path)
        self.cache = cache
        self._probes = 0
        self._takes: Counter[str] = Counter()
        sizes = [f.physical_rows for f in self.fragments]
        self.starts: Ints = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
        self.n = int(self.starts[-1])  # positions, deleted rows included
        if self.n > POSITIONS_MAX:
            raise LimitExceeded(
                f"{kind.name} has {self.n:,} stored rows, more than can be read at once",
                help="Compact the graph, or read it with the Spark engine.",
                details={
                    "limit": "positions_max",
                    "limit_value": POSITIONS_MAX,
                    "observed": self.n,
                },
            )
        self.rows = self.n - sum(f.deleted_rows for f in self.fragments)
        self._fragment_ids: Ints = np.array([f.fragment_id for f in self.fragments], np.int64)

    # --- rows ----------------------------------------------------------------------------------------------------

    @cached_property
    def live(self) -> Mask | None:
        """Which positions hold a row; None when all do."""
        if self.rows == self.n:
            return None
        return np.concatenate([self.fragment_live(f) for f in self.fragments])

    def fragment_live(self, fragment: FragmentInfo) -> Mask:
        """Which physical rows of a fragment exist."""
        if not fragment.deleted_rows:
            return np.ones(fragment.physical_rows, np.bool_)
        key = (*self._home, fragment.identity, "live")
        return self.cache.get_or_build(key, lambda: self._read_live(fragment), lambda m: m.nbytes)

    def _read_live(self, fragment: FragmentInfo) -> Mask:
        mask = np.zeros(fragment.physical_rows, np.bool_)
        for batch in checked(
            self.table.batches([], with_address=True, fragments=[fragment.fragment_id])
        ):
            addresses = batch.column(ADDRESS).to_numpy(zero_copy_only=False)
            mask[(addresses & np.uint64(0xFFFFFFFF)).astype(np.int64)] = True
        return mask

    @cached_property
    def everything(self) -> Positions:
        """The positions of all rows. Always the same array object, which `take` recognizes."""
        if self.live is None:
            return np.arange(self.n, dtype=np.int32)
        return np.flatnonzero(self.live).astype(np.int32)

    def addresses(self, positions: Positions) -> pa.UInt64Array:
        """Where storage keeps the rows at these positions."""
        at = self.starts.searchsorted(positions, "right") - 1
        found = (self._fragment_ids[at] << 32) + (positions - self.starts[at])
        return pa.array(found.astype(np.uint64))

    def positions_at(self, addresses: pa.Array | pa.ChunkedArray) -> Positions:
        """The inverse of `addresses`."""
        raw = one_array(addresses).to_numpy(zero_copy_only=False).astype(np.int64)
        order = np.argsort(self._fragment_ids)
        at = order[self._fragment_ids[order].searchsorted(raw >> 32)]
        found: Positions = (self.starts[at] + (raw & 0xFFFFFFFF)).astype(np.int32)
        return found

    # --- columns -------------------------------------------------------------------------------------------------

    def column(self, name: str) -> pa.Array:
        """The whole column by position. Values at deleted rows are meaningless."""
        return self.cache.get_or_build(
            (*self.identity, name), lambda: self._assemble(name), lambda a: a.nbytes
        )

    def cells(self, name: str, fragment: FragmentInfo) -> Hashable:
        """The identity of the values of a column in a fragment, the same in every version."""
        return self.table.cells(name, fragment)

    def is_loaded(self, name: str) -> bool:
        """Whether the whole column is in memory."""
        return self._rows_to_load(name) == 0

    def _rows_to_load(self, name: str) -> int:
        if self.cache.get((*self.identity, name)) is not None:
            return 0
        missing = (f for f in self.fragments if self._cached_chunk(f, name) is None)
        return sum(f.physical_rows for f in missing)

    def take(self, name: str, positions: Positions) -> pa.Array:
        """The values at these positions; null where a position is -1."""
        if positions is self.__dict__.get("everything") and self.rows == self.n:
            return self.column(name)
        missing = bool(len(positions)) and int(positions.min()) < 0
        if not missing and self._prefers_rows(name, len(positions)):
            found = self.table.take(self.addresses(positions), [name]).column(0)
            return _joined(found.chunks, found.type)
        if len(positions) == 1 and not missing:
            return self.column(name).slice(int(positions[0]), 1)
        index = pa.array(positions, mask=positions < 0) if missing else pa.array(positions)
        return self.column(name).take(index)

    def _prefers_rows(self, name: str, wanted: int) -> bool:
        """Whether rows are read rather than the column: always of a very large table, of others the first few times."""
        if wanted * WANTED_PART >= self.n or self.is_loaded(name):
            return False
        if self.n > LOAD_ROWS_MAX:
            return True
        if not self._are_few(wanted):
            return False
        self._takes[name] += 1
        return self._takes[name] <= TAKES_MAX

    def _are_few(self, wanted: int) -> bool:
        return wanted <= TAKEN_ROWS_MAX and self.n >= TAKEN_FROM_ROWS_MIN

    def load(self, names: Iterable[str], wanted: int) -> None:
        """Read columns of which `wanted` rows are needed: those missing in the same fragments by one scan."""
        if self.n > LOAD_ROWS_MAX or self._are_few(wanted):
            return
        together: dict[tuple[int, ...], list[str]] = {}
        for name in names:
            if self.cache.get((*self.identity, name)) is None:
                chunks = [self._cached_chunk(f, name) for f in self.fragments]
                together.setdefault(_missing(chunks), []).append(name)
        for which, some in together.items():
            if len(some) > 1:
                self._read_chunks(some, which)

    def _assemble(self, name: str) -> pa.Array:
        chunks = [self._cached_chunk(f, name) for f in self.fragments]
        missing = _missing(chunks)
        for i, chunk in zip(missing, self._read_chunks([name], missing)[name], strict=True):
            chunks[i] = chunk
        return _joined(chunks, self.table.schema.field(name).type)

    def _cached_chunk(self, fragment: FragmentInfo, name: str) -> pa.Array | None:
        # What was read before anything was deleted holds every row a later deletion leaves.
        key = (*self._home, self.cells(name, fragment))
        whole = self.cache.get(key)
        if whole is not None or not fragment.deleted_rows:
            return whole
        return self.cache.get((*key, fragment.identity))

    def _read_chunks(self, names: Sequence[str], which: Sequence[int]) -> dict[str, list[pa.Array]]:
        """Columns in each of the fragments, kept in the cache; deleted rows have placeholders."""
        if not which:
            return {name: [] for name in names}
        fragments = [self.fragments[i] for i in which]
        some = None if len(which) == len(self.fragments) else [f.fragment_id for f in fragments]
        batches = list(checked(self.table.batches(names, fragments=some)))
        found = {}
        for name in names:
            kind = self.table.schema.field(name).type
            values = _joined([batch.column(name) for batch in batches], kind)
            found[name] = self._cut(name, values, fragments)
        return found

    def _cut(
        self, name: str, values: pa.Array, fragments: Sequence[FragmentInfo]
    ) -> list[pa.Array]:
        """A column in pieces, one for each fragment, and each in the cache."""
        chunks, start = [], 0
        for fragment in fragments:
            rows = fragment.physical_rows - fragment.deleted_rows
            chunk = self._with_holes(values.slice(start, rows), fragment)
            gone = (fragment.identity,) if fragment.deleted_rows else ()
            self.cache.put((*self._home, self.cells(name, fragment), *gone), chunk, chunk.nbytes)
            chunks.append(chunk)
            start += rows
        return chunks

    def _with_holes(self, values: pa.Array, fragment: FragmentInfo) -> pa.Array:
        if not fragment.deleted_rows:
            return values
        live = self.fragment_live(fragment)
        return values.take(pa.array(np.cumsum(live) - 1, mask=~live))

    # --- ids -----------------------------------------------------------------------------------------------------

    @property
    def ids(self) -> pa.Array:
        return self.column("id")

    def find(self, wanted: str) -> int:
        """The position of one id, or -1."""
        if self._probes_storage(1):
            return int(self._probe(pa.array([wanted]))[0])
        for start, index, live in self._indices:
            row = index.find(wanted)
            if row >= 0 and (live is None or live[row]):
                return start + row
        return NO_ROW

    def find_all(self, wanted: pa.Array) -> Positions:
        """The position of each id, or -1."""
        if self._probes_storage(len(wanted)):
            return self._probe(wanted)
        if len(wanted) * WANTED_PART > self.n:
            return self._match(wanted)
        found = np.full(len(wanted), NO_ROW, np.int32)
        for start, index, live in self._indices:
            rows = index.find_all(wanted)
            hit = rows >= 0
            if live is not None:
                hit[hit] = live[rows[hit]]
            found[hit] = rows[hit] + np.int32(start)
        return found

    def _match(self, wanted: pa.Array) -> Positions:
        """Many ids together: one hash table over all of ours, discarded afterwards."""
        ids = self.ids
        live = None if self.live is None else np.flatnonzero(self.live).astype(np.int32)
        if live is not None and not len(live):
            return np.full(len(wanted), NO_ROW, np.int32)
        value_set = ids if live is None else ids.take(pa.array(live))
        at = pc.index_in(wanted, value_set=value_set).fill_null(NO_ROW)
        rows = at.to_numpy(zero_copy_only=False)
        return rows if live is None else np.where(rows < 0, np.int32(NO_ROW), live[rows])

    @property
    def _indices(self) -> list[tuple[int, IdIndex, Mask | None]]:
        """An index for each fragment: a commit that adds one leaves the others as they are."""
        return self.cache.get_or_build((*self.identity, "indices"), self._index_all, lambda _: 4096)

    def _index_all(self) -> list[tuple[int, IdIndex, Mask | None]]:
        self.column("id")
        return [
            (
                int(self.starts[i]),
                self._index_of(i),
                self.fragment_live(f) if f.deleted_rows else None,
            )
            for i, f in enumerate(self.fragments)
        ]

    def _index_of(self, i: int) -> IdIndex:
        fragment = self.fragments[i]
        start, rows = int(self.starts[i]), fragment.physical_rows
        ids = (*self._home, self.cells("id", fragment))
        gone = () if self.cache.get(ids) is not None else (fragment.identity,)
        return self.cache.get_or_build(
            (*ids, *gone, "index"),
            lambda: IdIndex(self.ids.slice(start, rows)),
            lambda index: index.nbytes,
        )

    def _probes_storage(self, wanted: int) -> bool:
        """The first look-ups in a large table that is not loaded use its index."""
        if wanted > PROBE_IDS_MAX or self._rows_to_load("id") < PROBE_ROWS_MIN:
            return False
        self._probes += 1
        return self._probes <= PROBES_MAX or self.n > LOAD_ROWS_MAX

    def _probe(self, wanted: pa.Array) -> Positions:
        found = self.table.lookup("id", wanted, ["id"], with_address=True)
        if not found.num_rows:
            return np.full(len(wanted), NO_ROW, np.int32)
        at = pc.index_in(wanted, value_set=found.column("id").combine_chunks()).fill_null(-1)
        rows = at.to_numpy(zero_copy_only=False)
        positions = self.positions_at(found.column(ADDRESS))
        return np.where(rows < 0, np.int32(NO_ROW), positions[rows])

    # --- what others derive --------------------------------------------------------------------------------------

    @cached_property
    def objects(self) -> LargeObjects:
        """Where the table's derived files are, beside it."""
        return cast(LargeObjects, open_objects(locate(self.identity[0])))

    def derived(self, name: str, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """Something computed from this version (a text index, …), kept within the same memory budget."""
        return self.cache.get_or_build((*self.identity, "derived", name), make, size)


def _missing(chunks: Sequence[pa.Array | None]) -> tuple[int, ...]:
    return tuple(i for i, chunk in enumerate(chunks) if chunk is None)


def _joined(chunks: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    if len(chunks) == 1:
        return chunks[0]
    if not chunks:
        return pa.array([], kind)
    if pa.types.is_string(kind) and sum(c.nbytes for c in chunks) > STRING_BYTES_MAX:
        chunks = [c.cast(pa.large_string()) for c in chunks]
    return pa.concat_arrays(chunks)


def columns_of(snapshot: Snapshot, kind: NodeType | EdgeType, cache: Cache) -> TableColumns:
    """The columns of a type in a snapshot; shared by every query that reads the same version."""
    ref = snapshot.ref(kind.table_id)
    return cache.get_or_build(
        (snapshot.root, ref.path, ref.version, snapshot.commit.schema, kind.name, "columns"),
        lambda: TableColumns(snapshot.root, snapshot.table(kind.table_id), kind, cache),
        lambda _: 4096,
    )
