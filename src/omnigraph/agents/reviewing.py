"""Tools for working with people: checks, proposals, comments, and who wrote what."""

from __future__ import annotations

from typing import Any

from omnigraph.agents import arguments as args
from omnigraph.agents.answers import ToolAnswer
from omnigraph.agents.toolbox import Toolbox

RESULTS_SHOWN_MAX = 50
PROPOSALS_SHOWN_MAX = 20
PASSED, FAILED = "passed", "failed"

FIX = "Fix the rows that are listed, on your branch, and run the checks again."
READY = "The checks passed. Offer the branch with `propose`."
NO_CHECKS = "There are no checks for this graph. Compare your changes with `diff`, then offer them with `propose`."
WAIT = "A person decides now. Read the comments with `proposals` and the number, and fix the branch on request."
READ_THREAD = (
    "Give a `number` to see the comments on one, and what is missing before it may be merged."
)


def run_checks(box: Toolbox, arguments: args.RunChecksArguments) -> ToolAnswer:
    """Run the checks of a branch: the number of failures, and their rows."""
    branch = arguments.branch or box.provenance.branch
    report = box.graph.check(
        branch,
        before=arguments.before,
        only=arguments.only,
        timeout=box.limits.query_seconds_max,
        actor=box.actor,
    )
    by_outcome: dict[str, int] = {}
    for result in report.results:
        by_outcome[result.outcome] = by_outcome.get(result.outcome, 0) + 1
    ordered = sorted(report.results, key=lambda result: (result.outcome == PASSED, result.name))
    data = {
        "branch": branch,
        "commit": report.commit,
        "passed": report.passed,
        "counts": by_outcome,
        "results": [result.to_json() for result in ordered[:RESULTS_SHOWN_MAX]],
    }
    step = NO_CHECKS if not report.results else READY if report.passed else FIX
    return ToolAnswer.shortened(data, step)


def propose(box: Toolbox, arguments: args.ProposeArguments) -> ToolAnswer:
    """Offer a branch for merging; people look at it, comment and decide."""
    branch = arguments.branch or box.provenance.branch
    box = box.completed(arguments.person, arguments.conversation)
    found = box.graph.propose(
        branch,
        arguments.title,
        arguments.into,
        text=box.provenance.message(arguments.text or arguments.title),
        reviewers=arguments.reviewers or (),
        actor=box.actor,
    )
    return ToolAnswer.shortened({"proposal": found.to_json()}, WAIT)


def comment(box: Toolbox, arguments: args.CommentArguments) -> ToolAnswer:
    """Comment on a proposal, or on a type, a row or a cell it changes."""
    found = box.graph.comment(
        arguments.number,
        arguments.text,
        type=arguments.type,
        id=arguments.id,
        property=arguments.property,
        actor=box.actor,
    )
    return ToolAnswer.shortened({"proposal": found.to_json()}, WAIT)


def proposals(box: Toolbox, arguments: args.ProposalsArguments) -> ToolAnswer:
    """The proposals, or one with its comments and what is missing before it may be merged."""
    if arguments.number is None:
        listed = box.graph.proposals(arguments.state, limit=PROPOSALS_SHOWN_MAX)
        rows = [_without_thread(each.to_json()) for each in listed]
        return ToolAnswer.shortened({"count": len(rows), "rows": rows}, READ_THREAD)
    found = box.graph.review(arguments.number, timeout=box.limits.query_seconds_max).to_json()
    conflicts = found.pop("conflicts")
    data = {"conflict_count": len(conflicts), **found, "conflicts": conflicts}
    return ToolAnswer.shortened(data, "" if found["mergeable"] else WAIT)


def _without_thread(proposal: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in proposal.items() if name != "thread"}


def blame(box: Toolbox, arguments: args.BlameArguments) -> ToolAnswer:
    """Who wrote each value of a node or edge, in which commit."""
    found = box.graph.blame(arguments.type, arguments.id, arguments.branch, arguments.at)
    return ToolAnswer.shortened(found.to_json())
