"""The table of tools: names, arguments, what each changes, and what handles it. Everything else follows from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cache
from typing import Any

import msgspec

from omnigraph.agents import arguments as args
from omnigraph.agents import reading, reviewing, writing
from omnigraph.agents.answers import ArgumentsInvalid, ToolAnswer, failure, unexpected
from omnigraph.agents.toolbox import Toolbox
from omnigraph.errors import OmnigraphError
from omnigraph.model.frozen import frozen
from omnigraph.policy.questions import Action


class Effect(Enum):
    """What a call does to the graph."""

    READS = "changes nothing"
    ADDS = "adds to the graph, and removes nothing"
    CHANGES = "may change or delete rows, on a branch"


@frozen
class Tool:
    """One tool."""

    name: str
    title: str
    description: str
    arguments: type[args.ToolArguments]
    effect: Effect
    handler: Callable[[Toolbox, Any], ToolAnswer]
    asks: Action  # the permission; on the branch and the types of its verbs
    where_allowed: bool = False  # offered only if a policy allows the agent to merge
    is_load: bool = False  # takes a turn with other loads

    @property
    def is_read_only(self) -> bool:
        return self.effect is Effect.READS

    @property
    def is_destructive(self) -> bool:
        return self.effect is Effect.CHANGES


# fmt: off
TOOLS = (
    Tool("describe", "Describe the graph",
         "Types with properties and row counts, branches, stored queries. Start here; with `type`, one type in full.",
         args.DescribeArguments, Effect.READS, reading.describe, Action.READ),
    Tool("search", "Search by words and meaning",
         "Find nodes about a text in all node types, best first: by their words, and by vectors if the schema has "
         "them; with `neighbours`, the neighbourhood of each.",
         args.SearchArguments, Effect.READS, reading.search, Action.READ),
    Tool("find_entity", "Find nodes by id or values",
         "Nodes of a type by `id`, or with equal values of properties (`where`); without either, all of them in pages.",
         args.FindEntityArguments, Effect.READS, reading.find_entity, Action.READ),
    Tool("neighbours", "Show the neighbours of a node",
         "The number of edges of a node by type, and the first nodes at their other ends.",
         args.NeighboursArguments, Effect.READS, reading.around, Action.READ),
    Tool("path", "Find a shortest path",
         "One of the shortest paths between two nodes, over edges of all types in both directions.",
         args.PathArguments, Effect.READS, reading.path, Action.READ),
    Tool("run_query", "Run a query",
         "Run a query that reads: patterns, conditions, aggregates, search. Read omnigraph://language first.",
         args.RunQueryArguments, Effect.READS, reading.run_query, Action.READ),
    Tool("run_stored_query", "Run a stored query",
         "Run a query that was prepared for this graph, by its name. omnigraph://queries lists them with parameters.",
         args.RunStoredQueryArguments, Effect.READS, reading.run_stored_query, Action.INVOKE_QUERY),
    Tool("explain_error", "Explain an error",
         "The meaning of an error code, and how to fix it.",
         args.ExplainErrorArguments, Effect.READS, reading.explain_error, Action.READ),
    Tool("diff", "Compare a branch",
         "The changes of a branch since it diverged from another: counts by type first, then rows with changed cells.",
         args.DiffArguments, Effect.READS, reading.diff, Action.READ),
    Tool("run_checks", "Run the checks",
         "Run the checks of the graph on a branch: failures come first, with their rows.",
         args.RunChecksArguments, Effect.READS, reviewing.run_checks, Action.READ),
    Tool("proposals", "Look at proposals",
         "Branches offered for merging; with `number`, the changes, comments and check results of one, and what is "
         "missing before it may be merged.",
         args.ProposalsArguments, Effect.READS, reviewing.proposals, Action.READ),
    Tool("blame", "Show who wrote what",
         "For each value of a node or edge: the commit that set it, and the merge that brought it here.",
         args.BlameArguments, Effect.READS, reviewing.blame, Action.READ),
    Tool("start_branch", "Start a branch",
         "Create a branch to work on. Nothing is copied, and your changes there stay off main until it is merged.",
         args.StartBranchArguments, Effect.ADDS, writing.start_branch, Action.BRANCH_CREATE),
    Tool("change", "Change rows",
         "Run a mutation (insert, update or delete) as one commit, on your own branch unless another is given.",
         args.ChangeArguments, Effect.CHANGES, writing.change, Action.CHANGE),
    Tool("load_records", "Load records",
         "Load rows of one or more types as one commit, on your own branch unless another is given. All rows "
         "are checked first; if one is invalid, none is loaded and the error names it.",
         args.LoadRecordsArguments, Effect.CHANGES, writing.load_records, Action.CHANGE, is_load=True),
    Tool("propose", "Offer a branch for merging",
         "Offer a branch to people: they see its changes, comment, and decide whether to merge it.",
         args.ProposeArguments, Effect.ADDS, reviewing.propose, Action.PROPOSE),
    Tool("comment", "Comment on a proposal",
         "Comment on a proposal, or on a type, a row or a cell it changes.",
         args.CommentArguments, Effect.ADDS, reviewing.comment, Action.PROPOSE),
    Tool("merge_branch", "Merge a branch",
         "Merge a branch, or a proposal by its number, into another as one commit. Only offered if a policy allows "
         "it to you; use it only when the person you work for has asked for it.",
         args.MergeBranchArguments, Effect.CHANGES, writing.merge_branch, Action.BRANCH_MERGE, where_allowed=True),
)
# fmt: on
BY_NAME = {tool.name: tool for tool in TOOLS}


def offered(box: Toolbox) -> Iterator[Tool]:
    """The tools an agent is shown."""
    for tool in TOOLS:
        if not tool.where_allowed or box.offers_merges:
            yield tool


@cache
def schema_of(tool: Tool) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments."""
    (_, components) = msgspec.json.schema_components([tool.arguments], ref_template="{name}")
    found = dict(components[tool.arguments.__name__])
    found.pop("title", None)
    found.pop("description", None)
    return found


def call(tool: Tool, box: Toolbox, given: Mapping[str, Any] | None) -> ToolAnswer:
    """The answer of a tool; errors are answers too."""
    try:
        return tool.handler(box, _arguments(tool, given))
    except OmnigraphError as error:
        return failure(error)
    except Exception as error:
        return unexpected(error)


def _arguments(tool: Tool, given: Mapping[str, Any] | None) -> Any:
    values = dict(given or {})
    try:
        msgspec.json.encode(values)  # JSON can encode a lone surrogate, which cannot be stored
        return msgspec.convert(values, tool.arguments)
    except (UnicodeEncodeError, RecursionError):
        raise ArgumentsInvalid("the arguments are not valid Unicode") from None
    except msgspec.ValidationError as error:
        raise ArgumentsInvalid(f"the arguments do not fit: {error}") from None
