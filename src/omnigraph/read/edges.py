"""Access to the edges of a type: the topology in memory, from its file, or built; or a look-up in storage.

A small frontier in a process that has no topology yet is answered through the index on `src` or `dst`, or of a large
table by reading all its ends once, which costs a small part of building. Repeated look-ups load the topology.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow.compute as pc

from omnigraph.core.snapshot import Snapshot
from omnigraph.lang.ir import Bound, Direction
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.model.frozen import frozen
from omnigraph.read.adjacency import IN_MEMORY_EDGES_MAX, Hop
from omnigraph.read.arrays import NO_ROW, Positions
from omnigraph.read.cache import SHARED, Cache
from omnigraph.read.columns import TableColumns, columns_of
from omnigraph.read.context import Context
from omnigraph.read.topology import Topology, TopologyTables, build, extend
from omnigraph.read.topology_files import load_topology, store_topology, topology_key
from omnigraph.storage.local import mapped
from omnigraph.storage.objects import large_objects
from omnigraph.storage.tables import ADDRESS

LOOKUP_FRONTIER_MAX = 64  # nodes
LOOKUP_EDGES_MIN = 100_000  # a smaller table is loaded right away
LOOKUP_EDGES_MAX = 2_000  # that a frontier is expected to have
LOOKUPS_MAX = 3  # then the topology pays
SCANS_MAX = 8  # the same where no index helps: building the topology of a large table costs that of some thirty
WORDS = {Direction.OUT: ("src", "dst"), Direction.IN: ("dst", "src")}


def topology(edge: str, ctx: Context) -> Topology:
    """The topology of an edge type in the query's snapshot."""
    found = ctx.topologies.get(edge)
    if found is None:
        found = ctx.topologies[edge] = _topology(edge, ctx)
    return found


def _topology(edge: str, ctx: Context) -> Topology:
    tables = _tables(ctx.snapshot.catalog.edges[edge], ctx)
    key, home = ("topology", tables.identity), ("topology", tables.home)
    found = ctx.cache.get(key)
    if found is None:
        found, how = _obtain(tables, ctx.cache)
        ctx.note(topology=how)
        ctx.cache.put(key, found, found.nbytes)
        if not ctx.snapshot.passing:
            ctx.cache.put(home, found, found.base.nbytes)
    assert isinstance(found, Topology)  # noqa: S101
    ctx.cache.weigh(key, found.nbytes)  # earlier queries may have made it grow
    if not ctx.snapshot.passing:
        ctx.cache.weigh(home, found.base.nbytes)
    return found


def _tables(kind: EdgeType, ctx: Context) -> TopologyTables:
    return TopologyTables(
        ctx.columns(kind.name, edge=True), ctx.columns(kind.from_type), ctx.columns(kind.to_type)
    )


def _obtain(tables: TopologyTables, cache: Cache) -> tuple[Topology, str]:
    known = _known(tables, cache)
    if known is not None:
        if known.made_of == tables.made_of:
            return known, "loaded"
        extended = extend(known, tables)
        if extended is not None:
            return extended, "extended"
    return build(tables), "built"


def _known(tables: TopologyTables, cache: Cache) -> Topology | None:
    """The topology of some version of the tables: the last one used, or the stored one."""
    key = ("topology", tables.home)
    found = cache.get(key)
    if found is None and tables.edge.n >= LOOKUP_EDGES_MIN:
        root, path, _ = tables.edge.identity
        absent = ("no topology file", root, path)
        if cache.get(absent) is None:
            found = load_topology(large_objects(root), path)
            if found is None:
                cache.put(absent, True, 64)
            else:
                cache.put(key, found, found.base.nbytes)
    return found if isinstance(found, Topology) else None


def persist_topology(snapshot: Snapshot, edge: str, cache: Cache = SHARED) -> int:
    """Write the topology of an edge type beside the graph, for later processes; returns its size in bytes.

    Maintenance calls this after compaction. A small table gets no file: its topology is built faster than read.
    """
    kind = snapshot.catalog.edges[edge]
    nodes = snapshot.catalog.nodes
    tables = TopologyTables(
        columns_of(snapshot, kind, cache),
        columns_of(snapshot, nodes[kind.from_type], cache),
        columns_of(snapshot, nodes[kind.to_type], cache),
    )
    if tables.edge.n < LOOKUP_EDGES_MIN:
        return 0
    found, _ = _obtain(tables, cache)
    root, path, _ = tables.edge.identity
    store = large_objects(root)
    size = store_topology(store, path, found)
    if mapped(store, topology_key(path)) is not None:  # as other processes have it, not once more
        found = load_topology(store, path) or found
    cache.put(("topology", tables.home), found, found.base.nbytes)
    return size


