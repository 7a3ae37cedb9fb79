"""The verb of mutation queries: insert, update, delete.

Statements run in order, each seeing what the ones before it did. Together they make one `Changes` relative to the
state the query started from; it is validated once, on the final state, and becomes one commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.plan import PublishPlan, Reads, Verb
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import TableNotFound, Violation
from omnigraph.expressions.arrow import TableRows
from omnigraph.expressions.arrow import column as computed
from omnigraph.expressions.scalar import evaluate
from omnigraph.lang import ir
from omnigraph.lang.ir import Bound
from omnigraph.lang.query import QueryKindMismatch, bind_params
from omnigraph.lang.tree import is_constant
from omnigraph.model.catalog import Catalog, EdgeType, NodeOrEdgeType, NodeType, Property
from omnigraph.model.changes import Changes, Incoming, TypeChanges
from omnigraph.model.columns import arrow_schema
from omnigraph.model.frozen import frozen
from omnigraph.storage.tables import ADDRESS
from omnigraph.validate import require_valid
from omnigraph.validate.findings import column
from omnigraph.values.columns import column_of, to_column
from omnigraph.values.misfit import Misfit
from omnigraph.values.reading import ReadingContext
from omnigraph.write.embed import Embedder, EmbedTexts, embedded, embedders
from omnigraph.write.input.options import Options
from omnigraph.write.matching import matching
from omnigraph.write.removal import incident_rows
from omnigraph.write.resolve import Mode, actions_of, before_columns, resolve

if TYPE_CHECKING:
    from omnigraph.read import Result


@frozen
class MutateOutcome:
    """How many entities the statements touched. An entity touched twice counts twice, a deleted one once.

    `answer` is the rows a query returned after writing.
    """

    affected_nodes: int = 0
    affected_edges: int = 0
    answer: Result | None = None

    def to_json(self) -> dict[str, int]:
        return {"affected_nodes": self.affected_nodes, "affected_edges": self.affected_edges}


def mutate(
    query: ir.Query,
    params: Mapping[str, Any] | None = None,
    *,
    embed: EmbedTexts | None = None,
) -> Verb:
    """The verb that runs a mutation query. With `embed`, texts of `@embed` properties become vectors."""
    if query.is_read:
        raise QueryKindMismatch(f"the query `{query.name}` is a read, not a mutation")
    bind_params(query, params)  # report bad parameters before anything else happens
    embedder = embedders(embed)

    def verb(txn: WriteTxn) -> PublishPlan:
        return _plan(query, bind_params(query, params, txn.now), txn, embedder(txn.snapshot))

    return verb


def _plan(query: ir.Query, bound: Bound, txn: WriteTxn, embedder: Embedder | None) -> PublishPlan:
    assert isinstance(query.body, ir.Mutation)  # noqa: S101 - checked by `mutate`
    progress = MutationProgress(txn)
    for statement in query.body.statements:
        progress = run(statement, progress, bound)
    outcome = MutateOutcome(progress.nodes, progress.edges)
    if progress.changes.is_empty and not progress.violations:
        return PublishPlan(
            kind="mutation",
            reads=progress.reads,
            result=outcome.to_json(),
            value=_answered(outcome, progress, txn),
            empty=True,
        )
    changes = progress.changes
    if embedder is not None:
        changes = embedded(changes, txn, embedder)
    reads = require_valid(changes, txn, found=progress.violations, cascaded=progress.cascaded)
    return PublishPlan(
        kind="mutation",
        actions=actions_of(changes),
        reads=_united(progress.reads, reads),
        result=outcome.to_json(),
        value=_answered(outcome, progress, txn.plus(actions_of(changes))),
    )


def _answered(outcome: MutateOutcome, progress: MutationProgress, state: WriteTxn) -> MutateOutcome:
    """With the query's result on the state it leads to."""
    if progress.answer is None:
        return outcome
    return replace(outcome, answer=progress.answer(state))


@frozen
class MutationProgress:
    """The state of a query between two statements."""

    txn: WriteTxn  # as the next statement sees it
    changes: Changes = field(default_factory=Changes)  # since the beginning
    reads: Mapping[str, Reads] = field(default_factory=dict)
    violations: tuple[Violation, ...] = ()
    cascaded: frozenset[str] = frozenset()
    nodes: int = 0
    edges: int = 0
    answer: Callable[[WriteTxn], Result] | None = None  # the result to return in the end

    def after(self, found: Changes, reads: Mapping[str, Reads] | None = None) -> MutationProgress:
        """With the changes of a statement."""
        merged = dict(self.changes.tables)
        for change in found:
            earlier = merged.get(change.kind.table_id)
            merged[change.kind.table_id] = change if earlier is None else _joined(earlier, change)
        return replace(
            self,
            txn=self.txn.plus(actions_of(found)),
            changes=Changes(merged),
            reads=_united(self.reads, reads or {}),
        )

    def counted(self, kind: NodeOrEdgeType, rows: int) -> MutationProgress:
        """With `rows` more entities touched."""
        if isinstance(kind, EdgeType):
            return replace(self, edges=self.edges + rows)
        return replace(self, nodes=self.nodes + rows)

    def broken(self, found: Iterable[Violation]) -> MutationProgress:
        return replace(self, violations=(*self.violations, *found))


