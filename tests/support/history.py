"""Judge what clients saw against what a branch became.

`check_chain` looks at the commits alone: one line, no gaps, no operation twice. `check_acknowledged` compares them with
what clients were told. `check_replay` walks the chain and requires every read to equal the state at its commit. The
checks that need only the clients' side (dirty reads, lost updates, cycles) are in `isolation`.

Each returns the anomalies it found, none for a good history. Operations append unique values to lists, because a list
tells the order in which it grew. Times are those of one clock; only "ended before the other began" is used.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from math import inf
from typing import Any

Value = int | str


class Status(StrEnum):
    """What the client was told: it happened, it did not, or nothing."""

    OK = "ok"
    FAIL = "fail"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Append:
    key: str
    value: Value


@dataclass(frozen=True, slots=True)
class Read:
    key: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of one client. `snapshot` is the commit its reads came from, `commit` the one it became."""

    id: str
    process: str
    status: Status
    invoked: float = -inf
    completed: float = inf
    steps: tuple[Append | Read, ...] = ()
    branch: str = "main"
    snapshot: int | None = None
    commit: int | None = None

    @property
    def appends(self) -> list[Append]:
        return [step for step in self.steps if isinstance(step, Append)]

    @property
    def only_reads(self) -> bool:
        return bool(self.steps) and not self.appends


@dataclass(frozen=True, slots=True)
class ChainCommit:
    """One commit of a chain and the operations it holds, in order (several after a group commit)."""

    number: int
    id: str
    parent: str | None
    operations: tuple[str, ...] = ()
    appends: tuple[Append, ...] = ()


@dataclass(frozen=True, slots=True)
class Anomaly:
    """Something that must not be, and the operations that show it."""

    kind: str
    message: str
    operations: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


# --- from the logs of clients


def read_operations(records: Iterable[Mapping[str, Any]]) -> list[Operation]:
    """Operations from log records: one `invoke`, then at most one `ok`, `fail` or `info`, by the same id.

    Steps are written as `["append", key, value]` and `["read", key, values]`. An operation that never ended, because
    its process was killed, is `info`: it may have happened.
    """
    invoked: dict[str, Mapping[str, Any]] = {}
    ended: dict[str, Mapping[str, Any]] = {}
    for record in records:
        (invoked if record["type"] == "invoke" else ended)[record["id"]] = record
    return [_operation(record, ended.get(id, {})) for id, record in invoked.items()]


def _operation(invoke: Mapping[str, Any], end: Mapping[str, Any]) -> Operation:
    status = Status(end.get("type", "info"))
    return Operation(
        id=invoke["id"],
        process=invoke["process"],
        status=status,
        invoked=invoke["time"],
        completed=end["time"] if status is not Status.INFO else inf,
        steps=tuple(_step(*step) for step in end.get("steps", invoke.get("steps", ()))),
        branch=invoke.get("branch", "main"),
        snapshot=end.get("snapshot"),
        commit=end.get("commit"),
    )


def _step(kind: str, key: str, argument: Any) -> Append | Read:
    return Append(key, argument) if kind == "append" else Read(key, tuple(argument))


# --- the chain and the acknowledgements


def check_chain(commits: Sequence[ChainCommit]) -> list[Anomaly]:
    """One linear chain without gaps that names every operation once."""
    return [*_check_links(commits), *_check_unique(commits)]


def _check_links(commits: Sequence[ChainCommit]) -> Iterator[Anomaly]:
    ordered = sorted(commits, key=lambda commit: commit.number)
    for before, after in pairwise(ordered):
        if after.number == before.number:
            yield Anomaly("fork", f"two commits have number {after.number}")
        elif after.number != before.number + 1:
            yield Anomaly("gap", f"commit {before.number} is followed by {after.number}")
        elif after.parent != before.id:
            yield Anomaly("broken parent", f"commit {after.number} names {after.parent} as parent")


def _check_unique(commits: Sequence[ChainCommit]) -> Iterator[Anomaly]:
    for id, times in Counter(commit.id for commit in commits).items():
        if times > 1:
            yield Anomaly("duplicate", f"commit id {id} occurs {times} times")
    for id, times in Counter(id for commit in commits for id in commit.operations).items():
        if times > 1:
            yield Anomaly("duplicate", f"operation {id} was applied {times} times", (id,))


def check_acknowledged(
    commits: Sequence[ChainCommit], operations: Sequence[Operation], *, known: Iterable[str] = ()
) -> list[Anomaly]:
    """What was acknowledged is there, what failed is not, and later operations come later.

    `known` are operations of the chain that no client logged, such as those that prepared the graph.
    """
    place = {id: commit.number for commit in commits for id in commit.operations}
    writes = [operation for operation in operations if not operation.only_reads]
    anomalies = [found for write in writes for found in _check_presence(write, place)]
    strangers = place.keys() - {write.id for write in writes} - set(known)
    anomalies += [
        Anomaly("unknown operation", f"{id} is in commit {place[id]}", (id,))
        for id in sorted(strangers)
    ]
    return [*anomalies, *_check_real_time(commits, writes)]


