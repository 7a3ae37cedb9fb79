"""What a merge takes over as it is: whole tables where ours left them alone, and nothing that would lose ours."""

from __future__ import annotations

import pytest

from omnigraph.core.plan import Adopt, Alter, DropTable, PublishPlan, TableAction, Upsert
from omnigraph.core.txn import WriteTxn
from omnigraph.graph import Graph
from omnigraph.merge.adopt import fast_forward, taken_over
from omnigraph.merge.changed import Between
from omnigraph.write.merge import merge
from tests.support.people import change, people, reshape, rows, state

PET = ("node City", "node Pet { name: String @key }\nnode City")
NO_LIVES = ("edge Lives: Person -> City @card(0..1)\n", "")


@pytest.fixture
def graph() -> Graph:
    made = people()
    made.tag("start")
    made.create_branch("trial")
    return made


def table(graph: Graph, name: str, branch: str = "main") -> str:
    kind = graph.snapshot(branch).catalog.entity(name)
    assert kind is not None
    return kind.table_id


def planned(graph: Graph) -> dict[str, TableAction]:
    """What a merge of the branch would do, by table."""
    seen: list[PublishPlan] = []

    def look(txn: WriteTxn) -> PublishPlan:
        seen.append(merge(graph._repo, "trial", "main")(txn))
        return PublishPlan(kind="look", empty=True)

    graph.publish(look, alone=True)
    return {action.table_id: action for action in seen[0].actions}


def kinds(actions: dict[str, TableAction]) -> dict[str, type]:
    return {table: type(action) for table, action in actions.items()}


# --- ours is unchanged -------------------------------------------------------------------------------------------


def forward(graph: Graph) -> list[TableAction]:
    found = Between(graph._repo, graph.snapshot(at="start"), graph.snapshot("trial"))
    return list(fast_forward(found, graph.snapshot().commit))


def test_only_tables_theirs_wrote_are_taken_over(graph: Graph) -> None:
    change(graph, 'update Person set { age: 9 } where name = "a"', "trial")
    graph.optimize()
    (action,) = forward(graph)
    assert isinstance(action, Adopt)
    person = table(graph, "Person")
    assert action.table_id == person
    assert action.entry == graph.snapshot("trial").entry(person)
    assert (action.change.updated, action.change.updated_ids) == (1, ("a",))


def test_tables_come_and_go_with_their_types(graph: Graph) -> None:
    reshape(graph, *PET, "trial")
    reshape(graph, *NO_LIVES, "trial")
    pet, lives = table(graph, "Pet", "trial"), table(graph, "Lives")
    found = {action.table_id: type(action) for action in forward(graph)}
    assert found == {pet: Adopt, lives: DropTable}
    assert graph.merge("trial").outcome == "fast_forward"
    assert set(graph.snapshot().commit.tables) == set(graph.snapshot("trial").commit.tables)


# --- both sides wrote --------------------------------------------------------------------------------------------


def test_a_table_is_taken_over_where_ours_left_it_alone(graph: Graph) -> None:
    change(graph, 'insert City { name: "w" }', "trial")
    change(graph, 'update Person set { age: 9 } where name = "a"', "trial")
    change(graph, 'insert Knows { from: "c", to: "d" }', "trial")
    change(graph, 'update Person set { age: 9 } where name = "b"')
    found = planned(graph)
    person, city, knows = (table(graph, name) for name in ("Person", "City", "Knows"))
    assert kinds(found) == {city: Adopt, knows: Adopt, person: Upsert}
    taken = found[city]
    assert isinstance(taken, Adopt)
    assert taken.entry == graph.snapshot("trial").entry(city)
    assert taken.change.inserted_ids == ("w",)


def test_maintenance_of_ours_is_no_reason_to_write_rows(graph: Graph) -> None:
    for number in range(4):
        change(graph, f'insert City {{ name: "w{number}" }}', "trial")
    change(graph, 'update Person set { age: 9 } where name = "b"')
    graph.optimize()
    assert kinds(planned(graph)) == {table(graph, "City"): Adopt}


def test_a_decided_conflict_is_written_and_not_taken_over(graph: Graph) -> None:
    change(graph, 'insert Lives { from: "a", to: "x" }', "trial")
    change(graph, 'insert Lives { from: "b", to: "y" }', "trial")
    change(graph, 'delete City where name = "x"')
    assert graph.merge("trial", strategy="ours").outcome == "merged"
    assert {row["src"] for row in rows(graph, "Lives").values()} == {"b"}


def test_a_row_both_changed_is_written_where_it_is_neither_side_s(graph: Graph) -> None:
    change(graph, 'update Person set { age: 9 } where name = "a"', "trial")
    change(graph, 'update Person set { nick: "al" } where name = "a"')
    assert kinds(planned(graph)) == {table(graph, "Person"): Upsert}
    graph.merge("trial")
    row = rows(graph, "Person")["a"]
    assert (row["age"], row["nick"]) == (9, "al")


