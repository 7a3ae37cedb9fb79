"""The history of all branches at once, newest first: what a picture of it needs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from omnigraph.errors import CommitNotFound, CommitPruned, LimitExceeded
from omnigraph.graph import Graph
from omnigraph.outcomes import Commit
from omnigraph.policy.guard import Need
from omnigraph.policy.questions import Action
from omnigraph.server.calls import Answer, Call
from omnigraph.server.limits import exceeded
from omnigraph.server.routes.session import may
from omnigraph.server.wire import HistoryOutput, HistoryQuery, Named, commit_output, micros

COMMITS = 100
COMMITS_MAX = 1000


def history(call: Call) -> Answer:
    """The commits of all branches the caller may read; `before` goes on from an earlier answer's `next`."""
    asked: HistoryQuery = call.query
    limit = COMMITS if asked.limit is None else asked.limit
    if not 0 < limit <= COMMITS_MAX:
        raise LimitExceeded(
            f"limit is 1 to {COMMITS_MAX}", details=exceeded("commits_max", COMMITS_MAX, limit)
        )
    graph = call.unguarded
    names = [n for n in sorted(graph.branches()) if may(call.guard, Need(Action.READ, n))]
    found: dict[str, Commit] = {}
    for name in names:
        found.update((commit.id, commit) for commit in _log(graph, name, asked.before, limit + 1))
    newest = sorted(found.values(), key=lambda c: (c.time, c.id), reverse=True)
    page = _page(newest, limit)
    tags = graph.tags().items()
    output = HistoryOutput(
        commits=[commit_output(commit) for commit in page],
        parents={commit.id: _parents(graph, commit, found) for commit in page},
        branches=[Named(name, graph.snapshot(name).commit_id) for name in names],
        tags=[Named(name, id) for name, id in sorted(tags)],
        next=micros(page[-1].time) if len(page) < len(newest) else None,
    )
    return Answer(output)


def _parents(graph: Graph, commit: Commit, found: Mapping[str, Commit]) -> list[str]:
    """The commits a line leads to: maintenance and the making of branches are stepped over."""
    return [
        id if id in found else graph.snapshot("main", id).commit_id
        for id in commit.parents
        if _is_kept(graph, id)
    ]


def _is_kept(graph: Graph, id: str) -> bool:
    try:
        graph.snapshot("main", id)
    except CommitPruned:
        return False
    return True


def _log(graph: Graph, branch: str, before: int | None, limit: int) -> list[Commit]:
    if before is None:
        return graph.log(branch, limit)
    earlier = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=before - 1)
    try:
        return graph.log(branch, limit, at=earlier)
    except CommitNotFound:
        return []  # the branch is younger


def _page(newest: list[Commit], limit: int) -> list[Commit]:
    """The first commits; those of the same instant stay together, since the next page starts at an instant."""
    if len(newest) <= limit:
        return newest
    last = newest[limit - 1].time
    return [c for n, c in enumerate(newest) if n < limit or c.time == last]
