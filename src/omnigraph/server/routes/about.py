"""The server itself (health, metrics, routes, graphs), and what the caller may see and do."""

from __future__ import annotations

from collections.abc import Iterable

import omnigraph
from omnigraph.errors import OmnigraphError
from omnigraph.policy.guard import Guard, Need
from omnigraph.policy.questions import ON_BRANCH, ON_SERVER, ON_TARGET, PUSHES, Action
from omnigraph.server.request import Answer, HttpCall
from omnigraph.wire.answers import (
    COMPATIBLE_VERSION,
    INTERNAL_SCHEMA_VERSION,
    PermissionsOutput,
    SessionGraph,
    SessionOutput,
)
from omnigraph.wire.requests import PermissionsQuery


def healthz(_: HttpCall) -> Answer:
    """Whether the process is alive. No store is accessed."""
    return Answer(
        {
            "status": "ok",
            "version": COMPATIBLE_VERSION,
            "internal_schema_version": INTERNAL_SCHEMA_VERSION,
            "source_version": omnigraph.__version__,
        }
    )


def readyz(call: HttpCall) -> Answer:
    """Whether the graphs can be read."""
    graphs = call.state.graphs
    failed = [id for id, served in graphs.items() if not _is_readable(served.graph)]
    ready = not failed and not call.state.quarantined and not call.state.admission.closing
    content = {
        "ready": ready,
        "status": "ok" if ready else "unavailable",
        "graphs": len(graphs),
        "failed": len(failed),
        "quarantined": len(call.state.quarantined),
    }
    return Answer(content, status=200 if ready else 503)


def _is_readable(graph: omnigraph.Graph) -> bool:
    try:
        graph.snapshot()
    except OmnigraphError:
        return False
    return True


def metrics(call: HttpCall) -> Answer:
    """Counts and durations, for Prometheus."""
    media = "text/plain; version=0.0.4; charset=utf-8"
    return Answer(media=media, raw=call.state.telemetry.text())


def openapi(call: HttpCall) -> Answer:
    """The description of all routes."""
    return Answer(call.state.document)


def docs(call: HttpCall) -> Answer:
    """The same description, for people."""
    return Answer(media="text/html; charset=utf-8", raw=call.state.docs)


def graph_list(_: HttpCall) -> Iterable[Need]:
    return (Need(Action.GRAPH_LIST),)


def list_graphs(call: HttpCall) -> Answer:
    """The graphs that are served."""
    graphs = call.state.graphs.values()
    return Answer({"graphs": [{"graph_id": s.id, "uri": s.graph.uri} for s in graphs]})


# --- the caller ------------------------------------------------------------------------------------------------------

WRITES = PUSHES


def session(call: HttpCall) -> Answer:
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
    """Whether an action is allowed; without a guard everything is."""
    return guard is None or guard.allows(need)


def permissions(call: HttpCall) -> Answer:
    """What the caller may do on a branch, or with it as the target."""
    request: PermissionsQuery = call.query
    branch = request.branch or "main"
    allowed = {
        str(action): may(call.guard, _need(action, branch))
        for action in Action
        if action not in ON_SERVER
    }
    by_proposal = Need(Action.BRANCH_MERGE, target_branch=branch, proposal=True)
    allowed["merge_proposal"] = may(
        call.guard, by_proposal
    )  # a protected branch takes no other merge
    writes = any(allowed[str(action)] for action in (*WRITES, Action.PROPOSE, Action.APPROVE))
    return Answer(PermissionsOutput(call.actor, branch, not writes, allowed))


def _need(action: Action, branch: str) -> Need:
    """The permission a request would need: new branches start at this one, merges end in it."""
    match action:
        case Action.BRANCH_CREATE:
            return Need(action, branch, "-", reads=(branch,))
        case _ if action in ON_BRANCH:
            return Need(action, branch)
        case _ if action in ON_TARGET:
            return Need(action, target_branch=branch)
        case _:
            return Need(action)
