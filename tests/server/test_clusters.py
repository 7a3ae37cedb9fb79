"""A server of a cluster: what is applied is served, without a restart."""

from __future__ import annotations

import json
import os
import signal
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.server.process import serving
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
