"""A large graph on Spark, phase by phase: `python -m benchmarks spark`.

The size is that of the variables OMNIGRAPH_BENCH_NODES (200,000), OMNIGRAPH_BENCH_EDGES (2,000,000) and
OMNIGRAPH_BENCH_HUB (the edges into one node, a fiftieth of all), PageRank makes OMNIGRAPH_BENCH_ITERATIONS (2); the
rows are Parquet. The session is the quiet local one without any setting; OMNIGRAPH_SPARK_MEMORY is its heap. What is to
hold: verifying takes no longer than staging, a small load into the large graph at most 15 seconds by every way in, the
driver stays below a gigabyte. At last a new process asks for two hops without Spark, before anything was optimised.
"""

from __future__ import annotations

import os
import resource
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
from benchmarks.pipeline import _ratio, _texts, _timed, _watched
from omnigraph.pipeline.session import spark_session

SCHEMA = "node P { name: String @key  age: I32? }  edge K: P -> P { w: F64? }"
PORTION = 1_000_000
SMALL_ROWS = 1_000
SMALL_SECONDS_MAX = 15.0
DRIVER_MEGABYTES_MAX = 1_000
ITERATIONS = 2
QUERIES = {
    "count": "query q() { match { $p: P } return { count(*) as n } }",
    "two hops": 'query q() { match { $p: P { name: "p5" } $p k $x $x k $y } return { count(*) as n } }',
    "oldest": "query q() { match { $p: P } return { $p.name, $p.age } order { $p.age desc } limit 5 }",
}


def main() -> None:
    """Print one line for each phase."""
    nodes = int(os.environ.get("OMNIGRAPH_BENCH_NODES", "200000"))
    edges = int(os.environ.get("OMNIGRAPH_BENCH_EDGES", "2000000"))
    hub = int(os.environ.get("OMNIGRAPH_BENCH_HUB", str(edges // 50)))
    with tempfile.TemporaryDirectory(dir=os.environ.get("OMNIGRAPH_BENCH_FOLDER")) as folder:
        _run(Path(folder), nodes, edges, hub)


def _run(folder: Path, nodes: int, edges: int, hub: int) -> None:
    source = {"P": str(folder / "people"), "K": str(folder / "knows")}
    _written(Path(source["P"]), _people(nodes))
    _written(Path(source["K"]), _knows(nodes, edges, hub))
    print(f"{nodes:,} nodes, {edges:,} edges, {hub:,} of them into one node", flush=True)
    session = spark_session(master="local[*]")
    try:
        _phases(session, folder, source, nodes)
    finally:
        session.stop()
    command = [sys.executable, "-m", "benchmarks.spark", str(folder / "graph")]
    subprocess.run(command, check=True)


def _phases(session: Any, folder: Path, source: dict[str, str], nodes: int) -> None:
    graph = omnigraph.init(folder / "graph", schema=SCHEMA)
    phases, iterations = _Phases(), int(os.environ.get("OMNIGRAPH_BENCH_ITERATIONS", "2"))
    _measured(
        "validated load", lambda: graph.load(source, "append", engine="spark", progress=phases)
    )
    staged, verified = phases.seconds()
    print(f"{'':4}staging {staged:.1f} s, verifying {verified:.1f} s")
    print(f"{'':4}{graph.log(limit=1)[0].load}")
    print(
        f"{'':4}{_size(folder / 'graph')}, of {_size(folder / 'people')} + {_size(folder / 'knows')}"
    )
    _ratio("verifying / staging", verified, staged, 1.0)
    _small(session, graph, nodes)
    _measured("export to Parquet", lambda: graph.export(folder / "out", "parquet", engine="spark"))
    for name, text in QUERIES.items():
        _measured(f"query: {name}", partial(graph.query, text, engine="spark"))
    ranks = lambda: graph.analytics(engine="spark").pagerank("P", ["K"], iterations=iterations)  # noqa: E731
    _measured(f"PageRank, {iterations} iterations", ranks)
    driver = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    _ratio("driver's megabytes / a thousand", driver, DRIVER_MEGABYTES_MAX, 1.0)


def _measured(name: str, work: Callable[[], Any]) -> float:
    with _watched() as peaks:
        seconds = _timed(name, work)[1]
    print(f"{'':4}{peaks}", flush=True)
    return seconds


def _size(folder: Path) -> str:
    sizes = [file.stat().st_size for file in folder.rglob("*") if file.is_file()]
    return f"{sum(sizes) / 1e6:,.0f} MB in {len(sizes):,} files"


def _first_hops(place: str) -> None:
    """In a process of its own, on a graph nothing was done to since the loads."""
    graph = omnigraph.open(place)
    for name in ("first", "second"):
        _timed(f"local engine, {name} two hops", lambda: graph.query(QUERIES["two hops"]))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        print(f"{'':4}{peak:,.0f} MB", flush=True)


class _Phases:
    """When a load began to stage, to verify, and was done."""

    def __init__(self) -> None:
        self.at = [time.perf_counter()]

    def __call__(self, phase: str, *_: int) -> None:
        if phase == "verify":
            self.at.append(time.perf_counter())

    def seconds(self) -> tuple[float, float]:
        began, staged, verified = self.at[:3]
        return staged - began, verified - staged


def _small(session: Any, graph: omnigraph.Graph, nodes: int) -> None:
    """A thousand rows into the large graph, by every way in."""
    from omnigraph.pipeline.source import OmnigraphSource

    OmnigraphSource.register(session)
    numbers = session.range(SMALL_ROWS)
    edges = numbers.selectExpr(f"concat('p', id * 7 % {nodes}) AS `from`", "'p1' AS `to`")
    people = numbers.selectExpr("concat('p', id) AS name", "CAST(id % 90 AS int) AS age")
    writer = edges.write.format("omnigraph").option("graph", graph.uri).option("type", "K")
    ways = {
        "edges appended": lambda: graph.load({"K": edges}, "append", engine="spark"),
        "nodes merged": lambda: graph.load({"P": people}, "merge", engine="spark"),
        "edges by the data source": lambda: writer.mode("append").save(),
    }
    for name, work in ways.items():
        seconds = _measured(f"{SMALL_ROWS:,} {name}", work)
        _ratio(f"seconds of {name} / {SMALL_SECONDS_MAX:.0f}", seconds, SMALL_SECONDS_MAX, 1.0)


# --- rows ------------------------------------------------------------------------------------------------------------


def _people(count: int) -> Iterator[pa.Table]:
    for start in range(0, count, PORTION):
        numbers = np.arange(start, min(count, start + PORTION))
        ages = pa.array((numbers % 90).astype(np.int32))
        yield pa.table({"name": _named(numbers), "age": ages})


def _knows(nodes: int, count: int, hub: int) -> Iterator[pa.Table]:
    rng = np.random.default_rng(1)
    for start in range(0, count, PORTION):
        numbers = np.arange(start, min(count, start + PORTION))
        ends = np.where(numbers < hub, 0, rng.integers(0, nodes, len(numbers)))
        sources = rng.integers(0, nodes, len(numbers))
        weights = pa.array(rng.random(len(numbers)))
        yield pa.table({"from": _named(sources), "to": _named(ends), "w": weights})


def _named(numbers: Any) -> pa.Array:
    import pyarrow.compute as pc

    return pc.binary_join_element_wise("p", _texts(numbers), "")


def _written(folder: Path, portions: Iterator[pa.Table]) -> None:
    folder.mkdir()
    for number, table in enumerate(portions):
        pq.write_table(table, folder / f"part-{number:05}.parquet")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _first_hops(sys.argv[1])
    else:
        main()
