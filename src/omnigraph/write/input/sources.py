"""The sources a load accepts, and how each is read."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import msgspec
import pyarrow as pa

from omnigraph.errors import OptionInvalid
from omnigraph.model.catalog import Catalog, NodeOrEdgeType, NodeType
from omnigraph.model.frozen import frozen
from omnigraph.model.types import PropType, Scalar
from omnigraph.storage import metrics
from omnigraph.values.misfit import Misfit
from omnigraph.values.reading import foreign, spelt
from omnigraph.write.input.avro import read_avro
from omnigraph.write.input.files import LINES_MAX, PADDING, blocks, blocks_of, expand, known_size
from omnigraph.write.input.folders import FolderValue, with_values
from omnigraph.write.input.input_files import InputFile, input_files
from omnigraph.write.input.json_lines import JsonLines, opened
from omnigraph.write.input.lines import PAD, LineBlock
from omnigraph.write.input.mapping import Mapped, RowMapping, Sources, Wide, shape_of
from omnigraph.write.input.options import Options
from omnigraph.write.input.parts import InputPart
from omnigraph.write.input.problems import Problems
from omnigraph.write.input.records import LineFormat, read_blocks
from omnigraph.write.input.tables import (
    RowShape,
    RowsOf,
    as_arrow,
    kind_named,
    read_arrow,
    read_csv,
    read_orc,
    read_parquet,
    read_row_groups,
    read_table,
    suffix_of,
)

Reader = Callable[[Catalog, Problems], Iterator[InputPart]]
FILE_READERS: dict[str, Callable[[str, RowShape, Options, Problems], Iterator[InputPart]]] = {
    ".parquet": read_parquet,
    ".pq": read_parquet,
    ".csv": read_csv,
    ".tsv": read_csv,
    ".arrow": read_arrow,
    ".feather": read_arrow,
    ".ipc": read_arrow,
    ".orc": read_orc,
    ".avro": read_avro,
}
TYPES_AT_ONCE = 4
DATETIME = PropType(Scalar.DATETIME)
LINES = (".ndjson", ".jsonl", ".json", "")


@frozen
class InputSource:
    """Something to load: how to read it, and whether it can be read more than once."""

    read: Reader
    repeatable: bool = True


def source_of(given: Any, options: Options) -> InputSource:
    """The source for the input of a load; raises if it is not supported."""
    if isinstance(given, str | os.PathLike):
        return InputSource(lambda catalog, problems: _files([given], catalog, options, problems))
    if isinstance(given, Wide):
        given = Sources(wide=(given,))
    if isinstance(given, Sources):
        values = [value for _, value in given.tables] + [wide.source for wide in given.wide]
        return InputSource(
            lambda catalog, problems: _sources(given, catalog, options, problems),
            all(isinstance(value, Mapped) or _repeatable(value) for value in values),
        )
    if are_paths(given):
        return InputSource(lambda catalog, problems: _files(given, catalog, options, problems))
    if isinstance(given, Mapping):
        parts = {str(name): value for name, value in given.items()}
        return InputSource(
            lambda catalog, problems: _mapping(parts, catalog, options, problems),
            all(_repeatable(value) for value in parts.values()),
        )
    if is_table(given):
        why = "a table does not say which type its rows are of"
        raise OptionInvalid(why, help="Name it: load({'Person': table})")
    if hasattr(given, "read"):
        return InputSource(lambda c, p: _stream(given, c, options, p), repeatable=False)
    if isinstance(given, Iterable) and not isinstance(given, bytes | bytearray | memoryview):
        return InputSource(
            lambda c, p: _records(given, c, options, p), isinstance(given, list | tuple)
        )
    raise OptionInvalid(
        f"cannot load {type(given).__name__}; give a path, records, or {{type name: rows}}"
    )


def type_not_said(file: str) -> OptionInvalid:
    """A file of rows was given without the type they are of."""
    return OptionInvalid(
        f"{file} does not say which type its rows are of",
        help=f"Name it: --data Person={file}",
        python_help=f"Name it: load({{'Person': {file!r}}})",
    )


def is_table(given: Any) -> bool:
    """Whether something is a table rather than a series of records."""
    package = type(given).__module__.partition(".")[0]
    known = package in ("pandas", "polars", "pyarrow") and not isinstance(given, pa.NativeFile)
    return known or hasattr(given, "__arrow_c_stream__")


def are_paths(given: Any) -> bool:
    """Whether something is a list of paths."""
    several = isinstance(given, list | tuple) and bool(given)
    return several and all(isinstance(one, str | os.PathLike) for one in given)


def _repeatable(value: Any) -> bool:
    return isinstance(value, str | os.PathLike | list | tuple) or hasattr(value, "num_rows")


# --- graph records -----------------------------------------------------------------------------------------------


def _files(
    given: Iterable[Any], catalog: Catalog, options: Options, problems: Problems
) -> Iterator[InputPart]:
    files = list(chain.from_iterable(map(expand, given)))
    metrics.expected(sum(map(known_size, files)))
    for file in files:
        if suffix_of(file) in FILE_READERS:
            raise type_not_said(file)
        found = read_blocks(blocks(file, options), LineFormat(catalog, options), problems)
        yield from _counted(found)


def _stream(
    stream: Any, catalog: Catalog, options: Options, problems: Problems
) -> Iterator[InputPart]:
    name = getattr(stream, "name", None)
    named = name if isinstance(name, str) else None
    found = read_blocks(blocks_of(stream, named, options), LineFormat(catalog, options), problems)
    yield from _counted(found)


def _records(
    given: Iterable[Any], catalog: Catalog, options: Options, problems: Problems
) -> Iterator[InputPart]:
    lines = _encoded(given, options, "data", problems)
    yield from _counted(read_blocks(lines, LineFormat(catalog, options), problems))


def _counted(parts: Iterable[InputPart]) -> Iterator[InputPart]:
    """The same parts, counted for progress reports."""
    for part in parts:
        metrics.consumed(rows=part.rows)
        yield part


# --- rows by type ------------------------------------------------------------------------------------------------


def _mapping(
    given: Mapping[str, Any], catalog: Catalog, options: Options, problems: Problems
) -> Iterator[InputPart]:
    """Types are read in parallel; their errors are merged in the given order."""
    kinds = [(kind_named(name, catalog), value) for name, value in given.items()]

    def read(kind: NodeOrEdgeType, value: Any) -> tuple[list[InputPart], Problems]:
        own = type(problems)()
        return list(_counted(_rows(value, kind, catalog, options, own))), own

    tasks = [partial(read, kind, value) for kind, value in kinds]
    done = metrics.parallel(tasks, TYPES_AT_ONCE)
    for (kind, _), (parts, own) in zip(kinds, done, strict=True):
        problems.extend(own.found)
        # A type that is named is present, even without rows.
        yield from parts or [_nothing(kind)]


def _sources(
    given: Sources, catalog: Catalog, options: Options, problems: Problems
) -> Iterator[InputPart]:
    """All sources of a pipeline file, in its order."""
    if given.records:
        yield from _files(given.records, catalog, options, problems)
    for name, value in given.tables:
        how, rows = options, value
        if isinstance(value, Mapped):
            how = replace(options, columns=value.columns, csv=value.csv or options.csv)
            rows = value.path
        kind = kind_named(name, catalog)
        parts = list(_counted(_rows(rows, kind, catalog, how, problems)))
        yield from parts or [_nothing(kind)]
    for wide in given.wide:
        how = replace(options, csv=wide.csv or options.csv)
        yield from _counted(_wide_rows(wide, catalog, how, problems))


def _wide_rows(
    wide: Wide, catalog: Catalog, options: Options, problems: Problems
) -> Iterator[InputPart]:
    """The rows made from a wide table; a type that is named is present, even without rows."""
    mapping = wide.mapping
    yield from (_nothing(kind_named(name, catalog)) for name in mapping.types())
    value = wide.source
    if isinstance(value, str | os.PathLike) or are_paths(value):
        for path in [value] if not are_paths(value) else value:
            for file in input_files(path):
                yield from _wide_file(file, mapping, catalog, options, problems)
        return
    table = as_arrow(value)
    if table is not None:
        yield from read_table(table, shape_of(mapping, catalog, options), problems)
    elif isinstance(value, Iterable) and not isinstance(value, bytes | Mapping):
        lines = _encoded(value, options, None, problems)
        yield from mapped_lines(lines, mapping, catalog, options, (), problems)
    else:
        raise OptionInvalid(f"cannot load {type(value).__name__} as a wide table")


def _wide_file(
    file: InputFile,
    mapping: RowMapping,
    catalog: Catalog,
    options: Options,
    problems: Problems,
) -> Iterator[InputPart]:
    if suffix_of(file.name) in LINES and file.part is None:
        lines = blocks(file.name, options)
        yield from mapped_lines(lines, mapping, catalog, options, file.values, problems)
    else:
        yield from read_file(
            file, shape_of(mapping, catalog, options, file.values), options, problems
        )


def read_file(
    file: InputFile, shape: RowShape, options: Options, problems: Problems
) -> Iterator[InputPart]:
    """The rows of a file that is not made of lines."""
    if file.part is not None:
        return read_row_groups(file.name, None, 1, file.shaped(shape), problems)
    reader = FILE_READERS.get(suffix_of(file.name))
    if reader is None:
        raise no_rows_in(file.name)
    return reader(file.name, shape, options, problems)


def mapped_lines(
    lines: Iterable[LineBlock],
    mapping: RowMapping,
    catalog: Catalog,
    options: Options,
    values: tuple[FolderValue, ...],
    problems: Problems,
) -> Iterator[InputPart]:
    """The rows made from lines of JSON by a mapping."""
    opener = JsonLines(mapping, options)
    shape = shape_of(opened(mapping), catalog, options, values)
    for block in lines:
        raw = opener.rows(block, problems)
        if raw is not None:
            yield from shape.parts(raw, problems)


def no_rows_in(file: str) -> OptionInvalid:
    """The error for a file with an unknown ending."""
    known = ", ".join([*FILE_READERS, *LINES[:-1]])
    return OptionInvalid(f"{file}: rows are read from files that end in {known}")


def _nothing(kind: NodeOrEdgeType) -> InputPart:
    ends = ("id",) if isinstance(kind, NodeType) else ("id", "src", "dst")
    return InputPart(kind, {name: pa.array([], pa.string()) for name in ends}, 0)


def _rows(
    value: Any, kind: NodeOrEdgeType, catalog: Catalog, options: Options, problems: Problems
) -> Iterator[InputPart]:
    form = LineFormat(catalog, options, kind)
    if isinstance(value, str | os.PathLike) or are_paths(value):
        yield from _rows_of_files([value] if not are_paths(value) else value, form, kind, problems)
        return
    table = as_arrow(value)
    if table is not None:
        yield from read_table(table, RowsOf(kind, catalog, options), problems)
    elif hasattr(value, "read"):
        yield from read_blocks(blocks_of(value, None, options), form, problems)
    elif isinstance(value, Iterable) and not isinstance(value, bytes | Mapping):
        yield from read_blocks(_encoded(value, options, None, problems), form, problems)
    else:
        raise OptionInvalid(f"cannot load {type(value).__name__} as rows of {kind.name}")


def _rows_of_files(
    paths: Iterable[Any], form: LineFormat, kind: NodeOrEdgeType, problems: Problems
) -> Iterator[InputPart]:
    files = [file for path in paths for file in input_files(path)]
    metrics.expected(sum(file.known_size for file in files))
    for file in files:
        rows = _file_rows(file, form, kind, problems)
        yield from with_values(rows, file.values, form.options, problems) if file.values else rows


def _file_rows(
    file: InputFile, form: LineFormat, kind: NodeOrEdgeType, problems: Problems
) -> Iterator[InputPart]:
    if suffix_of(file.name) in LINES and file.part is None:
        yield from read_blocks(blocks(file.name, form.options), form, problems)
        return
    yield from read_file(file, RowsOf(kind, form.catalog, form.options), form.options, problems)
    metrics.consumed(file.known_size)


# --- Python records as lines ---------------------------------------------------------------------------------------


def _encoded(
    records: Iterable[Any], options: Options, inside: str | None, problems: Problems
) -> Iterator[LineBlock]:
    """Python records as blocks of lines, so that they obey the same rules as files."""
    encoder = msgspec.json.Encoder(enc_hook=foreign, decimal_format="number")
    lines: list[bytes] = []
    size, first, number = 0, 1, 0
    for number, record in enumerate(records, 1):
        try:
            line = encoder.encode(plain_record(record, inside, options))
        except (Misfit, TypeError, UnicodeEncodeError, msgspec.MsgspecError) as bad:
            misfit = bad if isinstance(bad, Misfit) else Misfit(str(bad), rule="record")
            problems.add(misfit.violation(line=number))
            line = b""  # keeps the numbers of the records after it right
        lines.append(line)
        size += len(line)
        if size > options.block_bytes or len(lines) >= LINES_MAX:
            yield _block(lines, first)
            lines, size, first = [], 0, number + 1
    if lines:
        yield _block(lines, first)


def _block(lines: list[bytes], first: int) -> LineBlock:
    raw = b"\n".join([*lines, PADDING])
    return LineBlock(raw, len(raw) - PAD, first)


def plain_record(record: Any, inside: str | None, options: Options) -> Any:
    """A record whose values JSON can hold; most are returned as they are."""
    if not isinstance(record, Mapping):
        raise Misfit(f"a record is a mapping, got {type(record).__name__}", rule="record")
    fields = record if inside is None else record.get(inside)
    if not isinstance(fields, Mapping) or not any(isinstance(v, SPECIAL) for v in fields.values()):
        return record
    plain = {name: _spelt(name, value, options) for name, value in fields.items()}
    return plain if inside is None else {**record, inside: plain}


SPECIAL = (float, list, tuple, bytes, bytearray, dt.datetime)


def _spelt(name: str, value: Any, options: Options) -> Any:
    try:
        return spelt(value, options.context)
    except Misfit as misfit:
        raise misfit.at(f"'{name}'", DATETIME, name) from None
