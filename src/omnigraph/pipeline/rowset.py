"""Bags of rows on Spark: columns by their meaning, and expressions evaluated by the local engine's code.

Spark's column names are case-insensitive and it has no unsigned numbers, so columns get unique names and are sent in
types Spark has (`to_wire`). Expressions are evaluated batch by batch by the code that evaluates them in process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from omnigraph.expressions.arrow import column, holds
from omnigraph.expressions.shapes import arrow_shape
from omnigraph.lang import ir
from omnigraph.lang.ir import Bound
from omnigraph.model.frozen import frozen
from omnigraph.pipeline.pinned import Pinned
from omnigraph.pipeline.searches import SearchedField, marked, matched, places_of
from omnigraph.read import refs
from omnigraph.read.context import Context
from omnigraph.read.rows import Entities, Paths

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

OUT = "\x00"  # before the name of an output column; variables never start with it
SCORE = "\x08"  # before the name of a score
VALUE = "value"
Key = tuple[str, str]  # a variable and what of it: id, type, src, dst, or `=` and a property

_numbers = count()


def fresh_name() -> str:
    """A unique column name."""
    return f"c{next(_numbers)}"


def prop(name: str) -> str:
    """The key of a property's column, beside id, type, src and dst."""
    return "=" + name


def key_of(expr: ir.Expr) -> Key | None:
    """The column of an expression; None if it has to be computed."""
    match expr:
        case ir.Column(var, name):
            return var, prop(name)
        case ir.IdOf(var):
            return var, "id"
        case ir.TypeOf(var):
            return var, "type"
        case ir.EndpointOf(var, end):
            return var, end.value
        case ir.PathGet(var, part):
            return var, part.value
        case ir.ScoreOf(name):
            return SCORE + name, VALUE
        case ir.Output(name):
            return OUT + name, VALUE
        case ir.ValueOf(var):
            return var, VALUE
        case _:
            return None


# --- types on the wire ---------------------------------------------------------------------------------------------


def wire_type(kind: pa.DataType) -> pa.DataType:
    """The type of a column in Spark."""
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
    if at.is_struct(kind):
        return pa.struct([(field.name, wire_type(field.type)) for field in kind])
    return kind


def to_wire(values: pa.Array) -> pa.Array:
    """A column in Spark's type."""
    wanted = wire_type(values.type)
    return values if values.type == wanted else values.cast(wanted)


