"""The work of a task on a piece of the input: read, complete, check, write unpublished data files.

A task may run twice; only the result Spark reports counts, the files of the other run are garbage. Generated ids
depend only on the load and the place in the input, so both runs generate the same ones.
"""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.plan import Overwrite
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import OmnigraphError, Violation, error_named
from omnigraph.model.catalog import Catalog, EdgeType, NodeType
from omnigraph.model.changes import Changes, Incoming, TypeChanges
from omnigraph.model.embedding import EmbedSettings
from omnigraph.model.frozen import frozen
from omnigraph.model.keys import ulids
from omnigraph.pipeline.pinned import Pinned
from omnigraph.pipeline.progress import Counters
from omnigraph.pipeline.row_addresses import pack
from omnigraph.pipeline.rows import Piece, frame_pieces, frame_shape, pieces, without
from omnigraph.pipeline.sources import FrameRows, Inputs, Split
from omnigraph.pipeline.table_versions import numbers
from omnigraph.storage.tables import ADDRESS
from omnigraph.validate.findings import VIOLATIONS_MAX
from omnigraph.validate.rules import row_rules, row_violations
from omnigraph.write.embed import Embedder, EmbedTexts, embedded, embedder_of
from omnigraph.write.input.options import Options
from omnigraph.write.input.parts import to_incoming
from omnigraph.write.load import outcome_of
from omnigraph.write.removal import with_incident_edges
from omnigraph.write.resolve import (
    Given,
    Mode,
    Resolved,
    RowCounts,
    identify,
    kind_of,
    resolve,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FLUSH_BYTES = 64 << 20
SPLIT_BITS = 20  # of a generated id; the row within the split has 32
SEED_BITS = 28
PROBLEMS_PER_SPLIT_MAX = 100
MANY = VIOLATIONS_MAX + 1  # one more shows that there are more


LeftOut = Mapping[int, frozenset[tuple[str, int]]]  # types and lines to leave out, by split


@frozen
class LoadJob:
    """The context shared by all tasks of a load."""

    pinned: Pinned
    branch: str
    now: datetime
    mode: Mode
    options: Options
    seed: int
    flush_bytes: int = FLUSH_BYTES
    embed: EmbedSettings | None = None  # the settings of the driver
    left_out: LeftOut = field(default_factory=dict)

    def embedded(self, changes: Changes, txn: WriteTxn, ask: EmbedTexts | None = None) -> Changes:
        """The changes with vectors for their texts, a few rows at a time: vectors are not kept in memory."""
        if self.embed is None:
            return changes
        return embedded(changes, txn, embedder_of(self.embed) if ask is None else Embedder(ask))

    def txn(self) -> WriteTxn:
        """The state rows are completed from: for a merge the stored rows, else none (the driver compares ids)."""
        txn = self.pinned.txn(self.branch, self.now)
        if self.mode is Mode.MERGE:
            return txn
        nothing = pa.table({"id": pa.array([], pa.string())})
        return txn.plus(Overwrite(kind.table_id, nothing) for kind in txn.catalog.entities())


@frozen
class Failure:
    """One of our errors, sent from a task to the driver."""

    code: str
    message: str
    help: str | None
    details: dict[str, Any]

    @classmethod
    def of(cls, error: OmnigraphError) -> Failure:
        return cls(str(error.code), error.message, error.help, dict(error.details))

    def error(self) -> OmnigraphError:
        about: Any = {"help": self.help, "details": self.details}
        found = error_named(self.code, self.message, **about)
        return found or OmnigraphError(self.message, **about)


@dataclass(slots=True)
class StagedSplit:
    """The result of staging one split."""

    split: int
    lines: int = 0
    fragments: dict[str, list[tuple[str, int]]] = field(default_factory=dict)  # description, rows
    before: dict[str, bytes] = field(default_factory=dict)  # the stored rows that change: addresses
    nodes: dict[str, int] = field(default_factory=dict)
    edges: dict[str, int] = field(default_factory=dict)
    new_each_time: dict[str, int] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)  # tables with ids that may already exist
    problems: list[Violation] = field(default_factory=list)
    keys: list[Violation] = field(default_factory=list)
    values: dict[str, list[Violation]] = field(default_factory=dict)
    repeated: dict[str, set[str]] = field(default_factory=dict)  # duplicate ids within a block
    failure: Failure | None = None
    removed: dict[str, bytes] = field(default_factory=dict)  # the stored rows to remove: addresses
    counts: dict[str, RowCounts] = field(default_factory=dict)  # outcomes of rows, by table

    def count(self, incoming: Iterable[Incoming], catalog: Catalog) -> None:
        """Record the number of rows, and the tables with ids that may already exist."""
        parts = list(incoming)
        outcome = outcome_of(parts, catalog)
        for counts, more in (
            (self.nodes, outcome.nodes),
            (self.edges, outcome.edges),
            (self.new_each_time, outcome.new_each_time),
        ):
            for name, count in more.items():
                counts[name] = counts.get(name, 0) + count
        kinds = ((kind_of(catalog, part), part) for part in parts)
        self.named |= {k.table_id for k, part in kinds if k.key is not None or _has_ids(part)}

    def add_keys(self, found: Iterable[Violation]) -> None:
        """Record rows without an id."""
        self.keys = first_keys([*self.keys, *found])

    def add_counts(self, counts: Mapping[str, RowCounts]) -> None:
        """Record the outcomes of rows."""
        for table, count in counts.items():
            self.counts[table] = self.counts.get(table, RowCounts()) + count

    @property
    def rows(self) -> int:
        """The number of rows read."""
        return sum(self.nodes.values()) + sum(self.edges.values())

    @property
    def is_clean(self) -> bool:
        """Whether there are no violations so far."""
        wrong = (self.problems, self.keys, self.values, self.repeated, self.failure)
        return not any(wrong)

    def to_json(self) -> dict[str, Any]:
        """The record of a clean split in a stored plan."""
        before = {table: base64.b64encode(data).decode() for table, data in self.before.items()}
        return {
            "split": self.split,
            "lines": self.lines,
            "fragments": self.fragments,
            "before": before,
            "nodes": self.nodes,
            "edges": self.edges,
            "new_each_time": self.new_each_time,
            "named": sorted(self.named),
            "counts": {table: count.to_json() for table, count in self.counts.items()},
        }

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> StagedSplit:
        return cls(
            split=kept["split"],
            lines=kept["lines"],
            fragments={
                t: [(d, int(n)) for d, n in parts] for t, parts in kept["fragments"].items()
            },
            before={table: base64.b64decode(text) for table, text in kept["before"].items()},
            nodes=dict(kept["nodes"]),
            edges=dict(kept["edges"]),
            new_each_time=dict(kept["new_each_time"]),
            named=set(kept["named"]),
            counts={t: RowCounts(**count) for t, count in kept.get("counts", {}).items()},
        )


