"""Typing aggregates: what they take, and what they give."""

from __future__ import annotations

from omnigraph.lang import ir
from omnigraph.lang.query import ast
from omnigraph.lang.query.scope import CheckContext, Scope
from omnigraph.lang.query.typer import OnCall, Typer, no_aggregate
from omnigraph.lang.query.typing_rules import is_bool, is_numeric, is_plain, is_string, is_time
from omnigraph.lang.tree import is_null_literal, walk
from omnigraph.model.frozen import frozen
from omnigraph.model.types import PropType


@frozen
class AggregateTyper:
    """Types the aggregates over the rows that bind the variables of a scope."""

    context: CheckContext
    scope: Scope
    on_ranking: OnCall

    def typed(self, typer: Typer, node: ast.Call) -> ir.NamedAggregate:
        """The aggregate, without its name: equal ones are computed once."""
        if node.star:
            if node.name != "count":
                message = f"only count takes `*`, not {node.name}"
                raise self.context.error("Q008", message, node.at)
            return ir.NamedAggregate("", ir.AggregateFunction.COUNT_ROWS, None, False, ir.I64)
        if len(node.args) != 1:
            message = f"`{node.name}` takes one argument, not {len(node.args)}"
            raise self.context.error("Q008", message, node.at)
        function = ir.AggregateFunction(node.name)
        arg = self.argument(typer, node.args[0])
        kind = self.aggregate_type(function, arg, node)
        if node.distinct and function is ir.AggregateFunction.COUNT:
            arg = self.whole_identity(arg)
        return ir.NamedAggregate("", function, arg, node.distinct, kind)

    def whole_identity(self, arg: ir.Expr) -> ir.Expr:
        """The identity of entities of several types: the type and the id, since ids are unique only within a type."""
        if not isinstance(arg, ir.IdOf) or len(self.scope.vars[arg.var].types) == 1:
            return arg
        parts = (ir.TypeOf(arg.var, arg.type), ir.Literal(" ", ir.STRING), arg)
        return ir.Call(ir.Function.CONCAT, parts, arg.type)

    def argument(self, typer: Typer, node: ast.Expr) -> ir.Expr:
        """What is aggregated: a value of a row, or an entity by its id."""
        inner = Typer(self.context, self.scope, typer.on_name, no_aggregate, self.on_ranking)
        if isinstance(node, ast.Variable) and node.name not in self.context.params:
            return inner.nullable_value(node)
        arg = inner.expr(node)
        if any(isinstance(part, ir.Output) for part in walk(arg)):
            raise self.context.error("Q010", "aggregates do not nest", node.at)
        return arg

    def aggregate_type(
        self, function: ir.AggregateFunction, arg: ir.Expr, node: ast.Call
    ) -> PropType:
        kind, entity = arg.type, isinstance(node.args[0], ast.Variable) and isinstance(arg, ir.IdOf)
        match function:
            case ir.AggregateFunction.COUNT:
                return ir.I64
            case ir.AggregateFunction.COLLECT if isinstance(kind, PropType) and is_plain(kind):
                return PropType(kind.scalar, is_list=True)
            case ir.AggregateFunction.SUM | ir.AggregateFunction.AVG if is_numeric(kind):
                return ir.F64_OR_NULL
            case ir.AggregateFunction.MIN | ir.AggregateFunction.MAX:
                ordered = is_numeric(kind) or is_time(kind) or is_string(kind) or is_bool(kind)
                if (
                    ordered
                    and not entity
                    and isinstance(kind, PropType)
                    and not is_null_literal(arg)
                ):
                    return kind.with_nullable(True)
            case _:
                pass
        wanted = {
            "sum": "numbers",
            "avg": "numbers",
            "collect": "single values",
        }.get(node.name, "numbers, Strings, Bools, Dates and DateTimes")
        given = "a whole entity" if entity else str(kind)
        raise self.context.error("T8", f"`{node.name}` takes {wanted}, not {given}", node.at)
