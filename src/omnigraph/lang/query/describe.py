"""The columns a query returns and the types it reads and writes, from its plan."""

from __future__ import annotations

from typing import Any

from omnigraph.lang import ir
from omnigraph.lang.tree import walk
from omnigraph.model.catalog import Catalog, EdgeType
from omnigraph.model.frozen import frozen
from omnigraph.model.types import PropType, Scalar

KINDS = {
    Scalar.STRING: "string",
    Scalar.BLOB: "blob",
    Scalar.BOOL: "bool",
    Scalar.I32: "int",
    Scalar.U32: "int",
    Scalar.I64: "bigint",
    Scalar.U64: "bigint",
    Scalar.F32: "float",
    Scalar.F64: "float",
    Scalar.DATE: "date",
    Scalar.DATETIME: "datetime",
}
ORDER = {"node": 0, "edge": 1}

Entity = tuple[str, str]  # kind and name of a type


@frozen
class Operation:
    """The columns of a query's result, and the types it reads and writes: nodes before edges, by name."""

    result: tuple[ir.OutputColumn, ...]
    reads: tuple[Entity, ...]
    writes: tuple[Entity, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "result": [described(c.name, c.type) for c in self.result],
            "reads": [{"kind": kind, "type_name": name} for kind, name in self.reads],
            "writes": [{"kind": kind, "type_name": name} for kind, name in self.writes],
        }


def describe_operation(query: ir.Query, catalog: Catalog) -> Operation:
    """The columns a compiled query returns, and the types it reads and writes."""
    if isinstance(query.body, ir.Read):
        return Operation(query.body.columns, _sorted(_read_by(query.body.plan)), ())
    reads: set[Entity] = set()
    writes: set[Entity] = set()
    result: tuple[ir.OutputColumn, ...] = ()
    for statement in query.body.statements:
        if isinstance(statement, ir.PatternChange):
            for read in statement.reads:
                reads |= _read_by(read.plan)
            writes |= _changed_by(statement, catalog)
            result = () if statement.returns is None else statement.returns.columns
            continue
        target = (statement.target.kind.value, statement.target.type_name)
        touched = {target, *_cascade(statement, catalog)}
        reads |= touched | _endpoints(statement, catalog)
        writes |= touched
    return Operation(result, _sorted(reads), _sorted(writes))


def _read_by(plan: ir.Op) -> set[Entity]:
    """The types a plan scans, and those its walks touch."""
    found: set[Entity] = set()
    for node in walk(plan):
        match node:
            case ir.NodeScan(types=types):
                found |= {("node", name) for name in types}
            case ir.EdgeStep(edge=edge, near=near, far=far):
                found |= {("edge", edge), ("node", near), ("node", far)}
            case _:
                pass
    return found


def _changed_by(change: ir.PatternChange, catalog: Catalog) -> set[Entity]:
    """The types whose rows the steps of a change touch."""
    found: set[Entity] = set()
    for step in change.steps:
        targets = (step.target,) if isinstance(step, ir.Make) else step.targets
        found |= {(t.kind.value, t.type_name) for t in targets}
        if isinstance(step, ir.Drop):
            nodes = [t.type_name for t in targets if t.kind is ir.TargetKind.NODE]
            found |= {("edge", e.name) for n in nodes for e in catalog.incident_edges(n)}
    return found


def _cascade(statement: ir.Insert | ir.Update | ir.Delete, catalog: Catalog) -> set[Entity]:
    """The edges that go with a deleted node."""
    if isinstance(statement, ir.Delete) and statement.target.kind is ir.TargetKind.NODE:
        return {("edge", e.name) for e in catalog.incident_edges(statement.target.type_name)}
    return set()


def _endpoints(statement: ir.Insert | ir.Update | ir.Delete, catalog: Catalog) -> set[Entity]:
    """The node types an inserted edge must find its ends in."""
    kind = catalog.entity(statement.target.type_name)
    if isinstance(statement, ir.Insert) and isinstance(kind, EdgeType):
        return {("node", kind.from_type), ("node", kind.to_type)}
    return set()


def _sorted(found: set[Entity]) -> tuple[Entity, ...]:
    return tuple(sorted(found, key=lambda entity: (ORDER[entity[0]], entity[1])))


def described(name: str, kind: ir.ValueType) -> dict[str, Any]:
    """A column or a parameter: its name, and what values it takes."""
    if not isinstance(kind, PropType):
        more: dict[str, Any] = {"kind": "object"}
    elif kind.vector_dim is not None:
        more = {"kind": "vector", "vector_dim": kind.vector_dim}
    elif kind.is_list:
        more = {"kind": "list", "item_kind": KINDS[kind.scalar]}
    else:
        more = {"kind": KINDS[kind.scalar]}
    return {"name": name, **more, "nullable": kind.nullable}
