"""Places that are no graphs, and graphs somebody has damaged: a clear coded error, and nothing is repaired or lost."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from omnigraph.core import layout
from omnigraph.core.records import encode
from omnigraph.errors import (
    AddressInvalid,
    Corrupt,
    ForkedProcess,
    FormatUnsupported,
    GraphExists,
    GraphNotFound,
    Kind,
    LimitExceeded,
    OmnigraphError,
    StoreUnsuitable,
)
from omnigraph.graph import Graph, init, open_graph
from omnigraph.maintenance.collection import Retention, collect
from omnigraph.model.limits import DEFAULT
from omnigraph.storage.objects import numbered
from tests.support.caches import forget_tables
from tests.support.faulty_s3 import FaultyS3
from tests.support.processes import acknowledge, spawn
from tests.support.worlds import SCHEMA, add_knows, add_person, people

Contents = dict[str, bytes]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A graph with three commits, one branch and one tag."""
    where = tmp_path / "graph"
    graph = init(where, schema=SCHEMA)
    for name in ("ann", "bob"):
        graph.publish(add_person(name))
    graph.publish(add_knows("e1", "ann", "bob"))
    graph.create_branch("dev")
    graph.tag("v1")
    forget_tables()
    return where


def contents(root: Path) -> Contents:
    """Every object there is; `_tmp` is where nothing lasts."""
    files = (path for path in root.rglob("*") if path.is_file())
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in files
        if "_tmp" not in path.parts
    }


def commit_file(root: Path, number: int) -> Path:
    chain = json.loads((root / "graph.json").read_bytes())["main_chain"]
    return root / numbered(layout.chain_folder(chain), number)


def refuses(root: Path, step: Callable[[], object], kind: type[OmnigraphError]) -> OmnigraphError:
    """The step fails with this error, says what to do, and changes nothing."""
    before = contents(root)
    with pytest.raises(kind) as caught:
        step()
    assert contents(root) == before, "something was repaired or lost"
    assert caught.value.help, f"{caught.value.code} does not say what to do"
    return caught.value


def test_a_graph_of_the_rust_program_is_told_from_nothing(tmp_path: Path) -> None:
    """Its manifest is a Lance table where ours is a folder of chains."""
    for name in ("__manifest/_versions/1.manifest", "__manifest/data/x.lance", "_schema.pg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    for step in (lambda: open_graph(tmp_path), lambda: init(tmp_path, schema=SCHEMA)):
        error = refuses(tmp_path, step, FormatUnsupported)
        assert "Rust" in error.message
        assert "import-rust" in str(error.help)


def read_everything(root: Path) -> object:
    return people(open_graph(root)._repo)


# --- places that are no graphs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("uri", ["", "  ", "ftp://host/graph", "s3://", "gs://bucket/graph", 7])
def test_an_address_that_cannot_hold_a_graph(uri: object) -> None:
    with pytest.raises(AddressInvalid):
        open_graph(uri)  # type: ignore[arg-type]


def test_a_path_where_nothing_is(tmp_path: Path) -> None:
    error = refuses(tmp_path, lambda: open_graph(tmp_path / "nothing"), GraphNotFound)
    assert "omnigraph.init" in error.help


def test_a_folder_with_other_things_in_it(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a,b\n")
    refuses(tmp_path, lambda: open_graph(tmp_path), GraphNotFound)


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,b\n")
    refuses(tmp_path, lambda: open_graph(path), GraphNotFound)


def test_a_graph_is_not_created_twice(root: Path) -> None:
    refuses(root, lambda: init(root, schema=SCHEMA), GraphExists)


def test_a_store_that_ignores_create_only_puts_is_refused(faulty_s3: FaultyS3) -> None:
    faulty_s3.ignore_conditions()
    with pytest.raises(StoreUnsuitable) as caught:
        init(faulty_s3.address.uri("graph"), schema=SCHEMA)
    assert caught.value.details["promise"] == "create-only put"
    assert "If-None-Match" in caught.value.help
    assert not faulty_s3.objects(), "something was left behind"


# --- other formats, and a damaged stamp ----------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "word"), [(0, "older"), (2, "newer"), ("x", "newer")])
def test_a_graph_of_another_format_is_refused(root: Path, number: object, word: str) -> None:
    stamp = json.loads((root / "graph.json").read_bytes())
    (root / "graph.json").write_text(json.dumps({**stamp, "format": number}))
    error = refuses(root, lambda: open_graph(root), FormatUnsupported)
    assert word in error.message
    assert "upgrade" in error.help


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"format": 1}', '{"format": 1, "graph_id": 7}', "\x00\x01"]
)
def test_a_damaged_stamp(root: Path, text: str) -> None:
    (root / "graph.json").write_text(text)
    assert refuses(root, lambda: open_graph(root), Corrupt).kind is Kind.CORRUPT


