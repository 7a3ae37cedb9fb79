"""Exports load again, name their commit, and never leave a file that looks whole and is not."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import OptionInvalid, TableNotFound
from omnigraph.graph import Graph
from omnigraph.read import export as exporting
from omnigraph.read.export import (
    FORMATS,
    MANIFEST,
    PARTIAL,
    ExportFolder,
    export,
    stream,
    write_part,
)
from omnigraph.read.ndjson import record_lines

SCHEMA = """
node Person {
  name: String @key
  born: Date?
  seen: DateTime?
  tags: [String]?
  moments: [DateTime]?
  shape: Vector(2)?
  score: F32?
  odd: F64?
  ratios: [F64]?
  big: U64?
  photo: Blob?
}
node Note { text: String }
edge Knows: Person -> Person { since: I32? }
"""
PEOPLE: list[dict[str, Any]] = [
    {
        "name": 'O\'Neil "Q" \\ é \u2028',
        "born": "1970-01-02",
        "seen": "2024-02-29T23:59:59.123Z",
        "tags": ["a", "b,c"],
        "moments": ["2020-01-01T00:00:00.000Z"],
        "shape": [0.1, -2.5],
        "score": 0.1,
        "big": 2**64 - 1,
        "photo": "base64:AAEC",
    },
    {"name": "plain", "score": math.inf, "odd": -0.0, "ratios": []},
    {"name": "nan", "score": math.nan, "odd": math.nan, "ratios": [1.5, math.nan, -math.inf]},
    {"name": "inf", "score": -math.inf, "odd": -math.inf, "ratios": [math.inf]},
]


def filled(uri: str) -> Graph:
    graph = omnigraph.init(uri, schema=SCHEMA)
    records = [{"type": "Person", "data": row} for row in PEOPLE]
    records += [{"type": "Note", "data": {"text": "hello", "id": "n1"}}]
    knows = {
        "edge": "Knows",
        "from": "plain",
        "to": PEOPLE[0]["name"],
        "data": {"id": "e1", "since": -3},
    }
    graph.load([*records, knows])
    return graph


def text_of(graph: Graph) -> list[str]:
    return sorted(b"".join(stream(graph.snapshot())).decode().splitlines())


def test_ndjson_loads_again_to_the_same_graph(tmp_path: Path, memory_root: str) -> None:
    graph = filled(f"{memory_root}/one")
    done = export(graph.snapshot(), tmp_path / "out")
    again = omnigraph.init(f"{memory_root}/two", schema=SCHEMA)
    again.load(str(tmp_path / "out" / "*.ndjson"))
    assert text_of(again) == text_of(graph)
    assert done.rows == {"Person": 4, "Note": 1, "Knows": 1}


@pytest.mark.parametrize("format", ["parquet", "arrow", "csv"])
def test_tables_load_again_to_the_same_graph(format: str, tmp_path: Path, memory_root: str) -> None:
    graph = filled(f"{memory_root}/one")
    export(graph.snapshot(), tmp_path, format)
    again = omnigraph.init(f"{memory_root}/two", schema=SCHEMA)
    names = {"Person": "node", "Note": "node", "Knows": "edge"}
    again.load({name: tmp_path / f"{kind}-{name}.{format}" for name, kind in names.items()})
    assert text_of(again) == text_of(graph)


@pytest.mark.parametrize("format", FORMATS)
def test_the_list_of_parts_tells_counts_and_checksums(
    format: str, tmp_path: Path, memory_root: str
) -> None:
    graph = filled(memory_root)
    done = export(graph.snapshot(), tmp_path, format)
    listed = json.loads((tmp_path / MANIFEST).read_text())
    assert listed == json.loads(json.dumps(done.to_json()))
    assert listed["commit"] == graph.log()[0].id
    for part in listed["parts"]:
        content = (tmp_path / part["file"]).read_bytes()
        assert part["bytes"] == len(content)
        assert part["sha256"] == hashlib.sha256(content).hexdigest()


def test_an_interrupted_export_leaves_nothing_that_looks_whole(
    tmp_path: Path, memory_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = filled(memory_root)

    def interrupted(kind: object, batches: object, form: object) -> object:
        yield b'{"type":'
        raise KeyboardInterrupt

    monkeypatch.setattr(exporting, "record_lines", interrupted)
    with pytest.raises(KeyboardInterrupt):
        export(graph.snapshot(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_attempts_to_write_one_part_do_not_mix(
    tmp_path: Path, memory_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that Spark believes lost may still run beside the one that replaces it."""
    snapshot = filled(memory_root).snapshot()
    folder, kind, lines = ExportFolder.of(tmp_path), snapshot.catalog.nodes["Person"], record_lines
    parts = []

    def overtaken(kind: Any, batches: Any, form: Any) -> Any:
        first, *rest = b"".join(lines(kind, batches, form)).splitlines(keepends=True)
        yield first
        monkeypatch.undo()
        parts.append(write_part(snapshot, kind, folder, "ndjson"))
        yield from rest

    monkeypatch.setattr(exporting, "record_lines", overtaken)
    parts.append(write_part(snapshot, kind, folder, "ndjson"))
    assert parts[0] == parts[1]
    content = (tmp_path / parts[0].file).read_bytes()
    assert hashlib.sha256(content).hexdigest() == parts[0].sha256
    assert [path.name for path in tmp_path.iterdir()] == [parts[0].file]


