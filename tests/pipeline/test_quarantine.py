"""Rows that cannot be loaded, set aside: the same file and the same state by both planes."""

from __future__ import annotations

import gzip
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from omnigraph import OmnigraphError
from omnigraph.pipeline import load as bulk
from omnigraph.pipeline.aside import _by_split
from omnigraph.pipeline.load import Tuning
from omnigraph.pipeline.sources import Inputs, Split
from omnigraph.pipeline.stage import StagedSplit, Staging
from omnigraph.write.input import quarantine
from omnigraph.write.input.mapping import RowMap, Wide
from omnigraph.write.input.options import Options
from tests.pipeline.planes import comparable, edge, new_graph, person, state_of, write_lines

ENGINES = ("local", "spark")


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several pieces of every file, so that lines are counted across them."""
    monkeypatch.setattr(bulk, "Tuning", partial(Tuning, split_bytes=400))


def run(folder: Path, engine: str, source: Any, **options: Any) -> dict[str, Any]:
    """What is there after a load, and what was set aside."""
    graph = new_graph(folder, engine)
    file = folder / f"{engine}.aside"
    done = graph.load(
        source, "merge", engine=engine, options=Options(quarantine=str(file), **options)
    )
    lines = file.read_text().splitlines() if file.exists() else []
    aside = [json.loads(line) for line in lines]
    for row in aside:
        row["reasons"] = sorted((comparable(r) for r in row["reasons"]), key=json.dumps)
    assert done.engine == engine
    return {"state": state_of(graph), "aside": aside, "counts": dict(done.quarantined)}


def test_records_are_set_aside_with_their_reasons_alike(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines that cannot be read, values, keys given twice, ends, and edges of those left out."""
    staged: list[int] = []  # pieces that each round stages
    waves = bulk._waves

    def counted(session: Any, job: Any, given: Any, *more: Any) -> Any:
        units = [list(wave) for wave in given]
        staged.append(sum(map(len, units)))
        return waves(session, job, units, *more)

    monkeypatch.setattr(bulk, "_waves", counted)
    lines: list[dict[str, Any] | str] = [
        person("zoe@x", nick="z"),
        "{broken",
        person("old@x", age=700),
        person("yan@x", age="many"),
        *(person(f"p{n}@x", age=n) for n in range(12)),
        person("zoe@x"),
        edge("Knows", "zoe@x", "p1@x"),
        edge("Knows", "zoe@x", "nobody@x"),
        edge("Knows", "old@x", "p2@x"),
    ]
    file = str(write_lines(tmp_path / "people.jsonl", lines))
    found = {engine: run(tmp_path, engine, file) for engine in ENGINES}
    assert [row["line"] for row in found["local"]["aside"]] == [2, 3, 4, 17, 19, 20]
    assert found["spark"]["counts"] == found["local"]["counts"]
    assert found["spark"]["aside"] == found["local"]["aside"]
    assert found["spark"]["state"] == found["local"]["state"]
    assert len(staged) > 2
    assert staged[1] < staged[0], "pieces that nothing is taken from are not staged again"
    assert staged[-1] < staged[0]


def test_rows_of_mapped_tables_are_set_aside_alike(spark: Any, tmp_path: Path) -> None:
    cells = ["mail,years", *(f"p{n}@x,{n}" for n in range(30)), "bad@x,old", "worse@x,900"]
    (tmp_path / "people.csv").write_text("\n".join(cells) + "\n")
    rows = [RowMap("Person", (("email", "mail"), ("name", "mail"), ("age", "CAST(years AS INT)")))]
    source = Wide(str(tmp_path / "people.csv"), rows)
    found = {engine: run(tmp_path, engine, source) for engine in ENGINES}
    assert found["spark"] == found["local"]
    assert [(row["line"], row["row"]) for row in found["local"]["aside"]] == [
        (32, "bad@x,old"),
        (33, "worse@x,900"),
    ]


@pytest.mark.parametrize("name", ["people.csv", "people.csv.gz"])
def test_rows_set_aside_are_told_as_they_are_in_their_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cells may have line breaks, files may be packed, and lines lie across the blocks that are read."""
    monkeypatch.setattr(quarantine, "BLOCK_BYTES", 7)
    rows = ["p1@x,1", '"b\nad",old', "p2@x,2", "bad@x,old", 'worse@x,"9\n\n00"', "p3@x,3"]
    pack = gzip.compress if name.endswith(".gz") else bytes
    (tmp_path / name).write_bytes(pack("\n".join(["email,age", *rows]).encode()))
    aside = run(tmp_path, "local", {"Person": str(tmp_path / name)})["aside"]
    assert {row["row"] for row in aside} >= {rows[1], rows[3], rows[4]}


def test_lines_to_leave_out_are_found_in_their_splits() -> None:
    """As all splits of the file would tell; a file of rows without lines may be given twice."""
    splits = [Split(n, "lines", "a") for n in range(50)]
    splits += [Split(50 + n, "csv", "b") for n in range(2)]
    splits += [Split(52 + n, "parquet", "c", first_line=1 + 10 * n) for n in range(5)]
    lines = [n % 4 for n in range(50)] + [0] * 7
    staged = [StagedSplit(n, lines=count) for n, count in enumerate(lines)]
    staging = Staging(None, Inputs(tuple(splits)), tuple(staged))  # type: ignore[arg-type]
    before = staging.first_lines()
    found = _by_split([("P", file, line) for file in "abc" for line in range(1, 51)], staging)
    for n, count in enumerate(lines[:50]):
        wanted = {("P", line) for line in range(1, count + 1) if before[n] + line <= 50}
        assert not count or found.get(n, frozenset()) == wanted
    assert len(found[50]) == len(found[51]) == 50
    assert [min(found[n])[1] for n in range(52, 57)] == [1, 11, 21, 31, 41]


def test_too_many_failures_refuse_the_load_alike(spark: Any, tmp_path: Path) -> None:
    lines = [person(f"p{n}@x", age=-n) for n in range(9)]
    file = str(write_lines(tmp_path / "people.jsonl", lines))
    for engine in ENGINES:
        with pytest.raises(OmnigraphError, match="7 may be left out") as refused:
            run(tmp_path, engine, file, failures_max=7)
        assert refused.value.code == "too_many_failures"
        assert not (tmp_path / f"{engine}.aside").exists()
