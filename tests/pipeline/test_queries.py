"""Queries return the same rows on Spark as in process."""

from __future__ import annotations

import random
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import OmnigraphError
from omnigraph.pipeline import walks
from tests.pipeline.queries import (
    QUERIES,
    SAMPLE,
    SEARCH_SAMPLE,
    SEARCH_SCHEMA,
    SEARCH_TEXT,
    SEARCHES,
    TEXT,
    comparable,
    documents,
    fixed_rows,
    is_ordered,
)
from tests.support.random_queries import SCHEMA, QueryMaker
from tests.support.rings import count

RANDOM_QUERIES = 150
OVERFLOW = (
    "arithmetic_overflow"  # which values are calculated, and so overflow, is up to the engine
)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    made = omnigraph.init(tmp_path_factory.mktemp("queries") / "graph", schema=SCHEMA)
    made.load(fixed_rows(), mode="append", engine="local")
    return made


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    made = omnigraph.init(tmp_path_factory.mktemp("searches") / "graph", schema=SEARCH_SCHEMA)
    rows = documents()
    for half in (slice(0, 12), slice(12, None)):  # two fragments, so that statistics are added up
        made.load({"Doc": rows["Doc"][half]}, mode="append", engine="local")
    del rows["Doc"]
    made.load(rows, mode="append", engine="local")
    return made


def agree(graph: Graph, text: str, name: str, body: str) -> None:
    ordered = is_ordered(body)
    local, spark = (graph.query(text, name=name, engine=engine) for engine in ("local", "spark"))
    assert spark.columns == local.columns
    assert comparable(spark.rows, ordered=ordered) == comparable(local.rows, ordered=ordered)
    assert spark.commit == local.commit


def test_there_are_enough_queries() -> None:
    assert len(QUERIES) >= 45
    assert set(SAMPLE) <= set(QUERIES)
    assert set(SEARCH_SAMPLE) <= set(SEARCHES)


@pytest.mark.parametrize("name", SAMPLE)
def test_a_query_of_each_kind(name: str, graph: Graph, spark: Any) -> None:
    agree(graph, TEXT, name, QUERIES[name])


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name in QUERIES if name not in SAMPLE])
def test_every_other_query(name: str, graph: Graph, spark: Any) -> None:
    agree(graph, TEXT, name, QUERIES[name])


FROM_NAMED_NODES = {
    "one hop": "$p knows $q",
    "two hops": "$p knows $q $q <knows|likes> $r",
    "to another type": "$p livesIn $q",
    "edges with variables": "$p $e:<knows|likes> $q",
    "edges of several types": "$p $e:knows|likes $q $q livesIn $r",
    "a range": "$p <knows>{1,3} $q",
    "exactly two": "$p knows{2,2} $q",
    "shortest": "$w = path $p <knows|likes>{1,4} $q",
    "several named at both ends": "$p knows $q $q: Person $q.id in $codes",
}


@pytest.mark.parametrize("few", [0, 1, 3, 4_096])
def test_walks_from_named_nodes(
    few: int, graph: Graph, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Edges are asked for by their ends while these are few, and read whole from then on: the rows stay the same."""
    monkeypatch.setattr(walks, "FEW", few)
    codes = [
        row["code"] for row in graph.query("match { $p: Person } return { $p.code as code }").rows
    ]
    for shape, match in FROM_NAMED_NODES.items():
        counted = ("$p", "$q", "$r", "$w", "distinct $w")
        there = [v for v in counted if v.split()[-1] in match]
        wanted = ", ".join(f"count({v}) as n{number}" for number, v in enumerate(there))
        text = (
            "query q($codes: [String]) { match { $p: Person $p.id in $codes "
            f"{match} }} return {{ $p.code as code, {wanted} }} }}"
        )
        for asked in (codes[:1], codes[:3], [*codes, "not there"], []):
            rows = [
                comparable(graph.query(text, {"codes": asked}, engine=e).rows, ordered=False)
                for e in ("local", "spark")
            ]
            assert rows[0] == rows[1], (shape, asked)


def test_paths_of_a_block_are_counted(graph: Graph, spark: Any) -> None:
    text = "match { $p: Person count($w) { $w = path $p knows{1,3} $q } > 1 } return { $p.code as code }"
    local, on_spark = (
        comparable(graph.query(text, engine=e).rows, ordered=False) for e in ("local", "spark")
    )
    assert local == on_spark
    assert local


@pytest.mark.parametrize("name", SEARCH_SAMPLE)
def test_a_search_of_each_kind(name: str, library: Graph, spark: Any) -> None:
    agree(library, SEARCH_TEXT, name, SEARCHES[name])


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name in SEARCHES if name not in SEARCH_SAMPLE])
def test_every_other_search(name: str, library: Graph, spark: Any) -> None:
    agree(library, SEARCH_TEXT, name, SEARCHES[name])


@pytest.mark.parametrize("seed", range(count(3, RANDOM_QUERIES)))
def test_random_queries(seed: int, graph: Graph, spark: Any) -> None:
    text = QueryMaker(random.Random(seed)).query()
    local, on_spark = (outcome(graph, text, engine) for engine in ("local", "spark"))
    if OVERFLOW not in (local, on_spark):
        assert on_spark == local, text


def outcome(graph: Graph, text: str, engine: str) -> list[Any] | str:
    try:
        return comparable(graph.query(text, engine=engine).rows, ordered=False)
    except OmnigraphError as error:
        return error.code


def test_a_plan_reads_the_same_without_figures(graph: Graph, spark: Any) -> None:
    name, text = next(iter(QUERIES.items()))
    local, on_spark = (
        graph.query(TEXT, name=name, engine=engine, explain=True).explain()
        for engine in ("local", "spark")
    )
    found = str(on_spark).splitlines()
    assert " ms]" not in str(on_spark), text
    assert sorted(found) == sorted(line.split("  [")[0] for line in str(local).splitlines())
