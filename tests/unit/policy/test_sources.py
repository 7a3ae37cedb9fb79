"""What is read on the way: forks, merges, tags, undoing and the feed ask where rows come from."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import CommitNotFound, CommitPruned, OmnigraphError
from omnigraph.graph import Graph
from omnigraph.policy.guard import Need
from omnigraph.policy.questions import Action, PolicyDenied

SCHEMA = "node Person { name: String @key  age: I32? } node Salary { of: String @key  amount: I32 }"
RULES = """
version: 1
groups: {bosses: [boss], drafters: [drafter], people: [typed], writers: [writer]}
protected_branches: [main, vault]
rules:
  - {id: b1, allow: {actors: {group: bosses}, actions: [read, export, change, admin]}}
  - {id: b2, allow: {actors: {group: bosses}, actions: [branch_create, branch_delete, branch_merge]}}
  - {id: d1, allow: {actors: {group: drafters}, actions: [read, export, change], branch_scope: unprotected}}
  - id: d2
    allow:
      actors: {group: drafters}
      actions: [branch_create, branch_delete, branch_merge]
      target_branch_scope: unprotected
  - {id: d3, allow: {actors: {group: drafters}, actions: [admin]}}
  - {id: t1, allow: {actors: {group: people}, actions: [read], types: [Person]}}
  - {id: t2, allow: {actors: {group: people}, actions: [change]}}
  - {id: t3, allow: {actors: {group: people}, actions: [branch_create, branch_merge, admin]}}
  - {id: w1, allow: {actors: {group: writers}, actions: [change]}}
  - {id: w2, allow: {actors: {group: writers}, actions: [branch_merge, schema_apply]}}
"""
PEOPLE = "query q() { match { $p: Person } return { $p.name as name } }"
RAISE = 'query q() { update Salary set { amount: 9 } where of = "ada" }'
NEW = 'query q() { insert Person { name: "new" } }'


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A protected main that moved on after `draft` was forked from it; a tag on each of them."""
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    (tmp_path / "rules.yaml").write_text(RULES)
    place = str(tmp_path / "graph")
    graph = omnigraph.init(place, SCHEMA)
    graph.load({"Person": [{"name": "ada"}], "Salary": [{"of": "ada", "amount": 7}]})
    graph.create_branch("draft")
    graph.mutate('query q() { insert Person { name: "of draft" } }', branch="draft")
    graph.mutate('query q() { insert Person { name: "of main" } }')
    graph.mutate('query q() { update Salary set { amount: 8 } where of = "ada" }')
    graph.tag("on-main")
    graph.tag("on-draft", "draft")
    graph.create_branch("vault")
    return place


def _as(store: str, actor: str) -> Graph:
    return omnigraph.open(store, policy=Path(store).parent / "rules.yaml", actor=actor)


def _names(graph: Graph, branch: str) -> set[str]:
    return {row["name"] for row in graph.query(PEOPLE, branch=branch).rows}


# How to bring rows of a branch or point to somewhere one may read.
WAYS: dict[str, Callable[[Graph, str, str], Any]] = {
    "fork": lambda g, source, _: g.create_branch("mine", source),
    "merge": lambda g, source, _: g.merge(source, into="draft"),
    "merge, only tried": lambda g, source, _: g.merge(source, into="draft", dry_run=True),
    "fork by a load": lambda g, source, _: g.load(
        {"Person": [{"name": "x"}]}, branch="mine", create_from=source
    ),
}
POINT_WAYS: dict[str, Callable[[Graph, Any], Any]] = {
    "fork": lambda g, at: g.create_branch("mine", at),
    "tag": lambda g, at: g.tag("mine", at),
    "cherry-pick": lambda g, at: g.cherry_pick(at, "draft"),
    "revert": lambda g, at: g.revert(at, "draft"),
    "reset": lambda g, at: g.reset(at, "draft"),
    "diff from": lambda g, at: g.diff(at, "draft"),
    "diff to": lambda g, at: g.diff("draft", at),
    "query": lambda g, at: g.query(PEOPLE, at=at),
    "snapshot": lambda g, at: g.snapshot(at=at),
    "schema": lambda g, at: g.schema(at=at),
    "log": lambda g, at: g.log(at=at),
    "history": lambda g, at: g.history("Person", "ada", at=at),
    "analytics": lambda g, at: g.analytics(at=at).degrees("Person", []),
    "feed": lambda g, at: list(g.changes(after=at, branch="draft")),
}


