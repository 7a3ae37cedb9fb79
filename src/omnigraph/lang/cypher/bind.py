"""Clause by clause from the tree to a plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnigraph.lang import ir
from omnigraph.lang.bindings import bindings
from omnigraph.lang.cypher import ast, types
from omnigraph.lang.cypher.binder import COMPARE, ExprBinder
from omnigraph.lang.cypher.coercion import as_type, compared
from omnigraph.lang.cypher.patterns import PatternBinder
from omnigraph.lang.cypher.projecting import ProjectedColumn, Projector
from omnigraph.lang.cypher.scope import BindingState, Flow, parts_of
from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.ir import AggregateFunction as A
from omnigraph.lang.query.scope import Reported
from omnigraph.lang.tree import is_null_literal
from omnigraph.model.catalog import Catalog

LOCAL = (ast.ListComprehension, ast.Quantifier, ast.Reduce, ast.NodePattern, ast.RelPattern)
LOOKING = (ast.Subquery, ast.PatternExpr, ast.PatternComprehension)
WRITING = (ast.Create, ast.Merge, ast.Set, ast.RemoveItems, ast.Delete)
QUERY = "cypher"  # the name of an unnamed query


def bind_read(
    tree: ast.Query, catalog: Catalog, diagnostics: Diagnostics, values: Mapping[str, Any]
) -> ir.Query:
    """The plan of a read, not rewritten yet; only meaningful when no error was reported."""
    binding = BindingState(catalog, diagnostics, values)
    try:
        read = QueryBinder(binding).read(tree)
    except Reported:
        diagnostics.raise_errors()
        raise
    params = tuple(ir.ParamDecl(name, kind) for name, kind in binding.params.items())
    return ir.Query(QUERY, params, read, procedure_rows=tuple(binding.procedure_rows))


class QueryBinder:
    """Binds queries and the blocks inside them."""

    def __init__(self, binding: BindingState) -> None:
        self.binding = binding

    # --- whole queries ---------------------------------------------------------------------------------------------

    def read(self, tree: ast.Query) -> ir.Read:
        """Single queries, combined by UNION."""
        branches = [self.branch(part) for part in tree.parts]
        if len(branches) == 1:
            plan, columns = branches[0]
            return finished(plan, columns)
        if len(set(tree.keeps_duplicates)) > 1:
            message = "UNION and UNION ALL cannot be mixed"
            raise self.binding.error("C014", message, tree.at)
        first = branches[0][1]
        for (_, columns), part in zip(branches[1:], tree.parts[1:], strict=True):
            if [c.name for c in columns] != [c.name for c in first]:
                names = ", ".join(f"`{c.name}`" for c in columns)
                message = f"this branch returns {names}, the first {', '.join(f'`{c.name}`' for c in first)}"
                raise self.binding.error("C014", message, part.at)
        kinds = []
        for i, column in enumerate(first):
            kind = types.common([columns[i].expr.type for _, columns in branches])
            if kind is None:
                message = f"`{column.name}` has different types in the branches"
                raise self.binding.error("C014", message, tree.at)
            kinds.append(kind)
        reads = [
            finished(
                plan,
                [
                    ProjectedColumn(c.name, as_type(c.expr, k), c.aggregates)
                    for c, k in zip(columns, kinds, strict=True)
                ],
            )
            for plan, columns in branches
        ]
        whole: ir.Op = ir.Union(tuple(read.plan for read in reads))
        if not tree.keeps_duplicates[0]:
            whole = ir.Distinct(whole)
        return ir.Read(whole, reads[0].columns)

    def branch(self, part: ast.SingleQuery) -> tuple[ir.Op, list[ProjectedColumn]]:
        flow = Flow(ir.Outer())
        columns = self.clauses(flow, part, returns=True)
        assert columns is not None  # noqa: S101 - `clauses` sees to the RETURN
        return flow.plan, columns

    def clauses(
        self, flow: Flow, part: ast.SingleQuery, returns: bool
    ) -> list[ProjectedColumn] | None:
        """All clauses of a single query; the columns of its RETURN."""
        for i, clause in enumerate(part.clauses):
            if isinstance(clause, WRITING):
                message = "a read-only query contains a clause that writes"
                help = "Run it with mutate."
                raise self.binding.error("C013", message, clause.at, help)
            if isinstance(clause, ast.Return):
                if i + 1 < len(part.clauses):
                    message = "RETURN is the last clause"
                    raise self.binding.error("C013", message, part.clauses[i + 1].at)
                return self.projector(flow, clause.projection).project(final=True)
            self.clause(flow, clause)
        last = part.clauses[-1] if part.clauses else None
        if isinstance(last, ast.Procedure):
            return [ProjectedColumn(n, e, False) for n, e in flow.names.items()]
        if returns:
            at = last.at if last is not None else part.at
            message = "a read query ends with RETURN"
            raise self.binding.error("C013", message, at)
        return None

    def projector(self, flow: Flow, node: ast.Projection) -> Projector:
        return Projector(self.binding, flow, self.block, node)

    def clause(self, flow: Flow, clause: ast.Clause) -> None:
        match clause:
            case ast.Match():
                self.match(flow, clause)
            case ast.Unwind():
                self.unwind(flow, clause)
            case ast.With(projection):
                self.with_clause(flow, projection)
            case ast.Procedure():
                from omnigraph.lang.cypher.procedures import bind_procedure

                bind_procedure(self, flow, clause)
            case _:
                raise AssertionError(type(clause))

    def binder(self, flow: Flow) -> ExprBinder:
        return ExprBinder(self.binding, flow, self.block)

    # --- clauses ---------------------------------------------------------------------------------------------------

    def match(self, flow: Flow, clause: ast.Match) -> None:
        if clause.optional:
            self.optional(flow, clause)
        else:
            self.pattern(flow, clause.patterns, clause.predicate)

    def pattern(
        self, flow: Flow, patterns: tuple[ast.PathPattern, ...], predicate: ast.Expr | None
    ) -> None:
        PatternBinder(self.binding, flow, self.binder(flow)).bind(patterns)
        if predicate is not None:
            self.where(flow, predicate)

    def optional(self, flow: Flow, clause: ast.Match) -> None:
        for name in list(flow.names):
            self.attached(flow, name, clause.patterns)
        block = flow.block()
        self.pattern(block, clause.patterns, clause.predicate)
        outer = bindings(flow.plan)
        found = bindings(block.plan, outer)
        new = tuple(v for v in found if v not in outer and found[v].kind.value != "value")
        flow.plan = ir.Optional(flow.plan, block.plan, new)
        for name, expr in block.names.items():
            if name not in flow.names:
                flow.names[name] = expr
        flow.types |= {v: kinds for v, kinds in block.types.items() if v in new}

    def attached(self, flow: Flow, name: str, patterns: tuple[ast.PathPattern, ...]) -> None:
        """A reference a pattern starts from becomes a variable outside the block, where it stays known."""
        used = {n.var for p in patterns for n in p.nodes} | {
            r.var for p in patterns for r in p.rels
        }
        expr = flow.names[name]
        if types.is_null(expr.type):
            expr = ir.Literal(None, ir.RefValue(tuple(self.binding.catalog.nodes)))
        if name not in used or isinstance(expr, ir.RefOf) or not isinstance(expr.type, ir.RefValue):
            return
        var = self.binding.fresh(name)
        flow.plan = ir.Attach(flow.plan, var, expr, expr.type.types, expr.type.edge)
        flow.names[name] = ir.RefOf(var, expr.type)
        flow.types[var] = expr.type.types

    def where(self, flow: Flow, predicate: ast.Expr) -> None:
        """Conditions, one after the other; a pattern is tested only on the remaining rows."""
        parts: tuple[ast.Expr, ...] = (predicate,)
        if isinstance(predicate, ast.Connective) and predicate.operator == "and":
            parts = predicate.parts
        later = []
        for part in parts:
            if _is_existence(part) or _counted(part) is not None:
                later.append(part)
            else:
                test = self.binder(flow).truth(part)
                flow.plan = ir.Filter(flow.plan, test)
        for part in later:
            counted = _counted(part)
            if counted is not None:
                self.measured_join(flow, *counted)
                continue
            negated = isinstance(part, ast.Unary)
            self.semi_join(flow, part.part if isinstance(part, ast.Unary) else part, negated)

    def semi_join(self, flow: Flow, node: ast.Expr, negated: bool) -> None:
        block, _ = self.subquery(flow, node)
        flow.plan = ir.SemiJoin(flow.plan, block.plan, negated)

    def measured_join(self, flow: Flow, node: ast.Subquery, operator: str, other: ast.Expr) -> None:
        """The rows for which the number of a subquery's solutions satisfies a condition."""
        block, _ = self.subquery(flow, node)
        name = self.binding.fresh()
        count = ir.NamedAggregate(name, A.COUNT_ROWS, None, False, types.I64)
        test = compared(
            COMPARE[operator], ir.Output(name, types.I64), self.binder(flow).expr(other)
        )
        flow.plan = ir.SemiJoin(flow.plan, block.plan, measure=ir.BlockTest(count, test))

    def unwind(self, flow: Flow, clause: ast.Unwind) -> None:
        part = self.binder(flow).expr(clause.part)
        if is_null_literal(part):
            part = ir.Literal(None, types.list_of(ir.NULL))
        if not types.is_list(part.type):
            part = ir.MakeList((part,), types.list_of(types.plain(part.type)))
        if clause.var in flow.names:
            message = f"`{clause.var}` is already bound"
            raise self.binding.error("C008", message, clause.at)
        kind, name = types.item_of(part.type), self.binding.fresh(clause.var)
        flow.plan = ir.Unwind(flow.plan, part, name, kind)
        flow.names[clause.var] = ir.ValueOf(name, kind)

    def with_clause(self, flow: Flow, projection: ast.Projection) -> None:
        for item in projection.items:
            if not item.aliased:
                message = f"`{item.name}` needs a name"
                raise self.binding.error("C012", message, item.at, f"Write {item.name} AS name.")
        early = projection.predicate is not None and _reads_others(projection)
        self.projector(flow, projection).project(final=False, where=early)
        if projection.predicate is not None and not early:
            self.where(flow, projection.predicate)

    # --- blocks ----------------------------------------------------------------------------------------------------

    def block(self, binder: ExprBinder, node: ast.Expr) -> ir.Expr:
        """A value looked up in the graph for each row."""
        flow = binder.flow
        if binder.inner:
            message = "a pattern inside a list comprehension cannot be matched"
            help = "Unwind the list, match, and collect again."
            raise self.binding.error("C015", message, node.at, help)
        if isinstance(node, ast.PatternExpr) and node.pattern.shortest:
            return self.one_path(node)
        block, value = self.subquery(flow, node)
        name = self.binding.fresh()
        if value is not None:
            return self.listed(flow, block, value, name)
        made = ir.NamedAggregate(name, A.COUNT_ROWS, None, False, types.I64)
        flow.plan = ir.PerRow(flow.plan, block.plan, made)
        count = ir.ValueOf(name, types.I64)
        if isinstance(node, ast.Subquery) and node.kind == "count":
            return count
        return ir.Compare(ir.CompareOp.GT, count, ir.Literal(0, ir.I64))

    def listed(self, flow: Flow, block: Flow, value: ir.Expr, name: str) -> ir.Expr:
        """A value of each solution, nulls among them: aggregates leave them out, so each is collected in a map."""
        item = types.plain(value.type)
        held = ir.MapValue((("value", item),))
        kind = types.list_of(held)
        made = ir.NamedAggregate(name, A.IN_ORDER, ir.MakeMap((value,), held), False, kind)
        flow.plan = ir.PerRow(flow.plan, block.plan, made)
        var = self.binding.fresh()
        body = ir.FieldOf(ir.ValueOf(var, held), "value", item)
        return ir.Each(var, ir.ValueOf(name, kind), None, body, types.list_of(item))

    def subquery(self, flow: Flow, node: ast.Expr) -> tuple[Flow, ir.Expr | None]:
        """The block of a subquery, and for a pattern comprehension the value of each solution."""
        block = flow.block()
        match node:
            case ast.PatternExpr(pattern) | ast.Call(args=(ast.PatternExpr(pattern),)):
                new = [n.var for n in pattern.nodes if n.var and n.var not in flow.names]
                new += [r.var for r in pattern.rels if r.var and r.var not in flow.names]
                if new:
                    message = f"unknown variable `{new[0]}`"
                    help = "A pattern used as a condition binds no variables; write EXISTS { … }."
                    raise self.binding.error("C007", message, node.at, help)
                self.pattern(block, (pattern,), None)
            case ast.PatternComprehension(pattern, predicate, body):
                self.pattern(block, (pattern,), predicate)
                return block, self.binder(block).expr(body)
            case ast.Subquery(_, None, patterns, predicate):
                self.pattern(block, patterns, predicate)
            case ast.Subquery(_, ast.Query((part,)), _, _):
                self.inner_query(block, part)
            case _:
                message = "a subquery cannot contain UNION"
                raise self.binding.error("C015", message, node.at)
        return block, None

    def inner_query(self, block: Flow, part: ast.SingleQuery) -> None:
        """The clauses of a subquery. Only its rows count, so of its RETURN only the cut matters."""
        for clause in part.clauses:
            match clause:
                case ast.Match() | ast.Unwind():
                    self.clause(block, clause)
                case ast.Return(ast.Projection(distinct=False, skip=None, limit=None) as made):
                    # Written for readers; checked like any other.
                    checked = Flow(block.plan, dict(block.names), dict(block.types), block.nested)
                    self.projector(checked, made).columns(self.binder(checked))
                case _ if isinstance(clause, WRITING):
                    message = "a subquery cannot write"
                    raise self.binding.error("C013", message, clause.at)
                case _:
                    message = "a subquery contains MATCH, UNWIND and WHERE, and ends with RETURN"
                    raise self.binding.error("C015", message, clause.at)

    def one_path(self, node: ast.PatternExpr) -> ir.Expr:
        message = "shortestPath is allowed only in MATCH"
        help = "Write MATCH p = shortestPath((a)-[*]-(b))."
        raise self.binding.error("C015", message, node.at, help)


