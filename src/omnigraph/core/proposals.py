"""Proposals: branches offered for merging, kept beside the history of a graph and never in its data.

A proposal is a series of create-only objects `_proposals/<number>/<k>`: each has the latest event and the whole state
after it, so the newest one is enough to act on, and no two processes can both write the k-th. Every decision is made
on the state that was read: a process that loses the create reads again and decides anew.

A merge touches two places, the proposal and the branch it goes to. It is claimed in the proposal first, which every
later reader sees, and then published under an idempotency key of that claim. Whether it happened is therefore decided
in one place, by whichever comes first under the key: the merge, or an empty commit that cancels it.
An abandoned claim is settled by the next process that finds it, without waiting and without a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from omnigraph.core import layout
from omnigraph.core.idempotency import existing_claim, landed_anywhere
from omnigraph.core.records import (
    Seal,
    Struct,
    decode,
    encode,
    object_at,
    operations_of,
    written_by,
)
from omnigraph.core.repository import Repository
from omnigraph.errors import (
    Corrupt,
    Kind,
    ObjectExists,
    ObjectNotFound,
    OmnigraphError,
    OptionInvalid,
    RetriesExhausted,
    StoreOutcomeUnknown,
)
from omnigraph.model.names import is_unicode
from omnigraph.storage import metrics
from omnigraph.storage.objects import numbered

OPEN, MERGING, MERGED, CLOSED = "open", "merging", "merged", "closed"
APPROVED, CHANGES_WANTED = "approved", "changes_wanted"
ATTEMPTS_MAX = 64
TITLE_MAX = 500  # characters
TEXT_MAX = 64_000
REVIEWERS_MAX = 100
EVENTS_MAX = 10_000  # of one proposal
NUMBER_END = 10**12


class ProposalNotFound(OmnigraphError):
    """No proposal has this number."""

    code, kind = "proposal_not_found", Kind.NOT_FOUND
    default_help = "`omnigraph proposals` lists the proposals."


class ProposalEnded(OmnigraphError):
    """The proposal was merged or closed.

    It can still be commented on, but no longer changed. Propose the branch again for another round.
    """

    code, kind = "proposal_ended", Kind.INVALID
    default_help = "Propose the branch again for another round."


class ProposalMoved(OmnigraphError):
    """The branch has moved on since it was reviewed.

    An approval is given for one state. Look at the branch as it is now, and approve that.
    """

    code, kind = "proposal_moved", Kind.CONFLICT
    default_help = "Look at the proposal again: `omnigraph review NUMBER`."
    python_help = "Look at the proposal again: g.proposal(number)."


class ProposalExists(OmnigraphError):
    """The branch is already proposed."""

    code, kind = "proposal_exists", Kind.INVALID
    default_help = "Continue with that proposal, or close it first."


class CommentPlace(Struct, frozen=True):
    """What a comment is about: a type, a row of it, or a cell of that row."""

    type: str
    id: str | None = None
    property: str | None = None


class ProposalEvent(Struct, frozen=True):
    """An event of a proposal."""

    kind: Literal[
        "opened",
        "commented",
        "approved",
        "changes_wanted",
        "closed",
        "merging",
        "merged",
        "not_merged",
    ]
    operation_id: str
    actor: str | None
    time: int  # microseconds
    text: str = ""
    head: str | None = None  # the commit it was said about
    place: CommentPlace | None = None
    commit: str | None = None  # that a merge made


class GivenVerdict(Struct, frozen=True):
    """The latest verdict of a reviewer, and the commit it was given for."""

    kind: Literal["approved", "changes_wanted"]
    head: str
    time: int


class MergeClaim(Struct, frozen=True):
    """A merge in progress: of this head, judged when it was claimed."""

    key: str  # the idempotency key it is published under
    head: str
    base: str
    actor: str | None


class ProposalState(Struct, frozen=True):
    """The k-th state of a proposal, and the event that led to it."""

    number: int
    title: str
    author: str | None
    source: str
    target: str
    created: int
    event: ProposalEvent
    status: Literal["open", "merging", "merged", "closed"] = "open"
    reviewers: tuple[str, ...] = ()
    verdicts: dict[str, GivenVerdict] = {}
    claim: MergeClaim | None = None
    commit: str | None = None  # of the merge
    head: str | None = None  # what was merged, or where the branch was when it was closed
    base: str | None = None  # and since when it differed


Step = Callable[[ProposalState], ProposalState]


# --- reading -----------------------------------------------------------------------------------------------------


def numbers(repo: Repository) -> list[int]:
    """All proposals, newest first."""
    found = repo.objects.folders(layout.PROPOSALS)
    return sorted((int(name) for name in found if name.isdecimal()), reverse=True)


def newest(repo: Repository, number: int) -> tuple[int, ProposalState]:
    """The last state of a proposal, and its place in the series."""
    folder = layout.proposal_folder(_checked_number(number))
    last = repo.objects.newest(folder)
    if last is None:
        raise no_proposal(number)
    return last, read(repo, number, last)


def no_proposal(number: object) -> ProposalNotFound:
    """The error for a proposal that does not exist, or must look as if it did not."""
    return ProposalNotFound(f"there is no proposal {number!r}", details={"number": str(number)})


def _checked_number(number: object) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number < NUMBER_END:
        raise no_proposal(number)
    return number


def read(repo: Repository, number: int, place: int) -> ProposalState:
    """One state of a proposal."""
    key = numbered(layout.proposal_folder(number), place)
    try:
        found: ProposalState = decode(ProposalState, repo.objects.get(key), key)
    except ObjectNotFound as error:
        raise Corrupt(
            f"the state {key} of a proposal is missing", details={"object": key}
        ) from error
    return found


def newest_of(repo: Repository, wanted: list[int]) -> list[ProposalState]:
    """The latest states of some proposals."""
    tasks = [lambda n=number: newest(repo, n)[1] for number in wanted]
    return metrics.parallel(tasks, repo.limits.read_threads_max)


def events(repo: Repository, number: int, last: int) -> list[ProposalEvent]:
    """The events of a proposal, oldest first; after a cleanup, only the last."""
    tasks = [lambda k=place: _event(repo, number, k) for place in range(last + 1)]
    found = metrics.parallel(tasks, repo.limits.read_threads_max)
    return [event for event in found if event is not None]


def _event(repo: Repository, number: int, place: int) -> ProposalEvent | None:
    key = numbered(layout.proposal_folder(number), place)
    state = object_at(repo.objects, ProposalState, key)
    return None if state is None else state.event  # a cleanup keeps only the last state


# --- writing -----------------------------------------------------------------------------------------------------


def open_proposal(
    repo: Repository,
    *,
    title: str,
    text: str,
    author: str | None,
    source: str,
    target: str,
    head: str,
    reviewers: tuple[str, ...],
    dry_run: bool = False,
) -> ProposalState:
    """A new proposal, under the next number; a dry run only returns that number."""
    known = numbers(repo)
    for other in newest_of(repo, known):
        if other.status in (OPEN, MERGING) and (other.source, other.target) == (source, target):
            raise ProposalExists(
                f"branch {source!r} is already proposed for {target!r}: proposal {other.number}",
                details={"number": other.number},
            )
    happened = event(repo, "opened", author, text=text, head=head)
    number = max(known, default=0) + 1
    for _ in range(ATTEMPTS_MAX):
        state = ProposalState(
            number,
            title,
            author,
            source,
            target,
            happened.time,
            happened,
            reviewers=reviewers,
        )
        if dry_run or _create(repo, state, 0):
            return state
        number += 1
    raise RetriesExhausted("other proposals kept taking the next number")


def event(repo: Repository, kind: Any, actor: str | None, **more: Any) -> ProposalEvent:
    """A new event, at the current time."""
    return ProposalEvent(kind, repo.clock.fresh_id(), actor, repo.clock.now(), **more)


def change(repo: Repository, number: int, step: Step) -> ProposalState:
    """Write the next state of a proposal. `step` computes it from the newest one, again after a lost race."""
    for attempt in range(ATTEMPTS_MAX):
        last, there = newest(repo, number)
        if last >= EVENTS_MAX:
            raise OptionInvalid(f"proposal {number} has {EVENTS_MAX} events; open another one")
        state = step(there)
        if state is there:
            return there
        if _create(repo, state, last + 1):
            return state
        repo.back_off(attempt)
    raise RetriesExhausted(f"proposal {number} kept changing")


def _create(repo: Repository, state: ProposalState, place: int) -> bool:
    """Whether we created the object; after a lost response, its content tells."""
    key = numbered(layout.proposal_folder(state.number), place)
    for attempt in range(repo.limits.unknown_attempts_max):
        try:
            repo.objects.put_new(key, encode(state))
            return True
        except ObjectExists:
            there = read(repo, state.number, place)
            return there.event.operation_id == state.event.operation_id
        except StoreOutcomeUnknown:
            repo.back_off(attempt)
    raise StoreOutcomeUnknown(f"the store did not say whether proposal {state.number} was changed")


def after(state: ProposalState, happened: ProposalEvent, **changed: Any) -> ProposalState:
    """The state after an event."""
    replaced: ProposalState = msgspec.structs.replace(state, event=happened, **changed)
    return replaced


def judged(state: ProposalState, happened: ProposalEvent) -> ProposalState:
    """The state after an approval or a request for changes: the latest verdict of each reviewer counts."""
    require_open(state)
    verdict = GivenVerdict(happened.kind, happened.head or "", happened.time)  # type: ignore[arg-type]
    return after(state, happened, verdicts={**state.verdicts, happened.actor or "": verdict})


def require_open(state: ProposalState) -> None:
    """Raise unless a proposal is still open."""
    if state.status not in (OPEN, MERGING):
        raise ProposalEnded(
            f"proposal {state.number} is {state.status}",
            details={"number": state.number, "state": state.status},
        )


def claimed(state: ProposalState, happened: ProposalEvent, base: str) -> ProposalState:
    """The state in which a merge of the event's head is in progress."""
    key = f"proposal {state.number} {happened.operation_id}"
    claim = MergeClaim(key, happened.head or "", base, happened.actor)
    return after(state, happened, status=MERGING, claim=claim)


