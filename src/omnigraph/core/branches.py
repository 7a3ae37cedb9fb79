"""Branches and tags: names for chains and commits. Creating one copies nothing, whatever the number of tables.

A branch exists once commit 0 of its chain exists; its name is written before that, and its starting point is checked
against the newest collection record in between, so that a collection either sees the name or is seen by its creator.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from omnigraph.core import layout
from omnigraph.core.commit_time import commit_time
from omnigraph.core.history import new_name
from omnigraph.core.leases import newest_record, pruned
from omnigraph.core.publisher import Outcome, create
from omnigraph.core.records import (
    Commit,
    DeletedRef,
    LiveRef,
    RefState,
    Seal,
    Tombstone,
    decode_ref,
    encode,
)
from omnigraph.core.repository import Head, Repository
from omnigraph.errors import (
    BranchExists,
    BranchNotFound,
    BranchProtected,
    CommitNotFound,
    CommitPruned,
    CommitUnknown,
    ObjectExists,
    RetriesExhausted,
    StoreNotDurable,
    StoreOutcomeUnknown,
)
from omnigraph.model.frozen import frozen
from omnigraph.model.names import MAIN, BranchName, branch_name
from omnigraph.storage import metrics
from omnigraph.storage.objects import number_of, numbered

REF_ATTEMPTS_MAX = 16
A = TypeVar("A")
B = TypeVar("B")


@frozen
class Ref:
    """A branch or tag name and its newest state."""

    name: BranchName
    number: int
    state: LiveRef


@frozen
class Start:
    """Where a branch begins: a branch whose head it follows, or exactly one commit."""

    head_of: BranchName | None = None
    commit: Commit | None = None


class CalledOff(BranchExists):
    """The creation of a branch took so long that a collection, or a creator of the same name, ended it."""


# --- creating ----------------------------------------------------------------------------------------------------


def create_branch(
    repo: Repository,
    name: str,
    start: Start,
    *,
    actor: str | None = None,
    first: Callable[[str, Commit], Commit] | None = None,
) -> Commit:
    """Create a branch. `first` builds its commit 0 from the chain's name and the commit it starts from."""
    branch = new_name(name)
    if branch == MAIN:
        raise BranchExists("the branch 'main' already exists")
    source_chain, base = _source(repo, start)
    chain = repo.clock.fresh_id()
    state = LiveRef(
        chain,
        repo.clock.fresh_id(),
        source_chain=source_chain,
        base_number=base,
        actor=actor,
        time=repo.clock.now(),
        writes=first is not None,
    )
    number = _claim_name(repo, branch, state)
    commit, record = _in_parallel(repo, lambda: _begin(repo, start), lambda: newest_record(repo))
    if commit is None or pruned(record, commit.chain, commit.number):
        _take_back(repo, branch, state, number)
        raise CommitPruned(f"the starting point of branch {branch!r} no longer exists")
    try:
        zero = _stamped(repo, (first or _genesis)(chain, commit), branch, commit)
    except BaseException:
        _take_back(repo, branch, state, number)
        raise
    outcome = create(repo, zero)
    if outcome is Outcome.UNKNOWN:
        raise CommitUnknown(f"the store did not say whether branch {branch!r} was created")
    if outcome is Outcome.TAKEN and not _is_ours(repo, zero):
        raise CalledOff(
            f"the creation of branch {branch!r} was aborted: another process is creating it"
        )
    repo.moved(Head(branch, number, zero))
    return zero


def _in_parallel(repo: Repository, one: Callable[[], A], other: Callable[[], B]) -> tuple[A, B]:
    tasks: list[Callable[[], Any]] = [one, other]
    first, second = metrics.parallel(tasks, repo.limits.read_threads_max)
    return first, second


def _source(repo: Repository, start: Start) -> tuple[str, int | None]:
    if start.commit is not None:
        return start.commit.chain, start.commit.number
    if start.head_of is None:
        raise AssertionError("a branch starts from a branch or a commit")
    return repo.known_head(start.head_of).commit.chain, None


def _begin(repo: Repository, start: Start) -> Commit | None:
    """The commit to start from, read after the name was written; None if it no longer exists."""
    if start.head_of is not None:
        try:
            return repo.head(start.head_of).commit
        except BranchNotFound:
            return None
    given = start.commit
    found = repo.chains.read(given.chain, given.number) if given is not None else None
    return found if isinstance(found, Commit) else None


