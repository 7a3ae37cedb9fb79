"""The checked schema: the types, their properties and the rules for their rows.

A catalog is immutable. Every type and property carries an identity that survives renames; `NodeType.table_id` and
`EdgeType.table_id` name the table that stores the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from omnigraph.model.frozen import frozen
from omnigraph.model.types import PropType, Scalar


@frozen
class Annotation:
    """An annotation carried as metadata: `@name`, `@name(value)` or `@name(value, k=v)`."""

    name: str
    value: str | int | float | bool | None = None
    arguments: tuple[tuple[str, str | int | float | bool], ...] = ()

    def __str__(self) -> str:
        named = [f"{name}={value!r}" for name, value in self.arguments]
        return f"@{self.name}" + (
            f"({', '.join([repr(self.value), *named])})" if self.value is not None else ""
        )


@frozen
class Embed:
    """`@embed`: a vector made from the text of another property of the same type."""

    source: str
    model: str | None = None


@frozen
class Property:
    """One property of a type."""

    name: str
    type: PropType
    property_id: int
    default: Any = None  # a value in its JSON shape; None: no default
    embed: Embed | None = None
    metric: str = "l2"  # of a vector: l2, cosine or dot
    description: str | None = None
    annotations: tuple[Annotation, ...] = ()

    @property
    def index_kinds(self) -> tuple[str, ...]:
        """The kinds of index on this property: by value (equality, ranges, prefixes), over words, over vectors."""
        if self.type.is_vector:
            return ("vector",)
        if not self.type.is_plain:
            return ()
        is_text = self.type.scalar is Scalar.STRING and self.type.enum is None
        return ("text", "value") if is_text else ("value",)


@frozen
class Range:
    """`@range(property, minimum..maximum)`, inclusive at both ends."""

    property: str
    minimum: int | float | None
    maximum: int | float | None


@frozen
class Check:
    """`@check(property, "regex")`: an unanchored RE2 search."""

    property: str
    pattern: str


@frozen
class Cardinality:
    """How many edges of this type leave one source node."""

    minimum: int = 0
    maximum: int | None = None

    @property
    def is_free(self) -> bool:
        return self.minimum == 0 and self.maximum is None

    def __str__(self) -> str:
        return f"{self.minimum}..{'' if self.maximum is None else self.maximum}"


ANY_NUMBER = Cardinality()


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityType:
    """What node and edge types have in common."""

    name: str
    type_id: int
    table_id: str
    properties: Mapping[str, Property] = field(default_factory=dict)  # in order of name
    key: tuple[str, ...] | None = None  # members in the order that derives the id
    uniques: tuple[tuple[str, ...], ...] = ()  # besides the key
    indices: tuple[tuple[str, ...], ...] = ()
    ranges: tuple[Range, ...] = ()
    checks: tuple[Check, ...] = ()
    description: str | None = None
    instruction: str | None = None
    annotations: tuple[Annotation, ...] = ()

    def indexed(self, kind: str) -> tuple[str, ...]:
        """The properties for which the schema asks for an index of a kind: `value`, `text` or `vector`."""
        named = dict.fromkeys(name for group in self.indices for name in group)
        known = (self.properties[name] for name in named if name in self.properties)
        return tuple(prop.name for prop in known if kind in prop.index_kinds)

    def required(self) -> Iterator[Property]:
        """The properties that may not be null."""
        return (p for p in self.properties.values() if not p.type.nullable)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeType(EntityType):
    """A node type; its table has the column `id` besides the properties."""

    implements: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        return "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeType(EntityType):
    """An edge type; its table has the columns `id`, `src` and `dst` besides the properties.

    `key` of an edge may name `src` and `dst`.
    """

    from_type: str
    to_type: str
    cardinality: Cardinality = ANY_NUMBER

    @property
    def ends(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """The columns of its two ends, each with the node type it names."""
        return ("src", self.from_type), ("dst", self.to_type)

    @property
    def kind(self) -> str:
        return "edge"


NodeOrEdgeType = NodeType | EdgeType  # the types that have a table


@dataclass(frozen=True, slots=True, kw_only=True)
class InterfaceType:
    """A set of properties several node types share; queries may bind a variable to it."""

    name: str
    type_id: int
    properties: Mapping[str, Property] = field(default_factory=dict)
    description: str | None = None


@frozen
class Catalog:
    """All types of a graph at one commit, by name."""

    nodes: Mapping[str, NodeType] = field(default_factory=lambda: MappingProxyType({}))
    edges: Mapping[str, EdgeType] = field(default_factory=lambda: MappingProxyType({}))
    interfaces: Mapping[str, InterfaceType] = field(default_factory=lambda: MappingProxyType({}))

    def entities(self) -> Iterator[NodeOrEdgeType]:
        """Node types, then edge types, each by name."""
        yield from (self.nodes[name] for name in sorted(self.nodes))
        yield from (self.edges[name] for name in sorted(self.edges))

    def entity(self, name: str) -> NodeOrEdgeType | None:
        """The node type of that name, else the edge type."""
        return self.nodes.get(name) or self.edges.get(name)

    def edge(self, word: str) -> EdgeType | None:
        """An edge type by its exact name, else regardless of case, as queries and loads write it."""
        exact = self.edges.get(word)
        if exact is not None:
            return exact
        folded = word.lower()
        return next((e for e in self.edges.values() if e.name.lower() == folded), None)

    def implementers(self, interface: str) -> tuple[NodeType, ...]:
        """The node types that implement an interface, by name."""
        return tuple(n for _, n in sorted(self.nodes.items()) if interface in n.implements)

    def incident_edges(self, node: str) -> tuple[EdgeType, ...]:
        """The edge types that start or end at a node type, by name."""
        return tuple(e for _, e in sorted(self.edges.items()) if node in (e.from_type, e.to_type))
