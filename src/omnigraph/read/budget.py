"""The memory and time a query may use, and how its operators stay within both.

Rows flow through a plan in blocks of bounded size, so what an operator makes of one block needs no account. What it
holds beyond a block (the build side of a join, groups, rows to be sorted, the result) is charged to the budget of the
query, and that to the memory of the process. Columns belong to the cache, which has its own part of that memory; one
that is too large for it is charged to the query. Time is checked between blocks and between batches read from storage.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any, TypeVar

import pyarrow as pa

from omnigraph.errors import Cancelled, DeadlineExceeded, Kind, OmnigraphError
from omnigraph.model.limits import memory_bytes

T = TypeVar("T")

BLOCK_ROWS_MAX = 1 << 19
BLOCK_ROWS_MIN = 4_096
BLOCK_PART = 16  # of a budget one block may take
CHAIN_OPERATORS = 3  # up to so many in a row may have blocks of this size
ROW_BYTES = 64  # of a block: some bindings, the indices they are taken by and a weight
FIRST_ROWS = 1_024  # of the first block where a limit may stop the work
GROWTH = 8  # from one such block to the next
RELEASED_BYTES_MIN = 64 << 20  # after a query that held more, free memory goes back to the system
NOTED_BYTES_MIN = 1 << 20  # less is not shown by `explain`
COLUMNS = "Columns"  # the operator that columns too large for the cache are charged to
TOPOLOGY = "Topology"  # and the one that makes the arrays of edges
HELP = {
    COLUMNS: "Raise OMNIGRAPH_MEMORY (a quarter of it keeps columns) or OMNIGRAPH_QUERY_MEMORY, or run the query with "
    "engine='spark'.",
    TOPOLOGY: "Run optimize, which stores the arrays of edges for all later queries, raise OMNIGRAPH_QUERY_MEMORY, or "
    "run the query with engine='spark'.",
}


class MemoryExceeded(OmnigraphError):
    """The query needs more memory than it may use.

    The details name the operator, the limit, and how many bytes would have been held.
    """

    code, kind = "memory_exceeded", Kind.LIMIT
    default_help = (
        "Filter earlier, add a limit or aggregate; raise OMNIGRAPH_QUERY_MEMORY, or run it with "
        "engine='spark'."
    )


class Memory:
    """What the queries of a process hold together."""

    def __init__(self, bytes_max: int | None = None) -> None:
        self._bytes_max = bytes_max
        self.bytes_used = 0
        self.spilled_bytes = 0  # written to disk so far
        self.has_unused = False  # a large query ended; what it held may still be in the pools
        self._lock = Lock()

    @property
    def bytes_max(self) -> int:
        return memory_bytes().queries if self._bytes_max is None else self._bytes_max

    def take(self, size: int) -> bool:
        """Take `size` bytes, or give them back if negative; False if they are not available."""
        with self._lock:
            if size > 0 and self.bytes_used + size > self.bytes_max:
                return False
            self.bytes_used += size
            return True

    def release_unused(self) -> None:
        """Return to the system what ended queries left: a failed one is kept alive by its error."""
        if self.has_unused:
            self.has_unused = False
            pa.default_memory_pool().release_unused()
            _trim_heap()


def _trim_heap() -> None:
    """Have the C library give back what numpy has freed; where it cannot, the system keeps it for this process."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


PROCESS = Memory()


