"""The data pipeline on Spark beside plain Spark: `python -m benchmarks pipeline`.

One graph of people who know each other, as NDJSON, in one of two sizes: OMNIGRAPH_BENCH=quick (the default: 50,000
people and 250,000 edges, a few minutes) or full (1,000,000 people and 5,000,000 edges; memory is watched up to
20,000,000 edges). OMNIGRAPH_BENCH_FOLDER names another place for the data than the system's.
Every figure of ours stands beside what Spark itself needs, in the same session and with the same settings, to read the
same files, whose schema it is told, and write Parquet. The two take turns, and the better of the runs counts. Processor
time is that of this process and all below it, Java and Python.
"""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import omnigraph
from omnigraph.pipeline.jvm_cds import archive_options
from omnigraph.pipeline.session import spark_session

SIZE = "OMNIGRAPH_BENCH"
FOLDER = "OMNIGRAPH_BENCH_FOLDER"
SAMPLE_SECONDS = 0.1
RUNS = 2
ROWS_AT_ONCE = 500_000
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
DDL = {
    "people": "type string, data struct<email string, name string, age int, city string, score double>",
    "knows": "edge string, `from` string, `to` string, data struct<since int, weight double>",
}


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
    found = "with its archive" if archive_options() else "without an archive"
    name = f"start of a quiet local session, {found}"
    session = _timed(name, lambda: spark_session(master="local[*]"))[0]
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
        convert = lambda: _parquet(session, files, folder / "parquet")  # noqa: E731
        theirs.append(_timed("Spark's NDJSON to Parquet", convert)[1])
        graph = omnigraph.init(folder / f"graph{number}", schema=SCHEMA)
        load = lambda graph=graph: graph.load(files, mode="append", engine="spark")  # noqa: E731
        ours.append(_timed("validated load on Spark", load)[1])
    _ratio("load / Spark's NDJSON to Parquet", min(ours), min(theirs), LOAD_RATIO_MAX)
    local = omnigraph.init(folder / "local", schema=SCHEMA)
    work = lambda: local.load(files, mode="append", engine="local")  # noqa: E731
    _timed("the same load in process", work)
    return graph


def _merge(folder: Path, graph: omnigraph.Graph, count: int) -> None:
    """Change stored edges, which are named by their ids."""
    snapshot = graph.snapshot()
    table = snapshot.table_of(snapshot.catalog.edges["Knows"])
    rows = table.scan(["id", "src", "dst"], limit=count)
    changed = folder / "changed.jsonl"
    with changed.open("wb") as file:
        _lines(
            file,
            *('{"edge": "Knows", "from": "', rows["src"], '", "to": "', rows["dst"]),
            *('", "data": {"id": "', rows["id"], '", "weight": 0.5}}'),
        )
    for run in ("first", "again"):
        load = lambda: graph.load(str(changed), mode="merge", engine="spark")  # noqa: E731
        _timed(f"merge load of {count:,} rows into {table.count():,}, {run}", load)


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


