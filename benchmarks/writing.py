"""What a write of one row costs in a large graph: `python -m benchmarks writing`.

An upsert of one node and an insert of one edge, each a whole call from text to a published commit, beside what Lance
alone takes to merge one row into the same table and one object to be created durably. Then what the checks of such a
write read, in a small and in a large graph, by a process that has read nothing yet.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
from tests.support.caches import forget_tables

import omnigraph
from omnigraph.read import SHARED
from omnigraph.storage import metrics
from omnigraph.storage.objects import locate, open_objects

SIZES = (10_000, 1_000_000)
ROUNDS = 60
WARM = 10
SCHEMA = """
node Person { name: String @key  age: I64  city: String }
edge Knows: Person -> Person { since: I64 }
"""
UPSERT = 'query q($n: String, $a: I64) { insert Person { name: $n, age: $a, city: "Ulm" } }'
INSERT = "query q($a: String, $b: String) { insert Knows { from: $a, to: $b, since: 2026 } }"


def people(count: int) -> pa.Table:
    numbers = np.arange(count)
    names = pa.array([f"person {n:08}" for n in numbers])
    cities = pa.array([f"city {n % 997}" for n in numbers])
    return pa.table({"name": names, "age": pa.array(numbers % 90), "city": cities})


def acquaintances(count: int) -> pa.Table:
    others = np.random.default_rng(3).integers(0, count, count)
    near = pa.array([f"person {n:08}" for n in range(count)])
    return pa.table({"from": near, "to": near.take(pa.array(others)), "since": pa.array(others)})


def made(folder: Path, count: int) -> omnigraph.Graph:
    graph = omnigraph.init(folder / f"graph-{count}", schema=SCHEMA)
    rows = {"Person": people(count), "Knows": acquaintances(count)}
    graph.load(rows, mode="append", engine="local")
    graph.optimize()
    return graph


# --- beside Lance alone --------------------------------------------------------------------------------------------


class Bare:
    """The same table, kept by Lance alone, with the index on ids that ours has."""

    def __init__(self, folder: Path, count: int) -> None:
        rows = people(count)
        self.table = lance.write_dataset(
            rows.append_column("id", rows["name"]), str(folder / "bare")
        )
        self.table.create_scalar_index("id", "BTREE")
        self.objects = open_objects(locate(str(folder / "objects")))
        self.made = 0

    def merge(self, number: int) -> None:
        name = [f"person {number:08}"]
        row = pa.table({"name": name, "age": [1], "city": ["Ulm"], "id": name})
        merge = (
            self.table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        )
        merge.execute(row)
        self.made += 1
        self.objects.put_new(f"commits/{self.made}", b"x" * 2_000)


def in_turns(calls: dict[str, Callable[[int], Any]]) -> dict[str, float]:
    """The median milliseconds of each, called in turns."""
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(ROUNDS):
        for name, call in calls.items():
            started = time.perf_counter()
            call(turn)
            spent[name].append((time.perf_counter() - started) * 1e3)
    return {name: statistics.median(found[WARM:]) for name, found in spent.items()}


def beside_lance(graph: omnigraph.Graph, bare: Bare, count: int) -> None:
    def name(turn: int) -> str:
        return f"person {turn * 7919 % count:08}"

    found = in_turns(
        {
            "upsert of a node": lambda t: graph.mutate(UPSERT, {"n": name(t), "a": t}),
            "insert of an edge": lambda t: graph.mutate(INSERT, {"a": name(t), "b": name(t + 1)}),
            "Lance alone": lambda t: bare.merge(t * 7919 % count),
        }
    )
    for what, taken in found.items():
        ratio = taken / found["Lance alone"]
        budget = "" if what == "Lance alone" else f"  {ratio:5.2f} of Lance alone (at most 3)"
        print(f"{count:>9,} rows: {what:<20} {taken:8.2f} ms{budget}", flush=True)


# --- what the checks read ------------------------------------------------------------------------------------------


Write = Callable[[omnigraph.Graph, int], object]
WRITES: dict[str, Write] = {
    "upsert of a node": lambda graph, i: graph.mutate(UPSERT, {"n": f"person {i:08}", "a": 1}),
    "insert of an edge": lambda graph, i: graph.mutate(
        INSERT, {"a": f"person {i:08}", "b": f"person {i + 1:08}"}
    ),
}


def costs_of(graph: omnigraph.Graph, write: Write) -> list[metrics.Cost]:
    """Of the first such write of a process, and of a later one of other rows."""
    forget_tables()
    SHARED.clear()
    fresh, found = omnigraph.open(graph.uri), []
    for number in (7, 1_207, 2_407):
        with metrics.operation("write") as cost:
            write(fresh, number)
        found.append(cost)
    return [found[0], found[-1]]


def checks(graphs: dict[int, omnigraph.Graph]) -> None:
    for what, write in WRITES.items():
        for count, graph in graphs.items():
            first, later = costs_of(graph, write)
            print(
                f"{count:>9,} rows: {what:<18} opens {first.opens} tables (at most 3), "
                f"reads {first.bytes_read:,} bytes at first, {later.bytes_read:,} later",
                flush=True,
            )


def run() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        os.makedirs(folder / "objects")
        graphs = {count: made(folder, count) for count in SIZES}
        checks(graphs)
        beside_lance(graphs[SIZES[-1]], Bare(folder, SIZES[-1]), SIZES[-1])


if __name__ == "__main__":
    run()