class Ids:
    """Generates ids: the same for the same place in the input of the same load, in its order."""

    def __init__(self, seed: int, split: int) -> None:
        self._high = (seed % (1 << SEED_BITS)) << SPLIT_BITS | split
        self._next = 0

    def __call__(self, count: int, now: datetime) -> pa.Array:
        start, self._next = self._next, self._next + count
        return ulids(int(now.timestamp() * 1000) << 48 | self._high, start, count)


# --- staging -----------------------------------------------------------------------------------------------------


def stage_pieces(job: LoadJob, split: int, rows: Iterable[Piece]) -> StagedSplit:
    """Read and write one split."""
    return stage_together(job, [(split, rows)])[0]


def stage_together(job: LoadJob, given: Iterable[tuple[int, Iterable[Piece]]]) -> list[StagedSplit]:
    """Read splits and write them together: so that small ones make few files. The files belong to the last."""
    writer = StagingWriter(job, job.txn())
    found = []
    for split, rows in given:
        found.append(writer.begin(split))
        if not _staged(writer, Ids(job.seed, split), rows):
            break
    if found[-1].failure is None:
        attempted(found[-1], writer.finish)
    return found


def _staged(writer: StagingWriter, ids: Ids, rows: Iterable[Piece]) -> bool:
    """Stage a split; returns whether it could be read to its end."""
    done = writer.done

    def read() -> None:
        for piece in rows:
            if note_piece(done, piece):
                writer.add(to_incoming(piece.parts), ids)

    return attempted(done, read)


