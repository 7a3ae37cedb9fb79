"""The server as people start it: flags, files, signals, and what survives its sudden death."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

import omnigraph
from omnigraph.cli.main import main
from omnigraph.errors import Kind, OmnigraphError
from omnigraph.remote.graph import RemoteGraph
from omnigraph.server.boot import build
from omnigraph.server.settings import GraphSettings, ServerInvalid, Settings, read_settings
from tests.server.process import Running, serving
from tests.support import rings
from tests.support.record import record
from tests.support.waiting import wait_until

SCHEMA = "node Person { name: String @key }\nedge Knows: Person -> Person"
ADD = "query add($name: String) { insert Person { name: $name } }"
LINK = 'query link() { insert Knows { from: "root", to: "root" } }'
COUNT = "query n() { match { $p: Person } return { count($p) as n } }"


@pytest.fixture
def store(tmp_path: Path) -> str:
    omnigraph.init(str(tmp_path / "graph"), SCHEMA).load({"Person": [{"name": "root"}]})
    return str(tmp_path / "graph")


def test_a_server_starts_answers_and_ends(store: str) -> None:
    with serving("--store", store, "--unauthenticated") as running:
        graph = omnigraph.open(running.url())
        graph.mutate(ADD, {"name": "Ada"})
        assert graph.query(COUNT).scalar() == 2
        assert running.stop() in (0, -15)
    assert omnigraph.open(store).query(COUNT).scalar() == 2


def test_a_server_maintains_its_graphs_one_process_at_a_time(store: str) -> None:
    local = omnigraph.open(store)
    local.load({"Person": [{"name": f"p{i}"} for i in range(5000)]})
    local.set_retention(1, every_hours=0.001)
    with (
        serving("--store", store, "--unauthenticated") as one,
        serving("--store", store, "--unauthenticated") as other,
        serving("--store", store, "--unauthenticated", "--no-maintain") as idle,
    ):
        graph = omnigraph.open(one.url())
        wait_until(lambda: len(graph.maintenance().actions) >= 2, timeout=60, what="maintenance")
        done = {action.kind for action in graph.maintenance().actions}
        assert {"optimize", "cleanup"} <= done
        texts = [httpx2.get(f"http://{each.address}/metrics").text for each in (one, other, idle)]
        held = [line for text in texts for line in text.splitlines() if "maintenance_held{" in line]
        assert sorted(line.split()[-1] for line in held) == ["0.0", "1.0"]
        assert (
            'omnigraph_maintenance_actions_total{graph="default",kind="optimize"} 1.0'
            in "".join(texts)
        )
        assert graph.retention() == local.retention()
    kinds = [commit.kind for commit in local.log(maintenance=True)]
    assert {"optimize", "epoch"} <= set(kinds)


def test_commands_work_through_a_server(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = tmp_path / "people.jsonl"
    lines.write_text('{"type":"Person","data":{"name":"Ada"}}\n')
    with serving("--store", store, "--unauthenticated") as running:
        where = ["--server", f"http://{running.address}", "--graph", "default", "--json"]

        def told(*words: str) -> Any:
            assert main([*words, *where]) == 0, capsys.readouterr().err
            return json.loads(capsys.readouterr().out)

        told("branch", "create", "draft")
        assert told("load", "--data", str(lines), "--branch", "draft")["nodes"] == {"Person": 1}
        assert told("diff", "main..draft")["counts"]["Person"]["inserted"] == 1
        assert told("merge", "draft")["outcome"] == "fast_forward"
        assert told("query", "-e", COUNT)["rows"] == [{"n": 2}]
        assert main(["query", "-e", COUNT, "--branch", "nowhere", *where]) == 3
        assert main(["doctor", *where]) == 1


def test_a_file_of_settings_is_understood(store: str, tmp_path: Path) -> None:
    (tmp_path / "q.gq").write_text(COUNT)
    (tmp_path / "tokens.json").write_text('{"ada": "t"}')
    (tmp_path / "p.yaml").write_text(
        "version: 1\ngroups: {a: [ada]}\nrules: [{id: r, allow: {actors: {group: a}, actions: [read]}}]"
    )
    (tmp_path / "server.yaml").write_text(
        "graphs: {people: {uri: graph, queries: [q.gq], policy: p.yaml}}\n"
        "tokens_file: tokens.json\nlimits: {query_rows_max: 5}\n"
    )
    server = build(read_settings(tmp_path / "server.yaml"), {})
    try:
        assert list(server.graphs["people"].queries) == ["n"]
        assert server.bounds.query_rows_max == 5
        assert server.identity.actor("Bearer t") == "ada"
    finally:
        server.close()


@pytest.mark.parametrize(
    ("settings", "environment"),
    [
        ({}, {}),
        ({"policy": "server.yaml"}, {"OMNIGRAPH_UNAUTHENTICATED": "1"}),
        ({"policy": "graph.yaml"}, {"OMNIGRAPH_SERVER_BEARER_TOKEN": "t"}),
        ({"tokens_file": "missing.json"}, {}),
        ({"graphs": {}}, {"OMNIGRAPH_SERVER_BEARER_TOKEN": "t"}),
    ],
    ids=["no tokens", "policy without tokens", "wrong policy", "no such tokens", "no graphs"],
)
def test_what_is_unsafe_or_unclear_does_not_start(
    store: str, tmp_path: Path, settings: dict[str, object], environment: dict[str, str]
) -> None:
    allow = "version: 1\ngroups: {a: [ada]}\nrules: [{id: r, allow: {actors: {group: a}, actions: [%s]}}]"
    (tmp_path / "server.yaml").write_text(allow % "graph_list")
    (tmp_path / "graph.yaml").write_text(allow % "read")
    placed = {k: str(tmp_path / v) if isinstance(v, str) else v for k, v in settings.items()}
    wanted = Settings(**{"graphs": {"a": GraphSettings(store)}, **placed})  # type: ignore[arg-type]
    with pytest.raises(ServerInvalid):
        build(wanted, environment)


def test_a_graph_that_cannot_be_opened_does_not_take_the_others_along(
    store: str, tmp_path: Path
) -> None:
    graphs = {"good": GraphSettings(store), "bad": GraphSettings(str(tmp_path / "missing"))}
    server = build(Settings(graphs, unauthenticated=True), {})
    server.close()
    assert (list(server.graphs), server.quarantined) == (["good"], ("bad",))
    with pytest.raises(OmnigraphError):
        build(Settings(graphs, unauthenticated=True, require_all_graphs=True), {})


@pytest.mark.parametrize(
    "words",
    [
        ["serve"],
        ["serve", "--store", "a", "--graph", "b=c"],
        ["serve", "--graph", "b"],
        ["serve", "--store", "a", "--bind", "nowhere"],
    ],
)
def test_command_lines_that_make_no_sense(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err.startswith("error[usage]")


@dataclass
class Ledger:
    """What writers were told, across the lives of a server."""

    acknowledged: set[str] = field(default_factory=set)
    failures: list[BaseException] = field(default_factory=list)

    def write(self, url: str, names: list[str]) -> None:
        """Insert a node, which twice is once, and an edge, which twice is two: both under keys."""
        graph = RemoteGraph(url)
        for name in names:
            try:
                graph.mutate(ADD, {"name": name}, idempotency_key=f"node {name}")
                graph.mutate(LINK, idempotency_key=f"edge {name}")
            except OmnigraphError as error:
                if error.kind not in (Kind.UNAVAILABLE, Kind.UNKNOWN_OUTCOME):
                    self.failures.append(error)
                return
            self.acknowledged.add(name)


@pytest.mark.xdist_group("server-process")
def test_killed_under_load_it_loses_nothing_and_repeats_nothing(store: str) -> None:
    """Writers repeat every write under its key until it is acknowledged, across restarts."""
    kills, writers, writes = rings.count(2, 15), rings.count(4, 6), rings.count(6, 8)
    ledger, chance = Ledger(), random.Random(7)
    names: list[list[str]] = []
    total = unanswered = 0
    for number in range(kills + 1):  # each server first finishes what the one before left open
        with serving("--store", store, "--unauthenticated") as running:
            unanswered += total - len(ledger.acknowledged)
            for mine in names:
                ledger.write(running.url(), mine)
            _check(store, ledger, total)
            if number == kills:
                break
            names = [[f"r{number}-w{w}-{i}" for i in range(writes)] for w in range(writers)]
            _killed_at_random(running, names, ledger, total, chance)
            total += writers * writes
    figures = {"kills": kills, "writes": 2 * total, "unanswered at the kill": unanswered}
    record("server killed under load", {**figures, "lost": 0, "applied twice": 0})


def _check(store: str, ledger: Ledger, total: int) -> None:
    assert not ledger.failures
    assert len(ledger.acknowledged) == total
    graph = omnigraph.open(store)
    assert graph.query(COUNT).scalar() == total + 1, "a write was lost"
    assert _edges(graph) == total, "a write was lost, or happened twice"


def _killed_at_random(
    running: Running, names: list[list[str]], ledger: Ledger, before: int, chance: random.Random
) -> None:
    """Let writers work until so many of their writes are acknowledged, then kill the server."""
    enough = before + chance.randrange(sum(map(len, names)))
    threads = [threading.Thread(target=ledger.write, args=(running.url(), n)) for n in names]
    for thread in threads:
        thread.start()
    while len(ledger.acknowledged) < enough and any(t.is_alive() for t in threads):
        threads[0].join(0.002)
    running.kill()
    for thread in threads:
        thread.join()


def _edges(graph: omnigraph.Graph) -> int:
    """How many edges are stored; a pattern would count parallel ones once."""
    tables = graph.snapshot().commit.tables.values()
    return sum(table.rows for table in tables if table.kind == "edge")


def test_secrets_are_not_in_the_process_list(store: str, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps({"ada": "secret-token"}))
    with serving("--store", store, "--tokens-file", str(tokens)) as running:
        shown = Path(f"/proc/{running.process.pid}/cmdline")
        if os.path.exists(shown):
            assert b"secret-token" not in shown.read_bytes()
        told = RemoteGraph(running.url(), "secret-token").query(COUNT)
        assert told.scalar() == 1


def test_explore_serves_one_graph_until_it_is_interrupted(tmp_path: Path) -> None:
    omnigraph.init(tmp_path / "my films", "node Film { title: String @key }")
    built = tmp_path / "ui"
    built.mkdir()
    (built / "index.html").write_text("<!doctype html><title>omnigraph</title>")
    code = (
        "import sys, pathlib; from omnigraph.server.routes import ui; "
        "ui.BUILT = pathlib.Path(sys.argv.pop(1)); from omnigraph.cli.main import main; sys.exit(main())"
    )
    command = [sys.executable, "-c", code, str(built), "explore", str(tmp_path / "my films")]
    name = tmp_path / "gitconfig"
    name.write_text("[user]\n\tname = Ida Lindqvist\n")
    process = subprocess.Popen(
        [*command, "--no-open", "--read-only"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "GIT_CONFIG_GLOBAL": str(name)},
    )
    try:
        assert process.stdout is not None
        link = process.stdout.readline().strip()
        assert link.startswith("http://127.0.0.1:")
        found = re.search(r"(.*)/ui/#token=([\w-]{32})&/my-films/home$", link)
        assert found is not None, link
        base, secret = found.groups()
        assert "omnigraph" in httpx2.get(f"{base}/ui").text
        asked = f"{base}/graphs/my-films/permissions"
        assert httpx2.get(asked).status_code == 401
        assert httpx2.get(asked, headers={"Authorization": "Bearer guessed"}).status_code == 401
        told = httpx2.get(asked, headers={"Authorization": f"Bearer {secret}"}).json()
        assert told["read_only"] is True
        assert told["actor"] == "Ida Lindqvist", "what Git calls who works here"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0, "Ctrl-C is how it ends: no failure"
    finally:
        process.kill()
        process.wait(30)
        if process.stdout is not None:
            process.stdout.close()


def test_a_repeated_key_is_answered_after_a_restart_a_cleanup_and_the_end_of_its_branch(
    store: str,
) -> None:
    local = omnigraph.open(store)
    line = b'{"type":"Person","data":{"name":"Grace"}}\n'

    def written(address: str, branch: str) -> list[dict[str, Any]]:
        asked = {"branch": branch, "query": ADD, "params": {"name": "Ada"}}
        nothing = {"branch": branch, "query": 'query n() { delete Person where name = "Bea" }'}
        steps = [{"query": ADD, "params": {"name": "Cy"}}]
        with httpx2.Client(base_url=f"http://{address}/graphs/default", timeout=60) as client:
            answers = [
                client.post("/mutate", json=asked, headers={"Idempotency-Key": f"m {branch}"}),
                client.post("/mutate", json=nothing, headers={"Idempotency-Key": f"n {branch}"}),
                client.post(
                    "/write",
                    json={"branch": branch, "steps": steps},
                    headers={"Idempotency-Key": f"w {branch}"},
                ),
                client.post(
                    f"/load?mode=append&branch={branch}",
                    content=line,
                    headers={
                        "Content-Type": "application/x-ndjson",
                        "Idempotency-Key": f"l {branch}",
                    },
                ),
            ]
        assert [answer.status_code for answer in answers] == [200] * 4, answers[-1].text
        return [answer.json() for answer in answers]

    branches = ("main", "gone")
    local.create_branch("gone")
    with serving("--store", store, "--unauthenticated") as running:
        first = [written(running.address, branch) for branch in branches]
        running.stop()
    for branch in branches:
        for name in ("Bea", "Dee", "Eve"):
            local.mutate(ADD, {"name": name}, branch=branch)
    local.delete_branch("gone")
    local.cleanup(keep=1)
    with serving("--store", store, "--unauthenticated") as running:
        again = [written(running.address, branch) for branch in branches]
    assert again == [[answer | {"replayed": True} for answer in answers] for answers in first]
    assert omnigraph.open(store).query(COUNT).scalar() == 7, "root and six more, none twice"
