"""The changes of a branch for Spark programs: as a batch between two commits, or as a stream.

A row is a change: the commit, the operation, the id, and the row before and after it. Offsets of a stream are commit
ids, so a checkpoint names exactly what was read. Small commits share a task; a commit that only adds rows, like a bulk
load, is split by fragments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.core.history import Entry, resolve
from omnigraph.core.records import Commit, TableChange
from omnigraph.core.repository import Repository, open_repository
from omnigraph.errors import OptionInvalid
from omnigraph.merge.diff import DELETE, INSERT, UPDATE
from omnigraph.merge.feed import Feed, changes
from omnigraph.merge.rows import Comparison, Delta, positions
from omnigraph.merge.schema_view import seen_as
from omnigraph.model.catalog import NodeOrEdgeType
from omnigraph.model.columns import arrow_schema, one_array
from omnigraph.model.frozen import frozen
from omnigraph.pipeline.frames import outer_names
from omnigraph.pipeline.pinned import Pinned, adopt
from omnigraph.pipeline.rows import kind_by_table
from omnigraph.pipeline.rowset import ddl, to_wire, wire_type
from omnigraph.pipeline.session import SparkTooOld

try:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxFiles,
        SupportsTriggerAvailableNow,
    )
except ImportError as missing:
    raise SparkTooOld("the format `omnigraph` needs Spark 4.2 or newer") from missing

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

BATCH_ROWS = 65_536
COMMIT = "commit"  # the only member of an offset


@frozen
class Wanted:
    """The changes of one type on one branch, by one schema."""

    pinned: Pinned
    branch: str
    table_id: str
    after: str | None = None
    until: str | None = None
    commits_max: int | None = None  # of one micro-batch

    @classmethod
    def of(cls, options: Any, pinned: Pinned, branch: str, table_id: str) -> Wanted:
        commits = options.get("commits_max")
        if commits is not None and not (str(commits).isdecimal() and int(commits)):
            raise OptionInvalid(f"commits_max must be a whole number from 1, got {commits!r}")
        return cls(
            pinned,
            branch,
            table_id,
            options.get("after"),
            options.get("until"),
            None if commits is None else int(commits),
        )

    @property
    def kind(self) -> NodeOrEdgeType:
        return kind_by_table(self.pinned.snapshot().catalog, self.table_id)

    def repository(self) -> Repository:
        adopt(self.pinned.environment)
        return open_repository(self.pinned.uri)

    def feed(self, after: str | None, until: str | None, limit: int | None = None) -> Feed:
        return changes(
            self.repository(),
            self.branch,
            after,
            types=[self.kind.name],
            limit=limit,
            until=until,
            catalog=self.pinned.snapshot().catalog,
        )

    def image_type(self) -> pa.StructType:
        """The Spark type of a row before or after a change."""
        names, types = outer_names(self.kind), arrow_schema(self.kind)
        return pa.struct([(outer, wire_type(types.field(n).type)) for n, outer in names.items()])

    def schema(self) -> StructType:
        found: StructType = ddl(dict(zip(self.arrow().names, self.arrow().types, strict=True)))
        return found

    def arrow(self) -> pa.Schema:
        image = self.image_type()
        texts = [(name, pa.string()) for name in (COMMIT, "operation", "id")]
        return pa.schema([*texts, ("before", image), ("after", image)])


# --- tasks -------------------------------------------------------------------------------------------------------


@dataclass
class Stretch(InputPartition):  # type: ignore[misc]
    """The commits after one up to another; with fragments, the rows of the only commit in them."""

    after: str
    until: str
    fragments: tuple[int, ...] | None = None


def stretches(wanted: Wanted, feed: Feed) -> Iterator[Stretch]:
    """A feed in pieces with about the same number of changes."""
    first = last = feed.start
    held = 0
    for entry, before in feed.entries():
        change = _change(entry, wanted.table_id)
        if _adds_many(entry, change):
            if first != last:
                yield Stretch(first, last)
            yield from _by_fragments(wanted, feed.repo, Stretch(last, entry.id), entry, before)
            first, held = entry.id, 0
        else:
            held += 0 if change is None else change.inserted + change.updated + change.deleted
            if held >= BATCH_ROWS:
                yield Stretch(first, entry.id)
                first, held = entry.id, 0
        last = entry.id
    if first != last:
        yield Stretch(first, last)


def _change(entry: Entry, table_id: str) -> TableChange | None:
    return None if entry.member is None else entry.member.changes.get(table_id)


def _adds_many(entry: Entry, change: TableChange | None) -> bool:
    alone = isinstance(entry.commit, Commit) and len(entry.commit.members) == 1
    if change is None or not alone or change.all or change.updated or change.deleted:
        return False
    return change.inserted > BATCH_ROWS


def _by_fragments(
    wanted: Wanted, repo: Repository, whole: Stretch, entry: Entry, before: Commit
) -> Iterator[Stretch]:
    """The fragments a commit added, one by one; the whole commit if it did more than that."""
    assert isinstance(entry.commit, Commit)  # noqa: S101
    if wanted.table_id not in before.tables:
        yield whole
        return
    one, other = (repo.snapshot(c).table(wanted.table_id) for c in (before, entry.commit))
    compared = Comparison.of(one, other, ["id"])
    if compared.mine or compared.shared:
        yield whole
        return
    for info in compared.yours:
        yield replace(whole, fragments=(info.fragment_id,))


def read_stretch(wanted: Wanted, stretch: Stretch) -> Iterator[pa.RecordBatch]:
    """The changes of a stretch in Spark's types."""
    feed = wanted.feed(stretch.after, stretch.until)
    if stretch.fragments is not None:
        yield from _added(wanted, feed, stretch.until, stretch.fragments)
        return
    for commit, deltas in feed.deltas():
        for _, delta in deltas:
            yield from _change_batches(wanted, commit, delta)


