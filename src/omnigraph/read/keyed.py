"""Joins with nodes that rows name by their keys: the nodes are looked up without scanning a table.

`UNWIND $rows AS r MATCH (p:Person {name: r.name})` joins rows with all people by their name, and the name is their key.
What such a join can find is known from the rows alone: the nodes whose ids are made of these values. A write that finds
its rows this way depends on those ids only, whatever else changes in the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang import ir
from omnigraph.model.catalog import NodeOrEdgeType
from omnigraph.model.frozen import frozen
from omnigraph.model.keys import key_ids
from omnigraph.model.types import INTEGERS, PropType, Scalar
from omnigraph.read.context import Context
from omnigraph.read.expressions import column
from omnigraph.read.plan import PlanStep
from omnigraph.read.rows import Rows

NAMED_PART = 4  # nodes are looked up one by one if at most one in this many is named
# Operators between a join and its nodes that treat each node separately.
EACH = (ir.Filter, ir.Expand, ir.SemiJoin, ir.Optional, ir.Trail, ir.ShortestPath)


@frozen
class KeyedJoin:
    """Nodes that are named by values of the rows on the left: those of the members of their key, in order."""

    scan: ir.NodeScan
    members: tuple[ir.Expr, ...]
    is_id: bool  # the only member is the id itself

    def named(self, right: PlanStep, rows: Rows, ctx: Context) -> PlanStep | None:
        """The plan of the right side for the nodes these rows name; None if reading all of them is as good."""
        are_few = rows.n * NAMED_PART <= sum(ctx.columns(name).rows for name in self.scan.types)
        if not are_few and ctx.looked_up is None:
            return None
        ids = self._ids(rows, ctx)
        if ctx.looked_up is not None:
            known = ctx.looked_up.setdefault(self.scan.var, [])
            together = None if known is None or ids is None else [*known, ids]
            ctx.looked_up[self.scan.var] = together
        return _among(right, ids) if are_few and ids is not None else None

    def _ids(self, rows: Rows, ctx: Context) -> pa.Array | None:
        """The ids that rows name, each once; None if the values are not of the key's kind."""
        found = [column(member, rows, ctx) for member in self.members]
        if not all(_is_name(values.type) for values in found):
            return None
        texts = found[0].cast(pa.string()) if self.is_id else key_ids(found)
        return pc.unique(texts).drop_null()


def _among(step: PlanStep, ids: pa.Array) -> PlanStep:
    """The same plan, from nodes with these ids alone."""
    if isinstance(step.op, ir.NodeScan):
        return replace(step, among=ids)
    return replace(step, inputs=(_among(step.inputs[0], ids), *step.inputs[1:]))


def keyed_join(op: ir.Join, ctx: Context) -> KeyedJoin | None:
    """How the nodes on the right of a join are named by their keys; None if they are not."""
    scan = _scanned(op.right)
    if scan is None or not op.on:
        return None
    kinds = [ctx.kind(name) for name in scan.types]
    given = _given_keys(op, scan, kinds)
    return None if given is None else KeyedJoin(scan, *given)


def _scanned(op: ir.Op) -> ir.NodeScan | None:
    """Where a pattern starts, if what follows treats each of its nodes separately."""
    while isinstance(op, EACH):
        op = op.input
    return op if isinstance(op, ir.NodeScan) else None


def _given_keys(
    op: ir.Join, scan: ir.NodeScan, kinds: list[NodeOrEdgeType]
) -> tuple[tuple[ir.Expr, ...], bool] | None:
    """What rows give for the id of a scan's nodes, or for every member of the key that all its types have."""
    given = dict(_named_by(op, scan.var))
    if "id" in given:
        return (given["id"],), True
    keys = {kind.key for kind in kinds}
    key = keys.pop() if len(keys) == 1 else None
    if key is None or not all(
        _fits(kind, name) and name in given for kind in kinds for name in key
    ):
        return None
    return tuple(given[name] for name in key), False


def _named_by(op: ir.Join, var: str) -> Mapping[str, ir.Expr]:
    """Properties of the nodes on the right, and the expressions over the left they must be equal to."""
    found: dict[str, ir.Expr] = {}
    for ours, theirs in op.on:
        match theirs:
            case ir.IdOf(own) if own == var:
                found.setdefault("id", ours)
            case ir.Column(own, name) if own == var:
                found.setdefault(name, ours)
    return found


def _fits(kind: NodeOrEdgeType, name: str) -> bool:
    """Whether the text of a key's member is the same for every value that equals it."""
    prop = kind.properties.get(name)
    return prop is not None and _is_plain(prop.type)


def _is_plain(type: PropType) -> bool:
    return type.is_plain and (type.scalar is Scalar.STRING or type.scalar in INTEGERS)


def _is_name(type: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_integer(type)
    )
