"""The tour: load, index, search, branch, edit, review, merge, travel in time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.demo.world import SCHEMA, Size, topic_vector, write_world

if TYPE_CHECKING:
    from omnigraph.graph import Graph

SEARCH = """\
query search($words: String, $like: Vector(16), $country: String) {
  match {
    $i: Institution { country: $country }
    $s: Scholar
    $s worksAt $i
    $s wrote $p
    $p.year >= 2015
  }
  return { $p.title, $s.name as scholar, $i.name as institution, $p.year }
  order { rrf(nearest($p.topic, $like), bm25($p.abstract, $words)) }
  limit 5
}
"""
INFLUENCE = """\
query influence($name: String) {
  match {
    $s: Scholar { name: $name }
    $s wrote $p
    $q cites{1,2} $p
  }
  return { count($q) as cited_within_two_steps }
}
"""
EDIT = """\
query publish($name: String, $doi: String, $old: String, $topic: Vector(16)) {
  insert Paper {
    doi: $doi, title: "Graphs that remember", year: 2026, topic: $topic,
    abstract: "We explain graphs and proofs with open data, a question of computing."
  }
  insert Wrote { from: $name, to: $doi }
  insert Cites { from: $doi, to: $old }
}
"""
DOI, OLD, SCHOLAR = "10.1000/new", "10.1000/000042", "Ada Abara"


@dataclass(slots=True)
class Tour:
    """A tour under way."""

    folder: Path
    engine: str = "local"
    size: Size = field(default_factory=Size)
    graph: Graph | None = None
    paths: dict[str, str] = field(default_factory=dict)

    @property
    def uri(self) -> str:
        return str(self.folder / "graph")

    @property
    def open(self) -> Graph:
        assert self.graph is not None  # noqa: S101 - the first step makes it
        return self.graph

    def run(self) -> Iterator[tuple[Step, float, Any]]:
        """Take every step; each is told with its seconds and what came out of it."""
        for step in STEPS:
            started = time.perf_counter()
            outcome = step.take(self)
            yield step, time.perf_counter() - started, outcome


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what is said, what is shown of it, and what is done."""

    title: str
    shown: str
    take: Callable[[Tour], Any]


def generate(tour: Tour) -> str:
    tour.paths = write_world(tour.folder / "files", tour.size)
    return ", ".join(Path(path).name for path in tour.paths.values())


def create(tour: Tour) -> str:
    from omnigraph.graph import init

    tour.graph = init(tour.uri, SCHEMA, actor="demo")
    return tour.uri


def load(tour: Tour) -> Any:
    return tour.open.load(
        dict(tour.paths), engine=tour.engine, message="the world as we found it", actor="demo"
    )


def index(tour: Tour) -> Any:
    return tour.open.optimize()


def search(tour: Tour) -> Any:
    like = topic_vector("computing", "graphs")
    wanted = {"words": "graphs proofs", "like": like, "country": "Netherlands"}
    return tour.open.query(SEARCH, wanted)


def influence(tour: Tour) -> Any:
    return tour.open.query(INFLUENCE, {"name": SCHOLAR})


def branch(tour: Tour) -> str:
    tour.open.create_branch("review", actor="demo")
    return "review"


def edit(tour: Tour) -> Any:
    topic = topic_vector("computing", "graphs")
    given = {"name": SCHOLAR, "doi": DOI, "old": OLD, "topic": topic}
    return tour.open.mutate(
        EDIT, given, branch="review", message="a paper to be reviewed", actor="ada"
    )


def review(tour: Tour) -> Any:
    return tour.open.diff("main", "review")


def merge(tour: Tour) -> Any:
    return tour.open.merge("review", message="reviewed", actor="demo")


def travel(tour: Tour) -> str:
    count = "query n() { match { $p: Paper } return { count($p) as papers } }"
    now = tour.open.query(count).scalar()
    before = tour.open.query(count, at="main~1").scalar()
    return f"{before:,} papers before the merge, {now:,} after it"


STEPS = (
    Step("Make files of scholars, papers and institutions", "write_world(folder)", generate),
    Step("Create a graph from its schema", "omnigraph.init(uri, schema)", create),
    Step("Load all files as one commit", "g.load({'Paper': 'Paper.parquet', …})", load),
    Step("Index text, vectors and keys", "g.optimize()", index),
    Step("Traverse, read and compare in one query", SEARCH, search),
    Step("Follow citations two steps back", INFLUENCE, influence),
    Step("Branch: nothing is copied", "g.create_branch('review')", branch),
    Step("Edit on the branch", EDIT, edit),
    Step("Review the difference", "g.diff('main', 'review')", review),
    Step("Merge it into main", "g.merge('review')", merge),
    Step("Travel back in time", "g.query(…, at='main~1')", travel),
)
