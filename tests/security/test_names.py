"""A branch is the same branch however it is spelled: every route, every place for a name, every spelling.

Somebody who may read and change drafts alone asks for a protected branch. A spelling that Unicode holds to be the same
gets the answer of the name itself; one that only looks alike is another name, and gets the answer of a name nobody has.
The list of routes is the server's own, and every field of their requests is known here as a name or as a value.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from omnigraph.server.routes import ROUTES
from omnigraph.server.routing import Route, RouteWork
from tests.server import world as worlds
from tests.server.test_access import CALLS
from tests.server.world import TOKENS, World

VAULT = "Kö"  # canonical: what the store and the policy call it
SAME = {
    "decomposed": "Ko\u0308",
    "kelvin sign": "\u212a\u00f6",
    "kelvin sign, decomposed": "\u212ao\u0308",
}
ALIKE = {
    "fullwidth": "\uff2b\u00f6",
    "upper case": "KÖ",
    "lower case": "kö",
    "without the accent": "Ko",
    "cyrillic": "\u041a\u00f6",
    "zero width space": "Kö\u200b",
    "zero width joiner": "K\u200dö",
    "soft hyphen": "K\u00adö",
    "trailing dot": "Kö.",
    "percent encoded": "K%C3%B6",
    "percent encoded twice": "K%25C3%25B6",
    "climbing": "x/../Kö",
    "ligature": "\ufb01Kö",
}
BROKEN = {"trailing space": "Kö ", "tab": "K\tö", "nothing": " ", "line break": "Kö\n"}
RULES = f"""
version: 1
groups: {{admins: [admin], drafters: [reader]}}
protected_branches: [main, "{unicodedata.normalize("NFD", VAULT)}"]
rules:
  - {{id: a1, allow: {{actors: {{group: admins}}, actions: [read, export, change, admin, invoke_query]}}}}
  - id: a2
    allow: {{actors: {{group: admins}}, actions: [branch_create, branch_delete, branch_merge, schema_apply]}}
  - id: d1
    allow: {{actors: {{group: drafters}}, actions: [read, export, change], branch_scope: unprotected}}
  - id: d2
    allow:
      actors: {{group: drafters}}
      actions: [branch_create, branch_delete, branch_merge, schema_apply, propose, approve]
      target_branch_scope: unprotected
  - {{id: d3, allow: {{actors: {{group: drafters}}, actions: [invoke_query]}}}}