def _genesis(chain: str, base: Commit) -> Commit:
    """A first commit that repeats the commit it starts from, under a new chain."""
    import msgspec

    replaced: Commit = msgspec.structs.replace(
        base,
        chain=chain,
        number=0,
        kind="branch",
        parents=(layout.commit_id(base.chain, base.number),),
        previous=base.content,
        members=(),
        recent=(),
        merged={**base.merged},
    )
    return replaced


def _stamped(repo: Repository, zero: Commit, branch: BranchName, base: Commit) -> Commit:
    import msgspec

    time = commit_time(repo, base.time)
    replaced: Commit = msgspec.structs.replace(
        zero, branch=branch, time=time, gc_epoch=base.gc_epoch
    )
    return replaced


def _is_ours(repo: Repository, zero: Commit) -> bool:
    found = repo.chains.read(zero.chain, 0)
    return isinstance(
        found, Commit
    )  # only we know the name of this chain; a collector would have sealed it


def _claim_name(repo: Repository, name: BranchName, state: LiveRef) -> int:
    """Write the next state of a name; the first guess is that the name is unused."""
    folder, number = layout.ref_folder(name), 0
    for _ in range(REF_ATTEMPTS_MAX):
        key = numbered(folder, number)
        try:
            repo.objects.put_new(key, encode(state))
            return number
        except StoreOutcomeUnknown:
            pass  # see what exists
        except ObjectExists:
            pass
        newest = repo.ref_state(folder)
        if newest is None:
            continue  # the request was lost: the same number again
        number, there = newest
        if _same(there, state):
            return number
        if isinstance(there, LiveRef) and _alive(repo, there):
            raise BranchExists(f"{'tag' if there.tag else 'branch'} {name!r} already exists")
        number += 1
    raise RetriesExhausted(f"the name {name!r} kept changing")


def _same(there: RefState, mine: RefState) -> bool:
    return type(there) is type(mine) and (there.chain, there.operation_id) == (
        mine.chain,
        mine.operation_id,
    )


def _alive(repo: Repository, state: LiveRef) -> bool:
    """A live name over a sealed chain counts as deleted; an unfinished creation is cancelled."""
    if state.tag:
        return True
    last = repo.chains.newest(state.chain)
    if last is None:
        create(repo, Seal(state.chain, 0, repo.clock.fresh_id(), None, repo.clock.now()))
        last = 0
    return not isinstance(repo.chains.read(state.chain, last), Seal)


def _take_back(repo: Repository, name: BranchName, state: LiveRef, number: int) -> None:
    create(repo, Seal(state.chain, 0, state.operation_id, state.actor, repo.clock.now()))
    _end_branch_name(repo, name, number, state)


def end_name(repo: Repository, folder: str, number: int, state: LiveRef) -> None:
    """Write that a name is no longer in use; bound to the incarnation that was read.

    If a next state already exists, it is ours after a lost response, or another writer's: the name has ended anyway.
    """
    ended = DeletedRef(state.chain, repo.clock.fresh_id())
    repo.put_once(numbered(folder, number + 1), encode(ended))


def _end_branch_name(repo: Repository, branch: BranchName, number: int, state: LiveRef) -> None:
    """End the name of a sealed chain. It counts as deleted even if the outcome of this write is unknown."""
    with suppress(StoreOutcomeUnknown, StoreNotDurable):
        end_name(repo, layout.ref_folder(branch), number, state)


# --- deleting ----------------------------------------------------------------------------------------------------


def require_deletable(repo: Repository, name: str) -> Head:
    """The head of a branch that can be deleted; raises if it cannot."""
    branch = branch_name(name)
    if branch == MAIN:
        raise BranchProtected("the branch 'main' cannot be deleted")
    return repo.known_head(branch)


