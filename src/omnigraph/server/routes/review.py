"""Checks, proposals, profiles and who wrote what."""

from __future__ import annotations

from omnigraph.core.proposals import no_proposal
from omnigraph.server.errors import within
from omnigraph.server.request import Answer, HttpCall, committed
from omnigraph.server.routes.versions import settled_merge
from omnigraph.wire.requests import BranchQuery
from omnigraph.wire.review import (
    ApproveRequest,
    BlameOutput,
    ChangesRequest,
    CheckReportOutput,
    CheckRequest,
    CheckResultsOutput,
    ChecksAppliedOutput,
    ChecksOutput,
    ChecksRequest,
    CloseRequest,
    CommentRequest,
    MergeProposalRequest,
    ProfileOutput,
    ProfileQuery,
    ProposalOutput,
    ProposalsOutput,
    ProposalsQuery,
    ProposeRequest,
    ReviewOutput,
    ReviewQuery,
)

PROPOSALS_SHOWN = 50
PROPOSALS_SHOWN_MAX = 200
DIGITS_MAX = 12  # of a number

# --- checks --------------------------------------------------------------------------------------------------------


def checks(call: HttpCall) -> Answer:
    """The checks in force on a branch, or at a point."""
    request: BranchQuery = call.query
    return Answer(ChecksOutput.of(call.graph.checks(request.branch or "main", request.at)))


def apply_checks(call: HttpCall) -> Answer:
    """Replace the checks in force."""
    request: ChecksRequest = call.body
    done = call.graph.apply_checks(
        request.text,
        request.branch or "main",
        request.message,
        call.actor,
        dry_run=request.dry_run,
        timeout=call.bounds.write_seconds_max,
    )
    return committed(ChecksAppliedOutput.of(done), done.commit)


def check(call: HttpCall) -> Answer:
    """Run checks on one state."""
    request: CheckRequest = call.body
    found = call.graph.check(
        request.branch or "main",
        request.at,
        before=request.before,
        only=request.only,
        timeout=call.seconds(call.bounds.query_seconds_max, request.timeout),
        record=request.record,
        actor=call.actor,
    )
    return Answer(CheckReportOutput.of(found), commit=found.commit)


def check_results(call: HttpCall) -> Answer:
    """The results of all check runs on a commit."""
    found = call.graph.check_results(call.path["commit_id"])
    return Answer(CheckResultsOutput.of(found))


def profile(call: HttpCall) -> Answer:
    """The profile of a state, column by column; with `before`, beside that of another one."""
    request: ProfileQuery = call.query
    found = call.graph.profile(
        request.branch or "main", request.at, before=request.before, types=request.types
    )
    return Answer(ProfileOutput.of(found), commit=found.commit)


def blame(call: HttpCall) -> Answer:
    """Who wrote each value of a node or edge."""
    request: BranchQuery = call.query
    found = call.graph.blame(
        call.path["type"], call.path["id"], request.branch or "main", request.at
    )
    return Answer(BlameOutput.of(found))


# --- proposals -----------------------------------------------------------------------------------------------------


def _number(call: HttpCall) -> int:
    text = call.path["number"]
    if not (text.isascii() and text.isdecimal() and len(text) <= DIGITS_MAX):
        raise no_proposal(text)
    return int(text)


def proposals(call: HttpCall) -> Answer:
    """Branches offered for merging, newest first."""
    request: ProposalsQuery = call.query
    wanted = PROPOSALS_SHOWN if request.limit is None else request.limit
    limit = within("proposals_shown_max", PROPOSALS_SHOWN_MAX, wanted)
    return Answer(ProposalsOutput.of(call.graph.proposals(request.state, request.target, limit)))


def proposal(call: HttpCall) -> Answer:
    """One proposal, with its comments and events."""
    return Answer(ProposalOutput.of(call.graph.proposal(_number(call))))


def review(call: HttpCall) -> Answer:
    """The changes of a proposal, whether it merges, the results of its checks, and what is missing."""
    request: ReviewQuery = call.query
    seconds = call.seconds(call.bounds.query_seconds_max, request.timeout)
    found = call.graph.review(_number(call), timeout=seconds)
    catalog = call.unguarded.snapshot(at=found.head).catalog
    kinds = {kind.name: kind.kind for kind in catalog.entities()}
    return Answer(ReviewOutput.of(found, kinds), commit=found.head)


def propose(call: HttpCall) -> Answer:
    """Offer a branch for merging."""
    request: ProposeRequest = call.body
    found = call.graph.propose(
        request.source,
        request.title,
        request.into or "main",
        text=request.text,
        reviewers=request.reviewers,
        actor=call.actor,
        dry_run=request.dry_run,
    )
    return Answer(ProposalOutput.of(found))


def comment(call: HttpCall) -> Answer:
    """Comment on a proposal, a type, a row or a cell."""
    request: CommentRequest = call.body
    found = call.graph.comment(
        _number(call),
        request.text,
        type=request.type,
        id=request.id,
        property=request.property,
        actor=call.actor,
        dry_run=request.dry_run,
    )
    return Answer(ProposalOutput.of(found))


def approve(call: HttpCall) -> Answer:
    """Approve a proposal at the current head of its branch."""
    request: ApproveRequest = call.body
    found = call.graph.approve(
        _number(call),
        head=request.head,
        text=request.text,
        actor=call.actor,
        dry_run=request.dry_run,
    )
    return Answer(ProposalOutput.of(found))


def request_changes(call: HttpCall) -> Answer:
    """Request changes before a proposal may be merged."""
    request: ChangesRequest = call.body
    found = call.graph.request_changes(
        _number(call), request.text, head=request.head, actor=call.actor, dry_run=request.dry_run
    )
    return Answer(ProposalOutput.of(found))


def close(call: HttpCall) -> Answer:
    """Close a proposal without merging it."""
    request: CloseRequest = call.body
    found = call.graph.close_proposal(
        _number(call), text=request.text, actor=call.actor, dry_run=request.dry_run
    )
    return Answer(ProposalOutput.of(found))


def merge(call: HttpCall) -> Answer:
    """Merge a proposal as one commit that names it."""
    request: MergeProposalRequest = call.body
    number = _number(call)
    done = call.graph.merge_proposal(
        number,
        request.dry_run,
        head=request.head,
        strategy=request.strategy,
        resolutions=request.resolutions,
        skip_checks=request.skip_checks,
        message=request.message,
        actor=call.actor,
        timeout=call.bounds.load_seconds_max,
    )
    found = call.graph.proposal(number)
    output = settled_merge(call, done, found.source, found.target)
    return committed(output, done.commit)
