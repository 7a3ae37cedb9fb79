"""MCP as the SDK's own client sees it: over HTTP in both of its eras, and over stdio."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

import omnigraph
from omnigraph.agents import prompts, resources, tools
from omnigraph.agents.answers import ANSWER_CHARACTERS_MAX, shown
from omnigraph.agents.toolbox import Toolbox
from omnigraph.graph import Graph
from omnigraph.server.settings import Bounds
from tests.agents.world import MODES, called, client, refused, run, served
from tests.server import world as worlds

INSERT = "query add($name: String) { insert Person { name: $name } }"
ALPHA = "/graphs/alpha/mcp"
SESSIONS = 64


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, Graph]]]:
    with served(tmp_path_factory.mktemp("mcp")) as (address, graphs, _):
        yield address, graphs


@pytest.mark.parametrize("mode", MODES)
def test_a_client_finds_tools_resources_and_prompts(
    at: tuple[str, dict[str, Graph]], mode: str
) -> None:
    async def look() -> None:
        async with client(at[0] + ALPHA, mode=mode) as made:
            listed = (await made.list_tools()).tools
            by_name = {tool.name: tool for tool in listed}
            assert "merge_branch" not in by_name, "the policy does not let this agent merge"
            assert set(by_name) == {t.name for t in tools.TOOLS if not t.where_allowed}
            for tool in tools.TOOLS:
                hints = by_name[tool.name].annotations if tool.name in by_name else None
                if hints is not None:
                    assert hints.read_only_hint is tool.is_read_only
                    assert hints.destructive_hint is tool.is_destructive
            found = (await made.list_resources()).resources
            assert [r.uri for r in found] == [r.uri for r in resources.plain()]
            for each in found:
                (content,) = (await made.read_resource(each.uri)).contents
                assert getattr(content, "text", "")
            templates = (await made.list_resource_templates()).resource_templates
            assert [t.uri_template for t in templates] == [t.uri for t in resources.templates()]
            named = (await made.list_prompts()).prompts
            assert [p.name for p in named] == [p.name for p in prompts.PROMPTS]
            for prompt in named:
                given = {a.name: "said" for a in prompt.arguments or ()}
                (message,) = (await made.get_prompt(prompt.name, given)).messages
                assert "said" in message.content.text  # type: ignore[union-attr]

    run(look)


@pytest.mark.parametrize("mode", MODES)
def test_an_agent_reads_and_changes_a_branch_of_its_own(
    at: tuple[str, dict[str, Graph]], mode: str
) -> None:
    graph = at[1]["alpha"]
    before = graph.snapshot().commit_id
    name = f"Zoe-{mode}"

    async def work() -> Any:
        talk = {"Omnigraph_On_Behalf_Of": "ada", "Omnigraph_Conversation": f"talk-{mode}"}
        async with client(at[0] + ALPHA, mode=mode, **talk) as made:
            described = await called(made, "describe")
            counts = {t["name"]: t["rows"] for t in described["data"]["types"]}
            assert counts["Person"] == 2
            assert described["data"]["your_branch"] == f"agents/beta/talk-{mode}"
            done = await called(made, "change", query=INSERT, params={"name": name}, message="Add")
            loaded = await called(made, "load_records", records={"Company": [{"name": name}]})
            compared = await called(made, "diff")
            return done["data"], loaded["data"], compared["data"]

    done, loaded, compared = run(work)
    branch = f"agents/beta/talk-{mode}"
    assert (done["branch"], done["branch_created"]) == (branch, True)
    assert (loaded["branch"], loaded["branch_created"]) == (branch, False)
    assert compared["counts"] == {
        "Company": {"inserted": 1, "updated": 0, "deleted": 0},
        "Person": {"inserted": 1, "updated": 0, "deleted": 0},
    }
    assert graph.snapshot().commit_id == before, "main did not move"
    first = graph.log(branch)[1]
    assert first.actor == "beta"
    *said, agent, person, conversation = (first.message or "").splitlines()
    assert said == ["Add", ""]
    assert agent.startswith("Agent: ")
    assert (person, conversation) == ("On-behalf-of: ada", f"Conversation: talk-{mode}")


def test_answers_are_small_counted_and_paged(at: tuple[str, dict[str, Graph]]) -> None:
    graph = at[1]["alpha"]
    rows = [{"name": f"P{n:04}", "age": n % 90} for n in range(450)]
    graph.create_branch("crowd")
    graph.load({"Person": rows}, branch="crowd")
    every = "query q() { match { $p: Person } return { $p.name as name } order { name } }"

    async def page() -> list[str]:
        names: list[str] = []
        async with client(at[0] + ALPHA) as made:
            cursor, pages = None, 0
            while pages == 0 or cursor:
                found = (
                    await called(
                        made, "run_query", query=every, branch="crowd", limit=200, cursor=cursor
                    )
                )["data"]
                assert found["count"] == 452
                names += [row["name"] for row in found["rows"]]
                cursor, pages = found.get("next_cursor"), pages + 1
                if pages == 1:  # the pages are of one commit, whatever is written meanwhile
                    graph.load({"Person": [{"name": "AAA"}]}, branch="crowd")
            usual = (await called(made, "run_query", query=every, branch="crowd"))["data"]
            assert (usual["count"], usual["shown"]) == (453, 20)
        return names

    names = run(page)
    assert names == sorted([f"P{n:04}" for n in range(450)] + ["Alice", "Bob"])


def test_long_values_and_many_rows_are_cut_and_say_so() -> None:
    graph = omnigraph.init("memory://cut", "node Note { slug: String @key\n text: String }")
    graph.load({"Note": [{"slug": f"n{n:03}", "text": "x" * 5_000} for n in range(300)]})
    call = tools.BY_NAME["find_entity"]
    answer = tools.call(call, Toolbox(graph), {"type": "Note", "limit": 200}).data
    assert (answer["count"], answer["shortened"]) == (300, True)
    assert answer["shown"] < 200
    assert "next_cursor" in answer
    assert len(json.dumps(answer)) < ANSWER_CHARACTERS_MAX * 1.1
    assert answer["rows"][0]["properties"]["text"].endswith("… (5000 characters)")
    assert shown([0.5] * 256) == "… (256 numbers)"


def test_walks_search_and_stored_queries(at: tuple[str, dict[str, Graph]]) -> None:
    async def work() -> None:
        async with client(at[0] + ALPHA) as made:
            near = (await called(made, "neighbours", type="Person", id="Alice"))["data"]
            (out,) = [e for e in near["edges"] if (e["edge"], e["direction"]) == ("Knows", "out")]
            assert [row["id"] for row in out["rows"]] == ["Bob"]
            way = await called(
                made,
                "path",
                from_type="Person",
                from_id="Bob",
                to_type="Person",
                to_id="Alice",
            )
            assert (way["data"]["found"], way["data"]["hops"]) == (True, 1)
            none = await called(
                made, "path", from_type="Person", from_id="Bob", to_type="Company", to_id="Acme"
            )
            assert none["data"]["found"] is False
            found = (await called(made, "search", text="alice", neighbours=1))["data"]
            assert found["rows"][0]["id"] == "Alice"
            assert found["rows"][0]["neighbours"][0]["id"] == "Bob"
            stored = await called(made, "run_stored_query", name="older", params={"age": 26})
            assert stored["data"]["rows"] == [{"name": "Alice"}]
            listed = await made.read_resource("omnigraph://queries")
            assert {q["name"] for q in json.loads(listed.contents[0].text)} == {  # type: ignore[union-attr]
                "older",
                "add_person",
                "set_age",
            }
            assert await refused(made, "run_stored_query", name="add_person") == "query_kind"
            done = await called(made, "change", stored="add_person", params={"name": "Stored"})
            assert done["data"]["affected"]["nodes"] == 1
            about = await called(made, "explain_error", code="T1")
            assert about["data"]["title"]

    run(work)


def test_sixty_four_sessions_at_once(tmp_path: Path) -> None:
    """Each opens, lists, reads and writes its own branch; nobody sees another's work."""
    bounds = Bounds(threads_max=8, actor_in_flight_max=2 * SESSIONS)
    with served(tmp_path, bounds=bounds) as (address, graphs, _):

        async def session(number: int) -> tuple[str, int]:
            talk = f"s{number}"
            mode = MODES[number % 2]
            async with client(address + ALPHA, mode=mode, Omnigraph_Conversation=talk) as made:
                assert (await made.list_tools()).tools
                done = await called(made, "change", query=INSERT, params={"name": f"N{number}"})
                branch = done["data"]["branch"]
                found = await called(made, "find_entity", type="Person", branch=branch)
                return branch, found["data"]["count"]

        async def everybody() -> list[tuple[str, int]]:
            return await asyncio.gather(*(session(n) for n in range(SESSIONS)))

        outcomes = run(everybody)
        assert len({branch for branch, _ in outcomes}) == SESSIONS
        assert {count for _, count in outcomes} == {3}
        assert len(graphs["alpha"].branches()) == SESSIONS + 1


