"""Whether a store gives the guarantees commits depend on: create-only puts, read-after-write, list-after-write."""

from __future__ import annotations

import contextlib
import secrets
from concurrent.futures import ThreadPoolExecutor

from omnigraph.errors import ObjectExists, StoreError, StoreOutcomeUnknown, StoreUnsuitable
from omnigraph.storage.objects import ObjectStore

PROBE_FOLDER = "_tmp/probe"


def probe(store: ObjectStore, *, rounds: int = 1, racers: int = 4) -> None:
    """Test the store; raises `StoreUnsuitable` naming the guarantee it lacks. Leaves nothing behind."""
    keys = [f"{PROBE_FOLDER}/{secrets.token_hex(12)}" for _ in range(rounds)]
    try:
        for key in keys:
            _create_only(store, key, racers)
            _visible(store, key)
    finally:
        with contextlib.suppress(StoreError):
            store.delete(keys)


def _create_only(store: ObjectStore, key: str, racers: int) -> None:
    """Several writers create one object concurrently. One without a response may have won; the object says who did."""

    def race(number: int) -> bool | None:
        try:
            store.put_new(key, _content(number))
        except ObjectExists:
            return False
        except StoreOutcomeUnknown:
            return None
        return True

    with ThreadPoolExecutor(racers) as pool:
        results = list(pool.map(race, range(racers)))
    winners = results.count(True)
    if winners > 1 or not any(result is not False for result in results):
        raise StoreUnsuitable(
            f"the store {store.uri} let {winners} of {racers} writers create one object; create-only puts are "
            "not enforced",
            details={"promise": "create-only put", "winners": winners},
        )
    possible = [number for number, won in enumerate(results) if won is (True if winners else None)]
    if store.get(key) not in map(_content, possible):
        raise StoreUnsuitable(
            f"the store {store.uri} replaced an object that another writer had created",
            details={"promise": "create-only put"},
        )


def _content(racer: int) -> bytes:
    return f"racer {racer}".encode()


def _visible(store: ObjectStore, key: str) -> None:
    if key not in {info.key for info in store.list(PROBE_FOLDER)}:
        raise StoreUnsuitable(
            f"the store {store.uri} does not list an object right after it was written",
            details={"promise": "list-after-write"},
        )
