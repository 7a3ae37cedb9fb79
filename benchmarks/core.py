"""What a commit costs: by history, by writers, by tables, with and without fsync.

Budgets: a commit at depth 1,000 takes at most 1.2 times as long as at depth 10; creating a branch of 200 tables takes
at most 1.3 times as long as one of 5. A commit here inserts one edge after checking both of its ends.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from tests.support import s3server
from tests.support.worlds import SCHEMA, add_knows, add_person

from omnigraph.graph import Graph, init, open_graph

RUNS = 60
WRITERS = (1, 2, 4, 8)
COMMITS = 50  # of each writer
DEPTHS = (10, 1000)
WIDTHS = (5, 200)
DEPTH_RATIO_MAX = 1.2
WIDTH_RATIO_MAX = 1.3


@dataclass(frozen=True, slots=True)
class Place:
    """A store to measure on."""

    name: str
    root: str

    def uri(self, name: str) -> str:
        return f"{self.root}/{name}"


@contextlib.contextmanager
def places() -> Iterator[list[Place]]:
    """A local disk, and a real S3 server if there is one to start."""
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        local = Place("local disk", f"{folder}/local")
        if s3server.weed_binary() is None:
            print(f"without S3: {s3server.MISSING}")
            yield [local]
            return
        data = Path(folder, "weed")
        data.mkdir()
        with s3server.running(data) as address:
            os.environ.update(address.environment())
            yield [local, Place("S3 (SeaweedFS)", address.uri("bench"))]


def new_graph(uri: str, tables: int = 3) -> Graph:
    more = (f"node Extra{i} {{ name: String @key }}" for i in range(tables - 3))
    graph = init(uri, schema=SCHEMA + "\n".join(more))
    for name in ("ann", "bob"):
        graph.publish(add_person(name))
    return graph


def line(label: str, *cells: str) -> None:
    print(f"{label:<44}" + "".join(f"{cell:>14}" for cell in cells))


def verdict(ratio: float, limit: float) -> str:
    return f"{ratio:.2f} {'ok' if ratio <= limit else f'OVER {limit}'}"


@dataclass(slots=True)
class Times:
    """Milliseconds of every run: on the clock, and of processor time, which busy neighbours do not lengthen."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def measure(self, work: Callable[[], object]) -> None:
        start, busy = time.perf_counter(), time.process_time()
        work()
        self.wall.append((time.perf_counter() - start) * 1e3)
        self.cpu.append((time.process_time() - busy) * 1e3)

    def cells(self) -> tuple[str, str, str]:
        late = sorted(self.wall)[int(len(self.wall) * 0.95)]
        median, cpu = statistics.median(self.wall), statistics.median(self.cpu)
        return f"{median:.2f} ms", f"{late:.2f} ms", f"{cpu:.2f} ms"


def take_turns(contenders: Mapping[str, Callable[[], object]]) -> list[float]:
    """Print how long each takes, and return the medians. They take turns, so that all meet the same machine."""
    times = {label: Times() for label in contenders}
    for _ in range(RUNS):
        for label, work in contenders.items():
            times[label].measure(work)
    for label, found in times.items():
        line(label, *found.cells())
    return [statistics.median(found.wall) for found in times.values()]


# --- depth of history ----------------------------------------------------------------------------------------------


def deep_graph(place: Place, depth: int) -> Callable[[], None]:
    """A commit of one edge to a graph that has `depth` such commits already, never compacted."""
    graph, numbers = new_graph(place.uri(f"deep{depth}")), count()

    def commit() -> None:
        graph.publish(add_knows(f"e{next(numbers)}", "ann", "bob"))

    while graph.snapshot().commit.number < depth:
        commit()
    return commit


def by_depth(place: Place) -> None:
    graphs = {
        f"{place.name}: commit at depth {depth:,}": deep_graph(place, depth) for depth in DEPTHS
    }
    few, many = take_turns(graphs)
    line("  ratio", verdict(many / few, DEPTH_RATIO_MAX))


# --- writers -------------------------------------------------------------------------------------------------------


