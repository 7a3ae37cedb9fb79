"""An agent and a person change a graph together: through a client of the SDK, with checks and a protected main."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omnigraph.graph import Graph
from omnigraph.guarded import GuardedGraph
from omnigraph.policy.guard import Guard
from tests.agents.world import called, client, refused, run, served
from tests.server import world as worlds

RULES = """
version: 1
groups: {people: [admin], agents: [beta]}
protected_branches: [main]
protection:
  main: {approvals: 1, checks: true}
rules:
  - {id: p1, allow: {actors: {group: people}, actions: [read, change, propose, approve, schema_apply]}}
  - {id: p2, allow: {actors: {group: people}, actions: [branch_create, branch_merge]}}
  - {id: a1, allow: {actors: {group: agents}, actions: [read, propose, change, branch_create]}}
"""
CHECK = """
query grown_up() @description("nobody is younger than nothing") {
  match { $p: Person $p.age < 0 } return { $p.name as name, $p.age as age }
}
"""
FACTS = [{"name": "Joan", "age": 41}, {"name": "Mary", "age": -7}]


def test_an_agent_proposes_and_a_person_decides(tmp_path: Path) -> None:
    with served(tmp_path, rules=RULES) as (address, graphs, _):
        graph = graphs["alpha"]
        graph.apply_checks(CHECK)
        person = GuardedGraph(graph, Guard(worlds.policy(RULES), "admin", "alpha"))
        number = run(lambda: _agent_works(f"{address}/graphs/alpha/mcp"))
        _person_decides(graph, person, number)
        run(lambda: _agent_looks(f"{address}/graphs/alpha/mcp", number))


async def _agent_works(address: str) -> int:
    async with client(address, "beta", Omnigraph_On_Behalf_Of="ada") as made:
        loaded = await called(made, "load_records", records={"Person": FACTS}, message="Archive")
        branch = loaded["data"]["branch"]
        assert branch == "agents/beta"
        checked = await called(made, "run_checks")
        assert checked["data"]["passed"] is False
        (failed,) = checked["data"]["results"]
        assert failed["rows"] == [{"name": "Mary", "age": -7}], "it says which rows"
        mended = 'query m() { update Person set { age: 70 } where name = "Mary" }'
        await called(made, "change", query=mended, message="Mend an age")
        assert (await called(made, "run_checks"))["data"]["passed"] is True
        assert await refused(made, "change", query=mended, branch="main") == "agent_branch_required"
        compared = (await called(made, "diff"))["data"]
        assert compared["counts"] == {"Person": {"inserted": 2, "updated": 0, "deleted": 0}}
        offered = (await called(made, "propose", title="Two people", text="From the archive"))[
            "data"
        ]["proposal"]
        assert (offered["author"], offered["source"], offered["target"]) == ("beta", branch, "main")
        assert await refused(made, "merge_branch", proposal=offered["number"]) in (
            "agent_merge_refused",
            "policy_denied",
        )
        return int(offered["number"])


def _person_decides(graph: Graph, person: Graph, number: int) -> None:
    review = person.review(number)
    assert review.counts == {"Person": {"inserted": 2, "updated": 0, "deleted": 0}}
    person.comment(number, "Are you sure?", type="Person", id="Mary", property="age")
    person.approve(number)
    graph.load({"Company": [{"name": "Elsewhere"}]})  # main moved meanwhile, in other rows
    done = person.merge_proposal(number)
    assert done.outcome == "merged"
    assert done.commit is not None
    assert (done.commit.actor, done.commit.proposal) == ("admin", number)
    told = graph.log()[0]
    assert told.id == done.commit.id, "the merge is one commit"


async def _agent_looks(address: str, number: int) -> Any:
    async with client(address, "beta") as made:
        shown = (await called(made, "proposals", number=number))["data"]["proposal"]
        assert shown["state"] == "merged"
        said = [(e["kind"], e["actor"], e["property"]) for e in shown["thread"]]
        assert ("commented", "admin", "age") in said
        assert "On-behalf-of: ada" in shown["thread"][0]["text"]
        cells = (await called(made, "blame", type="Person", id="Mary"))["data"]["cells"]
        by = {cell["property"]: cell["commit"] for cell in cells}
        assert by["name"]["actor"] == by["age"]["actor"] == "beta"
        assert by["name"]["message"].startswith("Archive")
        assert by["age"]["message"].startswith("Mend an age")
        listed = await made.read_resource("omnigraph://checks")
        assert "grown_up" in listed.contents[0].text  # type: ignore[union-attr]
