"""Responses. Names and order of fields are what published clients read.

Optional fields of a response are unset; all others are present, if only as null.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

import msgspec
from msgspec import UNSET, UnsetType, field

from omnigraph.core.layout import parse_commit_id
from omnigraph.core.snapshot import Snapshot
from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.merge.conflicts import Conflict
from omnigraph.merge.diff import Diff, RowDiff
from omnigraph.model.instants import micros_of, time_of
from omnigraph.outcomes import (
    Commit,
    CommitLog,
    EntityChange,
    EntityHistory,
    LoadResult,
    MergeResult,
    MutateResult,
    SchemaResult,
)
from omnigraph.values.spelling import to_json
from omnigraph.wire.requests import LoadRequest

if TYPE_CHECKING:
    from omnigraph.lang.schema.migrate import MigrationPlan
    from omnigraph.lang.schema.steps import Step

COMPATIBLE_VERSION = "0.10.0"  # clients compare it with the version they were made for
INTERNAL_SCHEMA_VERSION = 6

# --- commits -----------------------------------------------------------------------------------------------------


class TypeCounts(msgspec.Struct, frozen=True):
    type_name: str
    inserted: int
    updated: int
    deleted: int


def type_counts(counts: Mapping[str, Mapping[str, int]]) -> list[TypeCounts]:
    return [TypeCounts(name, **found) for name, found in sorted(counts.items())]


def counts_of(given: list[TypeCounts]) -> dict[str, dict[str, int]]:
    names = ("inserted", "updated", "deleted")
    return {entry.type_name: {name: getattr(entry, name) for name in names} for entry in given}


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
    proposal: int | UnsetType = UNSET
    checks: dict[str, str] | UnsetType = UNSET
    load: dict[str, Any] | UnsetType = UNSET

    @classmethod
    def of(cls, commit: Commit) -> Self:
        """The only form of a commit: receipts and lookups must be identical."""
        parents = commit.parents
        return cls(
            graph_commit_id=commit.id,
            graph_branch=None if commit.branch == "main" else commit.branch,
            graph_manifest_version=parse_commit_id(commit.id)[1],
            parent_commit_id=parents[0] if parents else None,
            merged_parent_commit_id=parents[1] if len(parents) > 1 else None,
            actor_id=commit.actor,
            created_at=micros_of(commit.time),
            kind=commit.kind,
            message=commit.message,
            changes=type_counts(commit.changes),
            proposal=UNSET if commit.proposal is None else commit.proposal,
            checks=dict(commit.checks) or UNSET,
            load=dict(commit.load) or UNSET,
        )

    def value(self) -> Commit:
        parents = (self.parent_commit_id, self.merged_parent_commit_id)
        return Commit(
            id=self.graph_commit_id,
            parents=tuple(parent for parent in parents if parent is not None),
            branch=self.graph_branch or "main",
            actor=self.actor_id,
            time=time_of(self.created_at),
            kind=self.kind,
            message=self.message,
            changes=counts_of(self.changes),
            proposal=None if self.proposal is UNSET else self.proposal,
            checks={} if self.checks is UNSET else self.checks,
            load={} if self.load is UNSET else self.load,
        )


def maybe_commit(commit: Commit | None) -> CommitOutput | None:
    return None if commit is None else CommitOutput.of(commit)


def commit_of(given: CommitOutput | None) -> Commit | None:
    return None if given is None else given.value()


class CommitsOutput(msgspec.Struct, frozen=True):
    """`next` is where to read on (`at`), if a bound of the server ended the answer."""

    commits: list[CommitOutput]
    next: str | UnsetType = UNSET

    def value(self) -> CommitLog:
        return CommitLog(commit.value() for commit in self.commits)


class Named(msgspec.Struct, frozen=True):
    name: str
    graph_commit_id: str


class HistoryOutput(msgspec.Struct, frozen=True):
    commits: list[CommitOutput]
    parents: dict[str, list[str]]  # of each commit, if shown
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

    @classmethod
    def of(cls, found: EntityHistory) -> Self:
        changes = [
            EntityChangeOutput(
                CommitOutput.of(c.commit), c.operation, _seen(c.before), _seen(c.after)
            )
            for c in found.changes
        ]
        return cls(changes, found.rest)

    def value(self) -> EntityHistory:
        changes = (
            EntityChange(c.commit.value(), c.operation, c.before, c.after) for c in self.changes
        )
        return EntityHistory(tuple(changes), self.next)


def _seen(row: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A row as shown in a history: of blobs only their size."""
    if row is None:
        return None
    return {
        name: {"blob_bytes": len(value)} if isinstance(value, bytes) else to_json(value)
        for name, value in row.items()
    }


