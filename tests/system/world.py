"""The real system, driven by the steps of a program: the verbs of the model, through the door a step names."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import shutil
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pyarrow as pa

import omnigraph
from omnigraph.storage.lance import handles
from tests.system import doors
from tests.system.merging import Decided
from tests.system.model import Model
from tests.system.observe import SHARED_MEMORY, Shown
from tests.system.schema import State, Type, edited, text_of
from tests.system.values import stored

MADE_UP = re.compile(r"new:[^;]*;")


class World:
    """One graph, on a disk or in memory, and what of it has another name in the model."""

    def __init__(self, start: State, *, disk: bool) -> None:
        self.disk = disk
        shared = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
        self.folder = Path(tempfile.mkdtemp(prefix="system-", dir=shared))
        self.uri = str(self.folder / "graph") if disk else f"memory://{uuid.uuid4().hex}"
        self.graph: Any = omnigraph.init(self.uri, schema=text_of(start))
        self.ids: dict[str, str] = {}  # ids the model made up, and what they are called here
        self.commits: dict[str, str] = {"0": self.graph.log(limit=1)[0].id}
        self.clones = 0

    def close(self) -> None:
        forget_memory(self.uri)
        shutil.rmtree(self.folder, ignore_errors=True)

    def real(self, text: str) -> str:
        """An id of the model, as it is here."""
        return MADE_UP.sub(lambda found: self.ids.get(found[0], found[0]), text)

    def point(self, model: Model, at: str) -> str:
        """A point of the model, as it is called here."""
        name = normalize("NFC", at)
        return at if name in model.heads or name in model.tags or "~" in at else self.commits[at]

    # --- writing -----------------------------------------------------------------------------------------------------

    def load(
        self,
        model: Model,
        branch: str,
        mode: str,
        rows: Mapping[str, Sequence[Mapping[str, Any]]],
        shape: str = "rows",
        **more: Any,
    ) -> Any:
        given = {name: [self._renamed(row) for row in part] for name, part in rows.items()}
        source = SOURCES[shape](given, model.state(branch), self)
        return self.door(more).load(source, mode=mode, branch=branch, **_options(more))

    def _renamed(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {k: self.real(v) if k in ("id", "from", "to") else v for k, v in row.items()}

    def mutate(
        self,
        model: Model,
        branch: str,
        statements: Sequence[Sequence[Any]],
        if_commit: str | None = None,
        dry: bool = False,
        **more: Any,
    ) -> Any:
        text, params = self.mutation(model.state(branch), statements)
        options = _options(more) | ({"dry_run": True} if dry else {})
        if if_commit is not None:
            options["if_commit"] = self.commits[model.point(if_commit).label]
        return self.door(more).mutate(text, params, branch=branch, **options)

    def mutation(
        self, state: State, statements: Sequence[Sequence[Any]]
    ) -> tuple[str, dict[str, Any]]:
        """Statements as a text whose values are all parameters."""
        written = Written(self, state)
        body = " ".join(written.statement(*statement) for statement in statements)
        declared = ", ".join(f"${name}: {kind}" for name, kind in written.types.items())
        return f"query q({declared}) {{ {body} }}", written.params

    def block(self, model: Model, branch: str, parts: Sequence[Sequence[Any]], **more: Any) -> Any:
        state = model.state(branch)
        with self.door(more).branch(branch).write(**_options(more)) as writing:
            for verb, *rest in parts:
                if verb == "load":
                    given = {n: [self._renamed(r) for r in part] for n, part in rest[1].items()}
                    writing.load(given, mode=rest[0])
                else:
                    writing.mutate(*self.mutation(state, rest[0]))
        return writing

    def schema(
        self, model: Model, branch: str, edits: Sequence[Any], hard: bool = False, **more: Any
    ) -> Any:
        text = schema_after(model.state(branch), edits)
        return self.door(more).apply_schema(text, branch=branch, allow_data_loss=hard)

    # --- names -------------------------------------------------------------------------------------------------------

    def create_branch(self, model: Model, name: str, from_: str, **more: Any) -> Any:
        return self.door(more).create_branch(name, from_=self.point(model, from_))

    def delete_branch(self, model: Model, name: str, **more: Any) -> Any:
        return self.door(more).delete_branch(name)

    def tag(self, model: Model, name: str, at: str, **more: Any) -> Any:
        return self.door(more).tag(name, at=self.point(model, at))

    def delete_tag(self, model: Model, name: str, **more: Any) -> Any:
        return self.door(more).delete_tag(name)

    # --- histories ---------------------------------------------------------------------------------------------------

    def merge(self, model: Model, source: str, into: str, dry: bool = False, **more: Any) -> Any:
        return self.door(more).merge(source, into=into, dry_run=dry, **self._decided(more))

    def revert(self, model: Model, commit: str, branch: str, dry: bool = False, **more: Any) -> Any:
        at = self.commits[model.point(commit).label]
        return self.door(more).revert(at, branch=branch, dry_run=dry, **self._decided(more))

    def cherry_pick(
        self, model: Model, commit: str, branch: str, dry: bool = False, **more: Any
    ) -> Any:
        at = self.commits[model.point(commit).label]
        return self.door(more).cherry_pick(at, branch=branch, dry_run=dry, **self._decided(more))

    def reset(self, model: Model, to: str, branch: str, **more: Any) -> Any:
        return self.door(more).reset(self.point(model, to), branch=branch)

    def _decided(self, more: Mapping[str, Any]) -> dict[str, Any]:
        decided: Decided | None = more.get("decided")
        if decided is None:
            return {}
        resolutions = []
        for (type_name, id, name), choice in decided.rows.items():
            entry: dict[str, Any] = {"type": type_name, "id": self.real(id)}
            entry |= {"field": name} if name is not None else {}
            entry |= {"take": choice} if isinstance(choice, str) else {"value": choice[1]}
            resolutions.append(entry)
        return {"strategy": decided.everywhere, "resolutions": resolutions or None}

    # --- order -------------------------------------------------------------------------------------------------------

    def optimize(self, model: Model, branch: str, **more: Any) -> Any:
        return self.graph.optimize(branch)

    def cleanup(self, model: Model, keep: int, **more: Any) -> Any:
        return self.graph.cleanup(keep=keep)

    def reopen(self, model: Model, **more: Any) -> Any:
        self.graph = omnigraph.open(self.uri)

    def clone(self, model: Model, **more: Any) -> Any:
        """Go on with a copy of everything; the original is gone. A graph in memory cannot be copied."""
        if not self.disk:
            return
        self.clones += 1
        copy = self.folder / f"clone-{self.clones}"
        self.graph.clone(str(copy))
        shutil.rmtree(self.uri)
        self.uri = str(copy)
        self.graph = omnigraph.open(self.uri)

    def door(self, more: Mapping[str, Any]) -> Any:
        """The graph as a step wants to come to it."""
        match more.get("door"):
            case "server":
                return doors.served(self.graph, more["actor"])
            case "guarded":
                return doors.guarded(self.graph, more["actor"])
            case _:
                return self.graph

    # --- what only the real one knows --------------------------------------------------------------------------------

    def learn(self, state: State, found: Shown) -> None:
        """Find out what rows are called whose ids the model made up: those of the same content."""
        for kind in state.types.values():
            known = {self.real(id) for id in state.of(kind)}
            strange = {id: row for id, row in found.get(kind.name, {}).items() if id not in known}
            for id, row in state.of(kind).items():
                if MADE_UP.fullmatch(id) and id not in self.ids:
                    content = self._content(kind, row)
                    match = next((i for i, r in strange.items() if content == _cells(r)), None)
                    if match is not None:
                        self.ids[id] = match
                        del strange[match]

    def _content(self, kind: Type, row: Mapping[Any, Any]) -> dict[str, Any]:
        cells = {p.name: row[p.ident] for p in kind.props.values()}
        return _cells(cells | {side: self.real(row[side]) for side in kind.structure})


def _cells(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: stored(value) for name, value in row.items()}


def _options(more: Mapping[str, Any]) -> dict[str, Any]:
    options = {"engine": more["engine"]} if "engine" in more else {}
    return options | ({"idempotency_key": more["key"]} if more.get("key") else {})


def schema_after(state: State, edits: Sequence[Any]) -> str:
    """The text of a schema after edits, also where the system is going to refuse one of them."""
    from tests.system.schema import Refused
    from tests.system.unsupported import forced

    for edit in edits:
        try:
            state = edited(state, edit)
        except Refused:
            state = forced(state, edit)
    return text_of(state, edits)


def forget_memory(uri: str) -> None:
    """Graphs in memory stay for ever, unless somebody forgets them."""
    name = uri.removeprefix(handles.MEMORY).split("/")[0]
    if uri.startswith(handles.MEMORY):
        for kept in (handles._memory_sessions, handles._memory_tables):
            for key in [
                key for key in kept if key.removeprefix(handles.MEMORY).split("/")[0] == name
            ]:
                kept.pop(key, None)


# --- mutations as text -------------------------------------------------------------------------------------------


class Written:
    """A mutation being written down."""

    def __init__(self, world: World, state: State) -> None:
        self.world = world
        self.state = state
        self.types: dict[str, str] = {}
        self.params: dict[str, Any] = {}

    def statement(self, verb: str, type_name: str, *rest: Any) -> str:
        kind = self.state.called(type_name)
        match verb:
            case "insert":
                rows = ", ".join(f"{{ {self._assigned(kind, row)} }}" for row in rest[0])
                return f"insert {type_name} {rows}"
            case "update":
                where = self._where(kind, rest[1])
                return f"update {type_name} set {{ {self._assigned(kind, rest[0])} }} where {where}"  # noqa: S608
            case _:
                return f"delete {type_name} where {self._where(kind, rest[0])}"

    def _assigned(self, kind: Type, row: Mapping[str, Any]) -> str:
        return ", ".join(f"{name}: {self._param(kind, name, value)}" for name, value in row.items())

    def _where(self, kind: Type, where: Sequence[Any]) -> str:
        name, operator, value = where
        return f"{name} {operator}" + (
            "" if operator == "is null" else f" {self._param(kind, name, value)}"
        )

    def _param(self, kind: Type, name: str, value: Any) -> str:
        word = f"p{len(self.params)}"
        if name in ("id", "from", "to"):
            self.types[word], self.params[word] = "String", self.world.real(value)
        else:
            base = kind.called(name).type
            self.types[word] = ("String" if base == "enum" else base) + "?"
            self.params[word] = as_json(value)
        return f"${word}"


def as_json(value: Any) -> Any:
    """A value as parameters and records hold it."""
    match value:
        case datetime():
            return f"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03d}Z".rjust(24, "0")
        case date():
            return value.isoformat()
        case bytes():
            return "base64:" + base64.b64encode(value).decode()
        case list():
            return [as_json(member) for member in value]
        case _:
            return value


# --- sources of loads --------------------------------------------------------------------------------------------


def _as_rows(rows: Any, state: State, world: World) -> Any:
    return rows


def _as_records(rows: Any, state: State, world: World) -> Any:
    """An iterable of records, as an export writes them."""
    records = []
    for name, part in rows.items():
        for row in part:
            data = {k: as_json(v) for k, v in row.items() if k not in ("from", "to")}
            ends = {k: row[k] for k in ("from", "to") if k in row and state.called(name).is_edge}
            records.append(
                {"edge" if state.called(name).is_edge else "type": name, **ends, "data": data}
            )
    return records


def _as_file(rows: Any, state: State, world: World) -> Any:
    """The same in a file, which is named after what is in it."""
    lines = [json.dumps(_named(r), ensure_ascii=False) for r in _as_records(rows, state, world)]
    text = "\n".join(lines) + "\n"
    path = world.folder / f"{hashlib.sha256(text.encode()).hexdigest()}.ndjson"
    path.write_text(text)
    return str(path)


def _named(value: Any) -> Any:
    """Numbers JSON has no way to write, by their names."""
    match value:
        case dict():
            return {name: _named(member) for name, member in value.items()}
        case list():
            return [_named(member) for member in value]
        case float() if math.isnan(value):
            return "NaN"
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case _:
            return value


def _as_arrow(rows: Any, state: State, world: World) -> Any:
    """Arrow tables of those types whose rows all name the same fields."""
    return {name: _arrow_table(part, state.called(name)) for name, part in rows.items()}


def _arrow_table(rows: Any, kind: Type) -> Any:
    fields = {tuple(row) for row in rows}
    types = {name: pa.string() for name in ("id", "from", "to")}
    types |= {p.name: ARROW[p.type] for p in kind.props.values() if p.type in ARROW}
    if len(fields) != 1 or not rows[0] or any(name not in types for name in rows[0]):
        return rows
    return pa.table({name: pa.array([row[name] for row in rows], types[name]) for name in rows[0]})


ARROW = {
    "String": pa.string(),
    "enum": pa.string(),
    "Bool": pa.bool_(),
    "I32": pa.int32(),
    "I64": pa.int64(),
    "U32": pa.uint32(),
    "U64": pa.uint64(),
    "F32": pa.float32(),
    "F64": pa.float64(),
    "Date": pa.date32(),
    "DateTime": pa.timestamp("ms", "UTC"),
    "[String]": pa.list_(pa.string()),
    "[I64]": pa.list_(pa.int64()),
    "[F64]": pa.list_(pa.float64()),
}
SOURCES = {"rows": _as_rows, "records": _as_records, "file": _as_file, "arrow": _as_arrow}
