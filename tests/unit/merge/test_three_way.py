"""Three images of a row to one, and three versions of a table to what happens to ours."""

from __future__ import annotations

from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.graph import Graph
from omnigraph.merge.conflicts import UNDECIDED, Decisions, decisions
from omnigraph.merge.three_way import MergedTable, Row, RowMerge, Sides, merge_table, stacked
from omnigraph.storage.tables import ADDRESS
from tests.support.people import change, people
from tests.support.snapshots import catalog_from

PAIR = catalog_from("node Pair { one: I64?  two: F64? }").nodes["Pair"]
NAN = float("nan")


def row(one: int | None, two: float | None = 0.0) -> Row:
    return {"id": "r", "one": one, "two": two}


def merged(
    base: Row | None, ours: Row | None, theirs: Row | None, decided: Decisions = UNDECIDED
) -> RowMerge:
    done = RowMerge(PAIR, decided)
    done.merge(base, ours, theirs)
    return done


def outcome(done: RowMerge, ours: Row | None) -> Row | None:
    """What becomes of the row of ours."""
    assert len(done.inserts) + len(done.updates) + len(done.deletes) <= 1, "a row happens once"
    if done.inserts:
        assert ours is None, "a row that is there was inserted"
        return done.inserts[0]
    if done.updates:
        assert ours is not None, "a row that is not there was updated"
        assert done.updates[0] != ours, "a row was updated to what it is"
        return done.updates[0]
    if done.deletes:
        assert done.deletes == ["r"]
        return None
    return ours


def expected(base: Row | None, ours: Row | None, theirs: Row | None, side: str) -> Row | None:
    """Whatever one side alone changed is taken from it; where both did, the side decides."""
    if theirs in (ours, base):
        return ours
    if ours == base:
        return theirs
    if ours is None or theirs is None:
        return ours if side == "ours" else theirs
    old: Row = base or {}
    result = {}
    for name in ours:
        alone = base is not None and ours[name] == old[name]
        kept = ours[name] == theirs[name] or (base is not None and theirs[name] == old[name])
        taken = theirs if not kept and (alone or side == "theirs") else ours
        result[name] = taken[name]
    return result


IMAGES: list[Row | None] = [None, *(row(a, b) for a, b in product((None, 1, 2), (0.5, 1.5)))]


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_every_three_images_become_what_one_side_alone_did(side: str) -> None:
    decided = decisions(side)
    for base, ours, theirs in product(IMAGES, repeat=3):
        if base in (ours, theirs):
            continue  # rows one side left alone are taken whole, and never come here
        done = merged(base, ours, theirs, decided)
        case = f"{base} | {ours} | {theirs}"
        result = outcome(done, ours)
        assert result == expected(base, ours, theirs, side), case
        assert done.as_theirs == (result == theirs), case
        assert not done.conflicts, f"{case}: decided and still a conflict"


def test_what_both_changed_is_a_conflict_per_field_with_all_values() -> None:
    done = merged(row(0, 0.0), row(1, 1.0), row(2, 2.0))
    assert outcome(done, row(1, 1.0)) == row(1, 1.0), "undecided rows stay as ours has them"
    assert [(c.kind, c.type, c.id, c.field) for c in done.conflicts] == [
        ("divergent_update", "Pair", "r", "one"),
        ("divergent_update", "Pair", "r", "two"),
    ]
    assert [(c.base, c.ours, c.theirs) for c in done.conflicts] == [(0, 1, 2), (0.0, 1.0, 2.0)]
    assert done.conflicts[0].message == "Pair 'r': both sides changed it with another one"


def test_two_insertions_of_one_id_conflict_in_the_fields_that_differ() -> None:
    done = merged(None, row(1), row(2))
    (conflict,) = done.conflicts
    assert (conflict.kind, conflict.field) == ("divergent_insert", "one")
    assert (conflict.base, conflict.ours, conflict.theirs) == (None, 1, 2)
    assert conflict.message == "Pair 'r': both sides inserted it with another one"


