"""Write a state of a graph to files: NDJSON that loads again, Parquet, Arrow or CSV.

Every part is written under a temporary name, and gets its own when it is whole; the list of parts comes last. So
after an interruption, no incomplete file looks complete, and attempts to write one part on several machines do not mix.
On an object store, a part is sent when it is whole.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core import layout
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import AddressInvalid, Kind, OmnigraphError, OptionInvalid, TableNotFound
from omnigraph.model.catalog import EdgeType, NodeOrEdgeType
from omnigraph.model.frozen import frozen
from omnigraph.read.ndjson import (
    FORMS,
    in_utc,
    moment,
    not_finite,
    quoted,
    record_lines,
    worded,
)
from omnigraph.storage.objects import LargeObjects, locate, open_remote
from omnigraph.storage.tables import ADDRESS

FORMATS = (*FORMS, "parquet", "arrow", "csv")
MANIFEST = "export.json"
PARTIAL = ".partial"
BATCH_ROWS = 65_536
ORDERED_ROWS = 8_192  # fetched at a time, from any place in the table
PART_ROWS = 1 << 20  # fragments are combined up to this


@frozen
class ExportPart:
    """One file of an export."""

    file: str
    type_name: str
    rows: int
    bytes: int
    sha256: str


@frozen
class Exported:
    """What was written, and of which commit."""

    commit: str
    format: str
    parts: tuple[ExportPart, ...]

    @property
    def rows(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for part in self.parts:
            found[part.type_name] = found.get(part.type_name, 0) + part.rows
        return found

    def to_json(self) -> dict[str, Any]:
        built: dict[str, Any] = msgspec.to_builtins(self)
        return built


def export(
    snapshot: Snapshot,
    dest: str | os.PathLike[str],
    format: str = "ndjson",
    types: Sequence[str] | None = None,
    order: str | None = None,
) -> Exported:
    """Write each type to a separate file in the folder `dest`; with order "id", rows come by their ids."""
    check_order(order)
    check_format(format)
    folder = ExportFolder.of(dest)
    chosen = chosen_types(snapshot, types)
    parts = tuple(write_part(snapshot, kind, folder, format, order=order) for kind in chosen)
    return folder.finish(Exported(snapshot.commit_id, format, parts))


class FolderNotShared(OmnigraphError):
    """The files of an export were written to local folders of other machines."""

    code, kind = "export_folder_not_shared", Kind.INVALID
    default_help = (
        "Export to an s3:// address or a folder all machines share, or use engine='local'."
    )


@frozen
class ExportFolder:
    """Where an export goes: a folder of this machine, or an address in an object store."""

    address: str
    remote: bool = False

    @classmethod
    def of(cls, dest: str | os.PathLike[str]) -> ExportFolder:
        """The folder a caller names."""
        place = locate(dest)
        if place.scheme == "memory":
            raise AddressInvalid(f"{place.uri} cannot hold files; export to a folder or s3://…")
        return cls(place.uri, place.scheme != "file")

    @contextmanager
    def file(self, name: str) -> Iterator[Path]:
        """A path of this machine to write a file to; the file gets its name once it is whole."""
        if not self.remote:
            folder = Path(self.address)
            folder.mkdir(parents=True, exist_ok=True)  # a task may run on another machine
            path = folder / f".{name}.{secrets.token_hex(8)}{PARTIAL}"
            try:
                yield path
                with path.open("rb+") as file:
                    os.fsync(file.fileno())
                path.replace(folder / name)
            finally:
                path.unlink(missing_ok=True)
            return
        with tempfile.TemporaryDirectory(prefix="omnigraph-export-") as held:
            path = Path(held, name)
            yield path
            store, key = open_remote(f"{self.address}/{name}")
            store.put_file(key, path)

    def finish(self, done: Exported) -> Exported:
        """Write the list of parts, which marks the export complete; a missing part is an error."""
        missing = [
            p for p in done.parts if not self.remote and not Path(self.address, p.file).exists()
        ]
        if missing:
            raise FolderNotShared(
                f"{missing[0].file} is not in {self.address}: the task that wrote it runs on another machine",
                details={"folder": self.address, "missing": [part.file for part in missing]},
            )
        with self.file(MANIFEST) as path:
            path.write_bytes(msgspec.json.format(msgspec.json.encode(done), indent=2))
        self._sweep(done)
        return done

    def _sweep(self, done: Exported) -> None:
        """Delete what attempts that died have left of these parts."""
        for part in () if self.remote else done.parts:
            for left in Path(self.address).glob(f".{part.file}.*{PARTIAL}"):
                left.unlink(missing_ok=True)


def check_format(format: str) -> None:
    """Refuse an unknown format."""
    if format not in FORMATS:
        raise OptionInvalid(f"format is one of {', '.join(FORMATS)}, not {format!r}")


def ending(format: str) -> str:
    """The extension of its files; all forms of NDJSON share one."""
    return "ndjson" if format in FORMS else format


def check_order(order: str | None) -> None:
    """Refuse an unknown order: rows come as stored, or by their ids."""
    if order not in (None, "id"):
        raise OptionInvalid(f"order must be 'id' or None, not {order!r}")


def stream(
    snapshot: Snapshot,
    types: Sequence[str] | None = None,
    order: str | None = None,
    format: str = "ndjson",
) -> Iterator[bytes]:
    """The NDJSON records of all types, nodes first, as blocks of whole lines."""
    for kind in chosen_types(snapshot, types):
        yield from record_lines(kind, _rows(snapshot, kind, order), FORMS[format])


def batches(
    snapshot: Snapshot, kind: NodeOrEdgeType, order: str | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of one type under the names loads use; always at least one batch."""
    return _plain(kind, _rows(snapshot, kind, order))


