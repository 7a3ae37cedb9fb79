"""Typing expressions: from syntax trees to typed expressions of the intermediate representation.

One typer serves one place of a query. The differences between places are passed to it: the meaning of a bare word, and
how to handle an aggregate or a ranking.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from omnigraph.lang import ir
from omnigraph.lang.query import ast
from omnigraph.lang.query.calls import check_call
from omnigraph.lang.query.scope import IDS, CheckContext, Reported, Scope, Var, VarKind
from omnigraph.lang.query.typing_rules import (
    I64_MAX,
    arithmetic_type,
    common_type,
    compatible,
    is_bool,
    is_numeric,
    is_plain,
    is_string,
    literal_type,
)
from omnigraph.lang.tree import is_constant, is_null_literal
from omnigraph.model.types import PropType, Scalar
from omnigraph.values.misfit import Misfit
from omnigraph.values.reading import read_value

ENDS = {"from": ir.End.SRC, "to": ir.End.DST, "src": ir.End.SRC, "dst": ir.End.DST}
ENDS |= {"@src": ir.End.SRC, "@dst": ir.End.DST}
EDGE_COLUMNS = (*IDS, *ENDS)
AGGREGATES = ("count", "sum", "avg", "min", "max", "collect")
RANKINGS = ("nearest", "bm25", "rrf")

OnName = Callable[[ast.Name], ir.Expr]
OnCall = Callable[["Typer", ast.Call], ir.Expr]


@dataclass(slots=True)
class Typer:
    """Types the expressions of one place."""

    context: CheckContext
    scope: Scope
    on_name: OnName
    on_aggregate: OnCall
    on_ranking: OnCall

    def expr(self, node: ast.Expr) -> ir.Expr:
        """The typed expression; raises when an error was reported."""
        match node:
            case ast.Literal(value):
                return ir.Literal(value, literal_type(value))
            case ast.TimeLiteral():
                return self.time_literal(node)
            case ast.ListLiteral():
                return self.list_literal(node)
            case ast.Variable():
                return self.variable(node)
            case ast.PropertyAccess():
                return self.property(node)
            case ast.AllProperties():
                message = f"`${node.var}.*` is not a single value"
                raise self.context.error("Q016", message, node.at)
            case ast.Name():
                return self.on_name(node)
            case ast.Call():
                return self.call(node)
            case ast.Cast():
                return self.cast(node)
            case ast.Negative():
                return self.negative(node)
            case ast.NotExpr(part):
                return ir.Not(self.condition(part))
            case ast.IsNull(part, negated):
                return ir.IsNull(self.nullable_value(part), negated)
            case ast.Connective(word, parts):
                typed = tuple(self.condition(p) for p in parts)
                return ir.And(typed) if word == "and" else ir.Or(typed)
            case ast.Binary():
                return self.binary(node)

    def condition(self, node: ast.Expr) -> ir.Expr:
        """An expression of type Bool."""
        typed = self.expr(node)
        if not is_bool(typed.type):
            message = f"a condition is Bool, and this is {typed.type}"
            raise self.context.error("Q013", message, node.at)
        return typed

    def constant(self, node: ast.Expr, code: str, what: str) -> ir.Expr:
        """An expression that is the same for every row."""
        if isinstance(node, ast.Variable) and node.name not in self.context.params:
            message = f"`${node.name}` is not a parameter of the query; {what}"
            options = [f"${name}" for name in self.context.params]
            raise self.context.unknown(code, message, node.at, f"${node.name}", options)
        typed = self.expr(node)
        if not is_constant(typed):
            raise self.context.error(code, f"{what}, not values of a row", node.at)
        return typed

    # --- leaves ---

    def time_literal(self, node: ast.TimeLiteral) -> ir.Expr:
        kind = ir.DATETIME if node.kind == "datetime" else PropType(Scalar.DATE)
        try:
            return ir.Literal(read_value(node.text, kind), kind)
        except Misfit as misfit:
            message = str(misfit.at("the literal", kind))
            raise self.context.error("Q017", message, node.at) from None

    def list_literal(self, node: ast.ListLiteral) -> ir.Expr:
        items = []
        for item in node.items:
            if isinstance(item, ast.ListLiteral):
                raise self.context.error("Q012", "a list cannot hold lists", item.at)
            items.append(self.constant(item, "Q012", "the members of a list are constants"))
        kinds = [item.type for item in items if isinstance(item.type, PropType)]
        known = [k for k, item in zip(kinds, items, strict=True) if not is_null_literal(item)]
        kind = common_type(known) if known else ir.STRING
        if kind is None or not all(k.is_plain for k in known):
            message = "the members of a list share one scalar type"
            raise self.context.error("Q012", message, node.at)
        list_type = PropType(kind.scalar, is_list=True)
        if all(isinstance(item, ir.Literal) for item in items):
            values = tuple(item.value for item in items if isinstance(item, ir.Literal))
            return ir.Literal(values, self.list_type(values, list_type, node))
        return ir.ListOf(tuple(items), list_type)

    def list_type(self, values: tuple[Any, ...], kind: PropType, node: ast.ListLiteral) -> PropType:
        """The type of a list of literals: of integers the one that holds them all, if any."""
        if kind.scalar is not Scalar.I64:
            return kind
        known = [value for value in values if value is not None]
        if max(known) <= I64_MAX:
            return kind
        if min(known) < 0:
            message = "no integer type holds all members of the list"
            help = "Write the largest as floats, or compare with two lists."
            raise self.context.error("Q012", message, node.at, help)
        return PropType(Scalar.U64, is_list=True)

    def variable(self, node: ast.Variable) -> ir.Expr:
        """A parameter, the id of a node, or a path."""
        kind = self.context.params.get(node.name)
        if kind is not None:
            if kind.is_blob:
                raise self.context.error("T24", f"the parameter `${node.name}` is a Blob", node.at)
            return ir.Param(node.name, kind)
        var = self.bound(node.name, node)
        match var.kind:
            case VarKind.PATH:
                return ir.PathOf(var.name, ir.PathValue(var.optional))
            case VarKind.EDGE:
                help = f"Use a property of it, `${var.name}.id`, or entity(${var.name})."
                message = f"the edge variable `${var.name}` is not a value by itself"
                raise self.context.error("T23", message, node.at, help)
            case _:
                return ir.IdOf(var.name, ir.STRING.with_nullable(var.optional))

    def bound(self, name: str, at: ast.Variable | ast.PropertyAccess | ast.AllProperties) -> Var:
        """The variable of this name, which an earlier clause must have bound."""
        var = self.scope.vars.get(name)
        if var is None:
            message = f"the variable `${name}` is not bound here"
            options = [f"${known}" for known in (*self.scope.vars, *self.context.params)]
            raise self.context.unknown("T6", message, at.at, f"${name}", options)
        if var.kind is VarKind.BROKEN:
            raise Reported
        return var

    def property(self, node: ast.PropertyAccess) -> ir.Expr:
        if node.var in self.context.params:
            message = f"`${node.var}` is a parameter and has no properties"
            raise self.context.error("T6", message, node.at)
        var = self.bound(node.var, node)
        structural = _structural(var, node.name)
        if structural is not None:
            return structural
        prop = var.properties.get(node.name)
        if prop is None:
            raise self.no_property(var, node)
        if prop.type.is_blob:
            message = f"the Blob property `${var.name}.{prop.name}` is not a value of a query"
            raise self.context.error("T24", message, node.at)
        return ir.Column(var.name, prop.name, var.property_type(prop))

    def no_property(self, var: Var, node: ast.PropertyAccess) -> Reported:
        if var.kind is VarKind.PATH:
            help = "Use nodes($p), edges($p) or length($p)."
            message = f"the path `${var.name}` has no properties"
            return self.context.error("Q018", message, node.at, help)
        word = "edge" if var.kind is VarKind.EDGE else "type"
        message = f"{word} `{var.label}` has no property `{node.name}`"
        options = [*var.properties, *(EDGE_COLUMNS if var.kind is VarKind.EDGE else IDS)]
        return self.context.unknown("T6", message, node.name_at, node.name, options)

    # --- operators ---

    def negative(self, node: ast.Negative) -> ir.Expr:
        part = self.expr(node.part)
        if not isinstance(part.type, PropType) or not is_numeric(part.type):
            raise self.context.error("T7", f"cannot negate {part.type}", node.at)
        kind = arithmetic_type(ir.ArithmeticOp.SUB, ir.I64, part.type)
        return ir.Call(ir.Function.NEGATE, (part,), kind)

    def cast(self, node: ast.Cast) -> ir.Expr:
        part = self.value(node.part)
        kind = node.type.with_nullable(True)
        if not kind.is_plain:
            raise self.context.error("T7", f"cannot cast to {node.type}", node.at)
        if is_null_literal(part):
            return ir.Literal(None, kind)
        if not is_plain(part.type):
            raise self.context.error("T7", f"cannot cast {part.type} to {node.type}", node.at)
        return ir.Cast(part, kind)

    def value(self, node: ast.Expr) -> ir.Expr:
        """An expression that is not the bare name of an entity."""
        typed = self.expr(node)
        if isinstance(typed, ir.IdOf) and isinstance(node, ast.Variable):
            help = f"Use a property of it, such as `${node.name}.id`."
            message = f"`${node.name}` is a whole node, not a value"
            raise self.context.error("T7", message, node.at, help)
        return typed

    def nullable_value(self, node: ast.Expr) -> ir.Expr:
        """A value, or an entity that an optional block may not have bound."""
        if isinstance(node, ast.Variable) and node.name not in self.context.params:
            var = self.bound(node.name, node)
            if var.kind is VarKind.PATH:
                return ir.PathOf(var.name, ir.PathValue(var.optional))
            return ir.IdOf(var.name, ir.STRING.with_nullable(var.optional))
        return self.expr(node)

    def binary(self, node: ast.Binary) -> ir.Expr:
        same = self.identity(node)
        if same is not None:
            return same
        left, right = self.value(node.left), self.value(node.right)
        match node.op:
            case ast.Operator.CONTAINS:
                return self.contains(node, left, right)
            case ast.Operator.STARTS_WITH:
                if not is_string(left.type) or not is_string(right.type):
                    message = f"`starts_with` compares Strings, not {left.type} and {right.type}"
                    raise self.context.error("T7", message, node.at)
                return ir.StartsWith(left, right)
            case ast.Operator.IN:
                return self.is_in(node, left, right)
            case (
                ast.Operator.ADD
                | ast.Operator.SUB
                | ast.Operator.MUL
                | ast.Operator.DIV
                | ast.Operator.MOD
            ):
                return self.arithmetic(node, left, right)
            case _:
                return self.compare(node, left, right)

    def identity(self, node: ast.Binary) -> ir.Expr | None:
        """`$a = $b` and `$a != $b` between bound variables: whether they are the same entity."""
        if node.op not in (ast.Operator.EQ, ast.Operator.NE):
            return None
        left, right = self._entity(node.left), self._entity(node.right)
        if left is None or right is None:
            return None
        if left.kind is not right.kind or not set(left.types) & set(right.types):
            message = f"`${left.name}` ({left.label}) and `${right.name}` ({right.label}) are never the same"
            raise self.context.error("T7", message, node.at)
        same = ir.Same(left.name, right.name)
        return same if node.op is ast.Operator.EQ else ir.Not(same)

    def _entity(self, node: ast.Expr) -> Var | None:
        if not isinstance(node, ast.Variable) or node.name in self.context.params:
            return None
        var = self.bound(node.name, node)
        return None if var.kind is VarKind.PATH else var

    def compare(self, node: ast.Binary, left: ir.Expr, right: ir.Expr) -> ir.Expr:
        if is_null_literal(left) or is_null_literal(right):
            message = "a comparison with null is never true"
            raise self.context.error("T7", message, node.at, "Write `is null` or `is not null`.")
        if not is_plain(left.type) or not is_plain(right.type):
            message = f"only scalars can be compared, not {left.type} and {right.type}"
            raise self.context.error("T7", message, node.at)
        if not compatible(left.type, right.type):
            message = f"cannot compare {left.type} with {right.type}"
            raise self.context.error("T7", message, node.at)
        return _simplified(ir.Compare(ir.CompareOp(node.op.value), left, right))

    def contains(self, node: ast.Binary, left: ir.Expr, right: ir.Expr) -> ir.Expr:
        if isinstance(left.type, PropType) and left.type.is_list:
            if not is_plain(right.type) or not compatible(left.type.element(), right.type):
                message = f"a list {left.type} cannot contain {right.type}"
                raise self.context.error("T7", message, node.at)
            return ir.Has(left, right)
        if not is_string(left.type) or not is_string(right.type):
            message = f"`contains` takes two Strings or a list, not {left.type} and {right.type}"
            raise self.context.error("T7", message, node.at)
        return ir.Contains(left, right)

    def is_in(self, node: ast.Binary, left: ir.Expr, right: ir.Expr) -> ir.Expr:
        if not isinstance(right.type, PropType) or not right.type.is_list:
            message = f"`in` takes a list on its right, not {right.type}"
            raise self.context.error("T7", message, node.right.at)
        empty = isinstance(right, ir.Literal) and not right.value
        if not is_plain(left.type) or not (empty or compatible(right.type.element(), left.type)):
            message = f"{left.type} cannot be in a list {right.type}"
            raise self.context.error("T7", message, node.at)
        return ir.In(left, right)

    def arithmetic(self, node: ast.Binary, left: ir.Expr, right: ir.Expr) -> ir.Expr:
        if (
            not isinstance(left.type, PropType)
            or not isinstance(right.type, PropType)
            or not left.type.is_numeric
            or not right.type.is_numeric
        ):
            strings = is_string(left.type) or is_string(right.type)
            help = "Strings are joined by concat(a, b)." if strings else ""
            message = f"cannot calculate with {left.type} and {right.type}"
            raise self.context.error("T7", message, node.at, help)
        op = ir.ArithmeticOp(node.op.value)
        return ir.Arithmetic(op, left, right, arithmetic_type(op, left.type, right.type))

    # --- calls ---

    def call(self, node: ast.Call) -> ir.Expr:
        if node.name in AGGREGATES:
            return self.on_aggregate(self, node)
        if node.star or node.distinct:
            message = f"`{node.name}` is not an aggregate; only aggregates take `*` or `distinct`"
            raise self.context.error("Q008", message, node.at)
        if node.name in RANKINGS:
            return self.on_ranking(self, node)
        return check_call(self, node)


def _structural(var: Var, name: str) -> ir.Expr | None:
    """The id, and the ends of an edge, which every entity has besides its properties."""
    kind = ir.STRING.with_nullable(var.optional)
    if name in IDS and var.kind in (VarKind.NODE, VarKind.EDGE):
        return ir.IdOf(var.name, kind)
    if var.kind is VarKind.EDGE and name in ENDS:
        return ir.EndpointOf(var.name, ENDS[name], kind)
    return None


def _simplified(expr: ir.Compare) -> ir.Expr:
    """`search(…) = true` is the search itself, and `= false` its negation."""
    match expr:
        case ir.Compare(ir.CompareOp.EQ, ir.TextMatch() as text, ir.Literal(bool(value))):
            return text if value else ir.Not(text)
        case _:
            return expr


def no_aggregate(typer: Typer, node: ast.Call) -> ir.Expr:
    """For places where an aggregate is not allowed."""
    message = f"the aggregate `{node.name}` cannot be used here"
    raise typer.context.error("Q010", message, node.at)


def no_ranking(typer: Typer, node: ast.Call) -> ir.Expr:
    """For places where a ranking is not allowed."""
    raise typer.context.error("Q009", f"the ranking `{node.name}` cannot be used here", node.at)
