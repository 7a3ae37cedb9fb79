"""Rules about the values of one row: required, vectors, enums, ranges, patterns.

They need nothing but the rows, so that whoever has rows can check them: `row_violations`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Violation
from omnigraph.model.catalog import EdgeType, EntityType, Property, Range
from omnigraph.model.changes import NOWHERE, Origin
from omnigraph.model.ordering import integer_range
from omnigraph.validate.findings import VIOLATIONS_MAX, Case, Finding, offenders, plain, shown


def check_values(case: Case) -> Iterator[Finding]:
    """Every new or changed row obeys the rules of its type."""
    for change in case.changes:
        for rows, origin in (
            (change.inserts, change.insert_origin),
            (change.updates, change.update_origin),
        ):
            if rows is not None and rows.num_rows:
                yield from islice(_broken(rows, change.kind, origin, case.limit), case.limit)


def row_violations(
    rows: pa.Table, kind: EntityType, origin: Origin = NOWHERE, limit: int = VIOLATIONS_MAX
) -> list[Violation]:
    """What is wrong with whole rows of a type, each looked at for itself; at most `limit` of it."""
    return list(islice(_broken(rows, kind, origin, limit), limit))


def _broken(rows: pa.Table, kind: EntityType, origin: Origin, limit: int) -> Iterator[Violation]:
    for rule, name, mask, explain in _rules(rows, kind):
        for row, file, line in offenders(rows, mask, (name,), origin, limit):
            value = row[name]
            yield Violation(
                rule=rule,
                type_name=kind.name,
                id=row.get("id"),
                property=name,
                value=plain(value),
                message=f"{_subject(kind.name, name, row.get('id'))} {explain(value)}",
                file=file,
                line=line,
            )


def _subject(type_name: str, name: str, entity: str | None) -> str:
    return f"{type_name}.{name}" if entity is None else f"{type_name}.{name} of {shown(entity)}"


Rule = tuple[str, str, Any, Any]  # rule, column, mask of the rows that break it, the value to words


def _rules(rows: pa.Table, kind: EntityType) -> Iterator[Rule]:
    for side in ("src", "dst") if isinstance(kind, EdgeType) else ():
        if rows[side].null_count:
            yield "required", side, pc.is_null(rows[side]), _is_missing
    for name, prop in kind.properties.items():
        if name in rows.column_names:
            yield from _property_rules(rows[name], prop)
    for bounds in kind.ranges:
        if bounds.property in rows.column_names:
            yield from _range_rules(rows[bounds.property], bounds)
    for check in kind.checks:
        if check.property in rows.column_names:
            pattern = check.pattern
            unlike = pc.invert(pc.match_substring_regex(rows[check.property], pattern))
            yield (
                "check",
                check.property,
                unlike,
                lambda v, p=pattern: f"is {shown(v)}, which does not match @check {p!r}",
            )


def _property_rules(values: pa.ChunkedArray, prop: Property) -> Iterator[Rule]:
    if not prop.type.nullable and values.null_count:
        yield "required", prop.name, pc.is_null(values), _is_missing
    if prop.type.enum is not None:
        allowed = pa.array(prop.type.enum, pa.string())
        strange = pc.and_(pc.is_valid(values), pc.invert(pc.is_in(values, value_set=allowed)))
        words = ", ".join(prop.type.enum)
        yield "enum", prop.name, strange, lambda v: f"is {shown(v)}, not one of {words}"
    if prop.type.is_vector:
        yield "type", prop.name, _unfit_vectors(values, prop), _is_unfit


def _is_missing(_: Any) -> str:
    return "is required and has no value"


def _is_unfit(value: Any) -> str:
    return f"is a vector with a member that is not a finite number: {shown(value)}"


def _unfit_vectors(values: pa.ChunkedArray, prop: Property) -> pa.Array:
    """Vectors with a null or non-finite member."""
    masks = [_unfit_chunk(chunk, prop.type.vector_dim or 1) for chunk in values.chunks]
    return pa.chunked_array(masks, pa.bool_())


def _unfit_chunk(chunk: pa.FixedSizeListArray, dimension: int) -> pa.BooleanArray:
    whole = chunk.values.slice(chunk.offset * dimension, len(chunk) * dimension)
    numbers = whole.to_numpy(zero_copy_only=False).reshape(len(chunk), dimension)
    unfit = ~np.isfinite(numbers).all(axis=1)  # a null member shows as NaN
    return pc.and_(pa.array(unfit), chunk.is_valid())


def _range_rules(values: pa.ChunkedArray, bounds: Range) -> Iterator[Rule]:
    name, low, high = bounds.property, bounds.minimum, bounds.maximum
    if pa.types.is_floating(values.type):
        yield "range", name, pc.is_nan(values), lambda _: "is NaN, which no @range allows"
    if low is not None:
        words = f"below the minimum {low} of its @range"
        yield "range", name, _below(values, low), lambda v: f"is {shown(v)}, {words}"
    if high is not None:
        beyond = f"above the maximum {high} of its @range"
        yield "range", name, _above(values, high), lambda v: f"is {shown(v)}, {beyond}"


def _below(values: pa.ChunkedArray, bound: int | float) -> pa.ChunkedArray:
    if pa.types.is_floating(values.type):
        return pc.less(values, pa.scalar(float(bound), values.type))
    least, greatest = integer_range(values.type)
    whole = max(math.ceil(bound), least)
    return (
        pc.is_valid(values) if whole > greatest else pc.less(values, pa.scalar(whole, values.type))
    )


def _above(values: pa.ChunkedArray, bound: int | float) -> pa.ChunkedArray:
    if pa.types.is_floating(values.type):
        return pc.greater(values, pa.scalar(float(bound), values.type))
    least, greatest = integer_range(values.type)
    whole = min(math.floor(bound), greatest)
    return (
        pc.is_valid(values) if whole < least else pc.greater(values, pa.scalar(whole, values.type))
    )
