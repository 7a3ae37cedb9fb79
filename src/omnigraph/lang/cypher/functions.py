"""The functions of Cypher, each with its expression."""

from __future__ import annotations

import math
from collections.abc import Callable

from omnigraph.lang import ir
from omnigraph.lang.cypher import ast, types
from omnigraph.lang.cypher.binder import ExprBinder, map_literal
from omnigraph.lang.cypher.coercion import as_type, null_of
from omnigraph.lang.cypher.scope import labels_of_edge
from omnigraph.lang.ir import Function, ValueType
from omnigraph.lang.tree import is_null_literal
from omnigraph.model.frozen import frozen
from omnigraph.model.types import PropType

AGGREGATES = frozenset(
    [
        "count",
        "sum",
        "avg",
        "min",
        "max",
        "collect",
        "stdev",
        "stdevp",
        "percentilecont",
        "percentiledisc",
    ]
)
STRINGS = types.list_of(types.STRING)


@frozen
class BoundCall:
    """A call whose arguments are bound."""

    binder: ExprBinder
    node: ast.Call
    args: list[ir.Expr]

    def wrong(self, position: int, wanted: str) -> Exception:
        kind = types.name_of(self.args[position].type)
        message = f"{self.node.name}() takes {wanted}, not {kind}"
        return self.binder.wrong(message, self.node.args[position].at)

    def of(self, position: int, fits: Callable[[ValueType], bool], wanted: str) -> ir.Expr:
        found = self.args[position]
        if not fits(found.type) and not is_null_literal(found):
            raise self.wrong(position, wanted)
        return found


Make = Callable[[BoundCall], ir.Expr]


@frozen
class FunctionSignature:
    """The number of arguments of a function, and its meaning."""

    least: int
    most: int
    make: Make


def bind_call(binder: ExprBinder, node: ast.Call) -> ir.Expr:
    """A call of a function of one row."""
    found = FUNCTIONS.get(node.name)
    if found is None:
        from omnigraph.lang.cypher.temporal import TEMPORAL_FUNCTIONS

        found = TEMPORAL_FUNCTIONS.get(node.name)
    if found is None:
        known = (*FUNCTIONS, *TEMPORAL_FUNCTIONS, *AGGREGATES)
        message = f"unknown function `{node.name}`"
        raise binder.binding.unknown("C011", message, node.at, node.name, known)
    if node.distinct or node.star:
        raise binder.binding.error("C010", f"{node.name}() is not an aggregate", node.at)
    count = len(node.args)
    if not found.least <= count <= found.most:
        wanted = str(found.least) if found.least == found.most else f"{found.least} to {found.most}"
        message = f"{node.name}() takes {wanted} arguments, not {count}"
        raise binder.wrong(message, node.at)
    if node.name == "exists":
        return _exists(binder, node)
    return found.make(BoundCall(binder, node, [binder.expr(arg) for arg in node.args]))


def _exists(binder: ExprBinder, node: ast.Call) -> ir.Expr:
    """Of a pattern whether it occurs, of a value whether it is not null."""
    (arg,) = node.args
    found = binder.expr(arg)
    return found if isinstance(arg, ast.PatternExpr) else binder.is_null(found, negated=True)


# --- numbers -------------------------------------------------------------------------------------------------------


def _number(function: Function, kind: PropType | None = types.F64) -> FunctionSignature:
    def make(given: BoundCall) -> ir.Expr:
        (part,) = (given.of(0, types.is_number, "a number"),)
        if is_null_literal(part):
            return part
        if kind is None:  # of the type of the argument
            whole = types.I64 if types.is_integer(part.type) else types.F64
            return ir.Call(function, (as_type(part, whole),), whole)
        return ir.Call(function, (as_type(part, types.F64),), kind)

    return FunctionSignature(1, 1, make)


def _two_numbers(given: BoundCall) -> ir.Expr:
    parts = tuple(as_type(given.of(i, types.is_number, "numbers"), types.F64) for i in (0, 1))
    return ir.Call(Function.ATAN2, parts, types.F64)


def _constant(value: float) -> FunctionSignature:
    return FunctionSignature(0, 0, lambda _: ir.Literal(value, ir.F64))


def _to_number(kind: PropType) -> FunctionSignature:
    def make(given: BoundCall) -> ir.Expr:
        (part,) = given.args
        fits = types.is_number(part.type) or types.is_string(part.type)
        if is_null_literal(part):
            return null_of(kind)
        if not fits and not (types.is_bool(part.type) and kind == types.I64):
            raise given.wrong(0, "a number or a text")
        if kind == types.I64 and types.is_string(part.type):
            # "2.7" is 2: the number it spells, truncated.
            return ir.Call(
                Function.COALESCE,
                (ir.Cast(part, kind), ir.Cast(ir.Cast(part, types.F64), kind)),
                kind,
            )
        return ir.Cast(part, kind)

    return FunctionSignature(1, 1, make)


