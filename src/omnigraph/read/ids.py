"""Finding rows by id among loaded ids: sorted hashes, looked up by binary search."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.arrays import NO_ROW, Ints, Positions

PIECE_ROWS = 1 << 16


class IdIndex:
    """The rows of one array of ids. Twelve bytes a row; whoever looks up brings the ids themselves."""

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


def _hashes(ids: pa.Array) -> Ints:
    """Hashes of this process; pieces keep the strings of a long column from existing all together."""
    found = np.empty(len(ids), np.int64)
    for start in range(0, len(ids), PIECE_ROWS):
        piece = ids.slice(start, PIECE_ROWS).to_pylist()
        found[start : start + len(piece)] = np.fromiter(map(hash, piece), np.int64, len(piece))
    return found
