"""Changes for each row a pattern finds: what Cypher writes.

Stages run in order, and each finds its rows in the state left by the previous ones. Its steps run in order, each for
all rows together, and each sees the entities made by the previous ones; their changes are collected like those of any
statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.overlaid import overlaid
from omnigraph.core.plan import Reads
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import Cancelled, DeadlineExceeded, Kind, OmnigraphError
from omnigraph.expressions.comparing import to_mask
from omnigraph.expressions.lists import Ints
from omnigraph.lang import ir
from omnigraph.lang.ir import Bound
from omnigraph.model.catalog import EdgeType, NodeOrEdgeType, NodeType
from omnigraph.model.changes import Changes, Incoming, TypeChanges
from omnigraph.model.columns import arrow_schema, one_array
from omnigraph.model.frozen import frozen
from omnigraph.model.keys import fresh_ids, key_ids
from omnigraph.model.tokens import id_tokens
from omnigraph.read import Result, run_query
from omnigraph.read.blocks import number_rows
from omnigraph.read.context import Handed, LookedUp
from omnigraph.read.groups import encode_any
from omnigraph.storage.tables import ADDRESS
from omnigraph.validate.findings import column
from omnigraph.values.columns import to_column
from omnigraph.values.misfit import Misfit
from omnigraph.write.mutate import (
    MutationProgress,
    cascade,
    deletion,
    misfit_found,
    placed,
    value_context,
)
from omnigraph.write.removal import incident_rows
from omnigraph.write.resolve import Mode, before_columns, resolve
from omnigraph.write.resting import Resting

ANSWER_ROWS_MAX = 100_000  # that a write returns; more are rejected before anything is published


class NodeHasEdges(OmnigraphError):
    """A node to delete still has edges."""

    code, kind = "node_has_edges", Kind.INVALID
    default_help = "Delete its relationships first, or write DETACH DELETE."


@frozen
class Slot:
    """The entities of a slot, one per row; null if there is none."""

    ids: pa.Array
    types: pa.Array


def change(op: ir.PatternChange, progress: MutationProgress, bound: Bound) -> MutationProgress:
    """The changes for all rows of a pattern."""
    handed: Handed | None = None
    for stage in op.stages:
        if progress.violations:  # the rows made are not valid
            return progress
        progress, handed = _run_stage(stage, op.params, progress, bound, handed)
    if op.returns is None:
        return progress
    resting = Resting(op.returns.plan, progress.txn.catalog, bound, handed=handed)
    progress = progress.after(Changes(), resting.reads())
    return replace(progress, answer=_Returned(op, bound, handed))


def _run_stage(
    stage: ir.Stage,
    params: tuple[ir.ParamDecl, ...],
    progress: MutationProgress,
    bound: Bound,
    handed: Handed | None,
) -> tuple[MutationProgress, Handed]:
    """The changes of one stage, and its rows."""
    txn = progress.txn
    query = ir.Query("change", params, stage.read)
    looked_up: LookedUp = {}
    result = _read(query, bound, txn, handed=handed, looked_up=looked_up)
    work = _Work(progress, _unique_columns(result.to_arrow()), len(result))
    for name, ids, types in stage.slots:
        work.slots[name] = Slot(work.column(ids), work.column(types))
    for step in stage.steps:
        work.run(step)
    made = {
        s.slot: work.slots[s.slot].ids for s in stage.steps if isinstance(s, ir.Make) and s.once
    }
    resting = Resting(stage.read.plan, txn.catalog, bound, made, handed, looked_up)
    work.progress = work.progress.after(Changes(), resting.reads())
    slots = {name: (slot.ids, slot.types) for name, slot in work.slots.items()}
    return work.progress, Handed(work.rows, work.columns, slots)


@frozen
class _Returned:
    """The result to return after all writes."""

    op: ir.PatternChange
    bound: Bound
    handed: Handed | None

    def __call__(self, txn: WriteTxn) -> Result:
        assert self.op.returns is not None  # noqa: S101 - made for one that returns something
        query = ir.Query("change", self.op.params, self.op.returns)
        return _read(query, self.bound, txn, max_rows=ANSWER_ROWS_MAX, handed=self.handed)


def _read(query: ir.Query, bound: Bound, txn: WriteTxn, **more: Any) -> Result:
    """The rows of a query on the state of a write, within the time and the memory of the writer."""
    deadline = txn.deadline
    try:
        return run_query(
            query,
            bound.values,
            overlaid(txn),
            now=bound.now,
            timeout=deadline.remaining(),
            cancelled=lambda: deadline.over,
            memory_bytes_max=txn.memory_bytes_max,
            **more,
        )
    except (DeadlineExceeded, Cancelled):
        raise deadline.error() from None


def _unique_columns(found: pa.Table) -> dict[str, pa.Array]:
    return {name: one_array(found.column(i)) for i, name in enumerate(found.column_names)}


class _Work:
    """The steps of one change."""

    def __init__(self, progress: MutationProgress, columns: dict[str, pa.Array], rows: int) -> None:
        self.progress, self.columns, self.rows = progress, columns, rows
        self.slots: dict[str, Slot] = {}

    def column(self, name: str) -> pa.Array:
        return self.columns[name]

    def kind(self, target: ir.Target) -> NodeOrEdgeType:
        catalog = self.progress.txn.catalog
        if target.kind is ir.TargetKind.NODE:
            return catalog.nodes[target.type_name]
        return catalog.edges[target.type_name]

    def run(self, step: ir.Step) -> None:
        try:
            match step:
                case ir.Make():
                    self.make(step)
                case ir.Put():
                    for target in step.targets:
                        self.put(step, self.kind(target))
                case ir.Drop():
                    for target in step.targets:
                        self.drop(step, self.kind(target))
        except Misfit as misfit:
            kinds = step.targets if not isinstance(step, ir.Make) else (step.target,)
            found = misfit_found(misfit, self.kind(kinds[0]))
            self.progress = self.progress.broken([found])

    def chosen(self, only: str | None) -> npt.NDArray[np.bool_]:
        return np.ones(self.rows, np.bool_) if only is None else to_mask(self.column(only))

    # --- new entities ----------------------------------------------------------------------------------------------

    def make(self, step: ir.Make) -> None:
        kind = self.kind(step.target)
        rows = np.flatnonzero(self.chosen(step.only))
        first, of = rows, np.arange(len(rows))
        if step.once is not None and len(rows):
            first, of = self._kinds_of_rows(rows, step.once)
        given, ids = self._given(step, kind, first)
        resolved = resolve(self.progress.txn, [given], Mode.APPEND)
        progress = self.progress.after(resolved.changes).counted(kind, len(first))
        self.progress = progress.broken(resolved.violations)
        if step.first is not None:
            maker = np.zeros(self.rows, np.bool_)
            maker[first] = True
            self.columns[step.first] = pa.array(maker)
        place = np.full(self.rows, -1, np.int64)
        place[rows] = of
        made = ids.take(pa.array(place, mask=place < 0))
        types = pa.array(np.full(self.rows, kind.name, object), mask=place < 0, type=pa.string())
        known = self.slots.get(step.slot)
        if known is not None:
            made, types = pc.coalesce(known.ids, made), pc.coalesce(known.types, types)
        self.slots[step.slot] = Slot(made, types)

    def _kinds_of_rows(self, rows: Ints, names: Sequence[str]) -> tuple[Ints, Ints]:
        """One row of each kind, and for every row the number of its kind."""
        keys = [self.slots[n].ids if n in self.slots else self.column(n) for n in names]
        of, first = number_rows([encode_any(k.take(pa.array(rows))) for k in keys], len(rows))
        return rows[first], of

    def _given(self, step: ir.Make, kind: NodeOrEdgeType, rows: Ints) -> tuple[Incoming, pa.Array]:
        index, columns = pa.array(rows), {}
        for end, slot in (("src", step.src), ("dst", step.dst)):
            if slot is not None:
                columns[end] = self.slots[slot].ids.take(index)
        for name, source in step.values:
            prop = kind.properties[name]
            with placed(kind, prop):
                columns[name] = to_column(
                    self.column(source).take(index), prop.type, value_context()
                )
        if kind.key is None:
            ids = columns["id"] = fresh_ids(len(rows), self.progress.txn.now)
        elif all(name in columns for name in kind.key):
            ids = key_ids([columns[name] for name in kind.key])
        else:
            ids = pa.nulls(len(rows), pa.string())  # missing values are reported with the rows
        table = pa.table(columns) if columns else pa.table({"id": ids})
        return Incoming(kind.name, table, edge=isinstance(kind, EdgeType)), ids

    # --- new values ------------------------------------------------------------------------------------------------

    def put(self, step: ir.Put, kind: NodeOrEdgeType) -> None:
        rows = self._rows_of(step.slot, kind, step.only, step.unless)
        if not len(rows):
            return
        ids = self.slots[step.slot].ids.take(pa.array(rows))
        schema = arrow_schema(kind)
        found = self.progress.txn.view(kind.table_id).lookup("id", pc.unique(ids), schema.names)
        last = rows[len(ids) - 1 - _first_places(ids, column(found, "id"))]
        changed = found.select(schema.names)
        for name, source in step.values:
            prop = kind.properties[name]
            values = self.column(source).take(pa.array(last))
            with placed(kind, prop):
                new = to_column(values, prop.type, value_context())
            changed = changed.set_column(schema.get_field_index(name), name, new)
        before = found.select([*before_columns(kind), ADDRESS])
        made = TypeChanges(kind, updates=changed.cast(schema), before=before)
        changes, rests = Changes({kind.table_id: made}), {kind.table_id: Reads(id_tokens(ids))}
        self.progress = self.progress.after(changes, rests).counted(kind, changed.num_rows)

    def _rows_of(
        self, slot: str, kind: NodeOrEdgeType, only: str | None, unless: str | None
    ) -> Ints:
        """The rows whose entity in a slot has a type."""
        held = self.slots[slot]
        mine = to_mask(pc.equal(held.types, kind.name)) & self.chosen(only)
        if unless is not None:
            mine &= ~self.chosen(unless)
        return np.flatnonzero(mine)

    # --- deletions -------------------------------------------------------------------------------------------------

    def drop(self, step: ir.Drop, kind: NodeOrEdgeType) -> None:
        held = self.slots[step.slot]
        if pa.types.is_list(held.ids.type):
            held = Slot(pc.list_flatten(held.ids), pc.list_flatten(held.types))
        ids = pc.unique(held.ids.filter(pc.equal(held.types, kind.name))).drop_null()
        if not len(ids):
            return
        columns = before_columns(kind)
        found = self.progress.txn.view(kind.table_id).lookup("id", ids, columns)
        gone = found.select([*columns, ADDRESS])
        rests = {kind.table_id: Reads(id_tokens(ids))}
        progress = self.progress.after(deletion(kind, gone), rests)
        self.progress = progress.counted(kind, gone.num_rows)
        if not isinstance(kind, NodeType) or not gone.num_rows:
            return
        if not step.detach:
            self._require_no_edges(kind, column(gone, "id"))
        self.progress = cascade(kind, column(gone, "id"), self.progress)

    def _require_no_edges(self, kind: NodeType, removed: pa.Array) -> None:
        for edge, held, _ in incident_rows(self.progress.txn, kind, removed):
            if held.num_rows:
                raise NodeHasEdges(
                    f"a {kind.name} to delete still has relationships of type {edge.name}",
                    details={"type": kind.name, "edge": edge.name, "edges": held.num_rows},
                )


def _first_places(ids: pa.Array, wanted: pa.Array) -> Ints:
    """Where each id occurs first, counted from the end of a column."""
    backwards = ids.take(pa.array(np.arange(len(ids))[::-1]))
    found: Ints = pc.index_in(wanted, value_set=backwards).to_numpy(zero_copy_only=False)
    return found.astype(np.int64)
