"""From given rows to whole rows: ids, duplicates, what was left out, new and changed."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.core.plan import Append, Overwrite, Remove, Upsert
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import OmnigraphError, OptionInvalid
from omnigraph.model.changes import Changes, Incoming, Origin, TypeChanges
from omnigraph.storage.tables import ADDRESS
from omnigraph.validate import KeyConflict, ValidationFailed, evaluate
from omnigraph.write.resolve import Mode, Resolved, actions_of, resolve
from tests.support.writing import Bench, bench, incoming, plain

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  city: String? @default("Oslo")
  joined: Date? @default("2024-01-02")
  seen: DateTime? @default("2024-01-02T03:04:05Z")
  tags: [String]? @default(["new"])
}
node Log { text: String }
node Part { maker: String  number: I64  @key(maker, number)  note: String? }
edge Knows: Person -> Person { since: I32?  why: String? }
edge Rates: Person -> Person { stars: I32?  @key(src, dst) }
node Twin { name: String @key }
edge Twin: Person -> Person
"""


@pytest.fixture(scope="module")
def graph() -> Bench:
    made = bench(SCHEMA)
    made.put(
        Person=[{"name": "Ada", "age": 36, "city": "London"}, {"name": "Bob", "age": 40}],
        Knows=[{"id": "k1", "src": "Ada", "dst": "Bob", "since": 1}],
        Rates=[{"src": "Ada", "dst": "Bob", "stars": 3}],
        Log=[{"id": "l1", "text": "one"}],
    )
    return made


@pytest.fixture(scope="module")
def txn(graph: Bench) -> WriteTxn:
    return graph.txn()


def resolved(
    txn: WriteTxn, type_name: str, *rows: dict[str, Any], mode: Mode = Mode.MERGE
) -> Resolved:
    return resolve(txn, [incoming(txn.catalog, type_name, rows)], mode)


def change(
    txn: WriteTxn, type_name: str, *rows: dict[str, Any], mode: Mode = Mode.MERGE
) -> TypeChanges:
    found = resolved(txn, type_name, *rows, mode=mode)
    assert found.violations == ()
    [only] = found.changes
    return only


def rules(found: Resolved) -> list[tuple[str, str | None]]:
    return [(v.rule, v.id) for v in found.violations]


# --- ids ---------------------------------------------------------------------------------------------------------


def test_the_id_of_a_keyed_row_is_its_key(txn: WriteTxn) -> None:
    assert plain(change(txn, "Person", {"name": "Eve"}).inserts)[0]["id"] == "Eve"


def test_the_id_of_a_composite_key_lists_its_members(txn: WriteTxn) -> None:
    row = {"number": 42, "maker": "acme"}
    assert plain(change(txn, "Part", row).inserts)[0]["id"] == '["acme","42"]'


def test_an_edge_key_derives_the_id_from_the_ends(txn: WriteTxn) -> None:
    found = change(txn, "Rates", {"src": "Bob", "dst": "Ada"})
    assert plain(found.inserts)[0]["id"] == '["Bob","Ada"]'


def test_writing_a_keyed_edge_again_changes_it(txn: WriteTxn) -> None:
    found = change(txn, "Rates", {"src": "Ada", "dst": "Bob", "stars": 5})
    assert found.inserts is None
    assert plain(found.updates)[0]["stars"] == 5


def test_rows_without_key_and_id_are_new_each_time(txn: WriteTxn) -> None:
    found = change(txn, "Log", {"text": "a"}, {"text": "a"})
    ids = [row["id"] for row in plain(found.inserts)]
    assert len(set(ids)) == 2
    assert all(len(i) == 26 for i in ids)


def test_rows_with_and_without_id_may_be_mixed(txn: WriteTxn) -> None:
    found = change(
        txn, "Log", {"id": "l1", "text": "changed"}, {"text": "new"}, {"id": "l2", "text": "x"}
    )
    assert [row["text"] for row in plain(found.updates)] == ["changed"]
    assert {row["text"] for row in plain(found.inserts)} == {"new", "x"}


def test_an_id_that_agrees_with_the_key_is_accepted(txn: WriteTxn) -> None:
    assert len(plain(change(txn, "Person", {"id": "Eve", "name": "Eve"}).inserts)) == 1


