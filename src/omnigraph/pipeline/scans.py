"""Nodes and edges of a pinned state as bags of rows: tasks read fragments, and only the rows and columns needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.expressions.filters import closed, push_down, values_tested
from omnigraph.expressions.scalar import evaluate as evaluate_constant
from omnigraph.lang import ir
from omnigraph.lang.tree import conjuncts, transform_plan, walk
from omnigraph.model.catalog import EdgeType, NodeOrEdgeType
from omnigraph.model.columns import arrow_type
from omnigraph.model.frozen import frozen
from omnigraph.pipeline.rowset import (
    Bag,
    Formula,
    Key,
    QueryRun,
    RowColumn,
    ddl,
    fresh_name,
    key_of,
    prop,
    to_wire,
)
from omnigraph.pipeline.session import parallelism
from omnigraph.pipeline.table_versions import SHARES_PER_CORE, numbers
from omnigraph.read.scan import is_identity

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTS = ("id", "src", "dst")  # of an entity, besides its type and its properties


@frozen
class Scanner:
    """Reads only what a query needs of each variable."""

    session: SparkSession
    run: QueryRun
    fields: Mapping[str, frozenset[str]]  # by variable: properties read of it after its scan

    def scan(
        self,
        var: str,
        types: Sequence[str],
        *,
        edge: bool = False,
        predicate: ir.Expr | None = None,
        parts: Sequence[str] = (),
    ) -> Bag:
        """All entities of some types that satisfy a predicate; with `parts` not all of id, src and dst are read."""
        catalog = self.run.pinned.snapshot().catalog
        kinds: list[NodeOrEdgeType] = [
            catalog.edges[t] if edge else catalog.nodes[t] for t in types
        ]
        names = [*(parts or (PARTS if edge else PARTS[:1]))]
        names += [prop(name) for name in sorted(self.fields.get(var, ()))]
        slots = {(var, "type"): RowColumn(fresh_name(), pa.string())}
        slots |= {(var, n): RowColumn(fresh_name(), _stored_type(n, kinds[0])) for n in names}
        frames = [self._read(kind, var, slots, predicate) for kind in kinds]
        frame = reduce(lambda a, b: a.unionByName(b), frames)
        few = all(any(True for _ in self._counts(predicate, var, kind)) for kind in kinds)
        return Bag(frame, slots, {var: tuple(types)}, frozenset([var] if edge else []), few)

    def _read(
        self,
        kind: NodeOrEdgeType,
        var: str,
        slots: Mapping[Key, RowColumn],
        predicate: ir.Expr | None,
    ) -> DataFrame:
        """One type. All rows have the same type, which helps Spark to plan."""
        from pyspark.sql import functions as f

        table = self.run.pinned.snapshot().table_of(kind)
        fragments = tuple(info.fragment_id for info in table.fragments())
        count = min(len(fragments), parallelism(self.session) * SHARES_PER_CORE)
        shares = tuple(fragments[place::count] for place in range(count))
        type_slot, *read = slots.values()
        least = min([table.count(), *self._counts(predicate, var, kind)])
        rows = numbers(self.session, count, least, [slot.type for slot in read])
        condition = None if predicate is None else closed(predicate, self.run.bound)
        down = push_down(condition, table.schema)
        formula = _formula(kind, var, slots, down.rest, self.run)
        task = _scan_task(kind.name, isinstance(kind, EdgeType), shares, down.pushed, formula)
        found = rows.mapInArrow(task, ddl({slot.name: slot.type for slot in read}))
        named = f.lit(kind.name).alias(type_slot.name)
        return found.select(named, *(slot.name for slot in read))

    def _counts(self, predicate: ir.Expr | None, var: str, kind: NodeOrEdgeType) -> Iterator[int]:
        """The number of ids in each part of a condition that names ids."""
        for part in conjuncts(predicate):
            asked = values_tested(part, lambda expr: is_identity(expr, var, kind))
            if asked is not None:
                yield len(evaluate_constant(asked[1], self.run.bound) or ())


def fields_read(plan: ir.Op) -> dict[str, frozenset[str]]:
    """The properties that are read of each variable, after it was scanned."""
    found: dict[str, set[str]] = {}
    for node in walk(transform_plan(plan, _without_scans)):
        if isinstance(node, ir.Column):
            found.setdefault(node.var, set()).add(node.property)
    return {var: frozenset(names) for var, names in found.items()}


def _without_scans(op: ir.Op) -> ir.Op:
    """An operator without the conditions that scans apply while reading."""
    match op:
        case ir.NodeScan():
            return replace(op, predicate=None)
        case ir.Trail():
            bound = op.predicate if op.into else None
            return replace(op, predicate=bound, edge_predicate=None)
        case ir.Expand(edge_var=None, into=False) | ir.ShortestPath(into=False):
            return replace(op, predicate=None)
        case _:
            return op


def _formula(
    kind: NodeOrEdgeType,
    var: str,
    slots: Mapping[Key, RowColumn],
    predicate: ir.Expr | None,
    run: QueryRun,
) -> Formula:
    """The formula that tests a condition on all columns it reads, and keeps those needed later."""
    every = dict(slots)
    for part in walk(predicate) if predicate is not None else ():
        key = key_of(part)
        if key is not None and key not in every:
            every[key] = RowColumn(fresh_name(), _stored_type(key[1], kind))
    kept = tuple(slot.name for key, slot in slots.items() if key[1] != "type")
    edges = frozenset([var] if isinstance(kind, EdgeType) else [])
    return Formula(run, every, {var: (kind.name,)}, edges, predicate, kept=kept)


def _stored_type(name: str, kind: NodeOrEdgeType) -> pa.DataType:
    if name in PARTS:
        return pa.string()
    return arrow_type(kind.properties[name.removeprefix("=")].type)


def _scan_task(
    type_name: str,
    edge: bool,
    shares: tuple[tuple[int, ...], ...],
    pushed: ir.Expr | None,
    formula: Formula,
) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ctx = formula.run.context()
        table = ctx.snapshot.table_of(ctx.kind(type_name, edge))
        stored = {slot.name: field.removeprefix("=") for (_, field), slot in formula.slots.items()}
        wanted = [name for name in stored.values() if name != "type"]
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for rows in table.batches(wanted, pushed, fragments=shares[number]):
                    yield formula.applied(_named(rows, stored, type_name), ctx)

    return run


def _named(rows: pa.RecordBatch, stored: Mapping[str, str], type_name: str) -> pa.RecordBatch:
    arrays = [
        pa.repeat(pa.scalar(type_name), rows.num_rows) if field == "type" else to_wire(rows[field])
        for field in stored.values()
    ]
    return pa.RecordBatch.from_arrays(arrays, list(stored))
