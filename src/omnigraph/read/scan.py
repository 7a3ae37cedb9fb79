"""Where patterns start: the nodes of some types for which a predicate is true.

An equality on the id, or on a key that makes the id, is a look-up. A predicate on a large table whose columns are not
loaded is answered by storage; everything else is judged on columns in memory, block by block.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.expressions.filters import closed, push_down, values_tested
from omnigraph.expressions.scalar import evaluate
from omnigraph.lang import ir
from omnigraph.lang.tree import conjunction, conjuncts, stored_column, stored_columns
from omnigraph.model.catalog import NodeOrEdgeType
from omnigraph.model.types import INTEGERS, Scalar
from omnigraph.read.arrays import NO_POSITIONS, Positions
from omnigraph.read.budget import Held, checked
from omnigraph.read.columns import LOAD_ROWS_MAX, TableColumns
from omnigraph.read.context import Context
from omnigraph.read.expressions import holds
from omnigraph.read.plan import PlanStep
from omnigraph.read.rows import Entities, Rows, concat_entities
from omnigraph.storage.tables import ADDRESS

NOTHING = (None, None)
STATISTICS_ROWS_MAX = 200_000  # of a larger table the values are not counted


def node_scan(step: PlanStep, ctx: Context) -> Iterator[Rows]:
    """One row per node. Walks take all nodes together, or the first ones and then the others; the rest takes blocks."""
    op = step.op
    assert isinstance(op, ir.NodeScan)  # noqa: S101
    early = step.early and len(op.types) == 1
    flows = step.flows and len(op.types) == 1
    types = [_judged(op, name, ctx, step.among, early) for name in op.types]
    for found in types[0] if flows else islice(types[0], int(early)):
        yield Rows(len(found.position), {op.var: found}).keep(step.live)
    others = list(islice(types[0], int(early)))
    if flows or (early and not others):
        return
    types[0] = chain(others, types[0])
    with ctx.hold("NodeScan") as held:
        yield _all_of(op, types, held).keep(step.live)


def _all_of(op: ir.NodeScan, types: list[Iterator[Entities]], held: Held) -> Rows:
    """The nodes of all types together."""
    parts = [_together(pieces, held) for pieces in types]
    found = parts[0] if len(parts) == 1 else concat_entities(parts)
    return Rows(len(found.position), {op.var: found})


def _together(pieces: Iterator[Entities], held: Held) -> Entities:
    parts: list[Entities] = []
    for piece in pieces:
        if parts:
            held.add(2 * piece.nbytes)  # they are copied together in the end
        parts.append(piece)
    return parts[0] if len(parts) == 1 else concat_entities(parts)


def _judged(
    op: ir.NodeScan, name: str, ctx: Context, among: pa.Array | None, early: bool = False
) -> Iterator[Entities]:
    """The nodes of one type; the clock is checked between two blocks. There is at least one piece."""
    columns = ctx.columns(name)
    for positions, rest in _candidates(op, columns, ctx, among, early):
        found = Entities((name,), positions)
        if rest is not None:
            ctx.check()
            mask = holds(rest, Rows(len(positions), {op.var: found}), ctx)
            found = found if mask.all() else found.take(np.flatnonzero(mask))
        yield found


def _candidates(
    op: ir.NodeScan, columns: TableColumns, ctx: Context, among: pa.Array | None, early: bool
) -> Iterator[tuple[Positions, ir.Expr | None]]:
    """Nodes that include all wanted ones, and what still has to be judged."""
    if among is not None:
        ctx.note(access="by the ids of rows")
        positions = columns.find_all(among)
        yield positions[positions >= 0], op.predicate
        return
    parts = conjuncts(op.predicate)
    for i, part in enumerate(parts):
        wanted = _ids_named_by(part, op.var, columns, ctx)
        if wanted is not None:
            ctx.note(access="by id")
            yield _find(wanted, columns), conjunction(parts[:i] + parts[i + 1 :])
            return
    if op.predicate is not None and columns.n > LOAD_ROWS_MAX:
        down = push_down(closed(op.predicate, ctx.bound), columns.table.schema)
        if not all(columns.is_loaded(name) for name in stored_columns(down.pushed)):
            ctx.note(access="scanned in storage")
            yield NO_POSITIONS, None
            for batch in checked(columns.table.batches([], down.pushed, with_address=True)):
                yield columns.positions_at(batch.column(ADDRESS)), down.rest
            return
    ctx.note(access="columns" if parts else "all rows")
    for positions in _pieces(columns.everything, op.predicate is not None, ctx, early):
        yield positions, op.predicate


def _pieces(every: Positions, judged: bool, ctx: Context, early: bool) -> Iterator[Positions]:
    """All rows; in blocks, if they are judged and too many for one."""
    if not judged or len(every) <= ctx.budget.block_rows:
        yield every
        return
    start = 0
    for size in ctx.sizes(early):
        yield every[start : start + size]
        start += size
        if start >= len(every):
            return


def known_share(ctx: Context, condition: ir.Expr, var: str, type_name: str) -> float | None:
    """The share of a type's nodes for which an equality is true: one by id, else by the number of distinct values."""
    columns = ctx.columns(type_name)
    tested, _ = values_tested(condition, lambda expr: stored_column(expr) is not None) or NOTHING
    if tested is not None and is_identity(tested, var, columns.kind):
        return 1 / max(columns.rows, 1)
    if isinstance(tested, ir.Column) and isinstance(condition, ir.Compare):
        return _share_of_value(tested, columns)
    return None


