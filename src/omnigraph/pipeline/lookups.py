"""Few new rows in a large graph: verified by look-ups, like a local write, so that the cost depends on the new rows.

The rules are those of `validate.checks`. This only decides whether there is any violation; if so, `verify`
finds them, with messages and places for a report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.txn import WriteTxn
from omnigraph.model.catalog import EdgeType
from omnigraph.model.changes import Changes, TypeChanges
from omnigraph.model.columns import one_array
from omnigraph.pipeline.table_versions import open_table
from omnigraph.pipeline.verify import Touched, Verification
from omnigraph.validate.checks import check_cardinality, check_endpoints, check_unique
from omnigraph.validate.findings import Case, Looked
from omnigraph.write.resolve import Mode

LOOKED_UP_ROWS_MAX = 500_000  # new rows whose ids, ends and unique values the driver holds


def are_few(case: Verification, rows: int) -> bool:
    """Whether a load has so few rows that look-ups cost less than comparing whole tables."""
    return case.mode is not Mode.OVERWRITE and rows <= LOOKED_UP_ROWS_MAX


def nothing_is_wrong(
    case: Verification,
    txn: WriteTxn,
    before: Mapping[str, pa.Table],
    gone: Mapping[str, pa.Table],
) -> bool:
    """Whether all rules between rows hold; `before` has the stored rows that change, `gone` the removed ones."""
    changes = Changes(
        {
            table: replace(_change(t, before.get(table)), deletes=gone.get(table))
            for table, t in case.touched.items()
        }
    )
    return all(_each_once(case, txn, changes.tables[t]) for t in case.touched) and not any(
        not isinstance(found, Looked)
        for check in (check_unique, check_endpoints, check_cardinality)
        for found in check(Case(_for(check, changes), txn))
    )


def _for(check: object, changes: Changes) -> Changes:
    """A load keeps the ids and ends of updated rows, not the unique values: all of them count as new."""
    if check is not check_unique:
        return changes
    tables = changes.tables.items()
    return Changes(
        {t: TypeChanges(c.kind, c.inserts, c.updates, deletes=c.deletes) for t, c in tables}
    )


def _change(touched: Touched, before: pa.Table | None) -> TypeChanges:
    rows = pa.concat_tables(fresh_rows(touched)) if touched.after.fresh else _none(touched)
    if before is None:
        return TypeChanges(touched.kind, rows)
    known = pc.is_in(rows["id"], value_set=one_array(before["id"]))
    inserts, updates = rows.filter(pc.invert(known)), rows.filter(known)
    return TypeChanges(touched.kind, inserts, updates, before)


def _none(touched: Touched) -> pa.Table:
    fields = [(name, pa.string()) for name in _columns(touched)]
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


def _columns(touched: Touched) -> list[str]:
    """The columns that rules between rows use."""
    kind = touched.kind
    ends = ("src", "dst") if isinstance(kind, EdgeType) else ()
    members = (name for group in kind.uniques for name in group)
    return list(dict.fromkeys(["id", *ends, *members]))


def fresh_rows(touched: Touched) -> Iterator[pa.Table]:
    """The columns that rules use, of the new rows, one fragment at a time."""
    image, columns = touched.after, _columns(touched)
    table = open_table(image.uri, image.ref)
    for fragment in sorted(image.fresh):
        yield pa.Table.from_batches(table.batches(columns, fragments=[fragment]))
