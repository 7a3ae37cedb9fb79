"""A load that is refused lists everything that is wrong in a file: the same on both planes, beyond what errors show."""

from __future__ import annotations

import json
import stat
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph, OmnigraphError
from omnigraph.cli.main import main
from omnigraph.pipeline import load as bulk
from omnigraph.pipeline.load import Tuning
from tests.pipeline.planes import comparable, edge, new_graph, person, write_lines

Records = list[dict[str, Any] | str]
MANY = 130  # more than an error has room for
NUMBERS = range(MANY)
PEOPLE: Records = [person(f"p{i:03}@x", nick=f"n{i % MANY}") for i in range(2 * MANY)]
CASES: dict[str, tuple[str, Records]] = {
    "values": ("merge", [person(f"p{i:03}@x", age=-1, level="boss") for i in NUMBERS]),
    "keys": ("append", [{"type": "Person", "data": {"name": f"{i}"}} for i in NUMBERS]),
    "ids given twice": ("append", [*PEOPLE, *PEOPLE, *PEOPLE]),
    "ids that exist": ("append", [person("ada@x"), person("bob@x"), *PEOPLE, *PEOPLE]),
    "unique values": ("merge", PEOPLE),
    "ends": ("append", [edge("Knows", f"nobody{i}", f"noone{i}") for i in NUMBERS]),
    "cardinality": (
        "append",
        [
            *(person(f"p{i:03}@x") for i in NUMBERS),
            *(edge("LivesIn", f"p{i % MANY:03}@x", "Rome") for i in range(3 * MANY)),
        ],
    ),
    "lines that are no records": (
        "append",
        [line for i in NUMBERS for line in (person(f"p{i}@x"), '{"type":', person("x", age="?"))],
    ),
}

SAMPLE = ("values", "ids that exist", "ends", "lines that are no records")


@pytest.fixture(autouse=True)
def pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Splits so small that offenders come from many tasks."""
    monkeypatch.setattr(bulk, "Tuning", lambda: Tuning(split_bytes=12_000))


def refused(graph: Graph, source: Any, **options: Any) -> OmnigraphError:
    with pytest.raises(OmnigraphError) as caught:
        graph.load(source, **options)
    assert len(graph.log()) == 2, "something was published"
    return caught.value


def listed(error: OmnigraphError) -> list[dict[str, Any]]:
    text = Path(error.details["violations_file"]).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def in_any_order(found: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(comparable(violation), sort_keys=True) for violation in found)


@pytest.mark.parametrize("name", SAMPLE)
def test_both_planes_list_the_same(name: str, spark: Any, tmp_path: Path) -> None:
    _agree(name, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name in CASES if name not in SAMPLE])
def test_both_planes_list_everything_else_too(name: str, spark: Any, tmp_path: Path) -> None:
    _agree(name, tmp_path)


def _agree(name: str, tmp_path: Path) -> None:
    mode, records = CASES[name]
    file = str(write_lines(tmp_path / "data.jsonl", records))
    local, on_spark = (
        refused(
            new_graph(tmp_path, engine),
            file,
            mode=mode,
            engine=engine,
            violations=tmp_path / engine,
        )
        for engine in ("local", "spark")
    )
    everything = listed(on_spark)
    assert len(everything) > 100, "an error would have room for them"
    assert in_any_order(everything) == in_any_order(listed(local))
    counts = Counter(violation["rule"] for violation in everything)
    assert on_spark.details["counts"] == local.details["counts"] == counts
    assert all(f"{count:,} {rule}" in on_spark.message for rule, count in counts.items())
    assert on_spark.details["violations_file"] in (on_spark.help or "")


def test_rows_of_a_dataframe_are_listed_by_id(spark: Any, tmp_path: Path) -> None:
    graph = new_graph(tmp_path, "frame")
    rows = [(f"p{i:03}@x", "P", -1) for i in NUMBERS] + [("again@x", "P", 1)] * 3
    people = spark.createDataFrame(rows, "email string, name string, age int").repartition(3)
    error = refused(graph, {"Person": people}, mode="append", violations=tmp_path / "wrong")
    found = listed(error)
    assert Counter(v["rule"] for v in found) == {"range": MANY, "duplicate": 2}
    assert {v["id"] for v in found if v["rule"] == "range"} == {f"p{i:03}@x" for i in NUMBERS}


def test_a_list_is_written_where_the_log_is_when_an_error_has_no_room(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_SPARK_LOG", str(tmp_path / "log" / "spark.log"))
    (tmp_path / "log").mkdir()
    graph = new_graph(tmp_path, "log")
    few = write_lines(tmp_path / "few.jsonl", [person("one@x", age=-1)])
    assert "violations_file" not in refused(graph, str(few), engine="spark").details
    many = write_lines(tmp_path / "many.jsonl", CASES["values"][1])
    told = refused(graph, str(many), engine="spark", violations=False)
    assert "violations_file" not in told.details
    assert not list((tmp_path / "log").iterdir())
    made = Path(refused(graph, str(many), engine="spark").details["violations_file"])
    assert made.parent == tmp_path / "log"
    assert stat.S_IMODE(made.stat().st_mode) == 0o600, "others may read what rows hold"


def test_the_error_shows_the_same_as_without_a_list(spark: Any, tmp_path: Path) -> None:
    graph = new_graph(tmp_path, "same")
    many = str(write_lines(tmp_path / "many.jsonl", CASES["values"][1]))
    plain = refused(graph, many, engine="spark", violations=False)
    told = refused(graph, many, engine="spark", violations=tmp_path / "wrong")
    assert told.code == plain.code
    assert told.details["violations"] == plain.details["violations"]
    assert told.message.startswith(plain.message)


def test_a_list_that_cannot_be_written_does_not_hide_what_is_wrong(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OMNIGRAPH_SPARK_LOG", str(tmp_path / "no such folder" / "spark.log"))
    many = str(write_lines(tmp_path / "many.jsonl", CASES["values"][1]))
    error = refused(new_graph(tmp_path, "hidden"), many, engine="spark")
    assert error.code == "validation_failed"
    assert "could not be listed" in caplog.text
    (tmp_path / "file").touch()
    with pytest.raises(omnigraph.OmnigraphError, match="cannot be listed in"):
        new_graph(tmp_path, "file").load(many, violations=tmp_path / "file")


def test_the_command_line_and_pipeline_files_name_a_folder(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = new_graph(tmp_path, "folders")
    write_lines(tmp_path / "many.jsonl", CASES["values"][1])
    words = ["load", "--store", graph.uri, "--data", str(tmp_path / "many.jsonl")]
    assert main([*words, "--violations", str(tmp_path / "wrong")]) != 0
    (made,) = (tmp_path / "wrong").iterdir()
    assert str(made) in capsys.readouterr().err
    file = tmp_path / "pipeline.yaml"
    file.write_text(f"graph: {graph.uri}\nviolations: lists\nsources: [{{records: many.jsonl}}]\n")
    assert main(["pipeline", "run", str(file), "--check"]) != 0
    assert main(["pipeline", "run", str(file)]) != 0
    assert len(list((tmp_path / "lists").iterdir())) == 2
