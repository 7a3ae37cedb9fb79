"""The canonical text of queries: two spaces per level, one clause per line, comments kept where they stood."""

from __future__ import annotations

from omnigraph.lang.lexer import quote
from omnigraph.lang.query import ast

# How tightly an expression binds; a part that binds less tightly than its place asks for stands in brackets.
OR, AND, NOT, COMPARE, SUM, PRODUCT, SIGN, ATOM = range(8)
SUMS = (ast.Operator.ADD, ast.Operator.SUB)
PRODUCTS = (ast.Operator.MUL, ast.Operator.DIV, ast.Operator.MOD)


def format_expr(node: ast.Expr, place: int = OR) -> str:
    """An expression in canonical text, in brackets where its place binds more tightly."""
    text, strength = _expr(node)
    return f"({text})" if strength < place else text


def _expr(node: ast.Expr) -> tuple[str, int]:
    match node:
        case ast.Literal(value):
            negative = isinstance(value, int | float) and not isinstance(value, bool) and value < 0
            return format_value(value), SIGN if negative else ATOM
        case ast.TimeLiteral(kind, text):
            return f"{kind}({quote(text)})", ATOM
        case ast.ListLiteral(items):
            return f"[{', '.join(map(format_expr, items))}]", ATOM
        case ast.Variable(name):
            return f"${name}", ATOM
        case ast.Property(var, name):
            return f"${var}.{name}", ATOM
        case ast.AllProperties(var):
            return f"${var}.*", ATOM
        case ast.Name(name):
            return name, ATOM
        case ast.Call():
            return _call(node), ATOM
        case ast.Cast(part, kind):
            return f"cast({format_expr(part)} as {kind})", ATOM
        case ast.Negative(part):
            # A bracket keeps `-(5)` apart from the literal `-5`.
            number = isinstance(part, ast.Literal)
            return f"-{format_expr(part, ATOM + 1 if number else SIGN)}", SIGN
        case ast.NotExpr(part):
            return f"not {format_expr(part, NOT)}", NOT
        case ast.IsNull(part, negated):
            return f"{format_expr(part, SUM)} is {'not ' * negated}null", COMPARE
        case ast.Connective(word, parts):
            strength = OR if word == "or" else AND
            return f" {word} ".join(format_expr(p, strength + 1) for p in parts), strength
        case ast.Binary(op, left, right):
            strength = SUM if op in SUMS else PRODUCT if op in PRODUCTS else COMPARE
            first = strength if strength > COMPARE else SUM
            return (
                f"{format_expr(left, first)} {op.value} {format_expr(right, strength + 1)}",
                strength,
            )


def _call(node: ast.Call) -> str:
    if node.star:
        return f"{node.name}(*)"
    args = ", ".join(map(format_expr, node.args))
    return f"{node.name}({'distinct ' * node.distinct}{args})"


def format_value(value: str | int | float | bool | None) -> str:
    """A constant as the language writes it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return quote(value)
        case _:
            return repr(value)
