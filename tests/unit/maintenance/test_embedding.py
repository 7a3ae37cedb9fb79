"""Vectors that are made later: what is missing is made once, in commits that survive whatever comes after them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import OptionInvalid, TableNotFound
from omnigraph.maintenance import embedding
from omnigraph.maintenance.embedding import EmbedReport
from omnigraph.read.cache import Cache
from omnigraph.read.search.embed import provider_of
from omnigraph.read.search.providers import EmbedNotConfigured, EmbedRefused, EmbedUnavailable
from tests.support.processes import spawn
from tests.unit.read.search.embedding_server import Answer, EmbeddingServer, embedding_server

SCHEMA = """
node Doc { slug: String @key  text: String?  note: I32?  vec: Vector(4)? @embed(text) }
node Other { slug: String @key  text: String?  vec: Vector(2)? @embed(text)  more: Vector(2)? @embed(text) }
node Plain { slug: String @key }
"""


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingServer]:
    with embedding_server() as running:
        configure(monkeypatch, running.url)
        yield running


def configure(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    for name, value in (("PROVIDER", "openai"), ("MODEL", "m"), ("URL", url)):
        monkeypatch.setenv(f"OMNIGRAPH_EMBED_{name}", value)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """Six documents that were loaded while no provider was configured; two share their text, one has none."""
    found = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    load(found, [("a", "one"), ("b", "three"), ("c", "one"), ("d", None), ("e", "fifteen")])
    given = {"slug": "given", "text": "t", "vec": [9.0, 9.0, 9.0, 9.0]}
    found.load({"Doc": [given], "Other": [{"slug": "o", "text": "other"}]})
    return found


def load(graph: Graph, rows: list[tuple[str, str | None]]) -> None:
    """Without a provider."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("OMNIGRAPH_EMBED_PROVIDER", raising=False)
        graph.load({"Doc": [{"slug": slug, "text": text, "note": 7} for slug, text in rows]})


def vectors(graph: Graph, branch: str = "main") -> dict[str, Any]:
    text = "match { $d: Doc } return { $d.slug as s, $d.vec as v }"
    rows = graph.query(text, branch=branch).rows
    return {row["s"]: None if row["v"] is None else row["v"][0] for row in rows}


def texts(provider: EmbeddingServer) -> list[str]:
    found = sorted(text for asked in provider.asked for text in asked["input"])
    provider.asked.clear()
    return found


def test_what_is_missing_is_made_and_nothing_else(graph: Graph, provider: EmbeddingServer) -> None:
    found = graph.embed(["Doc"])
    assert found == [EmbedReport("Doc", "vec", rows=4, texts=3, characters=15, commits=1)]
    assert texts(provider) == ["fifteen", "one", "three"]
    assert vectors(graph) == {"a": 3.0, "b": 5.0, "c": 3.0, "d": None, "e": 7.0, "given": 9.0}
    notes = graph.query('match { $d: Doc { slug: "a" } } return { $d.note as n }').scalar()
    assert notes == 7, "other properties changed"
    assert graph.log(limit=1)[0].kind == "embed"


def test_a_second_run_has_nothing_to_do(graph: Graph, provider: EmbeddingServer) -> None:
    graph.embed()
    before = graph.snapshot().commit_id
    provider.asked.clear()
    assert [report.rows for report in graph.embed()] == [0, 0, 0]
    assert graph.snapshot().commit_id == before
    assert not provider.asked