def write_edges(graph: Graph, writer: str, commits: int) -> float:
    """How long the slowest of these commits took."""
    slowest = 0.0
    for number in range(commits):
        start = time.perf_counter()
        graph.publish(add_knows(f"{writer}-{number}", "ann", "bob"))
        slowest = max(slowest, time.perf_counter() - start)
    return slowest


@dataclass(frozen=True, slots=True)
class Rate:
    """Commits per second of some writers, and how long the slowest of all commits took."""

    per_second: float
    slowest: float

    def __str__(self) -> str:
        return f"{self.per_second:,.0f}/s ({self.slowest:.2f})"


def in_threads(uri: str, writers: int, *, grouping: bool) -> Rate:
    """Threads that share one graph."""
    graph = open_graph(uri, group_commit=grouping)
    graph.publish(add_knows(f"warm-{time.time_ns()}", "ann", "bob"))
    start = time.perf_counter()
    with ThreadPoolExecutor(writers) as pool:
        tag = time.time_ns()
        jobs = [pool.submit(write_edges, graph, f"t{tag}-{i}", COMMITS) for i in range(writers)]
        slowest = max(job.result() for job in jobs)
    return Rate(writers * COMMITS / (time.perf_counter() - start), slowest)


def process_main(uri: str, writer: str, ready: Any, go: Any, slowest: Any) -> None:
    """One writing process: opens, warms up, waits for the others, writes."""
    graph = open_graph(uri)
    write_edges(graph, f"{writer}-warm", 1)
    ready.release()
    go.wait()
    slowest.put(write_edges(graph, writer, COMMITS))


def in_processes(uri: str, writers: int) -> Rate:
    """Processes that know nothing of each other."""
    spawning = multiprocessing.get_context("spawn")
    ready, go, slowest = spawning.Semaphore(0), spawning.Event(), spawning.Queue()
    tag = time.time_ns()
    children = [
        spawning.Process(target=process_main, args=(uri, f"p{tag}-{i}", ready, go, slowest))
        for i in range(writers)
    ]
    for child in children:
        child.start()
    for _ in children:
        ready.acquire()
    start = time.perf_counter()
    go.set()
    longest = max(slowest.get() for _ in children)
    spent = time.perf_counter() - start
    for child in children:
        child.join()
    return Rate(writers * COMMITS / spent, longest)


def by_writers(place: Place) -> None:
    """All on one branch and one table."""
    uri = place.uri("writers")
    new_graph(uri)
    for writers in WRITERS:
        rates = [
            in_threads(uri, writers, grouping=True),
            in_threads(uri, writers, grouping=False),
            in_processes(uri, writers),
        ]
        line(f"{place.name}: {writers} writer(s)", *(str(rate) for rate in rates))


# --- tables --------------------------------------------------------------------------------------------------------


def wide_graph(place: Place, tables: int) -> Callable[[], None]:
    """The creation of a branch of a graph with this many tables."""
    graph, numbers = new_graph(place.uri(f"wide{tables}"), tables), count()
    return lambda: graph.create_branch(f"b{next(numbers)}")


def by_tables(place: Place) -> None:
    graphs = {
        f"{place.name}: create a branch of {tables} tables": wide_graph(place, tables)
        for tables in WIDTHS
    }
    few, many = take_turns(graphs)
    line("  ratio", verdict(many / few, WIDTH_RATIO_MAX))


# --- fsync ---------------------------------------------------------------------------------------------------------


def by_fsync(place: Place) -> None:
    commits: dict[str, Callable[[], object]] = {}
    for setting, label in (("1", "with fsync"), ("0", "without fsync")):
        os.environ["OMNIGRAPH_FSYNC"] = setting
        inside = Place(place.name, place.uri(f"fsync{setting}"))
        commits[f"{place.name}: commit {label}"] = deep_graph(inside, 10)
    del os.environ["OMNIGRAPH_FSYNC"]
    take_turns(commits)


def run() -> None:
    """Print the table."""
    with places() as stores:
        line("", "median", "95 %", "CPU")
        for place in stores:
            by_depth(place)
        for place in stores:
            by_tables(place)
        by_fsync(stores[0])
        print()
        line("commits per second (slowest, s)", "grouped", "not grouped", "processes")
        for place in stores:
            by_writers(place)


if __name__ == "__main__":
    run()
