"""Verbs that revert, reset or reapply history, always as a new commit: history is never rewritten.

Reverting a commit is a merge whose base is that commit and whose other side is the state before it; picking one is the
same the other way round. So both have the same conflicts and messages as a merge.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from omnigraph.core import layout
from omnigraph.core.history import Point, is_pruned_now, pruned_error, resolve
from omnigraph.core.plan import NewSchema, PublishPlan, Verb, read_whole
from omnigraph.core.records import Commit
from omnigraph.core.repository import Repository
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import CommitNotFound, OptionInvalid
from omnigraph.merge.adopt import taken_over
from omnigraph.merge.changed import is_listed, listed_ids
from omnigraph.merge.conflicts import UNDECIDED, Decisions
from omnigraph.merge.three_way import Part
from omnigraph.write.merge import MERGED, UP_TO_DATE, Lineage, MergeOutcome, published, three_way


def revert(repo: Repository, commit: str, branch: str, decided: Decisions = UNDECIDED) -> Verb:
    """The verb that publishes the inverse of a commit. Conflicts: `ours` is the branch, `theirs` the state before."""

    def verb(txn: WriteTxn) -> PublishPlan:
        point = _there(repo, commit, branch)
        states = repo.snapshot(point.commit), repo.snapshot(_before(repo, point.commit))
        plan = three_way(repo, txn, *states, decided, Lineage("revert"), _own_rows(point))
        return _answered(plan)

    return verb


def cherry_pick(repo: Repository, commit: str, branch: str, decided: Decisions = UNDECIDED) -> Verb:
    """The verb that applies the changes of a commit, from anywhere."""

    def verb(txn: WriteTxn) -> PublishPlan:
        point = _there(repo, commit, branch)
        states = repo.snapshot(_before(repo, point.commit)), repo.snapshot(point.commit)
        plan = three_way(repo, txn, *states, decided, Lineage("cherry_pick"), _own_rows(point))
        return _answered(plan)

    return verb


def reset(repo: Repository, to: object, branch: str) -> Verb:
    """The verb that resets a branch to another point, by a new commit that copies nothing."""

    def verb(txn: WriteTxn) -> PublishPlan:
        wanted = repo.snapshot(_there(repo, to, branch).commit)
        actions = tuple(taken_over(repo, txn.snapshot, wanted))
        now = txn.snapshot.commit
        same, same_checks = wanted.commit.schema == now.schema, wanted.commit.checks == now.checks
        if not actions and same and same_checks:
            return PublishPlan(kind="reset", value=MergeOutcome(UP_TO_DATE), empty=True)
        stored = repo.schema(wanted.commit.schema)
        schema = None if same else NewSchema(stored.stored, stored.catalog)
        reads = read_whole(txn.snapshot.commit.tables)  # concurrent writes are reset, too
        checks = None if same_checks else repo.checks(wanted.commit.checks)
        more: dict[str, Any] = {"reads": reads, "checks": checks}
        return published(repo, MERGED, actions, wanted.catalog, schema, Lineage("reset"), **more)

    return verb


def _there(repo: Repository, at: object, branch: str) -> Point:
    """A point of the history. It may be cached here, so check with the store whether it was pruned since."""
    point = resolve(repo, at, branch)
    if is_pruned_now(repo, point.commit):
        raise pruned_error(point.id)
    return point


def _answered(plan: PublishPlan) -> PublishPlan:
    """A plan without changes is not published."""
    idle = not plan.actions and plan.schema is None and plan.checks is None
    if not plan.empty and idle:
        return replace(plan, value=MergeOutcome(UP_TO_DATE), empty=True)
    return plan


def _own_rows(point: Point) -> Part | None:
    """The rows of one member of a group, which share one state before and one after; None: all of the commit."""
    members = point.commit.members
    if point.member is None or len(members) < 2:
        return None
    own = members[point.member].changes
    rows: dict[str, pa.Array | None] = {}
    for table, change in own.items():
        ids = set(listed_ids(change))
        others = [m.changes[table] for m in members if m.changes is not own and table in m.changes]
        shared = [c for c in others if not is_listed(c) or ids & set(listed_ids(c))]
        if others and (shared or not is_listed(change)):
            raise _inseparable(point)
        rows[table] = pa.array(sorted(ids), pa.string()) if others else None
    return rows


def _inseparable(point: Point) -> OptionInvalid:
    whole = layout.commit_id(point.commit.chain, point.commit.number)
    return OptionInvalid(
        f"commit {point.id} was published in one piece with others that wrote the same rows",
        help=f"Name the whole group, {whole}, to treat them together.",
        details={"group": whole},
    )


def _before(repo: Repository, commit: Commit) -> Commit:
    if not commit.parents:
        raise CommitNotFound(f"there is nothing before commit {commit.content}")
    return _there(repo, commit.parents[0], commit.branch).commit
