"""Changes and their tests, each in a process forked from one that has collected all tests and run none.

The change is made to the functions that exist already, by giving them the code of the changed module. Starting over
for every change would cost seconds each; this costs what the tests cost. A change outside functions (a default value,
the body of a class) cannot be made this way and is left out of the sample.
"""

from __future__ import annotations

import gc
import mmap
import os
import resource
import signal
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import CodeType, FunctionType

import pytest
from _pytest.runner import runtestprotocol

from tests.mutation.mutants import Mutant

Timed = tuple[str, float]  # a test, and the seconds it takes
CPU_SECONDS_MIN = 10.0  # before a test is said to hang, and the multiple of what it takes
CPU_SECONDS_FACTOR = 5.0
WALL_SECONDS_MIN = 40.0  # the machine may be busy
WALL_SECONDS_FACTOR = 20.0


class Verdict(StrEnum):
    KILLED = "killed"
    TIMED_OUT = "timed out"  # noticed too: it never ends
    SURVIVED = "survived"
    UNREACHED = "no test runs it"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the tests say about a change, and the one that noticed it."""

    verdict: Verdict
    by: str | None = None


Judge = Callable[[Mutant, Sequence[Timed]], Judgement]


class Court:
    """A pytest plugin: once all tests are collected, `work` is given the judge instead of their being run."""

    def __init__(self, work: Callable[[Judge], None]) -> None:
        self._work = work
        self._items: dict[str, pytest.Item] = {}
        self._functions: dict[str, list[FunctionType]] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = {item.nodeid: item for item in session.items}
        self._functions = _by_file()
        gc.collect()
        gc.freeze()  # what is shared with the children stays shared
        self._work(self.judge)
        return True

    def judge(self, mutant: Mutant, tests: Sequence[Timed]) -> Judgement:
        """Runs the tests one after the other, up to the first that notices the change."""
        chosen = [(self._items[test], seconds) for test, seconds in tests if test in self._items]
        if not chosen:
            return Judgement(Verdict.UNREACHED)
        current = Current()
        child = os.fork()
        if child == 0:
            _try(mutant, self._functions[str(mutant.path)], chosen, current)
        _, status = os.waitpid(child, 0)
        _end_group(child)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
            return Judgement(Verdict.SURVIVED)
        verdict = Verdict.TIMED_OUT if os.WIFSIGNALED(status) else Verdict.KILLED
        return Judgement(verdict, chosen[current.number][0].nodeid)


class Current:
    """The number of the test that runs, in memory parent and child share."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 4)

    @property
    def number(self) -> int:
        return int(struct.unpack("i", self._memory[:4])[0])

    @number.setter
    def number(self, number: int) -> None:
        self._memory[:4] = struct.pack("i", number)


def _end_group(child: int) -> None:
    """What the tests of a change have started ends with them."""
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        return


def _try(
    mutant: Mutant,
    functions: Sequence[FunctionType],
    tests: Sequence[tuple[pytest.Item, float]],
    current: Current,
) -> None:
    """Runs in the child; never returns."""
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        patch(mutant, functions)
        os._exit(1 if _fails(tests, current) else 0)
    finally:
        os._exit(1)


def _fails(tests: Sequence[tuple[pytest.Item, float]], current: Current) -> bool:
    following = [*(item for item, _ in tests[1:]), None]
    for number, ((item, seconds), after) in enumerate(zip(tests, following, strict=True)):
        current.number = number
        _limit(seconds)
        if any(report.failed for report in runtestprotocol(item, log=False, nextitem=after)):
            return True
    return False


def _limit(seconds: float) -> None:
    """The next test ends this process if it takes far longer than it should."""
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    most = used + CPU_SECONDS_MIN + CPU_SECONDS_FACTOR * seconds
    resource.setrlimit(resource.RLIMIT_CPU, (int(most), resource.RLIM_INFINITY))
    signal.setitimer(signal.ITIMER_REAL, WALL_SECONDS_MIN + WALL_SECONDS_FACTOR * seconds)


# --- functions that exist already ------------------------------------------------------------------------------------


def patch(mutant: Mutant, functions: Sequence[FunctionType]) -> None:
    """Give every function of the module its changed code."""
    changed = _codes(mutant.code())
    for function in functions:
        code = changed.get(_key(function.__code__))
        if code is not None:
            function.__code__ = code


def is_inside_a_function(mutant: Mutant) -> bool:
    """Whether the change is one that `patch` can make."""
    before, after = _codes(_unchanged(mutant)), _codes(mutant.code())
    return any(before[key] != after[key] for key in before)


def _unchanged(mutant: Mutant) -> CodeType:
    return compile(mutant.source, str(mutant.path), "exec")


def _by_file() -> dict[str, list[FunctionType]]:
    """All functions there are, behind whatever decorators, by the file they are from."""
    found: dict[str, list[FunctionType]] = defaultdict(list)
    for thing in gc.get_objects():
        if type(thing) is FunctionType:
            found[thing.__code__.co_filename].append(thing)
    return found


def _codes(module: CodeType) -> dict[tuple[str, int, int], CodeType]:
    return {_key(code): code for code in _inner(module)}


def _key(code: CodeType) -> tuple[str, int, int]:
    """A function by its name and place; two of one name in one line are told apart by their column."""
    column = next((at[2] or 0 for at in code.co_positions() if at[0] == code.co_firstlineno), 0)
    return code.co_qualname, code.co_firstlineno, column if code.co_name == "<lambda>" else 0


def _inner(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if _is_class(constant):
                yield from _inner(constant)
            else:
                yield constant  # what is inside a function comes with it


def _is_class(code: CodeType) -> bool:
    return "__module__" in code.co_names and "__qualname__" in code.co_names
