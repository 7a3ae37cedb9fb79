"""The proxy counts what passed, delays what it is told to, and does not change what it carries."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import lance
import obstore
import pyarrow as pa
import pytest

from tests.support.faulty_s3 import FaultyS3
from tests.support.proxy import Proxy, Request, serial_depth
from tests.unit.support.clients import object_store


@pytest.fixture
def proxy(faulty_s3: FaultyS3) -> Iterator[Proxy]:
    """A proxy in front of the stand-in, whose own log says what really arrived."""
    with Proxy(faulty_s3.address.port) as running:
        yield running


def request(start: float, end: float) -> Request:
    return Request("GET", "k", "", {}, 200, start, end, 0, 0)


@pytest.mark.parametrize(
    ("intervals", "depth"),
    [
        ([], 0),
        ([(0, 1)], 1),
        ([(0, 1), (0, 1), (0, 1)], 1),
        ([(0, 1), (1, 2), (2, 3)], 3),
        ([(0, 5), (1, 2), (3, 4)], 2),
        ([(0, 1), (0, 1.1), (1.1, 2), (1.2, 2.1), (3, 4)], 3),
    ],
)
def test_serial_depth(intervals: list[tuple[float, float]], depth: int) -> None:
    assert serial_depth([request(start, end) for start, end in intervals]) == depth


def test_every_request_is_logged_with_its_kind(proxy: Proxy, faulty_s3: FaultyS3) -> None:
    store = object_store(proxy.address)

    def operation() -> int:
        obstore.put(store, "a b", b"12345", use_multipart=False)
        obstore.put(store, "new", b"1", mode="create", use_multipart=False)
        obstore.copy(store, "new", "copy")
        length = len(bytes(obstore.get(store, "a b").bytes()))
        obstore.head(store, "new")
        list(obstore.list(store))
        obstore.delete(store, "new")
        return length

    cost = proxy.measure(operation)
    assert cost.by_kind == {
        "COPY": 1, "DELETE-MANY": 1, "GET": 1, "HEAD": 1, "LIST": 1, "PUT": 1, "PUT-NEW": 1,
    }, cost.describe()  # fmt: skip
    assert (cost.requests, cost.hops, cost.result) == (7, 7, 5)
    assert [(r.method, r.key, r.status) for r in cost.log] == [
        (entry.method, entry.key, entry.status) for entry in faulty_s3.log()
    ]
    assert (cost.log[0].key, cost.log[0].bytes_sent) == ("a b", 5)
    assert cost.log[3].bytes_received == 5


def test_parallel_requests_are_one_hop(proxy: Proxy) -> None:
    store = object_store(proxy.address)

    def operation() -> None:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda n: obstore.put(store, f"{n}", b""), range(4)))
        obstore.get(store, "0").bytes()

    cost = proxy.measure(operation, latency=0.05)
    assert (cost.requests, cost.hops) == (5, 2), cost.describe()
    assert 0.1 <= cost.wall < 0.3


def test_hops_that_are_needed_are_found_and_others_are_not(proxy: Proxy) -> None:
    store = object_store(proxy.address)

    def in_a_row(count: int) -> None:
        for _ in range(count):
            obstore.put(store, "k", b"", use_multipart=False)

    assert proxy.shortest(lambda: in_a_row(3), 2, latencies=(0.01, 0.02)).hops == 3

    pauses = iter([1.0, 0.0])  # what a busy machine does to requests that could overlap

    def side_by_side() -> None:
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(in_a_row, 1)
            if next(pauses):
                first.result()
            pool.submit(in_a_row, 1).result()

    assert proxy.shortest(side_by_side, 1, latencies=(0.2, 0.4)).hops == 1


def test_concurrency_is_capped_and_the_rest_waits(faulty_s3: FaultyS3) -> None:
    with Proxy(faulty_s3.address.port, concurrency=2) as proxy, ThreadPoolExecutor(8) as pool:
        store = object_store(proxy.address)
        cost = proxy.measure(
            lambda: list(pool.map(lambda n: obstore.put(store, f"{n}", b""), range(8))),
            latency=0.02,
        )
        assert proxy.in_flight_max() == 2
    assert cost.requests == 8
    assert cost.wall >= 4 * 0.02


def test_reset_forgets(proxy: Proxy) -> None:
    obstore.put(object_store(proxy.address), "k", b"")
    assert proxy.hops() == 1
    proxy.reset()
    assert proxy.requests() == ()


def test_large_and_empty_bodies_pass_unchanged(proxy: Proxy, faulty_s3: FaultyS3) -> None:
    store = object_store(proxy.address)
    body = bytes(range(256)) * 4096 * 3
    for key, content in (("empty", b""), ("large", body)):
        obstore.put(store, key, content, use_multipart=False)
        assert faulty_s3.objects()[key] == content
        assert bytes(obstore.get(store, key).bytes()) == content


def test_a_cut_connection_behind_the_proxy_is_cut_before_it(
    proxy: Proxy, faulty_s3: FaultyS3
) -> None:
    faulty_s3.lose_acknowledgement(1, cut=True)
    with pytest.raises(obstore.exceptions.BaseError):
        obstore.put(object_store(proxy.address, retries=0), "k", b"v", mode="create")
    assert faulty_s3.objects() == {"k": b"v"}


@pytest.mark.s3
def test_lance_through_the_proxy_to_the_real_server(proxied_s3: Proxy, prefix: str) -> None:
    options = proxied_s3.address.storage_options()
    address = proxied_s3.address.uri(prefix)
    cost = proxied_s3.measure(
        lambda: lance.write_dataset(pa.table({"id": [1]}), address, storage_options=options)
    )
    assert cost.by_kind["PUT-NEW"] == 1, cost.describe()
    assert {r.status for r in cost.log if r.method == "PUT"} == {200}
    opened = proxied_s3.measure(lambda: lance.dataset(address, storage_options=options))
    assert opened.requests == 2, opened.describe()
