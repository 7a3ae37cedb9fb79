"""Whether existing rows obey the rules of a schema change.

Others may write while they are read. Valid tables are remembered by version, and on a newer one only the rows that
differ are judged, with those they may break a rule together with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.txn import WriteTxn
from omnigraph.errors import Violation
from omnigraph.lang.schema.steps import AddConstraint, ChangeCardinality, Constraint, Step
from omnigraph.merge.rows import Delta, by_fragments
from omnigraph.model.catalog import Check, EdgeType, NodeOrEdgeType, NodeType, Range
from omnigraph.model.changes import NOWHERE
from omnigraph.model.columns import arrow_schema, one_array
from omnigraph.model.keys import key_ids
from omnigraph.storage.tables import Table
from omnigraph.validate.checks import miscounted, shared_values
from omnigraph.validate.findings import VIOLATIONS_MAX
from omnigraph.validate.rules import (
    EdgesPerSource,
    Unique,
    mismatched_ids,
    missing_keys,
    row_violations,
)
from omnigraph.values.columns import default_of


class JudgedTables:
    """The versions of tables whose rows were found to obey all new rules of one schema change."""

    def __init__(self) -> None:
        self._found: dict[str, Table] = {}
        self._epoch = -1

    def add(self, txn: WriteTxn, table_ids: Iterable[str]) -> None:
        """Record these tables as valid."""
        self._epoch = txn.snapshot.commit.gc_epoch
        self._found = {table_id: txn.snapshot.table(table_id) for table_id in table_ids}

    def since(self, txn: WriteTxn, table_id: str, columns: Sequence[str]) -> Delta | None:
        """What changed since a table was judged; None if it never was, or a collection may have removed that state."""
        earlier = self._found.get(table_id)
        if earlier is None or self._epoch != txn.snapshot.commit.gc_epoch:
            return None
        return by_fragments(earlier, txn.snapshot.table(table_id), columns)


def broken_rules(
    steps: tuple[Step, ...],
    before: Mapping[str, NodeOrEdgeType],
    after: Mapping[str, NodeOrEdgeType],
    txn: WriteTxn,
    judged: JudgedTables,
) -> tuple[list[Violation], list[str]]:
    """The stored rows that break a new rule, up to a bound, and the tables that were read to find out."""
    found: list[Violation] = []
    stored: dict[str, _Stored] = {}
    new = [
        (step, step.table_id)
        for step in steps
        if isinstance(step, AddConstraint | ChangeCardinality) and not _is_index(step)
    ]
    for step, table in new:
        if table is None or table not in before:
            continue
        if table not in stored:
            stored[table] = _Stored(before[table], after[table], txn)
            named = [name for other, its in new if its == table for name in _fields(other)]
            columns = stored[table].stored_names((*named, *(after[table].key or ())))
            stored[table].changed = judged.since(txn, table, columns)
        found += islice(_broken(step, after[table], stored[table]), VIOLATIONS_MAX)
    return found[:VIOLATIONS_MAX], list(stored)


def _fields(step: AddConstraint | ChangeCardinality) -> tuple[str, ...]:
    return tuple(step.constraint.fields) if isinstance(step, AddConstraint) else ("src",)


def _is_index(step: Step) -> bool:
    """An index restricts nothing."""
    return isinstance(step, AddConstraint) and step.constraint.kind == "index"


def _broken(
    step: AddConstraint | ChangeCardinality, kind: NodeOrEdgeType, rows: _Stored
) -> Iterator[Violation]:
    if isinstance(step, AddConstraint):
        yield from _broken_constraint(step.constraint, kind, rows)
    elif isinstance(kind, EdgeType):
        leaving = one_array(rows.leaving()["src"])
        bounds = kind.cardinality
        rule = EdgesPerSource(kind, bounds.minimum, bounds.maximum)
        yield from miscounted(rule, pc.unique(leaving), leaving)


def _broken_constraint(
    rule: Constraint, kind: NodeOrEdgeType, rows: _Stored
) -> Iterator[Violation]:
    fields = rule.fields
    match rule.kind:
        case "unique":
            yield from shared_values(rows.sharing(fields), Unique(kind, fields))
        case "key":
            table = rows.read(fields)
            ids = key_ids([table[name] for name in kind.key or fields])
            yield from missing_keys(table, ids, kind, NOWHERE)
            yield from mismatched_ids(table, ids, kind, NOWHERE)
        case "range":
            bounds = Range(fields[0], rule.minimum, rule.maximum)
            yield from row_violations(rows.read(fields), replace(kind, ranges=(bounds,), checks=()))
        case "check":
            pattern = Check(fields[0], rule.pattern or "")
            yield from row_violations(
                rows.read(fields), replace(kind, ranges=(), checks=(pattern,))
            )


class _Stored:
    """The rows of a table as the new schema will see them: new names, new types, defaults for new columns.

    With `changed`, all others were judged before.
    """

    def __init__(self, before: NodeOrEdgeType, after: NodeOrEdgeType, txn: WriteTxn) -> None:
        self._table = txn.snapshot.table(before.table_id)
        self._old_names = {p.property_id: p.name for p in before.properties.values()}
        self._kind = after
        self.changed: Delta | None = None

    def read(self, names: tuple[str, ...]) -> pa.Table:
        """Some columns of the rows to judge, and those that identify a row."""
        if self.changed is not None:
            return self._seen(self.changed.after, names)
        return self._seen(self._table.scan(self.stored_names(names)), names)

    def sharing(self, names: tuple[str, ...]) -> pa.Table:
        """The same, and all rows that have a value in common with one of them."""
        old = self._old(names[0])
        if self.changed is None or old is None:
            return self._seen(self._table.scan(self.stored_names(names)), names)
        return self._with_one_of(old, self.changed.after[old], names)

    def leaving(self) -> pa.Table:
        """The same for edges, and all edges from any of their current or former sources."""
        if self.changed is None:
            return self.read(("src",))
        ends = [*self.changed.before["src"].chunks, *self.changed.after["src"].chunks]
        return self._with_one_of("src", pa.chunked_array(ends, pa.string()), ("src",))

    def _with_one_of(
        self, column: str, values: pa.ChunkedArray, names: tuple[str, ...]
    ) -> pa.Table:
        wanted = one_array(pc.unique(values.drop_null()))
        return self._seen(self._table.lookup(column, wanted, self.stored_names(names)), names)

    def _wanted(self, names: tuple[str, ...]) -> list[str]:
        structural = ["id"] if isinstance(self._kind, NodeType) else ["id", "src", "dst"]
        return list(dict.fromkeys([*structural, *names]))

    def stored_names(self, names: tuple[str, ...]) -> list[str]:
        """The names in the table of these columns, and of those that identify a row."""
        return [old for name in self._wanted(names) if (old := self._old(name)) is not None]

    def _seen(self, stored: pa.Table, names: tuple[str, ...]) -> pa.Table:
        schema = arrow_schema(self._kind)
        fields = [schema.field(name) for name in self._wanted(names)]
        return pa.table([self._column(stored, f) for f in fields], schema=pa.schema(fields))

    def _old(self, name: str) -> str | None:
        prop = self._kind.properties.get(name)
        return name if prop is None else self._old_names.get(prop.property_id)

    def _column(self, stored: pa.Table, field: pa.Field) -> pa.Array | pa.ChunkedArray:
        old = self._old(field.name)
        if old is None:
            default = default_of(self._kind.properties[field.name])
            return pa.repeat(default, stored.num_rows)
        return stored[old].cast(field.type)
