"""Making the files of text indices: which ones a table lacks, and making one.

Files are named by the data file they are made from, so making one again gives the same file, and concurrent changes of
the table do no harm. Maintenance calls `store_missing`; so does a load, on Spark in tasks of one file each.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import cast

from omnigraph.core.snapshot import Snapshot
from omnigraph.model.catalog import EntityType
from omnigraph.model.frozen import frozen
from omnigraph.read.cache import SHARED
from omnigraph.read.search.analyzer import Analyzer, AnalyzerUnknown, analyzer_of
from omnigraph.read.search.segments import deserves_file, forget_absence
from omnigraph.read.search.stored_text import (
    store_texts,
    table_folder,
    text_key,
    text_suffix,
)
from omnigraph.storage.objects import LargeObjects, large_objects
from omnigraph.storage.tables import FragmentInfo, Table, WrittenTable


@frozen
class TextFile:
    """The file that belongs to a property in a fragment."""

    property: str
    fragment: FragmentInfo
    key: str


@frozen
class TextCoverage:
    """How much of a property is covered by files; small fragments need none."""

    property: str
    rows: int
    covered_rows: int
    missing: tuple[TextFile, ...]
    bytes: int


def text_coverage(snapshot: Snapshot, kind: EntityType) -> list[TextCoverage]:
    """The stored and missing files of each indexed text property, from one listing."""
    table, properties = snapshot.table(kind.table_id), _analyzers(kind)
    if not properties or not isinstance(table, WrittenTable):
        return []
    sizes: dict[str, int] = {}
    if any(deserves_file(fragment) for fragment in snapshot.table(kind.table_id).fragments()):
        place = table_folder(snapshot.ref(kind.table_id).path)
        sizes = {info.key: info.size for info in objects_of(snapshot).list(place)}
    return [_coverage(table, kind, name, sizes) for name in properties]


def _coverage(
    table: WrittenTable, kind: EntityType, name: str, sizes: dict[str, int]
) -> TextCoverage:
    files = list(_files(table, kind, name))
    stored = {file.key for file in files if file.key in sizes}
    missing = tuple(file for file in files if file.key not in sizes)
    lacking = sum(file.fragment.live_rows for file in missing)
    rows = sum(fragment.live_rows for fragment in cast(Table, table).fragments())
    return TextCoverage(name, rows, rows - lacking, missing, sum(sizes[key] for key in stored))


def _files(table: WrittenTable, kind: EntityType, name: str) -> Iterator[TextFile]:
    analyzer = _analyzers(kind)[name]
    path = cast(Table, table).ref.path
    for fragment in cast(Table, table).fragments():
        if deserves_file(fragment):
            yield TextFile(name, fragment, text_key(path, table.cells(name, fragment), analyzer))


def text_suffixes(snapshot: Snapshot, kind: EntityType) -> frozenset[str]:
    """How the names of the files end that this state of a table can use."""
    table = snapshot.table(kind.table_id)
    fragments = table.fragments()
    if not fragments or not isinstance(table, WrittenTable):
        return frozenset()
    return frozenset(
        text_suffix(table.cells(name, fragments[0]), analyzer)
        for name, analyzer in _analyzers(kind).items()
    )


def _analyzers(kind: EntityType) -> dict[str, Analyzer]:
    """Those of the text properties with an index; one that is unknown holds up no maintenance of the others."""
    found = {}
    for name in kind.indexed("text"):
        with suppress(AnalyzerUnknown):
            found[name] = analyzer_of(kind.properties[name])
    return found


def store_missing(snapshot: Snapshot, kind: EntityType) -> tuple[tuple[str, ...], int]:
    """Make every file a table lacks, one after the other; returns their properties and total size in bytes."""
    made = [file for found in text_coverage(snapshot, kind) for file in found.missing]
    table = snapshot.table(kind.table_id)
    size = sum(store_one(snapshot.root, table, kind, file) for file in made)
    return tuple(dict.fromkeys(file.property for file in made)), size


def store_one(root: str, table: Table, kind: EntityType, file: TextFile) -> int:
    """Make one file; returns its size in bytes."""
    assert isinstance(table, WrittenTable)  # noqa: S101
    analyzer = analyzer_of(kind.properties[file.property])
    texts = table.written(file.property, file.fragment)
    size = store_texts(large_objects(root), file.key, texts, analyzer)
    forget_absence(SHARED, root, file.key)
    return size


def objects_of(snapshot: Snapshot) -> LargeObjects:
    return large_objects(snapshot.root)
