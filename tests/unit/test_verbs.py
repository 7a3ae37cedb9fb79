"""A verb is described once; everything that offers it follows, and what is not described is closed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.branch import Branch
from omnigraph.errors import OmnigraphError
from omnigraph.graph import Graph
from omnigraph.guarded import GuardedGraph
from omnigraph.policy.guard import Guard
from omnigraph.policy.questions import PolicyDenied
from omnigraph.remote.graph import POINTS, RemoteGraph
from omnigraph.remote.transport import NotServed
from omnigraph.server import openapi
from omnigraph.server.routes import ROUTES
from omnigraph.verbs import VERBS, Description, verb
from tests.server import world as worlds
from tests.server.world import TOKENS

KINDS = (Graph, GuardedGraph, RemoteGraph)
METHODS = {n: v for n, v in VERBS.items() if inspect.isfunction(inspect.getattr_static(Graph, n))}
SERVED = {name: verb for name, verb in VERBS.items() if verb.route is not None}
WRITING = {name: verb for name, verb in METHODS.items() if verb.writes}
CHECK = "query nameless() { match { $p: Person $p.name is null } return { $p.age as age } }"
INSERT = "query q($name: String) { insert Person { name: $name } }"
RULES = worlds.GRAPH_RULES + "  - {id: keep, allow: {actors: {group: admins}, actions: [admin]}}\n"
BRANCH_IS = {"create_branch": "from_", "merge": "into", "propose": "into"}
# Parameters that only mean something in the process of the caller, or that a server decides for everybody.
OF_THE_CALLER = frozenset(
    {"actor", "timeout", "engine", "options", "progress", "violations", "dest", "format", "source"}
)
IN_HEADERS = frozenset({"if_commit", "idempotency_key"})


@pytest.fixture
def trio(tmp_path: Path) -> Iterator[dict[str, Graph]]:
    """A graph as it is, under a policy that allows everything, and through a server."""
    server, graphs = worlds.build(tmp_path, rules=RULES)
    local = graphs["alpha"]
    guarded = GuardedGraph(local, Guard(worlds.policy(RULES), "admin", "alpha"))
    with worlds.listening(server) as address:
        remote = RemoteGraph(f"{address}/graphs/alpha", TOKENS["admin"])
        yield {"local": local, "guarded": guarded, "served": remote}


def test_every_public_method_of_a_graph_is_described() -> None:
    public = {name for name, _ in inspect.getmembers(Graph) if not name.startswith("_")}
    assert public == set(VERBS)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_verb_is_the_same_wherever_the_graph_lives(name: str) -> None:
    written = inspect.signature(inspect.unwrap(getattr(Graph, name)))
    for kind in KINDS:
        assert inspect.signature(getattr(kind, name)) == written, f"{kind.__name__}.{name}"
        assert getattr(kind, name).__doc__, f"{kind.__name__}.{name} has no help"


def test_a_branch_has_every_verb_about_a_branch_with_its_signature_and_help() -> None:
    about = {n for n in METHODS if "branch" in inspect.signature(getattr(Graph, n)).parameters}
    about = about - {"publish", "diff", "clone"} | set(BRANCH_IS)
    found = {name for name in dir(Branch) if not name.startswith("_")}
    assert found == about
    for name in about:
        ours, theirs = getattr(Branch, name), getattr(Graph, name)
        assert inspect.signature(ours) == inspect.signature(theirs)
        assert ours.__doc__ == theirs.__doc__


def test_an_opened_graph_is_a_graph(trio: dict[str, Graph]) -> None:
    opened = omnigraph.open(trio["served"].uri)
    assert isinstance(opened, omnigraph.Graph)
    for graph in trio.values():
        assert isinstance(graph, omnigraph.Graph)
        assert isinstance(graph.branch("main"), Branch)


@pytest.mark.parametrize("described", SERVED.values(), ids=SERVED)
def test_a_request_has_a_field_for_each_parameter(described: Description) -> None:
    """Else a served graph would refuse an option that a local one takes."""
    wanted = set(inspect.signature(getattr(Graph, described.name)).parameters) - {"self"}
    wanted -= OF_THE_CALLER | IN_HEADERS
    if described.name in ("changes", "blob"):  # by position in the feed; by a state that is pinned
        return
    in_path = (described.route or "").count("{")
    path = set(list(inspect.signature(getattr(Graph, described.name)).parameters)[1 : in_path + 1])
    shape = described.request_type
    fields = set() if shape is None else set(shape.__struct_fields__)
    assert wanted <= fields | path
    assert POINTS & wanted <= fields | path


def test_every_verb_with_a_route_is_in_the_table_and_in_the_document() -> None:
    document = openapi.document(ROUTES, authenticated=True)
    for described in SERVED.values():
        method, path = (described.route or "").split()
        (route,) = [r for r in ROUTES if r.verb is described and not r.conditional]
        assert (route.method, route.path, route.action) == (method, path, described.action)
        shown = document["paths"][f"/graphs/{{graph_id}}{path}"][method.lower()]
        assert described.cost in shown["description"]


def test_every_verb_has_a_line_about_policy_and_cost_in_the_reference() -> None:
    page = Path("docs/reference/api.md").read_text()
    for name, described in METHODS.items():
        assert f"### Graph.{name}\n" in page
        section = page.split(f"### Graph.{name}\n")[1].split("\n### ")[0]
        assert described.about in section, name


# --- closed by default -------------------------------------------------------------------------------------------


def test_a_verb_without_a_description_is_closed(
    trio: dict[str, Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    def everything(graph: Graph) -> Any:
        return graph._pinned().commit

    monkeypatch.setattr(Graph, "everything", everything, raising=False)
    name: Any = "everything"
    assert getattr(trio["local"], name)() is not None
    with pytest.raises(PolicyDenied):
        getattr(trio["guarded"], name)()
    with pytest.raises(NotServed):
        getattr(trio["served"], name)()
    served: Any = trio["served"]
    with pytest.raises(OmnigraphError) as missing:
        served._http.json(dict, "POST", "/everything", {})
    assert missing.value.code == "route_not_found"
    with pytest.raises(KeyError):
        verb(everything)


# --- dry runs ----------------------------------------------------------------------------------------------------


def _block(graph: Graph, **named: Any) -> list[Any]:
    with graph.write(**named) as block:
        block.mutate(INSERT, {"name": "Max"})
    return [done.to_json() for done in block.results]


# How each verb that writes is called, one after the other, on a graph with the branch draft and the tag first.
WRITES: dict[str, Callable[..., Any]] = {
    "mutate": lambda g, **k: g.mutate(INSERT, {"name": "Ida"}, **k).affected_nodes,
    "load": lambda g, **k: g.load({"Person": [{"name": "Zoe"}]}, **k).nodes,
    "write": _block,
    "publish": lambda g, **k: g.publish(g.mutation(INSERT, {"name": "Kim"}), **k).value,
    "revert": lambda g, **k: g.revert("main", **k).counts,
    "cherry_pick": lambda g, **k: g.cherry_pick("draft", **k).counts,
    "merge": lambda g, **k: g.merge("draft", **k).outcome,
    "reset": lambda g, **k: g.reset("first", **k).counts,
    "apply_schema": lambda g, **k: (
        g.apply_schema(f"{worlds.SCHEMA}\nnode New {{ a: I64 }}", **k).steps[0].kind
    ),
    "create_branch": lambda g, **k: g.create_branch("fresh", **k),
    "delete_branch": lambda g, **k: g.delete_branch("draft", **k),
    "tag": lambda g, **k: g.tag("second", **k),
    "delete_tag": lambda g, **k: g.delete_tag("first", **k),
    "cleanup": lambda g, **k: g.cleanup(1, **k).commits_pruned,
    "set_retention": lambda g, **k: g.set_retention(7, 2.5, **k).keep,
    "embed": lambda g, **k: [report.rows for report in g.embed(**k)],
    "apply_checks": lambda g, **k: g.apply_checks(CHECK, **k).added,
    "propose": lambda g, **k: g.propose("fresh", "More", **k).number,
    "comment": lambda g, **k: g.comment(1, "Hm", **k).number,
    "request_changes": lambda g, **k: g.request_changes(1, "No", actor="admin", **k).state,
    "approve": lambda g, **k: g.approve(1, actor="admin", **k).state,
    "merge_proposal": lambda g, **k: g.merge_proposal(1, **k).outcome,
    "close_proposal": lambda g, **k: g.close_proposal(2, **k).state,
}
WRONG: dict[str, Callable[..., Any]] = {
    "mutate": lambda g, **k: g.mutate('query q() { insert Nope { name: "a" } }', **k),
    "load": lambda g, **k: g.load({"Person": [{"age": "old"}]}, **k),
    "apply_schema": lambda g, **k: g.apply_schema("node Person {", **k),
    "create_branch": lambda g, **k: g.create_branch("draft", **k),
    "delete_branch": lambda g, **k: g.delete_branch("nowhere", **k),
    "tag": lambda g, **k: g.tag("first", **k),
    "delete_tag": lambda g, **k: g.delete_tag("draft", **k),
    "merge": lambda g, **k: g.merge("nowhere", **k),
    "revert": lambda g, **k: g.revert("nowhere", **k),
    "cherry_pick": lambda g, **k: g.cherry_pick("nowhere", **k),
    "reset": lambda g, **k: g.reset("nowhere", **k),
    "set_retention": lambda g, **k: g.set_retention(0, **k),
    "apply_checks": lambda g, **k: g.apply_checks("query q() @rows() {}", **k),
    "propose": lambda g, **k: g.propose("nowhere", "More", **k),
    "comment": lambda g, **k: g.comment(99, "Hm", **k),
    "request_changes": lambda g, **k: g.request_changes(99, "No", actor="admin", **k),
    "approve": lambda g, **k: g.approve(99, actor="admin", **k),
    "merge_proposal": lambda g, **k: g.merge_proposal(99, **k),
    "close_proposal": lambda g, **k: g.close_proposal(99, **k),
}


def _state(graph: Graph) -> tuple[Any, ...]:
    heads = {name: graph.snapshot(name).commit_id for name in graph.branches()}
    offered = [
        (proposal.number, proposal.state, proposal.updated) for proposal in graph.proposals()
    ]
    return heads, graph.tags(), graph.schema(), graph.retention(), graph.checks(), offered


def test_every_verb_that_writes_can_be_rehearsed() -> None:
    without = {"optimize", "maintain", "upkeep", "doctor", "clone", "mutation"}
    assert {name for name, verb in WRITING.items() if not verb.dry_run} == without
    assert set(WRITES) == {name for name, verb in WRITING.items() if verb.dry_run}
    for name in WRITES:
        dry = inspect.signature(getattr(Graph, name)).parameters["dry_run"]
        assert dry.default is False


@pytest.mark.parametrize("place", ["local", "guarded", "served"])
def test_a_dry_run_says_what_the_write_does_and_does_nothing(
    trio: dict[str, Graph], place: str
) -> None:
    graph, local = trio[place], trio["local"]
    local.tag("first")
    local.create_branch("draft")
    local.load({"Company": [{"name": "own"}]}, branch="draft")
    local.create_branch("offer")
    local.load({"Company": [{"name": "offered"}]}, branch="offer")
    local.propose("offer", "A company", actor="eve")
    for name, call in WRITES.items():
        if place == "served" and VERBS[name].route is None:
            continue
        before = _state(local)
        said = call(graph, dry_run=True)
        assert _state(local) == before, f"a dry run of {name} changed something"
        assert call(graph) == said, name
        assert name in ("cleanup", "embed") or _state(local) != before, f"{name} did nothing"


@pytest.mark.parametrize("place", ["local", "guarded", "served"])
def test_a_dry_run_raises_what_the_write_raises(trio: dict[str, Graph], place: str) -> None:
    graph, local = trio[place], trio["local"]
    local.tag("first")
    local.create_branch("draft")
    before = _state(local)
    for name, call in WRONG.items():
        with pytest.raises(OmnigraphError) as rehearsed:
            call(graph, dry_run=True)
        with pytest.raises(OmnigraphError) as done:
            call(graph)
        assert rehearsed.value.code == done.value.code, name
    assert _state(local) == before
