"""The arrays of sorted edges, written to files block by block and mapped from there.

The files have no name any more when they are mapped: the system keeps them as long as the arrays are used.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from omnigraph.model.frozen import frozen
from omnigraph.read.arrays import NO_POSITIONS, AnyArray, EdgeRows, Ints, Mask, Positions
from omnigraph.read.budget import spilled
from omnigraph.read.spill import spill_folder


@frozen
class MappedArrays:
    """The start of each node's run, and one more; the far end and the position of every edge."""

    start: Ints
    node: Positions
    edge: Positions
    loops: Positions  # nodes with a self-loop, if both ends are of one type
    is_simple: bool  # no node has a repeated neighbour


def mapped_arrays(blocks: Iterable[EdgeRows], near: int) -> MappedArrays:
    """The arrays of edges that come in order, among so many near nodes."""
    start, loops = np.zeros(near + 1, np.int64), [NO_POSITIONS]
    is_simple, last = True, None
    with spill_folder() as folder:
        node, edge = Path(folder, "node"), Path(folder, "edge")
        with node.open("wb") as nodes, edge.open("wb") as edges:
            for rows in filter(len, blocks):
                nodes.write(rows[:, 1].copy().data)
                edges.write(rows[:, 2].copy().data)
                first = int(rows[0, 0])
                counts = np.bincount(rows[:, 0] - first)
                start[first + 1 : first + 1 + len(counts)] += counts
                loops.append(rows[rows[:, 0] == rows[:, 1], 0])
                is_simple = is_simple and not _repeated(rows, last).any()
                last = rows[-1].copy()
        spilled(node.stat().st_size + edge.stat().st_size)
        np.cumsum(start, out=start)
        starts = Path(folder, "start")
        start.tofile(starts)
        return MappedArrays(
            _mapped(starts, np.int64),
            _mapped(node, np.int32),
            _mapped(edge, np.int32),
            np.unique(np.concatenate(loops)),
            is_simple,
        )


def _repeated(rows: EdgeRows, last: AnyArray | None) -> Mask:
    """Which of these edges have the ends of the edge before; the last one came before the first."""
    found = np.zeros(len(rows), np.bool_)
    np.logical_and(rows[1:, 0] == rows[:-1, 0], rows[1:, 1] == rows[:-1, 1], out=found[1:])
    if last is not None:
        found[0] = rows[0, 0] == last[0] and rows[0, 1] == last[1]
    return found


def _mapped(place: Path, kind: type[np.integer[Any]]) -> AnyArray:
    if not place.stat().st_size:
        return np.empty(0, kind)
    return np.memmap(place, kind, "r").view(np.ndarray)