def _to_boolean(given: BoundCall) -> ir.Expr:
    (part,) = given.args
    if types.is_bool(part.type):
        return part
    if types.is_string(part.type):
        return ir.Cast(ir.Call(Function.LOWER, (part,), types.STRING), types.BOOL)
    if types.is_integer(part.type):
        return ir.Cast(part, types.BOOL)
    if is_null_literal(part):
        return null_of(types.BOOL)
    raise given.wrong(0, "a truth value, a text or a whole number")


def _to_string(given: BoundCall) -> ir.Expr:
    (part,) = given.args
    if is_null_literal(part):
        return null_of(types.STRING)
    if types.temporal_kind(part.type) is not None:
        from omnigraph.lang.cypher.temporal import temporal_text

        return temporal_text(part)
    if not isinstance(part.type, PropType) or not part.type.is_plain:
        raise given.wrong(0, "a single value")
    return part if types.is_string(part.type) else ir.Cast(part, types.STRING)


# --- texts ---------------------------------------------------------------------------------------------------------


def _texts(function: Function, count: int, kind: ValueType = types.STRING) -> FunctionSignature:
    def make(given: BoundCall) -> ir.Expr:
        parts = [given.of(i, types.is_string, "a text") for i in range(count)]
        return ir.Call(function, tuple(as_type(p, types.STRING) for p in parts), kind)

    return FunctionSignature(count, count, make)


def _cut(function: Function, least: int, most: int) -> FunctionSignature:
    def make(given: BoundCall) -> ir.Expr:
        text = as_type(given.of(0, types.is_string, "a text"), types.STRING)
        counts = [
            as_type(given.of(i, types.is_integer, "a whole number"), types.I64)
            for i in range(1, len(given.args))
        ]
        return ir.Call(function, (text, *counts), types.STRING)

    return FunctionSignature(least, most, make)


def _reverse(given: BoundCall) -> ir.Expr:
    part = given.of(0, lambda k: types.is_string(k) or types.is_list(k), "a text or a list")
    return ir.Call(Function.REVERSE, (part,), types.plain(part.type))


def _size(given: BoundCall) -> ir.Expr:
    part = given.args[0]
    if is_null_literal(part):
        return null_of(types.I64)
    part = given.of(0, lambda k: types.is_string(k) or types.is_list(k), "a text or a list")
    return ir.Call(Function.LENGTH, (part,), types.I64)


# --- lists ---------------------------------------------------------------------------------------------------------


def _member(index: int) -> FunctionSignature:
    def make(given: BoundCall) -> ir.Expr:
        part = given.of(0, types.is_list, "a list")
        if is_null_literal(part):
            return part
        return ir.MemberAt(part, ir.Literal(index, ir.I64), types.item_of(part.type))

    return FunctionSignature(1, 1, make)


def _tail(given: BoundCall) -> ir.Expr:
    part = given.of(0, types.is_list, "a list")
    if is_null_literal(part):
        return part
    return ir.Sublist(part, ir.Literal(1, ir.I64), None, types.plain(part.type))


def _range(given: BoundCall) -> ir.Expr:
    numbers = [given.of(i, types.is_integer, "whole numbers") for i in range(len(given.args))]
    step = numbers[2] if len(numbers) > 2 else ir.Literal(1, ir.I64)
    if isinstance(step, ir.Literal) and step.value == 0:
        raise given.binder.wrong("range() takes a step other than 0", given.node.at)
    kind = types.list_of(types.I64)
    assert isinstance(kind, PropType)  # noqa: S101
    first, last, step = (as_type(part, types.I64) for part in (numbers[0], numbers[1], step))
    return ir.Numbers(first, last, step, kind)


def _each_to(make: Make) -> FunctionSignature:
    """A conversion of every member of a list."""

    def convert(given: BoundCall) -> ir.Expr:
        part = given.of(0, types.is_list, "a list")
        var = given.binder.binding.fresh()
        item = ir.ValueOf(var, types.item_of(part.type))
        body = make(BoundCall(given.binder, given.node, [item]))
        return ir.Each(var, part, None, body, types.list_of(body.type))

    return FunctionSignature(1, 1, convert)


