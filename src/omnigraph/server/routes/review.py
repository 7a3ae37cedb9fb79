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
    asked: BranchQuery = call.query
    return Answer(ChecksOutput.of(call.graph.checks(asked.branch or "main", asked.at)))


def apply_checks(call: HttpCall) -> Answer:
    """Replace the checks in force."""
    asked: ChecksRequest = call.body
    done = call.graph.apply_checks(
        asked.text,
        asked.branch or "main",
        asked.message,
        call.actor,
        dry_run=asked.dry_run,
        timeout=call.bounds.write_seconds_max,
    )
    return committed(ChecksAppliedOutput.of(done), done.commit)


def check(call: HttpCall) -> Answer:
    """Run checks on one state."""
    asked: CheckRequest = call.body
    found = call.graph.check(
        asked.branch or "main",
        asked.at,
        before=asked.before,
        only=asked.only,
        timeout=call.seconds(call.bounds.query_seconds_max, asked.timeout),
        record=asked.record,
        actor=call.actor,
    )
    return Answer(CheckReportOutput.of(found), commit=found.commit)


def check_results(call: HttpCall) -> Answer:
    """The results of all check runs on a commit."""
    found = call.graph.check_results(call.path["commit_id"])
    return Answer(CheckResultsOutput.of(found))


def profile(call: HttpCall) -> Answer:
    """The profile of a state, column by column; with `before`, beside that of another one."""
    asked: ProfileQuery = call.query
    found = call.graph.profile(
        asked.branch or "main", asked.at, before=asked.before, types=asked.types
    )
    return Answer(ProfileOutput.of(found), commit=found.commit)


def blame(call: HttpCall) -> Answer:
    """Who wrote each value of a node or edge."""
    asked: BranchQuery = call.query
    found = call.graph.blame(call.path["type"], call.path["id"], asked.branch or "main", asked.at)
    return Answer(BlameOutput.of(found))


# --- proposals -----------------------------------------------------------------------------------------------------


def _number(call: HttpCall) -> int:
    text = call.path["number"]
    if not (text.isascii() and text.isdecimal() and len(text) <= DIGITS_MAX):
        raise no_proposal(text)
    return int(text)


def proposals(call: HttpCall) -> Answer:
    """Branches offered for merging, newest first."""
    asked: ProposalsQuery = call.query
    wanted = PROPOSALS_SHOWN if asked.limit is None else asked.limit
    limit = within("proposals_shown_max", PROPOSALS_SHOWN_MAX, wanted)
    return Answer(ProposalsOutput.of(call.graph.proposals(asked.state, asked.target, limit)))


def proposal(call: HttpCall) -> Answer:
    """One proposal, with its comments and events."""
    return Answer(ProposalOutput.of(call.graph.proposal(_number(call))))


def review(call: HttpCall) -> Answer:
    """The changes of a proposal, whether it merges, the results of its checks, and what is missing."""
    asked: ReviewQuery = call.query
    seconds = call.seconds(call.bounds.query_seconds_max, asked.timeout)
    found = call.graph.review(_number(call), timeout=seconds)
    catalog = call.unguarded.snapshot(at=found.head).catalog
    kinds = {kind.name: kind.kind for kind in catalog.entities()}
    return Answer(ReviewOutput.of(found, kinds), commit=found.head)


def propose(call: HttpCall) -> Answer:
    """Offer a branch for merging."""
    asked: ProposeRequest = call.body
    found = call.graph.propose(
        asked.source,
        asked.title,
        asked.into or "main",
        text=asked.text,
        reviewers=asked.reviewers,
        actor=call.actor,
        dry_run=asked.dry_run,
    )
    return Answer(ProposalOutput.of(found))


def comment(call: HttpCall) -> Answer:
    """Comment on a proposal, a type, a row or a cell."""
    asked: CommentRequest = call.body
    found = call.graph.comment(
        _number(call),
        asked.text,
        type=asked.type,
        id=asked.id,
        property=asked.property,
        actor=call.actor,
        dry_run=asked.dry_run,
    )
    return Answer(ProposalOutput.of(found))


def approve(call: HttpCall) -> Answer:
    """Approve a proposal at the current head of its branch."""
    asked: ApproveRequest = call.body
    found = call.graph.approve(
        _number(call), head=asked.head, text=asked.text, actor=call.actor, dry_run=asked.dry_run
    )
    return Answer(ProposalOutput.of(found))


def request_changes(call: HttpCall) -> Answer:
    """Request changes before a proposal may be merged."""
    asked: ChangesRequest = call.body
    found = call.graph.request_changes(
        _number(call), asked.text, head=asked.head, actor=call.actor, dry_run=asked.dry_run
    )
    return Answer(ProposalOutput.of(found))


def close(call: HttpCall) -> Answer:
    """Close a proposal without merging it."""
    asked: CloseRequest = call.body
    found = call.graph.close_proposal(
        _number(call), text=asked.text, actor=call.actor, dry_run=asked.dry_run
    )
    return Answer(ProposalOutput.of(found))


def merge(call: HttpCall) -> Answer:
    """Merge a proposal as one commit that names it."""
    asked: MergeProposalRequest = call.body
    number = _number(call)
    done = call.graph.merge_proposal(
        number,
        asked.dry_run,
        head=asked.head,
        strategy=asked.strategy,
        resolutions=asked.resolutions,
        skip_checks=asked.skip_checks,
        message=asked.message,
        actor=call.actor,
        timeout=call.bounds.load_seconds_max,
    )
    found = call.graph.proposal(number)
    output = settled_merge(call, done, found.source, found.target)
    return committed(output, done.commit)
