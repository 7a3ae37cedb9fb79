"""Bags of rows on Spark: columns by what they mean, and expressions over them by the local engine's own code.

Spark names columns regardless of case and knows no unsigned numbers, so columns get names of their own and travel in
types Spark has (`to_wire`). Expressions are evaluated batch by batch in Arrow, exactly as in process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.types as at

from omnigraph.lang import ir
from omnigraph.lang.evaluate import Bound
from omnigraph.lang.tree import transform, walk
from omnigraph.model.columns import arrow_type
from omnigraph.model.types import PropType
from omnigraph.pipeline.pinned import Pinned
from omnigraph.pipeline.searches import Field, matched
from omnigraph.read.context import Context
from omnigraph.read.expressions import column, holds
from omnigraph.read.rows import Entities, Rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

OUT = "\x00"  # before the name of an output column; variables never start with it
SCORE = "\x08"  # before the name of a score
VALUE = "value"
Key = tuple[str, str]  # a variable and what of it: id, type, src, dst, or `=` and a property

_numbers = count()


def fresh_name() -> str:
    """A column name nobody else has."""
    return f"c{next(_numbers)}"


def prop(name: str) -> str:
    """What a property's column is called beside id, type, src and dst."""
    return "=" + name


# --- types on the wire ---------------------------------------------------------------------------------------------


def wire_type(kind: pa.DataType) -> pa.DataType:
    """The type in which Spark carries a column."""
    if kind == pa.uint32():
        return pa.int64()
    if kind == pa.uint64():
        return pa.decimal128(20, 0)
    if at.is_large_binary(kind):
        return pa.binary()
    if at.is_large_string(kind):
        return pa.string()
    if at.is_list(kind) or at.is_fixed_size_list(kind):
        return pa.list_(wire_type(kind.value_type))
    return kind


def to_wire(values: pa.Array) -> pa.Array:
    """A column as Spark takes it."""
    wanted = wire_type(values.type)
    return values if values.type == wanted else values.cast(wanted)


