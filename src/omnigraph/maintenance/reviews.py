"""Removal of the events of proposals that ended long ago, and of check results on removed commits.

A proposal keeps its last state, so that its number is never reused and commits that name it remain meaningful; its
discussion is removed. Results of checks are removed with the commit they were run on.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from omnigraph.core import layout
from omnigraph.core.proposals import MERGED, newest, numbers
from omnigraph.core.records import Commit
from omnigraph.core.repository import Repository
from omnigraph.maintenance.collection import Collected
from omnigraph.storage import metrics
from omnigraph.storage.objects import ObjectInfo, number_of

DAY_MICROS = 86_400_000_000


def forget_reviews(repo: Repository, done: Collected, ended_days: float | None) -> Collected:
    """The same collection, with the removed events of proposals that ended `ended_days` ago, and check results."""
    doomed = _results(repo)
    if ended_days is not None:
        doomed += _threads(repo, repo.clock.now() - int(ended_days * DAY_MICROS))
    if not done.dry_run:
        repo.objects.delete([info.key for info in doomed])
    return replace(
        done,
        objects_deleted=done.objects_deleted + len(doomed),
        bytes_deleted=done.bytes_deleted + sum(info.size for info in doomed),
    )


def _threads(repo: Repository, horizon: int) -> list[ObjectInfo]:
    """All but the last state of each proposal that was merged or closed, and not touched since."""
    tasks = [partial(_thread, repo, number, horizon) for number in numbers(repo)]
    found = metrics.parallel(tasks, repo.limits.read_threads_max)
    return [info for infos in found for info in infos]


def _thread(repo: Repository, number: int, horizon: int) -> list[ObjectInfo]:
    last, state = newest(repo, number)
    if state.status not in (MERGED, "closed") or state.event.time > horizon:
        return []
    folder = layout.proposal_folder(number)
    return [info for info in repo.objects.list(folder) if number_of(info.key) != last]


def _results(repo: Repository) -> list[ObjectInfo]:
    """Check results of removed commits."""
    by_commit: dict[tuple[str, int], list[ObjectInfo]] = {}
    for info in repo.objects.list(layout.CHECKED):
        match info.key.split("/"):
            case [_, chain, number, _] if number.isdecimal():
                by_commit.setdefault((chain, int(number)), []).append(info)
    places = list(by_commit)
    tasks = [lambda p=place: isinstance(repo.chains.read(*p), Commit) for place in places]
    kept = metrics.parallel(tasks, repo.limits.read_threads_max)
    return [
        info
        for place, is_there in zip(places, kept, strict=True)
        if not is_there
        for info in by_commit[place]
    ]