def _share_of_value(tested: ir.Column, columns: TableColumns) -> float | None:
    if not tested.type.is_plain or columns.n > STATISTICS_ROWS_MAX:
        return None
    different: int = columns.derived(
        f"different/{tested.property}",
        lambda: pc.count_distinct(columns.column(tested.property)).as_py(),
        lambda _: 64,
    )
    return 1 / max(different, 1)


def pinned(op: ir.NodeScan, ctx: Context) -> Rows | None:
    """The nodes a predicate names by their ids; None when it does not."""
    for name in op.types:
        columns = ctx.columns(name)
        parts = conjuncts(op.predicate)
        if all(_ids_named_by(part, op.var, columns, ctx) is None for part in parts):
            return None
    with ctx.hold("NodeScan") as held:
        return _all_of(op, [_judged(op, name, ctx, None) for name in op.types], held)


def _find(wanted: list[str], columns: TableColumns) -> Positions:
    if len(wanted) == 1:
        found = columns.find(wanted[0])
        return np.array([found] if found >= 0 else [], np.int32)
    positions = columns.find_all(pa.array(dict.fromkeys(wanted), pa.string()))
    return positions[positions >= 0]


def _ids_named_by(part: ir.Expr, var: str, columns: TableColumns, ctx: Context) -> list[str] | None:
    """The ids a node must have one of for the predicate to be true; None if it does not restrict ids."""
    tested = values_tested(part, lambda expr: is_identity(expr, var, columns.kind))
    return None if tested is None else _as_ids(evaluate(tested[1], ctx.bound) or (), tested[0])


def is_identity(expr: ir.Expr, var: str, kind: NodeOrEdgeType) -> bool:
    """Whether the expression is the id of `var`, or the only property its id is made of."""
    match expr:
        case ir.IdOf(v):
            return v == var
        case ir.Column(v, name, type) if v == var and kind.key == (name,):
            return type.scalar is Scalar.STRING or type.scalar in INTEGERS
        case _:
            return False


def _as_ids(values: Any, tested: ir.Expr) -> list[str] | None:
    """Values of the key as the ids made of them; None for a value that is not of the key's kind."""
    known = [v for v in values if v is not None]
    if tested.type != ir.STRING and all(type(v) is int for v in known):
        return [str(v) for v in known]
    return known if all(isinstance(v, str) for v in known) else None
