"""Who is guarded by which policy: one for the server itself, at most one for each graph.

Without tokens everything on a graph is open. With tokens, a graph that has no policy can only be read. What concerns
the server as a whole always needs a policy that allows it. A server that is read-only lets nobody change anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.policy.cedar import Policy
from omnigraph.policy.guard import Guard, Need

__all__ = ["ANONYMOUS", "Access", "Need"]
ANONYMOUS = "anonymous"


@dataclass(frozen=True, slots=True)
class Access:
    """The policies of a server."""

    authenticated: bool
    server: Policy | None = None
    graphs: Mapping[str, Policy] = field(default_factory=dict)
    read_only: bool = False

    def guard(self, actor: str | None, graph: str | None) -> Guard | None:
        """Who decides what an actor may do with a graph, or with the server; none where all is open."""
        if graph is None:
            return Guard(self.server, actor or ANONYMOUS)
        if not self.authenticated and not self.read_only:
            return None
        return Guard(self.graphs.get(graph), actor or ANONYMOUS, graph, self.read_only)