def test_what_an_attempt_that_died_left_is_removed(tmp_path: Path, memory_root: str) -> None:
    left = tmp_path / f".node-Person.ndjson.0{PARTIAL}"
    left.write_bytes(b"{")
    export(filled(memory_root).snapshot(), tmp_path)
    assert not left.exists()


def test_an_empty_type_is_an_empty_file(tmp_path: Path, memory_root: str) -> None:
    graph = omnigraph.init(memory_root, schema=SCHEMA)
    for format in FORMATS:
        export(graph.snapshot(), tmp_path / format, format)
    again = omnigraph.init(f"{memory_root}-again", schema=SCHEMA)
    loaded = again.load({"Person": tmp_path / "parquet" / "node-Person.parquet"})
    assert loaded.nodes == {"Person": 0}


def test_only_the_types_asked_for(tmp_path: Path, memory_root: str) -> None:
    graph = filled(memory_root)
    done = export(graph.snapshot(), tmp_path, types=["Note"])
    assert [part.file for part in done.parts] == ["node-Note.ndjson"]
    with pytest.raises(TableNotFound):
        export(graph.snapshot(), tmp_path, types=["Nobody"])


def test_an_unknown_format_is_refused(tmp_path: Path, memory_root: str) -> None:
    with pytest.raises(OptionInvalid, match="ndjson"):
        export(filled(memory_root).snapshot(), tmp_path, "xml")


def test_edges_can_be_joined_with_nodes_of_composite_keys(memory_root: str) -> None:
    """A record tells the id that `from` and `to` name, whatever the key is made of."""
    schema = """
    node Room { house: String  number: I64  @key(house, number) }
    edge Door: Room -> Room { wide: Bool?  @key(src, dst) }
    """
    graph = omnigraph.init(f"{memory_root}/one", schema=schema)
    graph.mutate('insert Room { house: "a", number: 1 } insert Room { house: "b", number: 2 }')
    ids = [row["id"] for row in graph.query("match { $r: Room } return { $r.id as id }").rows]
    graph.load({"Door": [{"from": ids[0], "to": ids[1]}]})
    records = [json.loads(line) for line in text_of(graph)]
    rooms = {r["data"]["id"]: r["data"]["number"] for r in records if "type" in r}
    (door,) = [r for r in records if "edge" in r]
    assert {rooms[door["from"]], rooms[door["to"]]} == {1, 2}
    assert door["data"]["id"]
    again = omnigraph.init(f"{memory_root}/two", schema=schema)
    again.load(records)
    assert text_of(again) == text_of(graph)


def test_rows_come_by_their_ids_where_that_is_asked_for(
    tmp_path: Path, memory_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "ORDERED_ROWS", 3)
    graph = filled(memory_root)
    for name in ("zed", "Ada", "éa", "bob", "Zoe"):
        graph.load({"Person": [{"name": name}]})
    graph.mutate('delete Person where name = "bob"')
    for format in FORMATS:
        done = graph.export(tmp_path / format, format, order="id")
        assert done.rows["Person"] == 8
    lines = (tmp_path / "ndjson" / "node-Person.ndjson").read_bytes().splitlines()
    names = [json.loads(line)["data"]["name"] for line in lines]
    assert names == sorted(names, key=str.encode)
    records = b"".join(stream(graph.snapshot(), order="id")).decode().splitlines()
    assert sorted(records) == text_of(graph)
    for wrong in ({"order": "name"}, {"order": "id", "engine": "spark"}):
        with pytest.raises(OptionInvalid, match="order"):
            graph.export(tmp_path / "wrong", **wrong)
