"""What the rows of a plan bind: the variables with their kinds and types, and the score columns."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from omnigraph.lang import ir
from omnigraph.model.frozen import frozen


class BindingKind(Enum):
    NODE = "node"
    EDGE = "edge"
    PATH = "path"
    SCORE = "score"
    VALUE = "value"


@frozen
class BoundName:
    """What one variable or score column of a row holds; `nullable` when an optional block bound it."""

    kind: BindingKind
    types: tuple[str, ...] = ()
    nullable: bool = False


Bindings = dict[str, BoundName]


def bindings(op: ir.Op, outer: Bindings | None = None) -> Bindings:
    """The bindings of an operator's rows by name; none after projection or aggregation.

    `outer` are those of the row an enclosing operator hands to the block that `op` belongs to.
    """
    match op:
        case ir.NodeScan(var, types):
            return {var: BoundName(BindingKind.NODE, types)}
        case ir.Outer():
            return dict(outer or {})
        case ir.Resumed(values, entities):
            found = {var: BoundName(BindingKind.VALUE, nullable=True) for var, _, _ in values}
            for var, _, types, edge in entities:
                kind = BindingKind.EDGE if edge else BindingKind.NODE
                found[var] = BoundName(kind, types, nullable=True)
            return found
        case ir.Expand() | ir.ShortestPath() | ir.Trail():
            return bindings(op.input, outer) | _reached(op)
        case ir.Optional(source, block, vars):
            below = bindings(source, outer)
            inner = bindings(block, below)
            return below | {v: replace(inner[v], nullable=True) for v in vars if v in inner}
        case ir.Join(left, right):
            return bindings(left, outer) | bindings(right, outer)
        case ir.Score(source, _, name) | ir.Rank(source, _, name):
            return bindings(source, outer) | {name: BoundName(BindingKind.SCORE, nullable=True)}
        case ir.Fuse():
            below = bindings(op.primary, outer)
            below.pop(op.primary_score, None)
            return below | dict.fromkeys((op.name, op.place), BoundName(BindingKind.SCORE))
        case ir.Filter() | ir.SemiJoin() | ir.Sort() | ir.Slice():
            return bindings(op.input, outer)
        case ir.Let(source, columns, keep):
            below = bindings(source, outer)
            kept = {name: below[own] for name, own in keep if own in below}
            return kept | {c.name: BoundName(BindingKind.VALUE, nullable=True) for c in columns}
        case ir.Attach(source, var, _, types, edge):
            kind = BindingKind.EDGE if edge else BindingKind.NODE
            return bindings(source, outer) | {var: BoundName(kind, types, nullable=True)}
        case ir.Unwind(source, _, name):
            return bindings(source, outer) | {name: BoundName(BindingKind.VALUE, nullable=True)}
        case ir.PerRow(source, _, aggregate):
            made = BoundName(BindingKind.VALUE, nullable=True)
            return bindings(source, outer) | {aggregate.name: made}
        case ir.Project() | ir.Aggregate() | ir.Distinct() | ir.Union():
            return {}


def _reached(op: ir.Expand | ir.ShortestPath | ir.Trail) -> Bindings:
    found = {} if op.into else {op.dst: BoundName(BindingKind.NODE, op.dst_types)}
    match op:
        case ir.Expand(edge_var=str(var)):
            found[var] = BoundName(BindingKind.EDGE, tuple(dict.fromkeys(s.edge for s in op.steps)))
        case ir.ShortestPath() | ir.Trail():
            found[op.path_var] = BoundName(BindingKind.PATH)
        case _:
            pass
    return found
