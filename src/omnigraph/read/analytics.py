"""Measures of a whole graph, in numpy: the nodes of one type, the edges of some types among them.

The methods of `omnigraph.analytics.Analytics` document each measure and its parameters. Here and in
`pipeline.analytics` each has a function of the same name, from a network to one value for each node. The two share no
code, as numpy and Spark share no operations; `tests/pipeline/test_analytics.py` compares them over random graphs.
Nodes are numbered in the order of their ids, so "smallest" means the same here as on Spark.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import OptionInvalid
from omnigraph.expressions.lists import ranges
from omnigraph.model.catalog import EdgeType
from omnigraph.model.frozen import frozen
from omnigraph.read.arrays import Ints

PAIRS_MAX = 20_000_000  # of a source and a node it reaches, held at once


@frozen
class Network:
    """Node ids, ascending, and the ends of the edges as numbers of nodes."""

    ids: pa.Array
    src: Ints
    dst: Ints

    def __len__(self) -> int:
        return len(self.ids)

    def undirected(self) -> tuple[Ints, Ints]:
        """Each pair of different neighbours once in either direction."""
        apart = self.src != self.dst
        low, high = self.src[apart], self.dst[apart]
        codes = np.unique(np.concatenate([low * len(self) + high, high * len(self) + low]))
        return codes // max(len(self), 1), codes % max(len(self), 1)

    def table(self, values: pa.Array) -> pa.Table:
        """One value for each node, ascending by id."""
        return pa.table({"id": self.ids, "value": values})

    def named(self, nodes: Ints) -> pa.Table:
        """A node for each node, by its id."""
        return self.table(self.ids.take(pa.array(nodes, pa.int64())))


def edges_among(snapshot: Snapshot, node: str, edges: Sequence[str]) -> list[EdgeType]:
    """The edge types to follow; each must lead from the node type to itself."""
    catalog = snapshot.catalog
    if node not in catalog.nodes:
        raise OptionInvalid(f"the graph has no node type {node!r}")
    found = []
    for name in edges:
        kind = catalog.edge(name)
        if kind is None or (kind.from_type, kind.to_type) != (node, node):
            raise OptionInvalid(f"{name} is not an edge type from {node} to {node}")
        found.append(kind)
    return found


def network(snapshot: Snapshot, node: str, edges: Sequence[str]) -> Network:
    """The nodes and edges of some types."""
    kinds = edges_among(snapshot, node, edges)
    ids = snapshot.table_of(snapshot.catalog.nodes[node]).scan(["id"])["id"].combine_chunks()
    ids = ids.take(pc.sort_indices(ids))
    ends = [snapshot.table_of(kind).scan(["src", "dst"]) for kind in kinds]
    return Network(ids, *(_numbers(ends, side, ids) for side in ("src", "dst")))


def _numbers(parts: Sequence[pa.Table], side: str, ids: pa.Array) -> Ints:
    found = [pc.index_in(part[side].combine_chunks(), value_set=ids) for part in parts]
    arrays = [array.to_numpy(zero_copy_only=False).astype(np.int64) for array in found]
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int64)


def degrees(net: Network, sides: Sequence[str]) -> pa.Table:
    """A self-loop counts at both ends."""
    ends = {"src": net.src, "dst": net.dst}
    return net.table(pa.array(sum(np.bincount(ends[s], minlength=len(net)) for s in sides)))


def pagerank(net: Network, damping: float, iterations: int) -> pa.Table:
    """Nodes without a way out share with all."""
    n = max(len(net), 1)
    out = np.bincount(net.src, minlength=len(net))
    rank = np.full(len(net), 1.0 / n)
    for _ in range(iterations):
        given = np.divide(rank, out, out=np.zeros_like(rank), where=out > 0)
        received = np.bincount(net.dst, weights=given[net.src], minlength=len(net))
        lost = rank[out == 0].sum()
        rank = (1.0 - damping) / n + damping * (received + lost / n)
    return net.table(pa.array(rank))


def components(net: Network) -> pa.Table:
    label = np.arange(len(net))
    while True:
        least = np.minimum(label[net.src], label[net.dst])
        new = label.copy()
        np.minimum.at(new, label[net.src], least)
        np.minimum.at(new, label[net.dst], least)
        new = new[new]
        if (new == label).all():
            return net.named(label)
        label = new


def reach(net: Network, hops: int) -> pa.Table:
    n = len(net)
    starts, order = _runs(net.src, net.dst, n)
    counts = np.zeros(n, np.int64)
    width = max(1, PAIRS_MAX // max(n, 1))
    for first in range(0, n, width):
        sources = np.arange(first, min(first + width, n))
        seen = frontier = sources * n + sources
        for _ in range(hops):
            frontier = np.setdiff1d(_step(frontier, starts, order, n), seen, assume_unique=True)
            if not len(frontier):
                break
            seen = np.union1d(seen, frontier)
        counts += np.bincount(seen // n, minlength=n)
    return net.table(pa.array(np.maximum(counts - 1, 0)))


def _runs(src: Ints, dst: Ints, n: int) -> tuple[Ints, Ints]:
    order = np.argsort(src, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(src, minlength=n))])
    return starts, dst[order]


def _step(pairs: Ints, starts: Ints, targets: Ints, n: int) -> Ints:
    """The pairs reached in one hop from pairs of a source and a node, once each."""
    source, node = pairs // n, pairs % n
    count = starts[node + 1] - starts[node]
    return np.unique(np.repeat(source, count) * n + targets[ranges(starts[node], count)])


def triangles(net: Network) -> pa.Table:
    near, far = net.undirected()
    up = near < far
    near, far = near[up], far[up]
    starts, targets = _runs(near, far, len(net))
    known = np.sort(near * len(net) + far)
    counts = np.zeros(len(net), np.int64)
    length = starts[far + 1] - starts[far]
    for first in range(0, len(near), 1_000_000):
        part = slice(first, first + 1_000_000)
        many = length[part]
        a, b = np.repeat(near[part], many), np.repeat(far[part], many)
        c = targets[ranges(starts[far[part]], many)]
        wanted = a * len(net) + c
        at = np.searchsorted(known, wanted)
        closed = (at < len(known)) & (known[np.minimum(at, max(len(known) - 1, 0))] == wanted)
        for corner in (a, b, c):
            counts += np.bincount(corner[closed], minlength=len(net))
    return net.table(pa.array(counts))


def labels(net: Network, iterations: int) -> pa.Table:
    """Each round a node takes the most frequent label of its neighbours, the smallest of several."""
    near, far = net.undirected()
    label = np.arange(len(net))
    for _ in range(iterations):
        codes, votes = np.unique(near * len(net) + label[far], return_counts=True)
        node, wanted = codes // max(len(net), 1), codes % max(len(net), 1)
        order = np.lexsort((wanted, -votes, node))
        first = np.unique(node[order], return_index=True)[1]
        new = label.copy()
        new[node[order][first]] = wanted[order][first]
        label = new
    return net.named(label)


def distances(net: Network, sources: Sequence[str]) -> pa.Table:
    start = pc.index_in(pa.array(list(sources), pa.string()), value_set=net.ids)
    found = np.full(len(net), -1, np.int64)
    level = start.drop_null().to_numpy(zero_copy_only=False).astype(np.int64)
    starts, targets = _runs(net.src, net.dst, len(net))
    distance = 0
    while len(level):
        found[level] = distance
        distance += 1
        count = starts[level + 1] - starts[level]
        reached = np.unique(targets[ranges(starts[level], count)])
        level = reached[found[reached] < 0]
    return net.table(pa.array(found, mask=found < 0))
