"""A network in blocks, for iterative measures: adjacency in arrays, steps over whole blocks.

Nodes are numbered from 0 in the order of their ids; a block has the nodes whose numbers are equal modulo the number of
blocks. The edges that leave a block are one row of two arrays, made once. In a round each block meets its state, an
array of numbers, and sends parcels of arrays to blocks; a block settles its parcels in one step or several, until only
states are left. So a round moves arrays of numbers, whatever the ids. The steps are in `block_steps`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.expressions.lists import Ints
from omnigraph.model.frozen import frozen
from omnigraph.pipeline.session import parallelism
from omnigraph.storage import metrics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger("omnigraph.pipeline")
Array = npt.NDArray[Any]
BLOCK_NODES = 2_000_000
BLOCK_EDGES = 1_000_000  # twelve megabytes, of which Spark makes several copies
ALONE_EDGES = (
    100_000  # and nodes: up to this many are one block, as rounds would take longer than steps
)
NARROW_MAX = 1 << 16  # numbers in two bytes
ROUNDS_MAX = 10_000  # of measures that run until they converge
HASHED_NODES = (
    250_000  # whose numbers a task holds to look up the ends of edges, which are not sorted for it
)
ADAPTIVE = "spark.sql.adaptive.enabled"
POSITION_BITS = 33  # of Spark's increasing ids; those above number the partition
EDGES = "block int, src binary, dst binary"
NO_ENDS = ("-1L AS s", "-1L AS d")  # of a row that makes a block exist
PARCELS = "block int, kind int, origin int, at binary, value binary, change double"
STATE = 0  # the kind of a parcel a block sends to itself


@frozen
class Parcel:
    """A message from one block to another: places in that block or numbers of nodes, and values."""

    block: int
    kind: int
    origin: int = 0
    at: bytes = b""
    value: bytes = b""
    change: float = 0.0

    @property
    def places(self) -> npt.NDArray[np.int32]:
        return np.frombuffer(self.at, np.int32)

    @property
    def numbers(self) -> Ints:
        return np.frombuffer(self.at, np.int64)

    @property
    def ints(self) -> Ints:
        return np.frombuffer(self.value, np.int64)

    @property
    def floats(self) -> npt.NDArray[np.float64]:
        return np.frombuffer(self.value, np.float64)


@frozen
class BlockEdges:
    """The edges that leave a block: places of their sources, numbers of their targets."""

    block: int
    layout: Layout
    src: npt.NDArray[np.int32]
    dst: Ints


@frozen
class Layout:
    """The number of nodes and of blocks."""

    count: int
    blocks: int

    def size(self, block: int) -> int:
        """The number of nodes in a block."""
        return max(0, -((block - self.count) // self.blocks))

    def numbers(self, block: int) -> Ints:
        """The nodes of a block."""
        return np.arange(self.size(block), dtype=np.int64) * self.blocks + block

    def places(self, numbers: Ints) -> npt.NDArray[np.int32]:
        """The places of nodes in their blocks."""
        return (numbers // self.blocks).astype(np.int32)

    def divided(self, numbers: Ints) -> Iterator[tuple[int, Ints]]:
        """For each block with some of these nodes, their positions in `numbers`, in order."""
        block = numbers % self.blocks
        if self.blocks <= NARROW_MAX:
            block = block.astype(np.uint16)  # sorted digit by digit: seven times as fast
        order = np.argsort(block, kind="stable")
        bounds = np.searchsorted(block[order], np.arange(self.blocks + 1))
        for number in np.flatnonzero(np.diff(bounds)).tolist():
            yield number, order[bounds[number] : bounds[number + 1]]


@frozen
class Packing:
    """Edges as they are, or each pair of different neighbours once in either direction; by source or by target."""

    undirected: bool = False
    by_target: bool = False


Meet = Callable[[BlockEdges, Parcel], Iterable[Parcel]]
Settle = Callable[[int, list[Parcel]], Iterable[Parcel]]
Begin = Callable[[Layout, int], Array]


@frozen
class Checkpoints:
    """The states kept between rounds, released when no longer needed."""

    held: list[DataFrame] = field(default_factory=list)

    def keep(self, frame: DataFrame) -> DataFrame:
        """The rows, computed."""
        self.held.append(frame.localCheckpoint())
        return self.held[-1]

    def place(self, frame: DataFrame, blocks: int) -> DataFrame:
        """The large rows of blocks, computed, on disk, each block where joins and steps look for it.

        Adaptive plans forget how their rows are partitioned, and every round would move all edges again: they are off
        while the rows are placed, for other queries of the session, too.
        """
        if blocks == 1:
            return self.keep(frame)
        made = self._keep_on_disk(frame)
        settings = frame.sparkSession.conf
        adaptive = settings.get(ADAPTIVE)
        settings.set(ADAPTIVE, "false")
        try:
            placed = self._keep_on_disk(made.repartition(blocks, "block"))
        finally:
            settings.set(ADAPTIVE, adaptive or "true")
        self.drop(made)
        return placed

    def _keep_on_disk(self, frame: DataFrame) -> DataFrame:
        from pyspark import StorageLevel

        try:
            kept = frame.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
        except TypeError:  # before Spark 4 memory is used, too
            kept = frame.localCheckpoint()
        self.held.append(kept)
        return kept

    def drop(self, frame: DataFrame) -> None:
        """Release rows; with Spark Connect the server does this itself."""
        self.held.remove(frame)
        plan = getattr(frame, "_jdf", None)
        if plan is not None:
            plan.queryExecution().logical().rdd().unpersist(False)

    def clear(self) -> None:
        """Release all rows."""
        for frame in tuple(self.held):
            self.drop(frame)


@frozen
class NetworkBlocks:
    """Numbered nodes (`id`, `number`), and edges by the block of their source."""

    nodes: DataFrame
    edges: DataFrame
    layout: Layout
    kept: Checkpoints

    @classmethod
    def of(
        cls, nodes: DataFrame, edges: DataFrame, links: int, kept: Checkpoints, packing: Packing
    ) -> NetworkBlocks:
        """Nodes (`id`) and the given number of edges (`src`, `dst`), packed."""
        numbered = _numbered(nodes, kept)
        count = numbered.count()
        least = 1 if max(count, links) <= ALONE_EDGES else parallelism(nodes.sparkSession)
        blocks = max(least, -(-count // BLOCK_NODES), -(-links // BLOCK_EDGES))
        layout = Layout(count, blocks)
        known = numbered.repartition(max(1, -(-count // HASHED_NODES)), "id")
        ends = edges.join(_numbers_of(known, "src", "s"), "src")
        ends = ends.join(_numbers_of(known, "dst", "d"), "dst").select("s", "d")
        if packing.undirected:
            ends = ends.where("s <> d").selectExpr("stack(2, s, d, d, s) AS (s, d)")
        placed = ends.selectExpr(f"CAST(s % {blocks} AS int) AS block", "s", "d")
        task = _packing(layout, packing)
        every = nodes.sparkSession.range(blocks).selectExpr("CAST(id AS int) AS block", *NO_ENDS)
        packed = placed.union(every).repartition(blocks, "block").mapInArrow(task, EDGES)
        return cls(numbered, kept.place(packed, blocks), layout, kept)

    def begun(self, begin: Begin) -> DataFrame:
        """The first state of every block."""
        task = _beginning(begin, self.layout)
        return self.kept.keep(self.edges.select("block").mapInArrow(task, PARCELS))

    def round(self, state: DataFrame, meet: Meet, *steps: Settle) -> DataFrame:
        """The next state: edges meet this one, and the parcels between blocks are settled."""
        own = state.drop("at", "kind", "origin")
        met = self.edges.join(own.hint("shuffle_hash") if self.layout.blocks > 1 else own, "block")
        parcels = met.mapInArrow(_meeting(meet, self.layout), PARCELS)
        for step in steps:
            arrived = parcels.repartition(self.layout.blocks, "block")
            parcels = arrived.mapInArrow(_gathered(step), PARCELS)
        new = self.kept.keep(parcels)
        self.kept.drop(state)
        return new

    def rounds(self, name: str, most: int | None, state: DataFrame, *steps: Any) -> DataFrame:
        """Rounds until nothing changes, at most `most`. Changes are logged."""
        for number in range(1, (ROUNDS_MAX if most is None else most) + 1):
            state = self.round(state, *steps)
            change = state.agg({"change": "sum"}).first()[0] or 0.0
            log.info("%s: round %d changed %.6g", name, number, change)
            part = None if most is None else number / most
            metrics.progress(f"{name}, round {number}: {change:.6g} changed", part=part)
            if not change:
                break
        return state

    def table(self, state: DataFrame, kind: str, *, named: bool = False) -> DataFrame:
        """`id` and `value` of every node, ascending by id; a value below 0 is none. Named values are nodes."""
        task = _unpacking(self.layout, np.float64 if kind == "double" else np.int64)
        values = state.mapInArrow(task, f"number long, value {kind}")
        found = self.nodes.join(values, "number")
        if named:
            names = self.nodes.selectExpr("number AS value", "id AS name")
            found = found.join(names, "value").selectExpr("number", "id", "name AS value")
        return found.orderBy("number").select("id", "value")


def _numbered(nodes: DataFrame, kept: Checkpoints) -> DataFrame:
    """Nodes with numbers from 0, by their partitions and their places there: in the order of their ids."""
    from pyspark.sql import functions as f

    ordered = nodes.select("id").orderBy("id")
    fixed = kept.keep(ordered.withColumn("place", f.monotonically_increasing_id()))
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
    numbered = kept.keep(fixed.select("id", (offset + inside).cast("long").alias("number")))
    kept.drop(fixed)
    return numbered


def _numbers_of(known: DataFrame, id: str, number: str) -> DataFrame:
    return known.selectExpr(f"id AS {id}", f"number AS {number}").hint("shuffle_hash")


# --- the functions Spark runs --------------------------------------------------------------------------------------

PARCEL_SCHEMA = pa.schema(
    [
        ("block", pa.int32()),
        ("kind", pa.int32()),
        ("origin", pa.int32()),
        ("at", pa.binary()),
        ("value", pa.binary()),
        ("change", pa.float64()),
    ]
)


def _sent(parcels: Iterable[Parcel]) -> Iterator[pa.RecordBatch]:
    """One row each: the arrays of a parcel are large."""
    for parcel in parcels:
        values = zip(astuple(parcel), PARCEL_SCHEMA.types, strict=True)
        arrays = [pa.array([value], kind) for value, kind in values]
        yield pa.RecordBatch.from_arrays(arrays, schema=PARCEL_SCHEMA)


def _packing(layout: Layout, packing: Packing) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = [
            [batch.column(place).to_numpy(zero_copy_only=False) for place in range(3)]
            for batch in batches
        ]
        if not held:
            return
        block, source, target = (np.concatenate(parts) for parts in zip(*held, strict=True))
        for number in np.unique(block).tolist():
            own = (block == number) & (source >= 0)
            places, numbers = _packed(source[own] // layout.blocks, target[own], layout, packing)
            arrays = [[number], [places.astype(np.int32).tobytes()], [numbers.tobytes()]]
            kinds = (pa.int32(), pa.binary(), pa.binary())
            columns = [pa.array(a, kind) for a, kind in zip(arrays, kinds, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, ["block", "src", "dst"])

    return run


def _packed(places: Ints, numbers: Ints, layout: Layout, packing: Packing) -> tuple[Ints, Ints]:
    first, second = (numbers, places) if packing.by_target else (places, numbers)
    codes = np.sort(first * layout.count + second)
    if packing.undirected:
        codes = np.unique(codes)
    first, second = codes // layout.count, codes % layout.count
    return (second, first) if packing.by_target else (first, second)


def _beginning(begin: Begin, layout: Layout) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for block in batch.column(0).to_pylist():
                yield from _sent([Parcel(block, STATE, value=begin(layout, block).tobytes())])

    return run


def _meeting(meet: Meet, layout: Layout) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                src = np.frombuffer(row["src"] or b"", np.int32)
                dst = np.frombuffer(row["dst"] or b"", np.int64)
                edges = BlockEdges(row["block"], layout, src, dst)
                yield from _sent(meet(edges, Parcel(row["block"], STATE, value=row["value"])))

    return run


def _gathered(step: Settle) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held: dict[int, list[Parcel]] = {}
        for batch in batches:
            for row in batch.to_pylist():
                held.setdefault(row["block"], []).append(Parcel(*row.values()))
        for block, parcels in held.items():
            yield from _sent(step(block, parcels))

    return run


def _unpacking(layout: Layout, kind: Any) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.select(["block", "value"]).to_pylist():
                numbers = layout.numbers(row["block"])
                values = np.frombuffer(row["value"], kind)[: len(numbers)]
                column = pa.array(values, mask=values < 0)
                yield pa.RecordBatch.from_arrays([pa.array(numbers), column], ["number", "value"])

    return run
