"""Whether the rows that exist obey the rules a schema change brings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.txn import WriteTxn
from omnigraph.errors import Violation
from omnigraph.lang.schema.steps import AddConstraint, ChangeCardinality, Constraint, Step
from omnigraph.model.catalog import Check, EdgeType, NodeType, Range
from omnigraph.model.changes import NOWHERE
from omnigraph.model.columns import arrow_schema
from omnigraph.model.keys import key_ids
from omnigraph.validate import miscounted, row_violations, shared_values
from omnigraph.validate.findings import VIOLATIONS_MAX
from omnigraph.validate.keys import mismatched_ids, missing_keys
from omnigraph.write.resolve import default_of

Kind = NodeType | EdgeType


def broken_rules(
    steps: tuple[Step, ...], before: Mapping[str, Kind], after: Mapping[str, Kind], txn: WriteTxn
) -> tuple[list[Violation], list[str]]:
    """The stored rows that break a new rule, up to a bound, and the tables that were read to find out."""
    found: list[Violation] = []
    looked: list[str] = []
    for step in steps:
        if not isinstance(step, AddConstraint | ChangeCardinality) or _is_index(step):
            continue
        table = step.table_id
        if table is None or table not in before:
            continue
        looked.append(table)
        rows = _Stored(before[table], after[table], txn)
        found += islice(_broken(step, after[table], rows), VIOLATIONS_MAX)
    return found[:VIOLATIONS_MAX], looked


def _is_index(step: Step) -> bool:
    """An index restricts nothing."""
    return isinstance(step, AddConstraint) and step.constraint.kind == "index"


def _broken(
    step: AddConstraint | ChangeCardinality, kind: Kind, rows: _Stored
) -> Iterator[Violation]:
    if isinstance(step, AddConstraint):
        yield from _broken_constraint(step.constraint, kind, rows)
    elif isinstance(kind, EdgeType):
        leaving = _one(rows.read(("src",))["src"])
        yield from miscounted(kind, pc.unique(leaving), leaving, VIOLATIONS_MAX)


def _broken_constraint(rule: Constraint, kind: Kind, rows: _Stored) -> Iterator[Violation]:
    fields = rule.fields
    match rule.kind:
        case "unique":
            yield from shared_values(rows.read(fields), kind, fields)
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
    """The rows of a table as the new schema will see them: new names, new types, defaults where a column is new."""

    def __init__(self, before: Kind, after: Kind, txn: WriteTxn) -> None:
        self._view = txn.view(before.table_id)
        self._old_names = {p.property_id: p.name for p in before.properties.values()}
        self._kind = after

    def read(self, names: tuple[str, ...]) -> pa.Table:
        """Some columns of all rows, and those that identify a row."""
        structural = ["id"] if isinstance(self._kind, NodeType) else ["id", "src", "dst"]
        wanted = list(dict.fromkeys([*structural, *names]))
        stored = self._view.scan([old for name in wanted if (old := self._old(name)) is not None])
        schema = arrow_schema(self._kind)
        columns = [self._column(stored, schema.field(name)) for name in wanted]
        return pa.table(columns, schema=pa.schema([schema.field(name) for name in wanted]))

    def _old(self, name: str) -> str | None:
        prop = self._kind.properties.get(name)
        return name if prop is None else self._old_names.get(prop.property_id)

    def _column(self, stored: pa.Table, field: pa.Field) -> pa.Array | pa.ChunkedArray:
        old = self._old(field.name)
        if old is None:
            default = default_of(self._kind.properties[field.name])
            return pa.repeat(default, stored.num_rows)
        return stored[old].cast(field.type)


def _one(values: pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks()
