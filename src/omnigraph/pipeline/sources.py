"""What a bulk load is given, cut into pieces that tasks read on their own.

Lines are cut by bytes, Parquet by row groups; compressed files, CSV (whose cells may hold line breaks) and Arrow files
are read whole, each by one task, block by block. A Spark DataFrame comes with its own partitions.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from omnigraph.errors import OptionInvalid
from omnigraph.model.catalog import Catalog, EdgeType, NodeType
from omnigraph.write.input.files import COMPRESSIONS, expand, look_at, size_of
from omnigraph.write.input.sources import FILE_READERS, LINES, kind_named
from omnigraph.write.input.tables import row_groups, suffix_of

Kind = NodeType | EdgeType
SPLIT_BYTES = 32 << 20
FORMS = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet"}


@dataclass(frozen=True, slots=True)
class Split:
    """A piece of a file. `start` and `end` count bytes or row groups; without an end it is the whole file."""

    index: int  # its place in the order of the input
    form: str  # lines, csv, parquet or arrow
    file: str
    table_id: str | None = None  # of plain rows; graph records name their types themselves
    start: int = 0
    end: int | None = None
    first_line: int = 1
    columns: tuple[tuple[str, str], ...] = ()  # names in the file, and the properties they fill


@dataclass(frozen=True, slots=True)
class Mapped:
    """A file of rows whose columns are called otherwise: pairs of a name in the file and a property."""

    path: str
    columns: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Sources:
    """Several things in one load: files of graph records, and tables by type."""

    records: tuple[str, ...] = ()
    tables: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Inputs:
    """All of an input: pieces of files, DataFrames by type, and the types that were named."""

    splits: tuple[Split, ...] = ()
    frames: tuple[tuple[str, Any], ...] = ()  # table id and DataFrame
    named: tuple[str, ...] = ()  # table ids that are present even without rows
    files: Mapping[str, str] = field(default_factory=dict)  # with a text that changes when they do


def is_frame(value: Any) -> bool:
    """Whether something is a Spark DataFrame."""
    return type(value).__module__.startswith("pyspark.sql") and hasattr(value, "mapInArrow")


def wants_spark(source: Any) -> bool:
    """Whether only Spark can read it."""
    if isinstance(source, Sources):
        return True
    return isinstance(source, Mapping) and any(map(is_frame, source.values()))


def input_bytes(source: Any) -> int | None:
    """The size of the files of an input; none where it is not made of files."""
    parts = list(source.values()) if isinstance(source, Mapping) else source
    parts = parts if isinstance(parts, list) else [parts]
    if not all(isinstance(part, str | os.PathLike) for part in parts):
        return None
    return sum(size_of(file) for part in parts for file in expand(part))


def cut(source: Any, catalog: Catalog, split_bytes: int = SPLIT_BYTES) -> Inputs:
    """The pieces of an input, in its order."""
    given = _as_sources(source)
    found = Inputs()
    for path in given.records:
        for file in expand(path):
            if suffix_of(file) in FILE_READERS:
                raise OptionInvalid(
                    f"{file} does not say which type its rows are of; give {{'TypeName': path}}"
                )
            found = _with_file(found, file, None, split_bytes)
    for name, value in given.tables:
        found = _with_rows(found, kind_named(name, catalog), value, split_bytes)
    numbered = (replace(split, index=i) for i, split in enumerate(found.splits))
    return replace(found, splits=tuple(numbered))


def _as_sources(source: Any) -> Sources:
    if isinstance(source, Sources):
        return source
    if isinstance(source, Mapping):
        return Sources(tables=tuple((str(name), value) for name, value in source.items()))
    paths = source if isinstance(source, list | tuple) else [source]
    for path in paths:
        if not isinstance(path, str | os.PathLike):
            raise _unreadable(path)
    return Sources(records=tuple(os.fspath(path) for path in paths))


def _unreadable(value: Any) -> OptionInvalid:
    return OptionInvalid(
        f"cannot load {type(value).__name__} with Spark; give paths, or {{type name: path or DataFrame}}",
        help="Data in this process is loaded with engine='local'.",
    )


def _with_rows(found: Inputs, kind: Kind, value: Any, split_bytes: int) -> Inputs:
    found = replace(found, named=(*found.named, kind.table_id))
    if is_frame(value):
        return replace(found, frames=(*found.frames, (kind.table_id, value)))
    columns: tuple[tuple[str, str], ...] = ()
    if isinstance(value, Mapped):
        value, columns = value.path, value.columns
    if not isinstance(value, str | os.PathLike):
        raise _unreadable(value)
    for file in expand(value):
        if suffix_of(file) not in (*FILE_READERS, *LINES):
            known = ", ".join([*FILE_READERS, *LINES[:-1]])
            raise OptionInvalid(f"{file}: rows are read from files that end in {known}")
        found = _with_file(found, file, kind.table_id, split_bytes, columns)
    return found


def _with_file(
    found: Inputs,
    file: str,
    table_id: str | None,
    split_bytes: int,
    columns: tuple[tuple[str, str], ...] = (),
) -> Inputs:
    size, stamp = look_at(file)
    pieces = _pieces(file, table_id, size, split_bytes)
    splits = tuple(replace(piece, columns=columns) for piece in pieces)
    return replace(found, splits=found.splits + splits, files={**found.files, file: stamp})


def _pieces(file: str, table_id: str | None, size: int, split_bytes: int) -> Iterator[Split]:
    suffix = suffix_of(file)
    form = "lines" if suffix in LINES else FORMS.get(suffix, "arrow")
    if form == "parquet":
        yield from _row_groups(file, table_id, split_bytes)
    elif form == "lines" and Path(file).suffix not in COMPRESSIONS:
        count = max(1, -(-size // split_bytes))
        for i in range(count):
            yield Split(0, form, file, table_id, size * i // count, size * (i + 1) // count)
    else:
        yield Split(0, form, file, table_id)


def _row_groups(file: str, table_id: str | None, split_bytes: int) -> Iterator[Split]:
    start, first_line, rows, held = 0, 1, 0, 0
    groups = row_groups(file)
    for number, (count, size) in enumerate(groups):
        rows, held = rows + count, held + size
        if held >= split_bytes or number == len(groups) - 1:
            yield Split(0, "parquet", file, table_id, start, number + 1, first_line)
            start, first_line, rows, held = number + 1, first_line + rows, 0, 0
