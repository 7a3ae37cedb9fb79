"""The shapes of requests and answers. Names and order of fields are what published clients read.

Fields of an answer that may be left out are unset; all others are there, if only as null.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, UnsetType

from omnigraph.core.layout import parse_commit_id
from omnigraph.core.snapshot import Snapshot
from omnigraph.model.names import canonical
from omnigraph.outcomes import Commit, LoadResult, MergeResult, MutateResult

COMPATIBLE_VERSION = "0.10.0"  # clients compare it with the version they were made for
INTERNAL_SCHEMA_VERSION = 6
Mode = Literal["append", "merge", "overwrite"]
Name = Annotated[str, msgspec.Meta(max_length=1024)]  # of a branch, or an address
Message = Annotated[str, msgspec.Meta(max_length=4096)]  # of a commit


class Spelled(msgspec.Struct, frozen=True):
    """What a request says. Branches, tags and points have one spelling before anything looks at them."""

    names: ClassVar[frozenset[str]] = frozenset(
        ("branch", "create_from", "source", "target", "at", "snapshot", "commit", "a", "b", "start")
    )

    def __post_init__(self) -> None:
        for name in self.names.intersection(self.__struct_fields__):
            given = getattr(self, name)
            if given is not None:
                msgspec.structs.force_setattr(self, name, canonical(given))


class Request(Spelled, frozen=True):
    """A body or query string; fields nobody knows are ignored."""


class StrictRequest(Spelled, frozen=True, forbid_unknown_fields=True):
    """A body or query string whose fields are all known."""


# --- requests ----------------------------------------------------------------------------------------------------


class QueryRequest(Request, frozen=True):
    query: str | None = None
    query_source: str | None = None
    name: str | None = None
    query_name: str | None = None
    params: dict[str, Any] | None = None
    branch: str | None = None
    snapshot: str | None = None
    at: str | None = None
    max_rows: int | None = None
    timeout: float | None = None
    explain: bool = False


class MutateRequest(Request, frozen=True):
    query: str | None = None
    query_source: str | None = None
    name: str | None = None
    query_name: str | None = None
    params: dict[str, Any] | None = None
    branch: str | None = None
    message: Message | None = None
    timeout: float | None = None
    dry_run: bool = False


class InvokeRequest(Request, frozen=True):
    params: dict[str, Any] | None = None
    branch: str | None = None
    snapshot: str | None = None
    expect_mutation: bool | None = None


class LoadRequest(Request, frozen=True, rename={"create_from": "from"}):
    """`data` holds NDJSON; `uri` names where it is instead. A stream has neither: its body is the data."""

    data: str | None = None
    uri: Name | None = None
    branch: Name | None = None
    create_from: Name | None = None
    mode: Mode = "merge"
    message: Message | None = None


class ExportRequest(StrictRequest, frozen=True):
    branch: str | None = None
    type_names: list[str] | None = None
    order: Literal["id"] | None = None


class ExportQuery(Request, frozen=True):
    branch: str | None = None
    at: str | None = None
    types: list[str] | None = None
    order: Literal["id"] | None = None


class BaselineRequest(StrictRequest, frozen=True):
    branch: str | None = None
    kind: list[Literal["node", "edge"]] | None = None
    type: list[str] | None = None
    op: list[Literal["insert", "update", "delete"]] | None = None


class BranchQuery(Request, frozen=True):
    branch: str | None = None
    at: str | None = None


class CommitsQuery(Request, frozen=True):
    branch: str | None = None
    at: str | None = None
    limit: int | None = None
    actor: str | None = None
    kind: str | None = None
    maintenance: bool = False


class DiffQuery(Request, frozen=True):
    a: str
    b: str
    branch: str | None = None
    types: list[str] | None = None
    op: list[Literal["insert", "update", "delete"]] | None = None
    limit: int = 1000


class PageQuery(StrictRequest, frozen=True):
    page_token: str | None = None
    limit: int | None = None
    kind: list[Literal["node", "edge"]] | None = None
    type: list[str] | None = None
    op: list[Literal["insert", "update", "delete"]] | None = None


class FeedQuery(PageQuery, frozen=True):
    branch: str | None = None
    cursor: str | None = None
    start: str | None = None


class BlobQuery(Request, frozen=True):
    entity: Literal["node", "edge"]
    type: str
    id: str
    property: str
    branch: str | None = None
    snapshot: str | None = None


class BranchRequest(Request, frozen=True, rename={"start": "from"}):
    names = Request.names | {"name"}
    name: str
    start: str | None = None


class MergeRequest(Request, frozen=True):
    source: str
    target: str | None = None
    delete_branch: bool | None = None
    dry_run: bool = False
    strategy: str | dict[str, str] | None = None
    resolutions: list[dict[str, Any]] | None = None
    message: Message | None = None


class UndoRequest(Request, frozen=True):
    commit: str
    branch: str | None = None
    dry_run: bool = False
    strategy: str | dict[str, str] | None = None
    resolutions: list[dict[str, Any]] | None = None
    message: Message | None = None


class TagRequest(Request, frozen=True):
    names = Request.names | {"name"}
    name: str
    at: str | None = None
    branch: str | None = None


class SchemaRequest(Request, frozen=True):
    schema_source: str
    branch: str | None = None
    allow_data_loss: bool = False
    message: Message | None = None


class HistoryQuery(Request, frozen=True):
    limit: int | None = None
    before: int | None = None


class EntityHistoryQuery(Request, frozen=True):
    branch: str | None = None
    at: str | None = None
    limit: int | None = None


class PermissionsQuery(Request, frozen=True):
    branch: str | None = None


class QueryCheckRequest(Request, frozen=True):
    query: str
    branch: str | None = None
    at: str | None = None


class SchemaCheckRequest(Request, frozen=True):
    schema_source: str


FileFormat = Literal["csv", "tsv", "ndjson", "parquet", "arrow"]


class PreviewRequest(Request, frozen=True):
    format: FileFormat = "csv"
    branch: str | None = None


class ImportRequest(Request, frozen=True, rename={"create_from": "from"}):
    """`columns` is JSON: names in the file, and the properties they fill. Without `type`, lines are graph records."""

    type: str | None = None
    format: FileFormat = "csv"
    columns: str | None = None
    branch: str | None = None
    create_from: str | None = None
    mode: Mode = "merge"
    message: Message | None = None
    check: bool = False


# --- answers -----------------------------------------------------------------------------------------------------


class TypeCounts(msgspec.Struct, frozen=True):
    type_name: str
    inserted: int
    updated: int
    deleted: int


class CommitOutput(msgspec.Struct, frozen=True):
    graph_commit_id: str
    graph_branch: str | None
    graph_manifest_version: int
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    actor_id: str | None
    created_at: int
    kind: str
    message: str | None
    changes: list[TypeCounts]


class Target(msgspec.Struct, frozen=True):
    branch: str | None
    snapshot: str | None


class ReadOutput(msgspec.Struct, frozen=True):
    query_name: str
    target: Target
    row_count: int
    columns: list[str] | UnsetType
    rows: list[dict[str, Any]]
    graph_commit_id: str | UnsetType = UNSET
    explain: dict[str, Any] | UnsetType = UNSET


class ChangeOutput(msgspec.Struct, frozen=True):
    branch: str
    query_name: str
    affected_nodes: int
    affected_edges: int
    actor_id: str | None
    commit: CommitOutput | None
    replayed: bool | UnsetType = UNSET


class LoadedType(msgspec.Struct, frozen=True):
    name: str
    entities_loaded: int


class LoadOutput(msgspec.Struct, frozen=True):
    uri: str | UnsetType
    branch: str
    base_branch: str | None
    branch_created: bool
    mode: str
    nodes: list[LoadedType]
    edges: list[LoadedType]
    total_entities: int
    actor_id: str | None
    commit: CommitOutput | None
    replayed: bool
    new_each_time: list[LoadedType]


class MergeOutput(msgspec.Struct, frozen=True):
    source: str
    target: str
    outcome: str
    actor_id: str | None
    commit: CommitOutput | None
    counts: list[TypeCounts]
    branch_deleted: bool | UnsetType = UNSET
    branch_delete_error: str | UnsetType = UNSET


class Dataset(msgspec.Struct, frozen=True):
    entity_kind: str
    type_name: str
    dataset_path: str
    published_dataset_version: int
    native_dataset_branch: str | None
    entity_count: int


class SnapshotOutput(msgspec.Struct, frozen=True):
    graph_branch: str
    graph_manifest_version: int
    internal_schema_version: int
    graph_commit_id: str
    datasets: list[Dataset]


class Named(msgspec.Struct, frozen=True):
    name: str
    graph_commit_id: str


class HistoryOutput(msgspec.Struct, frozen=True):
    commits: list[CommitOutput]
    parents: dict[str, list[str]]  # of each commit, those that are shown
    branches: list[Named]
    tags: list[Named]
    next: int | None


class EntityChangeOutput(msgspec.Struct, frozen=True):
    commit: CommitOutput
    operation: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class EntityHistoryOutput(msgspec.Struct, frozen=True):
    changes: list[EntityChangeOutput]
    next: str | None


class Neighbours(msgspec.Struct, frozen=True):
    edge: str
    direction: str
    type: str
    count: int


class EntityOutput(msgspec.Struct, frozen=True):
    type: str
    kind: str
    id: str
    ends: dict[str, str] | None
    properties: dict[str, Any]
    neighbours: list[Neighbours]
    graph_commit_id: str


class CheckOutput(msgspec.Struct, frozen=True):
    diagnostics: list[dict[str, Any]]
    queries: list[dict[str, Any]]


class SessionGraph(msgspec.Struct, frozen=True):
    graph_id: str


class SessionOutput(msgspec.Struct, frozen=True):
    actor: str | None
    authenticated: bool
    version: str
    graphs: list[SessionGraph]


class PermissionsOutput(msgspec.Struct, frozen=True):
    actor: str | None
    branch: str
    read_only: bool
    actions: dict[str, bool]


class PreviewColumn(msgspec.Struct, frozen=True):
    name: str
    type: str


class PreviewOutput(msgspec.Struct, frozen=True):
    columns: list[PreviewColumn]
    rows: list[dict[str, Any]]
    graph_records: bool


class CheckedOutput(msgspec.Struct, frozen=True):
    nodes: list[LoadedType]
    edges: list[LoadedType]


def commit_output(commit: Commit) -> CommitOutput:
    """The one shape of a commit: receipts and lookups must agree to the letter."""
    parents = commit.parents
    return CommitOutput(
        graph_commit_id=commit.id,
        graph_branch=None if commit.branch == "main" else commit.branch,
        graph_manifest_version=parse_commit_id(commit.id)[1],
        parent_commit_id=parents[0] if parents else None,
        merged_parent_commit_id=parents[1] if len(parents) > 1 else None,
        actor_id=commit.actor,
        created_at=micros(commit.time),
        kind=commit.kind,
        message=commit.message,
        changes=type_counts(commit.changes),
    )


def micros(time: datetime) -> int:
    """Microseconds since 1970, exactly."""
    since = time - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def type_counts(counts: Mapping[str, Mapping[str, int]]) -> list[TypeCounts]:
    return [TypeCounts(name, **found) for name, found in sorted(counts.items())]


def maybe_commit(commit: Commit | None) -> CommitOutput | None:
    return None if commit is None else commit_output(commit)


def change_output(done: MutateResult, branch: str, name: str, actor: str | None) -> ChangeOutput:
    return ChangeOutput(
        branch=branch,
        query_name=name,
        affected_nodes=done.affected_nodes,
        affected_edges=done.affected_edges,
        actor_id=actor,
        commit=maybe_commit(done.commit),
        replayed=done.replayed or UNSET,
    )


def load_output(
    done: LoadResult, asked: LoadRequest, actor: str | None, uri: str | UnsetType
) -> LoadOutput:
    return LoadOutput(
        uri=uri,
        branch=done.branch,
        base_branch=asked.create_from,
        branch_created=done.branch_created,
        mode=asked.mode,
        nodes=loaded(done.nodes),
        edges=loaded(done.edges),
        total_entities=sum(done.nodes.values()) + sum(done.edges.values()),
        actor_id=actor,
        commit=maybe_commit(done.commit),
        replayed=done.replayed,
        new_each_time=loaded(done.new_each_time),
    )


def loaded(counts: Mapping[str, int]) -> list[LoadedType]:
    """How many rows of each type, by name."""
    return [LoadedType(name, count) for name, count in sorted(counts.items())]


def merge_output(done: MergeResult, source: str, target: str, actor: str | None) -> MergeOutput:
    return MergeOutput(
        source=source,
        target=target,
        outcome=done.outcome,
        actor_id=actor,
        commit=maybe_commit(done.commit),
        counts=type_counts(done.counts),
    )


def snapshot_output(snapshot: Snapshot, branch: str) -> SnapshotOutput:
    tables = sorted(snapshot.commit.tables.values(), key=lambda t: (t.kind, t.type_name))
    return SnapshotOutput(
        graph_branch=branch,
        graph_manifest_version=parse_commit_id(snapshot.commit_id)[1],
        internal_schema_version=INTERNAL_SCHEMA_VERSION,
        graph_commit_id=snapshot.commit_id,
        datasets=[
            Dataset(t.kind, t.type_name, t.path, int(t.version), None, t.rows) for t in tables
        ],
    )
