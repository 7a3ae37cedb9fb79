"""The arguments of tools: structs whose fields are checked before a tool is called, and whose schemas agents see."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from omnigraph.agents.answers import ROWS, ROWS_MAX
from omnigraph.agents.toolbox import TRAILER_CHARACTERS_MAX
from omnigraph.agents.walking import HOPS_MAX

NAME_CHARACTERS_MAX = 255
TEXT_CHARACTERS_MAX = 100_000
RECORDS_MAX = 5_000
VALUES_MAX = 100

Name = Annotated[str, Meta(min_length=1, max_length=NAME_CHARACTERS_MAX)]
Id = Annotated[str, Meta(max_length=4000)]
Text = Annotated[str, Meta(max_length=TEXT_CHARACTERS_MAX)]
Said = Annotated[str, Meta(max_length=4000)]
ProposalNumber = Annotated[int, Meta(ge=1, le=2**31)]
Few = Annotated[list[Name], Meta(max_length=VALUES_MAX)]
Line = Annotated[str, Meta(min_length=1, max_length=TRAILER_CHARACTERS_MAX)]
Branch = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=NAME_CHARACTERS_MAX,
        description="The branch to read; main unless given.",
    ),
]
At = Annotated[
    Name | None, Meta(description="A commit, tag or time (RFC 3339) instead of the branch's head.")
]
Rows = Annotated[int, Meta(ge=1, le=ROWS_MAX, description="How many rows to show.")]
Cursor = Annotated[
    Id | None, Meta(description="`next_cursor` of the answer before, with the same arguments.")
]
Params = Annotated[
    dict[str, Any] | None, Meta(description="The values of the query's parameters, by name.")
]
QueryText = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=TEXT_CHARACTERS_MAX,
        description="Query text; omnigraph://language describes the language.",
    ),
]
TypeNames = Annotated[Few | None, Meta(description="Only these types.")]
Target = Annotated[
    Name | None,
    Meta(
        description="The branch to change. By default it is your own branch, created from main when needed.",
    ),
]
Message = Annotated[
    Said | None, Meta(description="The purpose of the change, as a commit message.")
]
Person = Annotated[Line | None, Meta(description="The person you work for, named in the commit.")]
Conversation = Annotated[
    Line | None, Meta(description="An id of this conversation, named in the commit.")
]
DryRun = Annotated[bool, Meta(description="Only report what would happen.")]


class ToolArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The arguments of a tool; unknown ones are refused."""


class DescribeArguments(ToolArguments, frozen=True, kw_only=True):
    branch: Branch = "main"
    at: At = None
    type: Annotated[Name | None, Meta(description="One type, in full.")] = None


class SearchArguments(ToolArguments, frozen=True, kw_only=True):
    text: Annotated[str, Meta(min_length=1, max_length=4000, description="The text to search for.")]
    types: TypeNames = None
    branch: Branch = "main"
    at: At = None
    limit: Annotated[int, Meta(ge=1, le=50, description="How many nodes to find.")] = 10
    neighbours: Annotated[
        int, Meta(ge=0, le=10, description="How many neighbours of each to show, by type of edge.")
    ] = 0


class FindEntityArguments(ToolArguments, frozen=True, kw_only=True):
    type: Annotated[Name, Meta(description="A node type.")]
    id: Annotated[Id | None, Meta(description="Its id.")] = None
    where: Annotated[
        dict[str, Any] | None, Meta(description="Properties and the values they must equal.")
    ] = None
    branch: Branch = "main"
    at: At = None
    limit: Rows = ROWS
    cursor: Cursor = None


class NeighboursArguments(ToolArguments, frozen=True, kw_only=True):
    type: Annotated[Name, Meta(description="The type of the node.")]
    id: Annotated[str, Meta(max_length=4000, description="The id of the node.")]
    edges: Annotated[Few | None, Meta(description="Only these types of edges.")] = None
    direction: Annotated[
        Literal["out", "in", "both"],
        Meta(description="The direction of the edges, seen from the node."),
    ] = "both"
    branch: Branch = "main"
    at: At = None
    limit: Annotated[int, Meta(ge=1, le=ROWS_MAX, description="How many of each type of edge.")] = 5


class PathArguments(ToolArguments, frozen=True, kw_only=True):
    from_type: Name
    from_id: Id
    to_type: Name
    to_id: Id
    edges: Annotated[Few | None, Meta(description="Only over these types of edges.")] = None
    hops_max: Annotated[int, Meta(ge=1, le=HOPS_MAX, description="The longest path to try.")] = 4
    branch: Branch = "main"
    at: At = None


class RunQueryArguments(ToolArguments, frozen=True, kw_only=True):
    query: QueryText
    params: Params = None
    name: Annotated[Name | None, Meta(description="The query to run, if the text has several.")] = (
        None
    )
    branch: Branch = "main"
    at: At = None
    limit: Rows = ROWS
    cursor: Cursor = None


