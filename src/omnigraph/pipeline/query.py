"""Queries on Spark: each operator of the intermediate representation as DataFrames, with the same meaning as locally.

Expressions are evaluated by the local engine's code inside tasks (see `rowset`); Spark joins, groups, sorts and spills.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as at

from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import OmnigraphError
from omnigraph.expressions.scalar import evaluate as evaluate_constant
from omnigraph.expressions.shapes import arrow_shape
from omnigraph.lang import ir
from omnigraph.lang.ir import AggregateFunction as F
from omnigraph.lang.query.params import bind_params
from omnigraph.lang.tree import conjunction
from omnigraph.pipeline.native import aggregated, divided, native
from omnigraph.pipeline.pinned import Pinned
from omnigraph.pipeline.ranks import fuse, rank, score
from omnigraph.pipeline.rowset import (
    OUT,
    VALUE,
    Bag,
    Formula,
    Key,
    QueryRun,
    RowColumn,
    ddl,
    expression_type,
    fresh_name,
    from_wire,
    to_entities,
)
from omnigraph.pipeline.scans import Scanner, fields_read
from omnigraph.pipeline.session import arrow_of
from omnigraph.pipeline.unsupported import not_on_spark, refuse_unknown
from omnigraph.pipeline.walks import expand, shortest_path, starts_anywhere, trail
from omnigraph.read.context import Context
from omnigraph.read.explain import Trace
from omnigraph.read.refs import resolve
from omnigraph.read.result import Result
from omnigraph.read.rows import Rows
from omnigraph.read.values import entities

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

COUNT_MAX = 2**31 - 1  # rows Spark can skip or keep; no result has as many
# A number of partitions no frame has: keeps them as they are and ends a stage of generated code. Within one stage each
# row of the first product would come with all rows of the products after it, in memory.
PARTITIONS_MAX = 2**31 - 1
PATH_PARTS = tuple(part.value for part in ir.PathPart)


def run_on_spark(
    query: ir.Query,
    params: Mapping[str, Any] | None,
    snapshot: Snapshot,
    pinned: Pinned,
    session: SparkSession,
    *,
    now: dt.datetime | None = None,
    explain: bool = False,
    first: int | None = None,
    max_rows: int | None = None,
) -> tuple[Result, int]:
    """Run a read on one state of a graph: the result, and its number of rows. With `first`, at most this many rows are
    sent to the driver; more than `max_rows` are an error; with `explain` the result has its plan, without figures."""
    if not isinstance(query.body, ir.Read):
        raise OmnigraphError(f"{query.name} is a mutation; a query that reads was expected")
    refuse_unknown(query.body.plan)
    run = QueryRun(pinned, bind_params(query, params, now or dt.datetime.now(dt.UTC)))
    engine = Engine(Scanner(session, run, fields_read(query.body.plan)), run)
    bag = engine.bag(query.body.plan)
    trace = Trace.of_plan(query.body.plan) if explain else None
    ctx = Context(snapshot, run.bound, max_rows=max_rows, trace=trace)
    if max_rows is not None:  # one more says that there are more
        bag = bag.with_frame(bag.frame.limit(min(max_rows + 1, COUNT_MAX)))
    if first is None:
        found = _result(query.body, bag, ctx)
        return found, len(found)
    return _first_rows(query.body, bag, ctx, first)


def _first_rows(read: ir.Read, bag: Bag, ctx: Context, first: int) -> tuple[Result, int]:
    """Work for the first rows is cached, so that counting all rows continues from there."""
    bag = bag.with_frame(bag.frame.select(*bag.names()).persist())
    try:
        found = _result(read, bag.with_frame(bag.frame.limit(first + 1)), ctx)
        return found, bag.frame.count() if len(found) > first else len(found)
    finally:
        bag.frame.unpersist()


@dataclass(slots=True)
class Engine:
    """Turns operators into bags, from the leaves up."""

    scanner: Scanner
    run: QueryRun
    outer: list[Bag] = field(default_factory=list)

    def bag(self, op: ir.Op) -> Bag:
        match op:
            case ir.NodeScan(var, types, predicate):
                return self.scanner.scan(var, types, predicate=predicate)
            case ir.Outer():
                return self._outer()
            case ir.Expand():
                rows = None if starts_anywhere(op, self.scanner) else self.bag(op.input)
                return self._filtered_edges(op, expand(op, rows, self.scanner))
            case ir.ShortestPath():
                return shortest_path(op, self.bag(op.input), self.scanner)
            case ir.Filter(below, predicate):
                return self.filtered(self.bag(below), predicate)
            case ir.SemiJoin(below, block, measure=ir.BlockTest() as measure):
                return self._measured_join(self.bag(below), block, measure)
            case ir.SemiJoin(below, block, negated):
                return self._semi_join(self.bag(below), block, negated)
            case ir.Optional(below, block, _):
                return self._optional(self.bag(below), block)
            case ir.Join(left, right, on):
                return self._join(self.bag(left), self.bag(right), on)
            case ir.Score():
                return score(op, self.bag(op.input), self.scanner)
            case ir.Rank():
                return rank(op, self.bag(op.input), self.scanner)
            case ir.Fuse():
                return fuse(op, self.bag(op.primary), self.bag(op.secondary), self.scanner)
            case ir.Aggregate():
                return self._aggregate(op, self.bag(op.input))
            case ir.Project(below, columns):
                return self.projected(self.bag(below), columns)
            case ir.Distinct(below):
                bag = self.bag(below)
                return bag.with_frame(bag.frame.dropDuplicates(bag.names()))
            case ir.Sort():
                return self._sort(op, self.bag(op.input))
            case ir.Slice():
                return self._slice(op, self.bag(op.input))
            case ir.Union(inputs):
                return _union([self.bag(part) for part in inputs])
            case ir.Trail():
                return trail(op, self.bag(op.input), self.scanner)
            case ir.Let():
                return self._let(op, self.bag(op.input))
            case ir.Attach():
                return self._attach(op, self.bag(op.input))
            case ir.Unwind():
                return self._unwind(op, self.bag(op.input))
            case ir.PerRow(below, block, aggregate):
                return self._per_row(self.bag(below), block, aggregate)
            case ir.Resumed():
                raise not_on_spark(type(op).__name__)

    # --- values beside entities --------------------------------------------------------------------------------------

    def _let(self, op: ir.Let, bag: Bag) -> Bag:
        """New values, and of the bound ones only those to keep."""
        full = self.computed(bag, {(c.name, VALUE): c.expr for c in op.columns})
        made = {(c.name, VALUE): full.slots[c.name, VALUE] for c in op.columns}
        names = {own: name for name, own in op.keep}
        kept = {(names[v], part): s for (v, part), s in bag.slots.items() if v in names}
        rows = {key: slot for key, slot in bag.slots.items() if key[1] == "row"}
        slots = {**rows, **kept, **made}
        types = {names[v]: found for v, found in bag.types.items() if v in names}
        edges = frozenset(names[v] for v in bag.edges if v in names)
        return Bag(full.frame.select(*(s.name for s in slots.values())), slots, types, edges)

    def _attach(self, op: ir.Attach, bag: Bag) -> Bag:
        """Every row with the entity a reference names."""
        kind, own = ("\x0b", "type"), ("\x0b", "id")
        full = self.computed(
            bag, {kind: ir.RefType(op.part), own: ir.RefGet(op.part, "id", ir.STRING_OR_NULL)}
        )
        there = self.scanner.scan(op.var, op.types, edge=op.edge)
        same = full.col(kind) == there.col((op.var, "type"))
        same &= full.col(own) == there.col((op.var, "id"))
        frame = full.frame.join(there.frame, same, "left")
        return bag.also(frame, there)

    def _unwind(self, op: ir.Unwind, bag: Bag) -> Bag:
        """A row for each member of a list."""
        from pyspark.sql import functions as f

        key = ("\x0c", VALUE)
        full = self.computed(bag, {key: op.part})
        slot = RowColumn(fresh_name(), arrow_shape(op.type))
        kind = ddl({slot.name: slot.type})[slot.name].dataType
        frame = full.frame.withColumn(slot.name, f.explode(full.col(key)))
        frame = frame.withColumn(slot.name, f.col(slot.name).cast(kind))
        return replace(bag, frame=frame, slots={**bag.slots, (op.name, VALUE): slot})

    def _per_row(self, bag: Bag, block: ir.Op, aggregate: ir.NamedAggregate) -> Bag:
        """Every row with the aggregate of a block's solutions for it."""
        joined, slot = self._aggregated(bag, block, aggregate)
        return replace(bag, frame=joined.frame, slots={**bag.slots, (aggregate.name, VALUE): slot})

    # --- expressions -------------------------------------------------------------------------------------------------

    def filtered(self, bag: Bag, predicate: ir.Expr) -> Bag:
        """The rows for which a predicate is true."""
        tests, rest = divided(predicate, bag, self.run.bound)
        bag = bag.with_frame(reduce(lambda frame, test: frame.where(test), tests, bag.frame))
        return bag if rest is None else bag.with_frame(self._applied(bag, rest, {}))

    def computed(self, bag: Bag, columns: Mapping[Key, ir.Expr]) -> Bag:
        """With more columns."""
        slots = {key: RowColumn(fresh_name(), expression_type(e)) for key, e in columns.items()}
        known = {key: native(expr, bag, self.run.bound) for key, expr in columns.items()}
        own = [column.alias(slots[key].name) for key, column in known.items() if column is not None]
        if own:
            named = {key: slots[key] for key, column in known.items() if column is not None}
            frame = bag.frame.select(*dict.fromkeys(bag.names()), *own)
            bag = replace(bag, frame=frame, slots={**bag.slots, **named})
        exprs = {slots[key]: columns[key] for key, column in known.items() if column is None}
        frame = self._applied(bag, None, exprs) if exprs else bag.frame
        return replace(bag, frame=frame, slots={**bag.slots, **slots})

    def _applied(
        self, bag: Bag, predicate: ir.Expr | None, exprs: Mapping[RowColumn, ir.Expr]
    ) -> Any:
        kept = {slot.name: slot.type for slot in bag.slots.values()}
        formula = Formula(
            self.run,
            bag.slots,
            bag.types,
            bag.edges,
            predicate,
            tuple(exprs.items()),
            tuple(kept),
        )
        schema = ddl(kept | {slot.name: slot.type for slot in exprs})
        return bag.frame.select(*kept).mapInArrow(formula, schema)

    def _filtered_edges(self, op: ir.Expand, bag: Bag) -> Bag:
        """Apply conditions on the edge, or on a destination that was bound before."""
        if op.predicate is None or not (op.edge_var is not None or op.into):
            return bag
        return self.filtered(bag, op.predicate)

    def projected(
        self, bag: Bag, columns: tuple[ir.NamedExpr, ...], beside: tuple[Key, ...] = ()
    ) -> Bag:
        """Only output columns, some unchanged. Entities stay a type and an id, paths lists, until the end."""
        named = [(OUT + column.name, column.expr) for column in columns]
        bag = self.computed(bag, {(n, VALUE): _raw(e) for n, e in named if _whole(e) is None})
        slots: dict[Key, RowColumn] = {}
        types: dict[str, tuple[str, ...]] = {}
        for name, expr in named:
            var = _whole(expr)
            if var is None:
                slots[name, VALUE] = bag.slots[name, VALUE]
                continue
            slots |= {(name, key[1]): bag.slots[key] for key in _parts(bag, var)}
            types[name] = bag.types.get(var, ())
        edges = frozenset(name for name, expr in named if _whole(expr) in bag.edges)
        frame, slots = _once_each(bag, slots | {key: bag.slots[key] for key in beside})
        return Bag(frame, slots, types, edges)

    # --- blocks ------------------------------------------------------------------------------------------------------

    def _outer(self) -> Bag:
        if self.outer:
            return self.outer[-1]
        slot = RowColumn(fresh_name(), pa.int64())
        one = self.scanner.session.range(1).withColumnRenamed("id", slot.name)
        return Bag(one, {("\x02" + slot.name, "row"): slot})

    def _tagged(self, bag: Bag) -> tuple[Bag, Key]:
        """Numbered rows; cached, so that the numbers are stable."""
        from pyspark.sql import functions as f

        key = ("\x02" + fresh_name(), "row")
        slot = RowColumn(fresh_name(), pa.int64())
        frame = bag.frame.withColumn(slot.name, f.monotonically_increasing_id()).localCheckpoint()
        return replace(bag, frame=frame, slots={**bag.slots, key: slot}), key

    def _block(self, rows: Bag, block: ir.Op) -> Bag:
        self.outer.append(rows.renamed())
        try:
            return self.bag(block)
        finally:
            self.outer.pop()

    def _semi_join(self, bag: Bag, block: ir.Op, negated: bool) -> Bag:
        rows, tag = self._tagged(bag)
        inner = self._block(rows, block)
        found = inner.frame.select(inner.col(tag).alias("found")).distinct()
        how = "left_anti" if negated else "left_semi"
        frame = rows.frame.join(found, rows.col(tag) == found["found"], how)
        return bag.with_frame(frame)

    def _measured_join(self, bag: Bag, block: ir.Op, measure: ir.BlockTest) -> Bag:
        """The rows for which the condition on the aggregate of the block's solutions is true."""
        wanted = measure.aggregate
        joined, slot = self._aggregated(bag, block, wanted)
        joined = replace(joined, slots={**joined.slots, (OUT + wanted.name, VALUE): slot})
        return bag.with_frame(self.filtered(joined, measure.predicate).frame)

    def _aggregated(
        self, bag: Bag, block: ir.Op, wanted: ir.NamedAggregate
    ) -> tuple[Bag, RowColumn]:
        """The rows with one more column: the aggregate of the block's solutions."""
        from pyspark.sql import functions as f

        rows, tag = self._tagged(bag)
        inner = self._block(rows, block)
        key = ("\x05", wanted.name)
        if wanted.arg is not None and _whole(wanted.arg) is None:
            inner = self.computed(inner, {key: wanted.arg})
        slot = RowColumn(fresh_name(), arrow_shape(wanted.type))
        kind = ddl({slot.name: slot.type})[slot.name].dataType
        value = aggregated(wanted, _argument(wanted, inner))
        found = inner.frame.groupBy(inner.col(tag).alias("found")).agg(
            value.cast(kind).alias(slot.name)
        )
        frame = rows.frame.join(found, rows.col(tag) == found["found"], "left").drop("found")
        if wanted.function in (F.COUNT, F.COUNT_ROWS):
            frame = frame.withColumn(slot.name, f.coalesce(f.col(slot.name), f.lit(0).cast(kind)))
        if wanted.function in (F.COLLECT, F.IN_ORDER):
            nothing = f.array().cast(kind)
            frame = frame.withColumn(slot.name, f.coalesce(f.col(slot.name), nothing))
        return rows.with_frame(frame), slot

    def _optional(self, bag: Bag, block: ir.Op) -> Bag:
        rows, tag = self._tagged(bag)
        inner = self._block(rows, block)
        new = {key: slot for key, slot in inner.slots.items() if key not in rows.slots}
        found = inner.frame.select(
            inner.col(tag).alias("found"), *(slot.name for slot in new.values())
        )
        frame = rows.frame.join(found, rows.col(tag) == found["found"], "left").drop("found")
        types = {**inner.types, **bag.types}
        return Bag(frame, {**bag.slots, **new}, types, bag.edges | inner.edges)

    def _join(self, left: Bag, right: Bag, on: tuple[tuple[ir.Expr, ir.Expr], ...]) -> Bag:
        from pyspark.sql import functions as f

        pairs = [_comparable(a, b) for a, b in on]
        left = self.computed(left, {("\x03", str(i)): a for i, (a, _) in enumerate(pairs)})
        right = self.computed(right, {("\x04", str(i)): b for i, (_, b) in enumerate(pairs)})
        equal: list[Column] = [
            left.col(("\x03", str(i))) == right.col(("\x04", str(i))) for i in range(len(pairs))
        ]
        floats = [i for i, (a, _) in enumerate(pairs) if at.is_floating(expression_type(a))]
        equal += [~f.isnan(left.col(("\x03", str(i)))) for i in floats]  # Spark joins NaN with NaN
        shared = [key for key in left.slots if key in right.slots and key[1] == "row"]
        if shared:  # both sides belong to the same row of the operator around them
            right = right.renamed()
            equal += [left.col(key) == right.col(key) for key in shared]
        frame = (
            left.frame.join(right.frame, reduce(lambda a, b: a & b, equal))
            if equal
            else left.frame.coalesce(PARTITIONS_MAX).crossJoin(right.frame)
        )
        joined = left.also(frame, right)
        slots = {key: slot for key, slot in joined.slots.items() if key[0] not in ("\x03", "\x04")}
        # Two types may have a common type that rounds; these pairs are compared again, by value.
        rounded = [
            ir.Compare(ir.CompareOp.EQ, *own)
            for own, met in zip(on, pairs, strict=True)
            if own != met
        ]
        bag = replace(joined, slots=slots)
        predicate = conjunction(tuple(rounded))
        return bag if predicate is None else self.filtered(bag, predicate)

    # --- groups and order --------------------------------------------------------------------------------------------

    def _aggregate(self, op: ir.Aggregate, bag: Bag) -> Bag:
        asked = {a.name: a.arg for a in op.aggregates if a.arg is not None}
        wholes = dict.fromkeys(var for e in asked.values() if (var := _whole(e)))
        args = {("\x05", name): e for name, e in asked.items() if _whole(e) is None}
        beside = (*args, *(part for var in wholes for part in _parts(bag, var)))
        keyed = self.projected(self.computed(bag, args), op.keys, beside)
        slots = {key: slot for key, slot in keyed.slots.items() if key not in beside}
        made: dict[Key, RowColumn] = {}
        columns = []
        for named in op.aggregates:
            slot = made[OUT + named.name, VALUE] = RowColumn(fresh_name(), arrow_shape(named.type))
            kind = ddl({slot.name: slot.type})[slot.name].dataType
            columns.append(aggregated(named, _argument(named, keyed)).cast(kind).alias(slot.name))
        groups = keyed.frame.groupBy(*(slot.name for slot in slots.values()))
        frame = groups.agg(*columns) if columns else groups.count().drop("count")
        return replace(keyed, frame=frame, slots={**slots, **made})

    def _sort(self, op: ir.Sort, bag: Bag) -> Bag:
        keys = [(("\x06", str(i)), key.expr, key.descending) for i, key in enumerate(op.keys)]
        keys += [(("\x07", str(i)), tie, False) for i, tie in enumerate(op.ties)]
        full = self.computed(bag, {key: expr for key, expr, _ in keys})
        order = [
            full.col(key).desc_nulls_last() if down else full.col(key).asc_nulls_first()
            for key, _, down in keys
        ]
        return bag.with_frame(full.frame.orderBy(*order).select(*bag.names()))

    def _slice(self, op: ir.Slice, bag: Bag) -> Bag:
        frame = bag.frame
        if op.skip is not None:
            frame = frame.offset(min(evaluate_constant(op.skip, self.run.bound), COUNT_MAX))
        if op.limit is not None:
            frame = frame.limit(min(evaluate_constant(op.limit, self.run.bound), COUNT_MAX))
        return bag.with_frame(frame)


