"""Tables of one type: Arrow, pandas, polars, Parquet, CSV and Arrow files, as columns of the schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from omnigraph.errors import OptionInvalid
from omnigraph.model.catalog import EdgeType, NodeType, Property
from omnigraph.model.columns import SCALARS, arrow_type
from omnigraph.model.types import FLOATS, NUMERIC, Scalar
from omnigraph.write.input.columns import attempt, is_text, to_column
from omnigraph.write.input.exact import NOT_FINITE, known_property
from omnigraph.write.input.files import COMPRESSIONS, open_file
from omnigraph.write.input.options import Options
from omnigraph.write.input.parts import Column, Part
from omnigraph.write.input.problems import InputInvalid, Misfit, Problems, violation
from omnigraph.write.input.unpacking import read_ipc, read_parquet_file

Kind = NodeType | EdgeType
HEADER_BYTES_MAX = 1 << 20
COLUMNS_MAX = 4096
ENDS = {"from": "src", "to": "dst", "src": "src", "dst": "dst"}


def read_table(
    table: pa.Table, kind: Kind, options: Options, problems: Problems, file: str | None = None
) -> Part | None:
    """A table's rows as a part; none when something is wrong, which then is in `problems`."""
    return _convert(table, kind, options, problems, file, 1, to_column)


def _convert(
    table: pa.Table,
    kind: Kind,
    options: Options,
    problems: Problems,
    file: str | None,
    first_line: int,
    convert: Callable[[Column, Property, Options], Column],
) -> Part | None:
    columns: dict[str, Column] = {}
    renamed = dict(options.columns)
    before = len(problems.found)
    for name, values in zip(table.column_names, table.columns, strict=True):
        if renamed.get(name) == "":
            continue
        try:
            target = _target(renamed.get(name, name), kind)
            if target in columns:
                raise Misfit(f"two columns fill '{name}'", rule="record", name=name)
            _check_valid(values, name)
            if target in ("id", "src", "dst"):
                columns[target] = _identifiers(values, name, optional=target == "id")
            else:
                columns[target] = convert(values, kind.properties[target], options)
        except pa.ArrowNotImplementedError as error:
            unread = Misfit(f"'{name}' cannot be read: {error}", name=name)
            problems.add(violation(unread, kind.name, file))
        except Misfit as misfit:
            line = None if misfit.row is None else first_line + misfit.row
            problems.add(violation(misfit, kind.name, file, line))
    if isinstance(kind, EdgeType):
        for end in ({"src": "from", "dst": "to"}[e] for e in ("src", "dst") if e not in columns):
            if len(problems.found) == before:
                why = f"the edges {kind.name} need a column '{end}'"
                problems.add(violation(Misfit(why, rule="record", name=end), kind.name, file))
    if len(problems.found) > before:
        return None
    lines = pa.array(np.arange(first_line, first_line + table.num_rows))
    return Part(kind, columns, table.num_rows, _absent(columns, kind, options), lines, file)


def _check_valid(values: Column, name: str) -> None:
    """Nobody has checked what is in a table: texts that are no UTF-8, for one, could be stored but not read again."""
    if (error := _invalid(values)) is not None:
        misfit = Misfit(f"'{name}' is no valid column: {error}", name=name)
        misfit.row = _first_invalid(values)
        raise misfit from error


def _invalid(values: Column) -> pa.ArrowException | None:
    try:
        values.validate(full=True)
    except pa.ArrowException as error:
        return error
    return None


def _first_invalid(values: Column) -> int | None:
    """The row of the first value that is not valid; none if that is in something which rows share."""
    if _invalid(values.slice(0, 0)) is not None:
        return None
    first, size = 0, len(values)
    while size > 1:
        half = size // 2
        if _invalid(values.slice(first, half)) is not None:
            size = half
        else:
            first, size = first + half, size - half
    return first


def _target(name: str, kind: Kind) -> str:
    """The column of the stored table that a column of the input fills."""
    if name == "id":
        return "id"
    if isinstance(kind, EdgeType) and name in ENDS:
        return ENDS[name]
    return known_property(name, kind).name


