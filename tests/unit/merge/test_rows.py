"""Changed rows between two versions of a table: exactly those, whatever happened to the fragments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.merge.lens import Lens, through
from omnigraph.merge.rows import Comparison, Delta, by_fragments, by_ids, ids_by_fragments
from omnigraph.model.catalog import Property
from omnigraph.model.types import PropType, Scalar
from omnigraph.storage import metrics
from omnigraph.storage.tables import ADDRESS, Table, TableEdit
from tests.support.snapshots import Graph, catalog_from, make_graph

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


def test_a_lens_shows_renamed_widened_and_added_columns(tmp_path: Path) -> None:
    old = catalog_from("node Item { code: String @key  size: I32? }").nodes["Item"]
    graph = make_graph(
        tmp_path,
        "node Item { code: String @key  size: I32? }",
        {"Item": [{"id": "a", "code": "a", "size": 3}]},
    )
    size = replace(old.properties["size"], name="width", type=PropType(Scalar.I64, nullable=True))
    level = Property("level", PropType(Scalar.I64, nullable=True), 99, default=7)
    new = replace(old, properties={"code": old.properties["code"], "level": level, "width": size})
    lens = through(graph.snapshot.table(old.table_id), old, new)
    assert isinstance(lens, Lens)
    row = {"id": "a", "code": "a", "level": 7, "width": 3}
    assert lens.scan(lens.schema.names).to_pylist() == [row]
    found = lens.scan(["id"], with_address=True)
    assert lens.take(found[ADDRESS].combine_chunks(), ["width"]).to_pylist() == [{"width": 3}]
    assert lens.lookup("width", pa.array([3]), ["level"]).to_pylist() == [{"level": 7}]
    assert lens.lookup("code", pa.array(["a"]), ["width"]).to_pylist() == [{"width": 3}]
    assert lens.lookup("level", pa.array([8]), ["width"]).num_rows == 0
    assert [b.to_pylist() for b in lens.batches(["level"])] == [[{"level": 7}]]
