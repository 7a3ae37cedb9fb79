"""The requests that matter for the protocol, named alike in the model and in the core, and which may follow which.

Reads whose number depends on caches have no name here: what is compared is the order of everything durable, and of the
reads that the protocol orders against it (records, names, listings of data).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from greenlet import getcurrent

from omnigraph.core import branches, first_commit, group
from omnigraph.core.records import Commit, DeletedRef, Seal, decode_chain_object, decode_ref
from omnigraph.maintenance import collection as gc
from tests.model.explorer import Explorer, Request
from tests.sim import actors
from tests.support.dict_objects import DictObjects
from tests.support.dict_tables import Disk

Pairs = set[tuple[str, str, str]]  # operation, step, step after it
START = "start"
OBJECTS = {"data": "stage", "first": "create first", "epoch": "create epoch", "seal": "create seal"}
OBJECTS_NAMED = {"branch": "name a branch", "tag": "name a tag", "deleted": "end a name"}


# --- of the model


def model_step(request: Request | None) -> str | None:
    """The name of a request of the model."""
    match request:
        case ("create", ("c", *_), thing):
            return "create commit" if thing.kind == "data" else f"create {thing.kind}"
        case ("create", ("ref", *_), state):
            return OBJECTS_NAMED[state.kind]
        case ("create", ("gc", *_), _):
            return "write the record"
        case ("newest", ("gc",)):
            return "read the record"
        case ("list", ("f",)):
            return "list data"
        case ("list", ("plan",)):
            return "list leases"
        case ("list", ("ref",)):
            return "list names"
        case ("folders", _):
            return "list chains"
        case ("put", ("c", *_), _):
            return "bury"
        case ("delete", keys) if keys and keys[0][0] == "f":
            return "remove data"
        case ("files", _):
            return "stage"
        case _:
            return None


def model_pairs(explorer: Explorer) -> Pairs:
    """Which named step may follow which, in every run the explorer has seen."""
    found: Pairs = set()
    for name, moves in explorer.moves().items():
        operation = explorer.processes[name].func.__name__  # type: ignore[attr-defined]
        for place in moves:
            step = START if place is None else model_step(explorer.request_at(place))
            if step is not None:
                found |= {
                    (operation, step, after) for after in _named_after(explorer, moves, place)
                }
    return found


def _named_after(
    explorer: Explorer, moves: dict[int | None, set[int]], place: int | None
) -> Iterator[str]:
    """The named steps that can come next, over any number of nameless ones."""
    waiting, seen = list(moves.get(place, ())), set[int]()
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        step = model_step(explorer.request_at(at))
        if step is not None:
            yield step
        else:
            waiting += moves.get(at, ())


# --- of the core


def core_step(verb: str, key: str, data: Any = None) -> str | None:
    """The name of a request of the core."""
    folder = key.split("/", 1)[0]
    match verb, folder:
        case "put_new", "__manifest":
            return _created(decode_chain_object(data, key))
        case "put_new", "_refs":
            state = decode_ref(data, key)
            if isinstance(state, DeletedRef):
                return "end a name"
            return "name a tag" if state.tag else "name a branch"
        case "put_new", "_gc":
            return "write the record"
        case "newest", "_gc":
            return "read the record"
        case "list", "nodes" | "edges" | "_tmp" | "_topology" | "_search":
            return "list data"
        case "list", "__recovery":
            return "list leases"
        case "list", "_refs":
            return "list names"
        case "folders", "__manifest":
            return "list chains"
        case "put", "__manifest":
            return "bury"
        case "delete", "nodes" | "edges" | "_tmp" | "_topology" | "_search":
            return "remove data"
        case "file", _:
            return "stage"
        case _:
            return None


def _created(thing: object) -> str:
    if isinstance(thing, Seal):
        return "create seal"
    assert isinstance(thing, Commit)
    if thing.number == 0:
        return "create first"
    return f"create {thing.kind}" if thing.kind in ("epoch", "room") else "create commit"


class Recorder:
    """Follows every operation of every simulated process, and keeps which named step followed which."""

    def __init__(self) -> None:
        self.pairs: Pairs = set()
        self._at: dict[Any, tuple[str, str]] = {}

    @contextmanager
    def operation(self, name: str) -> Iterator[None]:
        self._at[getcurrent()] = (name, START)
        try:
            yield
        finally:
            self._at.pop(getcurrent(), None)

    def saw(self, verb: str, key: str, data: Any = None) -> None:
        at = self._at.get(getcurrent())
        step = core_step(verb, key, data) if at is not None else None
        if at is None or step is None:
            return
        operation, before = at
        if step != before:
            self.pairs.add((operation, before, step))
        self._at[getcurrent()] = (operation, step)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Follow whatever runs inside."""
        with ExitStack() as stack:
            for owners, name in OPERATIONS:
                for owner in owners:
                    stack.enter_context(self._followed(owner, name))
            for verb in ("put_new", "put", "newest", "list", "folders"):
                stack.enter_context(self._listened(DictObjects, verb, verb))
            stack.enter_context(self._listened(Disk, "put", "file"))
            stack.enter_context(self._deletions())
            yield

    def _followed(self, owner: Any, name: str) -> Any:
        original = getattr(owner, name)

        def followed(*args: Any, **options: Any) -> Any:
            if options.get("dry_run"):
                return original(*args, **options)
            with self.operation(name):
                return original(*args, **options)

        return patch.object(owner, name, followed)

    def _listened(self, owner: type, name: str, verb: str) -> Any:
        original = getattr(owner, name)

        def listened(store: Any, key: str, *rest: Any) -> Any:
            self.saw(verb, key, *rest[:1] if verb in ("put_new", "put") else ())
            return original(store, key, *rest)

        return patch.object(owner, name, listened)

    def _deletions(self) -> Any:
        original = DictObjects.delete

        def deleted(store: DictObjects, keys: Iterable[str]) -> None:
            keys = list(keys)
            for key in keys[:1]:
                self.saw("delete", key)
            original(store, keys)

        return patch.object(DictObjects, "delete", deleted)


OPERATIONS: tuple[tuple[tuple[Any, ...], str], ...] = (
    ((group, actors), "publish"),
    ((branches, first_commit), "create_branch"),
    ((branches,), "delete_branch"),
    ((actors,), "create_tag"),
    ((actors, gc), "collect"),
)
