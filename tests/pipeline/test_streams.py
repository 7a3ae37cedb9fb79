"""Streams into a graph: each micro-batch once, whatever is repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import OptionInvalid
from omnigraph.pipeline.streams import each_batch
from tests.support.rings import count

pytestmark = pytest.mark.xdist_group("spark")
SCHEMA = "node P { name: String @key  age: I32? }  edge K: P -> P"
COLUMNS = "`from` string, `to` string"


class Stream:
    """Edges that come as files, one file a micro-batch."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        (folder / "in").mkdir()
        self.given = 0

    def give(self, files: int) -> None:
        for _ in range(files):
            text = f'{{"from": "a", "to": "b"}}\n{{"from": "b", "to": "p{self.given}"}}\n'
            draft = self.folder / f"{self.given}.json"
            draft.write_text(text)
            draft.rename(self.folder / "in" / f"{self.given:05}.json")
            self.given += 1

    def run(self, load: Any, checkpoint: str = "checkpoint") -> None:
        rows = self.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", "1")
        found = rows.json(str(self.folder / "in")).writeStream.foreachBatch(load)
        place = str(self.folder / checkpoint)
        found.option("checkpointLocation", place).trigger(
            availableNow=True
        ).start().awaitTermination()


def new_graph(folder: Path, people: int) -> Graph:
    graph = omnigraph.init(folder / "graph", schema=SCHEMA)
    graph.load({"P": [{"name": n} for n in ("a", "b", *(f"p{i}" for i in range(people)))]})
    return graph


def edges(graph: Graph) -> int:
    snapshot = graph.snapshot()
    return snapshot.table_of(snapshot.catalog.edges["K"]).count()


def test_a_batch_that_spark_repeats_is_loaded_once(spark: Any, tmp_path: Path) -> None:
    batches = count(4, 40)
    graph, stream = new_graph(tmp_path, batches + 1), Stream(spark, tmp_path)
    load = each_batch(graph, "K", mode="append", message="from the stream")
    died: set[int] = set()

    def dies_after_every_second_batch(batch: Any, number: int) -> None:
        load(batch, number)
        if number % 2 and number not in died:
            died.add(number)
            raise KeyError("the driver is gone before its checkpoint is written")

    stream.give(batches)
    for _ in range(batches // 2):
        with pytest.raises(Exception, match="driver is gone"):
            stream.run(dies_after_every_second_batch)
    stream.give(1)
    stream.run(dies_after_every_second_batch)
    assert edges(graph) == 2 * stream.given
    commits = [c for c in graph.log() if c.message == "from the stream"]
    assert len(commits) == stream.given, "a batch is more or less than one commit"


def test_a_new_stream_never_passes_for_an_old_one(spark: Any, tmp_path: Path) -> None:
    graph, stream = new_graph(tmp_path, 1), Stream(spark, tmp_path)
    stream.give(1)

    def people(batch: Any) -> dict[str, Any]:
        return {"P": batch.selectExpr("`to` AS name", "1 AS age").distinct()}

    stream.run(each_batch(graph, people))
    graph.mutate('query q() { update P set { age: 2 } where name = "b" }')
    stream.run(each_batch(graph, people), checkpoint="another")
    ages = graph.query('query q() { match { $p: P { name: "b" } } return { $p.age } }').rows
    assert ages == [{"p.age": 1}], (
        "a batch of another stream was taken for one that had been loaded"
    )
    stream.run(each_batch(graph, "K"), checkpoint="third")
    assert edges(graph) == 2


def test_without_a_stream_a_batch_has_no_name(spark: Any, tmp_path: Path) -> None:
    graph = new_graph(tmp_path, 0)
    frame = spark.createDataFrame([("a", "b")], COLUMNS)
    with pytest.raises(OptionInvalid, match="which stream"):
        each_batch(graph, "K")(frame, 0)
    named = each_batch(graph, "K", stream="mine")
    named(frame, 0)
    named(frame, 0)
    assert edges(graph) == 1
