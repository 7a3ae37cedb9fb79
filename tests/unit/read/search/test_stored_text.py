"""Stored text indices: whatever of them is there, stale, missing or damaged, a search finds what the rows say."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import StoreUnavailable
from omnigraph.graph import Graph
from omnigraph.read import SHARED
from omnigraph.read.columns import columns_of
from omnigraph.read.search import segments, stored_text
from omnigraph.read.search.storing import text_coverage
from omnigraph.write.maintain import due
from tests.support import rings
from tests.unit.read.search import oracle

SCHEMA = """
node Doc {
  slug: String @key
  body: String? @index
  size: I64? @index
}
"""
MORE = SCHEMA.replace("size:", "title: String? @index\n  size:")
WORDS = ["tea", "teas", "milk", "sugar", "spoon", "the", "cup", "tisane", "Crème"]
PLAIN = [word for word in WORDS if word.isascii()]
RANKED = """
query q($q: String) { match { $d: Doc } return { $d.slug as slug, bm25($d.body, $q) as s } order { s desc } }
"""
MATCHED = """
query q($q: String) { match { $d: Doc  %s } return { $d.slug as slug } order { slug } }
"""
MODES: dict[str, Callable[[str, str], bool]] = {
    "search($d.body, $q)": oracle.any_word,
    "search_all($d.body, $q)": oracle.all_words,
    "phrase($d.body, $q)": oracle.phrase,
    "prefix($d.body, $q)": oracle.prefix,
    "fuzzy($d.body, $q, 1)": lambda text, query: oracle.fuzzy(text, query, 1),
    "search_query($d.body, $q)": lambda text, query: oracle.boolean(
        text, [("", each) for each in query.split()]
    ),
}

Rows = dict[str, str | None]


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Graph]:
    """A graph whose every fragment deserves a file, of several segments each."""
    monkeypatch.setattr(segments, "STORED_ROWS_MIN", 1)
    monkeypatch.setattr(stored_text, "PART_BYTES_MAX", 300)
    SHARED.clear()
    yield omnigraph.init(str(tmp_path / "g"), schema=SCHEMA)
    SHARED.clear()


def files(graph: Graph) -> list[Path]:
    return sorted(Path(graph.uri).glob("_search/*/*.text"))


def rows_of(graph: Graph, branch: str = "main", at: object = None) -> Rows:
    found = graph.query(
        "query q() { match { $d: Doc } return { $d.slug as slug, $d.body as body } }",
        branch=branch,
        at=at,
    )
    return {row["slug"]: row["body"] for row in found.rows}


def check(graph: Graph, rows: Rows, query: str, **where: Any) -> None:
    """What a search and a ranking find is what plain Python finds in the rows."""
    ids = sorted(rows)
    for mode, plain in MODES.items():
        truth = [i for i in ids if (text := rows[i]) is not None and plain(text, query)]
        found = graph.query(MATCHED % mode, {"q": query}, **where).rows
        assert [row["slug"] for row in found] == truth, (mode, query, where)
    scores = oracle.bm25([rows[i] for i in ids], query)
    ranked = graph.query(RANKED, {"q": query}, **where).rows
    known = {row["slug"]: row["s"] for row in ranked if row["s"] is not None}
    assert known == pytest.approx({ids[i]: score for i, score in scores.items()}, rel=1e-12)


# --- a random history ----------------------------------------------------------------------------------------------


class History:
    """Writes at random on two branches, and keeps what each commit holds."""

    def __init__(self, graph: Graph, seed: int) -> None:
        self.graph = graph
        self.rng = random.Random(seed)
        self.branches: dict[str, Rows] = {"main": {}}
        self.commits: list[tuple[str, Rows]] = []
        self.number = 0
        self.schema = SCHEMA

    def text(self) -> str | None:
        if self.rng.random() < 0.1:
            return None
        return " ".join(self.rng.choices(PLAIN, k=self.rng.randint(0, 8)))

    def step(self) -> None:
        work = [self.append] * 3 + [self.upsert] * 2 + [self.delete] * 2 + [self.optimize] * 3
        work += [self.branch, self.merge, self.evolve, self.lose, self.damage, self.collect]
        self.rng.choice(work)()

    def load(self, rows: Rows) -> None:
        branch = self.rng.choice(sorted(self.branches))
        records = [{"slug": slug, "body": body} for slug, body in rows.items()]
        self.graph.load({"Doc": records}, branch=branch)
        self.committed(branch, {**self.branches[branch], **rows})

    def committed(self, branch: str, rows: Rows) -> None:
        self.branches[branch] = rows
        self.commits.append((self.graph.log(branch)[0].id, rows))

    def append(self) -> None:
        count = self.rng.choice([1, 3, 40])
        self.number += count
        self.load({f"d{self.number - i}": self.text() for i in range(count)})

    def upsert(self) -> None:
        known = sorted(self.branches["main"])
        if known:
            self.load({slug: self.text() for slug in self.rng.choices(known, k=3)})

    def delete(self) -> None:
        branch = self.rng.choice(sorted(self.branches))
        rows = self.branches[branch]
        gone = set(self.rng.sample(sorted(rows), k=min(len(rows), self.rng.choice([1, 10]))))
        if not gone:
            return
        for slug in gone:
            text = "query q($s: String) { delete Doc where slug = $s }"
            self.graph.mutate(text, {"s": slug}, branch=branch)
        self.committed(branch, {slug: body for slug, body in rows.items() if slug not in gone})

    def optimize(self) -> None:
        branch = self.rng.choice(sorted(self.branches))
        self.graph.optimize(branch)
        catalog = self.graph.snapshot(branch).catalog
        for found in text_coverage(self.graph.snapshot(branch), catalog.nodes["Doc"]):
            assert not found.missing

    def branch(self) -> None:
        if "side" not in self.branches:
            self.graph.create_branch("side")
            self.branches["side"] = self.branches["main"]

    def merge(self) -> None:
        if "side" in self.branches:
            self.graph.merge("side", into="main", strategy="theirs")
            self.branches["main"] = rows_of(self.graph)
            self.graph.delete_branch("side")
            del self.branches["side"]

    def evolve(self) -> None:
        """A property more, or one less, which ends the history; the body stays."""
        if "side" not in self.branches:
            self.schema = MORE if self.schema == SCHEMA else SCHEMA
            self.graph.apply_schema(self.schema, allow_data_loss=True)
            self.commits = []

    def lose(self) -> None:
        for path in files(self.graph):
            if self.rng.random() < 0.5:
                path.unlink()

    def damage(self) -> None:
        for path in files(self.graph):
            data = bytearray(path.read_bytes())
            for _ in range(self.rng.choice([1, 50]) if data else 0):
                data[self.rng.randrange(len(data))] ^= 1 << self.rng.randrange(8)
            path.write_bytes(data[: self.rng.choice([len(data), len(data) // 2, 3])])

    def collect(self) -> None:
        self.graph.cleanup(keep=3)
        self.commits = []

    def compare(self) -> None:
        if self.rng.random() < 0.7:
            SHARED.clear()
        asked = [*PLAIN, "te", "s", "c*", "tisa*", "cups*", "zebra"]
        query = " ".join(self.rng.choices(asked, k=self.rng.randint(1, 3)))
        for branch, rows in self.branches.items():
            check(self.graph, rows, query, branch=branch)
        if self.commits:
            commit, rows = self.rng.choice(self.commits[-3:])
            check(self.graph, rows, query, at=commit)


@pytest.mark.parametrize("seed", range(rings.count(4, 60)))
def test_answers_do_not_depend_on_what_is_stored(graph: Graph, seed: int) -> None:
    history = History(graph, seed)
    for _ in range(25):
        history.step()
        history.compare()


# --- files -----------------------------------------------------------------------------------------------------------


def filled(graph: Graph) -> Rows:
    rng = random.Random(1)
    rows: Rows = {f"d{i}": " ".join(rng.choices(PLAIN, k=6)) for i in range(200)}
    rows["none"] = None
    graph.load({"Doc": [{"slug": slug, "body": body} for slug, body in rows.items()]})
    graph.optimize()
    SHARED.clear()
    return rows


def test_a_new_process_reads_no_text(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = filled(graph)
    monkeypatch.setattr(segments, "build_segment", lambda *_: pytest.fail("a column was inverted"))
    check(graph, rows, "tea sugar")


@pytest.mark.parametrize("keep", [0, 10, -1])
def test_a_damaged_file_is_named_removed_and_made_again(
    graph: Graph, keep: int, caplog: pytest.LogCaptureFixture
) -> None:
    rows = filled(graph)
    (path,) = files(graph)
    whole = path.read_bytes()
    damaged = bytearray(whole) if keep < 0 else bytearray(whole[:keep])
    if keep < 0:
        damaged[len(whole) // 3] ^= 1
        damaged[9] ^= 1
    path.write_bytes(damaged)
    with caplog.at_level(logging.WARNING, "omnigraph.read"):
        check(graph, rows, "tea milk sugar spoon cup")
    assert path.name in caplog.text
    assert not path.exists()
    graph.optimize()
    assert path.read_bytes() == whole


def test_a_file_goes_with_its_data_file(graph: Graph) -> None:
    filled(graph)
    before = files(graph)
    graph.mutate("query q() { delete Doc where true }")
    graph.load({"Doc": [{"slug": f"x{i}", "body": "tea"} for i in range(400)]})
    graph.optimize()
    assert len(files(graph)) == 2
    graph.cleanup(keep=1)
    assert len(files(graph)) == 1
    assert files(graph) != before


@pytest.mark.parametrize("now", ['body: String? @index @analyzer("simple")', "body: String?"])
def test_a_file_goes_when_no_kept_schema_can_use_it(graph: Graph, now: str) -> None:
    rows = filled(graph)
    before = files(graph)
    graph.apply_schema(SCHEMA.replace("body: String? @index", now))
    graph.optimize()
    after = [path for path in files(graph) if path not in before]
    graph.cleanup(keep=10)
    assert files(graph) == sorted([*before, *after]), "an older commit can use them"
    graph.cleanup(keep=1)
    assert files(graph) == after
    check(graph, rows, "zebra")


def test_an_unknown_analyzer_holds_up_no_maintenance(tmp_path: Path) -> None:
    unknown = SCHEMA.replace("@index", '@index @analyzer("klingon")', 1)
    graph = omnigraph.init(str(tmp_path / "odd"), schema=unknown)
    graph.load({"Doc": [{"slug": "a", "body": "tea"}]})
    graph.optimize()
    graph.cleanup(keep=1)
    assert list(due(graph.snapshot())) == []


def test_a_property_without_index_has_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "STORED_ROWS_MIN", 1)
    graph = omnigraph.init(
        str(tmp_path / "g"), schema=SCHEMA.replace("body: String? @index", "body: String?")
    )
    check(graph, filled(graph), "tea")
    assert not files(graph)


def test_words_beyond_ascii_are_stored_alike(graph: Graph) -> None:
    texts = ["Crème brûlée", "京都タワー", "creme", "ﬁsh and Straße", None, ""]
    graph.load({"Doc": [{"slug": f"d{i}", "body": text} for i, text in enumerate(texts)]})
    graph.optimize()
    SHARED.clear()
    assert len(files(graph)) == 1
    for query, slugs in (("crème", ["d0"]), ("京都", ["d1"]), ("STRASSE fish", ["d3"])):
        found = graph.query(MATCHED % "search($d.body, $q)", {"q": query}).rows
        assert [row["slug"] for row in found] == slugs


def test_a_load_makes_the_files_of_what_it_wrote(graph: Graph) -> None:
    graph.load({"Doc": [{"slug": f"d{i}", "body": "tea"} for i in range(50)]})
    assert len(files(graph)) == 1


def test_a_load_is_done_even_if_its_files_cannot_be_made(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: Any) -> None:
        raise StoreUnavailable("no room")

    monkeypatch.setattr("omnigraph.maintenance.upkeep.store_missing", refuse)
    graph.load({"Doc": [{"slug": "a", "body": "tea"}]})
    assert "left to maintenance" in caplog.text
    check(graph, {"a": "tea"}, "tea")


def test_a_file_another_process_made_is_found(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = filled(graph)
    (path,) = files(graph)
    whole = path.read_bytes()
    path.unlink()
    check(graph, rows, "tea")
    path.write_bytes(whole)
    monkeypatch.setattr(segments, "LOOK_AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(segments, "build_segment", lambda *_: pytest.fail("a column was inverted"))
    snapshot = graph.snapshot()
    found = columns_of(snapshot, snapshot.catalog.nodes["Doc"], SHARED)
    assert all(not placed.segment.nbytes for placed in segments.segments(found, "body"))
    check(graph, rows, "tea sugar")


def test_words_side_by_side_are_read_together(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_text, "PART_BYTES_MAX", 1 << 20)
    rows: Rows = {f"d{i}": f"word{i} other{i}" for i in range(2_000)}
    graph.load({"Doc": [{"slug": slug, "body": body} for slug, body in rows.items()]})
    graph.optimize()
    SHARED.clear()
    graph.query(MATCHED % "search($d.body, $q)", {"q": "tea"})
    read: list[Any] = []
    original = stored_text._File._read

    def counted(self: Any, places: list[Any]) -> Any:
        read.extend(places)
        return original(self, places)

    monkeypatch.setattr(stored_text._File, "_read", counted)
    found = graph.query(MATCHED % "prefix($d.body, $q)", {"q": "word17"}).rows
    assert [row["slug"] for row in found] == sorted(i for i in rows if i.startswith("d17"))
    assert len(read) < 20
    assert sum(stop - start for _, start, stop in read) < 30_000, "one block of the vocabulary"
