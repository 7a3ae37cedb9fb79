"""Tables of one type: Arrow, pandas, polars, Parquet, CSV and Arrow files, as columns of the schema."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from omnigraph.errors import OptionInvalid, Violation
from omnigraph.model.catalog import Catalog, EdgeType, NodeOrEdgeType, Property
from omnigraph.model.changes import Marks
from omnigraph.model.columns import one_array
from omnigraph.model.frozen import frozen
from omnigraph.model.keys import key_ids
from omnigraph.model.types import PropType
from omnigraph.values.columns import Column, first_row, is_text, misfits, text_column, to_column
from omnigraph.values.misfit import Misfit
from omnigraph.values.reading import ReadingContext
from omnigraph.write.input.exact import did_you_mean, known_property
from omnigraph.write.input.files import COMPRESSIONS, open_file
from omnigraph.write.input.options import CsvFormat, Options
from omnigraph.write.input.parts import InputPart
from omnigraph.write.input.problems import InputInvalid, Problems
from omnigraph.write.input.unpacking import (
    read_ipc,
    read_parquet_file,
    refuse_more_than,
    spread_size,
)

Convert = Callable[[Column, PropType, ReadingContext], Column]
ENCODINGS = {"latin-1": "Latin-1", "cp1252": "Windows-1252", "utf-16": "UTF-16"}
HEADER_BYTES_MAX = 1 << 20
COLUMNS_MAX = 4096
TYPES_NAMED_MAX = 20  # in the help of an error
ORDER, DELETED = "omnigraph_order", "omnigraph_deleted"  # columns added to change records
DELIMITERS = (",", ";", "\t", "|")
ENDS = {"from": "src", "to": "dst", "src": "src", "dst": "dst"}


@frozen
class RawRows:
    """Some rows of a table before their type is known; `texts` if cells are texts, as in CSV."""

    table: pa.Table
    file: str | None = None
    first_line: int = 1
    texts: bool = False
    numbers: pa.Int64Array | None = None  # if lines are not consecutive

    @property
    def lines(self) -> pa.Int64Array:
        """The number of each row in its file."""
        if self.numbers is not None:
            return self.numbers
        return pa.array(np.arange(self.first_line, self.first_line + self.table.num_rows))


class RowShape(Protocol):
    """What the rows of a table become."""

    def parts(self, raw: RawRows, problems: Problems) -> Iterator[InputPart]:
        """Rows of types of the schema; errors go to `problems`."""
        ...


@frozen
class RowsOf:
    """Each row of a table is a row of one type."""

    kind: NodeOrEdgeType
    catalog: Catalog
    options: Options

    def parts(self, raw: RawRows, problems: Problems) -> Iterator[InputPart]:
        convert = text_column if raw.texts else to_column
        part = self.typed(raw.table, raw.lines, raw.file, problems, convert)
        if part is not None:
            yield part

    def typed(
        self,
        table: pa.Table,
        lines: pa.Int64Array,
        file: str | None,
        problems: Problems,
        convert: Convert,
    ) -> InputPart | None:
        """Columns as those of the schema; None on errors, which are then in `problems`."""
        kind, renamed = self.kind, dict(self.options.columns)
        columns: dict[str, Column] = {}
        ends = _EdgeEnds(self)
        before = len(problems.found)
        for name, values in zip(table.column_names, table.columns, strict=True):
            if renamed.get(name) == "" or name in (ORDER, DELETED):
                continue
            try:
                self._take(renamed.get(name, name), values, columns, ends, convert)
            except pa.ArrowNotImplementedError as error:
                unread = Misfit(f"'{name}' cannot be read: {error}", name=name)
                problems.add(unread.violation(kind.name, file))
            except Misfit as misfit:
                _tell(chain((misfit,), misfit.others), kind, file, lines, problems)
        if len(problems.found) == before:
            _tell(ends.fill(columns), kind, file, lines, problems)
        if len(problems.found) > before:
            good = _good(problems.found[before:], lines) if problems.keeps_good else None
            if good is None:
                return None
            return self.typed(table.filter(good), lines.filter(good), file, problems, convert)
        absent = _absent(columns, kind, self.options)
        return InputPart(kind, columns, table.num_rows, absent, lines, file, _marks(table))

    def _take(
        self,
        name: str,
        values: Column,
        columns: dict[str, Column],
        ends: _EdgeEnds,
        convert: Convert,
    ) -> None:
        _check_valid(values, name)
        member = ends.member(name)
        if member is not None:
            ends.take(member, _property(values, member.prop, self.options, convert))
            return
        target = _target(name, self.kind)
        if target in columns:
            raise Misfit(f"two columns fill '{name}'", rule="record", name=name)
        if target in ("id", "src", "dst"):
            columns[target] = _identifiers(values, name, optional=target == "id")
        else:
            columns[target] = _property(values, self.kind.properties[target], self.options, convert)


def _known(types: Sequence[str]) -> str:
    more = " and others" if len(types) > TYPES_NAMED_MAX else ""
    return f"It has {', '.join(types[:TYPES_NAMED_MAX]) or 'no types yet'}{more}."


def kind_named(name: str, catalog: Catalog) -> NodeOrEdgeType:
    """The type of a name; a prefix `node:` or `edge:` decides between two with the same name."""
    prefix, _, rest = name.rpartition(":")
    kind: NodeOrEdgeType | None = None
    if prefix in ("", "node"):
        kind = catalog.nodes.get(rest)
    if kind is None and prefix in ("", "edge"):
        kind = catalog.edge(rest)
    if kind is None:
        types = {**catalog.nodes, **catalog.edges}
        raise InputInvalid(
            f"the schema has no type '{name}'{did_you_mean(rest, types)}",
            help=_known(sorted(types)),
            details={"type": name},
        )
    return kind


def read_table(
    table: pa.Table, shape: RowShape, problems: Problems, file: str | None = None
) -> Iterator[InputPart]:
    """The rows of a table."""
    return shape.parts(RawRows(table, file), problems)


# --- ends by the keys of their nodes -------------------------------------------------------------------------------


@frozen
class _KeyMember:
    """A column like `from.day`: a member of the key of the node at an end."""

    name: str
    side: str  # src or dst
    prop: Property


@dataclass(slots=True)
class _EdgeEnds:
    """The ends of edges, each a column of ids or the members of a key."""

    rows: RowsOf
    members: dict[str, dict[str, Column]] = field(default_factory=dict)

    def member(self, name: str) -> _KeyMember | None:
        """The key member of a column like `from.day`; None for other columns."""
        kind = self.rows.kind
        end, mark, rest = name.partition(".")
        if not mark or not isinstance(kind, EdgeType) or end not in ENDS:
            return None
        side = ENDS[end]
        node = self.rows.catalog.nodes[dict(kind.ends)[side]]
        if rest not in (node.key or ()):
            known = ", ".join(node.key or ()) or "nothing: it has no key"
            message = f"'{name}': the key of {node.name} is made of {known}"
            raise Misfit(message, rule="unknown_field", name=name)
        return _KeyMember(name, side, node.properties[rest])

    def take(self, member: _KeyMember, values: Column) -> None:
        held = self.members.setdefault(member.side, {})
        if member.prop.name in held:
            raise Misfit(f"two columns fill '{member.name}'", rule="record", name=member.name)
        held[member.prop.name] = values

    def fill(self, columns: dict[str, Column]) -> Iterator[Misfit]:
        """Add the ids of both ends to the columns; yields what is missing."""
        kind = self.rows.kind
        if not isinstance(kind, EdgeType):
            return
        for side, word in (("src", "from"), ("dst", "to")):
            held = self.members.get(side)
            if held is None:
                if side not in columns:
                    why = f"the edges {kind.name} need a column '{word}'"
                    yield Misfit(why, rule="record", name=word)
                continue
            key = self.rows.catalog.nodes[dict(kind.ends)[side]].key or ()
            missing = [name for name in key if name not in held]
            if missing or side in columns:
                why = f"a column '{word}' besides its members" if not missing else ""
                why = why or f"no column '{word}.{missing[0]}'"
                yield Misfit(f"the edges {kind.name} have {why}", rule="record", name=word)
                continue
            ids = key_ids([held[name] for name in key])
            for row in pc.indices_nonzero(ids.is_null()).to_pylist():
                yield Misfit(f"'{word}' has no value", rule="required", name=word, row=row)
            columns[side] = ids


def _marks(table: pa.Table) -> Marks:
    given = (one_array(table[n]) if n in table.column_names else None for n in (ORDER, DELETED))
    return Marks(*given)


def _tell(
    found: Iterable[Misfit],
    kind: NodeOrEdgeType,
    file: str | None,
    lines: pa.Int64Array,
    problems: Problems,
) -> None:
    for misfit in found:
        line = None if misfit.row is None else lines[misfit.row].as_py()
        problems.add(misfit.violation(kind.name, file, line))


def _good(found: Sequence[Violation], lines: pa.Int64Array) -> pa.BooleanArray | None:
    """A mask of the rows without errors; None if an error concerns all rows."""
    if any(problem.line is None for problem in found):
        return None
    bad = pa.array({problem.line for problem in found}, pa.int64())
    return pc.invert(pc.is_in(lines, value_set=bad))


def _lines_of_cells(table: pa.Table, first_line: int) -> tuple[pa.Int64Array, int]:
    """The line each row of a text file begins at, and the line after the last: cells may have line breaks."""
    lengths = np.ones(table.num_rows, np.int64)
    for cells in table.columns:
        if at.is_string(cells.type) and pc.any(pc.match_substring(cells, "\n")).as_py():
            lengths += one_array(pc.count_substring(cells, "\n").fill_null(0)).to_numpy()
    starts = first_line + np.cumsum(lengths) - lengths
    return pa.array(starts, pa.int64()), first_line + int(lengths.sum())


def _property(values: Column, prop: Property, options: Options, convert: Convert) -> Column:
    try:
        return convert(values, prop.type, options.context)
    except Misfit as misfit:
        if misfit.row is not None:
            every = misfits(values, lambda some: convert(some, prop.type, options.context))
            misfit.others = (
                m.at(f"'{prop.name}'", prop.type, prop.name) for m in islice(every, 1, None)
            )
        raise misfit.at(f"'{prop.name}'", prop.type, prop.name) from None


def _check_valid(values: Column, name: str) -> None:
    """Tables come unchecked: texts that are not UTF-8, for example, could be stored but not read again."""
    if (error := _invalid(values)) is not None:
        message = f"'{name}' is not a valid column: {error}"
        raise Misfit(message, name=name, row=_first_invalid(values)) from error


def _invalid(values: Column) -> pa.ArrowException | None:
    try:
        values.validate(full=True)
    except pa.ArrowException as error:
        return error
    return None


def _first_invalid(values: Column) -> int | None:
    """The row of the first invalid value; None if the error is in data that rows share."""
    if _invalid(values.slice(0, 0)) is not None:
        return None
    return first_row(values, lambda some: _invalid(some) is not None)


def _target(name: str, kind: NodeOrEdgeType) -> str:
    """The column of the stored table that a column of the input fills."""
    if name == "id":
        return "id"
    if isinstance(kind, EdgeType) and name in ENDS:
        return ENDS[name]
    return known_property(name, kind).name


def _identifiers(values: Column, name: str, *, optional: bool) -> Column:
    """Ids are texts; whole numbers become the text of such a key. Spark keeps unsigned ones as decimals."""
    kind = values.type.value_type if at.is_dictionary(values.type) else values.type
    whole = at.is_integer(kind) or (at.is_decimal(kind) and kind.scale == 0)
    if not (is_text(kind) or whole or at.is_null(kind)):
        raise Misfit(f"'{name}' must hold texts, got {values.type}", name=name)
    texts = values.cast(pa.string())
    if texts.null_count and not optional:
        missing = pc.indices_nonzero(texts.is_null()).to_pylist()
        first, *others = (
            Misfit(f"'{name}' has no value", rule="required", name=name, row=row) for row in missing
        )
        first.others = others
        raise first
    return texts


def _absent(
    columns: dict[str, Column], kind: NodeOrEdgeType, options: Options
) -> dict[str, pa.BooleanArray]:
    if options.nulls == "clear":
        return {}
    return {
        name: one_array(values.is_null())
        for name, values in columns.items()
        if name in kind.properties and values.null_count
    }


# --- tables in memory --------------------------------------------------------------------------------------------


def as_arrow(source: Any) -> pa.Table | None:
    """Any table as an Arrow table; None for anything else."""
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    package = type(source).__module__.partition(".")[0]
    if package == "pandas":
        return _of_pandas(source)
    if package == "pyspark":
        raise OptionInvalid("a Spark DataFrame is loaded with engine='spark'")
    if hasattr(source, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(source).read_all()
    if hasattr(source, "to_table"):  # a dataset
        return source.to_table()
    return None


def _of_pandas(source: Any) -> pa.Table:
    """A data frame. An index with a name holds data, like a column; one without is a number of rows."""
    if not hasattr(source, "columns"):
        raise OptionInvalid(
            f"a pandas {type(source).__name__} is not a table", help="Make one with to_frame()."
        )
    named = [name for name in source.index.names if name is not None]
    both = [str(name) for name in named if name in source.columns]
    if both:
        raise OptionInvalid(
            f"both the index and a column are named {', '.join(both)}",
            help="Leave one out: reset_index(drop=True)",
        )
    rows = source.reset_index(level=named) if named else source
    try:
        return pa.Table.from_pandas(rows, preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as bad:
        why = "; ".join(map(str, bad.args))
        raise InputInvalid(f"the data frame cannot be read as a table: {why}") from None


# --- files -------------------------------------------------------------------------------------------------------


def suffix_of(file: str) -> str:
    """The ending for the content of a file, without the one for compression."""
    path = Path(file)
    if path.suffix in COMPRESSIONS:
        path = path.with_suffix("")
    return path.suffix.lower()


def read_parquet(
    file: str, shape: RowShape, options: Options, problems: Problems
) -> Iterator[InputPart]:
    """The rows of a Parquet file."""
    most = options.unpacked_bytes_max
    table = readable(file, lambda: named(read_parquet_file(file, most)))
    yield from shape.parts(RawRows(table, file), problems)


def row_groups(file: str) -> list[tuple[int, int]]:
    """The rows and the bytes of each row group of a Parquet file."""
    import pyarrow.parquet as pq

    with open_file(file) as stream:
        groups = readable(file, lambda: pq.ParquetFile(pa.PythonFile(stream)).metadata)
        found = [groups.row_group(i) for i in range(groups.num_row_groups)]
    return [(group.num_rows, group.total_byte_size) for group in found]


def read_row_groups(
    file: str, groups: range | None, first_line: int, shape: RowShape, problems: Problems
) -> Iterator[InputPart]:
    """Some or all row groups of a Parquet file, batch by batch; `first_line` is the number of their first row."""
    import pyarrow.parquet as pq

    with open_file(file) as stream:
        opened = readable(file, lambda: pq.ParquetFile(pa.PythonFile(stream)))
        batches = opened.iter_batches(row_groups=None if groups is None else list(groups))
        while (batch := readable(file, lambda: next(batches, None))) is not None:
            yield from shape.parts(
                RawRows(pa.Table.from_batches([batch]), file, first_line), problems
            )
            first_line += batch.num_rows


def read_arrow(
    file: str, shape: RowShape, options: Options, problems: Problems
) -> Iterator[InputPart]:
    """The rows of an Arrow IPC file or stream."""
    with open_file(file) as stream:
        data = pa.py_buffer(stream.read())
    table = readable(file, lambda: named(read_ipc(data, options.unpacked_bytes_max)))
    yield from shape.parts(RawRows(table, file), problems)


def read_orc(
    file: str, shape: RowShape, options: Options, problems: Problems
) -> Iterator[InputPart]:
    """The rows of an ORC file, stripe by stripe."""
    from pyarrow import orc

    first_line, size = 1, 0
    with open_file(file) as stream:
        opened = readable(file, lambda: orc.ORCFile(pa.PythonFile(stream)))
        for number in range(opened.nstripes):
            batch = readable(file, partial(opened.read_stripe, number))
            table = named(pa.Table.from_batches([batch]))
            if options.unpacked_bytes_max is not None:
                size += spread_size(table)
                refuse_more_than(options.unpacked_bytes_max, size)
            yield from shape.parts(RawRows(table, file, first_line), problems)
            first_line += table.num_rows


def read_csv(
    file: str, shape: RowShape, options: Options, problems: Problems
) -> Iterator[InputPart]:
    """The rows of a CSV file. An empty cell is null, a quoted empty one is an empty text."""
    import pyarrow.csv as pv

    with open_file(file) as stream:
        how = csv_options(file, options.csv)
        table = readable(file, lambda: pv.read_csv(pa.PythonFile(stream), **how))
    lines, _ = _lines_of_cells(table, _first_row(options.csv, table.column_names))
    yield from shape.parts(RawRows(table, file, texts=True, numbers=lines), problems)


def _first_row(form: CsvFormat, header: Sequence[str]) -> int:
    """The line of the first row: the one after the header, if there is one."""
    return 1 if form.names else 2 + sum(name.count("\n") for name in header)


def stream_csv(
    file: str, shape: RowShape, options: Options, problems: Problems
) -> Iterator[InputPart]:
    """The same, batch by batch, for files of any size."""
    import pyarrow.csv as pv

    first_line = 0
    with open_file(file) as stream:
        how = csv_options(file, options.csv)
        batches = readable(file, lambda: pv.open_csv(pa.PythonFile(stream), **how))
        while (batch := readable(file, lambda: next(batches, None))) is not None:
            table = pa.Table.from_batches([batch])
            first_line = first_line or _first_row(options.csv, table.column_names)
            lines, first_line = _lines_of_cells(table, first_line)
            yield from shape.parts(RawRows(table, file, texts=True, numbers=lines), problems)


def csv_options(file: str, form: CsvFormat | None = None) -> dict[str, Any]:
    """How to read a file of separated cells: as texts, since the schema gives their types."""
    import pyarrow.csv as pv

    form = form or CsvFormat()
    form = sniffed(file, form)
    separator = form.delimiter or ","
    names = form.names or readable(file, lambda: _header(file, separator, form))
    texts = pv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=[form.null_text],
    )
    parse = pv.ParseOptions(
        delimiter=separator, quote_char=form.quote or False, newlines_in_values=True
    )
    read = pv.ReadOptions(encoding=form.encoding, column_names=list(form.names) or None)
    return {"parse_options": parse, "convert_options": texts, "read_options": read}


def sniffed(file: str, form: CsvFormat) -> CsvFormat:
    """How a file's cells are separated, if not given: by its ending, else by its first line."""
    if form.delimiter is not None:
        return form
    if suffix_of(file) == ".tsv":
        return replace(form, delimiter="\t")
    with open_file(file) as stream:
        first = bytes(stream.read(HEADER_BYTES_MAX)).partition(b"\n")[0]
    counts = {mark: first.count(mark.encode()) for mark in DELIMITERS if mark != form.quote}
    # Texts have commas, too: another delimiter counts only in a line without commas.
    other = max(counts, key=lambda mark: counts[mark])
    return replace(form, delimiter="," if counts[","] or not counts[other] else other)