def _rows(
    snapshot: Snapshot,
    kind: NodeOrEdgeType,
    order: str | None,
    fragments: Sequence[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a type, or of some of its fragments. In the order of ids, these are held in memory."""
    table, columns = snapshot.table_of(kind), _columns(kind)
    if order is None:
        yield from table.batches(columns, batch_rows=BATCH_ROWS, fragments=fragments)
        return
    found = table.scan(["id"], with_address=True)
    places = found[ADDRESS].combine_chunks().take(pc.sort_indices(found["id"]))
    for start in range(0, len(places), ORDERED_ROWS):
        rows = table.take(places.slice(start, ORDERED_ROWS), columns)
        yield from rows.combine_chunks().to_batches()


def chosen_types(snapshot: Snapshot, names: Sequence[str] | None) -> list[NodeOrEdgeType]:
    """The types to write, nodes before edges."""
    known = list(snapshot.catalog.entities())
    if names is None:
        return known
    unknown = set(names) - {kind.name for kind in known}
    if unknown:
        raise TableNotFound(f"the graph has no type {', '.join(sorted(unknown))}")
    return [kind for kind in known if kind.name in names]


def _columns(kind: NodeOrEdgeType) -> list[str]:
    ends = ["src", "dst"] if isinstance(kind, EdgeType) else []
    return ["id", *ends, *kind.properties]


def shares(snapshot: Snapshot, kind: NodeOrEdgeType) -> Iterator[tuple[int, ...]]:
    """The fragments of a type in groups of about `PART_ROWS` rows; at least one, so that every type has a file."""
    held: list[int] = []
    rows = given = 0
    for info in snapshot.table_of(kind).fragments():
        held.append(info.fragment_id)
        rows += info.physical_rows - info.deleted_rows
        if rows >= PART_ROWS:
            yield tuple(held)
            held, rows, given = [], 0, given + 1
    if held or not given:
        yield tuple(held)


def write_part(
    snapshot: Snapshot,
    kind: NodeOrEdgeType,
    folder: ExportFolder,
    format: str,
    fragments: Sequence[int] | None = None,
    number: int | None = None,
    order: str | None = None,
) -> ExportPart:
    """Write the rows of a type to a file: all of them, or those of some fragments as a numbered part."""
    part = "" if number is None else f"-{number:05}"
    name = f"{kind.kind}-{kind.name}{part}.{ending(format)}"
    counted = _Counted(_rows(snapshot, kind, order, fragments))
    with folder.file(name) as path:
        if format in FORMS:
            size, digest = _lines_file(path, record_lines(kind, counted, FORMS[format]))
        else:
            size, digest = _table_file(path, _plain(kind, counted), format)
    return ExportPart(name, kind.name, counted.rows, size, digest)


@dataclass(slots=True)
class _Counted:
    """Batches, counting their rows."""

    batches: Iterator[pa.RecordBatch]
    rows: int = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self.batches:
            self.rows += batch.num_rows
            yield batch


# --- files ---------------------------------------------------------------------------------------------------------


def _lines_file(path: Path, blocks: Iterable[bytes]) -> tuple[int, str]:
    """Write a file; its size and checksum."""
    digest, size = hashlib.sha256(), 0
    with path.open("wb") as file:
        for block in blocks:
            file.write(block)
            digest.update(block)
            size += len(block)
    return size, digest.hexdigest()


def _table_file(path: Path, batches: Iterable[pa.RecordBatch], format: str) -> tuple[int, str]:
    with path.open("wb") as file:
        write_table(file, batches, format)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return file.tell(), digest


def write_table(file: IO[bytes], batches: Iterable[pa.RecordBatch], format: str) -> None:
    """Rows as a file of Parquet, CSV or Arrow; there is at least one batch, which may be empty."""
    writer: Any = None
    for batch in _flat(batches) if format == "csv" else batches:
        if writer is None:
            writer = _writer(file, batch.schema, format)
        writer.write_batch(batch)
    if writer is not None:
        writer.close()


def _writer(file: IO[bytes], schema: pa.Schema, format: str) -> Any:
    if format == "parquet":
        from pyarrow import parquet

        return parquet.ParquetWriter(file, schema, compression="zstd")
    if format == "csv":
        from pyarrow import csv

        return csv.CSVWriter(file, schema)
    return pa.ipc.new_file(file, schema)


def _plain(kind: NodeOrEdgeType, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches under the names loads use: `from` and `to` instead of `src` and `dst`. Always at least one."""
    names = [{"src": "from", "dst": "to"}.get(n, n) for n in _columns(kind)]
    seen = False
    for batch in batches:
        seen = True
        yield batch.rename_columns(names)
    if not seen:
        from omnigraph.model.columns import arrow_schema

        empty = arrow_schema(kind).empty_table().select(_columns(kind)).rename_columns(names)
        yield pa.RecordBatch.from_arrays(
            [c.combine_chunks() for c in empty.columns], schema=empty.schema
        )


def _flat(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches whose lists and bytes are text, as CSV wants them: JSON arrays and `base64:` values."""
    import duckdb

    with duckdb.connect() as engine:
        for batch in batches:
            engine.register("batch", in_utc(batch))
            words = not_finite(batch)
            cells = (_cell(f, f.name in words) for f in batch.schema)
            columns = ", ".join(
                f"{cell} as {quoted(f.name)}" for cell, f in zip(cells, batch.schema, strict=True)
            )
            flat = engine.sql(f"select {columns} from batch").to_arrow_table()  # noqa: S608
            yield from flat.combine_chunks().to_batches() or flat.schema.empty_table().to_batches()


def _cell(field: pa.Field, in_words: bool) -> str:
    name, kind = quoted(field.name), field.type
    if pa.types.is_large_binary(kind) or pa.types.is_binary(kind):
        return f"'base64:' || base64({name})"
    if pa.types.is_timestamp(kind):
        return moment(name)
    if pa.types.is_nested(kind):
        return f"to_json({worded(field.name, True) if in_words else name})::varchar"
    return name


def export_parts(
    repo: Repository,
    snapshot: Snapshot,
    job: str,
    format: str,
    kinds: Sequence[NodeOrEdgeType],
    progress: Callable[[int, int], None],
) -> tuple[ExportPart, ...]:
    """Write each type in parts of about a million rows. `progress` gets the number done, and may raise."""
    wanted = [(kind, list(shares(snapshot, kind))) for kind in kinds]
    total, found = sum(len(groups) for _, groups in wanted), []
    objects = cast(LargeObjects, repo.objects)
    progress(0, total)
    with tempfile.TemporaryDirectory(prefix="omnigraph-export-") as folder:
        for kind, groups in wanted:
            for number, fragments in enumerate(groups):
                place = number if len(groups) > 1 else None
                kept = ExportFolder(folder)
                part = write_part(snapshot, kind, kept, format, fragments or None, place)
                file = Path(folder, part.file)
                objects.put_file(f"{layout.export_folder(job)}/{part.file}", file)
                file.unlink()
                found.append(part)
                progress(len(found), total)
    return tuple(found)
