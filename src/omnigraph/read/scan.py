"""Where patterns start: the nodes of some types for which a predicate is true.

An equality on the id, or on a key that makes the id, is a look-up. A predicate on a large table whose columns are not
loaded is answered by storage; everything else is judged on columns in memory.
"""

from __future__ import annotations

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
from omnigraph.read.budget import checked
from omnigraph.read.columns import LOAD_ROWS_MAX, TableColumns
from omnigraph.read.context import Context
from omnigraph.read.expressions import holds
from omnigraph.read.rows import Entities, Rows, concat_entities
from omnigraph.storage.tables import ADDRESS

NOTHING = (None, None)
STATISTICS_ROWS_MAX = 200_000  # of a larger table the values are not counted


def node_scan(op: ir.NodeScan, ctx: Context, among: pa.Array | None = None) -> Rows:
    """One row per node; of those with some ids, where others do not matter."""
    parts = [_scan_type(op, name, ctx, among) for name in op.types]
    found = parts[0] if len(parts) == 1 else concat_entities(parts)
    return Rows(len(found.position), {op.var: found})


def _scan_type(op: ir.NodeScan, name: str, ctx: Context, among: pa.Array | None) -> Entities:
    columns = ctx.columns(name)
    if among is None:
        positions, rest = _candidates(op, columns, ctx)
    else:
        ctx.note(access="by the ids of rows")
        positions, rest = columns.find_all(among), op.predicate
        positions = positions[positions >= 0]
    found = Entities((name,), positions)
    if rest is None:
        return found
    mask = holds(rest, Rows(len(positions), {op.var: found}), ctx)
    return found if mask.all() else found.take(np.flatnonzero(mask))


def _candidates(
    op: ir.NodeScan, columns: TableColumns, ctx: Context
) -> tuple[Positions, ir.Expr | None]:
    """Nodes that include all wanted ones, and what still has to be judged."""
    parts = conjuncts(op.predicate)
    for i, part in enumerate(parts):
        wanted = _ids_named_by(part, op.var, columns, ctx)
        if wanted is not None:
            ctx.note(access="by id")
            rest = conjunction(parts[:i] + parts[i + 1 :])
            return _find(wanted, columns), rest
    if op.predicate is not None and columns.n > LOAD_ROWS_MAX:
        down = push_down(closed(op.predicate, ctx.bound), columns.table.schema)
        if not all(columns.is_loaded(name) for name in stored_columns(down.pushed)):
            ctx.note(access="scanned in storage")
            found = [
                columns.positions_at(batch.column(ADDRESS))
                for batch in checked(columns.table.batches([], down.pushed, with_address=True))
            ]
            return np.concatenate([NO_POSITIONS, *found]), down.rest
    ctx.note(access="columns" if parts else "all rows")
    return columns.everything, op.predicate


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
    return node_scan(op, ctx)


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
