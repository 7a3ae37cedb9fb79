"""What is told about ids and keys: the rule, the row, the value, and where it stands in its file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import Violation
from omnigraph.model.catalog import NodeType
from omnigraph.model.changes import Changes, Origin, TypeChanges
from omnigraph.model.columns import arrow_schema
from omnigraph.validate import evaluate
from omnigraph.validate.rules import (
    existing_ids,
    key_name,
    mismatched_ids,
    missing_keys,
    repeated_ids,
)
from tests.support.snapshots import catalog_from
from tests.support.writing import Bench, bench

KINDS = catalog_from(
    """
    node One { code: String @key }
    node Two { code: String  size: F64  @key(code, size) }
    node Free { note: String? }
    """
).nodes
ONE, TWO, FREE = KINDS["One"], KINDS["Two"], KINDS["Free"]
ORIGIN = Origin("rows.jsonl", pa.array([11, 12, 13], pa.int64()))


def told(found: Iterable[Violation]) -> list[tuple[Any, ...]]:
    return [(v.rule, v.type_name, v.id, v.property, v.value, v.line) for v in found]


def test_a_key_without_a_value_names_what_is_missing() -> None:
    rows = pa.table({"code": ["a", None, "c"], "size": [1.0, None, None]})
    ids = pa.array(["a", None, None])
    found = list(missing_keys(rows, ids, TWO, ORIGIN))
    assert told(found) == [
        ("key", "Two", None, "code", [None, None], 12),
        ("key", "Two", None, "size", ["c", None], 13),
    ]
    assert "code, size has no value" in found[0].message
    assert "(code, size): size has no value" in found[1].message
    assert {v.file for v in found} == {"rows.jsonl"}
    assert len(list(missing_keys(rows, ids, TWO, ORIGIN, 1))) == 1


def test_a_key_with_a_number_that_is_none_is_told_so() -> None:
    rows = pa.table({"code": ["a"], "size": [float("nan")]})
    found = list(missing_keys(rows, pa.array([None], pa.string()), TWO, Origin()))
    assert told(found) == [("key", "Two", None, "code", ["a", "nan"], None)]
    assert "not a finite number" in found[0].message


def test_an_id_other_than_the_key_s_is_told_with_the_key_s() -> None:
    rows = pa.table({"id": ["a", "x", None], "code": ["a", "b", "c"]})
    found = list(mismatched_ids(rows, pa.array(["a", "b", "c"]), ONE, ORIGIN))
    assert told(found) == [("key", "One", "x", None, "b", 12)]
    assert "'x', but its key code makes it 'b'" in found[0].message


@pytest.mark.parametrize(
    ("kind", "name", "what"),
    [(ONE, "code", "the key code"), (TWO, None, "the key (code, size)"), (FREE, None, "the id")],
)
def test_an_id_given_twice_is_told_by_what_it_is_made_of(
    kind: NodeType, name: str | None, what: str
) -> None:
    ids, repeated = pa.array(["a", "b", "a"]), pa.array([False, False, True])
    found = list(repeated_ids(ids, repeated, kind, ORIGIN))
    assert told(found) == [("duplicate", kind.name, "a", name, "a", 13)]
    assert f"{what} must be unique" in found[0].message


def test_an_id_that_exists_is_told() -> None:
    ids, there = pa.array(["c", "b", "a"]), pa.array([True, False, True])
    found = list(existing_ids(ids, there, ONE, ORIGIN))
    assert told(found) == [
        ("key_conflict", "One", "a", None, "a", 13),
        ("key_conflict", "One", "c", None, "c", 11),
    ]
    assert len(list(existing_ids(ids, there, ONE, ORIGIN, 1))) == 1


def test_a_key_is_named_as_it_was_declared() -> None:
    assert key_name(("code",)) == "code"
    assert key_name(("code", "size")) == "(code, size)"


# --- keys that would change --------------------------------------------------------------------------------------


@pytest.fixture
def graph() -> Bench:
    made = bench(
        """
        node Free { note: String? }
        node One { code: String @key  note: String? }
        node Two { code: String  size: I64  note: String?  @key(code, size) }
        """
    )
    made.put(One=[{"code": "a"}, {"code": "b"}], Two=[{"code": "a", "size": 1}])
    return made


def refused(graph: Bench, name: str, *rows: dict[str, Any]) -> list[Violation]:
    """What is said about rows that would replace stored ones of the same id."""
    changes = Changes({graph.kind(name).table_id: updated(graph, name, *rows)})
    return list(evaluate(changes, graph.txn()).violations)


def updated(graph: Bench, name: str, *rows: dict[str, Any]) -> TypeChanges:
    kind = graph.kind(name)
    ids = pa.array([row["id"] for row in rows])
    before = graph.txn().view(kind.table_id).lookup("id", ids, ["id"])
    updates = pa.Table.from_pylist(list(rows), schema=arrow_schema(kind))
    origin = Origin("rows.jsonl", pa.array(range(1, len(rows) + 1), pa.int64()))
    return TypeChanges(kind, updates=updates, before=before, update_origin=origin)


def test_a_key_of_one_member_cannot_change(graph: Bench) -> None:
    (found,) = refused(graph, "One", {"id": "a", "code": "a"}, {"id": "b", "code": "z"})
    assert told([found]) == [("key", "One", "b", "code", "z", 2)]
    assert "the key code of One 'b' cannot change" in found.message
    assert found.file == "rows.jsonl"


def test_a_key_of_several_members_cannot_change(graph: Bench) -> None:
    (id,) = graph.ids("Two")
    (found,) = refused(graph, "Two", {"id": id, "code": "a", "size": 2})
    assert told([found]) == [("key", "Two", id, None, ["a", 2], 1)]
    assert "the key (code, size)" in found.message


def test_a_key_that_is_lost_has_changed(graph: Bench) -> None:
    found = refused(graph, "One", {"id": "a", "code": None})
    assert {v.rule for v in found} == {"key", "required"}


def test_everything_else_of_a_row_can_change(graph: Bench) -> None:
    assert not refused(graph, "One", {"id": "a", "code": "a", "note": "n"})


def test_every_type_with_a_key_is_looked_at(graph: Bench) -> None:
    graph.put(Free=[{"id": "f", "note": "old"}])
    parts = [
        updated(graph, "Free", {"id": "f", "note": "new"}),
        updated(graph, "One", {"id": "b", "code": "z"}),
    ]
    changes = Changes({part.kind.table_id: part for part in parts})
    assert [v.rule for v in evaluate(changes, graph.txn()).violations] == ["key"]