def run(statement: ir.Statement, progress: MutationProgress, bound: Bound) -> MutationProgress:
    """One statement."""
    if isinstance(statement, ir.PatternChange):
        from omnigraph.write.changing import change

        return change(statement, progress, bound)
    kind = _kind(statement.target, progress.txn.catalog)
    match statement:
        case ir.Insert(_, rows):
            return _insert(rows, kind, progress, bound)
        case ir.Update(_, values, predicate):
            return _update(values, predicate, kind, progress, bound)
        case ir.Delete(_, predicate):
            return _delete(predicate, kind, progress, bound)


def _kind(target: ir.Target, catalog: Catalog) -> NodeOrEdgeType:
    types: Mapping[str, NodeOrEdgeType] = (
        catalog.nodes if target.kind is ir.TargetKind.NODE else catalog.edges
    )
    kind = types.get(target.type_name)
    if kind is None:
        raise TableNotFound(f"there is no {target.kind.value} type {target.type_name} any more")
    return kind


# --- insert ------------------------------------------------------------------------------------------------------


def _insert(
    rows: tuple[ir.InsertRow, ...], kind: NodeOrEdgeType, progress: MutationProgress, bound: Bound
) -> MutationProgress:
    """New entities; with a key, existing ones are changed in the given fields."""
    try:
        given = _given(rows, kind, bound)
    except Misfit as misfit:
        return progress.broken([misfit_found(misfit, kind)])
    resolved = resolve(progress.txn, [given], Mode.MERGE)
    return progress.after(resolved.changes).counted(kind, len(rows)).broken(resolved.violations)


def _given(rows: tuple[ir.InsertRow, ...], kind: NodeOrEdgeType, bound: Bound) -> Incoming:
    assigned = [{a.property: a.value for a in row.values} for row in rows]
    columns: dict[str, pa.Array] = {}
    absent: dict[str, pa.Array] = {}
    if isinstance(kind, EdgeType):
        columns["src"] = pa.array([_value(row.src, bound) for row in rows], pa.string())
        columns["dst"] = pa.array([_value(row.dst, bound) for row in rows], pa.string())
    for name, prop in kind.properties.items():
        named = [name in values for values in assigned]
        if any(named):
            given = [_value(v.get(name), bound) for v in assigned]
            with placed(kind, prop):
                columns[name] = column_of(given, prop.type, value_context())
        if any(named) and not all(named):
            absent[name] = pa.array([not is_named for is_named in named])
    return Incoming(kind.name, pa.table(columns), absent, edge=isinstance(kind, EdgeType))


def _value(expr: ir.Expr | None, bound: Bound) -> Any:
    return None if expr is None else evaluate(expr, bound)


@contextmanager
def placed(kind: NodeOrEdgeType, prop: Property) -> Iterator[None]:
    """Adds the property to a misfit."""
    try:
        yield
    except Misfit as misfit:
        raise misfit.at(f"{kind.name}.{prop.name}", prop.type, prop.name) from None


def value_context() -> ReadingContext:
    """How values of statements are read."""
    return replace(Options().context, typed=True)


def misfit_found(misfit: Misfit, kind: NodeOrEdgeType, ids: pa.Array | None = None) -> Violation:
    """A value that does not fit, as a violation."""
    entity = ids[misfit.row].as_py() if ids is not None and misfit.row is not None else None
    return replace(misfit.violation(kind.name), id=entity)


# --- update ------------------------------------------------------------------------------------------------------


def _update(
    values: tuple[ir.Assign, ...],
    predicate: ir.Expr,
    kind: NodeOrEdgeType,
    progress: MutationProgress,
    bound: Bound,
) -> MutationProgress:
    """Whole rows with some columns new; every value is computed from the old row."""
    schema = arrow_schema(kind)
    found = matching(progress.txn, kind, predicate, bound, schema.names)
    read = {kind.table_id: found.reads}
    if not found.rows.num_rows:
        return progress.after(Changes(), read)
    rows = found.rows.select(schema.names)
    for assign in values:
        prop = kind.properties[assign.property]
        try:
            with placed(kind, prop):
                new = _assigned(assign.value, prop, TableRows(found.rows, bound))
        except Misfit as misfit:
            return progress.broken([misfit_found(misfit, kind, column(rows, "id"))])
        rows = rows.set_column(schema.get_field_index(assign.property), assign.property, new)
    before = found.rows.select([*before_columns(kind), ADDRESS])
    change = TypeChanges(kind, updates=rows.cast(schema), before=before)
    changes = Changes({kind.table_id: change})
    return progress.after(changes, read).counted(kind, rows.num_rows)


