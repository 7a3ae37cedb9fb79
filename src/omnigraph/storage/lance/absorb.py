"""Keeping the number of small fragments logarithmic.

Every commit adds a fragment, and every fragment costs each later read. So an append also rewrites the small fragments
at the table's end, as a binary counter carries: a fragment is absorbed by one at least as large. Rows are rewritten
at most log2(`ABSORB_ROWS_MAX`) times, and what was written lately is still in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from lance.fragment import FragmentMetadata

from omnigraph.storage.lance.reading import LanceTable, Shape, describe
from omnigraph.storage.session import RECENT_ROWS_BYTES_MAX, Lru
from omnigraph.storage.tables import ADDRESS, FragmentInfo

ABSORB_ROWS_MAX = 4096
ABSORB_BYTES_MAX = 4 * 2**20
UNREAD_MAX = (
    8  # on a remote store, how many small fragments may wait before absorbing reads them back
)

Offsets = np.ndarray[Any, np.dtype[np.uint32]]

_rows: Lru[tuple[Shape, str], pa.Table] = Lru(
    RECENT_ROWS_BYTES_MAX, lambda table: table.nbytes + 1024
)
_deleted: Lru[str, Offsets] = Lru(RECENT_ROWS_BYTES_MAX, lambda offsets: offsets.nbytes + 64)


def remember_rows(shape: Shape, fragment: FragmentMetadata, rows: pa.Table) -> None:
    """Keep what was just written to a small fragment."""
    if rows.num_rows <= ABSORB_ROWS_MAX and rows.nbytes <= ABSORB_BYTES_MAX:
        _rows.put((shape, describe(fragment).files), rows)


def remember_deletions(before: FragmentInfo, after: FragmentInfo, offsets: Offsets) -> None:
    """Keep which rows of a small fragment were just deleted."""
    known = _deletions(before)
    if known is not None and before.physical_rows <= ABSORB_ROWS_MAX:
        _deleted.put(after.identity, np.union1d(known, offsets))


def _deletions(fragment: FragmentInfo) -> Offsets | None:
    if not fragment.deleted_rows:
        return np.empty(0, np.uint32)
    return _deleted.get(fragment.identity)


def is_remembered(table: LanceTable, fragment: FragmentInfo) -> bool:
    return (table.shape, fragment.files) in _rows and _deletions(fragment) is not None


@dataclass(frozen=True, slots=True)
class Small:
    """A fragment that may be absorbed, and the rows of it that are being deleted anyway."""

    info: FragmentInfo
    dropped: Offsets | None

    @property
    def live(self) -> int:
        gone = 0 if self.dropped is None else len(self.dropped)
        return self.info.physical_rows - self.info.deleted_rows - gone


def choose(
    table: LanceTable, rows: int, deletions: Mapping[int, Offsets], *, remote: bool
) -> list[Small]:
    """The small fragments at the end of the table that an append of `rows` rows takes along, in storage order."""
    tail = _tail(table, deletions)
    chosen: list[Small] = []
    read_back = not remote or len(tail) > UNREAD_MAX
    for small in reversed(tail):
        if small.live > rows or rows + small.live > ABSORB_ROWS_MAX:
            break
        if not read_back and not is_remembered(table, small.info):
            break
        rows += small.live
        chosen.append(small)
    return chosen[::-1]


def _tail(table: LanceTable, deletions: Mapping[int, Offsets]) -> list[Small]:
    covered = frozenset().union(*(index.covered_fragments for index in table.indices()))
    found: list[Small] = []
    size = 0
    for fragment in reversed(table.handle.get_fragments()):
        metadata = fragment.metadata
        size += sum(file.file_size_bytes or 0 for file in metadata.files)
        if metadata.id in covered or metadata.num_rows > ABSORB_ROWS_MAX or size > ABSORB_BYTES_MAX:
            break
        found.append(Small(describe(metadata), deletions.get(metadata.id)))
    return found[::-1]


def live_rows(table: LanceTable, small: Sequence[Small]) -> list[pa.Table]:
    """The rows of these fragments that remain, from memory where possible."""
    return [_live_rows(table, each) for each in small if each.live]


def _live_rows(table: LanceTable, small: Small) -> pa.Table:
    rows, gone = _rows.get((table.shape, small.info.files)), _deletions(small.info)
    if rows is None or gone is None:
        return _read(table, small)
    if small.dropped is not None:
        gone = np.union1d(gone, small.dropped)
    return _without(rows, np.arange(rows.num_rows, dtype=np.uint32), gone)


def _read(table: LanceTable, small: Small) -> pa.Table:
    batches = table.batches(
        table.schema.names, with_address=True, fragments=[small.info.fragment_id]
    )
    schema = table.schema.append(pa.field(ADDRESS, pa.uint64()))
    rows = pa.Table.from_batches(list(batches), schema)
    offsets = (rows[ADDRESS].to_numpy() & 0xFFFFFFFF).astype(np.uint32)
    gone = np.empty(0, np.uint32) if small.dropped is None else small.dropped
    return _without(rows.drop_columns([ADDRESS]), offsets, gone)


def _without(rows: pa.Table, offsets: Offsets, gone: Offsets) -> pa.Table:
    if not len(gone):
        return rows
    return rows.filter(pa.array(~np.isin(offsets, gone)))
