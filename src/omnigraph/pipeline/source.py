"""The data source `omnigraph`: graphs in any Spark program.

    OmnigraphSource.register(spark)
    spark.read.format("omnigraph").option("graph", uri).option("type", "Person").load()
    frame.write.format("omnigraph").option("graph", uri).option("type", "Person").mode("append").save()

    spark.readStream.format("omnigraph").option("changes", "true").option("graph", uri).option("type", "Person").load()

A read is pinned to one commit and has one partition for each fragment; simple filters are pushed down,
and `columns` (separated by commas) selects columns. A write is one load: checked like every other, published as one
commit. `load_mode` (append, merge, overwrite) adds modes that Spark lacks; under a `key` a repeated write is done once.
With `changes` a read returns the changes of a branch `after` one commit `until` another, and a stream continues from
its checkpoint.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from omnigraph.core import history
from omnigraph.core.group import Writers
from omnigraph.core.plan import Request
from omnigraph.core.repository import Repository, open_repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import OptionInvalid
from omnigraph.fingerprint import fingerprint
from omnigraph.lang import ir
from omnigraph.lang.tree import conjunction
from omnigraph.model.catalog import NodeOrEdgeType
from omnigraph.model.columns import arrow_schema
from omnigraph.model.embedding import EmbedSettings
from omnigraph.model.frozen import frozen
from omnigraph.model.names import branch_name
from omnigraph.model.types import INTEGERS, PropType, Scalar
from omnigraph.pipeline.changes import ChangeReader, ChangeStream, Wanted
from omnigraph.pipeline.frames import columns_of, entity, outer_names, wired
from omnigraph.pipeline.load import publishing
from omnigraph.pipeline.pinned import Pinned, pin
from omnigraph.pipeline.rows import frame_pieces, frame_shape, kind_by_table
from omnigraph.pipeline.rowset import ddl
from omnigraph.pipeline.session import SparkTooOld
from omnigraph.pipeline.stage import SEED_BITS, LoadJob, StagedSplit, stage_pieces
from omnigraph.write.embed import settings_for
from omnigraph.write.input.options import Options
from omnigraph.write.load import mode_of
from omnigraph.write.resolve import Mode

try:
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceArrowWriter,
        DataSourceReader,
        EqualTo,
        Filter,
        GreaterThan,
        GreaterThanOrEqual,
        In,
        InputPartition,
        IsNotNull,
        IsNull,
        LessThan,
        LessThanOrEqual,
        WriterCommitMessage,
    )
except ImportError as missing:
    raise SparkTooOld("the format `omnigraph` needs Spark 4.2 or newer") from missing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

COMPARISONS = {
    EqualTo: ir.CompareOp.EQ,
    GreaterThan: ir.CompareOp.GT,
    GreaterThanOrEqual: ir.CompareOp.GE,
    LessThan: ir.CompareOp.LT,
    LessThanOrEqual: ir.CompareOp.LE,
}


class OmnigraphSource(DataSource):  # type: ignore[misc]
    """Options: `graph`, `type`, `branch`; `at` and `columns` of reads; `changes`, `after`, `until` and `commits_max` of
    changes; `load_mode`, `key`, `message` and `actor` of writes."""

    @classmethod
    def name(cls) -> str:
        return "omnigraph"

    embed: ClassVar[EmbedSettings | None] = None

    @classmethod
    def register(cls, session: SparkSession) -> None:
        """Register the format with a session. Texts will be embedded with the current settings of this process."""

        class Configured(cls):  # type: ignore[misc, valid-type]
            """Carries the settings to Spark's other processes; options would be visible to all users."""

            embed = settings_for()

        session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
        session.dataSource.register(Configured)

    def schema(self) -> StructType:
        target = TypeState.of(self.options)
        if _asks_for_changes(self.options):
            return self._changes().schema()
        names = target.columns()
        types = {f.name: f.type for f in arrow_schema(target.kind)}
        found: StructType = ddl({outer: types[stored] for stored, outer in names.items()})
        return found

    def reader(self, schema: StructType) -> PlainReader | ChangeReader:  # noqa: ARG002 - Spark's signature
        if _asks_for_changes(self.options):
            return ChangeReader(self._changes())
        return self._reader(TypeState.of(self.options))

    def _reader(self, target: TypeState) -> PlainReader:
        return Reader(target)

    def streamReader(self, schema: StructType) -> ChangeStream:  # noqa: ARG002, N802
        if not _asks_for_changes(self.options):
            raise OptionInvalid(
                "a stream reads the changes of a graph: set the option 'changes' to true"
            )
        return ChangeStream(self._changes())

    def _changes(self) -> Wanted:
        target = TypeState.of(self.options)
        return Wanted.of(self.options, target.pinned, target.branch, target.table_id)

    def writer(self, schema: StructType, overwrite: bool) -> GraphWriter:  # noqa: ARG002
        return GraphWriter(TypeState.of(self.options), Wish.of(self.options, overwrite), self.embed)


