"""A graph under a policy: every verb asks, types are told apart, and what nobody allows does not happen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.cli import context
from omnigraph.cli.main import main
from omnigraph.graph import Graph
from omnigraph.policy.questions import PolicyDenied

SCHEMA = """
node Person { name: String @key  age: I32? }
node Salary { person: String @key  amount: I64  proof: Blob? }
edge Knows: Person -> Person
edge Earns: Person -> Salary
"""
ROWS: dict[str, Any] = {
    "Person": [{"name": "ada"}, {"name": "bob"}],
    "Salary": [{"person": "ada", "amount": 7}],
    "Knows": [{"from": "ada", "to": "bob"}],
    "Earns": [{"from": "ada", "to": "ada"}],
}
RULES = """
version: 1
groups: {staff: [bob], bosses: [ada]}
rules:
  - {id: staff-people, allow: {actors: {group: staff}, actions: [read, export], types: [Person]}}
  - {id: staff-knows, allow: {actors: {group: staff}, actions: [read], types: [Knows]}}
  - id: staff-add
    allow: {actors: {group: staff}, actions: [change], types: [Person], load_modes: [append]}
  - id: staff-merge
    allow: {actors: {group: staff}, actions: [branch_merge], types: [Person]}
  - {id: staff-branch, allow: {actors: {group: staff}, actions: [branch_create]}}
  - {id: bosses, allow: {actors: {group: bosses}, actions: [read, export, change, admin]}}
  - id: bosses-versions
    allow: {actors: {group: bosses}, actions: [branch_create, branch_delete, branch_merge, schema_apply]}
"""
PEOPLE = "query q() { match { $p: Person } return { $p.name as name } }"
PAID = "query q() { match { $s: Salary } return { $s.amount as n } }"
WALK = "query q() { match { $p: Person $p earns $s } return { $p.name as name } }"
NOT_PAID = "query q() { match { $p: Person not { $p earns $s } } return { $p.name as name } }"
FRIENDS = "query q() { match { $p: Person $p knows $f } return { $f.name as name } }"
RAISE = 'query q() { update Salary set { amount: 9 } where person = "ada" }'
HIRE = 'query q() { insert Person { name: "new" } }'
FIRE = 'query q() { delete Person where name = "ada" }'


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A graph on disk, with rules beside it that are not in force yet."""
    place = tmp_path / "graph"
    omnigraph.init(str(place), SCHEMA).load(ROWS)
    (tmp_path / "rules.yaml").write_text(RULES)
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    return str(place)


def _as(store: str, actor: str | None) -> Graph:
    return omnigraph.open(store, policy=Path(store).parent / "rules.yaml", actor=actor)


@pytest.mark.parametrize("text", [PEOPLE, FRIENDS])
def test_types_that_are_allowed_are_read(store: str, text: str) -> None:
    assert len(_as(store, "bob").query(text)) > 0


@pytest.mark.parametrize("text", [PAID, WALK, NOT_PAID], ids=["scanned", "walked", "only asked"])
def test_types_that_are_not_allowed_are_not_read(store: str, text: str) -> None:
    with pytest.raises(PolicyDenied) as refused:
        _as(store, "bob").query(text)
    assert refused.value.details["type"] in ("Salary", "Earns")
    assert len(_as(store, "ada").query(text)) > 0


def test_whatever_shows_rows_of_all_types_is_refused(store: str, tmp_path: Path) -> None:
    graph = _as(store, "bob")
    start = graph.log()[-1].id
    verbs: list[Any] = [
        graph.snapshot,
        lambda: graph.diff(start, "main"),
        lambda: graph.diff(start, "main", types=["Salary"]),
        graph.changes,
        lambda: graph.changes(types=["Salary"]),
        lambda: graph.export(tmp_path / "out"),
        lambda: graph.blob("Salary", "ada", "proof"),
        lambda: graph.history("Salary", "ada"),
        lambda: graph.analytics().degrees("Person", ["Earns"]),
        graph.spark,
        lambda: graph.repository,
    ]
    for verb in verbs:
        with pytest.raises(PolicyDenied):
            verb()
    assert not (tmp_path / "out").exists(), "a refused export leaves something"


def test_what_names_allowed_types_is_shown(store: str, tmp_path: Path) -> None:
    graph = _as(store, "bob")
    start = graph.log()[-1].id
    assert list(graph.diff(start, "main", types=["Person"]).counts) == ["Person"]
    assert {change.type for change in graph.changes(types=["Person", "Knows"])} == {
        "Person",
        "Knows",
    }
    assert graph.export(tmp_path / "out", types=["Person"]).rows == {"Person": 2}
    assert "Salary" in graph.schema(), "the schema is not among what types protect"
    assert graph.analytics().degrees("Person", ["Knows"]).to_dict() == {"ada": 1, "bob": 1}


