"""Branches, tags, commits, merges and other operations on versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec import UNSET

from omnigraph.core import layout
from omnigraph.errors import (
    CommitNotFound,
    CommitPruned,
    LimitExceeded,
    OmnigraphError,
    OptionInvalid,
)
from omnigraph.graph import Graph
from omnigraph.merge.conflicts import Conflict
from omnigraph.model.instants import micros_of
from omnigraph.outcomes import Commit, MergeConflicts, MergeResult
from omnigraph.policy.guard import Need
from omnigraph.policy.questions import Action
from omnigraph.server.errors import exceeded, merge_summary, within
from omnigraph.server.request import Answer, HttpCall, committed
from omnigraph.server.routes.about import may
from omnigraph.wire.answers import (
    BranchesOutput,
    BranchOutput,
    CommitOutput,
    CommitsOutput,
    ConflictOutput,
    DiffOutput,
    HistoryOutput,
    MergeOutput,
    Named,
    TagOutput,
    TagsOutput,
)
from omnigraph.wire.maintenance import MaintenanceOutput, RetentionOutput
from omnigraph.wire.requests import (
    BranchRequest,
    CommitsQuery,
    DiffQuery,
    HistoryQuery,
    MergeRequest,
    ResetRequest,
    RetentionRequest,
    TagRequest,
    UndoRequest,
)

# --- branches and tags -------------------------------------------------------------------------------------------


def list_branches(call: HttpCall) -> Answer:
    """The names of all branches."""
    return Answer(BranchesOutput(sorted(call.graph.branches())))


def create_branch(call: HttpCall) -> Answer:
    """Create a branch; nothing is copied."""
    request: BranchRequest = call.body
    start = request.from_ or "main"
    call.graph.create_branch(request.name, start, actor=call.actor, dry_run=request.dry_run)
    return Answer(BranchOutput(call.graph.uri, request.name, call.actor, start))


def delete_branch(call: HttpCall) -> Answer:
    """Delete a branch; others keep what they share with it."""
    name = call.path["name"]
    call.graph.delete_branch(name, actor=call.actor, dry_run=call.query.dry_run)
    return Answer(BranchOutput(call.graph.uri, name, call.actor))


def list_tags(call: HttpCall) -> Answer:
    """All tags and the commits they name."""
    tags = sorted(call.graph.tags().items())
    return Answer(TagsOutput([Named(name, id) for name, id in tags]))


def create_tag(call: HttpCall) -> Answer:
    """Tag a commit; cleanup keeps it readable."""
    request: TagRequest = call.body
    id = call.graph.tag(
        request.name,
        request.at,
        branch=request.branch or "main",
        actor=call.actor,
        dry_run=request.dry_run,
    )
    answer = TagOutput(name=request.name, graph_commit_id=id, actor_id=call.actor)
    return Answer(answer, commit=id)


def delete_tag(call: HttpCall) -> Answer:
    """Delete a tag."""
    call.graph.delete_tag(call.path["name"], dry_run=call.query.dry_run)
    return Answer(TagOutput(name=call.path["name"], actor_id=call.actor))


# --- maintenance -------------------------------------------------------------------------------------------------


def get_maintenance(call: HttpCall) -> Answer:
    """The process that maintains the graph, and its last work."""
    return Answer(MaintenanceOutput.of(call.graph.maintenance()))


def get_retention(call: HttpCall) -> Answer:
    """How much history maintenance keeps."""
    return Answer(RetentionOutput.of(call.graph.retention()))


def set_retention(call: HttpCall) -> Answer:
    """Set how much history maintenance keeps."""
    request: RetentionRequest = call.body
    policy = call.graph.set_retention(
        request.keep, request.days, request.every_hours, actor=call.actor, dry_run=request.dry_run
    )
    return Answer(RetentionOutput.of(policy))


# --- commits -----------------------------------------------------------------------------------------------------


def list_commits(call: HttpCall) -> Answer:
    """The commits that led to a branch's head, newest first; `next` is where to read on, if there are too many."""
    request: CommitsQuery = call.query
    most, wanted = call.bounds.commits_max, request.limit
    is_bounded = wanted is None or wanted > most
    found = call.graph.log(
        request.branch or "main",
        most + 1 if is_bounded else wanted,
        request.actor,
        request.kind,
        at=request.at,
        maintenance=request.maintenance,
    )
    page, following = _cut(found, most) if is_bounded else (found, None)
    shown = [CommitOutput.of(commit) for commit in page]
    return Answer(CommitsOutput(shown, UNSET if following is None else following))


def _cut(found: list[Commit], most: int) -> tuple[list[Commit], str | None]:
    """A page, and where the next one begins: writes that share a commit stay together."""
    if len(found) <= most:
        return found, None
    following = _shared(found[most])
    page = [commit for commit in found[:most] if _shared(commit) != following]
    if not page:
        raise LimitExceeded(
            f"more than {most} writes share a commit",
            details=exceeded("commits_max", most, len(found)),
        )
    return page, following


def _shared(commit: Commit) -> str:
    """The commit a write was published by, alone or with others."""
    chain, number, _ = layout.parse_commit_id(commit.id)
    return layout.commit_id(chain, number)


def get_commit(call: HttpCall) -> Answer:
    """One commit by its id, or by any point in time."""
    found = CommitOutput.of(call.graph.commit(call.path["commit_id"]))
    return Answer(found, commit=found.graph_commit_id)


def diff(call: HttpCall) -> Answer:
    """The difference between two points: counts, schema steps, and the first rows."""
    request: DiffQuery = call.query
    within("diff_rows_max", call.bounds.diff_rows_max, request.limit)
    found = call.graph.diff(
        request.a,
        request.b,
        branch=request.branch or "main",
        types=request.types,
        operations=request.operations,
        from_merge_base=request.from_merge_base,
    )
    return Answer(DiffOutput.of(found, request.limit), commit=found.to_commit)


