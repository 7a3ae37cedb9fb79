"""The data pipeline on Spark beside plain Spark: `python -m benchmarks pipeline`.

One graph of people who know each other, as NDJSON, in one of two sizes: OMNIGRAPH_BENCH=quick (the default: 50,000
people and 250,000 edges, a few minutes) or full (1,000,000 people and 5,000,000 edges; memory is watched up to
20,000,000 edges). OMNIGRAPH_BENCH_FOLDER names another place for the data than the system's.
Every figure of ours stands beside what Spark itself needs, in the same session and with the same settings, to read the
same files and write Parquet; the two take turns, and the better of two runs counts.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.pipeline.session import spark_session

SIZE = "OMNIGRAPH_BENCH"
FOLDER = "OMNIGRAPH_BENCH_FOLDER"
SAMPLE_SECONDS = 0.05
RUNS = 2
LOAD_RATIO_MAX, EXPORT_RATIO_MAX, MEMORY_RATIO_MAX = 1.0, 1.2, 1.3
SCHEMA = """
node Person {
    email: String @key
    name: String
    age: I32?
    city: enum(Paris, Rome, Oslo, Lima)?
    score: F64?
    @range(age, 0..150)
    @check(email, "^[^@]+@[^@]+$")
}
edge Knows: Person -> Person { since: I32?  weight: F64?  @range(weight, 0..1) }
"""
CITIES = ("Paris", "Rome", "Oslo", "Lima")


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured."""

    people: int
    edges: int
    changed: int  # edges merged into all
    watched: tuple[int, ...]  # edges of the loads whose memory is watched


SIZES = {
    "quick": Size(50_000, 250_000, 10_000, (50_000, 250_000, 1_000_000)),
    "full": Size(1_000_000, 5_000_000, 100_000, (1_000_000, 5_000_000, 20_000_000)),
}


def main() -> None:
    """Print one line for each figure."""
    name = os.environ.get(SIZE, "quick")
    if name not in SIZES:
        raise SystemExit(f"{SIZE} is one of {', '.join(SIZES)}, not {name!r}")
    with tempfile.TemporaryDirectory(dir=os.environ.get(FOLDER)) as folder:
        _run(Path(folder), SIZES[name])


def _run(folder: Path, size: Size) -> None:
    files = _write(folder, size.people, size.edges)
    megabytes = sum(Path(file).stat().st_size for file in files) / 1e6
    print(f"{size.people:,} people, {size.edges:,} edges, {megabytes:,.0f} MB of NDJSON")
    session = _timed("start of a quiet local session", lambda: spark_session(master="local[*]"))[0]
    try:
        graph = _load(folder, session, files)
        _merge(folder, graph, size.changed)
        _export(folder, session, graph)
        _delete(folder)
        _memory(folder, size)
    finally:
        session.stop()


def _load(folder: Path, session: Any, files: list[str]) -> omnigraph.Graph:
    """Both convert the same files, taking turns, so that neither pays for warming up alone."""
    theirs: list[float] = []
    ours: list[float] = []
    for number in range(RUNS):
        theirs.append(_parquet(session, files, folder / f"parquet{number}"))
        graph = omnigraph.init(folder / f"graph{number}", schema=SCHEMA)
        ours.append(_loaded(graph, files))
    _ratio("load on Spark / Spark's NDJSON to Parquet", min(ours), min(theirs), LOAD_RATIO_MAX)
    local = omnigraph.init(folder / "local", schema=SCHEMA)
    work = lambda: local.load(files, mode="append", engine="local")  # noqa: E731
    _timed("the same load in process", work)
    return graph


def _merge(folder: Path, graph: omnigraph.Graph, count: int) -> None:
    """Change stored edges, which are named by their ids."""
    snapshot = graph.snapshot()
    table = snapshot.table_of(snapshot.catalog.edges["Knows"])
    changed = folder / "changed.jsonl"
    with changed.open("w") as file:
        for row in table.scan(["id", "src", "dst"], limit=count).to_pylist():
            data = {"id": row["id"], "weight": 0.5}
            record = {"edge": "Knows", "from": row["src"], "to": row["dst"], "data": data}
            file.write(json.dumps(record) + "\n")
    load = lambda: graph.load([str(changed)], mode="merge", engine="spark")  # noqa: E731
    _timed(f"merge load of {count:,} rows into {table.count():,}", load)


