"""Blobs: base64 in, ranges out, carried over changes that do not name them, addresses only where allowed."""

from __future__ import annotations

import base64
import itertools
import random
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.errors import OptionInvalid, TableNotFound
from omnigraph.graph import Graph
from omnigraph.read.blobs import BlobNotFound, open_blob
from omnigraph.validate.evaluate import ValidationFailed
from omnigraph.write.input.options import BLOB_ALLOW, Options
from omnigraph.write.input.problems import InputInvalid

_names = itertools.count()


@pytest.fixture
def graph() -> Graph:
    schema = "node Doc { slug: String @key  body: Blob?  note: String? }"
    return omnigraph.init(f"memory://blobs-{next(_names)}", schema=schema)


def inline(data: bytes) -> str:
    return "base64:" + base64.b64encode(data).decode()


def body(graph: Graph, id: str) -> bytes:
    return open_blob(graph.snapshot(), "Doc", id, "body").read()


def test_base64_becomes_bytes_that_are_read_in_ranges(graph: Graph) -> None:
    data = random.Random(7).randbytes(300_000)
    graph.load([{"type": "Doc", "data": {"slug": "a", "body": inline(data)}}])
    blob = open_blob(graph.snapshot(), "Doc", "a", "body")
    assert blob.size == len(data)
    assert blob.read(100_000, 100_010) == data[100_000:100_010]
    assert blob.read(299_990) == data[299_990:]
    assert blob.read(299_990, 10**9) == data[299_990:]
    assert blob.read(10**9) == b""
    assert blob.read() == data
    with pytest.raises(OptionInvalid):
        blob.read(5, 2)


def test_an_upsert_that_does_not_name_a_blob_keeps_it(graph: Graph) -> None:
    graph.load([{"type": "Doc", "data": {"slug": "a", "body": inline(b"first")}}])
    graph.load([{"type": "Doc", "data": {"slug": "a", "note": "n"}}])
    assert body(graph, "a") == b"first"
    graph.load([{"type": "Doc", "data": {"slug": "a", "body": inline(b"second")}}])
    assert body(graph, "a") == b"second"
    graph.load([{"type": "Doc", "data": {"slug": "a", "body": None}}])
    with pytest.raises(BlobNotFound, match="null"):
        body(graph, "a")


def test_python_bytes_and_binary_columns_are_blobs(graph: Graph) -> None:
    graph.load([{"type": "Doc", "data": {"slug": "a", "body": b"\x00\xff"}}])
    table = pa.table({"slug": ["b", "c"], "body": pa.array([b"bin", None], pa.binary())})
    graph.load({"Doc": table})
    assert (body(graph, "a"), body(graph, "b")) == (b"\x00\xff", b"bin")


def test_an_empty_blob_is_not_null(graph: Graph) -> None:
    graph.load([{"type": "Doc", "data": {"slug": "a", "body": "base64:"}}])
    assert body(graph, "a") == b""


@pytest.mark.parametrize("text", ["base64:***", "base64:aGk", "base64:aG k=", "base64:aGk=="])
def test_what_is_not_base64_is_refused(graph: Graph, text: str) -> None:
    with pytest.raises(InputInvalid, match="base64"):
        graph.load([{"type": "Doc", "data": {"slug": "a", "body": text}}])


def test_an_address_is_refused_unless_its_folder_is_allowed(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (allowed / "x.bin").write_bytes(b"content")
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "allowed-not").mkdir()
    (tmp_path / "allowed-not" / "y").write_bytes(b"secret")
    record = [{"type": "Doc", "data": {"slug": "a", "body": f"file://{allowed}/x.bin"}}]
    with pytest.raises(InputInvalid, match=BLOB_ALLOW):
        graph.load(record)
    monkeypatch.setenv(BLOB_ALLOW, f"file://{allowed}")
    graph.load(record)
    assert body(graph, "a") == b"content"
    for outside in (f"file://{allowed}/../secret", f"file://{allowed}-not/y", "/etc/hostname"):
        with pytest.raises(InputInvalid, match=BLOB_ALLOW):
            graph.load([{"type": "Doc", "data": {"slug": "b", "body": outside}}])