def _coalesce(given: BoundCall) -> ir.Expr:
    known = [arg for arg in given.args if not is_null_literal(arg)]
    if not known:
        return null_of(ir.NULL)
    kind = given.binder.common(known, given.node.at, "coalesce()")
    parts = [as_type(arg, kind) for arg in known]
    whens = tuple((given.binder.is_null(part, True), part) for part in parts[:-1])
    if all(isinstance(p.type, PropType) and p.type.is_plain for p in parts):
        return ir.Call(Function.COALESCE, tuple(parts), kind)
    return ir.Choice(whens, parts[-1], kind) if whens else parts[-1]


# --- entities and paths --------------------------------------------------------------------------------------------


def _is_entity(kind: ValueType) -> bool:
    return isinstance(kind, ir.RefValue)


def _is_edge(kind: ValueType) -> bool:
    return isinstance(kind, ir.RefValue) and kind.edge


def _is_node(kind: ValueType) -> bool:
    return isinstance(kind, ir.RefValue) and not kind.edge


def _is_trail(kind: ValueType) -> bool:
    return isinstance(kind, ir.TrailValue)


def _id(given: BoundCall) -> ir.Expr:
    part = given.of(0, _is_entity, "a node or a relationship")
    return null_of(types.STRING) if is_null_literal(part) else given.binder.identity(part)


def _type(given: BoundCall) -> ir.Expr:
    part = given.of(0, _is_edge, "a relationship")
    if is_null_literal(part):
        return null_of(types.STRING)
    assert isinstance(part.type, ir.RefValue)  # noqa: S101
    catalog = given.binder.binding.catalog
    known = {name: labels_of_edge(catalog.edges[name])[-1] for name in part.type.types}
    return _renamed(given, part, known)


def _renamed(given: BoundCall, part: ir.Expr, known: dict[str, str]) -> ir.Expr:
    """The name of the type, where it differs from that of the schema the other one."""
    kind = given.binder.type_name(part)
    whens = tuple(
        (ir.Compare(ir.CompareOp.EQ, kind, ir.Literal(own, ir.STRING)), ir.Literal(to, ir.STRING))
        for own, to in known.items()
        if own != to
    )
    return ir.Choice(whens, kind, types.STRING) if whens else kind


def _labels(given: BoundCall) -> ir.Expr:
    part = given.of(0, _is_node, "a node")
    if is_null_literal(part):
        return null_of(STRINGS)
    assert isinstance(part.type, ir.RefValue)  # noqa: S101
    given.binder.require_there(part, given.node.at)
    nodes = given.binder.binding.catalog.nodes
    kind = given.binder.type_name(part)
    whens = []
    for name in part.type.types:
        labels = (name, *nodes[name].implements)
        test = ir.Compare(ir.CompareOp.EQ, kind, ir.Literal(name, ir.STRING))
        whens.append((test, ir.Literal(labels, ir.STRINGS)))
    return ir.Choice(tuple(whens), null_of(STRINGS), STRINGS)


def _keys(given: BoundCall) -> ir.Expr:
    part = given.args[0]
    if is_null_literal(part):
        return null_of(STRINGS)
    if isinstance(part.type, ir.MapValue):
        names = tuple(name for name, _ in part.type.fields)
        if isinstance(part, ir.MakeMap):
            return ir.Literal(names, ir.STRINGS)
        known = ((ir.IsNull(part, negated=True), ir.Literal(names, ir.STRINGS)),)
        return ir.Choice(known, null_of(STRINGS), STRINGS)
    part = given.of(0, _is_entity, "a node, a relationship or a map")
    assert isinstance(STRINGS, PropType)  # noqa: S101
    return ir.RefKeys(part, STRINGS)


def _properties(given: BoundCall) -> ir.Expr:
    part = given.args[0]
    if isinstance(part.type, ir.MapValue) or is_null_literal(part):
        return part
    part = given.of(0, _is_entity, "a node, a relationship or a map")
    assert isinstance(part.type, ir.RefValue)  # noqa: S101
    names = given.binder.binding.property_names(part.type)
    made = map_literal([(n, given.binder.property(part, n, given.node.at)) for n in names])
    return ir.Choice(((given.binder.is_null(part, True), made),), null_of(made.type), made.type)


def _end(end: ir.End) -> FunctionSignature:
    def make(given: BoundCall) -> ir.Expr:
        part = given.of(0, _is_edge, "a relationship")
        if is_null_literal(part):
            return part
        assert isinstance(part.type, ir.RefValue)  # noqa: S101
        edges = given.binder.binding.catalog.edges
        ends = [
            edges[name].from_type if end is ir.End.SRC else edges[name].to_type
            for name in part.type.types
        ]
        return ir.RefEnd(part, end, ir.RefValue(tuple(dict.fromkeys(ends))))

    return FunctionSignature(1, 1, make)


