"""A server of a cluster: what is applied is served, without a restart."""

from __future__ import annotations

import json
import os
import signal
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from omnigraph.cli.main import main
from omnigraph.cluster.ledger import Ledger
from omnigraph.graph import open_graph
from tests.server.process import serving
from tests.support import rings
from tests.support.waiting import wait_until
from tests.unit.cluster.folders import applied, write_folder

TOKENS = {"ada": "t-ada", "bob": "t-bob"}


def ask(address: str, path: str, actor: str = "ada", body: Any = None) -> tuple[int, Any]:
    request = urllib.request.Request(
        f"http://{address}{path}",
        None if body is None else json.dumps(body).encode(),
        {"Authorization": f"Bearer {TOKENS[actor]}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


@pytest.mark.parametrize("more", [(), ("--workers", "2")], ids=["one process", "workers"])
def test_what_is_applied_is_served(more: tuple[str, ...], tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "c")
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps(TOKENS))
    applied(folder)
    arguments = ("--cluster", str(folder), "--tokens-file", str(tokens), *more)
    with serving(*arguments) as running:
        at = running.address
        call = {"params": {"name": "Ada"}}
        assert ask(at, "/graphs/people/queries/add", body=call)[0] == 200
        found = ask(at, "/graphs/people/queries/all", body={})[1]
        assert found["rows"] == [{"name": "Ada"}]
        asked = {"query": "match { $p: Person } return { $p.name as name }"}
        assert ask(at, "/graphs/people/query", body=asked)[0] == 200
        assert ask(at, "/graphs/people/query", "bob", body=asked)[0] == 403
        write_folder(
            folder, graphs={"people": {"schema": "people.pg"}, "more": {"schema": "films.pg"}}
        )
        applied(folder, delete=frozenset({"films"}))
        branches = "/graphs/more/branches"
        wait_until(lambda: ask(at, branches)[0] != 404, timeout=60, what="the new graph")
        wait_until(
            lambda: ask(at, "/graphs/people/queries/all", body={})[0] == 404,
            timeout=60,
            what="the query to go",
        )
        films = "/graphs/films/branches"
        wait_until(lambda: ask(at, films)[0] == 404, timeout=60, what="the old graph to go")
        os.kill(running.process.pid, signal.SIGTERM)
        assert running.process.wait(60) in (0, -15)


def test_a_cluster_nothing_was_applied_to_is_not_served(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "c")
    with (
        open(tmp_path / "log", "w") as log,
        pytest.raises(AssertionError, match="did not start"),
        serving("--cluster", str(folder), "--unauthenticated", stderr=log),
    ):
        pass
    assert "cluster_not_found" in (tmp_path / "log").read_text()


APPLY_SECONDS_MAX = 3.0  # for each graph of a cluster, on a busy machine
SERVE_SECONDS_MAX = 120.0
SERVED_BYTES_MAX = 600 << 20  # of a server, before anybody asks it


def test_many_graphs_are_applied_and_served_within_bounds(tmp_path: Path) -> None:
    """The budget docs/guides/clusters.md states: 50 graphs at night, a few otherwise."""
    count = rings.count(5, 50)
    graphs = {f"g{n}": {"schema": "people.pg", "queries": ["people.gq"]} for n in range(count)}
    folder = write_folder(tmp_path / "c", graphs=graphs, policies={})
    begun = time.monotonic()
    applied(folder)
    assert time.monotonic() - begun < APPLY_SECONDS_MAX * count
    begun = time.monotonic()
    with serving("--cluster", str(folder), "--unauthenticated") as running:
        for id in graphs:
            assert ask(running.address, f"/graphs/{id}/queries/all", body={})[0] == 200
        assert time.monotonic() - begun < SERVE_SECONDS_MAX
        held = Path(f"/proc/{running.process.pid}/status").read_text()
        resident = next(line for line in held.splitlines() if line.startswith("VmRSS"))
        assert int(resident.split()[1]) << 10 < SERVED_BYTES_MAX, resident


SERVER_RULES = """
version: 1
groups: {keepers: [ada], lookers: [bob]}
rules:
  - {id: apply, allow: {actors: {group: keepers}, actions: [cluster_plan, cluster_apply]}}
  - {id: look, allow: {actors: {group: lookers}, actions: [cluster_plan]}}
"""


def _governed(folder: Path, **changed: Any) -> Path:
    """A folder with rules about the cluster itself."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "server.policy.yaml").write_text(SERVER_RULES)
    policies = {
        "team": {"file": "team.policy.yaml", "applies_to": ["people"]},
        "server": {"file": "server.policy.yaml", "applies_to": ["cluster"]},
    }
    return write_folder(folder, policies=policies, **changed)


def test_a_server_plans_and_applies_under_its_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _governed(tmp_path / "c")
    applied(folder)
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps(TOKENS))
    mine = _governed(tmp_path / "mine")  # the folder of somebody elsewhere
    with serving("--cluster", str(folder), "--tokens-file", str(tokens)) as running:
        url = f"http://{running.address}"
        monkeypatch.setenv("OMNIGRAPH_TOKEN", TOKENS["bob"])
        same = ("--config", str(mine), "--server", url)
        assert main(["cluster", "plan", *same]) == 0
        assert "no changes" in capsys.readouterr().out
        (mine / "films.pg").write_text("node Film { title: String @key  year: I32? }")
        saved = str(tmp_path / "next.plan")
        assert main(["cluster", "plan", *same, "--exit-code", "--out", saved]) == 2
        assert "year" in capsys.readouterr().out
        assert main(["cluster", "apply", *same, "--yes"]) != 0, "bob may only look"
        assert "denied" in capsys.readouterr().err
        monkeypatch.setenv("OMNIGRAPH_TOKEN", TOKENS["ada"])
        assert main(["cluster", "apply", saved, "--server", url]) == 0
        assert "applied 1 change" in capsys.readouterr().out
        assert main(["cluster", "apply", saved, "--server", url]) == 4, "the world moved"
        assert "year: I32?" in open_graph(folder / "graphs" / "films.omni").schema()
        assert Ledger(str(folder)).history().__next__().actor == "ada"
        _governed(mine, graphs={"people": {"schema": "people.pg"}})
        assert main(["cluster", "apply", *same, "--yes"]) != 0
        assert "--delete" in capsys.readouterr().err
        assert main(["cluster", "apply", *same, "--yes", "--delete", "films"]) == 0
        wait_until(
            lambda: ask(running.address, "/graphs/films/branches")[0] == 404,
            timeout=60,
            what="the graph to go",
        )


def test_what_a_server_does_not_take(tmp_path: Path) -> None:
    folder = _governed(tmp_path / "c")
    applied(folder)
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps(TOKENS))
    here = "version: 1\ngraphs: {a: {schema: a.pg%s}}\n"
    with serving("--cluster", str(folder), "--tokens-file", str(tokens)) as running:

        def plan(files: dict[str, str]) -> tuple[int, str]:
            status, told = ask(running.address, "/cluster/plan", body={"files": files})
            return status, told.get("error", "")

        outside = {"cluster.yaml": here % ", uri: /tmp/x", "a.pg": "node A { n: String @key }"}
        assert plan(outside) == (
            400,
            "graph.a is stored elsewhere; a server accepts only its own graphs",
        )
        status, why = plan({"cluster.yaml": here % "", "../a.pg": "node A { n: String @key }"})
        assert (status, "not a path" in why) == (400, True)
        for inside in ("schema: /etc/hostname", "schema: ../tokens.json"):
            reached = f"version: 1\ngraphs: {{a: {{{inside}}}}}\n"
            status, why = plan({"cluster.yaml": reached})
            assert (status, "outside the folder" in why) == (400, True)
        queries = here % ", queries: /etc"
        status, why = plan({"cluster.yaml": queries, "a.pg": "node A { n: String @key }"})
        assert (status, "outside the folder" in why) == (400, True)
        key = "providers: {embedding: {p: {kind: openai, api_key: '${AWS_SECRET_ACCESS_KEY}'}}}\n"
        status, why = plan({"cluster.yaml": here % "" + key, "a.pg": "node A { n: String @key }"})
        assert (status, "_API_KEY" in why) == (400, True)
        status, why = plan({"cluster.yaml": here % "", "a.pg": "node a"})
        assert (status, "a.pg" in why) == (400, True)
        assert ask(running.address, "/cluster/status")[1]["revision"] == 1
    with serving(
        "--store", str(folder / "graphs" / "people.omni"), "--unauthenticated"
    ) as open_one:
        answer = ask(open_one.address, "/cluster/plan", body={"files": {}})
        assert answer[0] == 403, "what concerns the server as a whole needs a policy that allows it"
