"""An agent and a person change a graph together: the agent through a client of the MCP SDK, the person in a browser.

The agent opens a branch, loads facts of which one is wrong, learns from a check which rows are meant, fixes them and
proposes. A person looks at the difference, comments on a cell and approves; main moved meanwhile in other rows; the
merge is one commit; and the log, blame and the proposal tell how it came about.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from playwright.sync_api import Browser, Page, expect

import omnigraph
from tests.agents.world import called, refused
from tests.explorer.browser import keep, opened
from tests.explorer.world import World
from tests.server.process import serving
from tests.unit.cli import world as command_line

pytestmark = pytest.mark.xdist_group("explorer")  # which shares one browser
T = TypeVar("T")
SCHEMA = (
    "node Person { name: String @key  born: I32?  city: String? }\nedge Knows: Person -> Person"
)
CHECK = """
query born_in_the_future() @description("nobody is born in a year to come") {
  match { $p: Person  $p.born > 2025 }
  return { $p.name as name, $p.born as born }
}
"""
RULES = """
version: 1
groups: {people: [grace, ida], agents: [archivist]}
protected_branches: [main]
protection:
  main: {approvals: 1, checks: true}
rules:
  - {id: read, allow: {actors: {group: people}, actions: [read]}}
  - {id: decide, allow: {actors: {group: people}, actions: [propose, approve, branch_merge]}}
  - {id: agents-read, allow: {actors: {group: agents}, actions: [read, propose]}}
  - {id: agents-draft, allow: {actors: {group: agents}, actions: [change], branch_scope: unprotected}}
  - id: agents-branch
    allow: {actors: {group: agents}, actions: [branch_create], target_branch_scope: unprotected}
