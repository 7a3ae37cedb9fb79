"""The results of the verbs of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from omnigraph.core import history
from omnigraph.core.records import TableChange, type_names
from omnigraph.errors import Kind, OmnigraphError
from omnigraph.model.frozen import frozen
from omnigraph.model.instants import time_of
from omnigraph.values.spelling import fields_json, time_text

if TYPE_CHECKING:
    from omnigraph.core.publisher import Published
    from omnigraph.lang.schema.steps import Step
    from omnigraph.merge.conflicts import Conflict
    from omnigraph.read import Result


@frozen
class Commit:
    """One write in a graph's history."""

    id: str
    parents: tuple[str, ...]
    branch: str
    actor: str | None
    time: datetime
    kind: str
    message: str | None
    changes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # by type name
    proposal: int | None = None  # that it merged
    checks: Mapping[str, str] = field(default_factory=dict)  # results of the checks it had to pass
    load: Mapping[str, Any] = field(default_factory=dict)  # the report of a load

    @classmethod
    def of(cls, entry: history.Entry) -> Commit:
        """The public form of a log entry."""
        names = type_names(entry.commit)
        changed = entry.member.changes if entry.member is not None else {}
        kept = entry.member.result if entry.member is not None else {}
        return cls(
            id=entry.id,
            parents=entry.parents,
            branch=entry.branch,
            actor=entry.actor,
            time=time_of(entry.time),
            kind=entry.kind,
            message=entry.message,
            changes={
                names[table]: _counts(change)
                for table, change in sorted(changed.items())
                if table in names
            },
            proposal=kept.get("proposal"),
            checks=kept.get("checks", {}),
            load=kept if entry.kind == "load" else {},
        )

    @classmethod
    def published(cls, done: Published) -> Commit | None:
        """The commit of a write that just ended; None if there was nothing to do."""
        if done.commit is None:
            return None
        return cls.of(history.entry(done.commit, done.member))

    def to_json(self) -> dict[str, Any]:
        """The shape every surface uses."""
        said: dict[str, Any] = {
            "id": self.id,
            "parents": list(self.parents),
            "branch": self.branch,
            "actor": self.actor,
            "time": time_text(self.time),
            "kind": self.kind,
            "message": self.message,
            "changes": {name: dict(counts) for name, counts in self.changes.items()},
        }
        if self.proposal is not None:
            said["proposal"] = self.proposal
        if self.checks:
            said["checks"] = dict(self.checks)
        if self.load:
            said["load"] = dict(self.load)
        return said

    def _repr_html_(self) -> str:
        from omnigraph.drawing.notebook import commit_html

        return commit_html(self.to_json())


class CommitLog(list[Commit]):
    """Commits, newest first; a notebook shows them as lines of a table."""

    def _repr_html_(self) -> str:
        from omnigraph.drawing.notebook import log_html

        return log_html(commit.to_json() for commit in self)


@frozen
class EntityChange:
    """What one commit did to a node or edge: the row before and after, None if it did not exist."""

    commit: Commit
    operation: str  # insert, update or delete
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


@frozen
class EntityHistory:
    """The changes of a node or edge, newest first; `rest` is the `at` to continue from, if there may be more."""

    changes: tuple[EntityChange, ...]
    rest: str | None = None


def _counts(change: TableChange) -> dict[str, int]:
    return {"inserted": change.inserted, "updated": change.updated, "deleted": change.deleted}


def _json(commit: Commit | None) -> dict[str, Any] | None:
    return None if commit is None else commit.to_json()


