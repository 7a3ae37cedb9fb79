"""Stored queries, and how an agent runs one, on a local graph or a server."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.lang.diagnostics import LanguageError
from omnigraph.lang.query import QueryKindMismatch, ast
from omnigraph.lang.query.describe import described
from omnigraph.lang.source import Source
from omnigraph.model.catalog import Catalog
from omnigraph.model.frozen import frozen
from omnigraph.policy.guard import Need
from omnigraph.policy.questions import Action
from omnigraph.remote.graph import RemoteGraph

if TYPE_CHECKING:
    from omnigraph.agents.answers import RowPage
    from omnigraph.agents.arguments import RunStoredQueryArguments
    from omnigraph.agents.toolbox import Toolbox


class StoredQueryNotFound(OmnigraphError):
    """The stored query does not exist."""

    code, kind = "stored_query_not_found", Kind.NOT_FOUND
    default_help = "`GET /graphs/{id}/queries` lists the stored queries."


@frozen
class StoredQuery:
    """A query that can be called by its name."""

    text: str
    name: str
    mutates: bool
    params: tuple[dict[str, Any], ...]
    description: str | None = None
    instruction: str | None = None
    language: str = "gq"

    @classmethod
    def of(cls, text: str, query: ast.Query) -> StoredQuery:
        """One of the queries of a text in `.gq`."""
        mutates = isinstance(query.body, ast.Mutation)
        params = tuple(described(p.name, p.type) for p in query.params)
        return cls(text, query.name, mutates, params, query.description, query.instruction)

    @classmethod
    def of_cypher(cls, text: str, name: str, catalog: Catalog | None = None) -> StoredQuery:
        """A text in Cypher under the name of its file; the comment it starts with describes it.

        Its parameters have the types of the given values; with a catalog, it is also checked.
        """
        from omnigraph.lang.cypher import parameters_of, parse_cypher, writes
        from omnigraph.lang.languages import check_cypher

        tree = parse_cypher(text, name)
        wrong = () if catalog is None else check_cypher(text, catalog)
        if wrong:
            raise LanguageError(wrong, Source(text, name))
        names = parameters_of(tree)
        params = tuple({"name": each, "kind": "any", "nullable": True} for each in names)
        said = " ".join(line.strip("/ ") for line in _first_comment(text))
        return cls(text, name, writes(tree), params, said or None, language="cypher")

    def to_json(self) -> dict[str, Any]:
        said = {"description": self.description, "instruction": self.instruction}
        return {
            "name": self.name,
            "tool_name": self.name,
            **{key: text for key, text in said.items() if text is not None},
            "mutation": self.mutates,
            "language": self.language,
            "params": list(self.params),
        }


def _first_comment(text: str) -> Iterator[str]:
    return takewhile(lambda line: line.startswith("//"), text.lstrip().splitlines())


# --- for agents ------------------------------------------------------------------------------------------------------


def stored_list(box: Toolbox) -> list[dict[str, Any]]:
    """The stored queries, for those who may read main."""
    if isinstance(box.graph, RemoteGraph):
        return box.graph.stored_queries()
    box.graph._permit(Need(Action.READ, "main"))
    return [stored.to_json() for stored in box.queries.values()]


def stored_names(box: Toolbox) -> list[str]:
    """Their names."""
    return [str(each["name"]) for each in stored_list(box)]


def stored(box: Toolbox, name: str) -> StoredQuery:
    """A stored query; to an actor who may not call it, it does not exist."""
    missing = StoredQueryNotFound("stored query not found")
    box.graph._permit(Need(Action.INVOKE_QUERY, instead=missing))
    found = box.queries.get(name)
    if found is None:
        raise missing
    return found


def run_stored(
    box: Toolbox, arguments: RunStoredQueryArguments, at: str | None, page: RowPage
) -> tuple[list[dict[str, Any]], int, str]:
    """The rows of a page, the total number, and their commit."""
    if isinstance(box.graph, RemoteGraph):
        where = {"branch": arguments.branch} if at is None else {"snapshot": at}
        found = box.graph.invoke(
            arguments.name, params=arguments.params, expect_mutation=False, **where
        )
        rows = found["rows"][page.skip : page.skip + page.limit]
        return rows, int(found["row_count"]), str(found["graph_commit_id"])
    known = stored(box, arguments.name)
    if known.mutates:
        raise QueryKindMismatch("the stored query changes the graph", help="Use `change`.")
    result = box.graph.query(
        known.text,
        arguments.params,
        known.name,
        branch=arguments.branch,
        at=at,
        timeout=box.limits.query_seconds_max,
        max_rows=box.limits.query_rows_max,
        language=known.language,
    )
    rows = result.to_arrow().slice(page.skip, page.limit).to_pylist()
    return rows, len(result), result.commit
