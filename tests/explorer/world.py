"""What the explorer is shown: a server of its own, with films, hostile names, and three kinds of people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

import omnigraph
from tests.explorer.hostile import HOSTILE
from tests.server.process import serving

SCHEMA = """
node Person @description("Somebody who makes films.") {
  name: String @key
  born: I32?
  city: String?
  note: String?
  @range(born, 1850..2020)
}
node Film { title: String @key
  year: I32 @index
  rating: F64?
  plot: String?
}
node Studio { name: String @key }
edge ActedIn: Person -> Film { role: String? }
edge Directed: Person -> Film
edge MadeBy: Film -> Studio @card(0..1)
edge Knows: Person -> Person
"""
PEOPLE = (
    ("Ida Lindqvist", 1961, "Malmö"), ("Jonas Berg", 1974, "Uppsala"), ("Mara Okafor", 1983, "Lagos"),
    ("Teo Marchetti", 1957, "Turin"), ("Nadia Rahal", 1990, "Tunis"), ("Kenji Mori", 1968, "Osaka"),
    ("Lena Vogt", 1979, "Leipzig"), ("Pilar Sáenz", 1988, "Sevilla"), ("Samuel Adeyemi", 1995, "Ibadan"),
    ("Greta Holm", 1948, "Bergen"), ("Viktor Petrov", 1971, "Plovdiv"), ("Amina Diallo", 1992, "Dakar"),
)  # fmt: skip
FILMS = (
    ("The Long Tide", 1998, 7.9, "Northlight"), ("Paper Harbour", 2004, 8.1, "Northlight"),
    ("A Field in Winter", 2011, 7.2, "Delta Nine"), ("Glass Orchard", 2015, 8.4, "Delta Nine"),
    ("Seven Lanterns", 2019, 6.8, "Umber"), ("The Cartographer", 2021, 8.0, "Umber"),
    ("Salt and Signal", 2023, 7.5, "Northlight"), ("Quiet Engines", 2008, 7.0, "Umber"),
)  # fmt: skip
QUERIES = """
query films_since($year: I32) @description("Films from a year on.") {
  match { $f: Film  $f.year >= $year }
  return { $f.title as title, $f.year as year, $f.rating as rating }
  order { $f.year asc }
}
"""
TOKENS = {"editor": "t-editor", "reader": "t-reader", "guest": "t-guest"}
POLICY = """
version: 1
groups: {editors: [editor], readers: [reader, guest], guests: [guest]}
protected_branches: [main]
rules:
  - {id: editors-work, allow: {actors: {group: editors}, actions: [read, export, change], branch_scope: any}}
  - id: editors-versions
    allow:
      actors: {group: editors}
      actions: [branch_create, branch_delete, branch_merge, schema_apply]
      target_branch_scope: any
  - {id: editors-review, allow: {actors: {group: editors}, actions: [propose, approve]}}
  - {id: editors-invoke, allow: {actors: {group: editors}, actions: [invoke_query]}}
  - {id: readers-read, allow: {actors: {group: readers}, actions: [read]}}
  - {id: guests-draft, allow: {actors: {group: guests}, actions: [change], branch_scope: unprotected}}
