"""Long work beside others who commit without pause, and what must be true afterwards.

A `Work` is one long operation: the graph it starts from, the operation, and what it must have brought about. Writers
are processes of their own that insert, change and delete rows of the same tables. Some leave the rows of the long work
alone; others change exactly those. Both log every commit and how long it took.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.errors import OmnigraphError
from omnigraph.graph import Graph, init, open_graph
from omnigraph.storage.tables import rewrite_groups
from tests.support.processes import Child, acknowledge, read_log, spawn
from tests.support.waiting import wait_until

SCHEMA = """
node Person { name: String @key  age: I64?  serial: String? }
edge Knows: Person -> Person { since: I64? }
"""
UNIQUE = SCHEMA.replace("serial: String?", "serial: String? @unique")
FILLED = SCHEMA.replace("serial: String?", "serial: String?  level: I64 @default(7)")
INSERT = "query q($n: String, $a: I64) { insert Person { name: $n, age: $a } }"
LINK = "query q($a: String, $b: String) { insert Knows { from: $a, to: $b, since: 1 } }"
DELETE = "query q($n: String) { delete Person where name = $n }"
AGED = "query q($n: String, $a: I64) { update Person set { age: $a } where name = $n }"
PEOPLE_MAX = 200_000  # ends of edges; more are not needed to show anything
PIECES = 12
ROW_GROUP = 500_000
BEGUN = 3  # commits after which a writer has opened what it needs
BEFORE, AFTER = -1, -2  # the ages of people the long work is about; nobody else has them


# --- rows --------------------------------------------------------------------------------------------------------


def people(number: int, age: int = BEFORE) -> pa.Table:
    names = pa.array([f"p{n:07}" for n in range(number)])
    serials = pa.array([f"s{n:07}" for n in range(number)])
    return pa.table({"name": names, "age": pa.array([age] * number), "serial": serials})


def ends(number: int) -> int:
    return min(number, PEOPLE_MAX)


def acquaintances(number: int, since: int = 2) -> pa.Table:
    some = ends(number)
    names = pa.array([f"p{n:07}" for n in range(some)])
    near = pa.array([n % some for n in range(number)])
    far = pa.array([(n * 7 + 1) % some for n in range(number)])
    sinces = pa.array([since] * number)
    return pa.table({"from": names.take(near), "to": names.take(far), "since": sinces})


# --- long work ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Work:
    """One long operation. `check` says what is wrong with a graph after it."""

    prepare: Callable[[Graph, int], Any]
    run: Callable[[Graph, int, Any, float], Any]  # with what `prepare` gave, within so many seconds
    check: Callable[[Graph, int], Iterator[str]]


def _start(graph: Graph, size: int) -> None:
    graph.load({"Person": people(ends(size))}, engine="local")


def _branch(graph: Graph, size: int) -> None:
    _start(graph, size)
    graph.create_branch("b")
    graph.load({"Knows": acquaintances(size)}, branch="b", engine="local")
    graph.mutate(INSERT, {"n": "w-before", "a": 0})


def _changed_branch(graph: Graph, size: int) -> None:
    graph.load({"Person": people(size)}, engine="local")
    graph.create_branch("b")
    graph.load({"Person": people(size, age=AFTER)}, branch="b", engine="local")
    graph.mutate(INSERT, {"n": "w-before", "a": 0})


def _changed(graph: Graph, size: int) -> str:
    graph.load({"Person": people(size)}, engine="local")
    done = graph.load({"Person": people(size, age=AFTER)}, engine="local")
    return done.commit.id  # type: ignore[union-attr]


def _everybody(graph: Graph, size: int) -> None:
    graph.load({"Person": people(size)}, engine="local")


def _scattered(graph: Graph, size: int) -> None:
    rows = people(size)
    part = -(-size // PIECES)
    for start in range(0, size, part):
        graph.load({"Person": rows.slice(start, part)}, engine="local", mode="append")


def number_of(graph: Graph, text: str) -> int:
    found: int = graph.query(text).scalar()
    return found


def _edges(graph: Graph, size: int) -> Iterator[str]:
    text = "match { $a: Person $a $k:knows $b $k.since = 2 } return { count($k) as n }"
    found = number_of(graph, text)
    if found != size:
        yield f"{found} edges instead of {size}"


def _aged(age: int) -> Callable[[Graph, int], Iterator[str]]:
    def check(graph: Graph, size: int) -> Iterator[str]:
        text = f"match {{ $p: Person $p.age = {age} }} return {{ count($p) as n }}"
        found = number_of(graph, text)
        if found != size:
            yield f"{found} people of age {age} instead of {size}"

    return check


def _tidy(graph: Graph, size: int) -> Iterator[str]:
    snapshot = graph.snapshot()
    fragments = snapshot.table_of(snapshot.catalog.nodes["Person"]).fragments()
    large = [f for f in fragments if f.physical_rows >= size // PIECES // 2]
    if rewrite_groups(large):
        yield f"{len(large)} large fragments are left, and should be fewer"
    yield from _aged(BEFORE)(graph, size)


def _says(text: str) -> Callable[[Graph, int], Iterator[str]]:
    def check(graph: Graph, size: int) -> Iterator[str]:
        if text not in graph.schema():
            yield f"{text} is not in force"
        yield from _aged(BEFORE)(graph, size)

    return check


def _load(rows: Callable[[int], Mapping[str, pa.Table]], mode: str) -> Any:
    def run(graph: Graph, size: int, given: Any, timeout: float) -> Any:
        return graph.load(dict(rows(size)), mode=mode, engine="local", timeout=timeout)

    return run


def _edge_rows(size: int) -> Mapping[str, pa.Table]:
    return {"Knows": acquaintances(size)}


def _older(size: int) -> Mapping[str, pa.Table]:
    return {"Person": people(size, age=AFTER)}


def _merge(graph: Graph, size: int, given: Any, timeout: float) -> Any:
    return graph.merge("b", timeout=timeout)


def _revert(graph: Graph, size: int, given: Any, timeout: float) -> Any:
    return graph.revert(given, timeout=timeout)


def _optimize(graph: Graph, size: int, given: Any, timeout: float) -> Any:
    return graph.optimize(timeout=timeout, engine="local")


def _schema(text: str) -> Callable[[Graph, int, Any, float], Any]:
    return lambda graph, size, given, timeout: graph.apply_schema(text, timeout=timeout)


WORKS: dict[str, Work] = {
    "merge of new edges": Work(_branch, _merge, _edges),
    "merge of changed rows": Work(_changed_branch, _merge, _aged(AFTER)),
    "load of new edges": Work(_start, _load(_edge_rows, "append"), _edges),
    "load of changed rows": Work(_everybody, _load(_older, "merge"), _aged(AFTER)),
    "revert": Work(_changed, _revert, _aged(BEFORE)),
    "optimize": Work(_scattered, _optimize, _tidy),
    "a unique rule": Work(_everybody, _schema(UNIQUE), _says("@unique")),
    "a column with a value": Work(_everybody, _schema(FILLED), _says("level")),
}


def _edge_file(graph: Graph, size: int) -> Mapping[str, str]:
    """What Spark reads: a file of edges."""
    _start(graph, size)
    place = Path(tempfile.mkdtemp(prefix="omnigraph-beside-edges-"), "knows.parquet")
    pq.write_table(acquaintances(size), place, row_group_size=ROW_GROUP)
    return {"Knows": str(place)}


def _load_file(graph: Graph, size: int, given: Any, timeout: float) -> Any:
    return graph.load(given, mode="append", engine="spark", timeout=timeout)


SPARK: dict[str, Work] = {"Spark load of new edges": Work(_edge_file, _load_file, _edges)}


# --- writers, in processes of their own --------------------------------------------------------------------------


def write_other_rows(uri: str, writer: str) -> None:
    """Insert, change, link and delete people of one's own, until killed."""
    graph = open_graph(uri)
    _timed(graph, f"{writer}-me", INSERT, {"n": f"{writer}-me", "a": 0})
    for number in count():
        name = f"{writer}-{number}"
        _timed(graph, name, INSERT, {"n": name, "a": number})
        _timed(graph, name, LINK, {"a": name, "b": f"{writer}-me"})
        if number % 3 == 1:
            _timed(graph, name, INSERT, {"n": name, "a": number + 1})
        if number % 5 == 4:
            _timed(graph, name, DELETE, {"n": name}, gone=True)


