"""Avro files: a format of rows, decoded in C by fastavro, which comes with the extra `avro`."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.write.input.files import open_file
from omnigraph.write.input.options import Options
from omnigraph.write.input.parts import InputPart
from omnigraph.write.input.problems import InputInvalid, Problems
from omnigraph.write.input.tables import RawRows, RowShape
from omnigraph.write.input.unpacking import refuse_more_than, spread_size

BATCH_ROWS = 65_536
TYPES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "null": pa.null(),
}
LOGICAL = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("us", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
    "uuid": pa.string(),
}


class AvroMissing(OmnigraphError):
    """Avro files, and the manifests of Iceberg tables, are read by a package that is not installed."""

    code, kind = "avro_missing", Kind.INVALID
    default_help = "Install it with `pip install 'omnigraph[avro]'`."


def avro_rows(file: str) -> Iterator[dict[str, Any]]:
    """The records of a small file, as a table's own metadata is."""
    for records, _ in _blocks(file):
        yield from records


def read_avro(
    file: str, shape: RowShape, options: Options, problems: Problems
) -> Iterator[InputPart]:
    """The rows of an Avro file, thousands at a time."""
    first, size = 1, 0
    for records, schema in _blocks(file):
        try:
            table = pa.Table.from_pylist(records, schema=schema)
        except (pa.ArrowException, TypeError, ValueError) as bad:
            raise _unreadable(file, bad) from None
        if options.unpacked_bytes_max is not None:
            size += spread_size(table)
            refuse_more_than(options.unpacked_bytes_max, size)
        yield from shape.parts(RawRows(table, file, first), problems)
        first += len(records)


def _blocks(file: str) -> Iterator[tuple[list[dict[str, Any]], pa.Schema]]:
    if importlib.util.find_spec("fastavro") is None:
        raise AvroMissing(f"{file}: reading Avro needs the package fastavro")
    import fastavro

    with open_file(file) as stream:
        try:
            reader = fastavro.reader(stream)
            schema = _schema(reader.writer_schema, file)
            held: list[dict[str, Any]] = []
            for record in reader:
                held.append(record)
                if len(held) >= BATCH_ROWS:
                    yield held, schema
                    held = []
        except (ValueError, EOFError, KeyError, IndexError, TypeError, OverflowError) as bad:
            raise _unreadable(file, bad) from bad
        if held:
            yield held, schema


def _unreadable(file: str, why: Exception) -> InputInvalid:
    return InputInvalid(
        f"{file} cannot be read: {why or type(why).__name__}",
        help="The file is damaged, or its ending is wrong.",
        details={"file": file},
    )


def _schema(given: Any, file: str) -> pa.Schema:
    if not isinstance(given, dict) or given.get("type") != "record":
        raise InputInvalid(f"{file} holds no records", details={"file": file})
    known: dict[str, pa.DataType] = {}
    return pa.schema([pa.field(f["name"], _type(f["type"], known)) for f in given["fields"]])


def _type(given: Any, known: dict[str, pa.DataType]) -> pa.DataType:
    """The Arrow type of an Avro type; a named one may be reused by its name."""
    match given:
        case list():
            kinds = [kind for kind in given if kind != "null"]
            return _type(kinds[0], known) if len(kinds) == 1 else _union(kinds, known)
        case {"logicalType": "decimal", "precision": int(precision)}:
            return pa.decimal128(precision, given.get("scale", 0))
        case {"logicalType": str(name)} if name in LOGICAL:
            return LOGICAL[name]
        case {"type": "array", "items": items}:
            return pa.list_(_type(items, known))
        case {"type": "map", "values": values}:
            return pa.map_(pa.string(), _type(values, known))
        case {"type": "fixed", "size": int(size)}:
            return _named(given, pa.binary(size), known)
        case {"type": "record", "fields": fields}:
            members = [pa.field(f["name"], _type(f["type"], known)) for f in fields]
            return _named(given, pa.struct(members), known)
        case {"type": "enum"}:
            return _named(given, pa.string(), known)
        case {"type": kind}:
            return _type(kind, known)
        case str() if given in TYPES:
            return TYPES[given]
        case str() if given in known:
            return known[given]
    raise InputInvalid(f"Avro files with values of the type {given!r} are not read")


def _named(given: dict[str, Any], kind: pa.DataType, known: dict[str, pa.DataType]) -> pa.DataType:
    name = given["name"]
    space = given.get("namespace")
    known[name] = known[f"{space}.{name}" if space else name] = kind
    return kind


def _union(kinds: list[Any], known: dict[str, pa.DataType]) -> pa.DataType:
    """The type for values of several kinds: the widest of numbers; others are not supported."""
    found = {_type(kind, known) for kind in kinds}
    for wide in (pa.float64(), pa.float32(), pa.int64(), pa.int32()):
        if wide in found and all(pa.types.is_floating(k) or pa.types.is_integer(k) for k in found):
            return pa.float64() if pa.float32() in found and len(found) > 1 else wide
    raise InputInvalid(f"Avro files with values of several types ({kinds}) are not read")
