"""Stored queries of a server, and what its policy allows."""

from __future__ import annotations

from typing import Any

from omnigraph.policy.questions import Action
from omnigraph.remote.transport import Transport, segment
from omnigraph.wire.answers import PermissionsOutput
from omnigraph.wire.requests import InvokeRequest


def permits(http: Transport, action: Action, branch: str) -> bool:
    """Whether a policy allows an action to the owner of the token; False on a server without tokens."""
    query = {"branch": branch}
    found = http.json(PermissionsOutput, "GET", "/permissions", query=query, safe=True)
    return found.actor is not None and found.actions.get(str(action), False)


def stored_queries(http: Transport) -> list[dict[str, Any]]:
    """The stored queries, as the server describes them."""
    found = http.json(dict[str, list[dict[str, Any]]], "GET", "/queries", safe=True)
    return found["queries"]


def invoke(http: Transport, name: str, asked: InvokeRequest) -> dict[str, Any]:
    """Run a stored query."""
    safe = asked.expect_mutation is False
    return http.json(dict[str, Any], "POST", f"/queries/{segment(name)}", asked, safe=safe)
