"""Graphs in Spark programs: DataFrames of a graph, the format `omnigraph`, and loads of DataFrames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from tests.pipeline.planes import new_graph, state_of


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return new_graph(tmp_path, "frames")


def read(spark: Any, graph: Graph, kind: str, **options: str) -> Any:
    from omnigraph.pipeline.source import OmnigraphSource

    OmnigraphSource.register(spark)
    reader = spark.read.format("omnigraph").option("graph", graph.uri).option("type", kind)
    return reader.options(**options).load()


def test_a_graph_is_dataframes_pinned_to_a_commit(graph: Graph, spark: Any) -> None:
    frames = graph.spark(spark)
    graph.mutate('query q() { insert City { name: "Later" } }')
    assert sorted(r.name for r in frames.nodes("City").collect()) == ["Oslo", "Rome"]
    row = frames.edges("Rates").collect()[0]
    assert (row["from"], row["to"], row["stars"]) == ("ada@x", "Oslo", 4)
    assert frames.nodes("City").where("size = 700000").count() == 1


def test_only_the_columns_asked_for_are_read(graph: Graph, spark: Any) -> None:
    frames = graph.spark(spark)
    rates = frames.edges("Rates", columns=["stars", "to"])
    assert [row.asDict() for row in rates.collect()] == [{"stars": 4, "to": "Oslo"}]
    assert frames.nodes("Person", columns=["email"]).columns == ["email"]
    with pytest.raises(omnigraph.errors.OptionInvalid, match="Rates has no column src"):
        frames.edges("Rates", columns=["src"])


def test_the_format_reads_columns_and_filters(graph: Graph, spark: Any) -> None:
    people = read(spark, graph, "Person", columns="email,age")
    assert people.columns == ["email", "age"]
    few = people.where("age > 10 and email = 'ada@x'")
    assert "Filter" not in few._jdf.queryExecution().executedPlan().toString().split("BatchScan")[0]
    assert [tuple(r) for r in few.collect()] == [("ada@x", 36)]
    old = graph.log()[-1].id
    assert read(spark, graph, "Person", at=old).count() == 0


def test_the_format_writes_one_checked_commit(graph: Graph, spark: Any) -> None:
    rows = [("Bern", None), ("Lima", 5)]
    frame = spark.createDataFrame(rows, "name string, size long").repartition(2)
    writer = frame.write.format("omnigraph").option("graph", graph.uri).option("type", "City")
    read(spark, graph, "City")
    before = len(graph.log())
    writer.mode("append").save()
    assert len(graph.log()) == before + 1
    assert {row["name"] for row in state_of(graph)["City"]} == {"Oslo", "Rome", "Bern", "Lima"}
    with pytest.raises(Exception, match="already exists"):
        writer.mode("append").save()
    writer.option("load_mode", "merge").mode("append").save()
    assert len(graph.log()) == before + 2


def test_the_format_writes_once_under_a_key(graph: Graph, spark: Any) -> None:
    """As often as a notebook or a scheduler repeats it; another write under the key is refused."""
    read(spark, graph, "City")
    notes = spark.createDataFrame([("a",), ("b",)], "text string")
    options = {"graph": graph.uri, "type": "Note", "key": "day-1", "message": "notes of day 1"}
    writer = notes.write.format("omnigraph").options(**options, actor="loader").mode("append")
    before = len(graph.log())
    writer.save()
    writer.save()
    commits = graph.log()
    assert (len(commits), len(state_of(graph)["Note"])) == (before + 1, 2)
    assert (commits[0].message, commits[0].actor) == ("notes of day 1", "loader")
    with pytest.raises(Exception, match="was used for another request"):
        writer.mode("overwrite").save()


def test_dataframes_are_loaded_by_type(graph: Graph, spark: Any) -> None:
    people = spark.createDataFrame(
        [("eve@x", "Eve"), ("fay@x", "Fay")], "email string, name string"
    )
    knows = spark.createDataFrame([("eve@x", "fay@x")], "`from` string, `to` string")
    result = graph.load({"Person": people, "Knows": knows}, mode="append")
    assert (result.engine, result.nodes, result.edges) == ("spark", {"Person": 2}, {"Knows": 1})
    missing = spark.createDataFrame([("eve@x", "nobody")], "`from` string, `to` string")
    with pytest.raises(omnigraph.OmnigraphError, match="not found in Person"):
        graph.load({"Knows": missing}, mode="append")


@pytest.mark.parametrize("format", ["ndjson", "parquet"])
def test_an_export_has_numbered_parts_and_a_list_of_them(
    format: str, graph: Graph, spark: Any, tmp_path: Path
) -> None:
    local = graph.export(tmp_path / "local", format, engine="local")
    on_spark = graph.export(tmp_path / "spark", format, engine="spark")
    assert on_spark.rows == local.rows
    assert (tmp_path / "spark" / "export.json").exists()
    written = {path.name for path in (tmp_path / "spark").iterdir()} - {"export.json"}
    assert written == {part.file for part in on_spark.parts}
    if format == "ndjson":
        schema = graph.schema()
        again = omnigraph.init(tmp_path / "again", schema=schema)
        again.load(str(tmp_path / "spark" / "*.ndjson"), mode="append", engine="local")
        assert state_of(again) == state_of(graph)