def test_an_id_that_contradicts_the_key_is_refused(txn: WriteTxn) -> None:
    found = resolved(txn, "Person", {"id": "Eva", "name": "Eve"})
    assert rules(found) == [("key", "Eva")]
    assert "'Eva'" in found.violations[0].message
    assert "'Eve'" in found.violations[0].message


def test_a_key_without_value_is_refused_and_the_other_rows_go_on(txn: WriteTxn) -> None:
    found = resolved(txn, "Person", {"name": None, "age": 1}, {"name": "Eve"})
    assert rules(found) == [("key", None)]
    assert (found.violations[0].property, found.violations[0].line) == ("name", 1)
    assert [row["id"] for row in plain(found.changes.of(txn.catalog.nodes["Person"]).inserts)] == [
        "Eve"
    ]


def test_a_key_left_out_by_all_rows_is_refused(txn: WriteTxn) -> None:
    assert rules(resolved(txn, "Part", {"maker": "acme"})) == [("key", None)]


# --- twice in one input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", list(Mode))
def test_a_key_given_twice_in_one_input_is_refused(txn: WriteTxn, mode: Mode) -> None:
    found = resolved(txn, "Person", {"name": "Eve"}, {"name": "Eve", "age": 2}, mode=mode)
    assert rules(found) == [("duplicate", "Eve")]
    assert found.violations[0].line == 2


def test_an_id_without_key_given_twice_is_one_row_later_fields_winning(txn: WriteTxn) -> None:
    rows = [
        {"id": "k9", "src": "Ada", "dst": "Bob", "since": 1, "why": "a"},
        {"id": "k9", "src": "Ada", "dst": "Ada", "since": 2},
    ]
    assert plain(change(txn, "Knows", *rows).inserts) == [
        {"id": "k9", "src": "Ada", "dst": "Ada", "since": 2, "why": "a"}
    ]


def test_an_explicit_null_wins_over_an_earlier_value(txn: WriteTxn) -> None:
    ends = {"id": "k9", "src": "Ada", "dst": "Bob"}
    found = change(txn, "Knows", {**ends, "since": 1}, {**ends, "since": None})
    assert plain(found.inserts)[0]["since"] is None


def test_an_append_refuses_any_id_given_twice(txn: WriteTxn) -> None:
    rows = [{"id": "k9", "src": "Ada", "dst": "Bob"}] * 2
    assert rules(resolved(txn, "Knows", *rows, mode=Mode.APPEND)) == [("duplicate", "k9")]


def test_several_parts_of_a_type_are_one_input(txn: WriteTxn) -> None:
    parts = [incoming(txn.catalog, "Person", [{"name": "Eve"}], file) for file in ("a", "b")]
    [found] = resolve(txn, parts).violations
    assert (found.rule, found.file, found.line) == ("duplicate", "b", 1)


# --- whole rows --------------------------------------------------------------------------------------------------


def test_a_field_left_out_keeps_the_stored_value(txn: WriteTxn) -> None:
    [row] = plain(change(txn, "Person", {"name": "Ada", "age": 37}).updates)
    assert (row["age"], row["city"]) == (37, "London")


def test_a_null_clears_the_stored_value(txn: WriteTxn) -> None:
    [row] = plain(change(txn, "Person", {"name": "Ada", "city": None}).updates)
    assert (row["age"], row["city"]) == (36, None)


def test_each_row_leaves_out_its_own_fields(txn: WriteTxn) -> None:
    found = change(txn, "Person", {"name": "Ada", "age": 1}, {"name": "Bob", "city": "Rome"})
    ada, bob = plain(found.updates)
    assert (ada["age"], ada["city"]) == (1, "London")
    assert (bob["age"], bob["city"]) == (40, "Rome")


def test_a_new_row_takes_defaults_for_what_it_leaves_out(txn: WriteTxn) -> None:
    [row] = plain(change(txn, "Person", {"name": "Eve"}).inserts)
    assert row == {
        "id": "Eve",
        "name": "Eve",
        "age": None,
        "city": "Oslo",
        "joined": dt.date(2024, 1, 2),
        "seen": dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
        "tags": ["new"],
    }


def test_a_null_is_not_replaced_by_a_default(txn: WriteTxn) -> None:
    [row] = plain(change(txn, "Person", {"name": "Eve", "city": None}).inserts)
    assert row["city"] is None


def test_a_stored_row_takes_no_default(graph: Bench) -> None:
    graph.put(Person=[{"name": "Bob", "city": None}])
    [row] = plain(change(graph.txn(), "Person", {"name": "Bob", "age": 41}).updates)
    assert row["city"] is None