# --- look-ups ----------------------------------------------------------------------------------------------------


def prefers_lookup(edge: str, direction: Direction, frontier: int, ctx: Context) -> bool:
    """Whether this frontier is better looked up in storage than walked in memory."""
    if frontier > LOOKUP_FRONTIER_MAX or direction is Direction.BOTH or edge in ctx.topologies:
        return False
    tables = _tables(ctx.snapshot.catalog.edges[edge], ctx)
    columns = tables.edge
    if columns.n < LOOKUP_EDGES_MIN or _known(tables, ctx.cache) is not None:
        return False
    near = tables.src if direction is Direction.OUT else tables.dst
    if frontier * columns.rows > LOOKUP_EDGES_MAX * near.rows:
        return False
    done = ctx.cache.get(("lookups", columns.identity)) or 0
    if done >= _lookups_max(columns, WORDS[direction][0]):
        return False
    ctx.cache.put(("lookups", columns.identity), done + 1, 64)
    return True


def _lookups_max(columns: TableColumns, column: str) -> int:
    if _is_indexed(columns, column):
        return LOOKUPS_MAX
    return SCANS_MAX if columns.rows > IN_MEMORY_EDGES_MAX else 0


def _is_indexed(columns: TableColumns, column: str) -> bool:
    covered = {
        i
        for index in columns.table.indices()
        if index.column == column
        for i in index.covered_fragments
    }
    return all(
        f.fragment_id in covered for f in columns.fragments if f.physical_rows > LOOKUP_EDGES_MIN
    )


def look_up(edge: str, direction: Direction, nodes: Positions, ctx: Context) -> Hop:
    """Every edge that leaves these nodes, from storage."""
    kind = ctx.snapshot.catalog.edges[edge]
    near_word, far_word = WORDS[direction]
    near_type, far_type = (
        (kind.from_type, kind.to_type)
        if direction is Direction.OUT
        else (kind.to_type, kind.from_type)
    )
    near, far, columns = ctx.columns(near_type), ctx.columns(far_type), ctx.columns(edge, edge=True)
    wanted = near.take("id", nodes)
    found = columns.table.lookup(near_word, wanted, [near_word, far_word], with_address=True)
    ctx.note(edges=f"looked up by {near_word}")
    at = columns.positions_at(found.column(ADDRESS))
    node = far.find_all(found.column(far_word).combine_chunks())
    first = pc.index_in(found.column(near_word).combine_chunks(), value_set=wanted)
    source = first.to_numpy(zero_copy_only=False).astype(np.int64)
    whole = node >= 0
    return Hop(source[whole], node[whole], at[whole])


@frozen
class Degree:
    """The edges of one type that leave a node (`out`) or end at it (`in`), and the type of their other ends."""

    edge: str
    direction: str
    type: str
    count: int


def degrees(snapshot: Snapshot, kind: NodeType, id: str) -> tuple[Degree, ...] | None:
    """The edges of a node by type and direction; none if the node does not exist."""
    ctx = Context(snapshot, Bound())
    at = ctx.columns(kind.name).find(id)
    if at == NO_ROW:
        return None
    nodes = np.array([at], np.int32)
    return tuple(
        Degree(edge, str(direction.value), other, _count(edge, direction, nodes, ctx))
        for edge, direction, other in _ways(snapshot, kind)
    )


def _ways(snapshot: Snapshot, kind: NodeType) -> Iterator[tuple[str, Direction, str]]:
    for edge in snapshot.catalog.incident_edges(kind.name):
        if edge.from_type == kind.name:
            yield edge.name, Direction.OUT, edge.to_type
        if edge.to_type == kind.name:
            yield edge.name, Direction.IN, edge.from_type


def _count(edge: str, direction: Direction, nodes: Positions, ctx: Context) -> int:
    if prefers_lookup(edge, direction, 1, ctx):
        return len(look_up(edge, direction, nodes, ctx).node)
    return topology(edge, ctx).view(direction).total(nodes)