def _trail(edges: bool) -> FunctionSignature:
    def make(given: BoundCall) -> ir.Expr:
        part = given.of(0, _is_trail, "a path")
        if is_null_literal(part):
            return part
        return trail_get(part, edges)

    return FunctionSignature(1, 1, make)


def trail_get(part: ir.Expr, edges: bool) -> ir.Expr:
    """The nodes or the edges of a path."""
    assert isinstance(part.type, ir.TrailValue)  # noqa: S101
    held = part.type.edges if edges else part.type.nodes
    return ir.TrailGet(part, edges, ir.ListValue(ir.RefValue(held, edges)))


def _length(given: BoundCall) -> ir.Expr:
    part = given.of(0, _is_trail, "a path")
    if is_null_literal(part):
        return null_of(types.I64)
    return ir.Call(Function.LENGTH, (trail_get(part, True),), types.I64)


# --- times ---------------------------------------------------------------------------------------------------------


def _timestamp(_: BoundCall) -> ir.Expr:
    return ir.Call(Function.EPOCH_MILLIS, (ir.Now(),), types.I64)


def _is_empty(given: BoundCall) -> ir.Expr:
    return ir.Compare(ir.CompareOp.EQ, _size(given), ir.Literal(0, ir.I64))


FUNCTIONS: dict[str, FunctionSignature] = {
    "abs": _number(Function.ABS, None),
    "ceil": _number(Function.CEIL),
    "floor": _number(Function.FLOOR),
    "round": _number(Function.ROUND),
    "sign": _number(Function.SIGN, types.I64),
    "sqrt": _number(Function.SQRT),
    "exp": _number(Function.EXP),
    "log": _number(Function.LOG),
    "log10": _number(Function.LOG10),
    "sin": _number(Function.SIN),
    "cos": _number(Function.COS),
    "tan": _number(Function.TAN),
    "cot": _number(Function.COT),
    "asin": _number(Function.ASIN),
    "acos": _number(Function.ACOS),
    "atan": _number(Function.ATAN),
    "atan2": FunctionSignature(2, 2, _two_numbers),
    "degrees": _number(Function.DEGREES),
    "radians": _number(Function.RADIANS),
    "rand": FunctionSignature(0, 0, lambda _: ir.Random()),
    "e": _constant(math.e),
    "pi": _constant(math.pi),
    "tointeger": _to_number(types.I64),
    "toint": _to_number(types.I64),
    "tofloat": _to_number(types.F64),
    "toboolean": FunctionSignature(1, 1, _to_boolean),
    "tostring": FunctionSignature(1, 1, _to_string),
    "tointegerlist": _each_to(_to_number(types.I64).make),
    "tofloatlist": _each_to(_to_number(types.F64).make),
    "tostringlist": _each_to(_to_string),
    "tobooleanlist": _each_to(_to_boolean),
    "tolower": _texts(Function.LOWER, 1),
    "toupper": _texts(Function.UPPER, 1),
    "lower": _texts(Function.LOWER, 1),
    "upper": _texts(Function.UPPER, 1),
    "trim": _texts(Function.TRIM, 1),
    "ltrim": _texts(Function.LTRIM, 1),
    "rtrim": _texts(Function.RTRIM, 1),
    "replace": _texts(Function.REPLACE, 3),
    "split": _texts(Function.SPLIT, 2, STRINGS),
    "substring": _cut(Function.SUBSTRING, 2, 3),
    "left": _cut(Function.LEFT, 2, 2),
    "right": _cut(Function.RIGHT, 2, 2),
    "reverse": FunctionSignature(1, 1, _reverse),
    "size": FunctionSignature(1, 1, _size),
    "char_length": FunctionSignature(1, 1, _size),
    "isempty": FunctionSignature(1, 1, _is_empty),
    "head": _member(0),
    "last": _member(-1),
    "tail": FunctionSignature(1, 1, _tail),
    "range": FunctionSignature(2, 3, _range),
    "coalesce": FunctionSignature(1, 100, _coalesce),
    "exists": FunctionSignature(1, 1, lambda given: given.args[0]),
    "id": FunctionSignature(1, 1, _id),
    "elementid": FunctionSignature(1, 1, _id),
    "type": FunctionSignature(1, 1, _type),
    "labels": FunctionSignature(1, 1, _labels),
    "keys": FunctionSignature(1, 1, _keys),
    "properties": FunctionSignature(1, 1, _properties),
    "startnode": _end(ir.End.SRC),
    "endnode": _end(ir.End.DST),
    "nodes": _trail(edges=False),
    "relationships": _trail(edges=True),
    "length": FunctionSignature(1, 1, _length),
    "timestamp": FunctionSignature(0, 0, _timestamp),
}
