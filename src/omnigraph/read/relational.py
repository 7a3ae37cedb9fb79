"""Output columns: projecting, removing equal rows, sorting, cutting, appending."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import OptionInvalid
from omnigraph.expressions.comparing import same_as, to_mask
from omnigraph.lang import ir
from omnigraph.model.types import PropType
from omnigraph.read.aggregate import aggregate
from omnigraph.read.arrays import Ints
from omnigraph.read.blocks import number_rows
from omnigraph.read.budget import Held
from omnigraph.read.context import Context
from omnigraph.read.expressions import column, columns
from omnigraph.read.groups import encode_any
from omnigraph.read.plan import PlanStep
from omnigraph.read.rows import Rows, concat_rows
from omnigraph.read.sorting import (
    FEW_ROWS,
    RUN_ROWS,
    Keyed,
    SortedRuns,
    order_by,
    rank_of,
)

PICK_ROWS_MIN = 1_000  # below this sorting everything is as quick
PICK_PART = 4  # a limit below one row in this many of a run is picked, not sorted
FIRST_ROWS = {
    False: 1 << 17,
    True: 1 << 13,
}  # made before their width is known; large values: fewer


def project(step: PlanStep, blocks: Iterator[Rows], ctx: Context) -> Iterator[Rows]:
    """The columns of the result, in blocks sized by their values."""
    op = step.op
    assert isinstance(op, ir.Project)  # noqa: S101
    exprs = [c.expr for c in op.columns]
    for rows in blocks:
        if rows.n <= FEW_ROWS and rows.weight is None:
            yield _projected(op, exprs, rows, ctx)
            continue
        sizes = _Sizes(ctx, step.early, exprs)
        for piece in rows.spelled_out(sizes) if step.bag else rows.pieces(sizes):
            ctx.check()
            found = _projected(op, exprs, piece, ctx)
            sizes.learn(found)
            yield found


def _projected(op: ir.Project, exprs: list[ir.Expr], rows: Rows, ctx: Context) -> Rows:
    values = columns(exprs, rows, ctx)
    return Rows(rows.n, columns={c.name: v for c, v in zip(op.columns, values, strict=True)})


class _Sizes(Iterator[int]):
    """How many rows to make of columns whose values may be of any size."""

    def __init__(self, ctx: Context, early: bool, exprs: list[ir.Expr]) -> None:
        self._sizes = ctx.sizes(early)
        self._bytes = ctx.budget.block_bytes
        plain = all(isinstance(e.type, PropType) and e.type.is_plain for e in exprs)
        self._most = FIRST_ROWS[not plain]

    def __next__(self) -> int:
        return min(next(self._sizes), self._most)

    def learn(self, made: Rows) -> None:
        if made.n:
            self._most = max(1, self._bytes * made.n // max(made.nbytes, made.n))


def remove_equal(step: PlanStep, blocks: Iterator[Rows], ctx: Context) -> Iterator[Rows]:
    """Each row once."""
    op = step.op
    assert isinstance(op, ir.Distinct)  # noqa: S101
    if step.early:
        with ctx.hold("Distinct") as held:
            yield from _new_ones(blocks, held)
        return
    first, second = next(blocks), next(blocks, None)
    if second is None:
        yield _plain(first).take(_first_rows(first))
        return
    keys = tuple(ir.NamedExpr(name, ir.Output(name, ir.STRING)) for name in first.columns)
    every = map(_plain, chain((first, second), blocks))
    yield from aggregate(ir.Aggregate(op.input, keys, ()), every, ctx, "Distinct")


def _plain(rows: Rows) -> Rows:
    return Rows(rows.n, columns=rows.columns)


def _new_ones(blocks: Iterator[Rows], held: Held) -> Iterator[Rows]:
    """Rows not seen before, as they arrive; they are compared with those seen once half as many wait."""
    seen: Rows | None = None
    waiting: list[Rows] = []
    for rows in chain(blocks, [None]):
        if rows is not None:
            waiting.append(_plain(rows))
            held.add(2 * rows.nbytes)
            if seen is not None and 2 * sum(w.n for w in waiting) < seen.n:
                continue
        if not waiting:
            return
        known = 0 if seen is None else seen.n
        both = concat_rows(waiting if seen is None else [seen, *waiting])
        firsts = _first_rows(both)
        seen, waiting = both.take(firsts), []
        held.set(2 * seen.nbytes)
        yield both.take(firsts[firsts >= known])


def _first_rows(rows: Rows) -> Ints:
    """The first row of each kind."""
    if rows.n <= FEW_ROWS:
        return _firsts_of_few([rows.column(name) for name in rows.columns], rows.n)
    numbers = [encode_any(rows.column(name)) for name in rows.columns]
    return np.sort(number_rows(list(numbers), rows.n)[1])


def _firsts_of_few(columns: list[pa.Array], n: int) -> Ints:
    """Numbering values costs more than comparing a few rows right here."""
    found: dict[tuple[Any, ...], int] = {}
    ranks = [[rank_of(value) for value in values.to_pylist()] for values in columns]
    for i in range(n):
        found.setdefault(tuple(rank[i] for rank in ranks), i)
    return np.array(list(found.values()), np.int64)


def append(parts: Iterable[Iterator[Rows]]) -> Iterator[Rows]:
    """All rows of all inputs, columns by position."""
    first: list[str] | None = None
    kinds: list[pa.DataType] = []
    for part in parts:
        for rows in part:
            if first is None:
                first = list(rows.columns)
                kinds = [rows.column(name).type for name in first]
            yield _renamed(rows, first, kinds)


def _renamed(rows: Rows, names: list[str], kinds: list[pa.DataType]) -> Rows:
    made = zip(names, rows.columns, kinds, strict=True)
    return Rows(rows.n, columns={name: _as(rows.column(own), kind) for name, own, kind in made})


def _as(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return values if values.type == kind else values.cast(kind)


# --- order -------------------------------------------------------------------------------------------------------


def sort(step: PlanStep, blocks: Iterator[Rows], ctx: Context) -> Iterator[Rows]:
    """In a total order; with a limit above, only as many rows as that lets through."""
    op = step.op
    assert isinstance(op, ir.Sort)  # noqa: S101
    wanted = None if step.slice is None else rows_wanted(step.slice, ctx)
    few = wanted is not None and op.keys and wanted * PICK_PART <= RUN_ROWS
    with ctx.hold("Sort") as held:
        pieces = (piece for rows in blocks for piece in _whole_rows(step, rows, ctx))
        found = _best(op, pieces, wanted or 0, held, ctx) if few else _runs(step, pieces, held, ctx)
        for keyed in found:
            rows = keyed.rows
            yield rows if rows.columns else rows.keep(step.live)


def _whole_rows(step: PlanStep, rows: Rows, ctx: Context) -> Iterator[Rows]:
    return rows.spelled_out(ctx.sizes()) if step.bag or rows.columns else iter([rows])


def _keyed(op: ir.Sort, rows: Rows, ctx: Context) -> Keyed:
    keys = [(column(k.expr, rows, ctx), k.descending) for k in op.keys]
    return Keyed(rows, keys + [(column(tie, rows, ctx), False) for tie in op.ties])


def _runs(step: PlanStep, pieces: Iterator[Rows], held: Held, ctx: Context) -> Iterator[Keyed]:
    """All rows in order. An error as soon as they exceed the caller's limit."""
    op, n = step.op, 0
    assert isinstance(op, ir.Sort)  # noqa: S101
    runs, waiting = SortedRuns(ctx, held), []
    empty: Rows | None = None
    for rows in (piece for some in pieces for piece in some.pieces(repeat(RUN_ROWS))):
        ctx.check()
        n += rows.n
        if step.whole:
            ctx.admit(n)
        empty = rows if empty is None else empty
        waiting.append(rows)
        if sum(w.n for w in waiting) >= RUN_ROWS:
            runs.add(_keyed(op, concat_rows(waiting), ctx))
            waiting = []
    if waiting:
        runs.add(_keyed(op, concat_rows(waiting), ctx))
    if not n and empty is not None:
        yield Keyed(empty, [])
    yield from runs.merged()


