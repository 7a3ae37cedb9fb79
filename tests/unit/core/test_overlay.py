"""What later statements of a write see of earlier ones: rows put above the stored ones, replaced, or taken away."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from omnigraph.core.plan import Append, Delete, Overwrite, Upsert
from omnigraph.core.txn import Overlay
from omnigraph.storage.tables import ADDRESS


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
    overlay = Overlay().plus(Append("t", table(a=1, b=2))).plus(Delete("t", before("a")))
    assert seen(overlay) == [("b", 2)]
    assert seen(overlay.plus(Delete("t", before("b")))) == []


def test_stored_rows_that_are_changed_are_hidden() -> None:
    overlay = Overlay().plus(Upsert("t", table(a=9), before("a", stored=True)))
    overlay = overlay.plus(Delete("t", before("c", stored=True)))
    assert seen(overlay) == [("a", 9)]
    assert overlay.masked["id"].to_pylist() == ["a", "c"]


def test_an_overwrite_forgets_what_was_written_before() -> None:
    overlay = Overlay().plus(Append("t", table(a=1))).plus(Overwrite("t", table(b=2)))
    assert seen(overlay) == [("b", 2)]
    assert overlay.replaced
