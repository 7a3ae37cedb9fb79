"""`--json` in the form of the Rust project: the document of a command is the answer of its route."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import urllib3

from omnigraph.cli.app import every_command
from omnigraph.wire.contracts import CONTRACTS
from tests.server.process import Running, serving
from tests.unit.cli.world import Done

Cli = Callable[..., Done]
ACTIONS = (
    "read, export, change, schema_apply, branch_create, branch_delete, branch_merge, invoke_query"
)
POLICY = """\
version: 1
groups: {all: [ada]}
rules:
  - {id: all, allow: {actors: {group: all}, actions: [%s]}}
"""
ADULTS = "query adults() { match { $p: Person $p.age > 30 } return { $p.name } }"
EVERYBODY = "match { $p: Person } return { $p } order { $p.name }"
NEW = '{"type": "Person", "data": {"name": "Edsger", "age": 50}}\n'
# What tells the moment and the machine, or is made anew for each graph: only whether it is there is compared.
OWN = {"created_at", "authored_at", "load", "cursor"}
MADE_ANEW = OWN | {"cost", "graph_commit_id", "parent_commit_id", "merged_parent_commit_id"}


@dataclass(frozen=True)
class Step:
    """A command line, and the request its document is the answer to; `{head}` is the newest commit of main."""

    words: str
    method: str
    path: str
    body: dict[str, Any] | None = None
    query: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.words


READS = [
    Step(
        'query older --query people.gq --params {"age":30}',
        "POST",
        "/query",
        {"query": "@people.gq", "name": "older", "params": {"age": 30}},
    ),
    Step("query -e @everybody", "POST", "/query", {"query": EVERYBODY}),
    Step(
        "query -e @everybody --branch draft",
        "POST",
        "/query",
        {"query": EVERYBODY, "branch": "draft"},
    ),
    Step(
        "query -e @everybody --snapshot {head}",
        "POST",
        "/query",
        {"query": EVERYBODY, "snapshot": "{head}"},
    ),
    Step("snapshot", "GET", "/snapshot"),
    Step("snapshot --branch draft", "GET", "/snapshot", query={"branch": "draft"}),
    Step("branch list", "GET", "/branches"),
    Step("commit list", "GET", "/commits"),
    Step("commit list --branch draft", "GET", "/commits", query={"branch": "draft"}),
    Step("commit show {head}", "GET", "/commits/{head}"),
    Step("commit changes {head}", "GET", "/commits/{head}/changes"),
    Step(
        "commit changes {head} --kind edge --op insert",
        "GET",
        "/commits/{head}/changes",
        query={"kind": "edge", "op": "insert"},
    ),
    Step("changes poll", "GET", "/changes"),
    Step(
        "changes poll --start beginning --branch draft",
        "GET",
        "/changes",
        query={"start": "beginning", "branch": "draft"},
    ),
    Step(
        "changes poll --cursor {head} --branch draft",
        "GET",
        "/changes",
        query={"start": "after:{head}", "branch": "draft"},
    ),
    Step("schema show", "GET", "/schema"),
    Step("schema plan --schema next.pg", "POST", "/schema/plan", {"schema_source": "@next.pg"}),
]
WRITES = [
    Step(
        'mutate birthday --query people.gq --params {"name":"Ada","age":37}',
        "POST",
        "/mutate",
        {"query": "@people.gq", "name": "birthday", "params": {"name": "Ada", "age": 37}},
    ),
    Step(
        'mutate birthday --query people.gq --params {"name":"Nobody","age":37}',
        "POST",
        "/mutate",
        {"query": "@people.gq", "name": "birthday", "params": {"name": "Nobody", "age": 37}},
    ),
    Step(
        "load --data new.jsonl --mode merge --branch review --from main",
        "POST",
        "/load",
        {"data": NEW, "branch": "review", "from": "main", "mode": "merge"},
    ),
    Step("branch create b1 --from draft", "POST", "/branches", {"name": "b1", "from": "draft"}),
    Step(
        "branch merge b1 --delete-branch",
        "POST",
        "/branches/merge",
        {"source": "b1", "delete_branch": True},
    ),
    Step(
        "branch merge review --into draft",
        "POST",
        "/branches/merge",
        {"source": "review", "target": "draft"},
    ),
    Step("branch delete stale --yes", "DELETE", "/branches/stale"),
    Step(
        "schema apply --schema next.pg",
        "POST",
        "/schema/apply",
        {"schema_source": "@next.pg"},
    ),
]


@pytest.fixture(scope="module")
def server(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server of three copies of the graph: one to read, one for command lines, one for requests."""
    folder = tmp_path_factory.mktemp("shapes")
    (folder / "adults.gq").write_text(ADULTS)
    (folder / "all.policy.yaml").write_text(POLICY % ACTIONS)
    (folder / "server.policy.yaml").write_text(POLICY % "graph_list")
    (folder / "tokens.json").write_text('{"ada": "secret"}')
    graphs = {}
    for name in (
        "people",
        "conflicts",
        *(f"{kind}-{c.replace('.', '')}" for kind in ("cli", "http") for c in CONTRACTS),
    ):
        shutil.copytree(template / "people", folder / name)
        graphs[name] = {"uri": name, "queries": ["adults.gq"], "policy": "all.policy.yaml"}
    settings = {"graphs": graphs, "policy": "server.policy.yaml", "tokens_file": "tokens.json"}
    (folder / "server.yaml").write_text(json.dumps(settings))
    with serving("--config", str(folder / "server.yaml"), "--no-maintain") as running:
        yield running