"""
FACTS = [
    {"name": "ada", "born": 1815, "city": "London"},
    {"name": "mary", "born": 2780, "city": "Jedburgh"},
]
MENDED = 'query fix() { update Person set { born: 1780 } where name = "mary" }'
BRANCH = "agents/archivist/parish-12"


@pytest.fixture
def births(tmp_path: Path) -> Iterator[World]:
    """A graph of people behind a server; its main takes changes by proposals alone."""
    graph = omnigraph.init(tmp_path / "births", SCHEMA, actor="ida")
    graph.load(
        {"Person": [{"name": "charles", "born": 1791}]}, actor="ida", message="The first one"
    )
    graph.apply_checks(CHECK, actor="ida", message="What must hold")
    tokens = {"grace": "t-grace", "ida": "t-ida", "archivist": "t-archivist"}
    (tmp_path / "tokens.json").write_text(json.dumps(tokens))
    (tmp_path / "policy.yaml").write_text(RULES)
    settings = {
        "graphs": {"births": {"uri": "births", "policy": "policy.yaml"}},
        "tokens_file": "tokens.json",
    }
    (tmp_path / "server.yaml").write_text(json.dumps(settings))
    with serving("--config", str(tmp_path / "server.yaml")) as running:
        yield World(f"http://{running.address}", tmp_path)


def _as_agent(births: World, work: Callable[[Client], Awaitable[T]]) -> T:
    """What an agent does through a client of the SDK; in a thread, as a browser is driven in this one."""

    async def talk() -> T:
        headers = {
            "Authorization": "Bearer t-archivist",
            "Omnigraph-On-Behalf-Of": "grace",
            "Omnigraph-Conversation": "parish-12",
        }
        place = f"{births.address}/graphs/births/mcp"
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(place, http_client=http)) as made,
        ):
            return await work(made)

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(talk())).result()


async def _agent_works(made: Client) -> int:
    started = await called(made, "start_branch")
    assert started["data"]["branch"] == BRANCH
    await called(
        made, "load_records", records={"Person": FACTS}, message="Parish register, page 12"
    )
    checked = (await called(made, "run_checks"))["data"]
    assert checked["passed"] is False
    (failed,) = checked["results"]
    assert failed["name"] == "born_in_the_future"
    assert failed["rows"] == [{"name": "mary", "born": 2780}], "it says which rows"
    assert await refused(made, "change", query=MENDED, branch="main") == "agent_branch_required"
    await called(made, "change", query=MENDED, message="Fix a year")
    assert (await called(made, "run_checks"))["data"]["passed"] is True
    compared = (await called(made, "diff"))["data"]
    assert compared["counts"] == {"Person": {"inserted": 2, "updated": 0, "deleted": 0}}
    asked = {"title": "Two births of the parish", "text": "Page 12 of the register."}
    offered = (await called(made, "propose", **asked, reviewers=["grace"]))["data"]["proposal"]
    return int(offered["number"])


def test_an_agent_proposes_and_a_person_decides(browser: Browser, births: World) -> None:
    number = _as_agent(births, _agent_works)
    graph = omnigraph.open(births.folder / "births")
    with opened(browser, births.address, "story") as page:
        page.goto(births.link("review", graph="births", actor=None))
        page.get_by_label("Token").fill("t-grace")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("link", name="Two births of the parish").click()
        _person_looks(page)
        graph.load({"Person": [{"name": "emmy", "born": 1882}]}, actor="ida", message="Meanwhile")
        _person_merges(page)
    _history_tells(graph, births.folder, number)
    _as_agent(births, lambda made: _agent_looks(made, number))


def _person_looks(page: Page) -> None:
    expect(page.locator(".merge-box")).to_contain_text(re.compile("0 of 1 approvals of commit"))
    expect(page.locator(".merge-box")).to_contain_text("1 check passed")
    expect(page.get_by_role("button", name="Merge into main")).to_be_disabled()
    expect(page.get_by_role("list", name="Conversation")).to_contain_text("On-behalf-of: grace")
    page.get_by_role("tab", name=re.compile("Changes")).click()
    mary = page.get_by_role("article", name="Person mary")
    expect(mary.locator("ins").first).to_have_text("1780")
    expect(page.get_by_role("article")).to_have_count(2)
    mary.get_by_role("button", name="Comment on Person mary · born").click()
    expect(mary.get_by_role("textbox")).to_be_focused()
    page.keyboard.type("1780 it is: I looked at the page.")
    page.keyboard.press("Control+Enter")
    expect(mary.locator(".remark")).to_contain_text("1780 it is")
    keep(page, "story-changes")
    page.keyboard.press("v")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Approve").check()
    dialog.get_by_role("button", name="Submit review").click()
    expect(page.locator(".proposal-facts")).to_contain_text("Approved")


def _person_merges(page: Page) -> None:
    page.get_by_role("tab", name=re.compile("Conversation")).click()
    expect(page.locator(".merge-box")).to_contain_text("1 approval of this commit")
    merge = page.get_by_role("button", name="Merge into main")
    expect(merge).to_be_enabled()
    merge.click()
    expect(page.locator(".proposal-facts")).to_contain_text("Merged")
    told = page.get_by_role("list", name="Conversation")
    for line in (
        "archivist committed Parish register, page 12",
        "archivist committed Fix a year",
        "grace commented on Person mary · born",
        "grace approved",
        "grace merged this as",
    ):
        expect(told).to_contain_text(line)
    keep(page, "story-merged")
    page.get_by_role("link", name="Show the commit").click()
    details = page.locator(".commit-details")
    expect(details.get_by_role("link", name="#1")).to_be_visible()
    expect(details.get_by_role("list", name="Checks of this commit")).to_contain_text(
        "born_in_the_future: passed"
    )


def _history_tells(graph: omnigraph.Graph, folder: Path, number: int) -> None:
    merge, meanwhile = graph.log(limit=2)
    assert (merge.actor, merge.proposal, merge.kind) == ("grace", number, "merge")
    assert (meanwhile.message, merge.parents[0]) == ("Meanwhile", meanwhile.id), "it is one commit"
    assert merge.checks == {"born_in_the_future": "passed"}
    log = command_line.run(folder, "log", "--store", "births", "--limit", "1").out
    assert f"Merge proposal {number}: Two births of the parish" in log
    assert "1 check passed" in log
    blamed = command_line.run(folder, "blame", "Person/mary", "--store", "births").out
    born = next(line for line in blamed.splitlines() if "born" in line)
    assert "1780" in born
    assert "archivist" in born
    assert "Fix a year" in born
    shown = graph.proposal(number)
    assert [entry.kind for entry in shown.thread] == [
        "opened", "commented", "approved", "merging", "merged",
    ]  # fmt: skip
    assert (shown.state, shown.commit) == ("merged", merge.id)


async def _agent_looks(made: Client, number: int) -> None:
    shown = (await called(made, "proposals", number=number))["data"]["proposal"]
    said = [(e["kind"], e["actor"], e["property"]) for e in shown["thread"]]
    assert (shown["state"], said[1]) == ("merged", ("commented", "grace", "born"))
    cells: list[dict[str, Any]] = (await called(made, "blame", type="Person", id="mary"))["data"][
        "cells"
    ]
    by = {cell["property"]: cell["commit"] for cell in cells}
    told = by["born"]["message"].splitlines()
    assert (by["born"]["actor"], told[0]) == ("archivist", "Fix a year")
    assert {"On-behalf-of: grace", "Conversation: parish-12"} <= set(told)
    assert by["city"]["message"].startswith("Parish register, page 12")