class FoundSource(OmnigraphSource):
    """The format as discovered by Spark. Its settings are those of each process, and filters stay with Spark:
    a session that is not configured to push them down refuses a source that would take them."""

    def _reader(self, target: TypeState) -> PlainReader:
        return PlainReader(target)

    def writer(self, schema: StructType, overwrite: bool) -> GraphWriter:  # noqa: ARG002
        return GraphWriter(
            TypeState.of(self.options), Wish.of(self.options, overwrite), settings_for()
        )


@frozen
class TypeState:
    """The type and the state of a graph that the options name."""

    pinned: Pinned
    branch: str
    table_id: str
    wanted: tuple[str, ...] = ()

    @classmethod
    def of(cls, options: Any) -> TypeState:
        uri, name = (_required(options, key) for key in ("graph", "type"))
        repo = open_repository(uri)
        branch = options.get("branch") or "main"
        snapshot = _state(repo, branch, options.get("at"))
        columns = tuple(c.strip() for c in (options.get("columns") or "").split(",") if c.strip())
        kind = entity(snapshot.catalog, name)
        return cls(pin(repo, snapshot), branch, kind.table_id, columns)

    @property
    def kind(self) -> NodeOrEdgeType:
        return kind_by_table(self.pinned.snapshot().catalog, self.table_id)

    def columns(self) -> dict[str, str]:
        """The stored columns to read, with their public names."""
        return columns_of(self.kind, self.wanted)


def _asks_for_changes(options: Any) -> bool:
    return str(options.get("changes") or "false").lower() == "true"


def _required(options: Any, key: str) -> str:
    found = options.get(key)
    if not found:
        raise OptionInvalid(f"the format omnigraph needs the option {key!r}")
    return str(found)


def _state(repo: Repository, branch: str, at: str | None) -> Snapshot:
    commit = history.resolve(repo, at, branch).commit if at else repo.head(branch).commit
    return repo.snapshot(commit)


# --- reading -----------------------------------------------------------------------------------------------------


@dataclass
class FragmentPartition(InputPartition):  # type: ignore[misc]
    """One fragment."""

    fragment: int


class PlainReader(DataSourceReader):  # type: ignore[misc]
    """Rows of one type at one commit."""

    def __init__(self, target: TypeState) -> None:
        self.target = target
        self.names = target.columns()
        self.conditions: list[ir.Expr] = []

    def partitions(self) -> list[InputPartition]:
        table = self.target.pinned.snapshot().table(self.target.table_id)
        return [FragmentPartition(info.fragment_id) for info in table.fragments()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, FragmentPartition):
            return  # an empty table: Spark reads one partition we did not create
        table = self.target.pinned.snapshot().table(self.target.table_id)
        wanted = conjunction(tuple(self.conditions))
        rows = table.batches(list(self.names), wanted, fragments=[partition.fragment])
        for batch in rows:
            yield wired(batch, self.names)


