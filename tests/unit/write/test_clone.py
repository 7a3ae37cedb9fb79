"""Copies of graphs: equal to the original, independent of it, and refused where they would not be."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from omnigraph.errors import Corrupt, GraphExists, GraphNotFound, OptionInvalid
from omnigraph.graph import Graph, open_graph
from omnigraph.storage.objects import ObjectStore
from omnigraph.write import clone
from tests.support.people import change, people, reshape, state


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = people(tmp_path / "graph")
    made.create_branch("trial")
    change(made, 'insert City { name: "t" }', "trial")
    change(made, 'delete Person where name = "a"')
    made.tag("v1")
    made.optimize()
    return made


def test_a_whole_graph_comes_with_branches_tags_and_history(graph: Graph, tmp_path: Path) -> None:
    done = graph.clone(tmp_path / "copy")
    copy = open_graph(tmp_path / "copy")
    assert done.branches == ("main", "trial")
    assert copy.branches() == graph.branches()
    assert copy.tags() == graph.tags()
    assert [c.id for c in copy.log()] == [c.id for c in graph.log()]
    for branch in ("main", "trial"):
        assert state(copy, branch) == state(graph, branch)
    assert state(copy, at="main~1") == state(graph, at="main~1")
    assert copy.doctor(deep=True).healthy


def test_a_copy_goes_its_own_way(graph: Graph, tmp_path: Path) -> None:
    graph.clone(tmp_path / "copy")
    copy = open_graph(tmp_path / "copy")
    change(copy, 'insert City { name: "c" }')
    assert copy.merge("trial").outcome == "merged"
    copy.cleanup(keep=1)
    assert "c" not in state(graph)["City"]
    assert graph.doctor(deep=True).healthy


def test_one_branch_becomes_a_graph_of_its_own(graph: Graph, tmp_path: Path) -> None:
    reshape(graph, "age: I64?", "age: I64?\n  level: I64? @default(3)", "trial")
    for dest in (tmp_path / "copy", f"memory://{uuid.uuid4().hex}"):
        done = graph.clone(dest, branch="trial")
        copy = open_graph(dest)
        assert state(copy) == state(graph, "trial")
        assert copy.schema() == graph.schema("trial")
        assert copy.branches() == ["main"]
        assert done.rows == sum(len(rows) for rows in state(copy).values())
        change(copy, 'update Person set { level: 4 } where name = "b"')


def test_a_place_that_is_taken_is_refused(graph: Graph, tmp_path: Path) -> None:
    people(tmp_path / "other")
    for branch in (None, "main"):
        with pytest.raises(GraphExists):
            graph.clone(tmp_path / "other", branch=branch)


def test_a_graph_in_memory_can_only_be_copied_by_branch() -> None:
    with pytest.raises(OptionInvalid):
        people().clone(f"memory://{uuid.uuid4().hex}")


def test_a_copy_that_went_wrong_is_noticed_before_it_is_a_graph(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(source: ObjectStore, dest: ObjectStore, key: str) -> None:
        data = source.get(key)
        dest.put_new(key, data[:-1] if key.endswith(".lance") else data)

    monkeypatch.setattr(clone, "_copy", damaged)
    with pytest.raises(Corrupt):
        graph.clone(tmp_path / "copy")
    assert not (tmp_path / "copy" / "graph.json").exists()


def test_a_copy_that_did_not_finish_is_finished(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[str] = []
    real = clone._copy

    def stops(source: ObjectStore, dest: ObjectStore, key: str) -> None:
        if len(copied) > 20:
            raise KeyboardInterrupt
        copied.append(key)
        real(source, dest, key)

    with monkeypatch.context() as patch:
        patch.setattr(clone, "_copy", stops)
        with pytest.raises(KeyboardInterrupt):
            graph.clone(tmp_path / "copy")
    graph.clone(tmp_path / "copy")
    assert state(open_graph(tmp_path / "copy")) == state(graph)


def test_a_branch_that_was_not_copied_to_its_end_is_no_graph(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    dest = tmp_path / "copy"
    with monkeypatch.context() as patch:
        patch.setattr(clone, "_check_rows", interrupted)
        with pytest.raises(KeyboardInterrupt):
            graph.clone(dest, branch="main")
    with pytest.raises(GraphNotFound):
        open_graph(dest)
    graph.clone(dest, branch="main")
    assert open_graph(dest).doctor(deep=True).healthy