def _reads_others(projection: ast.Projection) -> bool:
    """Whether the condition of WITH reads a variable that WITH does not name."""
    named = {item.name for item in projection.items}
    if projection.star:
        return False
    own = {n.var for n in parts_of(projection.predicate) if isinstance(n, LOCAL)}
    read = {n.name for n in parts_of(projection.predicate) if isinstance(n, ast.Variable)}
    return bool(read - named - own)


def _is_existence(node: ast.Expr) -> bool:
    match node:
        case ast.Unary("not", part):
            return _is_existence(part) and not isinstance(part, ast.Unary)
        case ast.PatternExpr(pattern):
            return pattern.shortest is None
        case ast.Subquery(kind="exists"):
            return True
        case ast.Call(name="exists", args=(ast.PatternExpr(),)):
            return True
        case _:
            return False


def _counted(node: ast.Expr) -> tuple[ast.Subquery, str, ast.Expr] | None:
    """A number of solutions compared with something that has no subquery itself."""
    match node:
        case ast.ComparisonChain(ast.Subquery(kind="count") as first, ((operator, other),)):
            looks = any(isinstance(part, LOOKING) for part in parts_of(other))
            return None if looks else (first, operator, other)
        case _:
            return None


def finished(plan: ir.Op, columns: list[ProjectedColumn]) -> ir.Read:
    """The output columns, with every reference written out."""
    made = [ir.NamedExpr(column.name, _written(column.expr)) for column in columns]
    outputs = tuple(ir.OutputColumn(c.name, c.expr.type) for c in made)
    return ir.Read(ir.Project(plan, tuple(made)), outputs)


def _written(expr: ir.Expr) -> ir.Expr:
    kind = expr.type
    if isinstance(expr, ir.RefOf):
        return ir.EntityOf(expr.var, ir.EntityValue(expr.type.types, True))
    if is_null_literal(expr) and isinstance(kind, ir.RefValue | ir.TrailValue):
        return ir.Literal(None, types.STRING)
    if is_null_literal(expr):
        return ir.Literal(None, types.written(kind))
    if isinstance(kind, ir.TemporalValue):
        from omnigraph.lang.cypher.temporal import temporal_text

        return temporal_text(expr)
    if types.holds_reference(kind) or types.holds_temporal(kind):
        return ir.WrittenOut(expr, types.written(kind))
    return expr
