"""The topology of an edge table at one version, with its two node tables at theirs.

Built once from the edges' endpoints, then carried from version to version: a commit that touches few rows removes
the changed edges and adds them again, beside the big arrays. Its cache key is what it was made of, the
fragments of the three tables, so a branch uses what was built for another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cached_property
from itertools import chain

import numpy as np
import pyarrow as pa

from omnigraph.expressions.lists import ranges
from omnigraph.lang.ir import Direction
from omnigraph.model.frozen import frozen
from omnigraph.read.adjacency import Adjacency, Merged, made_bytes, turned
from omnigraph.read.arrays import NO_POSITIONS, EdgeRows, Mask, Positions
from omnigraph.read.budget import checked
from omnigraph.read.columns import WANTED_PART, TableColumns
from omnigraph.read.edge_sorting import BLOCK_ROWS
from omnigraph.storage.tables import ADDRESS, FragmentInfo

Fragments = tuple[FragmentInfo, ...]
Edges = tuple[Positions, Positions, Positions]  # sources, destinations, positions in the edge table

ENDS = ("src", "dst")
FEW_EDGES_MAX = 1 << 17  # whose ends are looked up together
BATCHES_AHEAD = 8  # of edges whose ends are being looked up
CHANGED_MIN = 20_000  # fewer changed edges than this are always kept beside the big arrays
CHANGED_PART = 50  # and otherwise up to one in this many


@frozen
class TopologyTables:
    """The three tables of a topology."""

    edge: TableColumns
    src: TableColumns
    dst: TableColumns

    @property
    def identity(self) -> tuple[object, ...]:
        return (self.edge.identity, self.src.identity, self.dst.identity)

    @property
    def home(self) -> tuple[object, ...]:
        """The same for every version of the tables."""
        return tuple(t.identity[:2] for t in (self.edge, self.src, self.dst))

    @property
    def made_of(self) -> MadeOf:
        return MadeOf(self.edge.fragments, self.src.fragments, self.dst.fragments)


@frozen
class MadeOf:
    """What identifies a topology, independent of version numbers."""

    edge: Fragments
    src: Fragments
    dst: Fragments


class Base:
    """The big arrays; shared by all topologies that differ from it in little."""

    def __init__(
        self,
        out: Adjacency,
        edges: int,
        stored_into: Callable[[], Adjacency | None] = lambda: None,
    ) -> None:
        self.out = out
        self.edges = edges  # positions of edges at or beyond this are not in it
        self._stored_into = stored_into

    @cached_property
    def into(self) -> Adjacency:
        """The same edges from their other ends: as stored, or reversed here."""
        stored = self._stored_into()
        return self.out.reversed() if stored is None else stored

    @cached_property
    def both(self) -> Adjacency:
        """Of edges within one type: every edge from both its ends."""
        size = max(self.out.near, self.out.far)
        back = (turned(rows[rows[:, 0] != rows[:, 1]]) for rows in self.out.blocks())
        return Adjacency.of(chain(self.out.blocks(), back), 2 * len(self.out), (size, size))

    @property
    def nbytes(self) -> int:
        """The arrays derived from it so far."""
        return self.out.nbytes + made_bytes(self, "into", "both")

    def touching(self, src: Positions, dst: Positions, edges: Positions) -> Edges:
        """The edges at these positions or with an end at one of these nodes."""
        marked = []
        for stale, column, size in (
            (dst, self.out.node, self.out.far),
            (edges, self.out.edge, self.edges),
        ):
            known = stale[stale < size]
            if len(known):
                marks = np.zeros(size, np.bool_)
                marks[known] = True
                marked.append((marks, column))
        known = src[src < self.out.near]
        found = [ranges(self.out.start[known], self.out.counts(known))]
        for low in range(0, len(self.out) if marked else 0, BLOCK_ROWS):
            some = slice(low, low + BLOCK_ROWS)
            hits = [marks[column[some]] for marks, column in marked]
            found.append(np.flatnonzero(np.logical_or.reduce(hits)) + low)
        at = np.unique(np.concatenate(found))
        near = (self.out.start.searchsorted(at, "right") - 1).astype(np.int32)
        return near, self.out.node[at], self.out.edge[at]


class Topology:
    """All edges of a version, in any direction."""

    def __init__(
        self, made_of: MadeOf, base: Base, minus: Edges | None, plus: Edges | None
    ) -> None:
        self.made_of = made_of
        self.base = base
        self.minus = minus
        self.plus = plus
        self.sizes = (
            sum(f.physical_rows for f in made_of.src),
            sum(f.physical_rows for f in made_of.dst),
        )
        self._views: dict[Direction, Merged] = {}

    @property
    def nbytes(self) -> int:
        """Besides the base, which is counted where it is kept."""
        views = list(self._views.values())
        own = sum(a.nbytes for part in (self.minus, self.plus) if part for a in part)
        resized = sum(view.base.nbytes for view in views if view.base.smaller is not None)
        return 4096 + own + resized + sum(view.nbytes for view in views)

    def view(self, direction: Direction) -> Merged:
        """The edges as they are walked in a direction."""
        found = self._views.get(direction)
        if found is None:
            found = self._views[direction] = self._make_view(direction)
        return found

    def _make_view(self, direction: Direction) -> Merged:
        near, far = self.sizes
        match direction:
            case Direction.OUT:
                base = self.base.out.resized(near, far)
                small = [_small(part, (near, far)) for part in (self.minus, self.plus)]
            case Direction.IN:
                base = self.base.into.resized(far, near)
                small = [_small(_turned(part), (far, near)) for part in (self.minus, self.plus)]
            case Direction.BOTH:
                base = self.base.both.resized(near, far)
                small = [_small(_both_ways(part), (near, far)) for part in (self.minus, self.plus)]
        return Merged(base, small[0], small[1])

    @cached_property
    def loops(self) -> Mask | None:
        """Which nodes have a self-loop; None if no node has. Only for edges within one type."""
        out = self.view(Direction.OUT)
        own = out.base.loops
        if out.minus is not None or out.plus is not None:
            new = out.plus.loops if out.plus is not None else NO_POSITIONS
            some = np.union1d(own, new).astype(np.int32)
            own = some[out.has(some, some)]
        if not len(own):
            return None
        marks = np.zeros(self.sizes[0], np.bool_)
        marks[own] = True
        return marks


def _small(edges: Edges | None, sizes: tuple[int, int]) -> Adjacency | None:
    return None if edges is None else Adjacency.build(*edges, sizes)


def _both_ways(edges: Edges | None) -> Edges | None:
    """Every edge from both its ends, a self-loop once."""
    if edges is None:
        return None
    src, dst, edge = edges
    apart = src != dst
    return (
        np.concatenate((src, dst[apart])),
        np.concatenate((dst, src[apart])),
        np.concatenate((edge, edge[apart])),
    )


def _turned(edges: Edges | None) -> Edges | None:
    return None if edges is None else (edges[1], edges[0], edges[2])


# --- making one --------------------------------------------------------------------------------------------------


def build(tables: TopologyTables) -> Topology:
    """From the endpoints of all edges."""
    sizes, edge = (tables.src.n, tables.dst.n), tables.edge
    few = edge.rows <= max(FEW_EDGES_MAX, max(sizes) // WANTED_PART)
    blocks = _few(tables) if few else _many(tables)
    out = Adjacency.of(blocks, edge.rows, sizes)
    return Topology(tables.made_of, Base(out, edge.n), None, None)


def _few(tables: TopologyTables) -> Iterator[EdgeRows]:
    """All edges at once, as the columns of ids can look them up."""
    batches = list(checked(tables.edge.table.batches(ENDS)))
    if batches:
        yield _found(tables, pa.Table.from_batches(batches), tables.edge.everything)


def _many(tables: TopologyTables) -> Iterator[EdgeRows]:
    """All edges, block by block, with both their ends looked up in one hash table of each node type."""
    with ExitStack() as stack:
        src = stack.enter_context(tables.src.id_stream())
        dst = src if tables.dst is tables.src else stack.enter_context(tables.dst.id_stream())
        given: deque[Positions] = deque()
        for batch in checked(tables.edge.table.batches(ENDS, with_address=True)):
            src.give(batch.column("src"))
            dst.give(batch.column("dst"))
            given.append(tables.edge.positions_at(batch.column(ADDRESS)))
            if len(given) > BATCHES_AHEAD:
                yield _whole(src.take(), dst.take(), given.popleft())
        for positions in given:
            yield _whole(src.take(), dst.take(), positions)


def _whole(src: Positions, dst: Positions, edge: Positions) -> EdgeRows:
    """Edges as rows; one without its node (which validation rules out) is left out."""
    rows = np.stack((src, dst, edge), axis=1)
    there = (src >= 0) & (dst >= 0)
    return rows if there.all() else rows[there]


def _found(tables: TopologyTables, ends: pa.Table, positions: Positions) -> EdgeRows:
    """Edges with their ends as node positions."""
    src, dst = ends.column("src").combine_chunks(), ends.column("dst").combine_chunks()
    if tables.src is tables.dst:
        src, dst = np.split(tables.src.find_all(pa.concat_arrays([src, dst])), 2)
    else:
        src, dst = tables.src.find_all(src), tables.dst.find_all(dst)
    return _whole(src, dst, positions)


def _placed(tables: TopologyTables, ends: pa.Table, positions: Positions) -> Edges:
    near, far, edge = _found(tables, ends, positions).T
    return near, far, edge


def _joined(parts: list[Edges]) -> Edges:
    if not parts:
        return NO_POSITIONS, NO_POSITIONS, NO_POSITIONS
    src, dst, edge = (np.concatenate(column) for column in zip(*parts, strict=True))
    return src, dst, edge


def extend(old: Topology, tables: TopologyTables) -> Topology | None:
    """The topology of other versions of the same tables, made from the unchanged part; None if too much changed."""
    made_of = old.made_of
    limit = max(CHANGED_MIN, len(old.base.out) // CHANGED_PART)
    if any(rows > limit for rows in _replaced_rows(made_of, tables)):
        return None
    stale = [
        _stale(made_of.edge, tables.edge),
        _stale(made_of.src, tables.src),
        _stale(made_of.dst, tables.dst),
    ]
    if any(s is None for s in stale) or not _holds(old.base, tables):
        return None
    edges, src, dst = (s if s is not None else NO_POSITIONS for s in stale)
    if max(len(edges), len(src), len(dst)) > limit:
        return None
    gone = old.base.touching(src, dst, edges) if len(edges) + len(src) + len(dst) else _joined([])
    kept, moved = _split(old.plus, (src, dst, edges))
    lost = _once(_joined([e for e in (old.minus, gone) if e is not None]))
    before = NO_POSITIONS if old.minus is None else old.minus[2]
    fresh = gone[2][~np.isin(gone[2], before)]  # the rest had already left the big arrays
    again = np.unique(np.concatenate((fresh, moved)))
    again = again[~np.isin(again, edges)]
    if len(lost[0]) + len(again) > limit:
        return None
    added = _joined([kept, *_read_again(tables, again), *_read_new(old, tables)])
    if len(added[0]) > limit:
        return None
    return Topology(tables.made_of, old.base, _or_none(lost), _or_none(added))


def _replaced_rows(old: MadeOf, new: TopologyTables) -> Iterator[int]:
    """How many rows are in fragments that have gone, and in those of edges that are new."""
    for before, after in ((old.edge, new.edge), (old.src, new.src), (old.dst, new.dst)):
        kept = {f.files for f in after.fragments}
        yield sum(f.physical_rows for f in before if f.files not in kept)
    known = {f.files for f in old.edge}
    added = (f for f in new.edge.fragments if f.files not in known)
    yield sum(f.physical_rows - f.deleted_rows for f in added)


def _holds(base: Base, tables: TopologyTables) -> bool:
    return base.out.near <= tables.src.n and base.out.far <= tables.dst.n


def _or_none(edges: Edges) -> Edges | None:
    return edges if len(edges[0]) else None


def _once(edges: Edges) -> Edges:
    _, first = np.unique(edges[2], return_index=True)
    return edges[0][first], edges[1][first], edges[2][first]


def _stale(old: Fragments, new: TableColumns) -> Positions | None:
    """Positions whose row has left them; None when rows of a kept fragment have moved."""
    at = {f.files: (i, int(new.starts[i])) for i, f in enumerate(new.fragments)}
    found, start = [], 0
    for fragment in old:
        kept = at.get(fragment.files)
        if kept is None:
            found.append(np.arange(start, start + fragment.physical_rows, dtype=np.int32))
        elif kept[1] != start:
            return None
        elif new.fragments[kept[0]].identity != fragment.identity:
            dead = ~new.fragment_live(new.fragments[kept[0]])
            found.append((np.flatnonzero(dead) + start).astype(np.int32))
        start += fragment.physical_rows
    return np.concatenate(found) if found else NO_POSITIONS


def _split(plus: Edges | None, stale: Edges) -> tuple[Edges, Positions]:
    """Of the edges added before: those that stay as they are, and the positions of those that do not."""
    if plus is None:
        return _joined([]), NO_POSITIONS
    src, dst, edges = stale
    touched = np.isin(plus[0], src) | np.isin(plus[1], dst) | np.isin(plus[2], edges)
    kept = ~touched
    return (plus[0][kept], plus[1][kept], plus[2][kept]), plus[2][touched]


def _read_again(tables: TopologyTables, positions: Positions) -> Iterator[Edges]:
    """Edges that stayed while a node at an end of them moved."""
    if len(positions):
        ends = tables.edge.table.take(tables.edge.addresses(positions), ENDS)
        yield _placed(tables, ends, positions)


def _read_new(old: Topology, tables: TopologyTables) -> Iterator[Edges]:
    """Edges of fragments that are new, and those deleted in what we come from (it may be the later version)."""
    known = {f.files: f for f in old.made_of.edge}
    edge = tables.edge
    for start, fragment in zip(edge.starts.tolist(), edge.fragments, strict=False):
        before = known.get(fragment.files)
        if before is None:
            live = np.flatnonzero(edge.fragment_live(fragment)).astype(np.int32)
            batches = list(edge.table.batches(ENDS, fragments=[fragment.fragment_id]))
            if batches:
                yield _placed(tables, pa.Table.from_batches(batches), live + np.int32(start))
        elif before.deleted_rows and before.identity != fragment.identity:
            back = edge.fragment_live(fragment) & ~_present(old, start, fragment.physical_rows)
            yield from _read_again(tables, np.flatnonzero(back).astype(np.int32) + np.int32(start))


def _present(old: Topology, start: int, rows: int) -> Mask:
    """Which of these edges a topology holds."""
    marks = np.zeros(max(start + rows, old.base.edges), np.bool_)
    marks[old.base.out.edge] = True
    if old.minus is not None:
        marks[old.minus[2]] = False
    if old.plus is not None:
        marks[old.plus[2][old.plus[2] < len(marks)]] = True
    return marks[start : start + rows]
