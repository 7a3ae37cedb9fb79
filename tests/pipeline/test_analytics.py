"""Measures of whole graphs give the same answers on Spark as in process."""

from __future__ import annotations

import random
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph

pytestmark = pytest.mark.xdist_group("spark")
SCHEMA = "node P { name: String @key  size: I64? } edge Knows: P -> P edge Likes: P -> P"
MEASURES: dict[str, dict[str, Any]] = {
    "degrees": {},
    "pagerank": {"iterations": 4},
    "components": {},
    "reach": {"hops": 2},
    "triangles": {},
    "labels": {"iterations": 2},
    "distances": {"sources": ["n00", "n20"]},
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    made = omnigraph.init(tmp_path_factory.mktemp("analytics") / "graph", schema=SCHEMA)
    rng = random.Random(3)
    names = [f"n{i:02}" for i in range(30)]
    edges = [{"from": rng.choice(names), "to": rng.choice(names[:20])} for _ in range(60)]
    rows = {"P": [{"name": n} for n in names], "Knows": edges[:40], "Likes": edges[40:]}
    made.load(rows, mode="append", engine="local")
    return made


@pytest.mark.parametrize("name", MEASURES)
def test_both_engines_measure_the_same(name: str, graph: Graph, spark: Any) -> None:
    local, on_spark = (
        getattr(graph.analytics(engine=engine), name)("P", ["Knows", "Likes"], **MEASURES[name])
        for engine in ("local", "spark")
    )
    expected = local.to_dict()
    assert on_spark.to_dict() == (pytest.approx(expected) if name == "pagerank" else expected)


def test_what_spark_measured_is_written_back(graph: Graph, spark: Any) -> None:
    found = graph.analytics(engine="spark").degrees("P", ["Knows"])
    found.write("size")
    rows = graph.query("query q() { match { $p: P } return { $p.name as n, $p.size as s } }").rows
    assert {row["n"]: row["s"] for row in rows} == found.to_dict()
