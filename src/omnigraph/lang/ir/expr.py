"""Types of values and expressions over one row."""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Any

from omnigraph.lang.ir.composite import Composite, ListValue, MapValue, RefValue, TrailValue
from omnigraph.lang.ir.temporal import TemporalCall, TemporalValue
from omnigraph.model.frozen import frozen
from omnigraph.model.types import PropType, Scalar

FRESH = "%"  # first character of a variable made up by the lowering; no source text can contain such a name
ROW = ""  # the variable of the row a mutation statement reads

BOOL = PropType(Scalar.BOOL)
BOOL_OR_NULL = PropType(Scalar.BOOL, nullable=True)
I64 = PropType(Scalar.I64)
I64_OR_NULL = PropType(Scalar.I64, nullable=True)
F64 = PropType(Scalar.F64)
F64_OR_NULL = PropType(Scalar.F64, nullable=True)
STRING = PropType(Scalar.STRING)
STRING_OR_NULL = PropType(Scalar.STRING, nullable=True)
STRINGS = PropType(Scalar.STRING, is_list=True)
DATETIME = PropType(Scalar.DATETIME)


# --- types of values ---------------------------------------------------------------------------------------------


@frozen
class EntityValue:
    """A whole node or edge as one value: an object of `id`, `type` (edges: `from`, `to`) and its properties.

    Blobs are left out. A `plain` one is what a bare variable returns: `@id`, `@type` if there are several types, and
    the properties without Blobs and Vectors.
    """

    types: tuple[str, ...]
    nullable: bool = False
    plain: bool = False

    def __str__(self) -> str:
        return "|".join(self.types) + ("?" if self.nullable else "")


@frozen
class PathValue:
    """A path as one value: an object of `nodes` (ids), `edges` (ids) and `length`."""

    nullable: bool = False

    def __str__(self) -> str:
        return "Path?" if self.nullable else "Path"


ValueType = (
    PropType
    | EntityValue
    | PathValue
    | RefValue
    | TrailValue
    | ListValue
    | MapValue
    | TemporalValue
)


# --- expressions -------------------------------------------------------------------------------------------------


@frozen
class Literal:
    """A constant: str, bool, int, float, date, aware datetime, tuple of those, a temporal value, or None.

    Null may be of other types, too.
    """

    value: Any
    type: ValueType


@frozen
class ListOf:
    """A list of constants some of which are parameters."""

    items: tuple[Expr, ...]
    type: PropType


@frozen
class Param:
    name: str
    type: ValueType


@frozen
class Now:
    """One instant per run of a query, the same wherever it appears."""

    type: PropType = DATETIME


@frozen
class Column:
    """A property of the entity bound to `var`."""

    var: str
    property: str
    type: PropType


@frozen
class IdOf:
    """The id of the node or edge bound to `var`; null when an optional block did not bind it."""

    var: str
    type: PropType = STRING


@frozen
class TypeOf:
    """The name of the type of the entity bound to `var`."""

    var: str
    type: PropType = STRING


class End(Enum):
    """An end of an edge as it is stored."""

    SRC = "src"
    DST = "dst"


@frozen
class EndpointOf:
    """The id of the node at one end of the edge bound to `var`."""

    var: str
    end: End
    type: PropType = STRING


@frozen
class EntityOf:
    """The whole entity bound to `var`."""

    var: str
    type: EntityValue


@frozen
class PathOf:
    """The path bound to `var`."""

    var: str
    type: PathValue = PathValue()


class PathPart(Enum):
    NODES = "nodes"  # the ids along the path, source first
    EDGES = "edges"  # the ids of its edges in order
    LENGTH = "length"  # the number of hops


@frozen
class PathGet:
    """A part of the path bound to `var`."""

    var: str
    part: PathPart
    type: PropType


@frozen
class ScoreOf:
    """The score column a `Score`, `Rank` or `Fuse` below added under this name."""

    name: str
    type: PropType = F64_OR_NULL


@frozen
class Output:
    """A column made by the `Project`, `Aggregate` or `Union` below."""

    name: str
    type: ValueType


class CompareOp(StrEnum):
    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="

    @property
    def flipped(self) -> CompareOp:
        """The comparison that holds if this one holds with its sides exchanged."""
        return CompareOp(self.translate(str.maketrans("<>", "><")))


@frozen
class Compare:
    """Strings by their UTF-8 bytes, false before true, dates by time, numbers by value.

    NaN satisfies none but `!=`, which is the negation of `=`.
    """

    op: CompareOp
    left: Expr
    right: Expr
    type: PropType = BOOL_OR_NULL


@frozen
class Same:
    """Whether two variables are bound to the same entity; unknown when one is unbound."""

    left: str
    right: str
    type: PropType = BOOL_OR_NULL


@frozen
class And:
    parts: tuple[Expr, ...]
    type: PropType = BOOL_OR_NULL


@frozen
class Or:
    parts: tuple[Expr, ...]
    type: PropType = BOOL_OR_NULL


@frozen
class Not:
    part: Expr
    type: PropType = BOOL_OR_NULL


@frozen
class IsNull:
    """Never null itself."""

    part: Expr
    negated: bool = False
    type: PropType = BOOL


@frozen
class In:
    """Whether `item` equals a member of a list. Null members never match; a null item or list gives null."""

    item: Expr
    members: Expr
    type: PropType = BOOL_OR_NULL


