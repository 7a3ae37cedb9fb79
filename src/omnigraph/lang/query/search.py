"""Text searches, which are conditions, and rankings, which give scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.lang import ir
from omnigraph.lang.query import ast
from omnigraph.lang.query.scope import IDS, VarKind
from omnigraph.lang.query.typing_rules import is_integer, is_string
from omnigraph.lang.tree import is_null_literal
from omnigraph.model.catalog import Property
from omnigraph.model.types import NUMERIC, PropType

if TYPE_CHECKING:
    from omnigraph.lang.query.typer import Typer

TEXT_MODES: dict[str, ir.TextMode] = {
    "search": ir.AnyWord(),
    "match_text": ir.AnyWord(),
    "search_all": ir.AllWords(),
    "phrase": ir.Phrase(),
    "prefix": ir.Prefix(),
    "search_query": ir.BooleanQuery(),
}
TEXT_SEARCHES = (*TEXT_MODES, "fuzzy")
MARK = "**"  # around a word that is highlighted, unless others are given
EDITS_DEFAULT = 2
RRF_CONSTANT = 60
APPROX = "approx"  # `nearest(…, approx)`: some of the nearest may be missed


def text_match(typer: Typer, node: ast.Call) -> ir.Expr:
    """A search for words as a condition."""
    code = "T20" if node.name == "match_text" else "T19"
    most = 3 if node.name == "fuzzy" else 2
    if not 2 <= len(node.args) <= most:
        message = f"`{node.name}` takes a property and a text"
        raise typer.context.error("Q008", message, node.at)
    field, _ = searched(typer, node, code)
    if not is_string(field.type):
        message = f"`{node.name}` searches a String property, not {field.type}"
        raise typer.context.error(code, message, node.args[0].at)
    query = text_query(typer, node, code)
    return ir.TextMatch(field, query, _mode(typer, node))


def _mode(typer: Typer, node: ast.Call) -> ir.TextMode:
    return TEXT_MODES.get(node.name) or ir.Fuzzy(_edits(typer, node))


def _edits(typer: Typer, node: ast.Call) -> ir.Expr:
    if len(node.args) == 2:
        return ir.Literal(EDITS_DEFAULT, ir.I64)
    edits = typer.constant(node.args[2], "T19", "the edits of `fuzzy` are a constant")
    if not is_integer(edits.type):
        message = f"the edits of `fuzzy` are a whole number, not {edits.type}"
        raise typer.context.error("T19", message, node.args[2].at)
    if isinstance(edits, ir.Literal) and edits.value < 0:
        message = f"`fuzzy` allows 0 edits or more, not {edits.value}"
        raise typer.context.error("T19", message, node.args[2].at)
    return edits


def searched(typer: Typer, node: ast.Call, code: str) -> tuple[ir.Column, Property]:
    """The property of a node that a search or ranking reads."""
    part = node.args[0]
    if not isinstance(part, ast.PropertyAccess):
        message = f"`{node.name}` takes a property such as $x.name first"
        raise typer.context.error(code, message, part.at)
    var = typer.scope.vars.get(part.var)
    if var is not None and var.kind is VarKind.EDGE:
        message = f"`${var.name}` is an edge; only nodes can be searched"
        raise typer.context.error("T23", message, part.at)
    field = typer.property(part)
    if not isinstance(field, ir.Column):
        message = f"`{node.name}` takes a property, not an id"
        raise typer.context.error(code, message, part.at)
    return field, typer.scope.vars[part.var].properties[part.name]


def text_query(typer: Typer, node: ast.Call, code: str) -> ir.Expr:
    """The search text: a String that is the same for every row."""
    query = typer.constant(node.args[1], code, f"the text of `{node.name}` is a constant")
    if not is_string(query.type) or is_null_literal(query):
        message = f"`{node.name}` searches for a String, not {query.type}"
        raise typer.context.error(code, message, node.args[1].at)
    return query


def highlight(typer: Typer, node: ast.Call) -> ir.Expr:
    """`highlight(property, text[, before, after])`: the text of the property with its words marked."""
    if len(node.args) not in (2, 4):
        message = "`highlight` takes a property and a text, and the marks before and after a word"
        raise typer.context.error("Q008", message, node.at)
    field, _ = searched(typer, node, "T19")
    if not is_string(field.type):
        message = f"`highlight` marks words of a String property, not {field.type}"
        raise typer.context.error("T19", message, node.args[0].at)
    marks = [_mark(typer, part) for part in node.args[2:]] or [ir.Literal(MARK, ir.STRING)] * 2
    return ir.Highlight(field, text_query(typer, node, "T19"), marks[0], marks[1])


def _mark(typer: Typer, part: ast.Expr) -> ir.Expr:
    mark = typer.constant(part, "T19", "the marks of `highlight` are constants")
    if not is_string(mark.type) or is_null_literal(mark):
        raise typer.context.error("T19", f"a mark is a String, not {mark.type}", part.at)
    return mark


# --- rankings ----------------------------------------------------------------------------------------------------


def ranking(typer: Typer, node: ast.Call) -> ir.Ranking:
    """`nearest`, `bm25` or `rrf`."""
    match node.name:
        case "rrf":
            return _rrf(typer, node)
        case "nearest":
            return _nearest(typer, node)
        case _:
            return _bm25(typer, node)


def _bm25(typer: Typer, node: ast.Call) -> ir.Bm25:
    if len(node.args) != 2:
        raise typer.context.error("Q008", "`bm25` takes a property and a text", node.at)
    field, _ = searched(typer, node, "T20")
    if not is_string(field.type):
        message = f"`bm25` ranks a String property, not {field.type}"
        raise typer.context.error("T20", message, node.args[0].at)
    return ir.Bm25(field, text_query(typer, node, "T20"))


def _nearest(typer: Typer, node: ast.Call) -> ir.Nearest:
    if not 2 <= len(node.args) <= 3:
        raise typer.context.error("Q008", "`nearest` takes a property and a vector", node.at)
    approx = len(node.args) == 3
    if approx and not (isinstance(node.args[2], ast.Name) and node.args[2].name == APPROX):
        message = f"the third argument of `nearest` can only be `{APPROX}`"
        raise typer.context.error("Q008", message, node.args[2].at)
    field, prop = _vector_field(typer, node)
    query = typer.constant(node.args[1], "T15", "the vector of `nearest` is a constant")
    vector = _as_vector(query, field.type)
    if vector is None:
        message = f"`nearest` takes {field.type.with_nullable(False)} or a String, not {query.type}"
        raise typer.context.error("T15", message, node.args[1].at)
    model = prop.embed.model if prop.embed else None
    return ir.Nearest(field, vector, ir.Metric(prop.metric), model, approx)


def _vector_field(typer: Typer, node: ast.Call) -> tuple[ir.Column, Property]:
    part = node.args[0]
    if isinstance(part, ast.PropertyAccess):
        var = typer.scope.vars.get(part.var)
        if var is None:
            message = f"the variable `${part.var}` is not bound here"
            raise typer.context.error("T15", message, part.at)
        if var.kind is VarKind.NODE and part.name not in (*var.properties, *IDS):
            message = f"type `{var.label}` has no property `{part.name}`"
            raise typer.context.unknown(
                "T15", message, part.name_at, part.name, list(var.properties)
            )
    field, prop = searched(typer, node, "T15")
    if not field.type.is_vector:
        message = f"`nearest` takes a Vector property, not {field.type}"
        raise typer.context.error("T15", message, part.at)
    return field, prop


def _as_vector(query: ir.Expr, wanted: PropType) -> ir.Expr | None:
    """The query of `nearest` as a vector of the wanted length, or as a text to embed."""
    kind = query.type
    if is_string(kind):
        return None if is_null_literal(query) else query
    if not isinstance(kind, PropType):
        return None
    if isinstance(query, ir.Literal) and kind.is_list and kind.scalar in NUMERIC:
        if len(query.value) != wanted.vector_dim or None in query.value:
            return None
        return ir.Literal(tuple(float(v) for v in query.value), wanted.with_nullable(False))
    return query if kind.vector_dim == wanted.vector_dim else None


def _rrf(typer: Typer, node: ast.Call) -> ir.Rrf:
    if not 2 <= len(node.args) <= 3:
        raise typer.context.error("T21", "`rrf` takes two rankings and a constant", node.at)
    arms = [_arm(typer, part) for part in node.args[:2]]
    return ir.Rrf(arms[0], arms[1], _constant(typer, node))


def _arm(typer: Typer, part: ast.Expr) -> ir.Nearest | ir.Bm25:
    if isinstance(part, ast.Call) and part.name == "nearest":
        return _nearest(typer, part)
    if isinstance(part, ast.Call) and part.name == "bm25":
        return _bm25(typer, part)
    raise typer.context.error("T21", "`rrf` fuses nearest(…) and bm25(…)", part.at)


def _constant(typer: Typer, node: ast.Call) -> ir.Expr:
    if len(node.args) == 2:
        return ir.Literal(RRF_CONSTANT, ir.I64)
    part = node.args[2]
    typed = typer.constant(part, "T21", "the constant of `rrf` is the same for every row")
    if not is_integer(typed.type):
        message = f"the constant of `rrf` is a whole number, not {typed.type}"
        raise typer.context.error("T21", message, part.at)
    if isinstance(typed, ir.Literal) and typed.value <= 0:
        raise typer.context.error("T21", "the constant of `rrf` is larger than 0", part.at)
    return typed


def ranked_variable(found: ir.Ranking) -> str:
    """The variable whose entities a ranking selects."""
    return found.primary.field.var if isinstance(found, ir.Rrf) else found.field.var