@frozen
class MutateResult:
    """What a mutation changed, and its commit; None if it matched nothing. `outcome` is what a statement did.

    `result` is the rows a Cypher query returned after writing, as of the commit. They are not stored: a write
    replayed under its idempotency key has none.
    """

    affected_nodes: int
    affected_edges: int
    commit: Commit | None
    replayed: bool = False
    outcome: Mapping[str, str] | None = None
    result: Result | None = None

    @classmethod
    def of(cls, done: Published, commit: Commit | None) -> MutateResult:
        """The outcome of a mutation; of one that ran before, its stored outcome."""
        outcome = done.value
        if isinstance(outcome, dict):
            return cls(outcome["affected_nodes"], outcome["affected_edges"], commit, done.replayed)
        rows = outcome.answer
        if rows is not None and commit is not None:
            rows = rows.at(commit.id)
        counts = outcome.affected_nodes, outcome.affected_edges
        return cls(*counts, commit, done.replayed, result=rows)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of `result`; empty if nothing was returned."""
        return [] if self.result is None else self.result.rows

    def to_json(self) -> dict[str, Any]:
        said: dict[str, Any] = {
            "affected_nodes": self.affected_nodes,
            "affected_edges": self.affected_edges,
            "commit": _json(self.commit),
        }
        if self.outcome is not None:
            said["outcome"] = dict(self.outcome)
        if self.result is not None:
            said |= {"columns": self.result.columns, "rows": self.result.json_rows()}
        return said

    def _repr_html_(self) -> str:
        from omnigraph.drawing.notebook import write_html

        counts = {"nodes": self.affected_nodes, "edges": self.affected_edges}
        html = write_html("changed", counts, _json(self.commit))
        return html if self.result is None else html + self.result._repr_html_()


@frozen
class LoadResult:
    """How many rows of each type a load brought, and its commit."""

    commit: Commit | None
    branch: str
    branch_created: bool
    nodes: Mapping[str, int]
    edges: Mapping[str, int]
    engine: str
    replayed: bool = False
    new_each_time: Mapping[str, int] = field(default_factory=dict)  # edges with neither id nor key
    quarantined: Mapping[str, int] = field(default_factory=dict)  # rejected rows, by type
    # By type: new, changed, deleted; and skipped because another row has the id, or too late.
    rows: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    # The engine, seconds by phase, bytes; on Spark stages, tasks, spilled bytes and skew as well.
    cost: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        more = {name: dict(getattr(self, name)) for name in ("quarantined", "rows", "cost")}
        return {name: counts for name, counts in more.items() if counts} | {
            "nodes": dict(self.nodes),
            "edges": dict(self.edges),
            "commit": _json(self.commit),
            "engine": self.engine,
            "branch": self.branch,
            "branch_created": self.branch_created,
            "replayed": self.replayed,
        }

    def _repr_html_(self) -> str:
        from omnigraph.drawing.notebook import write_html

        title = "loaded before" if self.replayed else "loaded"
        if self.quarantined:
            title += f"; {sum(self.quarantined.values()):,} left out"
        return write_html(title, {**self.nodes, **self.edges}, _json(self.commit))


class MergeConflicts(OmnigraphError):
    """A merge has conflicts; nothing was published."""

    code, kind = "merge_conflicts", Kind.CONFLICT
    default_help = "Resolve them with `strategy` or `resolutions`, or change one of the branches."
    conflicts: tuple[Conflict, ...] = ()


@frozen
class MergeResult:
    """The outcome of a merge, a revert or a cherry-pick: its commit, or the conflicts to resolve first.

    `counts` are its changes to the target by type, made or planned.
    """

    outcome: str  # already_up_to_date, fast_forward, merged or conflict
    commit: Commit | None = None
    conflicts: tuple[Conflict, ...] = ()
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @classmethod
    def published(cls, done: Published) -> MergeResult:
        """The result of a merge that just ended."""
        found = done.value
        return cls(found.outcome, Commit.published(done), found.conflicts, found.counts)

    def settled(self) -> MergeResult:
        """The result itself; raises if there are conflicts."""
        if not self.conflicts:
            return self
        conflicts = [conflict.to_json() for conflict in self.conflicts]
        lines = "; ".join(conflict.message or conflict.kind for conflict in self.conflicts[:3])
        more = f"; and {len(conflicts) - 3} more" if len(conflicts) > 3 else ""
        error = MergeConflicts(f"merge conflicts: {lines}{more}", details={"conflicts": conflicts})
        error.conflicts = self.conflicts
        raise error

    def to_json(self) -> dict[str, Any]:
        return fields_json(self)

    def _repr_html_(self) -> str:
        from omnigraph.drawing.notebook import merge_html

        return merge_html(self.to_json())


@frozen
class SchemaResult:
    """The steps of a schema change, whether they were applied, and the commit."""

    supported: bool
    steps: tuple[Step, ...]
    applied: bool
    commit: Commit | None

    def to_json(self) -> dict[str, Any]:
        return fields_json(self)

    def _repr_html_(self) -> str:
        from omnigraph.drawing.notebook import plan_html

        return plan_html((step.to_json() for step in self.steps), self.supported)


# --- checks and blame ----------------------------------------------------------------------------------------------


@frozen
class ChecksResult:
    """Which checks were added, changed or removed, and the commit; None if nothing changed."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    commit: Commit | None

    def to_json(self) -> dict[str, Any]:
        return fields_json(self)


@frozen
class BlamedCell:
    """A property, the commit that set its value, and the merge that brought it here.

    `commit` is None if that part of history was removed, or may not be read.
    """

    property: str
    value: Any
    commit: Commit | None
    via: Commit | None = None

    def to_json(self) -> dict[str, Any]:
        from omnigraph.values.spelling import to_json

        shown = {"blob_bytes": len(self.value)} if isinstance(self.value, bytes) else self.value
        return {
            "property": self.property,
            "value": to_json(shown),
            "commit": _json(self.commit),
            "via": _json(self.via),
        }


@frozen
class Blame:
    """Who wrote the values of a node or edge."""

    type: str
    id: str
    cells: tuple[BlamedCell, ...]

    def to_json(self) -> dict[str, Any]:
        return fields_json(self)
