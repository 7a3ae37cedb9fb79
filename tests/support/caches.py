"""Forget what this process holds in memory, so that what follows is read from the store, as by another process."""

from __future__ import annotations

import lance

from omnigraph.storage.lance import handles, recent
from omnigraph.storage.lru import Lru


def forget_tables() -> None:
    """Drop opened versions, the metadata Lance keeps of them, and rows written lately."""
    for cache in (handles._opened, recent._rows, recent._deleted):
        assert isinstance(cache, Lru)
        with cache._lock:
            cache._entries.clear()
            cache._weight = 0
    handles._shared_session = lance.Session()
