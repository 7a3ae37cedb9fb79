"""Questions to a real graph whose answers are whole states, asked in every way there is.

Each takes anything with the verbs of a graph and a `Shape`, which says what to ask for, and answers with plain
dictionaries: by type name and id, the cells by name. They run in this process and in ones that just started.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import lance

from omnigraph.core.snapshot import table_ref
from tests.system.schema import State, Type

Shown = dict[str, dict[str, dict[str, Any]]]  # type name, id, cell


@dataclass(frozen=True, slots=True)
class Columns:
    """What a type consists of."""

    name: str
    source: str | None  # the node type an edge leaves
    plain: tuple[str, ...]
    blobs: tuple[str, ...]
    types: Mapping[str, str]

    @property
    def is_edge(self) -> bool:
        return self.source is not None


Shape = tuple[Columns, ...]


def shape_of(state: State) -> Shape:
    """What a state has to consist of."""
    return tuple(_columns(kind, state) for kind in state.types.values())


def _columns(kind: Type, state: State) -> Columns:
    props = sorted(kind.props.values(), key=lambda p: p.name)
    return Columns(
        kind.name,
        state.types[kind.ends[0]].name if kind.ends else None,
        tuple(p.name for p in props if p.type != "Blob"),
        tuple(p.name for p in props if p.type == "Blob"),
        {p.name: p.text for p in props},
    )


def shape_in(graph: Any, at: str) -> Shape:
    """What a state says itself that it consists of."""
    catalog = graph.snapshot(at=at).catalog
    return tuple(
        Columns(
            kind.name,
            getattr(kind, "from_type", None),
            tuple(n for n, p in kind.properties.items() if not p.type.is_blob),
            tuple(n for n, p in kind.properties.items() if p.type.is_blob),
            {n: str(p.type) for n, p in kind.properties.items()},
        )
        for kind in catalog.entities()
    )


def shown(state: State, real: Callable[[str], str]) -> Shown:
    """What a state has to show, in the ids of the real graph."""
    return {
        kind.name: {
            real(id): {
                **{side: real(row[side]) for side in kind.structure},
                **{p.name: row[p.ident] for p in kind.props.values()},
            }
            for id, row in state.of(kind).items()
        }
        for kind in state.types.values()
    }


# --- asking ------------------------------------------------------------------------------------------------------


def by_query(graph: Any, at: str, shape: Shape) -> Shown:
    """Every type by a query of its own; blobs one by one."""
    return {one.name: _queried(graph, at, one) for one in shape}


def _queried(graph: Any, at: str, one: Columns) -> dict[str, dict[str, Any]]:
    rows = graph.query(query_text(one), at=at).rows
    found = {}
    for row in rows:
        id = row.pop("id")
        assert id not in found, f"{one.name} {id!r} is there twice"
        found[id] = {name.removeprefix("c_"): value for name, value in row.items()}
        for name in one.blobs:
            found[id][name] = blob(graph, at, one.name, id, name)
    return found


def query_text(one: Columns) -> str:
    cells = ", ".join(f"$x.{name} as c_{name}" for name in one.plain)
    if one.is_edge:
        edge = one.name[0].lower() + one.name[1:]
        pattern, ends = f"$a: {one.source} $a $x:{edge} $b", ", $x.from as src, $x.to as dst"
    else:
        pattern, ends = f"$x: {one.name}", ""
    return f"query q() {{ match {{ {pattern} }} return {{ $x.id as id{ends}{', ' if cells else ''}{cells} }} }}"


def blob(graph: Any, at: str, type_name: str, id: str, name: str) -> bytes | None:
    from omnigraph.read.blobs import BlobNotFound

    try:
        return bytes(graph.blob(type_name, id, name, at=at).read())
    except BlobNotFound:
        return None


def by_tables(graph: Any, at: str, shape: Shape) -> Shown:
    """The Lance tables at the versions the commit names, opened without any of our code; in memory with it."""
    snapshot = graph.snapshot(at=at)
    found: Shown = {}
    for entry in snapshot.commit.tables.values():
        place = f"{snapshot.root.removeprefix('file://')}/{entry.path}"
        table: Any
        if snapshot.root.startswith("memory:"):
            table = snapshot.tables.open(table_ref(entry))
        else:
            table = lance.dataset(place, version=int(entry.version), session=lance.Session())
        blobs = next((c.blobs for c in shape if c.name == entry.type_name), ())
        names = [name for name in table.schema.names if name not in blobs]
        ours = hasattr(table, "deleted_rows")
        rows = (table.scan(names) if ours else table.to_table(columns=names)).to_pylist()
        found[entry.type_name] = {row.pop("id"): row for row in rows}
        assert len(found[entry.type_name]) == len(rows), (
            f"an id of {entry.type_name} is there twice"
        )
        for id, row in found[entry.type_name].items():
            for name in blobs:
                row[name] = blob(graph, at, entry.type_name, id, name)
    return found


def by_export(graph: Any, at: str, shape: Shape) -> Shown:
    """An export as NDJSON, read back as a load would."""
    folder = Path(
        tempfile.mkdtemp(prefix="export-", dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None)
    )
    try:
        graph.export(folder, at=at)
        files = sorted(folder.glob("*.ndjson"))
        records = [
            json.loads(line) for file in files for line in file.read_text().split("\n") if line
        ]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return read_records(records, shape)


SHARED_MEMORY = Path("/dev/shm")


def read_records(records: list[dict[str, Any]], shape: Shape) -> Shown:
    """Records as an export writes them."""
    from omnigraph.model.keys import canonical_text  # noqa: F401  ids of keyed rows may be left out

    found: Shown = {one.name: {} for one in shape}
    columns = {one.name: one for one in shape}
    for record in records:
        name = record.get("type") or record["edge"]
        data = dict(record.get("data", {}))
        id = record.get("id", data.pop("id", None))
        row = {n: parsed(data.get(n), t) for n, t in columns[name].types.items()}
        if "edge" in record:
            row |= {"src": record["from"], "dst": record["to"]}
        found[name][id if id is not None else f"row {len(found[name])}"] = row
    return found


def parsed(value: Any, type_text: str) -> Any:
    """A value of a record, as the property holds it."""
    base = type_text.removesuffix("?")
    if value is None:
        return None
    if base.startswith("["):
        return [parsed(member, base[1:-1]) for member in value]
    if base in ("F64", "F32"):
        return float(value)
    if base in ("U64", "I64", "U32", "I32"):
        return int(value)
    if base == "Date":
        return date.fromisoformat(value)
    if base == "DateTime":
        return datetime.fromisoformat(value.replace("Z", "+00:00")).astimezone(UTC)
    if base == "Blob":
        import base64

        return base64.b64decode(value.removeprefix("base64:"))
    if base.startswith("Vector"):
        return [float(member) for member in value]
    return value


def schema_shown(graph: Any, at: str) -> dict[str, dict[str, str]]:
    """The properties and their types, by type name, from the text of the schema in force."""
    from omnigraph.lang.schema import compile_schema

    ir = compile_schema(graph.schema(at=at))
    return {
        kind.name: {name: str(prop.type) for name, prop in kind.properties.items()}
        for word, kind in ir.types()
        if word != "interface"
    }


WAYS: dict[str, Callable[[Any, str, Shape], Shown]] = {
    "query": by_query,
    "tables": by_tables,
    "export": by_export,
}
