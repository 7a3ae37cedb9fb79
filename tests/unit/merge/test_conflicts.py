"""What was decided beforehand: which decision counts for a conflict, and what is no decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest

from omnigraph.errors import OptionInvalid
from omnigraph.lang.schema import SchemaConflict
from omnigraph.merge.conflicts import (
    UNDECIDED,
    ChosenValue,
    Conflict,
    Decisions,
    decisions,
    of_schemas,
    value_of,
)
from tests.support.snapshots import catalog_from


def test_nothing_is_decided_by_nothing() -> None:
    assert decisions() == UNDECIDED == Decisions()
    assert UNDECIDED.of("Person", "a", "age") is None


def test_the_narrowest_decision_counts() -> None:
    decided = decisions(
        {"*": "ours", "Person": "theirs"},
        [
            {"type": "Person", "id": "a", "take": "ours"},
            {"type": "Person", "id": "a", "field": "age", "value": 7},
            {"type": "Person", "id": "b", "field": "age", "take": "ours"},
        ],
    )
    assert decided.of("City", "x", "name") == "ours"
    assert decided.of("Person", "c", "age") == "theirs"
    assert decided.of("Person", "a", "nick") == "ours"
    assert decided.of("Person", "a", None) == "ours"
    assert decided.of("Person", "a", "age") == ChosenValue(7)
    assert decided.of("Person", "b", "age") == "ours"
    assert decided.of("Person", "b", "nick") == "theirs", "one field does not decide the others"
    assert decided.of("Person", None, "age") == "theirs"
    assert decided.of("City", None, None) == "ours"


def test_where_only_a_side_can_be_taken_a_value_decides_nothing() -> None:
    decided = decisions(None, [{"type": "Person", "id": "a", "field": "age", "value": "ours"}])
    assert decided.side("Person", "a", "age") is None
    assert decided.of("Person", "a", "age") == ChosenValue("ours")
    assert decisions("theirs").side("Person", "a", "age") == "theirs"


def test_one_side_for_everything() -> None:
    assert decisions("ours").of("Person", "a", None) == "ours"
    assert decisions("theirs") == Decisions("theirs")
    assert decisions({"Person": "ours"}) == Decisions(None, {"Person": "ours"})
    assert decisions({"Person": "ours"}).of("City", "x", None) is None


@pytest.mark.parametrize("strategy", ["mine", "", {"Person": "mine"}, {"*": "mine"}])
def test_a_side_is_ours_or_theirs(strategy: Any) -> None:
    with pytest.raises(OptionInvalid, match="'ours' or 'theirs'"):
        decisions(strategy)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"type": "Person", "id": "a", "take": "ours", "why": "so"}, "type, id, field"),
        ({"id": "a", "take": "ours"}, "type, id, field"),
        ({"type": "Person", "take": "ours"}, "type, id, field"),
        ({"type": 1, "id": "a", "take": "ours"}, "type, id, field"),
        ({"type": "Person", "id": 1, "take": "ours"}, "type, id, field"),
        ({"type": "Person", "id": "a", "field": 1, "take": "ours"}, "type, id, field"),
        ({"type": "Person", "id": "a", "field": "age"}, "either `take` or `value`"),
        (
            {"type": "Person", "id": "a", "field": "age", "take": "ours", "value": 1},
            "either `take` or `value`",
        ),
        ({"type": "Person", "id": "a", "take": "mine"}, "'ours' or 'theirs'"),
        ({"type": "Person", "id": "a", "value": 1}, "names its field"),
    ],
)
def test_a_resolution_that_decides_nothing_says_why(entry: Mapping[str, Any], said: str) -> None:
    with pytest.raises(OptionInvalid, match=said):
        decisions(None, [entry])


PERSON = catalog_from(
    "node Person { name: String @key  age: I64?  born: Date?  seen: DateTime?  tags: [String]? }"
).nodes["Person"]


@pytest.mark.parametrize(
    ("name", "value", "stored"),
    [
        ("age", 7, 7),
        ("age", None, None),
        ("born", "2024-02-03", date(2024, 2, 3)),
        ("seen", "2024-02-03T04:05:06Z", datetime(2024, 2, 3, 4, 5, 6, tzinfo=UTC)),
        ("tags", ["a"], ["a"]),
        ("born", 7, date(1970, 1, 8)),
    ],
)
def test_a_value_becomes_what_the_property_stores(name: str, value: Any, stored: Any) -> None:
    assert value_of(ChosenValue(value), PERSON, name) == stored


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("age", "many"),
        ("age", 1.5),
        ("age", 2**64),
        ("born", "never"),
        ("seen", "later"),
        ("tags", 7),
        ("name", "\ud800"),
    ],
)
def test_what_is_no_value_of_the_property_is_refused(name: str, value: Any) -> None:
    """None of them may become null or another value: a decision is stored as it was made."""
    with pytest.raises(OptionInvalid, match=f"Person.{name} of type .*: expected"):
        value_of(ChosenValue(value), PERSON, name)


def test_what_is_no_property_has_sides_alone() -> None:
    with pytest.raises(OptionInvalid, match="take a side"):
        value_of(ChosenValue("b"), PERSON, "id")


def test_a_conflict_of_schemas_names_what_both_changed() -> None:
    found = SchemaConflict("node", "Person", "nick", "name", "nick", "alias", "tag")
    one, other = of_schemas([found, replace(found, property_name=None)])
    assert one.message == "both sides changed the name of Person.nick"
    assert other.message == "both sides changed the name of Person"
    assert (one.kind, one.type, one.id, one.field) == ("schema_conflict", "Person", None, "nick")
    assert (one.base, one.ours, one.theirs) == ("nick", "alias", "tag")


def test_the_shape_for_machines() -> None:
    conflict = Conflict("divergent_update", "P", "a", "born", None, date(2024, 1, 2), 1, "why")
    assert conflict.to_json() == {
        "kind": "divergent_update",
        "type": "P",
        "id": "a",
        "field": "born",
        "base": None,
        "ours": "2024-01-02",
        "theirs": 1,
        "message": "why",
    }