def _identifiers(values: Column, name: str, *, optional: bool) -> Column:
    """Ids are texts; whole numbers are taken as the text a key of theirs has."""
    kind = values.type.value_type if at.is_dictionary(values.type) else values.type
    if not (is_text(kind) or at.is_integer(kind) or at.is_null(kind)):
        raise Misfit(f"'{name}' must hold texts, got {values.type}", name=name)
    texts = values.cast(pa.string())
    if texts.null_count and not optional:
        misfit = Misfit(f"'{name}' has no value", rule="required", name=name)
        misfit.row = pc.index(texts.is_null(), True).as_py()
        raise misfit
    return texts


def _absent(columns: dict[str, Column], kind: Kind, options: Options) -> dict[str, pa.BooleanArray]:
    if options.nulls == "clear":
        return {}
    return {
        name: _one(values.is_null())
        for name, values in columns.items()
        if name in kind.properties and values.null_count
    }


def _one(values: Column) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


# --- tables in memory --------------------------------------------------------------------------------------------


def as_arrow(source: Any) -> pa.Table | None:
    """Anything that is a table as an Arrow table; none for what is not."""
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    package = type(source).__module__.partition(".")[0]
    if package == "pandas":
        return pa.Table.from_pandas(source, preserve_index=False)
    if package == "pyspark":
        raise OptionInvalid("a Spark DataFrame is loaded with engine='spark'")
    if hasattr(source, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(source).read_all()
    if hasattr(source, "to_table"):  # a dataset
        return source.to_table()
    return None


# --- files -------------------------------------------------------------------------------------------------------


def suffix_of(file: str) -> str:
    """The ending that says what is in a file, without the one that says how it is packed."""
    path = Path(file)
    if path.suffix in COMPRESSIONS:
        path = path.with_suffix("")
    return path.suffix.lower()


def read_parquet(file: str, kind: Kind, options: Options, problems: Problems) -> Iterator[Part]:
    """The rows of a Parquet file."""
    most = options.unpacked_bytes_max
    table = readable(file, lambda: named(read_parquet_file(file, most)))
    yield from _if_any(read_table(table, kind, options, problems, file))


def row_groups(file: str) -> list[tuple[int, int]]:
    """The rows and the bytes of each row group of a Parquet file."""
    import pyarrow.parquet as pq

    with open_file(file) as stream:
        groups = readable(file, lambda: pq.ParquetFile(pa.PythonFile(stream)).metadata)
        found = [groups.row_group(i) for i in range(groups.num_row_groups)]
    return [(group.num_rows, group.total_byte_size) for group in found]


def read_row_groups(
    file: str,
    groups: range,
    first_line: int,
    kind: Kind,
    options: Options,
    problems: Problems,
) -> Iterator[Part]:
    """Some row groups of a Parquet file, batch by batch; `first_line` is the number of their first row."""
    import pyarrow.parquet as pq

    with open_file(file) as stream:
        opened = readable(file, lambda: pq.ParquetFile(pa.PythonFile(stream)))
        batches = opened.iter_batches(row_groups=list(groups))
        while (batch := readable(file, lambda: next(batches, None))) is not None:
            table = pa.Table.from_batches([batch])
            yield from _if_any(
                _convert(table, kind, options, problems, file, first_line, to_column)
            )
            first_line += batch.num_rows


def read_arrow(file: str, kind: Kind, options: Options, problems: Problems) -> Iterator[Part]:
    """The rows of an Arrow IPC file or stream."""
    with open_file(file) as stream:
        data = pa.py_buffer(stream.read())
    table = readable(file, lambda: named(read_ipc(data, options.unpacked_bytes_max)))
    yield from _if_any(read_table(table, kind, options, problems, file))


def read_csv(file: str, kind: Kind, options: Options, problems: Problems) -> Iterator[Part]:
    """The rows of a CSV file with a header. An empty cell is null, a quoted empty one is an empty text."""
    import pyarrow.csv as pv

    with open_file(file) as stream:
        how = csv_options(file)
        table = readable(file, lambda: pv.read_csv(pa.PythonFile(stream), **how))
    yield from _if_any(_convert(table, kind, options, problems, file, 2, from_text))


def stream_csv(file: str, kind: Kind, options: Options, problems: Problems) -> Iterator[Part]:
    """The same, batch by batch, for files of any size."""
    import pyarrow.csv as pv

    first_line = 2
    with open_file(file) as stream:
        how = csv_options(file)
        batches = readable(file, lambda: pv.open_csv(pa.PythonFile(stream), **how))
        while (batch := readable(file, lambda: next(batches, None))) is not None:
            table = pa.Table.from_batches([batch])
            yield from _if_any(
                _convert(table, kind, options, problems, file, first_line, from_text)
            )
            first_line += batch.num_rows


def csv_options(file: str) -> dict[str, Any]:
    """How to read a file of comma- or tab-separated cells: as texts, since the schema says what they mean."""
    import pyarrow.csv as pv

    separator = "\t" if suffix_of(file) == ".tsv" else ","
    names = readable(file, lambda: _header(file, separator))
    texts = pv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=[""],
    )
    parse = pv.ParseOptions(delimiter=separator, newlines_in_values=True)
    return {"parse_options": parse, "convert_options": texts}


