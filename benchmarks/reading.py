"""Times of the peer benchmark's reads on our engine, every answer checked against plain numpy.

    python -m benchmarks.reading [--persons 100000] [--edges N] [--rounds 7]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from tests.support.snapshots import Graph, make_graph

from benchmarks.peerbench.gen import DIM, EDGES, NODES, tables
from benchmarks.peerbench.oracle import Oracle
from omnigraph.lang import ir
from omnigraph.lang.query import compile_query
from omnigraph.read import Cache, persist_topology, run_query

SCHEMA = f"""
node Person {{ key: I64 @key name: String gender: String age: I64 bio: String emb: Vector({DIM}) }}
node City {{ key: I64 @key city: String state: String country: String }}
node State {{ key: I64 @key state: String country: String }}
node Country {{ key: I64 @key country: String }}
node Interest {{ key: I64 @key interest: String }}
edge Follows: Person -> Person {{ since: I64 }}
edge LivesIn: Person -> City
edge HasInterest: Person -> Interest
edge CityIn: City -> State
edge StateIn: State -> Country
"""

QUERIES = {
    "point": "($i: I64) { match { $p: Person {key: $i} } return { $p.name as name, $p.age as age } }",
    "hop1": "($i: I64, $m: I64) { match { $a: Person {key: $i} $a follows $b $b.age > $m } return { count(distinct $b) as n } }",
    "hop2": "($i: I64, $m: I64) { match { $a: Person {key: $i} $a follows $x $x follows $b $b.age > $m } return { count(distinct $b) as n } }",
    "hop3": "($i: I64, $m: I64) { match { $a: Person {key: $i} $a follows $x $x follows $y $y follows $b $b.age > $m } return { count(distinct $b) as n } }",
    "reach": "($i: I64) { match { $a: Person {key: $i} $a follows{1,3} $b } return { count(distinct $b) as n } }",
    "shortest": "($a: I64, $b: I64) { match { $x: Person {key: $a} $y: Person {key: $b} $p = path $x follows{1,5} $y } return { length($p) as n } }",
    "q1": "() { match { $f: Person $f follows $p } return { $p as id, count($f) as n } order { n desc } limit 3 }",
    "q2": "() { match { $f: Person $f follows $p $p livesIn $c } return { $p.name as name, $c.city as city, count($f) as n } order { n desc } limit 1 }",
    "q3": "($c: String) { match { $p: Person $p livesIn $c1 $c1 cityIn $s $s stateIn $o $o.country = $c } return { $c1 as c, avg($p.age) as a } order { a asc } limit 5 }",
    "q4": "($l: I64, $h: I64) { match { $p: Person $p.age >= $l $p.age <= $h $p livesIn $c $c cityIn $s $s stateIn $o } return { $o.country as c, count(*) as n } order { n desc } }",
    "q5": "($g: String, $c: String, $i: String) { match { $p: Person {gender: $g} $p livesIn $y $y.country = $c $p hasInterest $t $t.interest = $i } return { count(*) as n } }",
    "q6": "($g: String, $i: String) { match { $p: Person {gender: $g} $p hasInterest $t $t.interest = $i $p livesIn $y } return { $y as c, count(*) as n } order { n desc } limit 5 }",
    "q7": "($c: String, $l: I64, $h: I64, $i: String) { match { $p: Person $p.age >= $l $p.age <= $h $p hasInterest $t $t.interest = $i $p livesIn $y $y cityIn $s $s.country = $c } return { $s as s, count(*) as n } order { n desc } limit 1 }",
    "q8": "() { match { $a: Person $a follows $b $b follows $c } return { count(*) as n } }",
    "q9": "($x: I64, $y: I64) { match { $a: Person $a follows $b $b.age < $x $b follows $c $c.age > $y } return { count(*) as n } }",
}


def load(folder: Path, persons: int, edges: int | None) -> tuple[Graph, Oracle]:
    """The generated graph in tables of ours, with the indices maintenance would build."""
    made = tables(persons, edges)
    data: dict[str, pa.Table] = {}
    for name in NODES:
        keys = made[name]["id"]
        columns = {"id": keys.cast(pa.string()), "key": keys}
        columns |= {c: made[name][c] for c in made[name].column_names if c != "id"}
        data[name] = columns  # type: ignore[assignment]
    for name in EDGES:
        table = made[name]
        ids = pa.array(np.char.mod("e%d", np.arange(table.num_rows)))
        columns = {"id": ids, "src": table["src"].cast(pa.string()), "dst": table["dst"].cast(pa.string())}
        columns |= {c: table[c] for c in table.column_names if c not in ("src", "dst")}
        data[name] = columns  # type: ignore[assignment]
    from tests.support.snapshots import catalog_from

    from omnigraph.model.columns import arrow_schema

    catalog = catalog_from(SCHEMA)
    shaped = {
        kind.name: pa.table(data[kind.name]).select(arrow_schema(kind).names).cast(arrow_schema(kind))
        for kind in catalog.entities()
    }
    graph = make_graph(folder, catalog, shaped)
    for name in NODES:
        graph.index(name, "id")
    for name in EDGES:
        graph.index(name, "src", "dst")
    return graph, Oracle(made)


def compiled(graph: Graph) -> dict[str, ir.Query]:
    return {name: compile_query(f"query {name}{text}", graph.catalog) for name, text in QUERIES.items()}


class Bench:
    """Runs jobs and checks what they answer."""

    def __init__(self, graph: Graph, oracle: Oracle, rounds: int) -> None:
        self.graph, self.oracle, self.rounds = graph, oracle, rounds
        self.queries = compiled(graph)
        self.snapshot = graph.snapshot

    def ask(self, name: str, **params: Any) -> list[dict[str, Any]]:
        return run_query(self.queries[name], params, self.snapshot).rows

    def time(self, name: str, calls: Sequence[tuple[Callable[[], Any], Any]]) -> None:
        """The median over all calls and rounds, and whether each answer is right."""
        right = all(call() == wanted for call, wanted in calls)
        spent = []
        for _ in range(self.rounds):
            for call, _wanted in calls:
                started = time.perf_counter()
                call()
                spent.append(time.perf_counter() - started)
        print(f"{name:14} {statistics.median(spent) * 1e3:9.3f} ms  {'' if right else 'WRONG'}", flush=True)

    def run(self) -> None:
        o, n = self.oracle, self.oracle.n
        seeds = [int(x) for x in np.random.default_rng(3).integers(0, n, 12)]
        first = lambda name, **p: self.ask(name, **p)[0]["n"]  # noqa: E731
        self.time("point", [(lambda p=p: tuple(self.ask("point", i=p)[0].values()), (o.names[p], int(o.age[p]))) for p in seeds])
        for k in (1, 2, 3):
            self.time(f"hop{k}", [(lambda p=p, k=k: first(f"hop{k}", i=p, m=30), o.hop(p, k, 30)) for p in seeds])
        self.time("reach", [(lambda p=p: first("reach", i=p), _reach(o, p)) for p in seeds])
        pairs = list(zip(seeds[:6], seeds[6:], strict=True))
        self.time("shortest", [(lambda a=a, b=b: _length(self.ask("shortest", a=a, b=b)), o.shortest(a, b, 5)) for a, b in pairs])
        column = lambda name, **p: [r["n"] for r in self.ask(name, **p)]  # noqa: E731
        self.time("q1", [(lambda: column("q1"), o.q1())])
        self.time("q2", [(lambda: column("q2")[0], o.q2())])
        self.time("q3", [(lambda: [round(r["a"], 6) for r in self.ask("q3", c="Canada")], o.q3("Canada"))])
        self.time("q4", [(lambda: column("q4", l=30, h=40), o.q4(30, 40))])
        self.time("q5", [(lambda: first("q5", g="male", c="United Kingdom", i="fine dining"), o.q5("male", "United Kingdom", "fine dining"))])
        self.time("q6", [(lambda: column("q6", g="female", i="tennis"), o.q6("female", "tennis"))])
        self.time("q7", [(lambda: first("q7", c="United States", l=23, h=30, i="photography"), o.q7("United States", 23, 30, "photography"))])
        self.time("q8", [(lambda: first("q8"), o.q8())])
        self.time("q9", [(lambda: first("q9", x=50, y=25), o.q9(50, 25))])

    def cold(self) -> None:
        """The first query of a process that has the topology as a file, and of one that has not."""
        for label in ("no file", "file"):
            if label == "file":
                started = time.perf_counter()
                size = persist_topology(self.snapshot, "Follows")
                print(f"persist topology {(time.perf_counter() - started) * 1e3:.1f} ms, {size:,} bytes")
            cache = Cache()
            started = time.perf_counter()
            run_query(self.queries["hop3"], {"i": 5, "m": 30}, self.snapshot, cache=cache)
            print(f"cold hop3, {label}: {(time.perf_counter() - started) * 1e3:.1f} ms")

    def extend(self) -> None:
        """A commit of one person and one edge, then the query that has to see it."""
        spent = []
        for i in range(8):
            key = 10_000_000 + i
            person = {"id": str(key), "key": key, "name": "new", "gender": "x", "age": 1, "bio": "", "emb": [0.0] * DIM}
            self.graph.append("Person", [person])
            self.graph.append("Follows", [{"id": f"n{i}", "src": str(key), "dst": "0", "since": 1}])
            self.snapshot = self.graph.snapshot
            started = time.perf_counter()
            rows = self.ask("hop1", i=key, m=0)
            spent.append(time.perf_counter() - started)
            assert rows[0]["n"] == 1
        print("after a commit, ms:", " ".join(f"{s * 1e3:.1f}" for s in spent))


def _reach(oracle: Oracle, person: int) -> int:
    """The oracle counts the start when a cycle leads back to it; the language never does (there are no self-loops)."""
    seen: set[int] = set()
    current = np.array([person])
    for _ in range(3):
        current = np.unique(oracle.out(current))
        seen.update(current.tolist())
    return len(seen - {person})


def _length(rows: list[dict[str, Any]]) -> int | None:
    return rows[0]["n"] if rows else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--persons", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=None)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        graph, oracle = load(Path(folder), options.persons, options.edges)
        print(f"made in {time.perf_counter() - started:.1f} s, {len(oracle.s):,} follows")
        bench = Bench(graph, oracle, options.rounds)
        bench.cold()
        bench.run()
        bench.extend()


if __name__ == "__main__":
    main()
