"""The same jobs on a graph of 1, 10 and 100 times the size: `python -m benchmarks growth`.

OMNIGRAPH_BENCH_NODES (20,000) is the number of people in the smallest graph; everybody follows 25 others, and one in
two hundred is followed by far more. The load, maintenance and the first queries each run in a new process, which
reports how long it took and its peak memory; the other queries and writes are medians of warm calls in one process.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import omnigraph
from benchmarks.reading import peak_megabytes

TIMES = (1, 10, 100)
FOLLOWED = 25  # by one person
PORTION = 5_000_000
CALLS = 15
WARM_CALLS = 10  # the first few calls of a process read single rows instead of a column
CHANGED = 1_000
SCHEMA = """
node Person { name: String @key  age: I64  bio: String @index }
edge Follows: Person -> Person
"""
POINT = "query q($n: String) { match { $p: Person { name: $n } } return { $p.age } }"
TWO = """query q($n: String) {
  match { $a: Person { name: $n }  $a follows $x  $x follows $b } return { count(distinct $b) as n } }"""
THREE = """query q($n: String) {
  match { $a: Person { name: $n }  $a follows $x  $x follows $y  $y follows $b } return { count(distinct $b) as n } }"""
MOST = """query q() {
  match { $a: Person  $a follows $b } return { $b.name as name, count($a) as n } order { n desc } limit 3 }"""
WORDS = "query q($w: String) { match { $p: Person } return { $p.name } order { bm25($p.bio, $w) desc } limit 10 }"
INSERT = "query q($n: String) { insert Person { name: $n, age: 1, bio: $n } }"
LINK = "query q($a: String, $b: String) { insert Follows { from: $a, to: $b } }"


# --- the graph -----------------------------------------------------------------------------------------------------


def name_of(number: int) -> str:
    return f"p{number:09}"


def people(count: int, first: int = 0) -> pa.Table:
    rng = np.random.default_rng(first)
    vocabulary = np.array([f"w{n}" for n in range(5_000)])
    rows = rng.zipf(1.3, (count, 8)) % len(vocabulary)
    words = [pa.array(vocabulary[column]) for column in rows.T]
    return pa.table(
        {
            "name": pa.array([name_of(n) for n in range(first, first + count)]),
            "age": pa.array(rng.integers(15, 75, count)),
            "bio": pa.compute.binary_join_element_wise(*words, " "),
        }
    )


def follows(persons: int, count: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    near, far = rng.integers(0, persons, count), rng.integers(0, persons, count)
    famous = rng.random(count) < 0.3
    far[famous] = far[famous] // 200 * 200
    names = [pa.compute.utf8_lpad(pa.array(each).cast(pa.string()), 9, "0") for each in (near, far)]
    source, target = (pa.compute.binary_join_element_wise("p", each, "") for each in names)
    return pa.table({"from": source, "to": target})


def written(folder: Path, persons: int) -> dict[str, str]:
    """Files to load, made in portions."""
    found = {"Person": folder / "people.parquet", "Follows": folder / "follows.parquet"}
    with pq.ParquetWriter(found["Person"], people(1).schema) as out:
        for first in range(0, persons, PORTION):
            out.write_table(people(min(PORTION, persons - first), first))
    edges = persons * FOLLOWED
    with pq.ParquetWriter(found["Follows"], follows(1, 1, 0).schema) as out:
        for first in range(0, edges, PORTION):
            out.write_table(follows(persons, min(PORTION, edges - first), first))
    return {kind: str(path) for kind, path in found.items()}


# --- jobs, in processes of their own ---------------------------------------------------------------------------------


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def load(folder: Path, persons: int) -> Iterator[tuple[str, float]]:
    source = written(folder, persons)
    graph = omnigraph.init(folder / "graph", SCHEMA)
    yield "load, s", timed(lambda: graph.load(source, "append"))


def optimize(folder: Path, _: int) -> Iterator[tuple[str, float]]:
    graph = omnigraph.open(folder / "graph")
    yield "optimize, s", timed(graph.optimize)
    yield "memory of optimize, MB", peak_megabytes()


def first(folder: Path, _: int) -> Iterator[tuple[str, float]]:
    graph = omnigraph.open(folder / "graph")
    yield "first 2 hops, ms", 1e3 * timed(lambda: graph.query(TWO, {"n": name_of(7)}))
    yield "memory after them, MB", peak_megabytes()


def first_words(folder: Path, _: int) -> Iterator[tuple[str, float]]:
    graph = omnigraph.open(folder / "graph")
    yield "first ranking of texts, ms", 1e3 * timed(lambda: graph.query(WORDS, {"w": "w7 w300"}))
    yield "memory after it, MB", peak_megabytes()


def warm(folder: Path, persons: int) -> Iterator[tuple[str, float]]:
    graph = omnigraph.open(folder / "graph")
    some = [name_of(int(n)) for n in np.random.default_rng(3).integers(0, persons, CALLS)]
    jobs: dict[str, Callable[[str], Any]] = {
        "a person by key": lambda n: graph.query(POINT, {"n": n}),
        "2 hops": lambda n: graph.query(TWO, {"n": n}),
        "3 hops": lambda n: graph.query(THREE, {"n": n}),
        "the most followed": lambda _: graph.query(MOST),
        "ranking of texts": lambda _: graph.query(WORDS, {"w": "w7 w300"}),
        "insert a person": lambda n: graph.mutate(INSERT, {"n": f"new {n}"}),
        "insert an edge": lambda n: graph.mutate(LINK, {"a": n, "b": some[0]}),
        "create a branch": lambda n: graph.create_branch(f"b-{n}-{time.monotonic_ns()}"),
        "the last commit": lambda _: graph.log(limit=1),
    }
    for name, job in jobs.items():
        for number in range(WARM_CALLS):
            job(name_of(number))
        yield f"{name}, ms", 1e3 * statistics.median(timed(partial(job, n)) for n in some)
    yield f"merge of {CHANGED:,} changed people, ms", 1e3 * timed(merging(graph))


def merging(graph: omnigraph.Graph) -> Callable[[], object]:
    graph.create_branch("changes")
    graph.load({"Person": people(CHANGED, 1_000)}, "merge", branch="changes")
    graph.mutate(INSERT, {"n": "meanwhile"})
    return lambda: graph.merge("changes")


def size(folder: Path, persons: int) -> Iterator[tuple[str, float]]:
    graph = folder / "graph"
    files = [path for path in graph.rglob("*") if path.is_file()]
    whole = sum(path.stat().st_size for path in files)
    arrays = sum(p.stat().st_size for p in files if "_topology" in p.parts)
    yield "disk, MB", whole / 1e6
    yield "arrays of edges, bytes an edge", arrays / (persons * FOLLOWED)


PHASES = {phase.__name__: phase for phase in (load, optimize, size, first, first_words, warm)}


# --- the table -----------------------------------------------------------------------------------------------------


def measured(folder: Path, persons: int) -> dict[str, float]:
    found: dict[str, float] = {}
    for name in PHASES:
        command = [sys.executable, "-m", "benchmarks.growth", name, str(folder), str(persons)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found |= json.loads(done.stdout.splitlines()[-1])
    return found


def run() -> None:
    base = int(os.environ.get("OMNIGRAPH_BENCH_NODES", "20000"))
    sizes = [base * times for times in TIMES]
    columns = []
    for persons in sizes:
        with tempfile.TemporaryDirectory(dir=os.environ.get("OMNIGRAPH_BENCH_FOLDER")) as folder:
            columns.append(measured(Path(folder), persons))
        print(f"{persons:,} people: done; load average {os.getloadavg()[0]:.1f}", flush=True)
    print("\n| edges | " + " | ".join(f"{n * FOLLOWED:,}" for n in sizes) + " | last / first |")
    print("|---|" + "---:|" * (len(sizes) + 1))
    for name in columns[0]:
        cells = [
            f"{column[name]:,.3g}" if column[name] < 100 else f"{column[name]:,.0f}"
            for column in columns
        ]
        small, large = columns[0][name], columns[-1][name]
        ratio = f"{large / small:,.1f}" if small else "-"
        print(f"| {name} | " + " | ".join(cells) + f" | {ratio} |")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        phase, place, number = sys.argv[1:]
        print(json.dumps(dict(PHASES[phase](Path(place), int(number)))))
    else:
        run()
