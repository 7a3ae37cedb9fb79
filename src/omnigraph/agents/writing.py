"""Tools that write: on the agent's own branch, unless another one is given and allowed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from omnigraph.agents import arguments as args
from omnigraph.agents.answers import ArgumentsInvalid, ToolAnswer
from omnigraph.agents.stored import stored
from omnigraph.agents.toolbox import AgentMergeRefused, Toolbox
from omnigraph.errors import BranchExists, BranchNotFound
from omnigraph.model.names import MAIN
from omnigraph.outcomes import Commit, MergeResult
from omnigraph.remote.graph import RemoteGraph

T = TypeVar("T")
CONFLICTS_SHOWN_MAX = 20
REVIEW = (
    "Look at your changes with `diff`, run the checks with `run_checks`, then offer the branch with `propose`: "
    "a person decides."
)
REHEARSED = "Nothing was changed. Call again without `dry_run` to do it."
ROWS_SHOWN_MAX = 50  # of those a change returns
NO_CHANGE = (
    "It matched nothing, so there is no commit. Look at the rows with `find_entity` or `run_query`."
)


def start_branch(box: Toolbox, arguments: args.StartBranchArguments) -> ToolAnswer:
    """A new branch to work on; by default with the name of your own branch."""
    name = arguments.name or box.provenance.branch
    box.graph.create_branch(name, arguments.from_, actor=box.actor)
    data = {"branch": name, "from": arguments.from_}
    return ToolAnswer(
        data, "Give this name as `branch` to `change`, `load_records` and to the tools that read."
    )


def change(box: Toolbox, arguments: args.ChangeArguments) -> ToolAnswer:
    """Run a mutation as one commit."""
    if (arguments.query is None) == (arguments.stored is None):
        raise ArgumentsInvalid("give either `query` or `stored`")
    branch = box.branch_to_write(arguments.branch)
    box = box.completed(arguments.person, arguments.conversation)
    message = box.provenance.message(arguments.message)
    done, created = _on_branch(
        box, branch, arguments, lambda: _mutate(box, arguments, branch, message)
    )
    counts = {"nodes": done["affected_nodes"], "edges": done["affected_edges"]}
    data = {"affected": counts, **_where(branch, done["commit"], created=created)}
    if "rows" in done:
        data |= {"count": len(done["rows"]), "rows": done["rows"][:ROWS_SHOWN_MAX]}
    if arguments.dry_run:
        return ToolAnswer(data, REHEARSED)
    return ToolAnswer(data, REVIEW if done["commit"] else NO_CHANGE, commit=_id(done["commit"]))


def _mutate(
    box: Toolbox, arguments: args.ChangeArguments, branch: str, message: str
) -> dict[str, Any]:
    if arguments.stored is not None and isinstance(box.graph, RemoteGraph):
        return box.graph.invoke(
            arguments.stored,
            params=arguments.params,
            branch=branch,
            expect_mutation=True,
            message=message,
            dry_run=arguments.dry_run,
        )
    known = None if arguments.stored is None else stored(box, arguments.stored)
    return box.graph.mutate(
        arguments.query or "" if known is None else known.text,
        arguments.params,
        None if known is None else known.name,
        branch=branch,
        message=message,
        actor=box.actor,
        language=None if known is None else known.language,
        dry_run=arguments.dry_run,
        timeout=box.limits.write_seconds_max,
    ).to_json()


def load_records(box: Toolbox, arguments: args.LoadRecordsArguments) -> ToolAnswer:
    """Load rows as one commit, after all of them were checked."""
    branch = box.branch_to_write(arguments.branch)
    box = box.completed(arguments.person, arguments.conversation)
    message = box.provenance.message(arguments.message)

    def load() -> Any:
        return box.graph.load(
            arguments.records,
            mode=arguments.mode,
            branch=branch,
            message=message,
            actor=box.actor,
            dry_run=arguments.dry_run,
            timeout=None if isinstance(box.graph, RemoteGraph) else box.limits.write_seconds_max,
            violations=False,  # the agent could not read a file on this machine
        )

    done, created = _on_branch(box, branch, arguments, load)
    commit = None if done.commit is None else done.commit.to_json()
    data = {
        "nodes": dict(done.nodes),
        "edges": dict(done.edges),
        **_where(branch, commit, created=created),
    }
    return ToolAnswer(data, REHEARSED if arguments.dry_run else REVIEW, commit=_id(commit))


def merge_branch(box: Toolbox, arguments: args.MergeBranchArguments) -> ToolAnswer:
    """Merge a branch or a proposal into another branch, if a policy allows that to this actor."""
    if arguments.proposal is not None and arguments.branch is not None:
        raise ArgumentsInvalid("give either `branch` or `proposal`")
    source = arguments.branch or box.provenance.branch
    box = box.completed(arguments.person, arguments.conversation)
    done = _merged(box, arguments, source)
    commit = _shown(done.commit)
    data = {
        "outcome": done.outcome,
        "counts": {name: dict(counts) for name, counts in done.counts.items()},
        "conflict_count": len(done.conflicts),
        "conflicts": [conflict.to_json() for conflict in done.conflicts[:CONFLICTS_SHOWN_MAX]],
        "commit": commit,
    }
    step = CONFLICTING if done.conflicts else REHEARSED if arguments.dry_run else ""
    return ToolAnswer(data, step, commit=_id(commit))


def _merged(box: Toolbox, arguments: args.MergeBranchArguments, source: str) -> MergeResult:
    number, message = arguments.proposal, box.provenance.message(arguments.message)
    into = arguments.into if number is None else box.graph.proposal(number).target
    if not box.may_merge(into, proposal=number is not None):
        raise AgentMergeRefused("no policy lets this agent merge here")
    seconds = box.limits.write_seconds_max
    if number is None:
        return box.graph.merge(
            source, into, arguments.dry_run, message=message, actor=box.actor, timeout=seconds
        )
    return box.graph.merge_proposal(
        number, arguments.dry_run, message=message, actor=box.actor, timeout=seconds
    )


CONFLICTING = (
    "Nothing was merged. Show the conflicts to the person you work for, or change your branch."
)


def _on_branch(
    box: Toolbox,
    branch: str,
    arguments: args.ChangeArguments | args.LoadRecordsArguments,
    write: Callable[[], T],
) -> tuple[T, bool]:
    """Write, creating the agent's own branch first if it does not exist; returns whether it did."""
    try:
        return write(), False
    except BranchNotFound:
        if arguments.branch is not None or arguments.dry_run:
            raise
    with suppress(BranchExists):  # another call of the same agent was first
        box.graph.create_branch(branch, MAIN, actor=box.actor)
    return write(), True


def _where(branch: str, commit: dict[str, Any] | None, *, created: bool) -> dict[str, Any]:
    return {"branch": branch, "branch_created": created, "commit": commit}


def _shown(commit: Commit | None) -> dict[str, Any] | None:
    return None if commit is None else commit.to_json()


def _id(commit: dict[str, Any] | None) -> str | None:
    return None if commit is None else str(commit.get("id") or commit.get("graph_commit_id"))