# --- damaged commits -----------------------------------------------------------------------------------------------

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda data: data[: len(data) // 2],
    "empty": lambda _data: b"",
    "not compressed": zlib.decompress,
    "not JSON": lambda _data: zlib.compress(b"\xff\xfe nothing"),
    "another kind of object": lambda _data: zlib.compress(b'{"type": "shopping list"}'),
    "a field missing": lambda data: _edited(data, tables=None),
    "a field too many": lambda data: _edited(data, surprise=1),
    "one byte flipped": lambda data: data[:40] + bytes([data[40] ^ 0x10]) + data[41:],
    "nested deeper than any parser goes": lambda _data: zlib.compress(b"[" * 100_000),
}


def _edited(data: bytes, **fields: object) -> bytes:
    found = {**json.loads(zlib.decompress(data)), **fields}
    return zlib.compress(json.dumps({k: v for k, v in found.items() if v is not None}).encode())


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_head(root: Path, name: str) -> None:
    path = commit_file(root, 3)
    path.write_bytes(DAMAGE[name](path.read_bytes()))
    error = refuses(root, lambda: read_everything(root), Corrupt)
    assert path.name in error.message, "the error does not name the object"
    refuses(root, lambda: open_graph(root).publish(add_person("cy")), Corrupt)
    refuses(root, lambda: collect(open_graph(root)._repo, Retention()), Corrupt)


def test_a_commit_that_unpacks_to_more_than_allowed(root: Path) -> None:
    commit_file(root, 3).write_bytes(zlib.compress(b" " * (DEFAULT.object_bytes_max + 1)))
    error = refuses(root, lambda: read_everything(root), LimitExceeded)
    assert error.details["limit"] == "object_bytes_max"


def test_a_commit_of_another_graph(root: Path, tmp_path: Path) -> None:
    other = init(tmp_path / "other", schema=SCHEMA)
    commit = msgspec.structs.replace(
        other._repo.head("main").commit, chain=open_graph(root)._repo.stamp.main_chain, number=3
    )
    commit_file(root, 3).write_bytes(encode(commit))
    assert "another graph" in refuses(root, lambda: read_everything(root), Corrupt).message


def test_a_commit_under_the_number_of_another(root: Path) -> None:
    commit_file(root, 3).write_bytes(commit_file(root, 2).read_bytes())
    assert "says it is" in refuses(root, lambda: read_everything(root), Corrupt).message


def test_a_commit_of_a_newer_format(root: Path) -> None:
    path = commit_file(root, 3)
    path.write_bytes(_edited(path.read_bytes(), format=2))
    refuses(root, lambda: read_everything(root), FormatUnsupported)


def test_a_commit_missing_in_the_middle_of_the_chain(root: Path) -> None:
    commit_file(root, 2).unlink()
    error = refuses(root, lambda: open_graph(root).log("dev"), Corrupt)
    assert "missing" in error.message


# --- damaged names, schemas, tables --------------------------------------------------------------------------------


def ref_file(root: Path, name: str) -> Path:
    return root / numbered(layout.ref_folder(name), 0)


def test_a_damaged_branch_name(root: Path) -> None:
    ref_file(root, "dev").write_bytes(b"rubbish")
    refuses(root, lambda: open_graph(root).snapshot("dev"), Corrupt)
    refuses(root, lambda: open_graph(root).branches(), Corrupt)
    refuses(root, lambda: collect(open_graph(root)._repo, Retention()), Corrupt)
    assert read_everything(root) == ["ann", "bob"], "main is not concerned"


def test_a_damaged_tag(root: Path) -> None:
    ref_file(root, "v1").write_bytes(zlib.compress(b"{}"))
    refuses(root, lambda: open_graph(root).snapshot(at="v1"), Corrupt)


def schema_file(root: Path) -> Path:
    (found,) = (root / "_schemas").iterdir()
    return found


