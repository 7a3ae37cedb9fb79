"""Checking a query against a schema: every name resolved, every expression typed, several errors reported together."""

from __future__ import annotations

from omnigraph.lang import ir
from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.query import ast, checked
from omnigraph.lang.query.mutations import check_mutation
from omnigraph.lang.query.patterns import Anonymous, PatternChecker
from omnigraph.lang.query.returns import OrderChecker, ReturnChecker
from omnigraph.lang.query.scope import RESERVED_PARAM, CheckContext, Reported, Scope
from omnigraph.lang.query.typer import Typer, no_aggregate, no_ranking
from omnigraph.lang.query.typing_rules import common_type, is_integer
from omnigraph.model.catalog import Catalog
from omnigraph.model.types import PropType


def check(query: ast.Query, catalog: Catalog, diagnostics: Diagnostics) -> checked.CheckedQuery:
    """The checked query; only meaningful when no error was reported."""
    context = CheckContext(catalog, diagnostics, _params(query, diagnostics))
    body = _body(context, query.body)
    params = tuple(ir.ParamDecl(name, kind) for name, kind in context.params.items())
    return checked.CheckedQuery(query.name, params, body, query.description, query.instruction)


def _body(
    context: CheckContext, body: ast.Read | ast.Mutation
) -> checked.CheckedRead | ir.Mutation:
    return _read(context, body) if isinstance(body, ast.Read) else check_mutation(context, body)


def _params(query: ast.Query, diagnostics: Diagnostics) -> dict[str, PropType]:
    params: dict[str, PropType] = {}
    for param in query.params:
        if param.name == RESERVED_PARAM:
            message = f"the parameter `${param.name}` is reserved"
            diagnostics.error("Q003", message, param.at)
        elif param.name in params:
            diagnostics.error("Q003", f"the parameter `${param.name}` is declared twice", param.at)
        params.setdefault(param.name, param.type)
    return params


def _read(context: CheckContext, read: ast.Read) -> checked.CheckedRead:
    skip, limit = _count(context, read.skip), _count(context, read.limit)
    if len(read.branches) > 1:
        branches = tuple(_branch(context, branch, None) for branch in read.branches)
        order = check_union(context, read, branches)
        return checked.CheckedRead(branches, read.keeps_duplicates, order, skip, limit)
    return checked.CheckedRead((_branch(context, read.branches[0], read),), (), (), skip, limit)


def _branch(
    context: CheckContext, branch: ast.ReadBranch, read: ast.Read | None
) -> checked.CheckedBranch:
    """One branch; with `read` it is the only one, and the order is its own."""
    scope = Scope()
    block = PatternChecker(context, scope, Anonymous()).block(branch.clauses)
    returns = ReturnChecker(context, scope, branch)
    returns.check()
    having = returns.having()
    order, rank = OrderChecker(returns, read).check() if read else ((), None)
    columns = returns.final_columns()
    scores = tuple(checked.ScoreColumn(name, found) for found, name in returns.scores.items())
    return checked.CheckedBranch(
        block, columns, returns.grouping(), having, branch.distinct, scores, rank, order
    )


def _count(context: CheckContext, node: ast.Expr | None) -> ir.Expr | None:
    """A literal or an integer parameter after `skip` or `limit`."""
    if node is None:
        return None
    if isinstance(node, ast.Literal):
        return ir.Literal(node.value, ir.I64)
    name = node.name if isinstance(node, ast.Variable) else ""
    kind = context.params.get(name)
    if kind is None:
        options = [f"${known}" for known in context.params]
        message = f"`${name}` is not a parameter of the query"
        context.diagnostics.unknown("Q011", message, node.at, word=f"${name}", options=options)
        return None
    if not is_integer(kind) or kind.nullable:
        message = f"a count is a whole number, and `${name}` is {kind}"
        context.diagnostics.error("Q011", message, node.at)
        return None
    return ir.Param(name, kind)


def plan(query: checked.CheckedQuery) -> ir.Query:
    """The query lowered and rewritten."""
    # The lowering imports modules of this package, so the package cannot import it while it is being imported itself.
    from omnigraph.lang.lower import lower
    from omnigraph.lang.rewrite import rewrite

    return rewrite(lower(query))


def check_union(
    context: CheckContext, read: ast.Read, branches: tuple[checked.CheckedBranch, ...]
) -> tuple[ir.SortKey, ...]:
    """Report branches that differ; the sort keys of the whole."""
    if context.diagnostics.errors:
        return ()
    columns = _columns(context, read, branches)
    return tuple(key for node in read.order if (key := _key(context, node, columns)) is not None)


def _columns(
    context: CheckContext, read: ast.Read, branches: tuple[checked.CheckedBranch, ...]
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
        bare = all(k.plain for k in entities)
        return ir.EntityValue(types, any(k.nullable for k in entities), plain=bare)
    paths = [k for k in kinds if isinstance(k, ir.PathValue)]
    return ir.PathValue(any(k.nullable for k in paths)) if len(paths) == len(kinds) else None


def _key(
    context: CheckContext, node: ast.Ordering, columns: dict[str, ir.ValueType]
) -> ir.SortKey | None:
    def output(name: ast.Name) -> ir.Expr:
        if name.name not in columns:
            message = f"unknown column `{name.name}`"
            raise context.unknown("Q005", message, name.at, name.name, columns)
        return ir.Output(name.name, columns[name.name])

    typer = Typer(context, Scope(), output, no_aggregate, no_ranking)
    try:
        if isinstance(node.expr, ast.PropertyAccess | ast.Variable):
            message = "the rows of a union are ordered by the names of its columns"
            raise context.error("Q006", message, node.at)
        expr = typer.expr(node.expr)
        if not isinstance(expr.type, PropType) or not expr.type.is_plain:
            message = f"values of type {expr.type} have no order"
            raise context.error("Q006", message, node.at)
    except Reported:
        return None
    return ir.SortKey(expr, bool(node.descending))
