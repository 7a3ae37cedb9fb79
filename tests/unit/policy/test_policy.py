"""Rules and decisions: what is not clearly allowed is denied."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from omnigraph.policy.bundle import parse_bundle
from omnigraph.policy.cases import parse_cases, run_cases
from omnigraph.policy.cedar import Policy, PolicyRules, compile_bundle, read_policy
from omnigraph.policy.questions import Action, PolicyInvalid, Question

BUNDLE = """
version: 1
groups: {admins: [ada], readers: [grace, ada]}
protected_branches: [main]
rules:
  - {id: read-all, allow: {actors: {group: readers}, actions: [read, export], branch_scope: any}}
  - {id: write-drafts, allow: {actors: {group: admins}, actions: [change], branch_scope: unprotected}}
  - {id: merge-main, allow: {actors: {group: admins}, actions: [branch_merge],
     target_branch_scope: protected}}
  - {id: call, allow: {actors: {group: readers}, actions: [invoke_query]}}
"""


def _policy(text: str = BUNDLE) -> Policy:
    return Policy(compile_bundle(parse_bundle(text)))


@pytest.mark.parametrize(
    ("question", "rule"),
    [
        (Question("grace", Action.READ, "g", "main"), "read-all"),
        (Question("grace", Action.READ, "g"), "read-all"),
        (Question("grace", Action.CHANGE, "g", "draft"), None),
        (Question("ada", Action.CHANGE, "g", "draft"), "write-drafts"),
        (Question("ada", Action.CHANGE, "g", "main"), None),
        (Question("ada", Action.CHANGE, "g"), None),
        (Question("ada", Action.BRANCH_MERGE, "g", "draft", "main"), "merge-main"),
        (Question("ada", Action.BRANCH_MERGE, "g", "main", "draft"), None),
        (Question("grace", Action.INVOKE_QUERY, "g"), "call"),
        (Question("ada", Action.GRAPH_LIST), None),
        (Question("eve", Action.READ, "g", "main"), None),
        (Question("readers", Action.READ, "g", "main"), None),
    ],
)
def test_decisions_and_the_rules_behind_them(question: Question, rule: str | None) -> None:
    decided = _policy().decide(question)
    assert (decided.allowed, decided.rule) == (rule is not None, rule)
    assert ("in no group" in decided.message) is (question.actor not in ("ada", "grace"))


def test_every_question_is_decided_as_the_rules_say() -> None:
    """Against the rules evaluated by hand."""
    bundle = parse_bundle(BUNDLE)
    policy = Policy(compile_bundle(bundle))
    names: list[str | None] = [None, "main", "draft"]
    for actor, action, branch, target in itertools.product(
        ("ada", "grace", "eve"), Action, names, names
    ):
        question = Question(actor, action, "g", branch, target)
        expected = any(
            actor in bundle.groups[rule.allow.actors.group]
            and action in rule.allow.actions
            and _fits(rule.allow.branch_scope, branch)
            and _fits(rule.allow.target_branch_scope, target)
            for rule in bundle.rules
        )
        assert policy.decide(question).allowed is expected, question


def _fits(scope: str | None, branch: str | None) -> bool:
    if scope in (None, "any"):
        return True
    return branch is not None and (branch == "main") is (scope == "protected")


def test_names_cannot_break_out_of_the_rules() -> None:
    text = """
version: 1
groups: {'x"); permit(principal, action, resource); //': ["a\\\\"]}
rules:
  - {id: 'r"\\n', allow: {actors: {group: 'x"); permit(principal, action, resource); //'}, actions: [read]}}
"""
    policy = _policy(text)
    member = next(iter(policy.rules.groups.values()))[0]
    assert policy.decide(Question(member, Action.READ, "g")).allowed
    assert not policy.decide(Question("eve", Action.READ, "g")).allowed
    assert not policy.decide(Question(member, Action.CHANGE, "g")).allowed


@pytest.mark.parametrize("written", ["K\u00f6ln", "Ko\u0308ln"])
@pytest.mark.parametrize("asked", ["K\u00f6ln", "Ko\u0308ln", "\u212a\u00f6ln", "\u212ao\u0308ln"])
def test_a_protected_branch_is_protected_in_every_spelling(written: str, asked: str) -> None:
    policy = _policy(BUNDLE.replace("[main]", f"[{written}]"))
    assert not policy.decide(Question("ada", Action.CHANGE, "g", asked)).allowed
    assert policy.decide(Question("ada", Action.BRANCH_MERGE, "g", "x", asked)).allowed
    assert policy.decide(Question("ada", Action.CHANGE, "g", "Koln")).allowed


def test_load_modes_limit_loads_alone() -> None:
    policy = _policy("""