def _added(
    wanted: Wanted, feed: Feed, commit: str, fragments: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    catalog = wanted.pinned.snapshot().catalog
    snapshot = seen_as(
        feed.repo.snapshot(resolve(feed.repo, commit, wanted.branch).commit), catalog
    )
    table = snapshot.table(wanted.table_id)
    for batch in table.batches(table.schema.names, batch_rows=BATCH_ROWS, fragments=fragments):
        rows = pa.Table.from_batches([batch])
        yield from _change_batches(wanted, commit, Delta(rows.slice(0, 0), rows))


def _change_batches(wanted: Wanted, commit: str, delta: Delta) -> Iterator[pa.RecordBatch]:
    ids = delta.ids
    names = outer_names(wanted.kind)
    for start in range(0, len(ids), BATCH_ROWS):
        some = ids.slice(start, BATCH_ROWS)
        places = [positions(some, rows["id"]) for rows in (delta.before, delta.after)]
        images = [
            _images(rows, at, names, wanted.image_type())
            for rows, at in zip((delta.before, delta.after), places, strict=True)
        ]
        arrays = [pa.repeat(commit, len(some)), _operations(*places), some, *images]
        yield pa.RecordBatch.from_arrays(arrays, schema=wanted.arrow())


def _images(
    rows: pa.Table, at: pa.Array, names: Mapping[str, str], kind: pa.StructType
) -> pa.StructArray:
    taken = rows.select(list(names)).take(at).combine_chunks()
    arrays = [
        to_wire(one_array(taken[name])).cast(field.type)
        for name, field in zip(names, kind, strict=True)
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=at.is_null())


def _operations(before: pa.Array, after: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    gone = pc.if_else(after.is_null(), DELETE, UPDATE)
    return pc.if_else(before.is_null(), INSERT, gone)


# --- readers -----------------------------------------------------------------------------------------------------


class ChangeReader(DataSourceReader):  # type: ignore[misc]
    """Changes between two commits."""

    def __init__(self, wanted: Wanted) -> None:
        head = wanted.pinned.snapshot().commit_id
        self.wanted = replace(wanted, until=wanted.until or head)

    def partitions(self) -> list[InputPartition]:
        wanted = self.wanted
        return list(stretches(wanted, wanted.feed(wanted.after, wanted.until)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, Stretch):
            yield from read_stretch(self.wanted, partition)


class ChangeStream(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Changes as a stream. `commits_max` bounds a micro-batch."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted

    def initialOffset(self) -> dict[str, str]:  # noqa: N802 - Spark's name
        return {COMMIT: self.wanted.feed(self.wanted.after, None).start}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        limit = self.wanted.commits_max
        return ReadAllAvailable() if limit is None else ReadMaxFiles(limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Later commits are for the next run."""
        repo = self.wanted.repository()
        head = repo.head(self.wanted.branch).commit.content
        self.wanted = replace(self.wanted, until=self.wanted.until or head)

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:  # noqa: N802
        commits = limit.max_files if isinstance(limit, ReadMaxFiles) else None
        if start[COMMIT] == self.wanted.until:
            return start
        return {COMMIT: self.wanted.feed(start[COMMIT], self.wanted.until, commits).cursor}

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        if start == end:
            return []
        return list(stretches(self.wanted, self.wanted.feed(start[COMMIT], end[COMMIT])))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, Stretch):
            yield from read_stretch(self.wanted, partition)
