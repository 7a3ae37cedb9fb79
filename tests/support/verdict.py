"""Judge a history of list operations against the chains it became, whatever store and processes made it.

The chain is walked member by member: a write must have read exactly what the writes before it in the chain had left,
and a read what the commit it reports holds. Commits that were pruned meanwhile are known by the operation ids their
tombstones keep. A merge brings the appends of its source up to the commit it merged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from omnigraph.core import layout
from omnigraph.core.records import ChainObject, Commit, Tombstone
from omnigraph.core.repository import Repository
from tests.support.history import (
    Anomaly,
    Append,
    ChainCommit,
    Operation,
    Status,
    check_acknowledged,
    check_chain,
    check_replay,
)
from tests.support.isolation import Level, check_isolation


@dataclass(frozen=True, slots=True)
class Logged:
    """What clients logged: operations, and which of the store's operation ids are theirs."""

    operations: Sequence[Operation]
    names: Mapping[str, str] = field(default_factory=dict)  # operation id -> name
    merges: Mapping[tuple[str, int], Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Line:
    """One chain of a branch, twice: its objects, and every write in it as a step of its own."""

    commits: list[ChainCommit]
    steps: list[ChainCommit]
    ends: Mapping[int, int]  # number of a commit -> step it ends with
    places: Mapping[str, int]  # name of an operation -> its step


def judged(
    repo: Repository, logged: Logged, visible: Mapping[str, Sequence[str]] | None = None
) -> list[Anomaly]:
    """Everything that is wrong. `visible` names, for a branch, the branches that were merged into it."""
    by_branch: dict[str, list[Operation]] = {}
    for operation in logged.operations:
        by_branch.setdefault(operation.branch, []).append(operation)
    found = check_isolation(logged.operations, level=Level.SERIALIZABLE, visible=visible)
    sources = {name: _objects(repo, name) for name in by_branch}
    for branch, operations in by_branch.items():
        line = _line(sources[branch], logged, _brought(sources, branch, logged))
        known = {id for commit in line.commits for id in commit.operations} - {
            operation.id for operation in operations
        }
        found += check_chain(line.commits)
        found += check_acknowledged(line.commits, operations, known=known)
        found += check_replay(line.steps, [_placed(one, line) for one in operations])
    return found


def _objects(repo: Repository, branch: str) -> list[ChainObject]:
    head = repo.head(branch).commit
    return repo.chains.range(head.chain, 0, head.number)


def _line(
    objects: Sequence[ChainObject], logged: Logged, brought: Mapping[int, tuple[Append, ...]]
) -> Line:
    appends = {op.id: tuple(op.appends) for op in logged.operations}
    commits = [
        ChainCommit(
            thing.number,
            layout.commit_id(thing.chain, thing.number),
            thing.parents[0] if thing.parents else None,
            _names(thing, logged.names),
            brought.get(thing.number, ()),
        )
        for thing in objects
        if isinstance(thing, Commit | Tombstone)
    ]
    steps: list[ChainCommit] = []
    for commit in commits:
        if commit.appends:
            steps.append(_step(steps, (), commit.appends))
        for name in commit.operations:
            steps.append(_step(steps, (name,), appends.get(name, ())))
    lengths = accumulate(len(c.operations) + bool(c.appends) for c in commits)
    ends = {commit.number: length for commit, length in zip(commits, lengths, strict=True)}
    places = {name: step.number for step in steps for name in step.operations}
    nothing = ChainCommit(0, "0", None)
    return Line(commits, [nothing, *steps], ends, places)


def _step(
    before: Sequence[ChainCommit], names: tuple[str, ...], appends: tuple[Append, ...]
) -> ChainCommit:
    number = len(before) + 1
    return ChainCommit(number, str(number), str(number - 1), names, appends)


def _names(thing: Commit | Tombstone, names: Mapping[str, str]) -> tuple[str, ...]:
    """The names clients gave to what an object holds; an epoch holds nothing, and maintenance repeats its messages."""
    shown = layout.parse_commit_id(thing.content)[:2] == (thing.chain, thing.number)
    if isinstance(thing, Tombstone):
        return tuple(names.get(operation, operation) for operation in thing.operations)
    if not shown:
        return tuple(member.operation_id for member in thing.members)
    return tuple(
        names.get(member.operation_id, member.message or member.operation_id)
        for member in thing.members
    )


def _placed(operation: Operation, line: Line) -> Operation:
    """The operation with its place among the steps: a write read what the step before it left."""
    if operation.status is not Status.OK:
        return operation
    if operation.id in line.places:
        place = line.places[operation.id]
        return replace(operation, snapshot=place - 1, commit=place)
    if operation.snapshot is not None and operation.only_reads:
        return replace(operation, snapshot=line.ends.get(operation.snapshot, -1))
    return replace(operation, snapshot=None)


def _brought(
    sources: Mapping[str, Sequence[ChainObject]], branch: str, logged: Logged
) -> dict[int, tuple[Append, ...]]:
    """Per commit of a branch: the appends that came from other chains, by its fork or by a merge."""
    chains = {things[0].chain: things for things in sources.values()}
    reached: dict[str, int] = {}
    found: dict[int, tuple[Append, ...]] = {}
    for thing in sources[branch]:
        for chain, number in _taken_over(thing, branch, logged):
            new = range(reached.get(chain, -1) + 1, number + 1)
            reached[chain] = max(number, reached.get(chain, -1))
            held = [chains[chain][n] for n in new] if chain in chains else []
            found[thing.number] = found.get(thing.number, ()) + _appends(held, logged)
    return found


def _taken_over(thing: ChainObject, branch: str, logged: Logged) -> list[tuple[str, int]]:
    """Other chains, and how far they came along with this object."""
    if not isinstance(thing, Commit | Tombstone):
        return []
    merges = (
        thing.merged if isinstance(thing, Commit) else logged.merges.get((branch, thing.number), {})
    )
    commits = [*(thing.parents if thing.number == 0 else ()), *merges.values()]
    return [layout.parse_commit_id(commit)[:2] for commit in commits]


def _appends(objects: Sequence[ChainObject], logged: Logged) -> tuple[Append, ...]:
    by_name = {op.id: op.appends for op in logged.operations}
    return tuple(
        append
        for thing in objects
        if isinstance(thing, Commit | Tombstone)
        for name in _names(thing, logged.names)
        for append in by_name.get(name, ())
    )
