"""The verbs of a graph, over HTTP."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from omnigraph.errors import OmnigraphError, OptionInvalid
from omnigraph.merge.diff import RowDiff
from omnigraph.merge.feed import Change
from omnigraph.outcomes import Commit, EntityHistory, LoadResult, MergeResult, MutateResult
from omnigraph.read.export import MANIFEST, Exported, Part
from omnigraph.remote import shapes
from omnigraph.remote.sources import upload_of
from omnigraph.remote.transport import Answer, Asked, NotServed, Transport, decoded, segment

ARROW = "application/vnd.apache.arrow.stream"
IF_COMMIT = "Omnigraph-If-Graph-Commit"
COMMIT_HEADER = "Omnigraph-Graph-Commit"
FORMATS = {
    "ndjson": "application/x-ndjson",
    "arrow": ARROW,
    "parquet": "application/vnd.apache.parquet",
}
DIFF_ROWS_MAX = 10_000
CHUNK_BYTES = 1 << 20
UNSERVED = ("optimize", "cleanup", "doctor", "clone", "upkeep", "publish", "spark", "check_load")


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
        raw = msgspec.json.encode(content, enc_hook=str)
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
        return shapes.RemoteSnapshot(told["graph_commit_id"], told["graph_branch"], rows)

    def export(
        self,
        dest: str | os.PathLike[str],
        format: str = "ndjson",
        branch: str = "main",
        at: object = None,
        types: Sequence[str] | None = None,
        engine: str = "auto",  # noqa: ARG002  a server has one
    ) -> Exported:
        """Write one state to files in the folder `dest`: ndjson, parquet or arrow."""
        if format not in FORMATS:
            raise OptionInvalid(f"format is one of {', '.join(FORMATS)}, not {format!r}")
        snapshot = self.snapshot(branch, at)
        folder = Path(dest)
        folder.mkdir(parents=True, exist_ok=True)
        chosen = {k: n for k, n in snapshot.rows.items() if types is None or k[1] in types}
        parts = tuple(
            self._part(folder, kind, name, rows, format, snapshot.commit_id)
            for (kind, name), rows in sorted(chosen.items(), key=lambda k: k[0][0] != "node")
        )
        done = Exported(snapshot.commit_id, format, parts)
        (folder / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(done), indent=2))
        return done

    def _part(
        self, folder: Path, kind: str, name: str, rows: int, format: str, commit: str
    ) -> Part:
        file = f"{kind}-{name}.{format}"
        query = {"at": commit, "types": [name]}
        headers = {"Accept": FORMATS[format]}
        asked = Asked("GET", "/export", query, headers=headers, safe=True)
        partial = folder / f".{file}.partial"
        size, digest = self._http.send(asked, lambda answer: _saved(answer, partial))
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
    ) -> LoadResult:
        """Load records, files or tables as one commit; they are streamed."""
        if engine not in ("auto", "local"):
            raise OptionInvalid("a server loads itself; engine must be 'auto'")
        upload = upload_of(source)
        asked = Asked(
            "POST",
            "/load",
            {"mode": mode, "branch": branch, "from": create_from, "message": message},
            upload.body,
            {"Content-Type": upload.media, **_key(idempotency_key)},
            safe=idempotency_key is not None,
            repeatable=upload.repeatable,
        )
        return shapes.loaded(self._http.send(asked, decoded))

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
    ) -> shapes.RemotePlan:
        """Bring a schema into force, as one commit."""
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
    ) -> MergeResult:
        """Bring what a branch did to another; conflicts are an outcome."""
        content = {"source": source, "target": into, "dry_run": dry_run, "message": message}
        decided = {"strategy": strategy, "resolutions": resolutions}
        return self._merged("/branches/merge", content | decided)

    def revert(
        self, commit: str, branch: str = "main", dry_run: bool = False, **more: Any
    ) -> MergeResult:
        """Undo a commit by publishing its inverse."""
        return self._undo("/revert", commit, branch, dry_run, more)

    def cherry_pick(
        self, commit: str, branch: str = "main", dry_run: bool = False, **more: Any
    ) -> MergeResult:
        """Do what one commit did on a branch."""
        return self._undo("/cherry-pick", commit, branch, dry_run, more)

    def reset(
        self,
        to: object,
        branch: str = "main",
        *,
        message: str | None = None,
        actor: str | None = None,  # noqa: ARG002  the token says who
    ) -> MergeResult:
        """Make a branch what it was at another point."""
        content = {"commit": _point(to), "branch": branch, "message": message}
        return self._merged("/reset", content)

    def _undo(
        self, path: str, commit: str, branch: str, dry_run: bool, more: Mapping[str, Any]
    ) -> MergeResult:
        content = {"commit": commit, "branch": branch, "dry_run": dry_run}
        names = ("strategy", "resolutions", "message")
        return self._merged(path, content | {name: more.get(name) for name in names})

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
        return RemoteFeed(self._pages, query, start, after, limit)

    def _pages(self, query: Mapping[str, Any]) -> Any:
        return self._http.json("GET", "/changes", query=query, safe=True)


@dataclass(frozen=True, slots=True)
class RemoteFeed:
    """The changes of a branch after a commit; iterating reads them page by page."""

    pages: Callable[[Mapping[str, Any]], Any]
    query: Mapping[str, Any]
    start: str
    after: str | None
    limit: int | None  # commits

    def commits(self) -> Iterator[tuple[str, list[Change]]]:
        """The id of each commit and its changes."""
        return islice(self._commits(), self.limit)

    def _commits(self) -> Iterator[tuple[str, list[Change]]]:
        held: tuple[str, list[Change]] | None = None
        for block in self._blocks():
            id = block["cause"]["graph_commit_id"]
            found = [shapes.change_of(id, change) for change in block["changes"]]
            if held is not None and held[0] == id:  # a commit may go on on the next page
                held[1].extend(found)
                continue
            if held is not None:
                yield held
            held = (id, found)
        if held is not None:
            yield held

    def _blocks(self) -> Iterator[Mapping[str, Any]]:
        position: dict[str, Any] = {"start": self.start}
        while True:
            page = self.pages({**self.query, **position})
            yield from page["blocks"]
            if "next_page_token" in page:
                position = {"page_token": page["next_page_token"]}
            elif page["caught_up"]:
                return
            else:
                position = {"cursor": page["cursor"]}

    def __iter__(self) -> Iterator[Change]:
        for _, changes in self.commits():
            yield from changes

    @property
    def cursor(self) -> str:
        """Where this feed ends: `after` for the next one."""
        last = self.after or ""
        for id, _ in self.commits():
            last = id
        return last


def _table(answer: Answer) -> shapes.RemoteResult:
    table = pa.ipc.open_stream(answer).read_all()
    return shapes.RemoteResult(table, answer.headers[COMMIT_HEADER])


def _saved(answer: Answer, path: Path) -> tuple[int, str]:
    """The size and digest of an answer, written to a file as it comes."""
    digest, size = hashlib.sha256(), 0
    with open(path, "wb") as out:
        for block in answer.stream(CHUNK_BYTES):
            out.write(block)
            digest.update(block)
            size += len(block)
    return size, digest.hexdigest()


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
