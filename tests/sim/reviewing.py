"""People and one proposal: pushes, comments, verdicts, merges and closings, and what must be true of it in the end.

`main` is protected: a proposal needs an approval of exactly the commit that is merged, nobody who wants changes, and
a merged state that passes a check. Every actor writes down what it asked for and what it was told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from omnigraph.core.records import Commit
from omnigraph.core.repository import Repository
from omnigraph.errors import Kind, OmnigraphError
from omnigraph.graph import Graph
from omnigraph.guarded import GuardedGraph
from omnigraph.model.names import MAIN
from omnigraph.policy.bundle import parse_bundle
from omnigraph.policy.cedar import Policy, compile_bundle
from omnigraph.policy.guard import Guard
from omnigraph.proposed import Proposal, ThreadEntry
from tests.sim.actors import Actor, Log, append_only

DRAFT, NUMBER = "draft", 1
BAD = "bad"  # what no state of main may hold
CHECK = """
query no_bad_city() {
  match { $c: City  $c.name = "bad" }
  return { $c.name as name }
}
"""
ROLES = ("pusher", "approver", "doubter", "releaser", "closer")
RULES = f"""
version: 1
groups:
  all: [{", ".join(f"{role}{n}" for role in ROLES for n in range(6))}]
protected_branches: [main]
protection:
  main: {{approvals: 1, checks: true}}
rules:
  - {{id: look, allow: {{actors: {{group: all}}, actions: [read, propose, approve, branch_merge]}}}}
  - {{id: push, allow: {{actors: {{group: all}}, actions: [change], branch_scope: unprotected}}}}
"""


@cache
def _policy() -> Policy:
    return Policy(compile_bundle(parse_bundle(RULES)))


def propose(repo: Repository) -> None:
    """The state such a world starts from: a branch with a row, offered for merging, and a check."""
    graph = Graph(repo)
    graph.apply_checks(CHECK)
    graph.create_branch(DRAFT)
    graph.publish(append_only("first"), branch=DRAFT, actor="pusher0")
    assert graph.propose(DRAFT, "More cities", actor="pusher0").number == NUMBER


@dataclass
class Said:
    """Something an actor asked of the proposal, and what it was told."""

    kind: str  # as the thread calls it
    actor: str
    text: str
    head: str | None = None  # the commit the actor had looked at
    status: str = "nothing"  # ok, failed, nothing
    commit: str | None = None  # that a merge made


class _Person:
    """One actor's hold on the graph, under the policy."""

    def __init__(self, actor: Actor) -> None:
        self.actor = actor
        self.graph = GuardedGraph(Graph(actor.repo), Guard(_policy(), actor.name, "g"))

    def look(self) -> Proposal | None:
        try:
            return self.graph.proposal(NUMBER)
        except OmnigraphError as error:
            if error.kind is Kind.CORRUPT:
                raise
            return None

    def say(self, kind: str, act: Callable[[Said], object], head: str | None = None) -> Said:
        said = Said(kind, self.actor.name, self.actor.fresh(), head)
        self.actor.log.said.append(said)
        try:
            act(said)
        except OmnigraphError as error:
            if error.kind is Kind.CORRUPT:
                raise
            unknown = error.kind in (Kind.UNKNOWN_OUTCOME, Kind.UNAVAILABLE)
            said.status = "nothing" if unknown else "failed"
        else:
            said.status = "ok"
        return said

    def comment(self) -> None:
        self.say("commented", lambda said: self.graph.comment(NUMBER, said.text))

    def judge(self, kind: str) -> None:
        """Look, then give a verdict on what was seen."""
        seen = self.look()
        if seen is None or seen.head is None:
            return
        verb = self.graph.approve if kind == "approved" else self.graph.request_changes
        self.say(kind, lambda said: verb(NUMBER, head=said.head, text=said.text), seen.head)

    def merge(self) -> None:
        def act(said: Said) -> None:
            done = self.graph.merge_proposal(NUMBER)
            said.commit = None if done.commit is None else done.commit.id

        self.say("merged", act)

    def close(self) -> None:
        self.say("closed", lambda said: self.graph.close_proposal(NUMBER, text=said.text))


def pusher(actor: Actor) -> None:
    """Goes on working on the branch, sometimes with what the check refuses."""
    person = _Person(actor)
    for turn in range(2):
        bad = turn > 0 and actor.random.random() < 0.3
        row = BAD if bad else actor.fresh()
        actor.submit(append_only(row), branch=DRAFT, name=None if bad else row)
        if actor.random.random() < 0.4:
            person.comment()