def note_piece(done: StagedSplit, piece: Piece) -> bool:
    """Record the problems of a piece; returns whether its rows need checking."""
    done.lines += piece.lines
    room = PROBLEMS_PER_SPLIT_MAX - len(done.problems)
    done.problems += piece.problems[: max(0, room)]
    return not done.problems


def attempted(done: StagedSplit, work: Callable[[], None]) -> bool:
    """Whether work on a split succeeds; one of our errors is kept for the driver."""
    try:
        work()
    except OmnigraphError as error:
        done.failure = Failure.of(error)
    return done.failure is None


class StagingWriter:
    """Buffers complete rows by table and writes them as data files when there are enough."""

    def __init__(self, job: LoadJob, txn: WriteTxn) -> None:
        self._job, self._txn = job, txn
        self._rows: dict[str, list[pa.Table]] = {}
        self._before: dict[str, list[pa.ChunkedArray]] = {}
        self._removed: list[TypeChanges] = []
        self._bytes = 0
        self.done = StagedSplit(0)

    def begin(self, split: int) -> StagedSplit:
        """Begin another split."""
        self.done = StagedSplit(split)
        return self.done

    @property
    def catalog(self) -> Catalog:
        return self._txn.catalog

    def add(self, incoming: list[Incoming], ids: Ids) -> None:
        done, catalog = self.done, self._txn.catalog
        done.count(incoming, catalog)
        for part in incoming:
            kind = kind_of(catalog, part)
            if kind.key is None and self._job.mode is Mode.MERGE and _has_ids(part):
                done.repeated.setdefault(kind.table_id, set()).update(_repeated(part.rows["id"]))
        resolved = resolve(self._txn, incoming, self._job.mode, ids)
        for violation in resolved.violations:
            if violation.rule == "duplicate":
                table = _table_of(catalog, violation, incoming)
                done.repeated.setdefault(table, set()).add(violation.id or "")
            else:
                done.keys.append(violation)
        done.keys = first_keys(done.keys)
        done.repeated = {t: set(sorted(ids)[:MANY]) for t, ids in done.repeated.items() if ids}
        self._write(resolved)

    def add_chosen(self, incoming: list[Incoming]) -> None:
        """Add rows grouped by id: one row of each id is chosen."""
        repeats = self._job.options.repeats
        self._write(resolve(self._txn, incoming, self._job.mode, repeats=repeats))

    def _write(self, resolved: Resolved) -> None:
        self.done.add_counts(resolved.counts)
        for change in self._job.embedded(resolved.changes, self._txn):
            self._take(change)
        if self._bytes >= self._job.flush_bytes:
            self.flush()

    def _take(self, change: TypeChanges) -> None:
        table = change.kind.table_id
        for rows, origin in (
            (change.inserts, change.insert_origin),
            (change.updates, change.update_origin),
        ):
            if rows is None or not rows.num_rows:
                continue
            found = row_violations(rows, change.kind, origin, MANY)
            if found:
                values = self.done.values
                values[table] = in_order(values.get(table, []) + found, change.kind)[:MANY]
            self._rows.setdefault(table, []).append(rows)
            self._bytes += rows.nbytes
        if change.before is not None and change.before.num_rows:
            self._before.setdefault(table, []).append(change.before[ADDRESS])
        if change.deletes is not None and change.deletes.num_rows:
            self._removed.append(TypeChanges(change.kind, deletes=change.deletes))

    def flush(self) -> None:
        """Write the buffered rows."""
        snapshot = self._txn.snapshot
        for table, parts in self._rows.items():
            written = snapshot.tables.write_fragments(snapshot.ref(table), pa.concat_tables(parts))
            rows = _rows_each(written.descriptions, written.rows)
            self.done.fragments.setdefault(table, []).extend(rows)
        self._rows, self._bytes = {}, 0

    def finish(self) -> None:
        """Write the remaining rows, and find the edges of removed nodes."""
        self.flush()
        for table, parts in self._before.items():
            self.done.before[table] = pack(parts)
        gone: dict[str, list[pa.ChunkedArray]] = {}
        for change in self._removed:
            for each in with_incident_edges(Changes({change.kind.table_id: change}), self._txn):
                if each.deletes is not None:
                    gone.setdefault(each.kind.table_id, []).append(each.deletes[ADDRESS])
        self.done.removed = {table: pack(parts) for table, parts in gone.items()}


