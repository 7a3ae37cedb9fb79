"""Stored queries: what they are, and how an agent runs one, beside a local graph or behind a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.lang.query import QueryKindMismatch, ast
from omnigraph.lang.query.describe import KINDS
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
    """One of them; whoever may not call it is told that there is none."""
    missing = StoredQueryNotFound("stored query not found")
    box.graph._permit(Need(Action.INVOKE_QUERY, instead=missing))
    found = box.queries.get(name)
    if found is None:
        raise missing
    return found


def run_stored(
    box: Toolbox, asked: RunStoredQueryArguments, at: str | None, page: RowPage
) -> tuple[list[dict[str, Any]], int, str]:
    """The rows of a page, how many there are, and the commit they are of."""
    if isinstance(box.graph, RemoteGraph):
        where = {"branch": asked.branch} if at is None else {"snapshot": at}
        found = box.graph.invoke(asked.name, params=asked.params, expect_mutation=False, **where)
        rows = found["rows"][page.skip : page.skip + page.limit]
        return rows, int(found["row_count"]), str(found["graph_commit_id"])
    known = stored(box, asked.name)
    if known.mutates:
        raise QueryKindMismatch("the stored query changes the graph", help="Use `change`.")
    result = box.graph.query(
        known.text,
        asked.params,
        known.query.name,
        branch=asked.branch,
        at=at,
        timeout=box.limits.query_seconds_max,
        max_rows=box.limits.query_rows_max,
    )
    rows = result.to_arrow().slice(page.skip, page.limit).to_pylist()
    return rows, len(result), result.commit
