"""Proposals: their states, what is said about them, and how a change gets from an agent to main."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from omnigraph.errors import OmnigraphError
from omnigraph.graph import Graph, init
from omnigraph.guarded import GuardedGraph
from omnigraph.policy.guard import Guard
from omnigraph.proposed import Proposal
from tests.server import world as worlds

SCHEMA = (
    "node Person { name: String @key  born: I32?  email: String? }\nedge Knows: Person -> Person"
)
CHECKS = """
query unborn() @description("a year of birth is known") {
  match { $p: Person $p.born is null }
  return { $p.name as name }
}
query disappearing() @description("at most 1 % of persons disappear") @lost_rows("..1%") {
  match { $p: Person }
  return { $p.name as name }
}
"""
RULES = """
version: 1
groups: {agents: [agent], people: [grace, ada], all: [agent, grace, ada]}
protected_branches: [main]
protection:
  main: {push: [people], approvals: 1, approvers: [people], checks: true}
rules:
  - {id: read, allow: {actors: {group: all}, actions: [read]}}
  - {id: drafts, allow: {actors: {group: agents}, actions: [change], branch_scope: unprotected}}
  - id: branches
    allow: {actors: {group: agents}, actions: [branch_create], target_branch_scope: unprotected}
  - {id: talk, allow: {actors: {group: all}, actions: [propose]}}
  - {id: decide, allow: {actors: {group: people}, actions: [change, approve, branch_merge]}}
"""


@pytest.fixture
def graph(memory_root: str) -> Graph:
    made = init(memory_root, schema=SCHEMA)
    people = [{"name": f"p{n}", "born": 1900 + n} for n in range(50)]
    made.load({"Person": people}, actor="root", message="the first people")
    made.apply_checks(CHECKS, actor="root")
    return made


def _code(call: Callable[[], object]) -> str:
    with pytest.raises(OmnigraphError) as caught:
        call()
    return caught.value.code


# --- the story ---------------------------------------------------------------------------------------------------


def test_how_a_change_gets_from_an_agent_to_main(graph: Graph) -> None:
    """An agent's facts, one of them wrong; a check, a review, a merge; and what history says of it."""
    policy = worlds.policy(RULES)
    agent, grace = (GuardedGraph(graph, Guard(policy, actor, "g")) for actor in ("agent", "grace"))
    agent.create_branch("agent/births")
    draft = agent.branch("agent/births")
    facts = [{"name": "ada", "born": 1815}, {"name": "mary"}]
    draft.load({"Person": facts}, message="from the parish register")
    assert _code(lambda: agent.merge("agent/births")) == "policy_denied"
    report = draft.check(before="main")
    assert [result.rows for result in report.broken] == [({"name": "mary"},)]
    draft.load({"Person": [{"name": "mary", "born": 1780}]}, message="mary's year")
    assert draft.check(before="main").passed
    number = agent.propose("agent/births", "Births", reviewers=["grace"]).number

    found = grace.review(number)
    assert found.counts == {"Person": {"inserted": 2, "updated": 0, "deleted": 0}}
    assert [row.id for row in grace.diff(found.base, found.head)] == ["ada", "mary"]
    assert found.missing == (f"0 of 1 approvals of commit {found.head}",)
    grace.comment(number, "1780 or 1797?", type="Person", id="mary", property="born")
    grace.approve(number, head=found.head, text="Checked in the register.")
    main = grace.load({"Person": [{"name": "p1", "born": 1955}]}, message="meanwhile")
    done = grace.merge_proposal(number)

    assert done.outcome == "merged"
    assert done.commit is not None
    assert done.commit.parents[0] == (main.commit.id if main.commit else None)
    newest, *_ = graph.log()
    assert (newest.id, newest.proposal, newest.actor) == (done.commit.id, number, "grace")
    assert newest.checks == {"unborn": "passed", "disappearing": "passed"}
    cells = {cell.property: cell for cell in graph.blame("Person", "mary").cells}
    assert cells["born"].commit is not None
    assert (cells["born"].commit.actor, cells["born"].commit.message) == ("agent", "mary's year")
    assert cells["born"].via is not None
    assert cells["born"].via.proposal == number
    shown = graph.proposal(number)
    assert (shown.state, shown.commit) == ("merged", done.commit.id)
    assert [(entry.kind, entry.actor) for entry in shown.thread] == [
        ("opened", "agent"),
        ("commented", "grace"),
        ("approved", "grace"),
        ("merging", "grace"),
        ("merged", "grace"),
    ]
    assert shown.thread[1].property == "born"


# --- states ------------------------------------------------------------------------------------------------------


@pytest.fixture
def offered(graph: Graph) -> Proposal:
    graph.create_branch("draft")
    graph.load({"Person": [{"name": "new", "born": 1}]}, branch="draft", actor="wes")
    return graph.propose("draft", "New", actor="wes")


def test_a_later_commit_makes_an_approval_one_of_the_past(graph: Graph, offered: Proposal) -> None:
    assert graph.approve(offered.number, actor="ada").state == "approved"
    graph.load({"Person": [{"name": "newer", "born": 2}]}, branch="draft")
    shown = graph.proposal(offered.number)
    assert shown.state == "open"
    assert [(review.actor, review.current) for review in shown.reviews] == [("ada", False)]


