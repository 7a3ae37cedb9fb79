"""Checks, proposals, profiles and who wrote what."""

from __future__ import annotations

from omnigraph.core.proposals import no_proposal
from omnigraph.server.errors import within
from omnigraph.server.request import Answer, HttpCall, committed
from omnigraph.server.routes.versions import settled_merge
from omnigraph.wire.review import (
    BlameOutput,
    CheckReportOutput,
    CheckRequest,
    CheckResultsOutput,
    ChecksAppliedOutput,
    ChecksOutput,
    ProfileOutput,
    ProposalOutput,
    ProposalsOutput,
    ProposalsQuery,
    ReviewOutput,
    ReviewQuery,
)

PROPOSALS_SHOWN = 50
PROPOSALS_SHOWN_MAX = 200
DIGITS_MAX = 12  # of a number

# --- checks --------------------------------------------------------------------------------------------------------


def checks(call: HttpCall) -> Answer:
    """The checks in force on a branch, or at a point."""
    return Answer(ChecksOutput.of(call.passed_on("checks")))


def apply_checks(call: HttpCall) -> Answer:
    """Replace the checks in force."""
    done = call.passed_on("apply_checks", actor=call.actor, timeout=call.bounds.write_seconds_max)
    return committed(ChecksAppliedOutput.of(done), done.commit)


def check(call: HttpCall) -> Answer:
    """Run checks on one state."""
    request: CheckRequest = call.body
    seconds = call.seconds(call.bounds.query_seconds_max, request.timeout)
    found = call.passed_on("check", timeout=seconds, actor=call.actor)
    return Answer(CheckReportOutput.of(found), commit=found.commit)


def check_results(call: HttpCall) -> Answer:
    """The results of all check runs on a commit."""
    found = call.graph.check_results(call.path["commit_id"])
    return Answer(CheckResultsOutput.of(found))


def profile(call: HttpCall) -> Answer:
    """The profile of a state, column by column; with `before`, beside that of another one."""
    found = call.passed_on("profile")
    return Answer(ProfileOutput.of(found), commit=found.commit)


def blame(call: HttpCall) -> Answer:
    """Who wrote each value of a node or edge."""
    found = call.passed_on("blame", type=call.path["type"], id=call.path["id"])
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
    return Answer(ProposalOutput.of(call.passed_on("propose", actor=call.actor)))


def _done(call: HttpCall, verb: str) -> Answer:
    found = call.passed_on(verb, number=_number(call), actor=call.actor)
    return Answer(ProposalOutput.of(found))


def comment(call: HttpCall) -> Answer:
    """Comment on a proposal, a type, a row or a cell."""
    return _done(call, "comment")


def approve(call: HttpCall) -> Answer:
    """Approve a proposal at the current head of its branch."""
    return _done(call, "approve")


def request_changes(call: HttpCall) -> Answer:
    """Request changes before a proposal may be merged."""
    return _done(call, "request_changes")


def close(call: HttpCall) -> Answer:
    """Close a proposal without merging it."""
    return _done(call, "close_proposal")


def merge(call: HttpCall) -> Answer:
    """Merge a proposal as one commit that names it."""
    number = _number(call)
    done = call.passed_on(
        "merge_proposal", number=number, actor=call.actor, timeout=call.bounds.load_seconds_max
    )
    found = call.graph.proposal(number)
    output = settled_merge(call, done, found.source, found.target)
    return committed(output, done.commit)
