"""The rules of a schema for rows, as data: every rule once, with its meaning and the message for violations.

Rules of single rows (`row_rules`) have one execution, `row_violations`, which the tasks of bulk loads call too. Rules
between rows (`rules_between`) have two, both derived from this list: `checks` looks up what a write touches, and
`pipeline.verify` queries whole tables in SQL. `tests/pipeline/test_rules.py` compares the two over random schemas.

Values are equal here as in keys: -0.0 equals 0.0 and NaN equals itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Violation
from omnigraph.expressions.comparing import compare_with
from omnigraph.lang.ir import CompareOp
from omnigraph.model.catalog import (
    Catalog,
    EdgeType,
    EntityType,
    NodeOrEdgeType,
    NodeType,
    Property,
    Range,
)
from omnigraph.model.changes import NOWHERE, Origin
from omnigraph.model.frozen import frozen
from omnigraph.validate.findings import VIOLATIONS_MAX, offenders, plain, shown

Mask: TypeAlias = pa.Array | pa.ChunkedArray


# --- single rows -------------------------------------------------------------------------------------------------


@frozen
class RowRule:
    """A rule about one column of each row: which values break it (None: no value does), and why."""

    name: str
    column: str
    broken: Callable[[pa.ChunkedArray], Mask | None]
    reason: Callable[[Any], str]


def row_rules(kind: EntityType) -> Iterator[RowRule]:
    """The rules of a type about single rows, in the order in which reports list them."""
    if isinstance(kind, EdgeType):
        yield from (_required(side) for side, _ in kind.ends)
    for prop in kind.properties.values():
        yield from _property_rules(prop)
    for bounds in kind.ranges:
        yield from _range_rules(bounds)
    for check in kind.checks:
        yield _pattern(check.property, check.pattern)


def row_violations(
    rows: pa.Table, kind: EntityType, origin: Origin = NOWHERE, limit: int = VIOLATIONS_MAX
) -> list[Violation]:
    """The violations of whole rows of a type, each checked separately; at most `limit`."""
    return list(islice(_row_violations(rows, kind, origin, limit), limit))


def _row_violations(
    rows: pa.Table, kind: EntityType, origin: Origin, limit: int
) -> Iterator[Violation]:
    for rule in row_rules(kind):
        name = rule.column
        mask = rule.broken(rows[name]) if name in rows.column_names else None
        for row, file, line in offenders(rows, mask, (name,), origin, limit):
            entity = row.get("id")
            subject = f"{kind.name}.{name}" + ("" if entity is None else f" of {shown(entity)}")
            yield Violation(
                rule=rule.name,
                type_name=kind.name,
                id=entity,
                property=name,
                value=plain(row[name]),
                message=f"{subject} {rule.reason(row[name])}",
                file=file,
                line=line,
            )


def _required(name: str) -> RowRule:
    return RowRule(
        "required",
        name,
        lambda values: pc.is_null(values) if values.null_count else None,
        lambda _: "is required and has no value",
    )


def _property_rules(prop: Property) -> Iterator[RowRule]:
    if not prop.type.nullable:
        yield _required(prop.name)
    if prop.type.enum is not None:
        allowed, words = pa.array(prop.type.enum, pa.string()), ", ".join(prop.type.enum)
        yield RowRule(
            "enum",
            prop.name,
            lambda v: pc.and_(pc.is_valid(v), pc.invert(pc.is_in(v, value_set=allowed))),
            lambda value: f"is {shown(value)}, not one of {words}",
        )
    if prop.type.is_vector:
        yield RowRule(
            "type",
            prop.name,
            lambda values: _not_finite(values, prop.type.vector_dim or 1),
            lambda v: f"is a vector with a member that is not a finite number: {shown(v)}",
        )


def _not_finite(vectors: pa.ChunkedArray, dimension: int) -> Mask:
    """Vectors with a null or non-finite member."""
    masks = []
    for chunk in vectors.chunks:
        whole = chunk.values.slice(chunk.offset * dimension, len(chunk) * dimension)
        numbers = whole.to_numpy(zero_copy_only=False).reshape(len(chunk), dimension)
        unfit = ~np.isfinite(numbers).all(axis=1)  # a null member shows as NaN
        masks.append(pc.and_(pa.array(unfit), chunk.is_valid()))
    return pa.chunked_array(masks, pa.bool_())


def _range_rules(bounds: Range) -> Iterator[RowRule]:
    name, low, high = bounds.property, bounds.minimum, bounds.maximum
    yield RowRule("range", name, _is_nan, lambda _: "is NaN, which no @range allows")
    if low is not None:
        below = f"below the minimum {low} of its @range"
        less = partial(_beyond, CompareOp.LT, bound=low)
        yield RowRule("range", name, less, lambda v: f"is {shown(v)}, {below}")
    if high is not None:
        above = f"above the maximum {high} of its @range"
        more = partial(_beyond, CompareOp.GT, bound=high)
        yield RowRule("range", name, more, lambda v: f"is {shown(v)}, {above}")


def _is_nan(values: pa.ChunkedArray) -> Mask | None:
    return pc.is_nan(values) if pa.types.is_floating(values.type) else None


def _beyond(op: CompareOp, values: pa.ChunkedArray, bound: int | float) -> Mask:
    """A float bound is rounded to the property's type: 0.1 is within 0.1 in an F32, too."""
    if pa.types.is_floating(values.type):
        bound = pa.scalar(float(bound), values.type).as_py()
    return compare_with(op, values, bound)


