"""Loads beside other writers: what is found again after a lost race, and what the driver holds meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph, OmnigraphError
from omnigraph.pipeline import judging, lookups, verify
from omnigraph.pipeline.load import BulkLoad, bulk_load
from omnigraph.pipeline.source import GraphWriter, TypeState, Wish
from omnigraph.write.input.change_records import ChangeFormat
from omnigraph.write.input.mapping import RowMap, Wide
from omnigraph.write.resolve import Mode
from tests.pipeline.planes import state_of, write_lines

SCHEMA = """
node P { name: String @key  value: I32?  code: I32? @unique }
node Q { name: String @key }
edge K: P -> P { n: I32 }
edge One: P -> P @card(1..) { n: I32 }
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = omnigraph.init(tmp_path / "graph", schema=SCHEMA)
    ends = [
        {"id": "k1", "from": "a", "to": "b", "n": 1},
        {"id": "k2", "from": "b", "to": "c", "n": 2},
    ]
    one = [{"id": "o1", "from": "c", "to": "d", "n": 1}]
    made.load({"P": [{"name": n} for n in "abcd"], "K": ends, "One": one})
    return made


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a load does: `staged` when it reads its rows, `judged` when it is verified as a whole."""
    done: list[str] = []
    stage, judge = BulkLoad._stage, judging._is_valid

    def staged(*args: Any) -> Any:
        done.append("staged")
        return stage(*args)

    def judged(*args: Any) -> Any:
        done.append("judged")
        return judge(*args)

    monkeypatch.setattr(BulkLoad, "_stage", staged)
    monkeypatch.setattr(judging, "_is_valid", judged)
    return done


@pytest.fixture(params=["by the driver", "by tasks"])
def facts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who makes the facts of a load."""
    if request.param == "by tasks":
        monkeypatch.setattr(lookups, "LOOKED_UP_ROWS_MAX", -1)


def prepared(graph: Graph, spark: Any, source: Any, mode: str = "merge") -> BulkLoad:
    load = bulk_load(graph._repo, spark, source, mode, "main")
    load.prepare(graph.snapshot())
    return load


def publish(graph: Graph, load: BulkLoad) -> None:
    try:
        graph.publish(load.verb, alone=True)
    finally:
        load.finish()


def deleting(folder: Path, *names: str) -> Wide:
    """Change records that delete nodes."""
    file = folder / "deleted.csv"
    file.write_text("op,at,key\n" + "".join(f"d,1,{name}\n" for name in names))
    return Wide(str(file), (RowMap("P", (("name", "key"),)),), changes=ChangeFormat("op", "at"))


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_rows_are_read_once_if_only_the_verdict_is_lost(
    graph: Graph, spark: Any, tmp_path: Path, work: list[str], mode: str, facts: None
) -> None:
    row = {"edge": "K", "from": "a", "to": "d", "data": {"n": 3}}
    load = prepared(graph, spark, str(write_lines(tmp_path / "new.jsonl", [row])), mode)
    graph.load({"P": [{"name": "d", "value": 9}]})  # an end of the new edge
    publish(graph, load)
    assert work == ["staged", "judged", "judged"]
    assert len(state_of(graph)["K"]) == 3


def test_rows_that_others_changed_are_merged_again(
    graph: Graph, spark: Any, tmp_path: Path, work: list[str], facts: None
) -> None:
    row = {"type": "P", "data": {"name": "a", "value": 7}}
    load = prepared(graph, spark, str(write_lines(tmp_path / "new.jsonl", [row])))
    graph.load({"P": [{"name": "a", "code": 5}]})
    publish(graph, load)
    assert work == ["staged", "judged"] * 2
    (ours,) = (row for row in state_of(graph)["P"] if row["name"] == "a")
    assert (ours["value"], ours["code"]) == (7, 5)


def test_deletions_carry_over_beside_writers_of_other_rows(
    graph: Graph, spark: Any, tmp_path: Path, work: list[str], facts: None
) -> None:
    load = prepared(graph, spark, deleting(tmp_path, "b"))
    more = {"P": [{"name": "e"}], "K": [{"from": "c", "to": "e", "n": 4}]}
    graph.load(more)
    publish(graph, load)
    assert work == ["staged", "judged"]
    state = state_of(graph)
    assert {row["name"] for row in state["P"]} == {"a", "c", "d", "e"}
    assert [(row["src"], row["dst"]) for row in state["K"]] == [("c", "e")]
    assert [(row["src"], row["dst"]) for row in state["One"]] == [("c", "d")]
    assert graph.doctor(deep=True).healthy


def test_an_edge_that_came_to_a_deleted_node_goes_too(
    graph: Graph, spark: Any, tmp_path: Path, work: list[str], facts: None
) -> None:
    load = prepared(graph, spark, deleting(tmp_path, "b", "nobody"))
    graph.load({"K": [{"from": "d", "to": "b", "n": 4}, {"from": "d", "to": "a", "n": 5}]})
    publish(graph, load)
    assert work == ["staged", "judged"] * 2
    assert [(row["src"], row["dst"]) for row in state_of(graph)["K"]] == [("d", "a")]