def approver(actor: Actor) -> None:
    person = _Person(actor)
    for _ in range(2):
        person.judge("approved")


def doubter(actor: Actor) -> None:
    """Wants changes, and may be content afterwards."""
    person = _Person(actor)
    person.judge("changes_wanted")
    if actor.random.random() < 0.6:
        person.judge("approved")


def releaser(actor: Actor) -> None:
    person = _Person(actor)
    for _ in range(3):
        person.merge()


def closer(actor: Actor) -> None:
    person = _Person(actor)
    person.comment()
    if actor.random.random() < 0.7:
        person.close()


REVIEWERS: dict[str, Callable[[Actor], None]] = {
    "pusher": pusher,
    "approver": approver,
    "doubter": doubter,
    "releaser": releaser,
    "closer": closer,
}


# --- what must be true -----------------------------------------------------------------------------------------------


def judge_proposal(repo: Repository, log: Log) -> None:
    """Nothing acknowledged is lost, no verdict is for another commit, and main has what the policy wants."""
    if not any(said for said in log.said):
        return
    found = Graph(repo).proposal(NUMBER)
    _nothing_is_lost(found.thread, log)
    merges = _merges(repo)
    assert len(merges) <= 1, f"the proposal was merged {len(merges)} times"
    assert (found.state == "merged") == bool(merges), (
        f"the proposal is {found.state}, and main has {len(merges)} merges of it"
    )
    for said in log.said:
        if said.kind == "merged" and said.status == "ok" and said.commit is not None:
            assert merges, f"{said.actor} was told of a merge that is not there"
        if said.kind == "closed" and said.status == "ok":
            assert not merges, f"{said.actor} closed it, and it was merged all the same"
    for merge in merges:
        _was_allowed(merge, found)
    assert BAD not in _cities(repo), "a merge brought what the check refuses"


def _nothing_is_lost(thread: tuple[ThreadEntry, ...], log: Log) -> None:
    for said in log.said:
        if said.kind == "merged":
            continue
        kept = [e for e in thread if (e.kind, e.text) == (said.kind, said.text)]
        expected = {"ok": (1,), "failed": (0,)}.get(said.status, (0, 1))
        assert len(kept) in expected, (
            f"{said.actor} {said.kind}: told {said.status}, it is there {len(kept)} times"
        )
        for entry in kept:
            assert entry.actor == said.actor
            assert said.head in (None, entry.head), (
                f"the verdict of {said.actor} on {said.head} was taken for {entry.head}"
            )


def _merges(repo: Repository) -> list[Commit]:
    head = repo.head(MAIN).commit
    commits = (repo.chains.read(head.chain, n) for n in range(head.number + 1))
    return [
        commit
        for commit in commits
        if isinstance(commit, Commit)
        and any("proposal" in member.result for member in commit.members)
    ]


def _was_allowed(merge: Commit, found: Proposal) -> None:
    """At the moment of the claim the head that was merged was approved, and nobody wanted changes."""
    ends = [i for i, entry in enumerate(found.thread) if entry.kind in ("merging", "merged")]
    claims = [i for i in ends if found.thread[i].kind == "merging"]
    moment, head = (claims or ends)[-1], merge.parents[1]
    claimed = found.thread[moment].head
    assert claimed in (None, head), f"{head} was merged, not {claimed}"
    after = [entry.kind for entry in found.thread[moment + 1 :]]
    assert not {"approved", "changes_wanted", "closed", "not_merged"} & set(after), (
        f"after the claim of a merge that happened there is {after}"
    )
    last = {
        entry.actor: entry
        for entry in found.thread[:moment]
        if entry.kind in ("approved", "changes_wanted")
    }
    against = [e.actor for e in last.values() if e.kind == "changes_wanted"]
    assert not against, f"it was merged although {against} wanted changes"
    approved = [e.actor for e in last.values() if e.head == head]
    assert approved, f"nobody approved {head}, which was merged"


def _cities(repo: Repository) -> set[str]:
    snapshot = repo.snapshot(repo.head(MAIN).commit)
    return set(snapshot.table_of(snapshot.catalog.nodes["City"]).scan(["id"])["id"].to_pylist())
