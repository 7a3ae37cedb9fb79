"""The measures of `read.analytics` on Spark: the same answers, for graphs beyond the memory of one machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.pipeline.blocks import NetworkBlocks
from omnigraph.pipeline.frames import GraphFrames
from omnigraph.pipeline.session import arrow_of
from omnigraph.read.analytics import edges_among

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROUNDS_MAX = 10_000  # of loops that end by themselves


@dataclass(frozen=True, slots=True)
class SparkNetwork:
    """Nodes (`id`) and edges (`src`, `dst`), kept between rounds."""

    nodes: DataFrame
    edges: DataFrame

    def undirected(self) -> DataFrame:
        """Each pair of different neighbours once in either direction."""
        turned = self.edges.selectExpr("dst AS src", "src AS dst")
        return self.edges.union(turned).where("src <> dst").distinct()

    def table(self, values: DataFrame, empty: Any = None) -> pa.Table:
        """One value for each node, ascending by id; `empty` where there is none."""
        from pyspark.sql import functions as f

        found = self.nodes.join(values, "id", "left").select("id", "value")
        if empty is not None:
            found = found.withColumn("value", f.coalesce("value", f.lit(empty)))
        return arrow_of(found.orderBy("id"))


def spark_network(frames: GraphFrames, node: str, edges: Sequence[str]) -> SparkNetwork:
    """The nodes and edges of some types."""
    kinds = edges_among(frames.pinned.snapshot(), node, edges)
    parts = [frames.edges(kind.name).selectExpr("`from` AS src", "`to` AS dst") for kind in kinds]
    nodes = frames.nodes(node).select("id")
    none = nodes.selectExpr("id AS src", "id AS dst").limit(0)
    return SparkNetwork(
        nodes.localCheckpoint(), reduce(lambda a, b: a.union(b), parts, none).localCheckpoint()
    )


def degrees(net: SparkNetwork, sides: Sequence[str]) -> pa.Table:
    from pyspark.sql import functions as f

    ends = [net.edges.select(f.col(side).alias("id")) for side in sides]
    counted = reduce(lambda a, b: a.union(b), ends).groupBy("id").agg(f.count("*").alias("value"))
    return net.table(counted, 0)


def pagerank(net: SparkNetwork, damping: float, iterations: int) -> pa.Table:
    return net.table(NetworkBlocks.of(net.nodes, net.edges).pagerank(damping, iterations))


def components(net: SparkNetwork) -> pa.Table:
    from pyspark.sql import functions as f

    pairs = net.undirected().localCheckpoint()
    label = net.nodes.withColumn("value", f.col("id"))
    for _ in range(ROUNDS_MAX):
        near = pairs.join(label.selectExpr("id AS dst", "value"), "dst")
        least = near.groupBy(f.col("src").alias("id")).agg(f.min("value").alias("other"))
        moved = label.join(least, "id", "left").select(
            "id", f.least("value", f.coalesce("other", "value")).alias("new"), "value"
        )
        # A label's own label is at least as small: paths halve from round to round.
        roots = moved.selectExpr("id AS new", "new AS root")
        moved = moved.join(roots, "new").select("id", "value", f.least("new", "root").alias("new"))
        moved = moved.localCheckpoint()
        label = moved.selectExpr("id", "new AS value")
        if moved.where("new <> value").isEmpty():
            break
    return net.table(label)


def reach(net: SparkNetwork, hops: int) -> pa.Table:
    from pyspark.sql import functions as f

    ways = net.edges.distinct().localCheckpoint()
    seen = frontier = net.nodes.selectExpr("id", "id AS node").localCheckpoint()
    for _ in range(hops):
        steps = frontier.join(ways, frontier["node"] == ways["src"]).selectExpr("id", "dst AS node")
        frontier = steps.distinct().join(seen, ["id", "node"], "left_anti").localCheckpoint()
        if frontier.isEmpty():
            break
        seen = seen.union(frontier)
    return net.table(seen.groupBy("id").agg((f.count("*") - 1).alias("value")), 0)


def triangles(net: SparkNetwork) -> pa.Table:
    from pyspark.sql import functions as f

    up = net.undirected().where("src < dst").localCheckpoint()
    first, second = up.selectExpr("src AS a", "dst AS b"), up.selectExpr("src AS b", "dst AS c")
    third = up.selectExpr("src AS a", "dst AS c")
    found = first.join(second, "b").join(third, ["a", "c"])
    corners = found.select(f.explode(f.array("a", "b", "c")).alias("id"))
    return net.table(corners.groupBy("id").agg(f.count("*").alias("value")), 0)


def labels(net: SparkNetwork, iterations: int) -> pa.Table:
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    pairs = net.undirected().localCheckpoint()
    label = net.nodes.withColumn("value", f.col("id"))
    best = Window.partitionBy("id").orderBy(f.col("votes").desc(), f.col("wanted").asc())
    for _ in range(iterations):
        near = pairs.join(label.selectExpr("id AS dst", "value AS wanted"), "dst")
        votes = near.groupBy(f.col("src").alias("id"), "wanted").agg(f.count("*").alias("votes"))
        first = votes.withColumn("place", f.row_number().over(best)).where("place = 1")
        new = label.join(first.select("id", "wanted"), "id", "left")
        label = new.select("id", f.coalesce("wanted", "value").alias("value")).localCheckpoint()
    return net.table(label)


def distances(net: SparkNetwork, sources: Sequence[str]) -> pa.Table:
    from pyspark.sql import functions as f

    ways = net.edges.distinct().localCheckpoint()
    level = net.nodes.where(f.col("id").isin(*sources)).withColumn("value", f.lit(0).cast("long"))
    seen = level
    for distance in range(1, ROUNDS_MAX):
        steps = level.join(ways, level["id"] == ways["src"]).select(f.col("dst").alias("id"))
        level = steps.distinct().join(seen, "id", "left_anti")
        level = level.withColumn("value", f.lit(distance).cast("long")).localCheckpoint()
        if level.isEmpty():
            break
        seen = seen.union(level)
    return net.table(seen)
