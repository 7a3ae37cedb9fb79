"""Spark is told how large tables are, many keys are compared in partitions, and few new rows are looked up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph, OmnigraphError
from omnigraph.pipeline import judging, lookups, screen
from omnigraph.pipeline import load as bulk
from omnigraph.pipeline.analytics import spark_network
from omnigraph.pipeline.table_versions import numbers

SCHEMA = "node P { name: String @key  code: I64? @unique }  edge K: P -> P @card(0..)  edge One: P -> P @card(0..1)"
PEOPLE = 400_000
ON_SPARK = bulk.Tuning(judged_rows_max=0)


def size_of(frame: Any) -> int:
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    graph = omnigraph.init(tmp_path_factory.mktemp("large") / "graph", schema=SCHEMA)
    names = pa.array([f"p{i}" for i in range(PEOPLE)])
    hub = pa.array(["p0"] * PEOPLE)
    graph.load({"P": pa.table({"name": names}), "K": pa.table({"from": hub, "to": names})})
    return graph


@pytest.mark.parametrize(("count", "rows"), [(1, 0), (3, 1), (3, 3), (4, 1_000_003), (7, 1 << 40)])
def test_every_task_gets_its_number_once(spark: Any, count: int, rows: int) -> None:
    frame = numbers(spark, count, rows)
    assert frame.rdd.glom().map(len).collect() == [1] * count
    assert sorted(row.id for row in frame.collect()) == list(range(count))


def test_what_is_large_is_not_broadcast_and_what_is_small_is(large: Graph, spark: Any) -> None:
    def plan(joined: Any) -> str:
        return str(joined._jdf.queryExecution().executedPlan().toString())

    with spark_network(large.spark(spark), "P", ["K"]) as net:
        for frame in (net.nodes, net.edges, large.spark(spark).nodes("P")):
            assert size_of(frame) > 10 * PEOPLE
        assert "Broadcast" not in plan(net.edges.join(net.nodes, net.edges.dst == net.nodes.id))
        few = large.spark(spark).edges("One")
        assert "BroadcastHashJoin" in plan(net.nodes.join(few, net.nodes.id == few["to"]))


def test_spark_is_told_how_wide_rows_are(spark: Any, tmp_path: Path) -> None:
    """A thousand rows of names may be sent to every task, a thousand vectors of as many numbers not."""
    schema = "node Named { name: String @key }  node Doc { name: String @key  at: Vector(768)  tags: [String]? }"
    graph = omnigraph.init(tmp_path / "graph", schema=schema)
    rows = pa.table({"name": [f"d{i}" for i in range(1_000)]})
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.5] * 768_000, pa.float32()), 768)
    graph.load({"Named": rows, "Doc": rows.append_column("at", vectors)})
    frames = graph.spark(spark)
    named, docs = size_of(frames.nodes("Named")), size_of(frames.nodes("Doc"))
    assert 10 * 1_000 < named < 100 * 1_000
    assert 768 * 4 * 1_000 < docs < 4 * 768 * 4 * 1_000


def refuse(*_: Any) -> Any:
    raise AssertionError("whole tables were compared")


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_few_new_rows_are_looked_up(
    large: Graph, spark: Any, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("verify", "keys_hold", "counts_hold"):
        monkeypatch.setattr(judging, name, refuse)
    name = f"new {mode}"
    people = spark.createDataFrame([(name,)], "name string")
    edges = spark.createDataFrame([(name, "p7"), ("p8", name)], "`from` string, `to` string")
    done = large.load({"P": people, "K": edges}, mode=mode)
    assert (done.nodes, done.edges) == ({"P": 1}, {"K": 2})


WRONG = {
    "duplicate": ("P", "name string, code long", [("a", None), ("a", None)]),
    "key_conflict": ("P", "name string, code long", [("p5", None)]),
    "unique": ("P", "name string, code long", [("a", 5), ("b", 5)]),
    "endpoint": ("K", "`from` string, `to` string", [("p1", "nobody"), ("p1", "p2")]),
    "cardinality": ("One", "`from` string, `to` string", [("p1", "p2"), ("p1", "p3")]),
}


@pytest.mark.parametrize("rule", WRONG)
@pytest.mark.parametrize("way", ["look-ups", "partitions"])
def test_what_is_wrong_is_found_in_every_way(
    large: Graph, spark: Any, rule: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "partitions":
        monkeypatch.setattr(lookups, "LOOKED_UP_ROWS_MAX", -1)
        monkeypatch.setattr(screen, "PARTITION_KEYS", 100_000)
        monkeypatch.setattr(bulk, "Tuning", lambda: ON_SPARK)
    kind, columns, rows = WRONG[rule]
    frame = spark.createDataFrame(rows, columns).repartition(2)
    with pytest.raises(OmnigraphError) as refused:
        large.load({kind: frame}, mode="append")
    assert {v["rule"] for v in refused.value.details["violations"]} == {rule}


def test_many_rows_are_compared_in_partitions(
    large: Graph, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookups, "LOOKED_UP_ROWS_MAX", -1)
    monkeypatch.setattr(screen, "PARTITION_KEYS", 100_000)
    monkeypatch.setattr(bulk, "Tuning", lambda: ON_SPARK)
    monkeypatch.setattr(judging, "verify", refuse)
    many = spark.range(50_000).selectExpr("concat('many', id) AS name", "id AS code")
    edges = many.selectExpr("name AS `from`", "'p0' AS `to`")
    done = large.load({"P": many, "One": edges}, mode="append")
    assert (done.nodes, done.edges) == ({"P": 50_000}, {"One": 50_000})
