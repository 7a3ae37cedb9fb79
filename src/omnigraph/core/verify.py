"""A last question before a commit becomes visible, asked about exactly the state it would publish.

The tables of that state are staged, so they can be read like any other; nobody else knows of them yet. Whoever loses
the race asks again about the state that follows from the new head.
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
    """The commit with what its plans say of it; raises where one of them objects."""
    before, after = repo.snapshot(head), repo.snapshot(commit)
    members = list(commit.members)
    for place, plan in enumerate(plans):
        if plan.verify is not None and not plan.empty:
            told = {**members[place].result, **_answer(plan.verify, before, after)}
            members[place] = msgspec.structs.replace(members[place], result=told)
    replaced: Commit = msgspec.structs.replace(commit, members=tuple(members))
    return replaced


def _answer(verify: Verify, before: Snapshot, after: Snapshot) -> Mapping[str, Any]:
    """What is missing may have been taken by a collection, which is for the publisher to say."""
    try:
        return verify(before, after)
    except Corrupt:
        raise
    except OmnigraphError as error:
        raise Objection(error) from error


def checks_hash(text: str) -> str:
    """What a commit calls checks; nothing where there are none."""
    return layout.schema_hash(encode(StoredChecks(text))) if text else ""


def store_checks(repo: Repository, text: str | None) -> None:
    """Put the text of checks, if there is any."""
    if text:
        repo.put_once(layout.checks_key(checks_hash(text)), encode(StoredChecks(text)))
