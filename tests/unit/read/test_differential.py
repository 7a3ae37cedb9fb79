"""Random queries on random graphs: the engine answers what the plain interpreter answers.

Each test runs 450 queries, and 25,050 every night; OMNIGRAPH_DIFFERENTIAL says another number. The same number makes
the same queries.
"""

from __future__ import annotations

import os
import random
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from omnigraph.lang.diagnostics import LanguageError
from omnigraph.lang.query import compile_query
from omnigraph.read import (
    Cache,
    adjacency,
    arrays,
    budget,
    columns,
    edge_sorting,
    edges,
    expand,
    groups,
    relational,
    scan,
    shortest,
    sorting,
    topology,
    walk,
)
from tests.support.comparing import (
    EDGE_TYPES,
    NODE_TYPES,
    difference,
    differently,
    plain_graph,
)
from tests.support.random_queries import (
    ENDS,
    PROPERTIES,
    SCHEMA,
    QueryMaker,
    random_rows,
    random_value,
    written,
)
from tests.support.record import record
from tests.support.rings import count
from tests.support.snapshots import Graph, catalog_from, make_graph

QUERIES = int(os.environ.get("OMNIGRAPH_DIFFERENTIAL", count(450, 20_100)))
QUERIES_PER_GRAPH = 150
NAME = "random queries: the engine and a plain interpreter"
KEPT = {"id", "src", "dst", "code"}  # by a change
CATALOG = catalog_from(SCHEMA)
Rows = dict[str, list[dict[str, Any]]]
BLOCK = re.compile(r"(not|exists|optional|count|(count|sum|avg|min|max)\([^)]*\)) \{")


def check(graph: Graph, data: Rows, seed: int, cache: Cache) -> None:
    text = QueryMaker(random.Random(seed)).query()
    wrong = difference(compile_query(text, CATALOG), plain_graph(data), graph.snapshot, cache)
    assert wrong is None, f"seed {seed}: {text}\n{wrong}"


def graphs(folder: Path, first: int, name: str = NAME) -> Any:
    for number in range(max(1, QUERIES // QUERIES_PER_GRAPH)):
        data = random_rows(random.Random(first + number))
        yield first + number, make_graph(folder / str(number), CATALOG, data), data
        shutil.rmtree(folder / str(number))
        record(name, {"queries": QUERIES_PER_GRAPH, "differences": 0}, part=True)


def test_small_results_are_written_out(tmp_path: Path) -> None:
    for number, graph, data in graphs(tmp_path, 1000):
        cache = Cache()
        for i in range(QUERIES_PER_GRAPH):
            check(graph, data, number * 1000 + i, cache)


def test_large_results_are_counted_and_walked_from_either_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expand, "WRITE_OUT_MAX", -1)
    monkeypatch.setattr(relational, "PICK_ROWS_MIN", 0)
    monkeypatch.setattr(shortest, "PAIRS_MAX", -1)
    monkeypatch.setattr(walk, "MARKS_MAX", 16)
    monkeypatch.setattr(arrays, "SORT_BELOW", 0)
    monkeypatch.setattr(groups, "DENSE_PART", 0)
    for number, graph, data in graphs(tmp_path, 2000):
        cache = Cache()
        for i in range(QUERIES_PER_GRAPH):
            monkeypatch.setattr(expand, "REVERSED_PART", i % 2 * 4)
            check(graph, data, number * 1000 + i, cache)


def test_rows_come_in_blocks_of_any_size_and_wait_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expand, "WRITE_OUT_MAX", -1)
    monkeypatch.setattr(shortest, "PAIRS_MAX", -1)
    monkeypatch.setattr(walk, "MARKS_MAX", 16)
    monkeypatch.setattr(budget, "FIRST_ROWS", 1)
    monkeypatch.setattr(sorting, "RUN_ROWS", 3)
    monkeypatch.setattr(sorting, "CHUNK_ROWS", 1)
    fits = budget.Held.fits
    for number, graph, data in graphs(tmp_path, 6000):
        cache = Cache()
        for i in range(QUERIES_PER_GRAPH):
            for bound in ("BLOCK_ROWS_MIN", "BLOCK_ROWS_MAX"):
                monkeypatch.setattr(budget, bound, 1 + i % 7)
            monkeypatch.setattr(budget.Held, "fits", fits if i % 2 else lambda *_: False)
            check(graph, data, number * 1000 + i, cache)


def test_nothing_is_loaded_and_everything_is_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edges, "LOOKUP_EDGES_MIN", 1)
    monkeypatch.setattr(edges, "LOOKUPS_MAX", 10**9)
    monkeypatch.setattr(edges, "LOOKUP_EDGES_MAX", 10**9)
    monkeypatch.setattr(columns, "PROBE_ROWS_MIN", 0)
    monkeypatch.setattr(columns, "PROBES_MAX", 10**9)
    monkeypatch.setattr(columns, "LOAD_ROWS_MAX", 0)
    monkeypatch.setattr(scan, "LOAD_ROWS_MAX", 0)
    for number, graph, data in graphs(tmp_path, 3000):
        for kind in EDGE_TYPES:
            graph.index(kind, "src", "dst")
        for kind in NODE_TYPES:
            graph.index(kind, "id")
        for i in range(QUERIES_PER_GRAPH):
            check(graph, data, number * 1000 + i, Cache())


