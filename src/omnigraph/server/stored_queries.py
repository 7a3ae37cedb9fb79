"""Queries kept in files beside a server, by name: `.gq` files of several queries, `.cypher` files of one each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from omnigraph.agents.stored import StoredQuery
from omnigraph.lang.query import compile_query, parse_queries
from omnigraph.model.catalog import Catalog
from omnigraph.server.settings import ServerInvalid

CYPHER = ".cypher"


def stored_queries(places: Sequence[str], catalog: Catalog) -> dict[str, StoredQuery]:
    """The queries of files and folders, each checked against the schema in force."""
    found: dict[str, StoredQuery] = {}
    for file in (file for place in places for file in _files(Path(place))):
        for query in _queries(file, catalog):
            if query.name in found:
                raise ServerInvalid(f"duplicate stored query {query.name!r} in {file}")
            found[query.name] = query
    return dict(sorted(found.items()))


def _queries(file: Path, catalog: Catalog) -> Iterator[StoredQuery]:
    text = _text(file)
    if file.suffix == CYPHER:
        yield StoredQuery.of_cypher(text, file.stem, catalog)
        return
    tree = parse_queries(text, file.name)
    if tree.statement is not None or tree.settings:
        raise ServerInvalid(f"{file} holds a setting or a statement; only queries are stored")
    for query in tree.queries:
        compile_query(text, catalog, query.name)
        yield StoredQuery.of(text, query)


def _files(place: Path) -> Iterator[Path]:
    if place.is_dir():
        yield from sorted(file for file in place.iterdir() if file.suffix in (".gq", CYPHER))
    else:
        yield place


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ServerInvalid(f"{file} cannot be read: {error}") from error