def delete_branch(repo: Repository, name: str, *, actor: str | None = None) -> None:
    """Seal the branch's chain, then end its name. Later writers lose to the seal."""
    head = require_deletable(repo, name)
    branch = head.branch
    chain, operation = head.commit.chain, repo.clock.fresh_id()
    number = head.commit.number + 1
    for _ in range(repo.limits.publish_attempts_max):
        seal = Seal(chain, number, operation, actor, repo.clock.now())
        outcome = create(repo, seal)
        if outcome is Outcome.CREATED:
            break
        if outcome is Outcome.UNKNOWN:
            raise CommitUnknown(f"the store did not say whether branch {branch!r} was deleted")
        last = repo.chains.newest(chain, number)
        there = repo.chains.read(chain, number if last is None else last)
        if isinstance(there, Seal):
            if there.operation_id != operation:
                repo.forget(branch)
                raise repo.no_branch(branch)
            break
        number = (number if last is None else last) + 1
    else:
        raise RetriesExhausted(f"other writers kept branch {branch!r} moving")
    repo.forget(branch)
    _end_branch_name(repo, branch, head.ref_number, LiveRef(chain, operation))


# --- tags --------------------------------------------------------------------------------------------------------


def create_tag(
    repo: Repository,
    name: str,
    commit: Commit,
    *,
    member: int | None = None,
    actor: str | None = None,
) -> None:
    """Tag a commit. Cleanup keeps it from now on."""
    tag = new_name(name)
    if tag == MAIN:
        raise BranchExists("'main' is the name of a branch")
    operation = repo.clock.fresh_id()
    state = LiveRef(
        commit.chain,
        operation,
        tag=True,
        base_number=commit.number,
        member=member,
        actor=actor,
        time=repo.clock.now(),
    )
    number = _claim_name(repo, tag, state)
    record = newest_record(repo)
    there = repo.chains.read(commit.chain, commit.number)
    if pruned(record, commit.chain, commit.number) or isinstance(there, Tombstone):
        end_name(repo, layout.ref_folder(tag), number, state)
        raise CommitPruned(f"commit {commit.content} was pruned before it could be tagged")


def delete_tag(repo: Repository, name: str) -> None:
    """Delete a tag."""
    end_name(repo, layout.ref_folder(branch_name(name)), *live_tag(repo, name))


def live_tag(repo: Repository, name: str) -> tuple[int, LiveRef]:
    """The newest state of a tag and its number; raises if it does not exist."""
    tag = branch_name(name)
    number, state = repo.ref_state(layout.ref_folder(tag)) or (0, None)
    if not isinstance(state, LiveRef) or not state.tag:
        raise CommitNotFound(f"there is no tag {tag!r}")
    return number, state


# --- listing -----------------------------------------------------------------------------------------------------


def live_refs(repo: Repository) -> list[Ref]:
    """Every name in use and its newest state: one listing, then one read each, in parallel."""
    newest: dict[str, int] = {}
    for info in repo.objects.list(layout.REFS):
        name = layout.name_in(info.key)
        newest[name] = max(newest.get(name, -1), number_of(info.key))

    def read(name: str, number: int) -> Ref | None:
        key = numbered(layout.ref_folder(name), number)
        state = decode_ref(repo.objects.get(key), key)
        return Ref(BranchName(name), number, state) if isinstance(state, LiveRef) else None

    tasks = [lambda n=name, k=number: read(n, k) for name, number in sorted(newest.items())]
    found = metrics.parallel(tasks, repo.limits.read_threads_max)
    return [ref for ref in found if ref is not None]


def require_free(repo: Repository, name: str) -> None:
    """Raise unless this name is free for a branch or tag."""
    wanted = new_name(name)
    if wanted in branch_names(repo) or wanted in tags(repo):
        raise BranchExists(f"a branch or tag {wanted!r} already exists")


def branch_names(repo: Repository) -> list[BranchName]:
    """All branches, main first. Names of unfinished or sealed branches are left out."""
    refs = [ref for ref in live_refs(repo) if not ref.state.tag]
    tasks = [lambda chain=ref.state.chain: _is_open(repo, chain) for ref in refs]
    found = metrics.parallel(tasks, repo.limits.read_threads_max)
    return [MAIN, *(ref.name for ref, is_open in zip(refs, found, strict=True) if is_open)]


def _is_open(repo: Repository, chain: str) -> bool:
    last = repo.chains.newest(chain)
    return last is not None and not isinstance(repo.chains.read(chain, last), Seal)


def tags(repo: Repository) -> dict[str, str]:
    """All tags and the ids of their commits."""
    found: dict[str, str] = {}
    for ref in live_refs(repo):
        if ref.state.tag and ref.state.base_number is not None:
            found[ref.name] = layout.commit_id(
                ref.state.chain, ref.state.base_number, ref.state.member
            )
    return found
