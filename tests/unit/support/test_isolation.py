"""The judge of isolation knows every anomaly by name, and lets good histories pass."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import count

import pytest

from tests.support.history import Append, Operation, Read, Status, Value
from tests.support.isolation import Level, check_isolation


def step(text: str) -> Append | Read:
    """`x+1` appends 1 to x; `x=1,2` reads that list, `x=` an empty one."""
    if "+" in text:
        key, value = text.split("+")
        return Append(key, int(value))
    key, values = text.split("=")
    return Read(key, tuple(int(value) for value in values.split(",") if value))


def op(
    text: str,
    *,
    by: str = "",
    status: Status = Status.OK,
    during: tuple[float, float] = (0, 9),
    on: str = "main",
) -> Operation:
    """An operation named and described by its steps; by default all are concurrent, each of its own client."""
    steps = tuple(step(part) for part in text.split())
    return Operation(text, by or text, status, *during, steps, on)


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    operations: list[Operation]
    expected: tuple[str, ...] = ()


GOOD = (
    Case("nothing", []),
    Case("reads of nothing", [op("x="), op("y=")]),
    Case("one after the other", [op("x= x+1"), op("x=1 x+2"), op("x=1,2")]),
    Case("blind appends", [op("x+1"), op("x+2"), op("x=2,1")]),
    Case("readers at different times", [op("x+1"), op("x+2"), op("x="), op("x=1"), op("x=1,2")]),
    Case("own appends seen", [op("x+1 x=1 x+2 x=1,2"), op("x=1,2")]),
    Case("unknown seen", [op("x+1", status=Status.INFO), op("x=1")]),
    Case("unknown not seen", [op("x+1", status=Status.INFO), op("x=", during=(20, 21))]),
    Case("failed not seen", [op("x+1", status=Status.FAIL), op("x=")]),
    Case("write skew is allowed", [op("x= y= x+1"), op("x= y= y+1"), op("x=1 y=1")]),
    Case("one client goes forward", [
        op("x+1"), op("x=", by="c"), op("x=1", by="c"),
    ]),
    Case("two branches grow apart", [
        op("x+1"), op("x=1"), op("x+2", on="b"), op("x=2", on="b"),
    ]),
)  # fmt: skip

BAD = (
    Case("dirty: a failed write", [op("x+1", status=Status.FAIL), op("x=1")], ("G1a",)),
    Case("dirty: half an operation", [op("x+1 x+2"), op("x=1"), op("x=1,2")], ("G1b", "G-single")),
    Case("never written", [op("x=1")], ("unwritten",)),
    Case("applied twice", [op("x+1"), op("x=1,1")], ("duplicate",)),
    Case("two orders", [op("x+1"), op("x+2"), op("x=1,2"), op("x=2,1")], ("incompatible order",)),
    Case("forgets its own", [op("x+1 x=")], ("internal",)),
    Case("sees its own twice", [op("x+1 x=1,1")], ("internal",)),
    Case("sees its own future", [op("x=1 x+1")], ("internal",)),
    Case("a read that changes", [op("x+1"), op("x= x=1")], ("internal",)),
    Case("lost update", [op("x= x+1"), op("x= x+2")], ("lost update",)),
    Case("lost update, visible", [
        op("x= x+1"), op("x= x+2"), op("x=1,2"),
    ], ("lost update", "G-single")),
    Case("writes interleaved", [
        op("x+1 y+1"), op("x+2 y+2"), op("x=1,2 y=2,1"),
    ], ("G0",)),
    Case("circular reads", [op("x+1 y=2"), op("y+2 x=1")], ("G1c",)),
    Case("half a snapshot", [op("x+1 y+1"), op("x=1 y="), op("y=1")], ("G-single",)),
    Case("long fork", [
        op("x+1"), op("y+1"), op("x=1 y="), op("x= y=1"),
    ], ("long fork",)),
    Case("stale after acknowledgement", [
        op("x+1", during=(0, 1)), op("x=", during=(2, 3)),
    ], ("stale read",)),
    Case("stale though others see it", [
        op("x+1", during=(0, 1)), op("x=1", during=(2, 3)), op("x=", during=(4, 5)),
    ], ("stale read",)),
    Case("a client goes back", [
        op("x+1"), op("x=1", by="c", during=(0, 1)), op("x=", by="c", during=(0, 2)),
    ], ("non-monotonic session", "session cycle")),
    Case("a client forgets its write", [
        op("x+1", by="c", during=(0, 1)), op("x=", by="c", during=(0, 2)), op("x=1"),
    ], ("non-monotonic session", "session cycle")),
    Case("another branch shows through", [
        op("x+1", on="b"), op("x=1", on="main"),
    ], ("foreign branch",)),
)  # fmt: skip


def name(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", GOOD + BAD, ids=name)
def test_hand_made_histories(case: Case) -> None:
    found = check_isolation(case.operations)
    assert tuple(anomaly.kind for anomaly in found) == case.expected, [*map(str, found)]


def test_serializability_forbids_write_skew() -> None:
    skew = [op("x= y= x+1"), op("x= y= y+1"), op("x=1 y=1")]
    (found,) = check_isolation(skew, level=Level.SERIALIZABLE)
    assert found.kind == "write skew"
    assert set(found.operations) == {skew[0].id, skew[1].id}


def test_weak_reads_may_be_stale() -> None:
    history = [op("x+1", during=(0, 1)), op("x=", during=(2, 3))]
    assert check_isolation(history, strong=False) == []


def test_a_merged_branch_may_show_through() -> None:
    history = [op("x+1", on="b"), op("x=1", on="main")]
    assert check_isolation(history, visible={"main": ["b"]}) == []


def serial_history(seed: int, operations: int, keys: int = 5) -> list[Operation]:
    """What a perfect database would show: operations one after the other, each reading and appending."""
    chance, values = random.Random(seed), count(1)
    lists: dict[str, tuple[Value, ...]] = defaultdict(tuple)
    names = [f"k{k}" for k in range(keys)]
    history = []
    for number in range(operations):
        steps: list[Append | Read] = []
        for key in chance.sample(names, 2):
            steps.append(Read(key, lists[key]))
            if chance.random() < 0.6:
                steps.append(Append(key, next(values)))
                lists[key] = (*lists[key], steps[-1].value)  # type: ignore[union-attr]
        process = f"p{number % 3}"
        history.append(
            Operation(f"t{number}", process, Status.OK, number, number + 0.5, tuple(steps))
        )
    return history


def damage(history: list[Operation], seed: int) -> list[Operation]:
    """Drop, repeat or swap one element of one read."""
    chance = random.Random(seed)
    candidates = [
        (n, m)
        for n, operation in enumerate(history)
        for m, each in enumerate(operation.steps)
        if isinstance(each, Read) and len(each.values) > 1
    ]
    n, m = chance.choice(candidates)
    read = history[n].steps[m]
    assert isinstance(read, Read)
    values, place = list(read.values), chance.randrange(len(read.values) - 1)
    match chance.choice(["drop", "repeat", "swap"]):
        case "drop":
            del values[chance.choice([place, -1])]
        case "repeat":
            values.insert(place, values[place])
        case _:
            values[place], values[place + 1] = values[place + 1], values[place]
    steps = list(history[n].steps)
    steps[m] = Read(read.key, tuple(values))
    return [*history[:n], replace(history[n], steps=tuple(steps)), *history[n + 1 :]]


@pytest.mark.parametrize("seed", range(5))
def test_good_generated_histories_pass(seed: int) -> None:
    assert check_isolation(serial_history(seed, 60), level=Level.SERIALIZABLE) == []


def test_every_damage_to_a_good_history_is_found() -> None:
    missed = [
        seed for seed in range(200) if not check_isolation(damage(serial_history(seed, 40), seed))
    ]
    assert missed == []


def test_long_histories_are_judged_in_time() -> None:
    history = serial_history(1, 20_000, keys=2_000)
    start = time.process_time()
    assert check_isolation(history) == []
    assert time.process_time() - start < 10, "a million operations must stay within minutes"
