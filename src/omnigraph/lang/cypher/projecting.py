"""WITH and RETURN: columns, implicit grouping, order and cut."""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.lang import ir
from omnigraph.lang.bindings import BindingKind, bindings
from omnigraph.lang.cypher import ast, types
from omnigraph.lang.cypher.binder import Blocks, ExprBinder
from omnigraph.lang.cypher.coercion import as_type
from omnigraph.lang.cypher.scope import BindingState, Flow
from omnigraph.lang.ir import AggregateFunction as A
from omnigraph.lang.ir import Function
from omnigraph.lang.tree import is_node, is_null_literal, rebuild, variables, walk
from omnigraph.model.types import PropType


@dataclass(slots=True)
class ProjectedColumn:
    """A column of a projection: its name, what it is, and whether it aggregates."""

    name: str
    expr: ir.Expr
    aggregates: bool


@dataclass(slots=True)
class Projector:
    """One WITH or RETURN."""

    binding: BindingState
    flow: Flow
    blocks: Blocks
    node: ast.Projection
    aggregates: list[ir.NamedAggregate] = field(default_factory=list)
    made: set[str] = field(default_factory=set)  # the columns aggregates are read under

    def project(self, final: bool, where: bool = False) -> list[ProjectedColumn]:
        """Put the projection on the flow; RETURN leaves output columns, WITH variables.

        With `where` the condition of WITH is evaluated here, because it reads variables that end here.
        """
        binder = ExprBinder(self.binding, self.flow, self.blocks, self.aggregate)
        columns = self.columns(binder)
        order = self.order(binder, columns)
        grouped = bool(self.aggregates) or self.node.distinct
        test = self.condition(binder, columns) if where else None
        if grouped:
            columns, order, test = self.group(columns, order, test)
        plan = self.flow.plan
        if order:
            plan = ir.Sort(plan, order, () if grouped else self.ties(order))
        skip, limit = self.count(self.node.skip), self.count(self.node.limit)
        if skip is not None or limit is not None:
            plan = ir.Slice(plan, skip, limit)
        self.flow.plan = plan if test is None else ir.Filter(plan, test)
        if not final:
            self.rebind(columns)
        return columns

    # --- columns ---------------------------------------------------------------------------------------------------

    def columns(self, binder: ExprBinder) -> list[ProjectedColumn]:
        found: list[ProjectedColumn] = []
        if self.node.star:
            if not self.flow.names and not self.node.items:
                message = "there are no variables for `*`"
                raise self.binding.error("C007", message, self.node.at)
            found = [ProjectedColumn(n, e, False) for n, e in sorted(self.flow.names.items())]
        for item in self.node.items:
            if isinstance(item.expr, ast.PatternExpr):
                message = "a pattern is a condition, not a value"
                help = "Write EXISTS { … } or COUNT { … }."
                raise self.binding.error("C009", message, item.at, help)
            before = len(self.aggregates)
            names = len(self.made)
            expr = binder.expr(item.expr)
            grouped = len(self.aggregates) > before or len(self.made) > names or self.reads(expr)
            found.append(ProjectedColumn(item.name, expr, grouped))
        seen: set[str] = set()
        for column in found:
            if column.name in seen:
                message = f"two columns are called `{column.name}`"
                raise self.binding.error("C012", message, self.node.at)
            seen.add(column.name)
        return found

    def reads(self, expr: ir.Expr) -> bool:
        """Whether an expression holds an aggregate."""
        return any(isinstance(p, ir.Output) and p.name in self.made for p in walk(expr))

    def order(self, binder: ExprBinder, columns: list[ProjectedColumn]) -> tuple[ir.SortKey, ...]:
        """The keys; a column may be named by its alias. Null comes last, and first when descending."""
        keys: list[ir.SortKey] = []
        if not self.node.order:
            return ()
        aggregating = bool(self.aggregates)
        outer = binder.inner
        binder.inner = {column.name: column.expr for column in columns}
        saved = binder.aggregate
        if not aggregating:
            binder.aggregate = None
        # An alias is not a variable of a list: patterns may use it, and aggregates may be repeated.
        aliases = Aliased(binder)
        known = len(self.aggregates)
        for wanted in self.node.order:
            expr = aliases.expr(wanted.expr)
            if len(self.aggregates) > known:
                message = "an aggregate in ORDER BY must be one of the columns"
                raise self.binding.error("C010", message, wanted.expr.at)
            if is_null_literal(expr):
                continue
            if isinstance(expr, ir.RefOf):
                expr = ir.IdOf(expr.var, types.STRING)
            if self.may_be_null(expr):
                keys.append(ir.SortKey(ir.IsNull(expr), wanted.descending))
            keys.append(ir.SortKey(expr, wanted.descending))
        binder.inner, binder.aggregate = outer, saved
        return tuple(keys)

    def may_be_null(self, expr: ir.Expr) -> bool:
        """Whether the value may be null: false for a required property of what is bound in every row."""
        if not isinstance(expr, ir.Column | ir.IdOf):
            return True
        bound = bindings(self.flow.plan).get(expr.var)
        if bound is None or bound.nullable:
            return True
        if isinstance(expr, ir.IdOf):
            return False
        edge = bound.kind is BindingKind.EDGE
        props = self.binding.property(ir.RefValue(bound.types, edge), expr.property)
        return any(prop is None or prop.type.nullable for prop in props)

    def condition(self, binder: ExprBinder, columns: list[ProjectedColumn]) -> ir.Expr:
        """The condition of WITH, in which column names hide variables."""
        assert self.node.predicate is not None  # noqa: S101 - only called with one
        binder.inner = {column.name: column.expr for column in columns}
        found = Aliased(binder).truth(self.node.predicate)
        binder.inner = {}
        return found

    def ties(self, order: tuple[ir.SortKey, ...]) -> tuple[ir.Expr, ...]:
        """What makes the order of rows total: the ids of what is bound."""
        keys = [key.expr for key in order]
        refs = [e for _, e in sorted(self.flow.names.items()) if isinstance(e, ir.RefOf)]
        ids = dict.fromkeys(ir.IdOf(e.var, types.STRING) for e in refs)
        return tuple(tie for tie in ids if tie not in keys)

    def count(self, node: ast.Expr | None) -> ir.Expr | None:
        """A whole number that is the same for every row."""
        if node is None:
            return None
        binder = ExprBinder(self.binding, Flow(ir.Outer()), self.blocks)
        found = binder.expr(node)
        if not types.is_integer(found.type) or (
            isinstance(found, ir.Literal) and (found.value is None or found.value < 0)
        ):
            message = f"a count is a whole number from 0, not {types.name_of(found.type)}"
            raise self.binding.error("C016", message, node.at)
        return found

    # --- grouping --------------------------------------------------------------------------------------------------

    def group(
        self, columns: list[ProjectedColumn], order: tuple[ir.SortKey, ...], test: ir.Expr | None
    ) -> tuple[list[ProjectedColumn], tuple[ir.SortKey, ...], ir.Expr | None]:
        """Rows become groups: the columns without aggregates are what they are grouped by."""
        keys = {c.name: c.expr for c in columns if not c.aggregates}
        named = tuple(ir.NamedExpr(f"{ir.FRESH}k{i}", e) for i, e in enumerate(keys.values()))
        self.flow.plan = ir.Aggregate(self.flow.plan, named, tuple(self.aggregates))
        outputs = {id(n.expr): ir.Output(n.name, n.expr.type) for n in named}
        by_value = [(n.expr, ir.Output(n.name, n.expr.type)) for n in named]

        def over_groups(expr: ir.Expr) -> ir.Expr:
            found = _replaced(expr, by_value)
            left = variables(found) - self.inner_variables(found)
            if left:
                names = ", ".join(f"`{name}`" for name in sorted(left))
                message = f"{names} is neither aggregated nor a grouping key"
                raise self.binding.error("C010", message, self.node.at)
            return found

        made = [
            ProjectedColumn(c.name, outputs.get(id(c.expr)) or over_groups(c.expr), c.aggregates)
            for c in columns
        ]
        sorted_by = tuple(ir.SortKey(over_groups(k.expr), k.descending) for k in order)
        return made, sorted_by, None if test is None else over_groups(test)

    def inner_variables(self, expr: ir.Expr) -> frozenset[str]:
        """The variables of lists gone through within an expression."""
        found: set[str] = set()
        for part in walk(expr):
            match part:
                case ir.Each(var=var) | ir.Quantified(var=var):
                    found.add(var)
                case ir.Fold(total=total, var=var):
                    found |= {total, var}
                case _:
                    pass
        return frozenset(found)

    def aggregate(self, node: ast.Call) -> ir.Expr:
        """An aggregate: its argument is bound here, its result is read as an output."""
        binder = ExprBinder(self.binding, self.flow, self.blocks)
        if node.star:
            return self.add(A.COUNT_ROWS, None, False, types.I64)
        wanted = 2 if node.name.startswith("percentile") else 1
        if len(node.args) != wanted:
            message = (
                f"{node.name}() takes {wanted} argument{'s' * (wanted > 1)}, not {len(node.args)}"
            )
            raise binder.wrong(message, node.at)
        arg = binder.expr(node.args[0])
        kind = types.plain(arg.type)
        match node.name:
            case "count":
                return self.add(A.COUNT, _counted(arg, node.distinct), node.distinct, types.I64)
            case "collect":
                return self.add(A.IN_ORDER, arg, node.distinct, types.list_of(kind))
            case "min" | "max":
                return self.add(A.MIN if node.name == "min" else A.MAX, arg, False, kind)
            case _:
                return self.of_numbers(binder, node, arg)

    def of_numbers(self, binder: ExprBinder, node: ast.Call, arg: ir.Expr) -> ir.Expr:
        if isinstance(arg.type, ir.TemporalValue) and node.name in ("sum", "avg"):
            from omnigraph.lang.cypher.temporal import total_duration

            held = self.add(A.COLLECT, arg, node.distinct, types.list_of(arg.type))
            return total_duration(binder, node, arg, held)
        if not types.is_number(arg.type) and not is_null_literal(arg):
            message = f"{node.name}() takes numbers, not {types.name_of(arg.type)}"
            raise binder.wrong(message, node.at)
        arg = as_type(arg, types.F64) if is_null_literal(arg) else arg
        whole = types.is_integer(arg.type)
        if node.name == "sum" and whole:
            return self.add(A.TOTAL, as_type(arg, types.I64), node.distinct, types.I64)
        if node.name == "sum":
            total = self.add(A.SUM, arg, node.distinct, types.F64)
            return ir.Call(Function.COALESCE, (total, ir.Literal(0.0, ir.F64)), types.F64)
        if node.name == "avg":
            return self.add(A.AVG, arg, node.distinct, types.F64)
        values = self.add(
            A.COLLECT, as_type(arg, types.F64), node.distinct, types.list_of(types.F64)
        )
        if node.name in ("stdev", "stdevp"):
            function = Function.DEVIATION if node.name == "stdev" else Function.DEVIATION_OF_ALL
            return ir.Call(function, (values,), types.F64)
        share = as_type(binder.expr(node.args[1]), types.F64)
        function = (
            Function.PERCENTILE_CONT if node.name == "percentilecont" else Function.PERCENTILE_DISC
        )
        found = ir.Call(function, (values, share), types.F64)
        discrete = whole and function is Function.PERCENTILE_DISC
        return ir.Cast(found, types.I64) if discrete else found

    def add(self, function: A, arg: ir.Expr | None, distinct: bool, kind: ir.ValueType) -> ir.Expr:
        for known in self.aggregates:
            if (known.function, known.arg, known.distinct) == (function, arg, distinct):
                return ir.Output(known.name, known.type)
        name = f"{ir.FRESH}a{len(self.aggregates)}"
        self.aggregates.append(ir.NamedAggregate(name, function, arg, distinct, kind))
        self.made.add(name)
        return ir.Output(name, kind)

    # --- what follows ----------------------------------------------------------------------------------------------

    def rebind(self, columns: list[ProjectedColumn]) -> None:
        """The columns become the variables of what follows; nodes and relationships stay bound."""
        keep: dict[str, tuple[str, str]] = {}
        values: list[ir.NamedExpr] = []
        names: dict[str, ir.Expr] = {}
        held: dict[str, tuple[str, ...]] = {}
        attach: list[tuple[str, str, ir.RefValue]] = []
        for column in columns:
            expr = column.expr
            if isinstance(expr, ir.RefOf):
                var = expr.var
                keep[var] = (var, var)
                names[column.name] = expr
                held[var] = self.flow.types.get(var, expr.type.types)
                continue
            var = self.binding.fresh(column.name)
            values.append(ir.NamedExpr(var, expr))
            names[column.name] = ir.ValueOf(var, types.plain(expr.type))
            if isinstance(expr, ir.Output) and isinstance(expr.type, ir.RefValue):
                bound = self.binding.fresh(column.name)
                attach.append((bound, var, expr.type))
                names[column.name] = ir.RefOf(bound, expr.type)
                held[bound] = expr.type.types
        plan: ir.Op = ir.Let(self.flow.plan, tuple(values), tuple(keep.values()))
        for bound, var, kind in attach:
            plan = ir.Attach(plan, bound, ir.ValueOf(var, kind), kind.types, kind.edge)
        self.flow.plan, self.flow.names, self.flow.types = plan, names, held


