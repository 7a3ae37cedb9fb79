"""Counting: into the operation of the context, through threads, and with parallel steps counted once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from omnigraph.storage import metrics


def test_requests_count_for_every_operation_around_them() -> None:
    with metrics.operation("outer") as outer:
        metrics.request("get", bytes=10)
        with metrics.operation("inner") as inner:
            metrics.request("put", 2, bytes=5)
            metrics.stage()
            metrics.opened()
    assert (inner.ops, inner.stages, inner.opens, inner.bytes_written) == (2, 1, 1, 5)
    assert (outer.ops, outer.stages, outer.opens) == (3, 1, 1)
    assert (outer.bytes_read, outer.bytes_written) == (10, 5)
    assert outer.kinds == {"get": 1, "put": 2}


def test_outside_an_operation_nothing_is_kept() -> None:
    metrics.request("get")
    metrics.stage()
    assert metrics.current() is None


def test_parallel_tasks_add_requests_and_wait_as_long_as_the_slowest() -> None:
    def task(steps: int) -> int:
        for _ in range(steps):
            metrics.request("get")
            metrics.stage()
        return steps

    with metrics.operation("work") as cost:
        results = metrics.parallel([lambda: task(1), lambda: task(3), lambda: task(2)])
    assert results == [1, 3, 2]
    assert (cost.ops, cost.stages) == (6, 3)


def test_nested_parallel_tasks_still_count() -> None:
    def leaf() -> None:
        metrics.request("get")
        metrics.stage()

    with metrics.operation("work") as cost:
        metrics.parallel([lambda: metrics.parallel([leaf, leaf]), leaf])
    assert (cost.ops, cost.stages) == (3, 1)


def test_parallel_finishes_all_tasks_before_the_first_failure_is_raised() -> None:
    done: list[int] = []

    def fail() -> None:
        raise LookupError("first")

    with pytest.raises(LookupError, match="first"):
        metrics.parallel([fail, lambda: done.append(1), lambda: done.append(2)])
    assert sorted(done) == [1, 2]


def test_operations_of_different_threads_do_not_mix() -> None:
    def run(count: int) -> int:
        with metrics.operation("thread") as cost:
            for _ in range(count):
                metrics.request("get")
        return cost.ops

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(run, range(50))) == list(range(50))


def test_totals_sum_finished_operations() -> None:
    for _ in range(2):
        with metrics.operation("test totals"):
            metrics.request("put", 3)
    total = metrics.totals()["test totals"]
    assert (total.ops, total.kinds["operations"]) == (6, 2)
