"""Every command's help opens with two examples, and they run."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import pytest

from omnigraph.cli import app
from tests.unit.cli.world import Done

Cli = Callable[..., Done]
OWN_TESTS = (
    "shell",
    "demo",
    "serve",
    "mcp",
    "explore",
    "pipeline run",
    "jobs list",
    "jobs show",
    "jobs cancel",
    "graphs list",
    "queries list",
    "login",
    "profile show",
    "import-rust",
)  # interactive, long, or of a server: run by tests of their own


COMMANDS = [pytest.param(command, id=command.path) for command in app.every_command()]
EXAMPLES = [
    pytest.param(example, id=f"{command.path}-{number}")
    for command in app.every_command()
    if command.path not in OWN_TESTS
    for number, example in enumerate(command.examples, 1)
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_runs(example: str, cli: Cli) -> None:
    words = shlex.split(example)
    assert words[0] == "omnigraph"
    done = cli(*words[1:])
    assert done.code == 0, f"{example}\n{done.out}\n{done.err}"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_opens_with_the_examples(command: app.Command) -> None:
    first, second = command.examples
    shown = command.help().replace(" \\\n      ", " ")  # long lines are broken
    assert shown.index(first) < shown.index(second) < shown.index(command.title)
    assert all(example.startswith(f"omnigraph {command.path}") for example in (first, second))


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_printed(command: app.Command, cli: Cli) -> None:
    done = cli(*command.path.split(), "--help")
    assert done.code == 0
    assert "Examples:" in done.out