class DiffOutput(msgspec.Struct, frozen=True):
    from_commit: str = field(name="from")
    to_commit: str = field(name="to")
    counts: dict[str, dict[str, int]]
    schema: list[dict[str, Any]]
    rows: list[RowDiff]
    truncated: bool

    @classmethod
    def of(cls, found: Diff, limit: int) -> Self:
        """The counts and the first rows of a difference."""
        rows = [
            replace(row, before=to_json(row.before), after=to_json(row.after))
            for row in islice(found, limit)
        ]
        total = sum(n for counts in found.counts.values() for n in counts.values())
        schema = [dict(step) for step in found.schema]
        return cls(found.from_commit, found.to_commit, found.counts, schema, rows, total > limit)


# --- reading -----------------------------------------------------------------------------------------------------


class DatasetOutput(msgspec.Struct, frozen=True):
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
    datasets: list[DatasetOutput]

    @classmethod
    def of(cls, snapshot: Snapshot, branch: str) -> Self:
        tables = sorted(snapshot.commit.tables.values(), key=lambda t: (t.kind, t.type_name))
        return cls(
            graph_branch=branch,
            graph_manifest_version=parse_commit_id(snapshot.commit_id)[1],
            internal_schema_version=INTERNAL_SCHEMA_VERSION,
            graph_commit_id=snapshot.commit_id,
            datasets=[
                DatasetOutput(t.kind, t.type_name, t.path, int(t.version), None, t.rows)
                for t in tables
            ],
        )


class SchemaOutput(msgspec.Struct, frozen=True):
    schema_source: str

    def value(self) -> str:
        return self.schema_source


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


# --- writing -----------------------------------------------------------------------------------------------------


class ChangeOutput(msgspec.Struct, frozen=True):
    branch: str
    query_name: str
    affected_nodes: int
    affected_edges: int
    actor_id: str | None
    commit: CommitOutput | None
    replayed: bool | UnsetType = UNSET
    columns: list[str] | UnsetType = UNSET
    column_types: list[str] | UnsetType = UNSET
    rows: list[dict[str, Any]] | UnsetType = UNSET
    outcome: dict[str, str] | UnsetType = UNSET

    @classmethod
    def of(cls, done: MutateResult, branch: str, name: str, actor: str | None) -> Self:
        result = done.result
        return cls(
            branch=branch,
            query_name=name,
            affected_nodes=done.affected_nodes,
            affected_edges=done.affected_edges,
            actor_id=actor,
            commit=maybe_commit(done.commit),
            replayed=done.replayed or UNSET,
            columns=UNSET if result is None else result.columns,
            column_types=UNSET if result is None else [str(kind) for kind in result.types],
            rows=UNSET if result is None else result.json_rows(),
            outcome=UNSET if done.outcome is None else dict(done.outcome),
        )

    def value(self) -> MutateResult:
        commit, replayed = commit_of(self.commit), self.replayed is True
        outcome = None if isinstance(self.outcome, UnsetType) else self.outcome
        return MutateResult(
            self.affected_nodes, self.affected_edges, commit, replayed, outcome=outcome
        )


class LoadedType(msgspec.Struct, frozen=True):
    name: str
    entities_loaded: int


def loaded(counts: Mapping[str, int]) -> list[LoadedType]:
    """The row count of each type, by name."""
    return [LoadedType(name, count) for name, count in sorted(counts.items())]


def _counted(given: list[LoadedType]) -> dict[str, int]:
    return {entry.name: entry.entities_loaded for entry in given}


class LoadOutput(msgspec.Struct, frozen=True, kw_only=True):
    uri: str | UnsetType = UNSET
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
    quarantined: list[LoadedType] | UnsetType = UNSET
    rows: dict[str, dict[str, int]] | UnsetType = UNSET
    cost: dict[str, Any] | UnsetType = UNSET

    @classmethod
    def of(
        cls, done: LoadResult, asked: LoadRequest, actor: str | None, uri: str | UnsetType
    ) -> Self:
        return cls(
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
            quarantined=loaded(done.quarantined) or UNSET,
            rows={name: dict(counts) for name, counts in done.rows.items()} or UNSET,
            cost=dict(done.cost) or UNSET,
        )

    def value(self) -> LoadResult:
        return LoadResult(
            commit=commit_of(self.commit),
            branch=self.branch,
            branch_created=self.branch_created,
            nodes=_counted(self.nodes),
            edges=_counted(self.edges),
            engine="server",
            replayed=self.replayed,
            new_each_time=_counted(self.new_each_time),
            quarantined=_counted(self.quarantined or []),
            rows=self.rows or {},
            cost=self.cost or {},
        )


