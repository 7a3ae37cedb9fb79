"""Verification just before a commit becomes visible, of exactly the state it would publish.

The tables of that state are staged: readable like any other, but not yet published. A writer that loses the race
verifies again the state that follows from the new head.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from omnigraph.core import layout
from omnigraph.core.plan import PublishPlan, Verify
from omnigraph.core.records import Commit, StoredChecks, encode
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import Corrupt, OmnigraphError


class Objection(Exception):
    """Something is wrong with the state that would be published."""

    def __init__(self, error: OmnigraphError) -> None:
        super().__init__(str(error))
        self.error = error


def verified(
    repo: Repository, head: Commit, commit: Commit, plans: Sequence[PublishPlan]
) -> Commit:
    """The commit with the answers of its plans; raises if one of them objects."""
    before, after = repo.snapshot(head), repo.snapshot(commit)
    members = list(commit.members)
    for place, plan in enumerate(plans):
        if plan.verify is not None and not plan.empty:
            result = {**members[place].result, **_answer(plan.verify, before, after)}
            members[place] = msgspec.structs.replace(members[place], result=result)
    replaced: Commit = msgspec.structs.replace(commit, members=tuple(members))
    return replaced


def _answer(verify: Verify, before: Snapshot, after: Snapshot) -> Mapping[str, Any]:
    """Missing files may have been removed by a collection; the publisher decides that."""
    try:
        return verify(before, after)
    except Corrupt:
        raise
    except OmnigraphError as error:
        raise Objection(error) from error


def checks_hash(text: str) -> str:
    """The hash under which a commit names its checks; empty if there are none."""
    return layout.schema_hash(encode(StoredChecks(text))) if text else ""


def store_checks(repo: Repository, text: str | None) -> None:
    """Store the text of checks, if there is any."""
    if text:
        repo.put_once(layout.checks_key(checks_hash(text)), encode(StoredChecks(text)))
