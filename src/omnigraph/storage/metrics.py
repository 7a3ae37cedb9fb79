"""The cost of a logical operation: requests, serial steps, opened tables, bytes. Always on, and cheap.

    with operation("mutate") as cost:
        ...
    cost.ops, cost.stages, cost.opens

Code that talks to a store calls `request` (and `stage` for a step others had to wait for). Counts go to the operation
of the calling context and to every operation around it. `parallel` carries the context into threads and counts the
steps of the slowest branch, because that is how long the caller waited.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeVar

T = TypeVar("T")

THREADS_MAX = 16
INPUT_PART = 0.4  # the share of a load that is reading, roughly; the rest is checking and writing


@dataclass(slots=True)
class Cost:
    """What one operation has cost so far. Only this module writes it."""

    name: str
    ops: int = 0
    stages: int = 0
    opens: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    phase: str = ""  # the current phase, and its number of rows
    rows: int = 0
    part: float | None = None  # of the work, if its size is known
    input_bytes: int = 0  # of files to load, as stored, and how many of them were read
    input_read: int = 0
    around: Cost | None = None
    branch: bool = (
        False  # a parallel branch: its steps are merged by `parallel`, not added as they happen
    )


_current: ContextVar[Cost | None] = ContextVar("omnigraph_operation", default=None)
_lock = Lock()
_totals: dict[str, Cost] = {}


def current() -> Cost | None:
    """The operation of this context, if one was begun."""
    return _current.get()


def request(kind: str, n: int = 1, bytes: int = 0) -> None:
    """Count `n` requests of a kind (`get`, `put`, `list`, …); `put` kinds count their bytes as written."""
    if not n and not bytes:
        return
    with _lock:
        cost = _current.get()
        while cost is not None:
            cost.ops += n
            cost.kinds[kind] += n
            if kind.startswith("put"):
                cost.bytes_written += bytes
            else:
                cost.bytes_read += bytes
            cost = cost.around


def stage(n: int = 1) -> None:
    """Count `n` serial steps: round trips nothing else could run in parallel with."""
    with _lock:
        cost = _current.get()
        while cost is not None:
            cost.stages += n
            cost = None if cost.branch else cost.around


def opened(n: int = 1) -> None:
    """Count table versions opened from the store (not found in the cache)."""
    with _lock:
        cost = _current.get()
        while cost is not None:
            cost.opens += n
            cost = cost.around


def progress(phase: str, rows: int | None = None, part: float | None = None) -> None:
    """Report the current phase, for observers of the operation."""
    with _lock:
        cost = _current.get()
        while cost is not None:
            cost.phase = phase
            cost.rows = cost.rows if rows is None else rows
            cost.part = cost.part if part is None else part
            cost = cost.around


def expected(bytes: int) -> None:
    """Add to the input still to be read."""
    with _lock:
        cost = _current.get()
        while cost is not None:
            cost.input_bytes += bytes
            cost = cost.around


def input_bytes() -> int:
    """The announced input size of the current operation."""
    cost = _current.get()
    return 0 if cost is None else cost.input_bytes


def consumed(bytes: int = 0, rows: int = 0) -> None:
    """Count input that was read, and its rows."""
    with _lock:
        cost = _current.get()
        while cost is not None:
            cost.input_read += bytes
            cost.rows += rows
            if cost.input_bytes:
                cost.part = INPUT_PART * min(1.0, cost.input_read / cost.input_bytes)
            cost = cost.around


class operation:  # noqa: N801  used as a function; a generator would take three times as long
    """Count everything done inside, by any thread that carries this context."""

    __slots__ = ("_cost", "_token")

    def __init__(self, name: str) -> None:
        self._cost = Cost(name, around=_current.get())

    def __enter__(self) -> Cost:
        self._token = _current.set(self._cost)
        return self._cost

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)
        _add_to_totals(self._cost)


def totals() -> dict[str, Cost]:
    """What all finished operations of this process cost, by name; `kinds["operations"]` is their number."""
    with _lock:
        return dict(_totals)


def _add_to_totals(cost: Cost) -> None:
    with _lock:
        total = _totals.setdefault(cost.name, Cost(cost.name))
        total.ops += cost.ops
        total.stages += cost.stages
        total.opens += cost.opens
        total.bytes_read += cost.bytes_read
        total.bytes_written += cost.bytes_written
        for kind, n in cost.kinds.items():
            total.kinds[kind] += n
        total.kinds["operations"] += 1


def parallel(tasks: Sequence[Callable[[], T]], threads: int = THREADS_MAX) -> list[T]:
    """Run the tasks side by side under this context and return their results in order.

    All tasks are finished when this returns or raises; the first failure in task order is raised.
    """
    if len(tasks) <= 1 or threads <= 1:
        return [task() for task in tasks]
    branches = [Cost("", around=_current.get(), branch=True) for _ in tasks]
    workers = min(threads, len(tasks))
    with ThreadPoolExecutor(workers, thread_name_prefix="omnigraph") as pool:
        futures = [
            pool.submit(copy_context().run, _in_branch, branch, task)
            for branch, task in zip(branches, tasks, strict=True)
        ]
    rounds = -(-len(tasks) // workers)
    stage(rounds * max(branch.stages for branch in branches))
    return [future.result() for future in futures]


def _in_branch(branch: Cost, task: Callable[[], T]) -> T:
    _current.set(branch)
    return task()
