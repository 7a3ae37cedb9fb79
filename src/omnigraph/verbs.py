"""Every verb of a graph, described once: its policy check, its cost, whether it has a dry run, its route.

The request of a verb is the signature of its method on `Graph`, its result is what that method returns. The two
define a local graph, a served one, a graph under a policy, a branch, the wire, the routes and their description. A
method that is not listed here works only on a local graph: under a policy it is denied, and no server offers it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

from omnigraph.model.frozen import frozen
from omnigraph.parameters import explained
from omnigraph.policy.questions import Action

F = TypeVar("F", bound=Callable[..., Any])


class Timing(Enum):
    """When a policy checks a verb."""

    FIRST = "before anything else, for the graph as a whole"
    STATE = "for the branch and the types of the state it shows, before it shows anything"
    WRITE = "for the branch first, and for the types it changes before they are published"
    LATER = "in the verbs called on what it returns"


@frozen
class Description:
    """A verb of a graph. `request` and `answer` name its structs in `omnigraph.wire`, if it has a route."""

    name: str
    action: Action | None  # what a policy must allow
    timing: Timing
    cost: str
    route: str | None = None  # method and path; path parameters come first
    request: str | None = None
    answer: str | None = None
    dry_run: bool = False  # whether it can plan without publishing

    @property
    def writes(self) -> bool:
        """Whether it changes the graph."""
        return self.action not in (None, Action.READ, Action.EXPORT)

    @property
    def about(self) -> str:
        """Cost, policy and dry run in sentences, for references."""
        said = [f"Cost: {self.cost}."]
        if self.action is not None:
            said.append(f"A policy checks `{self.action}` {self.timing.value}.")
        if self.dry_run:
            said.append("With `dry_run` it only reports what it would do.")
        return " ".join(said)

    @property
    def request_type(self) -> Any:
        """The struct of its body or query string; None if the path says all."""
        return _struct("requests", self.request)

    @property
    def answer_type(self) -> Any:
        """The struct of its response; None if the response is bytes."""
        return _struct("answers", self.answer)


def _struct(module: str, name: str | None) -> Any:
    """Imported lazily: a local graph does not need the wire."""
    if name is None:
        return None
    own, _, name = name.rpartition(".")
    return getattr(import_module(f"omnigraph.wire.{own or module}"), name)


A = Action
HEAD = "one lookup of the head of the branch"
PUBLISH = f"{HEAD}, one file or more for each table it changes, one object to publish"

# fmt: off
_ALL = (
    # reading
    Description("query", A.READ, Timing.STATE, f"{HEAD}; then what the plan reads, see `explain`",
                "POST /query", "QueryRequest", "reading.ReadOutput"),
    Description("query_many", A.READ, Timing.STATE,
                f"{HEAD}; then what one run reads, or what each of them reads if they differ",
                "POST /query/many", "QueryManyRequest", "reading.ReadManyOutput"),
    Description("schema", A.READ, Timing.STATE, HEAD, "GET /schema", "BranchQuery", "SchemaOutput"),
    Description("snapshot", A.READ, Timing.STATE, HEAD, "GET /snapshot", "BranchQuery", "SnapshotOutput"),
    Description("blob", A.READ, Timing.STATE, f"{HEAD} and one lookup; bytes as they are read",
                "GET /blob", "BlobQuery"),
    Description("export", A.EXPORT, Timing.STATE, "all rows of the types it writes",
                "GET /export", "ExportQuery"),
    Description("analytics", A.READ, Timing.LATER, "nothing; each measure reads the edges it names"),
    Description("spark", A.READ, Timing.STATE, f"{HEAD} and a Spark session; rows as they are used"),
    # writing
    Description("mutate", A.CHANGE, Timing.WRITE, PUBLISH,
                "POST /mutate", "MutateRequest", "ChangeOutput", dry_run=True),
    Description("load", A.CHANGE, Timing.WRITE, f"its input, read once; {PUBLISH}",
                "POST /load", "LoadRequest", "LoadOutput", dry_run=True),
    Description("write", A.CHANGE, Timing.WRITE, f"for all writes of the block together: {PUBLISH}",
                "POST /write", "WriteRequest", "WriteOutput", dry_run=True),
    Description("publish", A.CHANGE, Timing.WRITE, PUBLISH, dry_run=True),
    Description("mutation", A.CHANGE, Timing.LATER, "nothing before it is published"),
    Description("plan_schema", A.READ, Timing.STATE, HEAD, "POST /schema/plan", "SchemaRequest",
                "PlanOutput"),
    Description("apply_schema", A.SCHEMA_APPLY, Timing.WRITE, f"rows that new rules concern; {PUBLISH}",
                "POST /schema/apply", "SchemaRequest", "AppliedOutput", dry_run=True),
    # branches and tags
    Description("branch", None, Timing.LATER, "nothing"),
    Description("branches", A.READ, Timing.FIRST, "a listing, and two requests for each branch",
                "GET /branches", answer="BranchesOutput"),
    Description("create_branch", A.BRANCH_CREATE, Timing.WRITE, "two objects; no rows are copied",
                "POST /branches", "BranchRequest", "BranchOutput", dry_run=True),
    Description("delete_branch", A.BRANCH_DELETE, Timing.WRITE, "two objects",
                "DELETE /branches/{name}", "RemovalQuery", "BranchOutput", dry_run=True),
    Description("tags", A.READ, Timing.FIRST, "a listing, and one request for each name",
                "GET /tags", answer="TagsOutput"),
    Description("tag", A.BRANCH_CREATE, Timing.WRITE, "one object",
                "POST /tags", "TagRequest", "TagOutput", dry_run=True),
    Description("delete_tag", A.BRANCH_DELETE, Timing.WRITE, "one object",
                "DELETE /tags/{name}", "RemovalQuery", "TagOutput", dry_run=True),
    # history
    Description("log", A.READ, Timing.STATE, "one request for each page of commits",
                "GET /commits", "CommitsQuery", "CommitsOutput"),
    Description("commit", A.READ, Timing.FIRST, "one request", "GET /commits/{commit_id}",
                answer="CommitOutput"),
    Description("history", A.READ, Timing.STATE, "two lookups for each commit that touched the row",
                "GET /entities/{type}/{id}/history", "EntityHistoryQuery", "EntityHistoryOutput"),
    Description("diff", A.READ, Timing.STATE, "the rows that differ, and the files they are in",
                "GET /diff", "DiffQuery", "DiffOutput"),
    Description("changes", A.READ, Timing.STATE, f"{HEAD}; the rows of each commit as it is reached",
                "GET /changes", "FeedQuery", "feed.FeedOutput"),
    Description("merge", A.BRANCH_MERGE, Timing.WRITE, f"the rows both sides changed; {PUBLISH}",
                "POST /branches/merge", "MergeRequest", "MergeOutput", dry_run=True),
    Description("revert", A.CHANGE, Timing.WRITE, f"the rows the commit changed; {PUBLISH}",
                "POST /revert", "UndoRequest", "MergeOutput", dry_run=True),
    Description("cherry_pick", A.CHANGE, Timing.WRITE, f"the rows the commit changed; {PUBLISH}",
                "POST /cherry-pick", "UndoRequest", "MergeOutput", dry_run=True),
    Description("reset", A.CHANGE, Timing.WRITE, "one object; no rows are copied",
                "POST /reset", "ResetRequest", "MergeOutput", dry_run=True),
    Description("blame", A.READ, Timing.STATE, "two lookups for each of the newest commits that touched the row",
                "GET /entities/{type}/{id}/blame", "BranchQuery", "review.BlameOutput"),
    # checks
    Description("checks", A.READ, Timing.STATE, HEAD, "GET /checks", "BranchQuery", "review.ChecksOutput"),
    Description("apply_checks", A.SCHEMA_APPLY, Timing.WRITE, f"{HEAD}, two objects; no rows are read",
                "POST /checks", "review.ChecksRequest", "review.ChecksAppliedOutput", dry_run=True),
    Description("check", A.READ, Timing.STATE, f"{HEAD}; what the queries of its checks read, and one object",
                "POST /check", "review.CheckRequest", "review.CheckReportOutput"),
    Description("check_results", A.READ, Timing.STATE, "a listing, and one request for each run that is kept",
                "GET /commits/{commit_id}/checks", answer="review.CheckResultsOutput"),
    Description("profile", A.READ, Timing.STATE, "all rows of the types it looks at, a column at a time",
                "GET /profile", "review.ProfileQuery", "review.ProfileOutput"),
    # proposals
    Description("proposals", A.READ, Timing.STATE, "a listing, and three requests for each proposal it shows",
                "GET /proposals", "review.ProposalsQuery", "review.ProposalsOutput"),
    Description("proposal", A.READ, Timing.STATE, "a listing, and one request for each of its events",
                "GET /proposals/{number}", answer="review.ProposalOutput"),
    Description("review", A.READ, Timing.STATE, "the differing rows, a dry run of the merge, and what its checks read",
                "GET /proposals/{number}/review", "review.ReviewQuery", "review.ReviewOutput"),
    Description("propose", A.PROPOSE, Timing.WRITE, "a listing, one request for each proposal, one object",
                "POST /proposals", "review.ProposeRequest", "review.ProposalOutput", dry_run=True),
    Description("comment", A.PROPOSE, Timing.WRITE, "a listing and one object",
                "POST /proposals/{number}/comments", "review.CommentRequest", "review.ProposalOutput",
                dry_run=True),
    Description("approve", A.APPROVE, Timing.WRITE, "a listing and one object",
                "POST /proposals/{number}/approve", "review.ApproveRequest", "review.ProposalOutput",
                dry_run=True),
    Description("request_changes", A.APPROVE, Timing.WRITE, "a listing and one object",
                "POST /proposals/{number}/request-changes", "review.ChangesRequest", "review.ProposalOutput",
                dry_run=True),
    Description("close_proposal", A.PROPOSE, Timing.WRITE, "a listing and one object",
                "POST /proposals/{number}/close", "review.CloseRequest", "review.ProposalOutput",
                dry_run=True),
    Description("merge_proposal", A.BRANCH_MERGE, Timing.WRITE,
                f"two objects, what a merge and the checks read; {PUBLISH}",
                "POST /proposals/{number}/merge", "review.MergeProposalRequest", "MergeOutput",
                dry_run=True),
    # maintenance
    Description("maintenance", A.READ, Timing.FIRST, "one request",
                "GET /maintenance", answer="maintenance.MaintenanceOutput"),
    Description("retention", A.READ, Timing.FIRST, "one request",
                "GET /retention", answer="maintenance.RetentionOutput"),
    Description("set_retention", A.ADMIN, Timing.FIRST, "one object",
                "POST /retention", "RetentionRequest", "maintenance.RetentionOutput", dry_run=True),
    # maintenance and tools: they need the files of a graph, so no server offers them
    Description("maintain", A.ADMIN, Timing.FIRST, "the work that is due; else one lookup per branch"),
    Description("optimize", A.ADMIN, Timing.FIRST, "the fragments it rewrites; a commit for each table"),
    Description("embed", A.CHANGE, Timing.WRITE,
                f"the vectors, from their provider; for each batch of rows: {PUBLISH}", dry_run=True),
    Description("upkeep", A.ADMIN, Timing.FIRST, "a request for each branch while nothing changes"),
    Description("cleanup", A.ADMIN, Timing.FIRST, "a listing of all files", dry_run=True),
    Description("doctor", A.ADMIN, Timing.FIRST, "a listing of all files; deep, all rows"),
    Description("clone", A.ADMIN, Timing.FIRST, "a copy of all files"),
    Description("repository", A.ADMIN, Timing.FIRST, "nothing"),
    Description("uri", None, Timing.LATER, "nothing"),
)
# fmt: on
VERBS = {each.name: each for each in _ALL}


def verb(body: F) -> F:
    """Mark a method of a graph as the verb of its name. `_run` of its graph decides whether and where the body runs."""
    described = VERBS[body.__name__]

    @wraps(body)
    def called(self: Any, *args: Any, **named: Any) -> Any:
        return self._run(described, body, args, named)

    code = body.__code__
    names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    called.__doc__ = explained(body.__doc__ or "", body.__name__, names)
    return called  # type: ignore[return-value]
