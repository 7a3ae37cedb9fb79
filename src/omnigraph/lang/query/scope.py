"""The variables of a pattern while it is checked, clause by clause."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.source import Located
from omnigraph.model.catalog import Catalog, EntityType, InterfaceType, Property
from omnigraph.model.frozen import frozen
from omnigraph.model.types import PropType

ANONYMOUS = "_"
IDS = ("id", "@id")  # the name of the id of an entity
RESERVED_PARAM = "__nanograph_now"  # under this name a caller may preset the time of the query


class Reported(Exception):
    """An error was reported; its clause is skipped, and checking continues after it."""


class VarKind(Enum):
    NODE = "node"
    EDGE = "edge"
    PATH = "path"
    BROKEN = "broken"  # its own clause has an error, so no more are reported for it


@frozen
class Var:
    """A bound variable: its kind, its types and the properties all of these have."""

    name: str
    kind: VarKind
    types: tuple[str, ...] = ()
    label: str = ""  # the name of its type in messages
    properties: Mapping[str, Property] = field(default_factory=dict)
    optional: bool = False  # bound by an optional block, so it may be null

    def property_type(self, prop: Property) -> PropType:
        return prop.type.with_nullable(prop.type.nullable or self.optional)


@dataclass(slots=True)
class Reporting:
    """The schema, and where errors go."""

    catalog: Catalog
    diagnostics: Diagnostics

    def error(self, code: str, message: str, at: Located, help: str = "") -> Reported:
        """Report an error and give what to raise."""
        self.diagnostics.error(code, message, at, help=help)
        return Reported()

    def unknown(
        self, code: str, message: str, at: Located, word: str, options: Iterable[str]
    ) -> Reported:
        """Report a name that does not exist, with the one that was probably meant."""
        self.diagnostics.unknown(code, message, at, word=word, options=options)
        return Reported()


@dataclass(slots=True)
class CheckContext(Reporting):
    """The shared state of the checker."""

    params: Mapping[str, PropType]


@dataclass(slots=True)
class Scope:
    """The variables bound so far, those of enclosing blocks included."""

    vars: dict[str, Var] = field(default_factory=dict)
    outer: frozenset[str] = frozenset()  # those that come from enclosing blocks

    def inner(self) -> Scope:
        """The scope of a nested block."""
        return Scope(dict(self.vars), frozenset(self.vars))

    def bind(self, var: Var) -> None:
        if var.name != ANONYMOUS:
            self.vars[var.name] = var


def node_var(name: str, catalog: Catalog, types: tuple[str, ...]) -> Var:
    """A variable for nodes of these types."""
    views = [catalog.nodes[t] for t in types]
    return Var(name, VarKind.NODE, types, "|".join(types), shared_properties(views))


def interface_var(name: str, catalog: Catalog, interface: InterfaceType) -> Var:
    """A variable for the nodes of all types that implement an interface."""
    types = tuple(n.name for n in catalog.implementers(interface.name))
    return Var(name, VarKind.NODE, types, interface.name, interface.properties)


def edge_var(name: str, catalog: Catalog, types: tuple[str, ...]) -> Var:
    views = [catalog.edges[t] for t in types]
    return Var(name, VarKind.EDGE, types, "|".join(types), shared_properties(views))


def shared_properties(types: Iterable[EntityType]) -> Mapping[str, Property]:
    """The properties shared by all types with the same meaning; nullable if nullable in one of them."""
    views = [t.properties for t in types]
    if len(views) == 1:
        return views[0]
    shared: dict[str, Property] = {}
    for name, prop in views[0].items() if views else ():
        others = [view.get(name) for view in views]
        kinds = {o.type.with_nullable(True) if o else None for o in others}
        if len(kinds) == 1 and None not in kinds:
            nullable = [o for o in others if o and o.type.nullable]
            shared[name] = nullable[0] if nullable else prop
    return shared
