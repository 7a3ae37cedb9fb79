"""A protected branch changes only by those who may push, or by proposals that have what it demands.

Every verb that changes a branch is tried directly, by somebody whose rules allow everything else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from omnigraph.errors import OmnigraphError
from omnigraph.graph import Graph
from omnigraph.guarded import GuardedGraph
from omnigraph.policy.bundle import parse_bundle
from omnigraph.policy.cases import parse_cases, run_cases
from omnigraph.policy.guard import Guard, Need
from omnigraph.policy.questions import PUSHES, Action, PolicyInvalid
from tests.server import world as worlds
from tests.server.world import World

EVERYBODY = "[read, export, change, branch_create, branch_delete, branch_merge, schema_apply]"
RULES = f"""
version: 1
groups:
  owners: [olga]
  writers: [wes, agent]
  reviewers: [ann, bob]
  outsiders: [oto]
  all: [olga, wes, agent, ann, bob, oto]
protected_branches: [main]
protection:
  main: {{push: [owners], approvals: 2, approvers: [reviewers], checks: true}}
rules:
  - {{id: do, allow: {{actors: {{group: all}}, actions: {EVERYBODY}}}}}
  - {{id: talk, allow: {{actors: {{group: all}}, actions: [propose, approve]}}}}
"""
ADD = 'query q() { insert Person { name: "Mallory" } }'
ROWS: dict[str, Any] = {"Person": [{"name": "Mallory"}]}
AGELESS = "query ageless() { match { $p: Person $p.age is null } return { $p.name as name } }"
NEVER = "query never() { match { $p: Person } return { $p.name as name } }"


@pytest.fixture
def graph() -> Graph:
    made = worlds.graph("protected")
    made.apply_checks(AGELESS)
    made.tag("start")
    made.create_branch("draft")
    made.load({"Person": [{"name": "Zoe", "age": 9}]}, branch="draft", actor="agent")
    return made


def _as(graph: Graph, actor: str, rules: str = RULES) -> GuardedGraph:
    return GuardedGraph(graph, Guard(worlds.policy(rules), actor, "g"))


def _code(call: Callable[[], object]) -> str:
    with pytest.raises(OmnigraphError) as caught:
        call()
    return caught.value.code


def _block(graph: Graph) -> None:
    with graph.write() as block:
        block.mutate(ADD)


DIRECT: dict[str, Callable[[Graph], Any]] = {
    "mutate": lambda g: g.mutate(ADD),
    "load": lambda g: g.load(ROWS),
    "load, overwriting": lambda g: g.load(ROWS, mode="overwrite"),
    "write": _block,
    "publish": lambda g: g.publish(g.mutation(ADD)),
    "publish, as if approved": lambda g: g.publish(
        g.mutation(ADD), need=Need(Action.BRANCH_MERGE, "draft", "main", proposal=True)
    ),
    "merge": lambda g: g.merge("draft"),
    "revert": lambda g: g.revert("main"),
    "cherry_pick": lambda g: g.cherry_pick("draft"),
    "reset": lambda g: g.reset("start~1"),
    "apply_schema": lambda g: g.apply_schema(f"{worlds.SCHEMA}\nnode New {{ a: I64 }}"),
    "apply_checks": lambda g: g.apply_checks(""),
}


@pytest.mark.parametrize("name", DIRECT)
def test_nobody_changes_a_protected_branch_directly(graph: Graph, name: str) -> None:
    before = graph.snapshot().commit_id
    assert _code(lambda: DIRECT[name](_as(graph, "wes"))) == "policy_denied"
    assert graph.snapshot().commit_id == before


def test_those_who_may_push_are_held_to_the_checks_all_the_same(graph: Graph) -> None:
    olga = _as(graph, "olga")
    assert _code(lambda: olga.mutate(ADD)) == "checks_failed"
    done = olga.load({"Person": [{"name": "Old", "age": 80}]})
    assert done.commit is not None
    assert done.commit.checks == {"ageless": "passed"}


def test_a_protected_name_cannot_be_taken_or_given_up(graph: Graph) -> None:
    rules = RULES.replace("  main: {push", "  release: {push: []}\n  main: {push")
    wes = _as(graph, "wes", rules)
    assert _code(lambda: wes.create_branch("release")) == "policy_denied"
    assert _code(lambda: wes.load(ROWS, branch="release", create_from="draft")) == "policy_denied"
    graph.create_branch("release")
    assert _code(lambda: wes.delete_branch("release")) == "policy_denied"
    assert _code(lambda: wes.mutate(ADD, branch="re" + "lease")) == "policy_denied"


# --- what a proposal needs ---------------------------------------------------------------------------------------


@pytest.fixture
def number(graph: Graph) -> int:
    return _as(graph, "agent").propose("draft", "Add Zoe").number


def _merge(graph: Graph, number: int, **more: Any) -> Any:
    return _as(graph, "wes").merge_proposal(number, **more)


def test_it_needs_approvals_of_the_commit_that_is_merged(graph: Graph, number: int) -> None:
    assert _code(lambda: _merge(graph, number)) == "proposal_not_ready"
    _as(graph, "ann").approve(number)
    assert _code(lambda: _merge(graph, number)) == "proposal_not_ready"
    _as(graph, "bob").approve(number)
    _as(graph, "agent").load({"Person": [{"name": "Late", "age": 1}]}, branch="draft")
    with pytest.raises(OmnigraphError) as caught:
        _merge(graph, number)
    assert caught.value.code == "proposal_not_ready"
    assert "0 of 2 approvals" in caught.value.message
    for actor in ("ann", "bob"):
        _as(graph, actor).approve(number)
    done = _merge(graph, number)
    assert (done.outcome, done.commit.proposal) == ("fast_forward", number)
    assert done.commit.actor == "wes"
    assert done.commit.checks == {"ageless": "passed"}


def test_an_approval_for_a_commit_that_is_not_the_head_is_refused(
    graph: Graph, number: int
) -> None:
    shown = graph.proposal(number).head
    _as(graph, "agent").load({"Person": [{"name": "Late", "age": 1}]}, branch="draft")
    assert _code(lambda: _as(graph, "ann").approve(number, head=shown)) == "proposal_moved"


def test_approvals_of_others_count_neither_for_outsiders_nor_for_authors(
    graph: Graph, number: int
) -> None:
    assert _code(lambda: _as(graph, "agent").approve(number)) == "own_approval"
    for actor in ("oto", "olga"):
        _as(graph, actor).approve(number)
    assert _code(lambda: _merge(graph, number)) == "proposal_not_ready"


def test_who_wrote_part_of_it_does_not_approve_it(graph: Graph, number: int) -> None:
    _as(graph, "bob").load({"Person": [{"name": "Bob's", "age": 1}]}, branch="draft")
    for actor in ("ann", "bob"):
        _as(graph, actor).approve(number)
    with pytest.raises(OmnigraphError) as caught:
        _merge(graph, number)
    assert "1 of 2 approvals" in caught.value.message


def test_somebody_who_wants_changes_stands_in_the_way_until_they_approve(
    graph: Graph, number: int
) -> None:
    for actor in ("ann", "bob"):
        _as(graph, actor).approve(number)
    _as(graph, "bob").request_changes(number, "Not yet")
    assert graph.proposal(number).state == "changes_wanted"
    assert _code(lambda: _merge(graph, number)) == "proposal_not_ready"
    _as(graph, "bob").approve(number)
    assert _merge(graph, number).commit is not None


def test_approvals_may_outlive_commits_and_be_ones_own_where_the_policy_says_so(
    graph: Graph, number: int
) -> None:
    lax = RULES.replace("checks: true", "checks: true, stale_approvals: true, own_approvals: true")
    lax = lax.replace("[ann, bob]", "[ann, bob, agent]")
    _as(graph, "ann", lax).approve(number)
    _as(graph, "agent", lax).approve(number)
    _as(graph, "agent", lax).load({"Person": [{"name": "Late", "age": 1}]}, branch="draft")
    assert _code(lambda: _merge(graph, number)) == "proposal_not_ready"
    assert _as(graph, "wes", lax).merge_proposal(number).commit is not None


def test_rights_are_those_of_now(graph: Graph, number: int) -> None:
    for actor in ("ann", "bob"):
        _as(graph, actor).approve(number)
    left = RULES.replace("reviewers: [ann, bob]", "reviewers: [ann]")
    assert _code(lambda: _as(graph, "wes", left).merge_proposal(number)) == "proposal_not_ready"


# --- checks ------------------------------------------------------------------------------------------------------


def _approved(graph: Graph, number: int) -> None:
    for actor in ("ann", "bob"):
        _as(graph, actor).approve(number)


def test_checks_are_run_on_the_merged_state_and_cannot_be_skipped(
    graph: Graph, number: int
) -> None:
    """Each side is fine by itself; only both together break the rule."""
    one = 'query many() @rows("..3") { match { $p: Person } return { $p.name as name } }'
    graph.apply_checks(one)
    graph.load({"Person": [{"name": "Third", "age": 3}]})
    assert graph.check().passed
    assert graph.check("draft").passed
    _approved(graph, number)
    for skip in (False, True):
        assert _code(partial(_merge, graph, number, skip_checks=skip)) == "checks_failed"
    assert graph.proposal(number).state == "approved"
    assert graph.proposal(number).thread[-1].text == "checks failed: many"


def test_a_branch_cannot_loosen_the_checks_it_is_judged_by(graph: Graph, number: int) -> None:
    agent = _as(graph, "agent")
    agent.apply_checks("", branch="draft")
    agent.load({"Person": [{"name": "Ageless"}]}, branch="draft")
    _approved(graph, number)
    assert _code(lambda: _merge(graph, number)) == "checks_failed"
    found = _as(graph, "ann").review(number)
    assert found.changed_checks["removed"] == ["ageless"]


def test_a_branch_is_judged_by_the_checks_it_brings_along(graph: Graph, number: int) -> None:
    _as(graph, "agent").apply_checks(f"{AGELESS}\n{NEVER}", branch="draft")
    _approved(graph, number)
    assert _code(lambda: _merge(graph, number)) == "checks_failed"


def test_a_check_that_is_demanded_must_be_there(graph: Graph, number: int) -> None:
    rules = RULES.replace("checks: true", "checks: [ageless, missing]")
    _approved(graph, number)
    assert _code(lambda: _as(graph, "wes", rules).merge_proposal(number)) == "checks_failed"


def test_a_refusal_by_a_check_tells_no_rows(graph: Graph) -> None:
    with pytest.raises(OmnigraphError) as caught:
        _as(graph, "olga").load({"Person": [{"name": "Secret"}]})
    assert "Secret" not in str(caught.value.details)


def test_rows_of_a_check_are_shown_to_those_who_may_read_their_type(graph: Graph) -> None:
    rules = """
