"""A table in the columns of another version of its type: what it is asked, it answers in the words of that version."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.lang.ir import CompareOp as Op
from omnigraph.merge.schema_view import Lens, column_edit, seen_as, through
from omnigraph.model.catalog import NodeType, Property
from omnigraph.model.columns import arrow_schema
from omnigraph.model.types import PropType, Scalar
from omnigraph.storage.tables import ADDRESS, ColumnEdit
from omnigraph.values.columns import default_of
from tests.support.conditions import compare
from tests.support.snapshots import Graph, catalog_from, make_graph

SCHEMA = "node Item { code: String @key  size: I32?  note: String? }\nnode Other { name: String }"
ROWS = [
    {"id": c, "code": c, "size": n, "note": f"about {c}"} for n, c in enumerate("abcd", start=1)
]
WIDE = PropType(Scalar.I64, nullable=True)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return make_graph(tmp_path, SCHEMA, {"Item": ROWS})


def reshaped(old: NodeType) -> NodeType:
    """`size` is called width and is wider, `level` came, `note` went."""
    width = replace(old.properties["size"], name="width", type=WIDE)
    level = Property("level", WIDE, 99, default=7)
    return replace(old, properties={"code": old.properties["code"], "level": level, "width": width})


@pytest.fixture
def lens(graph: Graph) -> Lens:
    old = graph.catalog.nodes["Item"]
    found = through(graph.snapshot.table(old.table_id), old, reshaped(old))
    assert isinstance(found, Lens)
    return found


def test_what_differs_between_two_versions_of_a_type(graph: Graph) -> None:
    old = graph.catalog.nodes["Item"]
    new = reshaped(old)
    assert column_edit(old, new) == ColumnEdit(
        add=((arrow_schema(new).field("level"), 7),),
        rename=(("size", "width"),),
        drop=("note",),
        cast=(pa.field("size", pa.int64(), nullable=True),),
    )
    assert column_edit(old, old) is None
    table = graph.snapshot.table(old.table_id)
    assert through(table, old, old) is table


@pytest.mark.parametrize(
    ("kind", "default", "value"),
    [
        (PropType(Scalar.DATE, nullable=True), "2024-01-02", dt.date(2024, 1, 2)),
        (PropType(Scalar.DATE, nullable=True), None, None),
        (
            PropType(Scalar.DATE, nullable=True, is_list=True),
            ["2024-01-02"],
            [dt.date(2024, 1, 2)],
        ),
        (
            PropType(Scalar.DATETIME, nullable=True),
            "2024-01-02T03:04:05Z",
            dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
        ),
        (WIDE, 7, 7),
    ],
)
def test_a_default_is_a_value_of_its_type(kind: PropType, default: object, value: object) -> None:
    assert default_of(Property("p", kind, 1, default=default)).as_py() == value


def test_rows_are_told_in_the_new_words(lens: Lens) -> None:
    assert lens.schema.names == ["id", "code", "level", "width"]
    assert lens.scan(lens.schema.names).to_pylist()[0] == {
        "id": "a",
        "code": "a",
        "level": 7,
        "width": 1,
    }
    assert lens.scan(["width"]).schema.field("width").type == pa.int64()
    assert lens.scan(["width", "id"], with_address=True).column_names == ["width", "id", ADDRESS]
    assert lens.scan(["width", "id"]).column_names == ["width", "id"]
    assert lens.scan(["id"], limit=2)["id"].to_pylist() == ["a", "b"]
    assert lens.scan([]).column_names == [ADDRESS]


def test_rows_are_chosen_in_the_new_words(lens: Lens) -> None:
    small = compare("width", Op.LE, 2)
    assert lens.scan(["id"], small)["id"].to_pylist() == ["a", "b"]
    assert lens.scan(["id"], small, limit=1)["id"].to_pylist() == ["a"]
    assert lens.scan(["id"], compare("level", Op.EQ, 8)).num_rows == 0
    assert (lens.count(), lens.count(small), lens.count(compare("level", Op.EQ, 7))) == (4, 2, 4)


def test_batches_are_told_and_chosen_in_the_new_words(lens: Lens) -> None:
    def read(*columns: str, **options: object) -> list[dict[str, object]]:
        batches = lens.batches(columns, **options)  # type: ignore[arg-type]
        return [row for batch in batches for row in batch.to_pylist()]

    assert read("width") == [{"width": n} for n in (1, 2, 3, 4)]
    assert read("level", predicate=compare("width", Op.GT, 3)) == [{"level": 7}]
    assert read("id", predicate=compare("width", Op.GT, 3), with_address=True) == [
        {"id": "d", ADDRESS: 3}
    ]
    assert read() == [{ADDRESS: n} for n in range(4)]
    assert read("id", fragments=[]) == []
    assert [batch.num_rows for batch in lens.batches(["id"], batch_rows=3)] == [3, 1]


@pytest.mark.parametrize(
    ("column", "wanted", "found"),
    [
        ("code", pa.array(["b", "z"]), ["b"]),
        ("width", pa.array([2, 9]), ["b"]),
        ("width", pa.array([2], pa.int32()), ["b"]),
        ("level", pa.array([7]), ["a", "b", "c", "d"]),
        ("level", pa.array([8]), []),
    ],
)
def test_rows_are_looked_up_in_the_new_words(
    lens: Lens, column: str, wanted: pa.Array, found: list[str]
) -> None:
    rows = lens.lookup(column, wanted, ["level", "id"])
    assert rows.column_names == ["level", "id"]
    assert rows["id"].to_pylist() == found
    assert set(rows["level"].to_pylist()) <= {7}
    assert lens.lookup(column, wanted, ["id"], with_address=True).column_names == ["id", ADDRESS]
    assert lens.lookup(column, wanted, []).column_names == [ADDRESS]


def test_rows_are_taken_by_their_places(lens: Lens) -> None:
    places = pa.array([2, 0], pa.uint64())
    assert lens.take(places, ["width", "level"]).to_pylist() == [
        {"width": 3, "level": 7},
        {"width": 1, "level": 7},
    ]
    assert lens.take(places, ["level"]).to_pylist() == [{"level": 7}, {"level": 7}]


def test_what_is_stored_is_that_of_the_table_behind(graph: Graph, lens: Lens) -> None:
    graph.delete("Item", ["b"])
    graph.index("Item", "code")
    old = graph.catalog.nodes["Item"]
    table = graph.snapshot.table(old.table_id)
    seen = through(table, old, reshaped(old))
    assert (seen.ref, seen.fragments(), seen.indices()) == (
        table.ref,
        table.fragments(),
        table.indices(),
    )
    assert seen.indices()
    assert seen.files() == table.files()
    (fragment,) = seen.fragments()
    assert seen.deleted_rows(fragment).to_pylist() == [1]
    assert seen.count() == 3


def test_a_state_is_seen_in_the_words_of_another_schema(graph: Graph) -> None:
    state = graph.snapshot
    item = state.catalog.nodes["Item"]
    new = replace(state.catalog, nodes={"Item": reshaped(item)})
    assert seen_as(state, state.catalog) is state
    seen = seen_as(state, new)
    assert (seen.commit, seen.catalog, seen.root) == (state.commit, new, state.root)
    assert seen.table_of(item).schema.names == ["id", "code", "level", "width"]
    other = state.catalog.nodes["Other"]
    assert seen.table_of(other).schema == arrow_schema(other), "an unknown type is as it is stored"
    assert seen.tables.stage == state.tables.stage, "everything else is the store's"


def test_edges_keep_their_ends(tmp_path: Path) -> None:
    text = "node N { name: String @key }\nedge E: N -> N { weight: I64? }"
    row = {"id": "e", "src": "a", "dst": "b", "weight": 1}
    graph = make_graph(tmp_path, text, {"E": [row]})
    edge = graph.catalog.edges["E"]
    weight = replace(edge.properties["weight"], name="mass")
    seen = through(graph.snapshot.table_of(edge), edge, replace(edge, properties={"mass": weight}))
    assert seen.scan(seen.schema.names).to_pylist() == [
        {"id": "e", "src": "a", "dst": "b", "mass": 1}
    ]
    assert seen.lookup("src", pa.array(["a"]), ["dst"]).to_pylist() == [{"dst": "b"}]
    assert catalog_from(text) == graph.catalog