def settled(
    state: ProposalState,
    repo: Repository,
    key: str,
    answer: Mapping[str, Any] | None,
    why: str = "",
) -> ProposalState:
    """The state once the merge under a key is known to have happened, with this result and commit, or not."""
    claim = state.claim
    if claim is None or claim.key != key:
        return state  # already settled by another process
    if answer is None:
        happened = event(repo, "not_merged", claim.actor, head=claim.head, text=why[:TITLE_MAX])
        return after(state, happened, status=OPEN, claim=None)
    commit = str(answer["commit"])
    happened = event(repo, "merged", claim.actor, head=claim.head, commit=commit)
    return after(
        state,
        happened,
        status=MERGED,
        claim=None,
        commit=commit,
        head=claim.head,
        base=claim.base,
    )


def merge_landed(repo: Repository, key: str) -> str | None:
    """The id of the commit published under the key of a claim, if it is a merge."""
    claim = existing_claim(repo, key)
    found = None if claim is None else landed_anywhere(repo, claim)
    if claim is None or found is None or isinstance(found, Seal):
        return None
    for place, member in written_by(found).items():
        if member.operation_id == claim.operation_id and "proposal" in member.result:
            grouped = len(operations_of(found)) > 1
            return layout.commit_id(found.chain, found.number, place if grouped else None)
    return None


