"""Orders: of columns as numbers of rows, and of more rows than are sorted at once.

Rows beyond one run are sorted run by run and merged block by block, so that time is looked at in between; runs that do
not fit into the memory of the query wait on disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.arrays import Ints
from omnigraph.read.budget import Held
from omnigraph.read.context import Context
from omnigraph.read.rows import Rows, concat_rows
from omnigraph.read.spill import RowsFile, spill_folder

FEW_ROWS = 64
RUN_ROWS = 1 << 17
CHUNK_ROWS_MIN = 1_024  # of a run, read at once while merging
CHUNK_ROWS_MAX = 1 << 15

Keys = list[tuple[pa.Array, bool]]  # columns to sort by, and whether descending


def order_by(keys: Keys, n: int) -> Ints:
    """The order of rows by columns ascending or descending; null is smaller, NaN larger than everything."""
    if not keys or n < 2:
        return np.arange(n)
    if n <= FEW_ROWS:
        return _order_of_few(keys, n)
    arrays: list[pa.Array] = []
    sort_keys: list[tuple[str, str, str]] = []
    for values, descending in keys:
        way = ("descending", "at_end") if descending else ("ascending", "at_start")
        for part in _sortable(values):
            sort_keys.append((str(len(arrays)), *way))
            arrays.append(part)
    table = pa.table(arrays, names=[name for name, _, _ in sort_keys])
    found: Ints = pc.sort_indices(table, sort_keys=sort_keys).to_numpy().astype(np.int64)
    return found


def _order_of_few(keys: Keys, n: int) -> Ints:
    """Arrow hands sorting to other threads, which costs more than sorting a few rows right here."""
    found = list(range(n))
    for values, descending in reversed(keys):
        ranks = [rank_of(v) for v in values.to_pylist()]
        found.sort(key=ranks.__getitem__, reverse=descending)
    return np.array(found, np.int64)


def rank_of(value: Any) -> tuple[int, Any]:
    """Where a value stands among others of its column."""
    match value:
        case None:
            return (0, 0)
        case float() if value != value:  # noqa: PLR0124 - only NaN differs from itself
            return (2, 0)
        case str():
            return (1, value.encode())
        case list():
            return (1, tuple(rank_of(member) for member in value))
        case dict():
            return (1, text_of(value))
        case _:
            return (1, value)


def _sortable(values: pa.Array) -> list[pa.Array]:
    if pa.types.is_floating(values.type):
        nan = pc.is_nan(values)
        if nan.true_count:
            return [nan, values]
    if pa.types.is_boolean(values.type):
        return [values.cast(pa.int8())]
    if pa.types.is_list(values.type):
        return [_ranks(values)]
    if pa.types.is_nested(values.type):
        texts = [None if v is None else text_of(v) for v in values.to_pylist()]
        return [pa.array(texts, pa.string())]
    return [values]


def _ranks(values: pa.Array) -> pa.Array:
    """Lists as numbers in their order: member by member, a shorter one before those it begins."""
    ranks = [None if v is None else rank_of(v) for v in values.to_pylist()]
    place = {rank: i for i, rank in enumerate(sorted({r for r in ranks if r is not None}))}
    return pa.array([None if r is None else place[r] for r in ranks], pa.int64())


def text_of(value: Any) -> str:
    """The same for equal lists and structures: -0.0 is 0.0."""
    return repr(_one_zero(value))


def _one_zero(value: Any) -> Any:
    match value:
        case float():
            return value + 0.0
        case list():
            return [_one_zero(member) for member in value]
        case dict():
            return {name: _one_zero(member) for name, member in value.items()}
        case _:
            return value


# --- more rows than are sorted at once ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Keyed:
    """Rows beside the columns they are sorted by."""

    rows: Rows
    keys: Keys

    def take(self, index: Ints) -> Keyed:
        at = pa.array(index)
        return Keyed(self.rows.take(index), [(values.take(at), d) for values, d in self.keys])

    def slice(self, start: int, end: int) -> Keyed:
        keys = [(values.slice(start, end - start), d) for values, d in self.keys]
        return Keyed(self.rows.slice(slice(start, end)), keys)

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + sum(int(values.nbytes) for values, _ in self.keys)

    def sorted(self) -> Keyed:
        return self.take(order_by(self.keys, self.rows.n))


def together(parts: list[Keyed]) -> Keyed:
    """All rows of several, one after the other."""
    if len(parts) == 1:
        return parts[0]
    columns = zip(*(part.keys for part in parts), strict=True)
    keys = [(pa.concat_arrays([c[0] for c in column]), column[0][1]) for column in columns]
    return Keyed(concat_rows([part.rows for part in parts]), keys)


@dataclass(slots=True)
class _Run:
    """One sorted run: in memory, or on disk as chunks one after the other."""

    rows: int
    held: Keyed | None = None
    file: RowsFile | None = None
    at: int = 0  # the next row, or the next chunk of the file

    def next(self, chunk_rows: int, descending: list[bool]) -> Keyed | None:
        """The next rows of it; None at its end."""
        if self.held is not None:
            start, self.at = self.at, min(self.at + chunk_rows, self.rows)
            return self.held.slice(start, self.at) if start < self.at else None
        if self.file is None or self.at >= self.file.chunks:
            return None
        rows, keys = self.file.read(self.at)
        self.at += 1
        return Keyed(rows, list(zip(keys, descending, strict=True)))


class SortedRuns:
    """Rows to be had in order, of whatever number; those that do not fit the budget are kept on disk."""

    def __init__(self, ctx: Context, held: Held) -> None:
        self._ctx = ctx
        self._held = held
        self._runs: list[_Run] = []
        self._files = 0
        self._folder: TemporaryDirectory[str] | None = None
        self._descending: list[bool] = []

    def add(self, keyed: Keyed) -> None:
        """Keep rows as runs of their own."""
        self._descending = [descending for _, descending in keyed.keys]
        for start in range(0, keyed.rows.n, RUN_ROWS):
            self._ctx.check()
            some = keyed.slice(start, min(start + RUN_ROWS, keyed.rows.n)).sorted()
            # What is written to disk must make room for what comes, and merging needs some itself.
            if self._held.fits(4 * (self._held.size + some.nbytes)):
                self._held.add(some.nbytes)
                self._runs.append(_Run(some.rows.n, held=some))
            else:
                self._runs.append(self._written(some))

    def _written(self, run: Keyed) -> _Run:
        if self._folder is None:
            self._folder = spill_folder()
            for known in self._runs:
                assert known.held is not None  # noqa: S101
                known.file = self._write(known.held)
                known.held, known.at = None, 0
            self._held.set(0)
        return _Run(run.rows.n, file=self._write(run))

    def _write(self, run: Keyed) -> RowsFile:
        assert self._folder is not None  # noqa: S101
        place = Path(self._folder.name, f"{self._files}.arrow")
        self._files += 1
        found = RowsFile.write(place, run.rows, [values for values, _ in run.keys])
        self._ctx.budget.spilled(found.nbytes)
        self._ctx.note(spilled_bytes=self._ctx.budget.spilled_bytes)
        return found

    def merged(self) -> Iterator[Keyed]:
        """All rows in order, block by block."""
        try:
            if len(self._runs) == 1 and self._runs[0].held is not None:
                yield self._runs[0].held
                return
            yield from self._merge()
        finally:
            if self._folder is not None:
                self._folder.cleanup()
            self._runs = []
            self._held.set(0)

    def _merge(self) -> Iterator[Keyed]:
        """What is not after the last row at hand of any run that goes on is the next block."""
        block = self._ctx.budget.block_rows
        chunk = max(CHUNK_ROWS_MIN, min(CHUNK_ROWS_MAX, block // max(len(self._runs), 1)))
        pool: Keyed | None = None
        of = np.empty(0, np.int64)  # the run of every row in the pool
        ended = np.zeros(len(self._runs), np.bool_)
        while True:
            self._ctx.check()
            pool, of = self._refill(pool, of, ended, chunk)
            if pool is None or not pool.rows.n:
                return
            order = order_by(pool.keys, pool.rows.n)
            last = np.full(len(self._runs), -1, np.int64)
            last[of[order]] = np.arange(len(order))
            going = last[~ended]
            end = int(going.min()) + 1 if len(going) else len(order)
            yield pool.take(order[:end])
            pool, of = pool.take(order[end:]), of[order[end:]]

    def _refill(
        self, pool: Keyed | None, of: Ints, ended: np.ndarray[Any, np.dtype[np.bool_]], chunk: int
    ) -> tuple[Keyed | None, Ints]:
        parts, owners = ([] if pool is None else [pool]), [of]
        present = np.bincount(of, minlength=len(self._runs)) > 0
        for number in np.flatnonzero(~present & ~ended).tolist():
            found = self._runs[number].next(chunk, self._descending)
            if found is None:
                ended[number] = True
            else:
                parts.append(found)
                owners.append(np.full(found.rows.n, number, np.int64))
        return (together(parts) if parts else None), np.concatenate(owners)
