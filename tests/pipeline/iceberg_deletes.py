"""Deletes of an Iceberg table as engines write them that merge on read: pyiceberg writes none of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

FILE_PATH_ID, POSITION_ID = 2147483546, 2147483545
POSITION_DELETES, EQUALITY_DELETES = 1, 2
ADDED, DELETES = 1, 1


def _local(address: str) -> Path:
    return Path(str(address).removeprefix("file://"))


def _read(path: Path) -> tuple[list[Any], Any, dict[str, str]]:
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        kept = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
        return list(reader), reader.writer_schema, kept


def _write(path: Path, rows: Sequence[Any], schema: Any, metadata: Mapping[str, str]) -> None:
    with path.open("wb") as file:
        fastavro.writer(file, schema, rows, metadata=dict(metadata))


def _field(name: str, kind: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, kind, metadata={b"PARQUET:field_id": str(number).encode()})


def with_deletes(table: Any, positions: Sequence[int], equal: Mapping[str, Sequence[int]]) -> str:
    """One more snapshot that deletes rows of the only data file by position and by value; its metadata file."""
    metadata_file = _local(table.metadata_location)
    metadata = json.loads(metadata_file.read_text())
    snapshot = metadata["snapshots"][-1]
    list_rows, list_schema, list_kept = _read(_local(snapshot["manifest-list"]))
    manifest = _local(list_rows[0]["manifest_path"])
    (entry,), entry_schema, entry_kept = _read(manifest)
    folder = manifest.parent
    data_path, sequence = entry["data_file"]["file_path"], metadata["last-sequence-number"] + 1

    schema = pa.schema(
        [_field("file_path", pa.string(), FILE_PATH_ID), _field("pos", pa.int64(), POSITION_ID)]
    )
    rows = pa.table([[data_path] * len(positions), list(positions)], schema=schema)
    pq.write_table(rows, folder / "positions.parquet")
    (name, values), *_ = equal.items()
    number = table.schema().find_field(name).field_id
    pq.write_table(
        pa.table([list(values)], schema=pa.schema([_field(name, pa.int64(), number)])),
        folder / "equal.parquet",
    )
    entries = [
        _entry(entry, folder / "positions.parquet", POSITION_DELETES, None),
        _entry(entry, folder / "equal.parquet", EQUALITY_DELETES, [number]),
    ]
    deletes = folder / "deletes-m0.avro"
    _write(deletes, entries, entry_schema, {**entry_kept, "content": "deletes"})
    told = {**list_rows[0], "manifest_path": str(deletes), "content": DELETES}
    told |= {"sequence_number": sequence, "min_sequence_number": sequence}
    listing = folder / "snap-deletes.avro"
    _write(listing, [*list_rows, told], list_schema, list_kept)
    newer = {**snapshot, "snapshot-id": 77, "sequence-number": sequence}
    newer |= {"manifest-list": str(listing), "parent-snapshot-id": snapshot["snapshot-id"]}
    metadata |= {"current-snapshot-id": 77, "last-sequence-number": sequence}
    metadata["snapshots"].append(newer)
    made = folder / "00099-00000000-0000-0000-0000-000000000000.metadata.json"
    made.write_text(json.dumps(metadata))
    return str(made)


def _entry(entry: Any, file: Path, content: int, ids: list[int] | None) -> Any:
    described = {**entry["data_file"], "content": content, "file_path": str(file)}
    described |= {"file_size_in_bytes": file.stat().st_size, "equality_ids": ids}
    described |= {"lower_bounds": None, "upper_bounds": None}
    return {**entry, "status": ADDED, "snapshot_id": 77, "sequence_number": None} | {
        "file_sequence_number": None,
        "data_file": described,
    }
