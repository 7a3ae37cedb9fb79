"""Vectors for `@embed` properties of the rows a mutation writes, made before the transaction begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.lang import ir
from omnigraph.lang.evaluate import Bound, evaluate, is_constant
from omnigraph.model.catalog import Catalog, EntityType, Property

EmbedTexts = Callable[[Sequence[str], int, str | None], Sequence[Sequence[float]]]
Assigns = tuple[ir.Assign, ...]


class EmbedSourceComputed(OmnigraphError):
    """The text an `@embed` property is made from depends on stored rows, so it cannot be embedded beforehand."""

    code, kind = "embed_source_computed", Kind.INVALID
    default_help = "Assign a literal or a parameter to the text, or assign the vector itself too."


def with_embeddings(query: ir.Query, bound: Bound, catalog: Catalog, embed: EmbedTexts) -> ir.Query:
    """The mutation with a vector assigned wherever it assigns the text of one and not the vector."""
    assert isinstance(query.body, ir.Mutation)  # noqa: S101
    statements = tuple(_statement(s, bound, catalog, embed) for s in query.body.statements)
    return replace(query, body=ir.Mutation(statements))


def _statement(
    statement: ir.Statement, bound: Bound, catalog: Catalog, embed: EmbedTexts
) -> ir.Statement:
    kind = catalog.nodes.get(statement.target.type_name)
    if kind is None or statement.target.kind is ir.TargetKind.EDGE:
        return statement
    match statement:
        case ir.Insert(_, rows):
            assigned = _completed([row.values for row in rows], kind, bound, embed)
            made = zip(rows, assigned, strict=True)
            return replace(statement, rows=tuple(replace(r, values=v) for r, v in made))
        case ir.Update(_, values):
            return replace(statement, values=_completed([values], kind, bound, embed)[0])
        case ir.Delete():
            return statement


def _completed(
    rows: list[Assigns], kind: EntityType, bound: Bound, embed: EmbedTexts
) -> list[Assigns]:
    """The assignments of each row with their vectors; the texts of one property go to the provider together."""
    for prop in kind.properties.values():
        texts = dict(_texts(rows, prop, bound))
        wanted = [text for text in texts.values() if text is not None]
        if not texts:
            continue
        dim, model = prop.type.vector_dim or 0, prop.embed.model if prop.embed else None
        vectors = iter(embed(wanted, dim, model)) if wanted else iter(())
        for row, text in texts.items():
            value = None if text is None else tuple(float(v) for v in next(vectors))
            rows[row] = (*rows[row], ir.Assign(prop.name, ir.Literal(value, prop.type)))
    return rows


def _texts(rows: list[Assigns], prop: Property, bound: Bound) -> Iterator[tuple[int, str | None]]:
    """The rows that assign the text of a property but not its vector, with the text."""
    for number, assigned in enumerate(rows if prop.embed is not None else ()):
        values: dict[str, Any] = {a.property: a.value for a in assigned}
        source = values.get(prop.embed.source) if prop.embed else None
        if source is None or prop.name in values:
            continue
        if not is_constant(source):
            raise EmbedSourceComputed(
                f"`{prop.name}` is embedded from a text that is computed from stored rows"
            )
        yield number, evaluate(source, bound)
