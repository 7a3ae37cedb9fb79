"""The two planes of a load agree: the same rows, or the same report with file and line and nothing published."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omnigraph.pipeline import load as bulk
from omnigraph.pipeline.load import Tuning
from tests.pipeline.planes import Outcome, edge, person, run, write_lines

Records = list[dict[str, Any] | str]
GOOD: Records = [
    person("cara@x", age=20, nick="c"),
    person("dan@x", level="junior", joined="2024-05-01T10:00:00Z"),
    {"type": "City", "data": {"name": "Lima", "size": 2**63 + 5}},
    edge("Knows", "cara@x", "ada@x", since=2001),
    edge("Knows", "dan@x", "cara@x"),
    edge("LivesIn", "dan@x", "Lima"),
    edge("Rates", "cara@x", "Oslo", stars=3),
    {"type": "Note", "data": {"text": "hello"}},
]
NOTES: Records = [{"type": "Note", "data": {"id": f"n{i}", "text": "t"}} for i in range(3)]
MANY: Records = [person(f"p{i:03}@x", age=i % 90) for i in range(120)]

BAD: dict[str, tuple[str, Records]] = {
    "duplicate key in the input": ("append", [*GOOD, person("cara@x"), person("cara@x", age=999)]),
    "duplicate of a committed row": ("append", [*GOOD, person("ada@x", age=999)]),
    "committed and repeated": ("append", [person("ada@x"), person("ada@x"), person("bob@x")]),
    "dangling source": ("append", [*GOOD, edge("Knows", "nobody@x", "ada@x")]),
    "dangling target": ("merge", [*GOOD, edge("LivesIn", "ada@x", "Atlantis")]),
    "both ends": ("append", [edge("Knows", "n1", "n2"), edge("Rates", "n3", "Oslo", stars=1)]),
    "enum": ("append", [*GOOD, person("eve@x", level="boss")]),
    "range": ("merge", [*GOOD, person("eve@x", age=151), person("bob@x", age=-1)]),
    "range of an edge": ("append", [edge("Knows", "ada@x", "bob@x", since=1)]),
    "regex": ("append", [person("nobody")]),
    "required": ("append", [{"type": "Person", "data": {"email": "f@x"}}]),
    "required key": ("append", [{"type": "Person", "data": {"name": "F"}}]),
    "unique in the input": ("append", [person("g@x", nick="n"), person("h@x", nick="n")]),
    "unique against a stored row": ("append", [person("g@x", nick="a")]),
    "cardinality": ("append", [edge("LivesIn", "ada@x", "Rome"), edge("LivesIn", "bob@x", "Rome")]),
    "id twice in an append": ("append", [*GOOD, *NOTES, NOTES[0]]),
    "id twice in an overwrite": ("overwrite", [*NOTES, NOTES[1], NOTES[0], NOTES[1]]),
    "id of an edge twice in an overwrite": (
        "overwrite",
        [{**edge("Knows", "ada@x", "bob@x"), "id": "k"} for _ in range(2)],
    ),
    "edge key twice": ("merge", [edge("Rates", "bob@x", "Rome", stars=s) for s in (1, 2)]),
    "bad JSON": ("append", [*GOOD, '{"type": "Person", "data": {', person("i@x")]),
    "wrong type": ("append", [*GOOD, person("j@x", age="old"), person("k@x", name=3)]),
    "unknown field": ("merge", [person("l@x", colour="red")]),
    "unknown type": ("append", [{"type": "Ghost", "data": {}}]),
    "nodes that leave edges behind": ("overwrite", [{"type": "City", "data": {"name": "Rome"}}]),
    "everything at once": (
        "append",
        [
            person("ada@x", level="boss"),
            person("m@x", level="boss", age=200),
            person("m@x"),
            person("n@x", nick="a"),
            edge("Knows", "m@x", "nobody"),
            edge("LivesIn", "ada@x", "Rome"),
        ],
    ),
    "more than are listed": ("append", [person(f"q{i:03}@x", age=-1) for i in range(150)]),
    "more repeated than are listed": ("append", [*MANY, *MANY]),
}
FINE: dict[str, tuple[str, Records]] = {
    "append": ("append", GOOD),
    "merge of new and stored rows": (
        "merge",
        [
            *GOOD,
            {"type": "Person", "data": {"email": "ada@x", "age": None}},
            person("bob@x", age=5),
        ],
    ),
    "overwrite": (
        "overwrite",
        [
            person("ada@x"),
            person("new@x"),
            {"type": "City", "data": {"name": "Oslo"}},
            edge("LivesIn", "new@x", "Oslo"),
        ],
    ),
    "no records": ("append", []),
    "blank lines": ("append", ["", GOOD[0], "", "", GOOD[1]]),
}


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> Tuning:
    """Splits so small that every file has many and most rows meet in the checks between tasks."""
    tuning = Tuning(split_bytes=600)
    monkeypatch.setattr(bulk, "Tuning", lambda: tuning)
    return tuning


def both(folder: Path, source: Any, mode: str, **options: Any) -> tuple[Outcome, Outcome]:
    """The outcome of each plane."""
    return run(folder, "local", source, mode, **options), run(
        folder, "spark", source, mode, **options
    )


@pytest.mark.parametrize("name", BAD)
def test_the_reports_are_the_same(name: str, spark: Any, pieces: Tuning, tmp_path: Path) -> None:
    mode, records = BAD[name]
    file = write_lines(tmp_path / "data.jsonl", records)
    local, on_spark = both(tmp_path, file, mode)
    assert local.error is not None
    assert on_spark.violations == local.violations
    assert (on_spark.error, on_spark.more) == (local.error, local.more)
    assert on_spark.state == local.state


@pytest.mark.parametrize("name", FINE)
def test_the_rows_are_the_same(name: str, spark: Any, pieces: Tuning, tmp_path: Path) -> None:
    mode, records = FINE[name]
    file = write_lines(tmp_path / "data.jsonl", records)
    local, on_spark = both(tmp_path, file, mode)
    assert (on_spark.error, on_spark.message) == (None, "")
    assert on_spark.state == local.state
    assert on_spark.counts == local.counts


@pytest.mark.nightly
@pytest.mark.parametrize("name", [*BAD, *FINE])
def test_tasks_judge_as_the_driver_does(
    name: str, spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tuning = Tuning(split_bytes=150, judged_rows_max=0)
    monkeypatch.setattr(bulk, "Tuning", lambda: tuning)
    mode, records = (BAD | FINE)[name]
    file = write_lines(tmp_path / "data.jsonl", records)
    local, on_spark = both(tmp_path, file, mode)
    assert on_spark.violations == local.violations
    assert (on_spark.error, on_spark.more) == (local.error, local.more)
    assert on_spark.state == local.state


PEOPLE = "email,name,age\n" + "".join(f"p{i}@x,P{i},{i}\n" for i in range(50))


def _csv(folder: Path, text: str) -> dict[str, str]:
    (folder / "people.csv").write_text(text)
    return {"Person": str(folder / "people.csv")}


def _parquet(folder: Path, text: str) -> dict[str, str]:
    import pyarrow.csv as pv
    import pyarrow.parquet as pq

    (folder / "people.csv").write_text(text)
    table = pv.read_csv(folder / "people.csv")
    pq.write_table(table, folder / "people.parquet", row_group_size=7)
    return {"Person": str(folder / "people.parquet")}


def _packed(folder: Path, text: str) -> str:
    write_lines(folder / "a.jsonl", MANY)
    with gzip.open(folder / "b.jsonl.gz", "wt") as packed:
        packed.write('{"type": "City", "data": {"name": "Bern"}}\n' + text)
    return str(folder / "*.jsonl*")


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (_csv, PEOPLE),
        (_csv, PEOPLE + "ada@x,Ada,7\np1@x,Again,7\n"),
        (_csv, PEOPLE + "z@x,Z,old\n"),
        (_parquet, PEOPLE),
        (_parquet, PEOPLE + "y@x,Y,-5\n"),
        (_packed, ""),
        (_packed, '\n{"type": "City", "data": {"name": 3}}\n'),
    ],
)
def test_other_files_agree_too(
    make: Callable[[Path, str], Any], text: str, spark: Any, pieces: Tuning, tmp_path: Path
) -> None:
    source = make(tmp_path, text)
    local, on_spark = both(tmp_path, source, "append")
    assert on_spark.violations == local.violations
    assert (on_spark.error, on_spark.more, on_spark.counts) == (
        local.error,
        local.more,
        local.counts,
    )
    assert on_spark.state == local.state
