"""The verbs of a graph, over HTTP."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from omnigraph.branch import BlockOptions
from omnigraph.errors import OmnigraphError, OptionInvalid, TableNotFound
from omnigraph.merge.diff import RowDiff
from omnigraph.model.limits import DEFAULT
from omnigraph.model.names import branch_name
from omnigraph.outcomes import Commit, EntityHistory, LoadResult, MergeResult, MutateResult
from omnigraph.read.export import MANIFEST, PART_ROWS, Exported, Part
from omnigraph.remote import shapes
from omnigraph.remote.blobs import RemoteBlob, open_blob
from omnigraph.remote.branch import RemoteBranch
from omnigraph.remote.feed import RemoteBaseline, RemoteFeed
from omnigraph.remote.jobs import Job, bytes_in, export_by_job, job, jobs, saved, settled
from omnigraph.remote.sources import upload_of
from omnigraph.remote.transport import (
    Answer,
    Asked,
    NotServed,
    Transport,
    decoded,
    encoded,
    segment,
)
from omnigraph.storage import metrics

ARROW = "application/vnd.apache.arrow.stream"
IF_COMMIT = "Omnigraph-If-Graph-Commit"
COMMIT_HEADER = "Omnigraph-Graph-Commit"
FORMATS = {
    "ndjson": "application/x-ndjson",
    "arrow": ARROW,
    "parquet": "application/vnd.apache.parquet",
}
DIFF_ROWS_MAX = 10_000
STREAMED_ROWS_MAX = PART_ROWS  # of an export; more of them are a job
STREAMED_BYTES_MAX = DEFAULT.interactive_bytes_max  # of files to load
UNSERVED = frozenset(
    {
        "analytics",
        "check_load",
        "cleanup",
        "clone",
        "doctor",
        "mutation",
        "optimize",
        "publish",
        "repository",
        "spark",
        "upkeep",
    }
)


class RemoteGraph:
    """A graph that a server holds. The actor of a write is whoever the token belongs to."""

    def __init__(self, address: str, token: str | None = None) -> None:
        self._http = Transport(address, token)

    @property
    def uri(self) -> str:
        """Where the graph is served."""
        return self._http.address

    def __repr__(self) -> str:
        return f"Graph({self.uri!r})"

    def _repr_html_(self) -> str:
        from omnigraph.drawing.notebook import graph_html

        now = self.snapshot()
        counts = {name: rows for (_, name), rows in now.rows.items()}
        return graph_html(self.uri, self.branches(), now.catalog, counts)

    def __getattr__(self, name: str) -> Any:
        if name in UNSERVED:
            raise NotServed(f"{name} is not available through a server")
        raise AttributeError(f"a served graph has no {name!r}")

    # --- reading -----------------------------------------------------------------------------------------------

    def query(
        self,
        text: str,
        params: Mapping[str, Any] | None = None,
        name: str | None = None,
        branch: str = "main",
        at: object = None,
        engine: str = "local",
        *,
        timeout: float | None = None,
        max_rows: int | None = None,
        explain: bool = False,
    ) -> shapes.RemoteResult:
        """Run a read; the rows come as Arrow."""
        if engine != "local":
            raise OptionInvalid("a server runs queries itself; engine must be 'local'")
        content = {
            "query": text,
            "name": name,
            "params": params,
            "branch": branch,
            "at": _point(at),
            "timeout": timeout,
            "max_rows": max_rows,
            "explain": explain,
        }
        if explain:
            told = self._http.json("POST", "/query", content, safe=True)
            table = pa.Table.from_pylist(told["rows"])
            return shapes.RemoteResult(table, told["graph_commit_id"], told["explain"])
        return self._arrow(content)

    def _arrow(self, content: Mapping[str, Any]) -> shapes.RemoteResult:
        raw = encoded(content)
        headers = {"Content-Type": "application/json", "Accept": ARROW}
        asked = Asked("POST", "/query", body=lambda: raw, headers=headers, safe=True)
        return self._http.send(asked, _table)

    def schema(self, branch: str = "main", at: object = None) -> str:
        """The text of the schema in force."""
        found = self._http.json("GET", "/schema", query=_at(branch, at), safe=True)
        return str(found["schema_source"])

    def snapshot(self, branch: str = "main", at: object = None) -> shapes.RemoteSnapshot:
        """What a state consists of."""
        told = self._http.json("GET", "/snapshot", query=_at(branch, at), safe=True)
        rows = {(d["entity_kind"], d["type_name"]): d["entity_count"] for d in told["datasets"]}
        commit = told["graph_commit_id"]
        schema = partial(self.schema, branch, commit)
        return shapes.RemoteSnapshot(commit, told["graph_branch"], rows, schema)

    def blob(
        self, type: str, id: str, property: str, branch: str = "main", at: object = None
    ) -> RemoteBlob:
        """A blob of one entity: its size, and its bytes by range."""
        state = self.snapshot(branch, at)
        kinds = [kind for kind, name in state.rows if name == type]
        if not kinds:
            raise TableNotFound(f"there is no type {type}")
        asked = {"entity": kinds[0], "type": type, "id": id, "property": property}
        return open_blob(self._http, asked | {"snapshot": state.commit_id})

    def export(
        self,
        dest: str | os.PathLike[str],
        format: str = "ndjson",
        branch: str = "main",
        at: object = None,
        types: Sequence[str] | None = None,
        engine: str = "auto",  # noqa: ARG002  a server has one
        *,
        order: str | None = None,
    ) -> Exported:
        """Write one state to files in the folder `dest`: ndjson, parquet, arrow or csv; much of it as a job."""
        if format not in (*FORMATS, "csv"):
            raise OptionInvalid(f"format is one of {', '.join(FORMATS)}, csv, not {format!r}")
        if order is not None and format not in FORMATS:
            raise OptionInvalid(f"a server writes {format} without an order; leave order= out")
        snapshot = self.snapshot(branch, at)
        chosen = {k: n for k, n in snapshot.rows.items() if types is None or k[1] in types}
        is_large = sum(chosen.values()) > STREAMED_ROWS_MAX and order is None
        if format not in FORMATS or is_large:
            return export_by_job(self._http, dest, format, snapshot.commit_id, types)
        folder = Path(dest)
        folder.mkdir(parents=True, exist_ok=True)
        parts = tuple(
            self._part(folder, kind, name, rows, format, snapshot.commit_id, order)
            for (kind, name), rows in sorted(chosen.items(), key=lambda k: k[0][0] != "node")
        )
        done = Exported(snapshot.commit_id, format, parts)
        (folder / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(done), indent=2))
        return done

    def _part(
        self,
        folder: Path,
        kind: str,
        name: str,
        rows: int,
        format: str,
        commit: str,
        order: str | None,
    ) -> Part:
        file = f"{kind}-{name}.{format}"
        query = {"at": commit, "types": [name], **({} if order is None else {"order": order})}
        headers = {"Accept": FORMATS[format]}
        asked = Asked("GET", "/export", query, headers=headers, safe=True)
        partial = folder / f".{file}.partial"
        size, digest = self._http.send(asked, lambda answer: saved(answer, partial))
        os.replace(partial, folder / file)
        return Part(file, name, rows, size, digest)

    # --- writing -----------------------------------------------------------------------------------------------

    def mutate(
        self,
        text: str,
        params: Mapping[str, Any] | None = None,
        name: str | None = None,
        branch: str = "main",
        if_commit: str | None = None,
        message: str | None = None,
        actor: str | None = None,  # noqa: ARG002  the token says who
        idempotency_key: str | None = None,
        *,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> MutateResult:
        """Run a mutation as one commit; a dry run only counts."""
        content = {
            "query": text,
            "name": name,
            "params": params,
            "branch": branch,
            "message": message,
            "timeout": timeout,
            "dry_run": dry_run,
        }
        headers = _key(idempotency_key)
        path = "/mutate"
        if if_commit is not None:
            path, headers[IF_COMMIT] = "/mutate/if-graph-commit", if_commit
        safe = idempotency_key is not None
        return shapes.mutated(self._http.json("POST", path, content, headers=headers, safe=safe))

    def branch(self, name: str) -> RemoteBranch:
        """The same verbs, bound to a branch."""
        return RemoteBranch(self, branch_name(name))

    def write_steps(self, options: BlockOptions, steps: Sequence[Mapping[str, Any]]) -> Any:
        """Several writes as one commit; what `branch(…).write(…)` sends."""
        content = {"branch": options.branch, "message": options.message, "steps": steps}
        headers = _key(options.idempotency_key)
        path = "/write"
        if options.if_commit is not None:
            path, headers[IF_COMMIT] = "/write/if-graph-commit", options.if_commit
        safe = options.idempotency_key is not None
        timed = content | {"timeout": options.timeout}
        return self._http.json("POST", path, timed, headers=headers, safe=safe)

    def load(
        self,
        source: Any,
        mode: str = "merge",
        branch: str = "main",
        create_from: str | None = None,
        engine: str = "auto",
        message: str | None = None,
        actor: str | None = None,  # noqa: ARG002  the token says who
        idempotency_key: str | None = None,
        *,
        timeout: float | None = None,
        options: Any = None,
        progress: Any = None,
        violations: Any = True,
    ) -> LoadResult:
        """Load records, files or tables as one commit; they are streamed."""
        folder = None if isinstance(violations, bool) else violations
        _decided_there(timeout=timeout, options=options, progress=progress, violations=folder)
        if engine not in ("auto", "local"):
            raise OptionInvalid("a server loads itself; engine must be 'auto'")
        upload = upload_of(source)
        asked = Asked(
            "POST",
            "/load",
            {"mode": mode, "branch": branch, "from": create_from, "message": message},
            upload.body,
            {"Content-Type": upload.media, **_key(idempotency_key), **_patience(source)},
            safe=idempotency_key is not None,
            repeatable=upload.repeatable,
        )
        metrics.progress("sending")
        return shapes.loaded(settled(self._http, self._http.send(asked, decoded)))

    # --- long work ---------------------------------------------------------------------------------------------

    def jobs(self) -> list[Job]:
        """Your loads and exports that go on alone, newest first."""
        return jobs(self._http)

    def job(self, id: str) -> Job:
        """One of them; `wait` on it, or `cancel` it."""
        return job(self._http, id)

    def plan_schema(
        self, text: str, branch: str = "main", *, allow_data_loss: bool = False
    ) -> shapes.RemotePlan:
        """What applying a schema would do."""
        content = _schema(text, branch, allow_data_loss=allow_data_loss)
        told = self._http.json("POST", "/schema/plan", content, safe=True)
        return shapes.RemotePlan(told["supported"], _steps(told))

    def apply_schema(
        self,
        text: str,
        branch: str = "main",
        allow_data_loss: bool = False,
        message: str | None = None,
        actor: str | None = None,  # noqa: ARG002  the token says who
        *,
        timeout: float | None = None,
    ) -> shapes.RemotePlan:
        """Bring a schema into force, as one commit."""
        _decided_there(timeout=timeout)
        content = _schema(text, branch, allow_data_loss=allow_data_loss) | {"message": message}
        told = self._http.json("POST", "/schema/apply", content)
        commit = shapes.commit_of(told["commit"])
        return shapes.RemotePlan(told["supported"], _steps(told), told["applied"], commit)

    # --- branches, tags, history -------------------------------------------------------------------------------

    def branches(self) -> list[str]:
        """The names of all branches, main first."""
        found = self._http.json("GET", "/branches", safe=True)["branches"]
        return sorted(found, key=lambda name: (name != "main", name))

    def create_branch(self, name: str, from_: str = "main", *, actor: str | None = None) -> None:  # noqa: ARG002
        """Make a branch."""
        self._http.json("POST", "/branches", {"name": name, "from": from_})

    def delete_branch(self, name: str, *, actor: str | None = None) -> None:  # noqa: ARG002
        """Delete a branch."""
        self._http.json("DELETE", f"/branches/{segment(name)}")

    def tag(
        self,
        name: str,
        at: object = None,
        *,
        branch: str = "main",
        actor: str | None = None,  # noqa: ARG002
    ) -> str:
        """Name a commit. Returns its id."""
        content = {"name": name, "at": _point(at), "branch": branch}
        return str(self._http.json("POST", "/tags", content)["graph_commit_id"])

    def delete_tag(self, name: str) -> None:
        """Take a tag away."""
        self._http.json("DELETE", f"/tags/{segment(name)}")

    def tags(self) -> dict[str, str]:
        """All tags and the ids of their commits."""
        found = self._http.json("GET", "/tags", safe=True)["tags"]
        return {tag["name"]: tag["graph_commit_id"] for tag in found}

    def log(
        self,
        branch: str = "main",
        limit: int | None = 50,
        actor: str | None = None,
        kind: str | None = None,
        *,
        at: object = None,
        maintenance: bool = False,
    ) -> list[Commit]:
        """The commits that led to the head of a branch, newest first."""
        query = _at(branch, at) | {"limit": limit, "actor": actor, "kind": kind}
        query["maintenance"] = "true" if maintenance else None
        found = self._http.json("GET", "/commits", query=query, safe=True)["commits"]
        return [commit for told in found if (commit := shapes.commit_of(told)) is not None]

    def commit(self, id: str) -> Commit:
        """One commit by its id."""
        found = shapes.commit_of(self._http.json("GET", f"/commits/{segment(id)}", safe=True))
        assert found is not None  # noqa: S101  a commit that was found is told
        return found

    def history(
        self, type: str, id: str, branch: str = "main", at: object = None, limit: int = 50
    ) -> EntityHistory:
        """What happened to one node or edge, newest first."""
        path = f"/entities/{segment(type)}/{segment(id)}/history"
        told = self._http.json("GET", path, query=_at(branch, at) | {"limit": limit}, safe=True)
        return shapes.entity_history(told)

    # --- merging -----------------------------------------------------------------------------------------------

    def merge(
        self,
        source: str,
        into: str = "main",
        dry_run: bool = False,
        *,
        strategy: str | Mapping[str, str] | None = None,
        resolutions: Sequence[Mapping[str, Any]] | None = None,
        message: str | None = None,
        actor: str | None = None,  # noqa: ARG002  the token says who
        timeout: float | None = None,
    ) -> MergeResult:
        """Bring what a branch did to another; conflicts are an outcome."""
        _decided_there(timeout=timeout)
        content = {"source": source, "target": into, "dry_run": dry_run, "message": message}
        decided = {"strategy": strategy, "resolutions": resolutions}
        return self._merged("/branches/merge", content | decided)

    def revert(
        self,
        commit: str,
        branch: str = "main",
        dry_run: bool = False,
        *,
        strategy: str | Mapping[str, str] | None = None,
        resolutions: Sequence[Mapping[str, Any]] | None = None,
        message: str | None = None,
        actor: str | None = None,  # noqa: ARG002  the token says who
        timeout: float | None = None,
    ) -> MergeResult:
        """Undo a commit by publishing its inverse."""
        _decided_there(timeout=timeout)
        content = {"commit": commit, "branch": branch, "dry_run": dry_run, "message": message}
        decided = {"strategy": strategy, "resolutions": resolutions}
        return self._merged("/revert", content | decided)

    def cherry_pick(
        self,
        commit: str,
        branch: str = "main",
        dry_run: bool = False,
        *,
        strategy: str | Mapping[str, str] | None = None,
        resolutions: Sequence[Mapping[str, Any]] | None = None,
        message: str | None = None,
        actor: str | None = None,  # noqa: ARG002  the token says who
        timeout: float | None = None,
    ) -> MergeResult:
        """Do what one commit did on a branch."""
        _decided_there(timeout=timeout)
        content = {"commit": commit, "branch": branch, "dry_run": dry_run, "message": message}
        decided = {"strategy": strategy, "resolutions": resolutions}
        return self._merged("/cherry-pick", content | decided)

    def reset(
        self,
        to: object,
        branch: str = "main",
        *,
        message: str | None = None,
        actor: str | None = None,  # noqa: ARG002  the token says who
        timeout: float | None = None,
    ) -> MergeResult:
        """Make a branch what it was at another point."""
        _decided_there(timeout=timeout)
        content = {"commit": _point(to), "branch": branch, "message": message}
        return self._merged("/reset", content)

    def _merged(self, path: str, content: Mapping[str, Any]) -> MergeResult:
        try:
            return shapes.merged(self._http.json("POST", path, content))
        except OmnigraphError as error:
            if error.code != "merge_conflicts":
                raise
            return shapes.conflicted(error.details["merge_conflicts"])

    def diff(
        self,
        a: object,
        b: object,
        *,
        branch: str = "main",
        types: Sequence[str] | None = None,
        operations: Sequence[str] | None = None,
    ) -> shapes.RemoteDiff:
        """What turns one point into another."""
        query: dict[str, Any] = {"a": _point(a), "b": _point(b), "branch": branch}
        query |= {"limit": DIFF_ROWS_MAX, "types": types, "op": operations}
        told = self._http.json("GET", "/diff", query=query, safe=True)
        rows = [RowDiff(**row) for row in told["rows"]]
        return shapes.RemoteDiff(
            told["from"], told["to"], told["counts"], tuple(told["schema"]), rows, told["truncated"]
        )

    def changes(
        self,
        after: str | None = None,
        branch: str = "main",
        types: Sequence[str] | None = None,
        operations: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> RemoteFeed:
        """The changes after a commit, in order."""
        start = "beginning" if after is None else f"after:{after}"
        query = {"branch": branch, "type": types, "op": operations}
        begin = partial(self._baseline, branch, types)
        return RemoteFeed(self._pages, query, start, after, limit, begin)

    def _baseline(self, branch: str, types: Sequence[str] | None) -> RemoteBaseline:
        state = self.snapshot(branch)
        chosen = [key for key in state.rows if types is None or key[1] in types]
        kinds = sorted(chosen, key=lambda key: (key[0] != "node", key[1]))
        return RemoteBaseline(state.commit_id, tuple(kinds), self._rows_of)

    def _rows_of(self, type: str, commit: str) -> pa.Table:
        query, headers = {"at": commit, "types": [type]}, {"Accept": ARROW}
        asked = Asked("GET", "/export", query, headers=headers, safe=True)
        return self._http.send(asked, lambda answer: pa.ipc.open_stream(answer).read_all())

    def _pages(self, query: Mapping[str, Any]) -> Any:
        return self._http.json("GET", "/changes", query=query, safe=True)


def _table(answer: Answer) -> shapes.RemoteResult:
    table = pa.ipc.open_stream(answer).read_all()
    return shapes.RemoteResult(table, answer.headers[COMMIT_HEADER])


def _patience(source: Any) -> dict[str, str]:
    """Much is loaded as a job, so that no connection has to last as long as the load."""
    return {"Prefer": "respond-async"} if bytes_in(source) > STREAMED_BYTES_MAX else {}


def _decided_there(**given: Any) -> None:
    """Refuse what only the server decides, rather than ignore it."""
    for name, value in given.items():
        if value is not None:
            raise NotServed(f"{name} is not an option of a served graph: its server decides")


def _point(at: object) -> str | None:
    if at is None or isinstance(at, str):
        return at
    if hasattr(at, "isoformat"):
        return str(at.isoformat())
    raise OptionInvalid(f"{at!r} is not a commit, tag, branch or time")


def _at(branch: str, at: object) -> dict[str, Any]:
    return {"branch": branch, "at": _point(at)}


def _key(key: str | None) -> dict[str, str]:
    return {} if key is None else {"Idempotency-Key": key}


def _schema(text: str, branch: str, *, allow_data_loss: bool) -> dict[str, Any]:
    if isinstance(text, os.PathLike) or (text.strip().endswith(".pg") and "{" not in text):
        text = Path(text).read_text(encoding="utf-8")
    return {"schema_source": text, "branch": branch, "allow_data_loss": allow_data_loss}


def _steps(told: Mapping[str, Any]) -> tuple[shapes.RemoteStep, ...]:
    return tuple(shapes.RemoteStep(step) for step in told["steps"])
