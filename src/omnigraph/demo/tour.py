"""The tour: a list of command lines, in the order of a story. A reader can type every one of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from omnigraph.demo.world import FILES, SCHEMA, Size, topic_vector, write_world
from omnigraph.model.frozen import frozen

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
PUBLISH = """\
query publish($scholar: String, $doi: String, $cited: String, $topic: Vector(16)) {
  insert Paper {
    doi: $doi, title: "Graphs that remember", year: 2026, topic: $topic,
    abstract: "We explain graphs and proofs with open data, a question of computing."
  }
  insert Wrote { from: $scholar, to: $doi }
  insert Cites { from: $doi, to: $cited }
  update Scholar set { field: "computing" } where name = $scholar
}
"""
INFLUENCE = (
    'match { $s: Scholar { name: "Ada Abara" } $s wrote $p $q cites{1,2} $p } '
    "return { count($q) as cited_within_two_steps }"
)
MEANWHILE = 'update Institution set { country: "The Netherlands" } where country = "Netherlands"'
COUNT = "match { $p: Paper } return { count($p) as papers }"
BUSIEST = (
    "match { $s: Scholar $s wrote $p $p.year >= 2020 } return { $s.name, count($p) as papers } "
    "order { papers desc } limit 5"
)
FOUND = "the world as we found it"
DOI, CITED, SCHOLAR = "10.1000/new", "10.1000/000042", "Ada Abara"
ENGINES = ("spark", "local")
FILES_OF_A_DEMO = ("scholars.pg", "search.gq", "pipeline.yaml")


@frozen
class TourStep:
    """One step of the story: what it shows, a text to read first, and the command lines that do it."""

    title: str
    commands: tuple[tuple[str, ...], ...]
    text: str = ""


def write_files(folder: Path, size: Size) -> None:
    """Everything the command lines name: the world, its schema, the queries and the pipeline."""
    write_world(folder / "files", size)
    like = topic_vector("computing", "graphs")
    wanted = {"words": "graphs proofs", "like": like, "country": "Netherlands"}
    paper = {"scholar": SCHOLAR, "doi": DOI, "cited": CITED, "topic": like}
    texts = {
        "scholars.pg": SCHEMA,
        "search.gq": SEARCH,
        "publish.gq": PUBLISH,
        "search.json": json.dumps(wanted),
        "publish.json": json.dumps(paper),
        "pipeline.yaml": _pipeline(),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def _pipeline() -> str:
    lines = ["branch: main", "mode: append", f"message: {FOUND}", "sources:"]
    lines += [f"  - {{type: {name}, path: files/{file}}}" for name, file in FILES.items()]
    return "\n".join(lines) + "\n"


def steps(folder: Path, engine: str) -> Iterator[TourStep]:
    """The story, for a demo whose files are in a folder."""
    graph = str(folder / "graph")
    schema, query, edit = (str(folder / n) for n in ("scholars.pg", "search.gq", "publish.gq"))
    wanted, paper = f"@{folder / 'search.json'}", f"@{folder / 'publish.json'}"
    at = ("--store", graph)
    yield _step(
        "Create a graph: a folder, with a schema that every write is checked against",
        ("init", "--schema", schema, graph, "--quiet"),
    )
    yield _load(folder, graph, engine)
    yield _step(
        "Put it in order: index keys and edges, keep the shape of the graph ready",
        ("optimize", graph),
    )
    yield _step(
        "Search by graph, by words and by meaning, in one query",
        ("query", *at, "--file", query, "--params", wanted),
        text=SEARCH,
    )
    yield _step("Follow citations up to two steps back", ("query", *at, "-e", INFLUENCE))
    yield _step("Branch the whole graph: nothing is copied", ("branch", "create", "review", *at))
    said = ("--as", "ada", "-m", "a paper to be reviewed")
    yield _step(
        "Edit on the branch: main does not change",
        ("mutate", *at, "--branch", "review", "--file", edit, "--params", paper, *said),
        text=PUBLISH,
    )
    yield _step("Review it, row by row", ("diff", "main..review", *at))
    yield _step(
        "Meanwhile, another user writes to main",
        ("mutate", *at, "-e", MEANWHILE, "--as", "bram", "-m", "what the country is called"),
    )
    yield _step(
        "Merge: look first, then make one atomic commit with both edits",
        ("merge", "review", *at, "--dry-run"),
        ("merge", "review", *at, "--as", "chen", "-m", "reviewed"),
    )
    yield _step(
        "Travel in time: how many papers there are, and were before the merge",
        ("query", *at, "-e", COUNT, "--format", "csv"),
        ("query", *at, "-e", COUNT, "--format", "csv", "--at", "main~1"),
    )
    yield _step("Look back: who did what, when and where", ("log", "--draw", graph))


def _step(title: str, *commands: tuple[str, ...], text: str = "") -> TourStep:
    return TourStep(title, commands, text)


def _load(folder: Path, graph: str, engine: str) -> TourStep:
    if engine == "spark":
        file = folder / "pipeline.yaml"
        return _step(
            "Load six files on Spark: every row is checked, and all become one commit",
            ("pipeline", "run", str(file), "--store", graph),
            text=file.read_text(encoding="utf-8"),
        )
    data = (w for t, f in FILES.items() for w in ("--data", f"{t}={folder / 'files' / f}"))
    return _step(
        "Load six files: every row is checked, and all become one commit",
        ("load", "--store", graph, "--mode", "append", *data, "-m", FOUND),
    )


def to_try(graph: str, *, explorer: bool) -> tuple[tuple[str, ...], ...]:
    """Three command lines for readers who want more."""
    look = ("explore", graph) if explorer else ("schema", "show", "--store", graph)
    return ("query", "--store", graph, "-e", BUSIEST), look, ("shell", graph)
