"""A graph on a server: a verb is a request, and the server runs its body.

Most verbs are sent generically: `verbs` names the route and the structs of the request and the response, whose fields
are the parameters of the verb. Those that stream, or whose response differs, have a function in `SENT`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
from msgspec import UNSET

from omnigraph.branch import BlockOptions, MutateStep, Step, Written, outcome_of
from omnigraph.errors import OmnigraphError, OptionInvalid, TableNotFound
from omnigraph.graph import Graph
from omnigraph.model.limits import DEFAULT
from omnigraph.outcomes import CommitLog, LoadResult, MergeResult, MutateResult
from omnigraph.policy.questions import Action
from omnigraph.read.blobs import Blob
from omnigraph.read.export import PART_ROWS, Exported, ExportFolder, ExportPart, ending
from omnigraph.read.ndjson import FORMS
from omnigraph.remote.feed import RemoteBaseline, RemoteFeed
from omnigraph.remote.jobs import Job, bytes_in, export_by_job, job, jobs, saved, settled
from omnigraph.remote.results import RemoteDiff, RemoteResult, RemoteSnapshot, open_blob, received
from omnigraph.remote.sources import records_of, upload_of
from omnigraph.remote.transport import (
    Answer,
    HttpRequest,
    NotServed,
    Transport,
    decoded,
    encoded,
    segment,
)
from omnigraph.schemas import schema_text
from omnigraph.storage import metrics
from omnigraph.verbs import VERBS, Description
from omnigraph.wire.answers import (
    ChangeOutput,
    CommitsOutput,
    ConflictOutput,
    DiffOutput,
    PermissionsOutput,
    SnapshotOutput,
    WriteOutput,
    commit_of,
)
from omnigraph.wire.contracts import ARROW, COMMIT_HEADER, IF_COMMIT, NDJSON, PARQUET
from omnigraph.wire.feed import FeedBlock, FeedOutput
from omnigraph.wire.reading import ReadOutput
from omnigraph.wire.requests import ROW_COUNTS, InvokeRequest, WriteRequest, WriteStep

FORMATS = {
    **dict.fromkeys(FORMS, NDJSON),
    "arrow": ARROW,
    "parquet": PARQUET,
}
DIFF_ROWS_MAX = 10_000
STREAMED_ROWS_MAX = PART_ROWS  # of an export; a larger one is a job
STREAMED_BYTES_MAX = DEFAULT.interactive_bytes_max  # of files to load
POINTS = frozenset({"at", "a", "b", "from_", "to", "before"})  # parameters that may be a time
HERE = frozenset({"branch", "write"})  # composed of verbs that are sent
NAMED_PART = re.compile(r"{\w+}")
T = TypeVar("T")
Given = dict[str, Any]  # the arguments of a verb, by parameter


class RemoteGraph(Graph):
    """A graph on a server. The actor of a write is the owner of the token."""

    def __init__(self, address: str, token: str | None = None) -> None:
        self._http = Transport(address, token)
        self.answers: list[Any] | None = None  # the server's responses, if they are kept

    def speak(self, contract: str) -> None:
        """Send requests as a client of this contract of the Rust project, and keep the raw responses."""
        self._http.contract = contract
        self.answers = []

    def _heard(self, answer: T) -> T:
        if self.answers is not None:
            self.answers.append(answer)
        return answer

    def __getattribute__(self, name: str) -> Any:
        """Closed by default: a method without a description would look for local files."""
        if not name.startswith("_") and name not in VERBS and hasattr(Graph, name):
            raise NotServed(f"{name} is not available through a server")
        return super().__getattribute__(name)

    @property
    def uri(self) -> str:
        """The address of the graph."""
        return self._http.address

    def _repr_html_(self) -> str:
        from omnigraph.drawing.notebook import graph_html

        now: Any = self.snapshot()
        counts = {name: rows for (_, name), rows in now.rows.items()}
        return graph_html(self.uri, self.branches(), now.catalog, counts)

    def jobs(self) -> list[Job]:
        """Your background loads and exports, newest first."""
        return jobs(self._http)

    def job(self, id: str) -> Job:
        """One of these jobs; `wait` for it, or `cancel` it."""
        return job(self._http, id)

    def permits(self, action: Action, branch: str = "main") -> bool:
        """Whether a policy of the server allows this to the owner of the token, on a branch or with it as the target.

        Without tokens there is no policy, and so False.
        """
        query = {"branch": branch}
        found = self._http.json(PermissionsOutput, "GET", "/permissions", query=query, safe=True)
        return found.actor is not None and found.actions.get(str(action), False)

    def stored_queries(self) -> list[dict[str, Any]]:
        """The stored queries of the server, as it describes them."""
        found = self._http.json(dict[str, list[dict[str, Any]]], "GET", "/queries", safe=True)
        return found["queries"]

    def invoke(self, name: str, **options: Any) -> dict[str, Any]:
        """Run a stored query: `params`, `branch`, `snapshot`; for a mutation also `message` and `dry_run`."""
        asked = InvokeRequest(**options)
        safe = asked.expect_mutation is False
        path = f"/queries/{segment(name)}"
        return self._http.json(dict[str, Any], "POST", path, asked, safe=safe)

    def poll(self, **query: Any) -> FeedOutput:
        """One page of the change feed: `branch`, `start`, `cursor`, `kind`, `type`, `op`."""
        return _page(self, query)

    def changes_of(self, commit: str, **query: Any) -> FeedBlock:
        """The changes of one commit, filtered by `kind`, `type` and `op`."""
        path = f"/commits/{segment(commit)}/changes"
        return self._http.json(FeedBlock, "GET", path, query=query, safe=True)

    def invoke_query(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        branch: str = "main",
        at: str | None = None,
    ) -> RemoteResult:
        """Run a stored read, for a result like that of `query`."""
        where: dict[str, Any] = {"branch": branch} if at is None else {"snapshot": at}
        raw = encoded({"params": dict(params or {}), "expect_mutation": False, **where})
        headers = {"Content-Type": "application/json", "Accept": ARROW}
        path = f"/queries/{segment(name)}"
        asked = HttpRequest("POST", path, body=lambda: raw, headers=headers, safe=True)
        return self._http.send(asked, _table)

    def _run(
        self,
        verb: Description,
        body: Callable[..., Any],
        args: tuple[Any, ...],
        named: Mapping[str, Any],
    ) -> Any:
        if verb.name in HERE:
            return body(self, *args, **named)
        if verb.route is None:
            raise NotServed(f"{verb.name} is not available through a server")
        bound = _signature(body).bind(self, *args, **named)
        bound.apply_defaults()
        _, *given = bound.arguments.items()
        return SENT.get(verb.name, _sent)(self, verb, dict(given))

    def _publish_block(self, options: BlockOptions, steps: Sequence[Step]) -> Written:
        """The steps as one request, which the server publishes as one commit."""
        path, headers = _conditional("/write", options.if_commit, options.idempotency_key)
        content = WriteRequest(
            steps=[_step(step) for step in steps],
            branch=options.branch,
            message=options.message,
            timeout=options.timeout,
            dry_run=options.dry_run,
        )
        safe = options.idempotency_key is not None
        done = self._http.json(WriteOutput, "POST", path, content, headers=headers, safe=safe)
        results = [outcome_of(step) for step in done.steps]
        return Written(commit_of(done.commit), results, done.replayed)


def graphs_of(server: str) -> list[dict[str, Any]]:
    """The graphs of a server."""
    found = Transport(server, whole=True).json(
        dict[str, list[dict[str, Any]]], "GET", "/graphs", safe=True
    )
    return found["graphs"]


@cache
def _signature(body: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(body)


def _step(step: Step) -> WriteStep:
    if isinstance(step, MutateStep):
        params = None if step.params is None else dict(step.params)
        return WriteStep(text=step.text, params=params, name=step.name)
    mode: Any = step.mode
    return WriteStep(load=records_of(step.source), mode=mode)


# --- sent generically --------------------------------------------------------------------------------------------


def _sent(graph: RemoteGraph, verb: Description, given: Given) -> Any:
    """Send a verb according to its description, and return the value of its response."""
    return _answered(graph, verb, given).value()


def _answered(graph: RemoteGraph, verb: Description, given: Given) -> Any:
    method, path = (verb.route or "").split()
    while NAMED_PART.search(path):  # its first parameters, in order
        path = NAMED_PART.sub(segment(str(given.pop(next(iter(given))))), path, count=1)
    key = given.pop("idempotency_key", None)
    path, headers = _conditional(path, given.pop("if_commit", None), key)
    content = request_of(verb, given)
    more: dict[str, Any] = {"headers": headers, "safe": not verb.writes or key is not None}
    if method != "POST":
        more["query"], content = query_of(content), None
    return graph._heard(graph._http.json(verb.answer_type, method, path, content, **more))


def _conditional(path: str, if_commit: str | None, key: str | None) -> tuple[str, dict[str, str]]:
    """The path and the headers of a write that depends on the head of its branch, or has a key."""
    headers = {} if key is None else {"Idempotency-Key": key}
    if if_commit is None:
        return path, headers
    return f"{path}/if-graph-commit", headers | {IF_COMMIT: if_commit}


def request_of(verb: Description, given: Given) -> Any:
    """The request of a verb; a parameter without a field is refused if it is set."""
    shape = verb.request_type
    names = () if shape is None else shape.__struct_fields__
    for name, value in given.items():
        if name not in names and name != "actor" and value is not None and value is not False:
            raise NotServed(f"{name} is not an option of a served graph: its server decides")
    known = {name: _point(value) if name in POINTS else value for name, value in given.items()}
    return None if shape is None else shape(**{n: v for n, v in known.items() if n in names})


def query_of(request: Any) -> dict[str, Any]:
    """A request as a query string."""
    return {} if request is None else msgspec.to_builtins(request)


def _point(at: object) -> str | None:
    if at is None or isinstance(at, str):
        return at
    if hasattr(at, "isoformat"):
        return str(at.isoformat())
    raise OptionInvalid(f"{at!r} is not a commit, tag, branch or time")


# --- sent by own functions ---------------------------------------------------------------------------------------


def _query(graph: RemoteGraph, verb: Description, given: Given) -> RemoteResult:
    """The rows are sent as Arrow; with a plan, as JSON."""
    if given.pop("engine") != "local":
        raise OptionInvalid("a server runs queries itself; engine must be 'local'")
    if given["explain"]:
        found: ReadOutput = _answered(graph, verb, given)
        table = pa.Table.from_pylist(found.rows)
        return RemoteResult(table, found.graph_commit_id or "", found.explain or None)
    raw = encoded(request_of(verb, given))
    headers = {"Content-Type": "application/json", "Accept": ARROW}
    asked = HttpRequest("POST", "/query", body=lambda: raw, headers=headers, safe=True)
    return graph._http.send(asked, _table)


def _mutate(graph: RemoteGraph, verb: Description, given: Given) -> MutateResult:
    """The counts, and the rows if the mutation returns some."""
    found: ChangeOutput = _answered(graph, verb, given)
    done = found.value()
    if found.rows is UNSET or found.columns is UNSET or found.column_types is UNSET:
        return done
    table = received(found.columns, found.column_types, found.rows)
    return replace(done, result=RemoteResult(table, done.commit.id if done.commit else ""))


def _table(answer: Answer) -> RemoteResult:
    return RemoteResult(
        pa.ipc.open_stream(answer).read_all(), answer.headers.get(COMMIT_HEADER, "")
    )


def _query_many(graph: RemoteGraph, verb: Description, given: Given) -> list[RemoteResult]:
    """The rows of all runs are sent as one Arrow table with the row count of each run."""
    if not given["params"]:
        return []
    raw = encoded(request_of(verb, given))
    headers = {"Content-Type": "application/json", "Accept": ARROW}
    asked = HttpRequest("POST", "/query/many", body=lambda: raw, headers=headers, safe=True)
    return graph._http.send(asked, _tables)


def _tables(answer: Answer) -> list[RemoteResult]:
    table = pa.ipc.open_stream(answer).read_all()
    counts = msgspec.json.decode(table.schema.metadata[ROW_COUNTS.encode()], type=list[int])
    commit, plain, results, start = answer.headers[COMMIT_HEADER], table.combine_chunks(), [], 0
    for count in counts:
        results.append(RemoteResult(plain.slice(start, count), commit))
        start += count
    return results


def _snapshot(graph: RemoteGraph, verb: Description, given: Given) -> RemoteSnapshot:
    found: SnapshotOutput = _answered(graph, verb, dict(given))
    rows = {(d.entity_kind, d.type_name): d.entity_count for d in found.datasets}
    commit = found.graph_commit_id
    schema = partial(graph.schema, given["branch"], commit)
    return RemoteSnapshot(commit, found.graph_branch, rows, schema)


def _state(graph: RemoteGraph, given: Given) -> RemoteSnapshot:
    return _snapshot(graph, VERBS["snapshot"], {name: given.get(name) for name in ("branch", "at")})


def _log(graph: RemoteGraph, verb: Description, given: Given) -> CommitLog:
    """As many pages as it takes: a server bounds each of them."""
    limit, commits = given["limit"], CommitLog()
    while True:
        found: CommitsOutput = _answered(graph, verb, dict(given))
        commits += found.value()
        if found.next is UNSET:
            return commits
        given |= {"at": found.next, "limit": None if limit is None else limit - len(commits)}


def _blob(graph: RemoteGraph, _: Description, given: Given) -> Blob:
    state = _state(graph, given)
    kinds = [kind for kind, name in state.rows if name == given["type"]]
    if not kinds:
        raise TableNotFound(f"there is no type {given['type']}")
    asked = {name: given[name] for name in ("type", "id", "property")}
    return open_blob(graph._http, asked | {"entity": kinds[0], "snapshot": state.commit_id})


def _changes(graph: RemoteGraph, _: Description, given: Given) -> RemoteFeed:
    after, types = given["after"], given["types"]
    start = "beginning" if after is None else f"after:{after}"
    query = {"branch": given["branch"], "type": types, "op": given["operations"]}
    pages = partial(_page, graph)
    return RemoteFeed(pages, query, start, after, given["limit"], partial(_baseline, graph, given))


def _page(graph: RemoteGraph, query: Mapping[str, Any]) -> FeedOutput:
    return graph._http.json(FeedOutput, "GET", "/changes", query=query, safe=True)


def _baseline(graph: RemoteGraph, given: Given) -> RemoteBaseline:
    state, types = _state(graph, {"branch": given["branch"]}), given["types"]
    chosen = [key for key in state.rows if types is None or key[1] in types]
    kinds = sorted(chosen, key=lambda key: (key[0] != "node", key[1]))
    return RemoteBaseline(state.commit_id, tuple(kinds), partial(_rows, graph))


def _rows(graph: RemoteGraph, type: str, commit: str) -> pa.Table:
    query, headers = {"at": commit, "types": [type]}, {"Accept": ARROW}
    asked = HttpRequest("GET", "/export", query, headers=headers, safe=True)
    return graph._http.send(asked, lambda answer: pa.ipc.open_stream(answer).read_all())


def _diff(graph: RemoteGraph, verb: Description, given: Given) -> RemoteDiff:
    found: DiffOutput = _answered(graph, verb, given | {"limit": DIFF_ROWS_MAX})
    return RemoteDiff.of(found)


def _schema(graph: RemoteGraph, verb: Description, given: Given) -> Any:
    """A schema may be a local file."""
    return _sent(graph, verb, given | {"text": schema_text(given["text"])})


def _merged(graph: RemoteGraph, verb: Description, given: Given) -> MergeResult:
    """Conflicts are an error in the protocol, and an outcome in the API."""
    try:
        merged: MergeResult = _sent(graph, verb, given)
        return merged
    except OmnigraphError as error:
        if error.code != "merge_conflicts":
            raise
        found = msgspec.convert(error.details["merge_conflicts"], list[ConflictOutput])
        return MergeResult("conflict", None, tuple(conflict.value() for conflict in found))


def _load(graph: RemoteGraph, verb: Description, given: Given) -> LoadResult:
    """Loads are streamed; large ones become jobs, so that no connection has to last as long as the load."""
    source, key = given.pop("source"), given.pop("idempotency_key")
    if given.pop("engine") not in ("auto", "local"):
        raise OptionInvalid("a server loads itself; engine must be 'auto'")
    if isinstance(given["violations"], bool):
        del given["violations"]
    upload = upload_of(source)
    _, headers = _conditional("", None, key)
    if bytes_in(source) > STREAMED_BYTES_MAX:
        headers["Prefer"] = "respond-async"
    asked = HttpRequest(
        "POST",
        "/load",
        query_of(request_of(verb, given)),
        upload.body,
        {"Content-Type": upload.media, **headers},
        safe=key is not None,
        repeatable=upload.repeatable,
    )
    metrics.progress("sending")
    answer = graph._http.send(asked, lambda found: decoded(found, dict[str, Any]))
    return graph._heard(settled(graph._http, answer)).value()


def _export(graph: RemoteGraph, _: Description, given: Given) -> Exported:
    """A file for each type; a large export is written by the server as a job, and then fetched."""
    format, types, order = given["format"], given["types"], given["order"]
    lines = format if format in FORMS else None
    if format not in (*FORMATS, "csv"):
        raise OptionInvalid(f"format must be one of {', '.join(FORMATS)}, csv, not {format!r}")
    if order is not None and format not in FORMATS:
        raise OptionInvalid(f"a server writes {format} without an order; leave order= out")
    state = _state(graph, given)
    chosen = {k: n for k, n in state.rows.items() if types is None or k[1] in types}
    is_large = sum(chosen.values()) > STREAMED_ROWS_MAX and order is None
    if format not in FORMATS or is_large:
        return export_by_job(graph._http, given["dest"], format, state.commit_id, types)
    folder = ExportFolder.of(given["dest"])
    query = {"at": state.commit_id, "order": order, "format": lines}
    parts = tuple(
        _part(graph, folder, f"{kind}-{name}.{ending(format)}", name, rows, query)
        for (kind, name), rows in sorted(chosen.items(), key=lambda k: k[0][0] != "node")
    )
    return folder.finish(Exported(state.commit_id, format, parts))


def _part(
    graph: RemoteGraph,
    folder: ExportFolder,
    name: str,
    type: str,
    rows: int,
    query: dict[str, Any],
) -> ExportPart:
    headers = {"Accept": FORMATS[name.rpartition(".")[2]]}
    asked = HttpRequest("GET", "/export", query | {"types": [type]}, headers=headers, safe=True)
    with folder.file(name) as path:
        size, digest = graph._http.send(asked, lambda answer: saved(answer, path))
    return ExportPart(name, type, rows, size, digest)


SENT: dict[str, Callable[[RemoteGraph, Description, Given], Any]] = {
    "query": _query,
    "query_many": _query_many,
    "mutate": _mutate,
    "snapshot": _snapshot,
    "log": _log,
    "blob": _blob,
    "changes": _changes,
    "diff": _diff,
    "plan_schema": _schema,
    "apply_schema": _schema,
    "merge": _merged,
    "revert": _merged,
    "cherry_pick": _merged,
    "reset": _merged,
    "merge_proposal": _merged,
    "load": _load,
    "export": _export,
}
