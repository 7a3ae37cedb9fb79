"""omnigraph beside its peers: `python -m benchmarks peers`; OMNIGRAPH_BENCH=M chooses the larger network.

S: 10,000 persons, 50,000 follows; M: 100,000 and 2.4 million; L: 2 million and 50 million, from Parquet alone. Every
engine runs in a process of its own, which may use 12 GiB and take an hour for one request; whoever needs more is
named. Loads and reads take turns in rounds, so that a noisy neighbour disturbs all alike; a figure is the median of
whole calls, warm, from text and parameters to Python values; a cold one is the first call of a new process. Every
answer is checked against numpy; a figure with a wrong answer says so.

Peers are compared as far as their packages are found; put a folder of them into PEERBENCH_PATH:

    pip install --target peers kuzu ladybug
    PEERBENCH_PATH=peers OMNIGRAPH_BENCH=M python -m benchmarks peers
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.loading import written
from benchmarks.peerbench.adapters import ADAPTERS
from benchmarks.peerbench.engine import Engine, NoAnswer, NotInstalled
from benchmarks.peerbench.jobs import Job, jobs
from benchmarks.peerbench.oracle import Oracle
from benchmarks.peerbench.report import Line, head, row

LOAD_TARGETS = {"parquet": 0.45, "ndjson": 0.75}  # of Kuzu's time
LOADS = {"S": 3, "M": 2, "L": 1}
ROUNDS = {"S": 7, "M": 4, "L": 2}
FORMS = {"S": ("ndjson", "parquet"), "M": ("ndjson", "parquet"), "L": ("parquet",)}
WALKS = ("hop1", "hop2", "hop3")  # also asked of new processes
ROUND_SECONDS_MAX = 10.0  # an engine that needs longer for one round is asked no more


@dataclass(slots=True)
class Field:
    """The engines that take part, and what there is to say about them."""

    folder: Path
    files: Path
    engines: dict[str, Engine] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def close(self) -> None:
        for engine in self.engines.values():
            engine.close()

    def remark(self, name: str, job: str, why: NoAnswer) -> None:
        """A dash in the table says enough where there is no reason to give."""
        if str(why):
            self.remarks.append(f"{name}, {job}: {' '.join(str(why).split())}")


def present() -> list[str]:
    """The engines whose packages are there."""
    found = []
    for name in ADAPTERS:
        try:
            with tempfile.TemporaryDirectory() as place, Engine(name, Path(place)) as engine:
                found.append(name)
                print(f"{name} {engine.version}", flush=True)
        except NotInstalled as missing:
            print(f"{name} is not installed: pip install {missing}", flush=True)
        except NoAnswer as why:
            print(f"{name} does not start: {why}", flush=True)
    return found


def load(field: Field, names: list[str], size: str) -> list[Line]:
    """Load every form in turns; what was loaded last from Parquet stays open for the reads."""
    seconds: dict[tuple[str, str], list[float]] = {}
    rounds, forms = LOADS[size], FORMS[size]
    for turn in range(rounds):
        for form in forms:
            for name in names:
                kept = turn == rounds - 1 and form == "parquet"
                taken = _load_once(field, name, form, turn, kept=kept)
                if taken is not None:
                    seconds.setdefault((form, name), []).append(taken)
    return [
        Line(
            f"load {form}",
            {n: statistics.median(seconds[form, n]) * 1e3 for n in names if (form, n) in seconds},
            target=target,
            rivals=frozenset({"kuzu"}),
        )
        for form, target in LOAD_TARGETS.items()
        if form in forms
    ]


def _load_once(field: Field, name: str, form: str, turn: int, *, kept: bool) -> float | None:
    engine = Engine(name, field.folder / f"{name}-{form}-{turn}")
    try:
        taken = engine.load(field.files, form)
    except NoAnswer as why:
        if turn == 0:
            field.remark(name, f"load {form}", why)
        taken, kept = None, False
    if kept:
        field.engines[name] = engine
    else:
        engine.close()
    return taken


def prepare(field: Field) -> Line:
    """Text indices and maintenance, once."""
    times = {}
    for name, engine in field.engines.items():
        try:
            times[name] = engine.prepare() * 1e3
        except NoAnswer as why:
            field.remark(name, "prepare", why)
    return Line("prepare", times, rivals=frozenset())


def stored(field: Field) -> Line:
    """What the engines have on disk."""
    sizes = {
        name: sum(file.stat().st_size for file in engine.place.rglob("*") if file.is_file())
        for name, engine in field.engines.items()
    }
    return Line("disk, MiB", {name: size / 2**20 for name, size in sizes.items()})


def cold(field: Field, job: Job) -> Line:
    """The first call of new processes, which answer the warm ones afterwards."""
    times = {}
    for name, engine in list(field.engines.items()):
        field.engines[name] = fresh = engine.reopened()
        try:
            times[name] = fresh.ask(job.name, job.calls[:1]).seconds[0] * 1e3
        except NoAnswer as why:
            field.remark(name, f"cold {job.name}", why)
    return Line(f"cold {job.name}", times)


def memory(field: Field, what: str) -> Line:
    """What the processes of the engines hold now, pages of files among it."""
    return Line(what, {name: engine.memory() / 2**20 for name, engine in field.engines.items()})


def read(field: Field, job: Job, rounds: int) -> Line:
    """The first round warms up and is checked; the others count."""
    seconds: dict[str, list[float]] = {}
    wrong: set[str] = set()
    asked = dict(field.engines)
    for turn in range(rounds + 1):
        for name, engine in list(asked.items()):
            try:
                found = engine.ask(job.name, job.calls)
            except NoAnswer as why:
                field.remark(name, job.name, why)
                del asked[name]
                continue
            if not job.right(found.answers):
                wrong.add(name)
            if turn > 0 or sum(found.seconds) > ROUND_SECONDS_MAX:
                seconds.setdefault(name, []).extend(found.seconds)
            if sum(found.seconds) > ROUND_SECONDS_MAX:
                del asked[name]
    times = {name: statistics.median(taken) * 1e3 for name, taken in seconds.items()}
    return Line(job.name, times, frozenset(wrong), job.target)


def compare(size: str, folder: Path) -> None:
    oracle = Oracle(written(folder / "files", size))
    print(f"{size}: {oracle.n:,} persons, {len(oracle.src):,} follows; load average {_busy()}")
    names = present()
    field = Field(folder, folder / "files")
    questions = jobs(oracle)
    print("\n" + head(names), flush=True)
    for line in measure(field, names, size, questions):
        print(row(line, names), flush=True)
    print()
    for job in questions:
        print(f"{job.name}: {job.says}")
    print("\n".join(["", *field.remarks, f"load average {_busy()}"]))


def measure(field: Field, names: list[str], size: str, questions: list[Job]) -> Iterator[Line]:
    with ExitStack() as stack:
        yield from load(field, names, size)
        stack.callback(field.close)
        yield memory(field, "memory after loading, MiB")
        yield prepare(field)
        yield stored(field)
        for job in questions:
            if job.name in WALKS:
                yield cold(field, job)
            if job.name == "hop2":
                yield memory(field, "memory after two hops, cold, MiB")
        for job in questions:
            yield read(field, job, ROUNDS[size])


def _busy() -> str:
    return f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def run() -> None:
    size = os.environ.get("OMNIGRAPH_BENCH", "S")
    with tempfile.TemporaryDirectory() as folder:
        compare(size, Path(folder))


if __name__ == "__main__":
    run()
