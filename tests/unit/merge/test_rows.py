"""Changed rows between two versions of a table: exactly those, whatever happened to the fragments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.merge.rows import (
    Comparison,
    Delta,
    by_fragments,
    by_ids,
    everything,
    ids_by_fragments,
    no_rows,
    unmoved,
)
from omnigraph.storage import metrics
from omnigraph.storage.tables import ADDRESS, Table, TableEdit
from tests.support.snapshots import Graph, make_graph

SCHEMA = """
node Item {
  code: String @key
  price: F64?
  tags: [String]?
  place: Vector(2)?
}
"""
Rows = dict[str, dict[str, Any]]


def item(code: str, price: float | None = 0.0) -> dict[str, Any]:
    return {"id": code, "code": code, "price": price, "tags": [code], "place": [0.0, 1.0]}


def table_of(graph: Graph) -> Table:
    return graph.snapshot.table("n1")


def held(table: Table) -> Rows:
    return {row["id"]: row for row in table.scan(table.schema.names).to_pylist()}


def shown(delta: Delta) -> tuple[Rows, Rows]:
    sides = (part.drop_columns([ADDRESS]).to_pylist() for part in (delta.before, delta.after))
    before, after = ({row["id"]: row for row in side} for side in sides)
    return before, after


def expected(one: Rows, other: Rows) -> tuple[Rows, Rows]:
    """By looking at every row."""
    changed = [i for i in {**one, **other} if one.get(i) != other.get(i)]
    return {i: one[i] for i in changed if i in one}, {i: other[i] for i in changed if i in other}


def replace_row(graph: Graph, code: str, price: float | None) -> None:
    graph.delete("Item", [code])
    graph.append("Item", [item(code, price)])


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = make_graph(tmp_path, SCHEMA, {"Item": [item(f"k{i}") for i in range(50)]})
    made.append("Item", [item(f"m{i}") for i in range(50)])
    return made


Step = tuple[str, int, float | None]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("put", "delete", "compact")),
        st.integers(0, 7),
        st.sampled_from((None, 0.0, 1.0, float("inf"))),
    ),
    max_size=8,
)


@given(before=STEPS, after=STEPS)
def test_any_two_versions_differ_in_exactly_the_rows_found(
    tmp_path_factory: pytest.TempPathFactory, before: list[Step], after: list[Step]
) -> None:
    folder = tmp_path_factory.mktemp("table")
    graph = make_graph(folder, SCHEMA, {"Item": [item(f"k{i}") for i in range(5)]})
    for steps in (before, after):
        start = graph.now() if steps is after else None
        for what, number, price in steps:
            match what:
                case "put":
                    replace_row(graph, f"k{number}", price)
                case "delete":
                    graph.delete("Item", [f"k{number}"])
                case _:
                    graph.edit("Item", TableEdit(compact=True))
    assert start is not None
    one, other = table_of(start), table_of(graph)
    wanted = expected(held(one), held(other))
    assert shown(by_fragments(one, other)) == wanted
    assert shown(by_fragments(other, one)) == wanted[::-1]
    ids = ids_by_fragments(one, other)
    assert set(ids.to_pylist()) >= {*wanted[0], *wanted[1]}
    assert shown(by_ids(one, other, ids)) == wanted


def test_fragments_both_versions_share_are_not_read(graph: Graph) -> None:
    start = graph.now()
    replace_row(graph, "k7", 5.0)
    compared = Comparison.of(table_of(start), table_of(graph))
    assert not compared.mine, "an old fragment would be read as a whole"
    assert sum(f.physical_rows for f in compared.yours) <= 51
    assert compared.rows <= 52
    assert shown(by_fragments(table_of(start), table_of(graph))) == (
        {"k7": item("k7")},
        {"k7": item("k7", 5.0)},
    )


def test_equal_versions_cost_no_request(graph: Graph) -> None:
    start = graph.now()
    with metrics.operation("compare") as cost:
        assert by_fragments(table_of(start), table_of(graph)).is_empty
    assert cost.ops == 0


def test_rows_written_again_with_the_same_values_did_not_change(graph: Graph) -> None:
    start = graph.now()
    replace_row(graph, "k7", 0.0)
    graph.edit("Item", TableEdit(compact=True))
    assert by_fragments(table_of(start), table_of(graph)).is_empty


def test_not_a_number_is_no_change_of_itself(graph: Graph) -> None:
    replace_row(graph, "k7", float("nan"))
    start = graph.now()
    replace_row(graph, "k7", float("nan"))
    assert by_fragments(table_of(start), table_of(graph)).is_empty


def test_the_rows_to_read_are_counted_before_any_is_read(graph: Graph) -> None:
    start = graph.now()
    graph.delete("Item", ["k1", "k2", "m1"])
    graph.append("Item", [item("n1"), item("n2")])
    assert Comparison.of(table_of(start), table_of(graph)).rows == 3 + 2
    assert Comparison.of(table_of(graph), table_of(start)).rows == 3 + 2
    later = graph.now()
    later.edit("Item", TableEdit(compact=True))
    compared = Comparison.of(table_of(graph), table_of(later))
    assert compared.rows == sum(
        f.physical_rows - f.deleted_rows for f in (*compared.mine, *compared.yours)
    )
    assert compared.rows > 0


def test_rows_of_a_version_are_found_where_another_has_them(graph: Graph) -> None:
    start = graph.now()
    before = everything(table_of(start))
    graph.delete("Item", ["k3", "m4"])
    graph.append("Item", [item("k3", 1.0)])
    now = table_of(graph)
    same = unmoved(before, table_of(start), now)
    assert set(same["id"].to_pylist()) == {*held(table_of(start))} - {"k3", "m4"}
    found = now.take(same[ADDRESS].combine_chunks(), ["id"])
    assert found["id"].to_pylist() == same["id"].to_pylist()
    some = before.filter(pc.is_in(before["id"], value_set=pa.array(["k3", "m7"])))
    assert unmoved(some, table_of(start), now)["id"].to_pylist() == ["m7"]


def test_rows_that_were_written_again_have_moved(graph: Graph) -> None:
    graph.append("Item", [item("n1"), item("n2")])
    start = graph.now()
    graph.edit("Item", TableEdit(compact=True))
    again = {f.fragment_id for f in Comparison.of(table_of(start), table_of(graph)).mine}
    assert again, "nothing was written again"
    before = everything(table_of(start))
    stayed = [row["id"] for row in before.to_pylist() if row[ADDRESS] // 2**32 not in again]
    moved = unmoved(before, table_of(start), table_of(graph))
    assert moved["id"].to_pylist() == stayed


def test_a_change_is_an_insertion_an_update_or_a_deletion(graph: Graph) -> None:
    start = graph.now()
    graph.delete("Item", ["k1"])
    replace_row(graph, "k2", 5.0)
    graph.append("Item", [item("n1")])
    found = by_fragments(table_of(start), table_of(graph))
    parts = (found.inserted, found.updated, found.deleted)
    assert [part["id"].to_pylist() for part in parts] == [["n1"], ["k2"], ["k1"]]
    assert found.updated["price"].to_pylist() == [5.0]
    assert sorted(found.ids.to_pylist()) == ["k1", "k2", "n1"]
    assert found.ids.to_pylist()[-1] == "n1", "what is new comes last"
    some = found.filter(pa.array(["k1", "n1"]))
    assert (some.before["id"].to_pylist(), some.after["id"].to_pylist()) == (["k1"], ["n1"])


def test_a_change_of_one_side_alone_is_not_empty() -> None:
    schema = pa.schema([pa.field("id", pa.string())])
    nothing = no_rows(schema)
    one = pa.table({"id": ["a"], ADDRESS: pa.array([1], pa.uint64())})
    assert nothing.column_names == ["id", ADDRESS]
    assert Delta(nothing, nothing).is_empty
    assert not Delta(one, nothing).is_empty
    assert not Delta(nothing, one).is_empty
