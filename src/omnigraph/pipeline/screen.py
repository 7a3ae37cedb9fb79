"""Whether many rows have any violation: keys compared exactly, partition by partition, by vectorised code.

Ids, ends and unique values are put into partitions by their hashes, in blocks of many, so that Spark moves blocks
instead of rows; then each partition is compared separately, string by string: hashes only choose the partition. A hub
costs no more than any node, since ends that are repeated occur once in a block. Violations are found by `verify`, with
messages and places for a report; a valid load never gets there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.catalog import NodeType
from omnigraph.model.frozen import frozen
from omnigraph.model.keys import value_texts
from omnigraph.model.tokens import id_tokens
from omnigraph.pipeline.pinned import adopt, store_environment
from omnigraph.pipeline.session import parallelism
from omnigraph.pipeline.stage import RESULT_DDL, answer, answered
from omnigraph.pipeline.table_versions import (
    SHARES_PER_CORE,
    TableVersion,
    TextColumn,
    numbers,
    open_table,
)
from omnigraph.pipeline.verify import Verification
from omnigraph.validate.rules import Endpoint, Unique, rules_between
from omnigraph.write.resolve import Mode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITION_KEYS = 1_000_000  # compared at a time
PARTITIONS_MAX = 4_096
BLOCK_ROWS = 1 << 18  # put into partitions at a time
BLOCK_BYTES = 1 << 28  # or fewer rows, if they are long
SAMPLE_KEYS = 4_096
REPEATED_MIN = SAMPLE_KEYS // 128  # in a sample; with fewer, no key fills a partition
COLUMNS = {"part": "int", "space": "int", "lengths": "binary", "texts": "binary"}
BLOCKS_DDL = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())


@frozen
class KeyColumn:
    """Keys to read: a column of a version, of all rows or of the new ones."""

    version: TableVersion
    column: TextColumn
    fresh: bool = False

    @property
    def fragments(self) -> tuple[int, ...]:
        found = self.version.fragments
        return tuple(f for f in found if f in self.version.fresh) if self.fresh else found


@frozen
class KeySpace:
    """Keys that are compared with each other: the existing ones, and those that must be among them."""

    there: KeyColumn
    once: bool  # no two rows may share a key
    wanted: tuple[KeyColumn, ...] = ()

    @property
    def rows(self) -> int:
        return sum(one.version.rows for one in (self.there, *self.wanted))


Share = tuple[int, bool, KeyColumn, tuple[int, ...]]  # space, whether there, what, fragments


def spaces_of(case: Verification) -> list[KeySpace]:
    """The key spaces that the rules of a case compare."""
    touched = case.touched.values()
    found = [space for t in touched for space in _of_uniques(case, t.kind.table_id)]
    edges = (t for t in touched if not isinstance(t.kind, NodeType) and t.repeatable)
    found += [KeySpace(_ids(edge.after), once=True) for edge in edges]
    for node in case.snapshot.catalog.nodes.values():
        known = case.touched.get(node.table_id)
        wanted = tuple(_ends_at(case, node))
        once = known is not None and known.repeatable
        if once or wanted:
            found.append(KeySpace(_ids(case.version(node)), once, wanted))
    return found


def _ids(version: TableVersion) -> KeyColumn:
    return KeyColumn(version, TextColumn("id", ("id",)))


def _of_uniques(case: Verification, table_id: str) -> Iterator[KeySpace]:
    touched = case.touched[table_id]
    for rule in rules_between(touched.kind, case.snapshot.catalog):
        if isinstance(rule, Unique):
            values = KeyColumn(touched.after, TextColumn("value", rule.columns))
            yield KeySpace(values, once=True)


def _ends_at(case: Verification, node: NodeType) -> Iterator[KeyColumn]:
    """The ends that must be nodes of a type: of new edges, and of all where the nodes are replaced."""
    replaced = case.mode is Mode.OVERWRITE and node.table_id in case.touched
    for edge in case.snapshot.catalog.incident_edges(node.name):
        touched = case.touched.get(edge.table_id)
        if touched is None and not replaced:
            continue
        version = case.stored(edge) if touched is None else touched.after
        for rule in rules_between(edge, case.snapshot.catalog):
            if isinstance(rule, Endpoint) and rule.node.name == node.name:
                column = TextColumn(rule.side, (rule.side,))
                yield KeyColumn(version, column, fresh=touched is not None)


def keys_hold(case: Verification, session: SparkSession | None) -> bool:
    """Whether no unique key is duplicated, and none is missing."""
    spaces = spaces_of(case)
    rows = sum(space.rows for space in spaces)
    parts = min(PARTITIONS_MAX, max(1, -(-rows // PARTITION_KEYS)))
    once = tuple(space.once for space in spaces)
    if session is None:
        shares = tuple(_shares(spaces, 1))
        return not any(_compared_here(_blocks(shares, parts), parts, once))
    cores = parallelism(session)
    shares = tuple(_shares(spaces, cores * SHARES_PER_CORE))
    blocks = numbers(session, len(shares), rows).mapInArrow(_block_task(shares, parts), BLOCKS_DDL)
    found = blocks.repartition(max(parts, cores), "part").mapInArrow(
        _compare_task(once), RESULT_DDL
    )
    return not any(answered(found.collect(), bool))


def _shares(spaces: Sequence[KeySpace], count: int) -> Iterator[Share]:
    """The input of tasks: each column in a few shares of its fragments."""
    for number, space in enumerate(spaces):
        for there, column in ((True, space.there), *((False, one) for one in space.wanted)):
            fragments = column.fragments
            for place in range(min(count, len(fragments))):
                yield number, there, column, fragments[place::count]


# --- into partitions -----------------------------------------------------------------------------------------------


def _block_task(shares: tuple[Share, ...], parts: int) -> Callable[..., Iterator[pa.RecordBatch]]:
    environment = store_environment()

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        adopt(environment)
        for batch in batches:
            yield from _blocks([shares[n] for n in batch.column(0).to_pylist()], parts)

    return run


def _blocks(shares: Iterable[Share], parts: int) -> Iterator[pa.RecordBatch]:
    for space, there, column, fragments in shares:
        for keys in _keys(column, fragments):
            some = (keys if there or not _repeats(keys) else pc.unique(keys)).drop_null()
            if len(some):
                yield _partitioned(some, 2 * space + there, parts)


def _keys(column: KeyColumn, fragments: tuple[int, ...]) -> Iterator[pa.Array]:
    """Keys as strings, in large batches."""
    table, members = open_table(column.version.uri, column.version.ref), column.column.members
    held: list[pa.Array] = []
    rows = size = 0
    for batch in table.batches(list(dict.fromkeys(members)), fragments=fragments):
        held.append(value_texts([batch.column(name) for name in members]))
        rows += batch.num_rows
        size += held[-1].nbytes
        if rows >= BLOCK_ROWS or size >= BLOCK_BYTES:
            yield pa.concat_arrays(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.concat_arrays(held)


def _repeats(keys: pa.Array) -> bool:
    """Whether ends occur so often that it pays to keep each once, as those at a hub do."""
    some = keys.take(pa.array(np.arange(0, len(keys), max(1, len(keys) // SAMPLE_KEYS))))
    return len(some) - len(pc.unique(some)) >= REPEATED_MIN


def _partitioned(keys: pa.Array, space: int, parts: int) -> pa.RecordBatch:
    """One block for each partition of the keys: the lengths of its keys, and their bytes one after another."""
    place = (id_tokens(keys) % np.uint64(parts)).astype(np.uint16)  # sixteen bits: sorted by digits
    order = np.argsort(place, kind="stable")
    keys, place = keys.cast(pa.string()).take(pa.array(order)), place[order]
    bounds = np.append(np.flatnonzero(np.diff(place)) + 1, len(place))
    starts = np.append(0, bounds).astype(np.int32)
    offsets = np.frombuffer(keys.buffers()[1], np.int32)[: len(keys) + 1]
    lengths = np.diff(offsets)
    columns = (
        pa.array(place[starts[:-1]].astype(np.int32)),
        pa.array(np.full(len(bounds), space, np.int32)),
        _binary(starts * np.int32(lengths.itemsize), pa.py_buffer(lengths)),
        _binary(offsets[starts], keys.buffers()[2]),
    )
    return pa.RecordBatch.from_arrays(list(columns), list(COLUMNS))


def _binary(offsets: npt.NDArray[np.int32], content: pa.Buffer | None) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets), content]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


# --- compared --------------------------------------------------------------------------------------------------------


def _compare_task(once: tuple[bool, ...]) -> Callable[..., Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held: dict[int, KeyBlocks] = {}
        for batch in batches:
            _gather(held, batch)
        yield answer(_is_wrong(held, once))

    return run


class KeyBlocks:
    """Keys of many blocks."""

    def __init__(self) -> None:
        self._lengths: list[npt.NDArray[np.uint8]] = []
        self._texts: list[npt.NDArray[np.uint8]] = []

    def add(self, lengths: pa.Array, texts: pa.Array) -> None:
        self._lengths.append(_content(lengths))
        self._texts.append(_content(texts))

    def array(self) -> pa.Array:
        if not self._lengths:
            return pa.array([], pa.large_string())
        lengths = np.concatenate(self._lengths).view(np.int32)
        offsets = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.concatenate(self._texts))]
        return pa.Array.from_buffers(pa.large_string(), len(lengths), buffers)


def _content(values: pa.Array) -> npt.NDArray[np.uint8]:
    """The bytes of all values, one after another."""
    _, offsets, content = values.buffers()
    bounds = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
    whole = np.frombuffer(content, np.uint8) if content else np.empty(0, np.uint8)
    return whole[bounds[0] : bounds[-1]]


def _gather(held: dict[int, KeyBlocks], batch: pa.RecordBatch) -> None:
    for space in pc.unique(batch.column("space")).to_pylist():
        blocks = batch.filter(pc.equal(batch.column("space"), space))
        held.setdefault(space, KeyBlocks()).add(blocks.column("lengths"), blocks.column("texts"))


def _is_wrong(held: dict[int, KeyBlocks], once: tuple[bool, ...]) -> bool:
    """Whether a partition has a duplicate of a unique key, or lacks a key."""
    for space, alone in enumerate(once):
        there = held.pop(2 * space + 1, KeyBlocks()).array()
        if alone and len(pc.unique(there)) < len(there):
            return True
        wanted = held.pop(2 * space, KeyBlocks()).array()
        if len(wanted) and not pc.all(pc.is_in(wanted, value_set=there)).as_py():
            return True
    return False


def _compared_here(
    blocks: Iterable[pa.RecordBatch], parts: int, once: tuple[bool, ...]
) -> Iterator[bool]:
    """The same in this process: partitions are kept in files until they are compared, one at a time."""
    with tempfile.TemporaryDirectory(prefix="omnigraph-keys-") as folder:
        files = [Path(folder, str(part)) for part in range(parts)]
        for batch in blocks:
            for row, part in enumerate(batch.column("part").to_pylist()):
                with files[part].open("ab") as file, pa.ipc.new_stream(file, batch.schema) as out:
                    out.write_batch(batch.slice(row, 1))
        for file in files:
            yield file.exists() and _is_wrong(_kept(file), once)


def _kept(file: Path) -> dict[int, KeyBlocks]:
    held: dict[int, KeyBlocks] = {}
    with file.open("rb") as source:
        while source.peek(1):
            for batch in pa.ipc.open_stream(source):
                _gather(held, batch)
    return held