# --- texts -------------------------------------------------------------------------------------------------------


def checked_text(name: str, text: str, characters_max: int, *, needed: bool = False) -> str:
    """A text from a user, if it is valid and short enough."""
    if not isinstance(text, str) or not is_unicode(text):
        raise OptionInvalid(f"{name}= is not a text of valid Unicode")
    if len(text) > characters_max:
        raise OptionInvalid(f"{name}= has {len(text)} characters, more than {characters_max}")
    if needed and not text.strip():
        raise OptionInvalid(f"{name}= must not be empty")
    return text


def checked_reviewers(names: Sequence[str]) -> tuple[str, ...]:
    """The requested reviewers, without duplicates."""
    if isinstance(names, str):
        raise OptionInvalid("reviewers= is a list of names")
    found = tuple(dict.fromkeys(names))
    if len(found) > REVIEWERS_MAX:
        raise OptionInvalid(f"a proposal has at most {REVIEWERS_MAX} reviewers")
    for name in found:
        checked_text("reviewers", name, TITLE_MAX, needed=True)
    return found


def checked_place(type: str | None, id: str | None, property: str | None) -> CommentPlace | None:
    """What a comment is about; None: the proposal as a whole."""
    if type is None:
        if id is not None or property is not None:
            raise OptionInvalid("a comment on a row or a cell names its type")
        return None
    if property is not None and id is None:
        raise OptionInvalid("a comment on a cell names its row")
    return CommentPlace(type, id, property)
