"""Change records: rows that describe changes to rows of other systems, in the formats of those systems.

A `ChangeFormat` names the columns of the operation and the order, and says where the row itself is. Records become
plain rows with two marks, their order and whether they delete; `write.repeats` decides by them.
"""

# ruff: noqa: S608 - expressions are checked to be expressions, and names are quoted

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import OptionInvalid
from omnigraph.expressions.filters import string
from omnigraph.model.columns import one_array
from omnigraph.model.frozen import frozen
from omnigraph.read.ndjson import quoted
from omnigraph.values.misfit import Misfit
from omnigraph.write.input.expressions import (
    GIVEN,
    ROW,
    MappingInvalid,
    RowEngine,
    Unworkable,
    numbered,
    over,
    plausible,
)
from omnigraph.write.input.parts import InputPart
from omnigraph.write.input.problems import Problems
from omnigraph.write.input.tables import DELETED, ORDER, RawRows, RowShape, RowsOf
from omnigraph.write.repeats import as_order

OPERATION = "omnigraph_operation"
OPERATION_MEMBER, ORDER_MEMBER = "omnigraph_op", "omnigraph_at"  # of records in lines of JSON
UPSERTS = ("insert", "i", "create", "c", "update", "u", "upsert", "read", "r")
DELETES = ("delete", "d", "remove")


@frozen
class ChangeFormat:
    """How change records are written: SQL expressions for the operation and the order, and the known operations.

    With `images`, the row is in one of two structs, as it was before or is after the change; without, the other
    columns are the row, except those that are `apart`.
    """

    operation: str
    order: str
    images: tuple[str, str] | None = None
    upserts: tuple[str, ...] = UPSERTS
    deletes: tuple[str, ...] = DELETES
    ignores: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        plausible(self.operation)
        plausible(self.order)

    def opened(self) -> ChangeFormat:
        """The same for records whose members became columns."""
        names = (OPERATION_MEMBER, ORDER_MEMBER)
        return replace(self, operation=names[0], order=names[1], images=None, apart=names)

    def members(self, line: str, wanted: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """Columns of a record that is a line of JSON, possibly inside an envelope with its schema."""
        before, after = self.images or ("", "")
        whole = f"coalesce({line} -> '$.payload', {line})"
        said = f"({whole} ->> {string('$.' + self.operation)})"
        yield OPERATION_MEMBER, said
        yield ORDER_MEMBER, f"{whole} ->> {string('$.' + self.order)}"
        gone = ", ".join(map(string, self.deletes))
        image = (
            f"(CASE WHEN lower({said}) IN ({gone}) THEN {whole} -> {string('$.' + before)} "
            f"ELSE {whole} -> {string('$.' + after)} END)"
        )
        for name, path in wanted:
            yield name, f"{image} ->> {string(path)}"


DEBEZIUM = ChangeFormat(
    "op", "ts_ms", ("before", "after"), upserts=("c", "u", "r"), deletes=("d",), ignores=("m",)
)
DELTA = ChangeFormat(
    "_change_type",
    "_commit_version",
    upserts=("insert", "update_postimage"),
    deletes=("delete",),
    ignores=("update_preimage",),
    apart=("_commit_timestamp",),
)
FORMATS = {"debezium": DEBEZIUM, "delta": DELTA}


def change_format(name: str, order: str | None = None) -> ChangeFormat:
    """A format by its name; `order` names another column for the order."""
    found = FORMATS.get(name)
    if found is None:
        raise OptionInvalid(f"change records are {' or '.join(FORMATS)}, not {name!r}")
    return found if order is None else replace(found, order=order)


class ChangedRows:
    """Opens change records and passes their rows, with marks, to the shape of the load."""

    def __init__(self, form: ChangeFormat, rows: RowShape) -> None:
        self._form, self._rows, self._engine = form, rows, RowEngine()

    def parts(self, raw: RawRows, problems: Problems) -> Iterator[InputPart]:
        """The rows of some records."""
        lines = raw.lines
        self._engine.given(numbered(raw.table))
        try:
            opened = self._engine.rows(self._query(raw.table))
        except Unworkable as why:
            raise MappingInvalid(
                f"the source does not hold change records of this format: {why}",
                details={"columns": raw.table.column_names},
            ) from None
        numbers = lines.take(one_array(opened[ROW]))
        try:
            marks = self._marks(opened)
        except Misfit as misfit:
            line = None if misfit.row is None else numbers[misfit.row].as_py()
            problems.add(misfit.violation("", raw.file, line))
            return
        rows = opened.drop_columns([ROW, OPERATION, ORDER])
        for name, mark in zip((ORDER, DELETED), marks, strict=True):
            rows = rows.append_column(name, mark)
        yield from self._rows.parts(replace(raw, table=rows, numbers=numbers), problems)

    def _query(self, table: pa.Table) -> str:
        form, columns = self._form, table.column_names
        said = f"lower(CAST((\n{over(form.operation, columns)}\n) AS VARCHAR))"
        if form.images is None:
            known = [quoted(name) for name in table.column_names if name in self._apart(table)]
            rest, nothing = f"* EXCLUDE ({', '.join([*known, ROW])})", "false"
        else:  # an empty record follows a deletion, for compacted logs
            before, after = map(quoted, form.images)
            gone = ", ".join(map(string, form.deletes))
            rest = f"unnest(CASE WHEN {said} IN ({gone}) THEN {before} ELSE {after} END)"
            nothing = f"{said} IS NULL AND {before} IS NULL AND {after} IS NULL"
        ignored = ", ".join(map(string, ("", *form.ignores)))
        return (
            f"SELECT {ROW}, {said} AS {OPERATION}, (\n{over(form.order, columns)}\n) AS {ORDER}, {rest} "
            f"FROM {GIVEN} WHERE NOT ({nothing}) AND coalesce({said}, ' ') NOT IN ({ignored})"
        )

    def _apart(self, table: pa.Table) -> set[str]:
        """The columns that are not part of the row. A mapping selects columns; a type knows its own."""
        if not isinstance(self._rows, RowsOf):
            return set()
        form, known = self._form, self._rows.kind.properties
        said = {form.operation, form.order, *form.apart}
        return {name for name in said if name in table.column_names and name not in known}

    def _marks(self, opened: pa.Table) -> tuple[pa.Int64Array, pa.BooleanArray]:
        form, operations = self._form, one_array(opened[OPERATION])
        deletes = pc.is_in(operations, value_set=pa.array(form.deletes, pa.string()))
        known = pc.or_(deletes, pc.is_in(operations, value_set=pa.array(form.upserts, pa.string())))
        if not pc.all(known, min_count=0).as_py():
            row = pc.index(known, False).as_py()
            said = operations[row].as_py()
            wanted = ", ".join((*form.upserts, *form.deletes))
            message = f"the operation of a change record is one of {wanted}, not {said!r}"
            raise Misfit(message, rule="operation", value=said, row=row)
        given = one_array(opened[ORDER])
        try:
            order = as_order(given)
        except pa.ArrowException as error:
            message = (
                f"the order of change records is a whole number, a date or a date-time: {error}"
            )
            raise Misfit(message, rule="order") from None
        if order.null_count:
            row = pc.index(order.is_null(), True).as_py()
            raise Misfit("a change record has no order", rule="order", row=row)
        return order, deletes
