"""Bulk loads among other writers, from object stores, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.core.leases import stored_plans
from omnigraph.pipeline import judging
from omnigraph.pipeline.load import BulkLoad, Tuning, bulk_load
from omnigraph.pipeline.verify import RepeatedRows
from omnigraph.storage.objects import open_remote
from omnigraph.validate import KeyConflict
from omnigraph.write.input.options import Options
from tests.pipeline.planes import SCHEMA, edge, new_graph, person, state_of, write_lines


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return new_graph(tmp_path, "load")


def test_what_others_wrote_meanwhile_is_judged_again(
    graph: Graph, spark: Any, tmp_path: Path
) -> None:
    file = write_lines(tmp_path / "new.jsonl", [person("new@x"), edge("Knows", "new@x", "ada@x")])
    head = graph.snapshot()
    free, taken = (bulk_load(graph._repo, spark, str(file), "append", "main") for _ in range(2))
    free.prepare(head)
    taken.prepare(head)
    graph.mutate('query q() { insert City { name: "Elsewhere" } }')
    graph.publish(free.verb, alone=True)
    assert len(state_of(graph)["Person"]) == 3
    with pytest.raises(KeyConflict, match="already exists"):
        graph.publish(taken.verb, alone=True)
    free.finish()
    taken.finish()


MODES = ("append", "merge")


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A line for each time a load is judged as a whole."""
    runs: list[str] = []

    judge = judging._is_valid

    def judged(*args: Any) -> Any:
        runs.append("judged")
        return judge(*args)

    monkeypatch.setattr(judging, "_is_valid", judged)
    return runs


@pytest.mark.parametrize("mode", MODES)
def test_a_load_keeps_its_verdict_beside_writers_of_other_rows(
    graph: Graph, spark: Any, tmp_path: Path, verified: list[str], mode: str
) -> None:
    """They write the same tables, before the load is planned and again before it is published."""
    lines = [person("new@x"), edge("Knows", "new@x", "ada@x")]
    if mode == "merge":
        lines.append(person("ada@x", age=77))
    file = write_lines(tmp_path / "new.jsonl", lines)
    load = bulk_load(graph._repo, spark, str(file), mode, "main")
    load.prepare(graph.snapshot())
    other = omnigraph.open(graph.uri)

    def beside(name: str) -> None:
        records = [person(name), edge("Knows", name, "bob@x"), person("bob@x", age=33)]
        other.load(write_lines(tmp_path / "beside.jsonl", records), mode="merge")

    def verb(txn: Any) -> Any:
        plan = load.verb(txn)
        beside(f"{len(verified)}-late@x")
        return plan

    beside("early@x")
    graph.publish(verb, alone=True)
    load.finish()
    assert verified == ["judged"]
    state = state_of(graph)
    ages = {row["email"]: row["age"] for row in state["Person"]}
    assert {"new@x", "early@x", "1-late@x"} <= ages.keys()
    assert ages["bob@x"] == 33
    assert mode == "append" or ages["ada@x"] == 77
    assert graph.doctor(deep=True).healthy


@pytest.mark.parametrize("mode", MODES)
def test_a_node_that_goes_meanwhile_takes_the_verdict_with_it(
    graph: Graph, spark: Any, tmp_path: Path, verified: list[str], mode: str
) -> None:
    file = write_lines(tmp_path / "new.jsonl", [person("new@x"), edge("Knows", "new@x", "ada@x")])
    load = bulk_load(graph._repo, spark, str(file), mode, "main")
    load.prepare(graph.snapshot())
    graph.mutate('delete Person where email = "ada@x"')
    with pytest.raises(omnigraph.OmnigraphError, match="ada@x"):
        graph.publish(load.verb, alone=True)
    load.finish()
    assert verified == ["judged", "judged"]
    assert graph.doctor(deep=True).healthy


def test_a_load_that_is_refused_leaves_no_plan(graph: Graph, spark: Any, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "bad.jsonl", [person("bad@x", age=999)])
    with pytest.raises(omnigraph.OmnigraphError, match="above the maximum"):
        graph.load(str(file), engine="spark", idempotency_key="bad")
    assert not list(stored_plans(graph._repo))


