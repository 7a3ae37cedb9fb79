"""The steps of each measure on blocks of a network, in numpy (see `blocks`).

A step that meets edges sends parcels, its own new state among them; a step that settles turns all that came for a block
into its state, or sends again. Each function here makes the steps of one measure for a layout; the edges it meets are
ascending by target, those of `distances` and `triangles` by source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from omnigraph.expressions.lists import Ints, ranges
from omnigraph.pipeline.blocks import STATE, BlockEdges, Layout, Meet, Parcel, Settle

VALUES, HOOKS, ANSWERS, LISTS = 1, 2, 3, 4  # kinds of parcels
WEDGES_MAX = 4_000_000  # pairs of edges looked at together


def _state(block: int, *arrays: npt.NDArray[np.generic], change: float = 0.0) -> Parcel:
    return Parcel(block, STATE, value=b"".join(a.tobytes() for a in arrays), change=change)


def _sorted_out(parcels: list[Parcel]) -> tuple[Parcel, list[Parcel]]:
    """The state among the parcels for a block, and the rest."""
    state = next(parcel for parcel in parcels if parcel.kind == STATE)
    return state, [parcel for parcel in parcels if parcel.kind != STATE]


def _runs(ordered: npt.NDArray[np.generic]) -> npt.NDArray[np.intp]:
    """Where runs of equal values begin."""
    return np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)])


def _least(keys: Ints, values: Ints) -> tuple[Ints, Ints]:
    """Each key once, with the least of its values."""
    order = np.lexsort((values, keys))
    keys, values = keys[order], values[order]
    first = _runs(keys)
    return keys[first], values[first]


def _looked_up(keys: Ints, values: Ints, wanted: Ints) -> Ints:
    """The values of keys that are known to exist."""
    order = np.argsort(keys)
    found: Ints = values[order][np.searchsorted(keys[order], wanted)]
    return found


# --- PageRank ------------------------------------------------------------------------------------------------------


def pagerank(damping: float, layout: Layout) -> tuple[Meet, Settle]:
    """Each node passes its value in equal parts along its edges; nodes without edges pass theirs to all."""

    def meet(edges: BlockEdges, state: Parcel) -> Iterator[Parcel]:
        ranks = state.floats
        out = np.bincount(edges.src, minlength=len(ranks))
        lost = float(ranks[out == 0].sum())
        runs = _runs(edges.dst)
        nodes, shares = edges.dst[runs], (ranks / np.maximum(out, 1))[edges.src]
        sums = np.add.reduceat(shares, runs) if len(runs) else shares
        parts = dict(layout.divided(nodes))
        for block in range(layout.blocks):
            own = parts.get(block, np.zeros(0, np.int64))
            at, value = layout.places(nodes[own]).tobytes(), sums[own].tobytes()
            yield Parcel(block, VALUES, edges.block, at, value, lost)
        yield _state(edges.block, ranks)

    def settle(block: int, parcels: list[Parcel]) -> Iterable[Parcel]:
        state, came = _sorted_out(parcels)
        received = np.zeros(layout.size(block))
        for parcel in came:
            received[parcel.places] += parcel.floats  # each node once in a parcel
        lost = sum(parcel.change for parcel in came)
        n = max(layout.count, 1)
        new = (1.0 - damping) / n + damping * (received + lost / n)
        yield _state(block, new, change=float(np.abs(new - state.floats).sum()))

    return meet, settle


# --- components ----------------------------------------------------------------------------------------------------


def components(layout: Layout) -> tuple[Meet, Settle, Settle, Settle]:
    """Every node points to one of its component, at first to itself, then to smaller ones.

    Neighbours exchange their targets. A node sends the smallest one to its own target, and then points to the target
    of that node: whole trees move, and paths halve from round to round.
    """

    def meet(edges: BlockEdges, state: Parcel) -> Iterator[Parcel]:
        runs, pointed = _runs(edges.dst), state.ints[edges.src]
        least = np.minimum.reduceat(pointed, runs) if len(runs) else pointed
        yield from _to_places(VALUES, edges.block, edges.dst[runs], least, layout)
        yield state

    def hook(block: int, parcels: list[Parcel]) -> Iterator[Parcel]:
        state, came = _sorted_out(parcels)
        old = state.ints
        new = old.copy()
        for parcel in came:
            new[parcel.places] = np.minimum(new[parcel.places], parcel.ints)
        yield from _to_places(HOOKS, block, *_least(old, new), layout)
        yield _state(block, new, old)

    def answer(block: int, parcels: list[Parcel]) -> Iterator[Parcel]:
        state, came = _sorted_out(parcels)
        new, old = state.ints.reshape(2, -1).copy()
        for parcel in came:
            new[parcel.places] = np.minimum(new[parcel.places], parcel.ints)
        for parcel in came:
            asked = parcel.places.astype(np.int64) * layout.blocks + block
            at, value = asked.tobytes(), new[parcel.places].tobytes()
            yield Parcel(parcel.origin, ANSWERS, block, at, value)
        yield _state(block, new, old)

    def jump(block: int, parcels: list[Parcel]) -> Iterator[Parcel]:
        state, came = _sorted_out(parcels)
        new, old = state.ints.reshape(2, -1)
        if len(old):
            asked = np.concatenate([parcel.numbers for parcel in came])
            pointed = np.concatenate([parcel.ints for parcel in came])
            new = np.minimum(new, _looked_up(asked, pointed, old))
        yield _state(block, new, change=float((new != old).sum()))

    return meet, hook, answer, jump


def _to_places(
    kind: int, origin: int, nodes: Ints, values: Ints, layout: Layout
) -> Iterator[Parcel]:
    """Parcels with values for nodes, to their blocks."""
    for block, own in layout.divided(nodes):
        at = layout.places(nodes[own]).tobytes()
        yield Parcel(block, kind, origin, at, values[own].tobytes())


# --- labels --------------------------------------------------------------------------------------------------------


def labels(layout: Layout) -> tuple[Meet, Settle]:
    """A node takes the most frequent label of its neighbours, the smallest of several."""
    n = max(layout.count, 1)

    def meet(edges: BlockEdges, state: Parcel) -> Iterator[Parcel]:
        codes, votes = np.unique(edges.dst * n + state.ints[edges.src], return_counts=True)
        nodes, wanted = codes // n, codes % n
        for block, own in layout.divided(nodes):
            at = layout.places(nodes[own]).tobytes()
            value = wanted[own].tobytes() + votes[own].tobytes()
            yield Parcel(block, VALUES, edges.block, at, value)
        yield state

    def settle(block: int, parcels: list[Parcel]) -> Iterator[Parcel]:
        state, came = _sorted_out(parcels)
        old = state.ints
        new = old.copy()
        if came:
            at = np.concatenate([parcel.places for parcel in came]).astype(np.int64)
            wanted, votes = np.concatenate([p.ints.reshape(2, -1) for p in came], axis=1)
            codes, places = np.unique(at * n + wanted, return_inverse=True)
            total = np.bincount(places, votes).astype(np.int64)
            order = np.lexsort((codes % n, -total, codes // n))
            node = codes[order] // n
            first = _runs(node)
            new[node[first]] = codes[order][first] % n
        yield _state(block, new, change=float((new != old).sum()))

    return meet, settle


# --- distances -----------------------------------------------------------------------------------------------------


def distances(layout: Layout) -> tuple[Meet, Settle]:
    """Hops from the nearest source, -1 if unknown, and a flag for new ones.

    A block continues from new nodes along its own edges, and sends the distances of other nodes to their blocks.
    """

    def meet(edges: BlockEdges, state: Parcel) -> Iterator[Parcel]:
        found, fresh = state.ints.reshape(2, -1).copy()
        inside = edges.dst % layout.blocks == edges.block
        near = edges.dst[inside] // layout.blocks
        moved = _spread(found, np.flatnonzero(fresh), edges.src[inside], near)
        leaving = moved[edges.src] & ~inside
        nodes, least = _least(edges.dst[leaving], found[edges.src[leaving]] + 1)
        yield from _to_places(VALUES, edges.block, nodes, least, layout)
        yield _state(edges.block, found)

    def settle(block: int, parcels: list[Parcel]) -> Iterator[Parcel]:
        state, came = _sorted_out(parcels)
        found = state.ints.copy()
        fresh = np.zeros(len(found), np.int64)
        for parcel in came:
            at, hops = parcel.places, parcel.ints
            nearer = (found[at] < 0) | (hops < found[at])
            found[at[nearer]] = hops[nearer]
            fresh[at[nearer]] = 1
        yield _state(block, found, fresh, change=float(fresh.sum()))

    return meet, settle


def _spread(
    found: Ints, level: Ints, src: npt.NDArray[np.int32], dst: Ints
) -> npt.NDArray[np.bool_]:
    """Set distances along edges inside a block, level by level, and return the nodes with new ones."""
    starts = np.searchsorted(src, np.arange(len(found) + 1))
    moved = np.zeros(len(found), np.bool_)
    while len(level):
        moved[level] = True
        at, counts = _following(starts, level)
        nodes, hops = _least(dst[at], np.repeat(found[level] + 1, counts))
        nearer = (found[nodes] < 0) | (hops < found[nodes])
        level = nodes[nearer]
        found[level] = hops[nearer]
    return moved


def _following(starts: Ints, nodes: Ints) -> tuple[Ints, Ints]:
    """The positions of the edges of some nodes, node by node, and the number of each."""
    counts = starts[nodes + 1] - starts[nodes]
    return ranges(starts[nodes], counts), counts


# --- triangles -----------------------------------------------------------------------------------------------------


def triangles(layout: Layout) -> tuple[Meet, Settle, Settle, Settle]:
    """Edges point to the neighbour of higher degree, so that no node has many; two of them may be closed by a third.

    Blocks send the degrees of their nodes, send the upward edges of a node to the blocks below it, count, and add up.
    """

    def meet(edges: BlockEdges, state: Parcel) -> Iterator[Parcel]:  # noqa: ARG001 - there is none yet
        degree = np.bincount(edges.src, minlength=layout.size(edges.block))
        own = layout.numbers(edges.block)
        for block, near in layout.divided(edges.dst):
            seen = np.unique(edges.src[near])
            yield Parcel(block, VALUES, edges.block, own[seen].tobytes(), degree[seen].tobytes())
        source = edges.src.astype(np.int64)
        yield _state(edges.block, source, edges.dst, degree[source])

    def send_up(block: int, parcels: list[Parcel]) -> Iterator[Parcel]:
        state, came = _sorted_out(parcels)
        place, far, degree = state.ints.reshape(3, -1)
        near = place * layout.blocks + block
        if len(far):
            nodes = np.concatenate([parcel.numbers for parcel in came])
            theirs = np.concatenate([parcel.ints for parcel in came])
            other = _looked_up(nodes, theirs, far)
            up = (other > degree) | ((other == degree) & (far > near))
        else:
            up = np.zeros(0, np.bool_)
        for below, edges in layout.divided(far[~up]):
            wanted = np.zeros(layout.size(block), np.bool_)
            wanted[place[~up][edges]] = True
            own = up & wanted[place]
            yield Parcel(below, LISTS, block, near[own].tobytes(), far[own].tobytes())
        yield _state(block, place[up], far[up])

    def count(block: int, parcels: list[Parcel]) -> Iterator[Parcel]:
        state, came = _sorted_out(parcels)
        place, far = state.ints.reshape(2, -1)
        nodes = np.concatenate([np.zeros(0, np.int64), *(p.numbers for p in came)])
        above = np.concatenate([np.zeros(0, np.int64), *(p.ints for p in came)])
        order = np.argsort(nodes, kind="stable")
        corners = _corners(block, place, far, nodes[order], above[order], layout)
        yield from _to_places(VALUES, block, *corners, layout)
        yield _state(block)

    def add_up(block: int, parcels: list[Parcel]) -> Iterator[Parcel]:
        _, came = _sorted_out(parcels)
        total = np.zeros(layout.size(block), np.int64)
        for parcel in came:
            total[parcel.places] += parcel.ints
        yield _state(block, total)

    return meet, send_up, count, add_up


def _corners(
    block: int, place: Ints, far: Ints, nodes: Ints, above: Ints, layout: Layout
) -> tuple[Ints, Ints]:
    """The triangles of each node whose lowest corner is in a block.

    `place` and `far` are the edges that lead up from the block, ascending; `nodes` and `above` those from their ends.
    """
    n = max(layout.count, 1)
    known = place * n + far
    starts, ends = np.searchsorted(nodes, far), np.searchsorted(nodes, far, "right")
    wedges = np.cumsum(ends - starts)
    found: list[Ints] = []
    first = 0
    while first < len(far):
        base = int(wedges[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(wedges, base + WEDGES_MAX, "right")))
        counts = (ends - starts)[first:last]
        at = ranges(starts[first:last], counts)
        edge = np.repeat(np.arange(first, last), counts)
        wanted = place[edge] * n + above[at]
        where = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        closed = known[where] == wanted
        found += [place[edge[closed]] * layout.blocks + block, far[edge[closed]], above[at[closed]]]
        first = last
    corners = np.concatenate([np.zeros(0, np.int64), *found])
    return np.unique(corners, return_counts=True)
