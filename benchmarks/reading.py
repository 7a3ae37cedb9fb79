"""Times of the peer benchmark's reads on our engine, every answer checked against plain numpy.

    python -m benchmarks.reading [--persons 100000] [--edges N] [--rounds 7]

S is `--persons 10000 --edges 50000`, M the default. Prints medians of whole calls on a compiled query, warm; then the
first query of a process without anything cached, and the first query after a commit of one node and one edge.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from tests.support.snapshots import Graph, catalog_from, make_graph

from benchmarks.peerbench.gen import DIM, EDGES, NODES, tables
from benchmarks.peerbench.oracle import Oracle
from omnigraph.lang.query import compile_query
from omnigraph.model.columns import arrow_schema
from omnigraph.read import Cache, persist_topology, run_query

SCHEMA = f"""
node Person {{ key: I64 @key  name: String  gender: String  age: I64  bio: String  emb: Vector({DIM}) }}
node City {{ key: I64 @key  city: String  state: String  country: String }}
node State {{ key: I64 @key  state: String  country: String }}
node Country {{ key: I64 @key  country: String }}
node Interest {{ key: I64 @key  interest: String }}
edge Follows: Person -> Person {{ since: I64 }}
edge LivesIn: Person -> City
edge HasInterest: Person -> Interest
edge CityIn: City -> State
edge StateIn: State -> Country
"""

QUERIES = """
query point($i: I64) { match { $p: Person { key: $i } } return { $p.name as name, $p.age as age } }
query hop1($i: I64, $m: I64) {
  match { $a: Person { key: $i }  $a follows $b  $b.age > $m } return { count(distinct $b) as n }
}
query hop2($i: I64, $m: I64) {
  match { $a: Person { key: $i }  $a follows $x  $x follows $b  $b.age > $m } return { count(distinct $b) as n }
}
query hop3($i: I64, $m: I64) {
  match { $a: Person { key: $i }  $a follows $x  $x follows $y  $y follows $b  $b.age > $m }
  return { count(distinct $b) as n }
}
query reach($i: I64) {
  match { $a: Person { key: $i }  $a follows{1,3} $b } return { count(distinct $b) as n }
}
query shortest($a: I64, $b: I64) {
  match { $x: Person { key: $a }  $y: Person { key: $b }  $p = path $x follows{1,5} $y } return { length($p) as n }
}
query q1() { match { $f: Person  $f follows $p } return { $p as id, count($f) as n } order { n desc } limit 3 }
query q2() {
  match { $f: Person  $f follows $p  $p livesIn $c } return { $p.name as name, $c.city as city, count($f) as n }
  order { n desc } limit 1
}
query q3($c: String) {
  match { $p: Person  $p livesIn $y  $y cityIn $s  $s stateIn $o  $o.country = $c }
  return { $y as city, avg($p.age) as n } order { n asc } limit 5
}
query q4($l: I64, $h: I64) {
  match { $p: Person  $p.age >= $l  $p.age <= $h  $p livesIn $c  $c cityIn $s  $s stateIn $o }
  return { $o.country as country, count(*) as n } order { n desc }
}
query q5($g: String, $c: String, $i: String) {
  match { $p: Person { gender: $g }  $p livesIn $y  $y.country = $c  $p hasInterest $t  $t.interest = $i }
  return { count(*) as n }
}
query q6($g: String, $i: String) {
  match { $p: Person { gender: $g }  $p hasInterest $t  $t.interest = $i  $p livesIn $y }
  return { $y as city, count(*) as n } order { n desc } limit 5
}
query q7($c: String, $l: I64, $h: I64, $i: String) {
  match {
    $p: Person  $p.age >= $l  $p.age <= $h  $p hasInterest $t  $t.interest = $i
    $p livesIn $y  $y cityIn $s  $s.country = $c
  }
  return { $s as state, count(*) as n } order { n desc } limit 1
}
query q8() { match { $a: Person  $a follows $b  $b follows $c } return { count(*) as n } }
query q9($x: I64, $y: I64) {
  match { $a: Person  $a follows $b  $b.age < $x  $b follows $c  $c.age > $y } return { count(*) as n }
}
"""
NAMES = ("point", "hop1", "hop2", "hop3", "reach", "shortest", *(f"q{i}" for i in range(1, 10)))


def load(folder: Path, persons: int, edges: int | None) -> tuple[Graph, Oracle]:
    """The generated network in tables of ours, with the indices maintenance would build."""
    made = tables(persons, edges)
    catalog = catalog_from(SCHEMA)
    data = {}
    for kind in catalog.entities():
        table, schema = made[kind.name], arrow_schema(kind)
        if kind.name in NODES:
            table = table.append_column("key", table["id"])
        else:
            table = table.append_column("id", pa.array(np.arange(table.num_rows)))
        data[kind.name] = table.select(schema.names).cast(schema)
    graph = make_graph(folder, catalog, data)
    for name in NODES:
        graph.index(name, "id")
    for name in EDGES:
        graph.index(name, "src", "dst")
    return graph, Oracle(made)


@dataclass(frozen=True, slots=True)
class Job:
    """A query, its parameters, and what it must answer in its last column."""

    name: str
    params: dict[str, Any]
    wanted: list[Any]


def jobs(oracle: Oracle) -> list[Job]:
    seeds = [int(x) for x in np.random.default_rng(3).integers(0, oracle.n, 12)]
    found = [Job("point", {"i": p}, [int(oracle.age[p])]) for p in seeds]
    for k in (1, 2, 3):
        found += [Job(f"hop{k}", {"i": p, "m": 30}, [oracle.hop(p, k, 30)]) for p in seeds]
    found += [Job("reach", {"i": p}, [oracle.reach(p, 3)]) for p in seeds]
    for a, b in zip(seeds[:6], seeds[6:], strict=True):
        length = oracle.shortest(a, b, 5)
        found.append(Job("shortest", {"a": a, "b": b}, [] if length is None else [length]))
    diner = ("male", "United Kingdom", "fine dining")
    return [
        *found,
        Job("q1", {}, oracle.q1()),
        Job("q2", {}, [oracle.q2()]),
        Job("q3", {"c": "Canada"}, oracle.q3("Canada")),
        Job("q4", {"l": 30, "h": 40}, oracle.q4(30, 40)),
        Job("q5", dict(zip("gci", diner, strict=True)), [oracle.q5(*diner)]),
        Job("q6", {"g": "female", "i": "tennis"}, oracle.q6("female", "tennis")),
        Job(
            "q7",
            {"c": "United States", "l": 23, "h": 30, "i": "photography"},
            [oracle.q7("United States", 23, 30, "photography")],
        ),
        Job("q8", {}, [oracle.q8()]),
        Job("q9", {"x": 50, "y": 25}, [oracle.q9(50, 25)]),
    ]


def milliseconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1e3


class Bench:
    """Runs jobs and checks what they answer."""

    def __init__(self, graph: Graph, oracle: Oracle, rounds: int) -> None:
        self.graph, self.rounds = graph, rounds
        self.jobs = jobs(oracle)
        self.queries = {name: compile_query(QUERIES, graph.catalog, name) for name in NAMES}
        self.snapshot = graph.snapshot

    def answer(self, job: Job) -> list[Any]:
        rows = run_query(self.queries[job.name], job.params, self.snapshot).rows
        last = [list(row.values())[-1] for row in rows]
        return [round(v, 6) if isinstance(v, float) else v for v in last]

    def warm(self) -> None:
        for name in NAMES:
            mine = [job for job in self.jobs if job.name == name]
            right = all(self.answer(job) == job.wanted for job in mine)
            spent = [
                milliseconds(partial(self.answer, job)) for _ in range(self.rounds) for job in mine
            ]
            print(
                f"{name:10} {statistics.median(spent):9.3f} ms  {'' if right else 'WRONG'}",
                flush=True,
            )

    def cold(self) -> None:
        """The first query of a process that has no topology file, and of one that has."""
        ask = partial(run_query, self.queries["hop3"], {"i": 5, "m": 30}, self.snapshot)
        print(f"cold hop3, topology built:  {milliseconds(lambda: ask(cache=Cache())):9.1f} ms")
        spent = milliseconds(lambda: persist_topology(self.snapshot, "Follows"))
        print(f"topology stored:            {spent:9.1f} ms")
        print(f"cold hop3, topology loaded: {milliseconds(lambda: ask(cache=Cache())):9.1f} ms")

    def after_commits(self) -> None:
        """A commit of one person who follows one other, then the query that has to see it."""
        spent = []
        for i in range(10):
            key = 10_000_000 + i
            new = {"id": str(key), "key": key, "name": "new", "gender": "x", "age": 1, "bio": ""}
            self.graph.append("Person", [new | {"emb": [0.0] * DIM}])
            self.graph.append("Follows", [{"id": f"n{i}", "src": str(key), "dst": "0", "since": 1}])
            self.snapshot = self.graph.snapshot
            job = Job("hop1", {"i": key, "m": 0}, [1])
            spent.append(milliseconds(partial(self._check, job)))
        print(f"hop1 after a commit:        {statistics.median(spent):9.1f} ms")

    def _check(self, job: Job) -> None:
        assert self.answer(job) == job.wanted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--persons", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=None)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        graph, oracle = load(Path(folder), options.persons, options.edges)
        print(f"{oracle.n:,} persons, {len(oracle.src):,} follows")
        bench = Bench(graph, oracle, options.rounds)
        bench.cold()
        bench.warm()
        bench.after_commits()
    print(
        f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB, generator included"
    )


if __name__ == "__main__":
    main()