def test_a_table_whose_columns_ours_changed_is_not_taken_over(graph: Graph) -> None:
    change(graph, 'insert City { name: "w" }', "trial")
    reshape(
        graph, "node City {\n  name: String @key", "node City {\n  name: String @key\n  size: I64?"
    )
    assert graph.merge("trial").outcome == "merged"
    assert rows(graph, "City")["w"] == {"id": "w", "name": "w", "size": None}
    change(graph, 'update City set { size: 3 } where name = "w"')


def test_a_table_whose_columns_theirs_changed_is_taken_over_with_them(graph: Graph) -> None:
    reshape(
        graph,
        "node City {\n  name: String @key",
        "node City {\n  name: String @key\n  size: I64?",
        "trial",
    )
    change(graph, 'insert City { name: "w", size: 3 }', "trial")
    change(graph, 'update Person set { age: 9 } where name = "b"')
    assert kinds(planned(graph)) == {table(graph, "City"): Adopt}
    assert graph.merge("trial").outcome == "merged"
    assert rows(graph, "City")["w"]["size"] == 3


def test_columns_theirs_changed_reach_a_table_ours_wrote(graph: Graph) -> None:
    reshape(graph, "age: I64?", "age: I64?\n  level: I64? @default(3)", "trial")
    change(graph, 'update Person set { age: 9 } where name = "b"')
    person = table(graph, "Person")
    found = planned(graph)
    assert kinds(found) == {person: Alter}
    altered = found[person]
    assert isinstance(altered, Alter)
    assert altered.columns is not None
    assert [(field.name, fill) for field, fill in altered.columns.add] == [("level", 3)]
    graph.merge("trial")
    row = rows(graph, "Person")["b"]
    assert (row["age"], row["level"]) == (9, 3)


def test_a_renamed_type_is_renamed_and_keeps_the_rows_of_both(graph: Graph) -> None:
    text = graph.schema("trial").replace("node City {", 'node Town @rename_from("City") {')
    graph.apply_schema(text.replace("-> City", "-> Town"), branch="trial")
    change(graph, 'insert Town { name: "t" }', "trial")
    change(graph, 'insert City { name: "m" }')
    assert graph.merge("trial").outcome == "merged"
    assert set(rows(graph, "Town")) == {"x", "y", "t", "m"}
    assert graph.snapshot().entry(table(graph, "Town")).type_name == "Town"


def test_a_type_renamed_by_ours_takes_over_the_rows_of_theirs(graph: Graph) -> None:
    text = graph.schema().replace("node City {", 'node Town @rename_from("City") {')
    graph.apply_schema(text.replace("-> City", "-> Town"))
    change(graph, 'insert City { name: "t" }', "trial")
    assert graph.merge("trial").outcome == "merged"
    assert set(rows(graph, "Town")) == {"x", "y", "t"}
    assert graph.snapshot().entry(table(graph, "Town")).type_name == "Town"


def test_a_type_theirs_dropped_goes_and_one_theirs_made_comes(graph: Graph) -> None:
    reshape(graph, *PET, "trial")
    reshape(graph, *NO_LIVES, "trial")
    change(graph, 'update Person set { age: 9 } where name = "b"')
    lives = table(graph, "Lives")
    found = kinds(planned(graph))
    assert found == {lives: DropTable, table(graph, "Pet", "trial"): Adopt}
    assert graph.merge("trial").outcome == "merged"
    assert lives not in graph.snapshot().commit.tables
    assert rows(graph, "Pet") == {}


# --- becoming another state --------------------------------------------------------------------------------------


def test_a_state_is_taken_over_by_reference_with_what_changes(graph: Graph) -> None:
    change(graph, 'insert City { name: "w" }')
    reshape(graph, *PET)
    reshape(graph, *NO_LIVES)
    head, wanted = graph.snapshot(), graph.snapshot(at="start")
    actions = {a.table_id: a for a in taken_over(graph._repo, head, wanted)}
    city, pet = table(graph, "City"), table(graph, "Pet")
    lives = table(graph, "Lives", "trial")
    assert kinds(actions) == {city: Adopt, lives: Adopt, pet: DropTable}
    back = actions[city]
    assert isinstance(back, Adopt)
    assert (back.entry, back.change.deleted_ids) == (wanted.entry(city), ("w",))
    graph.reset("start")
    assert state(graph) == state(graph, "trial")


def test_a_fast_forward_tells_what_it_did_whichever_way_the_commits_lie(graph: Graph) -> None:
    """The base lies on the branch and not on main's own line: what main did since must not cancel out."""
    start = graph.tags()["start"]
    change(graph, 'delete Person where name = "a"')
    graph.create_branch("b")
    graph.reset(start, branch="b")
    merged = graph.merge("b").commit
    assert merged is not None
    graph.revert(merged.id)
    done = graph.merge("main", into="b")
    assert done.outcome == "fast_forward"
    assert done.counts["Person"] == {"inserted": 0, "updated": 0, "deleted": 1}
    assert graph.history("Person", "a", branch="b").changes[0].operation == "delete"
