"""The input of a load as a body: NDJSON for records and files; a part for each type for tables and rows."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from omnigraph.errors import OptionInvalid
from omnigraph.model.frozen import frozen
from omnigraph.storage import metrics
from omnigraph.values.misfit import Misfit
from omnigraph.values.reading import foreign
from omnigraph.wire.contracts import ARROW, NDJSON
from omnigraph.write.input.files import (
    COMPRESSIONS,
    expand,
    known_size,
    may_be_array,
    open_file,
)
from omnigraph.write.input.json_arrays import as_lines
from omnigraph.write.input.options import Options
from omnigraph.write.input.problems import InputInvalid
from omnigraph.write.input.sources import LINES, are_paths, is_table, plain_record
from omnigraph.write.input.tables import as_arrow, suffix_of

OPTIONS = Options()
CHUNK_BYTES = 1 << 20
ROWS_CHUNK = 1000


@frozen
class Upload:
    """A body, its media type, and whether it can be sent again."""

    media: str
    body: Callable[[], Iterator[bytes]]
    repeatable: bool


def upload_of(source: Any) -> Upload:
    """The body for the input of a load."""
    if _is_path(source):
        return Upload(NDJSON, lambda: _files([source]), repeatable=True)
    if isinstance(source, list) and source and all(map(_is_path, source)):
        return Upload(NDJSON, lambda: _files(source), repeatable=True)
    if isinstance(source, Mapping):
        return _tables(source)
    if is_table(source):
        raise OptionInvalid("the type of the table's rows is unknown; pass {'Type': table}")
    if hasattr(source, "read"):
        return Upload(NDJSON, lambda: iter(lambda: source.read(CHUNK_BYTES), b""), repeatable=False)
    if isinstance(source, Iterable) and not isinstance(source, bytes | bytearray):
        return Upload(NDJSON, lambda: _lines(source, "data"), isinstance(source, list | tuple))
    raise OptionInvalid(f"cannot load {type(source).__name__}")


def records_of(source: Any) -> list[Any] | dict[str, list[Any]]:
    """The input of a load as records or as rows by type, to be part of a request."""
    if isinstance(source, Mapping):
        return {str(name): _rows(name, value) for name, value in source.items()}
    if isinstance(source, list | tuple) and not all(map(_is_path, source)):
        return [_plain(record, "data") for record in source]
    lines = b"".join(upload_of(source).body()).splitlines()
    return [_decoded(number, line) for number, line in enumerate(lines, 1) if line.strip()]


def _decoded(number: int, line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise OptionInvalid(f"line {number} is not a record: {error}") from error


def _rows(name: str, value: Any) -> list[Any]:
    """The rows of one type. Rows of a list may omit properties; a table has every column in each row."""
    if _is_path(value) or are_paths(value) or as_arrow(value) is not None:
        return [_plain(row) for row in _table(name, value).to_pylist()]
    if isinstance(value, Iterable) and not isinstance(value, bytes | Mapping):
        return [_plain(dict(row)) for row in value]
    raise OptionInvalid(f"cannot load {type(value).__name__} as rows of {name}")


def _is_path(given: Any) -> bool:
    return isinstance(given, str | os.PathLike)


def _files(paths: Iterable[Any]) -> Iterator[bytes]:
    """The lines of files, decompressed; each file ends its last line."""
    files = [file for path in paths for file in expand(path)]
    metrics.expected(sum(map(known_size, files)))
    for file in files:
        if suffix_of(file) not in LINES:
            raise OptionInvalid(f"the type of the rows in {file} is unknown")
        last, packed = b"\n", Path(file).suffix in COMPRESSIONS
        with open_file(file) as stream:
            lines: Any = as_lines(stream, file) if may_be_array(file) else stream
            while block := bytes(lines.read(CHUNK_BYTES)):
                last = block
                yield block
                metrics.consumed(0 if packed else len(block))
        metrics.consumed(known_size(file) if packed else 0)
        if not last.endswith(b"\n"):
            yield b"\n"


def _plain(record: Any, inside: str | None = None) -> Any:
    """A record whose values JSON can hold, by the rules of a local load."""
    try:
        return plain_record(record, inside, OPTIONS)
    except Misfit as bad:
        raise InputInvalid(bad.message) from None


def _foreign(value: Any) -> Any:
    try:
        return foreign(value)
    except Misfit as bad:
        raise InputInvalid(bad.message) from None


def _lines(records: Iterable[Any], inside: str | None) -> Iterator[bytes]:
    """Records as lines, a thousand at a time."""
    encoder = msgspec.json.Encoder(enc_hook=_foreign, decimal_format="number")
    records = iter(records)
    while held := [_plain(record, inside) for record in islice(records, ROWS_CHUNK)]:
        yield encoder.encode_lines(held)


# --- tables --------------------------------------------------------------------------------------------------------


def _tables(given: Mapping[str, Any]) -> Upload:
    """A part for each type: tables as Arrow, rows as lines, which may omit properties."""
    boundary = secrets.token_hex(16)
    parts = {
        str(name): value if _are_rows(value) else _table(name, value)
        for name, value in given.items()
    }
    media = f"multipart/mixed; boundary={boundary}"
    repeatable = all(isinstance(part, pa.Table | list | tuple) for part in parts.values())
    return Upload(media, lambda: _parts(parts, boundary), repeatable)


def _are_rows(value: Any) -> bool:
    named = isinstance(value, bytes | Mapping) or _is_path(value) or are_paths(value)
    return isinstance(value, Iterable) and not named and as_arrow(value) is None


def _table(name: str, value: Any) -> pa.Table:
    """The rows of one type as a table."""
    if _is_path(value) or are_paths(value):
        paths = [value] if _is_path(value) else value
        files = [_table_file(file) for path in paths for file in expand(path)]
        return pa.concat_tables(files, promote_options="default")
    found = as_arrow(value)
    if found is None:
        raise OptionInvalid(f"cannot load {type(value).__name__} as rows of {name}")
    return found


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


def _parts(parts: Mapping[str, Any], boundary: str) -> Iterator[bytes]:
    for name, part in parts.items():
        quoted = name.replace("\\", "\\\\").replace('"', '\\"')
        media = ARROW if isinstance(part, pa.Table) else NDJSON
        head = (
            f"--{boundary}\r\nContent-Type: {media}\r\n"
            f'Content-Disposition: attachment; name="{quoted}"\r\n\r\n'
        )
        yield head.encode()
        yield from [_stream(part)] if isinstance(part, pa.Table) else _lines(part, None)
        yield b"\r\n"
    yield f"--{boundary}--\r\n".encode()


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())
