"""Threads that actors take turns with: however much one of them asks for, the next thread is for somebody else."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import Any

from omnigraph.server.access import ANONYMOUS


class Turns:
    """A pool of threads. Of those who wait, whoever was served longest ago comes first."""

    def __init__(self, workers: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(workers, name)
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[Callable[[], None]]] = {}
        self._served: dict[str, int] = {}
        self._clock = count(1)

    def of(self, actor: str | None) -> Executor:
        """The pool as one actor uses it."""
        return _Turn(self, actor or ANONYMOUS)

    def add(self, actor: str, work: Callable[[], None]) -> None:
        with self._lock:
            self._waiting.setdefault(actor, deque()).append(work)
        self._pool.submit(self._next)

    def shutdown(self) -> None:
        """Wait until nothing runs or waits any more."""
        self._pool.shutdown(wait=True)

    def _next(self) -> None:
        with self._lock:
            actor = min(self._waiting, key=lambda each: self._served.get(each, 0))
            queue = self._waiting[actor]
            work = queue.popleft()
            if not queue:
                del self._waiting[actor]
            self._served[actor] = next(self._clock)
        work()


class _Turn(Executor):
    """What one actor has of a pool."""

    def __init__(self, turns: Turns, actor: str) -> None:
        self._turns = turns
        self._actor = actor

    def submit(self, fn: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._turns.add(self._actor, partial(_settle, future, partial(fn, *args, **named)))
        return future


def _settle(future: Future[Any], work: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work())
    except BaseException as error:  # whoever waits for it is told
        future.set_exception(error)
