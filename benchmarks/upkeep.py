"""What keeping a graph in order costs: requests to remove history, and a server under steady writes that stays flat.

The second part starts `omnigraph serve`, sends it every write and look-up, and nothing else maintains the graph:
`python -m benchmarks.upkeep steady` runs it alone.

Budget: removing all but ten of 10,000 commits takes fewer than 500 requests on a store that deletes in bulk. Under
steady writes with maintenance in the background, the time of a look-up and the bytes on disk are in the last quarter at
most twice what they were in the second; fragments and rows no index knows stay below what makes maintenance due.

`OMNIGRAPH_BENCH_COMMITS` (10000) and `OMNIGRAPH_BENCH_MINUTES` (30) say how much of it.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from tests.support.worlds import add_knows

import omnigraph
from benchmarks.core import Place, line, new_graph, places, verdict
from benchmarks.server import Running, serving
from omnigraph.graph import open_graph
from omnigraph.storage import metrics
from omnigraph.write.maintain import backlog

KEPT = 10
REQUESTS_MAX = 500
GROWTH_MAX = 2.0
LOOKUPS = 20
SAMPLES = 12
LISTED = 100_000
WRITES_PER_SECOND = 20


def setting(name: str, otherwise: float) -> float:
    return float(os.environ.get(f"OMNIGRAPH_BENCH_{name}", otherwise))


# --- removing history ----------------------------------------------------------------------------------------------


def by_history(place: Place) -> None:
    commits = int(setting("COMMITS", 10_000))
    graph = new_graph(place.uri("history"))
    for number in range(commits):
        graph.publish(add_knows(f"e{number}", "ann", "bob"))
    began = time.perf_counter()
    with metrics.operation("cleanup") as cost:
        done = graph.cleanup(keep=KEPT)
    seconds = time.perf_counter() - began
    budget = REQUESTS_MAX * max(1.0, commits / 10_000)
    line(
        f"{place.name}: clean {done.commits_pruned:,} commits",
        f"{done.objects_deleted:,} files",
        f"{cost.ops:,} requests",
        f"{seconds:.1f} s",
        verdict(cost.ops, budget) if place.root.startswith("s3:") else "",
    )


# --- steady writes -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sample:
    """How a graph is after a while."""

    fragments: int
    uncovered: int
    lookup_ms: float
    disk_bytes: int
    commits: int


def look(served: Any, folder: Path, commits: int) -> Sample:
    snapshot = open_graph(str(folder)).snapshot()
    table = snapshot.table_of(snapshot.catalog.nodes["Person"])
    text = "query q($name: String) { match { $p: Person { name: $name } } return { $p.age } }"
    times = []
    for number in range(LOOKUPS):
        began = time.perf_counter()
        served.query(text, {"name": f"p{number}"})
        times.append((time.perf_counter() - began) * 1e3)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return Sample(
        len(table.fragments()), backlog(snapshot).rows, statistics.median(times), size, commits
    )


def steadily(place: Place) -> None:
    """Twenty writes a second, each replacing one of a thousand people."""
    minutes = setting("MINUTES", 30)
    uri, number, samples = place.uri("steady"), 0, list[Sample]()
    new_graph(uri).set_retention(100, every_hours=max(0.001, minutes / 60 / SAMPLES / 2))
    with serving(uri) as server:
        served = omnigraph.open(f"http://{server.host}:{server.port}/graphs/default")
        began = time.monotonic()
        while (elapsed := time.monotonic() - began) < minutes * 60:
            served.load({"Person": [{"name": f"p{number % 1000}", "age": number % 100}]})
            number += 1
            if elapsed >= (len(samples) + 1) * minutes * 60 / SAMPLES:
                samples.append(look(served, Path(uri), number))
            time.sleep(max(0.0, number / WRITES_PER_SECOND - (time.monotonic() - began)))
        done = maintenance_metrics(server)
        listed = sum(1 for _ in served.log(limit=LISTED, maintenance=True))
        written = sum(1 for _ in served.log(limit=LISTED))
    for sample in samples:
        line(
            f"after {sample.commits:,} writes",
            f"{sample.fragments} fragm.",
            f"{sample.uncovered:,} rows",
            f"{sample.lookup_ms:.2f} ms",
            f"{sample.disk_bytes / 1e6:.1f} MB",
        )
    quarter = len(samples) // 4
    early, late = samples[quarter : 2 * quarter], samples[-quarter:]
    for name in ("disk_bytes", "lookup_ms"):
        means = [statistics.mean(getattr(each, name) for each in part) for part in (early, late)]
        line(f"  {name}: last quarter / second", verdict(means[1] / means[0], GROWTH_MAX))
    print(f"commits: {written:,} by the writer, {listed - written:,} by maintenance")
    for text in done:
        print(text)


def maintenance_metrics(server: Running) -> list[str]:
    """What `/metrics` says about maintenance."""
    with urlopen(f"http://{server.host}:{server.port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return [text for text in lines if text.startswith("omnigraph_maintenance")]


def run() -> None:
    """Print the table."""
    with places() as stores:
        for place in stores if sys.argv[1:] != ["steady"] else ():
            by_history(place)
        print()
        line("", "fragments", "not indexed", "look-up", "disk")
        steadily(stores[0])


if __name__ == "__main__":
    run()
