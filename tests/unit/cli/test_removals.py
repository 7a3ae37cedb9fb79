"""Commands that remove history or rows say what goes, and want consent: local or served, the same."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.cli.app import every_command, flatten_options
from tests.server.process import Running, serving
from tests.unit.cli import world
from tests.unit.cli.terminal import Terminal
from tests.unit.cli.world import Done

Cli = Callable[..., Done]
PIPELINE = """\
graph: people
mode: overwrite
sources:
  - records: people.jsonl
"""


@dataclass(frozen=True)
class Removal:
    """A command line, and what it says would go."""

    words: str
    says: str
    served: bool = True

    def __str__(self) -> str:
        return self.words


REMOVALS = [
    Removal("branch delete draft", "deletes the branch draft"),
    Removal("mutate -e 'branch delete draft'", "deletes the branch draft"),
    Removal("tag --delete v1", "deletes the tag v1"),
    Removal("reset main~1", "Person -3"),
    Removal("load --data people.jsonl --mode overwrite", "3 Person, 2 Knows"),
    Removal("pipeline run overwrite.yaml --engine local", "3 Person, 2 Knows", served=False),
    Removal("schema apply --schema less.pg", "Dropped data leaves the branch"),
    Removal("schema apply --schema less.pg --allow-data-loss", "lost permanently"),
    Removal("retention --keep 1", "all but the newest 1 commits of each branch"),
    Removal("cleanup --keep 1", "would remove 2 commits", served=False),
    Removal("maintain --once", "would remove 2 commits", served=False),
    Removal("cluster apply", "Apply these changes?", served=False),
]
ELSEWHERE = {"shell"}  # asks about the statements that are typed
SERVED = [each for each in REMOVALS if each.served]


def prepare(folder: Path, *graphs: Path) -> None:
    """The files the lines name, a tag, and a cluster whose folder changed."""
    (folder / "less.pg").write_text(world.SCHEMA.replace("  age: I32?\n", ""))
    (folder / "overwrite.yaml").write_text(PIPELINE)
    (folder / "people.gq").write_text(world.QUERIES.replace(">=", ">"))  # of the cluster
    for place in graphs:
        omnigraph.open(place).tag("v1")


@pytest.fixture
def ready(folder: Path) -> Path:
    prepare(folder, folder / "people")
    return folder


@pytest.fixture(scope="module")
def server(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with a copy of the graph for each case."""
    place = tmp_path_factory.mktemp("removals")
    names = [f"g{number}" for number in range(len(SERVED))]
    for name in names:
        shutil.copytree(template / "people", place / name)
        omnigraph.open(place / name).tag("v1")
    settings = {"graphs": {name: {"uri": name} for name in names}, "unauthenticated": True}
    (place / "server.yaml").write_text(json.dumps(settings))
    with serving("--config", str(place / "server.yaml"), "--no-maintain") as running:
        yield running


def line(case: Removal, address: str) -> list[str]:
    words = shlex.split(case.words)
    return words if words[0] == "cluster" else [*words, "--store", address]


def state(graph: Any) -> Any:
    """What removals would change."""
    heads = {name: graph.log(name, limit=None) for name in graph.branches()}
    return heads, graph.tags(), graph.schema(), graph.retention()


def of_policy(case: Removal, folder: Path) -> None:
    if case.words.startswith("maintain"):
        omnigraph.open(folder / "people").set_retention(1)


def refused(done: Done, case: Removal) -> None:
    assert (done.code, done.out) == (2, ""), done.out
    told = json.loads(done.err.strip().splitlines()[-1])
    assert told["code"] == "confirmation_needed"
    assert case.says in told["message"] + done.err
    assert "--yes" in told["help"]
    assert "--confirm" in told["help"]


