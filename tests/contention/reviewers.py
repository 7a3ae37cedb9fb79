"""What people do to proposals, each in a process of its own: push, comment, approve, merge, close."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.graph import Graph, open_graph
from omnigraph.guarded import GuardedGraph
from omnigraph.policy.bundle import parse_bundle
from omnigraph.policy.cedar import Policy, compile_bundle
from omnigraph.policy.guard import Guard
from tests.support.processes import acknowledge
from tests.support.waiting import wait_until

APPROVALS = 2
PUSHES_MAX = 6  # of each branch
TURNS_MAX = 1_000  # of everybody: far more than it takes
RULES = f"""
version: 1
groups: {{writers: [wes], reviewers: [ann, bob, cy], mergers: [max, mia], all: [wes, ann, bob, cy, max, mia]}}
protected_branches: [main]
protection:
  main: {{approvals: {APPROVALS}, checks: true}}
rules:
  - {{id: read, allow: {{actors: {{group: all}}, actions: [read]}}}}
  - {{id: write, allow: {{actors: {{group: writers}}, actions: [change], branch_scope: unprotected}}}}
  - {{id: talk, allow: {{actors: {{group: all}}, actions: [propose]}}}}
  - {{id: approve, allow: {{actors: {{group: reviewers}}, actions: [approve]}}}}
  - {{id: merge, allow: {{actors: {{group: mergers}}, actions: [branch_merge, approve]}}}}
"""
# What may go wrong for somebody who was too late: the proposal is over, or moved, or not ready.
LATE = frozenset({"proposal_ended", "proposal_moved", "proposal_not_ready"})


def policy() -> Policy:
    return Policy(compile_bundle(parse_bundle(RULES)))


def guarded(uri: str, actor: str) -> GuardedGraph:
    return GuardedGraph(open_graph(uri), Guard(policy(), actor, "g"))


def take_part(uri: str, actor: str, role: str, proposals: int, go: str) -> None:
    """Do what the role does to all proposals in turn until they are over, and log what was acknowledged."""
    graph, chance = guarded(uri, actor), random.Random(f"{actor} {role}")
    acknowledge({"ready": actor})
    wait_until(Path(go).exists, timeout=120, what="everybody else")
    left = list(range(1, proposals + 1))
    for turn in range(TURNS_MAX):
        left = [n for n in left if graph.proposal(n).state not in ("merged", "closed")]
        for number in left:
            try:
                done = ROLES[role](graph, number, turn, chance)
            except OmnigraphError as error:
                if error.code not in LATE and error.kind is not Kind.CONFLICT:
                    raise
                continue
            acknowledge({"actor": actor, "number": number, "turn": turn, **done})
        if not left:
            return


def _push(graph: Graph, number: int, turn: int, _: random.Random) -> dict[str, Any]:
    if turn > PUSHES_MAX:
        return {"waited": True}  # let the others agree on something
    row = {"name": f"p{number} t{turn}", "age": turn}
    done = graph.load({"Person": [row]}, branch=f"b{number}")
    return {"pushed": done.commit.id if done.commit else None}


def _talk(graph: Graph, number: int, turn: int, _: random.Random) -> dict[str, Any]:
    text = f"{number} {turn} said"
    graph.comment(number, text, type="Person", id="old", property="age")
    return {"comment": text}


def _approve(graph: Graph, number: int, turn: int, chance: random.Random) -> dict[str, Any]:
    if chance.random() < 0.3:
        return _talk(graph, number, turn, chance)
    head = graph.proposal(number).head
    if chance.random() < 0.1:
        graph.request_changes(number, f"{turn} no", head=head)
        return {"wants": head}
    graph.approve(number, head=head, text=f"{turn} yes")
    return {"approved": head}


def _merge(graph: Graph, number: int, _: int, __: random.Random) -> dict[str, Any]:
    done = graph.merge_proposal(number)
    return {"merged": done.commit.id if done.commit else None, "outcome": done.outcome}


def _close(graph: Graph, number: int, turn: int, chance: random.Random) -> dict[str, Any]:
    if number % 2 or chance.random() < 0.8:
        return {"waited": True}
    graph.close_proposal(number)
    return {"closed": True}


ROLES: dict[str, Callable[[Graph, int, int, random.Random], dict[str, Any]]] = {
    "push": _push,
    "approve": _approve,
    "merge": _merge,
    "close": _close,
}
