"""Differences for people: types by identity, rows by id, changed cells alone, and the schema beside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omnigraph.errors import CommitPruned, OptionInvalid, TableNotFound
from omnigraph.graph import Graph, init
from omnigraph.merge.diff import SHOWN_ROWS_MAX
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


def test_from_the_merge_base_a_difference_is_what_a_merge_brings_along(graph: Graph) -> None:
    """Main moved on meanwhile: what it did is no change of the branch."""
    graph.create_branch("trial")
    change(graph, 'insert City { name: "mine" }', "trial")
    change(graph, 'insert City { name: "theirs" }')
    change(graph, 'update Person set { age: 9 } where name = "a"')
    found = graph.diff("main", "trial", from_merge_base=True)
    assert [(row.operation, row.type, row.id) for row in found] == [("insert", "City", "mine")]
    assert found.counts == graph.merge("trial", dry_run=True).counts
    assert graph.diff("main", "trial").counts["City"]["deleted"] == 1, (
        "of the heads, both sides show"
    )
    graph.merge("trial")
    assert graph.diff("main", "trial", from_merge_base=True).is_empty
    change(graph, 'insert City { name: "later" }', "trial")
    later = graph.diff("main", "trial", from_merge_base=True)
    assert [row.id for row in later] == ["later"], "since it was last merged"


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


def test_a_text_for_people(graph: Graph) -> None:
    change(graph, 'update Person set { age: 9, nick: "al" } where name = "a"')
    change(graph, 'insert City { name: "w" }')
    change(graph, 'insert Knows { from: "c", to: "d", since: 7 }')
    change(graph, 'delete City where name = "x"')
    assert str(graph.diff("start", "main")).splitlines() == [
        f"{graph.diff('start', 'main').from_commit}..{graph.snapshot().commit_id}",
        "City  +1  -1",
        "Person  ~1",
        "Knows  +1",
        "  + City w  name='w'",
        "  - City x  ",
        "  ~ Person a  age: 0 → 9  nick: None → 'al'",
        "  + Knows [\"c\",\"d\"]  src='c'  dst='d'  since=7",
    ]


def test_the_text_tells_the_schema_and_stops_after_some_rows(graph: Graph) -> None:
    reshape(graph, "age: I64?", "age: I64?\n  level: I64?")
    text = str(graph.diff("start", "main"))
    assert "schema kind=add_property" in text
    assert "None" not in text, "what a step does not say is left out"
    graph.load({"City": [{"name": f"c{i:03}"} for i in range(SHOWN_ROWS_MAX)]})
    lines = str(graph.diff("start", "main")).splitlines()
    assert lines[-1].startswith(f"  + City c{SHOWN_ROWS_MAX - 1:03}"), "all of them fit"
    change(graph, 'insert City { name: "z1" }')
    change(graph, 'insert City { name: "z2" }')
    lines = str(graph.diff("start", "main")).splitlines()
    assert lines[-1] == "… and 2 more"
    assert len([line for line in lines if line.startswith("  + ")]) == SHOWN_ROWS_MAX


def test_the_tables_have_whole_rows_of_both_sides(graph: Graph) -> None:
    change(graph, 'insert Person { name: "n", age: 5 }')
    change(graph, 'update Person set { age: 9 } where name = "a" or name = "c"')
    change(graph, 'delete Person where name = "d"')

    def shown(**options: list[str]) -> list[tuple[object, ...]]:
        rows = graph.diff("start", "main", **options).to_arrow()["Person"].to_pylist()  # type: ignore[arg-type]
        return sorted(
            (
                row["operation"],
                row["id"],
                row["before"] and row["before"]["age"],
                row["after"] and row["after"]["age"],
            )
            for row in rows
        )

    every = [
        ("delete", "d", 3, None),
        ("insert", "n", None, 5),
        ("update", "a", 0, 9),
        ("update", "c", 2, 9),
    ]
    assert shown() == every
    assert shown(operations=["insert"]) == every[1:2]
    assert shown(operations=["delete", "update"]) == [every[0], *every[2:]]


@pytest.mark.parametrize("operation", ["insert", "update", "delete"])
def test_one_operation_alone_is_counted_and_shown(graph: Graph, operation: str) -> None:
    change(graph, 'insert City { name: "w" }')
    change(graph, 'update Person set { age: 9 } where name = "a"')
    change(graph, 'delete Person where name = "d"')
    found = graph.diff("start", "main", operations=[operation])
    assert [row.operation for row in found.rows] == [operation]
    counts = [n for of_type in found.counts.values() for n in of_type.values()]
    assert sorted(counts) == [0, 0, 1]
    assert not found.is_empty
    every = graph.diff("start", "main", operations=["insert", "update", "delete"])
    assert len(every.rows) == 3


def test_rows_come_by_id_node_types_first(graph: Graph) -> None:
    graph.load({"City": [{"name": n} for n in ("q", "p", "r")]})
    change(graph, 'insert Knows { from: "c", to: "d" }')
    change(graph, "update Person set { age: 9 } where age < 5")
    shown = [(row.kind, row.operation, row.id) for row in graph.diff("start", "main")]
    assert shown == [
        *(("node", "insert", id) for id in "pqr"),
        *(("node", "update", id) for id in "abcd"),
        ("edge", "insert", '["c","d"]'),
    ]


def test_a_node_and_an_edge_type_of_one_name_are_told_apart(tmp_path: Path) -> None:
    schema = (
        "node Link { name: String @key }\nnode Page { name: String @key }\nedge Link: Page -> Page"
    )
    graph = init(tmp_path / "g", schema=schema)
    graph.tag("start")
    lines = [
        {"type": "Page", "data": {"name": "p"}},
        {"type": "Link", "data": {"name": "a"}},
        {"edge": "Link", "from": "p", "to": "p"},
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, lines)))
    graph.load(tmp_path / "rows.jsonl")
    found = graph.diff("start", "main")
    assert set(found.counts) == set(found.to_arrow()) == {"Link", "Page", "edge Link"}
    graph.tag("nodes")
    (tmp_path / "more.jsonl").write_text(json.dumps(lines[2]))
    graph.load(tmp_path / "more.jsonl")
    assert set(graph.diff("nodes", "main").counts) == {"Link"}, "nothing to tell it apart from"


def test_a_type_both_renamed_and_written_is_one_type(graph: Graph) -> None:
    text = graph.schema()
    renamed = text.replace("node City {", 'node Town @rename_from("City") {')
    graph.apply_schema(renamed.replace("-> City", "-> Town"))
    change(graph, 'insert Town { name: "w" }')
    assert graph.diff("start", "main").counts == {
        "Town": {"inserted": 1, "updated": 0, "deleted": 0}
    }
    assert graph.diff("main", "start").counts == {
        "City": {"inserted": 0, "updated": 0, "deleted": 1}
    }


def test_a_dropped_type_is_told_in_its_own_words(graph: Graph) -> None:
    change(graph, 'insert Lives { from: "a", to: "x" }')
    reshape(graph, "edge Lives: Person -> City @card(0..1)\n", "")
    found = graph.diff("main~1", "main")
    assert [(row.type, row.operation) for row in found] == [("Lives", "delete")]
    assert found.schema
    assert graph.diff("main~1", "main", types=["Lives"]).counts == found.counts


def test_a_schema_alone_is_a_difference(graph: Graph) -> None:
    reshape(graph, "age: I64?", "age: I64?\n  level: I64?")
    found = graph.diff("start", "main")
    assert not found.is_empty
    assert not found.rows
    assert graph.diff("main", "main").is_empty
    assert graph.diff("main", "main").schema == ()
