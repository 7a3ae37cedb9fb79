"""Who may call what: a row for every route, and what each kind of caller gets."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from omnigraph.cluster.apply import apply_plan
from omnigraph.cluster.files import described_by
from omnigraph.cluster.plan import make_plan
from omnigraph.server.routes import ROUTES, ui
from omnigraph.server.routing import Route
from tests.server.world import PEOPLE, World

INSERT = 'query q() { insert Person { name: "New" } }'
NDJSON = {"Content-Type": "application/x-ndjson"}
BLOB = {"entity": "node", "type": "Person", "id": "Alice", "property": "avatar"}
ALICE = {"type": "Person", "id": "Alice"}
PING = {
    "content": {"jsonrpc": "2.0", "id": 1, "method": "ping"},
    "headers": {"Accept": "application/json, text/event-stream"},
}
OFFERED = {"number": "1"}
CHECK = "query nameless() { match { $p: Person $p.name is null } return { $p.age as age } }"

CLUSTER = {
    "cluster.yaml": "version: 1\ngraphs: {a: {schema: a.pg}}",
    "a.pg": "node A { n: String @key }",
}
# How to call each route so that somebody who may do everything succeeds. A route without a row fails the first test.
# "$head" stands for the id of the newest commit of main, "$job" for that of an export of the admin's that is done.
CALLS: dict[str, dict[str, Any]] = {
    "GET /healthz": {},
    "GET /readyz": {},
    "GET /metrics": {},
    "GET /openapi.json": {},
    "GET /docs": {},
    "GET /ui": {},
    "GET /ui/{path*}": {"path": {"path*": "people/history"}},
    "GET /session": {},
    "POST /mcp": {**PING, "params": {"graph": "alpha"}},
    "GET /graphs": {},
    "GET /cluster/status": {},
    "POST /cluster/plan": {"content": {"files": CLUSTER}},
    "POST /cluster/apply": {"content": {"files": CLUSTER}},
    "GET /graphs/{graph_id}/snapshot": {},
    "GET /graphs/{graph_id}/schema": {},
    "GET /graphs/{graph_id}/catalog": {},
    "GET /graphs/{graph_id}/permissions": {},
    "GET /graphs/{graph_id}/maintenance": {},
    "GET /graphs/{graph_id}/retention": {},
    "POST /graphs/{graph_id}/retention": {"content": {"keep": 5}},
    "GET /graphs/{graph_id}/entities/{type}/{id}": {"path": ALICE},
    "GET /graphs/{graph_id}/entities/{type}/{id}/history": {"path": ALICE},
    "POST /graphs/{graph_id}/query/check": {"content": {"query": PEOPLE}},
    "POST /graphs/{graph_id}/schema/check": {"content": {"schema_source": "node A { x: String }"}},
    "GET /graphs/{graph_id}/history": {},
    "POST /graphs/{graph_id}/query/many": {"content": {"query": PEOPLE, "params": [{}, {}]}},
    "POST /graphs/{graph_id}/query": {"content": {"query": PEOPLE}},
    "POST /graphs/{graph_id}/read": {"content": {"query_source": PEOPLE}},
    "GET /graphs/{graph_id}/queries": {},
    "POST /graphs/{graph_id}/queries/{name}": {
        "path": {"name": "older"},
        "content": {"params": {"age": 26}},
    },
    "POST /graphs/{graph_id}/queries/{name}/if-graph-commit": {
        "path": {"name": "add_person"},
        "content": {"params": {"name": "New"}},
        "headers": {"Omnigraph-If-Graph-Commit": "$head"},
    },
    "POST /graphs/{graph_id}/mcp": PING,
    "GET /graphs/{graph_id}/blob": {"params": BLOB},
    "HEAD /graphs/{graph_id}/blob": {"params": BLOB},
    "GET /graphs/{graph_id}/export": {},
    "POST /graphs/{graph_id}/export": {"content": {}},
    "POST /graphs/{graph_id}/exports": {"content": {}},
    "GET /graphs/{graph_id}/exports/{job_id}": {"path": {"job_id": "$job"}},
    "GET /graphs/{graph_id}/exports/{job_id}/parts/{name}": {
        "path": {"job_id": "$job", "name": "node-Person.ndjson"}
    },
    "GET /graphs/{graph_id}/jobs": {},
    "GET /graphs/{graph_id}/jobs/{job_id}": {"path": {"job_id": "$job"}},
    "DELETE /graphs/{graph_id}/jobs/{job_id}": {"path": {"job_id": "$job"}},
    "POST /graphs/{graph_id}/mutate": {"content": {"query": INSERT}},
    "POST /graphs/{graph_id}/mutate/if-graph-commit": {
        "content": {"query": INSERT},
        "headers": {"Omnigraph-If-Graph-Commit": "$head"},
    },
    "POST /graphs/{graph_id}/change": {"content": {"query": INSERT}},
    "POST /graphs/{graph_id}/write": {"content": {"steps": [{"query": INSERT}]}},
    "POST /graphs/{graph_id}/write/if-graph-commit": {
        "content": {"steps": [{"query": INSERT}]},
        "headers": {"Omnigraph-If-Graph-Commit": "$head"},
    },
    "POST /graphs/{graph_id}/load": {"raw": b"", "headers": NDJSON},
    "POST /graphs/{graph_id}/load/ndjson": {"raw": b"", "headers": NDJSON},
    "POST /graphs/{graph_id}/import": {
        "raw": b"name,age\nNew,3\n",
        "params": {"type": "Person", "format": "csv"},
    },
    "POST /graphs/{graph_id}/import/preview": {"raw": b"name\nNew\n", "params": {"format": "csv"}},
    "POST /graphs/{graph_id}/ingest": {"content": {"data": ""}},
    "POST /graphs/{graph_id}/schema/plan": {"content": {"schema_source": "node A { x: String }"}},
    "POST /graphs/{graph_id}/schema/apply": {"content": "$schema"},
    "GET /graphs/{graph_id}/branches": {},
    "POST /graphs/{graph_id}/branches": {"content": {"name": "draft"}},
    "POST /graphs/{graph_id}/branches/merge": {"content": {"source": "side"}},
    "DELETE /graphs/{graph_id}/branches/{name}": {"path": {"name": "side"}},
    "GET /graphs/{graph_id}/tags": {},
    "POST /graphs/{graph_id}/tags": {"content": {"name": "v2"}},
    "DELETE /graphs/{graph_id}/tags/{name}": {"path": {"name": "v1"}},
    "GET /graphs/{graph_id}/commits": {},
    "GET /graphs/{graph_id}/commits/{commit_id}": {"path": {"commit_id": "$head"}},
    "GET /graphs/{graph_id}/commits/{commit_id}/changes": {"path": {"commit_id": "$head"}},
    "GET /graphs/{graph_id}/diff": {"params": {"a": "main~1", "b": "main"}},
    "POST /graphs/{graph_id}/revert": {"content": {"commit": "$head"}},
    "POST /graphs/{graph_id}/cherry-pick": {"content": {"commit": "$head", "branch": "side"}},
    "POST /graphs/{graph_id}/reset": {"content": {"commit": "main~1"}},
    "GET /graphs/{graph_id}/entities/{type}/{id}/blame": {"path": ALICE},
    "GET /graphs/{graph_id}/checks": {},
    "POST /graphs/{graph_id}/checks": {"content": {"text": CHECK}},
    "POST /graphs/{graph_id}/check": {"content": {}},
    "GET /graphs/{graph_id}/commits/{commit_id}/checks": {"path": {"commit_id": "$head"}},
    "GET /graphs/{graph_id}/profile": {},
    "GET /graphs/{graph_id}/proposals": {},
    "POST /graphs/{graph_id}/proposals": {"content": {"source": "side", "title": "More"}},
    "GET /graphs/{graph_id}/proposals/{number}": {"path": OFFERED},
    "GET /graphs/{graph_id}/proposals/{number}/review": {"path": OFFERED},
    "POST /graphs/{graph_id}/proposals/{number}/comments": {
        "path": OFFERED,
        "content": {"text": "Hm", "type": "Person", "id": "Alice", "property": "age"},
    },
    "POST /graphs/{graph_id}/proposals/{number}/approve": {"path": OFFERED, "content": {}},
    "POST /graphs/{graph_id}/proposals/{number}/request-changes": {
        "path": OFFERED,
        "content": {"text": "No"},
    },
    "POST /graphs/{graph_id}/proposals/{number}/close": {"path": OFFERED, "content": {}},
    "POST /graphs/{graph_id}/proposals/{number}/merge": {"path": OFFERED, "content": {}},
    "GET /graphs/{graph_id}/changes": {},
    "POST /graphs/{graph_id}/changes/baseline": {"content": {}},
}
POINTS = (
    "/commits/{commit_id}/changes",
    "/commits/{commit_id}/checks",
    "/diff",
)  # a point one may not read looks like none


def test_every_route_has_a_row_here() -> None:
    assert sorted(CALLS) == sorted(route.name for route in ROUTES)


@pytest.fixture
def prepared(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A second branch, a tag and a built explorer, for the routes that need them."""
    monkeypatch.setattr(ui, "BUILT", tmp_path)
    (tmp_path / ui.INDEX).write_text("<!doctype html>")
    graph = world.graphs["alpha"]
    graph.create_branch("side", "main~1")
    graph.tag("v1")
    graph.create_branch("offer")
    graph.load([{"type": "Company", "data": {"name": "Offered"}}], branch="offer")
    graph.propose("offer", "A company", actor="eve")
    return world


