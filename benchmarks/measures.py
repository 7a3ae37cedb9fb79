"""Measures of a whole graph, in process and on Spark: `python -m benchmarks measures`.

The size is that of the variables OMNIGRAPH_BENCH_EDGES (1,000,000) and OMNIGRAPH_BENCH_NODES (a tenth of that);
OMNIGRAPH_SPARK_MEMORY is Spark's heap. What is to hold: both planes measure the same.
"""

from __future__ import annotations

import os
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import omnigraph
from benchmarks.pipeline import FOLDER, _timed
from benchmarks.spark import SCHEMA, _knows, _people, _written
from omnigraph.pipeline.session import spark_session

MEASURES: dict[str, dict[str, Any]] = {
    "components": {},
    "labels": {"iterations": 5},
    "distances": {"sources": ["p5"]},
    "triangles": {},
    "pagerank": {"iterations": 5},
}
RANK_ERROR_MAX = 1e-12


def main() -> None:
    """Print one line for each measure and plane."""
    edges = int(os.environ.get("OMNIGRAPH_BENCH_EDGES", "1000000"))
    nodes = int(os.environ.get("OMNIGRAPH_BENCH_NODES", str(max(edges // 10, 1_000))))
    print(f"{nodes:,} nodes, {edges:,} edges", flush=True)
    session = spark_session(master=os.environ.get("OMNIGRAPH_BENCH_MASTER", "local[2]"))
    try:
        with tempfile.TemporaryDirectory(dir=os.environ.get(FOLDER)) as folder:
            _measure(_loaded(Path(folder), nodes, edges))
    finally:
        session.stop()


def _loaded(folder: Path, nodes: int, edges: int) -> omnigraph.Graph:
    source = {"P": str(folder / "people"), "K": str(folder / "knows")}
    _written(Path(source["P"]), _people(nodes))
    _written(Path(source["K"]), _knows(nodes, edges, hub=edges // 1_000))
    graph = omnigraph.init(folder / "graph", schema=SCHEMA)
    graph.load(source, "append", engine="spark")
    return graph


def _measure(graph: omnigraph.Graph) -> None:
    for name, how in MEASURES.items():
        found = []
        for engine in ("local", "spark"):
            asked = getattr(graph.analytics(engine=engine), name)
            measured, _ = _timed(f"{name}, {engine}", partial(asked, "P", ["K"], **how))
            found.append(measured.table["value"].to_pylist())
        assert _alike(name, *found), f"{name} differs between the planes"


def _alike(name: str, local: list[Any], on_spark: list[Any]) -> bool:
    if name != "pagerank":
        return local == on_spark
    return all(abs(a - b) <= RANK_ERROR_MAX for a, b in zip(local, on_spark, strict=True))


if __name__ == "__main__":
    main()
