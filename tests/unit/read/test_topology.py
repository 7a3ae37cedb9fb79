"""Topology: built, carried from version to version, and stored; always the edges of its version."""

from __future__ import annotations

import random
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from omnigraph.errors import Cancelled
from omnigraph.lang.ir import Direction
from omnigraph.read import adjacency as adjacency_module
from omnigraph.read import columns as columns_module
from omnigraph.read import edges as edges_module
from omnigraph.read import topology as topology_module
from omnigraph.read import topology_files
from omnigraph.read.adjacency import Adjacency, Merged
from omnigraph.read.arrays import NO_EDGES, AnyArray, runs
from omnigraph.read.budget import Budget, running, stopped
from omnigraph.read.cache import Cache
from omnigraph.read.columns import columns_of
from omnigraph.read.edges import persist_topology
from omnigraph.read.topology import Topology, TopologyTables, build, extend
from omnigraph.read.topology_files import load_topology, store_topology, topology_key
from omnigraph.storage.objects import LargeObjects, locate, open_objects
from tests.support.snapshots import Graph, ask, make_graph

SCHEMA = "node Item { code: String @key }\nedge Next: Item -> Item { since: I64? }"


def items(*numbers: int) -> list[dict[str, object]]:
    return [{"id": f"i{n}", "code": f"i{n}"} for n in numbers]


def links(pairs: list[tuple[int, int]], first: int = 0) -> list[dict[str, object]]:
    return [
        {"id": f"n{first + i}", "src": f"i{s}", "dst": f"i{d}"} for i, (s, d) in enumerate(pairs)
    ]


def tables(graph: Graph, cache: Cache) -> TopologyTables:
    state = graph.snapshot
    item = columns_of(state, graph.catalog.nodes["Item"], cache)
    return TopologyTables(columns_of(state, graph.catalog.edges["Next"], cache), item, item)


def pairs(
    topology: Topology, found: TopologyTables, direction: Direction
) -> list[tuple[str, str, str]]:
    """Every edge as (near, far, id), from the view of a direction."""
    near, far, edge = np.concatenate([NO_EDGES, *topology.view(direction).blocks()]).T
    ids = found.src.ids
    rows = zip(near.tolist(), far.tolist(), edge.tolist(), strict=True)
    return sorted((ids[n].as_py(), ids[f].as_py(), found.edge.ids[e].as_py()) for n, f, e in rows)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    some = [(0, 1), (1, 2), (2, 0), (2, 2), (0, 1), (3, 4)]
    return make_graph(tmp_path, SCHEMA, {"Item": items(*range(6)), "Next": links(some)})


def test_both_directions_hold_the_same_edges(graph: Graph) -> None:
    found = tables(graph, Cache())
    made = build(found)
    out = pairs(made, found, Direction.OUT)
    assert [(f, n, e) for n, f, e in out] == sorted(
        (a, b, c) for a, b, c in pairs(made, found, Direction.IN)
    ) or sorted((f, n, e) for n, f, e in out) == pairs(made, found, Direction.IN)
    assert len(out) == 6


