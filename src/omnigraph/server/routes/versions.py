"""Branches, tags, commits, merges and what else is done with versions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec

from omnigraph.errors import LimitExceeded, OmnigraphError, OptionInvalid
from omnigraph.merge.conflicts import Conflict
from omnigraph.outcomes import MergeResult
from omnigraph.policy.questions import Action
from omnigraph.server.access import Need
from omnigraph.server.calls import Answer, Call
from omnigraph.server.errors import MergeConflicts, merge_summary
from omnigraph.server.limits import exceeded
from omnigraph.server.wire import (
    BranchRequest,
    CommitsQuery,
    DiffQuery,
    MergeOutput,
    MergeRequest,
    TagRequest,
    UndoRequest,
    commit_output,
    merge_output,
)

# --- branches and tags -------------------------------------------------------------------------------------------


def list_branches(call: Call) -> Answer:
    """The names of all branches."""
    return Answer({"branches": sorted(call.graph.branches())})


def create_needs(call: Call) -> Iterator[Need]:
    """Reading what is forked, and making the branch."""
    asked: BranchRequest = call.body
    if asked.start is None:
        yield Need(Action.BRANCH_CREATE, "main", asked.name, reads=("main",))
    else:
        yield Need(Action.BRANCH_CREATE, call.written_on("main", asked.start), asked.name)


def create_branch(call: Call) -> Answer:
    """Make a branch; nothing is copied."""
    asked: BranchRequest = call.body
    if asked.name.strip() == "main":
        raise OptionInvalid("the main branch exists always; choose another name")
    call.graph.create_branch(asked.name, asked.start or "main", actor=call.actor)
    return Answer(_named(call, asked.name) | {"from": asked.start or "main"})


def _named(call: Call, name: str) -> dict[str, Any]:
    return {"uri": call.graph.uri, "name": name, "actor_id": call.actor}


def delete_needs(call: Call) -> Iterable[Need]:
    return (Need(Action.BRANCH_DELETE, target_branch=call.path["name"]),)


def delete_branch(call: Call) -> Answer:
    """Delete a branch; others keep what they share with it."""
    call.graph.delete_branch(call.path["name"], actor=call.actor)
    return Answer(_named(call, call.path["name"]))


def list_tags(call: Call) -> Answer:
    """All tags and the commits they name."""
    tags = sorted(call.graph.tags().items())
    return Answer({"tags": [{"name": name, "graph_commit_id": id} for name, id in tags]})


def tag_needs(call: Call) -> Iterator[Need]:
    """Reading what gets the name, and making it."""
    asked: TagRequest = call.body
    where = asked.branch or "main"
    if asked.at is not None:
        where = call.written_on(asked.branch, asked.at)
    yield Need(Action.BRANCH_CREATE, where, asked.name, reads=(where,))


def create_tag(call: Call) -> Answer:
    """Name a commit; it stays readable whatever is cleaned up."""
    asked = call.body
    id = call.graph.tag(asked.name, asked.at, branch=asked.branch or "main", actor=call.actor)
    return Answer({"name": asked.name, "graph_commit_id": id, "actor_id": call.actor}, commit=id)


def delete_tag(call: Call) -> Answer:
    """Take a tag away."""
    call.graph.delete_tag(call.path["name"])
    return Answer({"name": call.path["name"], "actor_id": call.actor})


# --- commits -----------------------------------------------------------------------------------------------------


def list_commits(call: Call) -> Answer:
    """The commits that led to a branch's head, newest first."""
    asked: CommitsQuery = call.query
    limit = call.bounds.commits_max if asked.limit is None else asked.limit
    found = call.graph.log(
        asked.branch or "main",
        min(limit, call.bounds.commits_max),
        asked.actor,
        asked.kind,
        at=asked.at,
        maintenance=asked.maintenance,
    )
    return Answer({"commits": [commit_output(commit) for commit in found]})


def get_commit(call: Call) -> Answer:
    """One commit by its id, or by any point in time."""
    found = commit_output(call.graph.commit(call.path["commit_id"]))
    return Answer(found, commit=found.graph_commit_id)


def diff_needs(call: Call) -> Iterator[Need]:
    """Reading both points, each on the branch it was written on."""
    for point in (call.query.a, call.query.b):
        yield Need(Action.READ, call.written_on(call.query.branch, point))