@pytest.mark.parametrize("text", [HIRE, RAISE, FIRE], ids=["mode", "type", "edges that go along"])
def test_writes_to_types_that_are_not_allowed_change_nothing(store: str, text: str) -> None:
    graph, before = _as(store, "bob"), omnigraph.open(store).snapshot().commit_id
    if text == HIRE:
        assert graph.mutate(text).affected_nodes == 1
        return
    with pytest.raises(PolicyDenied):
        graph.mutate(text)
    assert omnigraph.open(store).snapshot().commit_id == before


@pytest.mark.parametrize(
    ("rows", "mode", "allowed"),
    [
        ({"Person": [{"name": "new"}]}, "append", True),
        ({"Person": [{"name": "new"}]}, "merge", False),
        ({"Person": [{"name": "new"}]}, "overwrite", False),
        ({"Salary": [{"person": "new", "amount": 1}]}, "append", False),
        ({"Person": [{"name": "new"}], "Knows": [{"from": "new", "to": "bob"}]}, "append", False),
    ],
)
def test_modes_and_types_of_loads_are_asked_together(
    store: str, rows: dict[str, Any], mode: str, allowed: bool
) -> None:
    graph, before = _as(store, "bob"), omnigraph.open(store).snapshot().commit_id
    if allowed:
        assert graph.load(rows, mode=mode).commit is not None
        assert graph.log()[0].actor == "bob", "whom the policy was asked about is not who wrote"
        return
    with pytest.raises(PolicyDenied):
        graph.load(rows, mode=mode)
    assert omnigraph.open(store).snapshot().commit_id == before


def test_merges_bring_only_types_that_are_allowed(store: str) -> None:
    boss, staff = _as(store, "ada"), _as(store, "bob")
    boss.create_branch("people")
    boss.create_branch("money")
    boss.mutate(HIRE, branch="people")
    boss.mutate(RAISE, branch="money")
    assert staff.merge("people").outcome in ("fast_forward", "merged")
    with pytest.raises(PolicyDenied):
        staff.merge("money")
    with pytest.raises(PolicyDenied):
        staff.merge("money", dry_run=True)
    assert boss.merge("money").outcome == "merged"


def test_undoing_asks_about_what_it_undoes(store: str) -> None:
    boss, staff = _as(store, "ada"), _as(store, "bob")
    done = boss.mutate(RAISE).commit
    assert done is not None
    boss.create_branch("before", "main~1")
    verbs: list[Any] = [
        lambda: staff.revert(done.id),
        lambda: staff.cherry_pick(done.id, "before"),
        lambda: staff.reset("main~1"),
    ]
    for verb in verbs:
        with pytest.raises(PolicyDenied):
            verb()
    with pytest.raises(PolicyDenied), staff.branch("main").write() as block:
        block.mutate(RAISE)


@pytest.mark.parametrize("actor", [None, "stranger"])
def test_whom_nobody_knows_may_do_nothing(store: str, actor: str | None) -> None:
    graph = _as(store, actor)
    verbs: list[Any] = [
        lambda: graph.query(PEOPLE),
        lambda: graph.mutate(HIRE),
        graph.branches,
        lambda: graph.create_branch("x"),
        graph.log,
        graph.schema,
        lambda: graph.apply_schema(SCHEMA),
        lambda: graph.tag("v"),
        graph.cleanup,
        graph.optimize,
        graph.doctor,
    ]
    for verb in verbs:
        with pytest.raises(PolicyDenied):
            verb()


def test_a_configured_policy_is_in_force_in_the_sdk_and_on_the_command_line(
    store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OMNIGRAPH_POLICY", str(Path(store).parent / "rules.yaml"))
    monkeypatch.setenv("OMNIGRAPH_ACTOR", "bob")
    context.config.cache_clear()
    try:
        with pytest.raises(PolicyDenied):
            omnigraph.open(store).query(PAID)
        assert main(["query", "--store", store, "-e", PAID]) == 5
        assert "policy_denied" in capsys.readouterr().err
        assert main(["query", "--store", store, "-e", PEOPLE]) == 0
        assert main(["mutate", "--store", store, "-e", RAISE]) == 5
        assert main(["mutate", "--store", store, "-e", RAISE, "--as", "ada"]) == 0
    finally:
        context.config.cache_clear()


def test_a_policy_that_cannot_be_read_opens_nothing(store: str) -> None:
    with pytest.raises(omnigraph.OmnigraphError) as refused:
        omnigraph.open(store, policy=Path(store).parent / "missing.yaml", actor="ada")
    assert refused.value.code == "policy_invalid"
