"""Streams into a graph: each micro-batch once, whatever is repeated."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import OptionInvalid
from omnigraph.pipeline.streams import AfterBatches, each_batch
from tests.support.rings import count

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


def edges(graph: Graph, branch: str = "main") -> int:
    snapshot = graph.snapshot(branch)
    return snapshot.table_of(snapshot.catalog.edges["K"]).count()


def test_each_batch_is_loaded_once_through_restarts_at_random_points(
    spark: Any, tmp_path: Path
) -> None:
    """The driver dies before a batch is loaded, or when it is loaded but its checkpoint is not written.

    Beside it the stream compacts its branch and merges it into main.
    """
    batches, chance = count(5, 200), random.Random(7)
    graph, stream = new_graph(tmp_path, batches), Stream(spark, tmp_path)
    graph.create_branch("inbox")
    after = AfterBatches(optimize_every=4, merge_into="main", merge_every=3)
    inbox = graph.branch("inbox")
    load = each_batch(inbox, "K", mode="append", message="from the stream", after=after)
    plan = {n: chance.choice(("before", "after", "both", "never")) for n in range(batches)}
    plan |= {0: "after", 1: "before"}
    died: set[tuple[int, str]] = set()

    def dies(number: int, when: str) -> None:
        if plan[number] in (when, "both") and (number, when) not in died:
            died.add((number, when))
            raise KeyError("the driver is gone")

    def mortal(batch: Any, number: int) -> None:
        dies(number, "before")
        load(batch, number)
        dies(number, "after")

    stream.give(batches)
    expected = sum({"both": 2, "never": 0}.get(when, 1) for when in plan.values())
    for _ in range(expected):
        with pytest.raises(Exception, match="driver is gone"):
            stream.run(mortal)
    stream.run(mortal)
    assert edges(graph, "inbox") == 2 * stream.given
    commits = [c for c in inbox.log(limit=5 * batches) if c.message == "from the stream"]
    assert len(commits) == stream.given, "a batch is more or less than one commit"
    merged = batches - batches % 3
    assert edges(graph) == 2 * merged, "every third batch brings main up to date"
    snapshot = inbox.snapshot()
    fragments = len(snapshot.table_of(snapshot.catalog.edges["K"]).fragments())
    assert fragments <= 4 + 1, "the stream does not compact what it writes"


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
    with pytest.raises(OptionInvalid, match="the stream"):
        each_batch(graph, "K")(frame, 0)
    named = each_batch(graph, "K", stream="mine")
    named(frame, 0)
    named(frame, 0)
    assert edges(graph) == 1
