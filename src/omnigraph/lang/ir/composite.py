"""Values made of others: lists, maps, references to entities and trails, and the expressions over them.

A reference names one node or edge of the state that is read, as a number; it is compared and grouped like one.
`WrittenOut` turns it into what a caller sees, at the end.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from omnigraph.model.frozen import frozen
from omnigraph.model.types import PropType, Scalar

if TYPE_CHECKING:
    from omnigraph.lang.ir.expr import End, Expr, ValueType

NULL = PropType(Scalar.STRING, nullable=True, enum=())  # of null alone, and of members of []
_TRUTH = PropType(Scalar.BOOL, nullable=True)
_TEXT = PropType(Scalar.STRING, nullable=True)


# --- types of values -----------------------------------------------------------------------------------------------


@frozen
class RefValue:
    """A reference to a node or an edge of one of these types."""

    types: tuple[str, ...]
    edge: bool = False
    nullable: bool = True

    def __str__(self) -> str:
        return "|".join(self.types) + "?" * self.nullable


@frozen
class TrailValue:
    """A path as references: lists of its nodes and of its edges."""

    nodes: tuple[str, ...]
    edges: tuple[str, ...]
    nullable: bool = True

    def __str__(self) -> str:
        return "Path" + "?" * self.nullable


@frozen
class ListValue:
    """A list of anything that is not a single value of a property; those lists are property types."""

    item: ValueType
    nullable: bool = True

    def __str__(self) -> str:
        return f"[{self.item}]" + "?" * self.nullable


@frozen
class MapValue:
    """A map whose keys are known when the query is compiled."""

    fields: tuple[tuple[str, ValueType], ...]
    nullable: bool = True

    def __str__(self) -> str:
        held = ", ".join(f"{name}: {kind}" for name, kind in self.fields)
        return f"{{{held}}}" + "?" * self.nullable


# --- expressions ---------------------------------------------------------------------------------------------------


@frozen
class RefOf:
    """The entity bound to `var`, as a reference."""

    var: str
    type: RefValue


@frozen
class TrailOf:
    """The path bound to `var`, as references."""

    var: str
    type: TrailValue


@frozen
class ValueOf:
    """The value a `Let`, an `Unwind` or a `PerRow` below bound to a variable, or an `Each` around it."""

    var: str
    type: ValueType


@frozen
class RefGet:
    """A property of an entity, or its id under the name `id`; null for types without it."""

    part: Expr
    property: str
    type: PropType


@frozen
class RefType:
    """The name of the type of an entity; of an edge the label it has for others, if any."""

    part: Expr
    type: PropType = _TEXT


@frozen
class RefEnd:
    """The node at one end of an edge."""

    part: Expr
    end: End
    type: RefValue


@frozen
class RefKeys:
    """The names of the properties of an entity that are not null, ascending."""

    part: Expr
    type: PropType


@frozen
class WrittenOut:
    """A value with every reference in it written out, as a caller sees it."""

    part: Expr
    type: ValueType


@frozen
class Carried:
    """A value with every reference in it as a type and an id, which name the same in another state of the graph."""

    part: Expr
    type: ValueType


@frozen
class MakeList:
    items: tuple[Expr, ...]
    type: ValueType


@frozen
class MakeMap:
    """Values under the names of the type's fields."""

    items: tuple[Expr, ...]
    type: MapValue


@frozen
class MakeTrail:
    """Nodes, edges and trails that follow each other, as one trail: the ends of a trail stand beside it, too."""

    items: tuple[Expr, ...]
    type: TrailValue


@frozen
class TrailGet:
    """The nodes or edges of a trail."""

    part: Expr
    edges: bool
    type: ListValue


@frozen
class FieldOf:
    """The value of a map under a name."""

    part: Expr
    name: str
    type: ValueType


@frozen
class MemberAt:
    """The member of a list at an index from 0, from its end if negative; null outside it."""

    part: Expr
    index: Expr
    type: ValueType


@frozen
class Sublist:
    """The members from an index on, and before another; negative ones count from the end."""

    part: Expr
    low: Expr | None
    high: Expr | None
    type: ValueType


@frozen
class JoinedLists:
    """The members of several lists, one list after the other."""

    parts: tuple[Expr, ...]
    type: ValueType


@frozen
class Numbers:
    """The whole numbers from `first` to `last`, both included, in steps."""

    first: Expr
    last: Expr
    step: Expr
    type: PropType


@frozen
class Random:
    """A number from 0 to below 1, another one for each row."""

    type: PropType = PropType(Scalar.F64)


@frozen
class Choice:
    """The value behind the first condition that is true, else the default."""

    whens: tuple[tuple[Expr, Expr], ...]
    default: Expr
    type: ValueType


class Test(Enum):
    """The quantifiers over the members of a list."""

    ALL = "all"
    ANY = "any"
    NONE = "none"
    SINGLE = "single"


@frozen
class Each:
    """The values of `body` for the members of a list for which `predicate` is true; `var` stands for the member."""

    var: str
    part: Expr
    predicate: Expr | None
    body: Expr
    type: ValueType


@frozen
class Quantified:
    """Whether all, some, no or exactly one member satisfies a condition; unknown where unknown members decide."""

    test: Test
    var: str
    part: Expr
    predicate: Expr
    type: PropType = _TRUTH


@frozen
class Fold:
    """A value made of another and each member of a list in turn."""

    total: str
    first: Expr
    var: str
    part: Expr
    body: Expr
    type: ValueType


@frozen
class As:
    """The same value in a type that holds all values of its own: integers as floats, an empty list as any list."""

    part: Expr
    type: ValueType


@frozen
class Alike:
    """Whether two values are equal, of whatever type: unknown if that depends on a null inside."""

    left: Expr
    right: Expr
    type: PropType = _TRUTH


@frozen
class Among:
    """Whether a value is equal to a member of a list: unknown if that depends on a null member."""

    item: Expr
    members: Expr
    type: PropType = _TRUTH


@frozen
class Apart:
    """Whether two variables, each an edge or a path, have no edge in common."""

    left: str
    right: str
    type: PropType = _TRUTH


Composite = (
    RefOf
    | TrailOf
    | ValueOf
    | RefGet
    | RefType
    | RefEnd
    | RefKeys
    | WrittenOut
    | Carried
    | MakeList
    | MakeMap
    | MakeTrail
    | TrailGet
    | FieldOf
    | MemberAt
    | Sublist
    | JoinedLists
    | Numbers
    | Random
    | Choice
    | Each
    | Quantified
    | Fold
    | As
    | Alike
    | Among
    | Apart
)
