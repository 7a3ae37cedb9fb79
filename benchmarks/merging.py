"""Branches at size: `python -m benchmarks.merging`.

Prints times and ratios: a merge of 1,000 changed rows at two sizes, a fast forward at two numbers of tables, branches,
a diff, lookups after many commits and an optimize, and a long history with many branches. `--small` runs a tenth of it,
`--full` a history of 100,000 commits.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa

from omnigraph.graph import Graph, init
from omnigraph.merge.lineage import merge_base
from omnigraph.storage import metrics

SCHEMA = """
node Item {
  code: String @key
  price: I64?
  note: String?
}
"""
CHANGED = 1_000


def milliseconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1e3


def median(calls: Sequence[Callable[[], object]]) -> float:
    return statistics.median(milliseconds(call) for call in calls)


def line(what: str, value: float, unit: str = "ms", note: str = "") -> None:
    print(f"{what:58} {value:10.1f} {unit:4} {note}", flush=True)


def items(first: int, count: int, price: int = 0) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table(
        {
            "code": [f"k{i:08}" for i in numbers],
            "price": pa.array([price] * count, pa.int64()),
            "note": [f"note {i}" for i in numbers],
        }
    )


def loaded(folder: Path, name: str, rows: int) -> Graph:
    graph = init(folder / name, schema=SCHEMA)
    graph.load({"Item": items(0, rows)})
    graph.optimize()
    return graph


# --- merges ------------------------------------------------------------------------------------------------------


def merges(folder: Path, sizes: tuple[int, int]) -> None:
    """Both sides changed 1,000 rows of one table, other ones; the median of several rounds."""
    found = []
    for rows in sizes:
        graph = loaded(folder, f"merge-{rows}", rows)
        for i in range(5):
            graph.create_branch(f"b{i}")
            graph.load({"Item": items(CHANGED * i, CHANGED, 1 + i)}, branch=f"b{i}")
        graph.load({"Item": items(CHANGED * 6, CHANGED, 1)})
        calls = [partial(graph.merge, f"b{i}") for i in range(5)]
        found.append(median(calls))
        line(f"merge of {CHANGED} rows into {rows}", found[-1])
    line("  ratio", found[1] / found[0], "", "(at most 1.5)")


def fast_forwards(folder: Path) -> None:
    found = []
    for tables in (5, 200):
        text = "".join(f"node T{i} {{ code: String @key }}\n" for i in range(tables))
        graph = init(folder / f"wide-{tables}", schema=text)
        graph.load({f"T{i}": [{"code": "a"}] for i in range(tables)})
        creates, calls = [], []
        for i in range(7):
            creates.append(milliseconds(partial(graph.create_branch, f"b{i}")))
            graph.load({"T0": [{"code": f"x{i}"}]}, branch=f"b{i}")
            calls.append(milliseconds(partial(graph.merge, f"b{i}")))
        found.append((statistics.median(calls), statistics.median(creates)))
        line(f"fast forward, {tables} tables", found[-1][0])
        line(f"create a branch, {tables} tables", found[-1][1])
    line("  ratio of fast forwards", found[1][0] / found[0][0], "", "(at most 1.3)")
    line("  ratio of creates", found[1][1] / found[0][1], "", "(flat)")


def diffs(folder: Path, rows: int) -> None:
    graph = loaded(folder, f"diff-{rows}", rows)
    before = graph.snapshot().commit_id
    for i in range(10):
        graph.load({"Item": items(i * (rows // 10), 10, 7)})
    calls: list[Callable[[], object]] = [lambda: graph.diff(before, "main").rows] * 7
    line(f"diff of 100 rows in {rows}, first", milliseconds(calls[0]))
    line(f"diff of 100 rows in {rows}, warm", median(calls), "ms", "(at most 50)")


# --- many commits ------------------------------------------------------------------------------------------------


def size_of(folder: Path) -> float:
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 1e6


def lookups(graph: Graph, rows: int) -> float:
    text = "query one($c: String) { match { $i: Item { code: $c } } return { $i.price as p } }"
    codes = [f"k{(i * 7919) % rows:08}" for i in range(200)]
    return median([partial(graph.query, text, {"c": c}) for c in codes])


def many_commits(folder: Path, rows: int, commits: int) -> None:
    fresh = loaded(folder, "fresh", rows)
    lookups(fresh, rows)
    base, size = lookups(fresh, rows), size_of(folder / "fresh")
    graph = loaded(folder, "worn", rows)
    spent = milliseconds(
        lambda: [graph.load({"Item": items((i * 613) % rows, 1, i)}) for i in range(commits)]
    )
    line(f"a commit of one row in {rows}, mean of {commits}", spent / commits)
    worn = lookups(graph, rows)
    line("optimize", milliseconds(graph.optimize))
    line("cleanup", milliseconds(lambda: graph.cleanup(keep=1)))
    lookups(graph, rows)
    after = lookups(graph, rows)
    line("key lookup, fresh", base)
    line(f"key lookup after {commits} commits", worn)
    line("key lookup after optimize", after, "ms", f"ratio {after / base:.2f} (at most 1.2)")
    more = size_of(folder / "worn") - size
    line("disk more than the data", more, "MB", "(at most 10)")


def long_history(folder: Path, branches: int, commits: int) -> None:
    """Names and history at size. One commit in fifty changes a row; the others load nothing, which is quicker."""
    graph = init(folder / "long", schema=SCHEMA)
    started = time.perf_counter()
    text = "query add($c: String) { insert Item { code: $c } }"
    for i in range(commits):
        if i % 50:
            graph.load({"Item": []}, engine="local")
        else:
            graph.mutate(text, {"c": f"h{i % 1000}"})
    line(f"{commits} commits, mean", (time.perf_counter() - started) * 1e3 / commits)
    spent = sum(milliseconds(partial(graph.create_branch, f"b{i}")) for i in range(branches))
    line(f"{branches} branches created, mean", spent / branches)
    repo = graph._repo
    graph.mutate(text, {"c": "x"}, branch="b0")
    steps: dict[str, Callable[[], object]] = {
        "branches": graph.branches,
        "log, a page of 50": lambda: graph.log(limit=50),
        "merge base": lambda: merge_base(repo, repo.head("main").commit, repo.head("b0").commit),
        "merge": lambda: graph.merge("b0"),
        "cleanup": lambda: graph.cleanup(keep=10),
    }
    for name, call in steps.items():
        with metrics.operation("bench") as cost:
            spent = milliseconds(call)
        line(f"{name}: {commits} commits, {branches} branches", spent, "ms", f"{cost.ops} requests")


def main() -> None:
    small = "--small" in sys.argv
    scale = 10 if small else 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        merges(folder, (10_000, 1_000_000 // scale))
        fast_forwards(folder)
        diffs(folder, 1_000_000 // scale)
        many_commits(folder, 100_000 // scale, 1_000 // scale)
        long_history(folder, 1_000 // scale, (100_000 if "--full" in sys.argv else 10_000) // scale)


if __name__ == "__main__":
    main()
