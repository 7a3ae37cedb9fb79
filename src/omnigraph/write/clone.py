"""Copies of a graph in another place: all of it with its history, or the head of one branch as a separate graph.

A whole graph is copied object by object. Names and history are copied before the data they refer to, so that the copy
is complete despite concurrent writes. One branch is copied row by row, between any two kinds of stores. Either way the
object that makes the copy a graph is written last, so that an interrupted copy is not a graph and can be repeated; and
the copy is compared with the original.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from omnigraph.core import layout
from omnigraph.core.branches import branch_names
from omnigraph.core.create import make_exist, prepare_graph
from omnigraph.core.group import Writers
from omnigraph.core.plan import Append, PublishPlan, Request, TableAction
from omnigraph.core.repository import Repository, open_repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import (
    Corrupt,
    GraphExists,
    ObjectExists,
    ObjectNotFound,
    OptionInvalid,
    StoreOutcomeUnknown,
)
from omnigraph.merge.rows import equal_rows
from omnigraph.model.frozen import frozen
from omnigraph.model.names import MAIN
from omnigraph.storage import metrics
from omnigraph.storage.objects import ObjectInfo, ObjectStore, locate, open_objects
from omnigraph.storage.tables import Table

FOLDERS = (
    layout.REFS,
    layout.RECORDS,
    layout.CHAINS,
    layout.CLAIMS,
    layout.SCHEMAS,
    layout.CHECKS,
    layout.CHECKED,
    layout.PROPOSALS,
    *layout.TABLE_FOLDERS.values(),
)  # in this order
PARALLEL_BYTES_MAX = 16 << 20  # larger objects are copied one at a time


@frozen
class Cloned:
    """What was copied."""

    uri: str
    branches: tuple[str, ...]
    objects: int
    bytes: int
    rows: int


def clone_graph(source: Repository, dest: object) -> Cloned:
    """Copy all branches, tags and history."""
    place = locate(dest)
    if "memory" in (source.place.scheme, place.scheme):
        raise OptionInvalid(
            "a graph in memory has no files to copy",
            help="Name a branch: its rows can be copied to and from anywhere.",
        )
    objects = open_objects(place)
    _refuse_existing(objects)
    names = branch_names(source)
    heads = {name: source.head(name).commit for name in names}
    copied = [info for folder in FOLDERS for info in _copy_folder(source.objects, objects, folder)]
    _check_sizes(objects, copied)
    _make_exist(objects, source.objects.get(layout.GRAPH))
    copy = open_repository(dest, limits=source.limits)
    rows = 0
    for name, head in heads.items():
        found = copy.chains.read(head.chain, head.number)
        if found != head:
            raise _unequal(f"the head of branch {name!r}")
        rows += sum(_check_table(copy, source.snapshot(head), table) for table in head.tables)
    size = sum(info.size for info in copied)
    return Cloned(place.uri, tuple(names), len(copied) + 1, size, rows)


def _refuse_existing(objects: ObjectStore) -> None:
    try:
        objects.get(layout.GRAPH)
    except ObjectNotFound:
        return
    raise GraphExists(f"a graph already exists at {objects.uri}")


def _copy_folder(source: ObjectStore, dest: ObjectStore, folder: str) -> list[ObjectInfo]:
    infos = sorted(source.list(folder), key=lambda info: info.key)
    small = [info for info in infos if info.size <= PARALLEL_BYTES_MAX]
    metrics.parallel([partial(_copy, source, dest, info.key) for info in small])
    for info in infos:
        if info.size > PARALLEL_BYTES_MAX:
            _copy(source, dest, info.key)
    return infos


def _copy(source: ObjectStore, dest: ObjectStore, key: str) -> None:
    try:
        dest.put_new(key, source.get(key))
    except (
        ObjectExists,
        StoreOutcomeUnknown,
    ):  # from an attempt that did not finish, or got no response
        dest.put(key, source.get(key))


def _make_exist(objects: ObjectStore, stamp: bytes) -> None:
    """Write the stamp; after a lost response, an existing one may be ours."""
    try:
        objects.put_new(layout.GRAPH, stamp)
    except (ObjectExists, StoreOutcomeUnknown):
        try:
            there = objects.get(layout.GRAPH)
        except ObjectNotFound:
            objects.put_new(layout.GRAPH, stamp)
        else:
            if there != stamp:
                raise GraphExists(
                    f"another process created a graph at {objects.uri} in the meantime"
                ) from None


def _check_sizes(objects: ObjectStore, copied: list[ObjectInfo]) -> None:
    there = {info.key: info.size for folder in FOLDERS for info in objects.list(folder)}
    for info in copied:
        if there.get(info.key) != info.size:
            raise _unequal(f"the object {info.key}")


def _check_table(copy: Repository, original: Snapshot, table_id: str) -> int:
    """The rows of a table, which must open in the copy with all its files and the same row count."""
    entry = original.entry(table_id)
    mine, yours = original.table(table_id), copy.tables.open(original.ref(table_id))
    if mine.files() != yours.files() or yours.count() != entry.rows:
        raise _unequal(f"table {entry.path}")
    return entry.rows


def _unequal(what: str) -> Corrupt:
    return Corrupt(
        f"the copy is not equal to the original: {what} differs",
        help="Remove the copy and clone again; if it happens again, run `omnigraph doctor` on both.",
    )


# --- one branch --------------------------------------------------------------------------------------------------


def clone_branch(source: Repository, branch: str, dest: object) -> Cloned:
    """Copy the head of a branch: a new graph without history, whose main branch it is."""
    original = source.snapshot(source.head(branch).commit)
    stored = source.schema(original.commit.schema).stored
    copy = prepare_graph(dest, stored, limits=source.limits)
    request = Request(
        branch=MAIN,
        verb=partial(_rows_of, original, source.checks(original.commit.checks)),
        message=f"copy of {branch} at {original.commit_id} of {source.place.uri}",
    )
    Writers(copy).submit(request)
    result = copy.snapshot(copy.head(MAIN).commit)
    for kind in original.catalog.entities():
        _check_rows(original.table_of(kind), result.table_of(kind))
    make_exist(copy)
    rows = sum(entry.rows for entry in result.commit.tables.values())
    return Cloned(copy.place.uri, (MAIN,), 0, 0, rows)


def _rows_of(original: Snapshot, checks: str, txn: WriteTxn) -> PublishPlan:
    actions = tuple(_appends(original, txn.snapshot))
    return PublishPlan(kind="clone", actions=actions, checks=checks or None)


def _appends(original: Snapshot, empty: Snapshot) -> Iterator[TableAction]:
    for kind in original.catalog.entities():
        table = original.table_of(kind)
        if table.count():
            rows = table.batches(table.schema.names)
            written = empty.tables.write_fragments(empty.ref(kind.table_id), rows)
            yield Append(kind.table_id, written)


def _check_rows(one: Table, other: Table) -> None:
    """Rows are written in the order they are read, so both are read side by side."""
    if one.count() != other.count():
        raise _unequal(f"table {one.ref.path}")
    names = one.schema.names
    for mine, yours in _side_by_side(one, other):
        if not equal_rows(mine, yours, names).all():
            raise _unequal(f"table {one.ref.path}")


def _side_by_side(one: Table, other: Table) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Both tables in pieces of the same rows, however each is split into batches."""
    names = one.schema.names
    streams = [iter(t.batches(names)) for t in (one, other)]
    held = [pa.table({n: pa.array([], one.schema.field(n).type) for n in names})] * 2
    while True:
        for i in (0, 1):
            if not held[i].num_rows:
                batch = next(streams[i], None)
                if batch is None:
                    return
                held[i] = pa.Table.from_batches([batch])
        count = min(part.num_rows for part in held)
        yield held[0].slice(0, count), held[1].slice(0, count)
        held = [part.slice(count) for part in held]
