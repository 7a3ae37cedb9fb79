"""Queries, stored queries, the schema, and what a snapshot consists of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
from msgspec import UNSET

from omnigraph.errors import CommitNotFound
from omnigraph.lang.query import QueryKindMismatch
from omnigraph.policy.questions import Action
from omnigraph.read import Result
from omnigraph.server.access import Need
from omnigraph.server.calls import ARROW, COMMIT_HEADER, Answer, Call
from omnigraph.server.errors import RequestInvalid
from omnigraph.server.routes.texts import source_of
from omnigraph.server.routes.writing import change
from omnigraph.server.stored import StoredQuery, StoredQueryNotFound
from omnigraph.server.wire import (
    InvokeRequest,
    MutateRequest,
    QueryRequest,
    ReadOutput,
    Target,
    snapshot_output,
)


def read_on(call: Call) -> Iterable[Need]:
    """Reading the branch the request names; a point in time belongs to the branch it was written on."""
    asked = call.body if call.body is not None else call.query
    point = getattr(asked, "snapshot", None) or getattr(asked, "at", None)
    branch = getattr(asked, "branch", None)
    if point is None:
        yield Need(Action.READ, branch or "main")
    elif getattr(asked, "snapshot", None) and branch:
        raise RequestInvalid("give branch or snapshot, not both")
    else:
        call.snapshot(branch, point)


def read_main(_: Call) -> Iterable[Need]:
    return (Need(Action.READ, "main"),)


def read_any(_: Call) -> Iterable[Need]:
    """Reading what belongs to no branch in particular."""
    return (Need(Action.READ),)


# --- queries -----------------------------------------------------------------------------------------------------


def query(call: Call) -> Answer:
    """Run a read; JSON, or Arrow when `Accept` asks for it."""
    asked: QueryRequest = call.body
    text, chosen = source_of(asked)
    result = _run(call, asked, text, chosen)
    if ARROW in call.headers.get("accept", ""):
        return _arrow(result)
    return Answer(_output(result, asked, chosen), commit=result.commit)


def read(call: Call) -> Answer:
    """Run a read, as clients before `/query` did."""
    asked: QueryRequest = call.body
    text, chosen = source_of(asked)
    result = _run(call, asked, text, chosen)
    return Answer(_output(result, asked, chosen, with_commit=False), commit=result.commit)


def _run(call: Call, asked: QueryRequest, text: str, name: str) -> Result:
    try:
        return call.graph.query(
            text,
            asked.params,
            name,
            branch=asked.branch or "main",
            at=asked.snapshot or asked.at,
            timeout=call.seconds(call.bounds.query_seconds_max, asked.timeout),
            max_rows=min(asked.max_rows or call.bounds.query_rows_max, call.bounds.query_rows_max),
            explain=asked.explain,
        )
    except QueryKindMismatch as mistake:
        mistake.help = "Send mutations to /mutate."
        raise


def _output(
    result: Result, asked: QueryRequest, name: str, *, with_commit: bool = True
) -> ReadOutput:
    point = asked.snapshot or asked.at
    return ReadOutput(
        query_name=name,
        target=Target(None if point else asked.branch or "main", point),
        row_count=len(result),
        columns=result.columns or UNSET,
        rows=result.json_rows(),
        graph_commit_id=result.commit if with_commit else UNSET,
        explain=_explained(result) if asked.explain else UNSET,
    )


def _explained(result: Result) -> dict[str, Any]:
    found = result.explain()
    return {**found.to_json(), "text": str(found)}


def _arrow(result: Result) -> Answer:
    headers = {COMMIT_HEADER: result.commit}
    return Answer(media=ARROW, headers=headers, blocks=_batches(result), commit=result.commit)


def _batches(result: Result) -> Iterator[bytes]:
    table = result.to_arrow()
    yield from ipc_blocks(table.schema, table.to_batches(max_chunksize=65_536))


class _Outbox:
    """A file that gives away what was written to it."""

    closed = False

    def __init__(self) -> None:
        self._held: list[bytes] = []

    def write(self, data: Any) -> int:
        self._held.append(bytes(data))
        return len(self._held[-1])

    def taken(self) -> bytes:
        held, self._held = b"".join(self._held), []
        return held


def ipc_blocks(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    """An Arrow IPC stream, batch by batch."""
    outbox = _Outbox()
    with pa.ipc.new_stream(pa.PythonFile(outbox, mode="w"), schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            yield outbox.taken()
    yield outbox.taken()


# --- stored queries ------------------------------------------------------------------------------------------------


def list_queries(call: Call) -> Answer:
    """The stored queries, with the types of their parameters."""
    assert call.served is not None  # noqa: S101
    return Answer({"queries": [q.to_json() for q in call.served.queries.values()]})


def invoke_needs(call: Call) -> Iterator[Need]:
    """Calling a stored query; whoever may not is told that there is none. Then what the query does.

    Whoever may not see the list of them is not told by a refusal which there are.
    """
    yield Need(Action.INVOKE_QUERY, instead=_no_query())
    stored = _stored(call)
    listed = call.guard is None or call.guard.allows(Need(Action.READ, "main"))
    try:
        for need in _change_on(call) if stored.mutates else read_on(call):
            yield need if listed else replace(need, instead=_no_query())
    except CommitNotFound:
        if listed:
            raise
        raise _no_query() from None


def _change_on(call: Call) -> Iterator[Need]:
    asked: InvokeRequest = call.body
    if asked.snapshot is not None:
        raise RequestInvalid("a mutation runs on a branch, not on a snapshot")
    yield Need(Action.CHANGE, asked.branch or "main")


def invoke(call: Call) -> Answer:
    """Run a stored query with the values given."""
    stored, asked = _stored(call), call.body
    _check_expectation(stored, asked)
    if stored.mutates:
        wanted = MutateRequest(query=stored.text, params=asked.params, branch=asked.branch)
        return change(call, wanted, stored.text, stored.query.name)
    if call.if_commit is not None:
        raise RequestInvalid("the stored query is a read; a condition fits only mutations")
    as_query = QueryRequest(params=asked.params, branch=asked.branch, snapshot=asked.snapshot)
    result = _run(call, as_query, stored.text, stored.query.name)
    return Answer(_output(result, as_query, stored.query.name), commit=result.commit)


def _check_expectation(stored: StoredQuery, asked: InvokeRequest) -> None:
    if asked.expect_mutation is not None and asked.expect_mutation is not stored.mutates:
        what, verb = ("mutation", "mutate") if stored.mutates else ("read", "query")
        raise RequestInvalid(f"the stored query is a {what}: use {verb}")


def _stored(call: Call) -> StoredQuery:
    assert call.served is not None  # noqa: S101
    found = call.served.queries.get(call.path["name"])
    if found is None:
        raise _no_query()
    return found


def _no_query() -> StoredQueryNotFound:
    return StoredQueryNotFound("stored query not found")


# --- what there is -------------------------------------------------------------------------------------------------


def schema(call: Call) -> Answer:
    """The text of the schema in force."""
    return Answer({"schema_source": call.graph.schema(call.query.branch or "main", call.query.at)})


def snapshot(call: Call) -> Answer:
    """The tables a state consists of."""
    branch = call.query.branch or "main"
    found = call.snapshot(branch, call.query.at)
    return Answer(snapshot_output(found, branch), commit=found.commit_id)
