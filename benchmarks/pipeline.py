"""The data pipeline on Spark beside plain Spark: `python -m benchmarks pipeline`.

One graph of people who know each other, as NDJSON. OMNIGRAPH_BENCH_PEOPLE scales it (default 100,000 people and five
times as many edges; the figures of the guide are for 1,000,000). Every figure of ours stands beside what Spark itself
needs, in the same session, to read the same files and write Parquet.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.pipeline.session import spark_session

PEOPLE = int(os.environ.get("OMNIGRAPH_BENCH_PEOPLE", "100000"))
EDGES_EACH = 5
SAMPLE_SECONDS = 0.05
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


def main() -> None:
    """Print one line for each figure."""
    with tempfile.TemporaryDirectory() as folder:
        _run(Path(folder))


def _run(folder: Path) -> None:
    nodes, edges = folder / "people.jsonl", folder / "knows.jsonl"
    _write(nodes, edges, PEOPLE, PEOPLE * EDGES_EACH)
    size = (nodes.stat().st_size + edges.stat().st_size) / 1e6
    print(f"{PEOPLE:,} people, {PEOPLE * EDGES_EACH:,} edges, {size:,.0f} MB of NDJSON")
    session = _timed("start of a quiet local session", lambda: spark_session(master="local[*]"))[0]
    try:
        _load(folder, session, [str(nodes), str(edges)])
        _memory(folder)
    finally:
        session.stop()


def _load(folder: Path, session: Any, files: list[str]) -> None:
    plain = [_parquet(session, files, folder / f"parquet{i}") for i in range(2)][-1]
    graphs = [omnigraph.init(folder / name, schema=SCHEMA) for name in ("warm", "graph")]
    ours = [_loaded(graph, files) for graph in graphs][-1]
    graph = graphs[-1]
    _ratio("load on Spark / Spark's NDJSON to Parquet", ours, plain, 1.0)
    local = omnigraph.init(folder / "local", schema=SCHEMA)
    _timed("the same load in process", lambda: _each(local, files))
    changed = folder / "changed.jsonl"
    count = max(1, PEOPLE // 10)
    changed.write_text("".join(_person(i, age=77) for i in range(0, count * 2, 2)))
    _timed(
        f"merge load of {count:,} changed people",
        lambda: graph.load([str(changed)], mode="merge", engine="spark"),
    )
    out = _timed(
        "export to Parquet on Spark",
        lambda: graph.export(folder / "out", "parquet", engine="spark"),
    )[1]
    copy = _timed("Spark's copy of the same Parquet", lambda: _copy(session, folder))[1]
    _ratio("export / copy", out, copy, 1.2)


def _loaded(graph: omnigraph.Graph, files: list[str]) -> float:
    def work() -> None:
        graph.load(files, mode="append", engine="spark")

    return _timed("validated load on Spark", work)[1]


def _each(graph: omnigraph.Graph, files: list[str]) -> None:
    for file in files:
        graph.load(file, mode="append", engine="local")


def _memory(folder: Path) -> None:
    """The largest Python worker at three sizes of input."""
    for edges in (PEOPLE, PEOPLE * EDGES_EACH, PEOPLE * EDGES_EACH * 4):
        files = [folder / "m-people.jsonl", folder / "m-knows.jsonl"]
        _write(files[0], files[1], PEOPLE, edges)
        graph = omnigraph.init(folder / f"memory-{edges}", schema=SCHEMA)
        started = time.perf_counter()
        with _watched() as peak:
            graph.load([str(file) for file in files], mode="append", engine="spark")
        rate = (PEOPLE + edges) / (time.perf_counter() - started)
        print(
            f"{edges:>12,} edges: {rate:,.0f} rows/s, largest task {max(peak, default=0):,.0f} MB"
        )


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


def _write(nodes: Path, edges: Path, people: int, count: int) -> None:
    rng = random.Random(1)
    with nodes.open("w") as file:
        file.writelines(_person(i) for i in range(people))
    with edges.open("w") as file:
        for i in range(count):
            a, b = rng.randrange(people), rng.randrange(people)
            file.write(
                f'{{"edge": "Knows", "from": "p{a}@example.org", "to": "p{b}@example.org", '
                f'"data": {{"since": {1950 + i % 70}, "weight": {i % 10 / 10}}}}}\n'
            )


def _parquet(session: Any, files: list[str], out: Path) -> float:
    def convert() -> None:
        for file in files:
            frame = session.read.json(file)
            frame.write.mode("overwrite").parquet(str(out / Path(file).stem))

    return _timed("Spark's NDJSON to Parquet", convert)[1]


def _copy(session: Any, folder: Path) -> None:
    for kind in ("node-Person", "edge-Knows"):
        frame = session.read.parquet(str(folder / "out" / f"{kind}-*.parquet"))
        frame.write.mode("overwrite").parquet(str(folder / "copy" / kind))


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
    """Resident megabytes of the largest Python worker, sampled."""
    seen: list[float] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(SAMPLE_SECONDS):
            seen.extend(_workers())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def _workers() -> Iterator[float]:
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and b"pyspark.daemon" in (entry / "cmdline").read_bytes():
                pages = int((entry / "statm").read_text().split()[1])
                yield pages * os.sysconf("SC_PAGE_SIZE") / 1e6
        except OSError:
            continue


if __name__ == "__main__":
    main()
