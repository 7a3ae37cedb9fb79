"""Pushes, comments, approvals, merges and closings of the same proposals race in many processes.

Whatever their order: nothing that was acknowledged is lost, no approval counts for a commit it was not given for, and
nothing reaches main without what the policy demands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from omnigraph.graph import Graph, init, open_graph
from omnigraph.proposed import Proposal, ThreadEntry
from tests.contention.reviewers import APPROVALS, take_part
from tests.support import rings
from tests.support.processes import Child, read_log, spawn
from tests.support.waiting import wait_until

PROPOSALS = rings.count(2, 12)
PEOPLE = {
    "wes": "push",
    "ann": "approve",
    "bob": "approve",
    "max": "merge",
    "mia": "close",
}
SCHEMA = "node Person { name: String @key  age: I32? }"
CHECKS = "query ageless() { match { $p: Person $p.age is null } return { $p.name as name } }"


@pytest.fixture
def uri(tmp_path: Path) -> str:
    place = str(tmp_path / "graph")
    graph = init(place, schema=SCHEMA)
    graph.load({"Person": [{"name": "old", "age": 1}]})
    graph.apply_checks(CHECKS)
    for number in range(1, PROPOSALS + 1):
        graph.create_branch(f"b{number}")
        graph.load({"Person": [{"name": f"p{number}", "age": 1}]}, branch=f"b{number}", actor="wes")
        assert graph.propose(f"b{number}", f"Proposal {number}", actor="wes").number == number
    return place


def test_nothing_is_lost_and_nothing_is_merged_that_was_not_approved(
    uri: str, tmp_path: Path
) -> None:
    log, go = tmp_path / "log", tmp_path / "go"
    children = list(_started(uri, log, go))
    wait_until(
        lambda: sum("ready" in record for record in read_log(log)) == len(children),
        timeout=120,
        what="everybody to be ready",
    )
    go.touch()
    for child in children:
        child.wait(240)
    graph, records = open_graph(uri), read_log(log)
    ended = set()
    for number in range(1, PROPOSALS + 1):
        found = graph.proposal(number)
        mine = [record for record in records if record.get("number") == number]
        _check_nothing_lost(found, mine)
        _check_merge(graph, found, mine)
        ended.add(found.state)
    assert ended <= {"merged", "closed"}, "somebody gave up"
    assert "merged" in ended


def _started(uri: str, log: Path, go: Path) -> Iterator[Child]:
    for actor, role in PEOPLE.items():
        arguments = {
            "uri": uri,
            "actor": actor,
            "role": role,
            "proposals": PROPOSALS,
            "go": str(go),
        }
        yield spawn(take_part, arguments, log=log)


def _check_nothing_lost(found: Proposal, mine: Sequence[dict[str, Any]]) -> None:
    """What was acknowledged is in the thread, once for each time, and for the commit it was given for."""
    for word, kind in (("approved", "approved"), ("wants", "changes_wanted")):
        told = sorted((r["actor"], r[word]) for r in mine if word in r)
        kept = sorted((e.actor or "", e.head or "") for e in found.thread if e.kind == kind)
        assert kept == told
    told = sorted((r["actor"], r["comment"]) for r in mine if "comment" in r)
    assert sorted((e.actor or "", e.text) for e in found.thread if e.kind == "commented") == told
    assert sum("closed" in record for record in mine) == sum(
        entry.kind == "closed" for entry in found.thread
    )


def _check_merge(graph: Graph, found: Proposal, mine: Sequence[dict[str, Any]]) -> None:
    merges = [commit for commit in graph.log(limit=None) if commit.proposal == found.number]
    told = [record["merged"] for record in mine if record.get("merged")]
    if found.state != "merged":
        assert not merges
        assert not told
        return
    (merge,) = merges
    assert told == [merge.id]
    assert found.commit == merge.id
    assert merge.parents[1] == found.head
    assert merge.checks == {"ageless": "passed"}
    claim = max(i for i, entry in enumerate(found.thread) if entry.kind == "merging")
    assert found.thread[claim].head == found.head
    assert not [e for e in found.thread[claim:] if e.kind in ("closed", "approved", "not_merged")]
    assert len(_approvers(found.thread[:claim], found.head)) >= APPROVALS


def _approvers(thread: Sequence[ThreadEntry], head: str | None) -> set[str | None]:
    """Whose last word was an approval of exactly this commit; none if somebody wants changes."""
    last = {e.actor: e for e in thread if e.kind in ("approved", "changes_wanted")}
    if any(entry.kind == "changes_wanted" for entry in last.values()):
        return set()
    return {actor for actor, entry in last.items() if entry.head == head}
