"""Lists kept in rows: what clients append to and read, so that the order of writes can be read off the values.

A list is a row of a node type with a text column `items`. One operation reads some lists and appends one value to each
of some others, in one commit; every value is written once, so that whoever shows it names its writer. The same verb
runs in simulations, under crashes and under contention, and `verdict` judges what came of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.core.plan import PublishPlan, Reads, Upsert, Verb
from omnigraph.core.snapshot import Snapshot
from omnigraph.core.txn import WriteTxn
from omnigraph.model.tokens import id_tokens
from tests.support.worlds import plan, rows_of

LIST = "List"
DECLARED = f"node {LIST} {{ name: String @key  items: String? }}\n"
COLUMNS = ["id", "items"]


@dataclass(frozen=True, slots=True)
class Seen:
    """What one operation read: the lists, and the number of the commit they were read at."""

    number: int
    lists: Mapping[str, tuple[str, ...]]

    def steps(self, appends: Mapping[str, str] | None = None) -> list[list[object]]:
        """The operation as the history checkers want it."""
        read: list[list[object]] = [["read", key, list(held)] for key, held in self.lists.items()]
        return read + [["append", key, value] for key, value in (appends or {}).items()]


def edit(reads: Sequence[str], appends: Mapping[str, str]) -> Verb:
    """Read lists and append one value to each of some; its value is what was `Seen`."""

    def verb(txn: WriteTxn) -> PublishPlan:
        table = txn.catalog.nodes[LIST].table_id
        keys = pa.array(sorted({*reads, *appends}))
        found = txn.view(table).lookup("id", keys, COLUMNS)
        lists = _lists(found, keys.to_pylist())
        rows = [
            {"id": key, "name": key, "items": ",".join((*lists[key], value))}
            for key, value in appends.items()
        ]
        replaced = [key in appends for key in found["id"].to_pylist()]
        return plan(
            [Upsert(table, rows_of(txn, LIST, rows), found.filter(pa.array(replaced, pa.bool_())))],
            {table: Reads(id_tokens(keys))},
            value=Seen(txn.snapshot.commit.number, lists),
        )

    return verb


def look(snapshot: Snapshot, keys: Sequence[str]) -> Seen:
    """Read lists at a snapshot."""
    table = snapshot.table_of(snapshot.catalog.nodes[LIST])
    wanted = sorted(keys)
    found = table.lookup("id", pa.array(wanted), COLUMNS)
    return Seen(snapshot.commit.number, _lists(found, wanted))


def _lists(found: pa.Table, keys: Sequence[str]) -> dict[str, tuple[str, ...]]:
    held = dict(zip(found["id"].to_pylist(), found["items"].to_pylist(), strict=True))
    return {key: tuple(held[key].split(",")) if held.get(key) else () for key in keys}
