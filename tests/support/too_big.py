"""Queries that do not fit: run in a process of their own, under a budget; each reports what it came to, and its memory.

python -m tests.support.too_big BUDGET NODES EDGES SECONDS [NAME …]
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import omnigraph
from omnigraph.errors import OmnigraphError
from omnigraph.graph import Graph

TWO_HOPS = "$a: P $a $e:r $b $b $f:r $c"
SIX_HOPS = "$x0: P " + " ".join(f"$x{i} $e{i}:r $x{i + 1}" for i in range(6))
QUERIES = {
    "pairs": "match { $a: P $b: P } return { $a.k as x, $b.t as y }",
    "pairs, filtered": "match { $a: P $b: P $a.n + $b.n = 7 } return { $a.k as x }",
    "pairs, added up": "match { $a: P $b: P } return { sum($a.n + $b.n) as x }",
    "pairs, first": "match { $a: P $b: P } return { $a.k as x, $b.k as y } order { $a.n + $b.n } limit 5",
    "pairs, distinct": "match { $a: P $b: P } return distinct { $a.k as x, $b.k as y }",
    "entities": "match { $a: P $b: P } return { $a.@id as a, $b.@id as b }",
    "edges, sorted": "match { $a: P $a $e:r $b } return { $a.t as x, $e.id as z } order { $b.t, $a.t }",
    "two hops, sorted": f"match {{ {TWO_HOPS} }} return {{ $e.id as x, $f.id as y }} order {{ $f.id }}",
    "two hops, unique groups": (
        f"match {{ {TWO_HOPS} }} return {{ $e.id as x, $c.k as y, count(*) as n }} order {{ n desc }} limit 3"
    ),
    "two hops, distinct values": (
        f"match {{ {TWO_HOPS} }} return {{ $a.k as x, count(distinct $c.t) as n }} order {{ n desc }} limit 3"
    ),
    "two hops, collected": f"match {{ {TWO_HOPS} }} return {{ $a.k as x, collect($c.t) as l }} limit 3",
    "hub, paths": 'match { $a: P { k: "p0000000" } $a r{1,6} $b } return { $b.k as x }',
    "all, paths": "match { $a: P $a r{1,6} $b } return { $a.k as x, $b.k as y }",
    "all, paths counted": (
        "match { $a: P $a r{1,6} $b } return { $a.k as x, count($b) as n } order { n desc } limit 3"
    ),
    "all, shortest": (
        "match { $a: P $w = path $a r{1,6} $b } return { $a.k as x, $b.k as y, length($w) as n }"
    ),
    "hub, pairs": "match { $a: P $a r $b $a r $c } return { $b.k as x, $c.k as y }",
    "hub, path spelled out": (
        'match { $a: P { k: "p0000000" } $w = path $a <r>{1,6} $b } return { $b.k as x, nodes($w) as l }'
    ),
    "all, paths spelled out": "match { $a: P $w = path $a r{1,6} $b } return { $a.k as x, nodes($w) as l }",
    "all, paths between": (
        "match { $a: P $b: P $b.n < 300 $w = path $a <r>{1,6} $b } return { nodes($w) as l }"
    ),
    "hub, every path": (
        'match { $a: P { k: "p0000000" } $w = paths $a <r|m>{1,6} $b } return { $b.k as x, edges($w) as l }'
    ),
    "hub, walks": "MATCH (a:P {k: 'p0000000'})-[:R*1..3]-(b) RETURN b.k AS x",
    "hub, walks counted": "MATCH (a:P {k: 'p0000000'})-[:R|M*1..3]-(b) RETURN count(*) AS n",
    "hub, walks spelled out": "MATCH p = (:P {k: 'p0000000'})-[:R*1..3]-() RETURN nodes(p) AS l",
    "all, walks": "MATCH (a:P)-[:R*1..3]-(b:P) RETURN b.k AS x, count(*) AS n ORDER BY n LIMIT 3",
    "parallel edges": "match { $a: P $a m $b } return { $a.k as x, $b.k as y }",
    "parallel edges, two hops": "match { $a: P $a <m> $b $b <m> $c } return { $a.k as x, $c.k as y }",
    "several types": "match { $a: P $a r|m $b } return { $a.k as x, $b.k as y }",
    "several types, two hops": "match { $a: P $a <r|m> $b $b <r|m> $c } return { $a.k as x, $c.k as y }",
    "several types, edges": "match { $a: P $a $e:r|m $b $b <r|m> $c $c $f:r|m $d } return { $e.id as x, $f.id as y }",
    "six hops, first": f"match {{ {SIX_HOPS} }} return {{ $e0.id as x, $e5.id as y }} limit 1",
    "six hops": f"match {{ {SIX_HOPS} }} return {{ $e0.id as x, $e5.id as y }}",
    "join": "match { $a: P $a $e:r $b $c: P $c $f:r $d $b.t = $d.t } return { $e.id as x, $f.id as y }",
    "join, counted": "match { $a: P $a $e:r $b $c: P $c $f:r $d $e.id = $f.id } return { count(*) as n }",
    "pairs, optional": "match { $a: P $b: P optional { $a $e:r $b } } return { $a.k as x, $e.id as y }",
}


def made(nodes: int, edges: int) -> Graph:
    """A graph with a hub that has half of all edges; those of a second type are parallel ones, eight by eight."""
    schema = "node P { k: String @key n: I64 t: String } edge R: P -> P { w: I64? } edge M: P -> P"
    graph = omnigraph.init("memory://too-big", schema=schema)
    ids = np.array([f"p{i:07d}" for i in range(nodes)])
    texts = [f"some text number {i} of a row" for i in range(nodes)]
    graph.load({"P": pa.table({"k": ids, "n": np.arange(nodes), "t": texts})})
    rng = np.random.default_rng(1)
    src = np.where(np.arange(edges) % 2, rng.integers(0, nodes, edges), 0)
    dst = rng.integers(0, nodes, edges)
    graph.load({"R": pa.table({"from": ids[src], "to": ids[dst]})})
    some = np.repeat(np.arange(edges // 8), 8)
    graph.load({"M": pa.table({"from": ids[src[some]], "to": ids[dst[some]]})})
    warm = "max($a.n) as x, max($b.t) as y, max($e.id) as z"
    graph.query(f"match {{ $a: P $a $e:r $b }} return {{ {warm} }}")
    graph.query("match { $a: P $a r{1,2} $b } return { $a.k as x, $b.@id as y } limit 1")
    graph.query("MATCH p = (:P {k: 'p0000001'})-[:R*1..2]-() RETURN nodes(p) AS l LIMIT 1")
    return graph


def memory(word: str) -> int:
    """Bytes of this process, by a word of its status."""
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith(word):
            return int(line.split()[1]) << 10
    raise KeyError(word)


def asked(graph: Graph, text: str, seconds: float) -> dict[str, object]:
    gc.collect()
    started = time.monotonic()
    try:
        outcome: dict[str, object] = {"rows": len(graph.query(text, timeout=seconds))}
    except OmnigraphError as error:
        outcome = {"code": error.code, "details": dict(error.details)}
    return {**outcome, "seconds": time.monotonic() - started}


def main() -> None:
    budget, nodes, edges, seconds, *names = sys.argv[1:]
    os.environ["OMNIGRAPH_QUERY_MEMORY"] = budget
    graph = made(int(nodes), int(edges))
    gc.collect()
    pa.default_memory_pool().release_unused()
    base = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", "ascii")  # peaks count from here
    for name in names or QUERIES:
        found = asked(graph, QUERIES[name], float(seconds))
        print(json.dumps({"query": name, **found, "peak": memory("VmHWM") - base}), flush=True)


if __name__ == "__main__":
    main()
