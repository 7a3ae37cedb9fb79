"""Blocks run for all rows of an enclosing operator together: each row is tagged, and the tags identify the row of
a solution. Also what blocks and joins share: pairs of rows, and rows numbered by kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from omnigraph.expressions.comparing import canonical
from omnigraph.lang import ir
from omnigraph.read.arrays import AnyArray, Ints, runs
from omnigraph.read.plan import PlanStep, needs_of_outer
from omnigraph.read.rows import Entities, Rows, Variable, unbound

Run = Callable[[PlanStep, Rows], Iterator[Rows]]  # a block for the rows given
SPARSE_PART = 64  # fewer rows than one in this many of a table are sorted


def semi_join(step: PlanStep, rows: Rows, run: Run) -> Rows:
    """The rows for which the block has a solution, or (negated) has none."""
    op = step.op
    assert isinstance(op, ir.SemiJoin)  # noqa: S101
    block = step.inputs[1]
    outer = rows.keep(needs_of_outer(block))
    group, firsts = distinct_rows(outer)
    unique = replace(outer.take(firsts), weight=None)
    solved = np.zeros(len(firsts), np.bool_)
    left = len(firsts)
    for found in run_tagged(block, unique, run):
        solved[found.tags[tag_of(rows)]] = True
        left -= found.n
        if left <= 0 and solved.all():
            break
    mask = solved[group]
    return rows.filter(~mask if op.negated else mask).keep(step.live)


def optional(step: PlanStep, rows: Rows, run: Run) -> Iterator[Rows]:
    """Every row with the solutions of the block for it, or once with nulls."""
    op = step.op
    assert isinstance(op, ir.Optional)  # noqa: S101
    block = step.inputs[1]
    tag = tag_of(rows)
    added = [name for name in op.vars if name in step.live]
    alone = np.ones(rows.n, np.bool_)
    like: dict[str, Variable] = {}
    for found in run_tagged(block, replace(rows.keep(needs_of_outer(block)), weight=None), run):
        matched = found.tags[tag]
        joined = rows.take(matched)
        if found.weight is not None:
            joined = joined.scaled(found.weight)
        like = {name: found.variables[name] for name in added}
        alone[matched] = False
        yield joined.with_variables(like).keep(step.live)
    if alone.any():
        left = rows.take(np.flatnonzero(alone))
        nothing = {name: unbound(variable, left.n) for name, variable in like.items()}
        yield left.with_variables(nothing).keep(step.live)


def tag_of(rows: Rows) -> str:
    """The name of the tag the solutions for these rows carry."""
    return f"block {len(rows.tags)}"


def run_tagged(block: PlanStep, rows: Rows, run: Run) -> Iterator[Rows]:
    """The solutions for these rows, each tagged with the number of its row."""
    tagged = replace(rows, tags=rows.tags | {tag_of(rows): np.arange(rows.n)})
    return run(block, tagged)


def distinct_rows(rows: Rows) -> tuple[Ints, Ints]:
    """For every row the number of its kind, and one row of each kind; with one variable, if finding them pays."""
    variables = list(rows.variables.values())
    if rows.tags or rows.scores or len(variables) > 1:
        return np.arange(rows.n), np.arange(rows.n)
    match variables:
        case []:
            return np.zeros(rows.n, np.int64), np.zeros(min(rows.n, 1), np.int64)
        case [Entities(_, position, None)]:
            size = int(position.max(initial=-1)) + 2
            if size > SPARSE_PART * len(position):  # an array of all nodes is not worth its memory
                _, chosen, group = np.unique(position, return_index=True, return_inverse=True)
                return group, chosen
            one = np.zeros(size, np.int64)
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


def all_pairs(left: Rows, right: Rows, sizes: Iterator[int]) -> Iterator[Rows]:
    """Every row of one bag beside every row of the other."""
    if not right.variables and not right.scores and not right.tags:
        yield left.scaled(np.full(left.n, right.total())) if right.n else left.take(np.arange(0))
    elif not left.variables and not left.scores and not left.tags:
        yield from all_pairs(right, left, sizes)
    else:
        first, counts = np.zeros(left.n, np.int64), np.full(left.n, right.n, np.int64)
        for at, member in runs(first, counts, sizes):
            yield beside(left.take(at), right.take(member))


def beside(left: Rows, right: Rows) -> Rows:
    """Each row of one bag with the row of the other that has its number."""
    joined = Rows(
        left.n,
        left.variables | right.variables,
        left.scores | right.scores,
        tags=left.tags | right.tags,
        weight=left.weight,
    )
    return joined if right.weight is None else joined.scaled(right.weight)


def encode(values: pa.Array) -> Ints:
    """Equal values as equal numbers; null is 0."""
    encoded = canonical(values).dictionary_encode().indices.fill_null(-1)
    found: Ints = encoded.to_numpy(zero_copy_only=False).astype(np.int64)
    found += 1
    return found