def _header(file: str, separator: str) -> list[str]:
    """The names of the columns. They are few and short, whatever the file is."""
    import codecs
    import csv
    import io

    with open_file(file) as stream:
        raw = bytes(stream.read(HEADER_BYTES_MAX))
    decoder = codecs.getincrementaldecoder(
        "utf-8-sig"
    )()  # the end may be in the middle of a character
    text = decoder.decode(raw, final=len(raw) < HEADER_BYTES_MAX)
    try:
        names = next(csv.reader(io.StringIO(text, newline=""), delimiter=separator), [])
    except csv.Error as error:
        raise InputInvalid(f"{file} cannot be read: {error}", details={"file": file}) from None
    if len(names) > COLUMNS_MAX:
        raise InputInvalid(
            f"{file} has more than {COLUMNS_MAX} columns",
            details={"file": file, "limit": "columns_max"},
        )
    return names


def from_text(values: Column, prop: Property, options: Options) -> Column:
    """A column of CSV cells as the property's column. Lists and vectors are written as JSON."""
    texts, kind = _one(values), prop.type
    if kind.is_list or kind.is_vector:
        return to_column(_json_lists(texts, prop), prop, options)
    if kind.scalar in NUMERIC or kind.scalar is Scalar.BOOL:
        wanted = SCALARS[kind.scalar]
        return to_column(attempt(texts, lambda v: v.cast(wanted), prop), prop, options)
    return to_column(texts, prop, options)


def _json_lists(texts: pa.StringArray, prop: Property) -> pa.Array:
    import msgspec

    found = []
    for row, text in enumerate(texts.to_pylist()):
        try:
            found.append(None if text is None else msgspec.json.decode(text, type=list))
        except (msgspec.DecodeError, RecursionError) as bad:
            misfit = Misfit(f"'{prop.name}' is no JSON array: {bad}", name=prop.name, value=text)
            misfit.row = row
            raise misfit from None
    if prop.type.scalar in FLOATS:
        found = [
            row and [NOT_FINITE.get(v, v) if isinstance(v, str) else v for v in row]
            for row in found
        ]
    item = arrow_type(prop.type).value_type
    loose = item if prop.type.scalar in NUMERIC or prop.type.scalar is Scalar.BOOL else pa.string()
    try:
        return pa.array(found, pa.list_(loose))
    except (pa.ArrowInvalid, pa.ArrowTypeError) as bad:
        raise Misfit(f"'{prop.name}' expects {prop.type}: {bad}", name=prop.name) from None


def named(table: pa.Table) -> pa.Table:
    """The table, if the names of its columns are texts; Arrow does not look."""
    return table.rename_columns(table.column_names)


def readable(file: str, read: Callable[[], Any]) -> Any:
    """What reading gives; a clear error when the file cannot be read."""
    try:
        return read()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as failure:
        raise InputInvalid(
            f"{file} cannot be read: {failure}",
            help="The file is damaged, or it is not what its ending says.",
            details={"file": file},
        ) from failure


def _if_any(part: Part | None) -> Iterator[Part]:
    if part is not None:
        yield part