def _assigned(value: ir.Expr, prop: Property, rows: TableRows) -> pa.Array:
    """The new values of a property. A blob that is the same for every row is read once."""
    if prop.type.is_blob and is_constant(value):
        given = column_of([evaluate(value, rows.bound)], prop.type, value_context())
        return pa.repeat(given[0], rows.n)
    return to_column(computed(value, rows), prop.type, value_context())


# --- delete ------------------------------------------------------------------------------------------------------


def _delete(
    predicate: ir.Expr, kind: NodeOrEdgeType, progress: MutationProgress, bound: Bound
) -> MutationProgress:
    """Delete rows, and with nodes their edges. Rows deleted by an earlier statement are no longer seen."""
    columns = before_columns(kind)
    found = matching(progress.txn, kind, predicate, bound, columns)
    progress = progress.after(
        deletion(kind, found.rows.select([*columns, ADDRESS])), {kind.table_id: found.reads}
    ).counted(kind, found.rows.num_rows)
    if isinstance(kind, EdgeType) or not found.rows.num_rows:
        return progress
    return cascade(kind, column(found.rows, "id"), progress)


def deletion(kind: NodeOrEdgeType, rows: pa.Table) -> Changes:
    """The deletion of rows."""
    return Changes({kind.table_id: TypeChanges(kind, deletes=rows)} if rows.num_rows else {})


def cascade(node: NodeType, removed: pa.Array, progress: MutationProgress) -> MutationProgress:
    """Delete the edges of deleted nodes."""
    for kind, rows, reads in list(incident_rows(progress.txn, node, removed)):
        progress = progress.after(deletion(kind, rows), {kind.table_id: reads})
        progress = progress.counted(kind, rows.num_rows)
    return replace(progress, cascaded=progress.cascaded | {node.table_id})


# --- several statements ----------------------------------------------------------------------------------------------


def _joined(earlier: TypeChanges, later: TypeChanges) -> TypeChanges:
    """Both as one change. A row made by an earlier statement stays new unless a later one deletes it."""
    touched = pa.concat_arrays([_ids(later.updates), _ids(later.deletes)])
    anew, changed = _ids(earlier.inserts), _ids(earlier.updates)
    known = pa.concat_arrays([anew, changed])
    gone = _ids(later.deletes)
    return replace(
        earlier,
        inserts=_stacked(
            _without(earlier.inserts, touched), later.inserts, _only(later.updates, anew)
        ),
        updates=_stacked(_without(earlier.updates, touched), _without(later.updates, anew)),
        before=_stacked(_without(earlier.before, gone), _without(later.before, known)),
        deletes=_stacked(
            earlier.deletes, _only(earlier.before, gone), _without(later.deletes, known)
        ),
    )


def _ids(rows: pa.Table | None) -> pa.Array:
    return pa.array([], pa.string()) if rows is None else column(rows, "id")


def _without(rows: pa.Table | None, ids: pa.Array) -> pa.Table | None:
    if rows is None or not len(ids):
        return rows
    return rows.filter(pc.invert(pc.is_in(rows["id"], value_set=ids)))


def _only(rows: pa.Table | None, ids: pa.Array) -> pa.Table | None:
    return None if rows is None else rows.filter(pc.is_in(rows["id"], value_set=ids))


def _stacked(*parts: pa.Table | None) -> pa.Table | None:
    filled = [part for part in parts if part is not None and part.num_rows]
    return pa.concat_tables(filled) if filled else None


def _united(one: Mapping[str, Reads], other: Mapping[str, Reads]) -> dict[str, Reads]:
    return {
        table: one.get(table, Reads()) | other.get(table, Reads())
        for table in sorted({*one, *other})
    }


# --- several writes as one ---------------------------------------------------------------------------------------


def together(verbs: Sequence[Verb], kind: str = "write") -> Verb:
    """The verb that runs some verbs in order, each seeing the ones before it. Its value is the list of theirs."""

    def verb(txn: WriteTxn) -> PublishPlan:
        plans: list[PublishPlan] = []
        for each in verbs:
            plans.append(each(txn))
            txn = txn.after(plans[-1])
        values = [plan.value for plan in plans]
        wanted = [plan for plan in plans if not plan.empty]
        return PublishPlan(
            kind=kind,
            actions=tuple(action for plan in wanted for action in plan.actions),
            reads=reduce(_united, (plan.reads for plan in plans), {}),
            strict=any(plan.strict for plan in wanted),
            result={"steps": [dict(plan.result) for plan in plans]},
            value=values,
            empty=not wanted,
        )

    return verb