"""


@dataclass(frozen=True, slots=True)
class World:
    """Where the server listens, and the graph behind it."""

    address: str
    folder: Path

    @property
    def films(self) -> omnigraph.Graph:
        """The graph, opened beside the server."""
        return omnigraph.open(self.folder / "films")

    def link(
        self, page: str, graph: str = "films", actor: str | None = "editor", **params: str
    ) -> str:
        """The address of a page; the token is in it as a login link has it."""
        from urllib.parse import urlencode

        token = "" if actor is None else f"token={TOKENS[actor]}&"
        query = f"?{urlencode(params)}" if params else ""
        return f"{self.address}/ui/#{token}/{graph}/{page}{query}"


def records() -> list[dict[str, Any]]:
    """The films: small enough to know, large enough to look at."""
    found: list[dict[str, Any]] = [
        {"type": "Person", "data": {"name": name, "born": born, "city": city}}
        for name, born, city in PEOPLE
    ]
    found += [
        {"type": "Studio", "data": {"name": s}} for s in ("Northlight", "Delta Nine", "Umber")
    ]
    for title, year, rating, _ in FILMS:
        found.append({"type": "Film", "data": {"title": title, "year": year, "rating": rating}})
    names = [name for name, _, _ in PEOPLE]
    for i, (title, _, _, studio) in enumerate(FILMS):
        found.append(_edge("MadeBy", title, studio))
        found.append(_edge("Directed", names[(i * 3 + 3) % len(names)], title))
        for k in range(3):
            role = {"role": ("lead", "support", "cameo")[k]}
            found.append(_edge("ActedIn", names[(i * 2 + k * 5) % len(names)], title, **role))
    found += [_edge("Knows", names[i], names[(i + 4) % len(names)]) for i in range(len(names))]
    return found


def _edge(kind: str, start: str, end: str, **data: Any) -> dict[str, Any]:
    return {"edge": kind, "from": start, "to": end, "data": data}


def build(folder: Path) -> None:
    """The graphs, with some history: a branch that merges as it is, a pair that does not."""
    films = omnigraph.init(folder / "films", SCHEMA, actor="ida")
    films.load(records(), actor="ida", message="First films and people")
    films.tag("v1")
    films.mutate(
        'query q() { update Person set { note: "Prefers night shoots" } where name = "Mara Okafor" }',
        actor="jonas",
        message="Note from the set",
    )
    _clean_branch(films)
    _conflicting_branches(films)
    _proposals(films)
    films.optimize()
    _wide(folder)
    hostile = omnigraph.init(
        folder / "hostile",
        "node Thing { name: String @key\n text: String? }\nedge Next: Thing -> Thing { why: String? }",
    )
    things: list[dict[str, Any]] = [
        {"type": "Thing", "data": {"name": text, "text": text}} for text in HOSTILE
    ]
    pairs = pairwise(HOSTILE)
    things += [_edge("Next", a, b, why=a) for a, b in pairs]
    hostile.load(things, actor=HOSTILE[0], message=HOSTILE[1])
    hostile.create_branch("other")
    hostile.mutate(
        "query q($name: String, $text: String) { update Thing set { text: $text } where name = $name }",
        {"name": HOSTILE[2], "text": HOSTILE[5]}, branch="other", actor=HOSTILE[3], message=HOSTILE[4],
    )  # fmt: skip
    everything = "\n".join(HOSTILE)
    hostile.propose("other", HOSTILE[0], text=everything, reviewers=HOSTILE[6:9], actor=HOSTILE[3])
    hostile.comment(1, everything, type="Thing", id=HOSTILE[2], property="text", actor=HOSTILE[1])
    hostile.approve(1, text=everything, actor=HOSTILE[7])
    hostile.request_changes(1, everything, actor=HOSTILE[47])


WIDE_ROWS = 12_000
HUB_EDGES = 5_000
WIDE = """
node Hub { name: String @key }
node Item { code: String @key
  name: String
  size: I64
}
node Reading { depth: F64
  zone: String?
}
edge Has: Hub -> Item
"""


def _wide(folder: Path) -> None:
    """More rows than are shown, a hub of more edges than are drawn, and numbers that are none."""
    wide = omnigraph.init(folder / "wide", WIDE)
    codes = [f"item-{i:05}" for i in range(WIDE_ROWS)]
    names = [f"Item number {i}" for i in range(WIDE_ROWS)]
    wide.load(
        {
            "Hub": pa.table({"name": ["hub"]}),
            "Item": pa.table({"code": codes, "name": names, "size": range(WIDE_ROWS)}),
            "Has": pa.table({"from": ["hub"] * HUB_EDGES, "to": codes[:HUB_EDGES]}),
            "Reading": pa.table({"depth": [float("nan"), 2.5], "zone": [None, "north"]}),
        },
        actor="ida",
        message="Many",
    )


def _clean_branch(films: omnigraph.Graph) -> None:
    films.create_branch("autumn", actor="mara")
    films.load(
        [
            {"type": "Person", "data": {"name": "Olu Banjo", "born": 1999, "city": "Abuja"}},
            {"type": "Film", "data": {"title": "Low Season", "year": 2026, "rating": 7.7}},
            _edge("Directed", "Mara Okafor", "Low Season"),
            _edge("ActedIn", "Olu Banjo", "Low Season", role="lead"),
        ],
        branch="autumn", actor="mara", message="Low Season and its lead",
    )  # fmt: skip
    films.mutate(
        'query q() { update Film set { rating: 8.2 } where title = "The Cartographer" }',
        branch="autumn", actor="mara", message="New rating",
    )  # fmt: skip
    films.mutate(
        'query q() { delete Person where name = "Viktor Petrov" }',
        branch="autumn", actor="mara", message="Asked to be removed",
    )  # fmt: skip


def _conflicting_branches(films: omnigraph.Graph) -> None:
    """`desk` and `festival` disagree on two fields of one row, one field of another, and on whether a row lives."""
    films.create_branch("desk", actor="lena")
    films.create_branch("festival", actor="kenji")
    for branch, actor, year, rating, city in (
        ("desk", "lena", 1999, 7.6, "Leipzig-Plagwitz"),
        ("festival", "kenji", 1997, 8.8, "Dresden"),
    ):
        films.mutate(
            "query q($year: I32, $rating: F64) { "
            'update Film set { year: $year, rating: $rating } where title = "The Long Tide" }',
            {"year": year, "rating": rating}, branch=branch, actor=actor, message="Corrections",
        )  # fmt: skip
        films.mutate(
            'query q($city: String) { update Person set { city: $city } where name = "Lena Vogt" }',
            {"city": city}, branch=branch, actor=actor, message="Moved",
        )  # fmt: skip
    films.mutate(
        'query q() { update Person set { born: 1949 } where name = "Greta Holm" }',
        branch="desk", actor="lena", message="Found the register",
    )  # fmt: skip
    films.mutate(
        'query q() { delete Person where name = "Greta Holm" }',
        branch="festival", actor="kenji", message="Out of scope",
    )  # fmt: skip


CHECKS = """
query of_the_future() @description("no film is of a year to come") {
  match { $f: Film  $f.year > 2025 }
  return { $f.title as title, $f.year as year }
}
query rated() @description("every film has a rating") @severity("warning") {
  match { $f: Film  $f.rating is null }
  return { $f.title as title }
}
"""
FOUND = "The season catalogue lists it; the lead is from the agency."


def _proposals(films: omnigraph.Graph) -> None:
    """One under discussion, one with conflicts, one that was closed."""
    films.apply_checks(CHECKS, branch="autumn", actor="ida", message="What must hold of films")
    films.propose(
        "autumn", "Low Season and its lead", text=FOUND, reviewers=["editor", "lena"], actor="mara"
    )
    films.comment(
        1, "Is that the festival's rating?", type="Film", id="The Cartographer", property="rating",
        actor="lena",
    )  # fmt: skip
    films.comment(1, "No, the archive's: see page 12.", actor="mara")
    films.request_changes(1, "2026 has not happened yet.", actor="lena")
    for name, year in (("print", 2001), ("web", 2002)):
        films.create_branch(name)
        films.mutate(
            'query q($y: I32) { update Film set { year: $y } where title = "Glass Orchard" }',
            {"y": year}, branch=name, actor="kenji", message="Year of the first showing",
        )  # fmt: skip
    films.propose("web", "Years as the web has them", "print", actor="kenji")
    films.propose("print", "Too early", actor="lena")
    films.close_proposal(3, text="After the festival.", actor="lena")


@contextmanager
def serve(folder: Path) -> Iterator[World]:
    """The graphs behind `omnigraph serve`, with tokens and a policy."""
    build(folder)
    (folder / "queries.gq").write_text(QUERIES)
    (folder / "tokens.json").write_text(json.dumps(TOKENS))
    (folder / "policy.yaml").write_text(POLICY)
    settings = {
        "graphs": {
            "films": {"uri": "films", "policy": "policy.yaml", "queries": ["queries.gq"]},
            "hostile": {"uri": "hostile", "policy": "policy.yaml"},
            "wide": {"uri": "wide", "policy": "policy.yaml"},
        },
        "tokens_file": "tokens.json",
    }
    (folder / "server.yaml").write_text(json.dumps(settings))
    with serving("--config", str(folder / "server.yaml")) as running:
        yield World(f"http://{running.address}", folder)
