"""Procedures that read no rows: computed with the verbs of the graph, so a policy applies as it does to them.

`lang/cypher/metadata.py` is the table of what they take and yield. A type that may not be read is hidden: schemas
omit it, diffs have no rows of it, and its history is that of an unknown type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import EntityNotFound, OptionInvalid, TableNotFound
from omnigraph.lang import ir
from omnigraph.model.catalog import Catalog, EdgeType, NodeOrEdgeType
from omnigraph.model.frozen import frozen
from omnigraph.values.spelling import to_json, whole_millis

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.outcomes import Commit

ROWS_MAX = 1_000  # that a procedure about history returns per call
Row = tuple[Any, ...]
Params = Mapping[str, Any] | None


def with_procedure_rows(
    graph: Graph, query: ir.Query, params: Params, state: Snapshot, branch: str, at: object = None
) -> Params:
    """The parameters of a query, with the rows its procedures yield on a state that may be read."""
    if not query.procedure_rows:
        return params
    procedures = _Procedures(graph, state, branch if at is None else state.commit.branch)
    return {
        **(params or {}),
        **{call.param: procedures.rows(call, params) for call in query.procedure_rows},
    }


@frozen
class _Procedures:
    """The graph, and the state a query reads."""

    graph: Graph
    state: Snapshot
    branch: str

    def rows(self, call: ir.ProcedureRows, params: Params) -> list[dict[str, Any]]:
        from omnigraph.lang.cypher.metadata import MetadataProcedure
        from omnigraph.lang.cypher.procedures import PROCEDURES

        procedure = PROCEDURES[call.procedure.lower()]
        assert isinstance(procedure, MetadataProcedure)  # noqa: S101 - the binder passes no others
        if procedure.facts is not None:
            found: Iterable[Row] = procedure.facts(self.shown(self.state.catalog, self.branch))
        else:
            found = STORED[procedure.name](self, *(_value(arg, params) for arg in call.args))
        names = [name for name, _ in procedure.fields]
        return [dict(zip(names, row, strict=True)) for row in found]

    def shown(self, catalog: Catalog, branch: str) -> Catalog:
        """A catalog of the types that may be read, with only what belongs to them."""
        may_read = self.graph._may_read
        nodes = {name: kind for name, kind in catalog.nodes.items() if may_read(branch, name)}
        edges = {
            name: kind
            for name, kind in catalog.edges.items()
            if may_read(branch, name) and {kind.from_type, kind.to_type} <= nodes.keys()
        }
        seen = replace(catalog, nodes=nodes, edges=edges)
        known = {
            name: kind
            for name, kind in catalog.interfaces.items()
            if seen.implementers(name) or not catalog.implementers(name)
        }
        return replace(seen, interfaces=known)

    def kinds(self, type: str, at: str | None) -> list[NodeOrEdgeType]:
        """The types of a name that may be read; of relationships also by their Cypher name."""
        from omnigraph.lang.cypher.scope import labels_of_edge

        state, branch = self.state, self.branch
        if at is not None:
            state = self.graph._state(branch, at)
            branch = state.commit.branch
        found = [
            kind
            for kind in self.shown(state.catalog, branch).entities()
            if type == kind.name or (isinstance(kind, EdgeType) and type in labels_of_edge(kind))
        ]
        if not found:
            raise TableNotFound(f"there is no type {type!r}")
        return found

    def at(self, point: str | None) -> str:
        return self.state.commit_id if point is None else point


def _value(arg: ir.Expr, params: Params) -> Any:
    assert isinstance(arg, ir.Literal | ir.Param)  # noqa: S101 - the binder takes no other
    return arg.value if isinstance(arg, ir.Literal) else (params or {}).get(arg.name)


# --- what is stored ---------------------------------------------------------------------------------------------------


def _indices(procedures: _Procedures) -> Iterator[Row]:
    from omnigraph.write.maintain import index_states

    for kind in procedures.shown(procedures.state.catalog, procedures.branch).entities():
        for index in index_states(procedures.state, kind):
            yield (
                kind.name,
                index.property,
                index.kind,
                index.rows,
                index.covered_rows,
                index.bytes,
            )


def _log(procedures: _Procedures, limit: int, at: str | None) -> Iterator[Row]:
    found = procedures.graph.log(procedures.branch, _within(limit), at=procedures.at(at))
    return ((*_commit(commit), list(commit.parents)) for commit in found)


def _diff(procedures: _Procedures, one: str, other: str, limit: int, skip: int) -> Iterator[Row]:
    graph, branch, limit = procedures.graph, procedures.branch, _within(limit)
    states = [graph._state(branch, point) for point in (one, other)]
    names = {kind.name for state in states for kind in state.catalog.entities()}
    branches = {state.commit.branch for state in states}
    shown = {name for name in names if all(graph._may_read(b, name) for b in branches)}
    types = None if shown == names else sorted(shown)
    found = graph.diff(one, other, branch=branch, types=types)
    rows = (row for part in found.types for row in part.rows())
    for row in islice(rows, _not_negative("skip", skip), skip + limit):
        yield (row.type, row.id, row.operation, *_sides(row.before, row.after))


def _entity(
    procedures: _Procedures, type: str, id: str, limit: int, at: str | None
) -> Iterator[Row]:
    limit = _within(limit)
    for kind in procedures.kinds(type, at):
        found = procedures.graph.history(kind.name, id, procedures.branch, procedures.at(at), limit)
        for change in found.changes:
            sides = _sides(*_changed(change.before, change.after))
            yield (*_commit(change.commit), change.operation, *sides)


def _blame(procedures: _Procedures, type: str, id: str, at: str | None) -> Iterator[Row]:
    for kind in procedures.kinds(type, at):
        try:
            found = procedures.graph.blame(kind.name, id, procedures.branch, procedures.at(at))
        except EntityNotFound:
            continue
        for cell in found.cells:
            via = None if cell.via is None else cell.via.id
            yield (cell.property, _text(cell.value), *_commit(cell.commit), via)


STORED: Mapping[str, Callable[..., Iterator[Row]]] = {
    "omnigraph.schema.indices": _indices,
    "omnigraph.history.log": _log,
    "omnigraph.history.diff": _diff,
    "omnigraph.history.entity": _entity,
    "omnigraph.history.blame": _blame,
}


def _within(limit: int) -> int:
    if _not_negative("limit", limit) > ROWS_MAX:
        raise OptionInvalid(f"limit is at most {ROWS_MAX:,}, got {limit:,}")
    return limit


def _not_negative(name: str, number: int) -> int:
    if number < 0:
        raise OptionInvalid(f"{name} must not be negative, got {number}")
    return number


def _commit(commit: Commit | None) -> Row:
    if commit is None:
        return (None,) * 6
    return (
        commit.id,
        whole_millis(commit.time),
        commit.branch,
        commit.kind,
        commit.actor,
        commit.message,
    )


def _changed(before: Any, after: Any) -> tuple[Any, Any]:
    """The cells that differ, of a row that exists on both sides."""
    if before is None or after is None:
        return before, after
    names = [name for name in after if before.get(name) != after[name]]
    return {n: before.get(n) for n in names}, {n: after[n] for n in names}


def _sides(before: Any, after: Any) -> Row:
    """The names of the properties a change is about, and their values on both sides as JSON."""
    return list(after or before or ()), _text(before), _text(after)


def _text(value: Any) -> str | None:
    return None if value is None else json.dumps(to_json(value), default=_blob_text)


def _blob_text(value: Any) -> Any:
    return {"blob_bytes": len(value)} if isinstance(value, bytes) else str(value)