def write_same_rows(uri: str, writer: str, size: int) -> None:
    """Change the rows of the long work, until killed."""
    graph = open_graph(uri)
    for number in count():
        name = f"p{number * 7919 % size:07}"
        _timed(graph, name, AGED, {"n": name, "a": 1000 + number})


def _timed(
    graph: Graph, name: str, text: str, given: Mapping[str, Any], gone: bool = False
) -> None:
    began = time.monotonic()
    try:
        graph.mutate(text, dict(given))
    except OmnigraphError as error:
        acknowledge({"failed": error.code, "name": name, "seconds": time.monotonic() - began})
        raise
    spent = time.monotonic() - began
    acknowledge({"name": name, "seconds": spent, "age": given.get("a"), "gone": gone})


@contextmanager
def beside(
    uri: str,
    log: Path,
    writers: int,
    function: Callable[..., None] = write_other_rows,
    *,
    name: str = "w",
    commits: int = BEGUN,
    **more: Any,
) -> Iterator[list[Child]]:
    """Writers that have begun, or made so many commits each, as long as the block lasts."""
    children = [
        spawn(function, {"uri": uri, "writer": f"{name}{n}", **more}, log=log.with_suffix(f".{n}"))
        for n in range(writers)
    ]
    try:
        wait_until(
            lambda: all(len(child.records()) >= commits or child.has_ended() for child in children),
            timeout=60 + commits,
            what="writers to begin",
        )
        yield children
    finally:
        for child in children:
            child.kill()


@dataclass(frozen=True, slots=True)
class Wrote:
    """What writers were told. Their first commits, which open everything, are not counted among the slow ones."""

    commits: int
    slowest: float
    failed: Sequence[str]

    @classmethod
    def of(cls, children: Sequence[Child]) -> Wrote:
        logs = [read_log(child.log) for child in children]
        return cls(
            sum(map(len, logs)),
            max((record["seconds"] for log in logs for record in log[BEGUN:]), default=0.0),
            [record["failed"] for log in logs for record in log if "failed" in record],
        )


def lost_rows(graph: Graph, children: Sequence[Child]) -> Iterator[str]:
    """The rows of writers that were acknowledged and are not there, or are there although they were deleted."""
    snapshot = graph.snapshot()
    table = snapshot.table_of(snapshot.catalog.nodes["Person"])
    names = table.scan(["id"])["id"].to_pylist()
    there = set(names)
    if len(names) != len(there):
        yield "somebody is there twice"
    for child in children:
        gone: dict[str, bool] = {}
        for record in read_log(child.log):
            gone[record["name"]] = record["gone"]
        unsure = list(gone)[-1:]  # killed in the middle of what came next
        for name, deleted in gone.items():
            if name not in unsure and (name in there) is deleted:
                yield f"{name} is {'there' if deleted else 'not there'}"


def new_graph(uri: str, work: Work, size: int) -> tuple[Graph, Any]:
    graph = init(uri, schema=SCHEMA)
    return graph, work.prepare(graph, size)
