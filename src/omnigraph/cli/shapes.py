"""JSON in the form of the Rust project: the response of its HTTP interface to the same verb.

A served graph responds in this form, which is printed unchanged. For a local graph the structs of `wire` produce the
same response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from omnigraph.cli.context import open_graph
from omnigraph.cli.exits import UsageError
from omnigraph.cli.options import Show, Where
from omnigraph.cli.output import contract_of
from omnigraph.deferred import Deferred
from omnigraph.model.frozen import frozen

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.merge.feed import Change, Feed
    from omnigraph.model.catalog import Catalog
    from omnigraph.outcomes import Commit, LoadResult, MutateResult
    from omnigraph.read import Result
    from omnigraph.wire import answers, maintenance
    from omnigraph.wire.feed import FeedBlock, FeedOutput
else:
    answers = Deferred("omnigraph.wire.answers")
    maintenance = Deferred("omnigraph.wire.maintenance")

__all__ = [
    "AskedQuery",
    "answers",
    "block_document",
    "change_output",
    "check_shape",
    "feed_document",
    "load_document",
    "maintenance",
    "opened",
    "query_document",
    "read_document",
    "shaped",
]


@frozen
class AskedQuery:
    """A query as given on the command line."""

    text: str
    name: str | None
    language: str | None
    explain: bool = False


class JsonShapeMissing(UsageError):
    """The command has no counterpart in the Rust project, so its JSON has no form there."""

    code = "json_shape_missing"
    default_help = (
        "Use --format jsonl, or leave OMNIGRAPH_JSON unset for this command to get its own JSON."
    )


def check_shape(show: Show, run: Callable[..., Any]) -> None:
    """Refuse a form the command does not have, before it does anything."""
    contract = contract_of(show)
    if contract is not None and not hasattr(run, "rust_shape"):
        raise JsonShapeMissing(f"version {contract} of the Rust project has no such command")


def opened(where: Where, show: Show) -> Graph:
    """The graph; a served one responds in the requested form."""
    graph: Any = open_graph(where)
    contract = contract_of(show)
    if contract is not None and hasattr(graph, "speak"):
        graph.speak(contract)
    found: Graph = graph
    return found


def shaped(show: Show, graph: Graph, own: Any, made: Callable[[], Any]) -> Any:
    """The document to print: `own`, or in their form the server's response, or for a local graph `made`."""
    if contract_of(show) is None:
        return own
    import msgspec

    heard = getattr(graph, "answers", None)
    return msgspec.to_builtins(heard[-1] if heard else made(), enc_hook=str)


# --- responses that need more than a struct --------------------------------------------------------------------------


def read_document(
    show: Show,
    result: Result,
    name: str,
    branch: str | None,
    point: str | None,
    *,
    with_plan: bool = False,
) -> Any:
    """The rows of a query; in the oldest form a bare node variable is its id."""
    import msgspec

    from omnigraph.wire.contracts import OLDEST
    from omnigraph.wire.reading import ReadOutput, ReadTarget

    found = result.nodes_as_ids() if contract_of(show) == OLDEST else result
    target = ReadTarget(None if point else branch, point)
    return msgspec.to_builtins(
        ReadOutput.of(found, name, target, with_plan=with_plan), enc_hook=str
    )


def query_document(
    show: Show, result: Result, asked: AskedQuery, branch: str, point: str | None
) -> Any:
    """The rows of a query given as text."""
    from omnigraph.lang.languages import query_name
    from omnigraph.statements import lone_statement

    name = query_name(asked.text, asked.name, asked.language)
    about = None if lone_statement(asked.text, asked.language) else branch
    return read_document(show, result, name, about, point, with_plan=asked.explain)


def change_output(done: MutateResult, asked: AskedQuery, branch: str, actor: str | None) -> Any:
    """The outcome of a mutation, or of a statement."""
    from omnigraph.lang.languages import query_name
    from omnigraph.lang.query import ast
    from omnigraph.statements import lone_statement, target_of

    statement = lone_statement(asked.text, asked.language)
    if isinstance(statement, ast.BranchStatement):
        branch = target_of(statement)
    name = query_name(asked.text, asked.name, asked.language)
    return answers.ChangeOutput.of(done, branch, name, actor)


def load_document(
    show: Show,
    graph: Graph,
    mode: str,
    create_from: str | None,
    actor: str | None,
    done: LoadResult,
    own: Any,
) -> Any:
    """The outcome of a load, or of its dry run; `own` is our own form."""

    def output() -> Any:
        from omnigraph.wire.requests import LoadRequest

        asked = LoadRequest(create_from=create_from, mode=mode)  # type: ignore[arg-type]
        return answers.LoadOutput.of(done, asked, actor, graph.uri)

    return shaped(show, graph, own, output)


def feed_document(
    graph: Graph, branch: str, after: str | None, limit: int | None, wanted: Mapping[str, Any]
) -> Any:
    """The changes of a branch after a position: `now`, `beginning`, `after:ID`, or a cursor; without one, from now."""
    import msgspec

    place = after or "now"
    served: Any = graph
    if hasattr(graph, "poll"):
        found = served.poll(branch=branch, **_position(place), **wanted)
    else:
        found = _changes(graph, branch, place, limit, wanted)
    return msgspec.to_builtins(found, enc_hook=str)


def _position(place: str) -> dict[str, str]:
    """The start position for a server: its cursors have no dots, commits have."""
    if place in ("now", "beginning") or place.startswith("after:"):
        return {"start": place}
    return {"start": f"after:{place}"} if "." in place else {"cursor": place}


def _changes(
    graph: Graph, branch: str, place: str, limit: int | None, wanted: Mapping[str, Any]
) -> FeedOutput:
    from omnigraph.wire.feed import FeedOutput

    head = graph.snapshot(branch)
    if place == "now":
        return FeedOutput([], cursor=head.commit_id, caught_up=True)
    start = None if place == "beginning" else place.removeprefix("after:")
    feed = _feed(graph, start, branch, limit, wanted)
    blocks = [_block(graph.commit(id), found, head.catalog) for id, found in feed.commits()]
    cursor = feed.cursor
    return FeedOutput(blocks, cursor=cursor, caught_up=cursor == head.commit_id)


def block_document(graph: Graph, commit: Commit, wanted: Mapping[str, Any]) -> Any:
    """The changes of one commit."""
    import msgspec

    served: Any = graph
    if hasattr(graph, "changes_of"):
        return msgspec.to_builtins(served.changes_of(commit.id, **wanted), enc_hook=str)
    feed = _feed(graph, commit.parents[0], commit.branch, None, wanted)
    found = next((found for id, found in feed.commits() if id == commit.id), [])
    block = _block(commit, found, graph.snapshot(commit.branch).catalog)
    return msgspec.to_builtins(block, enc_hook=str)


def _feed(
    graph: Graph, after: str | None, branch: str, limit: int | None, wanted: Mapping[str, Any]
) -> Feed:
    from omnigraph.wire.feed import types_of

    types = types_of(graph.snapshot(branch).catalog, wanted["kind"], wanted["type"])
    return graph.changes(after, branch, types=types, operations=wanted["op"], limit=limit)


def _block(commit: Commit, changes: Iterable[Change], catalog: Catalog) -> FeedBlock:
    from omnigraph.wire.feed import Cause, FeedBlock, changed_rows, in_order

    return FeedBlock(Cause.of(commit), list(changed_rows(in_order(changes), catalog)))
