"""What a merge costs at the wire: a fast forward is a few requests, whatever the history and the schema."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from omnigraph.graph import open_graph
from tests.cost.workload import Workload
from tests.support.proxy import Measurement, Proxy
from tests.support.s3server import S3Address
from tests.support.worlds import add_person

pytestmark = pytest.mark.xdist_group("cost")

SIZES = ((10, 5), (100, 5), (10, 200))  # commits, tables
HOPS, REQUESTS = 5, 8
LATENCY_SECONDS = 0.02


@pytest.fixture(scope="module")
def proxy(s3_server: S3Address) -> Iterator[Proxy]:
    with pytest.MonkeyPatch.context() as patch, Proxy(s3_server.port, concurrency=8) as p:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        for name, value in p.address.environment().items():
            patch.setenv(name, value)
        yield p


@pytest.fixture(scope="module")
def worlds(proxy: Proxy) -> dict[tuple[int, int], Workload]:
    return {
        (depth, tables): Workload.build(
            proxy.address.uri(f"merge-{os.getpid()}-{depth}-{tables}"), depth=depth, tables=tables
        )
        for depth, tables in SIZES
    }


def fast_forward(world: Workload, proxy: Proxy) -> Measurement:
    """A branch with one write, merged into an unchanged target."""
    world.create_branch()
    name = world.spare.pop()
    world.graph.publish(add_person(world.fresh("n")), branch=name)
    outcomes: list[str] = []
    seen = proxy.measure(
        lambda: outcomes.append(world.graph.merge(name).outcome), latency=LATENCY_SECONDS
    )
    assert outcomes == ["fast_forward"]
    return seen


def test_a_merge_into_an_unchanged_target(
    proxy: Proxy, worlds: dict[tuple[int, int], Workload]
) -> None:
    costs: dict[tuple[int, int], int] = {}
    for size, world in worlds.items():
        fast_forward(world, proxy)
        seen = fast_forward(world, proxy)
        assert seen.requests <= REQUESTS, f"at {size}: {seen.describe()}"
        assert seen.hops <= HOPS, f"at {size}: {seen.describe()}"
        costs[size] = seen.requests
    assert len(set(costs.values())) == 1, f"a merge costs requests by size: {costs}"


def test_a_process_that_knows_neither_branch_needs_few_more(
    proxy: Proxy, worlds: dict[tuple[int, int], Workload]
) -> None:
    for size, world in worlds.items():
        world.create_branch()
        name = world.spare.pop()
        world.graph.publish(add_person(world.fresh("n")), branch=name)
        other = open_graph(world.graph.uri)
        other.snapshot()
        seen = proxy.measure(lambda g=other, n=name: g.merge(n), latency=LATENCY_SECONDS)  # type: ignore[misc]
        assert seen.requests <= REQUESTS + 6, f"at {size}: {seen.describe()}"
