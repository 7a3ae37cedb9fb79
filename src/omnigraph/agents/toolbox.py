"""The context of a tool: a graph, the provenance of the call, the stored queries, and limits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from functools import lru_cache

from omnigraph.agents.stored import StoredQuery
from omnigraph.errors import Kind, OmnigraphError
from omnigraph.graph import Graph
from omnigraph.guarded import GuardedGraph
from omnigraph.lang.schema import catalog_of, compile_schema
from omnigraph.model.catalog import Catalog
from omnigraph.model.frozen import frozen
from omnigraph.model.names import MAIN, branch_name
from omnigraph.policy.guard import Need
from omnigraph.policy.questions import Action
from omnigraph.remote.graph import RemoteGraph

AGENT = "agent"  # the default writer
BRANCHES = "agents/"  # the prefix of agents' own branches
SLUG_CHARACTERS_MAX = 60
TRAILER_CHARACTERS_MAX = 200
NOT_IN_A_SLUG = re.compile(r"[^A-Za-z0-9._-]+")


class McpMissing(OmnigraphError):
    """The package that speaks MCP is not installed."""

    code, kind = "mcp_missing", Kind.INVALID
    default_help = "Install it with `pip install 'omnigraph[mcp]'`."


class AgentBranchRequired(OmnigraphError):
    """An agent may not write to main here.

    Agents change branches, and people or policies decide what is merged. An agent writes to main, or merges, only if a
    policy of the graph allows it to that actor.
    """

    code, kind = "agent_branch_required", Kind.DENIED
    default_help = "Omit the branch, or name one of your own; a policy can allow more."


class AgentMergeRefused(OmnigraphError):
    """An agent may not merge here.

    People merge what agents propose. An agent merges only if a policy of the graph allows it to that actor.
    """

    code, kind = "agent_merge_refused", Kind.DENIED
    default_help = "Tell the person you work for which branch to merge; a policy can allow more."


class ProvenanceInvalid(OmnigraphError):
    """A name of an agent, a person or a conversation cannot be stored in a commit."""

    code, kind = "provenance_invalid", Kind.INVALID
    default_help = f"It must be one line of at most {TRAILER_CHARACTERS_MAX} characters."


@frozen
class ToolLimits:
    """The limits of one call."""

    query_seconds_max: float = 30.0
    write_seconds_max: float = 60.0
    query_rows_max: int = 10_000  # of a result, before it is cut into pages


@frozen
class Provenance:
    """The origin of a write: the actor is authenticated, everything else is declared by its client."""

    actor: str | None = None  # as the policy knows it; None without authentication
    agent: str | None = None  # the program
    version: str | None = None  # of the program
    person: str | None = None  # whom it works for
    conversation: str | None = None  # in which the change was discussed

    def __post_init__(self) -> None:
        for name in ("agent", "version", "person", "conversation"):
            given = getattr(self, name)
            if given is not None and not _fits_a_line(given):
                raise ProvenanceInvalid(f"{name} cannot be stored in a commit")

    def completed(self, person: str | None, conversation: str | None) -> Provenance:
        """The same, completed by the arguments of a call; known values stay."""
        return replace(
            self,
            person=self.person or person,
            conversation=self.conversation or conversation,
        )

    @property
    def writer(self) -> str:
        """The actor of commits."""
        return self.actor or _slug(self.agent or AGENT)

    @property
    def branch(self) -> str:
        """The agent's own branch: one for each conversation, if known."""
        name = BRANCHES + _slug(self.writer)
        return f"{name}/{_slug(self.conversation)}" if self.conversation else name

    def message(self, said: str | None) -> str:
        """The message of a commit; its last lines name the agent, the person and the conversation."""
        program = " ".join(part for part in (self.agent or self.writer, self.version) if part)
        lines = {
            "Agent": program,
            "On-behalf-of": self.person,
            "Conversation": self.conversation,
        }
        trailers = "\n".join(f"{name}: {value}" for name, value in lines.items() if value)
        return f"{(said or 'Change by an agent').strip()}\n\n{trailers}"


def _fits_a_line(text: str) -> bool:
    return 0 < len(text) <= TRAILER_CHARACTERS_MAX and text.isprintable() and text == text.strip()


def _slug(text: str) -> str:
    """A text as a part of a name of a branch."""
    return NOT_IN_A_SLUG.sub("-", text).strip("-.")[:SLUG_CHARACTERS_MAX] or AGENT


@frozen
class Toolbox:
    """A graph for one agent."""

    graph: Graph
    provenance: Provenance = Provenance()
    queries: Mapping[str, StoredQuery] = field(
        default_factory=dict
    )  # by name; a server has its own
    limits: ToolLimits = ToolLimits()

    def completed(self, person: str | None, conversation: str | None) -> Toolbox:
        """The same for a call that names its person and conversation."""
        return replace(self, provenance=self.provenance.completed(person, conversation))

    def catalog(self, branch: str, at: str | None = None) -> Catalog:
        """The types of a state, as visible to the actor."""
        return catalog_of_text(self.graph.schema(branch, at))

    def branch_to_write(self, given: str | None) -> str:
        """The branch a change goes to: the agent's own, or the given one, if allowed."""
        if given is None:
            return self.provenance.branch
        name = branch_name(given)
        if name == MAIN and not self.is_allowed(Action.CHANGE, MAIN):
            raise AgentBranchRequired("no policy lets this agent change main")
        return name

    def is_allowed(self, action: Action, branch: str) -> bool:
        """Whether a policy allows this actor an action; False without a policy."""
        if isinstance(self.graph, RemoteGraph):
            return self.graph.permits(action, branch)
        return self._has(Need(action, branch))

    def may_merge(self, into: str, *, proposal: bool = False) -> bool:
        """Whether a policy allows this actor to merge into a branch, directly or a complete proposal."""
        if isinstance(self.graph, RemoteGraph):
            # its policy decides about a proposal on the way
            return self.graph.permits(Action.READ if proposal else Action.BRANCH_MERGE, into)
        return self._has(Need(Action.BRANCH_MERGE, target_branch=into, proposal=proposal))

    @property
    def offers_merges(self) -> bool:
        """Whether the agent is offered to merge into main."""
        is_remote = isinstance(self.graph, RemoteGraph)
        return self.may_merge(MAIN) or (not is_remote and self.may_merge(MAIN, proposal=True))

    def _has(self, need: Need) -> bool:
        guard = self.graph._guard if isinstance(self.graph, GuardedGraph) else None
        return guard is not None and guard.policy is not None and guard.allows(need)

    @property
    def actor(self) -> str | None:
        """The actor to pass to a write; a policy and a server already know it."""
        if self.provenance.actor is not None:
            return self.provenance.actor
        is_known = isinstance(self.graph, GuardedGraph | RemoteGraph)
        return None if is_known else self.provenance.writer


@lru_cache(maxsize=64)
def catalog_of_text(schema: str) -> Catalog:
    """The types of the text of a schema."""
    return catalog_of(compile_schema(schema))
