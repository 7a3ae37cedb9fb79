"""The syntax tree of a query file, before anything is known about the schema.

Places do not take part in comparisons: two texts with the same meaning have equal trees.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum

from omnigraph.lang.lexer import Token
from omnigraph.lang.source import NOWHERE, Place
from omnigraph.model.frozen import frozen
from omnigraph.model.types import PropType

# --- expressions -------------------------------------------------------------------------------------------------


@frozen
class Literal:
    """A string, number, boolean or null."""

    value: str | int | float | bool | None
    at: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class TimeLiteral:
    """`date("…")` or `datetime("…")`, with its text unread."""

    kind: str
    text: str
    at: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class ListLiteral:
    items: tuple[Expr, ...]
    at: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Variable:
    """`$name`: a bound variable or a parameter."""

    name: str
    at: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class PropertyAccess:
    """`$var.name`."""

    var: str
    name: str
    at: Place = field(default=NOWHERE, compare=False, repr=False)
    name_at: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class AllProperties:
    """`$var.*`."""

    var: str
    at: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Name:
    """A bare word: an output column in a read, a property in a mutation."""

    name: str
    at: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Call:
    """`name(args)`, `count(*)`, `count(distinct x)`."""

    name: str
    args: tuple[Expr, ...]
    distinct: bool = False
    star: bool = False
    at: Place = field(default=NOWHERE, compare=False, repr=False)
    name_at: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Cast:
    """`cast(part as Type)`."""

    part: Expr
    type: PropType
    at: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Negative:
    """`-part`."""

    part: Expr
    at: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class NotExpr:
    """`not part`."""

    part: Expr
    at: Place = field(default=NOWHERE, compare=False, repr=False)


class Operator(Enum):
    """Operators between two expressions."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    CONTAINS = "contains"
    STARTS_WITH = "starts_with"
    IN = "in"
    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"
    MOD = "%"


@frozen
class Binary:
    op: Operator
    left: Expr
    right: Expr
    at: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class IsNull:
    """`part is null`, `part is not null`."""

    part: Expr
    negated: bool
    at: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Connective:
    """Two or more parts joined by `and`, or by `or`."""

    word: str
    parts: tuple[Expr, ...]
    at: Place = field(default=NOWHERE, compare=False, repr=False)


Expr = (
    Literal
    | TimeLiteral
    | ListLiteral
    | Variable
    | PropertyAccess
    | AllProperties
    | Name
    | Call
    | Cast
    | Negative
    | NotExpr
    | Binary
    | IsNull
    | Connective
)


# --- patterns ----------------------------------------------------------------------------------------------------


@frozen
class Field:
    """`name: value`, in a pattern or an assignment."""

    name: str
    value: Expr
    at: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Binding:
    """`$var: Type { name: value, … }`."""

    var: Variable
    type_name: str
    fields: tuple[Field, ...]
    at: Place = field(default=NOWHERE, compare=False, repr=False)
    type_at: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class EdgeWord:
    name: str
    at: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Hops:
    """`{min,max}`; an absent maximum is written `{min,}` and refused by the checker."""

    minimum: int
    maximum: int | None
    at: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Traversal:
    """`$src [$edge:] word|word{min,max} $dst`, undirected `<word>`, with `path` the `$p = path …` form.

    With `every` it is `$p = paths …`: a row for each of them.
    """

    src: Variable
    edges: tuple[EdgeWord, ...]
    dst: Variable
    undirected: bool = False
    hops: Hops | None = None
    edge_var: Variable | None = None
    path: Variable | None = None
    at: Place = field(default=NOWHERE, compare=False, repr=False)
    every: bool = False


class BlockKind(Enum):
    NOT = "not"
    EXISTS = "exists"
    OPTIONAL = "optional"
    MEASURED = "measured"


@frozen
class BlockMeasure:
    """Around a block: `count { … } op value`, or the aggregate of an expression over it, `sum($x.p) { … } op value`."""

    aggregate: Call
    op: Operator
    value: Expr
    at: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Block:
    """`not { … }`, `exists { … }` or `optional { … }`, or a block whose solutions are measured."""

    kind: BlockKind
    clauses: tuple[Clause, ...]
    at: Place = field(default=NOWHERE, compare=False, repr=False)
    measure: BlockMeasure | None = None


