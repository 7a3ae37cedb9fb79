"""The arrays everything here works on, and the few index calculations they share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.expressions.lists import ranges

Positions = npt.NDArray[np.int32]  # rows of a table, counted in storage order; -1 is "no row"
Ints = npt.NDArray[np.int64]
EdgeRows = npt.NDArray[np.int32]  # one edge a row: its near end, its far end, its position
Whole = npt.NDArray[np.integer[Any]]
Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
AnyArray = npt.NDArray[Any]

NO_ROW = -1
NO_POSITIONS: Positions = np.empty(0, np.int32)
NO_EDGES: EdgeRows = np.empty((0, 3), np.int32)
# The allocator of the system keeps freed memory for arrays as large as the largest it has seen freed. Had it seen small
# ones only, it would give back the memory of every query page by page, and fetch it again for the next.
_freed = np.empty(4 << 20, np.uint8)
del _freed
RUNS_PER_VALUE = 64  # runs for each of the largest values wanted: more are more precise, and slower
SORT_BELOW = 2_000  # with fewer members than this, sorting beats marking


def runs(starts: Ints, counts: Ints, sizes: Iterator[int]) -> Iterator[tuple[Ints, Ints]]:
    """The members of consecutive ranges, in blocks of these sizes: the number of the range, and the member.

    A range may be longer than a block.
    """
    total, size = int(counts.sum()), next(sizes)
    if total <= size:
        yield np.repeat(np.arange(len(counts)), counts), ranges(starts, counts)
        return
    ends = np.cumsum(counts)
    low = 0
    while low < total:
        high = min(low + size, total)
        first, last = int(ends.searchsorted(low, "right")), int(ends.searchsorted(high, "left"))
        some = counts[first : last + 1].copy()
        skipped = low - int(ends[first] - counts[first])
        some[0] -= skipped
        some[-1] -= int(ends[last]) - high
        begin = starts[first : last + 1].copy()
        begin[0] += skipped
        yield np.repeat(np.arange(first, last + 1), some), ranges(begin, some)
        low, size = high, next(sizes)


def distinct(values: AnyArray, size: int) -> AnyArray:
    """The distinct members, ascending; all are in 0 … size - 1."""
    if len(values) < SORT_BELOW or size > 64 * len(values):
        return _sorted_once(values)
    marks = np.zeros(size, np.bool_)
    marks[values] = True
    found: AnyArray = np.flatnonzero(marks).astype(values.dtype, copy=False)
    return found


def reached_by(values: Floats, count: int) -> float:
    """A number that at least `count` of the values reach, close to the largest one; there must be that many values.

    The largest values of short runs are found in one pass over memory, while sorting all of them takes many.
    """
    width = max(1, len(values) // (RUNS_PER_VALUE * count))
    whole = len(values) // width * width
    largest = values[:whole].reshape(-1, width).max(axis=1)
    return float(np.partition(largest, len(largest) - count)[len(largest) - count])


def _sorted_once(values: AnyArray) -> AnyArray:
    """`np.unique` without its hash table, which costs several times as much as sorting does."""
    ordered = np.sort(values)
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    found: AnyArray = ordered[first]
    return found


def count_distinct(values: AnyArray, size: int) -> int:
    """The number of distinct members. Often they are ascending already, and just counted."""
    if bool((values[1:] > values[:-1]).all()):
        return len(values)
    return len(distinct(values, size))


def stable_order(values: Positions) -> Ints:
    """The permutation that sorts non-negative numbers, equal ones in their order.

    Each number and its place make one word, and words are sorted several times faster than places by what is there.
    """
    words = values.astype(np.int64)
    words <<= 32
    words |= np.arange(len(values))
    words.sort()
    words &= 0xFFFFFFFF
    return words


def as_matrix(vectors: pa.FixedSizeListArray) -> AnyArray:
    """Vectors one below the other, in Arrow's memory; the lines of missing ones are meaningless."""
    width = vectors.type.list_size
    flat = vectors.values.slice(vectors.offset * width, len(vectors) * width)
    found: AnyArray = flat.to_numpy(zero_copy_only=False).reshape(len(vectors), width)
    return found
