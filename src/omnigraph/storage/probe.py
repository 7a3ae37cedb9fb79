"""Whether a store keeps the promises commits rest on: create-only puts, read-after-write, list-after-write."""

from __future__ import annotations

import contextlib
import secrets
from concurrent.futures import ThreadPoolExecutor

from omnigraph.errors import ObjectExists, StoreError, StoreOutcomeUnknown, StoreUnsuitable
from omnigraph.storage.objects import ObjectStore

PROBE_FOLDER = "_tmp/probe"


def probe(store: ObjectStore, *, rounds: int = 1, racers: int = 4) -> None:
    """Try the store; raise `StoreUnsuitable` naming the promise it breaks. Leaves nothing behind."""
    keys = [f"{PROBE_FOLDER}/{secrets.token_hex(12)}" for _ in range(rounds)]
    try:
        for key in keys:
            _create_only(store, key, racers)
            _visible(store, key)
    finally:
        with contextlib.suppress(StoreError):
            store.delete(keys)


def _create_only(store: ObjectStore, key: str, racers: int) -> None:
    def race(number: int) -> bool:
        try:
            store.put_new(key, f"racer {number}".encode())
        except (ObjectExists, StoreOutcomeUnknown):
            return False
        return True

    with ThreadPoolExecutor(racers) as pool:
        winners = [number for number, won in enumerate(pool.map(race, range(racers))) if won]
    if len(winners) != 1:
        raise StoreUnsuitable(
            f"the store {store.uri} let {len(winners)} of {racers} writers create one object; create-only puts are "
            "not enforced",
            details={"promise": "create-only put", "winners": len(winners)},
        )
    if store.get(key) != f"racer {winners[0]}".encode():
        raise StoreUnsuitable(
            f"the store {store.uri} replaced an object that was created first by somebody else",
            details={"promise": "create-only put"},
        )


def _visible(store: ObjectStore, key: str) -> None:
    if key not in {info.key for info in store.list(PROBE_FOLDER)}:
        raise StoreUnsuitable(
            f"the store {store.uri} does not list an object right after it was written",
            details={"promise": "list-after-write"},
        )
