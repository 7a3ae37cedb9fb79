"""Measures of whole graphs give the same answers on Spark as in process."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.analytics import Analytics

pytestmark = pytest.mark.xdist_group("spark")
SCHEMA = "node P { name: String @key  size: I64? } edge Knows: P -> P edge Likes: P -> P"
MEASURES: dict[str, dict[str, Any]] = {
    "degrees": {"direction": "in"},
    "pagerank": {"iterations": 4},
    "components": {},
    "reach": {"hops": 2},
    "triangles": {},
    "labels": {"iterations": 2},
    "distances": {"sources": ["n00", "n20", "nobody"]},
}


def random_graph(seed: int, folder: Path) -> Graph:
    """Parallel edges, self-loops and nodes without any edge among them."""
    made = omnigraph.init(folder / f"graph-{seed}", schema=SCHEMA)
    rng = random.Random(seed)
    names = [f"n{i:02}" for i in range(rng.randint(21, 40))]
    ends = [(rng.choice(names), rng.choice(names[:20])) for _ in range(rng.randint(10, 90))]
    edges = [{"from": a, "to": b} for a, b in [*ends, *ends[:5], ("n03", "n03")]]
    rows = {"P": [{"name": n} for n in names], "Knows": edges[:40], "Likes": edges[40:]}
    made.load(rows, mode="append", engine="local")
    return made


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return random_graph(3, tmp_path_factory.mktemp("analytics"))


def agree(graph: Graph, name: str) -> None:
    local, on_spark = (
        getattr(graph.analytics(engine=engine), name)("P", ["Knows", "Likes"], **MEASURES[name])
        for engine in ("local", "spark")
    )
    expected = local.to_dict()
    assert on_spark.to_dict() == (pytest.approx(expected) if name == "pagerank" else expected)
    assert list(on_spark.to_dict()) == list(expected), "not in the order of ids"
    assert on_spark.table.schema.types == local.table.schema.types


def test_every_measure_is_compared() -> None:
    assert set(MEASURES) == {name for name in vars(Analytics) if name[0] != "_"} - {
        *Analytics.__dataclass_fields__
    }


@pytest.mark.parametrize("name", MEASURES)
def test_both_engines_measure_the_same(name: str, graph: Graph, spark: Any) -> None:
    agree(graph, name)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(20))
def test_both_engines_measure_other_graphs_alike(seed: int, spark: Any, tmp_path: Path) -> None:
    graph = random_graph(100 + seed, tmp_path)
    for name in MEASURES:
        agree(graph, name)


def test_what_spark_measured_is_written_back(graph: Graph, spark: Any) -> None:
    found = graph.analytics(engine="spark").degrees("P", ["Knows"])
    found.write("size")
    rows = graph.query("query q() { match { $p: P } return { $p.name as n, $p.size as s } }").rows
    assert {row["n"]: row["s"] for row in rows} == found.to_dict()