def test_a_dry_run_counts_and_asks_nobody(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMNIGRAPH_EMBED_PROVIDER", raising=False)
    before = graph.snapshot().commit_id
    found = graph.embed(dry_run=True)
    assert found[0] == EmbedReport("Doc", "vec", rows=4, texts=3, characters=15)
    assert [(r.property, r.rows) for r in found[1:]] == [("more", 1), ("vec", 1)]
    assert graph.embed(["Doc"], every=True, dry_run=True)[0].rows == 5
    assert graph.snapshot().commit_id == before


def test_every_vector_can_be_made_anew(graph: Graph, provider: EmbeddingServer) -> None:
    graph.embed(["Doc"], every=True)
    assert vectors(graph)["given"] == 1.0


def test_one_property_or_one_type_can_be_chosen(graph: Graph, provider: EmbeddingServer) -> None:
    assert [(r.type, r.property) for r in graph.embed(property="more")] == [("Other", "more")]
    with pytest.raises(TableNotFound, match="Docs"):
        graph.embed(["Docs"])
    with pytest.raises(OptionInvalid, match="no property of Plain is made by @embed"):
        graph.embed(["Plain"])


def test_without_a_provider_nothing_changes(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMNIGRAPH_EMBED_PROVIDER", raising=False)
    with pytest.raises(EmbedNotConfigured):
        graph.embed()
    assert set(vectors(graph).values()) == {None, 9.0}


def test_a_branch_is_filled_by_itself(graph: Graph, provider: EmbeddingServer) -> None:
    graph.create_branch("draft")
    graph.embed(["Doc"], branch="draft")
    assert vectors(graph)["a"] is None
    assert graph.merge("draft").outcome == "fast_forward"
    assert vectors(graph)["a"] == 3.0


def test_a_row_that_changes_meanwhile_is_left_to_its_writer(
    graph: Graph, provider: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = omnigraph.open(graph.uri)
    answer = provider.answer
    done: list[bool] = []

    def meddle(asked: dict[str, Any]) -> Answer:
        if not done:
            done.append(True)
            other.load({"Doc": [{"slug": "a", "text": "something else"}]})
            other.mutate('delete Doc where slug = "b"')
        return answer(asked)

    monkeypatch.setattr(provider, "answer", meddle)
    graph.embed(["Doc"])
    assert vectors(graph) == {"a": 14.0, "c": 3.0, "d": None, "e": 7.0, "given": 9.0}


def test_what_was_made_before_a_failure_stays(
    graph: Graph, provider: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_small_batches(monkeypatch)
    load(graph, [(f"n{i}", "x" * (20 + i)) for i in range(6)])
    refused = Answer(status=403, body="no")
    monkeypatch.setattr(embedding, "BATCH_ROWS_MIN", 4)
    provider.script = [Answer(), refused]
    with pytest.raises(omnigraph.OmnigraphError) as caught:
        graph.embed(["Doc"])
    assert caught.value.code == "embed_refused"
    made = [slug for slug, vector in vectors(graph).items() if vector is not None]
    assert len(made) == 1 + 4
    provider.script = []
    provider.asked.clear()
    assert sum(report.commits for report in graph.embed(["Doc"])) == 2
    assert None not in [v for slug, v in vectors(graph).items() if slug != "d"]


def in_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four texts a request, one request at a time."""
    real = provider_of

    def small(settings: Any) -> Any:
        found = real(settings)
        object.__setattr__(found, "batch_texts_max", 4)
        object.__setattr__(found, "requests_max", 1)
        return found

    monkeypatch.setattr(embedding, "provider_of", small)


def embed_all(uri: str) -> None:
    """Runs in a process of its own."""
    with pytest.MonkeyPatch.context() as patch:
        in_small_batches(patch)
        patch.setattr(embedding, "BATCH_ROWS_MIN", 4)
        omnigraph.open(uri).embed(["Doc"])


def test_a_killed_run_goes_on_where_it_stopped(
    graph: Graph, provider: EmbeddingServer, tmp_path: Path
) -> None:
    load(graph, [(f"n{i}", "x" * (20 + i)) for i in range(40)])
    environment = {
        f"OMNIGRAPH_EMBED_{name}": value
        for name, value in (("PROVIDER", "openai"), ("MODEL", "m"), ("URL", provider.url))
    }
    missing = graph.embed(["Doc"], dry_run=True)[0].texts
    child = spawn(embed_all, {"uri": graph.uri}, log=tmp_path / "log", environment=environment)
    assert child.kill_when(lambda: len(provider.asked) >= 5), "it was done before it was killed"
    asked = texts(provider)
    graph.embed(["Doc"])
    again = texts(provider)
    repeated = set(asked) & set(again)
    assert len(repeated) <= 4, "more than the batch in hand was asked for twice"
    assert len(asked) == len(set(asked))
    assert len({*asked, *again}) == missing
    assert None not in [v for slug, v in vectors(graph).items() if slug != "d"]


def test_a_provider_that_is_down_harms_nothing(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, "http://127.0.0.1:9/v1")
    monkeypatch.setattr("time.sleep", lambda _: None)
    before = graph.snapshot().commit_id
    with pytest.raises(EmbedUnavailable):
        graph.embed()
    assert graph.snapshot().commit_id == before


# --- another model -------------------------------------------------------------------------------------------------

MODEL = 'node Doc {{ slug: String @key  text: String?  vec: Vector(4)? @embed(text, model="{}") }}'


def test_another_model_begins_with_no_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors of two models are never mixed: those of the old one go, and those of the new one are made on a branch."""
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    graph = omnigraph.init(tmp_path / "g", schema=MODEL.format("old"))
    graph.load({"Doc": [{"slug": "a", "text": "one"}, {"slug": "b", "text": "two"}]})
    before = vectors(graph)
    graph.create_branch("draft")
    graph.apply_schema(MODEL.format("new"), branch="draft")
    assert vectors(graph, "draft") == {"a": None, "b": None}
    assert vectors(graph) == before
    graph.embed(branch="draft")
    assert None not in vectors(graph, "draft").values()


@pytest.mark.parametrize("configured", [True, False])
def test_a_text_that_changed_before_the_merge_is_embedded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, configured: bool
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    graph = omnigraph.init(tmp_path / "g", schema=MODEL.format("old"))
    graph.load({"Doc": [{"slug": "a", "text": "one"}, {"slug": "b", "text": "two"}]})
    graph.create_branch("draft")
    graph.apply_schema(MODEL.format("new"), branch="draft")
    graph.embed(branch="draft")
    graph.load({"Doc": [{"slug": "a", "text": "uno"}, {"slug": "c", "text": "tre"}]})
    if not configured:
        monkeypatch.delenv("OMNIGRAPH_EMBED_PROVIDER")
    merged = graph.merge("draft")
    assert merged.outcome == "merged", merged.conflicts
    found = vectors(graph)
    assert (found["a"] is not None) == configured, "the vector of another text stayed"
    assert found["b"] is not None
    assert found["c"] is None, "it was made by the old model"
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    graph.embed()
    fresh = omnigraph.init(tmp_path / "fresh", schema=MODEL.format("new"))
    fresh.load(
        {"Doc": [{"slug": s, "text": t} for s, t in (("a", "uno"), ("b", "two"), ("c", "tre"))]}
    )
    assert vectors(graph) == vectors(fresh)


def test_a_renamed_source_keeps_its_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    graph = omnigraph.init(tmp_path / "g", schema=MODEL.format("m"))
    graph.load({"Doc": [{"slug": "a", "text": "one"}]})
    before = vectors(graph)
    renamed = MODEL.format("m").replace("text: String?", 'body: String? @rename_from("text")')
    graph.apply_schema(renamed.replace("@embed(text", "@embed(body"))
    assert vectors(graph) == before


# --- what is paid for ----------------------------------------------------------------------------------------------


def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process remembers no vectors, as if it were new for every batch."""
    monkeypatch.setattr("omnigraph.read.search.embed._made", Cache(0))


def test_equal_texts_far_apart_are_paid_for_once(
    graph: Graph, provider: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_small_batches(monkeypatch)
    forgetful(monkeypatch)
    monkeypatch.setattr(embedding, "BATCH_ROWS_MIN", 4)
    load(graph, [(f"n{i:02}", "x" * (20 + i % 13)) for i in range(40)])
    said = graph.embed(["Doc"], dry_run=True)[0]
    found = graph.embed(["Doc"])[0]
    asked = texts(provider)
    assert len(asked) == len(set(asked)) == said.texts
    assert (found.rows, found.texts, found.characters) == (said.rows, said.texts, said.characters)
    assert found.commits > 5


def test_more_rows_of_one_text_than_a_batch_holds_count_once(
    graph: Graph, provider: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_small_batches(monkeypatch)
    monkeypatch.setattr(embedding, "BATCH_ROWS_MIN", 4)
    load(graph, [(f"n{i}", "same") for i in range(11)])
    found = graph.embed(["Doc"])[0]
    assert (found.rows, found.texts, found.characters) == (15, 4, 19)
    asked = texts(provider)
    assert len(asked) == len(set(asked)) == 4


def refusing(provider: EmbeddingServer, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    answer = provider.answer

    def refuse(asked: dict[str, Any]) -> Answer:
        found = answer(asked)
        return Answer(400, "not this") if any(word in text for text in asked["input"]) else found

    monkeypatch.setattr(provider, "answer", refuse)


def test_a_text_that_is_refused_holds_up_no_other(
    graph: Graph, provider: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(graph, [("bad", "a forbidden text"), ("worse", "forbidden too"), ("z", "four")])
    refusing(provider, monkeypatch, "forbidden")
    found = graph.embed(["Doc"])[0]
    assert (found.rows, found.texts, found.refused) == (5, 4, 2)
    made = vectors(graph)
    assert {slug for slug, vector in made.items() if vector is None} == {"bad", "d", "worse"}
    assert made["z"] == 4.0
    before = graph.snapshot().commit_id
    assert graph.embed(["Doc"])[0].refused == 2
    assert graph.snapshot().commit_id == before


def test_a_provider_that_refuses_every_text_is_an_error(
    graph: Graph, provider: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing(provider, monkeypatch, "")
    with pytest.raises(EmbedRefused, match="not this"):
        graph.embed(["Doc"])
    assert len(provider.asked) <= 4
