"""Graphs of one server with embedding providers of their own."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import OmnigraphError
from omnigraph.read.search.embed import embed_text
from omnigraph.read.search.providers import MockProvider
from omnigraph.server.settings import ServerInvalid, read_settings
from tests.server.process import Running, serving
from tests.support.waiting import wait_until
from tests.unit.cluster.folders import applied, write_folder
from tests.unit.read.search.embedding_server import EmbeddingServer, embedding_server

NOTES = "node Note { title: String @key  body: String?  vector: Vector(4)? @embed(body) }"
VECTORS = "match { $n: Note } return { $n.title as title, $n.vector as vector } order { title }"
NEAREST = """query q($text: String) {
  match { $n: Note }
  return { $n.title as title }
  order { nearest($n.vector, $text) }
  limit 1
}"""
PROVIDERS = ("OMNIGRAPH_EMBED_PROVIDER", "OMNIGRAPH_EMBED_URL", "OMNIGRAPH_EMBED_MODEL")


def _cluster(folder: Path, url: str) -> Path:
    """Two graphs of the same schema, each with a row that has no vector yet."""
    (folder / "c").mkdir()
    (folder / "c" / "notes.pg").write_text(NOTES)
    keyed = {
        "kind": "openai-compatible",
        "base_url": url,
        "model": "m",
        "api_key": "${OURS_API_KEY}",
    }
    write_folder(
        folder / "c",
        graphs={
            "plain": {"schema": "notes.pg", "embedding_provider": "made-up"},
            "asked": {"schema": "notes.pg", "embedding_provider": "ours"},
        },
        policies={},
        providers={"embedding": {"made-up": {"kind": "mock"}, "ours": keyed}},
    )
    applied(folder / "c")
    for name in ("plain", "asked"):
        graph = omnigraph.open(folder / "c" / "graphs" / f"{name}.omni")
        graph.load({"Note": [{"title": "before", "body": f"{name}: loaded before"}]})
    return folder / "c"


def _vectors(running: Running, graph: str) -> dict[str, list[float] | None]:
    found = omnigraph.open(running.url(graph)).query(VECTORS)
    return {row["title"]: row["vector"] for row in found}


def _has_all_vectors(running: Running, graph: str) -> bool:
    return None not in _vectors(running, graph).values()


def _made_up(text: str) -> Any:
    return pytest.approx(list(embed_text(text, 4, provider=MockProvider())))


def _texts(provider: EmbeddingServer) -> set[str]:
    return {text for asked in provider.asked for text in asked["input"]}


@pytest.mark.parametrize("more", [(), ("--workers", "2")], ids=["one process", "workers"])
def test_two_graphs_of_one_cluster_have_two_providers(
    more: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In writes, in queries, in loads, and in what maintenance makes later."""
    for name in PROVIDERS:
        monkeypatch.delenv(name, raising=False)
    with embedding_server() as provider:
        folder = _cluster(tmp_path, provider.url)
        environment = {"OURS_API_KEY": "k-ours"}
        arguments = ("--cluster", str(folder), "--unauthenticated", *more)
        with serving(*arguments, environment=environment) as running:
            for name in ("plain", "asked"):
                graph = omnigraph.open(running.url(name))
                graph.mutate(f'insert Note {{ title: "b", body: "{name}: inserted" }}')
                graph.load({"Note": [{"title": "c", "body": f"{name}: loaded"}]})
                all_made = partial(_has_all_vectors, running, name)
                wait_until(all_made, timeout=120, what=f"the vectors of {name} made later")
            plain, asked = _vectors(running, "plain"), _vectors(running, "asked")
            for name in ("plain", "asked"):
                nearest = omnigraph.open(running.url(name)).query(
                    NEAREST, {"text": f"{name}: loaded"}
                )
                assert [row["title"] for row in nearest] == ["c"]
    assert plain["before"] == _made_up("plain: loaded before")
    assert plain["b"] == _made_up("plain: inserted")
    assert plain["c"] == _made_up("plain: loaded")
    lengths = {"before": "asked: loaded before", "b": "asked: inserted", "c": "asked: loaded"}
    assert asked == {title: [float(len(text)), 1.0, 1.0, 1.0] for title, text in lengths.items()}
    assert _texts(provider) == set(lengths.values())
    assert set(provider.keys) == {"Bearer k-ours"}


def test_a_missing_secret_concerns_its_graph_alone(tmp_path: Path) -> None:
    folder = _cluster(tmp_path, "http://127.0.0.1:9/v1")
    arguments = ("--cluster", str(folder), "--unauthenticated", "--no-maintain")
    with serving(*arguments) as running:
        assert omnigraph.open(running.url("plain")).branches() == ["main"]
        with pytest.raises(OmnigraphError, match="asked"):
            omnigraph.open(running.url("asked")).branches()


def test_a_server_file_names_providers_too(tmp_path: Path) -> None:
    omnigraph.init(tmp_path / "notes", schema=NOTES)
    settings = {"graphs": {"notes": {"uri": "notes", "embedding": {"kind": "mock"}}}}
    (tmp_path / "server.yaml").write_text(json.dumps(settings))
    arguments = ("--config", str(tmp_path / "server.yaml"), "--unauthenticated", "--no-maintain")
    with serving(*arguments) as running:
        omnigraph.open(running.url("notes")).mutate('insert Note { title: "a", body: "tea" }')
        assert _vectors(running, "notes") == {"a": _made_up("tea")}


@pytest.mark.parametrize(
    ("provider", "message"),
    [
        ({"kind": "oracle"}, "kind must be one of"),
        ({"kind": "openai", "api_key": "sk-1"}, "secrets"),
    ],
)
def test_a_server_file_with_a_useless_provider_is_refused(
    provider: dict[str, str], message: str, tmp_path: Path
) -> None:
    settings = {"graphs": {"notes": {"uri": "notes", "embedding": provider}}}
    (tmp_path / "server.yaml").write_text(json.dumps(settings))
    with pytest.raises(ServerInvalid, match=message):
        read_settings(tmp_path / "server.yaml")
