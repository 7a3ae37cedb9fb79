"""Rows of small fragments recently written by this process, and which rows of fragments are deleted.

A fragment never changes and its deletions have a separate file, so written rows can be read again without requests to
the store: by appends that absorb small fragments, and by lookups of rows no index covers yet.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.storage.lru import RECENT_ROWS_BYTES_MAX, Lru
from omnigraph.storage.tables import ADDRESS, FragmentInfo

SMALL_ROWS_MAX = 4096
SMALL_BYTES_MAX = 4 * 2**20

Offsets: TypeAlias = np.ndarray[Any, np.dtype[np.uint32]]
Shape: TypeAlias = tuple[tuple[tuple[str, int], ...], tuple[str, ...]]

_rows: Lru[tuple[Shape, str], pa.Table] = Lru(
    RECENT_ROWS_BYTES_MAX, lambda table: table.nbytes + 1024
)
_deleted: Lru[str, Offsets] = Lru(RECENT_ROWS_BYTES_MAX, lambda offsets: offsets.nbytes + 64)


def remember_rows(shape: Shape, fragment: FragmentInfo, rows: pa.Table) -> None:
    """Cache the rows just written to a small fragment."""
    if rows.num_rows <= SMALL_ROWS_MAX and rows.nbytes <= SMALL_BYTES_MAX:
        _rows.put((shape, fragment.files), _detached(rows))


def _detached(rows: pa.Table) -> pa.Table:
    """The rows without the buffers of a larger table they may be a slice of."""
    if rows.get_total_buffer_size() <= 2 * rows.nbytes + 65_536:
        return rows
    return rows.take(pa.array(np.arange(rows.num_rows)))


def remember_deletions(before: FragmentInfo, after: FragmentInfo, offsets: Offsets) -> None:
    """Cache which rows of a small fragment were just deleted."""
    known = deletions(before)
    if known is not None and before.physical_rows <= SMALL_ROWS_MAX:
        _deleted.put(after.identity, np.union1d(known, offsets))


def keep_deletions(fragment: FragmentInfo, offsets: Offsets) -> None:
    """Cache the deleted rows of a fragment that were just read."""
    _deleted.put(fragment.identity, offsets)


def deletions(fragment: FragmentInfo) -> Offsets | None:
    """The deleted rows of a fragment, in order; None if not known."""
    if not fragment.deleted_rows:
        return np.empty(0, np.uint32)
    return _deleted.get(fragment.identity)


def live_rows(
    shape: Shape, fragment: FragmentInfo, dropped: Offsets | None = None
) -> pa.Table | None:
    """The rows of a fragment without its deleted ones (nor `dropped`), with their addresses; None if not known."""
    rows, gone = _rows.get((shape, fragment.files)), deletions(fragment)
    if rows is None or gone is None:
        return None
    offsets = np.arange(rows.num_rows, dtype=np.uint64)
    addresses = pa.array(offsets + np.uint64(fragment.fragment_id << 32))
    rows = rows.append_column(ADDRESS, addresses)
    if dropped is not None:
        gone = np.union1d(gone, dropped)
    return rows.filter(pa.array(~np.isin(offsets, gone))) if len(gone) else rows