def _pattern(name: str, pattern: str) -> RowRule:
    return RowRule(
        "check",
        name,
        lambda values: pc.invert(pc.match_substring_regex(values, pattern)),
        lambda value: f"is {shown(value)}, which does not match @check {pattern!r}",
    )


# --- rows together -----------------------------------------------------------------------------------------------


@frozen
class Unique:
    """No two rows hold the same values in these columns; a row with a null among them is exempt."""

    kind: EntityType
    columns: tuple[str, ...]

    def duplicates(self, rows: pa.Table, limit: int) -> Iterator[Violation]:
        """The first rows by id, each with the id of another row with its values, as `holder`."""
        single = len(self.columns) == 1
        for row in rows.sort_by("id").slice(0, limit).to_pylist():
            values = [row[name] for name in self.columns]
            value = values[0] if single else values
            held = f"held by {shown(row['id'])} and {shown(row['holder'])}"
            subject = f"{self.kind.name}.{key_name(self.columns)}"
            yield Violation(
                rule="unique",
                type_name=self.kind.name,
                id=row["id"],
                property=self.columns[0] if single else None,
                value=plain(value),
                message=f"{subject} is @unique, but {shown(value)} would be {held}",
                extra={"other_id": row["holder"], "properties": list(self.columns)},
            )


@frozen
class Endpoint:
    """Every edge ends at a node: `side` of each row of `kind` is the id of a row of `node`."""

    kind: EdgeType
    side: str
    node: NodeType

    def dangling(
        self, rows: pa.Table, mask: Mask, origin: Origin, limit: int
    ) -> Iterator[Violation]:
        """The first edges by id, among those of the mask, that the write attaches to missing nodes."""
        for row, file, line in offenders(rows, mask, (self.side,), origin, limit):
            end = f"{self.side} {shown(row[self.side])} of {self.kind.name}"
            yield Violation(
                rule="endpoint",
                type_name=self.kind.name,
                id=row["id"],
                property=self.side,
                value=row[self.side],
                message=f"{end} is not found in {self.node.name}",
                file=file,
                line=line,
            )

    def orphaned(self, edges: pa.Table, limit: int) -> Iterator[Violation]:
        """The first stored edges by id that would lose their node."""
        side = self.side
        for row in edges.select(["id", side]).sort_by("id").slice(0, limit).to_pylist():
            node, edge = f"{self.node.name} {shown(row[side])}", shown(row["id"])
            yield Violation(
                rule="orphan_edge",
                type_name=self.kind.name,
                id=row["id"],
                property=side,
                value=row[side],
                message=f"{node} would be deleted, but {self.kind.name} {edge} still has it as {side}",
            )


@frozen
class EdgesPerSource:
    """A node that gains or loses an edge of `kind` has as many as `@card` allows; a deleted node needs none."""

    kind: EdgeType
    minimum: int
    maximum: int | None

    def outside(self, counted: pa.Table, limit: int) -> Iterator[Violation]:
        """The first sources (`src`) whose number of edges (`count`) is too small or too large."""
        counts, low, high = counted["count"], self.minimum, self.maximum
        wrong = pc.less(counts, low)
        if high is not None:
            wrong = pc.or_(wrong, pc.greater(counts, high))
        for row in counted.filter(wrong).sort_by("src").slice(0, limit).to_pylist():
            source, count = row["src"], row["count"]
            bound = f"at least {low}" if count < low else f"at most {high}"
            subject = f"{self.kind.from_type} {shown(source)}"
            yield Violation(
                rule="cardinality",
                type_name=self.kind.name,
                id=None,
                property="src",
                value=source,
                message=f"{subject} would have {count} {self.kind.name} edges, but @card allows {bound}",
                extra={"count": count, "minimum": low, "maximum": high},
            )


