"""The tour runs to its end, and what it leaves behind answers the commands it names."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import omnigraph
from omnigraph.demo.tour import steps, to_try
from omnigraph.demo.world import Size, tables
from tests.unit.cli import world


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("demo")
    done = world.run(folder, "demo", "tour", "--small", "--engine", "local")
    assert done.code == 0, done.err
    return folder, done.out


def test_every_step_is_told_with_its_time(told: tuple[Path, str]) -> None:
    folder, out = told
    story = list(steps(folder / "tour", "local"))
    for number, step in enumerate(story, 2):
        assert f"{number:>2}  {step.title}\n" in out
    assert out.count(" s\n\n") == len(story) + 1
    assert "papers\n    3001" in out
    assert "papers\n    3000" in out


def test_the_lines_shown_can_be_copied(told: tuple[Path, str]) -> None:
    out = told[1]
    shown = [line for line in out.replace("\\\n", " ").splitlines() if "$ omnigraph" in line]
    run = [words for step in steps(Path("tour"), "local") for words in step.commands]
    assert [tuple(shlex.split(line)[2:]) for line in shown] == run


def test_the_commands_it_names_run(told: tuple[Path, str]) -> None:
    folder, out = told
    lines = [line.strip() for line in out.partition("three commands to try:")[2].splitlines()]
    commands = [shlex.split(line)[1:] for line in lines if line]
    assert [words[0] for words in commands] in (
        ["query", "explore", "shell"],
        ["query", "schema", "shell"],
    )
    for words in commands:
        done = world.run(folder, *words, *(["--help"] if words[0] == "explore" else []))
        assert done.code == 0, done.err


def test_without_an_explorer_the_schema_is_shown() -> None:
    assert ("schema", "show", "--store", "g") in to_try("g", explorer=False)


def test_the_merge_is_in_the_log(told: tuple[Path, str]) -> None:
    graph = omnigraph.open(told[0] / "tour" / "graph")
    assert [commit.kind for commit in graph.log(limit=3)] == ["merge", "mutation", "load"]


def test_only_a_demo_is_replaced_and_only_when_asked(
    told: tuple[Path, str], tmp_path: Path
) -> None:
    done = world.run(told[0], "demo", "tour", "--small", "--engine", "local")
    assert (done.code, "already has a demo" in done.err) == (2, True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter").write_text("keep me")
    done = world.run(tmp_path, "demo", "mine", "--again", "--engine", "local")
    assert (done.code, "is not empty" in done.err) == (2, True)
    assert (tmp_path / "mine" / "letter").read_text() == "keep me"


def test_a_step_that_fails_ends_the_tour(tmp_path: Path) -> None:
    done = world.run(
        tmp_path, "demo", "tour", "--small", "--engine", "spark", JAVA_HOME="nowhere", PATH=""
    )
    assert done.code == 1
    assert "error[demo_failed]" in done.err


def test_the_world_is_always_the_same() -> None:
    size = Size(120, 300, 1_000)
    one, other = tables(size), tables(size)
    for name, columns in one.items():
        assert all(list(values) == list(other[name][key]) for key, values in columns.items())


def test_scholars_have_names_of_their_own() -> None:
    names = tables(Size(12_000, 10, 10))["Scholar"]["name"]
    assert len(set(names)) == 12_000