def _check_presence(write: Operation, place: Mapping[str, int]) -> Iterator[Anomaly]:
    found = place.get(write.id)
    if write.status is Status.OK and found is None:
        yield Anomaly("lost", f"{write.id} was acknowledged and is in no commit", (write.id,))
    if write.status is Status.FAIL and found is not None:
        yield Anomaly("undead", f"{write.id} failed and is in commit {found}", (write.id,))
    if found is not None and write.commit not in (None, found):
        text = f"{write.id} was acknowledged as commit {write.commit} and is in {found}"
        yield Anomaly("misplaced", text, (write.id,))


def _check_real_time(
    commits: Sequence[ChainCommit], writes: Sequence[Operation]
) -> Iterator[Anomaly]:
    """An operation that began after another had ended comes after it in the chain."""
    ordered = sorted(commits, key=lambda commit: commit.number)
    names = [id for commit in ordered for id in commit.operations]
    position = {id: index for index, id in enumerate(names)}
    placed = [write for write in writes if write.id in position]
    ended = [w for w in sorted(placed, key=lambda w: w.completed) if w.status is Status.OK]
    latest, next_ended = -1, 0
    for write in sorted(placed, key=lambda w: w.invoked):
        while next_ended < len(ended) and ended[next_ended].completed < write.invoked:
            latest = max(latest, position[ended[next_ended].id])
            next_ended += 1
        if position[write.id] < latest:
            text = f"{write.id} began after {names[latest]} had ended, but comes before it"
            yield Anomaly("out of order", text, (write.id, names[latest]))


# --- replay of the chain


@dataclass(slots=True)
class Replay:
    """Every list at every commit. Lists only grow, so the whole list and its length at each commit are enough."""

    first: int
    last: int
    values: dict[str, list[Value]]
    growth: dict[str, list[tuple[int, int]]]

    def at(self, key: str, commit: int) -> tuple[Value, ...]:
        steps = self.growth.get(key, [])
        index = bisect_right(steps, commit, key=lambda step: step[0])
        length = steps[index - 1][1] if index else 0
        return tuple(self.values[key][:length]) if length else ()


def replay(commits: Sequence[ChainCommit]) -> Replay:
    ordered = sorted(commits, key=lambda commit: commit.number)
    values: dict[str, list[Value]] = defaultdict(list)
    growth: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for commit in ordered:
        for append in commit.appends:
            values[append.key].append(append.value)
            growth[append.key].append((commit.number, len(values[append.key])))
    numbers = [commit.number for commit in ordered] or [0]
    return Replay(numbers[0], numbers[-1], values, growth)


def check_replay(commits: Sequence[ChainCommit], operations: Sequence[Operation]) -> list[Anomaly]:
    """Every read equals the state at the commit it reports, and no snapshot is older than it may be."""
    state = replay(commits)
    pinned = [op for op in operations if op.status is Status.OK and op.snapshot is not None]
    return [
        *(found for op in pinned for found in _check_reads(op, state)),
        *_check_snapshots_recent(pinned),
        *_check_sessions(pinned),
    ]


def _check_reads(op: Operation, state: Replay) -> Iterator[Anomaly]:
    assert op.snapshot is not None
    if not state.first <= op.snapshot <= state.last:
        yield Anomaly(
            "wrong read", f"{op.id} read commit {op.snapshot}, which is not there", (op.id,)
        )
        return
    if op.commit is not None and op.appends and op.commit <= op.snapshot:
        yield Anomaly("wrong read", f"{op.id} read its own future", (op.id,))
    own: dict[str, tuple[Value, ...]] = {}
    for step in op.steps:
        match step:
            case Append(key, value):
                own[key] = (*own.get(key, ()), value)
            case Read(key, values):
                expected = state.at(key, op.snapshot) + own.get(key, ())
                if values != expected:
                    text = f"{op.id} read {values} from {key} at {op.snapshot}, not {expected}"
                    yield Anomaly("wrong read", text, (op.id,))


def _check_snapshots_recent(pinned: Sequence[Operation]) -> Iterator[Anomaly]:
    """A read that began after a commit was acknowledged, or after another read had ended, sees that much."""
    ended = sorted(pinned, key=lambda op: op.completed)
    newest, next_ended = -1, 0
    for op in sorted(pinned, key=lambda op: op.invoked):
        while next_ended < len(ended) and ended[next_ended].completed < op.invoked:
            newest = max(newest, _newest_seen(ended[next_ended]))
            next_ended += 1
        if _snapshot(op) < newest:
            text = f"{op.id} read commit {op.snapshot} when {newest} had been seen already"
            yield Anomaly("stale read", text, (op.id,))


def _check_sessions(pinned: Sequence[Operation]) -> Iterator[Anomaly]:
    """Within one client, snapshots never go back."""
    newest: dict[str, int] = {}
    for op in sorted(pinned, key=lambda op: op.completed):
        if _snapshot(op) < newest.get(op.process, -1):
            text = f"{op.process} went back to commit {op.snapshot} in {op.id}"
            yield Anomaly("non-monotonic session", text, (op.id,))
        newest[op.process] = max(newest.get(op.process, -1), _newest_seen(op))


def _snapshot(op: Operation) -> int:
    return -1 if op.snapshot is None else op.snapshot


def _newest_seen(op: Operation) -> int:
    return max(_snapshot(op), -1 if op.commit is None else op.commit)
