"""A network in blocks, for measures that go round by round: adjacency in arrays, steps over whole blocks.

Nodes have numbers from 0 on; a block is the nodes whose numbers leave the same rest. The edges that leave a block are
one row, two arrays, made once. In a round each block meets its values and makes one message for every block, the sums
of what goes to each node there; the messages for a block become its new values. So a round moves arrays of numbers, at
most one for each node and source block, whatever ids are and however many edges there are.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.pipeline.session import parallelism
from omnigraph.storage import metrics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger("omnigraph.pipeline")
Floats = npt.NDArray[np.float64]
BLOCK_NODES = 2_000_000
BLOCK_EDGES = 8_000_000
POSITION_BITS = 33  # of Spark's increasing ids; those above number the partition
EDGES = "block int, src binary, dst binary"
VALUES = "block int, value binary, change double"
MESSAGES = "block int, at binary, value binary, lost double"


@dataclass(frozen=True, slots=True)
class NetworkBlocks:
    """Numbered nodes (`id`, `number`), and edges by the block of their source."""

    nodes: DataFrame
    edges: DataFrame
    count: int
    blocks: int

    @classmethod
    def of(cls, nodes: DataFrame, edges: DataFrame) -> NetworkBlocks:
        numbered = _numbered(nodes)
        count, links = numbered.count(), edges.count()
        least = parallelism(nodes.sparkSession)
        blocks = max(least, -(-count // BLOCK_NODES), -(-links // BLOCK_EDGES))
        ends = edges.join(numbered.selectExpr("id AS src", "number AS s"), "src")
        ends = ends.join(numbered.selectExpr("id AS dst", "number AS d"), "dst")
        placed = ends.selectExpr(f"CAST(s % {blocks} AS int) AS block", "s", "d")
        packed = placed.repartition(blocks, "block").mapInArrow(_packing(blocks), EDGES)
        every = nodes.sparkSession.range(blocks).selectExpr("CAST(id AS int) AS block")
        return cls(numbered, every.join(packed, "block", "left").localCheckpoint(), count, blocks)

    def pagerank(self, damping: float, iterations: int) -> DataFrame:
        """`id` and `value`. What changes from round to round is told."""
        values = self._constant(1.0 / max(1, self.count))
        step = _spreading(self.blocks)
        update = _ranking(damping, self.count, self.blocks)
        for number in range(1, iterations + 1):
            met = self.edges.join(values.select("block", "value"), "block")
            kept = values.selectExpr("block", "CAST(NULL AS binary)", "value", "0D")
            told = met.mapInArrow(step, MESSAGES).union(kept)
            values = told.repartition(self.blocks, "block").mapInArrow(update, VALUES)
            values = values.localCheckpoint()
            change = values.agg({"change": "sum"}).first()[0] or 0.0
            log.info("pagerank: round %d of %d moved %.3g of the rank", number, iterations, change)
            metrics.progress(f"round {number}", part=number / iterations)
        return self._by_id(values)

    def _constant(self, value: float) -> DataFrame:
        every = self.edges.select("block").distinct()
        return every.mapInArrow(_filling(value, self.count, self.blocks), VALUES).localCheckpoint()

    def _by_id(self, values: DataFrame) -> DataFrame:
        spread = values.mapInArrow(_unpacking(self.blocks), "number long, value double")
        return self.nodes.join(spread, "number").select("id", "value")


def _numbered(nodes: DataFrame) -> DataFrame:
    """Nodes with numbers from 0 on, by their partitions and their places there."""
    from pyspark.sql import functions as f

    fixed = nodes.withColumn("place", f.monotonically_increasing_id()).localCheckpoint()
    partition = f.shiftright("place", POSITION_BITS)
    counts = fixed.groupBy(partition.alias("part")).count().collect()
    sizes = {int(row["part"]): int(row["count"]) for row in counts}
    starts, before = [], 0
    for part in range(max(sizes, default=-1) + 1):
        starts.append(before)
        before += sizes.get(part, 0)
    if not starts:
        return fixed.selectExpr("id", "place AS number")
    offset = f.element_at(f.array(*(f.lit(start) for start in starts)), (partition + 1).cast("int"))
    inside = f.col("place").bitwiseAND(f.lit((1 << POSITION_BITS) - 1))
    return fixed.select("id", (offset + inside).cast("long").alias("number")).localCheckpoint()


def _size(block: int, count: int, blocks: int) -> int:
    """How many nodes a block has."""
    return (count - block + blocks - 1) // blocks if block < count else 0


# --- the functions Spark runs --------------------------------------------------------------------------------------


def _rows(schema: list[tuple[str, pa.DataType]], rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    arrays = [
        pa.array([row[place] for row in rows], kind) for place, (_, kind) in enumerate(schema)
    ]
    return pa.RecordBatch.from_arrays(arrays, [name for name, _ in schema])


EDGE_FIELDS = [("block", pa.int32()), ("src", pa.binary()), ("dst", pa.binary())]
VALUE_FIELDS = [("block", pa.int32()), ("value", pa.binary()), ("change", pa.float64())]
MESSAGE_FIELDS = [
    ("block", pa.int32()),
    ("at", pa.binary()),
    ("value", pa.binary()),
    ("lost", pa.float64()),
]


def _packing(blocks: int) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = [
            [batch.column(place).to_numpy(zero_copy_only=False) for place in range(3)]
            for batch in batches
        ]
        if not held:
            return
        block, source, target = (np.concatenate(parts) for parts in zip(*held, strict=True))
        order = np.argsort(block, kind="stable")
        block, source, target = block[order], source[order], target[order]
        numbers, starts = np.unique(block, return_index=True)
        for number, start, end in zip(numbers, starts, [*starts[1:], len(block)], strict=True):
            places = (source[start:end] // blocks).astype(np.int32)
            body = target[start:end].astype(np.int64)
            yield _rows(EDGE_FIELDS, [(int(number), places.tobytes(), body.tobytes())])

    return run


def _filling(value: float, count: int, blocks: int) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for block in batch.column(0).to_pylist():
                body = np.full(_size(block, count, blocks), value).tobytes()
                yield _rows(VALUE_FIELDS, [(block, body, 0.0)])

    return run


def _spreading(blocks: int) -> Any:
    """What each node has, in equal parts to where its edges lead; what nodes without edges have goes to all."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                ranks = np.frombuffer(row["value"], np.float64)
                source = np.frombuffer(row["src"] or b"", np.int32)
                target = np.frombuffer(row["dst"] or b"", np.int64)
                out = np.bincount(source, minlength=len(ranks))
                lost = float(ranks[out == 0].sum())
                shares = (ranks / np.maximum(out, 1))[source]
                yield _rows(MESSAGE_FIELDS, list(_messages(target, shares, lost, blocks)))

    return run


