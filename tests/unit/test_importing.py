"""Graph folders of the omnigraph written in Rust are taken over: rows, ids, blobs, dates and branches."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.cli.main import main
from omnigraph.importing import import_rust
from omnigraph.storage.objects import locate, open_objects
from tests.support.rust_graph import Rows, RustFolder

NOON = dt.datetime(2024, 1, 1, 12, 0, 0, 123000)
PEOPLE: list[dict[str, Any]] = [
    {"id": "ada", "name": "ada", "born": dt.date(1815, 12, 10), "seen": NOON, "photo": b"Hello", "shape": [0.5, -1.0],
     "tags": ["a", "b"]},
    {"id": "bob", "name": "bob", "tags": []},
]  # fmt: skip
ROWS: Rows = {
    "node:Person": PEOPLE,
    "node:Note": [{"id": "01HZX0000000000000000000AB", "text": "one"}],
    "edge:Knows": [
        {"id": "k-1", "src": "ada", "dst": "bob", "since": dt.date(2024, 1, 1)},
        {"id": "k-2", "src": "ada", "dst": "bob"},
    ],
    "edge:Wrote": [],
}
ALL = """query q() {
  match { $p: Person }
  return { $p.name as name, $p.born as born, $p.seen as seen, $p.tags as tags }
  order { name }
}"""
EDGES = """query q() {
  match { $a $e:knows $b }
  return { $e.@id as id, $e.@src as a, $e.@dst as b, $e.since as since }
  order { id }
}"""
PERSON = """node Person {
  name: String @key
  born: Date?  seen: DateTime?  photo: Blob?  shape: Vector(2)?  tags: [String]?
}"""


def _folder(root: Path, stamp: int) -> RustFolder:
    made = RustFolder(root, stamp)
    made.publish({key: rows[:1] for key, rows in ROWS.items()})
    made.publish(ROWS)
    made.publish(
        {"node:Person": [*PEOPLE, {"id": "eve", "name": "eve"}], "edge:Knows": []}, "review/2026"
    )
    return made


def _files(root: Path) -> dict[str, str]:
    found = (path for path in root.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


@pytest.mark.parametrize("stamp", [6, 8, 9, 11, 13, 14])
def test_a_folder_becomes_a_graph(stamp: int, tmp_path: Path) -> None:
    folder = _folder(tmp_path / "theirs", stamp)
    before = _files(folder.root)
    done = import_rust(folder.root, tmp_path / "ours")
    assert _files(folder.root) == before
    assert done.rows["main"] == {"Person": 2, "Note": 1, "Knows": 2, "Wrote": 0}
    graph = omnigraph.open(str(tmp_path / "ours"))
    ada, bob = graph.query(ALL).rows
    assert ada["born"] == dt.date(1815, 12, 10)
    assert ada["seen"] == NOON.replace(tzinfo=dt.UTC)
    assert (bob["born"], bob["seen"], bob["tags"]) == (None, None, [])
    assert graph.blob("Person", "ada", "photo").read() == b"Hello"
    assert [row["id"] for row in graph.query(EDGES).rows] == ["k-1", "k-2"]
    notes = graph.query("query q() { match { $n: Note } return { $n.@id as id } }").rows
    assert notes == [{"id": "01HZX0000000000000000000AB"}]
    assert graph.branches() == ["main", "review/2026"]
    assert len(graph.query(ALL, branch="review/2026")) == 3
    assert len(graph.query(EDGES, branch="review/2026")) == 0
    assert done.rows["review/2026"] == {"Person": 3, "Knows": 0}


@pytest.mark.parametrize("stamp", [6, 9, 14])
def test_a_folder_on_s3_becomes_a_graph_on_s3(stamp: int, tmp_path: Path, s3_root: str) -> None:
    """Read where it lies, and written where it is wanted: blobs, detached versions and branches included."""
    source = f"{s3_root}/theirs"
    _upload(_folder(tmp_path / "theirs", stamp).root, source)
    before = _stored(source)
    assert main(["import-rust", source, f"{s3_root}/ours", "--quiet"]) == 0
    assert _stored(source) == before
    graph = omnigraph.open(f"{s3_root}/ours")
    assert [row["name"] for row in graph.query(ALL)] == ["ada", "bob"]
    assert graph.blob("Person", "ada", "photo").read() == b"Hello"
    assert [row["id"] for row in graph.query(EDGES)] == ["k-1", "k-2"]
    assert graph.branches() == ["main", "review/2026"]
    assert len(graph.query(ALL, branch="review/2026")) == 3


def test_an_address_on_s3_without_a_graph_says_so(
    s3_root: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import-rust", f"{s3_root}/nothing", f"{s3_root}/ours"]) == 3
    assert "there is no graph of the omnigraph written in Rust" in capsys.readouterr().err


def _upload(folder: Path, uri: str) -> None:
    objects = open_objects(locate(uri))
    for path in folder.rglob("*"):
        if path.is_file():
            objects.put(str(path.relative_to(folder)), path.read_bytes())


def _stored(uri: str) -> dict[str, str]:
    objects = open_objects(locate(uri))
    return {
        info.key: hashlib.sha256(objects.get(info.key)).hexdigest() for info in objects.list("")
    }


def test_a_dropped_type_is_not_taken_over(tmp_path: Path) -> None:
    for stamp in (6, 9, 14):
        folder = RustFolder(tmp_path / f"t{stamp}", stamp, PERSON)
        folder.publish({"node:Person": PEOPLE, "node:Note": []})
        folder.publish({}, dropped=("node:Note",))
        done = import_rust(folder.root, tmp_path / f"o{stamp}")
        assert done.rows == {"main": {"Person": 2}}


def test_branches_are_chosen_by_name(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "theirs", 9)
    assert import_rust(folder.root, tmp_path / "a", branches=[]).graph.branches() == ["main"]
    with pytest.raises(omnigraph.OmnigraphError) as refused:
        import_rust(folder.root, tmp_path / "b", branches=["nowhere"])
    assert refused.value.code == "branch_not_found"
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("stamp", [3, 15])
def test_what_cannot_be_read_says_how_to_export(stamp: int, tmp_path: Path) -> None:
    folder = RustFolder(tmp_path / "theirs", 9)
    folder.publish(ROWS)
    folder.stamp = stamp
    folder.publish(ROWS)
    with pytest.raises(omnigraph.OmnigraphError) as refused:
        import_rust(folder.root, tmp_path / "ours")
    assert refused.value.code == "rust_graph_unreadable"
    assert "omnigraph export" in (refused.value.help or "")
    assert not (tmp_path / "ours").exists()


def test_rows_that_are_missing_are_told(tmp_path: Path) -> None:
    folder = RustFolder(tmp_path / "theirs", 9)
    folder.publish(ROWS)
    for table in folder.tables["main"].values():
        table["row_count"] += 1
    folder.publish({})
    with pytest.raises(omnigraph.OmnigraphError) as refused:
        import_rust(folder.root, tmp_path / "ours")
    assert refused.value.code == "corrupt"


def test_the_command_tells_what_it_took(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = _folder(tmp_path / "theirs", 14)
    assert main(["import-rust", str(folder.root), str(tmp_path / "ours"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["format"] == 14
    assert told["branches"]["main"]["rows"]["Person"] == 2
    assert main(["query", str(tmp_path / "ours"), "-e", "branch list", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == ["main", "review/2026"]
    assert main(["log", str(folder.root)]) != 0
    assert "import-rust" in capsys.readouterr().err
