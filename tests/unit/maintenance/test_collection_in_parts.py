"""A collection takes files at once, and replaces commits as there is time: whatever is left, nobody is misled by it."""

from __future__ import annotations

import threading

import pytest

from omnigraph.core.branches import create_tag, live_refs
from omnigraph.core.clock import Deadline
from omnigraph.core.repository import Repository
from omnigraph.errors import Cancelled, CommitPruned
from omnigraph.graph import Graph
from omnigraph.maintenance.collection import Retention, collect
from tests.support.faults_by_count import Fault, strike
from tests.support.worlds import add_person, another_process, disturbed, people
from tests.unit.maintenance.test_collection import clean, commit_number, kinds, repo

__all__ = ["repo"]  # a fixture


def test_files_go_at_once_and_tombstones_as_there_is_time(repo: Repository) -> None:
    done = collect(repo, Retention(keep=1, tombstones_max=2))
    assert (done.commits_pruned, done.pending) == (6, 4)
    assert kinds(another_process(repo)) == "ttcccccc"
    again = collect(another_process(repo), Retention(keep=1, tombstones_max=3))
    assert (again.commits_pruned, again.objects_deleted) == (0, 0)
    assert kinds(another_process(repo)).startswith("tttttc")
    collect(another_process(repo), Retention(keep=1, tombstones_max=9))
    assert kinds(another_process(repo)).startswith("tttttt")
    assert clean(repo)


def test_a_pruned_commit_without_a_tombstone_cannot_be_used(repo: Repository) -> None:
    """Its object is there and its files are not: nobody takes that for damage."""
    graph = Graph(repo)
    old, kept = graph.log()[4].id, graph.tag("v1", "main~2")
    collect(repo, Retention(keep=1, tombstones_max=0))
    fresh = Graph(another_process(repo))
    text = "query q() { match { $p: Person } return { count(*) as n } }"
    with pytest.raises(CommitPruned):
        fresh.query(text, at=old)
    with pytest.raises(CommitPruned):
        fresh.create_branch("b", from_=old)
    with pytest.raises(CommitPruned):
        fresh.tag("late", old)
    with pytest.raises(CommitPruned):
        fresh.reset(old)
    with pytest.raises(CommitPruned):
        fresh.diff(old, "main")
    assert fresh.diff("v1", "main").counts["Person"]["inserted"] == 2
    assert [change.operation for change in fresh.history("Person", "f").changes] == []
    assert fresh.snapshot(at="v1").commit.content == kept
    assert [c.id for c in fresh.log()][4] == old, "it is still told"
    assert fresh.doctor().healthy
    collect(another_process(repo), Retention(keep=1))
    assert kinds(another_process(repo)).startswith("ttttct")


def test_a_merge_over_pruned_commits_without_tombstones(repo: Repository) -> None:
    graph = Graph(repo)
    graph.create_branch("dev")
    for name in "xyz":
        graph.publish(add_person(name), branch="dev")
        graph.publish(add_person(f"m{name}"))
    collect(repo, Retention(keep=1, tombstones_max=0))
    fresh = Graph(another_process(repo))
    assert fresh.merge("dev").outcome == "merged"
    assert people(another_process(repo)) == sorted([*"abcdef", *"xyz", "mx", "my", "mz"])


def test_a_name_that_came_too_late_is_no_damage(repo: Repository) -> None:
    """A tag whose creator died before it looked at the record leads to a commit whose files are gone."""
    old = commit_number(repo, 2)
    collect(repo, Retention(keep=1, tombstones_max=0))
    strike(repo, lambda there: create_tag(there, "late", old), Fault.DIE_AFTER, 0)
    assert "late" in {str(ref.name) for ref in live_refs(another_process(repo))}
    for _ in range(2):
        collect(another_process(repo), Retention(keep=1, tombstones_max=0))
    assert people(another_process(repo)) == list("abcdef")


def test_a_collection_can_be_called_off_and_goes_on_later(repo: Repository) -> None:
    stop = threading.Event()
    seen: list[str] = []

    def before(verb: str, key: str) -> None:
        seen.append(verb)
        if verb == "delete":
            stop.set()

    with pytest.raises(Cancelled):
        collect(disturbed(repo, before), Retention(keep=1), deadline=Deadline(cancelled=stop))
    assert "t" not in kinds(another_process(repo))
    collect(another_process(repo), Retention(keep=1))
    assert kinds(another_process(repo)).startswith("tttttt")
    assert clean(repo)
