"""Edges sorted on disk: the same arrays as in memory, in memory that does not grow with them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.errors import Cancelled
from omnigraph.read import adjacency as adjacency_module
from omnigraph.read import edge_sorting
from omnigraph.read.adjacency import Adjacency, Merged
from omnigraph.read.arrays import EdgeRows, Positions, stable_order
from omnigraph.read.budget import Budget, MemoryExceeded, running, stopped
from omnigraph.read.ids import IdStream
from omnigraph.read.topology import Base


@pytest.fixture
def spilling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every sort is on disk, in small parts; the folder where it happens."""
    monkeypatch.setattr(adjacency_module, "IN_MEMORY_EDGES_MAX", 0)
    monkeypatch.setattr(adjacency_module, "BLOCK_ROWS", 70)
    monkeypatch.setattr(edge_sorting, "PART_EDGES", 50)
    monkeypatch.setattr(edge_sorting, "BLOCK_ROWS", 90)
    monkeypatch.setenv("OMNIGRAPH_SPILL", str(tmp_path))
    return tmp_path


def edges(seed: int, count: int = 3_000) -> tuple[EdgeRows, tuple[int, int]]:
    """Edges with hubs at both ends, many of them repeated."""
    rng = np.random.default_rng(seed)
    sizes = [(1, 1), (700, 700), (1 << 17, 3), (5, 1 << 20)][seed % 4]
    near, far = (rng.integers(0, size, count) for size in sizes)
    near[rng.random(count) < 0.3] = sizes[0] // 2
    far[rng.random(count) < 0.3] = sizes[1] // 2
    return np.stack((near, far, np.arange(count)), axis=1).astype(np.int32), sizes


def in_blocks(rows: EdgeRows) -> Iterator[EdgeRows]:
    yield from np.array_split(rows, 9)


def in_memory(rows: EdgeRows, sizes: tuple[int, int]) -> Adjacency:
    near, far, edge = rows.T
    return Adjacency.build(near, far, edge, sizes)


def same(left: Adjacency, right: Adjacency) -> None:
    for name in ("start", "node", "edge", "loops"):
        assert getattr(left, name).tolist() == getattr(right, name).tolist(), name
    assert (left.far, left.is_simple) == (right.far, right.is_simple)


@pytest.mark.parametrize("seed", range(8))
def test_arrays_sorted_on_disk_are_those_sorted_in_memory(
    seed: int, spilling: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, sizes = edges(seed)
    made = Adjacency.of(in_blocks(rows), len(rows), sizes)
    others = [made, made.reversed(), Base(made, len(rows)).both]
    assert all(one.is_mapped and one.nbytes == 0 for one in others)
    assert not list(spilling.iterdir()), "what is mapped needs no names"
    monkeypatch.undo()
    plain = in_memory(rows, sizes)
    expected = [plain, plain.reversed(), Base(plain, len(rows)).both]
    for one, other in zip(others, expected, strict=True):
        same(one, other)


def test_edges_that_change_are_sorted_on_disk_with_the_others(spilling: Path) -> None:
    rows, sizes = edges(1)
    gone, new = rows[:40], np.array([[3, 9, 3_000], [0, 0, 3_001]], np.int32)
    merged = Merged(in_memory(rows, sizes), in_memory(gone, sizes), in_memory(new, sizes))
    assert merged.whole.is_mapped
    same(merged.whole, in_memory(np.concatenate((rows[40:], new)), sizes))


def test_a_sort_holds_a_few_parts_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adjacency_module, "IN_MEMORY_EDGES_MAX", 0)
    for name in ("PART_EDGES", "BLOCK_ROWS"):
        monkeypatch.setattr(edge_sorting, name, 1 << 15)
    rng = np.random.default_rng(2)

    def blocks(count: int) -> Iterator[EdgeRows]:
        for first in range(0, count, 1_000):
            ends = rng.integers(0, 1_000, (2, 1_000))
            ends[0, ::2] = 7  # half of all leave one node
            yield np.stack((*ends, np.arange(first, first + 1_000)), axis=1).astype(np.int32)

    count = 2_000_000
    tracemalloc.start()
    made = Adjacency.of(blocks(count), count, (1_000, 1_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(made) == count
    assert peak < count * edge_sorting.EDGE_BYTES / 2, "in memory it takes five times their bytes"


def test_a_sort_ends_when_its_query_does(spilling: Path) -> None:
    rows, sizes = edges(1)
    checks = iter([False] * 20)
    token = running(Budget(cancelled=lambda: next(checks, True)))
    try:
        with pytest.raises(Cancelled):
            Adjacency.of(in_blocks(rows), len(rows), sizes)
    finally:
        stopped(token)
    assert not list(spilling.iterdir())


def test_a_sort_is_charged_to_its_query(spilling: Path) -> None:
    rows, sizes = edges(1)
    budget = Budget()
    token = running(budget)
    try:
        Adjacency.of(in_blocks(rows), len(rows), sizes)
        assert (budget.bytes_used, budget.bytes_peak) == (0, edge_sorting.HELD_BYTES)
        assert budget.spilled_bytes >= (12 + 8) * len(rows)
        budget.bytes_max = 1 << 20
        with pytest.raises(MemoryExceeded) as caught:
            Adjacency.of(in_blocks(rows), len(rows), sizes)
    finally:
        stopped(token)
    assert caught.value.details["operator"] == "Topology"
    assert "optimize" in str(caught.value.help)


def test_an_order_of_numbers_keeps_equal_ones_in_their_order() -> None:
    values = np.random.default_rng(4).integers(0, 50, 5_000).astype(np.int32)
    values[::7] = 2**31 - 1
    assert stable_order(values).tolist() == np.argsort(values, kind="stable").tolist()


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_ids_are_found_batch_by_batch(kind: pa.DataType) -> None:
    ids = pa.chunked_array([["a", "b"], ["c"]], pa.string()).cast(kind)
    batches: list[list[str | None]] = [["b", "x"], [], ["c"] * 70_000, [None, "a"]]
    kinds_of_rows: list[Positions | None] = [None, np.array([4, 6, 9], np.int32)]
    for rows in kinds_of_rows:
        at = dict(zip("abc", [0, 1, 2] if rows is None else rows.tolist(), strict=True))
        with IdStream(ids, rows) as stream:
            for batch in batches:
                stream.give(pa.array(batch, pa.string()))
            found = [stream.take().tolist() for _ in batches]
        assert found == [[at.get(str(id), -1) for id in batch] for batch in batches]
    with IdStream(pa.chunked_array([], pa.string())) as stream:
        stream.give(pa.array(["a"]))
        assert stream.take().tolist() == [-1]
