"""The same spellings in Python: every verb of a graph under a policy, in every parameter that takes a name.

The list of verbs and parameters is the graph's own; one that nobody entered here fails the first test.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import OmnigraphError
from omnigraph.graph import Graph
from omnigraph.guarded import GuardedGraph
from omnigraph.policy.guard import Guard
from omnigraph.verbs import VERBS
from tests.security.test_names import ALIKE, BROKEN, RULES, SAME, VAULT
from tests.server import world as worlds
from tests.server.world import PEOPLE

NAMES = frozenset(
    {
        *("branch", "at", "from_", "create_from", "into", "commit", "to", "a", "b", "after"),
        *("before", "target"),
    }
)
ALSO = frozenset(
    {
        ("branch", "name"),
        ("commit", "id"),
        ("create_branch", "name"),
        ("delete_branch", "name"),
        ("delete_tag", "name"),
        ("merge", "source"),
        ("propose", "source"),
        ("tag", "name"),
    }
)
ADD = 'query q() { insert Person { name: "new" } }'
CHECK = "query nameless() { match { $p: Person $p.name is null } return { $p.age as age } }"
ROWS: dict[str, Any] = {"Person": [{"name": "new"}]}
FOLDER = Path("nowhere")


def _block(graph: Graph, **named: Any) -> None:
    with graph.write(**named) as block:
        block.mutate(ADD)


# How a drafter calls each verb on a draft.
CALLS: dict[str, Callable[..., Any]] = {
    "analytics": lambda g, **k: g.analytics(**k).degrees("Person", ["Knows"]),
    "apply_checks": lambda g, **k: g.apply_checks(CHECK, **k),
    "apply_schema": lambda g, **k: g.apply_schema(worlds.SCHEMA, **k),
    "blame": lambda g, **k: g.blame("Person", "Alice", **k),
    "blob": lambda g, **k: g.blob("Person", "Alice", "avatar", **k).size,
    "branch": lambda g, **k: g.branch(**k).schema(),
    "changes": lambda g, **k: list(g.changes(**({"after": "of-draft"} | k))),
    "check": lambda g, **k: g.check(**({"branch": "draft"} | k)),
    "check_results": lambda g, **k: g.check_results(**k),
    "checks": lambda g, **k: g.checks(**k),
    "cherry_pick": lambda g, **k: g.cherry_pick(**({"commit": "side"} | k)),
    "clone": lambda g, **k: g.clone(FOLDER, **k),
    "commit": lambda g, **k: g.commit(**k),
    "create_branch": lambda g, **k: g.create_branch(**({"name": "fresh", "from_": "draft"} | k)),
    "delete_branch": lambda g, **k: g.delete_branch(**k),
    "delete_tag": lambda g, **k: g.delete_tag(**k),
    "diff": lambda g, **k: list(g.diff(**({"a": "draft~1", "b": "draft"} | k))),
    "embed": lambda g, **k: g.embed(**k),
    "export": lambda g, **k: g.export(FOLDER, **k),
    "history": lambda g, **k: g.history("Person", "Alice", **k),
    "load": lambda g, **k: g.load(ROWS, **({"branch": "fresh"} if "create_from" in k else {}) | k),
    "log": lambda g, **k: g.log(**k),
    "merge": lambda g, **k: g.merge(**({"source": "side", "into": "draft"} | k)),
    "mutate": lambda g, **k: g.mutate(ADD, **k),
    "optimize": lambda g, **k: g.optimize(**k),
    "plan_schema": lambda g, **k: g.plan_schema(worlds.SCHEMA, **k),
    "profile": lambda g, **k: g.profile(**({"branch": "draft"} | k)),
    "proposals": lambda g, **k: g.proposals(**k),
    "propose": lambda g, **k: g.propose(
        **({"source": "side", "title": "More", "into": "draft"} | k)
    ),
    "publish": lambda g, **k: g.publish(
        g.mutation(ADD), **({"branch": "fresh"} if "create_from" in k else {}) | k
    ),
    "query": lambda g, **k: g.query(PEOPLE, **k).rows,
    "query_many": lambda g, **k: [found.rows for found in g.query_many(PEOPLE, [{}, {}], **k)],
    "reset": lambda g, **k: g.reset(**({"to": "draft"} | k)),
    "revert": lambda g, **k: g.revert(**({"commit": "draft"} | k)),
    "schema": lambda g, **k: g.schema(**k),
    "snapshot": lambda g, **k: g.snapshot(**k).commit_id,
    "spark": lambda g, **k: g.spark(**k),
    "tag": lambda g, **k: g.tag(**({"name": "fresh"} | k)),
    "write": _block,
}
ON_A_BRANCH = frozenset({"revert", "reset", "cherry_pick", "tag"})  # main, unless it is named
ADMIN = frozenset({"clone", "optimize", "commit"})  # about all branches: not for drafters
SLOW = frozenset({"spark", "export"})  # what they do when they may is tested elsewhere
OWN = {"name": "side", "source": "side", "at": "draft", "after": "of-draft"}


def _slots() -> Iterator[tuple[str, str]]:
    for verb in sorted(VERBS):
        found = inspect.getattr_static(Graph, verb)
        if inspect.isfunction(found):
            for name in inspect.signature(found).parameters:
                if name in NAMES or (verb, name) in ALSO:
                    yield verb, name


SLOTS = list(_slots())


def test_every_verb_that_takes_a_name_has_a_row_here() -> None:
    assert {verb for verb, _ in SLOTS} == set(CALLS)
    assert set(SLOTS) >= ALSO


@pytest.fixture
def graph() -> Graph:
    made = worlds.graph("verbs")
    for name in (VAULT, "draft", "side"):
        made.create_branch(name)
        made.load([{"type": "Person", "data": {"name": f"on {name}"}}], branch=name)
    made.load([{"type": "Company", "data": {"name": "own"}}], branch="draft")
    made.tag("of-draft", "draft")
    made.tag("of-secret", VAULT)
    return made


def _call(graph: Graph, verb: str, parameter: str, name: Any) -> Any:
    guarded = GuardedGraph(graph, Guard(worlds.policy(RULES), "reader", "g"))
    given = {parameter: name}
    if verb in ON_A_BRANCH or (verb, parameter) == ("changes", "after"):
        given.setdefault("branch", "draft")
    if (verb, parameter) == ("diff", "branch"):
        given["a"] = "@{0 seconds ago}"
    return CALLS[verb](guarded, **given)


def _told(graph: Graph, verb: str, parameter: str, name: str, as_: str = "NAME") -> str:
    """How a verb is refused, without the name; what it does if it is not."""
    try:
        _call(graph, verb, parameter, name)
    except OmnigraphError as error:
        text = f"{error.code} {error.message} {sorted(error.details.items())}"
        return text.replace(repr(name)[1:-1], as_).replace(name, as_)
    return "done"


def _protected(graph: Graph) -> tuple[Any, ...]:
    heads = tuple(graph.snapshot(name).commit_id for name in ("main", VAULT))
    return heads, graph.tags()["of-secret"], len(graph.branches())


@pytest.mark.parametrize(("verb", "parameter"), SLOTS)
def test_a_drafter_may_name_a_draft(graph: Graph, verb: str, parameter: str) -> None:
    own = {"delete_tag": "of-draft", "create_branch": "fresh", "tag": "fresh"}.get(verb)
    name = own if own and parameter == "name" else OWN.get(parameter, "draft")
    if verb in SLOW or (verb, parameter) == ("merge", "into"):
        return
    told = _told(graph, verb, parameter, name)
    assert told.startswith("policy_denied") if verb in ADMIN else told == "done"


@pytest.mark.parametrize(("verb", "parameter"), SLOTS)
def test_every_spelling_gets_the_answer_of_the_name(
    graph: Graph, verb: str, parameter: str
) -> None:
    before = _protected(graph)
    plain = _told(graph, verb, parameter, VAULT)
    assert plain.startswith(("policy_denied", "commit_not_found")), plain
    for spelled in SAME.values():
        told = _told(graph, verb, parameter, spelled)
        assert told.replace(VAULT, "NAME") == plain
    assert _protected(graph) == before


@pytest.mark.parametrize(("verb", "parameter"), [s for s in SLOTS if s[0] not in SLOW])
def test_names_that_only_look_alike_are_other_names(
    graph: Graph, verb: str, parameter: str
) -> None:
    before = _protected(graph)[:2]
    for number, spelled in enumerate(ALIKE.values()):
        told = _told(graph, verb, parameter, spelled)
        assert told == _told(graph, verb, parameter, f"nobody-{number}")
    for spelled in BROKEN.values():
        assert _told(graph, verb, parameter, spelled) != "done"
    assert _protected(graph)[:2] == before