def test_the_limits_of_the_server_hold(tmp_path: Path) -> None:
    """Of requests at once, of bytes, and of the rows of a query."""
    bounds = Bounds(threads_max=2, body_bytes_max=2_000, query_rows_max=1)
    headers = {
        "Authorization": "Bearer t-beta",
        "Content-Type": "application/json",
        "Accept": "application/json",
    }
    with served(tmp_path, bounds=bounds) as (address, _, __):
        large = httpx2.post(address + ALPHA, content=b" " * 3_000, headers=headers)
        assert (large.status_code, large.json()["resource_limit"]["resource"]) == (
            413,
            "body_bytes_max",
        )

        async def work() -> str:
            async with client(address + ALPHA) as made:
                text = "query q() { match { $p: Person } return { $p.name } }"
                return await refused(made, "run_query", query=text)

        assert run(work) == "limit_exceeded"


def test_other_methods_graphs_and_callers_are_refused(at: tuple[str, dict[str, Graph]]) -> None:
    address = at[0]
    told = httpx2.get(address + ALPHA, headers={"Authorization": "Bearer t-beta"})
    assert (told.status_code, told.headers["allow"]) == (405, "POST")
    assert httpx2.post(address + ALPHA, content=b"{}").status_code == 401
    headers = {"Authorization": "Bearer t-beta", "Content-Type": "application/json"}
    several = httpx2.post(f"{address}/mcp", content=b"{}", headers=headers)
    assert several.json()["error_code"] == "graph_not_chosen"
    for body in (
        b"{",
        b"[]",
        b'{"secret": "told"}',
        b'{"jsonrpc": "2.0", "method": 1}',
        b"[" * 9000,
    ):
        answer = httpx2.post(address + ALPHA, content=body, headers=headers)
        assert (answer.status_code, answer.json()["error_code"]) == (400, "request_invalid")
        assert "told" not in answer.text
    nowhere = httpx2.post(f"{address}/mcp?graph=gamma", content=b"{}", headers=headers)
    assert nowhere.json()["error_code"] == "graph_not_served"

    async def chosen() -> Any:
        async with client(f"{address}/mcp?graph=alpha") as made:
            return (await called(made, "describe"))["data"]["type_count"]

    assert run(chosen) == 4