@pytest.mark.parametrize("way", WAYS)
def test_rows_of_a_branch_that_may_not_be_read_go_nowhere(store: str, way: str) -> None:
    graph, plain = _as(store, "drafter"), omnigraph.open(store)
    before = plain.branches(), _names(plain, "draft")
    with pytest.raises((PolicyDenied, CommitNotFound)):
        WAYS[way](graph, "vault", "draft")
    assert (plain.branches(), _names(plain, "draft")) == before
    WAYS[way](_as(store, "boss"), "vault", "draft")


@pytest.mark.parametrize("way", POINT_WAYS)
@pytest.mark.parametrize("point", ["on-main", "vault", "main~1", "$id", "draft~1"])
def test_points_that_may_not_be_read_look_like_none(store: str, way: str, point: str) -> None:
    """Whatever they are called by: the answer to a name nobody has is the same to the letter."""
    if (way, point) == ("feed", "draft~1"):
        return  # what follows the fork was written on the draft
    plain = omnigraph.open(store)
    at = plain.snapshot().commit_id if point == "$id" else point
    unknown = "0123456789abcdef.3" if point == "$id" else "no-such-name"
    graph, ask = _as(store, "drafter"), POINT_WAYS[way]
    told = [_told(partial(ask, graph, name)) for name in (at, unknown)]
    assert told[0].replace(at, "X") == told[1].replace(unknown, "X")
    assert told[0].startswith("commit_not_found")
    assert plain.branches() == ["main", "draft", "vault"]


def _told(verb: Callable[[], Any]) -> str:
    with pytest.raises(OmnigraphError) as refused:
        verb()
    return f"{refused.value.code} {refused.value.message} {refused.value.details}"


@pytest.mark.parametrize("way", sorted(set(POINT_WAYS) - {"feed"}))
def test_points_that_may_be_read_are_found(store: str, way: str) -> None:
    assert POINT_WAYS[way](_as(store, "drafter"), "on-draft") is not object


def test_whoever_may_read_every_branch_is_told_why_a_point_is_not_there(store: str) -> None:
    with pytest.raises(CommitNotFound, match="fewer than"):
        _as(store, "boss").query(PEOPLE, at="main~99")
    omnigraph.open(store).cleanup(keep=1)
    with pytest.raises(CommitPruned):
        _as(store, "boss").query(PEOPLE, at="main~1")


def test_what_is_gone_from_a_branch_is_told_to_its_readers(store: str) -> None:
    for name in ("x", "y"):
        omnigraph.open(store).load({"Person": [{"name": name}]}, branch="draft")
    omnigraph.open(store).cleanup(keep=1)
    with pytest.raises(CommitPruned):
        _as(store, "drafter").query(PEOPLE, at="draft~1")
    with pytest.raises(CommitNotFound):
        _as(store, "drafter").query(PEOPLE, at="main~1")


@pytest.mark.parametrize(
    "need",
    [
        Need(Action.READ, "draft"),
        Need(Action.CHANGE, "draft"),
        Need(Action.ADMIN),
        Need(Action.CHANGE),
    ],
)
def test_a_write_asks_about_the_branch_it_changes(store: str, need: Need) -> None:
    graph, before = _as(store, "drafter"), omnigraph.open(store).snapshot().commit_id
    with pytest.raises(PolicyDenied):
        graph.publish(graph.mutation(NEW), branch="main", need=need)
    assert omnigraph.open(store).snapshot().commit_id == before


def test_forks_tags_and_clones_are_of_all_types(store: str, tmp_path: Path) -> None:
    """Whoever reads the fork may read other types than whoever makes it."""
    graph = _as(store, "typed")
    for verb in (
        lambda: graph.create_branch("mine"),
        lambda: graph.load({"Person": [{"name": "x"}]}, branch="mine", create_from="main"),
        lambda: graph.clone(tmp_path / "copy", "main"),
        lambda: graph.clone(tmp_path / "copy"),
        lambda: _as(store, "drafter").clone(tmp_path / "copy"),
        lambda: _as(store, "drafter").clone(tmp_path / "copy", "vault"),
    ):
        with pytest.raises(PolicyDenied):
            verb()
    assert not (tmp_path / "copy").exists()
    _as(store, "boss").clone(tmp_path / "copy", "main")


def test_merges_bring_types_that_may_be_read_alone(store: str) -> None:
    boss, typed = _as(store, "boss"), _as(store, "typed")
    boss.mutate(RAISE, branch="draft")
    with pytest.raises(PolicyDenied) as refused:
        typed.merge("draft")
    assert refused.value.details == {"action": "read", "type": "Salary"}
    boss.create_branch("people")
    boss.mutate(NEW, branch="people")
    assert typed.merge("people").outcome == "fast_forward"


