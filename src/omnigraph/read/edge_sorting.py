"""Edges sorted on disk, in bounded memory: cut into parts by ranges of their near ends, and each part sorted by itself.

A part that is still too large is cut again, down to the edges of one node; those are cut by their far ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np

from omnigraph.model.frozen import frozen
from omnigraph.read.arrays import EdgeRows, stable_order
from omnigraph.read.budget import TOPOLOGY, charged, checked, spilled
from omnigraph.read.spill import spill_folder

PART_EDGES = 1 << 19  # that are sorted together
PARTS_MAX = 1 << 10  # that edges are cut into at once
BLOCK_ROWS = 1 << 20  # that are read and cut at once
SORTERS = 2  # threads
EDGE_BYTES = 12
HELD_BYTES = (SORTERS + 2) * PART_EDGES * 5 * EDGE_BYTES  # edges, their order and a copy


@frozen
class EdgePart:
    """Edges in a file, and what sorts them: columns, and how many low bits of each may differ."""

    place: Path
    by: tuple[tuple[int, int], ...]

    @property
    def edges(self) -> int:
        return self.place.stat().st_size // EDGE_BYTES

    def blocks(self) -> Iterator[EdgeRows]:
        """The edges as they came, block by block; the file is removed."""
        with self.place.open("rb") as file:
            self.place.unlink()
            while len(found := np.fromfile(file, np.int32, 3 * BLOCK_ROWS)):
                yield found.reshape(-1, 3)

    def sorted(self) -> EdgeRows:
        """All in order; equal ones as they came."""
        rows = np.fromfile(self.place, np.int32).reshape(-1, 3)
        self.place.unlink()
        for column, _ in reversed(self.by):
            rows = rows.take(stable_order(rows[:, column]), axis=0)
        return rows

    def smaller(self) -> list[EdgePart]:
        """Its edges in several parts, by the highest bits that differ."""
        (_, bits), *others = self.by
        if not bits:
            return [EdgePart(self.place, tuple(others))]
        folder = self.place.with_suffix(".parts")
        folder.mkdir()
        return _cut(self.blocks(), self.edges, self.by, folder)


def in_order(
    blocks: Iterable[EdgeRows], count: int, sizes: tuple[int, int], *, by_far: bool = True
) -> Iterator[EdgeRows]:
    """About `count` edges by their near ends, and then by their far ends or as they come; `sizes` are the numbers of
    nodes at the two ends."""
    by = tuple((column, (size - 1).bit_length()) for column, size in enumerate(sizes))
    with charged(TOPOLOGY, HELD_BYTES), spill_folder() as folder:
        parts = _cut(blocks, count, by if by_far else by[:1], Path(folder))
        spilled(sum(part.edges for part in parts) * EDGE_BYTES)
        yield from _sorted(parts)


def _sorted(parts: Iterable[EdgePart]) -> Iterator[EdgeRows]:
    """The edges of parts, one part after the other; the next ones are sorted meanwhile."""
    ahead: deque[Future[EdgeRows]] = deque()
    with ThreadPoolExecutor(SORTERS, "omnigraph-edges") as pool:
        for part in checked(parts):
            fits = part.edges <= PART_EDGES
            while len(ahead) > (SORTERS if fits else 0):
                yield ahead.popleft().result()
            if fits:
                ahead.append(pool.submit(part.sorted))
            else:
                yield from _sorted(part.smaller()) if part.by else part.blocks()
        while ahead:
            yield ahead.popleft().result()


def _cut(
    blocks: Iterable[EdgeRows], count: int, by: tuple[tuple[int, int], ...], folder: Path
) -> list[EdgePart]:
    """Edges in parts of about the same number of nodes each."""
    (column, bits), *others = by
    wanted = min(PARTS_MAX, 1 + 4 * count // PART_EDGES)
    shift = max(0, bits - wanted.bit_length())
    low = (1 << (bits - shift)) - 1
    found: set[int] = set()
    for rows in _large(checked(blocks)):
        number = (rows[:, column] >> shift & low).astype(np.uint16)
        ordered = rows.take(np.argsort(number, kind="stable"), axis=0)
        ends = np.cumsum(np.bincount(number)).tolist()
        for i, (first, end) in enumerate(pairwise([0, *ends])):
            if first < end:
                found.add(i)
                with (folder / str(i)).open("ab") as file:
                    file.write(ordered[first:end].data)
    return [EdgePart(folder / str(i), ((column, shift), *others)) for i in sorted(found)]


def _large(blocks: Iterable[EdgeRows]) -> Iterator[EdgeRows]:
    held: list[EdgeRows] = []
    for rows in blocks:
        held.append(rows)
        if sum(map(len, held)) >= BLOCK_ROWS:
            yield np.concatenate(held)
            held = []
    if held:
        yield np.concatenate(held)