@frozen
class Filter:
    """An expression that must be true."""

    expr: Expr
    at: Place = field(default=NOWHERE, compare=False, repr=False)


Clause = Binding | Traversal | Block | Filter


# --- reads -------------------------------------------------------------------------------------------------------


@frozen
class Projection:
    expr: Expr
    alias: str | None
    at: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class ReadBranch:
    """`match { … } return [distinct] { … } [having { … }]`."""

    clauses: tuple[Clause, ...]
    projections: tuple[Projection, ...]
    distinct: bool = False
    having: tuple[Expr, ...] = ()
    at: Place = field(default=NOWHERE, compare=False, repr=False)
    return_at: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Ordering:
    """One key of `order { … }`; `descending` is None if neither `asc` nor `desc` is written."""

    expr: Expr
    descending: bool | None
    at: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Read:
    """One branch, or several joined by `union` (`keeps_duplicates[i]`: `union all` before branch i + 1)."""

    branches: tuple[ReadBranch, ...]
    keeps_duplicates: tuple[bool, ...] = ()
    order: tuple[Ordering, ...] = ()
    skip: Expr | None = None
    limit: Expr | None = None
    at: Place = field(default=NOWHERE, compare=False, repr=False)


# --- mutations ---------------------------------------------------------------------------------------------------


@frozen
class Row:
    """`{ name: value, … }` of an insert."""

    fields: tuple[Field, ...]
    at: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Insert:
    type_name: str
    rows: tuple[Row, ...]
    at: Place = field(default=NOWHERE, compare=False, repr=False)
    type_at: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Update:
    type_name: str
    fields: tuple[Field, ...]
    where: Expr
    at: Place = field(default=NOWHERE, compare=False, repr=False)
    type_at: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Delete:
    type_name: str
    where: Expr
    at: Place = field(default=NOWHERE, compare=False, repr=False)
    type_at: Place = field(default=NOWHERE, compare=False, repr=False)


Statement = Insert | Update | Delete


@frozen
class Mutation:
    statements: tuple[Statement, ...]
    at: Place = field(default=NOWHERE, compare=False, repr=False)


# --- files -------------------------------------------------------------------------------------------------------


@frozen
class Param:
    name: str
    type: PropType
    at: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Query:
    name: str
    params: tuple[Param, ...]
    body: Read | Mutation
    description: str | None = None
    instruction: str | None = None
    at: Place = field(default=NOWHERE, compare=False, repr=False)
    name_at: Place = field(default=NOWHERE, compare=False, repr=False)
    notes: tuple[tuple[str, str], ...] = ()  # annotations of checks, as they were written


@frozen
class SettingLine:
    """`set name = value;`, or `reset name;`, which has no value; `reset all;` has no name."""

    name: str | None
    value: str | int | None
    at: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class ShowSettings:
    """`show name;`, or `show all;`, which has no name."""

    name: str | None
    at: Place = field(default=NOWHERE, compare=False, repr=False)

    words = "show"
    writes = False


@frozen
class Explain:
    """`explain` before a read query: returns its plan."""

    at: Place = field(default=NOWHERE, compare=False, repr=False)

    words = "explain"
    writes = False


@frozen
class BranchStatement:
    """`branch create name [from other]`, `branch delete name`, `branch merge name [into other]`, `branch list`."""

    verb: str
    name: str | None = None
    other: str | None = None
    at: Place = field(default=NOWHERE, compare=False, repr=False)

    @property
    def words(self) -> str:
        return f"branch {self.verb}"

    @property
    def writes(self) -> bool:
        return self.verb != "list"


FileStatement = ShowSettings | Explain | BranchStatement


@frozen
class QueryFile:
    """A text: its settings, then queries in order or one statement, and its comments for the formatter.

    A statement must be alone; `explain` holds its one query.
    """

    queries: tuple[Query, ...]
    comments: tuple[Token, ...] = field(default=(), compare=False, repr=False)
    settings: tuple[SettingLine, ...] = ()
    statement: FileStatement | None = None