def test_a_source_left_by_a_changed_edge_is_counted_among_what_others_do(
    graph: Graph, spark: Any, tmp_path: Path, facts: None
) -> None:
    """Each write leaves the source one edge; both would leave it none."""
    graph.load({"One": [{"id": "o2", "from": "c", "to": "a", "n": 3}]})
    row = {"edge": "One", "from": "d", "to": "b", "data": {"id": "o1", "n": 1}}
    load = prepared(graph, spark, str(write_lines(tmp_path / "new.jsonl", [row])))
    graph.mutate("delete One where n = 3")
    with pytest.raises(OmnigraphError, match="would have 0"):
        publish(graph, load)


def test_of_rows_before_a_merge_the_driver_gets_a_byte_or_two_each(
    graph: Graph, spark: Any
) -> None:
    count = 20_000
    graph.load({"P": pa.table({"name": [f"name of a person {i}" for i in range(count)]})})
    frame = spark.range(count).selectExpr("concat('name of a person ', id) AS name", "7 AS value")
    load = prepared(graph, spark, {"P": frame})
    staged = load._staged
    load.finish()
    assert staged is not None
    held = sum(len(rows) for one in staged.splits for rows in one.before.values())
    assert 0 < held < 3 * count


# --- the data source -----------------------------------------------------------------------------------------------


def written(graph: Graph, kind: str, **row: Any) -> tuple[GraphWriter, Any]:
    """A merge of one row that a task has written."""
    writer = GraphWriter(TypeState.of({"graph": graph.uri, "type": kind}), Wish(Mode.MERGE), None)
    batch = pa.RecordBatch.from_pylist([row])
    return writer, writer.write(iter([batch]))


def test_rows_written_again_under_a_key_are_not_judged_beside_themselves(graph: Graph) -> None:
    target, wish = {"graph": graph.uri, "type": "P"}, Wish(Mode.APPEND, key="day 1")
    for _ in range(2):
        writer = GraphWriter(TypeState.of(target), wish, None)
        writer.commit([writer.write(iter([pa.RecordBatch.from_pylist([{"name": "new"}])]))])
    assert len(state_of(graph)["P"]) == 5


def test_a_merge_by_the_data_source_carries_over_other_writes_and_upkeep(graph: Graph) -> None:
    writer, message = written(graph, "P", name="a", value=7)
    graph.load({"Q": [{"name": "other"}], "P": [{"name": "e"}, {"name": "b", "value": 2}]})
    graph.optimize()
    writer.commit([message])
    rows = {row["name"]: row["value"] for row in state_of(graph)["P"]}
    assert rows == {"a": 7, "b": 2, "c": None, "d": None, "e": None}
    assert graph.doctor(deep=True).healthy


def test_a_merge_by_the_data_source_is_verified_again(graph: Graph) -> None:
    """Another row took the unique value, which no row of the merge was completed from."""
    writer, message = written(graph, "P", name="a", code=5)
    graph.load({"P": [{"name": "b", "code": 5}]})
    with pytest.raises(OmnigraphError, match="code"):
        writer.commit([message])
    writer, message = written(graph, "P", name="a", code=6)
    graph.load({"P": [{"name": "b", "code": 6}]})
    graph.load({"P": [{"name": "b", "code": 7}]})
    writer.commit([message])
    rows = {row["name"]: row["code"] for row in state_of(graph)["P"]}
    assert (rows["a"], rows["b"]) == (6, 7)


def test_a_merge_by_the_data_source_of_a_row_others_changed_is_a_conflict(graph: Graph) -> None:
    writer, message = written(graph, "P", name="a", value=7)
    graph.load({"P": [{"name": "a", "code": 5}]})
    with pytest.raises(omnigraph.OmnigraphError) as refused:
        writer.commit([message])
    assert refused.value.code == "conflict"


@pytest.mark.parametrize("held", [0, 1_000], ids=["on disk", "in memory"])
def test_many_rows_written_by_the_data_source_are_judged_in_bounded_memory(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    """No column of a version beyond the bound is held as a whole."""
    whole: list[int] = []
    named = verify.InProcess._named

    def seen(judge: Any, rows: Any) -> str:
        whole.extend([rows.num_rows] if isinstance(rows, pa.Table) else [])
        return named(judge, rows)

    monkeypatch.setattr(lookups, "LOOKED_UP_ROWS_MAX", -1)
    monkeypatch.setattr(verify, "HELD_ROWS_MAX", held)
    monkeypatch.setattr(verify.InProcess, "_named", seen)
    writer, message = written(graph, "One", id="o2", n=2, **{"from": "c", "to": "a"})
    writer.commit([message])
    writer, message = written(graph, "One", id="o1", n=1, **{"from": "d", "to": "b"})
    writer.commit([message])
    assert len(state_of(graph)["One"]) == 2
    writer, message = written(graph, "One", id="o2", n=2, **{"from": "d", "to": "a"})
    with pytest.raises(OmnigraphError, match="would have 0"):
        writer.commit([message])
    assert max(whole, default=0) <= held
