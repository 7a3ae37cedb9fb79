"""A graph received from somebody else leads nowhere but into itself, whatever was put into it.

Each test takes a sound graph, changes one stored thing the way an attacker would, and uses it: every verb is refused
with a coded error or does its work inside the graph, `doctor` tells, and nothing outside is read, written or deleted.
"""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import blob_field
from lance.fragment import FragmentMetadata

from omnigraph.errors import OmnigraphError
from omnigraph.graph import Graph, init, open_graph
from tests.support.caches import forget_tables

SCHEMA = "node Person { name: String @key } node File { name: String @key content: Blob? } edge Knows: Person -> Person"
PEOPLE = "match { $p: Person } return { $p.name as name }"
INSERT = 'query q() { insert Person { name: "new" } }'
SECRET = "SECRET-OF-ANOTHER-GRAPH"  # noqa: S105  a word to look for
Verb = Callable[[Graph], object]
VERBS: dict[str, Verb] = {
    "query": lambda g: g.query(PEOPLE).rows,
    "mutate": lambda g: g.mutate(INSERT),
    "branch": lambda g: g.create_branch("new"),
    "merge": lambda g: g.merge("dev"),
    "optimize": lambda g: g.optimize(),
    "cleanup": lambda g: g.cleanup(keep=1),
    "doctor": lambda g: g.doctor(deep=True),
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with a branch, some history and a blob, and a victim beside it."""
    folder = tmp_path_factory.mktemp("sound")
    for name, person in (("graph", "ann"), ("victim", SECRET)):
        graph = init(folder / name, schema=SCHEMA)
        graph.load({"Person": [{"name": person}], "File": [{"name": "f"}]})
        graph.create_branch("dev")
        graph.mutate('query q() { insert Person { name: "bob" } }', branch="dev")
        graph.load({"Person": [{"name": "cy"}], "Knows": [{"from": "cy", "to": person}]})
    return folder


@pytest.fixture
def place(sound: Path, tmp_path: Path) -> Path:
    """A fresh copy of both, with a folder of files that must not be touched."""
    shutil.copytree(sound, tmp_path / "w")
    precious = tmp_path / "w" / "precious"
    (precious / "data").mkdir(parents=True)
    (precious / "file.txt").write_text(SECRET)
    (precious / "data" / "f.lance").write_text(SECRET)
    forget_tables()
    return tmp_path / "w"


def outside(place: Path) -> dict[str, bytes]:
    """Everything that does not belong to the tampered graph."""
    files = (path for folder in ("victim", "precious") for path in (place / folder).rglob("*"))
    return {str(path): path.read_bytes() for path in files if path.is_file()}


def use(place: Path) -> dict[str, str]:
    """Try every verb in turn, each on a handle of its own: what it answered."""
    before, answers = outside(place), {}
    for name, verb in VERBS.items():
        forget_tables()
        try:
            answers[name] = repr(verb(open_graph(place / "graph")))
        except OmnigraphError as error:
            answers[name] = str(error.code)
        assert SECRET not in answers[name], name
        assert answers[name] != "internal", name
        assert outside(place) == before, name
    return answers


def is_reported(place: Path) -> bool:
    """Whether `doctor` tells, or nobody can even open the graph."""
    try:
        return not open_graph(place / "graph").doctor(deep=True).healthy
    except OmnigraphError:
        return True


# --- links ---------------------------------------------------------------------------------------------------------

FOLDERS = (
    "edges", "nodes", "_tmp", "__recovery", "_exports", "_jobs", "_keys", "_schemas", "_refs", "_gc", "_topology",
    "__manifest", "_checks", "_checked", "_proposals", "_maintenance", "_search",
)  # fmt: skip


# None of the verbs below looks into these.
UNREAD = (
    "_jobs",
    "_keys",
    "_exports",
    "_checks",
    "_checked",
    "_proposals",
    "_maintenance",
    "_search",
)


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_of_the_graph_that_is_a_link(place: Path, name: str) -> None:
    folder = place / "graph" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.symlink_to(place / "precious")
    answers = use(place)
    if name not in UNREAD:
        assert "corrupt" in answers.values(), answers
    assert is_reported(place)


def table(place: Path, graph: str = "graph", kind: str = "Person") -> Path:
    root = place / graph
    entries = open_graph(root).snapshot().commit.tables.values()
    return root / next(entry.path for entry in entries if entry.type_name == kind)


def some(pattern: str) -> Callable[[Path], Path]:
    return lambda place: next(iter(sorted(table(place).glob(pattern))))


def newest_commit(place: Path, graph: str = "graph") -> Path:
    chain = open_graph(place / graph).snapshot().commit.chain
    return min((place / graph / "__manifest" / chain).iterdir())


@pytest.mark.parametrize(
    "find",
    [
        table,
        some("data"),
        some("_versions"),
        some("_transactions"),
        some("data/*.lance"),
        some("_versions/d*.manifest"),
        newest_commit,
        lambda place: newest_commit(place).parent,
        lambda place: next((place / "graph" / "_schemas").iterdir()),
        lambda place: next((place / "graph" / "_refs").iterdir()),
    ],
    ids=["table", "data", "versions", "transactions", "data file", "manifest", "commit", "chain", "schema", "ref"],
)  # fmt: skip
def test_a_link_to_the_same_thing_elsewhere(place: Path, find: Callable[[Path], Path]) -> None:
    """What it points to is even right: still it is not the graph's own."""
    target = find(place)
    elsewhere = place / "precious" / "moved"
    target.rename(elsewhere)
    target.symlink_to(elsewhere)
    answers = use(place)
    assert "corrupt" in answers.values(), answers
    assert is_reported(place)


def test_a_link_that_leads_nowhere_does_not_stop_the_chain(place: Path) -> None:
    newest = newest_commit(place)
    following = newest.parent / f"{int(newest.name, 16) - 1:015x}"
    following.symlink_to(place / "nothing")
    assert use(place)["mutate"] == "corrupt"
    assert not (place / "nothing").exists()


def test_a_pipe_is_not_waited_for(place: Path) -> None:
    newest = newest_commit(place)
    newest.unlink()
    os.mkfifo(newest)
    assert set(use(place).values()) >= {"corrupt"}


def test_the_root_itself_may_be_a_link(place: Path) -> None:
    """Whoever opens the graph named it."""
    (place / "by-name").symlink_to(place / "graph")
    graph = open_graph(place / "by-name")
    graph.mutate(INSERT)
    graph.cleanup(keep=1)
    assert {"name": "new"} in graph.query(PEOPLE).rows
    assert graph.doctor(deep=True).healthy


# --- stored names --------------------------------------------------------------------------------------------------


def rewritten(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    found = json.loads(zlib.decompress(path.read_bytes()))
    change(found)
    path.unlink()
    path.write_bytes(zlib.compress(json.dumps(found).encode()))


PATHS = (
    "../victim/{path}", "{absolute}", "file://{absolute}", "s3://bucket/{path}", "nodes/../../victim/{path}",
    "{path}/../../../victim/{path}", "nodes\\..\\x", "nodes/x\0y", "", ".", "..", "nodes", "nodes/", "nodes//x",
    "__manifest/x", "nodes/x/../y", "nodes/x/y", "nodes/x\n",
)  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_the_path_of_a_table_stays_inside(place: Path, path: str) -> None:
    victim = table(place, "victim")
    path = path.format(path=victim.relative_to(place / "victim"), absolute=victim)

    def change(commit: dict[str, Any]) -> None:
        for entry in commit["tables"].values():
            entry["path"] = path

    rewritten(newest_commit(place), change)
    answers = use(place)
    assert answers["query"] == answers["mutate"] == answers["cleanup"] == "corrupt", answers
    assert is_reported(place)


@pytest.mark.parametrize("version", ["-1", "x", "", "1e3", str(2**64), "9" * 40, "\uff11"])
def test_the_version_of_a_table_is_a_number(place: Path, version: str) -> None:
    def change(commit: dict[str, Any]) -> None:
        for entry in commit["tables"].values():
            entry["version"] = version

    rewritten(newest_commit(place), change)
    answers = use(place)
    assert answers["query"] == answers["mutate"] == "corrupt", answers


NAMES = ("../../victim", "..", "/etc", "a/b", "a\\b", "a\0b", "")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("field", ["chain", "schema", "parents", "merged", "content"])
def test_names_in_a_commit_stay_inside(place: Path, field: str, name: str) -> None:
    values: dict[str, Any] = {"parents": [f"{name}.0"], "merged": {name: f"{name}.0"}}
    rewritten(newest_commit(place), lambda commit: commit.update({field: values.get(field, name)}))
    answers = use(place)
    if field in ("chain", "schema"):
        assert answers["query"] == answers["mutate"] == "corrupt", answers


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("field", ["chain", "source_chain"])
def test_names_in_a_branch_stay_inside(place: Path, field: str, name: str) -> None:
    ref = next((place / "graph" / "_refs" / "dev").iterdir())
    rewritten(ref, lambda state: state.update({field: name}))
    answers = use(place)
    assert answers["merge"] == answers["cleanup"] == "corrupt", answers
    assert is_reported(place)


@pytest.mark.parametrize("name", NAMES)
def test_the_chain_of_main_stays_inside(place: Path, name: str) -> None:
    stamp = place / "graph" / "graph.json"
    found = {**json.loads(stamp.read_text()), "main_chain": name}
    stamp.unlink()
    stamp.write_text(json.dumps(found))
    assert set(use(place).values()) == {"corrupt"}


@pytest.mark.parametrize("name", NAMES)
def test_names_in_a_collection_record_stay_inside(place: Path, name: str) -> None:
    open_graph(place / "graph").cleanup(keep=5)
    record = next((place / "graph" / "_gc").iterdir())
    rewritten(record, lambda found: found.update({"dead": [name], "kept": [[name, 0]]}))
    assert use(place)["cleanup"] == "corrupt"
    assert is_reported(place)


@pytest.mark.parametrize("name", NAMES)
def test_names_in_a_plan_or_a_job_stay_inside(place: Path, name: str) -> None:
    plan = {"plan": name, "operation_id": "x", "kind": "load", "branch": "main", "gc_epoch": 0, "created": 0,
            "tables": [name]}  # fmt: skip
    job = {"job": name, "kind": "export", "actor": None, "created": 0, "seen": 0}
    for folder, record in (("__recovery", plan), ("_jobs", job)):
        (place / "graph" / folder).mkdir(exist_ok=True)
        file = place / "graph" / folder / "x.json"
        file.write_bytes(zlib.compress(json.dumps(record).encode()))
    assert use(place)["cleanup"] == "corrupt"


# --- what a manifest of Lance can say ------------------------------------------------------------------------------


def tampered(place: Path, *, base: bool, path: str | None = None) -> Iterator[int]:
    """A version of the Person table whose data file is the victim's."""
    stolen = lance.dataset(table(place, "victim"), version=version_of(place, "victim"))
    found = stolen.get_fragments()[0].metadata.to_json()
    mine = lance.dataset(table(place))
    if base:
        mine.add_bases([lance.DatasetBasePath(str(table(place, "victim") / "data"), "b")])
        mine = lance.dataset(table(place))
        found["files"][0]["base_id"] = 1
    if path is not None:
        found["files"][0]["path"] = path.format(name=found["files"][0]["path"])
    fragment = FragmentMetadata.from_json(json.dumps(found))
    change = lance.Transaction(mine.version, lance.LanceOperation.Append([fragment]))
    yield lance.LanceDataset.commit(mine, change, detached=True).version


def version_of(place: Path, graph: str, kind: str = "Person") -> int:
    entries = open_graph(place / graph).snapshot().commit.tables.values()
    return next(int(entry.version) for entry in entries if entry.type_name == kind)


def commit_version(place: Path, kind: str, version: int, rows: int) -> None:
    def change(commit: dict[str, Any]) -> None:
        for entry in commit["tables"].values():
            if entry["type_name"] == kind:
                entry.update(version=str(version), rows=rows)

    rewritten(newest_commit(place), change)


@pytest.mark.parametrize(
    ("base", "path"),
    [(True, None), (False, "../../../victim/nodes/x/data/{name}"), (False, "/etc/passwd"), (False, "a/b.lance")],
    ids=["a base", "a path that climbs", "an absolute path", "a path in a folder"],
)  # fmt: skip
def test_a_manifest_that_names_files_elsewhere(place: Path, base: bool, path: str | None) -> None:
    (version,) = tampered(place, base=base, path=path)
    commit_version(place, "Person", version, 1)
    answers = use(place)
    assert answers["query"] == answers["mutate"] == answers["cleanup"] == "corrupt", answers
    assert is_reported(place)


def test_a_blob_that_is_an_address(place: Path, tmp_path: Path) -> None:
    """Lance would read any file, or any object its credentials reach."""
    secret = place / "precious" / "file.txt"
    mine = lance.dataset(table(place, kind="File"), version=version_of(place, "graph", "File"))
    names = [name for name in mine.schema.names if name != "content"]
    plain = mine.to_table(columns=names)
    blobs = lance.blob_array([lance.Blob.from_uri(secret.as_uri())])
    rows = plain.append_column(blob_field("content"), blobs).select(mine.schema.names)
    fragments = lance.fragment.write_fragments(
        rows, mine, mode="append", allow_external_blob_outside_bases=True
    )
    change = lance.Transaction(mine.version, lance.LanceOperation.Append(fragments))
    made = lance.LanceDataset.commit(mine, change, detached=True)
    ((_, read),) = made.read_blobs("content", indices=[1])
    assert read == SECRET.encode(), "Lance itself follows the address"
    commit_version(place, "File", made.version, 2)
    row = int(made.scanner(columns=["id"], with_row_address=True).to_table()["_rowaddr"][1].as_py())
    graph = open_graph(place / "graph")
    opened = graph.snapshot().table_of(graph.snapshot().catalog.nodes["File"])
    for read_it in (
        lambda: opened.scan(["id", "content"]),
        lambda: list(opened.batches(["content"])),
        lambda: opened.take(pa.array([row], pa.uint64()), ["content"]),
        lambda: opened.blob("content", row),  # type: ignore[attr-defined]
        lambda: graph.export(tmp_path / "out"),
    ):
        with pytest.raises(OmnigraphError) as refused:
            read_it()
        assert refused.value.code == "corrupt"