"""

# Fields that name a branch or a point, with what a drafter may say there.
NAMES = {
    "branch": "draft",
    "at": "draft",
    "snapshot": "draft",
    "from": "draft",
    "source": "side",
    "target": "draft",
    "commit": "draft",
    "a": "draft~1",
    "b": "draft",
    "start": "after:draft",
    "compare_to": "draft~1",
}
NEW_NAMES = {"POST /graphs/{graph_id}/branches": "name", "POST /graphs/{graph_id}/tags": "name"}
PATHS = {
    "DELETE /graphs/{graph_id}/branches/{name}": ("name", "side"),
    "DELETE /graphs/{graph_id}/tags/{name}": ("name", "of-draft"),
    "GET /graphs/{graph_id}/commits/{commit_id}": ("commit_id", "draft"),
    "GET /graphs/{graph_id}/commits/{commit_id}/changes": ("commit_id", "draft"),
    "GET /graphs/{graph_id}/commits/{commit_id}/checks": ("commit_id", "draft"),
}
VALUES = frozenset(
    (
        *(
            "actor",
            "allow_data_loss",
            "order",
            "before",
            "check",
            "columns",
            "cursor",
            "data",
            "delete_branch",
        ),
        *(
            "dry_run",
            "entity",
            "expect_mutation",
            "explain",
            "format",
            "graph",
            "id",
            "kind",
            "language",
            "limit",
        ),
        *("maintenance", "max_rows", "message", "mode", "name", "op", "page_token", "params"),
        *("property", "query", "query_name", "query_source", "resolutions", "schema_source"),
        *("column_types", "days", "every_hours", "from_merge_base", "keep", "rows_shown"),
        *("head", "only", "record", "reviewers", "skip_checks", "state", "text", "title"),
        *("steps", "strategy", "timeout", "ttl_seconds", "type", "type_names", "types", "uri"),
        *(
            "settings",
            "files",
            "plan",
            "delete",
        ),  # of a cluster: graphs, which its policy is asked for
    )
)
OTHER_PARTS = frozenset({"graph_id", "path", "type", "id", "job_id", "number"})
# Of these a drafter is told nothing, whatever the name: they are about all branches.
ABOUT_ALL = frozenset({"GET /graphs/{graph_id}/commits/{commit_id}"})
# Where a name is only compared with the rules, and never looked for.
NEVER_LOOKED_FOR = frozenset({"GET /graphs/{graph_id}/permissions"})


REFUSED = (403, 404)
POINTS = frozenset(
    {"at", "snapshot", "from", "commit", "a", "b", "start", "commit_id", "compare_to"}
)


@dataclass(frozen=True)
class Slot:
    """A place of a request where a name stands."""

    route: Route
    field: str
    where: str  # path, params or content

    @property
    def is_point(self) -> bool:
        """Whether it takes any point in time; a load forks the head of a branch alone."""
        return self.field in POINTS and not (
            self.field == "from" and self.route.work is RouteWork.LOAD
        )

    def __str__(self) -> str:
        return f"{self.route.name} {self.field}"


def _fields(route: Route) -> Iterator[tuple[str, str]]:
    for shape, where in ((route.query, "params"), (route.body, "content")):
        if shape is not None:
            streamed = where == "content" and "raw" in CALLS[route.name]
            for field in msgspec.structs.fields(shape):
                yield field.encode_name, "params" if streamed else where


def _slots() -> Iterator[Slot]:
    for route in ROUTES:
        if route.name in PATHS:
            yield Slot(route, PATHS[route.name][0], "path")
        for field, where in _fields(route):
            conditional = field == "snapshot" and route.conditional  # a write is not of the past
            if (field in NAMES and not conditional) or NEW_NAMES.get(route.name) == field:
                yield Slot(route, field, where)


SLOTS = list(_slots())


def _parts(route: Route) -> list[str]:
    """The names in a path."""
    return re.findall(r"{(\w+)", route.full_path)


def test_every_field_of_every_route_is_known_as_a_name_or_as_a_value() -> None:
    fields = {name for route in ROUTES for name, _ in _fields(route)}
    assert fields - VALUES == set(NAMES), "a field that may be a name, and is not tried"
    parts = {part for route in ROUTES if route.name not in PATHS for part in _parts(route)}
    assert parts - {"name"} <= OTHER_PARTS
    stored = {r.name for r in ROUTES if "name" in _parts(r)} - set(PATHS)
    assert all("/queries/" in name or "/parts/" in name for name in stored)
    assert set(CALLS) == {route.name for route in ROUTES}


@contextmanager
def _world(folder: Path) -> Iterator[World]:
    """Protected `main` and `Kö`, where the secret is; `draft` and `side`, which are the drafter's own."""
    with worlds.world(folder, rules=RULES) as made:
        graph = made.graphs["alpha"]
        for name in (VAULT, "draft", "side"):
            graph.create_branch(name)
            graph.load([{"type": "Person", "data": {"name": f"on {name}"}}], branch=name)
        graph.load([{"type": "Company", "data": {"name": "secret"}}], branch=VAULT)
        graph.load([{"type": "Company", "data": {"name": "own"}}], branch="draft")
        graph.tag("of-draft", "draft")
        graph.tag("of-secret", VAULT)
        yield made


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with _world(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One world for all requests that are refused: afterwards nothing of it is different."""
    with _world(tmp_path_factory.mktemp("names")) as made:
        before = _state(made), made.graphs["alpha"].branches(), made.graphs["alpha"].tags()
        yield made
        after = _state(made), made.graphs["alpha"].branches(), made.graphs["alpha"].tags()
        assert after == before


def _asked(world: World, slot: Slot, name: str | None, actor: str = "reader") -> Any:
    """The answer to a request that is a drafter's own, but for the name in one place; none: without that field."""
    row, route = CALLS[slot.route.name], slot.route
    parts = {"params": dict(row.get("params") or {}), "path": dict(row.get("path") or {})}
    content = row.get("content")
    if content == "$schema":
        content = {"schema_source": world.graphs["alpha"].schema()}
    parts["content"] = dict(content or {})
    for field, where in _fields(route):
        if field in ("branch", "target", "source", "from", "a", "b", "commit"):
            parts[where][field] = NAMES[field]
        elif field in ("at", "snapshot") and field != slot.field:
            parts[where].pop(field, None)
    _make_it_matter(slot, parts[slot.where])
    if name is None:
        parts[slot.where].pop(slot.field, None)
    else:
        parts[slot.where][slot.field] = f"after:{name}" if slot.field == "start" else name
    headers = dict(row.get("headers") or {})
    if "Omnigraph-If-Graph-Commit" in headers:
        headers["Omnigraph-If-Graph-Commit"] = world.graphs["alpha"].snapshot("draft").commit_id
    path = route.path
    for part, value in parts["path"].items():
        path = path.replace(f"{{{part}}}", quote(value, safe=""))
    body = None if "raw" in row or route.body is None else parts["content"]
    return world.call(
        route.method,
        path,
        body,
        actor=actor,
        headers=headers,
        raw=row.get("raw"),
        params=parts["params"],
    )


def _make_it_matter(slot: Slot, given: dict[str, Any]) -> None:
    """Leave out or change what would keep the name in this place from being looked at."""
    match slot.field:
        case "snapshot":  # it takes the place of a branch
            given.pop("branch", None)
        case "from" if "branch" in given:  # a branch is forked where there is none yet
            given["branch"] = "fresh"
        case "branch":
            given.pop("from", None)
        case "from":
            given["name"] = "fresh"
    if slot.field == "branch" and slot.route.path == "/diff":  # it is what times are of
        given["a"] = "@{0 seconds ago}"


def _told(answer: Any, name: str) -> tuple[Any, ...]:
    """An answer without what differs between two requests for different names."""
    if answer.status_code < 400 or not answer.content:
        return (answer.status_code,)
    told = answer.json()
    texts = told["error"], repr(sorted(told["details"].items()))
    shown = repr(name)[1:-1]
    plain = (text.replace(shown, "NAME").replace(name, "NAME") for text in texts)
    return answer.status_code, told["error_code"], told["help"], *plain


def _state(world: World) -> tuple[Any, ...]:
    graph = world.graphs["alpha"]
    protected = tuple(graph.snapshot(name).commit_id for name in ("main", VAULT))
    return protected, graph.tags()["of-secret"]


@pytest.mark.parametrize("slot", SLOTS, ids=str)
def test_a_drafter_may_ask_for_a_draft(world: World, slot: Slot) -> None:
    """Else the other tests would see a refusal that has nothing to do with the name."""
    own = PATHS[slot.route.name][1] if slot.where == "path" else NAMES.get(slot.field, "fresh")
    answer = _asked(world, slot, own.removeprefix("after:"))
    expected = 403 if slot.route.name in ABOUT_ALL else slot.route.status
    assert answer.status_code == expected, answer.text


@pytest.mark.parametrize("slot", SLOTS, ids=str)
def test_every_spelling_of_a_protected_branch_gets_the_answer_of_its_name(
    unchanged: World, slot: Slot
) -> None:
    before = _state(unchanged)
    for suffix in ("", "~0") if slot.is_point else ("",):
        plain = _asked(unchanged, slot, VAULT + suffix)
        assert plain.status_code in REFUSED or slot.route.name in NEVER_LOOKED_FOR, plain.text
        for spelled in SAME.values():
            other = _asked(unchanged, slot, spelled + suffix)
            assert (other.status_code, other.text) == (plain.status_code, plain.text)
    assert _state(unchanged) == before


@pytest.mark.parametrize("slot", SLOTS, ids=str)
def test_names_that_only_look_alike_are_other_names(world: World, slot: Slot) -> None:
    """They get the answer of a name nobody has, and nothing of the branch they resemble."""
    before = _state(world)
    for number, spelled in enumerate((*ALIKE.values(), "2Kö~1")):
        unknown = f"nobody-{number}" + ("~1" if spelled.endswith("~1") else "")
        answers = _asked(world, slot, unknown), _asked(world, slot, spelled)
        assert _told(answers[0], unknown) == _told(answers[1], spelled)
        assert "on Kö" not in answers[1].text
    assert _state(world) == before


@pytest.mark.parametrize("slot", SLOTS, ids=str)
def test_names_that_are_none_are_refused(unchanged: World, slot: Slot) -> None:
    before = _state(unchanged)
    for spelled in BROKEN.values():
        answer = _asked(unchanged, slot, spelled)
        assert answer.status_code in (400, 403, 404), answer.text
        assert "on Kö" not in answer.text
    assert _state(unchanged) == before


@pytest.mark.parametrize("slot", [s for s in SLOTS if s.is_point], ids=str)
def test_what_may_not_be_read_and_what_is_not_there_look_alike(
    unchanged: World, slot: Slot
) -> None:
    graph = unchanged.graphs["alpha"]
    hidden = {
        VAULT: "nobody",
        "of-secret": "no-such-tag",
        f"{VAULT}~1": "nobody~1",
        f"{VAULT}~99": "nobody~99",
        graph.snapshot(VAULT).commit_id: "0123456789abcdef.1",
        f"{VAULT}~0": "nobody~0",
    }
    for point, unknown in hidden.items():
        told = (
            _told(_asked(unchanged, slot, point), point),
            _told(_asked(unchanged, slot, unknown), unknown),
        )
        assert told[0] == told[1]
        assert told[0][0] in REFUSED


@pytest.mark.parametrize("slot", [s for s in SLOTS if not s.is_point], ids=str)
def test_whether_a_protected_branch_exists_is_not_told(world: World, slot: Slot) -> None:
    """A branch is asked about by its name: the answer does not change when it is gone."""
    if slot.field == "name" and slot.route.path.startswith("/tags"):
        return
    there = _asked(world, slot, VAULT)
    world.graphs["alpha"].delete_branch(VAULT)
    gone = _asked(world, slot, VAULT)
    assert (there.status_code, there.text) == (gone.status_code, gone.text)


@pytest.mark.parametrize("method", ["DELETE"])
@pytest.mark.parametrize("encoded", ["%4b%c3%b6", "K%C3%B6", "%E2%84%AA%C3%B6", "Ko%CC%88"])
def test_a_path_is_decoded_once_and_then_spelled_in_one_way(
    world: World, method: str, encoded: str
) -> None:
    headers = {"Authorization": f"Bearer {TOKENS['reader']}"}
    answer = world.client.request(method, f"/graphs/alpha/branches/{encoded}", headers=headers)
    assert answer.status_code == 403
    assert VAULT in world.graphs["alpha"].branches()


def test_there_is_one_spelling_of_what_is_made(world: World) -> None:
    for name in ("Zoë", "Ångström"):
        for text in (unicodedata.normalize("NFD", name), unicodedata.normalize("NFC", name)):
            world.call("POST", "/branches", {"name": text, "from": "draft"}, actor="reader")
    made = [n for n in world.graphs["alpha"].branches() if n.startswith(("Z", "Å"))]
    assert sorted(made) == ["Zoë", "Ångström"]
