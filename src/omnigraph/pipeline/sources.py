"""The input of a bulk load, cut into pieces that tasks read independently.

Lines are cut by bytes, large Parquet files by row groups; compressed files, CSV (whose cells may hold line breaks),
arrays of JSON, ORC, Avro and Arrow files are read whole, block by block. Of a Delta or Iceberg table the driver reads
the list of its files. A task reads one large piece or many small ones. A Spark DataFrame has its own partitions.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from omnigraph.errors import OptionInvalid
from omnigraph.model.catalog import Catalog, NodeOrEdgeType
from omnigraph.model.frozen import frozen
from omnigraph.write.input.files import (
    COMPRESSIONS,
    expand,
    is_one_array,
    is_pipe,
    look_at,
    size_of,
)
from omnigraph.write.input.folders import FolderValue
from omnigraph.write.input.input_files import input_files
from omnigraph.write.input.lakes.parts import LakePart
from omnigraph.write.input.mapping import Mapped, RowMapping, Sources, Wide
from omnigraph.write.input.options import CsvFormat
from omnigraph.write.input.sources import FILE_READERS, LINES, are_paths, no_rows_in, type_not_said
from omnigraph.write.input.tables import kind_named, row_groups, suffix_of

SPLIT_BYTES = 32 << 20
SPLITS_PER_TASK_MAX = 1000  # small files one task reads
WHOLE = "whole"  # read by the reader of its ending
FORMS = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet"}


@frozen
class FileReading:
    """How a file of rows is read, in addition to the options of the load."""

    columns: tuple[tuple[str, str], ...] = ()  # names in the file, and the properties they fill
    csv: CsvFormat | None = None
    values: tuple[FolderValue, ...] = ()  # columns from the names of folders
    rows: RowMapping | None = None  # the mapping of each row of a wide table
    part: LakePart | None = None  # the Delta or Iceberg table of the file


FrameRows = str | RowMapping  # the table of rows of one type, or a mapping


@frozen
class Split:
    """A piece of a file. `start` and `end` count bytes or row groups; without an end it is the whole file."""

    index: int  # its place in the order of the input
    form: str  # lines, csv, parquet, or whole
    file: str
    table_id: str | None = None  # of plain rows; graph records name their types themselves
    start: int = 0
    end: int | None = None
    first_line: int = 1
    bytes: int = 0  # the approximate size
    reading: FileReading = FileReading()


@frozen
class Inputs:
    """All of an input: pieces of files, DataFrames by type, and the types that were named."""

    splits: tuple[Split, ...] = ()
    frames: tuple[tuple[FrameRows, Any], ...] = ()  # the mapping of its rows, and a DataFrame
    named: tuple[str, ...] = ()  # table ids that are present even without rows
    files: Mapping[str, str] = field(default_factory=dict)  # with a fingerprint of each


def is_frame(value: Any) -> bool:
    """Whether something is a Spark DataFrame."""
    return type(value).__module__.startswith("pyspark.sql") and hasattr(value, "mapInArrow")


def wants_spark(source: Any) -> bool:
    """Whether only Spark can read it."""
    match source:
        case Wide():
            return is_frame(source.source)
        case Sources():
            return any(map(is_frame, _values(source)))
        case Mapping():
            return any(map(is_frame, source.values()))
    return False


def _values(given: Sources) -> list[Any]:
    """The inputs of a declared load: paths, tables and DataFrames."""
    tables = [value.path if isinstance(value, Mapped) else value for _, value in given.tables]
    return [*given.records, *tables, *(wide.source for wide in given.wide)]


def input_bytes(source: Any) -> int | None:
    """The size of the files of an input; None if it does not consist of files, or of pipes."""
    if isinstance(source, Wide):
        source = Sources(wide=(source,))
    if isinstance(source, Sources):
        given = _values(source)
    else:
        given = list(source.values()) if isinstance(source, Mapping) else [source]
    parts = [part for one in given for part in (one if isinstance(one, list | tuple) else [one])]
    if not all(isinstance(part, str | os.PathLike) for part in parts):
        return None
    found = [file for part in parts for file in input_files(part)]
    if any(file.part is None and is_pipe(file.name) for file in found):
        return None
    return sum(size_of(f.name) if f.part is None else f.part.size for f in found)


def cut(source: Any, catalog: Catalog, split_bytes: int = SPLIT_BYTES) -> Inputs:
    """The pieces of an input, in its order."""
    given = as_sources(source)
    cutting = _Cutting(split_bytes)
    for path in given.records:
        for file in expand(path):
            if suffix_of(file) in FILE_READERS:
                raise type_not_said(file)
            cutting.add(file, None)
    for name, value in given.tables:
        cutting.add_rows(kind_named(name, catalog), value)
    for wide in given.wide:
        cutting.add_wide(wide, catalog)
    return cutting.done()


def packed(splits: Sequence[Split], bytes_max: int) -> Iterator[tuple[Split, ...]]:
    """Splits in order, grouped by task: several small files together."""
    held: list[Split] = []
    size = 0
    for split in splits:
        if held and (size + split.bytes > bytes_max or len(held) >= SPLITS_PER_TASK_MAX):
            yield tuple(held)
            held, size = [], 0
        held.append(split)
        size += split.bytes
    if held:
        yield tuple(held)


def as_sources(source: Any) -> Sources:
    """An input as its parts."""
    if isinstance(source, Sources):
        return source
    if isinstance(source, Wide):
        return Sources(wide=(source,))
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


def _read_once(file: str) -> OptionInvalid:
    return OptionInvalid(
        f"{file} is a pipe; Spark reads files in pieces, and again after a failure",
        help="Load it with engine='local', or write it into a file first.",
        details={"file": file},
    )


@dataclass(slots=True)
class _Cutting:
    """Collects pieces."""

    split_bytes: int
    splits: list[Split] = field(default_factory=list)
    frames: list[tuple[FrameRows, Any]] = field(default_factory=list)
    named: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)

    def add_rows(self, kind: NodeOrEdgeType, value: Any) -> None:
        """Rows of one type."""
        self.named.append(kind.table_id)
        if is_frame(value):
            self.frames.append((kind.table_id, value))
            return
        how = FileReading()
        if isinstance(value, Mapped):
            value, how = value.path, FileReading(value.columns, value.csv)
        self._add_files(value, kind.table_id, how)

    def add_wide(self, wide: Wide, catalog: Catalog) -> None:
        """Rows of several types, made from one table."""
        self.named += [kind_named(name, catalog).table_id for name in wide.mapping.types()]
        if is_frame(wide.source):
            self.frames.append((wide.mapping, wide.source))
            return
        self._add_files(wide.source, None, FileReading(csv=wide.csv, rows=wide.mapping))

    def _add_files(self, value: Any, table_id: str | None, how: FileReading) -> None:
        for path in value if are_paths(value) else [value]:
            if not isinstance(path, str | os.PathLike):
                raise _unreadable(path)
            for file in input_files(path):
                if file.part is None and suffix_of(file.name) not in (*FILE_READERS, *LINES):
                    raise no_rows_in(file.name)
                reading = replace(how, values=file.values, part=file.part)
                self.add(file.name, table_id, reading)

    def add(self, file: str, table_id: str | None, how: FileReading | None = None) -> None:
        """A file."""
        how = how or FileReading()
        if how.part is not None:  # such files never change, and their table has their size
            size, self.files[file] = how.part.size, ""
            pieces = _parquet_pieces(file, table_id, size, self.split_bytes)
        elif is_pipe(file):
            raise _read_once(file)
        else:
            size, self.files[file] = look_at(file)
            pieces = _pieces(file, table_id, size, self.split_bytes)
        for piece in pieces:
            self.splits.append(replace(piece, index=len(self.splits), reading=how))

    def done(self) -> Inputs:
        return Inputs(tuple(self.splits), tuple(self.frames), tuple(self.named), self.files)


def _pieces(file: str, table_id: str | None, size: int, split_bytes: int) -> Iterator[Split]:
    suffix = suffix_of(file)
    form = "lines" if suffix in LINES else FORMS.get(suffix, WHOLE)
    if form == "parquet":
        yield from _parquet_pieces(file, table_id, size, split_bytes)
    elif form == "lines" and Path(file).suffix not in COMPRESSIONS and not is_one_array(file):
        count = max(1, -(-size // split_bytes))
        for i in range(count):
            start, end = size * i // count, size * (i + 1) // count
            yield Split(0, form, file, table_id, start, end, bytes=end - start)
    else:
        yield Split(0, form, file, table_id, bytes=size)


def _parquet_pieces(
    file: str, table_id: str | None, size: int, split_bytes: int
) -> Iterator[Split]:
    if size > split_bytes:
        yield from _row_groups(file, table_id, split_bytes)
    else:
        yield Split(0, "parquet", file, table_id, bytes=size)


def _row_groups(file: str, table_id: str | None, split_bytes: int) -> Iterator[Split]:
    start, first_line, rows, held = 0, 1, 0, 0
    groups = row_groups(file)
    for number, (count, size) in enumerate(groups):
        rows, held = rows + count, held + size
        if held >= split_bytes or number == len(groups) - 1:
            yield Split(0, "parquet", file, table_id, start, number + 1, first_line, bytes=held)
            start, first_line, rows, held = number + 1, first_line + rows, 0, 0
