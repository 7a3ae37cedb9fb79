"""Keeping the number of small fragments logarithmic.

Every commit adds a fragment, and every fragment costs each later read. So an append also rewrites the small fragments
at the table's end, as a binary counter carries: a fragment is absorbed by one at least as large. Rows are rewritten
at most log2(`ABSORB_ROWS_MAX`) times, and recently written rows are still in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from omnigraph.model.frozen import frozen
from omnigraph.storage.lance import recent
from omnigraph.storage.lance.reading import LanceTable, describe
from omnigraph.storage.lance.recent import Offsets
from omnigraph.storage.tables import ADDRESS, FragmentInfo

ABSORB_ROWS_MAX = recent.SMALL_ROWS_MAX
ABSORB_BYTES_MAX = recent.SMALL_BYTES_MAX
UNREAD_MAX = (
    8  # on a remote store, how many small fragments may accumulate before absorbing reads them back
)


@frozen
class Small:
    """A fragment that may be absorbed, and those of its rows that are being deleted."""

    info: FragmentInfo
    dropped: Offsets | None

    @property
    def live(self) -> int:
        gone = 0 if self.dropped is None else len(self.dropped)
        return self.info.physical_rows - self.info.deleted_rows - gone


def choose(table: LanceTable, rows: int, deletions: Mapping[int, Offsets]) -> list[Small]:
    """The small fragments at the end of the table that an append of `rows` rows absorbs, in storage order."""
    tail = _tail(table, deletions)
    chosen: list[Small] = []
    read_back = not table.remote or len(tail) > UNREAD_MAX
    for small in reversed(tail):
        if small.live > rows or rows + small.live > ABSORB_ROWS_MAX:
            break
        if not read_back and recent.live_rows(table.shape, small.info) is None:
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
    return [_live_rows(table, each) for each in small]


def _live_rows(table: LanceTable, small: Small) -> pa.Table:
    rows = recent.live_rows(table.shape, small.info, small.dropped)
    return _read(table, small) if rows is None else rows.drop_columns([ADDRESS])


def _read(table: LanceTable, small: Small) -> pa.Table:
    batches = table.batches(
        table.schema.names, with_address=True, fragments=[small.info.fragment_id]
    )
    schema = table.schema.append(pa.field(ADDRESS, pa.uint64()))
    rows = pa.Table.from_batches(list(batches), schema)
    kept = rows.drop_columns([ADDRESS])
    if small.dropped is None:
        return kept
    offsets = (rows[ADDRESS].to_numpy() & 0xFFFFFFFF).astype(np.uint32)
    return kept.filter(pa.array(~np.isin(offsets, small.dropped)))
