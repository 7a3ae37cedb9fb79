"""The results of the verbs about proposals."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from omnigraph.core.proposals import (
    APPROVED,
    CHANGES_WANTED,
    MERGING,
    OPEN,
    ProposalEvent,
    ProposalState,
)
from omnigraph.model.frozen import frozen
from omnigraph.model.instants import time_of
from omnigraph.values.spelling import fields_json

if TYPE_CHECKING:
    from omnigraph.merge.conflicts import Conflict
    from omnigraph.read.checking import CheckReport

STATES = (OPEN, CHANGES_WANTED, APPROVED, "merged", "closed")


@frozen
class ReviewVerdict:
    """The latest verdict of a reviewer: approved or changes_wanted, and the commit it was given for."""

    actor: str
    verdict: str
    head: str
    time: datetime
    current: bool  # whether the branch is still at that commit

    def to_json(self) -> dict[str, Any]:
        return fields_json(self)


@frozen
class ThreadEntry:
    """An event of a proposal. A comment may be about a type, a row of it, or a cell of that row."""

    kind: str  # opened, commented, approved, changes_wanted, closed, merging, merged or not_merged
    actor: str | None
    time: datetime
    text: str = ""
    head: str | None = None  # the commit it was said about
    type: str | None = None
    id: str | None = None
    property: str | None = None
    commit: str | None = None  # that a merge made

    @classmethod
    def of(cls, event: ProposalEvent) -> ThreadEntry:
        place = event.place
        return cls(
            kind=event.kind,
            actor=event.actor,
            time=time_of(event.time),
            text=event.text,
            head=event.head,
            type=None if place is None else place.type,
            id=None if place is None else place.id,
            property=None if place is None else place.property,
            commit=event.commit,
        )

    def to_json(self) -> dict[str, Any]:
        return fields_json(self)


@frozen
class Proposal:
    """A branch offered for merging.

    `state` is open, changes_wanted, approved, merged or closed; it is approved while a reviewer has approved the
    current commit of the branch and none wants changes. `head` is the head of the branch, or what was merged; None if
    the branch is gone.
    """

    number: int
    title: str
    state: str
    author: str | None
    source: str
    target: str
    created: datetime
    updated: datetime
    head: str | None
    reviewers: tuple[str, ...] = ()
    reviews: tuple[ReviewVerdict, ...] = ()
    commit: str | None = None  # that merged it
    thread: tuple[
        ThreadEntry, ...
    ] = ()  # oldest first; only if the proposal was requested by number

    @property
    def text(self) -> str:
        """The description by its author."""
        return next((entry.text for entry in self.thread if entry.kind == "opened"), "")

    @classmethod
    def of(
        cls, state: ProposalState, head: str | None, thread: tuple[ThreadEntry, ...] = ()
    ) -> Proposal:
        shown = state.head or head
        reviews = tuple(
            ReviewVerdict(actor, v.kind, v.head, time_of(v.time), v.head == shown)
            for actor, v in sorted(state.verdicts.items(), key=lambda item: item[1].time)
        )
        return cls(
            number=state.number,
            title=state.title,
            state=_state(state, reviews),
            author=state.author,
            source=state.source,
            target=state.target,
            created=time_of(state.created),
            updated=time_of(state.event.time),
            head=shown,
            reviewers=state.reviewers,
            reviews=reviews,
            commit=state.commit,
            thread=thread,
        )

    def to_json(self) -> dict[str, Any]:
        """The shape every surface uses."""
        return fields_json(self)


def _state(state: ProposalState, reviews: tuple[ReviewVerdict, ...]) -> str:
    if state.status not in (OPEN, MERGING):
        return state.status
    if any(review.verdict == CHANGES_WANTED for review in reviews):
        return CHANGES_WANTED
    approved = any(review.verdict == APPROVED and review.current for review in reviews)
    return APPROVED if approved else OPEN


@frozen
class Review:
    """What a proposal would bring: rows by type, checks it changes, whether it merges, what its checks found, and what
    is still missing before it may be merged. `graph.diff(review.base, review.head)` shows the rows."""

    proposal: Proposal
    base: str
    head: str
    counts: Mapping[str, Mapping[str, int]]
    schema: tuple[Mapping[str, Any], ...]
    changed_checks: Mapping[str, list[str]]
    outcome: str  # of a merge: already_up_to_date, fast_forward, merged or conflict
    conflicts: tuple[Conflict, ...]
    checks: CheckReport
    missing: tuple[str, ...] = ()  # in sentences

    @property
    def mergeable(self) -> bool:
        """Whether it can be merged now."""
        return self.outcome != "conflict" and self.checks.passed and not self.missing

    def to_json(self) -> dict[str, Any]:
        """The shape every surface uses."""
        return fields_json(self) | {"mergeable": self.mergeable}
