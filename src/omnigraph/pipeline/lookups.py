"""Few new rows in a large graph: verified by look-ups, like a local write, so that the cost depends on the new rows.

The rules are those of `validate.checks`. This only decides whether there is any violation; if so, `verify`
finds them, with messages and places for a report.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.txn import WriteTxn
from omnigraph.model.changes import Changes, TypeChanges
from omnigraph.model.columns import one_array
from omnigraph.pipeline.table_versions import open_table
from omnigraph.pipeline.verify import Touched, Verification
from omnigraph.storage.tables import RowAddresses
from omnigraph.validate.checks import check_cardinality, check_endpoints, check_unique
from omnigraph.validate.findings import Case, Looked
from omnigraph.write.resolve import Mode, before_columns

LOOKED_UP_ROWS_MAX = 500_000  # new rows whose ids, ends and unique values the driver holds


def are_few(case: Verification) -> bool:
    """Whether a load has so few rows that look-ups cost less than comparing whole tables."""
    rows = sum(each.new_rows + len(each.removed) for each in case.touched.values())
    return case.mode is not Mode.OVERWRITE and rows <= LOOKED_UP_ROWS_MAX


def nothing_is_wrong(case: Verification, txn: WriteTxn) -> bool:
    """Whether all rules between rows hold."""
    changes = Changes({table: _change(touched) for table, touched in case.touched.items()})
    return all(_each_once(case, txn, changes.tables[t]) for t in case.touched) and not any(
        not isinstance(found, Looked)
        for check in (check_unique, check_endpoints, check_cardinality)
        for found in check(Case(changes, txn))
    )


def _change(touched: Touched) -> TypeChanges:
    rows = pa.concat_tables(fresh_rows(touched)) if touched.after.fresh else _none(touched)
    deletes = stored_rows(touched, touched.removed) if len(touched.removed) else None
    if not len(touched.changed):
        return TypeChanges(touched.kind, rows, deletes=deletes)
    before = stored_rows(touched, touched.changed)
    known = pc.is_in(rows["id"], value_set=one_array(before["id"]))
    inserts, updates = rows.filter(pc.invert(known)), rows.filter(known)
    return TypeChanges(touched.kind, inserts, updates, before, deletes)


def _none(touched: Touched) -> pa.Table:
    fields = [(name, pa.string()) for name in before_columns(touched.kind)]
    return pa.schema(fields).empty_table()


def _each_once(case: Verification, txn: WriteTxn, change: TypeChanges) -> bool:
    """Whether no two rows have the same id."""
    touched = case.touched[change.kind.table_id]
    given = [one_array(t["id"]) for t in (change.inserts, change.updates) if t is not None]
    ids = pa.concat_arrays(given)
    if not touched.repeatable or not len(ids):
        return True
    if len(pc.unique(ids)) < len(ids):
        return False
    if case.mode is not Mode.APPEND or not touched.base.rows:
        return True
    return not len(txn.view(change.kind.table_id).existing(ids))


def fresh_rows(touched: Touched) -> Iterator[pa.Table]:
    """The columns that rules use, of the new rows, one fragment at a time."""
    image, columns = touched.after, before_columns(touched.kind)
    table = open_table(image.uri, image.ref)
    for fragment in sorted(image.fresh):
        yield pa.Table.from_batches(table.batches(columns, fragments=[fragment]))


def stored_rows(touched: Touched, rows: RowAddresses) -> pa.Table:
    """The columns that rules use, of stored rows."""
    stored = open_table(touched.base.uri, touched.base.ref)
    return stored.take(rows.addresses, before_columns(touched.kind))
