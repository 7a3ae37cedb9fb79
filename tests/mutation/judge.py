"""Changes and their tests, each in a process forked from one that has collected all tests and run none.

The change is made to the functions that exist already, by giving them the code of the changed module. Starting over
for every change would cost seconds each; this costs what the tests cost. A change outside functions (a default value,
the body of a class) cannot be made this way and is left out of the sample.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from types import CodeType, FunctionType

import pytest
from _pytest.runner import runtestprotocol

from tests.mutation.mutants import Mutant
from tests.support.waiting import wait_until

CPU_SECONDS_MAX = 120
WALL_SECONDS_MAX = 900


class Verdict(StrEnum):
    KILLED = "killed"
    TIMED_OUT = "timed out"  # noticed too: it never ends
    SURVIVED = "survived"
    UNREACHED = "no test runs it"


Judge = Callable[[Mutant, Sequence[str]], Verdict]


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

    def judge(self, mutant: Mutant, tests: Sequence[str]) -> Verdict:
        """What the tests say about a change."""
        items = [self._items[test] for test in tests if test in self._items]
        if not items:
            return Verdict.UNREACHED
        child = os.fork()
        if child == 0:
            _try(mutant, self._functions[str(mutant.path)], items)
        return _awaited(child)


def _awaited(child: int) -> Verdict:
    try:
        ended = wait_until(lambda: _ended(child), timeout=WALL_SECONDS_MAX)
    except TimeoutError:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return Verdict.TIMED_OUT
    status = ended[1] if ended else 0
    if os.WIFSIGNALED(status):
        return Verdict.TIMED_OUT
    return Verdict.SURVIVED if os.WEXITSTATUS(status) == 0 else Verdict.KILLED


def _ended(child: int) -> tuple[int, int] | None:
    found = os.waitpid(child, os.WNOHANG)
    return found if found[0] else None


def _try(mutant: Mutant, functions: Sequence[FunctionType], items: Sequence[pytest.Item]) -> None:
    """Runs in the child; never returns."""
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS_MAX, CPU_SECONDS_MAX + 5))
        patch(mutant, functions)
        os._exit(1 if _fails(items) else 0)
    finally:
        os._exit(1)


def _fails(items: Sequence[pytest.Item]) -> bool:
    for item, following in zip(items, [*items[1:], None], strict=True):
        reports = runtestprotocol(item, log=False, nextitem=following)
        if any(report.failed for report in reports):
            return True
    return False


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
    return compile(mutant.path.read_text(), str(mutant.path), "exec")


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
            yield constant
            if not _is_class(constant):
                continue  # what is inside a function comes with it
            yield from _inner(constant)


def _is_class(code: CodeType) -> bool:
    return "__module__" in code.co_names and "__qualname__" in code.co_names
