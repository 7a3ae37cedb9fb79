"""Every kind of query, search included, answers at any point of history and on any branch what it answered there."""

from __future__ import annotations

from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.read import SHARED
from tests.pipeline.queries import (
    QUERIES,
    SEARCH_SCHEMA,
    SEARCH_TEXT,
    SEARCHES,
    TEXT,
    comparable,
    documents,
    fixed_rows,
    is_ordered,
)
from tests.support.caches import forget_tables
from tests.support.random_queries import SCHEMA

SUITES = {"patterns": (TEXT, QUERIES), "searches": (SEARCH_TEXT, SEARCHES)}
SCHEMAS = {"patterns": SCHEMA, "searches": SEARCH_SCHEMA}
PLACES = ("commit", "tag", "branch", "compacted", "cold")


@pytest.fixture(scope="module", params=SUITES)
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(request.param, str(tmp_path_factory.mktemp("points") / "graph"))


class World:
    """A graph whose main branch has moved on, and what every query answered before it did."""

    def __init__(self, suite: str, uri: str) -> None:
        self.text, self.queries = SUITES[suite]
        self.graph = omnigraph.init(uri, schema=SCHEMAS[suite])
        rows = documents() if suite == "searches" else fixed_rows()
        for kind, part in rows.items():  # several fragments, and an index that covers some of them
            self.graph.load({kind: part[::2]}, mode="append", engine="local")
            if kind in ("Doc", "Person"):
                self.graph.optimize()
            self.graph.load({kind: part[1::2]}, mode="append", engine="local")
        self.commit = self.graph.log(limit=1)[0].id
        self.before = {name: self.answer(name) for name in self.queries}
        self.graph.tag("then")
        for name in ("kept", "packed"):
            self.graph.create_branch(name)
        self.move_on(suite)
        self.graph.optimize("packed")

    def move_on(self, suite: str) -> None:
        """Rows of main change and go, its tables are rewritten, its schema grows."""
        kind, text = ("Doc", "body") if suite == "searches" else ("Person", "name")
        graph = self.graph
        graph.apply_schema(SCHEMAS[suite] + "\nnode Later { code: String @key }")
        graph.mutate(
            f'query q() {{ update {kind} set {{ {text}: "red other" }} where {text} is not null }}'  # noqa: S608
        )
        key = "title" if suite == "searches" else "code"
        first = graph.query(
            f"query q() {{ match {{ $x: {kind} }} return {{ $x.{key} as k }} }}"
        ).rows
        for row in first[::2]:
            graph.mutate(
                f"query q($k: String) {{ delete {kind} where {key} = $k }}", {"k": row["k"]}
            )
        graph.optimize()

    def answer(self, name: str, graph: Graph | None = None, **place: Any) -> list[Any]:
        found = (graph or self.graph).query(self.text, name=name, **place)
        return comparable(found.rows, ordered=is_ordered(self.queries[name]))

    def answers_at(self, place: str) -> dict[str, list[Any]]:
        match place:
            case "commit":
                return self.everything(at=self.commit)
            case "tag":
                return self.everything(at="then")
            case "branch":
                return self.everything(branch="kept")
            case "compacted":
                return self.everything(branch="packed")
            case _:
                SHARED.clear()
                forget_tables()
                return self.everything(graph=omnigraph.open(self.graph.uri), at=self.commit)

    def everything(self, **place: Any) -> dict[str, list[Any]]:
        return {name: self.answer(name, **place) for name in self.queries}


@pytest.mark.parametrize("place", PLACES)
def test_the_whole_suite_answers_as_it_did(world: World, place: str) -> None:
    found = world.answers_at(place)
    different = {name: found[name] for name in found if found[name] != world.before[name]}
    assert not different


def test_main_has_moved_on(world: World) -> None:
    """Else the test above could not fail."""
    now = world.everything()
    changed = [name for name in now if now[name] != world.before[name]]
    assert len(changed) > len(now) / 2
