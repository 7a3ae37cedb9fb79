"""Responses of maintenance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from omnigraph.core.records import MaintenanceAction, MaintenanceStatus, RetentionPolicy

if TYPE_CHECKING:
    from omnigraph.core.snapshot import Snapshot
    from omnigraph.maintenance.collection import Collected
    from omnigraph.write.maintain import TableReport

DAY_SECONDS = 86_400


class OptimizedTable(msgspec.Struct, frozen=True):
    """`skipped` and `pending_indexes` are for states that do not occur here: a table is never behind its newest
    version, and written rows are found with or without an index."""

    type_key: str
    fragments_removed: int
    fragments_added: int
    committed: bool
    skipped: str | None
    published_dataset_version: int
    lance_head_version: int
    pending_indexes: list[dict[str, Any]]

    @classmethod
    def of(cls, report: TableReport, version: int) -> OptimizedTable:
        fewer = report.fragments_before - report.fragments_after
        done = fewer != 0 or bool(report.indexed)
        key = f"{report.kind}:{report.type}"
        return cls(key, max(fewer, 0), max(-fewer, 0), done, None, version, version, [])


class OptimizeOutput(msgspec.Struct, frozen=True):
    uri: str
    datasets: list[OptimizedTable]

    @classmethod
    def of(cls, reports: Sequence[TableReport], uri: str, state: Snapshot) -> OptimizeOutput:
        """`state` is the one after it."""
        tables = state.commit.tables.values()
        versions = {(t.kind, t.type_name): int(t.version) for t in tables}
        return cls(uri, [OptimizedTable.of(r, versions[r.kind, r.type]) for r in reports])


class CleanedTable(msgspec.Struct, frozen=True):
    type_key: str
    bytes_removed: int
    old_versions_removed: int
    error: str | None


class CleanupOutput(msgspec.Struct, frozen=True):
    uri: str
    keep_versions: int | None
    older_than_secs: int | None
    datasets: list[CleanedTable]

    @classmethod
    def of(cls, done: Collected, uri: str, keep: int, days: float | None) -> CleanupOutput:
        seconds = None if days is None else round(days * DAY_SECONDS)
        tables = [CleanedTable(t.type, t.bytes, t.versions, None) for t in done.tables]
        return cls(uri, keep, seconds, tables)


class RetentionOutput(msgspec.Struct, frozen=True):
    """How much history maintenance keeps; `keep` null: all of it."""

    keep: int | None
    days: float | None = None
    every_hours: float | None = None
    actor_id: str | None = None
    set_at: int | None = None

    @classmethod
    def of(cls, policy: RetentionPolicy | None) -> RetentionOutput:
        if policy is None:
            return cls(None)
        return cls(policy.keep, policy.days, policy.every_hours, policy.actor, policy.time)

    def value(self) -> RetentionPolicy | None:
        if self.keep is None:
            return None
        hours = 1.0 if self.every_hours is None else self.every_hours
        return RetentionPolicy(self.keep, self.days, hours, self.actor_id, self.set_at or 0)


class MaintenanceOutput(msgspec.Struct, frozen=True):
    """The process that maintains the graph, and its last work."""

    holder: str
    until: int
    cleaned: int
    expired: int
    actions: list[MaintenanceAction]

    @classmethod
    def of(cls, status: MaintenanceStatus) -> MaintenanceOutput:
        return cls(
            status.holder, status.until, status.cleaned, status.expired, list(status.actions)
        )

    def value(self) -> MaintenanceStatus:
        return MaintenanceStatus(
            self.holder, self.until, self.cleaned, self.expired, tuple(self.actions)
        )
