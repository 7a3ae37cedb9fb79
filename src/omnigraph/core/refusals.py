"""The errors of writes that were not published, or may not have been."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.core.records import Commit
from omnigraph.errors import CommitUnknown, PreconditionFailed, WriteConflict


def precondition_failed(wanted: str, head: Commit) -> PreconditionFailed:
    """The branch is not where the caller expected it."""
    return PreconditionFailed(
        f"the branch is at commit {head.content}, not at {wanted}",
        details={"expected": wanted, "actual": head.content},
    )


def conflict_with(commit: Commit, times: int = 1) -> WriteConflict:
    """Another commit changed what the write is about."""
    member = commit.members[-1] if commit.members else None
    actor = member.actor if member is not None else None
    tables = sorted({table for m in commit.members for table in m.changes})
    names = [commit.tables[table].type_name for table in tables if table in commit.tables]
    who = f" by {actor}" if actor else ""
    often = f", after other commits: {times} conflicts in all" if times > 1 else ""
    return WriteConflict(
        f"commit {commit.content}{who} changed {', '.join(names) or 'the schema'} meanwhile{often}",
        details={"commit": commit.content, "actor": actor, "types": names},
    )


def commit_unknown(operations: Sequence[str]) -> CommitUnknown:
    """The store gave no answer."""
    return CommitUnknown(
        f"the store did not say whether operation {', '.join(operations)} was published",
        details={"operation_ids": list(operations)},
    )