def diff(call: Call) -> Answer:
    """What turns one point into another: counts, schema steps, and the first rows."""
    asked: DiffQuery = call.query
    if not 0 <= asked.limit <= call.bounds.diff_rows_max:
        raise LimitExceeded(
            f"limit is at most {call.bounds.diff_rows_max}",
            details=exceeded("diff_rows_max", call.bounds.diff_rows_max, asked.limit),
        )
    branch = asked.branch or "main"
    found = call.graph.diff(asked.a, asked.b, branch=branch, types=asked.types, operations=asked.op)
    total = sum(n for counts in found.counts.values() for n in counts.values())
    content = {
        "from": found.from_commit,
        "to": found.to_commit,
        "counts": found.counts,
        "schema": [dict(step) for step in found.schema],
        "rows": [row.to_json() for row in islice(found, asked.limit)],
        "truncated": total > asked.limit,
    }
    return Answer(content, commit=found.to_commit)


# --- merging and undoing -------------------------------------------------------------------------------------------


def merge_needs(call: Call) -> Iterable[Need]:
    """Merging into the target, by reading the source."""
    source, target = call.body.source, call.body.target or "main"
    return (Need(Action.BRANCH_MERGE, source, target, reads=(source,)),)


def merge(call: Call) -> Answer:
    """Bring what a branch did to another, as one commit."""
    asked: MergeRequest = call.body
    target = asked.target or "main"
    if asked.source == target:
        raise OptionInvalid("a branch cannot be merged into itself")
    done = call.graph.merge(
        asked.source,
        target,
        asked.dry_run,
        strategy=asked.strategy,
        resolutions=asked.resolutions,
        message=asked.message,
        actor=call.actor,
        timeout=call.bounds.load_seconds_max,
    )
    output = _settled(call, done, asked.source, target)
    if asked.delete_branch and not asked.dry_run:
        output = _with_deletion(call, output, asked.source)
    return Answer(output, commit=done.commit.id if done.commit else None)


def _settled(call: Call, done: MergeResult, source: str, target: str) -> MergeOutput:
    """How a merge ended; conflicts are an error to clients of this protocol."""
    if done.conflicts:
        catalog = call.unguarded.snapshot(target).catalog
        found = [_conflict(c, catalog.entity(c.type)) for c in done.conflicts]
        raise MergeConflicts(merge_summary(found), details={"merge_conflicts": found})
    return merge_output(done, source, target, call.actor)


def _conflict(conflict: Conflict, kind: Any) -> dict[str, Any]:
    ours = conflict.to_json()
    entity = {} if conflict.id is None else {"entity_id": conflict.id}
    return {
        "entity_kind": "node" if kind is None else kind.kind,
        "type_name": conflict.type,
        **entity,
        "kind": conflict.kind,
        "message": conflict.message or f"{conflict.kind} of {conflict.type} {conflict.id}",
        "field": conflict.field,
        "base": ours["base"],
        "ours": ours["ours"],
        "theirs": ours["theirs"],
    }


def _with_deletion(call: Call, output: MergeOutput, source: str) -> MergeOutput:
    """The merge stands whatever becomes of the deletion."""
    try:
        call.require(Need(Action.BRANCH_DELETE, target_branch=source))
        call.graph.delete_branch(source, actor=call.actor)
    except OmnigraphError as error:
        why = error.message
        return msgspec.structs.replace(output, branch_deleted=False, branch_delete_error=why)
    return msgspec.structs.replace(output, branch_deleted=True)


def undo_needs(call: Call) -> Iterator[Need]:
    """Changing a branch, by what another commit holds: that one must be readable."""
    branch = call.body.branch or "main"
    yield Need(Action.CHANGE, branch)
    yield Need(Action.READ, call.written_on(branch, call.body.commit))


def revert(call: Call) -> Answer:
    """Undo a commit by publishing its inverse."""
    return _undo(call, call.graph.revert)


def cherry_pick(call: Call) -> Answer:
    """Do what one commit did on a branch."""
    return _undo(call, call.graph.cherry_pick)


def _undo(call: Call, verb: Any) -> Answer:
    asked: UndoRequest = call.body
    branch = asked.branch or "main"
    done: MergeResult = verb(
        asked.commit,
        branch,
        asked.dry_run,
        strategy=asked.strategy,
        resolutions=asked.resolutions,
        message=asked.message,
        actor=call.actor,
        timeout=call.bounds.write_seconds_max,
    )
    output = _settled(call, done, asked.commit, branch)
    return Answer(output, commit=done.commit.id if done.commit else None)


def reset(call: Call) -> Answer:
    """Make a branch what it was at another point, as a new commit."""
    asked: UndoRequest = call.body
    branch = asked.branch or "main"
    done = call.graph.reset(asked.commit, branch, message=asked.message, actor=call.actor)
    return Answer(
        merge_output(done, asked.commit, branch, call.actor),
        commit=done.commit.id if done.commit else None,
    )
