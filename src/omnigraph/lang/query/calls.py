"""The functions of one row: their names, arguments and results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from omnigraph.lang import ir
from omnigraph.lang.query import ast
from omnigraph.lang.query.scope import Reported, Var, VarKind
from omnigraph.lang.query.search import TEXT_SEARCHES, highlight, text_match
from omnigraph.lang.query.typing_rules import common_type, is_integer, is_string, is_time
from omnigraph.lang.schema.rules import pattern_error
from omnigraph.lang.tree import is_null_literal
from omnigraph.model.frozen import frozen
from omnigraph.model.types import PropType

if TYPE_CHECKING:
    from omnigraph.lang.query.typer import Typer

Fits = tuple[str, Callable[[ir.ValueType], bool]]
TEXT: Fits = ("a String", is_string)
WHOLE: Fits = ("a whole number", is_integer)
TIME: Fits = ("a Date or DateTime", is_time)


@frozen
class Signature:
    """What a function takes; `optional` of the last arguments may be left out, `repeats` allows more of the last."""

    function: ir.Function
    takes: tuple[Fits, ...]
    gives: Callable[[list[PropType]], PropType]
    optional: int = 0
    repeats: bool = False


def _string(_: list[PropType]) -> PropType:
    return ir.STRING


def _whole(_: list[PropType]) -> PropType:
    return ir.I64


def _shifted(kinds: list[PropType]) -> PropType:
    return PropType(kinds[0].scalar, nullable=True)  # a date beyond the calendar is null


SIGNATURES: dict[str, Signature] = {
    "lower": Signature(ir.Function.LOWER, (TEXT,), _string),
    "upper": Signature(ir.Function.UPPER, (TEXT,), _string),
    "trim": Signature(ir.Function.TRIM, (TEXT,), _string),
    "concat": Signature(ir.Function.CONCAT, (TEXT, TEXT), _string, repeats=True),
    "substring": Signature(ir.Function.SUBSTRING, (TEXT, WHOLE, WHOLE), _string, optional=1),
    "year": Signature(ir.Function.YEAR, (TIME,), _whole),
    "month": Signature(ir.Function.MONTH, (TIME,), _whole),
    "day": Signature(ir.Function.DAY, (TIME,), _whole),
    "hour": Signature(ir.Function.HOUR, (TIME,), _whole),
    "minute": Signature(ir.Function.MINUTE, (TIME,), _whole),
    "second": Signature(ir.Function.SECOND, (TIME,), _whole),
    "date_add": Signature(ir.Function.DATE_ADD, (TIME, WHOLE), _shifted),
    "date_sub": Signature(ir.Function.DATE_SUB, (TIME, WHOLE), _shifted),
    "days_between": Signature(ir.Function.DAYS_BETWEEN, (TIME, TIME), _whole),
}


def check_call(typer: Typer, node: ast.Call) -> ir.Expr:
    """A call of anything but an aggregate or a ranking."""
    if node.name in SIGNATURES:
        return _by_signature(typer, node, SIGNATURES[node.name])
    if node.name in TEXT_SEARCHES:
        return text_match(typer, node)
    special = SPECIAL.get(node.name)
    if special is None:
        message = f"unknown function `{node.name}`"
        raise typer.context.unknown("Q008", message, node.name_at, node.name, function_names())
    return special(typer, node)


def function_names() -> tuple[str, ...]:
    """Every word that can precede a bracket."""
    from omnigraph.lang.query.typer import AGGREGATES, RANKINGS

    fixed = ("date", "datetime", "cast")
    return (*SIGNATURES, *TEXT_SEARCHES, *SPECIAL, *AGGREGATES, *RANKINGS, *fixed)


def arity(typer: Typer, node: ast.Call, low: int, high: int | None) -> None:
    """Report a wrong number of arguments."""
    found = len(node.args)
    if found >= low and (high is None or found <= high):
        return
    wanted = f"at least {low}" if high is None else str(low) if low == high else f"{low} to {high}"
    message = f"`{node.name}` takes {wanted} argument{'s' * (wanted != '1')}, not {found}"
    raise typer.context.error("Q008", message, node.at)


def _by_signature(typer: Typer, node: ast.Call, signature: Signature) -> ir.Expr:
    most = len(signature.takes)
    arity(typer, node, most - signature.optional, None if signature.repeats else most)
    args, kinds = [], []
    for index, part in enumerate(node.args):
        name, fits = signature.takes[min(index, most - 1)]
        typed = typer.value(part)
        if not isinstance(typed.type, PropType) or not fits(typed.type):
            message = f"`{node.name}` takes {name} here, not {typed.type}"
            raise typer.context.error("T7", message, part.at)
        args.append(typed)
        kinds.append(typed.type)
    result = signature.gives(kinds)
    nullable = result.nullable or any(k.nullable for k in kinds)
    return ir.Call(signature.function, tuple(args), result.with_nullable(nullable))


# --- functions with special rules --------------------------------------------------------------------------------


def _now(typer: Typer, node: ast.Call) -> ir.Expr:
    arity(typer, node, 0, 0)
    return ir.Now()


def _coalesce(typer: Typer, node: ast.Call) -> ir.Expr:
    arity(typer, node, 1, None)
    args = [typer.value(part) for part in node.args]
    kinds = [a.type for a in args if isinstance(a.type, PropType) and not is_null_literal(a)]
    kind = common_type(kinds) if kinds else ir.STRING_OR_NULL
    if kind is None or len(kinds) + sum(map(is_null_literal, args)) != len(args):
        names = ", ".join(str(a.type) for a in args)
        raise typer.context.error(
            "T7", f"`coalesce` takes values of one type, not {names}", node.at
        )
    nullable = all(k.nullable for k in kinds)
    kept = tuple(a for a in args if not is_null_literal(a))
    if not kept:
        return ir.Literal(None, ir.STRING_OR_NULL)
    return ir.Call(ir.Function.COALESCE, kept, kind.with_nullable(nullable))


def _regex_match(typer: Typer, node: ast.Call) -> ir.Expr:
    arity(typer, node, 2, 2)
    text, pattern = typer.value(node.args[0]), typer.value(node.args[1])
    if not is_string(text.type) or not is_string(pattern.type):
        message = f"`regex_match` takes two Strings, not {text.type} and {pattern.type}"
        raise typer.context.error("T7", message, node.at)
    if is_null_literal(pattern) or not isinstance(pattern, ir.Literal | ir.Param):
        message = "the pattern is a text in quotes or a parameter"
        raise typer.context.error("Q008", message, node.args[1].at)
    if isinstance(pattern, ir.Literal) and isinstance(pattern.value, str):
        wrong = pattern_error(pattern.value)
        if wrong is not None:
            message = f"the pattern cannot be read: {wrong}"
            raise typer.context.error("Q017", message, node.args[1].at)
    return ir.RegexMatch(text, pattern)


def _length(typer: Typer, node: ast.Call) -> ir.Expr:
    arity(typer, node, 1, 1)
    part = typer.value(node.args[0])
    if isinstance(part, ir.PathOf):
        return ir.PathGet(part.var, ir.PathPart.LENGTH, ir.I64.with_nullable(part.type.nullable))
    kind = part.type
    if not isinstance(kind, PropType) or not (is_string(kind) or kind.is_list):
        message = f"`length` takes a String, a list or a path, not {kind}"
        raise typer.context.error("T7", message, node.at)
    return ir.Call(ir.Function.LENGTH, (part,), ir.I64.with_nullable(kind.nullable))


def _entity(typer: Typer, node: ast.Call) -> ir.Expr:
    var = _entity_variable(typer, node)
    return ir.EntityOf(var.name, ir.EntityValue(var.types, var.optional))


def _type(typer: Typer, node: ast.Call) -> ir.Expr:
    var = _entity_variable(typer, node)
    return ir.TypeOf(var.name, ir.STRING.with_nullable(var.optional))


def _entity_variable(typer: Typer, node: ast.Call) -> Var:
    arity(typer, node, 1, 1)
    part = node.args[0]
    if isinstance(part, ast.Variable) and part.name not in typer.context.params:
        var = typer.bound(part.name, part)
        if var.kind in (VarKind.NODE, VarKind.EDGE):
            return var
    message = f"`{node.name}` takes the variable of a node or an edge"
    raise typer.context.error("Q008", message, part.at)


def _path_ids(part: ir.PathPart) -> Callable[[Typer, ast.Call], ir.Expr]:
    def check(typer: Typer, node: ast.Call) -> ir.Expr:
        arity(typer, node, 1, 1)
        path = typer.expr(node.args[0])
        if not isinstance(path, ir.PathOf):
            raise _not_a_path(typer, node)
        return ir.PathGet(path.var, part, ir.STRINGS.with_nullable(path.type.nullable))

    return check


def _not_a_path(typer: Typer, node: ast.Call) -> Reported:
    message = f"`{node.name}` takes the variable of a path"
    return typer.context.error("Q018", message, node.args[0].at)


SPECIAL: dict[str, Callable[[Typer, ast.Call], ir.Expr]] = {
    "now": _now,
    "coalesce": _coalesce,
    "regex_match": _regex_match,
    "length": _length,
    "entity": _entity,
    "highlight": highlight,
    "type": _type,
    "nodes": _path_ids(ir.PathPart.NODES),
    "edges": _path_ids(ir.PathPart.EDGES),
}