@pytest.fixture
def on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of any size are made on disk."""
    for module in (adjacency_module, topology_module):
        monkeypatch.setattr(module, "BLOCK_ROWS", 4)
    monkeypatch.setattr(adjacency_module, "IN_MEMORY_EDGES_MAX", 0)
    monkeypatch.setattr(topology_module, "FEW_EDGES_MAX", 0)
    monkeypatch.setattr(columns_module, "LOAD_ROWS_MAX", 0)


def test_a_topology_made_on_disk_is_the_same(graph: Graph, on_disk: None) -> None:
    graph.delete("Next", ["n1"])
    graph.delete("Item", ["i1", "i4"])
    graph.append("Item", items(1, 7))
    graph.append("Next", [*links([(7, 1), (1, 7), (5, 9)], 80)])
    found = tables(graph, Cache())
    made = build(found)
    assert made.base.out.is_mapped
    expected = [("i0", "i1"), ("i0", "i1"), ("i1", "i7"), ("i2", "i0"), ("i2", "i2"), ("i7", "i1")]
    assert [(n, f) for n, f, _ in pairs(made, found, Direction.OUT)] == expected
    assert sorted((f, n) for n, f, _ in pairs(made, found, Direction.IN)) == expected
    assert made.base.into.is_mapped
    assert made.base.nbytes == 0


def test_making_one_ends_when_its_query_does(graph: Graph, on_disk: None) -> None:
    found, cancelled = tables(graph, Cache()), 0
    for allowed in range(100):
        token = running(Budget(cancelled=partial(next, iter([False] * allowed), True)))
        try:
            made = build(found)
            break
        except Cancelled:
            cancelled += 1
        finally:
            stopped(token)
    assert cancelled >= 4
    assert len(made.base.out) == 6


def test_random_commits_extend_to_what_building_anew_gives(graph: Graph) -> None:
    rng, cache = random.Random(5), Cache()
    number, alive = 6, list(range(6))
    known = build(tables(graph, cache))
    edge_ids = [f"n{i}" for i in range(6)]
    for step in range(40):
        match rng.choice(["node", "edge", "edge", "unlink", "touch"]):
            case "node":
                graph.append("Item", items(number))
                alive.append(number)
                number += 1
            case "edge":
                made = links([(rng.choice(alive), rng.choice(alive))], 100 + step)
                graph.append("Next", made)
                edge_ids.append(str(made[0]["id"]))
            case "unlink" if edge_ids:
                graph.delete("Next", [edge_ids.pop(rng.randrange(len(edge_ids)))])
            case _:
                changed = rng.choice(alive)
                graph.delete("Item", [f"i{changed}"])
                graph.append("Item", items(changed))
        found = tables(graph, cache)
        extended = extend(known, found)
        assert extended is not None
        assert extended.base is known.base
        for direction in Direction:
            assert pairs(extended, found, direction) == pairs(build(found), found, direction)
        known = extended


def test_too_many_changes_are_built_anew(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology_module, "CHANGED_MIN", 2)
    cache = Cache()
    known = build(tables(graph, cache))
    graph.append("Next", links([(0, 3), (0, 4), (0, 5)], 50))
    monkeypatch.setattr(topology_module, "_read_new", None)  # that many are not even read
    assert extend(known, tables(graph, cache)) is None


def test_simple_neighbours_are_each_there_once(graph: Graph) -> None:
    found = tables(graph, Cache())
    out = build(found).view(Direction.OUT)
    start = np.array([found.src.find("i0")])
    assert len(out.hop(start).node) == 2
    assert len(out.simple.hop(start).node) == 1
    assert not out.is_simple


@pytest.mark.parametrize("seed", range(20))
def test_sums_and_memberships_agree_with_the_edges_written_out(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adjacency_module, "BLOCK_EDGES", 1 + seed * 2)
    rng = np.random.default_rng(seed)
    near, far = rng.integers(0, 7, 30).astype(np.int32), rng.integers(0, 5, 30).astype(np.int32)
    edge = np.arange(30, dtype=np.int32)
    gone, new = edge[:4], edge[25:]
    base = Adjacency.build(near[:25], far[:25], edge[:25], (7, 5))
    merged = Merged(
        base,
        Adjacency.build(near[gone], far[gone], gone, (7, 5)),
        Adjacency.build(near[new], far[new], new, (7, 5)),
    )
    there = list(zip(near[4:].tolist(), far[4:].tolist(), strict=True))
    values = rng.integers(0, 10, 5)
    assert merged.pull(values).tolist() == [
        sum(values[f] for n, f in there if n == i) for i in range(7)
    ]
    assert merged.degrees.tolist() == [sum(n == i for n, _ in there) for i in range(7)]
    every = [(n, f) for n in range(7) for f in range(5)]
    ends = np.array(every)
    assert merged.has(ends[:, 0], ends[:, 1]).tolist() == [pair in there for pair in every]
    for size in (2, 100):
        hops = list(merged.simple.hops(np.arange(7), repeat(size)))
        found = [(n, f) for hop in hops for n, f in zip(hop.source, hop.node, strict=True)]
        assert sorted(found) == sorted(set(there))
        assert all(len(hop.node) <= size for hop in hops)
    once = merged.simple
    assert once.degrees.tolist() == [len({f for n, f in there if n == i}) for i in range(7)]
    assert once.pull(values).tolist() == [
        sum(values[f] for n, f in set(there) if n == i) for i in range(7)
    ]
    assert once.has(ends[:, 0], ends[:, 1]).tolist() == [pair in there for pair in every]
    assert once.base.node is base.node or base.is_simple  # nothing is copied


def test_what_queries_make_of_a_topology_is_counted(graph: Graph) -> None:
    cache = Cache()
    for text in ("$a next $b", "$b next $a", "$a <next> $b", "$a next{1,3} $b"):
        before = cache.bytes_used
        for _ in range(2):  # what the first makes the second weighs
            ask(graph, f"match {{ $a: Item {text} }} return {{ count(*) as n }}", cache=cache)
        assert cache.bytes_used >= before
    topologies = [value for value, _ in cache._entries.values() if isinstance(value, Topology)]
    assert topologies
    base = topologies[0].base
    assert {"into", "both"} <= set(base.__dict__)
    assert base.nbytes >= base.out.nbytes + base.into.nbytes + base.both.nbytes
    weights = [size for value, size in cache._entries.values() if isinstance(value, Topology)]
    assert sum(weights) >= topologies[0].nbytes + base.nbytes


# --- files -------------------------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> LargeObjects:
    return cast(LargeObjects, open_objects(locate(str(tmp_path))))


def test_a_stored_topology_comes_back_whole(graph: Graph, store: LargeObjects) -> None:
    found = tables(graph, Cache())
    known = build(found)
    graph.append("Next", links([(4, 5)], 60))
    later = tables(graph, Cache())
    extended = extend(known, later)
    assert extended is not None
    store_topology(store, "edges/x", extended)
    loaded = load_topology(store, "edges/x")
    assert loaded is not None
    assert loaded.made_of == later.made_of
    for direction in Direction:
        assert pairs(loaded, later, direction) == pairs(build(later), later, direction)


def test_an_absent_or_damaged_file_is_no_topology(graph: Graph, store: LargeObjects) -> None:
    assert load_topology(store, "edges/x") is None
    store_topology(store, "edges/x", build(tables(graph, Cache())))
    whole = store.get(topology_key("edges/x"))
    for damaged in (b"", whole[:40], whole[:-8], whole[:-2] + b"\x01\x01", b"x" + whole[1:]):
        store.put(topology_key("edges/x"), damaged)
        assert load_topology(store, "edges/x") is None


def test_without_a_fitting_second_file_the_edges_are_turned_round(
    graph: Graph, store: LargeObjects
) -> None:
    found = tables(graph, Cache())
    store_topology(store, "edges/x", build(found))
    older = store.get(f"{topology_key('edges/x')}.in")
    graph.append("Next", links([(4, 5)], 60))
    later = tables(graph, Cache())
    store_topology(store, "edges/x", build(later))
    for second in (b"damaged", older):
        store.put(f"{topology_key('edges/x')}.in", second)
        loaded = load_topology(store, "edges/x")
        assert loaded is not None
        expected = pairs(build(later), later, Direction.IN)
        assert pairs(loaded, later, Direction.IN) == expected


def test_a_new_process_reads_the_file_and_extends_it(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edges_module, "LOOKUP_EDGES_MIN", 1)
    assert persist_topology(graph.snapshot, "Next", Cache()) > 0
    graph.append("Next", links([(5, 0)], 70))
    monkeypatch.setattr(edges_module, "build", None)
    text = 'match { $a: Item { code: "i5" } $a next $b } return { $b.code as b }'
    assert ask(graph, text, cache=Cache()).scalar() == "i0"


def test_a_file_on_a_disk_is_mapped_and_takes_nothing_of_the_cache(
    graph: Graph, store: LargeObjects
) -> None:
    known = build(tables(graph, Cache()))
    store_topology(store, "edges/x", known)
    loaded = load_topology(store, "edges/x")
    assert loaded is not None
    assert loaded.base.out.is_mapped
    assert loaded.base.into.is_mapped
    assert loaded.base.nbytes == 0 < known.base.nbytes
    before = loaded.base.out.node.tolist()
    store.put(topology_key("edges/x"), b"something else")  # whoever has it mapped keeps it
    assert loaded.base.out.node.tolist() == before


def test_of_a_large_file_only_what_is_walked_is_read(
    graph: Graph, store: LargeObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topology_files, "VERIFIED_BYTES_MAX", 0)
    store_topology(store, "edges/x", build(tables(graph, Cache())))
    verified: list[str] = []
    real = topology_files._sum

    def summed(array: AnyArray) -> int:
        verified.append(array.dtype.str)
        return real(array)

    monkeypatch.setattr(topology_files, "_sum", summed)
    assert load_topology(store, "edges/x") is not None
    assert verified == ["<i8"]  # where the runs start, not what is in them
    whole = store.get(topology_key("edges/x"))
    for damaged in (whole[:-64], whole + bytes(64), whole[:-1] + b"\x01"):
        store.put(topology_key("edges/x"), damaged)
        assert load_topology(store, "edges/x") is None


def test_maintenance_stores_what_was_made_on_disk_and_uses_it_from_there(
    graph: Graph, on_disk: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edges_module, "LOOKUP_EDGES_MIN", 1)
    cache, edge_path = Cache(), graph.snapshot.ref(graph.catalog.edges["Next"].table_id).path
    persist_topology(graph.snapshot, "Next", cache)
    graph.append("Next", links([(4, 5)], 60))
    assert persist_topology(graph.snapshot, "Next", cache) > 0
    found = tables(graph, cache)
    kept = cache.get(("topology", found.home))
    stored = load_topology(cast(LargeObjects, open_objects(locate(graph.snapshot.root))), edge_path)
    assert stored is not None
    for one in (kept, stored):
        assert one.made_of == found.made_of
        assert pairs(one, found, Direction.IN) == pairs(build(found), found, Direction.IN)
    assert kept.base.out.start.base is not None
    assert not isinstance(kept.base.out.start.base, np.memmap), "not the arrays it was made in"


def test_a_stored_topology_takes_sixteen_bytes_an_edge(graph: Graph, store: LargeObjects) -> None:
    known = build(tables(graph, Cache()))
    stored = store_topology(store, "edges/x", known)
    edges, nodes = len(known.base.out), known.sizes[0] + 1
    assert stored <= 16 * edges + 16 * nodes + 2 * (5 * 64 + 4096)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_runs_are_written_out_so_many_members_at_a_time(size: int) -> None:
    rng = np.random.default_rng(size)
    counts = rng.integers(0, 9, 40)
    starts = rng.integers(0, 100, 40)
    every = [
        (i, s + k) for i, (s, n) in enumerate(zip(starts, counts, strict=True)) for k in range(n)
    ]
    found = list(runs(starts, counts, repeat(size)))
    assert [(i, m) for index, at in found for i, m in zip(index, at, strict=True)] == every
    assert all(len(index) <= max(size, 0) for index, _ in found) or size >= len(every)
    assert [len(at) for _, at in runs(starts[:0], counts[:0], repeat(size))] == [0]
