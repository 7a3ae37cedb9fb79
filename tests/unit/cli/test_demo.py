"""The tour runs to its end, and what it leaves behind answers the commands it names."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import omnigraph
from omnigraph.demo.world import Size, tables
from tests.unit.cli import world


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("demo")
    done = world.run(folder, "demo", "tour", "--small")
    assert done.code == 0, done.err
    return folder, done.out


def test_every_step_is_told_with_its_time(told: tuple[Path, str]) -> None:
    for step in ("Load all files as one commit", "Review the difference", "Travel back in time"):
        assert step in told[1]
    assert "3,000 papers before the merge, 3,001 after it" in told[1]


def test_the_commands_it_names_run(told: tuple[Path, str]) -> None:
    folder, out = told
    lines = [line.strip() for line in out.partition("Three commands to try:")[2].splitlines()]
    commands = [shlex.split(line) for line in lines if line]
    assert len(commands) == 3
    for command in commands:
        done = world.run(folder, *command[1:])
        assert done.code == 0, done.err


def test_the_merge_is_in_the_log(told: tuple[Path, str]) -> None:
    graph = omnigraph.open(told[0] / "tour" / "graph")
    assert [commit.kind for commit in graph.log(limit=2)] == ["merge", "load"]


def test_a_second_tour_does_not_overwrite_the_first(told: tuple[Path, str]) -> None:
    done = world.run(told[0], "demo", "tour", "--small")
    assert done.code == 2
    assert "there is a demo" in done.err


def test_the_world_is_always_the_same() -> None:
    size = Size(120, 300, 1_000)
    one, other = tables(size), tables(size)
    for name, columns in one.items():
        assert all(list(values) == list(other[name][key]) for key, values in columns.items())