def from_wire(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column as we store it."""
    return values if values.type == kind else values.cast(kind)


def ddl(kinds: Mapping[str, pa.DataType]) -> Any:
    """The Spark schema of named columns."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(pa.schema([(name, wire_type(k)) for name, k in kinds.items()]))


# --- bags --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Slot:
    """A column of a bag: its name in the DataFrame and its type with us."""

    name: str
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Bag:
    """Rows of an operator."""

    frame: DataFrame
    slots: Mapping[Key, Slot]
    types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of entities, by variable
    edges: frozenset[str] = frozenset()  # variables that are edges

    def col(self, key: Key) -> Column:
        from pyspark.sql import functions as f

        return f.col(self.slots[key].name)

    def names(self) -> list[str]:
        return [slot.name for slot in self.slots.values()]

    def with_frame(self, frame: DataFrame) -> Bag:
        return replace(self, frame=frame)

    def also(self, frame: DataFrame, other: Bag) -> Bag:
        """With what another bag binds, in a DataFrame that has the columns of both."""
        slots = {**other.slots, **self.slots}
        return Bag(frame, slots, {**other.types, **self.types}, self.edges | other.edges)

    def renamed(self) -> Bag:
        """The same rows under new column names, to be joined with themselves."""
        slots = {key: Slot(fresh_name(), slot.type) for key, slot in self.slots.items()}
        pairs = zip(self.slots.values(), slots.values(), strict=True)
        from pyspark.sql import functions as f

        frame = self.frame.select(*(f.col(a.name).alias(b.name) for a, b in pairs))
        return replace(self, frame=frame, slots=slots)


@dataclass(frozen=True, slots=True)
class Run:
    """What every task of a query needs."""

    pinned: Pinned
    bound: Bound

    def context(self) -> Context:
        return Context(self.pinned.snapshot(), self.bound)


# --- expressions ---------------------------------------------------------------------------------------------------


def over_columns(expr: ir.Expr) -> ir.Expr:
    """The expression with what it reads of variables as columns; text searches keep the field they are about."""

    def change(node: Any) -> Any:
        match node:
            case ir.Column(var, name, kind):
                return ir.Output(_text((var, prop(name))), kind)
            case ir.IdOf(var):
                return _id(var)
            case ir.TypeOf(var):
                return _type(var)
            case ir.EndpointOf(var, end):
                return ir.Output(_text((var, end.value)), ir.STRING)
            case ir.PathGet(var, part, kind):
                return ir.Output(_text((var, part.value)), kind)
            case ir.ScoreOf(name, kind):
                return ir.Output(_text((SCORE + name, VALUE)), kind)
            case ir.Output(name, kind) if "\x01" not in name:
                return ir.Output(_text((OUT + name, VALUE)), kind)
            case ir.Same(left, right):
                same = [(_id(left), _id(right)), (_type(left), _type(right))]
                return ir.And(tuple(ir.Compare(ir.CompareOp.EQ, a, b) for a, b in same))
        return node

    if isinstance(expr, ir.TextMatch):
        return expr
    if any(isinstance(part, ir.TextMatch) for part in walk(expr)):
        parts = {id(p): p for p in walk(expr) if isinstance(p, ir.TextMatch)}
        return transform(expr, lambda n: n if id(n) in parts or _inside(n, parts) else change(n))
    return transform(expr, change)


def _inside(node: Any, parts: Mapping[int, ir.TextMatch]) -> bool:
    """Whether a node is the field a text search is about: it needs the entity, not its text."""
    return any(node is part.field for part in parts.values())


def _text(key: Key) -> str:
    return "\x01".join(key)


def _id(var: str) -> ir.Output:
    return ir.Output(_text((var, "id")), ir.STRING)


def _type(var: str) -> ir.Output:
    return ir.Output(_text((var, "type")), ir.STRING)


def expression_type(expr: ir.Expr) -> pa.DataType:
    """The Arrow type of an expression's values."""
    kind = expr.type
    assert isinstance(kind, PropType)  # noqa: S101 - entities and paths are taken apart before
    return arrow_type(kind)


@dataclass(frozen=True, slots=True)
class Formula:
    """Expressions for a task: what to compute into new columns, and which rows to keep."""

    run: Run
    slots: Mapping[Key, Slot]
    types: Mapping[str, tuple[str, ...]]
    edges: frozenset[str]
    predicate: ir.Expr | None = None
    computed: tuple[tuple[Slot, ir.Expr], ...] = ()
    kept: tuple[str, ...] = ()  # names of the columns that stay, in order

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ctx = self.run.context()
        for batch in batches:
            if batch.num_rows:
                yield self.applied(batch, ctx)

    def applied(self, batch: pa.RecordBatch, ctx: Context) -> pa.RecordBatch:
        """One batch filtered and extended."""
        given = {
            key: from_wire(batch.column(slot.name), slot.type) for key, slot in self.slots.items()
        }
        columns = {_text(key): values for key, values in given.items()}
        rows = Rows(batch.num_rows, columns=columns | self._searched(given, ctx))
        if self.predicate is not None:
            mask = holds(self._answered(self.predicate), rows, ctx)
            rows = rows.filter(mask)
            batch = batch.filter(pa.array(mask))
        arrays = [batch.column(name) for name in self.kept]
        arrays += [
            to_wire(_typed(column(self._answered(expr), rows, ctx), slot.type))
            for slot, expr in self.computed
        ]
        names = [*self.kept, *(slot.name for slot, _ in self.computed)]
        return pa.RecordBatch.from_arrays(arrays, names)

    def field(self, field: ir.Column, given: Mapping[Key, pa.Array]) -> Field:
        """A property of a variable's entities, for a search."""
        var = field.var
        values = given[var, prop(field.property)]
        return Field(given[var, "type"], values, self.types[var], var in self.edges)

    def _searches(self) -> list[ir.TextMatch]:
        exprs = [expr for _, expr in self.computed]
        exprs += [] if self.predicate is None else [self.predicate]
        return [part for e in exprs for part in walk(e) if isinstance(part, ir.TextMatch)]

    def _searched(self, given: Mapping[Key, pa.Array], ctx: Context) -> dict[str, pa.Array]:
        """The answers of all text searches, as columns."""
        return {
            _numbered(place): matched(match, self.field(match.field, given), ctx)
            for place, match in enumerate(self._searches())
        }

    def _answered(self, expr: ir.Expr) -> ir.Expr:
        """The expression with its text searches replaced by their answers."""
        searches = self._searches()

        def change(node: Any) -> Any:
            if not isinstance(node, ir.TextMatch):
                return node
            return ir.Output(_numbered(searches.index(node)), node.type)

        found: ir.Expr = transform(expr, change) if searches else expr
        return found


def _numbered(place: int) -> str:
    return f"\x01{place}"


def _typed(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return values if values.type == kind else values.cast(kind)


def to_entities(
    types: pa.Array, ids: pa.Array, known: Sequence[str], edge: bool, ctx: Context
) -> Entities:
    """Entities by type and id, as positions in their tables."""
    position = np.full(len(ids), -1, np.int32)
    code = np.zeros(len(ids), np.int32)
    names = np.asarray(types.to_pylist(), object)
    for number, name in enumerate(known):
        where = np.flatnonzero(names == name)
        if len(where):
            position[where] = ctx.columns(name, edge).find_all(ids.take(pa.array(where)))
            code[where] = number
    return Entities(tuple(known), position, None if len(known) == 1 else code, edge)