def _call(world: World, route: Route, actor: str | None, graph: str = "alpha") -> Any:
    row = CALLS[route.name]
    head = world.graphs[graph].snapshot().commit_id
    schema = world.graphs[graph].schema() + "\nnode Extra { name: String @key }"

    def filled(value: Any) -> Any:
        match value:
            case "$head":
                return head
            case "$job":
                return world.exported(graph)
            case "$schema":
                return {"schema_source": schema}
            case dict():
                return {key: filled(inner) for key, inner in value.items()}
            case _:
                return value

    if route.path.startswith("/cluster"):
        world.server.cluster = root = f"memory://cluster-{uuid.uuid4().hex}"
        apply_plan(make_plan(described_by(CLUSTER, root)))
    path = f"/{route.path}" if route.flat else route.path
    for name, value in filled(row.get("path", {})).items():
        path = path.replace(f"{{{name}}}", value)
    return world.call(
        route.method,
        path,
        filled(row.get("content")),
        actor=actor,
        headers=filled(row.get("headers")),
        raw=row.get("raw"),
        params=row.get("params"),
        graph=graph,
    )


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_somebody_who_may_do_everything_succeeds(prepared: World, route: Route) -> None:
    answer = _call(prepared, route, "admin")
    assert answer.status_code == route.status, answer.text


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_callers_that_may_not_are_refused(prepared: World, route: Route) -> None:
    nobody = _call(prepared, route, None).status_code
    wrong = prepared.call(
        route.method, f"/{route.path}", headers={"Authorization": "Bearer wrong"}, actor=None
    )
    if route.public:
        assert nobody == 200
        return
    assert nobody == 401, "a request without a token gets in"
    if route.flat:
        assert wrong.status_code == 401, "a request with a wrong token gets in"
    stranger = _call(prepared, route, "stranger").status_code
    other = _call(prepared, route, "beta").status_code
    expected = _refusal(route)
    assert (stranger, other) == (expected, expected)


