"""Queries kept in `.gq` files beside a server, by name, with the types of their parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.lang.query import ast, compile_query, parse_queries
from omnigraph.lang.query.describe import KINDS
from omnigraph.model.catalog import Catalog
from omnigraph.server.settings import ServerInvalid


class StoredQueryNotFound(OmnigraphError):
    """The stored query does not exist."""

    code, kind = "stored_query_not_found", Kind.NOT_FOUND
    default_help = "`GET /graphs/{id}/queries` lists the stored queries."


@dataclass(frozen=True, slots=True)
class StoredQuery:
    """A query that can be called by its name."""

    text: str
    query: ast.Query

    @property
    def mutates(self) -> bool:
        return isinstance(self.query.body, ast.Mutation)

    def to_json(self) -> dict[str, Any]:
        said = {"description": self.query.description, "instruction": self.query.instruction}
        return {
            "name": self.query.name,
            "tool_name": self.query.name,
            **{key: text for key, text in said.items() if text is not None},
            "mutation": self.mutates,
            "params": [_param(p) for p in self.query.params],
        }


def _param(param: ast.Param) -> dict[str, Any]:
    kind = param.type
    if kind.vector_dim is not None:
        shape: dict[str, Any] = {"kind": "vector", "vector_dim": kind.vector_dim}
    elif kind.is_list:
        shape = {"kind": "list", "item_kind": KINDS[kind.scalar]}
    else:
        shape = {"kind": KINDS[kind.scalar]}
    return {"name": param.name, **shape, "nullable": kind.nullable}


def stored_queries(places: Sequence[str], catalog: Catalog) -> dict[str, StoredQuery]:
    """The queries of files and folders, each checked against the schema that is in force."""
    found: dict[str, StoredQuery] = {}
    for file in (file for place in places for file in _files(Path(place))):
        text = _text(file)
        for query in parse_queries(text, file.name).queries:
            if query.name in found:
                raise ServerInvalid(f"the query {query.name!r} is stored twice, again in {file}")
            compile_query(text, catalog, query.name)
            found[query.name] = StoredQuery(text, query)
    return dict(sorted(found.items()))


def _files(place: Path) -> Iterator[Path]:
    if place.is_dir():
        yield from sorted(place.glob("*.gq"))
    else:
        yield place


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ServerInvalid(f"{file} cannot be read: {error}") from error
