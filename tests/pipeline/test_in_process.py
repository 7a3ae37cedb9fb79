"""Large files are loaded in process piece by piece: the same rows and reports as from memory, in bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omnigraph.model.limits import DEFAULT
from omnigraph.pipeline import load as bulk
from omnigraph.pipeline.load import Tuning
from omnigraph.write.input.options import Options
from tests.pipeline.planes import Outcome, new_graph, person, run, write_lines
from tests.pipeline.test_planes import BAD, FINE, MANY

ALL_LARGE = replace(DEFAULT, interactive_bytes_max=0)


@pytest.fixture(autouse=True)
def pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Splits so small that every file has many."""
    monkeypatch.setattr(bulk, "Tuning", lambda: Tuning(split_bytes=600))


def both(folder: Path, source: Any, mode: str, **options: Any) -> tuple[Outcome, Outcome]:
    """The outcome from memory, and piece by piece."""
    for name in ("memory", "pieces"):
        (folder / name).mkdir()
    return (
        run(folder / "memory", "local", source, mode, **options),
        run(folder / "pieces", "local", source, mode, limits=ALL_LARGE, **options),
    )


@pytest.mark.parametrize("name", BAD)
def test_the_reports_are_the_same(name: str, tmp_path: Path) -> None:
    mode, records = BAD[name]
    memory, by_pieces = both(tmp_path, write_lines(tmp_path / "data.jsonl", records), mode)
    assert memory.error is not None
    assert by_pieces.violations == memory.violations
    assert (by_pieces.error, by_pieces.more) == (memory.error, memory.more)
    assert by_pieces.state == memory.state


@pytest.mark.parametrize("name", FINE)
def test_the_rows_are_the_same(name: str, tmp_path: Path) -> None:
    mode, records = FINE[name]
    memory, by_pieces = both(tmp_path, write_lines(tmp_path / "data.jsonl", records), mode)
    assert (by_pieces.error, by_pieces.message) == (None, "")
    assert (by_pieces.state, by_pieces.counts) == (memory.state, memory.counts)


def listed(folder: Path, name: str) -> list[dict[str, Any]]:
    (file,) = (folder / name).glob("omnigraph-violations-*")
    found = [json.loads(line) for line in file.read_text().splitlines()]
    return sorted(found, key=lambda v: (v["rule"], v["line"], v["id"]))


@pytest.mark.parametrize("name", ["more repeated than are listed", "more than are listed"])
def test_every_violation_is_listed(name: str, tmp_path: Path) -> None:
    mode, records = BAD[name]
    source = write_lines(tmp_path / "data.jsonl", records)
    for place, limits in (("memory", DEFAULT), ("pieces", ALL_LARGE)):
        (tmp_path / place).mkdir()
        run(tmp_path / place, "local", source, mode, limits=limits, violations=tmp_path / place)
    found = listed(tmp_path, "pieces")
    assert found == listed(tmp_path, "memory")
    assert len(found) >= 120


def test_rows_are_left_out_into_a_quarantine(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "data.jsonl", [*MANY, person("bad@x", age=-1), person("ada@x")])
    counts = {}
    for place, limits in (("memory", DEFAULT), ("pieces", ALL_LARGE)):
        (tmp_path / place).mkdir()
        graph = new_graph(tmp_path / place, "local", limits)
        aside = Options(quarantine=str(tmp_path / place / "aside.jsonl"))
        result = graph.load(source, "append", engine="local", options=aside)
        counts[place] = result.rows, result.quarantined
    assert counts["pieces"] == counts["memory"]
    assert counts["pieces"][1] == {"Person": 2}


def test_what_it_did_is_reported_with_the_commit(tmp_path: Path) -> None:
    graph = new_graph(tmp_path, "local", ALL_LARGE)
    graph.load(write_lines(tmp_path / "data.jsonl", MANY), "append", engine="local")
    cost = graph.log(limit=1)[0].load["cost"]
    assert (cost["engine"], cost["pieces"]) == ("local", cost["pieces"])
    assert cost["pieces"] > 1


LOAD = """
import resource, sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
import omnigraph
from omnigraph.model.limits import Limits
folder, rows, pieces = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "pieces"
names = pa.array(np.arange(rows)).cast(pa.string())
with pq.ParquetWriter(f"{folder}/{rows}.parquet", pa.schema([("name", "string"), ("note", "string")])) as out:
    for start in range(0, rows, 50_000):
        part = names[start : start + 50_000]
        out.write_table(pa.table({"name": part, "note": pa.compute.binary_join_element_wise(*[part] * 20, "-")}))
del names, part
limits = Limits(interactive_bytes_max=0) if pieces else Limits()
graph = omnigraph.init(f"{folder}/graph-{rows}", "node P { name: String @key  note: String }", limits=limits)
graph.load({"P": f"{folder}/{rows}.parquet"}, "append", engine="local")
assert graph.query("match { $p: P } return { count(*) as n }").rows == [{"n": rows}]
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def megabytes(folder: Path, rows: int, how: str) -> int:
    """The peak memory of a process that loads so many rows of 140 bytes."""
    command = [sys.executable, "-c", LOAD, str(folder), str(rows), how]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_memory_does_not_grow_with_the_input(tmp_path: Path) -> None:
    few, many = (megabytes(tmp_path, rows, "pieces") for rows in (500_000, 4_000_000))
    assert many < few + 200, "half a gigabyte more of input takes memory"