@frozen
class Has:
    """Whether the list has a member equal to `item`; FALSE, not null, for a null list or item."""

    list: Expr
    item: Expr
    type: PropType = BOOL


@frozen
class Contains:
    """Exact, case-sensitive substring; the empty needle is in every string."""

    text: Expr
    needle: Expr
    type: PropType = BOOL_OR_NULL


@frozen
class StartsWith:
    """Exact, case-sensitive prefix."""

    text: Expr
    prefix: Expr
    type: PropType = BOOL_OR_NULL


@frozen
class RegexMatch:
    """An unanchored RE2 search; the pattern is a literal or a parameter."""

    text: Expr
    pattern: Literal | Param
    type: PropType = BOOL_OR_NULL


class ArithmeticOp(Enum):
    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"  # always F64
    MOD = "%"  # the sign of the dividend


@frozen
class Arithmetic:
    """In I64 when both sides are integers (U64 when both are unsigned), else in F64."""

    op: ArithmeticOp
    left: Expr
    right: Expr
    type: PropType


class Function(Enum):
    """Functions of one row, with the meaning of their arguments."""

    LOWER = "lower"  # (text): each character on its own, where its lower case is one character
    UPPER = "upper"  # (text): likewise
    TRIM = "trim"  # (text): without white space at both ends
    LENGTH = "length"  # (text) in characters, or (list) in members
    CONCAT = "concat"  # (text, text, …)
    SUBSTRING = (
        "substring"  # (text, start[, count]): from 0, in characters; negative numbers count as 0
    )
    COALESCE = "coalesce"  # (a, b, …): the first that is not null
    YEAR = "year"  # (Date or DateTime, in UTC), like the five below
    MONTH = "month"
    DAY = "day"
    HOUR = "hour"  # 0 for a Date, like minute and second
    MINUTE = "minute"
    SECOND = "second"
    DATE_ADD = "date_add"  # (Date or DateTime, days): the same type
    DATE_SUB = "date_sub"
    DAYS_BETWEEN = "days_between"  # (from, to): whole days, rounded towards zero
    NEGATE = "-"
    QUOTIENT = "div"  # (integer, integer): towards zero; null by zero
    POWER = "^"  # (number, number): F64
    ABS = "abs"
    CEIL = "ceil"  # F64, like floor and round
    FLOOR = "floor"
    ROUND = "round"  # halves upwards
    SIGN = "sign"  # I64
    SQRT = "sqrt"  # null below 0, as the logarithms are
    EXP = "exp"
    LOG = "log"
    LOG10 = "log10"
    SIN = "sin"
    COS = "cos"
    TAN = "tan"
    COT = "cot"
    ASIN = "asin"
    ACOS = "acos"
    ATAN = "atan"
    ATAN2 = "atan2"
    DEGREES = "degrees"
    RADIANS = "radians"
    ENDS_WITH = "ends_with"  # (text, text)
    REPLACE = "replace"  # (text, what, by)
    LTRIM = "ltrim"
    RTRIM = "rtrim"
    REVERSE = "reverse"  # (text) or (list)
    SPLIT = "split"  # (text, separator)
    LEFT = "left"  # (text, count)
    RIGHT = "right"
    EPOCH_MILLIS = "epoch_millis"  # (DateTime)
    PERCENTILE_CONT = "percentile_cont"  # (list of numbers ascending, share)
    PERCENTILE_DISC = "percentile_disc"
    DEVIATION = "stdev"  # (list of numbers): of a sample
    DEVIATION_OF_ALL = "stdev_p"


@frozen
class Call:
    function: Function
    args: tuple[Expr, ...]
    type: ValueType


@frozen
class Cast:
    """The same value in another type; null where it has none (unreadable text, a number out of range)."""

    part: Expr
    type: PropType


@frozen
class AnyWord:
    """Some word of the query occurs in the text."""


@frozen
class AllWords:
    """Every word of the query occurs in the text."""


@frozen
class Phrase:
    """The words of the query occur side by side and in order."""


@frozen
class Fuzzy:
    """Some word of the text is within `edits` edits of some word of the query."""

    edits: Expr


@frozen
class Prefix:
    """For every word of the query, some word of the text begins with it."""


@frozen
class BooleanQuery:
    """The query lists words, prefixes and phrases that must, may or must not occur."""


TextMode = AnyWord | AllWords | Phrase | Fuzzy | Prefix | BooleanQuery


@frozen
class TextMatch:
    """Whether the analysed text of a property matches the analysed query; null for a null text."""

    field: Column
    query: Expr
    mode: TextMode
    type: PropType = BOOL_OR_NULL


@frozen
class Highlight:
    """The text of a property, with the words of a query between two marks; null for a null text."""

    field: Column
    query: Expr
    before: Expr
    after: Expr
    type: PropType = STRING_OR_NULL


Expr = (
    Literal
    | ListOf
    | Param
    | Now
    | Column
    | IdOf
    | TypeOf
    | EndpointOf
    | EntityOf
    | PathOf
    | PathGet
    | ScoreOf
    | Output
    | Compare
    | Same
    | And
    | Or
    | Not
    | IsNull
    | In
    | Has
    | Contains
    | StartsWith
    | RegexMatch
    | Arithmetic
    | Call
    | Cast
    | TemporalCall
    | TextMatch
    | Highlight
    | Composite
)
