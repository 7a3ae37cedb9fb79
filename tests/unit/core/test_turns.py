"""Processes take turns on a branch: nobody publishes on and on while others lose."""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.core.clock import Clock
from omnigraph.core.group import (
    PAUSE_CYCLES,
    PAUSE_MICROS_MAX,
    TURN_COMMITS_MAX,
    TURN_COMMITS_MIN,
    Writers,
)
from omnigraph.core.plan import Request
from omnigraph.core.repository import Repository
from omnigraph.model.names import MAIN
from tests.support.worlds import add_person, another_process, memory_repository, people

WORK = 10_000  # microseconds that a look at the clock takes


class ManualClock:
    """A clock that moves when somebody looks at it or waits, and a list of the waits."""

    def __init__(self) -> None:
        self.time = 0
        self.waits: list[float] = []
        self.meanwhile: Callable[[], object] = lambda: None

    def now(self) -> int:
        self.time += WORK
        return self.time

    def pause(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += int(seconds * 1_000_000)
        self.meanwhile()


def process(clock: ManualClock) -> tuple[Repository, Writers]:
    repo = memory_repository(clock=Clock(now=clock.now, pause=clock.pause))
    return repo, Writers(repo)


def write(writers: Writers, count: int, name: str = "p") -> None:
    for number in range(count):
        writers.submit(Request(branch=MAIN, verb=add_person(f"{name}{number}")))


def test_a_turn_ends_with_a_pause_that_others_can_use() -> None:
    clock = ManualClock()
    _, writers = process(clock)
    write(writers, TURN_COMMITS_MIN)
    assert clock.waits == []
    write(writers, 1, "more")
    assert len(clock.waits) == 1
    assert WORK / 1e6 < clock.waits[0] <= PAUSE_MICROS_MAX / 1e6


def test_the_pause_is_measured_by_the_work() -> None:
    clock = ManualClock()
    repo, writers = process(clock)
    write(writers, TURN_COMMITS_MIN - 1)

    def slow(txn: object) -> object:
        clock.time += 90_000
        return add_person("slow")(txn)  # type: ignore[arg-type]

    writers.submit(Request(branch=MAIN, verb=slow))  # type: ignore[arg-type]
    write(writers, 1, "next")
    assert clock.waits[0] > (PAUSE_CYCLES - 1) * 90_000 / 1e6
    assert "next0" in people(repo)


def test_who_is_alone_pauses_less_and_less_often() -> None:
    clock = ManualClock()
    _, writers = process(clock)
    marks = []
    for number in range(600):
        before = len(clock.waits)
        write(writers, 1, f"n{number}-")
        if len(clock.waits) > before:
            marks.append(number)
    turns = [later - earlier for earlier, later in zip([0, *marks], marks, strict=False)]
    assert turns[:5] == [8, 16, 32, 64, 128]
    assert set(turns[4:]) == {TURN_COMMITS_MAX}


def test_a_commit_of_somebody_else_makes_turns_short_again() -> None:
    clock = ManualClock()
    repo, writers = process(clock)
    write(writers, 100)
    known = len(clock.waits)
    Writers(another_process(repo)).submit(Request(branch=MAIN, verb=add_person("else")))
    write(writers, TURN_COMMITS_MIN, "after")
    assert len(clock.waits) == known
    write(writers, 1, "more")
    assert len(clock.waits) == known + 1


def test_a_writer_who_comes_in_during_the_pause_needs_no_luck() -> None:
    """The other one publishes from within the pause; nobody loses a race for it."""
    clock = ManualClock()
    repo, writers = process(clock)
    other = Writers(another_process(repo))
    clock.meanwhile = lambda: other.submit(
        Request(branch=MAIN, verb=add_person(f"o{len(clock.waits)}"))
    )
    write(writers, 3 * TURN_COMMITS_MIN + 1)
    assert len(clock.waits) == 3, "every turn stays short while others come"
    assert {"o1", "o2", "o3"} <= set(people(repo))


def test_who_was_idle_long_enough_does_not_wait() -> None:
    clock = ManualClock()
    _, writers = process(clock)
    write(writers, TURN_COMMITS_MIN)
    clock.time += PAUSE_MICROS_MAX
    write(writers, 1, "later")
    assert clock.waits == []
