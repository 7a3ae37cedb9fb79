"""The one place that enforces a policy, for served graphs and for those opened directly alike."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace

from omnigraph.errors import OmnigraphError
from omnigraph.model.frozen import frozen
from omnigraph.policy.bundle import Protection
from omnigraph.policy.cedar import Policy
from omnigraph.policy.questions import Action, PolicyDenied, Question

audit = logging.getLogger("omnigraph.audit")
HARMLESS = frozenset(
    {Action.READ, Action.EXPORT, Action.INVOKE_QUERY, Action.GRAPH_LIST, Action.CLUSTER_PLAN}
)


@frozen
class Need:
    """A requested action; `types` are those whose rows it concerns, once they are known."""

    action: Action
    branch: str | None = None
    target_branch: str | None = None
    mode: str | None = None
    types: frozenset[str] = frozenset()
    reads: tuple[
        str, ...
    ] = ()  # branches whose rows it copies or reveals: must be readable, for the same types
    instead: OmnigraphError | None = None  # the error for a denial that must reveal nothing
    proposal: bool = False  # it is the merge of a proposal that has what its target requires

    def of(self, types: frozenset[str]) -> Need:
        """The same, now that the types are known."""
        return replace(self, types=types)


@frozen
class Guard:
    """What one actor may do with one graph, or with a server if `graph` is None.

    Without a policy a graph can only be read. An unknown actor may do nothing.
    """

    policy: Policy | None
    actor: str | None = None
    graph: str | None = None
    read_only: bool = False  # whatever the policy says

    def acting(self, actor: str | None) -> Guard:
        """The same guard for the named actor; without a name, for the actor it was made for."""
        return self if actor in (None, self.actor) else replace(self, actor=actor)

    def require(self, need: Need) -> None:
        """Raise unless it is allowed, for every type it concerns; a denial is written to the audit log."""
        for question in self._questions(need):
            why = self._refusal(question)
            if why is None:
                continue
            audit.info(
                "denied graph=%s %a", self.graph, str(question)
            )  # names may hold line breaks
            if need.instead is not None:
                raise need.instead
            details = {"action": str(question.action)}
            if question.type is not None:
                details["type"] = question.type
            raise PolicyDenied(why, details=details)

    def allows(self, need: Need) -> bool:
        """Whether it is allowed, without logging."""
        return all(self._refusal(question) is None for question in self._questions(need))

    def protection(self, branch: str) -> Protection | None:
        """The requirements of a branch for changes."""
        return None if self.policy is None else self.policy.protection(branch)

    def counts_as_approver(self, actor: str, wanted: Protection) -> bool:
        """Whether the approval of an actor counts for a branch."""
        rules = None if self.policy is None else self.policy.rules
        return wanted.approvers is None or rules is None or rules.are_in(actor, wanted.approvers)

    def _questions(self, need: Need) -> Iterator[Question]:
        actor, graph = self.actor or "", self.graph
        for name in sorted(need.types) or (None,):
            where = need.branch, need.target_branch
            yield Question(actor, need.action, graph, *where, need.mode, name, need.proposal)
            for branch in need.reads:
                yield Question(actor, Action.READ, graph, branch, type=name)

    def _refusal(self, question: Question) -> str | None:
        """The reason for a denial; None if it is allowed."""
        if self.actor is None:
            return f"policy denied action '{question.action}': no actor is given"
        if self.read_only and question.action not in HARMLESS:
            return f"denied {question}: it is served read-only"
        if self.policy is not None:
            decided = self.policy.decide(question)
            return None if decided.allowed else decided.message
        if question.graph is None:
            return f"policy denied {question}: no policy of the server allows it"
        if question.action is Action.READ:
            return None
        return f"policy denied {question}: the graph has no policy, so it can only be read"
