"""Graphs stored by the omnigraph written in Rust: read, never written.

Its `__manifest` is a Lance table whose rows register the tables of the graph and say which version of each is in force;
a branch of the graph is a branch of that table. A stamp identifies the storage format:

| stamp | releases | the rows |
|---|---|---|
| 4 | 0.8 | tables by name; the newest version of each counts |
| 5, 6 | 0.9, 0.10 | tables by a number and its lifetime |
| 7 to 11 | 0.11 | the row written last counts; from 9 on, ids are in `__id`, `__src`, `__dst` |
| 12, 13 | between | one packed column; from 13 on, the schema is a row |
| 14 | 0.12, 0.13 | a table's row names the version in force |

From 10 on, a version may be a detached one. Anything else is refused, with advice to use an export.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Corrupt, GraphNotFound, Kind, OmnigraphError
from omnigraph.model.frozen import frozen
from omnigraph.storage.lance.columns import is_stored_blob
from omnigraph.storage.lance.failures import lance_errors
from omnigraph.storage.objects import Location, locate, open_objects

STAMP = b"omnigraph:internal_schema_version"
STAMPS = range(4, 15)
CLOCK_STAMP, PACKED_STAMP, CONTRACT_STAMP, CURRENT_STAMP = 7, 12, 13, 14
LAST_LINEAR_STAMP = 11
INCARNATION = re.compile(
    r"\.[0-9A-HJKMNP-TV-Z]{26}$"
)  # of a branch that was recreated under its name
RETIRED = "omnigraph.retired_manifest_branch"
INTERNAL = "__"
MANIFEST, VERSIONS = "__manifest", "_versions"
SCHEMA_FILE = "_schema.pg"
STAGED, LINEAR = "omnigraph.staged_version", "omnigraph.last_linear_version"
PACKED_FIELDS = (
    "location",
    "metadata",
    "table_key",
    "stable_table_id",
    "table_incarnation_id",
    "table_version",
    "table_branch",
    "row_count",
)
BATCH_ROWS = 8_192
SYSTEM = {"id": "id", "src": "from", "dst": "to"}


class RustGraphUnreadable(OmnigraphError):
    """This storage format of the omnigraph written in Rust cannot be read."""

    code, kind = "rust_graph_unreadable", Kind.INVALID
    default_help = (
        "Print its schema and records with the program that wrote it (`omnigraph schema show`, `omnigraph export`), "
        "and load them here."
    )


@frozen
class RustTable:
    """The version of a table that is in force on a branch."""

    key: str  # node:Type or edge:Type
    location: str
    version: int
    branch: str | None
    rows: int | None

    @property
    def type_name(self) -> str:
        return self.key.partition(":")[2]

    @property
    def is_edge(self) -> bool:
        return self.key.startswith("edge:")


@frozen
class RustState:
    """What one branch holds."""

    branch: str
    schema: str
    tables: tuple[RustTable, ...]


class RustGraph:
    """A graph folder of the omnigraph written in Rust."""

    def __init__(self, uri: str) -> None:
        self.place: Location = locate(uri)
        if VERSIONS not in open_objects(self.place).folders(MANIFEST):
            raise GraphNotFound(
                f"there is no graph of the omnigraph written in Rust at {self.place.uri}",
                help="Check the address: it is the folder that holds `__manifest`.",
                details={"uri": self.place.uri},
            )
        with lance_errors(f"opening the manifest of {uri}"):
            self._manifest = lance.dataset(self._address(MANIFEST), **self._options)
        self.stamp = self._stamp()

    @property
    def _options(self) -> dict[str, Any]:
        return {"storage_options": dict(self.place.options) or None}

    def _address(self, path: str) -> str:
        return f"{self.place.uri.rstrip('/')}/{path}"

    def _stamp(self) -> int:
        text = (self._manifest.schema.metadata or {}).get(STAMP, b"").decode()
        if not text.isdecimal() or int(text) not in STAMPS:
            known = f"{STAMPS[0]} to {STAMPS[-1]}"
            raise RustGraphUnreadable(
                f"the storage format of {self.place.uri} is {text or 'not stamped'}; {known} can be read",
                details={"uri": self.place.uri, "stamp": text},
            )
        return int(text)

    @cached_property
    def _refs(self) -> dict[str, str]:
        """The branches, and Lance's name for each."""
        found = {}
        for native, about in self._manifest.branches.list().items():
            name = INCARNATION.sub("", native)
            if RETIRED in (about.get("metadata") or {}) or name.startswith(INTERNAL):
                continue
            if name in found:
                raise RustGraphUnreadable(f"there are two branches called {name!r}")
            found[name] = native
        return found

    def branches(self) -> list[str]:
        """The names of the branches besides main."""
        return sorted(self._refs)

    def state(self, branch: str = "main") -> RustState:
        """The newest state of a branch."""
        with lance_errors(f"reading the manifest of branch {branch}"):
            manifest = self._manifest
            if branch != "main":
                manifest = manifest.checkout_version((self._refs[branch], None))
            rows = _logical(manifest.to_table()).to_pylist()
        return RustState(branch, self._schema(rows), tuple(self._tables(rows)))

    def _schema(self, rows: list[dict[str, Any]]) -> str:
        if self.stamp < CONTRACT_STAMP:
            text: bytes = open_objects(self.place).get(SCHEMA_FILE)
            return text.decode()
        found = [r["schema_source"] for r in rows if r["object_type"] == "schema_contract"]
        if len(found) != 1 or not found[0]:
            raise RustGraphUnreadable("the manifest holds no schema")
        return str(found[0])

    # --- which versions are in force -------------------------------------------------------------------------------

    def _tables(self, rows: list[dict[str, Any]]) -> Iterator[RustTable]:
        registered = {_identity(r): r for r in rows if r["object_type"] == "table"}
        if self.stamp >= CURRENT_STAMP:
            current = {i: r for i, r in registered.items() if r["table_version"] is not None}
        else:
            current = self._latest(rows)
        for identity, row in sorted(current.items(), key=lambda found: str(found[0])):
            known = registered.get(identity)
            if known is None or not known["location"]:
                raise RustGraphUnreadable(f"the manifest does not say where {row['table_key']} is")
            version = self._version(row)
            where = row["table_branch"]
            yield RustTable(known["table_key"], known["location"], version, where, row["row_count"])

    def _latest(self, rows: list[dict[str, Any]]) -> dict[Any, dict[str, Any]]:
        """The row in force of each table, unless the table was dropped after it."""
        found: dict[Any, dict[str, Any]] = {}
        dropped: dict[Any, int] = {}
        for row in rows:
            identity = _identity(row)
            if row["object_type"] == "table_version":
                if identity not in found or self._clock(found[identity]) < self._clock(row):
                    found[identity] = row
            elif row["object_type"] == "table_tombstone":
                dropped[identity] = max(dropped.get(identity, -1), self._clock(row))
        return {i: row for i, row in found.items() if dropped.get(i, -1) < self._clock(row)}

    def _clock(self, row: dict[str, Any]) -> int:
        if self.stamp < CLOCK_STAMP:
            return int(row["table_version"])
        return int(str(row["object_id"]).rpartition(":")[2])

    def _version(self, row: dict[str, Any]) -> int:
        """The Lance version: the published one, or the detached one it was staged as."""
        published, about = int(row["table_version"]), _about(row["metadata"])
        staged = about.get(STAGED)
        if staged is None:
            return published
        if self.stamp >= LAST_LINEAR_STAMP:
            return published if published <= int(about.get(LINEAR, 0)) else int(staged)
        linear = lance.dataset(self._address(row["location"] or ""), **self._options)
        return published if published <= linear.latest_version else int(staged)

    # --- rows --------------------------------------------------------------------------------------------------------

    def batches(self, table: RustTable) -> Iterator[pa.RecordBatch]:
        """The rows of a table in the form loads take; at least one batch, which may be empty."""
        with lance_errors(f"reading version {table.version} of {table.location}"):
            handle = lance.dataset(self._address(table.location), **self._options)
            if table.branch is not None:
                handle = handle.checkout_version((table.branch, table.version))
            elif handle.version != table.version:
                handle = handle.checkout_version(table.version)
            _refuse_outside_blobs(handle, table)
            reader = handle.scanner(batch_size=BATCH_ROWS, blob_handling="all_binary").to_reader()
            rows = 0
            for batch in reader:
                rows += batch.num_rows
                yield _as_loaded(batch)
            if not rows:
                empty = [pa.nulls(0, field.type) for field in reader.schema]
                yield _as_loaded(pa.RecordBatch.from_arrays(empty, schema=reader.schema))
        if table.rows is not None and rows != table.rows:
            message = f"{table.key} has {rows:,} rows, and its manifest says {table.rows:,}"
            raise Corrupt(message, details={"table": table.key})