@pytest.mark.parametrize("on_disk", [False, True])
def test_every_state_of_a_changing_graph_is_read_with_one_cache(
    on_disk: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Topology and columns are carried from version to version, forwards and backwards."""
    if on_disk:
        for module in (adjacency, edges):
            monkeypatch.setattr(module, "IN_MEMORY_EDGES_MAX", 0)
        monkeypatch.setattr(topology, "FEW_EDGES_MAX", 0)
        for name in ("PART_EDGES", "BLOCK_ROWS"):
            monkeypatch.setattr(edge_sorting, name, 3)
        monkeypatch.setattr(edges, "LOOKUP_EDGES_MIN", 1)
        monkeypatch.setattr(edges, "SCANS_MAX", 2)
        monkeypatch.setattr(columns, "LOAD_ROWS_MAX", 0)
    for number, graph, data in graphs(tmp_path, 4000):
        rng, cache = random.Random(number), Cache()
        states = [(graph.now(), copy(data))]
        for i in range(QUERIES_PER_GRAPH):
            if i % 6 == 0:
                change(rng, graph, data, i)
                states.append((graph.now(), copy(data)))
            then, rows = states[-1] if rng.random() < 0.7 else rng.choice(states)
            check(then, rows, number * 1000 + i, cache)


def test_the_order_of_clauses_does_not_change_the_answer(tmp_path: Path) -> None:
    """Blocks stay behind: what is bound before a block decides what is free inside it."""
    compared = 0
    for number, graph, _ in graphs(tmp_path, 5000, "random queries: clauses in another order"):
        cache = Cache()
        for i in range(QUERIES_PER_GRAPH):
            rng = random.Random(number * 1000 + i)
            clauses, returned = QueryMaker(rng).parts()
            blocks = [c for c in clauses if BLOCK.match(c)]
            others = [c for c in clauses if c not in blocks]
            first = compile_query(written(others + blocks, returned), CATALOG)
            rng.shuffle(others)
            text = written(others + blocks, returned)
            with suppress(LanguageError):  # a variable is used before it is bound
                wrong = differently(first, compile_query(text, CATALOG), graph.snapshot, cache)
                assert wrong is None, f"seed {number * 1000 + i}: {text}\n{wrong}"
                compared += 1
    assert compared > QUERIES // 2


def copy(data: Rows) -> Rows:
    return {kind: list(rows) for kind, rows in data.items()}


def change(rng: random.Random, graph: Graph, data: Rows, number: int) -> None:
    """One random commit: rows added, changed or removed."""
    kind = rng.choice([*NODE_TYPES, *EDGE_TYPES, "Knows", "Person"])
    match rng.choice(["add", "add", "change", "remove"]):
        case "add":
            add(rng, graph, data, kind, f"x{number}")
        case "change" if data[kind]:
            old = rng.choice(data[kind])
            new: dict[str, Any] = {k: v for k, v in old.items() if k in KEPT}
            new = new | {
                n: random_value(rng, n, t) for n, t in PROPERTIES[kind].items() if n not in new
            }
            graph.delete(kind, [old["id"]])
            graph.append(kind, [new])
            data[kind] = [r for r in data[kind] if r is not old] + [new]
        case _ if data[kind]:
            remove(graph, data, kind, rng.choice(data[kind])["id"])
        case _:
            pass


def add(rng: random.Random, graph: Graph, data: Rows, kind: str, new: str) -> None:
    row: dict[str, Any] = {"id": new}
    if kind in ENDS:
        src, dst = (data[end] for end in ENDS[kind])
        if not src or not dst:
            return
        row |= {"src": rng.choice(src)["id"], "dst": rng.choice(dst)["id"]}
    elif kind == "Person":
        row["code"] = new
    row |= {n: random_value(rng, n, t) for n, t in PROPERTIES[kind].items() if n not in row}
    graph.append(kind, [row])
    data[kind] = [*data[kind], row]


def remove(graph: Graph, data: Rows, kind: str, gone: str) -> None:
    """A node goes with its edges."""
    for edge, ends in ENDS.items():
        sides = [side for side, end in zip(("src", "dst"), ends, strict=True) if end == kind]
        touching = [r["id"] for r in data[edge] if any(r[s] == gone for s in sides)]
        if touching:
            graph.delete(edge, touching)
            data[edge] = [r for r in data[edge] if r["id"] not in touching]
    graph.delete(kind, [gone])
    data[kind] = [r for r in data[kind] if r["id"] != gone]
