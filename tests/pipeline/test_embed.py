"""Vectors of texts (`@embed`): a load makes the same ones on both planes, and a mutation too."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.core.leases import stored_plans
from omnigraph.pipeline.load import bulk_load
from omnigraph.pipeline.source import OmnigraphSource
from omnigraph.read.search.embed import settings_of_environment
from omnigraph.read.search.providers import EmbedRefused
from tests.pipeline.planes import state_of, write_lines
from tests.unit.read.search.embedding_server import Answer, EmbeddingServer, embedding_server

SCHEMA = """
node Doc { slug: String @key  text: String?  note: I32?  vec: Vector(4)? @embed(text) }
node Strict { slug: String @key  text: String  vec: Vector(4) @embed(text) }
node Loose { text: String?  vec: Vector(4)? @embed(text) }
"""
KEY = "planted-embed-key-5d1f"
ENGINES = ("local", "spark")
Load = Callable[[Graph, str], object]


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingServer]:
    """A provider the driver learns of after Spark's processes were started."""
    with embedding_server() as running:
        for name, value in (("PROVIDER", "openai"), ("MODEL", "m"), ("URL", running.url)):
            monkeypatch.setenv(f"OMNIGRAPH_EMBED_{name}", value)
        monkeypatch.setenv("OMNIGRAPH_EMBED_API_KEY", KEY)
        yield running


def doc(slug: str, kind: str = "Doc", **more: Any) -> dict[str, Any]:
    return {"type": kind, "data": {"slug": slug, **more}}


def both(tmp_path: Path, *loads: Load) -> Graph:
    """The graph that both planes make of some loads; it must be the same."""
    made = [omnigraph.init(tmp_path / engine, schema=SCHEMA) for engine in ENGINES]
    for load in loads:
        for graph, engine in zip(made, ENGINES, strict=True):
            load(graph, engine)
    assert state_of(made[0]) == state_of(made[1])
    return made[1]


def texts(provider: EmbeddingServer) -> list[str]:
    """What the provider was asked for since the last time."""
    found = sorted(text for asked in provider.asked for text in asked["input"])
    provider.asked.clear()
    return found


@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_both_planes_make_the_same_vectors(
    tmp_path: Path, spark: Any, provider: EmbeddingServer, mode: str
) -> None:
    records = [doc(f"d{n}", text=f"{mode} text {n}" * (n + 1)) for n in range(6)]
    records += [doc("none"), doc("given", text="t", vec=[1.0, 2.0, 3.0, 4.0])]
    records += [doc("s", "Strict", text="required"), {"type": "Loose", "data": {"text": "loose"}}]
    file = write_lines(tmp_path / "docs.jsonl", records)
    graph = both(tmp_path, lambda g, engine: g.load(str(file), mode, engine=engine))
    rows = {row["slug"]: row["vec"] for row in state_of(graph)["Doc"]}
    assert rows["none"] is None
    assert rows["given"] == [1.0, 2.0, 3.0, 4.0]
    assert rows["d1"] == [float(len(f"{mode} text 1" * 2)), 1.0, 1.0, 1.0]
    assert state_of(graph)["Strict"][0]["vec"][0] == len("required")
    assert set(provider.keys) == {f"Bearer {KEY}"}


def test_a_merge_load_makes_vectors_of_texts_that_changed_and_of_no_others(
    tmp_path: Path, spark: Any, provider: EmbeddingServer
) -> None:
    def loading(name: str, *records: dict[str, Any]) -> Load:
        file = write_lines(tmp_path / name, records)
        return lambda graph, engine: graph.load(str(file), engine=engine)

    both(
        tmp_path,
        loading("one", doc("a", text="first a"), doc("b", text="first b"), doc("c", text="c")),
        loading("two", doc("a", text="second a, longer"), doc("b", note=1), doc("c", text="c")),
    )
    assert texts(provider) == sorted(["first a", "first b", "c", "second a, longer"] * 2)
    graph = omnigraph.open(tmp_path / "spark")
    rows = {row["slug"]: row for row in state_of(graph)["Doc"]}
    assert rows["a"]["vec"][0] == len("second a, longer")
    assert rows["b"]["vec"][0] == len("first b")
    cleared = write_lines(tmp_path / "three", [doc("a", text=None)])
    graph.load(str(cleared), engine="spark")
    assert {row["slug"]: row["vec"] for row in state_of(graph)["Doc"]}["a"] is None
    assert texts(provider) == []


def test_frames_and_the_data_source_make_vectors_too(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    rows = [(f"f{n}", f"framed {n}") for n in range(5)]
    graph = both(
        tmp_path,
        lambda g, engine: g.load(
            {
                "Doc": spark.createDataFrame(rows, "slug string, text string")
                if engine == "spark"
                else [{"slug": slug, "text": text} for slug, text in rows]
            },
            engine=engine,
        ),
    )
    made = {row["slug"]: row["vec"] for row in state_of(graph)["Doc"]}
    assert all(made.values())
    OmnigraphSource.register(spark)
    frame = spark.createDataFrame(rows, "slug string, text string")
    written = omnigraph.init(tmp_path / "written", schema=SCHEMA)
    target = frame.write.format("omnigraph").option("graph", written.uri).option("type", "Doc")
    target.mode("append").save()
    assert {row["slug"]: row["vec"] for row in state_of(written)["Doc"]} == made
    other = omnigraph.init(tmp_path / "mutated", schema=SCHEMA)
    other.mutate('insert Doc { slug: "f0", text: "framed 0" }')
    assert state_of(other)["Doc"][0]["vec"] == made["f0"]


def test_a_provider_that_fails_is_an_error_and_nothing_is_published(
    tmp_path: Path, spark: Any, provider: EmbeddingServer
) -> None:
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    file = write_lines(tmp_path / "docs.jsonl", [doc("a", text="refused text")])
    head = graph.snapshot().commit_id
    for engine in ENGINES:
        provider.script[:] = [Answer(401, f"the key {KEY} is unknown")]
        with pytest.raises(EmbedRefused) as caught:
            graph.load(str(file), engine=engine)
        assert KEY not in repr(caught.value.details) + caught.value.message
    assert graph.snapshot().commit_id == head
    assert not list(stored_plans(graph._repo))


def test_a_refused_load_lists_no_vector_that_would_have_been_made(
    tmp_path: Path, spark: Any, provider: EmbeddingServer
) -> None:
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    wrong = [doc(f"w{n}", "Strict") for n in range(40)]
    file = write_lines(tmp_path / "docs.jsonl", [*wrong, doc("fine", "Strict", text="fine")])
    with pytest.raises(omnigraph.OmnigraphError):
        graph.load(str(file), engine="spark", violations=tmp_path / "lists")
    (listed,) = (tmp_path / "lists").iterdir()
    found = [json.loads(line) for line in listed.read_text().splitlines()]
    assert {line["id"] for line in found} == {f"w{n}" for n in range(40)}
    assert texts(provider) == ["fine"], "a provider is asked once"


def test_the_key_of_a_provider_does_not_show(
    tmp_path: Path, spark: Any, provider: EmbeddingServer
) -> None:
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    file = write_lines(tmp_path / "docs.jsonl", [doc("a", text="shown")])
    work = bulk_load(graph._repo, spark, str(file), "append", "main", load_id="key")
    staged = work.prepare(graph.snapshot())
    assert KEY not in repr((staged, settings_of_environment(), list(stored_plans(graph._repo))))
    graph.publish(work.verb, alone=True)
    work.finish()
    for path in (tmp_path / "g").rglob("*"):
        assert path.is_dir() or KEY.encode() not in path.read_bytes()