@pytest.mark.parametrize("data", [b"", b"rubbish", zlib.compress(b"{}")])
def test_a_damaged_schema(root: Path, data: bytes) -> None:
    schema_file(root).write_bytes(data)
    refuses(root, lambda: read_everything(root), Corrupt)


def test_a_missing_schema(root: Path) -> None:
    schema_file(root).unlink()
    assert "schema" in refuses(root, lambda: read_everything(root), Corrupt).message


def files_of_people(root: Path, folder: str) -> list[Path]:
    snapshot = open_graph(root).snapshot()
    table = root / snapshot.entry(snapshot.catalog.nodes["Person"].table_id).path
    return sorted((table / folder).iterdir())


def remove(path: Path) -> None:
    path.unlink()


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:10])


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [remove, cut_short, empty])
@pytest.mark.parametrize("folder", ["_versions", "data"])
def test_a_damaged_table(root: Path, folder: str, damage: Callable[[Path], None]) -> None:
    for path in files_of_people(root, folder):
        damage(path)
    forget_tables()
    refuses(root, lambda: read_everything(root), Corrupt)
    forget_tables()
    refuses(root, lambda: open_graph(root).publish(add_person("ann", age=1)), Corrupt)


# --- processes -----------------------------------------------------------------------------------------------------


def test_a_graph_is_refused_after_a_fork(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check is by process id, so that another id is as good as a fork and leaves no child behind."""
    graph = open_graph(root)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    for step in (
        graph.snapshot,
        lambda: graph.publish(add_person("cy")),
        lambda: graph.create_branch("new"),
        lambda: graph.delete_branch("dev"),
        graph.branches,
        lambda: graph.tag("v2"),
        graph.tags,
        lambda: graph.delete_tag("v1"),
        graph.log,
        graph.cleanup,
    ):
        refuses(root, step, ForkedProcess)


def fork_and_use(uri: str) -> None:
    """In a process of its own: use a graph on the other side of a fork."""
    graph = open_graph(uri)
    graph.snapshot()
    child = os.fork()
    if not child:
        try:
            graph.snapshot()
        except ForkedProcess:
            os._exit(0)
        os._exit(1)
    acknowledge({"status": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])})


def test_a_real_fork(root: Path, tmp_path: Path) -> None:
    child = spawn(fork_and_use, {"uri": str(root)}, log=tmp_path / "log")
    child.wait()
    assert child.records() == [{"status": 0}]


# --- half of a character ---------------------------------------------------------------------------------------------

HALF = "half \ud800"  # of a surrogate pair: a text in Python, and in no store
GIVEN: dict[str, Callable[[Graph], object]] = {
    "a message": lambda g: g.publish(add_person("cy"), message=HALF),
    "an actor": lambda g: g.publish(add_person("cy"), actor=HALF),
    "an idempotency key": lambda g: g.publish(add_person("cy"), idempotency_key=HALF),
    "a mutation": lambda g: g.mutate(f'insert Person {{ name: "{HALF}" }}'),
    "a parameter": lambda g: g.mutate(
        "mutation add($n: String) { insert Person { name: $n } }", {"n": HALF}
    ),
    "a row": lambda g: g.load({"Person": [{"name": HALF}]}),
    "a property": lambda g: g.load({"Person": [{"name": "cy", HALF: 1}]}),
    "a type": lambda g: g.load({HALF: [{"name": "cy"}]}),
    "a file": lambda g: g.load(f"/nowhere/{HALF}.ndjson"),
    "a branch": lambda g: g.create_branch(HALF),
    "a tag": lambda g: g.tag(HALF),
    "a point": lambda g: g.query("match { $p: Person } return { $p.name }", at=HALF),
    "a query": lambda g: g.query(
        f'match {{ $p: Person {{ name: "{HALF}" }} }} return {{ $p.@id as p }}'
    ),
    "a schema": lambda g: g.apply_schema(f"{SCHEMA} // {HALF}"),
    "an address": lambda g: open_graph(f"/nowhere/{HALF}"),
    "an address with a null byte": lambda g: open_graph("/nowhere/\0"),
}


@pytest.mark.parametrize("what", GIVEN)
def test_half_of_a_character_is_refused_and_nothing_is_written(root: Path, what: str) -> None:
    graph, before = open_graph(root), contents(root)
    with pytest.raises(OmnigraphError) as refused:
        GIVEN[what](graph)
    assert refused.value.kind in (Kind.INVALID, Kind.NOT_FOUND)
    assert contents(root) == before