@pytest.mark.parametrize("case", REMOVALS, ids=str)
def test_without_a_terminal_it_wants_consent(case: Removal, ready: Path, cli: Cli) -> None:
    of_policy(case, ready)
    before = state(omnigraph.open(ready / "people"))
    refused(cli(*line(case, "people"), "--json"), case)
    assert state(omnigraph.open(ready / "people")) == before


@pytest.mark.parametrize("case", SERVED, ids=str)
def test_a_served_graph_wants_it_too(case: Removal, ready: Path, cli: Cli, server: Running) -> None:
    assert ready
    url = server.url(f"g{SERVED.index(case)}")
    before = state(omnigraph.open(url))
    refused(cli(*line(case, url), "--json"), case)
    assert state(omnigraph.open(url)) == before
    done = cli(*line(case, url), "--yes")
    assert done.code == 0, done.err
    assert state(omnigraph.open(url)) != before


@pytest.mark.parametrize("agreed", ["--yes", "-y", "--confirm"])
@pytest.mark.parametrize("case", REMOVALS, ids=str)
def test_consent_is_given_in_every_spelling(
    case: Removal, agreed: str, ready: Path, cli: Cli
) -> None:
    of_policy(case, ready)
    done = cli(*line(case, "people"), agreed)
    assert done.code == 0, done.err


@pytest.mark.parametrize("case", REMOVALS, ids=str)
def test_on_a_terminal_it_asks(case: Removal, ready: Path) -> None:
    of_policy(case, ready)
    before = state(omnigraph.open(ready / "people"))
    with Terminal(ready, line(case, "people"), COLUMNS="200") as asked:
        shown = asked.wait_for("[y/N]")
        asked.type("n\n")
        assert asked.finish() != 0
        assert "nothing was changed" in asked.shown
    assert case.says in shown.replace("\n", "")
    assert state(omnigraph.open(ready / "people")) == before


def test_every_command_with_the_option_is_here() -> None:
    asking = {
        command.path
        for command in every_command()
        if "yes" in flatten_options(command.run).__annotations__
    }
    tested = {path for path in asking for case in REMOVALS if case.words.startswith(path)}
    assert asking == tested | ELSEWHERE


# --- what is not asked about -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "branch merge draft --delete-branch",  # all of it is merged
        "load --data people.jsonl --mode overwrite --branch fresh --create-from main",
        "branch delete stale",  # no commit is its own
        "reset main",
        "mutate -e 'delete Knows where since is null'",
        "maintain --once",
    ],
)
def test_where_nothing_is_removed_nobody_is_asked(words: str, ready: Path, cli: Cli) -> None:
    assert ready
    done = cli(*shlex.split(words), "--store", "people")
    assert done.code == 0, done.err


@pytest.mark.parametrize("words", ["clone people", "init --schema people.pg"])
def test_a_place_that_holds_a_graph_is_never_taken(words: str, ready: Path, cli: Cli) -> None:
    before = state(omnigraph.open(ready / "notes"))
    assert cli(*words.split(), "notes").code != 0
    assert state(omnigraph.open(ready / "notes")) == before


def test_a_tag_is_never_moved(ready: Path, cli: Cli) -> None:
    before = state(omnigraph.open(ready / "people"))
    assert cli("tag", "v1", "--at", "main~1", "--store", "people").code == 4
    assert state(omnigraph.open(ready / "people")) == before


def test_the_shell_asks_about_branches(ready: Path) -> None:
    done = world.run(ready, "shell", "people", stdin="branch delete draft;\n")
    assert "confirmation_needed" in done.err
    assert "draft" in omnigraph.open(ready / "people").branches()
    world.run(ready, "shell", "people", "--yes", stdin="branch delete draft;\n")
    assert "draft" not in omnigraph.open(ready / "people").branches()


def test_an_overwrite_from_a_stream_is_asked_about_unread(ready: Path) -> None:
    os.mkfifo(ready / "stream.jsonl")
    done = world.run(ready, "load", "people", "--data", "stream.jsonl", "--mode", "overwrite")
    assert done.code == 2
    assert "types in the data" in done.err
