"""Stored objects: what they hold, and how waiting grows."""

from __future__ import annotations

import pytest

from omnigraph.core.clock import Clock
from omnigraph.core.records import (
    ChainObject,
    Commit,
    Member,
    Seal,
    Tombstone,
    decode_chain_object,
    encode,
    keys_of,
    operations_of,
)
from omnigraph.maintenance.collection import _is_needed

MEMBERS = (Member("load", "op1", idempotency_key="k1"), Member("load", "op2"))
COMMIT = Commit("g", "c", 1, "main", (), 5, "group", "5" * 64, 0, "c.1.1", {}, MEMBERS)
SEAL = Seal("c", 2, "op3")
TOMB = Tombstone("c", 1, "main", (), 5, "load", "c.1", ("op1", "op2"), ("k1",))


@pytest.mark.parametrize(
    ("thing", "operations", "keys"),
    [(COMMIT, {"op1", "op2"}, {"k1"}), (TOMB, {"op1", "op2"}, {"k1"}), (SEAL, {"op3"}, set())],
)
def test_an_object_tells_whose_it_is_and_is_stored_as_it_was(
    thing: ChainObject, operations: set[str], keys: set[str]
) -> None:
    assert operations_of(thing) == operations
    assert keys_of(thing) == keys
    assert decode_chain_object(encode(thing), "key") == thing


def test_waiting_doubles_up_to_its_bound() -> None:
    waited: list[float] = []
    world = Clock(pause=waited.append, chance=lambda: 0.5)
    for attempt in range(5):
        world.back_off(attempt, 1.0, 6.0)
    assert waited == [0.5, 1.0, 2.0, 3.0, 3.0]
    waited.clear()
    for attempt in (19, 20, 21, 5_000):
        world.back_off(attempt, 1.0, float("inf"))
    assert waited == [2.0**18, 2.0**19, 2.0**19, 2.0**19]


@pytest.mark.parametrize(
    ("key", "is_needed"),
    [
        ("nodes/n1-x/data/a.lance", True),
        ("nodes/n1-x/data/b.lance", False),
        ("nodes/n1-x/_indices/i1/deep/page.idx", True),
        ("nodes/n1-x/_indices/i2/page.idx", False),
        ("nodes/n1-x", False),
        ("nodes/n2-x/data/a.lance", False),
        ("nodes/n3-x/data/anything", True),
        ("edges/n1-x/data/a.lance", False),
        ("_topology/nodes_n1-x.arrow", True),
        ("_topology/nodes_n2-x.arrow", False),
        ("_search/nodes_n1-x/a.01.text", True),
        ("_search/nodes_n1-x/a.02.text", False),
        ("_search/nodes_n1-x/b.01.text", False),
        ("_search/nodes_n2-x/a.01.text", False),
        ("_search/nodes_n3-x/a.01.text", True),
        ("_tmp/n1-x/file", False),
    ],
)
def test_a_file_stays_while_something_refers_to_it(key: str, is_needed: bool) -> None:
    needed = {"nodes/n1-x": {"data/a.lance", "_indices/i1/", "01.text"}}
    assert _is_needed(key, needed, {"nodes/n3-x"}) == is_needed
