"""Blocks run for the rows of an enclosing operator, all at once: each row is tagged, and the tags say whose solution
it is. Also plain joins, which need no tags."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from omnigraph.lang import ir
from omnigraph.model.ordering import canonical, exactly
from omnigraph.read.arrays import AnyArray, Ints, Mask, ranges
from omnigraph.read.context import Context
from omnigraph.read.expressions import column
from omnigraph.read.plan import Step, needs_of_outer
from omnigraph.read.rows import Entities, Rows, concat_rows, unbound

Run = Callable[[Step, Rows], Rows]  # a block for the rows given


def semi_join(step: Step, rows: Rows, run: Run) -> Rows:
    """The rows for which the block has a solution, or has none."""
    op = step.op
    assert isinstance(op, ir.SemiJoin)  # noqa: S101
    block = step.inputs[1]
    outer = rows.keep(needs_of_outer(block))
    group, firsts = _distinct_rows(outer)
    asked = replace(outer.take(firsts), weight=None)
    solved = np.zeros(len(firsts), np.bool_)
    solved[_run_tagged(block, asked, run).tags[_tag(rows)]] = True
    mask = solved[group]
    return rows.filter(~mask if op.negated else mask).keep(step.live)


def optional(step: Step, rows: Rows, run: Run) -> Rows:
    """Every row with the solutions of the block for it, or once with nothing."""
    op = step.op
    assert isinstance(op, ir.Optional)  # noqa: S101
    block = step.inputs[1]
    tag = _tag(rows)
    found = _run_tagged(block, replace(rows.keep(needs_of_outer(block)), weight=None), run)
    matched = found.tags[tag]
    joined = rows.take(matched)
    if found.weight is not None:
        joined = joined.scaled(found.weight)
    added = [name for name in op.vars if name in step.live]
    joined = joined.with_variables({name: found.variables[name] for name in added})
    alone = np.ones(rows.n, np.bool_)
    alone[matched] = False
    if not alone.any():
        return joined.keep(step.live)
    left = rows.take(np.flatnonzero(alone))
    left = left.with_variables({name: unbound(found.variables[name], left.n) for name in added})
    return concat_rows([joined.keep(step.live), left.keep(step.live)])


def _tag(rows: Rows) -> str:
    return f"block {len(rows.tags)}"


def _run_tagged(block: Step, rows: Rows, run: Run) -> Rows:
    tagged = replace(rows, tags=rows.tags | {_tag(rows): np.arange(rows.n)})
    return run(block, tagged)


def _distinct_rows(rows: Rows) -> tuple[Ints, Ints]:
    """For every row the number of its kind, and one row of each kind; where finding them pays, with one variable."""
    variables = list(rows.variables.values())
    if rows.tags or rows.scores or len(variables) > 1:
        return np.arange(rows.n), np.arange(rows.n)
    match variables:
        case []:
            return np.zeros(rows.n, np.int64), np.zeros(min(rows.n, 1), np.int64)
        case [Entities(_, position, None)]:
            one = np.zeros(int(position.max(initial=-1)) + 2, np.int64)
            one[position] = np.arange(rows.n)  # -1, unbound, is the last place
            chosen, group = np.unique(one[position], return_inverse=True)
            return group, chosen
        case _:
            return np.arange(rows.n), np.arange(rows.n)


def number_rows(arrays: list[AnyArray], n: int) -> tuple[Ints, Ints]:
    """Rows of numbers numbered by kind: for every row its kind, and the first row of each kind."""
    if not arrays:
        return np.zeros(n, np.int64), np.zeros(min(n, 1), np.int64)
    group, firsts = _number(arrays[0])
    for array in arrays[1:]:
        other, _ = _number(array)
        group, firsts = _number(group * (int(other.max(initial=0)) + 1) + other)
    return group, firsts


def _number(array: AnyArray) -> tuple[Ints, Ints]:
    _, first, inverse = np.unique(array, return_index=True, return_inverse=True)
    return inverse, first


# --- joins -------------------------------------------------------------------------------------------------------


def join(step: Step, left: Rows, right: Rows, ctx: Context) -> Rows:
    """All pairs of rows that agree on every pair of keys."""
    op = step.op
    assert isinstance(op, ir.Join)  # noqa: S101
    if not op.on:
        return all_pairs(left, right, ctx).keep(step.live)
    ours, theirs, known = _join_keys(op, left, right, ctx)
    order = np.argsort(theirs, kind="stable")
    order = order[known[1][order]]
    ordered = theirs[order]
    low = ordered.searchsorted(ours, "left")
    counts = np.where(known[0], ordered.searchsorted(ours, "right") - low, 0)
    ctx.admit(int(counts.sum()), len(left.variables) + len(right.variables))
    at = np.repeat(np.arange(left.n), counts)
    return _beside(left.take(at), right.take(order[ranges(low, counts)])).keep(step.live)


def all_pairs(left: Rows, right: Rows, ctx: Context) -> Rows:
    """Every row of one bag beside every row of the other."""
    if not right.variables and not right.scores and not right.tags:
        return left.scaled(np.full(left.n, right.total())) if right.n else left.take(np.arange(0))
    if not left.variables and not left.scores and not left.tags:
        return all_pairs(right, left, ctx)
    ctx.admit(left.n * right.n, len(left.variables) + len(right.variables))
    at = np.repeat(np.arange(left.n), right.n)
    return _beside(left.take(at), right.take(np.tile(np.arange(right.n), left.n)))


def _beside(left: Rows, right: Rows) -> Rows:
    joined = Rows(
        left.n,
        left.variables | right.variables,
        left.scores | right.scores,
        tags=left.tags | right.tags,
        weight=left.weight,
    )
    return joined if right.weight is None else joined.scaled(right.weight)


def _join_keys(
    op: ir.Join, left: Rows, right: Rows, ctx: Context
) -> tuple[Ints, Ints, tuple[Mask, Mask]]:
    """Keys of both sides as numbers of one numbering, and which rows have no null among them."""
    numbers: list[AnyArray] = []
    valid = np.ones(left.n + right.n, np.bool_)
    for ours, theirs in op.on:
        a, b = _alike(column(ours, left, ctx), column(theirs, right, ctx))
        both = pa.concat_arrays([a, b])
        valid &= both.is_valid().to_numpy(zero_copy_only=False)
        numbers.append(encode(both))
    group, _ = number_rows(numbers, left.n + right.n)
    return group[: left.n], group[left.n :], (valid[: left.n], valid[left.n :])


def _alike(a: pa.Array, b: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Keys in one type. A number that no number of the other side can equal is null, which joins with nothing."""
    if a.type == b.type:
        return a, b
    if pa.types.is_floating(a.type) or pa.types.is_floating(b.type):
        return exactly(a, pa.float64()), exactly(b, pa.float64())
    return exactly(a, pa.int64()), exactly(b, pa.int64())


def encode(values: pa.Array) -> Ints:
    """Equal values as equal numbers; null is 0."""
    encoded = canonical(values).dictionary_encode().indices.fill_null(-1)
    found: Ints = encoded.to_numpy(zero_copy_only=False).astype(np.int64)
    found += 1
    return found