def test_over_stdio(tmp_path: Path) -> None:
    store = str(tmp_path / "people")
    graph = omnigraph.init(store, worlds.SCHEMA)
    graph.load(worlds.RECORDS)
    (tmp_path / "stored.gq").write_text(worlds.STORED)
    started = StdioServerParameters(
        command=sys.executable,
        args=[
            *("-m", "omnigraph.cli.main", "mcp", store, "--as", "robot", "--for", "ada"),
            *("--queries", str(tmp_path / "stored.gq"), "--conversation", "c1"),
        ],
        env={**os.environ, "OMNIGRAPH_FSYNC": "0"},
    )

    async def work() -> None:
        async with Client(started) as made:
            assert len((await made.list_tools()).tools) == len(tools.TOOLS) - 1
            done = await called(made, "change", query=INSERT, params={"name": "Zoe"})
            assert done["data"]["branch"] == "agents/robot/c1"
            assert await refused(made, "change", query=INSERT, branch="main") == (
                "agent_branch_required"
            )
            assert await refused(made, "merge_branch") == "agent_merge_refused"
            stored = await called(made, "run_stored_query", name="older", params={"age": 26})
            assert stored["data"]["count"] == 1
            text = (await made.read_resource("omnigraph://branches/agents%2Frobot%2Fc1")).contents
            assert json.loads(text[0].text)["changed_since_main"]["Person"]["inserted"] == 1  # type: ignore[union-attr]

    run(work)
    commit = graph.log("agents/robot/c1")[0]
    assert (commit.actor, commit.branch) == ("robot", "agents/robot/c1")
    assert "On-behalf-of: ada" in (commit.message or "")


