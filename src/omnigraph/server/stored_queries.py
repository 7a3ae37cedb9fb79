"""Queries kept in `.gq` files beside a server, by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from omnigraph.agents.stored import StoredQuery
from omnigraph.lang.query import compile_query, parse_queries
from omnigraph.model.catalog import Catalog
from omnigraph.server.settings import ServerInvalid


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
