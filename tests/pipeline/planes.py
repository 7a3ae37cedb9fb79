"""Both planes of a load on the same graph and the same input."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph import Graph, OmnigraphError
from omnigraph.model.limits import DEFAULT, Limits

MADE_UP = re.compile("'[0-9A-HJKMNP-TV-Z]{26}'")
SCHEMA = """
node Person {
    email: String @key
    name: String
    age: I32?
    level: enum(junior, senior)?
    nick: String? @unique
    joined: DateTime?
    note: String? @default("new")
    @range(age, 0..150)
    @check(email, "^[^@]+@[^@]+$")
}
node City { name: String @key  size: U64? }
node Note { text: String }
edge Knows: Person -> Person { since: I32? @range(since, 1900..2100) }
edge LivesIn: Person -> City @card(0..1)
edge Rates: Person -> City { stars: I32  @key(src, dst) }
"""

BASE = [
    {"type": "Person", "data": {"email": "ada@x", "name": "Ada", "age": 36, "nick": "a"}},
    {"type": "Person", "data": {"email": "bob@x", "name": "Bob", "level": "senior"}},
    {"type": "City", "data": {"name": "Oslo", "size": 700_000}},
    {"type": "City", "data": {"name": "Rome"}},
    {"edge": "LivesIn", "from": "ada@x", "to": "Oslo", "data": {}},
    {"edge": "Rates", "from": "ada@x", "to": "Oslo", "data": {"stars": 4}},
]


def person(email: str, **more: Any) -> dict[str, Any]:
    """A record of a person."""
    return {"type": "Person", "data": {"email": email, "name": email.upper(), **more}}


def edge(kind: str, source: str, target: str, **data: Any) -> dict[str, Any]:
    """A record of an edge."""
    return {"edge": kind, "from": source, "to": target, "data": data}


def write_lines(path: Path, records: Iterable[dict[str, Any] | str]) -> Path:
    """A file of records; texts are written as they are."""
    lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a load ended: what was refused, or what is there then."""

    error: str | None
    message: str
    violations: list[dict[str, Any]]
    more: bool
    state: dict[str, list[dict[str, Any]]]
    counts: tuple[Any, ...]


def new_graph(folder: Path, engine: str, limits: Limits = DEFAULT) -> Graph:
    """A graph with the base rows."""
    graph = omnigraph.init(folder / f"graph-{engine}", schema=SCHEMA, limits=limits)
    graph.load(BASE, mode="append", engine="local")
    return graph


def run(
    folder: Path,
    engine: str,
    source: Any,
    mode: str,
    *,
    limits: Limits = DEFAULT,
    **options: Any,
) -> Outcome:
    """Load a source into a fresh graph with the base rows, by one engine."""
    graph = new_graph(folder, engine, limits)
    before = graph.log()[0].id
    try:
        result = graph.load(source, mode=mode, engine=engine, **options)
    except OmnigraphError as error:
        assert graph.log()[0].id == before, "something was published"
        found = [comparable(v) for v in error.details.get("violations", [])]
        return Outcome(
            error.code, error.message, found, bool(error.details.get("more")), state_of(graph), ()
        )
    assert result.engine == engine
    counts = (result.nodes, result.edges, result.new_each_time, result.rows)
    return Outcome(None, "", [], False, state_of(graph), counts)


def comparable(violation: dict[str, Any]) -> dict[str, Any]:
    """Without the ids that are made up anew for edges that have none."""
    message = MADE_UP.sub("a made-up id", violation["message"])
    made_up = MADE_UP.fullmatch(repr(violation["id"])) is not None
    return {**violation, "message": message, **({"id": None} if made_up else {})}


def state_of(graph: Graph, branch: str = "main") -> dict[str, list[dict[str, Any]]]:
    """All rows of a graph, without made-up ids."""
    snapshot = graph.snapshot(branch)
    found = {}
    for kind in snapshot.catalog.entities():
        table = snapshot.table_of(kind)
        rows = table.scan(table.schema.names).to_pylist()
        if kind.key is None:
            rows = [{**row, "id": None} for row in rows]
        found[kind.name] = sorted(
            rows, key=lambda row: json.dumps(row, default=str, sort_keys=True)
        )
    return found


def kept_frames(spark: Any) -> set[int]:
    """What a session holds between jobs: frames that were kept or checkpointed, and not let go of yet."""
    return set(spark.sparkContext._jsc.getPersistentRDDs().keySet())