def test_over_stdio_under_a_policy(tmp_path: Path) -> None:
    """What the policy says of the actor is what the agent may do: this one may merge, and not read companies."""
    store = str(tmp_path / "people")
    omnigraph.init(store, worlds.SCHEMA).load(worlds.RECORDS)
    (tmp_path / "rules.yaml").write_text(
        "version: 1\ngroups: {robots: [robot]}\nrules:\n"
        "  - {id: r, allow: {actors: {group: robots}, actions: [read], types: [Person, Knows, WorksAt]}}\n"
        "  - {id: m, allow: {actors: {group: robots}, actions: [branch_merge]}}\n"
    )
    command = ["-m", "omnigraph.cli.main", "mcp", store, "--as", "robot"]
    started = StdioServerParameters(
        command=sys.executable,
        args=[*command, "--policy", str(tmp_path / "rules.yaml")],
        env=dict(os.environ),
    )

    async def work() -> None:
        async with Client(started) as made:
            assert "merge_branch" in {tool.name for tool in (await made.list_tools()).tools}
            assert (await called(made, "find_entity", type="Person"))["data"]["count"] == 2
            assert await refused(made, "find_entity", type="Company") == "policy_denied"
            described = (await called(made, "describe"))["data"]
            assert described["rows_hidden"] is True
            assert await refused(made, "change", query=INSERT, params={"name": "X"}) == (
                "policy_denied"
            )

    run(work)


def test_over_stdio_to_a_server(at: tuple[str, dict[str, Graph]]) -> None:
    """The same tools for a graph behind a server: its policy and its stored queries are in force."""
    started = StdioServerParameters(
        command=sys.executable,
        args=["-m", "omnigraph.cli.main", "mcp", f"{at[0]}/graphs/alpha", "--conversation", "far"],
        env={**os.environ, "OMNIGRAPH_TOKEN": "t-beta"},
    )

    async def work() -> None:
        async with Client(started) as made:
            names = {tool.name for tool in (await made.list_tools()).tools}
            assert "merge_branch" not in names
            described = (await called(made, "describe"))["data"]
            assert {t["name"]: t.get("rows") for t in described["types"]}["Person"] == 2
            done = (await called(made, "change", stored="add_person", params={"name": "Far"}))[
                "data"
            ]
            assert done["branch"].endswith("/far")
            compared = (await called(made, "diff", branch=done["branch"]))["data"]
            assert compared["counts"]["Person"]["inserted"] == 1
            assert await refused(made, "change", query=INSERT, params={}, branch="main") == (
                "agent_branch_required"
            )
            rows = await called(made, "run_stored_query", name="older", params={"age": 26})
            assert rows["data"]["rows"] == [{"name": "Alice"}]
            loaded = await called(made, "load_records", records={"Company": [{"name": "Far"}]})
            assert loaded["data"]["nodes"] == {"Company": 1}

    run(work)


def test_what_is_not_there_is_an_error_of_the_protocol(at: tuple[str, dict[str, Graph]]) -> None:
    async def work() -> None:
        async with client(at[0] + ALPHA) as made:
            with pytest.raises(MCPError, match="unknown tool"):
                await made.call_tool("drop_everything", {})
            with pytest.raises(MCPError) as missing:
                await made.read_resource("file:///etc/passwd")
            assert missing.value.error.data["error"]["code"] == "resource_missing"
            with pytest.raises(MCPError) as prompt:
                await made.get_prompt("answer_a_question", {})
            assert prompt.value.error.data["error"]["code"] == "tool_arguments_invalid"

    run(work)
