"""Who wrote the values of a row, cell by cell: the newest commit that gave each cell its value.

A merge brings values written elsewhere. If it took a cell from the merged branch, the origin is the commit that wrote
it there, with the merge that brought it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from omnigraph.core.history import Entry, commit_at
from omnigraph.core.layout import parse_commit_id
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import CommitNotFound, CommitPruned
from omnigraph.merge.row_history import Event, row_at, row_history
from omnigraph.merge.rows import same_row
from omnigraph.model.catalog import NodeOrEdgeType
from omnigraph.model.frozen import frozen

PAGE_EVENTS = 8
MERGES_MAX = 32  # through which one cell is followed


@frozen
class CellOrigin:
    """A cell, the commit that wrote it, and the merge that brought it here; None if history was removed."""

    name: str
    value: Any
    entry: Entry | None
    via: Entry | None = None


def blame(
    repo: Repository, head: Snapshot, kind: NodeOrEdgeType, id: str, commits_max: int
) -> tuple[CellOrigin, ...] | None:
    """The cells of a row at a state, under its schema; None if it does not exist."""
    origins = _origins(repo, head, kind, id, commits_max, MERGES_MAX)
    return None if origins is None else tuple(origins.values())


def _origins(
    repo: Repository, head: Snapshot, kind: NodeOrEdgeType, id: str, commits_max: int, merges: int
) -> dict[str, CellOrigin] | None:
    row = row_at(repo, head.commit, head, kind, id)
    if row is None:
        return None
    origins = {name: CellOrigin(name, value, None) for name, value in row.items()}
    left = set(origins)
    for event in _events(repo, head, kind, id, commits_max):
        if event.after is None:
            break
        wrote = {name for name in left if _changed(event, name)}
        elsewhere = _merged(repo, head, event, kind, id, commits_max, merges) if wrote else {}
        for name in wrote:
            there = elsewhere.get(name)
            if there is not None and there.entry is not None and _same(there.value, row[name]):
                via = there.via or event.entry
                origins[name] = CellOrigin(name, row[name], there.entry, via)
            else:
                origins[name] = CellOrigin(name, row[name], event.entry)
        left -= wrote
        if not left or event.before is None:
            break
    return origins


def _events(
    repo: Repository, head: Snapshot, kind: NodeOrEdgeType, id: str, commits_max: int
) -> Iterator[Event]:
    """The events of a row, newest first; most cells were written recently, so a few events are read at a time."""
    at, looked_at = head, 0
    while looked_at < commits_max:
        page = row_history(repo, at, kind, id, events_max=PAGE_EVENTS, commits_max=PAGE_EVENTS)
        yield from page.events
        if page.rest is None:
            return
        chain, number, _ = parse_commit_id(page.rest)
        at, looked_at = (
            replace(head, commit=commit_at(repo, chain, number)),
            looked_at + PAGE_EVENTS,
        )


def _changed(event: Event, name: str) -> bool:
    if event.before is None or event.after is None:
        return True
    return not _same(event.before.get(name), event.after.get(name))


def _same(one: Any, other: Any) -> bool:
    return same_row({"v": one}, {"v": other})


def _merged(
    repo: Repository,
    head: Snapshot,
    event: Event,
    kind: NodeOrEdgeType,
    id: str,
    commits_max: int,
    merges: int,
) -> Mapping[str, CellOrigin]:
    """The same row on the branch a merge brought, if that is what the event is."""
    if event.entry.kind != "merge" or len(event.entry.parents) < 2 or not merges:
        return {}
    chain, number, _ = parse_commit_id(event.entry.parents[1])
    try:
        there = replace(head, commit=commit_at(repo, chain, number))
        return _origins(repo, there, kind, id, commits_max, merges - 1) or {}
    except (CommitPruned, CommitNotFound):
        return {}