def _whole(expr: ir.Expr) -> str | None:
    """The variable (or output column) whose entity or path the expression is."""
    match expr:
        case ir.EntityOf(var) | ir.PathOf(var):
            return var
        case ir.Output(name, ir.EntityValue() | ir.PathValue()):
            return OUT + name
    return None


def _parts(bag: Bag, var: str) -> tuple[Key, ...]:
    """The columns of an entity or a path."""
    parts = PATH_PARTS if (var, "nodes") in bag.slots else ("type", "id")
    return tuple((var, part) for part in parts)


def _argument(named: ir.NamedAggregate, bag: Bag) -> Any:
    """What is aggregated: a computed column, or the parts of an entity or a path; null where there is none."""
    from pyspark.sql import functions as f

    var = None if named.arg is None else _whole(named.arg)
    if var is None:
        return None if named.arg is None else bag.col(("\x05", named.name))
    parts = [bag.col(key) for key in _parts(bag, var)]
    return f.when(parts[-1].isNotNull(), f.struct(*parts))


def _raw(expr: ir.Expr) -> ir.Expr:
    """A value whose references are resolved at the end, when rows are few."""
    return expr.part if isinstance(expr, ir.WrittenOut) else expr


def _columns_of(op: ir.Op) -> tuple[ir.NamedExpr, ...]:
    """The output columns of a whole plan."""
    match op:
        case ir.Project(_, columns):
            return columns
        case ir.Union(inputs):
            return _columns_of(inputs[0])
        case ir.Distinct() | ir.Sort() | ir.Slice():
            return _columns_of(op.input)
        case _:
            return ()


