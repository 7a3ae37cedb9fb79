"""Measures of whole graphs give the same answers on Spark as in process."""

from __future__ import annotations

import logging
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.analytics import Analytics
from omnigraph.pipeline import block_steps, blocks
from tests.pipeline.planes import kept_frames

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
BY_BLOCKS = ("pagerank", "components", "triangles", "labels", "distances")


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


def agree(graph: Graph, name: str, **how: Any) -> None:
    given = MEASURES[name] | how
    local, on_spark = (
        getattr(graph.analytics(engine=engine), name)("P", ["Knows", "Likes"], **given)
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


def shaped(folder: Path, count: int, ends: list[tuple[int, int]]) -> Graph:
    made = omnigraph.init(folder / "graph", schema=SCHEMA)
    edges = [{"from": f"n{a:04}", "to": f"n{b:04}"} for a, b in ends]
    rows = {"P": [{"name": f"n{i:04}"} for i in range(count)], "Knows": edges[::2]}
    made.load({**rows, "Likes": edges[1::2]}, mode="append", engine="local")
    return made


def chain(count: int) -> list[tuple[int, int]]:
    """A way through all nodes in no order."""
    names = list(range(count))
    random.Random(5).shuffle(names)
    return list(pairwise(names))


HUB = [(0, n) for n in range(1, 60)] + [(n, 0) for n in range(1, 60, 2)]
RIM = [(n, n % 59 + 1) for n in range(1, 60)]
LOOPS = [(0, 0), (62, 62), (62, 62)]
CLIQUES = [(a, b) for a in range(70, 82) for b in range(70, a) if a // 6 == b // 6] + [(77, 78)]
SHAPES: dict[str, tuple[int, list[tuple[int, int]]]] = {
    "nothing": (0, []),
    "nodes alone": (9, []),
    "a hub, loops, cliques and nodes alone": (90, HUB + RIM + HUB[:9] + LOOPS + CLIQUES),
}


@pytest.mark.parametrize(
    ("shape", "block_nodes"),
    [
        pytest.param("a hub, loops, cliques and nodes alone", 30, id="many blocks"),
        pytest.param("nothing", None, id="nothing"),
        pytest.param("nothing", 30, marks=pytest.mark.nightly),
        pytest.param("nodes alone", 30, marks=pytest.mark.nightly),
        pytest.param("nodes alone", None, marks=pytest.mark.nightly),
        pytest.param("a hub, loops, cliques and nodes alone", None, marks=pytest.mark.nightly),
    ],
)
def test_graphs_of_every_shape(
    shape: str,
    block_nodes: int | None,
    spark: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if block_nodes is not None:
        monkeypatch.setattr(blocks, "BLOCK_NODES", block_nodes)
    graph = shaped(tmp_path, *SHAPES[shape])
    sources = {"distances": {"sources": ["n0000", "n0003"]}}
    for name in BY_BLOCKS if block_nodes else MEASURES:
        agree(graph, name, **sources.get(name, {}))


def test_many_blocks_measure_the_same(
    graph: Graph, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_NODES", 12)
    monkeypatch.setattr(block_steps, "WEDGES_MAX", 3)
    for name in BY_BLOCKS:
        agree(graph, name)


def test_a_long_chain_takes_few_rounds(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    graph = shaped(tmp_path, 2_000, chain(2_000))
    agree(graph, "distances", sources=["n0007"])
    monkeypatch.setattr(blocks, "BLOCK_NODES", 600)
    with caplog.at_level(logging.INFO, "omnigraph.pipeline"):
        agree(graph, "components")
    told = [record.getMessage() for record in caplog.records if "components" in record.getMessage()]
    assert 2 < len(told) <= 15, told
    assert told[-1].endswith("changed 0")


def test_nothing_is_kept_after_a_measure(graph: Graph, spark: Any) -> None:
    before = kept_frames(spark)
    for name, how in MEASURES.items():
        getattr(graph.analytics(engine="spark"), name)("P", ["Knows"], **how)
        assert kept_frames(spark) <= before, name


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(20))
def test_both_engines_measure_other_graphs_alike(
    seed: int, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_NODES", 3 * seed + 2)
    graph = random_graph(100 + seed, tmp_path)
    for name in MEASURES:
        agree(graph, name)


def test_what_spark_measured_is_written_back(graph: Graph, spark: Any) -> None:
    found = graph.analytics(engine="spark").degrees("P", ["Knows"])
    found.write("size")
    rows = graph.query("query q() { match { $p: P } return { $p.name as n, $p.size as s } }").rows
    assert {row["n"]: row["s"] for row in rows} == found.to_dict()
