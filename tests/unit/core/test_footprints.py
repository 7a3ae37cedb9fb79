"""What a commit tells other writers of a plan: counts, ids while they are few, and a footprint that never misses."""

from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph.core.footprints import changes, touches
from omnigraph.core.plan import (
    Adopt,
    Append,
    CreateIndex,
    Overwrite,
    PublishPlan,
    Remove,
    TableAction,
    Upsert,
)
from omnigraph.core.records import TableChange, TableEntry
from omnigraph.lang.schema import catalog_of, decode_ir
from omnigraph.model.catalog import Catalog
from omnigraph.model.limits import DEFAULT, Limits
from omnigraph.model.tokens import (
    TOKENS_MAX,
    Footprint,
    Tokens,
    endpoint_tokens,
    id_tokens,
    unique_tokens,
)
from omnigraph.storage.tables import ADDRESS, IndexEdit, NewFragments, RowAddresses
from tests.support.worlds import stored_schema

CATALOG: Catalog = catalog_of(decode_ir(stored_schema().ir.encode()))
PEOPLE = CATALOG.nodes["Person"].table_id
KNOWS = CATALOG.edges["Knows"].table_id
WRITTEN = NewFragments(("a file",), 7)


def persons(*ids: str, email: str | None = None) -> pa.Table:
    return pa.table({"id": list(ids), "email": pa.array([email] * len(ids), pa.string())})


def before(*ids: str) -> pa.Table:
    places = pa.array(range(len(ids)), pa.uint64())
    return pa.table({"id": pa.array(ids, pa.string()), ADDRESS: places})


def edge(id: str, src: str, dst: str) -> pa.Table:
    return pa.table({"id": [id], "src": [src], "dst": [dst]})


def told(*actions: TableAction, limits: Limits = DEFAULT) -> dict[str, TableChange]:
    plan = PublishPlan(kind="load", actions=actions)
    return changes(plan, touches(plan, CATALOG), limits)


def meets(change: TableChange, tokens: Tokens) -> bool:
    return Footprint.from_text(change.touched).meets(tokens)


def ids(*names: str) -> Tokens:
    return id_tokens(pa.array(names))


def test_inserts_updates_and_deletes_are_told_apart() -> None:
    found = told(
        Append(PEOPLE, persons("a", "b")),
        Upsert(PEOPLE, persons("c", "d"), before("c")),
        Remove(PEOPLE, before("e")),
    )[PEOPLE]
    assert (found.inserted, found.updated, found.deleted) == (3, 1, 1)
    assert (found.inserted_ids, found.updated_ids, found.deleted_ids) == (
        ("a", "b", "d"),
        ("c",),
        ("e",),
    )
    assert all(meets(found, ids(name)) for name in "abcde")
    assert not meets(found, ids("f"))


def test_unique_values_are_shown() -> None:
    found = told(Append(PEOPLE, persons("a", email="x@x")))[PEOPLE]
    assert meets(found, unique_tokens(["email"], [pa.array(["x@x"])]))
    assert not meets(found, unique_tokens(["email"], [pa.array(["y@y"])]))


def test_both_ends_of_an_edge_are_shown_old_and_new() -> None:
    stored = edge("e", "a", "b").append_column(ADDRESS, pa.array([0], pa.uint64()))
    found = told(Upsert(KNOWS, edge("e", "a", "c"), stored))[KNOWS]
    for side, node in (("src", "a"), ("dst", "b"), ("dst", "c")):
        assert meets(found, endpoint_tokens(side, pa.array([node]))), (side, node)
    assert not meets(found, endpoint_tokens("src", pa.array(["b"])))


def test_many_ids_are_counted_and_not_listed() -> None:
    few, many = (tuple(f"p{n}" for n in range(count)) for count in (3, 4))
    limits = Limits(changed_ids_max=3)
    assert told(Append(PEOPLE, persons(*few)), limits=limits)[PEOPLE].inserted_ids == few
    found = told(Append(PEOPLE, persons(*many)), limits=limits)[PEOPLE]
    assert (found.inserted, found.inserted_ids) == (4, None)
    assert meets(found, ids("p3")), "what is not listed is still in the footprint"


def test_more_than_a_footprint_holds_is_everything() -> None:
    found = told(Append(PEOPLE, persons(*(f"p{n}" for n in range(TOKENS_MAX + 1)))))[PEOPLE]
    assert not found.all
    assert meets(found, ids("never written"))


@pytest.mark.parametrize(
    ("action", "inserted", "updated"),
    [
        (Append(PEOPLE, WRITTEN), 7, 0),
        (Overwrite(PEOPLE, WRITTEN), 7, 0),
        (Overwrite(PEOPLE, persons("a", "b")), 2, 0),
        (Upsert(PEOPLE, WRITTEN, RowAddresses.of([3, 4])), 5, 2),
    ],
)
def test_rows_nobody_looked_at_touch_everything(
    action: TableAction, inserted: int, updated: int
) -> None:
    found = told(action)[PEOPLE]
    assert (found.inserted, found.updated) == (inserted, updated)
    assert found.all
    assert found.inserted_ids is None
    assert meets(found, ids("anything"))


def test_a_version_taken_over_tells_what_it_was_given() -> None:
    given = TableChange(inserted=3, all=True)
    entry = TableEntry("node", "Person", "nodes/p", "9", 3)
    assert told(Adopt(PEOPLE, entry, given, ("x", 0))) == {PEOPLE: given}


def test_maintenance_touches_nothing() -> None:
    assert told(CreateIndex(PEOPLE, (IndexEdit("id", "BTREE"),))) == {}


def test_ids_of_any_string_type_are_one_list() -> None:
    large = persons("a").cast(pa.schema([("id", pa.large_string()), ("email", pa.string())]))
    found = told(Append(PEOPLE, large), Append(PEOPLE, persons("b")))[PEOPLE]
    assert found.inserted_ids == ("a", "b")
