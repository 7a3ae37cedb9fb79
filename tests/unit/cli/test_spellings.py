"""Command lines of the Rust project run as they are written, or stand in the list with the reason why not."""

from __future__ import annotations

import json
import shlex
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.cli import spellings
from omnigraph.remote.credentials import CredentialsExposed, server_of, store, stored, token_for
from tests.server.process import Running, serving
from tests.unit.cli.world import Done

Cli = Callable[..., Done]
FILES = sorted((Path(__file__).parents[2] / "cases" / "commands").glob("*.txt"))
LINES = [line for file in FILES for line in file.read_text().splitlines()]
GUIDE = (Path(__file__).parents[3] / "docs" / "guides" / "migrating.md").read_text()
SHARE_MIN = 0.95
ALLOWED = """\
version: 1
groups: {all: [ada]}
rules:
  - {id: all, allow: {actors: {group: all}, actions: [%s]}}
"""


def _read() -> tuple[list[str], dict[str, str]]:
    """The lines that run, and the others with their reasons."""
    run: list[str] = []
    refused: dict[str, str] = {}
    for line in LINES:
        if line.startswith("no: "):
            refused[run.pop()] = line.removeprefix("no: ")
        elif line and not line.startswith("#"):
            run.append(line)
    return list(dict.fromkeys(run)), refused


RUN, REFUSED = _read()


@pytest.fixture(scope="session")
def server(template: Path) -> Iterator[Running]:
    text = "query adults() { match { $p: Person $p.age > 30 } return { $p.name } }"
    (template / "adults.gq").write_text(text)
    (template / "all.policy.yaml").write_text(ALLOWED % "read, export, invoke_query")
    (template / "server.policy.yaml").write_text(ALLOWED % "graph_list")
    (template / "tokens.json").write_text('{"ada": "secret"}')
    people = {"uri": "people", "queries": ["adults.gq"], "policy": "all.policy.yaml"}
    settings = {
        "graphs": {"people": people},
        "policy": "server.policy.yaml",
        "tokens_file": "tokens.json",
    }
    (template / "server.yaml").write_text(json.dumps(settings))
    with serving("--config", str(template / "server.yaml"), "--no-maintain") as running:
        yield running


@pytest.fixture
def lines(folder: Path, server: Running, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The files the lines name, and what the words in capitals stand for."""
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", "secret")
    (folder / "new.jsonl").write_text('{"type": "Person", "data": {"name": "Edsger", "age": 50}}\n')
    (folder / "one.gq").write_text("query one() { match { $p: Person } return { $p.name } }")
    (folder / "params.json").write_text('{"age": 30}')
    (folder / "ada.json").write_text('{"name": "Ada", "age": 37}')
    (folder / "home").mkdir(exist_ok=True)
    url = f"http://{server.address}"
    config = {
        "servers": {"here": {"url": url}},
        "profiles": {
            "work": {"store": str(folder / "people")},
            "served": {"server": "here", "default_graph": "people"},
        },
        "aliases": {"everybody": "query --file one.gq --store people"},
    }
    (folder / "home" / "config.yaml").write_text(json.dumps(config))
    head = omnigraph.open(folder / "people").log()[0].id
    return {"SERVER": url, "HEAD": head}


@pytest.mark.parametrize("line", RUN)
def test_a_line_runs(line: str, lines: dict[str, str], cli: Cli) -> None:
    words = [lines.get(word, word) for word in shlex.split(line)]
    done = cli(*words)
    assert done.code == 0, f"{line}\n{done.out}\n{done.err}"


@pytest.mark.parametrize("line", REFUSED)
def test_what_does_not_run_says_so(line: str, lines: dict[str, str], cli: Cli) -> None:
    """A line that starts to run leaves the list of those that do not."""
    done = cli(*(lines.get(word, word) for word in shlex.split(line)))
    assert done.code == 2
    assert "help" in done.err


def test_nearly_all_lines_run() -> None:
    assert len(RUN) / (len(RUN) + len(REFUSED)) >= SHARE_MIN


def test_the_guide_shows_every_spelling() -> None:
    for spelling in spellings.SPELLINGS:
        assert f"`{' '.join(spelling.theirs)}`" in GUIDE, spelling
    for options in spellings.OPTIONS.values():
        for theirs in options:
            assert f"`{theirs}`" in GUIDE, theirs


def test_our_own_lines_stay_as_they_are() -> None:
    for line in ("query people --file f.gq", "branch create x --from main", "log --json", "--help"):
        assert spellings.translated(shlex.split(line), {}) == shlex.split(line)


def test_cleanup_without_consent_removes_nothing(folder: Path, cli: Cli) -> None:
    before = omnigraph.open(folder / "people").log(limit=100)
    done = cli("cleanup", "people", "--keep", "1")
    assert done.code == 2
    assert "confirm" in done.err
    assert omnigraph.open(folder / "people").log(limit=100) == before


def test_an_unknown_profile_names_those_there_are(lines: dict[str, str], cli: Cli) -> None:
    assert lines
    done = cli("--profile", "nobody", "query", "--query", "one.gq")
    assert done.code == 2
    assert "served, work" in done.err


# --- tokens ------------------------------------------------------------------------------------------------------


def test_a_token_belongs_to_its_server(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("servers: {prod-eu: {url: 'https://a.org/eu/'}}\n")
    home = {"OMNIGRAPH_HOME": str(tmp_path), "OMNIGRAPH_BEARER_TOKEN": "last"}
    store("prod-eu", "kept", home)
    assert token_for("https://a.org/eu/graphs/g", home) == "kept"
    assert token_for("https://a.org/europe/graphs/g", home) == "last"
    assert (
        token_for("https://a.org/eu/graphs/g", home | {"OMNIGRAPH_TOKEN_PROD_EU": "own"}) == "own"
    )
    assert token_for("https://b.org/graphs/g", home | {"OMNIGRAPH_TOKEN": "first"}) == "first"
    assert store("prod-eu", None, home)
    assert not store("prod-eu", None, home)
    assert token_for("https://a.org/eu/graphs/g", home) == "last"


def test_the_longest_address_counts() -> None:
    servers = {"a": "https://a.org", "b": "https://a.org/b"}
    assert server_of("https://a.org/b/graphs/g", servers) == "b"
    assert server_of("https://a.organic/graphs/g", servers) is None


def test_tokens_others_may_read_are_refused(tmp_path: Path) -> None:
    home = {"OMNIGRAPH_HOME": str(tmp_path)}
    store("prod", "100% secret", home)
    file = tmp_path / "credentials"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stored(home) == {"prod": "100% secret"}
    file.chmod(0o644)
    with pytest.raises(CredentialsExposed):
        stored(home)
