"""Reading chains: the numbered objects of a branch's history. Listings have the newest first; one request reads one."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

from omnigraph.core import layout
from omnigraph.core.records import FORMAT, ChainObject, Commit, Seal, Tombstone, decode_chain_object
from omnigraph.errors import Corrupt, FormatUnsupported, ObjectNotFound
from omnigraph.model.limits import Limits
from omnigraph.storage import metrics
from omnigraph.storage.objects import ObjectStore, numbered

END_ATTEMPTS_MAX = 16


class Chains:
    """All chains of one graph. Commits never change, so they are cached once read."""

    def __init__(self, objects: ObjectStore, graph_id: str, limits: Limits) -> None:
        self._objects = objects
        self._graph_id = graph_id
        self._limits = limits
        self._known: OrderedDict[tuple[str, int], Commit] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, chain: str, number: int, *, of_any_graph: bool = False) -> ChainObject | None:
        """The object with this number, or None if it does not exist yet."""
        with self._lock:
            known = self._known.get((chain, number))
        return known if known is not None else self.read(chain, number, of_any_graph=of_any_graph)

    def read(self, chain: str, number: int, *, of_any_graph: bool = False) -> ChainObject | None:
        """The same, from the store: a commit known here may have been replaced by a tombstone since."""
        key = numbered(layout.chain_folder(chain), number)
        try:
            data = self._objects.get(key)
        except ObjectNotFound:
            return None
        found = decode_chain_object(data, key)
        if (found.chain, found.number) != (chain, number):
            raise Corrupt(f"the object {key} says it is {found.chain}.{found.number}")
        if isinstance(found, Commit) and not of_any_graph:
            self._check(found, key)
            self.remember(found)
        return found

    def expect(self, chain: str, number: int) -> ChainObject:
        """The object with a number that must exist."""
        found = self.get(chain, number)
        if found is None:
            key = numbered(layout.chain_folder(chain), number)
            raise Corrupt(f"the commit object {key} is missing", details={"object": key})
        return found

    def newest(self, chain: str, at_least: int = -1) -> int | None:
        """The number of the last object of a chain."""
        return self._objects.newest(layout.chain_folder(chain), at_least)

    def end(self, chain: str) -> Commit | Seal | None:
        """The last object of a chain, from the store; None if the chain is empty.

        No chain ends in a tombstone: if the last object of a listing is one, the chain has grown meanwhile.
        """
        for _ in range(END_ATTEMPTS_MAX):
            found = self._last(chain)
            if not isinstance(found, Tombstone):
                return found
        raise Corrupt(f"the chain {chain} seems to end in a tombstone")

    def _last(self, chain: str) -> ChainObject | None:
        number = self.newest(chain)
        found = None if number is None else self.read(chain, number)
        if number is not None and found is None:
            raise Corrupt(f"the newest commit {chain}.{number} is missing")
        return found

    def after(self, chain: str, number: int) -> list[ChainObject]:
        """Everything after a number that is known not to be the last: the next is read while the end is looked for."""
        look: list[Callable[[], Any]] = [
            partial(self.expect, chain, number + 1),
            partial(self.newest, chain, number + 1),
        ]
        remote = self._objects.uri.startswith("s3://")
        following, last = metrics.parallel(look, self._limits.read_threads_max if remote else 1)
        return [following, *self.range(chain, number + 2, last)]

    def since(self, chain: str, number: int) -> list[ChainObject]:
        """Everything after a number, in order, read in parallel."""
        last = self.newest(chain, number)
        if last is None or last <= number:
            return []
        return self.range(chain, number + 1, last)

    def range(self, chain: str, first: int, last: int) -> list[ChainObject]:
        """The objects numbered first to last."""
        with self._lock:
            known = [self._known.get((chain, n)) for n in range(first, last + 1)]
        if None not in known:
            return list(filter(None, known))
        tasks = [lambda n=n: self.expect(chain, n) for n in range(first, last + 1)]
        return metrics.parallel(tasks, self._limits.read_threads_max)

    def remember(self, commit: Commit) -> None:
        """Cache a commit that was read or just written."""
        with self._lock:
            self._known[commit.chain, commit.number] = commit
            self._known.move_to_end((commit.chain, commit.number))
            while len(self._known) > self._limits.commits_cached_max:
                self._known.popitem(last=False)

    def forget(self, chain: str, number: int) -> None:
        """Drop a commit that turned out to be pruned."""
        with self._lock:
            self._known.pop((chain, number), None)

    def forget_all(self) -> None:
        """Drop every commit: some may have been pruned since."""
        with self._lock:
            self._known.clear()

    def _check(self, commit: Commit, key: str) -> None:
        if commit.graph_id != self._graph_id:
            raise Corrupt(f"the object {key} belongs to another graph ({commit.graph_id})")
        if commit.format != FORMAT:
            raise FormatUnsupported(
                f"commit {key} has storage format {commit.format}; this version reads {FORMAT}"
            )
