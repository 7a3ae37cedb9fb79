"""Thread pools for everything that computes or waits: one shared by requests, one that schedules actors in turn."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from queue import SimpleQueue
from typing import Any, TypeVar

from omnigraph.server.access import ANONYMOUS
from omnigraph.server.limits import Gate

T = TypeVar("T")
ACTORS_MAX = 10_000  # whose last turns are remembered
Work = Callable[[], Any]


class Threads:
    """Threads that event loops hand work to.

    A loop is woken once for everything finished in the meantime, and results need no lock: a pool of
    `concurrent.futures` took three times as much CPU for a hand-over.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._queue: SimpleQueue[tuple[_Inbox, asyncio.Future[Any], Work] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._inbox: _Inbox | None = None
        self._lock = threading.Lock()
        self.waiting = 0  # or running

    def submit(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Queue some work; to be called on an event loop, which is notified of the end."""
        loop = asyncio.get_running_loop()
        inbox = self._inbox
        if inbox is None or inbox.loop is not loop:
            inbox = self._inbox = _Inbox(loop, self)
        future: asyncio.Future[T] = loop.create_future()
        self.waiting += 1
        if self.waiting > len(self._threads) and len(self._threads) < self._most:
            self._more()
        self._queue.put((inbox, future, work))
        return future

    def shutdown(self) -> None:
        """Wait until nothing runs or waits any more."""
        with self._lock:
            for _ in self._threads:
                self._queue.put(None)
            for thread in self._threads:
                thread.join()
            self._threads.clear()

    def _more(self) -> None:
        with self._lock:
            name = f"{self._name}_{len(self._threads)}"
            thread = threading.Thread(target=self._working, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _working(self) -> None:
        while (task := self._queue.get()) is not None:
            inbox, future, work = task
            try:
                result, error = work(), None
            except BaseException as failed:
                result, error = None, failed
            inbox.put(future, result, error)
            del task, inbox, future, work, result, error  # nothing is kept while the thread is idle


class _Inbox:
    """Finished work for one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, threads: Threads) -> None:
        self.loop = loop
        self._threads = threads
        self._done: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._is_notified = False

    def put(self, future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
        self._done.append((future, result, error))
        if not self._is_notified:
            self._is_notified = True
            try:
                self.loop.call_soon_threadsafe(self._take)
            except RuntimeError:  # the loop has ended, and with it all that waited
                self._done.clear()

    def _take(self) -> None:
        self._is_notified = False  # before looking: later results notify again
        while self._done:
            future, result, error = self._done.popleft()
            self._threads.waiting -= 1
            if future.cancelled():
                continue
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)


class Turns:
    """A pool of threads that schedules actors fairly: of the waiting actors, the one served longest ago comes first."""

    def __init__(self, most: int, name: str, gate: Gate | None = None) -> None:
        self._pool = ThreadPoolExecutor(most, name)
        self._gate = gate  # shared with other processes
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[tuple[Future[Any], Callable[[], Any]]]] = {}
        self._served: dict[str, int] = {}
        self._clock = count(1)

    def submit(self, actor: str | None, work: Callable[[], T]) -> Future[T]:
        """Queue some work of an actor."""
        future: Future[T] = Future()
        with self._lock:
            self._waiting.setdefault(actor or ANONYMOUS, deque()).append((future, work))
        self._pool.submit(self._next)
        return future

    def shutdown(self) -> None:
        """Wait until nothing runs or waits any more."""
        if self._gate is not None:
            self._gate.open()
        self._pool.shutdown(wait=True)

    def _next(self) -> None:
        if self._gate is None:
            self._run_one()
            return
        self._gate.enter()
        try:
            self._run_one()
        finally:
            self._gate.leave()

    def _run_one(self) -> None:
        with self._lock:
            actor = min(self._waiting, key=lambda each: self._served.get(each, 0))
            queue = self._waiting[actor]
            future, work = queue.popleft()
            if not queue:
                del self._waiting[actor]
            if (
                len(self._served) > ACTORS_MAX
            ):  # a forgotten actor comes first, like one who waited long
                self._served = {
                    each: self._served[each] for each in self._waiting if each in self._served
                }
            self._served[actor] = next(self._clock)
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(work())
        except BaseException as error:  # for the caller
            future.set_exception(error)