def _identity(row: dict[str, Any]) -> Any:
    number = row.get("stable_table_id")
    return row["table_key"] if number is None else (number, row["table_incarnation_id"])


def _logical(rows: pa.Table) -> pa.Table:
    """The rows of a manifest with a column for each field, in any storage format."""
    if "record" not in rows.column_names:
        return rows
    record = rows["record"].combine_chunks()
    absent = pc.struct_field(record, "present")
    for bit, name in enumerate(PACKED_FIELDS):
        values = pc.struct_field(record, name)
        is_null = pc.not_equal(pc.bit_wise_and(absent, pa.scalar(1 << bit, pa.uint8())), 0)
        rows = rows.append_column(name, pc.if_else(is_null, None, values))
    return rows.drop_columns(["record"])


def _about(text: str | None) -> Mapping[str, Any]:
    """The version details of a row: keys of the row itself, or of the map it holds."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        raise RustGraphUnreadable("a row of the manifest cannot be read") from None
    inner = found.get("metadata")
    return {**(inner if isinstance(inner, dict) else {}), **found}


def _refuse_outside_blobs(handle: lance.LanceDataset, table: RustTable) -> None:
    """A blob stored as an external address would be read from wherever it points."""
    names = [field.name for field in handle.schema if is_stored_blob(field)]
    if not names:
        return
    for batch in handle.scanner(columns=names, blob_handling="blobs_descriptions").to_batches():
        for name in names:
            kinds = pc.struct_field(batch.column(name), "kind")
            if pc.any(pc.equal(kinds, 3)).as_py():
                message = f"{table.type_name}.{name} holds addresses of bytes outside the graph"
                raise RustGraphUnreadable(message)


def _as_loaded(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns, names = [], []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        plain = field.name.removeprefix("__")
        names.append(SYSTEM.get(plain, field.name))
        columns.append(_in_utc(column))
    return pa.RecordBatch.from_arrays(columns, names)


def _in_utc(column: pa.Array) -> pa.Array:
    """Times in our form; they are stored as milliseconds, in a type Arrow would truncate to days."""
    if pa.types.is_date64(column.type):
        return (
            column.view(pa.int64()).view(pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC"))
        )
    if pa.types.is_list(column.type) and pa.types.is_date64(column.type.value_type):
        held = _in_utc(column.values)
        return pa.ListArray.from_arrays(column.offsets, held, mask=column.is_null())
    return column