@pytest.mark.parametrize(
    "change",
    [
        "insert Doc { slug: $slug, body: $body }",
        "update Doc set { body: $body } where slug = $slug",
        'update Doc set { body: "base64:AAH/" } where slug = $slug',
        "update Doc set { body: note } where slug = $slug",
    ],
)
@pytest.mark.parametrize("kind", ["String", "Blob"])
def test_a_mutation_spells_bytes_as_a_load_does(graph: Graph, change: str, kind: str) -> None:
    data = inline(b"\x00\x01\xff")
    graph.load([{"type": "Doc", "data": {"slug": "a", "body": inline(b"old"), "note": data}}])
    query = f"query q($slug: String, $body: {kind}) {{ {change} }}"
    graph.mutate(query, {"slug": "a", "body": data})
    assert body(graph, "a") == b"\x00\x01\xff"


def test_an_update_to_null_or_bytes_does_as_it_says(graph: Graph) -> None:
    graph.load([{"type": "Doc", "data": {"slug": "a", "body": inline(b"old")}}])
    change = 'query q($body: Blob?) { update Doc set { body: $body } where slug = "a" }'
    graph.mutate(change, {"body": b"new"})
    assert body(graph, "a") == b"new"
    graph.mutate(change, {"body": None})
    with pytest.raises(BlobNotFound, match="null"):
        body(graph, "a")


def test_a_mutation_follows_no_address_that_is_not_allowed(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x").write_bytes(b"content")
    graph.load([{"type": "Doc", "data": {"slug": "a", "body": inline(b"old")}}])
    update = 'query q($body: String) { update Doc set { body: $body } where slug = "a" }'
    insert = 'query q($body: String) { insert Doc { slug: "a", body: $body } }'
    for text in (update, insert):
        for wrong in (f"file://{tmp_path}/x", "https://example.com/x", "base64:*", "plain"):
            with pytest.raises(ValidationFailed):
                graph.mutate(text, {"body": wrong})
        assert body(graph, "a") == b"old"
    monkeypatch.setenv(BLOB_ALLOW, f"file://{tmp_path}")
    graph.mutate(update, {"body": f"file://{tmp_path}/x"})
    assert body(graph, "a") == b"content"


def test_a_resolution_spells_bytes_as_a_load_does(graph: Graph) -> None:
    graph.load([{"type": "Doc", "data": {"slug": "a", "body": inline(b"base")}}])
    graph.create_branch("side")
    graph.load([{"type": "Doc", "data": {"slug": "a", "body": inline(b"ours")}}])
    graph.load([{"type": "Doc", "data": {"slug": "a", "body": inline(b"theirs")}}], branch="side")
    decided = {"type": "Doc", "id": "a", "field": "body"}
    for wrong in ("https://example.com/x", "base64:*"):
        with pytest.raises(OptionInvalid, match="base64"):
            graph.merge("side", resolutions=[decided | {"value": wrong}])
    assert graph.merge("side", resolutions=[decided | {"value": inline(b"both")}]).commit
    assert body(graph, "a") == b"both"


def test_percent_signs_do_not_lead_out_of_an_allowed_folder(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    options = Options(blob_allow=(f"file://{tmp_path}/in/",))
    with pytest.raises(Exception, match=BLOB_ALLOW):
        options.fetch(f"file://{tmp_path}/in/%2e%2e/secret")


def test_an_allowed_file_that_is_not_there_is_named(graph: Graph, tmp_path: Path) -> None:
    options = Options(blob_allow=(f"file://{tmp_path}",))
    with pytest.raises(InputInvalid, match="gone"):
        graph.load(
            [{"type": "Doc", "data": {"slug": "a", "body": f"file://{tmp_path}/gone"}}],
            options=options,
        )


def test_asking_for_what_is_no_blob_says_so(graph: Graph) -> None:
    graph.load([{"type": "Doc", "data": {"slug": "a", "body": inline(b"x")}}])
    with pytest.raises(OptionInvalid, match="note"):
        open_blob(graph.snapshot(), "Doc", "a", "note")
    with pytest.raises(TableNotFound):
        open_blob(graph.snapshot(), "Nope", "a", "body")
    with pytest.raises(BlobNotFound, match="does not exist"):
        open_blob(graph.snapshot(), "Doc", "zz", "body")
