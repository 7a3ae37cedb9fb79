"""A fair last resort: a writer that lost many races asks the others to make room for a bounded time.

The question is a commit that changes nothing and says who asks for how long. Every writer reads the head before a
write, so the question costs no extra request; a writer that finds it waits until the branch moves on or the time is
over, by its own clock. Correctness does not depend on the waiting: the asker has to win its race as before, and one
that died in the meantime delays others by the bound and no more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from omnigraph.core import layout
from omnigraph.core.commit_time import commit_time
from omnigraph.core.records import ChainObject, Commit, Member, operations_of
from omnigraph.core.repository import Repository

ROOM = "room"
SECONDS = "seconds"
LOOKS = (
    16  # looks at the branch while another writer has room, so that waits end soon after they can
)
SLACK = 3.0  # times what the work took before: reading and creating come on top
SECONDS_MIN = 0.1
LONG_CREATES = 20  # times as long as its attempt to publish: losing such work costs more than the wait of others
LONG_COMMITS = 6  # of others, while the work was made


def following(repo: Repository, head: Commit, kind: str, **fields: object) -> Commit:
    """The commit after a head that shows the same state."""
    oldest = head.number + 1 - repo.limits.recent_commits
    found: Commit = msgspec.structs.replace(
        head,
        number=head.number + 1,
        parents=(layout.commit_id(head.chain, head.number),),
        previous=head.content,
        time=commit_time(repo, head.time),
        kind=kind,
        members=(),
        recent=tuple(known for known in head.recent if known.number > oldest),
        **fields,
    )
    return found


def question(
    repo: Repository, head: Commit, seconds: float, actor: str | None, work: str
) -> Commit:
    """The commit that asks for room after a head. It has its own operation id: it is not the work it asks for."""
    asked = {SECONDS: round(seconds, 3), "for": work}
    member = Member(kind=ROOM, operation_id=repo.clock.fresh_id(), actor=actor, result=asked)
    found: Commit = msgspec.structs.replace(following(repo, head, ROOM), members=(member,))
    return found


def asked_seconds(repo: Repository, thing: ChainObject) -> float:
    """For how long a commit asks for room: 0 if it does not, and never more than the bound."""
    if not isinstance(thing, Commit) or thing.kind != ROOM or not thing.members:
        return 0.0
    seconds = thing.members[0].result.get(SECONDS)
    if not isinstance(seconds, int | float) or not seconds > 0:
        return 0.0
    return min(float(seconds), repo.limits.room_seconds_max)


@dataclass(slots=True)
class Contest:
    """The races of one write, or of a folded group: how they went, and who has asked for room."""

    repo: Repository
    began: int  # microseconds, as the others
    lost: int = 0
    tried: int | None = None  # how long a lost attempt to publish took, at least
    runs: int = 0  # of verbs that another commit interfered with
    met: Commit | None = None  # the last commit that made a verb run again
    longest: int = 0  # how long verbs and staging took, at most
    missed: int = 0  # commits that came meanwhile, at most
    moves_since: int | None = None  # when the work began to be put on the head it is published on
    moving: int | None = None  # how long that took, the last time
    asked: set[str] = field(default_factory=set)  # our own questions, by operation
    room_until: int = 0
    quiet_until: int = 0  # until then we do not ask again: others get their turn
    given: tuple[str, int] | None = None  # the question we last waited for

    @classmethod
    def begin(cls, repo: Repository) -> Contest:
        return cls(repo, repo.clock.now())

    @property
    def is_hopeless(self) -> bool:
        """Whether others keep changing what the work is about, and it takes longer than the room others would make."""
        return self.runs >= self.repo.limits.meetings_max and not self._fits(self.longest)

    def made(self, began: int) -> None:
        """Verbs and staging are done, which began at this time."""
        self.longest = max(self.longest, self.repo.clock.now() - began)
        self.moves_since = None

    def begins_move(self) -> None:
        """What was missed is judged; now the work is put on a newer head."""
        self.moves_since = self.repo.clock.now()

    def begins_race(self) -> int:
        """An attempt to publish begins, now."""
        now = self.repo.clock.now()
        if self.moves_since is not None:
            self.moving = now - self.moves_since
        return now

    def lose(self, began: int) -> None:
        """An attempt to publish was lost, which began at this time."""
        self.lost += 1
        tried = self.repo.clock.now() - began
        self.tried = tried if self.tried is None else min(tried, self.tried)

    def stand_back(self, lost: int) -> None:
        """Wait before the next race, unless the others wait for us, or the work is long: then they win meanwhile."""
        if not self._is_long and self.repo.clock.now() >= self.room_until:
            self.repo.stand_back(lost)

    def _fits(self, micros: int) -> bool:
        return micros <= self.repo.limits.room_seconds_max * 1_000_000

    def wants_room(self, needed: int | None) -> float:
        """For how many seconds to ask; 0 while ordinary retries may still succeed, or if no room would be enough.
        `needed` is how long the work takes until it can be published, None if that is unknown: then it is taken to be
        less than making it took."""
        now = self.repo.clock.now()
        if now < self.quiet_until or (needed is not None and not self._fits(needed)):
            return 0.0
        wanted = self.longest if needed is None else needed
        if not self._is_starved(now) and not (self._is_long and wanted <= self.longest):
            return 0.0
        seconds = max(SECONDS_MIN, SLACK * wanted / 1_000_000)
        return min(seconds, self.repo.limits.room_seconds_max)

    def _is_starved(self, now: int) -> bool:
        limits = self.repo.limits
        spent = now - self.began
        return self.lost >= limits.room_after_losses and spent >= limits.room_after_seconds * 1e6

    @property
    def _is_long(self) -> bool:
        """Whether lost work took much longer than an attempt to publish it, and than the writes of others: on a busy
        machine everything takes long."""
        if self.tried is None or self.missed < LONG_COMMITS:
            return False
        return self.longest >= max(SECONDS_MIN * 1e6, LONG_CREATES * self.tried)

    def question(self, head: Commit, seconds: float, actor: str | None, work: str) -> Commit:
        """The commit that asks for room after a head, to be recognised as our own."""
        asking = question(self.repo, head, seconds, actor, work)
        self.asked |= operations_of(asking)
        return asking

    def has_asked(self, seconds: float) -> None:
        """The next question waits until others have had as much time as we ask for now."""
        micros = int(seconds * 1_000_000)
        self.room_until = self.repo.clock.now() + micros
        self.quiet_until = self.room_until + micros

    def make_room(self, newest: ChainObject, is_over: Callable[[], bool]) -> bool:
        """Wait while the newest commit of a branch is another writer's question, as long as it asks; whether we did."""
        seconds = self._wanted(newest)
        if not seconds:
            return False
        self.given = (newest.chain, newest.number)
        clock, chains = self.repo.clock, self.repo.chains
        ends = clock.now() + int(seconds * 1_000_000)
        for _ in range(LOOKS):
            if clock.now() >= ends or is_over():
                break
            clock.pause(seconds / LOOKS)
            if chains.read(newest.chain, newest.number + 1) is not None:
                break
        return True

    def _wanted(self, thing: ChainObject) -> float:
        seconds = asked_seconds(self.repo, thing)
        if not seconds or (thing.chain, thing.number) == self.given:
            return 0.0
        return 0.0 if operations_of(thing) & self.asked else seconds