def test_conflicts_show_rows_to_those_who_may_read_them(store: str) -> None:
    boss = _as(store, "boss")
    boss.mutate(RAISE, branch="draft")
    assert boss.merge("draft").outcome == "conflict"
    with pytest.raises(PolicyDenied):
        _as(store, "typed").merge("draft")
    with pytest.raises(PolicyDenied):
        _as(store, "writer").merge("draft")


def test_the_feed_begins_where_it_may_be_read(store: str) -> None:
    graph = _as(store, "drafter")
    with pytest.raises(PolicyDenied):
        graph.changes(branch="draft")  # from the very first commit, which was made on main
    here = graph.changes(after="on-draft", branch="draft")
    graph.mutate(NEW, branch="draft")
    assert [c.id for c in graph.changes(after=here.start, branch="draft")] == ["new"]
    assert len(list(_as(store, "boss").changes(branch="draft"))) == 4


def test_a_feed_starts_at_the_head_of_a_fresh_fork(store: str) -> None:
    """The content of a fresh fork is a commit of the branch it was made from; nothing of that one is told."""
    _as(store, "boss").create_branch("fresh", "main")
    graph = _as(store, "drafter")
    start = graph.branch("fresh").log(limit=1)[0].id
    graph.mutate(NEW, branch="fresh")
    feed = graph.changes(after=start, branch="fresh")
    assert [change.id for change in feed] == ["new"]


def test_the_history_of_a_row_ends_where_it_may_not_be_read(store: str) -> None:
    change = 'query q() { update Person set { age: 1 } where name = "ada" }'
    graph = _as(store, "drafter")
    graph.mutate(change, branch="draft")
    shown = [c.commit.branch for c in graph.history("Person", "ada", "draft").changes]
    assert shown == ["draft"]
    every = _as(store, "boss").history("Person", "ada", "draft").changes
    assert [c.commit.branch for c in every] == ["draft", "main"]


# --- changing without reading ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        'query q() { update Salary set { amount: 1 } where amount > 5 and of = "ada" }',
        "query q() { delete Salary where amount > 5 }",
        'query q() { insert Person { name: "new" } update Salary set { amount: 1 } where of = "x" }',
    ],
)
@pytest.mark.parametrize("dry_run", [True, False])
def test_who_may_not_read_rows_cannot_look_for_them(store: str, text: str, dry_run: bool) -> None:
    before = omnigraph.open(store).snapshot().commit_id
    for actor in ("writer", "typed"):
        with pytest.raises(PolicyDenied) as refused:
            _as(store, actor).mutate(text, dry_run=dry_run)
        assert refused.value.details["action"] == "read"
    assert omnigraph.open(store).snapshot().commit_id == before


def test_who_may_only_write_inserts_and_loads(store: str) -> None:
    graph = _as(store, "writer")
    assert graph.mutate(NEW).affected_nodes == 1
    assert graph.load({"Salary": [{"of": "new", "amount": 1}]}).commit is not None
    for tried in (
        lambda: graph.mutate(NEW, dry_run=True),
        lambda: graph.load({"Salary": [{"of": "ada", "amount": 1}]}, mode="append", dry_run=True),
    ):
        with pytest.raises(PolicyDenied) as refused:
            tried()
        assert refused.value.details["action"] == "read"


def test_a_schema_that_rows_break_shows_them_to_those_who_may_read_them(store: str) -> None:
    omnigraph.open(store).load({"Salary": [{"of": "bob", "amount": 8}]})
    unique = SCHEMA.replace("amount: I32", "amount: I32 @unique")
    assert unique != SCHEMA
    with pytest.raises(PolicyDenied) as refused:
        _as(store, "writer").apply_schema(unique)
    assert refused.value.details == {"action": "read", "type": "Salary"}
    with pytest.raises(OmnigraphError) as broken:
        omnigraph.open(store).apply_schema(unique)
    assert broken.value.details["violations"]


def test_a_load_that_is_only_checked_asks_about_its_types(store: str) -> None:
    for rows in ([{"of": "nobody", "amount": 1}], [{"of": "ada", "amount": 8}]):
        with pytest.raises(PolicyDenied) as refused:
            _as(store, "typed").load({"Salary": rows}, mode="merge", dry_run=True)
        assert refused.value.details == {"action": "read", "type": "Salary"}
    assert _as(store, "typed").load({"Person": [{"name": "x"}]}, dry_run=True).nodes == {
        "Person": 1
    }


def test_every_step_of_a_block_asks_what_it_would_ask_alone(store: str) -> None:
    for actor in ("writer", "typed"):
        block = _as(store, actor).branch("main").write()
        block.mutate(NEW)
        block.mutate(RAISE)
        with pytest.raises(PolicyDenied), block:
            pass
    assert "new" not in _names(omnigraph.open(store), "main")