def _once_each(bag: Bag, slots: Mapping[Key, RowColumn]) -> tuple[Any, dict[Key, RowColumn]]:
    """The columns of some slots, under unique names: one column may be output several times."""
    from pyspark.sql import functions as f

    fresh = {key: RowColumn(fresh_name(), slot.type) for key, slot in slots.items()}
    pairs = zip(slots.values(), fresh.values(), strict=True)
    return bag.frame.select(*(f.col(a.name).alias(b.name) for a, b in pairs)), fresh


def _comparable(left: ir.Expr, right: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    """Numbers are equal by value: two types are cast to a third that holds both."""
    if expression_type(left) == expression_type(right):
        return left, right
    whole = all(pa.types.is_integer(expression_type(e)) for e in (left, right))
    unsigned = any(pa.types.is_uint64(expression_type(e)) for e in (left, right))
    kind = ir.I64 if whole and not unsigned else ir.F64
    return ir.Cast(left, replace(kind, nullable=True)), ir.Cast(right, replace(kind, nullable=True))


def _union(parts: list[Bag]) -> Bag:
    """All rows; columns by position, named as in the first."""
    first = parts[0]
    frames = [part.frame.select(*part.names()) for part in parts]
    frame = reduce(lambda a, b: a.union(b), frames)
    types = {
        name: tuple(dict.fromkeys(t for part in parts for t in part.types.get(name, ())))
        for name in first.types
    }
    return replace(first, frame=frame, types=types)


# --- results -----------------------------------------------------------------------------------------------------


def _result(read: ir.Read, bag: Bag, ctx: Context) -> Result:
    table = arrow_of(bag.frame.select(*bag.names()))
    ctx.admit(table.num_rows)
    given = {
        key: from_wire(table.column(place).combine_chunks(), slot.type)
        for place, (key, slot) in enumerate(bag.slots.items())
    }
    columns = {}
    names = list(dict.fromkeys(name for name, _ in bag.slots))
    made = _columns_of(read.plan)
    for place, name in enumerate(names):
        found = _column(name, given, bag, read.columns[place].type, ctx)
        expr = made[place].expr if made else None
        written = isinstance(expr, ir.WrittenOut)
        columns[f"{place}"] = resolve(expr, found, ctx) if expr and written else found
    rows = Rows(table.num_rows, columns=columns)
    return Result(read.columns, rows, ctx.snapshot.commit_id, ctx.trace)


def _column(
    name: str, given: Mapping[Key, pa.Array], bag: Bag, kind: ir.ValueType, ctx: Context
) -> pa.Array:
    if (name, VALUE) in given:
        return given[name, VALUE]
    if (name, "nodes") in given:
        parts = [given[name, part] for part in PATH_PARTS]
        mask = parts[-1].is_null()
        fields = [pa.field(part, a.type) for part, a in zip(PATH_PARTS, parts, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=mask)
    found = to_entities(
        given[name, "type"], given[name, "id"], bag.types[name], name in bag.edges, ctx
    )
    assert isinstance(kind, ir.EntityValue)  # noqa: S101
    return entities(found, kind, ctx)
