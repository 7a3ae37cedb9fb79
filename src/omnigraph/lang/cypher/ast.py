"""The syntax tree of Cypher, before names are resolved."""

from __future__ import annotations

from typing import Any

from omnigraph.lang.source import NOWHERE, Place
from omnigraph.model.frozen import frozen

# --- expressions ---------------------------------------------------------------------------------------------------


@frozen
class Literal:
    """A string, number, truth value or null."""

    value: Any
    at: Place = NOWHERE


@frozen
class ListLiteral:
    items: tuple[Expr, ...]
    at: Place = NOWHERE


@frozen
class MapLiteral:
    items: tuple[tuple[str, Expr], ...]
    at: Place = NOWHERE


@frozen
class Parameter:
    name: str
    at: Place = NOWHERE


@frozen
class Variable:
    name: str
    at: Place = NOWHERE


@frozen
class PropertyAccess:
    part: Expr
    name: str
    at: Place = NOWHERE


@frozen
class Index:
    part: Expr
    index: Expr
    at: Place = NOWHERE


@frozen
class ListSlice:
    part: Expr
    low: Expr | None
    high: Expr | None
    at: Place = NOWHERE


@frozen
class HasLabels:
    part: Expr
    labels: tuple[str, ...]
    at: Place = NOWHERE


@frozen
class Unary:
    """`not`, `-` or `+`."""

    operator: str
    part: Expr
    at: Place = NOWHERE


@frozen
class Connective:
    """`and`, `or` or `xor` between two or more."""

    operator: str
    parts: tuple[Expr, ...]
    at: Place = NOWHERE


@frozen
class Binary:
    """An operator between two: `+ - * / % ^ in starts_with ends_with contains =~`."""

    operator: str
    left: Expr
    right: Expr
    at: Place = NOWHERE


@frozen
class ComparisonChain:
    """`a < b <= c`: every neighbouring pair."""

    first: Expr
    rest: tuple[tuple[str, Expr], ...]
    at: Place = NOWHERE


@frozen
class IsNull:
    part: Expr
    negated: bool
    at: Place = NOWHERE


@frozen
class CaseExpr:
    subject: Expr | None
    whens: tuple[tuple[Expr, Expr], ...]
    default: Expr | None
    at: Place = NOWHERE


@frozen
class Call:
    """A function, its name in lower case; `count(*)` has a star."""

    name: str
    args: tuple[Expr, ...]
    distinct: bool = False
    star: bool = False
    at: Place = NOWHERE


@frozen
class ListComprehension:
    var: str
    part: Expr
    predicate: Expr | None
    body: Expr | None
    at: Place = NOWHERE


@frozen
class Quantifier:
    """`all(x in list where …)`, `any`, `none`, `single`."""

    name: str
    var: str
    part: Expr
    predicate: Expr
    at: Place = NOWHERE


@frozen
class Reduce:
    total: str
    first: Expr
    var: str
    part: Expr
    body: Expr
    at: Place = NOWHERE


@frozen
class PatternComprehension:
    pattern: PathPattern
    predicate: Expr | None
    body: Expr
    at: Place = NOWHERE


@frozen
class PatternExpr:
    """A pattern used as a condition: whether it occurs."""

    pattern: PathPattern
    at: Place = NOWHERE


@frozen
class Subquery:
    """`exists { … }` or `count { … }`: a pattern with a condition, or a whole query."""

    kind: str
    query: Query | None
    patterns: tuple[PathPattern, ...] = ()
    predicate: Expr | None = None
    at: Place = NOWHERE


@frozen
class MapProjection:
    """`n { .name, .*, other: 1, variable }`."""

    var: str
    items: tuple[tuple[str, Expr | None], ...]  # `*` for all; None for a property of that name
    at: Place = NOWHERE


Expr = (
    Literal
    | ListLiteral
    | MapLiteral
    | Parameter
    | Variable
    | PropertyAccess
    | Index
    | ListSlice
    | HasLabels
    | Unary
    | Connective
    | Binary
    | ComparisonChain
    | IsNull
    | CaseExpr
    | Call
    | ListComprehension
    | Quantifier
    | Reduce
    | PatternComprehension
    | PatternExpr
    | Subquery
    | MapProjection
)

# --- patterns ------------------------------------------------------------------------------------------------------


@frozen
class NodePattern:
    var: str | None
    labels: tuple[str, ...]
    properties: Expr | None
    at: Place = NOWHERE


@frozen
class RelPattern:
    var: str | None
    types: tuple[str, ...]
    properties: Expr | None
    arrow: str  # `->`, `<-` or `-`
    hops: tuple[int | None, int | None] | None  # of a variable length
    at: Place = NOWHERE


@frozen
class PathPattern:
    """Nodes and the relationships between them; `shortest` is `shortestPath` or `allShortestPaths`."""

    var: str | None
    nodes: tuple[NodePattern, ...]
    rels: tuple[RelPattern, ...]
    shortest: str | None = None
    at: Place = NOWHERE


# --- clauses -------------------------------------------------------------------------------------------------------


@frozen
class Match:
    patterns: tuple[PathPattern, ...]
    predicate: Expr | None
    optional: bool
    at: Place = NOWHERE


@frozen
class Unwind:
    part: Expr
    var: str
    at: Place = NOWHERE


@frozen
class Item:
    """A column; `name` is its alias, or else its text."""

    expr: Expr
    name: str
    aliased: bool
    at: Place = NOWHERE


@frozen
class Ordering:
    expr: Expr
    descending: bool


@frozen
class Projection:
    """What `WITH` and `RETURN` have in common."""

    star: bool
    items: tuple[Item, ...]
    distinct: bool
    order: tuple[Ordering, ...]
    skip: Expr | None
    limit: Expr | None
    predicate: Expr | None  # of WITH
    at: Place = NOWHERE


@frozen
class With:
    projection: Projection
    at: Place = NOWHERE


@frozen
class Return:
    projection: Projection
    at: Place = NOWHERE


@frozen
class Procedure:
    """`CALL name(arguments) YIELD a AS b WHERE …`."""

    name: str
    args: tuple[Expr, ...] | None
    yields: tuple[tuple[str, str], ...]
    predicate: Expr | None
    at: Place = NOWHERE


@frozen
class Create:
    patterns: tuple[PathPattern, ...]
    at: Place = NOWHERE


@frozen
class SetItem:
    """`n.p = e`, `n = e`, `n += e` (`operator`), or `n:Label` (`labels`)."""

    target: Expr
    operator: str
    value: Expr | None
    labels: tuple[str, ...] = ()
    at: Place = NOWHERE


@frozen
class Merge:
    pattern: PathPattern
    on_create: tuple[SetItem, ...]
    on_match: tuple[SetItem, ...]
    at: Place = NOWHERE


@frozen
class Set:
    items: tuple[SetItem, ...]
    at: Place = NOWHERE


@frozen
class RemoveItems:
    items: tuple[SetItem, ...]
    at: Place = NOWHERE


@frozen
class Delete:
    items: tuple[Expr, ...]
    detach: bool
    at: Place = NOWHERE


Reading = Match | Unwind | With | Return | Procedure
Writing = Create | Merge | Set | RemoveItems | Delete
Clause = Reading | Writing


@frozen
class SingleQuery:
    clauses: tuple[Clause, ...]
    at: Place = NOWHERE


@frozen
class Query:
    """Single queries, and between each two whether UNION ALL keeps duplicates; `use` is what USE names."""

    parts: tuple[SingleQuery, ...]
    keeps_duplicates: tuple[bool, ...]
    at: Place = NOWHERE
    use: str | None = None
