"""Every command's help opens with two examples, and they run."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator

import pytest

from omnigraph.cli import app
from tests.unit.cli.world import Done

Cli = Callable[..., Done]
OWN_TESTS = (
    "shell",
    "demo",
    "serve",
    "explore",
    "pipeline run",
    "jobs list",
    "jobs show",
    "jobs cancel",
)  # interactive, long, or of a server: run by tests of their own


def verbs() -> Iterator[tuple[str, app.Verb]]:
    for name in app.COMMANDS:
        match app.command(name):
            case app.Verb() as verb:
                yield name, verb
            case app.Group(_, members):
                yield from ((f"{name} {verb.word}", verb) for verb in members)


EXAMPLES = [
    pytest.param(example, id=f"{path}-{number}")
    for path, verb in verbs()
    if path not in OWN_TESTS
    for number, example in enumerate(verb.examples, 1)
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_runs(example: str, cli: Cli) -> None:
    words = shlex.split(example)
    assert words[0] == "omnigraph"
    done = cli(*words[1:])
    assert done.code == 0, f"{example}\n{done.out}\n{done.err}"


@pytest.mark.parametrize(("path", "verb"), [pytest.param(p, v, id=p) for p, v in verbs()])
def test_help_opens_with_the_examples(path: str, verb: app.Verb) -> None:
    assert len(verb.examples) == 2
    shown = verb.help().replace(" \\\n      ", " ")  # long lines are broken
    assert shown.index(verb.examples[0]) < shown.index(verb.examples[1]) < shown.index(verb.title)
    assert all(example.startswith(f"omnigraph {path}") for example in verb.examples)


@pytest.mark.parametrize("path", [path for path, _ in verbs()])
def test_help_is_printed(path: str, cli: Cli) -> None:
    done = cli(*path.split(), "--help")
    assert done.code == 0
    assert "Examples:" in done.out
