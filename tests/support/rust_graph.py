"""Graph folders as the omnigraph written in Rust lays them out, made with Lance alone: no program of theirs is here.

What is written follows its descriptions of the storage formats: the rows of `__manifest`, the folders of tables,
branches of both, detached versions and packed rows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from lance.dataset import LanceOperation, Transaction

SCHEMA = """
node Person {
  name: String @key
  born: Date?
  seen: DateTime?
  photo: Blob?
  shape: Vector(2)?
  tags: [String]?
}
node Note { text: String }
edge Knows: Person -> Person { since: Date? }
edge Wrote: Person -> Note
"""
VECTOR = pa.list_(pa.float32(), 2)
COLUMNS: dict[str, dict[str, Any]] = {
    "node:Person": {
        "name": pa.string(),
        "born": pa.date32(),
        "photo": lance.blob_field("photo"),
        "seen": pa.date64(),
        "shape": VECTOR,
        "tags": pa.list_(pa.string()),
    },
    "node:Note": {"text": pa.string()},
    "edge:Knows": {"since": pa.date32()},
    "edge:Wrote": {},
}
FLAT = [
    ("object_id", pa.string()),
    ("object_type", pa.string()),
    ("location", pa.string()),
    ("metadata", pa.string()),
    ("base_objects", pa.list_(pa.string())),
    ("table_key", pa.string()),
    ("stable_table_id", pa.uint64()),
    ("table_incarnation_id", pa.uint64()),
    ("table_version", pa.uint64()),
    ("table_branch", pa.string()),
    ("row_count", pa.uint64()),
]
PACKED = ("location", "metadata", "table_key", "stable_table_id", "table_incarnation_id", "table_version",
          "table_branch", "row_count")  # fmt: skip
ULID = "01K5ZZZZZZZZZZZZZZZZZZZZZZ"
Rows = dict[str, list[dict[str, Any]]]


@dataclass
class RustFolder:
    """A graph folder at one of the storage formats, to which states are published branch by branch."""

    root: Path
    stamp: int
    schema: str = SCHEMA
    manifest_versions: int = 0
    tables: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)  # branch: key: row

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True)
        if self.stamp < 13:
            (self.root / "_schema.pg").write_text(self.schema)

    @property
    def system(self) -> tuple[str, str, str]:
        return ("__id", "__src", "__dst") if self.stamp >= 9 else ("id", "src", "dst")

    # --- tables ---

    def _schema_of(self, key: str) -> pa.Schema:
        names = self.system if key.startswith("edge:") else self.system[:1]
        fields = [pa.field(name, pa.string(), nullable=False) for name in names]
        for name, kind in COLUMNS[key].items():
            fields.append(kind if isinstance(kind, pa.Field) else pa.field(name, kind))
        return pa.schema(fields)

    def _rows(self, key: str, rows: list[dict[str, Any]]) -> pa.Table:
        schema = self._schema_of(key)
        spelled = dict(zip(("id", "src", "dst"), self.system, strict=True))
        held = [{spelled.get(n, n): v for n, v in row.items()} for row in rows]
        arrays = []
        for column in schema:
            values = [row.get(column.name) for row in held]
            is_blob = column.metadata is not None or isinstance(column.type, pa.ExtensionType)
            is_blob = is_blob or pa.types.is_struct(column.type)
            if is_blob:
                arrays.append(lance.blob_array(values))
            elif pa.types.is_date64(column.type):  # milliseconds, which Arrow would cut to days
                arrays.append(
                    pa.array(values, pa.timestamp("ms")).view(pa.int64()).view(pa.date64())
                )
            else:
                arrays.append(pa.array(values, column.type))
        return pa.Table.from_arrays(arrays, schema=schema)

    def publish(self, rows: Rows, branch: str | None = None, dropped: tuple[str, ...] = ()) -> None:
        """Bring rows of some types into force on a branch, each as a new version of its table."""
        known = self.tables.setdefault(branch or "main", dict(self.tables.get("main", {})))
        for key, held in rows.items():
            known[key] = self._write(key, held, known.get(key), branch)
        for key in dropped:
            known.pop(key)
        self._manifest(branch, known, dropped)

    def _write(
        self,
        key: str,
        rows: list[dict[str, Any]],
        before: dict[str, Any] | None,
        branch: str | None,
    ) -> dict[str, Any]:
        number = list(COLUMNS).index(key) + 1
        folder = "edges" if key.startswith("edge:") else "nodes"
        location = f"{folder}/{number:016x}-{100 + number:016x}"
        address, data = str(self.root / location), self._rows(key, rows)
        about: dict[str, Any] = {"manifest_path": "_versions"}
        native = None
        if before is None:
            version = lance.write_dataset(data, address, data_storage_version="2.2").version
            about["omnigraph.last_linear_version"] = str(version)
        elif self.stamp >= 10:
            version = before["table_version"] + 1
            about["omnigraph.last_linear_version"] = "1"
            about["omnigraph.staged_version"] = str(_detached(address, data))
        else:
            native = branch and f"fork.{branch}"
            handle = lance.dataset(address)
            if native and native not in handle.branches.list():
                handle = handle.create_branch(native)
            elif native:
                handle = handle.checkout_version((native, None))
            version = lance.write_dataset(data, handle, mode="overwrite").version
        if self.stamp < 10:
            about = {"manifest_path": "_versions"}
        return {
            "location": location, "table_key": key, "stable_table_id": number, "table_incarnation_id": 100 + number,
            "table_version": version, "table_branch": native, "row_count": len(rows), "metadata": json.dumps(about),
        }  # fmt: skip

    # --- the manifest ---

    def _manifest(
        self, branch: str | None, tables: dict[str, dict[str, Any]], dropped: tuple[str, ...]
    ) -> None:
        self.manifest_versions += 1
        place = str(self.root / "__manifest")
        rows = [row for table in tables.values() for row in self._registered(table)]
        rows += [row for key in dropped for row in self._dropped(key)]
        rows.append({"object_id": "graph_head:main", "object_type": "graph_head", "table_key": ""})
        found = self._stored(rows)
        if self.manifest_versions == 1:
            lance.write_dataset(found, place)
            return
        handle = lance.dataset(place)
        if branch is not None:
            native = f"{branch}.{ULID}" if self.stamp >= 8 else branch
            names = handle.branches.list()
            handle = (
                handle.checkout_version((native, None))
                if native in names
                else handle.create_branch(native)
            )
        lance.write_dataset(found, handle, mode="overwrite")

    def _registered(self, table: dict[str, Any]) -> list[dict[str, Any]]:
        identity = f"{table['stable_table_id']:016x}:{table['table_incarnation_id']:016x}"
        if self.stamp >= 14:
            return [{"object_id": f"table:{identity}", "object_type": "table", **table}]
        clock = self.manifest_versions if self.stamp >= 7 else table["table_version"]
        bare = {
            k: table[k]
            for k in ("location", "table_key", "stable_table_id", "table_incarnation_id")
        }
        row_id = f"table_version:{identity}"
        older = {
            **table,
            "object_id": f"{row_id}:{0:020}",
            "object_type": "table_version",
            "table_version": table["table_version"] - 1,
            "row_count": 0,
        }
        return [
            {"object_id": f"table:{identity}", "object_type": "table", **bare},
            {"object_id": f"{row_id}:{clock:020}", "object_type": "table_version", **table},
            *([older] if table["table_version"] > 1 else []),
        ]

    def _dropped(self, key: str) -> list[dict[str, Any]]:
        """A table that was there once, with the mark that it is gone."""
        number = list(COLUMNS).index(key) + 1
        base = {"table_key": key, "stable_table_id": number, "table_incarnation_id": 100 + number}
        if self.stamp >= 14:
            return [
                {"object_id": f"table:{number}", "object_type": "table", **base, "location": "gone"}
            ]
        identity = f"{number:016x}:{100 + number:016x}"
        gone = {**base, "location": "gone", "table_version": 1, "row_count": 0, "metadata": "{}"}
        return [
            {"object_id": f"table:{identity}", "object_type": "table", **base, "location": "gone"},
            {"object_id": f"table_version:{identity}:{1:020}", "object_type": "table_version", **gone},
            {"object_id": f"table_tombstone:{identity}:{9:020}", "object_type": "table_tombstone", **base,
             "table_version": 9},
        ]  # fmt: skip

    def _stored(self, rows: list[dict[str, Any]]) -> pa.Table:
        if self.stamp >= 13:
            contract = {"object_id": "schema", "object_type": "schema_contract", "table_key": ""}
            rows = [*rows, {**contract, "schema_source": self.schema}]
        stamp = {"omnigraph:internal_schema_version": str(self.stamp)}
        kinds = dict(FLAT)
        columns = {
            name: pa.array([r.get(name) for r in rows], kind) for name, kind in kinds.items()
        }
        if self.stamp < 12:
            return pa.table(columns).replace_schema_metadata(stamp)
        fills = {name: "" if kinds[name] == pa.string() else 0 for name in PACKED}
        records = [
            {**{n: fills[n] if r.get(n) is None else r[n] for n in PACKED},
             "present": sum(1 << bit for bit, n in enumerate(PACKED) if r.get(n) is None)}
            for r in rows
        ]  # fmt: skip
        shape = pa.struct([*((n, kinds[n]) for n in PACKED), ("present", pa.uint8())])
        made = {"object_id": columns["object_id"], "object_type": columns["object_type"]}
        made["record"] = pa.array(records, shape)
        made["schema_source"] = pa.array([r.get("schema_source") for r in rows], pa.large_string())
        return pa.table(made).replace_schema_metadata(stamp)


def _detached(address: str, data: pa.Table) -> int:
    """A version nobody finds unless it is named."""
    handle = lance.dataset(address)
    fragments = lance.fragment.write_fragments(data, handle, data_storage_version="2.2")
    operation = LanceOperation.Overwrite(data.schema, fragments)
    made = lance.LanceDataset.commit(handle, Transaction(handle.version, operation), detached=True)
    return int(made.version)