class RunStoredQueryArguments(ToolArguments, frozen=True, kw_only=True):
    name: Annotated[Name, Meta(description="A stored query that reads.")]
    params: Params = None
    branch: Branch = "main"
    at: At = None
    limit: Rows = ROWS
    cursor: Cursor = None


class ExplainErrorArguments(ToolArguments, frozen=True, kw_only=True):
    code: Annotated[Name, Meta(description="The code of an error, such as T3.")]


class DiffArguments(ToolArguments, frozen=True, kw_only=True):
    branch: Annotated[Name | None, Meta(description="Your own branch unless given.")] = None
    against: Annotated[Name, Meta(description="The branch or commit to compare with.")] = "main"
    types: TypeNames = None
    limit: Rows = ROWS
    cursor: Cursor = None


class StartBranchArguments(ToolArguments, frozen=True, kw_only=True):
    name: Annotated[Name | None, Meta(description="A name of your choice.")] = None
    from_: Annotated[Name, Meta(description="A branch, commit or tag.")] = msgspec.field(
        default="main", name="from"
    )


class ChangeArguments(ToolArguments, frozen=True, kw_only=True):
    query: Annotated[Text | None, Meta(description="A mutation: insert, update or delete.")] = None
    stored: Annotated[Name | None, Meta(description="A stored mutation instead.")] = None
    params: Params = None
    branch: Target = None
    message: Message = None
    dry_run: DryRun = False
    person: Person = None
    conversation: Conversation = None


class LoadRecordsArguments(ToolArguments, frozen=True, kw_only=True):
    records: Annotated[
        dict[Name, Annotated[list[dict[str, Any]], Meta(max_length=RECORDS_MAX)]],
        Meta(
            min_length=1,
            max_length=VALUES_MAX,
            description="Rows by type: their properties, and of an edge also `from` and `to`, the ids of its ends.",
        ),
    ]
    mode: Annotated[
        Literal["merge", "append"],
        Meta(description="merge updates rows with known ids; append requires all rows to be new."),
    ] = "merge"
    branch: Target = None
    message: Message = None
    dry_run: DryRun = False
    person: Person = None
    conversation: Conversation = None


class MergeBranchArguments(ToolArguments, frozen=True, kw_only=True):
    branch: Annotated[Name | None, Meta(description="Your own branch unless given.")] = None
    into: Annotated[Name, Meta(description="The branch that is changed.")] = "main"
    message: Message = None
    dry_run: DryRun = False
    person: Person = None
    conversation: Conversation = None
    proposal: Annotated[
        ProposalNumber | None, Meta(description="A proposal to merge, instead of a branch.")
    ] = None


class RunChecksArguments(ToolArguments, frozen=True, kw_only=True):
    branch: Annotated[Name | None, Meta(description="Your own branch unless given.")] = None
    before: Annotated[
        Name | None,
        Meta(description="The state that comparing checks use; the commit before, unless given."),
    ] = None
    only: Annotated[Few | None, Meta(description="Only the checks with these names.")] = None


class ProposeArguments(ToolArguments, frozen=True, kw_only=True):
    title: Annotated[str, Meta(min_length=1, max_length=200, description="One-line summary.")]
    text: Annotated[Said | None, Meta(description="The reason, and what to review.")] = None
    branch: Annotated[Name | None, Meta(description="Your own branch unless given.")] = None
    into: Annotated[Name, Meta(description="The branch that would be changed.")] = "main"
    reviewers: Annotated[Few | None, Meta(description="Requested reviewers.")] = None
    person: Person = None
    conversation: Conversation = None


class CommentArguments(ToolArguments, frozen=True, kw_only=True):
    number: Annotated[ProposalNumber, Meta(description="The proposal.")]
    text: Annotated[
        str, Meta(min_length=1, max_length=4000, description="The text of the comment.")
    ]
    type: Annotated[Name | None, Meta(description="A type it changes.")] = None
    id: Annotated[Id | None, Meta(description="A row of the type.")] = None
    property: Annotated[Name | None, Meta(description="A cell of the row.")] = None


class ProposalsArguments(ToolArguments, frozen=True, kw_only=True):
    number: Annotated[ProposalNumber | None, Meta(description="One proposal, in full.")] = None
    state: Annotated[
        Literal["open", "changes_wanted", "approved", "merged", "closed"] | None,
        Meta(description="Only those in this state."),
    ] = None


class BlameArguments(ToolArguments, frozen=True, kw_only=True):
    type: Annotated[Name, Meta(description="A node or edge type.")]
    id: Annotated[Id, Meta(description="The id of the row.")]
    branch: Branch = "main"
    at: At = None