def from_wire(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column in its stored type."""
    return values if values.type == kind else values.cast(kind)


def ddl(kinds: Mapping[str, pa.DataType]) -> Any:
    """The Spark schema of named columns."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(pa.schema([(name, wire_type(k)) for name, k in kinds.items()]))


# --- bags --------------------------------------------------------------------------------------------------------


@frozen
class RowColumn:
    """A column of a bag: its name in the DataFrame and its stored type."""

    name: str
    type: pa.DataType


@frozen
class Bag:
    """Rows of an operator."""

    frame: DataFrame
    slots: Mapping[Key, RowColumn]
    types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of entities, by variable
    edges: frozenset[str] = frozenset()  # variables that are edges
    few: bool = (
        False  # a condition named the nodes these rows began with: count them before reading
    )

    def col(self, key: Key) -> Column:
        from pyspark.sql import functions as f

        return f.col(self.slots[key].name)

    def names(self) -> list[str]:
        return [slot.name for slot in self.slots.values()]

    def with_frame(self, frame: DataFrame) -> Bag:
        return replace(self, frame=frame)

    def also(self, frame: DataFrame, other: Bag) -> Bag:
        """Adds the bindings of another bag, in a DataFrame with the columns of both."""
        slots = {**other.slots, **self.slots}
        return Bag(frame, slots, {**other.types, **self.types}, self.edges | other.edges)

    def renamed(self) -> Bag:
        """The same rows under new column names, for self-joins."""
        slots = {key: RowColumn(fresh_name(), slot.type) for key, slot in self.slots.items()}
        pairs = zip(self.slots.values(), slots.values(), strict=True)
        from pyspark.sql import functions as f

        frame = self.frame.select(*(f.col(a.name).alias(b.name) for a, b in pairs))
        return replace(self, frame=frame, slots=slots)


@frozen
class QueryRun:
    """The context of every task of a query."""

    pinned: Pinned
    bound: Bound

    def context(self) -> Context:
        return Context(self.pinned.snapshot(), self.bound)


# --- expressions ---------------------------------------------------------------------------------------------------


def expression_type(expr: ir.Expr) -> pa.DataType:
    """The Arrow type of an expression's values; entities and paths are taken apart before."""
    return arrow_shape(expr.type)


@frozen
class Formula:
    """Expressions for a task: what to compute into new columns, and which rows to keep."""

    run: QueryRun
    slots: Mapping[Key, RowColumn]
    types: Mapping[str, tuple[str, ...]]
    edges: frozenset[str]
    predicate: ir.Expr | None = None
    computed: tuple[tuple[RowColumn, ir.Expr], ...] = ()
    kept: tuple[str, ...] = ()  # names of the columns that stay, in order

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ctx = self.run.context()
        for batch in batches:
            if batch.num_rows:
                yield self.applied(batch, ctx)

    def applied(self, batch: pa.RecordBatch, ctx: Context) -> pa.RecordBatch:
        """One batch filtered and extended."""
        if self.predicate is not None:
            mask = holds(self.predicate, BatchRows(batch, self, ctx))
            batch = batch if mask.all() else batch.filter(pa.array(mask))
        arrays = [batch.column(name) for name in self.kept]
        rows = BatchRows(batch, self, ctx)
        arrays += [to_wire(_typed(column(expr, rows), slot.type)) for slot, expr in self.computed]
        names = [*self.kept, *(slot.name for slot, _ in self.computed)]
        return pa.RecordBatch.from_arrays(arrays, names)

    def read(self, key: Key, batch: pa.RecordBatch) -> pa.Array:
        """A column of a batch by its key."""
        slot = self.slots[key]
        return from_wire(batch.column(slot.name), slot.type)

    def field(self, field: ir.Column, batch: pa.RecordBatch) -> SearchedField:
        """A property of a variable's entities, for a search."""
        var = field.var
        types, values = (self.read((var, k), batch) for k in ("type", prop(field.property)))
        return SearchedField(types, values, self.types[var], var in self.edges)


@frozen
class BatchRows:
    """See `expressions.arrow.RowSource`: the rows of a batch inside a task."""

    batch: pa.RecordBatch
    formula: Formula
    ctx: Context

    @property
    def n(self) -> int:
        return int(self.batch.num_rows)

    @property
    def bound(self) -> ir.Bound:
        return self.ctx.bound

    def resolve(self, expr: ir.Expr, given: pa.Array) -> pa.Array:
        return refs.resolve(expr, given, self.ctx)

    def read(self, expr: ir.Expr) -> pa.Array:
        key = key_of(expr)
        if key is not None:
            return self._at(*key)
        match expr:
            case ir.Same(left, right):
                same = [pc.equal(self._at(left, k), self._at(right, k)) for k in ("id", "type")]
                return pc.and_kleene(*same)
            case ir.RefOf(var):
                return refs.references(self._entities(var), self.ctx)
            case ir.TrailOf(var):
                return refs.trails(self._path(var), self.ctx)
            case ir.Apart(left, right):
                return refs.apart(self._edges_of(left), self._edges_of(right))
            case ir.TextMatch(field):
                return matched(expr, self.formula.field(field, self.batch), self.ctx)
            case ir.Highlight(field):
                return marked(expr, self.formula.field(field, self.batch), self.ctx)
            case _:
                raise AssertionError(f"{type(expr).__name__} is taken apart before")

    def _at(self, var: str, name: str) -> pa.Array:
        return self.formula.read((var, name), self.batch)

    def _entities(self, var: str) -> Entities:
        """The entities of a variable. The state is pinned, so positions are the same in every task."""
        types, edge = self.formula.types[var], var in self.formula.edges
        return to_entities(self._at(var, "type"), self._at(var, "id"), types, edge, self.ctx)

    def _path(self, var: str) -> Paths:
        """A path as lists of entities."""
        length = self._at(var, "length").fill_null(-1).to_numpy(zero_copy_only=False)
        parts = []
        for part, edge in (("nodes", False), ("edges", True)):
            ids, kinds = (pc.list_flatten(self._at(var, name)) for name in (part, f"{part} types"))
            catalog = self.ctx.snapshot.catalog
            known = tuple(catalog.edges if edge else catalog.nodes)
            parts.append(to_entities(kinds, ids, known, edge, self.ctx))
        return Paths.of(length.astype(np.int64), *parts)

    def _edges_of(self, var: str) -> Entities | Paths:
        return self._path(var) if (var, "length") in self.formula.slots else self._entities(var)


def _typed(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return values if values.type == kind else values.cast(kind)


def to_entities(
    types: pa.Array, ids: pa.Array, known: Sequence[str], edge: bool, ctx: Context
) -> Entities:
    """Entities by type and id, as positions in their tables."""
    position = np.full(len(ids), -1, np.int32)
    code = np.zeros(len(ids), np.int32)
    for number, name in enumerate(known):
        where = places_of(name, types)
        if len(where):
            position[where] = ctx.columns(name, edge).find_all(ids.take(pa.array(where)))
            code[where] = number
    return Entities(tuple(known), position, None if len(known) == 1 else code, edge)
