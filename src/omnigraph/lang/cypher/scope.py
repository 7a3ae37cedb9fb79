"""The meaning of names while a query is bound, clause by clause, and the plan so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from omnigraph.lang import ir
from omnigraph.lang.query.scope import Reporting
from omnigraph.lang.source import Located
from omnigraph.model.catalog import EdgeType, Property

LABEL = "label"  # the annotation by which edge types share a relationship type


@dataclass(slots=True)
class BindingState(Reporting):
    """The shared state of the binder for one query."""

    values: Mapping[str, Any]  # of the parameters
    params: dict[str, ir.ValueType] = field(default_factory=dict)  # those the query reads
    names: dict[str, int] = field(default_factory=dict)
    procedure_rows: list[ir.ProcedureRows] = field(
        default_factory=list
    )  # the parameters given by procedures
    deleted: dict[str, ir.Expr] = field(default_factory=dict)  # variables of those, and their types

    def fresh(self, name: str = "") -> str:
        """A unique variable name: the name itself if it is free."""
        count = self.names.get(name, 0)
        self.names[name] = count + 1
        if name and not count:
            return name
        return f"{name}{ir.FRESH}{count}" if name else f"{ir.FRESH}{count}"

    # --- the schema ------------------------------------------------------------------------------------------------

    def with_label(self, label: str, at: Located) -> tuple[str, ...]:
        """The node types with a label: the type of that name, or those that implement the interface."""
        if label in self.catalog.nodes:
            return (label,)
        if label in self.catalog.interfaces:
            return tuple(kind.name for kind in self.catalog.implementers(label))
        known = (*self.catalog.nodes, *self.catalog.interfaces)
        raise self.unknown("C002", f"unknown label `{label}`", at, label, known)

    def with_type(self, name: str, at: Located) -> tuple[str, ...]:
        """The edge types of a relationship type: that of the name, and those labelled so."""
        found = [e.name for e in self.catalog.edges.values() if name in labels_of_edge(e)]
        if found:
            return tuple(found)
        known = dict.fromkeys(n for e in self.catalog.edges.values() for n in labels_of_edge(e))
        raise self.unknown("C003", f"unknown relationship type `{name}`", at, name, known)

    def property(self, kind: ir.RefValue, name: str) -> list[Property | None]:
        """A property in each of the types of an entity."""
        types: Mapping[str, Any] = self.catalog.edges if kind.edge else self.catalog.nodes
        return [types[t].properties.get(name) for t in kind.types]

    def property_names(self, kind: ir.RefValue) -> list[str]:
        types: Mapping[str, Any] = self.catalog.edges if kind.edge else self.catalog.nodes
        return list(dict.fromkeys(name for t in kind.types for name in types[t].properties))


def parts_of(node: Any) -> list[Any]:
    """A part of a syntax tree, and everything below it."""
    if isinstance(node, tuple):
        return [part for item in node for part in parts_of(item)]
    if not is_dataclass(node):
        return []
    return [node, *(p for f in fields(node) for p in parts_of(getattr(node, f.name)))]


def labels_of_edge(edge: EdgeType) -> tuple[str, ...]:
    """The relationship types of an edge type."""
    given = [str(a.value) for a in edge.annotations if a.name == LABEL and a.value]
    return (edge.name, *given)


@dataclass(slots=True)
class Flow:
    """The plan up to a clause, and the meaning of names in its rows."""

    plan: ir.Op
    names: dict[str, ir.Expr] = field(default_factory=dict)
    # The types the entities of a variable have in the rows, which may be more than those it is known to have.
    types: dict[str, tuple[str, ...]] = field(default_factory=dict)
    nested: bool = False  # whether the plan starts with the rows of an enclosing operator

    def block(self) -> Flow:
        """The beginning of a block that is run for each row."""
        return Flow(ir.Outer(), dict(self.names), dict(self.types), nested=True)
