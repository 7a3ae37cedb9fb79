"""A piece of an input as rows of the schema, with the readers of the local plane."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Violation
from omnigraph.model.catalog import Catalog, NodeOrEdgeType
from omnigraph.model.frozen import frozen
from omnigraph.pipeline.sources import FrameRows, Split
from omnigraph.write.input.files import blocks, blocks_of, open_raw
from omnigraph.write.input.folders import with_values
from omnigraph.write.input.lakes.parts import LakeRows
from omnigraph.write.input.lines import LineBlock
from omnigraph.write.input.mapping import RowMapping, shape_of
from omnigraph.write.input.options import Options
from omnigraph.write.input.parts import InputPart
from omnigraph.write.input.problems import Gathered, Problems, SortedOut
from omnigraph.write.input.records import LineFormat, read_block
from omnigraph.write.input.sources import FILE_READERS, mapped_lines
from omnigraph.write.input.tables import (
    RowShape,
    RowsOf,
    read_row_groups,
    read_table,
    stream_csv,
    suffix_of,
)

PEEK_BYTES = 1 << 16


@frozen
class Piece:
    """Some rows of a split. Lines are numbered from the start of the split; `lines` is how many it consumed."""

    parts: tuple[InputPart, ...]
    problems: tuple[Violation, ...] = ()
    lines: int = 0


def kind_by_table(catalog: Catalog, table_id: str) -> NodeOrEdgeType:
    """The type whose rows a table holds."""
    return next(kind for kind in catalog.entities() if kind.table_id == table_id)


def pieces(split: Split, catalog: Catalog, options: Options) -> Iterator[Piece]:
    """The rows of a split, block by block."""
    kind = None if split.table_id is None else kind_by_table(catalog, split.table_id)
    options, values = _options_of(split, options), split.reading.values
    if split.reading.rows is not None:
        yield from _mapped_pieces(split, split.reading.rows, catalog, options)
        return
    problems = _gathered(options)
    if split.form == "lines" or kind is None:
        form = LineFormat(catalog, options, kind)
        for block in split_blocks(split, options):
            reading = read_block(block, form, Gathered.most)
            lines = block.raw.count(b"\n", 0, block.size)
            parts = tuple(with_values(reading.parts, values, options, problems))
            yield Piece(parts, (*reading.problems, *problems.taken()), lines)
        return
    shape = RowsOf(kind, catalog, options)
    for part in with_values(
        _table_parts(split, shape, options, problems), values, options, problems
    ):
        yield Piece((part,), problems.taken())
    left = problems.taken()
    if left:
        yield Piece((), left)


def _gathered(options: Options) -> Gathered:
    """Collects problems; with a quarantine, beside the valid rows."""
    return Gathered() if options.quarantine is None else SortedOut()


def _mapped_pieces(
    split: Split, mapping: RowMapping, catalog: Catalog, options: Options
) -> Iterator[Piece]:
    """The rows made from a piece of a wide table."""
    values, problems = split.reading.values, _gathered(options)
    if split.form == "lines":
        for block in split_blocks(split, options):
            parts = tuple(mapped_lines([block], mapping, catalog, options, values, problems))
            yield Piece(parts, problems.taken(), block.raw.count(b"\n", 0, block.size))
        return
    shape = shape_of(mapping, catalog, options, values)
    for part in _table_parts(split, shape, options, problems):
        yield Piece((part,), problems.taken())
    left = problems.taken()
    if left:
        yield Piece((), left)


def frame_shape(rows: FrameRows, catalog: Catalog, options: Options) -> RowShape:
    """The shape of the rows of a DataFrame."""
    if isinstance(rows, RowMapping):
        return shape_of(rows, catalog, options)
    return RowsOf(kind_by_table(catalog, rows), catalog, options)


def _options_of(split: Split, options: Options) -> Options:
    how = split.reading
    return replace(options, columns=how.columns or options.columns, csv=how.csv or options.csv)


def _table_parts(
    split: Split, shape: RowShape, options: Options, problems: Problems
) -> Iterator[InputPart]:
    if split.reading.part is not None:
        shape = LakeRows(split.reading.part, shape)
    match split.form:
        case "csv":
            return stream_csv(split.file, shape, options, problems)
        case "parquet":
            groups = None if split.end is None else range(split.start, split.end)
            return read_row_groups(split.file, groups, split.first_line, shape, problems)
        case _:
            return FILE_READERS[suffix_of(split.file)](split.file, shape, options, problems)


def frame_pieces(batches: Iterable[pa.RecordBatch], shape: RowShape) -> Iterator[Piece]:
    """The rows of one partition of a DataFrame; they have no line numbers."""
    problems = Gathered()
    for batch in batches:
        parts = tuple(
            replace(part, lines=None)
            for part in read_table(pa.Table.from_batches([batch]), shape, problems)
        )
        yield Piece(parts, problems.taken())


def without(rows: Iterable[Piece], skip: frozenset[tuple[str, int]]) -> Iterator[Piece]:
    """The pieces of a split without the lines to leave out and their problems."""
    lines = frozenset(line for _, line in skip)
    for piece in rows:
        parts = tuple(_part_without(part, skip) for part in piece.parts)
        problems = tuple(v for v in piece.problems if v.line not in lines)
        yield Piece(parts, problems, piece.lines)


def _part_without(part: InputPart, skip: frozenset[tuple[str, int]]) -> InputPart:
    bad = [line for name, line in skip if name in (part.kind.name, "")]
    if part.lines is None or not bad:
        return part
    good = pc.invert(pc.is_in(part.lines, value_set=pa.array(bad, pa.int64())))
    return part.filter(good)


# --- lines by bytes ------------------------------------------------------------------------------------------------


def split_blocks(split: Split, options: Options) -> Iterator[LineBlock]:
    """The lines that start inside a split, as blocks."""
    if split.end is None:
        yield from blocks(split.file, options)
        return
    with open_raw(split.file) as stream:
        start = _line_start(stream, split.start)
        if start < split.end:
            stream.seek(start)
            yield from blocks_of(_Until(stream, start, split.end), split.file, options)  # type: ignore[arg-type]


def _line_start(stream: Any, position: int) -> int:
    """The position of the first line that starts at or after a position."""
    if position == 0:
        return 0
    at = position - 1
    stream.seek(at)
    while chunk := bytes(stream.read(PEEK_BYTES)):
        found = chunk.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(chunk)
    return at


class _Until:
    """A stream that ends with the line containing the byte before `end`."""

    def __init__(self, stream: Any, start: int, end: int) -> None:
        self._stream, self._at, self._end = stream, start, end
        self._open = True  # the last line has not ended yet

    def read(self, size: int) -> bytes:
        if self._at < self._end:
            chunk = bytes(self._stream.read(min(size, self._end - self._at)))
            self._at += len(chunk)
            self._open = not chunk.endswith(b"\n") and bool(chunk)
            return chunk
        if not self._open:
            return b""
        chunk = bytes(self._stream.read(PEEK_BYTES))
        found = chunk.find(b"\n")
        self._open = found < 0 and bool(chunk)
        return chunk if found < 0 else chunk[: found + 1]
