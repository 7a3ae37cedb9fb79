"""Which edges a traversal may follow, and in which direction."""

from __future__ import annotations

from omnigraph.lang import ir
from omnigraph.lang.query import ast
from omnigraph.lang.query.scope import ANONYMOUS, Context, Scope, Var
from omnigraph.model.catalog import EdgeType


def resolve_steps(context: Context, scope: Scope, clause: ast.Traversal) -> tuple[ir.EdgeStep, ...]:
    """The steps of a traversal from its source to its destination.

    A bound source decides the direction by its type, then a bound destination; else the edge runs as it is stored.
    """
    src, dst = scope.vars.get(clause.src.name), scope.vars.get(clause.dst.name)
    steps: dict[ir.EdgeStep, None] = {}
    for word in clause.edges:
        edge = _edge(context, word)
        if clause.undirected:
            steps |= dict.fromkeys(_undirected(context, edge, word))
        else:
            steps[_directed(context, edge, clause, src, dst)] = None
    for step in steps:
        if clause.src.name == clause.dst.name != ANONYMOUS and step.near != step.far:
            message = f"`{step.edge}` leads from {step.near} to {step.far}, never to the same node"
            raise context.error("T5", message, clause.dst.at)
        _check_end(context, src, step.near, step, clause.src)
        _check_end(context, dst, step.far, step, clause.dst)
    return tuple(steps)


def _edge(context: Context, word: ast.EdgeWord) -> EdgeType:
    edge = context.catalog.edge(word.name)
    if edge is None:
        options = [_as_written(name) for name in context.catalog.edges]
        message = f"unknown edge type `{word.name}`"
        raise context.unknown("T4", message, word.at, word.name, options)
    return edge


def _as_written(name: str) -> str:
    """An edge type as traversals write it, with a small first letter."""
    return name[:1].lower() + name[1:]


def _undirected(context: Context, edge: EdgeType, word: ast.EdgeWord) -> list[ir.EdgeStep]:
    if edge.from_type != edge.to_type:
        message = (
            f"`<{word.name}>` has no direction, but `{edge.name}` leads from {edge.from_type} "
            f"to {edge.to_type}"
        )
        raise context.error("T22", message, word.at)
    return [ir.EdgeStep(edge.name, ir.Direction.BOTH, edge.from_type, edge.to_type)]


def _directed(
    context: Context, edge: EdgeType, clause: ast.Traversal, src: Var | None, dst: Var | None
) -> ir.EdgeStep:
    out = ir.EdgeStep(edge.name, ir.Direction.OUT, edge.from_type, edge.to_type)
    back = ir.EdgeStep(edge.name, ir.Direction.IN, edge.to_type, edge.from_type)
    if src is not None:
        if edge.from_type in src.types or not src.types:
            return out
        if edge.to_type in src.types:
            return back
        raise _no_end(context, clause.src, src, edge)
    if dst is not None:
        if edge.to_type in dst.types or not dst.types:
            return out
        if edge.from_type in dst.types:
            return back
        raise _no_end(context, clause.dst, dst, edge)
    return out


def _no_end(context: Context, node: ast.Variable, var: Var, edge: EdgeType) -> Exception:
    message = (
        f"`${node.name}` is a {var.label}, but `{edge.name}` leads from {edge.from_type} "
        f"to {edge.to_type}"
    )
    usable = [_as_written(e.name) for t in var.types for e in context.catalog.incident_edges(t)]
    help = f"Edges of {var.label}: {', '.join(dict.fromkeys(usable))}." if usable else ""
    return context.error("T5", message, node.at, help)


def _check_end(
    context: Context, var: Var | None, wanted: str, step: ir.EdgeStep, node: ast.Variable
) -> None:
    if var is not None and var.types and wanted not in var.types:
        message = f"`${node.name}` is a {var.label}, but `{step.edge}` has a {wanted} there"
        raise context.error("T5", message, node.at)