@pytest.fixture
def shaped(
    folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, str, str], Done]:
    """Run the command line of a step in the form of a contract, on the graph at an address."""
    import omnigraph

    monkeypatch.setenv("OMNIGRAPH_TOKEN", "secret")
    (folder / "new.jsonl").write_text(NEW)
    head = omnigraph.open(folder / "people").log()[0].id

    def run(words: str, contract: str, address: str, *more: str) -> Done:
        monkeypatch.setenv("OMNIGRAPH_JSON", contract)
        filled = words.replace("{head}", head).split()
        texts = {"@everybody": EVERYBODY}
        given = [texts.get(word, word) for word in filled]
        return cli(*given, "--store", address, "--json", *more)

    return run


def _asked(server: Running, graph: str, contract: str, step: Step, folder: Path) -> Any:
    """The answer of the route, as it comes."""
    import omnigraph

    head = omnigraph.open(folder / "people").log()[0].id

    def filled(given: Any) -> Any:
        if isinstance(given, str) and given.startswith("@"):
            return (folder / given[1:]).read_text()
        return given.replace("{head}", head) if isinstance(given, str) else given

    answer = urllib3.request(
        step.method,
        server.url(graph) + filled(step.path),
        json=None if step.body is None else {k: filled(v) for k, v in step.body.items()},
        fields={k: filled(v) for k, v in step.query.items()} or None,
        headers={"Authorization": "Bearer secret", "Omnigraph-Http-Api": contract},
    )
    assert answer.status == 200, answer.data
    return answer.json()


def _plain(document: Any, hidden: set[str]) -> Any:
    """The document without addresses, and without the values that every graph and run has of its own."""
    match document:
        case dict():
            return {
                k: v is not None if k in hidden else _plain(v, hidden)
                for k, v in document.items()
                if k != "uri"
            }
        case list():
            return [_plain(each, hidden) for each in document]
        case _:
            return document


@pytest.mark.parametrize("contract", CONTRACTS)
@pytest.mark.parametrize("step", READS, ids=str)
def test_a_read_is_told_as_its_route_tells_it(
    step: Step, contract: str, server: Running, shaped: Any, folder: Path
) -> None:
    said = _asked(server, "people", contract, step, folder)
    for address in ("people", server.url("people")):
        done = shaped(step.words, contract, address)
        assert done.code == 0, done.err
        assert _plain(done.json, OWN) == _plain(said, OWN)
        assert done.out == json.dumps(done.json, ensure_ascii=False, indent=2) + "\n"


@pytest.mark.parametrize("contract", CONTRACTS)
def test_a_write_is_told_as_its_route_tells_it(
    contract: str, server: Running, shaped: Any, folder: Path
) -> None:
    """One after the other, on three graphs that were the same before."""
    name = contract.replace(".", "")
    for step in WRITES:
        said = _asked(server, f"http-{name}", contract, step, folder)
        for address in ("people", server.url(f"cli-{name}")):
            done = shaped(step.words, contract, address, "--as", "ada")
            assert done.code == 0, f"{step}: {done.err}"
            assert _plain(done.json, MADE_ANEW) == _plain(said, MADE_ANEW), step


def test_a_bare_node_is_its_id_in_the_oldest_form_alone(shaped: Any) -> None:
    old, new = (shaped("query -e @everybody", contract, "people").json for contract in CONTRACTS)
    assert old["rows"][0] == {"p": "Ada"}
    assert new["rows"][0]["p"]["age"] == 36