def _messages(
    target: npt.NDArray[np.int64], shares: Floats, lost: float, blocks: int
) -> Iterator[tuple[int, bytes, bytes, float]]:
    """For each block the nodes that get something, and how much; and what goes to everybody."""
    nodes, places = np.unique(target, return_inverse=True)
    sums = np.bincount(places, shares, len(nodes)) if len(nodes) else np.empty(0)
    order = np.argsort(nodes % blocks, kind="stable")
    nodes, sums = nodes[order], sums[order]
    bounds = np.searchsorted(nodes % blocks, np.arange(blocks + 1))
    for block in range(blocks):
        mine = slice(bounds[block], bounds[block + 1])
        inside = (nodes[mine] // blocks).astype(np.int32)
        yield block, inside.tobytes(), np.ascontiguousarray(sums[mine]).tobytes(), lost


def _ranking(damping: float, count: int, blocks: int) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sums: dict[int, Floats] = {}
        lost: dict[int, float] = {}
        before: dict[int, Floats] = {}
        for batch in batches:
            for row in batch.to_pylist():
                block, values = row["block"], np.frombuffer(row["value"], np.float64)
                if row["at"] is None:
                    before[block] = values
                    continue
                into = sums.setdefault(block, np.zeros(_size(block, count, blocks)))
                into[np.frombuffer(row["at"], np.int32)] += values  # each node once in a message
                lost[block] = lost.get(block, 0.0) + row["lost"]
        for block, old in before.items():
            received = sums.get(block, np.zeros(len(old)))
            base = (1.0 - damping) / count + damping * lost.get(block, 0.0) / count
            new = base + damping * received
            change = float(np.abs(new - old).sum())
            yield _rows(VALUE_FIELDS, [(block, new.tobytes(), change)])

    return run


def _unpacking(blocks: int) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.select(["block", "value"]).to_pylist():
                values = np.frombuffer(row["value"], np.float64)
                numbers = np.arange(len(values), dtype=np.int64) * blocks + row["block"]
                yield pa.RecordBatch.from_arrays(
                    [pa.array(numbers), pa.array(values)], ["number", "value"]
                )

    return run
