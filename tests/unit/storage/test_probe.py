"""The probe refuses stores that cannot keep the promises commits rest on, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from omnigraph.errors import StoreUnsuitable
from omnigraph.storage.objects import ObjectInfo, ObjectStore, locate, open_objects
from omnigraph.storage.probe import probe
from tests.support.dict_objects import DictObjects, Shelf
from tests.support.faulty_s3 import FaultyS3


@pytest.fixture(params=["graph_root", "memory_root", "s3_root"])
def good(request: pytest.FixtureRequest) -> ObjectStore:
    return open_objects(locate(request.getfixturevalue(request.param)))


def test_good_stores_pass_and_are_left_as_they_were(good: ObjectStore) -> None:
    probe(good, rounds=3, racers=8)
    assert list(good.list("_tmp")) == []


class Overwriting(DictObjects):
    """Takes every create, as a store does that ignores the condition."""

    def put_new(self, key: str, data: bytes) -> None:
        self.put(key, data)


class Replacing(DictObjects):
    """Refuses all but the first create, and keeps the last."""

    def put_new(self, key: str, data: bytes) -> None:
        there = key in self.objects
        if there:
            self.objects[key] = data
        super().put_new(key, data)


class Forgetful(DictObjects):
    """Lists nothing of what was just written."""

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        return iter(())


@pytest.mark.parametrize(
    ("kind", "promise"),
    [
        (Overwriting, "create-only put"),
        (Replacing, "create-only put"),
        (Forgetful, "list-after-write"),
    ],
)
def test_bad_stores_are_refused_by_the_promise_they_break(
    kind: type[DictObjects], promise: str
) -> None:
    store = kind(Shelf())
    with pytest.raises(StoreUnsuitable) as caught:
        probe(store)
    assert caught.value.details["promise"] == promise
    assert not store.objects


@pytest.mark.parametrize("write", [1, 2])
@pytest.mark.parametrize("cut", [False, True])
def test_a_lost_answer_is_not_held_against_the_store(
    faulty_s3: FaultyS3, write: int, cut: bool
) -> None:
    store = open_objects(locate(faulty_s3.address.uri("root")))
    faulty_s3.lose_acknowledgement(write, cut=cut)
    probe(store)
    assert faulty_s3.objects() == {}