def test_the_last_word_of_a_reviewer_counts(graph: Graph, offered: Proposal) -> None:
    n = offered.number
    states = [
        graph.approve(n, actor="ada").state,
        graph.request_changes(n, "No", actor="bob").state,
        graph.approve(n, actor="cy").state,
        graph.approve(n, actor="bob").state,
        graph.close_proposal(n, actor="wes").state,
    ]
    assert states == ["approved", "changes_wanted", "changes_wanted", "approved", "closed"]


@pytest.mark.parametrize("end", ["merge", "close"])
def test_what_is_over_takes_nothing_but_comments(graph: Graph, offered: Proposal, end: str) -> None:
    n = offered.number
    if end == "merge":
        graph.merge_proposal(n)
    else:
        graph.close_proposal(n)
    for call in (
        lambda: graph.approve(n, actor="ada"),
        lambda: graph.request_changes(n, "No", actor="ada"),
        lambda: graph.close_proposal(n),
        lambda: graph.merge_proposal(n),
    ):
        assert _code(call) == "proposal_ended"
    graph.comment(n, "Thanks")
    assert graph.proposal(n).thread[-1].text == "Thanks"


def test_a_comment_is_about_a_type_there_is(graph: Graph, offered: Proposal) -> None:
    assert _code(lambda: graph.comment(offered.number, "Hm", type="Nobody")) == "type_not_found"
    graph.merge_proposal(offered.number)
    graph.delete_branch("draft")
    graph.comment(offered.number, "Late", type="Person", id="new")
    assert graph.proposal(offered.number).thread[-1].id == "new"


def test_a_branch_is_proposed_once_at_a_time(graph: Graph, offered: Proposal) -> None:
    assert _code(lambda: graph.propose("draft", "Again")) == "proposal_exists"
    graph.close_proposal(offered.number)
    assert graph.propose("draft", "Again").number == offered.number + 1


def test_conflicts_are_an_outcome_and_leave_the_proposal_open(
    graph: Graph, offered: Proposal
) -> None:
    graph.load({"Person": [{"name": "new", "born": 99}]}, actor="root")
    head = graph.log(limit=1)[0].id
    found = graph.review(offered.number)
    assert (found.outcome, found.mergeable) == ("conflict", False)
    done = graph.merge_proposal(offered.number)
    assert (done.outcome, done.commit, len(done.conflicts)) == ("conflict", None, 1)
    assert graph.log(limit=1)[0].id == head, "a conflict shows up in the log"
    assert graph.proposal(offered.number).state == "open"
    decided = graph.merge_proposal(offered.number, strategy="theirs")
    assert decided.outcome == "merged"


def test_exactly_the_commit_that_was_looked_at_is_merged(graph: Graph, offered: Proposal) -> None:
    seen = graph.review(offered.number).head
    graph.load({"Person": [{"name": "newer", "born": 2}]}, branch="draft")
    code = _code(lambda: graph.merge_proposal(offered.number, head=seen))
    assert code == "proposal_moved"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda g: g.propose("draft", " "),
        lambda g: g.propose("draft", "x" * 501),
        lambda g: g.propose("draft", "lone \ud800"),
        lambda g: g.propose("draft", "x", into="draft"),
        lambda g: g.propose("draft", "x", reviewers="ada"),
        lambda g: g.comment(1, ""),
        lambda g: g.comment(1, "x", property="age"),
        lambda g: g.comment(1, "x", type="Person", property="age"),
        lambda g: g.approve(1),
        lambda g: g.proposals(state="half"),
        lambda g: g.proposals(limit=-1),
    ],
)
def test_what_makes_no_sense_is_refused(
    graph: Graph, offered: Proposal, wrong: Callable[[Graph], object]
) -> None:
    assert _code(lambda: wrong(graph)) == "option_invalid"
    assert graph.proposal(offered.number).thread == offered.thread


@pytest.mark.parametrize("number", [0, -1, 99, True, "1", 10**15])
def test_a_number_nobody_gave_is_not_found(graph: Graph, number: int) -> None:
    assert _code(lambda: graph.proposal(number)) == "proposal_not_found"


def test_a_cleanup_forgets_what_was_said_and_keeps_the_number(
    graph: Graph, offered: Proposal
) -> None:
    graph.comment(offered.number, "secret", actor="ada")
    graph.merge_proposal(offered.number, actor="ada")
    rehearsed = graph.cleanup(ended_days=0, dry_run=True)
    assert graph.cleanup(ended_days=0).objects_deleted >= 3
    assert rehearsed.objects_deleted >= 3
    shown = graph.proposal(offered.number)
    assert (shown.state, shown.title) == ("merged", "New")
    assert [entry.kind for entry in shown.thread] == ["merged"]
    graph.create_branch("other")
    assert graph.propose("other", "Next").number == offered.number + 1
    assert graph.doctor().healthy


def test_proposals_are_no_data(graph: Graph, offered: Proposal) -> None:
    assert graph.snapshot().commit.tables.keys() == graph.snapshot("draft").commit.tables.keys()
    assert [p.number for p in graph.proposals("open", "main")] == [offered.number]
    assert graph.proposals("merged") == []


def test_a_closed_proposal_still_shows_what_it_would_have_changed(graph: Graph) -> None:
    graph.create_branch("draft")
    graph.load({"Person": [{"name": "ada", "born": 1815}]}, branch="draft")
    number = graph.propose("draft", "New people", actor="eve").number
    open_review = graph.review(number)
    graph.close_proposal(number, actor="eve")
    graph.delete_branch("draft")
    closed = graph.review(number)
    assert (closed.base, closed.head) == (open_review.base, open_review.head)
    assert closed.counts == open_review.counts
    assert closed.proposal.state == "closed"