@pytest.mark.parametrize("contract", CONTRACTS)
def test_what_a_server_lists_is_told_as_it_lists_it(
    contract: str,
    server: Running,
    shaped: Any,
    cli: Cli,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stored = shaped("query adults", contract, server.url("people")).json
    asked = Step("", "POST", "/queries/adults", {})
    assert stored == _asked(server, "people", contract, asked, folder)
    queries = shaped("queries list", contract, server.url("people")).json
    assert queries == _asked(server, "people", contract, Step("", "GET", "/queries"), folder)
    monkeypatch.setenv("OMNIGRAPH_JSON", contract)
    graphs = cli("graphs", "list", "--server", f"http://{server.address}", "--json").json
    assert [set(graph) for graph in graphs["graphs"]] == [{"graph_id", "uri"}] * 6


# --- reports without a route --------------------------------------------------------------------------------------


def test_reports_of_maintenance_and_lint(shaped: Any, cli: Cli) -> None:
    optimized = shaped("optimize", "0.13", "people").json
    assert set(optimized) == {"uri", "datasets"}
    assert {table["type_key"] for table in optimized["datasets"]} == {"node:Person", "edge:Knows"}
    shaped('mutate birthday --query people.gq --params {"name":"Ada","age":37}', "0.13", "people")
    cleaned = shaped("cleanup --keep 1 --older-than 0s --confirm", "0.10", "people").json
    assert {name: cleaned[name] for name in ("keep_versions", "older_than_secs")} == {
        "keep_versions": 1,
        "older_than_secs": 0,
    }
    person = next(t for t in cleaned["datasets"] if t["type_key"] == "node:Person")
    assert set(person) == {"type_key", "bytes_removed", "old_versions_removed", "error"}
    assert person["bytes_removed"] > 0
    assert person["old_versions_removed"] > 0
    linted = cli("lint", "--schema", "people.pg", "--query", "people.gq", "--json").json
    assert linted["status"] == "ok"
    assert [r["kind"] for r in linted["results"]] == ["read", "mutation"]


# --- how it is asked for, and refused ----------------------------------------------------------------------------


def test_a_format_names_the_form_of_one_command(cli: Cli) -> None:
    assert cli("branch", "list", "people", "--format", "json-0.13").json == {
        "branches": ["draft", "main", "offer", "stale", "stale-too"]
    }
    assert "heads" in cli("branch", "list", "people", "--json").json


def test_commands_without_a_counterpart_say_so_before_they_act(cli: Cli, folder: Path) -> None:
    import omnigraph

    before = omnigraph.open(folder / "people").log()
    done = cli("revert", "people", "main", "--format", "json-0.13")
    assert (done.code, done.out) == (2, "")
    assert json.loads(done.err)["code"] == "json_shape_missing"
    assert omnigraph.open(folder / "people").log() == before


def test_an_unknown_form_is_refused(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_JSON", "0.7")
    done = cli("branch", "list", "people", "--json")
    assert done.code == 2
    assert "0.10 or 0.13" in done.err


def test_a_lost_condition_is_told_on_stdout(shaped: Any) -> None:
    words = (
        'mutate birthday --query people.gq --params {"name":"Ada","age":37} --if-commit nobody.1'
    )
    done = shaped(words, "0.13", "people")
    assert done.code == 4
    assert done.json["precondition_failure"]["expected"] == "nobody.1"


def test_conflicts_are_an_error_there(server: Running, shaped: Any) -> None:
    """Local and served, with nothing on stdout."""
    for address in ("people", server.url("conflicts")):
        for branch, age in (("main", 40), ("draft", 41)):
            values = json.dumps({"name": "Linus", "age": age}, separators=(",", ":"))
            words = f"mutate birthday --query people.gq --params {values} --branch {branch}"
            assert shaped(words, "0.13", address).code == 0
        done = shaped("branch merge draft --delete-branch", "0.13", address)
        assert (done.code, done.out) == (4, "")
        assert json.loads(done.err)["code"] == "merge_conflicts"


def test_every_command_with_a_form_is_tested() -> None:
    marked = {c.path for c in every_command() if hasattr(c.run, "rust_shape")}
    said = {"branch create", "branch delete", "branch list", "branch merge", "changes", "cleanup"}
    said |= {"graphs list", "lint", "load", "log", "merge", "mutate", "optimize", "queries list"}
    said |= {"query", "schema apply", "schema plan", "schema show", "show", "snapshot"}
    assert marked == said
