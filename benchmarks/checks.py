"""Checks of a large graph, in process and on Spark: `python -m benchmarks checks`.

The size is that of the variables OMNIGRAPH_BENCH_EDGES (1,000,000) and OMNIGRAPH_BENCH_NODES (a tenth of that);
OMNIGRAPH_SPARK_MEMORY is Spark's heap, and OMNIGRAPH_BENCH_FOLDER names another place for the data than the system's.

Three checks read different parts of the same graph: one every edge with both of its ends, one the nodes alone, and one
compares the edges of two states. What is to hold: they find the same on both planes, what a check costs follows what
it reads, and a comparison of tables that did not change reads nothing, however large they are.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import omnigraph
from benchmarks.pipeline import FOLDER, _ratio, _timed
from benchmarks.spark import PORTION, _named, _people, _written
from omnigraph.pipeline.session import spark_session

SCHEMA = "node P { name: String @key  age: I32? }  node Team { name: String @key }  edge K: P -> P { w: F64? }"
CHECKS = """
query knows_itself() { match { $p: P  $p k $q  $p.name = $q.name } return { $p.name as name } }
query ageless() { match { $p: P  $p.age is null } return { $p.name as name } }
query edges_lost() @lost_rows("0") { match { $p: P  $p k $q } return { $p.name as one, $q.name as other } }
query teams_lost() @lost_rows("0") { match { $t: Team } return { $t.name as name } }
"""
TEAMS = 1_000
LOOPS = 25  # people who know themselves: what the first check finds
UNCHANGED_SHARE_MAX = 0.2  # of the seconds of the check that reads all edges


def main() -> None:
    """Print one line for each check and plane."""
    edges = int(os.environ.get("OMNIGRAPH_BENCH_EDGES", "1000000"))
    nodes = int(os.environ.get("OMNIGRAPH_BENCH_NODES", str(max(edges // 10, 1_000))))
    with tempfile.TemporaryDirectory(dir=os.environ.get(FOLDER)) as folder:
        _run(Path(folder), nodes, edges)


def _run(folder: Path, nodes: int, edges: int) -> None:
    people, knows = folder / "people", folder / "knows"
    _written(people, _people(nodes))
    _written(knows, _knows(nodes, edges))
    print(f"{nodes:,} nodes, {edges:,} edges", flush=True)
    session = spark_session(master=os.environ.get("OMNIGRAPH_BENCH_MASTER", "local[2]"))
    try:
        graph = omnigraph.init(folder / "graph", schema=SCHEMA)
        source = {"P": str(people), "K": str(knows)}
        _timed("validated load", lambda: graph.load(source, "append", engine="spark"))
        graph.apply_checks(CHECKS)
        graph.load({"Team": [{"name": f"t{n}"} for n in range(TEAMS)]}, engine="local")
        graph.load({"Team": [{"name": "one more"}]}, engine="local")  # the small difference
        _measure(graph)
    finally:
        session.stop()


def _measure(graph: omnigraph.Graph) -> None:
    found: dict[str, Any] = {}
    seconds: dict[tuple[str, str], float] = {}
    for engine in ("local", "spark"):
        for name in ("knows_itself", "ageless", "teams_lost", "edges_lost"):
            asked = lambda n=name, e=engine: graph.check(only=[n], engine=e, record=False)  # noqa: E731
            report, seconds[engine, name] = _timed(f"{name}, {engine}", asked)
            result = report.results[0]
            known = found.setdefault(name, (result.outcome, result.measured))
            assert known == (result.outcome, result.measured), f"{name} differs between the planes"
    assert found["knows_itself"] == ("failed", float(LOOPS)), found
    for engine in ("local", "spark"):
        whole, unchanged = seconds[engine, "knows_itself"], seconds[engine, "edges_lost"]
        _ratio(f"edges that did not change, {engine}", unchanged, whole, UNCHANGED_SHARE_MAX)


def _knows(nodes: int, edges: int) -> Any:
    """Edges from anybody to somebody else, and a few people who know themselves."""
    rng = np.random.default_rng(1)
    for start in range(0, edges, PORTION):
        count = min(PORTION, edges - start)
        sources = rng.integers(0, nodes, count)
        steps = rng.integers(1, nodes, count)
        if start == 0:
            steps[:LOOPS] = 0
            sources[:LOOPS] = np.arange(LOOPS)
        weights = pa.array(rng.random(count))
        yield pa.table(
            {"from": _named(sources), "to": _named((sources + steps) % nodes), "w": weights}
        )


if __name__ == "__main__":
    main()
