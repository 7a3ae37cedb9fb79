"""Who is asking, what they may see, and what they may do: so that a client offers nothing that would be refused."""

from __future__ import annotations

import omnigraph
from omnigraph.policy.guard import Guard, Need
from omnigraph.policy.questions import ON_BRANCH, ON_TARGET, Action
from omnigraph.server.calls import Answer, Call
from omnigraph.server.wire import PermissionsOutput, PermissionsQuery, SessionGraph, SessionOutput

WRITES = frozenset({Action.CHANGE}) | ON_TARGET


def session(call: Call) -> Answer:
    """Who the token belongs to, and the graphs they may read."""
    server = call.state
    readable = [
        SessionGraph(id)
        for id in server.graphs
        if may(server.access.guard(call.actor, id), Need(Action.READ, "main"))
    ]
    return Answer(
        SessionOutput(call.actor, server.identity.required, omnigraph.__version__, readable)
    )


def may(guard: Guard | None, need: Need) -> bool:
    """Whether something is allowed; without a guard everything is."""
    return guard is None or guard.allows(need)


def permissions(call: Call) -> Answer:
    """What the caller may do on a branch, or with it as the target."""
    asked: PermissionsQuery = call.query
    branch = asked.branch or "main"
    allowed = {
        str(action): may(call.guard, _need(action, branch))
        for action in Action
        if action is not Action.GRAPH_LIST
    }
    writes = any(allowed[str(action)] for action in WRITES)
    return Answer(PermissionsOutput(call.actor, branch, not writes, allowed))


def _need(action: Action, branch: str) -> Need:
    """The question a request would ask: new branches start at this one, merges end in it."""
    match action:
        case Action.BRANCH_CREATE:
            return Need(action, branch, "-", reads=(branch,))
        case _ if action in ON_BRANCH:
            return Need(action, branch)
        case _ if action in ON_TARGET:
            return Need(action, target_branch=branch)
        case _:
            return Need(action)
