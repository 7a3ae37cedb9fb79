"""The first rows of a file, before their type is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import msgspec
import pyarrow as pa

from omnigraph.model.frozen import frozen
from omnigraph.write.input.files import blocks, open_file
from omnigraph.write.input.lines import lines_of, refuse_oversized
from omnigraph.write.input.options import CsvFormat, Options
from omnigraph.write.input.problems import InputInvalid
from omnigraph.write.input.tables import csv_options, readable, sniffed, suffix_of
from omnigraph.write.input.unpacking import read_ipc, read_parquet_file

TEXT = "text"
GUESS_BYTES = 64 << 10
COLUMNS_SHOWN_MAX = 20
DELIMITER_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
KIND_NAMES = {
    "string": TEXT,
    "int64": "whole number",
    "double": "number",
    "bool": "true or false",
    "date32[day]": "date",
    "timestamp[s]": "date and time",
    "timestamp[ns]": "date and time",
    "null": "empty",
}
OPTIONS = Options(blob_allow=())


@frozen
class Preview:
    """Columns with their kinds, some rows, and whether those are graph records, which name their own types."""

    columns: Mapping[str, str]
    rows: tuple[Mapping[str, Any], ...]
    graph_records: bool = False


def preview(file: str, rows: int, unpacked_bytes_max: int | None = None) -> Preview:
    """The first rows of a CSV, Parquet, Arrow or NDJSON file."""
    reader = READERS.get(suffix_of(file))
    if reader is None:
        return _of_records(list(islice(records(file), rows)))
    found: Preview = readable(file, lambda: _of_table(reader(file, rows, unpacked_bytes_max)))
    if reader is _csv:  # cells are texts; the types they seem to hold are more useful
        guessed = readable(file, lambda: _guessed(file, sniffed(file, CsvFormat())))
        return replace(found, columns={**found.columns, **dict(guessed)})
    return found


def described_csv(file: str, options: Options | None = None) -> str:
    """How a CSV file will be read, in a sentence: its delimiter, encoding, and columns with their guessed kinds."""
    form = sniffed(file, (options or OPTIONS).csv)
    mark = DELIMITER_NAMES.get(form.delimiter or ",", repr(form.delimiter))
    columns = readable(file, lambda: _guessed(file, form))
    shown = ", ".join(f"{name} ({kind})" for name, kind in columns[:COLUMNS_SHOWN_MAX])
    more = len(columns) - COLUMNS_SHOWN_MAX
    head = "no header" if form.names else "header"
    encoding = form.encoding.upper() if form.encoding.startswith("utf") else form.encoding
    return f"{file}: {mark} between cells, {encoding}, {head}; columns {shown}" + (
        f" and {more} more" if more > 0 else ""
    )


def _guessed(file: str, form: CsvFormat) -> list[tuple[str, str]]:
    """The columns of a file, and the kind of the values in its first rows."""
    import pyarrow.csv as pv

    how = csv_options(file, form)
    how["convert_options"] = pv.ConvertOptions(strings_can_be_null=True)
    with open_file(file) as stream:
        head = stream.read(GUESS_BYTES)
    whole = head if len(head) < GUESS_BYTES else head[: head.rfind(b"\n") + 1]
    if not whole.strip():
        return []
    table = pv.read_csv(pa.BufferReader(whole), **how)
    return [(f.name, KIND_NAMES.get(str(f.type), str(f.type))) for f in table.schema]


def _of_table(table: pa.Table) -> Preview:
    kinds = {f.name: TEXT if pa.types.is_string(f.type) else str(f.type) for f in table.schema}
    return Preview(kinds, tuple(table.to_pylist()))


def _of_records(found: list[dict[str, Any]]) -> Preview:
    columns: dict[str, str] = {}
    for record in found:
        for name, value in record.items():
            if value is not None:
                columns.setdefault(name, _kind(value))
            else:
                columns.setdefault(name, "null")
    enveloped = bool(found) and all("type" in r or "edge" in r for r in found) and "data" in columns
    return Preview(columns, tuple(found), enveloped)


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case int():
            return "int64"
        case float():
            return "double"
        case str():
            return TEXT
        case list():
            return "list"
        case _:
            return "object"


def records(file: str) -> Iterator[dict[str, Any]]:
    """The objects in a file of JSON lines."""
    decoder = msgspec.json.Decoder(dict[str, Any])
    for block in blocks(file, OPTIONS):
        lines, refused = refuse_oversized(lines_of(block), OPTIONS)
        for number, why in refused:
            raise InputInvalid(f"line {number}: {why.message}")
        for number, line in lines.each():
            try:
                yield decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as bad:
                raise InputInvalid(f"line {number} is not a JSON object: {bad}") from None


def _csv(file: str, rows: int, _bytes_max: int | None) -> pa.Table:
    import pyarrow.csv as pv

    with open_file(file) as stream, pv.open_csv(pa.PythonFile(stream), **csv_options(file)) as part:
        batch = next(iter(part), None)
        found = pa.Table.from_batches([] if batch is None else [batch], part.schema)
        return found.slice(0, rows)


def _parquet(file: str, rows: int, bytes_max: int | None) -> pa.Table:
    return read_parquet_file(file, bytes_max, rows)


def _arrow(file: str, rows: int, bytes_max: int | None) -> pa.Table:
    with open_file(file) as stream:
        return read_ipc(pa.py_buffer(stream.read()), bytes_max).slice(0, rows)


READERS = {".csv": _csv, ".tsv": _csv, ".parquet": _parquet, ".arrow": _arrow}
