"""Objects in a dictionary, with a hook before and after every request: what simulations and fault tests run on."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from omnigraph.errors import ObjectExists, ObjectNotFound
from omnigraph.storage.objects import ObjectInfo, number_of

Hook = Callable[[str, str], None]  # (verb, key); may raise, or give the turn to somebody else
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def nothing(verb: str, key: str) -> None:
    """No disturbance."""


class Shelf(dict[str, Any]):
    """What all processes of one simulated world share."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = itertools.count(2)


class DictObjects:
    """An `ObjectStore`. `before` runs ahead of a request, `after` when a write was applied but not yet answered."""

    def __init__(self, objects: Shelf, before: Hook = nothing, after: Hook = nothing) -> None:
        self.objects = objects
        self.before = before
        self.after = after

    @property
    def uri(self) -> str:
        return "memory://simulated"

    def get(self, key: str) -> bytes:
        self.before("get", key)
        if key not in self.objects:
            raise ObjectNotFound(f"there is no object {key}")
        found: bytes = self.objects[key]
        return found

    def put_new(self, key: str, data: bytes) -> None:
        self.before("put_new", key)
        if key in self.objects:
            raise ObjectExists(f"the object {key} exists already")
        self.objects[key] = data
        self.after("put_new", key)

    def put(self, key: str, data: bytes) -> None:
        self.before("put", key)
        self.objects[key] = data
        self.after("put", key)

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.before("delete", key)
            self.objects.pop(key, None)
            self.after("delete", key)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        self.before("list", prefix)
        for key, data in sorted(self.objects.items()):
            if key.startswith(prefix.rstrip("/") + "/"):
                yield ObjectInfo(key, len(data) if isinstance(data, bytes) else 1, EPOCH)

    def folders(self, prefix: str) -> tuple[str, ...]:
        self.before("list", prefix)
        start = prefix.rstrip("/") + "/"
        inside = (key.removeprefix(start) for key in self.objects if key.startswith(start))
        return tuple(sorted({rest.split("/", 1)[0] for rest in inside if "/" in rest}))

    def newest(self, folder: str, at_least: int = -1) -> int | None:
        self.before("list", folder)
        numbers = [number_of(k) for k in self.objects if k.rsplit("/", 1)[0] == folder]
        return max(numbers, default=at_least if at_least >= 0 else None)
