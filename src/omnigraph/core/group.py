"""Group commit: writers of one branch in one process queue, and the first publishes for all of them.

While a leader is busy the others wait; it then folds everything that has queued up into one commit. A
single writer pays nothing for this.

Processes take turns. The one that published last knows the head and is the quickest to publish next, so the others
could lose as long as it continues; after some commits in a row it therefore pauses briefly.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field

import msgspec

from omnigraph.core.idempotency import claim, joined, landed_anywhere, mismatch
from omnigraph.core.plan import Request
from omnigraph.core.publisher import Published, Ticket, publish, replay
from omnigraph.core.records import ChainObject, Commit, KeyClaim
from omnigraph.core.repository import Repository
from omnigraph.errors import BranchNotFound, CommitUnknown
from omnigraph.model.names import BranchName

TURN_COMMITS_MIN, TURN_COMMITS_MAX = 8, 128
PAUSE_CYCLES = 3  # the others start from a head they have to read first
PAUSE_MICROS_MAX = 1_000_000


@dataclass(slots=True, eq=False)
class Waiter:
    """A writer in the queue. It wakes when a leader has published for it, or when it has to lead."""

    ticket: Ticket
    turn: threading.Event = field(default_factory=threading.Event)
    leads: bool = False


@dataclass(slots=True)
class Turn:
    """Our consecutive commits on one branch, with no others between them. Times are microseconds."""

    last: Commit | None = None
    length: int = 0
    allowed: int = TURN_COMMITS_MIN
    ended: int = 0
    pause: int = 0

    def published(self, commit: Commit, began: int, ended: int) -> None:
        alone = self.last is not None and follows(commit, self.last)
        if not alone:
            self.length, self.allowed = 0, TURN_COMMITS_MIN
        self.length += 1
        self.last, self.ended = commit, ended
        self.pause = min(PAUSE_CYCLES * (ended - began), PAUSE_MICROS_MAX)

    def over(self, now: int) -> int:
        """How long to let others try; 0 while the turn lasts. The next turn is longer if no other writer comes."""
        if self.length < self.allowed:
            return 0
        self.length, self.allowed = 0, min(2 * self.allowed, TURN_COMMITS_MAX)
        return max(0, self.ended + self.pause - now)


def follows(commit: Commit, other: Commit) -> bool:
    return (commit.chain, commit.number) == (other.chain, other.number + 1)


@dataclass(slots=True)
class Queue:
    """The writers of one branch."""

    waiting: deque[Waiter] = field(default_factory=deque)
    busy: bool = False
    turn: Turn = field(default_factory=Turn)


class Writers:
    """Submits requests to the publisher, one group at a time per branch."""

    def __init__(self, repo: Repository, *, grouping: bool = True) -> None:
        self._repo = repo
        self._grouping = grouping
        self._lock = threading.Lock()
        self._queues: dict[BranchName, Queue] = {}
        self.slowed = 0.0  # seconds before each commit, while maintenance is behind
        self.waited = 0.0  # in total

    def submit(self, request: Request) -> Published:
        """Publish a request, together with others if possible."""
        self._repo.check_process()
        request.deadline.check()
        waiter = Waiter(self._ticket(request))
        ticket = waiter.ticket
        if not ticket.is_settled:
            self._enter(waiter)
            if not waiter.leads:
                self._wait(waiter)
        if not ticket.is_settled:
            self._lead(waiter)
        if ticket.error is not None:
            raise ticket.error
        if ticket.outcome is None:
            raise AssertionError("a settled ticket has an outcome or an error")
        return ticket.outcome

    def _wait(self, waiter: Waiter) -> None:
        deadline = waiter.ticket.request.deadline
        if not waiter.turn.wait(deadline.remaining()) and self._leave(waiter):
            raise deadline.error()
        waiter.turn.wait()

    def _ticket(self, request: Request) -> Ticket:
        repo = self._repo
        operation = repo.clock.fresh_id()
        if request.idempotency_key is None:
            return Ticket(request, operation, instant=repo.clock.now())
        return self._keyed(request, request.idempotency_key, operation)

    def _keyed(self, request: Request, key: str, operation: str) -> Ticket:
        """A ticket under an idempotency key: settled immediately if the branch was deleted since the key was used."""
        repo, branch = self._repo, request.branch
        wanted = KeyClaim(operation, request.fingerprint, branch, "", -1)
        try:
            head = repo.head(branch).commit
        except BranchNotFound:
            found = joined(repo, key, wanted)
            landed = None if found is None else landed_anywhere(repo, found)
            if found is None or landed is None:
                raise
            return _settled(request, found, landed)
        wanted = msgspec.structs.replace(wanted, chain=head.chain, base_number=head.number)
        found = claim(repo, key, wanted)
        if found.chain in ("", head.chain):
            return Ticket(request, found.operation_id, found.base_number, instant=repo.clock.now())
        landed = landed_anywhere(repo, found)
        if landed is None:
            raise mismatch(key, "chain", branch)  # nothing can land on the chain it was used on
        return _settled(request, found, landed)

    def _enter(self, waiter: Waiter) -> None:
        """Queue up; a writer that finds no leader becomes the leader."""
        with self._lock:
            queue = self._queues.setdefault(waiter.ticket.request.branch, Queue())
            queue.waiting.append(waiter)
            waiter.leads, queue.busy = not queue.busy, True

    def _leave(self, waiter: Waiter) -> bool:
        """Leave the queue, unless a leader has taken us along or it is our turn to lead."""
        with self._lock:
            queue = self._queues[waiter.ticket.request.branch]
            if waiter.leads or waiter not in queue.waiting:
                return False
            queue.waiting.remove(waiter)
            return True

    def _lead(self, own: Waiter) -> None:
        """Publish for the group we are the first of, then hand over to the next in the queue."""
        branch = own.ticket.request.branch
        self._let_others_try(branch)
        group = self._take(branch)
        began = self._repo.clock.now()
        try:
            publish(self._repo, [waiter.ticket for waiter in group])
            self._note(branch, group, began)
        except BaseException as error:
            _abandon(group, own, error)
            raise
        finally:
            for waiter in group:
                waiter.turn.set()
            self._hand_over(branch)

    def _let_others_try(self, branch: BranchName) -> None:
        """Only the leader reads the turn, and there is one leader at a time."""
        clock = self._repo.clock
        pause = self._queues[branch].turn.over(clock.now())
        if pause:
            clock.pause(pause / 1_000_000)
        if self.slowed:
            self.waited += self.slowed
            clock.pause(self.slowed)

    def _note(self, branch: BranchName, group: list[Waiter], began: int) -> None:
        outcomes = [waiter.ticket.outcome for waiter in group]
        commit = next((o.commit for o in outcomes if o is not None and not o.replayed), None)
        if isinstance(commit, Commit):
            self._queues[branch].turn.published(commit, began, self._repo.clock.now())

    def _take(self, branch: BranchName) -> list[Waiter]:
        """The next group: the first in the queue and those behind it that can share its commit."""
        with self._lock:
            waiting = self._queues[branch].waiting
            group = [waiting.popleft()]
            limit = self._repo.limits.group_members_max if self._grouping else 1
            while (
                waiting and len(group) < limit and not _alone(group[-1]) and not _alone(waiting[0])
            ):
                group.append(waiting.popleft())
            return group

    def _hand_over(self, branch: BranchName) -> None:
        with self._lock:
            queue = self._queues[branch]
            if not queue.waiting:
                queue.busy = False
                return
            successor = queue.waiting[0]
            successor.leads = True
            successor.turn.set()


def _settled(request: Request, claimed: KeyClaim, landed: ChainObject) -> Ticket:
    """The ticket of an earlier write."""
    outcome = replay(landed, claimed.operation_id)
    return Ticket(request, claimed.operation_id, claimed.base_number, outcome)


def _abandon(group: list[Waiter], own: Waiter, error: BaseException) -> None:
    """The leader was interrupted: it is unknown whether the commit was published."""
    for waiter in group:
        if not waiter.ticket.is_settled:
            operation = waiter.ticket.operation_id
            waiter.ticket.error = (
                error
                if waiter is own
                else CommitUnknown(
                    "the writer that published for this one was interrupted",
                    details={"operation_ids": [operation]},
                )
            )


def _alone(waiter: Waiter) -> bool:
    request = waiter.ticket.request
    return request.alone or request.if_commit is not None
