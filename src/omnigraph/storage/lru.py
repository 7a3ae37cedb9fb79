"""Bounded caches, shared by all handles of a process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

HANDLES_MAX = 512
RECENT_ROWS_BYTES_MAX = 64 * 2**20


class Lru(Generic[K, V]):
    """A thread-safe map that drops the least recently used entries once the weights exceed the limit."""

    def __init__(self, weight_max: int, weigh: Callable[[V], int] = lambda _value: 1) -> None:
        self._weight_max = weight_max
        self._weigh = weigh
        self._weight = 0
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._lock = Lock()

    def get(self, key: K) -> V | None:
        with self._lock:
            value = self._entries.get(key)
            if value is not None:
                self._entries.move_to_end(key)
            return value

    def put(self, key: K, value: V) -> None:
        with self._lock:
            self._remove(key)
            self._entries[key] = value
            self._weight += self._weigh(value)
            while self._weight > self._weight_max:
                self._remove(next(iter(self._entries)))

    def _remove(self, key: K) -> None:
        value = self._entries.pop(key, None)
        if value is not None:
            self._weight -= self._weigh(value)

    def __contains__(self, key: K) -> bool:
        with self._lock:
            return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)