def _best(
    op: ir.Sort, pieces: Iterator[Rows], wanted: int, held: Held, ctx: Context
) -> Iterator[Keyed]:
    """The first rows in order; of every block no more stay than could be among them."""
    kept: Rows | None = None
    for rows in pieces:
        kept = rows if kept is None else concat_rows([kept, rows])
        held.set(kept.nbytes)
        if kept.n > max(PICK_ROWS_MIN, 4 * wanted):
            kept = kept.take(
                _smallest(column(op.keys[0].expr, kept, ctx), op.keys[0].descending, wanted)
            )
        if kept.n > ctx.budget.block_rows:
            kept = _first_of(_keyed(op, kept, ctx), wanted).rows
        held.set(kept.nbytes)
    if kept is not None:
        yield _first_of(_keyed(op, kept, ctx), wanted)


def _first_of(keyed: Keyed, wanted: int) -> Keyed:
    return keyed.take(order_by(keyed.keys, keyed.rows.n)[:wanted])


def _smallest(values: pa.Array, descending: bool, wanted: int) -> Ints:
    """Rows among which the first ones in this order are, all that equal the last of them included."""
    if not wanted:
        return np.empty(0, np.int64)
    number = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
    plain = values.to_numpy(zero_copy_only=False) if number and not values.null_count else None
    if plain is None or np.isnan(plain.sum()):
        return _first_in_order(values, descending, wanted)
    at = len(plain) - wanted if descending else wanted - 1
    bound = np.partition(plain, at)[at]
    return np.flatnonzero(plain >= bound if descending else plain <= bound)


def _first_in_order(values: pa.Array, descending: bool, wanted: int) -> Ints:
    if pa.types.is_nested(values.type):
        return np.arange(len(values))
    order = order_by([(values, descending)], len(values))
    last = values[int(order[wanted - 1])]
    equal = same_as(values, last) if last.is_valid else values.is_null()
    return np.union1d(order[:wanted], np.flatnonzero(to_mask(equal)))


def cut(op: ir.Slice, blocks: Iterator[Rows], ctx: Context) -> Iterator[Rows]:
    """Skips rows, then cuts; nothing is read beyond the cut."""
    skip, limit = _count(op.skip, ctx) or 0, _count(op.limit, ctx)
    for rows in blocks:
        for piece in rows.spelled_out(ctx.sizes(early=limit is not None)):
            start = min(skip, piece.n)
            end = piece.n if limit is None else min(piece.n, start + limit)
            yield piece if (start, end) == (0, piece.n) else piece.slice(slice(start, end))
            skip -= start
            if limit is not None:
                limit -= end - start
                if not limit:
                    return


def rows_wanted(op: ir.Slice, ctx: Context) -> int | None:
    """How many rows reach the end of a cut; None for all."""
    limit = _count(op.limit, ctx)
    return None if limit is None else limit + (_count(op.skip, ctx) or 0)


def _count(expr: ir.Expr | None, ctx: Context) -> int | None:
    if expr is None:
        return None
    value = column(expr, Rows(1), ctx)[0].as_py()
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise OptionInvalid(f"skip and limit take whole numbers from 0, not {value!r}")
    return value