def _refusal(route: Route) -> int:
    if "{job_id}" in route.path or "{number}" in route.path:
        return 404  # somebody else's job is none, and neither is a proposal one may not read
    if route.action is None:
        return 200  # any valid token will do
    hidden = str(route.action) == "invoke_query" or route.path in POINTS
    return 404 if hidden else 403


@pytest.mark.parametrize(
    "route", [r for r in ROUTES if r.action is not None], ids=lambda route: route.name
)
def test_readers_may_only_read(prepared: World, route: Route) -> None:
    expected = 200 if str(route.action) == "read" else _refusal(route)
    if "{number}" in route.path and expected != 200:
        expected = 403  # they may know of it
    assert _call(prepared, route, "reader").status_code == expected


def test_the_policy_is_asked_before_a_branch_is_said_to_exist(prepared: World) -> None:
    """Also about `main`, which is there without being asked for."""
    refused = {
        actor: prepared.call("POST", "/branches", {"name": "main"}, actor=actor)
        for actor in ("admin", "reader")
    }
    assert {actor: told.json()["code"] for actor, told in refused.items()} == {
        "admin": "conflict",
        "reader": "forbidden",
    }


def test_refused_writes_change_nothing(prepared: World) -> None:
    before = prepared.graphs["alpha"].snapshot().commit_id
    for route in ROUTES:
        if route.action is not None:
            _call(prepared, route, "stranger")
    assert prepared.graphs["alpha"].snapshot().commit_id == before
    assert sorted(prepared.graphs["alpha"].branches()) == ["main", "offer", "side"]
    assert prepared.graphs["alpha"].proposal(1).state == "open"
    assert list(prepared.graphs["alpha"].tags()) == ["v1"]
