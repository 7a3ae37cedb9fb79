"""Long work beside four processes that commit without pause: `python -m benchmarks beside`.

Each operation runs beside writers of other rows of its own types, and beside the same writers at work on another graph,
who take as much of the machine and nothing of the branch. The ratio of the two is what contention costs. Before either,
writers have left as many rows and fragments in the graph, so that the work is the same. A part of the
sizes: `python -m benchmarks.beside 0.1`; some of the operations: `python -m benchmarks.beside 1 revert optimize`; on an
S3 server: `python -m benchmarks.beside 0.1 --s3`.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.contention.beside import SCHEMA, SPARK, WORKS, Wrote, beside, lost_rows, new_graph
from tests.support import s3server

from omnigraph.errors import OmnigraphError
from omnigraph.graph import init, open_graph

WRITERS = 4
TURNS = 3  # of each way, in turns; medians are compared, because one run of a second is noise
FILLED = 50  # commits of each writer before anything is timed
TIMEOUT = 1_800.0
RATIO_MAX = 1.5
SLOWEST_MAX = 5.0
WARM_ROWS = 1_000
SIZES = {
    "merge of new edges": 1_000_000,
    "merge of changed rows": 100_000,
    "load of new edges": 1_000_000,
    "load of changed rows": 100_000,
    "revert": 100_000,
    "optimize": 1_000_000,
    "a unique rule": 1_000_000,
    "a column with a value": 1_000_000,
    "Spark load of new edges": 5_000_000,
}


def run_one(
    name: str, size: int, root: str, folder: Path, *, contended: bool, turn: int = 0
) -> tuple[float, Wrote]:
    """One operation; seconds, and what the writers beside it were told."""
    work = (WORKS | SPARK)[name]
    label = f"{name.replace(' ', '-')}-{size}-{contended}-{turn}"
    graph, given = new_graph(f"{root}/{label}", work, size)
    busy = graph.uri
    if not contended:
        busy = f"{root}/{label}-other"
        init(busy, schema=SCHEMA)
    with beside(
        graph.uri, folder / f"{label}-before.log", WRITERS, name="before", commits=FILLED
    ) as fillers:
        pass
    with beside(busy, folder / f"{label}.log", WRITERS) as writers:
        started = time.perf_counter()
        try:
            work.run(open_graph(graph.uri), size, given, TIMEOUT)
        except OmnigraphError as error:
            print(f"{name}: {error.code}: {error}", flush=True)
        spent = time.perf_counter() - started
    wrong = list(work.check(open_graph(graph.uri), size))
    wrong += list(lost_rows(open_graph(graph.uri), fillers))
    wrong += list(lost_rows(open_graph(busy), writers))
    for finding in wrong[:5]:
        print(f"{name}: WRONG: {finding}", flush=True)
    return spent, Wrote.of(writers)


@contextlib.contextmanager
def roots(folder: Path, remote: bool) -> Iterator[str]:
    if not remote:
        yield str(folder)
        return
    with s3server.shared(folder / "s3") as address:
        os.environ.update(address.environment())
        yield address.uri("beside")


def compare(name: str, size: int, root: str, folder: Path) -> None:
    if name in SPARK:
        run_one(name, WARM_ROWS, root, folder, contended=False)  # the session starts once
    elsewhere, here, writers = list[float](), list[float](), list[Wrote]()
    for turn in range(TURNS):
        here_first = turn % 2 == 1
        for contended in (here_first, not here_first):
            spent, wrote = run_one(name, size, root, folder, contended=contended, turn=turn)
            (here if contended else elsewhere).append(spent)
            writers += [wrote] if contended else []
    alone, beside_others = statistics.median(elsewhere), statistics.median(here)
    slowest, failed = max(w.slowest for w in writers), {text for w in writers for text in w.failed}
    ratio = beside_others / alone
    flags = [] if ratio <= RATIO_MAX else ["MISSED: ratio"]
    flags += [] if slowest <= SLOWEST_MAX else ["MISSED: slowest commit"]
    flags += [f"writers failed: {failed}"] if failed else []
    print(
        f"{name:<26} {size:>9,} {alone:8.2f} s {beside_others:8.2f} s   {ratio:5.2f} (at most {RATIO_MAX})   "
        f"{sum(w.commits for w in writers):>6,} commits, slowest {slowest:5.2f} s (at most {SLOWEST_MAX:.0f})  "
        + ", ".join(flags),
        flush=True,
    )


def run(scale: float = 0.1, names: tuple[str, ...] = (), *, remote: bool = False) -> None:
    """By default a tenth of the sizes, without Spark."""
    chosen = names or tuple(WORKS)
    print(
        f"{'':<26} {'rows':>9} {'elsewhere':>10} {'here':>10}   ratio; what the writers did",
        flush=True,
    )
    with (
        tempfile.TemporaryDirectory(prefix="omnigraph-beside-") as place,
        roots(Path(place), remote) as root,
    ):
        for name in chosen:
            compare(name, int(SIZES[name] * scale), root, Path(place))


if __name__ == "__main__":
    given = [text for text in sys.argv[1:] if text != "--s3"]
    run(float(given[0]) if given else 0.1, tuple(given[1:]), remote="--s3" in sys.argv)
