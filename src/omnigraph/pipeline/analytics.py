"""The measures of `read.analytics` on Spark: the same answers, for graphs beyond the memory of one machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from omnigraph.expressions.lists import Ints
from omnigraph.model.frozen import frozen
from omnigraph.pipeline import block_steps
from omnigraph.pipeline.blocks import Begin, Checkpoints, Layout, NetworkBlocks, Packing
from omnigraph.pipeline.failures import repeated_read
from omnigraph.pipeline.frames import GraphFrames, frame
from omnigraph.pipeline.session import arrow_of
from omnigraph.read.analytics import edges_among

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@frozen
class SparkNetwork:
    """Nodes (`id`) and edges (`src`, `dst`), and the state kept between rounds."""

    nodes: DataFrame
    edges: DataFrame
    links: int  # number of edges
    kept: Checkpoints

    def blocks(self, *, undirected: bool = False, by_target: bool = False) -> NetworkBlocks:
        """The same as arrays."""
        packing = Packing(undirected, by_target)
        return NetworkBlocks.of(self.nodes, self.edges, self.links, self.kept, packing)

    def table(self, values: DataFrame, empty: Any = None) -> pa.Table:
        """One value for each node, ascending by id; `empty` if it has none."""
        from pyspark.sql import functions as f

        found = self.nodes.join(values, "id", "left").select("id", "value")
        if empty is not None:
            found = found.withColumn("value", f.coalesce("value", f.lit(empty)))
        return arrow_of(found.orderBy("id"))


@contextmanager
def spark_network(frames: GraphFrames, node: str, edges: Sequence[str]) -> Iterator[SparkNetwork]:
    """The nodes and edges of some types; cached rows are released at the end."""
    snapshot = frames.pinned.snapshot()
    kinds = edges_among(snapshot, node, edges)
    read = partial(frame, frames.session, frames.pinned)
    nodes = read(snapshot.catalog.nodes[node], ("id",))
    parts = [read(k, ("src", "dst")).selectExpr("`from` AS src", "`to` AS dst") for k in kinds]
    none = nodes.selectExpr("id AS src", "id AS dst").limit(0)
    links = sum(snapshot.table_of(kind).count() for kind in kinds)
    kept = Checkpoints()
    try:
        yield SparkNetwork(nodes, reduce(lambda a, b: a.union(b), parts or [none]), links, kept)
    finally:
        kept.clear()


def measured(
    frames: GraphFrames, what: str, node: str, edges: Sequence[str], how: Mapping[str, Any]
) -> pa.Table:
    """One of the measures below, for every node of a type."""

    def work() -> pa.Table:
        with spark_network(frames, node, edges) as net:
            return MEASURES[what](net, **how)

    return repeated_read(work)


def degrees(net: SparkNetwork, sides: Sequence[str]) -> pa.Table:
    from pyspark.sql import functions as f

    ends = [net.edges.select(f.col(side).alias("id")) for side in sides]
    counted = reduce(lambda a, b: a.union(b), ends).groupBy("id").agg(f.count("*").alias("value"))
    return net.table(counted, 0)


def pagerank(net: SparkNetwork, damping: float, iterations: int) -> pa.Table:
    blocks = net.blocks(by_target=True)
    start = 1.0 / max(blocks.layout.count, 1)
    state = blocks.begun(lambda layout, block: np.full(layout.size(block), start))
    steps = block_steps.pagerank(damping, blocks.layout)
    state = blocks.rounds("pagerank", iterations, state, *steps)
    return arrow_of(blocks.table(state, "double"))


def components(net: SparkNetwork) -> pa.Table:
    blocks = net.blocks(undirected=True, by_target=True)
    state = blocks.begun(Layout.numbers)
    state = blocks.rounds("components", None, state, *block_steps.components(blocks.layout))
    return arrow_of(blocks.table(state, "long", named=True))


def reach(net: SparkNetwork, hops: int) -> pa.Table:
    """Pairs of a source and a node may be far more than nodes, so they are rows, which Spark can spill."""
    from pyspark.sql import functions as f

    ways = net.kept.keep(net.edges.distinct())
    seen = frontier = net.kept.keep(net.nodes.selectExpr("id", "id AS node"))
    for _ in range(hops):
        steps = frontier.join(ways, frontier["node"] == ways["src"]).selectExpr("id", "dst AS node")
        frontier = net.kept.keep(steps.distinct().join(seen, ["id", "node"], "left_anti"))
        if frontier.isEmpty():
            break
        seen = seen.union(frontier)
    return net.table(seen.groupBy("id").agg((f.count("*") - 1).alias("value")), 0)


def triangles(net: SparkNetwork) -> pa.Table:
    blocks = net.blocks(undirected=True)
    state = blocks.begun(_nothing)
    state = blocks.round(state, *block_steps.triangles(blocks.layout))
    return arrow_of(blocks.table(state, "long"))


def labels(net: SparkNetwork, iterations: int) -> pa.Table:
    blocks = net.blocks(undirected=True, by_target=True)
    state = blocks.begun(Layout.numbers)
    state = blocks.rounds("labels", iterations, state, *block_steps.labels(blocks.layout))
    return arrow_of(blocks.table(state, "long", named=True))


def distances(net: SparkNetwork, sources: Sequence[str]) -> pa.Table:
    from pyspark.sql import functions as f

    blocks = net.blocks()
    asked = blocks.nodes.where(f.col("id").isin(*sources)).collect()
    state = blocks.begun(_at_sources(np.array([row["number"] for row in asked], np.int64)))
    state = blocks.rounds("distances", None, state, *block_steps.distances(blocks.layout))
    return arrow_of(blocks.table(state, "long"))


def _nothing(layout: Layout, block: int) -> Ints:  # noqa: ARG001 - a state like others
    return np.zeros(0, np.int64)


def _at_sources(numbers: Ints) -> Begin:
    """0 at sources and -1 elsewhere, and then 1 at sources, which are new, and 0 elsewhere."""

    def begin(layout: Layout, block: int) -> Ints:
        fresh = np.isin(layout.numbers(block), numbers).astype(np.int64)
        return np.concatenate([fresh - 1, fresh])

    return begin


MEASURES: dict[str, Callable[..., pa.Table]] = {
    made.__name__: made
    for made in (degrees, pagerank, components, reach, triangles, labels, distances)
}
