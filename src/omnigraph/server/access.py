"""May they: the one place below every route that decides. What nothing allows is denied.

Without tokens everything on a graph is open. With tokens, a graph that has no policy can only be read. What concerns
the server as a whole always needs a policy that allows it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.errors import OmnigraphError
from omnigraph.policy.cedar import Policy
from omnigraph.policy.questions import Action, PolicyDenied, Question

audit = logging.getLogger("omnigraph.server.audit")
ANONYMOUS = "anonymous"


@dataclass(frozen=True, slots=True)
class Need:
    """Something a request wants to do."""

    action: Action
    branch: str | None = None
    target_branch: str | None = None
    mode: str | None = None
    instead: OmnigraphError | None = None  # what a refusal looks like where it must tell nothing


@dataclass(frozen=True, slots=True)
class Access:
    """The policies of a server: one for itself, at most one for each graph."""

    authenticated: bool
    server: Policy | None = None
    graphs: Mapping[str, Policy] = field(default_factory=dict)

    def require(self, actor: str | None, graph: str | None, need: Need) -> None:
        """Raise unless it is allowed; a refusal is written to the audit log."""
        question = Question(
            actor or ANONYMOUS, need.action, graph, need.branch, need.target_branch, need.mode
        )
        why = self._refusal(question)
        if why is not None:
            audit.warning("denied graph=%s %a", graph, str(question))  # names may hold line breaks
            if need.instead is not None:
                raise need.instead
            raise PolicyDenied(why, details={"action": str(need.action)})

    def _refusal(self, question: Question) -> str | None:
        """Why not; none if it is allowed."""
        policy = self.server if question.graph is None else self.graphs.get(question.graph)
        if policy is not None:
            decided = policy.decide(question)
            return None if decided.allowed else decided.message
        if question.graph is None:
            return f"policy denied {question}: no policy of the server allows it"
        if not self.authenticated or question.action is Action.READ:
            return None
        return f"policy denied {question}: the graph has no policy, so it can only be read"
