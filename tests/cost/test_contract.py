"""The cost contract, at the wire: requests and serial hops of every operation, whatever the history and the schema.

A real S3 server behind a proxy that counts, adds latency and lets eight requests pass at once. The limits are those
promised in docs/guarantees.md (G8). Every operation is measured at several depths of history and numbers of tables.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from omnigraph.storage import metrics
from tests.cost.workload import Workload
from tests.support import rings
from tests.support.proxy import Measurement, Proxy
from tests.support.s3server import S3Address

pytestmark = pytest.mark.xdist_group("cost")

SIZES = ((10, 5), (100, 5), (10, 200))  # commits, tables
NIGHTLY_SIZES = ((1000, 5), (100, 200), (1000, 200))
LATENCIES = (0.02, 0.06, 0.2, 0.6)  # seconds, the next where requests side by side did not overlap
CONCURRENCY = 8

Step = Callable[[Workload], Callable[[], None]]
Worlds = dict[tuple[int, int], Workload]


@dataclass(frozen=True, slots=True)
class Limit:
    """One row of the contract."""

    step: Step
    hops: int
    requests: int


CONTRACT: dict[str, Limit] = {
    "insert one edge, both endpoints checked": Limit(lambda w: w.insert_edge, 6, 9),
    "insert one node by key": Limit(lambda w: w.insert_node, 9, 12),
    "replace one node by key": Limit(lambda w: w.replace_node, 9, 12),
    "write of 1 table": Limit(lambda w: w.write_tables(1), 6, 3 * 1 + 6),
    "write of 2 tables": Limit(lambda w: w.write_tables(2), 6, 3 * 2 + 6),
    "write of 4 tables": Limit(lambda w: w.write_tables(4), 6, 3 * 4 + 6),
    "create a branch": Limit(lambda w: w.create_branch, 3, 4),
    "delete a branch": Limit(lambda w: w.delete_branch, 2, 3),
    "first write on a branch": Limit(lambda w: w.first_write_on_a_branch, 6, 9),
    "open a graph cold and read its head": Limit(lambda w: w.open_cold, 4, 5),
    "open a graph cold and read the last entry of its log": Limit(
        lambda w: w.last_entry_cold, 4, 5
    ),
    "read a head again": Limit(lambda w: w.probe, 1, 1),
}
NEEDS_BRANCHES = {"delete a branch", "first write on a branch"}


@pytest.fixture(scope="module")
def proxy(s3_server: S3Address) -> Iterator[Proxy]:
    with pytest.MonkeyPatch.context() as patch, Proxy(s3_server.port, concurrency=CONCURRENCY) as p:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        for name, value in p.address.environment().items():
            patch.setenv(name, value)
        yield p


@pytest.fixture(scope="module")
def worlds(proxy: Proxy) -> Worlds:
    sizes = SIZES + NIGHTLY_SIZES if rings.is_nightly() else SIZES
    return {
        (depth, tables): Workload.build(
            proxy.address.uri(f"cost-{os.getpid()}-{depth}-{tables}"), depth=depth, tables=tables
        )
        for depth, tables in sizes
    }


def measured(
    proxy: Proxy, operation: Callable[[], None], hops: int | None = None
) -> tuple[Measurement, metrics.Cost]:
    """What an operation costs when it is not the first of its kind, at the wire and by our own count."""
    own: list[metrics.Cost] = []

    def counted() -> None:
        with metrics.operation("measured") as cost:
            operation()
        own.append(cost)

    operation()
    wanted = sys.maxsize if hops is None else hops
    seen = proxy.shortest(counted, wanted, LATENCIES)
    return seen, own[-1]


def prepare(name: str, world: Workload, branches: int) -> None:
    if name in NEEDS_BRANCHES:
        for _ in range(branches):
            world.create_branch()


@pytest.mark.parametrize("name", CONTRACT)
def test_the_contract_holds_at_every_depth_and_width(
    name: str, proxy: Proxy, worlds: Worlds
) -> None:
    limit = CONTRACT[name]
    for (depth, tables), world in worlds.items():
        prepare(name, world, 1 + len(LATENCIES))
        seen, own = measured(proxy, limit.step(world), limit.hops)
        where = f"{name!r} at depth {depth} with {tables} tables:\n{seen.describe()}"
        assert seen.requests <= limit.requests, where
        assert seen.hops <= limit.hops, where
        assert own.ops == seen.requests, f"our own count is {own.ops}; {where}"


@pytest.mark.parametrize("name", CONTRACT)
def test_nothing_grows_with_history_or_tables(name: str, proxy: Proxy, worlds: Worlds) -> None:
    requests: dict[tuple[int, int], int] = {}
    for size, world in worlds.items():
        prepare(name, world, 2)
        requests[size] = measured(proxy, CONTRACT[name].step(world))[0].requests
    assert len(set(requests.values())) == 1, f"{name!r} costs requests by size: {requests}"


def test_a_repeated_read_asks_once_whether_anything_changed(proxy: Proxy, worlds: Worlds) -> None:
    for size, world in worlds.items():
        seen, _ = measured(proxy, world.read_nodes)
        probes = [request for request in seen.log if "__manifest" in request.key]
        tables = [request for request in seen.log if "_versions" in request.key]
        assert len(probes) == 1, f"at {size}: {seen.describe()}"
        assert not tables, f"a repeated read opened a table again at {size}: {seen.describe()}"


def test_no_more_than_eight_requests_are_under_way(proxy: Proxy, worlds: Worlds) -> None:
    """The limits above were held under the promised cap, not beside it."""
    world = worlds[SIZES[0]]
    proxy.measure(world.write_tables(4), latency=LATENCIES[0])
    assert proxy.in_flight_max() <= CONCURRENCY
