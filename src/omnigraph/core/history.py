"""History: points in time, logs, and the lineage of branches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime

from omnigraph.core import layout
from omnigraph.core.leases import newest_record, pruned
from omnigraph.core.records import (
    Commit,
    LiveRef,
    Member,
    Seal,
    Tombstone,
    operations_of,
    written_by,
)
from omnigraph.core.repository import Repository
from omnigraph.errors import (
    BranchNotFound,
    CommitNotFound,
    CommitPruned,
    Corrupt,
    NameInvalid,
    ObjectNotFound,
)
from omnigraph.model.frozen import frozen
from omnigraph.model.instants import micros_of, time_of
from omnigraph.model.names import BranchName, branch_name, canonical

LOG_PAGE_COMMITS_MAX = 32

_UNIT_MICROS = {
    unit: int(seconds * 1_000_000)
    for unit, seconds in {
        "second": 1,
        "minute": 60,
        "hour": 3600,
        "day": 86400,
        "week": 604800,
    }.items()
}
_TILDE = re.compile(r"(?P<name>.+)~(?P<back>[0-9]{1,7})")
_AGO = re.compile(r"@\{(?P<count>[0-9]{1,9}) (?P<unit>second|minute|hour|day|week)s? ago\}")


@frozen
class Point:
    """A resolved point in time: a commit object, and the member of it that was named, if one was."""

    commit: Commit
    member: int | None = None

    @property
    def id(self) -> str:
        if self.member is None:
            return self.commit.content
        return layout.commit_id(self.commit.chain, self.commit.number, self.member)


@frozen
class Entry:
    """One line of a log: a write and the commit object it is in."""

    id: str
    parents: tuple[str, ...]
    branch: str
    time: int
    kind: str
    actor: str | None
    message: str | None
    commit: Commit | Tombstone
    member: Member | None


# --- points ------------------------------------------------------------------------------------------------------


def resolve(repo: Repository, at: object, branch: str) -> Point:
    """What `at` means: a commit id, `name~n`, a time (on `branch`), or else the tag or branch of this name.

    No new name has the form of the others (see `new_name`); a branch or tag of an older graph that does is looked up
    last.
    """
    if isinstance(at, datetime | date):
        return Point(at_time(repo, branch, _micros(at)))
    if not isinstance(at, str) or not at:
        raise CommitNotFound(f"{str(at)[:80]!r} is not a commit, tag, branch or time")
    text = canonical(at)
    found = _by_id(repo, text) or _by_distance(repo, text, branch)
    if found is None:
        when = _parse_time(repo, text)
        found = _by_name(repo, text) if when is None else Point(at_time(repo, branch, when))
    if found is None:
        raise no_point(text)
    return found


def no_point(at: object) -> CommitNotFound:
    """The error for a point that does not exist, or must look as if it did not."""
    return CommitNotFound(f"no commit, tag, branch or time matches {at!r}", details={"at": str(at)})


def new_name(text: object) -> BranchName:
    """A valid name for a new branch or tag: one that cannot be mistaken for a point in time."""
    name = branch_name(text)
    if has_form_of_a_point(name):
        raise NameInvalid(
            f"the name {name!r} has the form of a commit id, a time or name~n",
            help="Choose a name that cannot be mistaken for a point in time, such as release-2026-11-16.",
        )
    return name


def has_form_of_a_point(text: str) -> bool:
    """Whether a text has the form of a commit id, a distance or a time, whatever names exist."""
    patterns = layout.COMMIT_ID, _TILDE, _AGO
    return any(p.fullmatch(text) for p in patterns) or _iso_time(text) is not None


def commit_at(repo: Repository, chain: str, number: int) -> Commit:
    """A commit by its place; raises if it was pruned or never existed."""
    match repo.chains.get(chain, number):
        case Commit() as commit:
            return commit
        case Tombstone():
            raise pruned_error(layout.commit_id(chain, number))
        case _:
            raise CommitNotFound(f"there is no commit {layout.commit_id(chain, number)}")


def pruned_error(commit_id: str) -> CommitPruned:
    return CommitPruned(f"commit {commit_id} was removed by cleanup", details={"commit": commit_id})


def is_pruned_now(repo: Repository, commit: Commit) -> bool:
    """Whether a commit that could be read once may have lost its files since."""
    repo.chains.forget(commit.chain, commit.number)
    if isinstance(repo.chains.get(commit.chain, commit.number), Tombstone):
        return True
    return pruned(newest_record(repo), commit.chain, commit.number)


@contextmanager
def readable(repo: Repository, commit: Commit) -> Iterator[None]:
    """A commit pruned before or while it is read says so, instead of looking damaged."""
    try:
        yield
    except (Corrupt, ObjectNotFound) as error:
        if is_pruned_now(repo, commit):
            raise pruned_error(commit.content) from error
        raise


def _by_id(repo: Repository, text: str) -> Point | None:
    try:
        chain, number, member = layout.parse_commit_id(text)
    except CommitNotFound:
        return None
    commit = commit_at(repo, chain, number)
    if member is not None and member >= max(len(commit.members), 1):
        raise CommitNotFound(f"there is no commit {text}")
    return Point(commit, member)


def _by_name(repo: Repository, text: str) -> Point | None:
    try:
        name = branch_name(text)
    except NameInvalid:
        return None
    found = repo.ref_state(layout.ref_folder(name))
    if found is not None and isinstance(found[1], LiveRef) and found[1].tag:
        state = found[1]
        return Point(commit_at(repo, state.chain, state.base_number or 0), state.member)
    try:
        return Point(repo.head(name).commit)
    except BranchNotFound:
        return None


def _by_distance(repo: Repository, text: str, branch: str) -> Point | None:
    match = _TILDE.fullmatch(text)
    if match is None:
        return None
    start = _by_name(repo, match["name"]) or _by_id(repo, match["name"])
    if start is None:
        return None
    wanted = int(match["back"])
    for step, entry in enumerate(walk(repo, start.commit, expected=wanted + 1)):
        if step == wanted:
            return _readable(entry)
    raise CommitNotFound(
        f"branch {branch!r} has fewer than {wanted} commits before {match['name']}"
    )


def _readable(entry: Entry) -> Point:
    if isinstance(entry.commit, Tombstone):
        raise pruned_error(entry.id)
    member = layout.parse_commit_id(entry.id)[2]
    return Point(entry.commit, member)


# --- time --------------------------------------------------------------------------------------------------------


def at_time(repo: Repository, branch: str, micros: int) -> Commit:
    """The newest commit of a branch no later than a time: a binary search, since times only grow."""
    head = repo.head(branch).commit
    chain, newest = head.chain, head.number
    while True:
        first = repo.chains.expect(chain, 0)
        if first.time <= micros:
            return _last_before(repo, chain, newest, micros)
        if isinstance(first, Seal) or not first.parents:
            raise CommitNotFound(f"branch {branch!r} did not exist at {_iso(micros)}")
        chain, newest, _ = layout.parse_commit_id(first.parents[0])


def _iso(micros: int) -> str:
    try:
        return time_of(micros).isoformat()
    except OverflowError:  # before year 1
        return "that time"


def _last_before(repo: Repository, chain: str, newest: int, micros: int) -> Commit:
    low, high = 0, newest
    while low < high:
        middle = (low + high + 1) // 2
        if repo.chains.expect(chain, middle).time > micros:
            high = middle - 1
        else:
            low = middle
    return commit_at(repo, chain, low)


def _micros(when: datetime | date) -> int:
    if not isinstance(when, datetime):
        when = datetime(when.year, when.month, when.day, tzinfo=UTC)
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return micros_of(when)


def _parse_time(repo: Repository, text: str) -> int | None:
    """ISO dates and times (UTC unless they say otherwise), and `@{2 hours ago}`."""
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return repo.clock.now() - int(ago["count"]) * _UNIT_MICROS[ago["unit"]]
    when = _iso_time(text)
    return None if when is None else _micros(when)


def _iso_time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


# --- logs --------------------------------------------------------------------------------------------------------


def walk(
    repo: Repository,
    start: Commit,
    *,
    maintenance: bool = False,
    expected: int = LOG_PAGE_COMMITS_MAX,
) -> Iterator[Entry]:
    """The writes that led to a commit, newest first, along the first parents.

    Commits are read in pages: first as many as `expected`, then more and more.
    """
    chain, number = start.chain, start.number
    size = min(max(expected, 1), LOG_PAGE_COMMITS_MAX)
    while True:
        first = max(0, number - size + 1)
        page = repo.chains.range(chain, first, number)
        size = min(2 * size, LOG_PAGE_COMMITS_MAX)
        for thing in reversed(page):
            if not isinstance(thing, Seal):
                yield from entries(thing, maintenance=maintenance)
        number = first - 1
        if number >= 0:
            continue
        zero = page[0]
        if isinstance(zero, Seal) or not zero.parents:
            return
        chain, number, _ = layout.parse_commit_id(zero.parents[0])


def entries(thing: Commit | Tombstone, *, maintenance: bool = True) -> Iterator[Entry]:
    """The writes of one object, newest first; hidden ones only on request."""
    here = layout.commit_id(thing.chain, thing.number)
    hidden = layout.parse_commit_id(thing.content)[:2] != (thing.chain, thing.number)
    if hidden and not maintenance:
        return
    common = (_parents(thing), thing.branch, thing.time)
    if isinstance(thing, Tombstone):
        yield Entry(here, *common, thing.kind, None, None, thing, None)
        return
    if not thing.members:
        yield Entry(here, *common, thing.kind, None, None, thing, None)
    for place in reversed(range(len(thing.members))):
        yield entry(thing, place)


def _parents(thing: Commit | Tombstone) -> tuple[str, ...]:
    """The parents users see: those with content."""
    return (thing.previous, *thing.parents[1:]) if thing.previous else thing.parents


def entry(thing: Commit | Tombstone, place: int) -> Entry:
    """One write of a commit; of a removed one, if it was made under an idempotency key."""
    here = layout.commit_id(thing.chain, thing.number)
    member = written_by(thing)[place]
    return Entry(
        here if len(operations_of(thing)) == 1 else f"{here}.{place}",
        _parents(thing) if place == 0 else (f"{here}.{place - 1}",),
        thing.branch,
        thing.time,
        member.kind,
        member.actor,
        member.message,
        thing,
        member,
    )
