"""The columns of one table version, and rows found by id or by address.

A position counts the physical rows of a version in storage order, deleted ones included: `live` says which rows exist.
So positions do not move when rows are appended or deleted, and what was read of a fragment serves every version that
has the fragment: a column is kept once, for a whole version, and its fragments are found as parts of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import LimitExceeded
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.model.columns import one_array
from omnigraph.model.frozen import frozen
from omnigraph.read.arrays import NO_ROW, AnyArray, Ints, Mask, Positions, as_matrix
from omnigraph.read.budget import TOPOLOGY, Read, charged, checked
from omnigraph.read.cache import Cache
from omnigraph.read.ids import IdIndex, IdStream
from omnigraph.storage.objects import LargeObjects, locate, open_objects
from omnigraph.storage.tables import ADDRESS, FragmentInfo, Table

T = TypeVar("T")

POSITIONS_MAX = 2**31 - 1
LOAD_ROWS_MAX = 4_000_000  # a larger table's column is loaded only when much of it is wanted
WANTED_PART = 16  # "much" is more than one row in this many
TAKES_MAX = 8  # times a few rows of a column are read alone, before the column is loaded
TAKEN_ROWS_MAX = 1_000
TAKEN_FROM_ROWS_MIN = 50_000  # a smaller table's column is loaded right away
CACHED_PART = 2  # one column of vectors may fill 1/n of the cache
SCANS_MAX = 1  # times such a column is read piece by piece, before it is loaded
SCANNED_FROM_BYTES_MIN = 16 << 20  # a smaller one is loaded right away
PIECE_BYTES = 2 << 20
PROBES_MAX = 3  # times ids of a table not loaded yet are looked up in storage
PROBE_ROWS_MIN = 20_000
PROBE_IDS_MAX = 2_000
STRING_BYTES_MAX = 1 << 30  # beyond this a column of strings needs 64-bit offsets
TABLE_BYTES = 4_096  # what is remembered of a version
FRAGMENT_BYTES = 256  # and of each fragment


@frozen
class Part:
    """What is kept of a fragment: its share of something kept, and counted, for a version."""

    owner: Hashable
    start: int


Index = tuple[int, IdIndex, Mask | None]  # of a fragment: its first position, and which rows exist


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
        self._scans: Counter[str] = Counter()
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

    @property
    def live(self) -> Mask | None:
        """Which positions hold a row; None when all do."""
        if self.rows == self.n:
            return None
        if len(self.fragments) == 1:
            return self.fragment_live(self.fragments[0])
        return self.cache.get_or_build((*self.identity, "live"), self._join_live, _nbytes)

    def _join_live(self) -> Mask:
        return np.concatenate([self.fragment_live(f) for f in self.fragments])

    def fragment_live(self, fragment: FragmentInfo) -> Mask:
        """Which physical rows of a fragment exist."""
        if not fragment.deleted_rows:
            return np.ones(fragment.physical_rows, np.bool_)
        key = (*self._home, fragment.identity, "live")
        return self.cache.get_or_build(key, lambda: self._read_live(fragment), _nbytes)

    def _read_live(self, fragment: FragmentInfo) -> Mask:
        mask = np.zeros(fragment.physical_rows, np.bool_)
        for batch in checked(
            self.table.batches([], with_address=True, fragments=[fragment.fragment_id])
        ):
            addresses = batch.column(ADDRESS).to_numpy(zero_copy_only=False)
            mask[(addresses & np.uint64(0xFFFFFFFF)).astype(np.int64)] = True
        return mask

    @property
    def everything(self) -> Positions:
        """The positions of all rows. The same array object while it is kept; `take` recognizes it, and its slices."""
        return self.cache.get_or_build((*self.identity, "everything"), self._positions, _nbytes)

    def _positions(self) -> Positions:
        live = self.live
        if live is None:
            return np.arange(self.n, dtype=np.int32)
        return np.flatnonzero(live).astype(np.int32)

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
            (*self.identity, name), lambda: self._assemble(name), _nbytes
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
        missing = (f for f in self.fragments if self._found(f, name)[1] is None)
        return sum(f.physical_rows for f in missing)

    def take(self, name: str, positions: Positions) -> pa.Array:
        """The values at these positions; null where a position is -1."""
        run = self._is_run(positions)
        if run and self.rows == self.n:
            return self.column(name).slice(int(positions[0]), len(positions))
        missing = not run and bool(len(positions)) and int(positions.min()) < 0
        if not run and not missing and self._prefers_rows(name, len(positions)):
            return self._read_rows(name, positions)
        if len(positions) == 1 and not missing:
            return self.column(name).slice(int(positions[0]), 1)
        index = pa.array(positions, mask=positions < 0) if missing else pa.array(positions)
        return self.column(name).take(index)

    def _is_run(self, positions: Positions) -> bool:
        """Whether they are all rows, or a slice of them: what follows will probably read the others."""
        if positions.base is None and len(positions) != self.rows:
            return False
        if not len(positions) or positions.strides != (positions.itemsize,):
            return False
        known = self.cache.get((*self.identity, "everything"))
        return known is not None and (positions is known or positions.base is known)

    def _prefers_rows(self, name: str, wanted: int) -> bool:
        """Whether rows are read rather than the column: always of a very large table, of others the first few times."""
        if wanted * WANTED_PART >= self.n or self.is_loaded(name):
            return False
        if self.n > LOAD_ROWS_MAX or not self._fits(name):
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
            if not self._width(name) and self.cache.get((*self.identity, name)) is None:
                chunks = [self._found(f, name)[1] for f in self.fragments]
                together.setdefault(_missing(chunks), []).append(name)
        for which, some in together.items():
            if len(some) > 1:
                self._read_chunks(some, which)

    def _assemble(self, name: str) -> pa.Array:
        places = [self._found(f, name) for f in self.fragments]
        join = self._join_vectors if self._width(name) else self._join
        whole = join(name, [chunk for _, chunk in places])
        owner = (*self.identity, name)
        for (key, _), start in zip(places, self.starts.tolist()[:-1], strict=True):
            self.cache.put(key, Part(owner, start), FRAGMENT_BYTES)
        return whole

    def _join(self, name: str, chunks: list[pa.Array | None]) -> pa.Array:
        """The column, of what the cache has of its fragments and what is read."""
        missing = _missing(chunks)
        for i, chunk in zip(missing, self._read_chunks([name], missing)[name], strict=True):
            chunks[i] = chunk
        return _joined([chunk for chunk in chunks if chunk is not None], self._type(name))

    def _found(self, fragment: FragmentInfo, name: str) -> tuple[Hashable, pa.Array | None]:
        """Where the cache keeps the values of a fragment, and the values, if it does."""
        # What was read before anything was deleted holds every row a later deletion leaves.
        key: tuple[Hashable, ...] = (*self._home, self.cells(name, fragment))
        found = self._kept(key, fragment)
        if found is None and fragment.deleted_rows:
            key = (*key, fragment.identity)
            found = self._kept(key, fragment)
        return key, found

    def _kept(self, key: Hashable, fragment: FragmentInfo) -> pa.Array | None:
        found = self.cache.get(key)
        if not isinstance(found, Part):
            return found
        whole = self.cache.get(found.owner)
        return None if whole is None else whole.slice(found.start, fragment.physical_rows)

    def _read_chunks(self, names: Sequence[str], which: Sequence[int]) -> dict[str, list[pa.Array]]:
        """Columns in each of the fragments, kept in the cache; deleted rows have placeholders."""
        if not which:
            return {name: [] for name in names}
        fragments = [self.fragments[i] for i in which]
        some = None if len(which) == len(self.fragments) else [f.fragment_id for f in fragments]
        batches = []
        with Read(self.cache.bytes_max) as read:
            for batch in checked(self.table.batches(names, fragments=some)):
                read.add(batch.nbytes)
                batches.append(batch)
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

    # --- vectors -------------------------------------------------------------------------------------------------

    def prefers_column(self, name: str, wanted: int) -> bool:
        """Whether work on this many vectors uses the whole column, loaded if need be, or `alone` and `pieces`."""
        missing = self._rows_to_load(name)
        if not missing:
            return True
        if not self._fits(name):
            return False
        if missing * 2 < self.n or self.n * self._width(name) < SCANNED_FROM_BYTES_MIN:
            return True
        if wanted * WANTED_PART < self.n:
            self._takes[name] += 1
            return self._takes[name] > TAKES_MAX
        self._scans[name] += 1
        return self._scans[name] > SCANS_MAX

    def alone(self, name: str, positions: Positions) -> pa.Array:
        """The values at these positions; the column is not loaded."""
        if self.is_loaded(name):
            return self.column(name).take(pa.array(positions))
        return self._read_rows(name, positions)

    def pieces(
        self, name: str, fragments: Sequence[int] | None = None
    ) -> Iterator[tuple[Positions, pa.Array]]:
        """The rows of the table, or of some fragments, piece by piece: their positions and values. Nothing is kept."""
        rows = max(1, PIECE_BYTES // max(1, self._width(name)))
        for batch in checked(
            self.table.batches([name], with_address=True, batch_rows=rows, fragments=fragments)
        ):
            yield self.positions_at(batch.column(ADDRESS)), batch.column(name)

    def _read_rows(self, name: str, positions: Positions) -> pa.Array:
        found = self.table.take(self.addresses(positions), [name]).column(0)
        return _joined(found.chunks, found.type)

    def _width(self, name: str) -> int:
        """The bytes of one vector of a column; 0 if it holds none."""
        kind = self._type(name)
        if not pa.types.is_fixed_size_list(kind):
            return 0
        return int(kind.list_size * kind.value_type.bit_width // 8)

    def _fits(self, name: str) -> bool:
        """Whether the cache can keep a column of vectors; one that it would drop at once is not loaded."""
        return self.n * self._width(name) * CACHED_PART <= self.cache.bytes_max

    def _join_vectors(self, name: str, chunks: list[pa.Array | None]) -> pa.Array:
        """The same for vectors, in one matrix: they are never held twice."""
        kind = self._type(name)
        with Read(self.cache.bytes_max) as read:
            read.add(self.n * self._width(name))
            matrix = np.empty((self.n, kind.list_size), kind.value_type.to_pandas_dtype())
            known = np.zeros(self.n, np.bool_)
            for where, values in self._vectors(name, chunks):
                matrix[where] = as_matrix(values)
                known[where] = values.is_valid().to_numpy(zero_copy_only=False)
        nulls = None if known.all() else pa.array(~known)
        flat = pa.array(matrix.ravel())
        return pa.FixedSizeListArray.from_arrays(flat, type=kind, mask=nulls)

    def _vectors(
        self, name: str, chunks: Sequence[pa.Array | None]
    ) -> Iterator[tuple[slice | Positions, pa.Array]]:
        """Where vectors belong, and what they are: those of the cache, then those that are read."""
        for start, chunk in zip(self.starts.tolist(), chunks, strict=False):
            if chunk is not None:
                yield slice(start, start + len(chunk)), chunk
        missing = [self.fragments[i].fragment_id for i in _missing(chunks)]
        if missing:
            yield from self.pieces(name, missing if len(missing) < len(chunks) else None)

    def _type(self, name: str) -> pa.DataType:
        return self.table.schema.field(name).type

    # --- ids -----------------------------------------------------------------------------------------------------

    @property
    def ids(self) -> pa.Array:
        return self.column("id")

    def find(self, wanted: str) -> int:
        """The position of one id, or -1."""
        if self._probes_storage(1):
            return int(self._probe(pa.array([wanted]))[0])
        ids = self.ids
        for start, index, live in self._indices:
            row = index.find(wanted, ids, start)
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
        ids = self.ids
        for start, index, live in self._indices:
            rows = index.find_all(wanted, ids, start)
            hit = rows >= 0
            if live is not None:
                hit[hit] = live[rows[hit]]
            found[hit] = rows[hit] + np.int32(start)
        return found

    def _match(self, wanted: pa.Array) -> Positions:
        """Many ids together: one hash table over all of ours, discarded afterwards."""
        ids, live = self.ids, self._live_positions
        if live is not None and not len(live):
            return np.full(len(wanted), NO_ROW, np.int32)
        value_set = ids if live is None else ids.take(pa.array(live))
        at = pc.index_in(wanted, value_set=value_set).fill_null(NO_ROW)
        rows = at.to_numpy(zero_copy_only=False)
        return rows if live is None else np.where(rows < 0, np.int32(NO_ROW), live[rows])

    @property
    def _live_positions(self) -> Positions | None:
        """The positions of all rows if they are not simply 0, 1, …"""
        return None if self.live is None else self.everything

    @contextmanager
    def id_stream(self) -> Iterator[IdStream]:
        """For looking up the ids of a whole table of edges; a large column is not kept for it."""
        if self.n > LOAD_ROWS_MAX and not self.is_loaded("id"):
            parts = [batch.column("id") for batch in checked(self.table.batches(["id"]))]
        else:
            live = self._live_positions
            parts = [self.ids if live is None else self.ids.take(pa.array(live))]
        ids = pa.chunked_array(parts, self.table.schema.field("id").type)
        with (
            charged(TOPOLOGY, IdStream.bytes_of(ids)),
            IdStream(ids, self._live_positions) as stream,
        ):
            yield stream

    @property
    def _indices(self) -> list[Index]:
        """An index for each fragment: a commit that adds one leaves the others as they are."""
        return self.cache.get_or_build(
            (*self.identity, "indices"), self._index_all, _bytes_of_indices
        )

    def _index_all(self) -> list[Index]:
        ids = self.ids
        return [self._index_of(i, ids) for i in range(len(self.fragments))]

    def _index_of(self, i: int, ids: pa.Array) -> Index:
        fragment, start = self.fragments[i], int(self.starts[i])
        place, stored = self._found(fragment, "id")
        own = ids.slice(start, fragment.physical_rows) if stored is None else stored
        part = self.cache.get((place, "index"))
        known = None if part is None else self.cache.get(part.owner)
        index = IdIndex(own) if known is None else known[part.start][1]
        self.cache.put((place, "index"), Part((*self.identity, "indices"), i), FRAGMENT_BYTES)
        return start, index, self.fragment_live(fragment) if fragment.deleted_rows else None

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


def _nbytes(array: pa.Array | AnyArray) -> int:
    return int(array.nbytes)


def _bytes_of_indices(indices: Sequence[Index]) -> int:
    live = (0 if live is None else live.nbytes for _, _, live in indices)
    return sum(index.nbytes for _, index, _ in indices) + sum(live)


def _missing(chunks: Sequence[pa.Array | None]) -> tuple[int, ...]:
    return tuple(i for i, chunk in enumerate(chunks) if chunk is None)


def _joined(chunks: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    if len(chunks) == 1:
        return chunks[0]
    if not chunks:
        return pa.array([], kind)
    long = any(pa.types.is_large_string(c.type) for c in chunks)  # parts of a longer column
    if long or (pa.types.is_string(kind) and sum(c.nbytes for c in chunks) > STRING_BYTES_MAX):
        chunks = [c.cast(pa.large_string()) for c in chunks]
    return pa.concat_arrays(chunks)


def columns_of(snapshot: Snapshot, kind: NodeType | EdgeType, cache: Cache) -> TableColumns:
    """The columns of a type in a snapshot; shared by every query that reads the same version."""
    ref = snapshot.ref(kind.table_id)
    return cache.get_or_build(
        (snapshot.root, ref.path, ref.version, snapshot.commit.schema, kind.name, "columns"),
        lambda: TableColumns(snapshot.root, snapshot.table(kind.table_id), kind, cache),
        lambda columns: TABLE_BYTES + FRAGMENT_BYTES * len(columns.fragments),
    )
