"""Sort orders: of columns as row numbers, and of more rows than one run.

Rows beyond one run are sorted run by run and merged block by block, so that time is checked in between; runs that do
not fit into the memory of the query wait on disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.frozen import frozen
from omnigraph.read.arrays import Ints
from omnigraph.read.budget import Held
from omnigraph.read.context import Context
from omnigraph.read.rows import Rows, concat_rows
from omnigraph.read.spill import RowsFile, spill_folder

FEW_ROWS = 64
RUN_ROWS = 1 << 17
CHUNK_ROWS = 4_096  # of a run, read together while merging

Flags = np.ndarray[Any, np.dtype[np.bool_]]
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
    """Arrow sorts in other threads, which costs more than sorting a few rows here."""
    found = list(range(n))
    for values, descending in reversed(keys):
        ranks = [rank_of(v) for v in values.to_pylist()]
        found.sort(key=ranks.__getitem__, reverse=descending)
    return np.array(found, np.int64)


def rank_of(value: Any) -> tuple[int, Any]:
    """The rank of a value among others of its column."""
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


# --- more rows than one run --------------------------------------------------------------------------------------


@frozen
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


@frozen
class _Run:
    """One sorted run: in memory, or on disk."""

    held: Keyed | None = None
    file: RowsFile | None = None

    def chunks(self, descending: list[bool]) -> Iterator[Keyed]:
        if self.held is not None:
            n = self.held.rows.n
            for start in range(0, n, CHUNK_ROWS):
                yield self.held.slice(start, min(start + CHUNK_ROWS, n))
        if self.file is not None:
            for rows, keys in self.file.read():
                yield Keyed(rows, list(zip(keys, descending, strict=True)))


class _Ahead:
    """What was read of a run and not yet taken."""

    def __init__(self, chunks: Iterator[Keyed]) -> None:
        self._chunks = chunks
        self.goes_on = True
        self.at_hand: Keyed | None = None

    def fill(self) -> bool:
        """Load a chunk, or what is left; returns whether there are rows."""
        while self.goes_on and (self.at_hand is None or self.at_hand.rows.n < CHUNK_ROWS):
            more = next(self._chunks, None)
            self.goes_on = more is not None
            parts = [part for part in (self.at_hand, more) if part is not None]
            self.at_hand = together(parts) if parts else None
        return self.at_hand is not None

    def take(self, rows: int) -> Keyed:
        assert self.at_hand is not None  # noqa: S101
        taken, n = self.at_hand.slice(0, rows), self.at_hand.rows.n
        self.at_hand = self.at_hand.slice(rows, n) if rows < n else None
        return taken


class SortedRuns:
    """Any number of rows, read back in order; those that do not fit the budget are kept on disk."""

    def __init__(self, ctx: Context, held: Held) -> None:
        self._ctx = ctx
        self._held = held
        self._runs: list[_Run] = []
        self._files = 0
        self._folder: TemporaryDirectory[str] | None = None
        self._descending: list[bool] = []

    def add(self, keyed: Keyed) -> None:
        """Keep rows as new runs."""
        self._descending = [descending for _, descending in keyed.keys]
        for start in range(0, keyed.rows.n, RUN_ROWS):
            self._ctx.check()
            some = keyed.slice(start, min(start + RUN_ROWS, keyed.rows.n)).sorted()
            # Writing to disk must make room for what follows, and merging needs some itself.
            if self._folder is None and self._held.fits(4 * (self._held.size + some.nbytes)):
                self._held.add(some.nbytes)
                self._runs.append(_Run(held=some))
            else:
                self._put_all_on_disk()
                self._runs.append(self._written([some]))

    def _put_all_on_disk(self) -> None:
        if self._folder is None:
            self._folder = spill_folder()
            for i, run in enumerate(self._runs):
                assert run.held is not None  # noqa: S101
                self._runs[i] = self._written([run.held])
            self._held.set(0)

    def _written(self, parts: Iterable[Keyed]) -> _Run:
        assert self._folder is not None  # noqa: S101
        place = Path(self._folder.name, f"{self._files}.arrow")
        self._files += 1
        written = ((part.rows, [values for values, _ in part.keys]) for part in parts)
        found = RowsFile.write(place, written, CHUNK_ROWS)
        self._ctx.budget.spilled(found.nbytes)
        self._ctx.note(spilled_bytes=self._ctx.budget.spilled_bytes)
        return _Run(file=found)

    def merged(self) -> Iterator[Keyed]:
        """All rows in order, block by block; equal rows in the order they came in."""
        at_once = max(2, self._ctx.budget.block_rows // (2 * CHUNK_ROWS))
        try:
            while self._folder is not None and len(self._runs) > at_once:
                groups = [self._runs[i : i + at_once] for i in range(0, len(self._runs), at_once)]
                self._runs = [self._longer(group) for group in groups]
            yield from self._merge(self._runs)
        finally:
            if self._folder is not None:
                self._folder.cleanup()
            self._runs = []
            self._held.set(0)

    def _longer(self, runs: list[_Run]) -> _Run:
        """Several runs as one, if they are more than can be read side by side."""
        found = self._written(self._merge(runs))
        for run in runs:
            assert run.file is not None  # noqa: S101
            run.file.place.unlink()
        return found

    def _merge(self, runs: list[_Run]) -> Iterator[Keyed]:
        """Repeatedly, all rows that no later row can precede."""
        ahead = [_Ahead(run.chunks(self._descending)) for run in runs]
        while ahead := [one for one in ahead if one.fill()]:
            self._ctx.check()
            at_hand = [one.at_hand for one in ahead if one.at_hand is not None]
            ends = _next_rows(at_hand, [one.goes_on for one in ahead])
            some = [one.take(end) for one, end in zip(ahead, ends, strict=True) if end]
            yield together(some).sorted() if len(some) > 1 else some[0]


def _next_rows(parts: list[Keyed], goes_on: list[bool]) -> list[int]:
    """How many rows of each part are ready: those that no later row can precede.

    That is everything up to the part that goes on and ends first. Rows equal to its last one belong to it if their part
    is before it; those of later parts have to wait for the rest of it.
    """
    going = [i for i, more in enumerate(goes_on) if more]
    sizes = np.array([part.rows.n for part in parts])
    if not going:
        return list(map(int, sizes))
    lasts = _rows_at([parts[i] for i in going], sizes[going] - 1)
    first = going[int(order_by(lasts, len(going))[0])]
    end = parts[first].slice(int(sizes[first]) - 1, int(sizes[first]))
    earlier = np.arange(len(parts)) < first
    low, high = np.zeros(len(parts), np.int64), sizes.copy()
    low[first] = high[first]
    active = np.flatnonzero(low < high)
    middle = low[active]  # the first rows first: many parts begin after the end
    while len(active):
        before = _before([parts[i] for i in active], middle, end, earlier[active])
        low[active[before]] = middle[before] + 1
        high[active[~before]] = middle[~before]
        active = active[low[active] < high[active]]
        middle = (low[active] + high[active]) // 2
    return list(map(int, low))


def _rows_at(parts: list[Keyed], at: Ints) -> Keys:
    """The keys of one row of each part."""
    return [
        (
            pa.concat_arrays(
                [p.keys[k][0].slice(i, 1) for p, i in zip(parts, at.tolist(), strict=True)]
            ),
            d,
        )
        for k, (_, d) in enumerate(parts[0].keys)
    ]


def _before(parts: list[Keyed], at: Ints, end: Keyed, or_equal: Flags) -> Flags:
    """Whether one row of each part comes before a row, or (where `or_equal`) equals it."""
    n = len(parts)
    rows = zip(_rows_at(parts, at), end.keys, strict=True)
    keys = [(pa.concat_arrays([one, values, one]), d) for (values, d), (one, _) in rows]
    place = np.empty(n + 2, np.int64)
    place[order_by(keys, n + 2)] = np.arange(n + 2)
    found: Flags = np.where(or_equal, place[1:-1] < place[-1], place[1:-1] < place[0])
    return found
