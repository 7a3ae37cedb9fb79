"""Where an export goes: to the address that was named, or nowhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import AddressInvalid
from omnigraph.read.export import (
    FORMATS,
    MANIFEST,
    Exported,
    ExportFolder,
    ExportPart,
    FolderNotShared,
)
from omnigraph.storage.objects import open_remote

SCHEMA = "node Person { name: String @key }"


@pytest.mark.parametrize("format", FORMATS)
def test_an_export_to_s3_is_there_and_not_on_this_disk(
    format: str, s3_root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    graph = omnigraph.init("memory://export-places-" + format, schema=SCHEMA)
    graph.load({"Person": [{"name": "Ada"}]})
    done = graph.export(f"{s3_root}/out", format)
    assert list(tmp_path.iterdir()) == []
    store, key = open_remote(f"{s3_root}/out/{MANIFEST}")
    assert json.loads(store.get(key))["parts"][0]["rows"] == 1
    again = omnigraph.init("memory://export-places-again-" + format, schema=SCHEMA)
    address = f"{s3_root}/out/{done.parts[0].file}"
    again.load(address if format.startswith("ndjson") else {"Person": address})
    assert again.snapshot().table_of(again.snapshot().catalog.nodes["Person"]).count() == 1


@pytest.mark.parametrize(
    "address", ["gs://bucket/out", "memory://out", "ftp://host/out", "s3:///out"]
)
def test_addresses_nobody_writes_to_are_refused(
    address: str, memory_root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    graph = omnigraph.init(memory_root, schema=SCHEMA)
    with pytest.raises(AddressInvalid):
        graph.export(address)
    assert list(tmp_path.iterdir()) == []


def test_parts_that_other_machines_kept_to_themselves_are_missed(tmp_path: Path) -> None:
    folder = ExportFolder.of(tmp_path)
    part = ExportPart("node-Person-00000.ndjson", "Person", 1, 1, "")
    with pytest.raises(FolderNotShared, match="another machine") as error:
        folder.finish(Exported("commit", "ndjson", (part,)))
    assert error.value.details["missing"] == [part.file]
    assert not (tmp_path / MANIFEST).exists()
