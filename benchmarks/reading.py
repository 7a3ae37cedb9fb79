"""The budgets of a query on a large network, beyond what the peer benchmark compares: `python -m benchmarks reading`.

The network of 100,000 persons and 2.4 million follows is loaded and optimized. Then: what a query costs at least, a
look-up before and after a thousand commits that nothing compacts, the first three-hop query of a new process with its
memory, and the first query after a commit of one edge. All through `Graph.query`, from text to Python values.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import omnigraph
from benchmarks.loading import SCHEMA, written
from benchmarks.peerbench.adapters.ours import QUERIES
from benchmarks.peerbench.gen import EDGES, NODES

SIZE = os.environ.get("OMNIGRAPH_BENCH", "M")
COMMITS = 1_000
CALLS = 300
PROCESSES = 7
SMALLEST = (
    'query smallest() { match { $c: Country { id: "0" } } return { $c.country as name } limit 1 }'
)
FOLLOW = "query follow($a: String, $b: String) { insert Follows { from: $a, to: $b, since: 2026 } }"
AGE = {"age": 30}


def milliseconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1e3


def say(what: str, value: float, unit: str, at_most: float | None = None) -> None:
    budget = "" if at_most is None else f"(at most {at_most:g})"
    missed = "  MISSED" if at_most is not None and value > at_most else ""
    print(f"{what:<62} {value:9.2f} {unit:<3} {budget}{missed}", flush=True)


def lookups(graph: omnigraph.Graph) -> float:
    """The median of look-ups by key, warm."""

    def one(i: int) -> list[dict[str, Any]]:
        return graph.query(QUERIES["point"], {"person": str(i * 331 % 9_000)}).rows

    spent = [milliseconds(partial(one, i)) for i in range(CALLS)]
    return statistics.median(spent[CALLS // 3 :])


def commit_much(graph: omnigraph.Graph) -> None:
    """Commits that touch the persons looked up and the edges between them, one row each."""
    text = "query older($p: String) { update Person set { age: 44 } where id = $p }"
    for i in range(COMMITS):
        if i % 2:
            graph.mutate(text, {"p": str(i * 7 % 9_000)})
        else:
            graph.mutate(FOLLOW, {"a": str(i), "b": str(i * 3 % 9_000)})


def after_a_commit(graph: omnigraph.Graph) -> tuple[float, float]:
    """What the first two-hop query takes after a commit of one edge, and one that has nothing new to learn."""
    first, again = [], []
    for i in range(30):
        graph.mutate(FOLLOW, {"a": str(i), "b": str(i + 50)})
        ask = lambda i=i: graph.query(QUERIES["hop2"], {"person": str(i), **AGE}).rows  # noqa: E731
        first.append(milliseconds(ask))
        again.append(milliseconds(ask))
    return statistics.median(first), statistics.median(again)


# --- new processes -------------------------------------------------------------------------------------------------


def first_query(uri: str) -> None:
    """In a process of its own: open the graph, ask, and tell how long the first question took."""
    graph = omnigraph.open(uri)
    ask = lambda: graph.query(QUERIES["hop3"], {"person": "4711", **AGE}).rows  # noqa: E731
    spent = milliseconds(ask)
    print(json.dumps({"ms": spent, "mb": peak_megabytes()}))


def peak_megabytes() -> float:
    """Of this program alone: what `getrusage` tells has that of the process it was forked from in it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def in_new_process(uri: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.reading", uri]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


# --- the report ----------------------------------------------------------------------------------------------------


def run() -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "files"
        written(files, SIZE)
        uri = str(Path(folder) / "graph")
        graph = omnigraph.init(uri, schema=SCHEMA)
        tables = {name: files / f"{name}.parquet" for name in (*NODES, *EDGES)}
        graph.load(tables, mode="append", engine="local")
        graph.optimize()
        report(uri)


def report(uri: str) -> None:
    cold = [in_new_process(uri) for _ in range(PROCESSES)]
    say("first 3-hop query of a process", statistics.median(c["ms"] for c in cold), "ms", 60)
    say("  memory of that process at its peak", max(c["mb"] for c in cold), "MB", 600)
    graph = omnigraph.open(uri)
    spent = [milliseconds(lambda: graph.query(SMALLEST).rows) for _ in range(CALLS)]
    say("the smallest query there is", statistics.median(spent), "ms", 0.5)
    before = lookups(graph)
    say("look-up by key", before, "ms", 1)
    first, again = after_a_commit(graph)
    say("2-hop query, first after a commit of one edge", first, "ms")
    say("  more than the next one, which extends no topology", first - again, "ms", 5)
    commit_much(graph)
    after = lookups(omnigraph.open(uri))
    say(f"look-up by key after {COMMITS} commits", after, "ms")
    say("  ratio", after / before, "", 1.5)


if __name__ == "__main__":
    first_query(sys.argv[1])
