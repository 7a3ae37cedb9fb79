"""The store dies at every durable write of every verb about proposals: what is seen afterwards is before or after.

A merge is two things, the commit and what the proposal says of it. Whoever looks after the crash sees both or neither,
and whoever does it again ends with exactly one commit that names the proposal.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from omnigraph.errors import OmnigraphError
from omnigraph.graph import Graph, init, open_graph
from tests.support.caches import forget_tables
from tests.support.faulty_s3 import FaultyS3

SCHEMA = "node Person { name: String @key  age: I32? }"
CHECKS = "query ageless() { match { $p: Person $p.age is null } return { $p.name as name } }"
Operation = Callable[[Graph], object]
OPERATIONS: dict[str, Operation] = {
    "propose": lambda g: g.propose("side", "Other people", actor="eve"),
    "comment": lambda g: g.comment(1, "Hm", type="Person", id="new", actor="ada"),
    "approve": lambda g: g.approve(1, actor="ada"),
    "ask for changes": lambda g: g.request_changes(1, "No", actor="ada"),
    "close": lambda g: g.close_proposal(1, actor="eve"),
    "merge": lambda g: g.merge_proposal(1, actor="ada"),
    "apply checks": lambda g: g.apply_checks(CHECKS.replace("ageless", "also"), actor="ada"),
    "check": lambda g: g.check("draft", actor="ada"),
}
ENDS = {"close": "closed", "merge": "merged"}


def _prepared(uri: str) -> None:
    graph = init(uri, schema=SCHEMA)
    graph.load({"Person": [{"name": "old", "age": 1}]})
    graph.apply_checks(CHECKS)
    for name in ("draft", "side"):
        graph.create_branch(name)
        graph.load({"Person": [{"name": f"on {name}", "age": 2}]}, branch=name, actor="eve")
    graph.load({"Person": [{"name": "main moved", "age": 3}]})
    graph.propose("draft", "New people", actor="eve")


def _seen(uri: str) -> dict[str, Any]:
    """What somebody sees who knows nothing yet."""
    forget_tables()
    graph = open_graph(uri)
    found = graph.proposal(1)
    kinds = [entry.kind for entry in found.thread]
    merges = [commit.id for commit in graph.log(limit=None) if commit.proposal == 1]
    people = graph.query("query q() { match { $p: Person } return { $p.name as n } }").rows
    has_row = {"n": "on draft"} in people
    assert (found.state == "merged") == has_row == (len(merges) == 1)
    return {
        "state": found.state,
        "said": [kind for kind in kinds if kind not in ("merging", "not_merged", "merged")],
        "reviews": [(r.actor, r.verdict, r.head, r.current) for r in found.reviews],
        "proposals": len(graph.proposals()),
        "checks": [check.name for check in graph.checks()],
        "runs": len(graph.check_results("draft")),
        "merged": has_row,
    }


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_crash_at_any_write_leaves_before_or_after(faulty_s3: FaultyS3, name: str) -> None:
    uri, operation = faulty_s3.address.uri("graph"), OPERATIONS[name]
    _prepared(uri)
    start, before = faulty_s3.snapshot(), _seen(uri)
    faulty_s3.restore(start)
    forget_tables()
    done = faulty_s3.durable_writes()
    operation(open_graph(uri))
    writes, after = faulty_s3.durable_writes() - done, _seen(uri)
    assert writes
    assert after != before
    for k in range(1, writes + 1):
        for applied in (False, True):
            faulty_s3.restore(start)
            forget_tables()
            faulty_s3.die_at(k, applied=applied, deny=True)
            with contextlib.suppress(OmnigraphError):
                operation(open_graph(uri))
            faulty_s3.revive()
            assert _seen(uri) in (before, after), f"write {k}, applied {applied}"
            _again(uri, operation, name)
            assert _seen(uri)["state"] == ENDS.get(name, after["state"])


def _again(uri: str, operation: Operation, name: str) -> None:
    """Whoever died does it again, unless it was done."""
    forget_tables()
    graph = open_graph(uri)
    if name not in ENDS or graph.proposal(1).state != ENDS[name]:
        with contextlib.suppress(OmnigraphError) if name == "propose" else contextlib.nullcontext():
            operation(graph)


@pytest.mark.parametrize("applied", [False, True])
def test_a_merge_that_was_left_behind_does_not_stand_in_the_way(
    faulty_s3: FaultyS3, applied: bool
) -> None:
    """Somebody closes the proposal after a crash: it is closed, or it was merged and says so."""
    uri = faulty_s3.address.uri("graph")
    _prepared(uri)
    start = faulty_s3.snapshot()
    open_graph(uri).merge_proposal(1, actor="ada")
    faulty_s3.restore(start)
    forget_tables()
    merged = set()
    for k in range(1, 30):
        faulty_s3.restore(start)
        forget_tables()
        faulty_s3.die_at(k, applied=applied, deny=True)
        with contextlib.suppress(OmnigraphError):
            open_graph(uri).merge_proposal(1, actor="ada")
        died = faulty_s3.died.is_set()
        faulty_s3.revive()
        if not died:
            break
        forget_tables()
        graph = open_graph(uri)
        with contextlib.suppress(OmnigraphError):
            graph.close_proposal(1, actor="eve")
        seen = _seen(uri)
        assert seen["state"] in ("closed", "merged")
        merged.add(seen["merged"])
    assert merged == {False, True}