def _export(folder: Path, session: Any, graph: omnigraph.Graph) -> None:
    ours: list[float] = []
    theirs: list[float] = []
    for number in range(RUNS):
        out = folder / f"out{number}"
        write = lambda out=out: graph.export(out, "parquet", engine="spark")  # noqa: E731
        ours.append(_timed("export to Parquet on Spark", write)[1])
        copy = lambda out=out: _copy(session, out, folder / "copy")  # noqa: E731
        theirs.append(_timed("Spark's copy of the same Parquet", copy)[1])
    _ratio("export / copy", min(ours), min(theirs), EXPORT_RATIO_MAX)


def _loaded(graph: omnigraph.Graph, files: list[str]) -> float:
    work = lambda: graph.load(files, mode="append", engine="spark")  # noqa: E731
    return _timed("validated load on Spark", work)[1]


def _memory(folder: Path, size: Size) -> None:
    """The largest Python worker and the driver, for growing inputs."""
    peaks: list[float] = []
    for edges in size.watched:
        files = _write(folder, size.people, edges)
        graph = omnigraph.init(folder / "memory", schema=SCHEMA)
        started = time.perf_counter()
        with _watched() as seen:
            graph.load(files, mode="append", engine="spark")
        rate = (size.people + edges) / (time.perf_counter() - started)
        peaks.append(max(seen, default=0))
        driver = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        print(
            f"{edges:>12,} edges: {rate:>9,.0f} rows/s, largest task {peaks[-1]:,.0f} MB,"
            f" driver so far {driver:,.0f} MB",
            flush=True,
        )
        _delete(folder)
    _ratio("memory of a task, largest / smallest input", max(peaks), peaks[0], MEMORY_RATIO_MAX)


def _delete(folder: Path) -> None:
    """Make room: the figures are taken, the data is not needed any more."""
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


# --- data and plain Spark ------------------------------------------------------------------------------------------


def _person(number: int, **more: Any) -> str:
    data = {
        "email": f"p{number}@example.org",
        "name": f"Person {number}",
        "age": number % 100,
        "city": CITIES[number % 4],
        "score": number / 7,
    }
    return json.dumps({"type": "Person", "data": data | more}) + "\n"


def _write(folder: Path, people: int, count: int) -> list[str]:
    """The records of a graph, in two files."""
    rng = random.Random(1)
    nodes, edges = folder / "people.jsonl", folder / "knows.jsonl"
    with nodes.open("w") as file:
        file.writelines(_person(i) for i in range(people))
    with edges.open("w") as file:
        for i in range(count):
            a, b = rng.randrange(people), rng.randrange(people)
            file.write(
                f'{{"edge": "Knows", "from": "p{a}@example.org", "to": "p{b}@example.org", '
                f'"data": {{"since": {1950 + i % 70}, "weight": {i % 10 / 10}}}}}\n'
            )
    return [str(nodes), str(edges)]


def _parquet(session: Any, files: list[str], out: Path) -> float:
    def convert() -> None:
        for file in files:
            frame = session.read.json(file)
            frame.write.mode("overwrite").parquet(str(out / Path(file).stem))

    return _timed("Spark's NDJSON to Parquet", convert)[1]


def _copy(session: Any, out: Path, to: Path) -> None:
    for kind in ("node-Person", "edge-Knows"):
        frame = session.read.parquet(str(out / f"{kind}-*.parquet"))
        frame.write.mode("overwrite").parquet(str(to / kind))


# --- measuring -----------------------------------------------------------------------------------------------------


def _timed(name: str, work: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    found = work()
    seconds = time.perf_counter() - started
    print(f"{name:<48}{seconds:8.2f} s", flush=True)
    return found, seconds


def _ratio(name: str, ours: float, theirs: float, budget: float) -> None:
    missed = "" if ours <= budget * theirs else f"   MISSED: at most {budget}"
    print(f"{name:<48}{ours / theirs:8.2f} x{missed}", flush=True)


@contextmanager
def _watched() -> Iterator[list[float]]:
    """Resident megabytes of Python workers, sampled."""
    seen: list[float] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(SAMPLE_SECONDS):
            seen[:] = [max([*seen, *_workers()], default=0.0)]

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def _workers() -> Iterator[float]:
    """The workers of this process alone; others may run Spark beside it."""
    for pid in _below(os.getpid()):
        entry = Path("/proc") / str(pid)
        try:
            if b"pyspark.daemon" in (entry / "cmdline").read_bytes():
                pages = int((entry / "statm").read_text().split()[1])
                yield pages * os.sysconf("SC_PAGE_SIZE") / 1e6
        except OSError:
            continue


def _below(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue
        for child in map(int, children):
            yield child
            yield from _below(child)


if __name__ == "__main__":
    main()
