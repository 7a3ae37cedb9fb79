"""An Iceberg table from its metadata: the files of the current snapshot, with the deletes that apply to each.

A table's folder has files of metadata; the newest names the columns and the snapshots, a snapshot names manifests, and
manifests name data files and files of deletes. Columns are known by ids, so that renamed ones are found in old files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from omnigraph.errors import OptionInvalid
from omnigraph.write.input.avro import avro_rows
from omnigraph.write.input.files import open_file, read_bytes
from omnigraph.write.input.folders import ICEBERG_METADATA
from omnigraph.write.input.lakes.delta import plain_path
from omnigraph.write.input.lakes.parts import (
    EqualityFile,
    LakePart,
    PositionFile,
    TableUnsupported,
    Vector,
    kept_row,
    kept_schema,
)
from omnigraph.write.input.problems import InputInvalid

FOLDER = "metadata"
HINT = f"{FOLDER}/version-hint.text"
VERSION_MAX = 3
DELETED_ENTRY = 2
DATA, POSITIONS, EQUALITY = 0, 1, 2
TYPES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", "UTC"),
    "string": pa.string(),
    "binary": pa.binary(),
}
DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


def iceberg_parts(root: str, names: Iterable[str], metadata: str | None = None) -> list[LakePart]:
    """The files of the current snapshot of a table; `names` are all paths below its folder."""
    file = metadata or f"{root}/{_newest(root, names)}"
    try:
        found = json.loads(_unpacked(file))
        return _IcebergTable(root, found).parts()
    except (ValueError, KeyError, TypeError) as bad:
        raise InputInvalid(
            f"{file}: the metadata of the Iceberg table cannot be read: {bad}"
        ) from None


def _unpacked(file: str) -> bytes:
    """A metadata file, which may be compressed without a matching ending."""
    import zlib

    with open_file(file) as stream:
        data = bytes(stream.read())
    return zlib.decompress(data, 31) if data[:2] == b"\x1f\x8b" else data


def _newest(root: str, names: Iterable[str]) -> str:
    """The current file of metadata: as the folder says, else the one with the highest number."""
    found = {name: m for name in names if (m := ICEBERG_METADATA.fullmatch(name))}
    if HINT in names:
        version = read_bytes(f"{root}/{HINT}").decode().strip()
        for said in (f"v{version}.metadata.json", f"v{version}.gz.metadata.json", version):
            if f"{FOLDER}/{said}" in found:
                return f"{FOLDER}/{said}"
    numbers: dict[int, list[str]] = {}
    for name, match in found.items():
        numbers.setdefault(int(match[1] or match[2]), []).append(name)
    if not numbers:
        raise InputInvalid(f"{root} has no metadata of an Iceberg table")
    newest = numbers[max(numbers)]
    if len(newest) > 1:
        raise OptionInvalid(
            f"{root} has {len(newest)} files of metadata with the same number; only its catalog knows which is current",
            help=f"Give the file itself: {root}/{newest[0]}",
        )
    return newest[0]


@dataclass(slots=True)
class _ListedFile:
    """A file of data or deletes, with the fields that decide which deletes apply."""

    sequence: int
    spec: int
    partition: tuple[Any, ...]
    entry: Mapping[str, Any]


@dataclass(slots=True)
class _SnapshotFiles:
    """The files listed in the manifests of a snapshot."""

    data: list[_ListedFile] = field(default_factory=list)
    deletes: list[_ListedFile] = field(default_factory=list)


class _IcebergTable:
    """One metadata file, and the files it refers to."""

    def __init__(self, root: str, found: Mapping[str, Any]) -> None:
        if found["format-version"] > VERSION_MAX:
            version = found["format-version"]
            raise TableUnsupported(f"{root} has version {version} of Iceberg's format")
        self._root, self._found = root, found
        self._location = str(found["location"]).rstrip("/")
        fields = self._schema()["fields"]
        self._fields = fields
        self._columns = pa.schema([pa.field(f["name"], _arrow(f["type"], root)) for f in fields])
        self._ids = tuple(int(f["id"]) for f in fields)

    def parts(self) -> list[LakePart]:
        entries = self._entries()
        unread = [d for d in (*entries.data, *entries.deletes) if not _is_read(d.entry)]
        if unread:
            kind = unread[0].entry["file_format"]
            raise TableUnsupported(f"{self._root} has {kind} files; Parquet is read")
        return [self._part(one, entries.deletes) for one in entries.data]

    def _schema(self) -> Mapping[str, Any]:
        found = self._found
        if "schemas" not in found:
            return found["schema"]  # type: ignore[no-any-return]
        current = found["current-schema-id"]
        return next(s for s in found["schemas"] if s["schema-id"] == current)

    def _entries(self) -> _SnapshotFiles:
        found, entries = self._found, _SnapshotFiles()
        current = found.get("current-snapshot-id")
        snapshots = [s for s in found.get("snapshots") or () if s["snapshot-id"] == current]
        for manifest in _manifests(snapshots, self._placed):
            for row in avro_rows(self._placed(manifest["manifest_path"])):
                if row["status"] == DELETED_ENTRY:
                    continue
                entry, number = row["data_file"], row.get("sequence_number")
                if number is None:  # it is that of the manifest; the first version has none
                    number = manifest.get("sequence_number") or 0
                spec = manifest.get("partition_spec_id") or 0
                values = tuple((entry.get("partition") or {}).values())
                one = _ListedFile(number, spec, values, entry)
                is_data = (entry.get("content") or DATA) == DATA
                (entries.data if is_data else entries.deletes).append(one)
        return entries

    def _placed(self, path: str) -> str:
        """Where a file is: a table that was copied elsewhere still names the old place."""
        inside = path.removeprefix(self._location)
        return f"{self._root}{inside}" if inside != path else plain_path(path)

    def _part(self, data: _ListedFile, deletes: Iterable[_ListedFile]) -> LakePart:
        path = data.entry["file_path"]
        vectors, positions, equal = [], [], []
        for one in deletes:
            entry = one.entry
            file = self._placed(entry["file_path"])
            if entry["content"] == EQUALITY:
                same = one.spec == data.spec and one.partition == data.partition
                if one.sequence > data.sequence and (same or not one.partition):
                    equal.append(EqualityFile(file, tuple(entry["equality_ids"])))
            elif one.sequence >= data.sequence and entry.get("referenced_data_file") in (
                None,
                path,
            ):
                if entry["file_format"].upper() == "PUFFIN":
                    vectors.append(
                        Vector("", file, entry["content_offset"], entry["content_size_in_bytes"])
                    )
                elif _may_name(entry, path):
                    positions.append(PositionFile(file, path))
        return LakePart(
            self._placed(path),
            data.entry["file_size_in_bytes"],
            kept_schema(self._columns),
            self._ids,
            kept_row(self._constants(data)),
            tuple(vectors),
            () if vectors else tuple(positions),  # a vector includes earlier deletes
            tuple(equal),
        )

    def _constants(self, data: _ListedFile) -> dict[str, pa.Scalar]:
        """Values a file may not hold: identity partition values, and defaults of newer columns."""
        found: dict[str, pa.Scalar] = {}
        partition = data.entry.get("partition") or {}
        by_id = dict(zip(self._ids, self._columns, strict=True))
        for one, given in zip(self._columns, self._fields, strict=True):
            if given.get("initial-default") is not None and not pa.types.is_null(one.type):
                found[one.name] = pa.scalar(given["initial-default"]).cast(one.type)
        for part in self._spec(data.spec):
            column = by_id.get(part["source-id"])
            if part["transform"] == "identity" and column is not None:
                value = pa.scalar(partition.get(part["name"]), column.type)
                found[column.name] = value
        return found

    def _spec(self, spec: int) -> list[Mapping[str, Any]]:
        for one in self._found.get("partition-specs") or ():
            if one["spec-id"] == spec:
                return one["fields"]  # type: ignore[no-any-return]
        return list(self._found.get("partition-spec") or ())


def _is_read(entry: Mapping[str, Any]) -> bool:
    return entry["file_format"].upper() in ("PARQUET", "PUFFIN")


def _manifests(snapshots: Iterable[Mapping[str, Any]], placed: Any) -> Iterator[Mapping[str, Any]]:
    for snapshot in snapshots:
        if "manifest-list" in snapshot:
            yield from avro_rows(placed(snapshot["manifest-list"]))
        else:  # of the first version of the format
            yield from ({"manifest_path": path} for path in snapshot["manifests"])


def _may_name(entry: Mapping[str, Any], path: str) -> bool:
    """Whether a file of positions may name a data file, by the bounds it gives for its paths."""
    bounds = {}
    for name in ("lower_bounds", "upper_bounds"):
        pairs = entry.get(name) or ()
        bounds[name] = {pair["key"]: pair["value"] for pair in pairs}.get(FILE_PATH_ID)
    lower, upper = bounds["lower_bounds"], bounds["upper_bounds"]
    text = path.encode()
    # Bounds may be truncated: a lower one is then smaller and an upper one larger than the real value.
    return (lower is None or lower <= text) and (upper is None or text <= upper)


FILE_PATH_ID = 2147483546


def _arrow(kind: Any, root: str) -> pa.DataType:
    """The Arrow type of an Iceberg type; None for nested ones and those that files encode in several ways."""
    if not isinstance(kind, str):
        return pa.null()
    if found := DECIMAL.fullmatch(kind):
        return pa.decimal128(int(found[1]), int(found[2]))
    if kind in ("variant", "geometry", "geography", "unknown"):
        raise TableUnsupported(f"{root} has a column of the type {kind}")
    return TYPES.get(kind, pa.null())
