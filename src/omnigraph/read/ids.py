"""Finding rows by id among loaded ids: some by sorted hashes and binary search, a stream of many by one hash table."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from queue import SimpleQueue

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.arrays import NO_POSITIONS, NO_ROW, Ints, Positions

PIECE_ROWS = 1 << 16


class IdIndex:
    """The rows of one array of ids. Twelve bytes a row; callers bring the ids themselves."""

    def __init__(self, ids: pa.Array) -> None:
        hashes = _hashes(ids)
        order = np.argsort(hashes)
        self._hashes, self._rows = hashes[order], order.astype(np.int32)

    @property
    def nbytes(self) -> int:
        return self._hashes.nbytes + self._rows.nbytes

    def find(self, wanted: str, ids: pa.Array, start: int = 0) -> int:
        """The row with this id, or -1; the ids it was made of begin at `start`."""
        hashed = hash(wanted)
        at = int(self._hashes.searchsorted(hashed))
        while at < len(self._hashes) and self._hashes[at] == hashed:
            row = int(self._rows[at])
            if ids[start + row].as_py() == wanted:
                return row
            at += 1
        return NO_ROW

    def find_all(self, wanted: pa.Array, ids: pa.Array, start: int = 0) -> Positions:
        """The row of each id, or -1."""
        found = np.full(len(wanted), NO_ROW, np.int32)
        if not len(self._hashes):
            return found
        hashes = _hashes(wanted)
        at = self._hashes.searchsorted(hashes)
        active = np.flatnonzero(at < len(self._hashes))
        while len(active):
            active = active[self._hashes[at[active]] == hashes[active]]
            rows = self._rows[at[active]]
            same = pc.equal(
                ids.take(pa.array(rows + np.int32(start))), wanted.take(pa.array(active))
            )
            hit = same.fill_null(False).to_numpy(zero_copy_only=False)
            found[active[hit]] = rows[hit]
            # Different ids with the same hash are adjacent; the few that hit a wrong one look one further.
            active = active[~hit]
            at[active] += 1
            active = active[at[active] < len(self._hashes)]
        return found


class IdStream:
    """Finds the rows of one batch of ids after the other with a single hash table, in threads of Arrow.

    So that they have work, several batches are given before the first is taken.
    """

    def __init__(self, ids: pa.ChunkedArray, rows: Positions | None = None) -> None:
        """`rows` are those of the ids, if they are not simply 0, 1, …"""
        from pyarrow import acero  # it imports what most queries never need

        self._rows = rows
        self._given: SimpleQueue[pa.Array | None] = SimpleQueue()
        self._lengths: deque[int] = deque()
        self._kind = ids.type
        schema = pa.schema({"id": ids.type})
        source = pa.RecordBatchReader.from_batches(schema, self._batches(schema))
        plan = [
            acero.Declaration(
                "record_batch_reader_source", acero.RecordBatchReaderSourceNodeOptions(source)
            ),
            acero.Declaration(
                "project", acero.ProjectNodeOptions([pc.index_in(pc.field("id"), ids)], ["row"])
            ),
        ]
        self._found = acero.Declaration.from_sequence(plan).to_reader()

    @staticmethod
    def bytes_of(ids: pa.ChunkedArray) -> int:
        """About what it holds: the ids twice, and a table that becomes four times as large whenever it is half full."""
        return 2 * int(ids.nbytes) + (16 << ((2 * len(ids)).bit_length() | 1))

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        while (ids := self._given.get()) is not None:
            yield pa.record_batch([ids], schema)

    def give(self, ids: pa.Array) -> None:
        self._lengths.append(len(ids))
        self._given.put(ids.cast(self._kind))

    def take(self) -> Positions:
        """The rows of the batch that was given first, -1 for ids that are not there."""
        left, parts = self._lengths.popleft(), []
        while left:
            part = self._found.read_next_batch().column(0).fill_null(NO_ROW)
            parts.append(part.to_numpy())
            left -= len(part)
        found = np.concatenate([NO_POSITIONS, *parts])
        if self._rows is None or not len(self._rows):
            return found
        return np.where(found < 0, np.int32(NO_ROW), self._rows[found])

    def __enter__(self) -> IdStream:
        return self

    def __exit__(self, *failure: object) -> None:
        self._given.put(None)
        self._found.close()


def _hashes(ids: pa.Array) -> Ints:
    """Hashes of this process; pieces keep the strings of a long column from existing all together."""
    found = np.empty(len(ids), np.int64)
    for start in range(0, len(ids), PIECE_ROWS):
        piece = ids.slice(start, PIECE_ROWS).to_pylist()
        found[start : start + len(piece)] = np.fromiter(map(hash, piece), np.int64, len(piece))
    return found
