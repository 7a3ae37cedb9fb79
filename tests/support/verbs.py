"""More verbs by hand, for tests of the core over real tables: several tables at once, indices, compaction."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from omnigraph.core.plan import CreateIndex, PublishPlan, Reads, Rewrite, Upsert, Verb
from omnigraph.core.txn import WriteTxn
from omnigraph.model.tokens import id_tokens
from omnigraph.storage.tables import IndexEdit
from tests.support.worlds import plan, rows_of


def add_to_each(types: Sequence[str], name: str) -> Verb:
    """Insert or replace one node of each type, in one commit."""

    def verb(txn: WriteTxn) -> PublishPlan:
        wanted = pa.array([name])
        actions, reads = [], {}
        for type_name in types:
            table = txn.catalog.nodes[type_name].table_id
            rows = rows_of(txn, type_name, [{"id": name, "name": name}])
            actions.append(Upsert(table, rows, txn.view(table).lookup("id", wanted, ["id"])))
            reads[table] = Reads(id_tokens(wanted))
        return plan(actions, reads)

    return verb


def build_index(type_name: str, column: str = "id") -> Verb:
    """Index a column of a node type."""

    def verb(txn: WriteTxn) -> PublishPlan:
        table = txn.catalog.nodes[type_name].table_id
        action = CreateIndex(table, (IndexEdit(column, "BTREE"),))
        return PublishPlan(kind="optimize", actions=(action,))

    return verb


def compact(type_name: str) -> Verb:
    """Rewrite the small fragments of a node type into one."""

    def verb(txn: WriteTxn) -> PublishPlan:
        action = Rewrite(txn.catalog.nodes[type_name].table_id)
        return PublishPlan(kind="optimize", actions=(action,))

    return verb