def _header(file: str, separator: str, form: CsvFormat) -> list[str]:
    """The names of the columns. They are few and short in any file."""
    import csv
    import io

    with open_file(file) as stream:
        raw = bytes(stream.read(HEADER_BYTES_MAX))
    # The end may split a character.
    encoding = "utf-8-sig" if codecs.lookup(form.encoding).name == "utf-8" else form.encoding
    decoder = codecs.getincrementaldecoder(encoding)()
    text = decoder.decode(raw, final=len(raw) < HEADER_BYTES_MAX)
    given = io.StringIO(text, newline="")
    lines = (
        csv.reader(given, delimiter=separator, quotechar=form.quote)
        if form.quote
        else csv.reader(given, delimiter=separator, quoting=csv.QUOTE_NONE)
    )
    try:
        names = next(lines, [])
    except csv.Error as error:
        raise InputInvalid(f"{file} cannot be read: {error}", details={"file": file}) from None
    if len(names) > COLUMNS_MAX:
        raise InputInvalid(
            f"{file} has more than {COLUMNS_MAX} columns",
            details={"file": file, "limit": "columns_max"},
        )
    return names


def named(table: pa.Table) -> pa.Table:
    """The table, if the names of its columns are valid texts; Arrow does not check."""
    return table.rename_columns(table.column_names)


def readable(file: str, read: Callable[[], Any]) -> Any:
    """The result of reading; raises if the file cannot be read."""
    try:
        return read()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as failure:
        if suffix_of(file) in (".csv", ".tsv") and (encoding := _other_encoding(file)):
            raise InputInvalid(
                f"{file} is not UTF-8; it reads as {ENCODINGS[encoding]}",
                help=f"Name the encoding: --encoding {encoding}",
                python_help=f"Name the encoding: options=Options(csv=CsvFormat(encoding={encoding!r}))",
                details={"file": file, "encoding": encoding},
            ) from failure
        raise InputInvalid(
            f"{file} cannot be read: {failure}",
            help="The file is damaged, or its ending is wrong.",
            details={"file": file},
        ) from failure


def _other_encoding(file: str) -> str | None:
    """The encoding of a text that is not UTF-8, by its first bytes."""
    with open_file(file) as stream:
        raw = bytes(stream.read(HEADER_BYTES_MAX))
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(raw)
    except UnicodeDecodeError:
        return "cp1252" if any(0x80 <= byte < 0xA0 for byte in raw) else "latin-1"
    return None