class Reader(PlainReader):
    """The same with simple filters pushed down, in a session that is configured for it."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Take the filters with the same meaning here; the others stay with Spark."""
        for one in filters:
            found = self._condition(one)
            if found is None:
                yield one
            else:
                self.conditions.append(found)

    def _condition(self, given: Filter) -> ir.Expr | None:
        attribute: tuple[str, ...] = getattr(given, "attribute", ())
        stored = {outer: name for name, outer in outer_names(self.target.kind).items()}
        name = stored.get(attribute[0]) if len(attribute) == 1 else None
        if name is None:
            return None
        prop = self.target.kind.properties.get(name)
        kind = ir.STRING if prop is None else prop.type
        column = ir.Column(ir.ROW, name, kind)
        match given:
            case IsNull():
                return ir.IsNull(column)
            case IsNotNull():
                return ir.IsNull(column, negated=True)
            case In(value=values):
                found = [_value(v, kind) for v in values]
                listed = ir.Literal(tuple(found), replace(kind, is_list=True))
                return None if None in found else ir.In(column, listed)
        op = COMPARISONS.get(type(given))
        value = _value(getattr(given, "value", None), kind)
        if op is None or value is None:
            return None
        return ir.Compare(op, column, ir.Literal(value, kind))


def _value(value: Any, kind: PropType) -> Any:
    """A value that compares as in Spark; None if it might not (floats have NaN, times have zones)."""
    if isinstance(value, Decimal) and value == int(value):
        value = int(value)
    if not kind.is_plain:
        return None
    whole = kind.scalar in INTEGERS and isinstance(value, int) and not isinstance(value, bool)
    text = kind.scalar is Scalar.STRING and isinstance(value, str)
    truth = kind.scalar is Scalar.BOOL and isinstance(value, bool)
    return value if whole or text or truth else None


# --- writing -----------------------------------------------------------------------------------------------------


@dataclass
class StagedMessage(WriterCommitMessage):  # type: ignore[misc]
    """The files written by one task."""

    staged: StagedSplit = field(default_factory=lambda: StagedSplit(0))


@frozen
class Wish:
    """What the options of a write ask for, besides its rows."""

    mode: Mode
    key: str | None = None  # a write is done once under it
    message: str | None = None
    actor: str | None = None

    @classmethod
    def of(cls, options: Any, overwrite: bool) -> Wish:
        mode = options.get("load_mode") or ("overwrite" if overwrite else "append")
        return cls(mode_of(mode), *(options.get(name) for name in ("key", "message", "actor")))


class GraphWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """Stages in tasks, then verifies and publishes as one commit."""

    def __init__(self, target: TypeState, wish: Wish, embed: EmbedSettings | None) -> None:
        now = datetime.now(UTC)
        seed = secrets.randbits(SEED_BITS)
        self.target, self.wish = target, wish
        self.job = LoadJob(
            target.pinned, target.branch, now, wish.mode, Options(), seed, embed=embed
        )

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedMessage:
        from pyspark import TaskContext

        context = TaskContext.get()
        split = 0 if context is None else context.partitionId()
        catalog = self.target.pinned.snapshot().catalog
        rows = frame_pieces(iterator, frame_shape(self.target.table_id, catalog, self.job.options))
        return StagedMessage(stage_pieces(self.job, split, rows))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        staged = [m.staged for m in messages if isinstance(m, StagedMessage)]
        repo = open_repository(self.target.pinned.uri)
        verb = publishing(repo, self.job, self.target.table_id, staged)
        wish = self.wish
        request = Request(
            branch=branch_name(self.target.branch),
            verb=verb,
            actor=wish.actor,
            message=wish.message,
            idempotency_key=wish.key,
            fingerprint=fingerprint("write", wish.mode.value, self.target.table_id),
            alone=True,
        )
        Writers(repo).submit(request)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing was published; the files are garbage."""
