"""Every fault strikes where it was told to, and the clients omnigraph uses work against the stand-in."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import lance
import obstore
import pyarrow as pa
import pytest

from tests.support.faulty_s3 import FaultyS3
from tests.unit.support.clients import ask, object_store


def table(start: int, rows: int = 10) -> pa.Table:
    return pa.table({"id": pa.array(range(start, start + rows), pa.int64())})


def write(store: FaultyS3, mode: str = "create", start: int = 0) -> Any:
    return lance.write_dataset(
        table(start),
        store.address.uri("t.lance"),
        mode=mode,
        storage_options=store.address.storage_options(),
    )


def rows(store: FaultyS3) -> int:
    options = {**store.address.storage_options(), "client_max_retries": "0"}
    return int(lance.dataset(store.address.uri("t.lance"), storage_options=options).count_rows())


def append_detached(store: FaultyS3, dataset: Any, start: int) -> Any:
    fragments = lance.fragment.write_fragments(table(start), dataset)
    transaction = lance.Transaction(dataset.version, lance.LanceOperation.Append(fragments))
    return lance.LanceDataset.commit(dataset, transaction, detached=True)


def test_lance_creates_appends_and_commits_detached(faulty_s3: FaultyS3) -> None:
    dataset = write(faulty_s3)
    assert rows(faulty_s3) == 10
    write(faulty_s3, "append", 10)
    assert rows(faulty_s3) == 20
    detached = append_detached(faulty_s3, dataset, 100)
    assert detached.count_rows() == 20
    assert rows(faulty_s3) == 20, "a detached commit must not move the table's head"


def test_obstore_puts_lists_and_deletes(faulty_s3: FaultyS3) -> None:
    faulty_s3.page_keys_max(3)
    store = object_store(faulty_s3.address, "root")
    for number in range(10):
        obstore.put(store, f"k/{number}", bytes([number]))
    listed = [meta["path"] for page in obstore.list(store, "k/") for meta in page]
    assert listed == [f"k/{number}" for number in range(10)]
    after = [meta["path"] for page in obstore.list(store, "k/", offset="k/7") for meta in page]
    assert after == ["k/8", "k/9"]
    obstore.delete(store, listed[:9])
    assert list(faulty_s3.objects()) == ["root/k/9"]
    assert bytes(obstore.get_range(store, "k/9", start=0, end=1)) == b"\x09"


def test_obstore_uploads_in_parts(faulty_s3: FaultyS3) -> None:
    body = bytes(12 << 20)
    obstore.put(object_store(faulty_s3.address), "big", body, use_multipart=True)
    assert faulty_s3.objects()["big"] == body
    assert faulty_s3.durable_writes() == 5  # begin, three parts, complete


def test_one_of_eight_racing_creators_wins(faulty_s3: FaultyS3) -> None:
    store = object_store(faulty_s3.address)

    def create(key: str, racer: int) -> bool:
        try:
            obstore.put(store, key, bytes([racer]), mode="create")
        except obstore.exceptions.AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        for round_number in range(10):
            key = f"race/{round_number}"
            wins = list(pool.map(create, [key] * 8, range(8)))
            assert wins.count(True) == 1
            assert faulty_s3.objects()[key] == bytes([wins.index(True)])


@pytest.mark.parametrize("applied", [False, True])
def test_death_at_every_write_leaves_before_or_after(faulty_s3: FaultyS3, applied: bool) -> None:
    write(faulty_s3)
    before = faulty_s3.snapshot()
    faulty_s3.clear_log()
    write(faulty_s3, "append", 10)
    writes = faulty_s3.durable_writes()
    assert writes == 3  # data, transaction, manifest
    outcomes = []
    for k in range(1, writes + 1):
        faulty_s3.restore(before)
        faulty_s3.die_at(k, applied=applied, deny=True)
        with pytest.raises(OSError, match=r"(?i)denied|forbidden|permission"):
            write(faulty_s3, "append", 10)
        assert faulty_s3.died.is_set()
        faulty_s3.revive()
        outcomes.append(rows(faulty_s3))
    assert outcomes == ([10, 10, 20] if applied else [10, 10, 10])


def test_a_dead_store_cuts_connections_until_revived(faulty_s3: FaultyS3) -> None:
    store = object_store(faulty_s3.address, retries=0)
    faulty_s3.die_at(2, applied=False)
    obstore.put(store, "one", b"1")
    with pytest.raises(obstore.exceptions.BaseError):
        obstore.put(store, "two", b"2")
    with pytest.raises(obstore.exceptions.BaseError):
        obstore.get(store, "one")
    faulty_s3.revive()
    assert bytes(obstore.get(store, "one").bytes()) == b"1"
    assert list(faulty_s3.objects()) == ["one"]


def test_death_to_one_actor_spares_the_others(faulty_s3: FaultyS3) -> None:
    faulty_s3.die_at(1, applied=False, deny=True, actor="w1")
    obstore.put(object_store(faulty_s3.address_of("w2")), "two", b"2")
    with pytest.raises(obstore.exceptions.BaseError):
        obstore.put(object_store(faulty_s3.address_of("w1")), "one", b"1")
    obstore.put(object_store(faulty_s3.address_of("w2")), "three", b"3")
    assert list(faulty_s3.objects()) == ["two", "three"]
    assert [entry.actor for entry in faulty_s3.log()] == ["w2", "w1", "w2"]


@pytest.mark.parametrize("cut", [False, True])
def test_a_lost_acknowledgement_applies_the_write(faulty_s3: FaultyS3, cut: bool) -> None:
    faulty_s3.lose_acknowledgement(1, cut=cut)
    store = object_store(faulty_s3.address, retries=0)
    with pytest.raises(obstore.exceptions.BaseError):
        obstore.put(store, "k", b"v", mode="create")
    assert faulty_s3.objects() == {"k": b"v"}
    assert [(e.status, e.applied) for e in faulty_s3.log()] == [(None if cut else 500, True)]


def test_a_retry_after_a_lost_acknowledgement_meets_its_own_object(faulty_s3: FaultyS3) -> None:
    faulty_s3.lose_acknowledgement(1)
    store = object_store(faulty_s3.address)
    with pytest.raises(obstore.exceptions.AlreadyExistsError):
        obstore.put(store, "k", b"v", mode="create")
    assert [entry.status for entry in faulty_s3.log()] == [500, 412]


def test_slow_down_strikes_one_request_and_is_retried(faulty_s3: FaultyS3) -> None:
    faulty_s3.slow_down(2)
    store = object_store(faulty_s3.address)
    obstore.put(store, "a", b"1")
    obstore.put(store, "b", b"2")
    assert [(e.key, e.status) for e in faulty_s3.log()] == [("a", 200), ("b", 503), ("b", 200)]


def test_matching_faults_count_only_what_they_match(faulty_s3: FaultyS3) -> None:
    faulty_s3.lose_acknowledgement(2, matches=lambda request: request.key.startswith("m/"))
    statuses = [
        ask(faulty_s3.address, "PUT", key, b"x").status for key in ("/m/1", "/o/1", "/m/2", "/m/3")
    ]
    assert statuses == [200, 200, 500, 200]


def test_a_held_request_waits_while_others_pass(faulty_s3: FaultyS3) -> None:
    gate = faulty_s3.hold(matches=lambda request: request.key == "slow")
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(ask, faulty_s3.address, "PUT", "/slow", b"1")
        gate.wait_reached()
        assert ask(faulty_s3.address, "PUT", "/quick", b"2").status == 200
        assert list(faulty_s3.objects()) == ["quick"]
        gate.open()
        assert held.result(10).status == 200
    assert list(faulty_s3.objects()) == ["quick", "slow"]


def test_restoring_forgets_faults_log_and_requests_under_way(faulty_s3: FaultyS3) -> None:
    ask(faulty_s3.address, "PUT", "/kept", b"1")
    before = faulty_s3.snapshot()
    gate = faulty_s3.hold()
    faulty_s3.die_at(1, applied=True)
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(ask, faulty_s3.address, "PUT", "/late", b"2")
        gate.wait_reached()
        faulty_s3.restore(before)
        gate.open()
        with pytest.raises(ConnectionError):
            held.result(10)
    assert faulty_s3.objects() == {"kept": b"1"}
    assert faulty_s3.log() == []
    assert ask(faulty_s3.address, "PUT", "/new", b"3").status == 200


def test_latency_delays_every_request(faulty_s3: FaultyS3) -> None:
    faulty_s3.latency(0.05)
    start = time.perf_counter()
    ask(faulty_s3.address, "GET", "/none")
    assert time.perf_counter() - start >= 0.05