class CheckedOutput(msgspec.Struct, frozen=True):
    nodes: list[LoadedType]
    edges: list[LoadedType]


class WriteOutput(msgspec.Struct, frozen=True):
    """`steps` has for each step the counts of `POST /mutate` or `POST /load`."""

    branch: str
    actor_id: str | None
    commit: CommitOutput | None
    replayed: bool
    steps: list[dict[str, Any]]


class PlanOutput(msgspec.Struct, frozen=True):
    supported: bool
    step_count: int
    steps: list[dict[str, Any]]
    diagnostics: list[Diagnostic] = field(default_factory=list)

    @classmethod
    def of(cls, plan: MigrationPlan) -> Self:
        steps = [step.to_json() for step in plan.steps]
        return cls(plan.supported, len(steps), steps, list(plan.diagnostics))

    def value(self) -> MigrationPlan:
        from omnigraph.lang.schema.migrate import MigrationPlan

        return MigrationPlan(self.supported, _steps(self.steps), tuple(self.diagnostics))


class AppliedOutput(msgspec.Struct, frozen=True):
    uri: str
    supported: bool
    applied: bool
    step_count: int
    graph_manifest_version: int
    steps: list[dict[str, Any]]
    commit: CommitOutput | None

    @classmethod
    def of(cls, done: SchemaResult, uri: str, head: Snapshot) -> Self:
        return cls(
            uri=uri,
            supported=done.supported,
            applied=done.applied,
            step_count=len(done.steps),
            graph_manifest_version=parse_commit_id(head.commit_id)[1],
            steps=[step.to_json() for step in done.steps],
            commit=maybe_commit(done.commit),
        )

    def value(self) -> SchemaResult:
        steps = _steps(self.steps)
        return SchemaResult(self.supported, steps, self.applied, commit_of(self.commit))


def _steps(given: list[dict[str, Any]]) -> tuple[Step, ...]:
    from omnigraph.lang.schema.steps import step_of

    return tuple(map(step_of, given))


# --- branches and merges -----------------------------------------------------------------------------------------


class BranchesOutput(msgspec.Struct, frozen=True):
    branches: list[str]

    def value(self) -> list[str]:
        return sorted(self.branches, key=lambda name: (name != "main", name))


class BranchOutput(msgspec.Struct, frozen=True):
    uri: str
    name: str
    actor_id: str | None
    from_: str | UnsetType = field(default=UNSET, name="from")

    def value(self) -> None:
        return None


class TagsOutput(msgspec.Struct, frozen=True):
    tags: list[Named]

    def value(self) -> dict[str, str]:
        return {tag.name: tag.graph_commit_id for tag in self.tags}


class TagOutput(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    graph_commit_id: str | UnsetType = UNSET
    actor_id: str | None

    def value(self) -> str | None:
        return None if self.graph_commit_id is UNSET else self.graph_commit_id


class MergeOutput(msgspec.Struct, frozen=True):
    source: str
    target: str
    outcome: str
    actor_id: str | None
    commit: CommitOutput | None
    counts: list[TypeCounts]
    branch_deleted: bool | UnsetType = UNSET
    branch_delete_error: str | UnsetType = UNSET

    @classmethod
    def of(cls, done: MergeResult, source: str, target: str, actor: str | None) -> Self:
        return cls(
            source=source,
            target=target,
            outcome=done.outcome,
            actor_id=actor,
            commit=maybe_commit(done.commit),
            counts=type_counts(done.counts),
        )

    def value(self) -> MergeResult:
        return MergeResult(self.outcome, commit_of(self.commit), counts=counts_of(self.counts))


class ConflictOutput(msgspec.Struct, frozen=True, kw_only=True):
    entity_kind: str
    type_name: str
    entity_id: str | UnsetType = UNSET
    kind: str
    message: str
    field: str | None = None
    base: Any = None
    ours: Any = None
    theirs: Any = None

    @classmethod
    def of(cls, conflict: Conflict, entity_kind: str) -> Self:
        return cls(
            entity_kind=entity_kind,
            type_name=conflict.type,
            entity_id=UNSET if conflict.id is None else conflict.id,
            kind=conflict.kind,
            message=conflict.message or f"{conflict.kind} of {conflict.type} {conflict.id}",
            field=conflict.field,
            base=to_json(conflict.base),
            ours=to_json(conflict.ours),
            theirs=to_json(conflict.theirs),
        )

    def value(self) -> Conflict:
        return Conflict(
            kind=self.kind,
            type=self.type_name,
            id=None if self.entity_id is UNSET else self.entity_id,
            field=self.field,
            base=self.base,
            ours=self.ours,
            theirs=self.theirs,
            message=self.message,
        )
