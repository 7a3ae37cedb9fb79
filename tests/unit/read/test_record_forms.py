"""Exports in the forms of the omnigraph written in Rust: they load here, and come out again as they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.graph import Graph

SCHEMA = """
node Person {
  name: String @key
  born: Date?
  seen: DateTime?
  visits: [Date]?
  moments: [DateTime]?
  photo: Blob?
  score: F64?
  count: U64?
  tags: [String]?
  shape: Vector(2)?
}
node Site {
  area: String
  day: Date
  note: String?
  @key(area, day)
}
node Note { text: String }
edge At: Person -> Site { since: DateTime?  @key(@src, @dst) }
edge Knows: Person -> Person { since: Date? }
"""
SITE = '["north","19723"]'
# As 0.10 writes: ids in data, days and milliseconds, nulls written.
OLD: list[dict[str, Any]] = [
    {"type": "Person", "data": {"id": "ada", "name": "ada", "born": -10, "seen": 1704067200123, "visits": [0, 19723],
     "moments": [0, 1704067200000], "photo": "base64:SGVsbG8=", "score": 1.5, "count": 18446744073709551615,
     "tags": ["a", "b"], "shape": [0.5, -1.0]}},
    {"type": "Person", "data": {"id": "bob", "name": "bob", "born": None, "seen": None, "visits": None, "moments": None,
     "photo": None, "score": None, "count": None, "tags": [], "shape": None}},
    {"type": "Site", "data": {"id": SITE, "area": "north", "day": 19723, "note": None}},
    {"type": "Note", "data": {"id": "n-1", "text": "one"}},
    {"type": "Note", "data": {"id": "01HZX0000000000000000000AB", "text": "two"}},
    {"edge": "At", "from": "ada", "to": SITE, "data": {"id": f'["ada",{json.dumps(SITE)}]', "since": 1704067200000}},
    {"edge": "Knows", "from": "ada", "to": "bob", "data": {"id": "k-1", "since": 19723}},
    {"edge": "Knows", "from": "ada", "to": "bob", "data": {"id": "k-2", "since": None}},
]  # fmt: skip
# As 0.13 writes: ids beside the type, texts without a zone, nulls left out.
NEW: list[dict[str, Any]] = [
    {"type": "Person", "id": "ada", "data": {"name": "ada", "born": "1969-12-22", "seen": "2024-01-01T00:00:00.123",
     "visits": ["1970-01-01", "2024-01-01"], "moments": ["1970-01-01T00:00:00", "2024-01-01T00:00:00"],
     "photo": "base64:SGVsbG8=", "score": 1.5, "count": 18446744073709551615, "tags": ["a", "b"],
     "shape": [0.5, -1.0]}},
    {"type": "Person", "id": "bob", "data": {"name": "bob", "tags": []}},
    {"type": "Site", "id": SITE, "data": {"area": "north", "day": "2024-01-01"}},
    {"type": "Note", "id": "n-1", "data": {"text": "one"}},
    {"type": "Note", "id": "01HZX0000000000000000000AB", "data": {"text": "two"}},
    {"edge": "At", "id": f'["ada",{json.dumps(SITE)}]', "from": "ada", "to": SITE,
     "data": {"since": "2024-01-01T00:00:00"}},
    {"edge": "Knows", "id": "k-1", "from": "ada", "to": "bob", "data": {"since": "2024-01-01"}},
    {"edge": "Knows", "id": "k-2", "from": "ada", "to": "bob", "data": {}},
]  # fmt: skip
FORMS = {"ndjson-0.10": OLD, "ndjson-0.13": NEW}


def _loaded(records: list[dict[str, Any]], root: str, folder: Path) -> Graph:
    graph = omnigraph.init(root, SCHEMA)
    file = folder / "in.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    graph.load(str(file), mode="overwrite")
    return graph


def _exported(graph: Graph, folder: Path, format: str, **more: Any) -> list[dict[str, Any]]:
    graph.export(folder, format, **more)
    lines = [file.read_text().splitlines() for file in folder.glob("*.ndjson")]
    return [json.loads(line) for part in lines for line in part]


def _sorted(records: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(record, sort_keys=True) for record in records)


@pytest.mark.parametrize("given", FORMS)
@pytest.mark.parametrize("wanted", FORMS)
def test_each_form_becomes_each_form(
    given: str, wanted: str, memory_root: str, tmp_path: Path
) -> None:
    graph = _loaded(FORMS[given], memory_root, tmp_path)
    found = _exported(graph, tmp_path / "out", wanted)
    assert _sorted(found) == _sorted(FORMS[wanted])


def test_our_own_form_lies_between_them(memory_root: str, tmp_path: Path) -> None:
    graph = _loaded(NEW, memory_root, tmp_path)
    ours = _exported(graph, tmp_path / "ours", "ndjson")
    again = _loaded(ours, f"{memory_root}-again", tmp_path)
    assert _sorted(_exported(again, tmp_path / "out", "ndjson-0.10")) == _sorted(OLD)


def test_records_come_by_their_ids_on_request(memory_root: str, tmp_path: Path) -> None:
    graph = _loaded(NEW, memory_root, tmp_path)
    found = _exported(graph, tmp_path / "out", "ndjson-0.13", types=["Note"], order="id")
    assert [record["id"] for record in found] == ["01HZX0000000000000000000AB", "n-1"]


def test_a_form_nobody_knows_is_refused(memory_root: str, tmp_path: Path) -> None:
    graph = omnigraph.init(memory_root, SCHEMA)
    with pytest.raises(omnigraph.OmnigraphError, match=r"ndjson-0\.13") as refused:
        graph.export(tmp_path, "ndjson-0.9")
    assert refused.value.code == "option_invalid"
