"""Naming a graph: the same way in every command, from the command line, the environment or the project."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph.cli import app
from omnigraph.cli.options import Where
from omnigraph.config import load_config
from tests.unit.cli import world
from tests.unit.cli.terminal import Terminal
from tests.unit.cli.world import Done

Cli = Callable[..., Done]
ALL = "match { $p: Person } return { $p.name as name } order { $p.name asc }"
NO_GRAPH = (
    *("demo", "serve", "fmt", "explain", "version", "policy", "config"),
    *("cluster", "infer", "import-rust", "login", "logout", "profile", "schema translate"),
)
THROUGH_A_SERVER = ("cluster plan", "cluster apply")
OF_A_SERVER = "graphs"


@pytest.mark.parametrize("command", [pytest.param(c, id=c.path) for c in app.every_command()])
def test_every_command_about_a_graph_takes_it_in_the_same_ways(command: app.Command) -> None:
    names = list(app.flatten_options(command.run).__annotations__)
    if command.path.split()[0] == OF_A_SERVER:
        assert "uri" not in names
        return
    if command.path in NO_GRAPH or command.path.split()[0] in NO_GRAPH:
        assert ("server" in names) == (command.path in THROUGH_A_SERVER)
        return
    assert names[0] == "uri", "the graph is the first word"
    assert set(Where.__dataclass_fields__) <= set(names)


@pytest.mark.parametrize(
    "line",
    [
        f"query people -e '{ALL}'",
        "query people --file people.gq older --params '{\"age\": 30}'",
        "query people older --file people.gq --params '{\"age\": 30}'",
        "mutate people -e 'insert Person { name: \"Zoe\" }'",
        "show people main",
        "schema show people",
        "diff people main...draft",
        "diff people main draft",
        "diff people main~1..main",
        "branch list people",
        "branch create people spring",
        "merge people draft",
        "tag people v1",
        "tag people",
        "log people",
        "export people",
        "changes people",
        "lint people --query people.gq",
        "revert people main",
        "reset people main~1 --yes",
        "clone people copy",
        "doctor people",
        "retention people",
        "load people --data people.jsonl",
    ],
)
def test_the_graph_may_be_the_first_word_or_come_from_elsewhere(
    line: str, cli: Cli, monkeypatch: pytest.MonkeyPatch, template: Path, tmp_path: Path
) -> None:
    first = cli(*shlex.split(line))
    assert first.code == 0, first.err
    monkeypatch.setenv("OMNIGRAPH_STORE", "people")
    other = world.copied(template, tmp_path / "again")
    monkeypatch.chdir(other)
    without = shlex.split(line)
    without.remove("people")
    second = cli(*without)
    assert second.code == 0, second.err
    assert len(first.out.splitlines()) == len(second.out.splitlines())


def test_the_nearest_project_file_names_the_graph(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "omnigraph.yaml").write_text("store: people\nbranch: draft\n")
    below = folder / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    done = cli("query", "-e", ALL, "--json")
    assert [row["name"] for row in done.json["rows"]] == ["Ada", "Grace", "Linus", "Margaret"]
    shown = cli("config", "show", "--origin", "--json").json
    assert shown["defaults.store"] == {
        "value": os.path.join("..", "..", "people"),
        "origin": str(folder / "omnigraph.yaml"),
    }
    (below / "omnigraph.yaml").write_text("store: nowhere\n")
    assert cli("log").code == 3


def test_the_environment_comes_before_the_project(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "omnigraph.yaml").write_text("store: people\n")
    home = {"OMNIGRAPH_HOME": str(folder / "home")}
    assert load_config(home, folder)["defaults.store"]
    served = load_config(home | {"OMNIGRAPH_SERVER": "http://localhost:1"}, folder)
    assert (served["defaults.store"], served["defaults.server"]) == (None, "http://localhost:1")
    assert load_config(home | {"OMNIGRAPH_STORE": "x"}, folder)["defaults.store"] == "x"


@pytest.mark.parametrize(
    "text",
    [
        "server: https://evil.example\n",
        "store: https://evil.example/graphs/a\n",
        "aliases: {a: query}\n",
        "store: 3\n",
        "operator: {policy: x}\n",
    ],
)
def test_a_project_file_cannot_send_a_token_or_change_more_than_the_graph(
    text: str, cli: Cli, folder: Path
) -> None:
    """Whoever enters a folder of somebody else runs its `omnigraph.yaml`."""
    (folder / "omnigraph.yaml").write_text(text)
    done = cli("log")
    assert done.code == 1
    assert "error[config_invalid]" in done.err


def test_a_project_file_may_name_a_server_that_the_person_knows(cli: Cli, folder: Path) -> None:
    (folder / "home").mkdir()
    (folder / "home" / "config.yaml").write_text("servers: {team: {url: 'http://127.0.0.1:9'}}\n")
    (folder / "omnigraph.yaml").write_text("server: team\ngraph: people\n")
    assert "127.0.0.1:9" in cli("log").err


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("log --graph people -s people", "--graph names a graph on a server"),
        ("log --graph people", "give --server URL"),
        ("log people -s people", "unexpected argument: people"),
        ("show -s people", "missing argument COMMIT"),
        ("log", "omnigraph.yaml"),
        ("show main people", "Put people before main, or name it with --store people."),
    ],
)
def test_what_cannot_be_meant_is_said(line: str, told: str, cli: Cli) -> None:
    done = cli(*line.split())
    assert (done.code, told in done.err) == (2, True), done.err


# --- suggestions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        (f"query people -e '{ALL}' --branch drfat", "`draft`"),
        ("log people --branch mian", "`main`"),
        ("show people drafft", "`draft`"),
        ("merge people draf", "`draft`"),
        ("load people --data peple.jsonl", "`people.jsonl`"),
        ("init new --schema people.gp", "`people.pg`"),
        ("query people --file people.qg", "`people.gq`"),
        ("log poeple", "people`"),
        ("query people -e 'match { $p: Person } return { $p.nmae }'", "`name`"),
        ("merg people draft", "merge"),
    ],
)
def test_a_mistyped_name_gets_a_suggestion(line: str, meant: str, cli: Cli) -> None:
    done = cli(*shlex.split(line))
    assert done.code
    assert meant in done.err, done.err
    assert "id you mean" in done.err


@pytest.mark.parametrize(("variables", "colourful"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_errors_are_coloured_unless_told_not_to(
    folder: Path, variables: dict[str, str], colourful: bool
) -> None:
    words = ["query", "people", "-e", "match { $p: Persn } return { $p.name }"]
    with Terminal(folder, words, **variables) as terminal:
        assert terminal.finish() == 1
        assert "Did you mean `Person`?" in terminal.shown
        assert ("\x1b[1;31merror[T1]:" in terminal.raw) is colourful
        assert ("\x1b[36mhelp:" in terminal.raw) is colourful


# --- completion --------------------------------------------------------------------------------------------------


def completed(folder: Path, line: str) -> list[str]:
    """What bash offers when Tab is pressed at the end of a line."""
    words = line.split(" ")
    done = subprocess.run(
        [world.PROGRAM],
        cwd=folder,
        env=world.environment(
            folder,
            _OMNIGRAPH_COMPLETE="complete_bash",
            COMP_WORDS=line,
            COMP_CWORD=str(len(words) - 1),
        ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("omnigraph bra", ["branch"]),
        ("omnigraph log pe", ["people"]),
        ("omnigraph log people --branch d", ["draft"]),
        ("omnigraph merge -s people st", ["stale", "stale-too"]),
        ("omnigraph merge people dr", ["draft"]),
        ("omnigraph diff people main...d", ["main...draft"]),
        ("omnigraph export people --type K", ["Knows"]),
        ("omnigraph query people --file people.gq ol", ["older"]),
        ("omnigraph log nowhere --branch d", []),
    ],
)
def test_tab_in_a_shell(line: str, offered: list[str], folder: Path) -> None:
    assert completed(folder, line) == offered


# --- decisions ---------------------------------------------------------------------------------------------------


def test_a_merge_takes_the_decisions_of_a_file(cli: Cli, folder: Path) -> None:
    for branch, age in (("main", "40"), ("draft", "41")):
        text = 'update Person set { age: AGE } where name = "Ada"'.replace("AGE", age)
        assert cli("mutate", "people", "-b", branch, "-e", text).code == 0
    refused = cli("merge", "people", "draft", "--json")
    assert refused.code == 4
    (conflict,) = refused.json["conflicts"]
    decided = {"type": conflict["type"], "id": conflict["id"], "field": conflict["field"]}
    Path("d.json").write_text(json.dumps({"resolutions": [decided | {"take": "theirs"}]}))
    assert cli("merge", "people", "draft", "--decisions", "d.json").code == 0
    text = 'match { $p: Person { name: "Ada" } } return { $p.age as age }'
    assert cli("query", "people", "-e", text, "--json").json["rows"] == [{"age": 41}]


@pytest.mark.parametrize("text", ["[", "{}", '{"a": 1}', "3"])
def test_a_file_that_holds_no_decisions(text: str, cli: Cli) -> None:
    Path("d.json").write_text(text)
    assert cli("merge", "people", "draft", "--decisions", "d.json").code == 2
