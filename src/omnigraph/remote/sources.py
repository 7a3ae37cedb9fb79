"""What a load was given, as a body: NDJSON for records and files, one Arrow stream per type for tables."""

from __future__ import annotations

import base64
import math
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from omnigraph.errors import OptionInvalid
from omnigraph.storage import metrics
from omnigraph.write.input.files import COMPRESSIONS, expand, known_size, open_file
from omnigraph.write.input.sources import is_table
from omnigraph.write.input.tables import as_arrow, suffix_of

NDJSON = "application/x-ndjson"
CHUNK_BYTES = 1 << 20
ROWS_CHUNK = 1000
LINES = (".ndjson", ".jsonl", ".json", "")


@dataclass(frozen=True, slots=True)
class Upload:
    """A body, its media type, and whether it can be sent again."""

    media: str
    body: Callable[[], Iterator[bytes]]
    repeatable: bool


def upload_of(source: Any) -> Upload:
    """How to send what a load was given."""
    if _is_path(source):
        return Upload(NDJSON, lambda: _files([source]), repeatable=True)
    if isinstance(source, list) and source and all(map(_is_path, source)):
        return Upload(NDJSON, lambda: _files(source), repeatable=True)
    if isinstance(source, Mapping):
        return _tables(source)
    if is_table(source):
        raise OptionInvalid("a table does not say which type its rows are of; give {'Type': table}")
    if hasattr(source, "read"):
        return Upload(NDJSON, lambda: iter(lambda: source.read(CHUNK_BYTES), b""), repeatable=False)
    if isinstance(source, Iterable) and not isinstance(source, bytes | bytearray):
        return Upload(NDJSON, lambda: _records(source), isinstance(source, list | tuple))
    raise OptionInvalid(f"cannot load {type(source).__name__}")


def records_of(source: Any) -> list[Any] | dict[str, list[Any]]:
    """What a load was given, as records or as rows by type, to be part of a request."""
    if isinstance(source, Mapping):
        return {str(name): _rows(name, value) for name, value in source.items()}
    if isinstance(source, list | tuple) and not all(map(_is_path, source)):
        return [_sendable_record(record) for record in source]
    lines = b"".join(upload_of(source).body()).splitlines()
    return [_decoded(number, line) for number, line in enumerate(lines, 1) if line.strip()]


def _decoded(number: int, line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise OptionInvalid(f"line {number} is no record: {error}") from error


def _rows(name: str, value: Any) -> list[Any]:
    """The rows of one type. Those of a list keep what they leave out; a table has every column in each row."""
    if _is_path(value) or as_arrow(value) is not None:
        return [_sendable(row) for row in _table(name, value).to_pylist()]
    if isinstance(value, Iterable) and not isinstance(value, bytes | Mapping):
        return [_sendable(dict(row)) for row in value]
    raise OptionInvalid(f"cannot load {type(value).__name__} as rows of {name}")


def _is_path(given: Any) -> bool:
    return isinstance(given, str | os.PathLike)


def _files(paths: Iterable[Any]) -> Iterator[bytes]:
    """The lines of files, unpacked; each file ends its last line."""
    files = [file for path in paths for file in expand(path)]
    metrics.expected(sum(map(known_size, files)))
    for file in files:
        if suffix_of(file) not in LINES:
            raise OptionInvalid(f"{file} does not say which type its rows are of")
        last, packed = b"\n", Path(file).suffix in COMPRESSIONS
        with open_file(file) as stream:
            while block := bytes(stream.read(CHUNK_BYTES)):
                last = block
                yield block
                metrics.consumed(0 if packed else len(block))
        metrics.consumed(known_size(file) if packed else 0)
        if not last.endswith(b"\n"):
            yield b"\n"


def _records(records: Iterable[Any]) -> Iterator[bytes]:
    encoder = msgspec.json.Encoder(enc_hook=_plain)
    held: list[Any] = []
    for record in records:
        held.append(_sendable_record(record))
        if len(held) >= ROWS_CHUNK:
            yield encoder.encode_lines(held)
            held = []
    yield encoder.encode_lines(held)


def _sendable_record(record: Any) -> Any:
    data = record.get("data") if isinstance(record, Mapping) else None
    return {**record, "data": _sendable(data)} if isinstance(data, Mapping) else record


def _sendable(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row whose values JSON can hold without losing any; most are as they are."""
    if not any(isinstance(value, float | bytes | bytearray | list) for value in row.values()):
        return row
    return {name: _exact(value) for name, value in row.items()}


def _exact(value: Any) -> Any:
    match value:
        case bytes() | bytearray():
            return "base64:" + base64.b64encode(value).decode()
        case float() if math.isnan(value):
            return "NaN"
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case list():
            return [_exact(member) for member in value]
    return value


def _plain(value: Any) -> Any:
    """What other libraries use for numbers, arrays and times."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise OptionInvalid(f"{type(value).__name__} is no value of a record")


# --- tables --------------------------------------------------------------------------------------------------------


def _tables(given: Mapping[str, Any]) -> Upload:
    boundary = secrets.token_hex(16)
    tables = {str(name): _table(name, value) for name, value in given.items()}
    media = f"multipart/mixed; boundary={boundary}"
    return Upload(media, lambda: _parts(tables, boundary), repeatable=True)


def _table(name: str, value: Any) -> pa.Table:
    """The rows of one type as a table."""
    if _is_path(value):
        return _table_file(os.fspath(value))
    found = as_arrow(value)
    if found is not None:
        return found
    if isinstance(value, Iterable) and not isinstance(value, bytes | Mapping):
        return pa.Table.from_pylist([dict(row) for row in value])
    raise OptionInvalid(f"cannot load {type(value).__name__} as rows of {name}")


def _table_file(path: str) -> pa.Table:
    match suffix_of(path):
        case ".parquet" | ".pq":
            from pyarrow import parquet

            return parquet.read_table(path)
        case ".arrow" | ".feather" | ".ipc":
            with pa.OSFile(path) as file:
                return pa.ipc.open_file(file).read_all()
        case _:
            raise OptionInvalid(f"{path}: a server takes tables from Parquet and Arrow files")


def _parts(tables: Mapping[str, pa.Table], boundary: str) -> Iterator[bytes]:
    for name, table in tables.items():
        quoted = name.replace("\\", "\\\\").replace('"', '\\"')
        head = (
            f"--{boundary}\r\nContent-Type: application/vnd.apache.arrow.stream\r\n"
            f'Content-Disposition: attachment; name="{quoted}"\r\n\r\n'
        )
        yield head.encode()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        yield sink.getvalue().to_pybytes()
        yield b"\r\n"
    yield f"--{boundary}--\r\n".encode()
