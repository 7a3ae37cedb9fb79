"""The canonical text of the parts of a query that fit on one line."""

from __future__ import annotations

import re

from omnigraph.lang.lexer import format_value, quote
from omnigraph.lang.query import ast

# How tightly an expression binds; a part that binds less tightly than its place requires is put in brackets.
OR, AND, NOT, COMPARE, SUM, PRODUCT, SIGN, ATOM = range(8)
LEADING_VARIABLE = re.compile(r"\$(\w+)(?![\w.])")
LEADING_WORD = re.compile(r"([A-Za-z_]\w*)(?![\w(])")
TRAILING_WORD = re.compile(r"(?<![\w$.])([A-Za-z_]\w*)$")
WORD = re.compile(r"[a-z_]\w*", re.ASCII)
OWN_WORDS = {"not", "true", "false", "null"}
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
        case ast.PropertyAccess(var, name):
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


def format_clause(
    node: ast.Binding | ast.Traversal | ast.Filter, params: frozenset[str] = frozenset()
) -> str:
    """A clause of a pattern; the names of the query's parameters tell conditions from traversals."""
    match node:
        case ast.Binding(var, type_name, fields):
            braces = f" {{ {format_fields(fields)} }}" if fields else ""
            return f"${var.name}: {type_name}{braces}"
        case ast.Traversal():
            return _traversal(node)
        case ast.Filter(expr):
            text = format_expr(expr)
            return text if _stands_alone(expr, text, params) else f"({text})"


def format_block(node: ast.Block) -> tuple[str, str]:
    """What opens a block, and what closes it."""
    if node.measure is None:
        return f"{node.kind.value} {{", "}"
    call, value = node.measure.aggregate, format_expr(node.measure.value, SUM)
    word = call.name if call.star else format_expr(call)
    return f"{word} {{", f"}} {node.measure.op.value} {_closed(value)}"


def _closed(value: str) -> str:
    """With brackets if what follows could be read as its continuation, as a bare word could."""
    return f"({value})" if TRAILING_WORD.search(value) else value


def _stands_alone(expr: ast.Expr, text: str, params: frozenset[str]) -> bool:
    """Whether a condition without brackets is read as one, whatever precedes or follows it.

    There is no separator between clauses, so a leading minus would continue the clause before, a leading variable may
    start a traversal, and a bare word at either end may join its neighbour.
    """
    variable = LEADING_VARIABLE.match(text)
    if variable and variable[1] not in params:
        match expr:
            case ast.IsNull() | ast.Binary(ast.Operator.EQ | ast.Operator.NE, _, ast.Variable()):
                return True
            case _:
                return False
    first, last = LEADING_WORD.match(text), TRAILING_WORD.search(text)
    words = {word[1] for word in (first, last) if word}
    return not text.startswith(("-", "not in")) and words <= OWN_WORDS


def _traversal(node: ast.Traversal) -> str:
    word = "paths" if node.every else "path"
    path = f"${node.path.name} = {word} " if node.path else ""
    edge = f"${node.edge_var.name}:" if node.edge_var else ""
    words = "|".join(word.name for word in node.edges)
    words = f"<{words}>" if node.undirected else words
    hops = ""
    if node.hops:
        most = "" if node.hops.maximum is None else node.hops.maximum
        hops = f"{{{node.hops.minimum},{most}}}"
    return f"{path}${node.src.name} {edge}{words}{hops} ${node.dst.name}"


def format_fields(fields: tuple[ast.Field, ...]) -> str:
    return ", ".join(f"{part.name}: {format_expr(part.value)}" for part in fields)


def format_projection(node: ast.Projection) -> str:
    return format_expr(node.expr) + (f" as {node.alias}" if node.alias else "")


def format_ordering(node: ast.Ordering) -> str:
    word = {None: "", True: " desc", False: " asc"}[node.descending]
    return format_expr(node.expr) + word


def format_header(query: ast.Query) -> str:
    """The first line of a query, up to its opening brace."""
    params = ", ".join(f"${p.name}: {p.type}" for p in query.params)
    notes = [("description", query.description), ("instruction", query.instruction)]
    notes += query.notes
    written = "".join(f" @{name}({quote(text)})" for name, text in notes if text is not None)
    return f"query {query.name}({params}){written} {{"


def format_setting(node: ast.SettingLine) -> str:
    """A line at the top of a file."""
    if node.value is None:
        return f"reset {node.name or 'all'};"
    word = isinstance(node.value, str) and WORD.fullmatch(node.value)
    value = node.value if word or isinstance(node.value, int) else quote(node.value)
    return f"set {node.name} = {value};"


def format_statement(node: ast.FileStatement) -> str:
    """The only statement of a file."""
    match node:
        case ast.ShowSettings(name):
            return f"show {name or 'all'};"
        case ast.BranchStatement(verb, name, other):
            joined = {"create": "from", "merge": "into"}.get(verb)
            words = ["branch", verb, *(_branch(n) for n in (name,) if n)]
            words += [joined, _branch(other)] if joined and other else []
            return " ".join(words) + ";"
        case _:
            return node.words


def _branch(name: str) -> str:
    return name if WORD.fullmatch(name) else quote(name)