def first_keys(found: list[Violation]) -> list[Violation]:
    """Rows without an id, the first of each rule and type."""
    counts: dict[tuple[str, bool], int] = {}
    kept = []
    for violation in found:
        rule = violation.type_name, violation.id is None
        counts[rule] = counts.get(rule, 0) + 1
        if counts[rule] <= VIOLATIONS_MAX:
            kept.append(violation)
    return kept


def in_order(found: list[Violation], kind: NodeType | EdgeType) -> list[Violation]:
    """Invalid values: rules in the order of the schema, and for each the rows by id."""
    names = dict.fromkeys((rule.name, rule.column) for rule in row_rules(kind))
    place = {name: number for number, name in enumerate(names)}
    return sorted(found, key=lambda v: (place[v.rule, v.property or ""], v.id or ""))


def _rows_each(descriptions: tuple[str, ...], rows: int) -> list[tuple[str, int]]:
    """Fragments with their row counts; only the sum matters."""
    return [(text, rows if place == 0 else 0) for place, text in enumerate(descriptions)]


def _repeated(ids: pa.ChunkedArray) -> list[str]:
    """Ids of several rows. Within a block a merge lets the last one win, which is not a reliable rule."""
    counts = pc.value_counts(ids.drop_null())
    again = pc.greater(counts.field("counts"), 1)
    found: list[str] = counts.field("values").filter(again).to_pylist()
    return found


def _has_ids(part: Incoming) -> bool:
    return "id" in part.rows.column_names and part.rows["id"].null_count < part.rows.num_rows


def _table_of(catalog: Catalog, violation: Violation, incoming: list[Incoming]) -> str:
    """The table of a violation: a node and an edge type may share a name."""
    kinds = (kind_of(catalog, part) for part in incoming)
    return next(kind.table_id for kind in kinds if kind.name == violation.type_name)


def to_ipc(table: pa.Table) -> bytes:
    """A table serialised for another process."""
    sink = pa.BufferOutputStream()
    packed = pa.ipc.IpcWriteOptions(compression="zstd")  # many ids differ in a few letters
    with pa.ipc.new_stream(sink, table.schema, options=packed) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def from_ipc(data: bytes) -> pa.Table:
    """A table a task sent."""
    return pa.ipc.open_stream(data).read_all()


# --- the functions Spark runs ----------------------------------------------------------------------------------------

RESULT = pa.schema([("body", pa.binary())])
RESULT_DDL = "body binary"


def stage_task(job: LoadJob, units: tuple[tuple[Split, ...], ...], counters: Counters) -> Any:
    """Stages the units of splits whose numbers come in."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                given = ((split.index, pieces_of(job, split)) for split in units[number])
                for done in stage_together(job, given):
                    counters.add(done.rows)
                    yield answer(done)

    return run


def frame_task(job: LoadJob, rows: FrameRows, first_split: int, counters: Counters) -> Any:
    """Stages the partitions of a DataFrame."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        split = first_split + (0 if context is None else context.partitionId())
        shape = frame_shape(rows, job.pinned.snapshot().catalog, job.options)
        done = stage_pieces(job, split, frame_pieces(batches, shape))
        counters.add(done.rows)
        yield answer(done)

    return run