def test_a_null_is_a_value_like_others() -> None:
    done = merged(row(1), row(None), row(2))
    assert [c.ours for c in done.conflicts] == [None]
    assert not merged(row(1, 1.0), row(None, 1.0), row(1, 2.0)).conflicts


def test_not_a_number_is_the_same_on_both_sides() -> None:
    done = merged(row(1, 0.0), row(1, NAN), row(2, NAN))
    assert not done.conflicts
    assert done.updates[0]["one"] == 2


@pytest.mark.parametrize(
    ("ours", "theirs", "message"),
    [
        (None, row(2), "Pair 'r': ours deleted it, theirs changed it"),
        (row(2), None, "Pair 'r': theirs deleted it, ours changed it"),
    ],
)
def test_a_deletion_against_a_change_is_a_conflict_of_the_row(
    ours: Row | None, theirs: Row | None, message: str
) -> None:
    done = merged(row(1), ours, theirs)
    (conflict,) = done.conflicts
    assert (conflict.kind, conflict.type, conflict.id) == ("delete_vs_update", "Pair", "r")
    assert (conflict.field, conflict.message) == (None, message)
    assert (conflict.base, conflict.ours, conflict.theirs) == (row(1), ours, theirs)
    assert outcome(done, ours) == ours


def test_a_decided_value_is_neither_side_s() -> None:
    decided = decisions(None, [{"type": "Pair", "id": "r", "field": "one", "value": 7}])
    done = merged(row(0), row(1), row(2), decided)
    assert outcome(done, row(1)) == row(7)
    assert not done.conflicts
    assert not done.as_theirs


def test_tables_are_stacked_without_the_empty_ones() -> None:
    one = pa.table({"x": pa.array([1], pa.int64())})
    other = pa.table({"x": pa.array([2, 3], pa.int32())})
    assert stacked() is None
    assert stacked(None, one.slice(0, 0)) is None
    both = stacked(None, one, other.slice(0, 0), other)
    assert both is not None
    assert both["x"].to_pylist() == [1, 2, 3]
    assert both.schema == one.schema


# --- whole tables ------------------------------------------------------------------------------------------------


@pytest.fixture
def graph() -> Graph:
    """Twelve more people, p0 to p11, in two fragments, and a branch."""
    made = people()
    for first in (0, 6):
        made.load({"Person": [{"name": f"p{i}", "age": i} for i in range(first, first + 6)]})
    made.tag("start")
    made.create_branch("trial")
    return made


def merge_people(graph: Graph, decided: Decisions = UNDECIDED) -> MergedTable:
    """What a merge of the branch does to the table of people."""
    states = (graph.snapshot(at="start"), graph.snapshot(), graph.snapshot("trial"))
    sides = Sides.of(graph._repo, states, states[0].catalog)
    return merge_table(sides, sides.catalog.nodes["Person"], decided)


def put(graph: Graph, branch: str, column: str, **values: Any) -> None:
    """New people, or another value for those there are."""
    graph.load({"Person": [{"name": n, column: v} for n, v in values.items()]}, branch=branch)


def drop(graph: Graph, branch: str, *names: str) -> None:
    chosen = " or ".join(f'name = "{name}"' for name in names)
    change(graph, f"delete Person where {chosen}", branch)


def ids(table: pa.Table | None) -> set[str]:
    found = [] if table is None else table["id"].to_pylist()
    assert len(found) == len(set(found)), f"a row is there twice: {found}"
    return set(found)


def check_addresses(graph: Graph, table: pa.Table | None) -> None:
    """Rows to be replaced or removed are named by where ours has them."""
    assert table is not None
    person = graph.snapshot().catalog.nodes["Person"]
    stored = graph.snapshot().table_of(person).take(table[ADDRESS].combine_chunks(), ["id"])
    assert stored["id"].to_pylist() == table["id"].to_pylist()


def theirs_work(graph: Graph) -> None:
    put(graph, "trial", "age", p0=100, p1=101, p6=106, p7=107, n0=1, n1=2)
    drop(graph, "trial", "p2", "p3", "p8")