Rule = Unique | Endpoint | EdgesPerSource


def rules_between(kind: NodeOrEdgeType, catalog: Catalog) -> Iterator[Rule]:
    """The rules of a type between rows, besides the uniqueness of ids."""
    yield from (Unique(kind, columns) for columns in kind.uniques)
    if isinstance(kind, EdgeType):
        yield from (Endpoint(kind, side, catalog.nodes[node]) for side, node in kind.ends)
        bounds = kind.cardinality
        if not bounds.is_free:
            yield EdgesPerSource(kind, bounds.minimum, bounds.maximum)


# --- ids ---------------------------------------------------------------------------------------------------------


def missing_keys(
    rows: pa.Table, ids: pa.Array, kind: EntityType, origin: Origin, limit: int = VIOLATIONS_MAX
) -> Iterator[Violation]:
    """Rows whose key does not give an id: a member is null, or a number that is not finite."""
    key = kind.key or ()
    for row, file, line in offenders(rows, ids.is_null(), key, origin, limit):
        empty = [name for name in key if row.get(name) is None]
        why = f"{', '.join(empty)} has no value" if empty else "a member is not a finite number"
        yield Violation(
            rule="key",
            type_name=kind.name,
            id=None,
            property=empty[0] if empty else key[0],
            value=key_value(row, key),
            message=f"{kind.name} cannot be identified by its key {key_name(key)}: {why}",
            file=file,
            line=line,
        )


def mismatched_ids(
    rows: pa.Table, ids: pa.Array, kind: EntityType, origin: Origin, limit: int = VIOLATIONS_MAX
) -> Iterator[Violation]:
    """Rows that were given an id other than the one their key gives."""
    given = rows["id"].combine_chunks()
    numbered = pa.table({"id": given, "derived": ids})
    differ = pc.not_equal(given, ids)
    for row, file, line in offenders(numbered, differ, ("derived",), origin, limit):
        yield Violation(
            rule="key",
            type_name=kind.name,
            id=row["id"],
            value=row["derived"],
            message=f"{kind.name} was given the id {shown(row['id'])}, "
            f"but its key {key_name(kind.key or ())} makes it {shown(row['derived'])}",
            file=file,
            line=line,
        )


def repeated_ids(
    ids: pa.Array,
    repeated: pa.BooleanArray,
    kind: EntityType,
    origin: Origin,
    limit: int = VIOLATIONS_MAX,
) -> Iterator[Violation]:
    """Rows whose id an earlier row of the same input has."""
    what = f"the key {key_name(kind.key)}" if kind.key else "the id"
    for row, file, line in offenders(pa.table({"id": ids}), repeated, (), origin, limit):
        yield Violation(
            rule="duplicate",
            type_name=kind.name,
            id=row["id"],
            property=kind.key[0] if kind.key and len(kind.key) == 1 else None,
            value=row["id"],
            message=f"{kind.name} {shown(row['id'])} is duplicated: {what} must be unique within one input",
            file=file,
            line=line,
        )


def existing_ids(
    ids: pa.Array,
    existing: pa.BooleanArray,
    kind: EntityType,
    origin: Origin,
    limit: int = VIOLATIONS_MAX,
) -> Iterator[Violation]:
    """New rows whose id already exists."""
    for row, file, line in offenders(pa.table({"id": ids}), existing, (), origin, limit):
        yield Violation(
            rule="key_conflict",
            type_name=kind.name,
            id=row["id"],
            value=row["id"],
            message=f"{kind.name} {shown(row['id'])} already exists",
            file=file,
            line=line,
        )


def key_name(key: tuple[str, ...]) -> str:
    """`code`, or `(code, region)`."""
    return key[0] if len(key) == 1 else f"({', '.join(key)})"


def key_value(row: dict[str, object], key: tuple[str, ...]) -> object:
    """The key of a row in its report form."""
    return plain(row.get(key[0]) if len(key) == 1 else [row.get(name) for name in key])
