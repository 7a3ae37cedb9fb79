"""Differences for people: types by identity, rows by id, changed cells alone, and the schema beside them."""

from __future__ import annotations

import json

import pytest

from omnigraph.errors import CommitPruned, OptionInvalid, TableNotFound
from omnigraph.graph import Graph
from omnigraph.storage import metrics
from tests.support.people import change, people, reshape


@pytest.fixture
def graph() -> Graph:
    made = people()
    made.tag("start")
    return made


def test_counts_then_rows_with_changed_cells_alone(graph: Graph) -> None:
    change(graph, 'update Person set { age: 9 } where name = "a"')
    change(graph, 'insert City { name: "w" }')
    change(graph, 'delete Person where name = "b"')
    found = graph.diff("start", "main")
    assert found.counts == {
        "City": {"inserted": 1, "updated": 0, "deleted": 0},
        "Person": {"inserted": 0, "updated": 1, "deleted": 1},
        "Knows": {"inserted": 0, "updated": 0, "deleted": 1},
    }
    update = next(row for row in found if row.operation == "update")
    assert (update.before, update.after) == ({"age": 0}, {"age": 9})
    delete = next(row for row in found if row.operation == "delete" and row.kind == "edge")
    assert delete.before == {"id": '["a","b"]', "src": "a", "dst": "b", "since": 1}
    assert graph.diff("main", "start").counts["Person"] == {
        "inserted": 1,
        "updated": 1,
        "deleted": 0,
    }


def test_points_may_be_branches_tags_commits_or_distances(graph: Graph) -> None:
    graph.create_branch("trial")
    commit = change(graph, 'insert City { name: "w" }', "trial")
    for one in ("main", "start", "trial~1"):
        for other in ("trial", commit):
            assert graph.diff(one, other).counts == {
                "City": {"inserted": 1, "updated": 0, "deleted": 0}
            }, f"{one}..{other}"
    assert graph.diff("main", "start").is_empty


def test_only_what_was_asked_for(graph: Graph) -> None:
    change(graph, 'update Person set { age: 9 } where name = "a"')
    change(graph, 'delete Person where name = "d"')
    change(graph, 'insert City { name: "w" }')
    only = graph.diff("start", "main", types=["Person"], operations=["delete"])
    assert [(row.type, row.id) for row in only] == [("Person", "d")]
    with pytest.raises(TableNotFound):
        graph.diff("start", "main", types=["Nobody"])
    with pytest.raises(OptionInvalid):
        graph.diff("start", "main", operations=["upsert"])


def test_renames_are_differences_of_the_schema_and_of_no_row(graph: Graph) -> None:
    reshape(graph, "nick: String?", 'alias: String? @rename_from("nick")')
    reshape(graph, "age: I64?", "age: I64?\n  level: I64? @default(3)")
    found = graph.diff("start", "main")
    assert not found.counts
    assert {step["kind"] for step in found.schema} == {"rename_property", "add_property"}
    change(graph, 'update Person set { alias: "al", level: 4 } where name = "a"')
    (row,) = graph.diff("start", "main")
    assert (row.before, row.after) == ({"alias": None, "level": 3}, {"alias": "al", "level": 4})


def test_types_that_came_or_went_show_all_their_rows(graph: Graph) -> None:
    reshape(graph, "node City", "node Pet { name: String @key }\nnode City")
    change(graph, 'insert Pet { name: "rex" }')
    assert graph.diff("start", "main").counts["Pet"]["inserted"] == 1
    assert graph.diff("main", "start").counts["Pet"]["deleted"] == 1


def test_the_shapes_for_machines(graph: Graph) -> None:
    change(graph, 'update Person set { age: 9 } where name = "a"')
    found = graph.diff("start", "main")
    document = json.loads(json.dumps(found.to_json()))
    assert document["rows"] == [
        {
            "type": "Person",
            "kind": "node",
            "operation": "update",
            "id": "a",
            "before": {"age": 0},
            "after": {"age": 9},
        }
    ]
    table = found.to_arrow()["Person"]
    assert table.column_names == ["operation", "id", "before", "after"]
    assert table["after"].to_pylist()[0]["age"] == 9
    assert "~ Person a  age: 0 → 9" in str(found)


def test_compaction_is_no_change_and_its_cost_follows_the_change(graph: Graph) -> None:
    many = [{"name": f"p{i}"} for i in range(30_000)]
    graph.load({"Person": many})
    graph.optimize()
    graph.tag("before")
    change(graph, 'update Person set { age: 9 } where name = "a"')
    graph.optimize()
    graph.diff("before", "main")
    with metrics.operation("diff") as cost:
        found = graph.diff("before", "main")
    assert [(row.id, row.after) for row in found] == [("a", {"age": 9})]
    assert cost.bytes_read < 200_000, f"{cost.bytes_read} bytes read to compare one row"


def test_a_pruned_point_is_named(graph: Graph) -> None:
    first = change(graph, 'insert City { name: "w" }')
    for number in range(4):
        change(graph, f'insert City {{ name: "w{number}" }}')
    graph.cleanup(keep=1)
    with pytest.raises(CommitPruned):
        graph.diff(first, "main")
