"""Queries return the same rows on Spark as in process."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.pipeline.query import NotOnSpark
from tests.pipeline.queries import QUERIES, SAMPLE, TEXT, comparable, fixed_rows, is_ordered
from tests.support.random_queries import SCHEMA, QueryMaker

pytestmark = pytest.mark.xdist_group("spark")
RANDOM_QUERIES = 60


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    made = omnigraph.init(tmp_path_factory.mktemp("queries") / "graph", schema=SCHEMA)
    made.load(fixed_rows(), mode="append", engine="local")
    return made


def agree(graph: Graph, name: str) -> None:
    ordered = is_ordered(name)
    local, spark = (graph.query(TEXT, name=name, engine=engine) for engine in ("local", "spark"))
    assert spark.columns == local.columns
    assert comparable(spark.rows, ordered=ordered) == comparable(local.rows, ordered=ordered)
    assert spark.commit == local.commit


def test_there_are_enough_queries() -> None:
    assert len(QUERIES) >= 45
    assert set(SAMPLE) <= set(QUERIES)


@pytest.mark.parametrize("name", SAMPLE)
def test_a_query_of_each_kind(name: str, graph: Graph, spark: Any) -> None:
    agree(graph, name)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name in QUERIES if name not in SAMPLE])
def test_every_other_query(name: str, graph: Graph, spark: Any) -> None:
    agree(graph, name)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(RANDOM_QUERIES))
def test_random_queries(seed: int, graph: Graph, spark: Any) -> None:
    text = QueryMaker(random.Random(seed)).query()
    local, on_spark = (graph.query(text, engine=engine) for engine in ("local", "spark"))
    assert comparable(on_spark.rows, ordered=False) == comparable(local.rows, ordered=False)


def test_what_does_not_run_on_spark_is_named(tmp_path: Path, spark: Any) -> None:
    graph = omnigraph.init(tmp_path / "graph", schema="node Note { text: String @index }")
    text = 'query q() { match { $n: Note } return { $n.text as t } order { bm25($n.text, "a") } limit 1 }'
    with pytest.raises(NotOnSpark, match="does not run on Spark") as refused:
        graph.query(text, engine="spark")
    assert refused.value.details["operator"] in ("Rank", "Score")
