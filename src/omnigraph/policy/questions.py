"""Policy questions and decisions."""

from __future__ import annotations

from enum import StrEnum

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.model.frozen import frozen
from omnigraph.model.names import branch_name


class Action(StrEnum):
    """An action a policy can allow."""

    READ = "read"
    EXPORT = "export"
    CHANGE = "change"
    SCHEMA_APPLY = "schema_apply"
    BRANCH_CREATE = "branch_create"
    BRANCH_DELETE = "branch_delete"
    BRANCH_MERGE = "branch_merge"
    PROPOSE = "propose"
    APPROVE = "approve"
    ADMIN = "admin"
    INVOKE_QUERY = "invoke_query"
    GRAPH_LIST = "graph_list"
    CLUSTER_PLAN = "cluster_plan"
    CLUSTER_APPLY = "cluster_apply"


ON_BRANCH = frozenset({Action.READ, Action.EXPORT, Action.CHANGE})
ON_TARGET = frozenset(
    {
        Action.BRANCH_CREATE,
        Action.BRANCH_DELETE,
        Action.BRANCH_MERGE,
        Action.PROPOSE,
        Action.APPROVE,
        Action.SCHEMA_APPLY,
    }
)
# Actions that change a branch, or what its name refers to: on a protected branch for few actors, or none.
PUSHES = frozenset(
    {
        Action.CHANGE,
        Action.BRANCH_CREATE,
        Action.BRANCH_DELETE,
        Action.BRANCH_MERGE,
        Action.SCHEMA_APPLY,
    }
)
ON_TYPES = frozenset({Action.READ, Action.EXPORT, Action.CHANGE, Action.BRANCH_MERGE})
ON_SERVER = frozenset({Action.GRAPH_LIST, Action.CLUSTER_PLAN, Action.CLUSTER_APPLY})


class PolicyInvalid(OmnigraphError):
    """A policy cannot be used."""

    code, kind = "policy_invalid", Kind.INVALID
    default_help = "Fix the file; `omnigraph policy test` reads it without starting a server."


class PolicyDenied(OmnigraphError):
    """A policy does not allow this."""

    code, kind = "policy_denied", Kind.DENIED
    default_help = (
        "Ask the owner of the policy; `omnigraph policy explain` shows how a decision is made."
    )


@frozen
class Question:
    """May this actor do this? `graph` is None for questions about a server as a whole.

    Branch names are in their stored spelling, however the caller spelled them.
    """

    actor: str
    action: Action
    graph: str | None = None
    branch: str | None = None
    target_branch: str | None = None
    mode: str | None = None  # of a load: append, merge or overwrite
    type: str | None = None  # whose rows; None: not known yet
    proposal: bool = False  # the merge of a proposal that has what its target requires

    def __post_init__(self) -> None:
        for name in ("branch", "target_branch"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, branch_name(given))

    @property
    def pushed(self) -> str | None:
        """The branch it would change directly."""
        if self.action not in PUSHES or self.proposal:
            return None
        return self.branch if self.target_branch is None else self.target_branch

    def __str__(self) -> str:
        on = f" on branch '{self.branch}'" if self.branch is not None else ""
        to = f" targeting branch '{self.target_branch}'" if self.target_branch is not None else ""
        of = f" of type '{self.type}'" if self.type is not None else ""
        return f"action '{self.action}'{on}{to}{of} for actor '{self.actor}'"


@frozen
class PolicyDecision:
    """The decision, the rule behind it, and the reason in a sentence."""

    allowed: bool
    rule: str | None
    message: str