def test_before_holds_what_changes_with_its_address(txn: WriteTxn) -> None:
    found = change(txn, "Knows", {"id": "k1", "src": "Bob", "dst": "Ada"})
    assert found.before is not None
    assert plain(found.before) == [{"id": "k1", "src": "Ada", "dst": "Bob"}]
    assert found.before[ADDRESS].null_count == 0


def test_new_and_changed_rows_are_told_apart_with_their_places(txn: WriteTxn) -> None:
    found = change(txn, "Person", {"name": "Eve"}, {"name": "Ada"}, {"name": "Zoe"})
    assert [row["id"] for row in plain(found.inserts)] == ["Eve", "Zoe"]
    assert [found.insert_origin.place(i)[1] for i in range(2)] == [1, 3]
    assert found.update_origin.place(0)[1] == 2


def test_values_are_widened_to_the_columns_type(txn: WriteTxn) -> None:
    rows = pa.table(
        {"name": pa.array(["Eve"], pa.large_string()), "age": pa.array([3], pa.int64())}
    )
    [found] = resolve(txn, [Incoming("Person", rows, origin=Origin())]).changes
    assert found.inserts is not None
    assert found.inserts.schema.field("age").type == pa.int32()


@pytest.mark.parametrize("ages", [[2**40], ["many"], [2.5]])
def test_a_column_that_does_not_fit_is_named(txn: WriteTxn, ages: list[Any]) -> None:
    with pytest.raises(OptionInvalid, match="age"):
        resolve(txn, [Incoming("Person", pa.table({"name": ["Eve"], "age": ages}))])


def test_an_edge_type_may_share_its_name_with_a_node_type(txn: WriteTxn) -> None:
    node = Incoming("Twin", pa.table({"name": ["x"]}))
    edge = Incoming("Twin", pa.table({"src": ["Ada"], "dst": ["Bob"]}), edge=True)
    found = resolve(txn, [node, edge])
    assert [c.kind.kind for c in found.changes] == ["node", "edge"]
    assert evaluate(found.changes, txn).violations == ()


def test_an_unknown_type_is_named(txn: WriteTxn) -> None:
    with pytest.raises(OmnigraphError, match="Ghost"):
        resolve(txn, [Incoming("Ghost", pa.table({"name": ["x"]}))])


# --- modes -------------------------------------------------------------------------------------------------------


def test_an_append_refuses_what_exists(graph: Bench) -> None:
    with pytest.raises(KeyConflict) as caught:
        graph.put(Mode.APPEND, Person=[{"name": "Eve"}, {"name": "Ada"}])
    assert caught.value.retryable
    assert caught.value.details["entity_id"] == "Ada"
    assert graph.ids("Person") == ["Ada", "Bob"]


def test_an_append_that_is_wrong_in_other_ways_is_invalid_first(graph: Bench) -> None:
    with pytest.raises(ValidationFailed) as caught:
        graph.put(Mode.APPEND, Person=[{"name": "Ada"}], Knows=[{"src": "Ada", "dst": "Nobody"}])
    assert {v["rule"] for v in caught.value.details["violations"]} == {"key_conflict", "endpoint"}


def test_an_overwrite_replaces_all_rows_and_looks_nothing_up(txn: WriteTxn) -> None:
    found = change(txn, "Person", {"name": "Ada"}, mode=Mode.OVERWRITE)
    assert found.replaces
    assert found.updates is None
    [row] = plain(found.inserts)
    assert (row["age"], row["city"]) == (None, "Oslo")


# --- actions -----------------------------------------------------------------------------------------------------


def test_changes_become_actions(txn: WriteTxn) -> None:
    person = txn.catalog.nodes["Person"]
    found = change(txn, "Person", {"name": "Ada"}, {"name": "Eve"})
    assert [type(action) for action in actions_of(Changes({person.table_id: found}))] == [
        Upsert,
        Append,
    ]
    gone = TypeChanges(person, deletes=found.before)
    assert [type(action) for action in actions_of(Changes({person.table_id: gone}))] == [Remove]
    emptied = TypeChanges(person, replaces=True)
    assert [type(action) for action in actions_of(Changes({person.table_id: emptied}))] == [
        Overwrite
    ]


def test_nothing_becomes_no_actions(txn: WriteTxn) -> None:
    assert actions_of(resolve(txn, []).changes) == ()
