"""The tree of a schema text. Places do not take part in comparison: two trees are equal when their contents are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from omnigraph.lang.lexer import Token
from omnigraph.lang.source import Place
from omnigraph.model.catalog import Cardinality
from omnigraph.model.frozen import frozen
from omnigraph.model.types import PropType

Scalar = str | int | float | bool


@frozen
class Name:
    text: str
    at: Place = field(compare=False, repr=False)

    def __str__(self) -> str:
        return self.text


@frozen
class Value:
    """A literal, a list of literals, or a bare word (`is_word`)."""

    value: Scalar | tuple[Scalar, ...]
    is_word: bool
    at: Place = field(compare=False, repr=False)


@frozen
class AnnotationNode:
    """`@name`, `@name(value)` or `@name(value, key=value)`."""

    name: str
    value: Value | None
    arguments: tuple[tuple[Name, Value], ...]
    at: Place = field(compare=False, repr=False)


@frozen
class TypeRef:
    """A property type as written; `values` keeps the order of an enum."""

    type: PropType
    values: tuple[str, ...]
    at: Place = field(compare=False, repr=False)


@frozen
class PropertyDecl:
    name: Name
    type: TypeRef
    annotations: tuple[AnnotationNode, ...]
    at: Place = field(compare=False, repr=False)


@frozen
class FieldsRule:
    """`@key(a, b)`, `@unique(a, b)` or `@index(a, b)`."""

    word: str
    fields: tuple[Name, ...]
    at: Place = field(compare=False, repr=False)


@frozen
class RangeRule:
    """`@range(p, minimum..maximum)`."""

    name: Name
    minimum: int | float | None
    maximum: int | float | None
    at: Place = field(compare=False, repr=False)


@frozen
class CheckRule:
    """`@check(p, "pattern")`."""

    name: Name
    pattern: str
    at: Place = field(compare=False, repr=False)


Rule = FieldsRule | RangeRule | CheckRule
Member = PropertyDecl | FieldsRule | RangeRule | CheckRule


@frozen
class InterfaceDecl:
    name: Name
    members: tuple[Member, ...]
    at: Place = field(compare=False, repr=False)
    body: Place | None = field(default=None, compare=False, repr=False)  # its braces

    @property
    def kind(self) -> str:
        return "interface"


@frozen
class NodeDecl:
    name: Name
    annotations: tuple[AnnotationNode, ...]
    implements: tuple[Name, ...]
    members: tuple[Member, ...]
    at: Place = field(compare=False, repr=False)
    body: Place | None = field(default=None, compare=False, repr=False)  # its braces

    @property
    def kind(self) -> str:
        return "node"


@frozen
class EdgeDecl:
    name: Name
    from_type: Name
    to_type: Name
    cardinality: Cardinality | None
    annotations: tuple[AnnotationNode, ...]
    members: tuple[Member, ...]
    at: Place = field(compare=False, repr=False)
    body: Place | None = field(default=None, compare=False, repr=False)  # its braces

    @property
    def kind(self) -> str:
        return "edge"


Declaration = InterfaceDecl | NodeDecl | EdgeDecl


@frozen
class Schema:
    """A schema text: its declarations in order, and the comments for the formatter."""

    declarations: tuple[Declaration, ...]
    comments: tuple[Token, ...] = field(default=(), compare=False, repr=False)
    text: str = field(default="", compare=False, repr=False)
    # Names declared in parts that could not be read: their absence is not reported.
    unread: frozenset[str] = field(default=frozenset(), compare=False, repr=False)


def properties(declaration: Declaration) -> Iterator[PropertyDecl]:
    """The properties a declaration writes itself."""
    return (m for m in declaration.members if isinstance(m, PropertyDecl))


def rules(declaration: Declaration) -> Iterator[Rule]:
    """The body constraints of a declaration."""
    return (m for m in declaration.members if not isinstance(m, PropertyDecl))
