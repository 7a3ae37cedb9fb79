"""What later statements of a write see of earlier ones: rows put above the stored ones, replaced, or taken away."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from omnigraph.core.plan import Alter, Append, DropTable, Overwrite, Register, Remove, Upsert
from omnigraph.core.repository import Repository
from omnigraph.core.txn import Overlay, TableView, WriteTxn
from omnigraph.lang.ir import CompareOp as Op
from omnigraph.storage.tables import ADDRESS, NewFragments, RowAddresses
from tests.support.conditions import compare
from tests.support.worlds import add_person, memory_repository, submit


def table(**rows: int) -> pa.Table:
    return pa.table({"id": list(rows), "n": list(rows.values())})


def before(*ids: str, stored: bool = False) -> pa.Table:
    """Rows as they were: those of the overlay have no address."""
    places = [number if stored else None for number, _ in enumerate(ids)]
    return pa.table({"id": list(ids), ADDRESS: pa.array(places, pa.uint64())})


def seen(overlay: Overlay) -> list[tuple[str, int]]:
    rows: list[dict[str, Any]] = [] if overlay.rows is None else overlay.rows.to_pylist()
    return sorted((row["id"], row["n"]) for row in rows)


def test_a_row_written_twice_is_seen_as_it_was_written_last() -> None:
    overlay = Overlay().plus(Append("t", table(a=1, b=2)))
    overlay = overlay.plus(Upsert("t", table(a=9), before("a")))
    assert seen(overlay) == [("a", 9), ("b", 2)]
    assert overlay.masked.num_rows == 0, "no stored row was changed"


def test_a_row_taken_away_again_is_not_seen() -> None:
    overlay = Overlay().plus(Append("t", table(a=1, b=2))).plus(Remove("t", before("a")))
    assert seen(overlay) == [("b", 2)]
    assert seen(overlay.plus(Remove("t", before("b")))) == []


def test_stored_rows_that_are_changed_are_hidden() -> None:
    overlay = Overlay().plus(Upsert("t", table(a=9), before("a", stored=True)))
    overlay = overlay.plus(Remove("t", before("c", stored=True)))
    assert seen(overlay) == [("a", 9)]
    assert overlay.masked["id"].to_pylist() == ["a", "c"]


def test_an_overwrite_forgets_what_was_written_before() -> None:
    overlay = Overlay().plus(Append("t", table(a=1))).plus(Overwrite("t", table(b=2)))
    assert seen(overlay) == [("b", 2)]
    assert overlay.replaced


WRITTEN = NewFragments(("a file",), 7)


def test_rows_written_beforehand_are_counted_and_not_seen() -> None:
    rows = RowAddresses.of([4, 3, 3])
    for action, replaced, gone in (
        (Append("t", WRITTEN), False, ()),
        (Overwrite("t", WRITTEN), True, ()),
        (Upsert("t", WRITTEN, rows), False, (rows,)),
    ):
        overlay = Overlay().plus(action)
        assert (overlay.replaced, overlay.gone) == (replaced, gone)
        assert (seen(overlay), overlay.fragments) == ([], WRITTEN)


def test_what_is_no_write_of_rows_changes_nothing() -> None:
    overlay = Overlay().plus(Append("t", table(a=1)))
    assert overlay.plus(Alter("t", "Other")) is overlay


# --- a whole transaction -------------------------------------------------------------------------------------------


def txn() -> tuple[WriteTxn, str]:
    """A write on a graph with ann, 1, and bob, 2; and the table they are in."""
    repo: Repository = memory_repository()
    for age, name in enumerate(("ann", "bob"), 1):
        submit(repo, add_person(name, age=age))
    commit = repo.head("main").commit
    snapshot = repo.snapshot(commit)
    now = datetime(2026, 3, 1, tzinfo=UTC)
    return WriteTxn(snapshot, "main", now, snapshot.catalog), snapshot.catalog.nodes[
        "Person"
    ].table_id


def people(view: TableView, **ages: int) -> pa.Table:
    rows = [{"id": name, "name": name, "age": age} for name, age in ages.items()]
    return pa.Table.from_pylist(rows, schema=view.schema)


def shown(view: TableView) -> list[tuple[str, int]]:
    return sorted((row["id"], row["age"]) for row in view.scan(["id", "age"]).to_pylist())


def test_reads_go_through_what_was_written_before() -> None:
    write, table = txn()
    view = write.view(table)
    found = view.lookup("id", pa.array(["ann"]), ["id"])
    after = write.plus(
        [Upsert(table, people(view, ann=9), found), Append(table, people(view, cy=3))]
    ).view(table)
    assert shown(after) == [("ann", 9), ("bob", 2), ("cy", 3)]
    assert after.count() == 3
    assert after.existing(pa.array(["cy", "dee"])).to_pylist() == ["cy"]
    old = after.scan(["age"], compare("age", Op.GT, 2))
    assert sorted(old["id"].to_pylist()) == ["ann", "cy"], "an id comes along unasked"
    assert shown(view) == [("ann", 1), ("bob", 2)], "the transaction before has not changed"


def test_rows_of_the_overlay_have_no_address() -> None:
    write, table = txn()
    view = write.view(table)
    after = write.plus([Append(table, people(view, cy=3))]).view(table)
    found = after.lookup("id", pa.array(["ann", "cy"]), ["id"]).sort_by("id")
    assert [place is None for place in found[ADDRESS].to_pylist()] == [False, True]


def test_nothing_of_a_replaced_table_is_seen() -> None:
    write, table = txn()
    view = write.view(table)
    after = write.plus([Overwrite(table, people(view, cy=3))]).view(table)
    assert (shown(after), after.count()) == ([("cy", 3)], 1)
    assert after.lookup("id", pa.array(["ann"]), ["id"]).num_rows == 0


def test_rows_written_beforehand_count() -> None:
    write, table = txn()
    assert write.plus([Append(table, WRITTEN)]).view(table).count() == 9
    assert write.plus([Overwrite(table, WRITTEN)]).view(table).count() == 7


def test_no_values_find_no_rows() -> None:
    write, table = txn()
    found = write.view(table).lookup("id", pa.array([], pa.string()), ["id", "age"])
    assert (found.num_rows, found.column_names) == (0, ["id", "age", ADDRESS])


def test_a_table_made_by_the_write_itself_is_empty_and_writable() -> None:
    write, table = txn()
    schema = write.view(table).schema
    after = write.plus([Register("n99", "node", "Town", schema)])
    assert after.view("n99").count() == 0
    filled = after.plus([Append("n99", people(after.view("n99"), ulm=1))]).view("n99")
    assert (shown(filled), filled.count()) == ([("ulm", 1)], 1)


def test_what_was_written_to_a_dropped_table_is_forgotten() -> None:
    write, table = txn()
    after = write.plus([Append(table, people(write.view(table), cy=3)), DropTable(table)])
    assert table not in after.overlays