class Budget:
    """The memory and the time of one query."""

    def __init__(
        self,
        bytes_max: int | None = None,
        *,
        deadline: float | None = None,
        seconds: float | None = None,
        cancelled: Callable[[], bool] | None = None,
        memory: Memory = PROCESS,
        block_rows: int | None = None,
        note: Callable[..., None] | None = None,
    ) -> None:
        self.bytes_max = memory_bytes().query if bytes_max is None else bytes_max
        self.deadline = deadline  # of time.monotonic()
        self.seconds = seconds
        self.bytes_used = 0
        self.bytes_peak = 0
        self.spilled_bytes = 0
        self._given_rows = block_rows
        self.plan_for(CHAIN_OPERATORS)
        self._cancelled = cancelled
        self._memory = memory
        self._closed = False
        self._released = min(RELEASED_BYTES_MIN, self.bytes_max // BLOCK_PART)
        self.note = note  # tells `explain` what an operator holds
        self.values: dict[Hashable, Any] = {}  # too large for the cache: held until the end
        memory.release_unused()

    def plan_for(self, operators: int) -> None:
        """So many operators in a row hold a block each: those of a long chain are smaller."""
        fitting = self.bytes_max // (BLOCK_PART * ROW_BYTES)
        fitting = fitting * CHAIN_OPERATORS // max(operators, CHAIN_OPERATORS)
        self.block_rows = self._given_rows or max(BLOCK_ROWS_MIN, min(BLOCK_ROWS_MAX, fitting))

    @property
    def block_bytes(self) -> int:
        return max(self.bytes_max // BLOCK_PART, 1 << 16)

    @property
    def may_end(self) -> bool:
        """Whether there is anything that may stop the query."""
        return self.deadline is not None or self._cancelled is not None

    def check(self) -> None:
        """Stop here when the time is over or the query was cancelled."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise DeadlineExceeded(
                f"the query did not finish within {self.seconds} s",
                help="Raise timeout=, or narrow the query.",
                details={"limit": "timeout", "limit_seconds": self.seconds},
            )
        if self._cancelled is not None and self._cancelled():
            raise Cancelled("the query was cancelled")

    def sizes(self, early: bool = False) -> Iterator[int]:
        """How many rows the next block may have; where a limit may stop the work, few at first."""
        size = min(FIRST_ROWS, self.block_rows) if early else self.block_rows
        while True:
            yield size
            size = min(size * GROWTH, self.block_rows)

    def charge(self, operator: str, size: int) -> None:
        """Take memory for what an operator holds, or give it back; an error if it is not available."""
        if self._closed:
            return
        if size > 0 and not self.fits(size):
            raise self.exceeded(operator, size)
        if not self._memory.take(size):
            raise MemoryExceeded(
                f"{operator} needs {size:,} bytes more, but all queries of this process together "
                f"may use {self._memory.bytes_max:,}",
                help="Try again when other queries have finished, or raise OMNIGRAPH_MEMORY.",
                details={
                    "operator": operator,
                    "limit": "memory_bytes_max",
                    "limit_value": self._memory.bytes_max,
                    "observed": self._memory.bytes_used + size,
                },
            )
        self.bytes_used += size
        if self.bytes_used > self.bytes_peak:
            if self.bytes_peak <= self._released <= self.bytes_used:
                pa.default_memory_pool().release_unused()  # left by earlier results
            self.bytes_peak = self.bytes_used

    def fits(self, size: int) -> bool:
        """Whether `size` more bytes fit."""
        return self.bytes_used + size <= self.bytes_max

    def exceeded(self, operator: str, size: int) -> MemoryExceeded:
        return MemoryExceeded(
            f"{operator} needs {self.bytes_used + size:,} bytes, more than the "
            f"{self.bytes_max:,} allowed for a query",
            help=HELP.get(operator),
            details={
                "operator": operator,
                "limit": "query_memory_bytes_max",
                "limit_value": self.bytes_max,
                "observed": self.bytes_used + size,
            },
        )

    def spilled(self, size: int) -> None:
        """Count what was written to disk."""
        self.spilled_bytes += size
        self._memory.spilled_bytes += size

    def close(self) -> None:
        """Give everything back; what ends later gives back nothing."""
        self.values.clear()
        self._memory.take(-self.bytes_used)
        self.bytes_used = 0
        self._closed = True
        if self.bytes_peak > self._released:
            pa.default_memory_pool().release_unused()
            self._memory.has_unused = True


class Held:
    """What one operator holds, charged as it grows."""

    def __init__(self, budget: Budget, operator: str) -> None:
        self._budget = budget
        self._operator = operator
        self.size = 0

    def set(self, size: int) -> None:
        """It holds `size` bytes now."""
        self._budget.charge(self._operator, size - self.size)
        self.size = size
        if size > NOTED_BYTES_MIN and self._budget.note is not None:
            self._budget.note(memory_bytes=size)

    def add(self, size: int) -> None:
        self.set(self.size + size)

    def fits(self, size: int) -> bool:
        """Whether it may hold `size` bytes."""
        return self._budget.fits(size - self.size)

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *failure: object) -> None:
        self.set(0)


class Read:
    """What is being read for the cache; the part for which the cache has no room is charged to the running query."""

    def __init__(self, cached_max: int) -> None:
        budget = _running.get()
        self._held = None if budget is None else Held(budget, COLUMNS)
        self._cached_max = cached_max
        self._size = 0

    def add(self, size: int) -> None:
        self._size += size
        if self._held is not None and self._size > self._cached_max:
            self._held.set(self._size)

    def __enter__(self) -> Read:
        return self

    def __exit__(self, *failure: object) -> None:
        if self._held is not None:
            self._held.set(0)


# --- of the query that is running --------------------------------------------------------------------------------

_running: ContextVar[Budget | None] = ContextVar("running", default=None)
_cancelled: ContextVar[Callable[[], bool] | None] = ContextVar("cancelled", default=None)


def budget_of(
    timeout: float | None = None,
    started: float | None = None,
    cancelled: Callable[[], bool] | None = None,
    **more: Any,
) -> Budget:
    """The budget of a run that began at `started` (of `time.monotonic`), else now; who waits for it may cancel it."""
    begun = time.monotonic() if started is None else started
    deadline = None if timeout is None else begun + timeout
    return Budget(deadline=deadline, seconds=timeout, cancelled=cancelled or who_cancels(), **more)


def running(budget: Budget) -> object:
    """Make `checked` obey a budget; `stopped` takes what this returns."""
    return _running.set(budget)


def stopped(token: object) -> None:
    _running.reset(token)  # type: ignore[arg-type]


@contextmanager
def charged(operator: str, size: int) -> Iterator[None]:
    """Charge memory to the query that runs in this thread, if one does, until it is no longer held."""
    budget = _running.get()
    if budget is None:
        yield
        return
    with Held(budget, operator) as held:
        held.set(size)
        yield


def spilled(size: int) -> None:
    """Count what was written to disk for the query that runs in this thread."""
    budget = _running.get()
    if budget is not None:
        budget.spilled(size)


def checked(items: Iterable[T]) -> Iterator[T]:
    """The same items; between two of them the query that runs in this thread may end."""
    budget = _running.get()
    for item in items:
        if budget is not None:
            budget.check()
        yield item


def held_by_query(key: Hashable) -> Any:
    """A value the query that runs in this thread holds for itself, or None."""
    budget = _running.get()
    return None if budget is None else budget.values.get(key)


def hold_for_query(key: Hashable, value: Any, size: int) -> None:
    """Charge a value that is not kept for others to the query that runs in this thread, which holds it to its end."""
    budget = _running.get()
    if budget is not None:
        budget.charge(COLUMNS, size)
        budget.values[key] = value


def cancelled_by(cancelled: Callable[[], bool] | None) -> None:
    """From now on queries of this context end when `cancelled` is true: a server knows when a client has gone."""
    _cancelled.set(cancelled)


def who_cancels() -> Callable[[], bool] | None:
    return _cancelled.get()
