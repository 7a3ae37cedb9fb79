"""The history of one node or edge: the commits that changed it, newest first, with the row before and after.

Commits record which rows they touched, so only those that may have touched this one are read, with one lookup on each
side.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from omnigraph.core import layout
from omnigraph.core.history import Entry, commit_at, readable, walk
from omnigraph.core.records import Commit
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import CommitPruned
from omnigraph.merge.diff import DELETE, INSERT, UPDATE
from omnigraph.merge.feed import touched
from omnigraph.merge.rows import same_row
from omnigraph.merge.schema_view import seen_as
from omnigraph.model.catalog import NodeOrEdgeType
from omnigraph.model.columns import arrow_schema
from omnigraph.model.frozen import frozen


@frozen
class Event:
    """One commit that changed a row."""

    entry: Entry
    operation: str  # insert, update or delete
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


@frozen
class RowHistory:
    """Some events, newest first; `rest` names the commit to continue from, if there may be more."""

    events: tuple[Event, ...]
    rest: str | None = None


def row_history(
    repo: Repository,
    head: Snapshot,
    kind: NodeOrEdgeType,
    id: str,
    *,
    events_max: int,
    commits_max: int,
) -> RowHistory:
    """The events of a row up to a state, under its schema; it ends where history was removed."""
    found: list[Event] = []
    looked_at: set[tuple[str, int]] = set()
    for entry in walk(repo, head.commit):
        commit = entry.commit
        if not isinstance(commit, Commit):
            break
        place = (commit.chain, commit.number)
        if place in looked_at or not _concerns(entry, kind, id):
            continue  # of several writes in one commit, the last to touch the row is the one that counts
        if len(found) >= events_max or len(looked_at) >= commits_max:
            return RowHistory(tuple(found), entry.id)
        looked_at.add(place)
        try:
            event = _event(repo, entry, commit, head, kind, id)
        except CommitPruned:
            break
        found += [] if event is None else [event]
    return RowHistory(tuple(found))


def _concerns(entry: Entry, kind: NodeOrEdgeType, id: str) -> bool:
    change = entry.member.changes.get(kind.table_id) if entry.member else None
    return change is not None and bool(touched(change, pa.array([id], pa.string()))[0])


def _event(
    repo: Repository, entry: Entry, commit: Commit, head: Snapshot, kind: NodeOrEdgeType, id: str
) -> Event | None:
    after = row_at(repo, commit, head, kind, id)
    before = None
    if commit.parents:
        chain, number, _ = layout.parse_commit_id(commit.parents[0])
        before = row_at(repo, commit_at(repo, chain, number), head, kind, id)
    if same_row(before, after):
        return None
    operation = INSERT if before is None else DELETE if after is None else UPDATE
    return Event(entry, operation, before, after)


def row_at(
    repo: Repository, commit: Commit, head: Snapshot, kind: NodeOrEdgeType, id: str
) -> dict[str, Any] | None:
    """A row of a commit, under the schema of another state; None if it does not exist."""
    if kind.table_id not in commit.tables:
        return None
    with readable(repo, commit):
        state = seen_as(repo.snapshot(commit), head.catalog)
        names = arrow_schema(kind).names
        found = state.table_of(kind).lookup("id", pa.array([id], pa.string()), names)
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows[0] if rows else None
