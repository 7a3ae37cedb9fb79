"""Actions of several kinds on one table: what is told of them is what all of them together do."""

from __future__ import annotations

import pyarrow as pa

from omnigraph.core.footprints import touches
from omnigraph.core.plan import Alter, Append, CreateIndex, PublishPlan, Remove, TableAction
from omnigraph.model.tokens import id_tokens
from omnigraph.storage.tables import ADDRESS, IndexEdit
from tests.support.snapshots import catalog_from

CATALOG = catalog_from("node Person { name: String @key }")
TABLE = CATALOG.nodes["Person"].table_id
INDEX = CreateIndex(TABLE, (IndexEdit("id", "BTREE"),))


def rows(*ids: str) -> pa.Table:
    return pa.table({"id": list(ids), "name": list(ids)})


def gone(*ids: str) -> pa.Table:
    return pa.table({"id": list(ids), ADDRESS: pa.array(range(len(ids)), pa.uint64())})


def test_rows_are_told_whatever_else_happens_to_their_table() -> None:
    orders: list[tuple[TableAction, ...]] = [
        (Append(TABLE, rows("a")), Remove(TABLE, gone("b"))),
        (Alter(TABLE, "Human"), Append(TABLE, rows("a")), INDEX, Remove(TABLE, gone("b"))),
        (INDEX, Remove(TABLE, gone("b")), Append(TABLE, rows("a")), Alter(TABLE, "Human")),
    ]
    for actions in orders:
        found = touches(PublishPlan(kind="mutation", actions=actions), CATALOG)[TABLE]
        assert found.inserted.to_pylist() == ["a"], f"{actions}"
        assert found.deleted.to_pylist() == ["b"], f"{actions}"
        assert set(found.own.tolist()) == set(id_tokens(pa.array(["a", "b"])).tolist())


def test_a_table_without_rows_written_is_not_touched() -> None:
    plan = PublishPlan(kind="schema", actions=(Alter(TABLE, "Human"), INDEX))
    assert touches(plan, CATALOG) == {}
