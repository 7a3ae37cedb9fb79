"""A Delta table from its log: the files of the newest version, by the newest checkpoint and the commits after it.

Commits are lines of JSON, checkpoints are Parquet; both hold actions. The protocol a table requires is checked
first: unknown requirements are refused, since the files could be misread.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import msgspec
import pyarrow as pa

from omnigraph.model.frozen import frozen
from omnigraph.write.input.files import read_bytes
from omnigraph.write.input.lakes.bitmaps import from_z85
from omnigraph.write.input.lakes.parts import (
    LakePart,
    TableUnsupported,
    Vector,
    kept_row,
    kept_schema,
    parquet_table,
)
from omnigraph.write.input.problems import InputInvalid

LOG = "_delta_log"
COMMIT = re.compile(r"(\d{20})\.json")
CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet")
CHECKPOINT_V2 = re.compile(r"(\d{20})\.checkpoint\.[0-9a-f-]{36}\.(json|parquet)")
FEATURES = frozenset(
    (
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    )
)
VERSION_MAX = 3
VERSION_WITH_FEATURES = 3
UUID_DIGITS = 20  # of base 85
VECTOR_FRAME_BYTES = 8  # its length before it, its checksum after it
TYPES = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")


class DeletionVector(msgspec.Struct, frozen=True, rename="camel"):
    """Where the deleted rows of a file are listed."""

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: int
    offset: int | None = None

    def vector(self, root: str) -> Vector:
        """The same in the form loads use."""
        said, size = self.path_or_inline_dv, self.size_in_bytes + VECTOR_FRAME_BYTES
        match self.storage_type:
            case "i":
                return Vector(said)
            case "u":
                folder, name = said[:-UUID_DIGITS], uuid.UUID(bytes=from_z85(said[-UUID_DIGITS:]))
                place = f"{folder}/" if folder else ""
                file = f"{root}/{place}deletion_vector_{name}.bin"
            case "p":
                file = plain_path(said)
            case other:
                raise TableUnsupported(f"{root}: deletion vectors of the kind {other!r}")
        return Vector(file=file, offset=self.offset or 0, size=size)


class AddedFile(msgspec.Struct, frozen=True, rename="camel"):
    """A file that belongs to the table."""

    path: str
    size: int = 0
    partition_values: dict[str, str | None] = {}
    deletion_vector: DeletionVector | None = None


class RemovedFile(msgspec.Struct, frozen=True, rename="camel"):
    """A file that no longer belongs to it."""

    path: str
    deletion_vector: DeletionVector | None = None


class ReaderProtocol(msgspec.Struct, frozen=True, rename="camel"):
    """The requirements for readers."""

    min_reader_version: int = 1
    reader_features: list[str] | None = None


class TableMetadata(msgspec.Struct, frozen=True, rename="camel"):
    """The columns of the table."""

    schema_string: str
    configuration: dict[str, str | None] = {}


class Sidecar(msgspec.Struct, frozen=True, rename="camel"):
    """A file with more actions of a checkpoint."""

    path: str


class LogAction(msgspec.Struct, frozen=True, rename="camel"):
    """One line of the log; unused fields are left out."""

    add: AddedFile | None = None
    remove: RemovedFile | None = None
    protocol: ReaderProtocol | None = None
    meta_data: TableMetadata | None = None
    sidecar: Sidecar | None = None


ACTION = msgspec.json.Decoder(LogAction)


@dataclass(slots=True)
class _TableState:
    """The table after the actions seen so far."""

    root: str
    files: dict[tuple[str, str | None], AddedFile] = field(default_factory=dict)
    protocol: ReaderProtocol | None = None
    metadata: TableMetadata | None = None

    def apply(self, actions: Iterable[LogAction]) -> None:
        for action in actions:
            self.protocol = action.protocol or self.protocol
            self.metadata = action.meta_data or self.metadata
            if action.remove is not None:
                self.files.pop(_key(action.remove), None)
            if action.add is not None:
                self.files[_key(action.add)] = action.add


def _key(file: AddedFile | RemovedFile) -> tuple[str, str | None]:
    """A file with other deleted rows is a different key."""
    vector = file.deletion_vector
    if vector is None:
        return file.path, None
    return file.path, f"{vector.storage_type}{vector.path_or_inline_dv}@{vector.offset}"


def delta_parts(root: str, names: Iterable[str]) -> list[LakePart]:
    """The files of the newest version of a table; `names` are all paths below its folder."""
    state = _TableState(root)
    try:
        _replay(state, _Log.of(root, names))
    except (msgspec.MsgspecError, UnicodeDecodeError) as bad:
        raise InputInvalid(f"{root}: the log of the Delta table cannot be read: {bad}") from None
    if state.protocol is None or state.metadata is None:
        raise InputInvalid(f"{root}: the log of the Delta table names no protocol or no columns")
    columns = _columns(state.metadata, root)
    return [_part(root, add, columns) for add in state.files.values()]


@frozen
class _Log:
    """The files of the log to read."""

    folder: str
    checkpoint: tuple[str, ...]
    commits: tuple[str, ...]

    @classmethod
    def of(cls, root: str, names: Iterable[str]) -> _Log:
        own = [name.removeprefix(f"{LOG}/") for name in names if name.startswith(f"{LOG}/")]
        commits = {int(m[1]): m[0] for name in own if (m := COMMIT.fullmatch(name))}
        version, files = _newest_checkpoint(own)
        after = sorted(number for number in commits if number > version)
        expected = range(version + 1, version + 1 + len(after))
        if (not files and not after) or after != list(expected):
            raise InputInvalid(
                f"{root}: commits of the Delta table are missing from its log",
                details={"checkpoint": version, "commits": after[:10]},
            )
        folder = f"{root}/{LOG}"
        return cls(folder, files, tuple(commits[number] for number in after))


def _newest_checkpoint(names: list[str]) -> tuple[int, tuple[str, ...]]:
    """The newest complete checkpoint: its version and its files."""
    parts: dict[tuple[int, int], list[str]] = {}
    for name in names:
        if found := CHECKPOINT.fullmatch(name):
            parts.setdefault((int(found[1]), int(found[3] or 1)), []).append(name)
        elif found := CHECKPOINT_V2.fullmatch(name):
            parts[int(found[1]), 1] = [name]
    whole = [(version, files) for (version, count), files in parts.items() if len(files) == count]
    version, files = max(whole, default=(-1, []))
    return version, tuple(sorted(files))


def _replay(state: _TableState, log: _Log) -> None:
    for name in log.checkpoint:
        actions = list(_actions(f"{log.folder}/{name}"))
        _understood(actions, state.root)
        state.apply(actions)
        for action in actions:
            if action.sidecar is not None:
                state.apply(_actions(f"{log.folder}/_sidecars/{action.sidecar.path}"))
    for name in log.commits:
        actions = list(_actions(f"{log.folder}/{name}"))
        _understood(actions, state.root)
        # Apply a commit's removals first: it may add the same file with other deleted rows.
        state.apply(action for action in actions if action.add is None)
        state.apply(action for action in actions if action.add is not None)


def _actions(file: str) -> Iterator[LogAction]:
    if file.endswith(".json"):
        for line in read_bytes(file).splitlines():
            if line.strip():
                yield ACTION.decode(line)
        return
    table = parquet_table(file)
    known = [name for name in LogAction.__struct_encode_fields__ if name in table.column_names]
    for row in table.select(known).to_pylist(maps_as_pydicts="strict"):
        yield msgspec.convert(row, LogAction, strict=False)


def _understood(actions: Iterable[LogAction], root: str) -> None:
    for action in actions:
        asked = action.protocol
        if asked is None:
            continue
        features = set(asked.reader_features or ()) - FEATURES
        if asked.min_reader_version > VERSION_MAX:
            raise TableUnsupported(
                f"{root} needs readers of version {asked.min_reader_version} of Delta's protocol"
            )
        if asked.min_reader_version == VERSION_WITH_FEATURES and features:
            raise TableUnsupported(
                f"{root} needs {', '.join(sorted(features))} of Delta's protocol"
            )


# --- columns and values --------------------------------------------------------------------------------------------


@frozen
class _Columns:
    schema: pa.Schema
    sources: tuple[str | int, ...]
    physical: dict[str, str]  # the names partition values are listed under, by column


def _columns(metadata: TableMetadata, root: str) -> _Columns:
    fields = msgspec.json.decode(metadata.schema_string)["fields"]
    mapped = (metadata.configuration.get("delta.columnMapping.mode") or "none") != "none"
    ids = metadata.configuration.get("delta.columnMapping.mode") == "id"
    columns, sources, physical = [], [], {}
    for one in fields:
        name, given = one["name"], one.get("metadata") or {}
        stored = given.get("delta.columnMapping.physicalName", name) if mapped else name
        if mapped and not isinstance(one["type"], str) and _renamed(one["type"]):
            raise TableUnsupported(f"{root}: members of the column {name!r} were renamed")
        columns.append(pa.field(name, _arrow(one["type"])))
        sources.append(int(given["delta.columnMapping.id"]) if ids else stored)
        physical[name] = stored
    return _Columns(pa.schema(columns), tuple(sources), physical)


def _renamed(kind: Any) -> bool:
    """Whether a nested type has members with other names in files."""
    match kind:
        case {"fields": list(fields)}:
            stored = "delta.columnMapping.physicalName"
            return any(
                (f.get("metadata") or {}).get(stored, f["name"]) != f["name"] or _renamed(f["type"])
                for f in fields
            )
        case dict():
            return any(_renamed(value) for value in kind.values())
    return False


def _arrow(kind: Any) -> pa.DataType:
    """The Arrow type of a Delta type; None for nested ones, which stay as in the files."""
    if not isinstance(kind, str):
        return pa.null()
    if found := DECIMAL.fullmatch(kind):
        return pa.decimal128(int(found[1]), int(found[2]))
    return TYPES.get(kind, pa.null())


def _part(root: str, add: AddedFile, columns: _Columns) -> LakePart:
    constants = {}
    for column in columns.schema:
        stored = columns.physical[column.name]
        if stored in add.partition_values:
            constants[column.name] = _constant(add.partition_values[stored], column, root)
    vector = add.deletion_vector
    return LakePart(
        _place(root, add.path),
        add.size,
        kept_schema(columns.schema),
        columns.sources,
        kept_row(constants),
        () if vector is None else (vector.vector(root),),
    )


def _constant(text: str | None, column: pa.Field, root: str) -> pa.Scalar:
    """A partition value, which the log keeps as text; an empty one is a null."""
    kind = column.type
    if not text:
        return pa.scalar(None, kind)
    try:
        if pa.types.is_binary(kind):
            return pa.scalar(text.encode("latin-1"), kind)
        if pa.types.is_timestamp(kind) and kind.tz and not text.endswith("Z"):
            return pa.scalar(text + "Z").cast(kind)
        return pa.scalar(text).cast(kind)
    except (pa.ArrowException, UnicodeEncodeError):
        raise InputInvalid(f"{root}: {text!r} is not a valid {kind} for '{column.name}'") from None


def _place(root: str, path: str) -> str:
    """Paths are written as addresses: relative to the table, or whole."""
    return plain_path(path) if "://" in path or path.startswith("/") else f"{root}/{unquote(path)}"


def plain_path(path: str) -> str:
    """A path of this machine without `file:`, other addresses unchanged."""
    if path.startswith("file:"):
        return "/" + unquote(path.removeprefix("file:")).lstrip("/")
    return path
