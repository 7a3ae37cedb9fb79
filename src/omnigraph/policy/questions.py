"""What a policy is asked, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.model.names import branch_name


class Action(StrEnum):
    """What somebody may be allowed to do."""

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
# What changes a branch, or where its name leads: what a protected branch takes from few, or from nobody.
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
        "Ask whoever keeps the policy; `omnigraph policy explain` shows how a decision is made."
    )


@dataclass(frozen=True, slots=True)
class Question:
    """May this actor do this? `graph` is none for what concerns a server as a whole.

    Branches are called by the names the store knows them by, however they were spelled by whoever asks.
    """

    actor: str
    action: Action
    graph: str | None = None
    branch: str | None = None
    target_branch: str | None = None
    mode: str | None = None  # of a load: append, merge or overwrite
    type: str | None = None  # whose rows; none: all that can be asked before that is known
    proposal: bool = False  # whether it is the merge of a proposal that has what its target demands

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


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """The answer, the rule that gave it, and why in a sentence."""

    allowed: bool
    rule: str | None
    message: str