class Aliased:
    """Binds keys of an order, where names of columns hide variables."""

    def __init__(self, binder: ExprBinder) -> None:
        flow = binder.flow
        inner = binder.inner
        shown = Flow(flow.plan, {**flow.names, **inner}, flow.types, flow.nested)
        self._binder = ExprBinder(binder.binding, shown, binder.blocks, binder.aggregate)
        self._flow, self._shown = flow, shown

    def expr(self, node: ast.Expr) -> ir.Expr:
        found = self._binder.expr(node)
        self._flow.plan = self._shown.plan
        return found

    def truth(self, node: ast.Expr) -> ir.Expr:
        found = self._binder.truth(node)
        self._flow.plan = self._shown.plan
        return found


def _counted(arg: ir.Expr, distinct: bool) -> ir.Expr:
    """A stand-in for an entity where only its presence counts."""
    if isinstance(arg, ir.RefOf) and (not distinct or len(arg.type.types) == 1):
        return ir.IdOf(arg.var, types.STRING)
    return arg


def _replaced(expr: ir.Expr, known: list[tuple[ir.Expr, ir.Output]]) -> ir.Expr:
    """With every part that is a group's key read from the group."""
    for part, output in known:
        if part == expr:
            return output
    if isinstance(expr, ir.RefOf | ir.TrailOf):
        return expr
    of_entity = _through_key(expr, known)
    if of_entity is not None:
        return of_entity
    return rebuild(expr, lambda child: _replaced(child, known) if is_node(child) else child)


def _through_key(expr: ir.Expr, known: list[tuple[ir.Expr, ir.Output]]) -> ir.Expr | None:
    """What is read of a variable that is a group's key, read of the reference in the group."""
    for part, output in known:
        if not isinstance(part, ir.RefOf):
            continue
        match expr:
            case ir.Column(var, name, kind) if var == part.var:
                plain = types.plain(kind)
                assert isinstance(plain, PropType)  # noqa: S101
                return ir.RefGet(output, name, plain)
            case ir.IdOf(var) if var == part.var:
                return ir.RefGet(output, "id", types.STRING)
            case ir.TypeOf(var) if var == part.var:
                return ir.RefType(output)
            case _:
                pass
    return None
