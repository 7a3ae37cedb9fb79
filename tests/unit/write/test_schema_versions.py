"""Versions of the storage and of schemas: stamps, refusals, identities over renames, and what a change may touch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.records import FORMAT
from omnigraph.errors import FormatUnsupported
from omnigraph.storage import metrics

SCHEMA = "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "graph"
    omnigraph.init(place, schema=SCHEMA)
    return place


def stamp(place: Path) -> Path:
    return place / "graph.json"


def test_a_new_graph_is_stamped_with_the_current_format(place: Path) -> None:
    assert json.loads(stamp(place).read_text())["format"] == FORMAT


@pytest.mark.parametrize(("format", "words"), [(FORMAT - 1, "older"), (FORMAT + 1, "newer")])
def test_another_format_is_refused_with_the_way_out(place: Path, format: int, words: str) -> None:
    found = json.loads(stamp(place).read_text())
    stamp(place).write_text(json.dumps({**found, "format": format}))
    with pytest.raises(FormatUnsupported, match=words) as caught:
        omnigraph.open(place)
    assert "upgrade" in caught.value.help
    assert "install" in caught.value.help


def test_opening_a_graph_reads_its_stamp_once_and_writes_nothing(place: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    with metrics.operation("test") as cost:
        omnigraph.open(place)
    assert cost.kinds["get"] == 1
    assert cost.bytes_written == 0
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before


def test_identities_survive_renames_of_types_and_properties(place: Path) -> None:
    graph = omnigraph.open(place)
    before = graph.snapshot().catalog.nodes["Person"]
    renamed = SCHEMA.replace("node Person {", 'node Human @rename_from("Person") {')
    renamed = renamed.replace("Person -> Person", "Human -> Human")
    graph.apply_schema(renamed.replace("age: I32?", 'years: I32? @rename_from("age")'))
    after = graph.snapshot().catalog.nodes["Human"]
    assert (after.type_id, after.table_id) == (before.type_id, before.table_id)
    assert after.properties["years"].property_id == before.properties["age"].property_id


def test_a_change_of_an_empty_table_is_a_version_like_any_other(place: Path) -> None:
    graph = omnigraph.open(place)
    for old, new in (
        ("age: I32?", "age: I64?"),
        ("age: I64?", 'age: I64?  mood: String @default("m")'),
    ):
        graph.apply_schema(graph.schema().replace(old, new))
    graph.load([{"type": "Person", "data": {"name": "ann", "age": 2**40}}])
    kind = graph.snapshot().catalog.nodes["Person"]
    rows = graph.snapshot().table_of(kind).scan(["age", "mood"]).to_pylist()
    assert [(row["age"], row["mood"]) for row in rows] == [(2**40, "m")]


def test_applying_a_schema_builds_no_index(place: Path) -> None:
    graph = omnigraph.open(place)
    graph.load([{"type": "Person", "data": {"name": "ann", "age": 1}}])
    before = dict(graph.snapshot().commit.tables)
    graph.apply_schema(SCHEMA.replace("age: I32?", "age: I32? @index"))
    snapshot = graph.snapshot()
    assert dict(snapshot.commit.tables) == before
    assert snapshot.table_of(snapshot.catalog.nodes["Person"]).indices() == ()


def test_a_schema_is_read_as_of_its_commit(place: Path) -> None:
    graph = omnigraph.open(place)
    first = graph.snapshot().commit_id
    graph.apply_schema(SCHEMA.replace("  age: I32?", ""))
    assert "age" not in graph.snapshot().catalog.nodes["Person"].properties
    assert "age" in graph.snapshot(at=first).catalog.nodes["Person"].properties