version: 1
groups: {a: [ada]}
rules:
  - {id: r, allow: {actors: {group: a}, actions: [change], load_modes: [append, merge]}}
""")
    for mode, allowed in (("append", True), ("overwrite", False), (None, True)):
        question = Question("ada", Action.CHANGE, "g", "main", mode=mode)
        assert policy.decide(question).allowed is allowed


@pytest.mark.parametrize(
    "change",
    [
        "version: 2",
        "extra: 1",
        "groups: {admins: []}",
        "groups: {admins: ['']}",
        "groups: {readers: [ada]}",
        "rules: [{id: a, allow: {actors: {group: admins}, actions: []}}]",
        "rules: [{id: a, allow: {actors: {group: admins}, actions: [fly]}}]",
        "rules: [{id: a, deny: {actors: {group: admins}, actions: [read]}}]",
        "rules: [{id: a, allow: {actors: {group: x}, actions: [invoke_query], branch_scope: any}}]",
        "rules: [{id: a, allow: {actors: {group: x}, actions: [read], target_branch_scope: any}}]",
        "rules: [{id: a, allow: {actors: {group: x}, actions: [read, graph_list]}}]",
        "rules: [{id: a, allow: {actors: {group: x}, actions: [read], load_modes: [merge]}}]",
        "protected_branches: ['']",
        "protected_branches: [' main']",
        'protected_branches: ["ma\\nin"]',
        "rules: [{id: a, allow: {actors: {group: x}, actions: [read], types: [Pérson]}}]",
        "rules: [{id: a, allow: {actors: {group: x}, actions: [read], types: ['*']}}]",
        "- a list",
        "{",
    ],
)
def test_bundles_that_are_not_certain_are_refused(change: str) -> None:
    base = {
        "version": "version: 1",
        "groups": "groups: {x: [a], admins: [b]}",
        "rules": "rules: [{id: a, allow: {actors: {group: admins}, actions: [read]}}]",
    }
    assert parse_bundle("\n".join(base.values()))
    with pytest.raises(PolicyInvalid):
        parse_bundle("\n".join({**base, change.partition(":")[0]: change}.values()))


def test_cedar_is_taken_as_it_is_and_denies_when_it_fails(tmp_path: Path) -> None:
    file = tmp_path / "p.cedar"
    file.write_text(
        'permit(principal == Omnigraph::Actor::"ada", action, resource)'
        ' when { context.mode != "overwrite" };'
    )
    policy = read_policy(file)
    assert policy.decide(Question("ada", Action.READ, "g")).allowed
    assert not policy.decide(Question("ada", Action.CHANGE, "g", mode="overwrite")).allowed
    assert not policy.decide(Question("eve", Action.READ, "g")).allowed
    broken = Policy(
        PolicyRules(
            "permit(principal, action, resource);"
            " forbid(principal, action, resource) when { context.missing };",
            {},
        )
    )
    assert not broken.decide(Question("ada", Action.READ, "g")).allowed, "a failing rule is ignored"
    file.write_text("permit(")
    with pytest.raises(PolicyInvalid):
        read_policy(file)
    with pytest.raises(PolicyInvalid):
        read_policy(tmp_path / "missing.yaml")


def test_cases_find_what_is_decided_otherwise() -> None:
    cases = parse_cases("""
version: 1
cases:
  - {id: good, actor: grace, action: read, branch: main, expect: allow}
  - {id: bad, actor: grace, action: change, branch: main, expect: allow}
""")
    assert [wrong.case.id for wrong in run_cases(_policy(), cases)] == ["bad"]
    with pytest.raises(PolicyInvalid):
        parse_cases("version: 1\ncases: [{id: x}]")