def test_staged_pieces_of_other_files_or_other_columns_are_not_used(
    graph: Graph, spark: Any, tmp_path: Path
) -> None:
    """A load that is resumed must be the same load: the same bytes, read the same way."""
    file = write_lines(tmp_path / "new.jsonl", [person("one@x")])

    def prepared(options: Options) -> BulkLoad:
        work = bulk_load(
            graph._repo, spark, str(file), "append", "main", options=options, load_id="id"
        )
        work.prepare(graph.snapshot())
        return work

    def plan(options: Options) -> dict[str, Any]:
        prepared(options)
        (stored,) = stored_plans(graph._repo)
        return dict(stored.state)

    first = plan(Options())
    assert first["done"]
    assert plan(Options())["seed"] == first["seed"], "the same load goes on"
    assert plan(Options(nulls="keep"))["seed"] != first["seed"], "another way of reading"
    write_lines(file, [person("two@x")])
    work = prepared(Options())
    graph.publish(work.verb, alone=True)
    work.finish()
    assert {row["email"] for row in state_of(graph)["Person"]} == {"ada@x", "bob@x", "two@x"}


def test_a_load_makes_its_branch(graph: Graph, spark: Any, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "new.jsonl", [person("new@x")])
    result = graph.load(str(file), branch="import", create_from="main", engine="spark")
    assert result.branch_created
    assert len(state_of(graph, "import")["Person"]) == 3
    assert len(state_of(graph)["Person"]) == 2


def test_repeated_rows_without_a_key_are_refused_across_pieces(
    graph: Graph, spark: Any, tmp_path: Path
) -> None:
    rows = [{"type": "Note", "data": {"id": "n", "text": f"{i}" * 300}} for i in range(4)]
    file = write_lines(tmp_path / "notes.jsonl", rows)
    load = bulk_load(graph._repo, spark, str(file), "merge", "main", tuning=Tuning(split_bytes=400))
    with pytest.raises(RepeatedRows, match="given more than once"):
        load.prepare(graph.snapshot())
    load.finish()


def test_repeated_rows_of_a_dataframe_are_named_by_id(graph: Graph, spark: Any) -> None:
    frame = spark.createDataFrame([("Bern",), ("Bern",)], "name string").repartition(2)
    with pytest.raises(omnigraph.OmnigraphError, match="'Bern' is duplicated"):
        graph.load({"City": frame}, mode="append")


@pytest.mark.s3
def test_files_and_graphs_on_an_object_store(s3_root: str, spark: Any) -> None:
    graph = omnigraph.init(s3_root + "/graph", schema=SCHEMA)
    store, key = open_remote(s3_root + "/people.jsonl")
    lines = "\n".join(json.dumps(person(f"p{i}@x")) for i in range(50))
    store.put(key, lines.encode())
    result = graph.load(s3_root + "/people.jsonl", mode="append", engine="spark")
    assert result.nodes == {"Person": 50}
    assert len(state_of(graph)["Person"]) == 50


def test_progress_is_told_while_tasks_work(
    graph: Graph, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, int | None, float | None]] = []
    monkeypatch.setattr(
        "omnigraph.storage.metrics.progress",
        lambda phase, rows=None, part=None: told.append((phase, rows, part)),
    )
    rows = [person(f"p{i}@x", note="n" * 100) for i in range(60)]
    file = write_lines(tmp_path / "people.jsonl", rows)
    tuning = Tuning(split_bytes=1_000, wave_units=4)
    load = bulk_load(graph._repo, spark, str(file), "append", "main", tuning=tuning)
    load.prepare(graph.snapshot())
    load.finish()
    phases = list(dict.fromkeys(phase for phase, _, _ in told))
    assert phases[:3] == ["staging", "verifying", "publishing"]
    assert ("staging", 60, 0.8) in told, "all rows were counted"
    parts = [part for _, _, part in told if part is not None]
    assert parts == sorted(parts)


def test_the_command_line_tells_progress_as_json(
    graph: Graph, spark: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from omnigraph.cli.main import main

    file = write_lines(tmp_path / "people.jsonl", [person(f"p{i}@x") for i in range(50)])
    words = ["load", "--store", graph.uri, "--data", str(file), "--engine", "spark"]
    assert main([*words, "--progress", "json"]) == 0
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert lines[-1]["done"]
    assert lines[-1]["rows"] == 50
    assert lines[-1]["part"] >= 0.95
    assert all({"phase", "rows_per_second", "seconds_left"} <= line.keys() for line in lines)
