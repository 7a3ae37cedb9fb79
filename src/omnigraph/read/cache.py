"""One memory budget for everything that can be read again: columns, topology, id and text indices.

All graphs of a process share it. Keys are physical identities (root, path, files or version, what), so a branch finds
what was read on another branch, and a key never needs to be invalidated: unused entries age out. A value larger than
the whole budget drops no others: the query that needs it holds it, charged to its own memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar, cast

from omnigraph.model.limits import memory_bytes
from omnigraph.read.budget import held_by_query, hold_for_query

T = TypeVar("T")


class Cache:
    """Values by key, the least recently used of them dropped when they no longer fit the budget."""

    def __init__(self, bytes_max: int | None = None) -> None:
        self._bytes_max = bytes_max  # None: the share of a cache in the memory of the process
        self._bytes = 0
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = Lock()

    @property
    def bytes_max(self) -> int:
        return memory_bytes().cache if self._bytes_max is None else self._bytes_max

    @property
    def bytes_used(self) -> int:
        return self._bytes

    def resize(self, bytes_max: int) -> None:
        """Change the budget; a smaller one takes effect immediately."""
        with self._lock:
            self._bytes_max = bytes_max
            self._evict()

    def get(self, key: Hashable) -> Any:
        """The value, or None."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: Hashable, value: Any, size: int) -> None:
        """Keep a value, unless it is larger than the whole budget."""
        with self._lock:
            self._drop(key)
            if self.admits(size):
                self._entries[key] = (value, size)
                self._bytes += size
                self._evict()

    def admits(self, size: int) -> bool:
        """Whether a value of this size is kept."""
        return size <= self.bytes_max

    def weigh(self, key: Hashable, size: int) -> None:
        """Update the size of a kept value: some grow while they are used."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry[1] == size:
                return
            if not self.admits(size):
                self._drop(key)
                return
            self._entries[key] = (entry[0], size)
            self._bytes += size - entry[1]
            self._evict()

    def get_or_build(self, key: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """The value, built if it is missing. Two threads may both build it; both results are right."""
        found = self.get(key)
        if found is None:
            found = held_by_query(key)
        if found is None:
            found = make()
            built = size(found)
            self.put(key, found, built)
            if not self.admits(built):
                hold_for_query(key, found, built)
        return cast(T, found)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._bytes = 0

    def _drop(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry[1]

    def _evict(self) -> None:
        while self._bytes > self.bytes_max and self._entries:
            _, (_, size) = self._entries.popitem(last=False)
            self._bytes -= size


SHARED = Cache()
