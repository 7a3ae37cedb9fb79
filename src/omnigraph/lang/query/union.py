"""Checking unions: the branches give the same columns, and only these can be ordered by."""

from __future__ import annotations

from omnigraph.lang import ir
from omnigraph.lang.query import ast, checked
from omnigraph.lang.query.scope import Context, Reported, Scope
from omnigraph.lang.query.typer import Typer, no_aggregate, no_ranking
from omnigraph.lang.query.typing_rules import common_type
from omnigraph.model.types import PropType


def check_union(
    context: Context, read: ast.Read, branches: tuple[checked.Branch, ...]
) -> tuple[ir.SortKey, ...]:
    """Report branches that differ; the sort keys of the whole."""
    if context.diagnostics.errors:
        return ()
    columns = _columns(context, read, branches)
    return tuple(key for node in read.order if (key := _key(context, node, columns)) is not None)


def _columns(
    context: Context, read: ast.Read, branches: tuple[checked.Branch, ...]
) -> dict[str, ir.ValueType]:
    first = {c.name: c.expr.type for c in branches[0].columns}
    for branch, node in zip(branches[1:], read.branches[1:], strict=True):
        names = [c.name for c in branch.columns]
        if names != list(first):
            message = f"this branch returns {_listed(names)}, the first {_listed(list(first))}"
            context.diagnostics.error("Q007", message, node.return_at)
            continue
        for column in branch.columns:
            kind = union_type([first[column.name], column.expr.type])
            if kind is None:
                message = (
                    f"`{column.name}` is {column.expr.type} here and {first[column.name]} before"
                )
                context.diagnostics.error("Q007", message, node.return_at)
            else:
                first[column.name] = kind
    return first


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def union_type(kinds: list[ir.ValueType]) -> ir.ValueType | None:
    """The type of a column over all branches."""
    plain = [k for k in kinds if isinstance(k, PropType)]
    if len(plain) == len(kinds):
        return common_type(plain)
    entities = [k for k in kinds if isinstance(k, ir.EntityValue)]
    if len(entities) == len(kinds):
        types = tuple(dict.fromkeys(t for k in entities for t in k.types))
        return ir.EntityValue(types, any(k.nullable for k in entities))
    paths = [k for k in kinds if isinstance(k, ir.PathValue)]
    return ir.PathValue(any(k.nullable for k in paths)) if len(paths) == len(kinds) else None


def _key(
    context: Context, node: ast.Ordering, columns: dict[str, ir.ValueType]
) -> ir.SortKey | None:
    def output(name: ast.Name) -> ir.Expr:
        if name.name not in columns:
            message = f"there is no column `{name.name}`"
            raise context.unknown("Q005", message, name.at, name.name, columns)
        return ir.Output(name.name, columns[name.name])

    typer = Typer(context, Scope(), output, no_aggregate, no_ranking)
    try:
        if isinstance(node.expr, ast.Property | ast.Variable):
            message = "the rows of a union are ordered by the names of its columns"
            raise context.error("Q006", message, node.at)
        expr = typer.expr(node.expr)
        if not isinstance(expr.type, PropType) or not expr.type.is_plain:
            message = f"values of type {expr.type} have no order"
            raise context.error("Q006", message, node.at)
    except Reported:
        return None
    return ir.SortKey(expr, bool(node.descending))
