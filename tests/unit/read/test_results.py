"""What a person holds after a query."""

from __future__ import annotations

import datetime as dt
import importlib
import json
import uuid
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.errors import OmnigraphError
from omnigraph.read import result as result_module
from omnigraph.values.spelling import to_json
from tests.support.snapshots import Graph, ask, make_graph

SCHEMA = """
node Person {
  name: String @key
  born: Date?
  seen: DateTime?
  score: F64?
  big: I64?
  tags: [String]?
  photo: Blob?
}
edge Knows: Person -> Person { since: I64? }
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    ann = {
        "id": "ann",
        "name": "ann",
        "born": dt.date(1990, 1, 2),
        "seen": dt.datetime(2024, 1, 2, 3, 4, 5, 678000, dt.UTC),
        "score": 1.5,
        "big": 2**60,
        "tags": ["x"],
    }
    people = [ann, {"id": "bob", "name": "bob", "score": float("inf")}]
    knows = [{"id": "k", "src": "ann", "dst": "bob", "since": 3}]
    return make_graph(tmp_path, SCHEMA, {"Person": people, "Knows": knows})


def test_rows_columns_length_and_iteration(graph: Graph) -> None:
    found = ask(graph, "match { $p: Person } return { $p.name, $p.score as s } order { $p.name }")
    assert found.columns == ["p.name", "s"]
    assert len(found) == 2
    assert list(found) == found.rows
    assert found[0] == {"p.name": "ann", "s": 1.5}
    assert found.commit == graph.snapshot.commit_id


def test_one_and_scalar_want_exactly_one_row(graph: Graph) -> None:
    assert ask(graph, "match { $p: Person } return { count(*) as n }").scalar() == 2
    with pytest.raises(OmnigraphError) as refused:
        ask(graph, "match { $p: Person } return { $p.name as n }").one()
    assert refused.value.code == "not_one_row"


def test_arrow_has_the_declared_types_and_is_a_stream(graph: Graph) -> None:
    found = ask(graph, "match { $p: Person } return { $p.name as n, $p.born as b, $p.tags as t }")
    kinds = [field.type for field in found.to_arrow().schema]
    assert kinds == [pa.string(), pa.date32(), pa.list_(pa.field("item", pa.string()))]
    assert pa.table(found).num_rows == 2
    assert sum(batch.num_rows for batch in found.to_batches(1)) == 2


def test_json_shapes(graph: Graph) -> None:
    text = "match { $p: Person } return { $p.born as b, $p.seen as a, $p.score as s, $p.big as g } order { $p.name }"
    whole = ask(graph, text).to_json()
    assert json.loads(json.dumps(whole)) == {
        "columns": ["b", "a", "s", "g"],
        "rows": [
            {"b": "1990-01-02", "a": "2024-01-02T03:04:05.678Z", "s": 1.5, "g": 2**60},
            {"b": None, "a": None, "s": "Infinity", "g": None},
        ],
        "row_count": 2,
        "graph_commit_id": graph.snapshot.commit_id,
    }


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (float("nan"), "NaN"),
        (-float("inf"), "-Infinity"),
        (2**53, str(2**53)),
        (2**53 - 1, 2**53 - 1),
    ],
)
def test_numbers_json_cannot_hold_are_texts(value: float, wanted: object) -> None:
    assert to_json(value, safe_integers=True) == wanted


def test_an_entity_is_an_object_without_its_blobs(graph: Graph) -> None:
    found = ask(
        graph, "match { $p: Person $p $e:knows $q } return { entity($p) as p, entity($e) as e }"
    )
    row = found.one()
    assert row["e"] == {"id": "k", "type": "Knows", "from": "ann", "to": "bob", "since": 3}
    assert "photo" not in row["p"]
    assert row["p"]["type"] == "Person"


def test_entities_and_paths_become_a_networkx_graph(graph: Graph) -> None:
    found = ask(
        graph, "match { $p: Person $p $e:knows $q } return { entity($p) as p, entity($e) as e }"
    )
    made = found.to_networkx()
    assert made.nodes["ann"]["type"] == "Person"
    assert made.edges["ann", "bob", "k"]["since"] == 3


def test_pandas_and_polars_get_the_columns(graph: Graph) -> None:
    found = ask(
        graph, "match { $p: Person } return { $p.name as n, $p.score as s } order { $p.name }"
    )
    assert found.to_pandas()["n"].tolist() == ["ann", "bob"]
    assert found.to_polars()["s"].to_list() == [1.5, float("inf")]


def test_whole_numbers_beside_nulls_stay_whole_in_pandas() -> None:
    schema = "node P { name: String @key  n: I64?  u: U64?  i: I32?  f: F64? }"
    graph = omnigraph.init(f"memory://{uuid.uuid4()}", schema=schema)
    graph.load(
        {"P": [{"name": "a", "n": 2**60 + 1, "u": 2**64 - 1, "i": 7, "f": 0.5}, {"name": "b"}]}
    )
    found = graph.query(
        "match { $p: P } return { $p.n as n, $p.u as u, $p.i as i, $p.f as f } order { $p.name }"
    )
    frame = found.to_pandas()
    assert [str(kind) for kind in frame.dtypes] == ["Int64", "UInt64", "Int32", "float64"]
    assert [frame[name].tolist()[0] for name in "nui"] == [2**60 + 1, 2**64 - 1, 7]
    assert frame.isna().iloc[1].all()
    one = graph.query('match { $p: P { name: "a" } } return { $p.n as n }').to_pandas()
    assert str(one.dtypes["n"]) == "int64", "without nulls as ever"


def test_a_missing_package_is_named(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(OmnigraphError, match="polars") as refused:
        ask(graph, "match { $p: Person } return { $p.@id as p }").to_polars()
    assert refused.value.code == "package_missing"


def test_a_notebook_shows_escaped_cells_and_says_what_it_left_out(graph: Graph) -> None:
    graph.append("Person", [{"id": f"<b>{i}", "name": f"<b>{i}"} for i in range(60)])
    shown = ask(
        graph, "match { $p: Person } return { $p.name as n } order { $p.name }"
    )._repr_html_()
    assert "&lt;b&gt;0" in shown
    assert "12 more rows" in shown


def test_a_notebook_draws_the_graph_of_entities_and_paths(graph: Graph) -> None:
    text = "match { $p: Person $p $e:knows $q } return { entity($p) as p, entity($e) as e }"
    shown = ask(graph, text)._repr_html_()
    assert "<details open><summary>graph: 2 nodes, 1 edge</summary><svg" in shown
    assert 'aria-label="2 nodes, 1 edge"' in shown
    path = 'match { $a: Person { name: "ann" } $w = path $a knows{1,2} $b } return { $w as way }'
    assert "<summary>graph: 2 nodes, 1 edge</summary>" in ask(graph, path)._repr_html_()


def test_a_notebook_draws_nothing_where_there_is_nothing_to_draw(graph: Graph) -> None:
    assert "<svg" not in ask(graph, "match { $p: Person } return { $p.name as n }")._repr_html_()
    none = 'match { $p: Person { name: "nobody" } } return { entity($p) as p }'
    assert "<svg" not in ask(graph, none)._repr_html_()
    unlinked = ask(graph, "match { $p: Person } return { entity($p) as p }")._repr_html_()
    assert "<details><summary>graph: 2 nodes, 0 edges</summary>" in unlinked


def test_large_results_are_iterated_in_pieces(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result_module, "BATCH_ROWS", 1)
    found = ask(graph, "match { $p: Person } return { $p.name as n } order { $p.name }")
    assert [row["n"] for row in found] == ["ann", "bob"]
    assert "rows" not in found.__dict__