def _memory(folder: Path, size: Size) -> None:
    """The largest Python worker and the driver, for growing inputs."""
    peaks: list[float] = []
    for edges in size.watched:
        files = _write(folder, size.people, edges)
        graph = omnigraph.init(folder / "memory", schema=SCHEMA)
        work = lambda graph=graph, files=files: graph.load(  # noqa: E731
            files, mode="append", engine="spark"
        )
        with _watched() as seen:
            seconds = _timed(f"validated load of {size.people + edges:,} rows", work)[1]
        peaks.append(seen.task)
        driver = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        print(
            f"{'':4}{(size.people + edges) / seconds:,.0f} rows/s, largest task {peaks[-1]:,.0f} MB,"
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


def _write(folder: Path, people: int, edges: int) -> list[str]:
    """The records of a graph, in two files."""
    files = [folder / "people.jsonl", folder / "knows.jsonl"]
    rng = np.random.default_rng(1)
    with files[0].open("wb") as file:
        for numbers in _portions(people):
            _people(file, numbers)
    with files[1].open("wb") as file:
        for numbers in _portions(edges):
            ends = (rng.integers(0, people, len(numbers)) for _ in range(2))
            _knows(file, numbers, *ends)
    megabytes = sum(file.stat().st_size for file in files) / 1e6
    print(f"{people:,} people, {edges:,} edges, {megabytes:,.0f} MB of NDJSON", flush=True)
    return [str(file) for file in files]


def _portions(count: int) -> Iterator[Any]:
    for start in range(0, count, ROWS_AT_ONCE):
        yield np.arange(start, min(count, start + ROWS_AT_ONCE))


def _people(file: IO[bytes], numbers: Any) -> None:
    texts = _texts(numbers)
    cities = pa.array(CITIES).take(pa.array(numbers % len(CITIES)))
    _lines(
        file,
        *('{"type": "Person", "data": {"email": "p', texts, '@example.org", "name": "Person '),
        *(texts, '", "age": ', _texts(numbers % 100), ', "city": "', cities),
        *('", "score": ', _texts(numbers / 7 + 0.05), "}}"),
    )


def _knows(file: IO[bytes], numbers: Any, source: Any, target: Any) -> None:
    _lines(
        file,
        *('{"edge": "Knows", "from": "p', _texts(source), '@example.org", "to": "p'),
        *(_texts(target), '@example.org", "data": {"since": ', _texts(1950 + numbers % 70)),
        *(', "weight": ', _texts(numbers % 10 / 10 + 0.05), "}}"),
    )


def _texts(values: Any) -> pa.Array:
    return pa.array(values).cast(pa.string())


def _lines(file: IO[bytes], *parts: Any) -> None:
    """One line for each row: the texts of an array lie behind each other in memory as they do in a file."""
    lines = pc.binary_join_element_wise(*parts, "\n", "")
    for chunk in lines.chunks if isinstance(lines, pa.ChunkedArray) else [lines]:
        file.write(chunk.buffers()[2])


def _parquet(session: Any, files: list[str], out: Path) -> None:
    for file in files:
        name = Path(file).stem
        frame = session.read.schema(DDL[name]).json(file)
        frame.write.mode("overwrite").parquet(str(out / name))


def _copy(session: Any, out: Path, to: Path) -> None:
    for kind in ("node-Person", "edge-Knows"):
        frame = session.read.parquet(str(out / f"{kind}-*.parquet"))
        frame.write.mode("overwrite").parquet(str(to / kind))


# --- measuring -----------------------------------------------------------------------------------------------------


def _timed(name: str, work: Callable[[], Any]) -> tuple[Any, float]:
    print(f"{name:<60}", end="", flush=True)
    before, started = _processor(), time.perf_counter()
    found = work()
    seconds = time.perf_counter() - started
    print(f"{seconds:8.2f} s {_processor() - before:8.2f} s of processor", flush=True)
    return found, seconds


def _ratio(name: str, ours: float, theirs: float, budget: float) -> None:
    verdict = "kept" if ours <= budget * theirs else "MISSED"
    print(f"{name:<60}{ours / theirs:8.2f} x   at most {budget}: {verdict}", flush=True)


def _processor() -> float:
    """Seconds of this process and of all below it, with those that have ended."""
    return sum(_seconds(pid) for pid in [os.getpid(), *_below(os.getpid())])


def _seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Peaks:
    """The most resident megabytes seen of the driver, its Java, the largest Python task, and all of them together."""

    driver: float = 0.0
    java: float = 0.0
    task: float = 0.0
    whole: float = 0.0

    def __str__(self) -> str:
        return (
            f"driver {self.driver:,.0f} MB, Java {self.java:,.0f} MB, largest task {self.task:,.0f} MB, "
            f"together {self.whole:,.0f} MB"
        )

    def look(self) -> None:
        """This process and those below it; others may run Spark beside it."""
        driver, java, tasks = _resident(os.getpid()), 0.0, [0.0]
        for pid in _below(os.getpid()):
            command = _command(pid)
            if b"pyspark.daemon" in command:
                tasks.append(_resident(pid))
            elif b"java" in command.split(b"\0", 1)[0]:
                java += _resident(pid)
        self.driver, self.java = max(self.driver, driver), max(self.java, java)
        self.task, self.whole = max(self.task, *tasks), max(self.whole, driver + java + sum(tasks))


@contextmanager
def _watched() -> Iterator[Peaks]:
    """Memory while something runs, sampled."""
    peaks, over = Peaks(), threading.Event()

    def watch() -> None:
        while not over.wait(SAMPLE_SECONDS):
            peaks.look()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        over.set()
        thread.join()


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _resident(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


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