def locate_task(
    job: LoadJob, splits: tuple[Split, ...], wanted: Mapping[str, frozenset[str]]
) -> Any:
    """Finds the places of rows in the input by their ids: `wanted` has them by table."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield answer(located(job, splits[number], wanted))

    return run


@frozen
class InputPlace:
    """The place of a row in the input."""

    table_id: str
    id: str
    split: int
    row: int  # within the split
    file: str | None
    line: int | None  # within the split


def located(job: LoadJob, split: Split, wanted: Mapping[str, frozenset[str]]) -> list[InputPlace]:
    """The places of the wanted rows in one split."""
    found: list[InputPlace] = []
    ids = {table: pa.array(sorted(names), pa.string()) for table, names in wanted.items()}
    for given, seen in identified(job, split.index, pieces_of(job, split)):
        names = ids.get(given.kind.table_id)
        if names is None:
            continue
        for row in pc.indices_nonzero(pc.is_in(given.ids, value_set=names)).to_pylist():
            file, line = given.origin.place(row)
            name = given.ids[row].as_py()
            found.append(InputPlace(given.kind.table_id, name, split.index, seen + row, file, line))
    return found


def pieces_of(job: LoadJob, split: Split) -> Iterator[Piece]:
    """The rows of a split, as the load reads them."""
    found = pieces(split, job.pinned.snapshot().catalog, job.options)
    skip = job.left_out.get(split.index)
    return found if skip is None else without(found, skip)


def identified(job: LoadJob, split: int, rows: Iterable[Piece]) -> Iterator[tuple[Given, int]]:
    """The rows of a split with their ids, type by type, and the number of rows before."""
    txn, ids = job.txn(), Ids(job.seed, split)
    seen = 0
    for piece in rows:
        for part in to_incoming(piece.parts):
            given, _ = identify(txn, kind_of(txn.catalog, part), [part], ids)
            yield given, seen
            seen += len(given)


@frozen
class Staging:
    """All splits, in the order of the input."""

    job: LoadJob
    inputs: Inputs
    splits: tuple[StagedSplit, ...]
    frame_splits: tuple[int, ...] = ()  # the number of the first split of each DataFrame
    gathered: bool = False  # rows were grouped by id, and one of each chosen

    def first_lines(self) -> dict[int, int]:
        """The number of lines of its file before each split."""
        files = {split.index: split.file for split in self.inputs.splits}
        before: dict[str, int] = {}
        found = {}
        for one in self.splits:
            file = files.get(one.split, "")
            found[one.split] = before.get(file, 0)
            before[file] = before.get(file, 0) + one.lines
        return found


def placed(violation: Violation, lines_before: int) -> Violation:
    """A violation with its line in the file instead of the split."""
    if violation.line is None or not lines_before:
        return violation
    return replace(violation, line=violation.line + lines_before)


T = TypeVar("T")


def answer(value: Any) -> pa.RecordBatch:
    """A value serialised for the driver."""
    body = msgspec.msgpack.encode(_portable(value))
    return pa.RecordBatch.from_arrays([pa.array([body], pa.binary())], schema=RESULT)


def answered(rows: Iterable[Any], kind: type[T]) -> Iterator[T]:
    """The values tasks sent."""
    return (_decoded(bytes(row.body), kind) for row in rows)


def answers(
    session: SparkSession | None, task: Callable[..., Any], count: int, kind: type[T]
) -> Iterator[T]:
    """The values that a task makes of 0 to count - 1: on Spark in a partition each, otherwise one by one here."""
    if session is not None:
        yield from answered(numbers(session, count).mapInArrow(task, RESULT_DDL).collect(), kind)
        return
    for batch in task(iter([pa.record_batch([pa.array(range(count), pa.int64())], ["id"])])):
        yield from (_decoded(body, kind) for body in batch.column(0).to_pylist())


def _decoded(body: bytes, kind: type[T]) -> T:
    value: Any = msgspec.msgpack.decode(body, type=kind)
    return _with_dates(value, _from_portable) if kind is StagedSplit else value  # type: ignore[return-value]


def _portable(value: Any) -> Any:
    """The encoding has no dates, only instants."""
    return _with_dates(value, _to_portable) if isinstance(value, StagedSplit) else value


def _with_dates(done: StagedSplit, change: Callable[[Any], Any]) -> StagedSplit:
    def changed(found: list[Violation]) -> list[Violation]:
        return [replace(violation, value=change(violation.value)) for violation in found]

    values = {table: changed(found) for table, found in done.values.items()}
    return replace(done, problems=changed(done.problems), keys=changed(done.keys), values=values)


def _to_portable(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_to_portable(item) for item in value]
    is_date = isinstance(value, dt.date) and not isinstance(value, dt.datetime)
    return {"date": value.isoformat()} if is_date else value


def _from_portable(value: Any) -> Any:
    match value:
        case {"date": str(text)}:
            return dt.date.fromisoformat(text)
        case list():
            return [_from_portable(item) for item in value]
    return value
