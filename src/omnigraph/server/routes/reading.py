"""Queries, stored queries, the schema, and the tables of a snapshot."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa

from omnigraph.agents.stored import StoredQuery, StoredQueryNotFound
from omnigraph.errors import CommitNotFound
from omnigraph.lang.languages import query_name
from omnigraph.lang.query import QueryKindMismatch
from omnigraph.model.names import MAIN
from omnigraph.policy.guard import Need
from omnigraph.policy.questions import Action
from omnigraph.read import Result
from omnigraph.read.export import write_table
from omnigraph.server.errors import RequestInvalid
from omnigraph.server.request import CSV, Answer, HttpCall
from omnigraph.server.routes.writing import (
    change,
    check_settings,
    source_of,
    statement_of,
)
from omnigraph.server.slow_queries import watched
from omnigraph.statements import named_place, written_branch
from omnigraph.wire.answers import SchemaOutput, SnapshotOutput
from omnigraph.wire.contracts import ARROW, COMMIT_HEADER, PARQUET
from omnigraph.wire.reading import ReadManyOutput, ReadOutput, ReadTarget
from omnigraph.wire.requests import (
    ROW_COUNTS,
    InvokeRequest,
    MutateRequest,
    QueryManyRequest,
    QueryRequest,
)

BATCH_ROWS = 65_536
BLOCK_BYTES = 64 << 10


def read_on(call: HttpCall, stored: StoredQuery | None = None) -> Iterable[Need]:
    """Reading the branch the request or its text names; a point belongs to the branch it was written on."""
    request = call.body if call.body is not None else call.query
    if isinstance(request, QueryRequest) and statement_of(request) is not None:
        yield Need(Action.READ)
        return
    if getattr(request, "snapshot", None) and getattr(request, "branch", None):
        raise RequestInvalid("give branch or snapshot, not both")
    yield from read_at(call, *_place(request, stored))


def read_at(call: HttpCall, branch: str, point: str | None) -> Iterator[Need]:
    """Reading a branch; the permission for a point is known once it is found."""
    if point is None:
        yield Need(Action.READ, branch)
    else:
        call.snapshot(branch, point)


def _place(request: Any, stored: StoredQuery | None = None) -> tuple[str, str | None]:
    """The branch and the point of a request: those its text uses, or those it names."""
    text, language = getattr(request, "text", None), getattr(request, "language", None)
    if stored is not None:
        text, language = stored.text, stored.language
    given = getattr(request, "snapshot", None) or getattr(request, "at", None)
    branch = getattr(request, "branch", None) or MAIN
    named, point = named_place(
        text or getattr(request, "query_source", None) or "", language, branch, given
    )
    return named, None if point is None else str(point)


def read_main(_: HttpCall) -> Iterable[Need]:
    return (Need(Action.READ, "main"),)


def read_any(_: HttpCall) -> Iterable[Need]:
    """Reading what does not belong to a branch."""
    return (Need(Action.READ),)


# --- queries -----------------------------------------------------------------------------------------------------


def query(call: HttpCall) -> Answer:
    """Run a read; JSON, or Arrow, Parquet or CSV if `Accept` says so."""
    request: QueryRequest = call.body
    text, chosen = source_of(request)
    check_settings(text, request)
    return _answer(call, request, _run(call, request, text, chosen), chosen)


def _answer(call: HttpCall, request: QueryRequest, result: Result, name: str) -> Answer:
    wanted = call.headers.get("accept", "")
    for media, blocks in FORMS.items():
        if media in wanted:
            headers = {COMMIT_HEADER: result.commit}
            return Answer(media=media, headers=headers, blocks=blocks(result), commit=result.commit)
    return Answer(_output(result, request, name), commit=result.commit)


def query_many(call: HttpCall) -> Answer:
    """Run a read once for each set of parameters; JSON, or Arrow with the rows of all runs concatenated.

    In Arrow the schema metadata has the row counts of the runs under `row_counts`, as a JSON list.
    """
    request: QueryManyRequest = call.body
    (branch, at), name = _place(request), query_name(request.text, request.name)
    with watched(call, request.text, name, request.params, branch, at):
        found = call.graph.query_many(
            request.text,
            request.params,
            name,
            branch=branch,
            at=at,
            timeout=call.seconds(call.bounds.query_seconds_max, request.timeout),
            max_rows=_rows_max(call, request.max_rows),
        )
    found = [each.nodes_as_ids() for each in found] if call.wants_ids else found
    if not found:
        raise RequestInvalid("params needs at least one set of parameters")
    first, counts = found[0], [len(each) for each in found]
    if ARROW in call.headers.get("accept", ""):
        table = pa.concat_tables([each.to_arrow() for each in found])
        table = table.replace_schema_metadata({ROW_COUNTS: msgspec.json.encode(counts)})
        blocks = ipc_blocks(table.schema, table.to_batches(max_chunksize=65_536))
        headers = {COMMIT_HEADER: first.commit}
        return Answer(media=ARROW, headers=headers, blocks=blocks, commit=first.commit)
    output = ReadManyOutput(
        query_name=name,
        target=ReadTarget(None if at else branch, at),
        graph_commit_id=first.commit,
        columns=first.columns,
        row_counts=counts,
        results=[each.json_rows() for each in found],
    )
    return Answer(output, commit=first.commit)


def read(call: HttpCall) -> Answer:
    """Run a read, for clients older than `/query`."""
    request: QueryRequest = call.body
    text, chosen = source_of(request)
    result = _run(call, request, text, chosen).nodes_as_ids()
    return Answer(_output(result, request, chosen, with_commit=False), commit=result.commit)


def _run(call: HttpCall, request: QueryRequest, text: str, name: str) -> Result:
    branch, at = _place(request)
    chosen = None if statement_of(request) else name
    try:
        with watched(call, text, name, request.params, branch, at):
            found = call.graph.query(
                text,
                request.params,
                chosen,
                branch=branch,
                at=at,
                timeout=call.seconds(call.bounds.query_seconds_max, request.timeout),
                max_rows=_rows_max(call, request.max_rows),
                explain=request.explain,
                language=request.language,
                settings=request.settings,
            )
            return found.nodes_as_ids() if call.wants_ids else found
    except QueryKindMismatch as mistake:
        mistake.help = "Send mutations to /mutate."
        raise


def _rows_max(call: HttpCall, wanted: int | None) -> int:
    return min(wanted or call.bounds.query_rows_max, call.bounds.query_rows_max)


def _output(
    result: Result, request: QueryRequest, name: str, *, with_commit: bool = True
) -> ReadOutput:
    branch, point = _place(request)
    return ReadOutput.of(
        result,
        name,
        ReadTarget(None if point or statement_of(request) else branch, point),
        rows_shown=request.rows_shown,
        with_commit=with_commit,
        with_types=request.column_types,
        with_plan=request.explain,
    )


def _arrow(result: Result) -> Iterator[bytes]:
    table = result.to_arrow()
    yield from ipc_blocks(table.schema, table.to_batches(max_chunksize=BATCH_ROWS))


def _file(format: str, result: Result) -> Iterator[bytes]:
    table = result.to_arrow()
    batches = table.to_batches(max_chunksize=BATCH_ROWS)
    yield from file_blocks(batches or [_no_rows(table.schema)], format)


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in schema], schema=schema)


def file_blocks(batches: Iterable[pa.RecordBatch], format: str) -> Iterator[bytes]:
    """A file that cannot be sent before it is complete, so it is written to disk."""
    with tempfile.TemporaryFile() as file:
        write_table(file, batches, format)
        file.seek(0)
        while block := file.read(BLOCK_BYTES):
            yield block


FORMS: Mapping[str, Callable[[Result], Iterator[bytes]]] = {
    ARROW: _arrow,
    PARQUET: partial(_file, "parquet"),
    CSV: partial(_file, "csv"),
}


class _Outbox:
    """A file that hands over what was written to it."""

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


def list_queries(call: HttpCall) -> Answer:
    """The stored queries, with the types of their parameters."""
    assert call.served is not None  # noqa: S101
    return Answer({"queries": [q.to_json() for q in call.served.queries.values()]})


def invoke_needs(call: HttpCall) -> Iterator[Need]:
    """Calling a stored query (refused as if it did not exist), then what the query does.

    To an actor who may not list the queries, no refusal reveals which exist.
    """
    yield Need(Action.INVOKE_QUERY, instead=_no_query())
    stored = _stored(call)
    listed = call.guard is None or call.guard.allows(Need(Action.READ, "main"))
    try:
        for need in _change_on(call, stored) if stored.mutates else read_on(call, stored):
            yield need if listed else replace(need, instead=_no_query())
    except CommitNotFound:
        if listed:
            raise
        raise _no_query() from None


def _change_on(call: HttpCall, stored: StoredQuery) -> Iterator[Need]:
    request: InvokeRequest = call.body
    if request.snapshot is not None:
        raise RequestInvalid("a mutation runs on a branch, not on a snapshot")
    branch = written_branch(stored.text, stored.language, request.branch or MAIN)
    yield Need(Action.CHANGE, branch)


def invoke(call: HttpCall) -> Answer:
    """Run a stored query with the values given."""
    stored, request = _stored(call), call.body
    _check_expectation(stored, request)
    if stored.mutates:
        wanted = MutateRequest(
            text=stored.text,
            params=request.params,
            branch=request.branch,
            message=request.message,
            dry_run=request.dry_run,
            language=stored.language,
        )
        return change(call, wanted, stored.text, stored.name)
    if call.if_commit is not None or request.dry_run:
        what = "a dry run" if request.dry_run else "a condition"
        raise RequestInvalid(f"the stored query is a read; {what} is only for mutations")
    as_query = QueryRequest(
        text=stored.text,
        params=request.params,
        branch=request.branch,
        snapshot=request.snapshot,
        rows_shown=request.rows_shown,
        column_types=request.column_types,
        language=stored.language,
    )
    result = _run(call, as_query, stored.text, stored.name)
    return _answer(call, as_query, result, stored.name)


def _check_expectation(stored: StoredQuery, request: InvokeRequest) -> None:
    if request.expect_mutation is not None and request.expect_mutation is not stored.mutates:
        what, verb = ("mutation", "mutate") if stored.mutates else ("read", "query")
        raise RequestInvalid(f"the stored query is a {what}: use {verb}")


def _stored(call: HttpCall) -> StoredQuery:
    assert call.served is not None  # noqa: S101
    found = call.served.queries.get(call.path["name"])
    if found is None:
        raise _no_query()
    return found


def _no_query() -> StoredQueryNotFound:
    return StoredQueryNotFound("stored query not found")


# --- schema and tables ---------------------------------------------------------------------------------------------


def schema(call: HttpCall) -> Answer:
    """The text of the schema in force."""
    found = call.graph.schema(call.query.branch or "main", call.query.at)
    return Answer(SchemaOutput(found))


def snapshot(call: HttpCall) -> Answer:
    """The tables a state consists of."""
    branch = call.query.branch or "main"
    found = call.snapshot(branch, call.query.at)
    return Answer(SnapshotOutput.of(found, branch), commit=found.commit_id)