version: 1
groups: {staff: [sam]}
rules:
  - {id: r, allow: {actors: {group: staff}, actions: [read], types: [Company]}}
"""
    assert _code(lambda: _as(graph, "sam", rules).check()) == "policy_denied"


# --- what is seen ------------------------------------------------------------------------------------------------


def test_a_proposal_of_branches_one_may_not_read_looks_like_none(graph: Graph, number: int) -> None:
    rules = """
version: 1
groups: {staff: [sam]}
protected_branches: [draft]
rules:
  - {id: r, allow: {actors: {group: staff}, actions: [read], branch_scope: unprotected}}
  - {id: p, allow: {actors: {group: staff}, actions: [propose, approve, branch_merge]}}
"""
    sam = _as(graph, "sam", rules)
    assert sam.proposals(target="main") == []
    for call in (
        lambda: sam.proposal(number),
        lambda: sam.review(number),
        lambda: sam.comment(number, "Hm"),
        lambda: sam.approve(number),
        lambda: sam.close_proposal(number),
        lambda: sam.merge_proposal(number),
    ):
        assert _code(call) == _code(lambda: sam.proposal(99)) == "proposal_not_found"


def test_comments_on_types_one_may_not_read_are_left_out(graph: Graph, number: int) -> None:
    graph.comment(number, "on a person", type="Person", id="Zoe", actor="ann")
    graph.comment(number, "in general", actor="ann")
    rules = """