def test_what_theirs_did_to_several_rows_happens_to_ours(graph: Graph) -> None:
    theirs_work(graph)
    put(graph, "main", "age", p4=4000, p10=10_000, o0=1)
    drop(graph, "main", "p5", "p11")
    found = merge_people(graph)
    assert not found.conflicts
    assert found.as_theirs, "ours left alone what theirs changed"
    done = found.change
    assert ids(done.inserts) == {"n0", "n1"}
    assert ids(done.updates) == ids(done.before) == {"p0", "p1", "p6", "p7"}
    assert ids(done.deletes) == {"p2", "p3", "p8"}
    assert done.updates is not None
    assert dict(zip(*(done.updates[c].to_pylist() for c in ("id", "age")), strict=True)) == {
        "p0": 100,
        "p1": 101,
        "p6": 106,
        "p7": 107,
    }
    check_addresses(graph, done.before)
    check_addresses(graph, done.deletes)


def test_rows_both_sides_changed_join_the_others(graph: Graph) -> None:
    theirs_work(graph)
    put(graph, "main", "nick", p1="one", p7="seven")
    put(graph, "main", "age", p0=100, n1=2)  # the very same as theirs
    put(graph, "main", "age", p8=8000)  # theirs deleted it
    drop(graph, "main", "p6", "p3")
    found = merge_people(graph)
    assert {(c.kind, c.id) for c in found.conflicts} == {
        ("delete_vs_update", "p6"),
        ("delete_vs_update", "p8"),
    }
    assert not found.as_theirs
    done = found.change
    assert ids(done.inserts) == {"n0"}
    assert ids(done.updates) == ids(done.before) == {"p1", "p7"}
    assert ids(done.deletes) == {"p2"}
    check_addresses(graph, done.before)
    check_addresses(graph, done.deletes)
    theirs = merge_people(graph, decisions("theirs")).change
    assert ids(theirs.inserts) == {"n0", "p6"}
    assert ids(theirs.deletes) == {"p2", "p8"}
    check_addresses(graph, theirs.deletes)


def test_a_compaction_of_ours_between_changes_nothing(graph: Graph) -> None:
    theirs_work(graph)
    put(graph, "main", "age", p4=4000)
    graph.optimize()
    put(graph, "main", "nick", p1="one")
    done = merge_people(graph).change
    assert ids(done.updates) == {"p0", "p1", "p6", "p7"}
    check_addresses(graph, done.before)
    check_addresses(graph, done.deletes)


def test_an_untouched_table_has_nothing_to_merge(graph: Graph) -> None:
    put(graph, "main", "age", p4=4000)
    found = merge_people(graph)
    assert found.delta.is_empty
    assert found.change.is_empty
    assert found.as_theirs


def test_a_part_of_theirs_is_merged_alone(graph: Graph) -> None:
    theirs_work(graph)
    states = (graph.snapshot(at="start"), graph.snapshot(), graph.snapshot("trial"))
    catalog = states[0].catalog
    person, city = catalog.nodes["Person"], catalog.nodes["City"]
    for part, wanted in (
        ({person.table_id: pa.array(["p1", "p2", "n0"])}, {"p1", "p2", "n0"}),
        ({person.table_id: None}, {"p0", "p1", "p2", "p3", "p6", "p7", "p8", "n0", "n1"}),
        ({city.table_id: None}, set()),
    ):
        sides = Sides.of(graph._repo, states, catalog, part)
        found = merge_table(sides, person, UNDECIDED)
        assert set(found.delta.ids.to_pylist()) == wanted, f"{part}"


def test_the_same_merge_from_the_other_side(graph: Graph) -> None:
    theirs_work(graph)
    put(graph, "main", "age", p4=4000)
    states = (graph.snapshot(at="start"), graph.snapshot(), graph.snapshot("trial"))
    sides = Sides.of(graph._repo, states, states[0].catalog, {}).swapped()
    found = merge_table(sides, sides.catalog.nodes["Person"], UNDECIDED)
    assert ids(found.change.updates) == {"p4"}
    assert sides.ours.commit_id == graph.snapshot("trial").commit_id