# --- merging and undoing -------------------------------------------------------------------------------------------


def merge(call: HttpCall) -> Answer:
    """Merge a branch into another as one commit."""
    request: MergeRequest = call.body
    target = request.into or "main"
    if request.source == target:
        raise OptionInvalid("a branch cannot be merged into itself")
    done = call.graph.merge(
        request.source,
        target,
        request.dry_run,
        strategy=request.strategy,
        resolutions=request.resolutions,
        message=request.message,
        actor=call.actor,
        timeout=call.bounds.load_seconds_max,
    )
    output = settled_merge(call, done, request.source, target)
    if request.delete_branch and not request.dry_run:
        output = _with_deletion(call, output, request.source)
    return committed(output, done.commit)


def settled_merge(call: HttpCall, done: MergeResult, source: str, target: str) -> MergeOutput:
    """The result of a merge; conflicts are an error in this protocol."""
    if done.conflicts:
        raise conflict_error(call, done.conflicts, target)
    return MergeOutput.of(done, source, target, call.actor)


def conflict_error(call: HttpCall, conflicts: Sequence[Conflict], target: str) -> MergeConflicts:
    """The error that names the conflicts of a merge, in the terms of the protocol."""
    catalog = call.unguarded.snapshot(target).catalog
    kinds = {c.type: catalog.entity(c.type) for c in conflicts}
    words = {name: "node" if kind is None else kind.kind for name, kind in kinds.items()}
    outputs = [ConflictOutput.of(c, words[c.type]) for c in conflicts]
    found = msgspec.to_builtins(outputs, enc_hook=str)
    return MergeConflicts(merge_summary(found), details={"merge_conflicts": found})


def _with_deletion(call: HttpCall, output: MergeOutput, source: str) -> MergeOutput:
    """The merge stands even if the deletion fails."""
    try:
        call.require(Need(Action.BRANCH_DELETE, target_branch=source))
        call.graph.delete_branch(source, actor=call.actor)
    except OmnigraphError as error:
        why = error.message
        return msgspec.structs.replace(output, branch_deleted=False, branch_delete_error=why)
    return msgspec.structs.replace(output, branch_deleted=True)


def revert(call: HttpCall) -> Answer:
    """Undo a commit by publishing its inverse."""
    return _undo(call, call.graph.revert)


def cherry_pick(call: HttpCall) -> Answer:
    """Apply the changes of one commit to a branch."""
    return _undo(call, call.graph.cherry_pick)


def _undo(call: HttpCall, verb: Any) -> Answer:
    request: UndoRequest = call.body
    branch = request.branch or "main"
    done: MergeResult = verb(
        request.commit,
        branch,
        request.dry_run,
        strategy=request.strategy,
        resolutions=request.resolutions,
        message=request.message,
        actor=call.actor,
        timeout=call.bounds.write_seconds_max,
    )
    output = settled_merge(call, done, request.commit, branch)
    return committed(output, done.commit)


def reset(call: HttpCall) -> Answer:
    """Restore a branch to the state of another point, as a new commit."""
    request: ResetRequest = call.body
    branch = request.branch or "main"
    done = call.graph.reset(
        request.to, branch, request.dry_run, message=request.message, actor=call.actor
    )
    return committed(MergeOutput.of(done, request.to, branch, call.actor), done.commit)


# --- the history of all branches -------------------------------------------------------------------------------------

COMMITS = 100
COMMITS_MAX = 1000


def history(call: HttpCall) -> Answer:
    """The commits of all branches the caller may read; `before` continues from an earlier `next`."""
    request: HistoryQuery = call.query
    wanted = COMMITS if request.limit is None else request.limit
    limit = within("commits_max", COMMITS_MAX, wanted, least=1)
    graph = call.unguarded
    names = [n for n in sorted(graph.branches()) if may(call.guard, Need(Action.READ, n))]
    found: dict[str, Commit] = {}
    for name in names:
        found.update((commit.id, commit) for commit in _log(graph, name, request.before, limit + 1))
    newest = sorted(found.values(), key=lambda c: (c.time, c.id), reverse=True)
    page = _page(newest, limit)
    tags = graph.tags().items()
    output = HistoryOutput(
        commits=[CommitOutput.of(commit) for commit in page],
        parents={commit.id: _parents(graph, commit, found) for commit in page},
        branches=[Named(name, graph.snapshot(name).commit_id) for name in names],
        tags=[Named(name, id) for name, id in sorted(tags)],
        next=micros_of(page[-1].time) if len(page) < len(newest) else None,
    )
    return Answer(output)


def _parents(graph: Graph, commit: Commit, found: Mapping[str, Commit]) -> list[str]:
    """The commits a line leads to: maintenance and the creation of branches are skipped."""
    return [
        id if id in found else graph.snapshot("main", id).commit_id
        for id in commit.parents
        if _is_kept(graph, id)
    ]


def _is_kept(graph: Graph, id: str) -> bool:
    try:
        graph.snapshot("main", id)
    except CommitPruned:
        return False
    return True


def _log(graph: Graph, branch: str, before: int | None, limit: int) -> list[Commit]:
    if before is None:
        return graph.log(branch, limit)
    earlier = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=before - 1)
    try:
        return graph.log(branch, limit, at=earlier)
    except CommitNotFound:
        return []  # the branch is younger


def _page(newest: list[Commit], limit: int) -> list[Commit]:
    """The first commits; those of the same instant stay together, since the next page starts at an instant."""
    if len(newest) <= limit:
        return newest
    last = newest[limit - 1].time
    return [c for n, c in enumerate(newest) if n < limit or c.time == last]
