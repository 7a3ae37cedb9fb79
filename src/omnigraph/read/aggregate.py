"""Grouping and aggregating: few rows in one step; of more, every block is reduced and the results merged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import repeat

import numpy as np
import pyarrow as pa

from omnigraph.expressions.shapes import arrow_shape
from omnigraph.lang import ir
from omnigraph.lang.ir import AggregateFunction as F
from omnigraph.read.arrays import Ints
from omnigraph.read.blocks import number_rows
from omnigraph.read.budget import Held
from omnigraph.read.context import Context
from omnigraph.read.expressions import column
from omnigraph.read.groups import Groups, encode_any, group
from omnigraph.read.plan import names_read
from omnigraph.read.reductions import (
    ValueColumn,
    add_up,
    aggregated,
    counts,
    each_once,
    extreme,
    known_values,
    reduced,
    sums,
    totals,
)
from omnigraph.read.rows import LazyColumn, Rows, concat_rows
from omnigraph.read.sorting import RUN_ROWS, Keyed, Keys, SortedRuns, together

STATE = "\0"  # in the name of a column: it is the state of an aggregate, not a key
VALUE, OFTEN, COUNT, SUM = "value", "often", "count", "sum"  # what such a column holds
WHICH = "which"  # a column that says whether a row is of a group, or a value
MERGE_ROWS_MAX = 1 << 20  # more are not merged in one step
MERGE_COPIES = 3  # of the merged rows: concatenated, numbered, and taken
GATHERED_BLOCKS = 4  # grouped together


def aggregate(
    op: ir.Aggregate, blocks: Iterator[Rows], ctx: Context, name: str = "Aggregate"
) -> Iterator[Rows]:
    """One row per group."""
    with ctx.hold(name) as held, ctx.hold(name) as sorting:
        reduction = _Partial(op, held, sorting, ctx)
        waiting: list[Rows] = []
        for rows in blocks:
            waiting.append(rows)
            if _enough(op, waiting, ctx):
                reduction.add(concat_rows(waiting))
                waiting = []
        del rows
        if reduction.is_empty:
            yield _at_once(op, _let_go(waiting), ctx)
            return
        if waiting:
            reduction.add(concat_rows(waiting))
        yield from reduction.finished()


def _enough(op: ir.Aggregate, waiting: list[Rows], ctx: Context) -> bool:
    """Whether enough rows wait to be reduced; numbering values is slow."""
    blocks = 1 if any(map(_keeps_values, op.aggregates)) else GATHERED_BLOCKS
    if sum(rows.n for rows in waiting) >= blocks * ctx.budget.block_rows:
        return True
    return sum(rows.nbytes for rows in waiting) >= ctx.budget.block_bytes


def _let_go(waiting: list[Rows]) -> Rows:
    """All of them as one; the list lets go of them."""
    found = concat_rows(waiting)
    waiting.clear()
    return found


def _at_once(op: ir.Aggregate, rows: Rows, ctx: Context) -> Rows:
    groups = group(op.keys, rows, ctx)
    some = rows.take(groups.first) if op.keys else rows
    columns: dict[str, pa.Array | LazyColumn] = {
        key.name: LazyColumn(some, partial(column, key.expr, ctx=ctx)) for key in op.keys
    }
    for wanted in op.aggregates:
        columns[wanted.name] = aggregated(wanted, rows, groups, ctx)
    return Rows(len(groups), columns=columns)


class _Partial:
    """The result of reducing blocks one by one: the groups so far, and the state of each aggregate.

    A state is one or two columns; values that count once, and those that are collected, stay as separate rows.
    What is too much to merge in one step is sorted by the keys, on disk if need be, and merged when read back.
    """

    def __init__(self, op: ir.Aggregate, held: Held, sorting: Held, ctx: Context) -> None:
        self._op = op
        self._held = held
        self._ctx = ctx
        self._read = names_read(key.expr for key in op.keys)
        self._groups: list[Rows] = []
        self._merged_rows = 0
        self._values: dict[int, list[Rows]] = {
            i: [] for i, wanted in enumerate(op.aggregates) if _keeps_values(wanted)
        }
        self._runs = SortedRuns(ctx, sorting)
        self._aside = False  # whether the runs hold anything
        self._kinds: dict[str, pa.DataType] = {}  # of their columns

    @property
    def is_empty(self) -> bool:
        return not self._groups and not self._aside

    def add(self, rows: Rows) -> None:
        """Reduce a block."""
        groups = group(self._op.keys, rows, self._ctx)
        states: dict[str, pa.Array | LazyColumn] = {}
        for i, wanted in enumerate(self._op.aggregates):
            if i in self._values:
                self._keep_values(i, wanted, rows, groups)
            else:
                states |= _state(i, wanted, rows, groups, self._ctx)
        self._groups.append(_with_columns(self._one_each(rows, groups.first), states))
        if self._waiting > 2 * self._merged_rows + self._ctx.budget.block_rows:
            self._merge()
        self._account()

    @property
    def _waiting(self) -> int:
        kept = sum(part.n for parts in self._values.values() for part in parts)
        return kept + sum(part.n for part in self._groups)

    def _one_each(self, rows: Rows, index: Ints) -> Rows:
        """Some rows, with only what the keys are made of."""
        if not self._op.keys:
            return Rows(len(index))
        return _keys_only(rows.keep(self._read)).take(index)

    def _keep_values(self, i: int, wanted: ir.NamedAggregate, rows: Rows, groups: Groups) -> None:
        data = known_values(wanted, rows, groups, self._ctx)
        at = np.arange(rows.n) if data.at is None else data.at
        values, weight = data.values, data.weight
        if wanted.distinct:
            _, first = number_rows([data.of, encode_any(values)], len(data.of))
            at, values, weight = at[first], values.take(pa.array(first)), None
        part = self._one_each(rows, at)
        often = np.ones(part.n, np.int64) if weight is None else weight
        columns = {_name(i, VALUE): values, _name(i, OFTEN): pa.array(often)}
        self._values[i].append(_with_columns(part, columns))

    def _merge(self) -> None:
        """Every group once."""
        rows = concat_rows(self._groups)
        groups = group(self._op.keys, rows, self._ctx)
        states = _merged_states(self._op, rows, groups)
        self._groups = [_with_columns(self._one_each(rows, groups.first), states)]
        for i, parts in self._values.items():
            if self._op.aggregates[i].distinct and parts:
                self._values[i] = [self._once(i, concat_rows(parts))]
        self._merged_rows = self._waiting

    def _once(self, i: int, rows: Rows) -> Rows:
        groups = group(self._op.keys, rows, self._ctx)
        _, first = number_rows([groups.of, encode_any(rows.column(_name(i, VALUE)))], rows.n)
        return rows.take(first)

    def _account(self) -> None:
        """Charge what is held; if it is too much to merge again, spill it in order."""
        kept = [part for parts in self._values.values() for part in parts]
        size = MERGE_COPIES * sum(part.nbytes for part in (*self._groups, *kept))
        most = min(MERGE_ROWS_MAX, 2 * self._ctx.budget.block_rows)
        if self._op.keys and (self._merged_rows > most or not self._held.fits(2 * size)):
            self._put_aside()
        else:
            self._held.set(size)

    def _put_aside(self) -> None:
        parts = [*self._groups, *(part for parts in self._values.values() for part in parts)]
        if not self._aside:
            found = {name: part.column(name).type for part in parts for name in part.columns}
            self._kinds = {name: kind for name, kind in found.items() if STATE in name}
            self._aside = True
        for part in parts:
            for piece in part.pieces(repeat(RUN_ROWS)):
                self._ctx.check()
                self._runs.add(self._keyed(piece))
        self._groups, self._merged_rows = [], 0
        self._values = {i: [] for i in self._values}
        self._held.set(0)

    def _keyed(self, rows: Rows) -> Keyed:
        """Rows by their keys, with every state and value column; those of other rows are null."""
        keys = [(column(key.expr, rows, self._ctx), False) for key in self._op.keys]
        columns = {
            name: rows.column(name) if name in rows.columns else pa.nulls(rows.n, kind)
            for name, kind in self._kinds.items()
        }
        values = any(_name(i, OFTEN) in rows.columns for i in self._values)
        columns[WHICH] = pa.array(np.full(rows.n, not values))
        return Keyed(Rows(rows.n, columns=columns), keys)

    # --- the end ---------------------------------------------------------------------------------------------

    def finished(self) -> Iterator[Rows]:
        """One row per group."""
        if not self._aside:
            self._merge()
            (rows,) = self._groups
            kept = {i: concat_rows(parts) for i, parts in self._values.items()}
            yield self._in_memory(rows, kept)
            return
        self._put_aside()
        yield from self._from_disk(self._runs.merged())

    def _in_memory(self, rows: Rows, kept: dict[int, Rows]) -> Rows:
        some = _keys_only(rows)
        columns: dict[str, pa.Array | LazyColumn] = {
            key.name: LazyColumn(some, partial(column, key.expr, ctx=self._ctx))
            for key in self._op.keys
        }
        for i, wanted in enumerate(self._op.aggregates):
            if i in kept:
                groups = group(self._op.keys, concat_rows([some, _keys_only(kept[i])]), self._ctx)
                number = np.zeros(len(groups), np.int64)
                number[groups.of[: some.n]] = np.arange(some.n)
                of = number[groups.of[some.n :]]
                columns[wanted.name] = _of_values(i, wanted, kept[i], of, some.n)
            else:
                columns[wanted.name] = _final(i, wanted, rows)
        return Rows(rows.n, columns=columns)

    def _from_disk(self, blocks: Iterator[Keyed]) -> Iterator[Rows]:
        """Groups in the order of their keys: only the last one of a block can go on in the next.

        Of that group only its states and values are kept, and it is assembled once, at its end.
        """
        going: list[Rows] = []
        last: Keyed | None = None  # a row of the group that goes on
        for block in blocks:
            starts, n = _starts(block), block.rows.n
            if last is not None:
                more = 2 - len(_starts(together([last, block.slice(0, 1)])))  # whether it goes on
                end = int(np.append(starts, n)[more])
                going.append(block.slice(0, end).rows)
                if end < n:
                    yield self._one_group(going, last)
                    going = []
                starts = starts[starts >= end]
            if len(starts):
                begin, at = int(starts[0]), int(starts[-1])
                if begin < at:
                    some = block.slice(begin, at)
                    yield self._of_sorted(some.rows, some.keys, starts[:-1] - begin)
                going, last = [block.slice(at, n).rows], block.slice(at, at + 1)
            self._held.set(MERGE_COPIES * sum(part.nbytes for part in going))
        if last is not None:
            yield self._one_group(going, last)

    def _one_group(self, parts: list[Rows], row: Keyed) -> Rows:
        return self._of_sorted(concat_rows(parts), row.keys, np.zeros(1, np.int64))

    def _of_sorted(self, rows: Rows, keys: Keys, starts: Ints) -> Rows:
        """The groups of consecutive rows, each with its keys at its first row."""
        at = pa.array(starts)
        columns = {
            key.name: values.take(at) for key, (values, _) in zip(self._op.keys, keys, strict=True)
        }
        of = np.repeat(np.arange(len(starts)), np.diff(starts, append=rows.n))
        of_groups = rows.column(WHICH).to_numpy(zero_copy_only=False)
        states = _merged_states(self._op, rows.filter(of_groups), Groups(of[of_groups], starts))
        for i, wanted in enumerate(self._op.aggregates):
            if i in self._values:
                known = np.flatnonzero(rows.column(_name(i, OFTEN)).is_valid().to_numpy(False))
                columns[wanted.name] = _of_values(
                    i, wanted, rows.take(known), of[known], len(starts)
                )
            else:
                columns[wanted.name] = _final(i, wanted, Rows(len(starts), columns=states))
        return Rows(len(starts), columns=columns)


def _starts(keyed: Keyed) -> Ints:
    """Where groups begin in rows that are sorted by their keys."""
    _, first = number_rows([encode_any(values) for values, _ in keyed.keys], keyed.rows.n)
    return np.sort(first)


# --- states ------------------------------------------------------------------------------------------------------


def _name(i: int, kind: str) -> str:
    return f"{i}{STATE}{kind}"


def _keys_only(rows: Rows) -> Rows:
    """With only what the keys are made of."""
    columns = {name: c for name, c in rows.columns.items() if STATE not in name}
    return Rows(rows.n, rows.variables, rows.scores, columns)


def _with_columns(rows: Rows, columns: dict[str, pa.Array | LazyColumn]) -> Rows:
    return replace(rows, columns=rows.columns | columns)


def _keeps_values(wanted: ir.NamedAggregate) -> bool:
    if wanted.function in (F.MIN, F.MAX):
        return False
    return wanted.distinct or wanted.function in (F.COLLECT, F.IN_ORDER)


def _state(
    i: int, wanted: ir.NamedAggregate, rows: Rows, groups: Groups, ctx: Context
) -> dict[str, pa.Array | LazyColumn]:
    if wanted.arg is None:
        return {_name(i, COUNT): pa.array(add_up(groups.of, rows.weight, len(groups)))}
    data = known_values(wanted, rows, groups, ctx)
    match wanted.function:
        case F.MIN | F.MAX:
            largest = wanted.function is F.MAX
            return {_name(i, VALUE): extreme(data, largest=largest, kind=data.values.type)}
        case F.TOTAL:
            return {_name(i, COUNT): pa.array(totals(data))}
        case F.SUM | F.AVG:
            return {
                _name(i, COUNT): pa.array(counts(data)),
                _name(i, SUM): pa.array(sums(data)),
            }
        case _:
            return {_name(i, COUNT): pa.array(counts(data))}


def _merged_states(
    op: ir.Aggregate, rows: Rows, groups: Groups
) -> dict[str, pa.Array | LazyColumn]:
    """The merged states of groups that occur several times."""
    found: dict[str, pa.Array | LazyColumn] = {}
    for name in (name for name in rows.columns if STATE in name):
        number, kind = name.split(STATE)
        if _keeps_values(op.aggregates[int(number)]):
            continue
        values = rows.column(name)
        if kind == VALUE:
            known = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
            data = ValueColumn(values.take(pa.array(known)), groups.of[known], None, len(groups))
            largest = op.aggregates[int(number)].function is F.MAX
            found[name] = extreme(data, largest=largest, kind=values.type)
        elif kind == COUNT:
            found[name] = pa.array(add_up(groups.of, values.to_numpy(), len(groups)))
        else:
            weights = values.to_numpy()
            found[name] = pa.array(np.bincount(groups.of, weights=weights, minlength=len(groups)))
    return found


def _of_values(i: int, wanted: ir.NamedAggregate, rows: Rows, of: Ints, groups: int) -> pa.Array:
    """The aggregate of kept values."""
    values, often = rows.column(_name(i, VALUE)), rows.column(_name(i, OFTEN))
    data = ValueColumn(values, of, often.to_numpy(zero_copy_only=False).astype(np.int64), groups)
    if wanted.distinct:
        data = ValueColumn(*each_once(values, of), groups)
    return reduced(wanted.function, data, arrow_shape(wanted.type))


def _final(i: int, wanted: ir.NamedAggregate, rows: Rows) -> pa.Array:
    """The result of the state of an aggregate."""
    kind = arrow_shape(wanted.type)
    match wanted.function:
        case F.MIN | F.MAX:
            found = rows.column(_name(i, VALUE))
            return found if found.type == kind else found.cast(kind)
        case F.SUM | F.AVG:
            number = rows.column(_name(i, COUNT)).to_numpy()
            total = rows.column(_name(i, SUM)).to_numpy()
            mean = total / np.maximum(number, 1) if wanted.function is F.AVG else total
            return pa.array(mean, kind, mask=number == 0)
        case _:
            return pa.array(rows.column(_name(i, COUNT)).to_numpy(), kind)
