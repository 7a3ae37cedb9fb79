"""Objects in a dictionary, with a hook before and after every request: what simulations and fault tests run on."""

from __future__ import annotations

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
    """What all processes of one simulated world share: objects by key, and which keys each folder holds."""

    def __init__(self) -> None:
        super().__init__()
        self.last_number = 1
        self.keys_in: dict[str, set[str]] = {}

    def copy(self) -> Shelf:
        """Another world that begins like this one. What lies in it never changes, so it is shared."""
        twin = Shelf()
        dict.update(twin, self)
        twin.last_number = self.last_number
        twin.keys_in = {folder: set(keys) for folder, keys in self.keys_in.items()}
        return twin

    def fresh(self) -> int:
        """A number nobody has used."""
        self.last_number += 1
        return self.last_number

    def __setitem__(self, key: str, thing: Any) -> None:
        super().__setitem__(key, thing)
        self.keys_in.setdefault(key.rpartition("/")[0], set()).add(key)

    def update(self, *others: Any, **more: Any) -> None:
        for key, thing in dict(*others, **more).items():
            self[key] = thing

    def setdefault(self, key: str, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        super().clear()
        self.keys_in.clear()

    def pop(self, key: str, *default: Any) -> Any:
        self.keys_in.get(key.rpartition("/")[0], set()).discard(key)
        return super().pop(key, *default)

    def under(self, prefix: str) -> list[str]:
        """The keys below a folder, sorted."""
        inside = prefix + "/"
        found = [
            key
            for folder, keys in self.keys_in.items()
            if folder == prefix or folder.startswith(inside)
            for key in keys
        ]
        found.sort()
        return found


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
        yield from [self._info(key) for key in self.objects.under(prefix.rstrip("/"))]

    def _info(self, key: str) -> ObjectInfo:
        data = self.objects[key]
        return ObjectInfo(key, len(data) if isinstance(data, bytes) else 1, EPOCH)

    def folders(self, prefix: str) -> tuple[str, ...]:
        self.before("list", prefix)
        start = prefix.rstrip("/") + "/"
        inside = (key.removeprefix(start) for key in self.objects.under(prefix.rstrip("/")))
        return tuple(sorted({rest.split("/", 1)[0] for rest in inside if "/" in rest}))

    def newest(self, folder: str, at_least: int = -1) -> int | None:
        self.before("list", folder)
        keys = self.objects.keys_in.get(folder)
        if keys:
            return number_of(min(keys))  # the newest comes first
        return at_least if at_least >= 0 else None
