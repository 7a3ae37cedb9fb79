"""Nodes and edges of a pinned state as bags of rows: tasks read fragments and filter what they read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.lang import ir
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.model.columns import arrow_type
from omnigraph.pipeline.rowset import (
    Bag,
    Formula,
    Key,
    QueryRun,
    RowColumn,
    ddl,
    fresh_name,
    to_wire,
)
from omnigraph.pipeline.session import parallelism
from omnigraph.pipeline.table_versions import SHARES_PER_CORE, numbers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Entity = NodeType | EdgeType


@dataclass(frozen=True, slots=True)
class Scanner:
    """Reads what a query needs of each variable, and nothing else."""

    session: SparkSession
    run: QueryRun
    fields: Mapping[str, frozenset[str]]  # by variable: properties that are read

    def scan(
        self,
        var: str,
        types: Sequence[str],
        *,
        edge: bool = False,
        predicate: ir.Expr | None = None,
    ) -> Bag:
        """All entities of some types that satisfy a predicate."""
        catalog = self.run.pinned.snapshot().catalog
        kinds: list[Entity] = [catalog.edges[t] if edge else catalog.nodes[t] for t in types]
        keys = _keys(var, kinds[0], self.fields.get(var, frozenset()), edge)
        slots = {key: RowColumn(fresh_name(), kind) for key, kind in keys.items()}
        formula = Formula(
            self.run,
            slots,
            {var: tuple(types)},
            frozenset([var]) if edge else frozenset(),
            predicate,
            kept=tuple(slot.name for slot in slots.values()),
        )
        frames = [self._read(kind, slots, formula) for kind in kinds]
        frame = reduce(lambda a, b: a.unionByName(b), frames)
        return Bag(frame, slots, formula.types, formula.edges)

    def _read(self, kind: Entity, slots: Mapping[Key, RowColumn], formula: Formula) -> DataFrame:
        table = self.run.pinned.snapshot().table_of(kind)
        fragments = tuple(info.fragment_id for info in table.fragments())
        count = min(len(fragments), parallelism(self.session) * SHARES_PER_CORE)
        shares = tuple(fragments[place::count] for place in range(count))
        schema = ddl({slot.name: slot.type for slot in slots.values()})
        task = _scan_task(kind.name, isinstance(kind, EdgeType), shares, formula)
        rows = numbers(self.session, count, table.count(), len(slots))
        return rows.mapInArrow(task, schema)


def _keys(var: str, kind: Entity, fields: frozenset[str], edge: bool) -> dict[Key, pa.DataType]:
    found: dict[Key, pa.DataType] = {(var, "type"): pa.string(), (var, "id"): pa.string()}
    if edge:
        found |= {(var, "src"): pa.string(), (var, "dst"): pa.string()}
    for name in sorted(fields):
        found[var, "=" + name] = arrow_type(kind.properties[name].type)
    return found


def _scan_task(
    type_name: str, edge: bool, shares: tuple[tuple[int, ...], ...], formula: Formula
) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ctx = formula.run.context()
        table = ctx.snapshot.table_of(ctx.kind(type_name, edge))
        stored = {slot.name: field.removeprefix("=") for (_, field), slot in formula.slots.items()}
        wanted = [name for name in stored.values() if name != "type"]
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for rows in table.batches(wanted, fragments=shares[number]):
                    yield formula.applied(_named(rows, stored, type_name), ctx)

    return run


def _named(rows: pa.RecordBatch, stored: Mapping[str, str], type_name: str) -> pa.RecordBatch:
    arrays = [
        pa.repeat(pa.scalar(type_name), rows.num_rows) if field == "type" else to_wire(rows[field])
        for field in stored.values()
    ]
    return pa.RecordBatch.from_arrays(arrays, list(stored))