version: 1
groups: {staff: [sam]}
rules:
  - {id: r, allow: {actors: {group: staff}, actions: [read], types: [Company]}}
"""
    said = [entry.text for entry in _as(graph, "sam", rules).proposal(number).thread]
    assert "in general" in said
    assert "on a person" not in said


# --- the rules themselves ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("main: {push: [nobody]}", "unknown group 'nobody'"),
        ("main: {approvals: -1}", "approvals is from 0"),
        ("'': {}", "name of a branch"),
        ("main: {aprovals: 2}", "aprovals"),
    ],
)
def test_a_protection_that_makes_no_sense_is_refused(wrong: str, told: str) -> None:
    text = f"version: 1\ngroups: {{a: [ada]}}\nprotection:\n  {wrong}\nrules: []"
    with pytest.raises(PolicyInvalid, match=told):
        parse_bundle(text)


def test_every_action_that_changes_a_branch_is_refused_without_a_proposal() -> None:
    policy = worlds.policy(RULES)
    text = "version: 1\ncases:\n"
    for action in PUSHES:
        where = "branch: main" if action is Action.CHANGE else "branch: draft, target_branch: main"
        text += f"  - {{id: {action}, actor: wes, action: {action}, {where}, expect: deny}}\n"
        text += f"  - {{id: o {action}, actor: olga, action: {action}, {where}, expect: allow}}\n"
    assert run_cases(policy, parse_cases(text)) == []


def test_a_server_enforces_it_below_its_routes(tmp_path: Any) -> None:
    rules = worlds.GRAPH_RULES.replace(
        "protected_branches: [main]",
        "protected_branches: [main]\nprotection: {main: {approvals: 1}}",
    )
    with worlds.world(tmp_path, rules=rules) as world:
        graph = world.graphs["alpha"]
        graph.create_branch("draft")
        graph.load({"Company": [{"name": "New"}]}, branch="draft", actor="eve")
        _over_http(world)
        assert graph.log(limit=1)[0].proposal == 2


def _over_http(world: World) -> None:
    world.refused(403, "POST", "/mutate", {"query": ADD})
    world.refused(403, "POST", "/branches/merge", {"source": "draft"})
    may = world.ok("GET", "/permissions", params={"branch": "main"})["actions"]
    assert (may["change"], may["propose"]) == (False, True)
    assert (may["branch_merge"], may["merge_proposal"]) == (False, True)
    number = world.ok("POST", "/proposals", {"source": "draft", "title": "New"})["number"]
    told = world.refused(403, "POST", f"/proposals/{number}/merge", {})
    assert told["error_code"] == "proposal_not_ready"
    world.refused(403, "POST", f"/proposals/{number}/approve", {})  # one's own
    graph = world.graphs["alpha"]
    graph.close_proposal(number, actor="admin")
    number = graph.propose("draft", "New", actor="eve").number
    world.ok("POST", f"/proposals/{number}/approve", {})
    world.ok("POST", f"/proposals/{number}/merge", {})
