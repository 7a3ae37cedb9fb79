"""Rankings and operators over bags of rows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from omnigraph.lang.ir.expr import Column, Expr, ValueType
from omnigraph.model.frozen import frozen

# --- rankings ----------------------------------------------------------------------------------------------------


class Metric(Enum):
    """Distances between vectors; smaller is nearer."""

    L2 = "l2"  # squared Euclidean distance
    COSINE = "cosine"  # 1 - cosine similarity
    DOT = "dot"  # 1 - inner product


@frozen
class Nearest:
    """Entities with a vector, by ascending distance from `query`.

    A query of type String is text to be embedded first, with `model` if the schema names one. With `approx` some of the
    nearest may be missed, if that is faster.
    """

    field: Column
    query: Expr
    metric: Metric
    model: str | None = None
    approx: bool = False


@frozen
class Bm25:
    """Entities whose text holds some word of `query`, by descending BM25 score."""

    field: Column
    query: Expr


@frozen
class Rrf:
    """Entities in either ranking, by descending sum of 1 / (constant + position + 1), positions from 0.

    Both rankings are taken over the entities of `primary`'s variable that occur in the rows; where `secondary` ranks
    another variable, an entity takes the best position among its rows.
    """

    primary: Nearest | Bm25
    secondary: Nearest | Bm25
    constant: Expr


Ranking = Nearest | Bm25 | Rrf


# --- operators ---------------------------------------------------------------------------------------------------


class Direction(Enum):
    """How a stored edge is walked."""

    OUT = "out"  # from src to dst
    IN = "in"  # from dst to src
    BOTH = "both"

    @property
    def flipped(self) -> Direction:
        """The direction seen from the other end."""
        match self:
            case Direction.OUT:
                return Direction.IN
            case Direction.IN:
                return Direction.OUT
            case Direction.BOTH:
                return self


@frozen
class EdgeStep:
    """One edge type a hop may follow, and how; `near` and `far` are the node types at its two ends as walked."""

    edge: str
    direction: Direction
    near: str
    far: str


@frozen
class NodeScan:
    var: str
    types: tuple[str, ...]
    predicate: Expr | None = None


@frozen
class Outer:
    """The row of the operator this block belongs to, with everything it binds."""


@frozen
class Resumed:
    """The leaf of a plan that goes on after something was written: the rows it was written for.

    A value has a variable, a column of those rows and a type; an entity a variable, the slot it is in and its types.
    What was deleted meanwhile is unbound.
    """

    values: tuple[tuple[str, str, ValueType], ...]
    entities: tuple[tuple[str, str, tuple[str, ...], bool], ...]  # the last: whether it is an edge


@dataclass(frozen=True, slots=True, kw_only=True)
class Expand:
    input: Op
    src: str
    dst: str
    steps: tuple[EdgeStep, ...]
    dst_types: tuple[str, ...]
    min_hops: int = 1
    max_hops: int = 1
    predicate: Expr | None = None  # over dst alone (and over edge_var, if present)
    edge_var: str | None = None
    into: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortestPath:
    input: Op
    src: str
    dst: str
    path_var: str
    steps: tuple[EdgeStep, ...]
    dst_types: tuple[str, ...]
    min_hops: int
    max_hops: int
    predicate: Expr | None = None
    into: bool = False
    backwards: bool = (
        False  # the walk starts at the end of the path: the path value runs from dst to src
    )
    every: bool = False  # a row for each shortest path, not for one of them


@frozen
class Filter:
    input: Op
    predicate: Expr


@frozen
class BlockTest:
    """An aggregate over a block's solutions for a row, and the condition on it.

    `predicate` reads the aggregate as the output of its name, and may read the row. Over no solutions a count is 0 and
    every other aggregate null.
    """

    aggregate: NamedAggregate
    predicate: Expr


@frozen
class SemiJoin:
    input: Op
    block: Op
    negated: bool = False
    measure: BlockTest | None = None  # None: that a solution exists


@frozen
class Optional:
    input: Op
    block: Op
    vars: tuple[str, ...]  # what the block adds


@frozen
class Join:
    left: Op
    right: Op
    on: tuple[tuple[Expr, Expr], ...] = ()  # an expression over left, one over right


@frozen
class Score:
    input: Op
    ranking: Ranking
    name: str


@frozen
class Rank:
    input: Op
    ranking: Nearest | Bm25
    name: str
    keep: Expr | None = None


@frozen
class Fuse:
    """Two runs of one pattern, each with its own `Rank`, named by `primary_score` and `secondary_score`.

    In each run the entities of `var` take positions 0, 1, … by their best score there (ties by id). An entity's fused
    score is the sum over the runs that hold it of 1 / (constant + position + 1). The `keep` best entities stay (ties:
    position in the primary run, then in the secondary), with their rows of the primary run, or of the secondary if the
    primary has none, the fused score in the column `name`, and the place in this order, from 0, in the column `place`.
    The scores of the two runs end here.
    """

    primary: Op
    secondary: Op
    primary_score: str
    secondary_score: str
    var: str
    constant: Expr
    keep: Expr | None
    name: str
    place: str


@frozen
class NamedExpr:
    name: str
    expr: Expr


class AggregateFunction(Enum):
    COUNT_ROWS = "count(*)"
    COUNT = "count"  # values that are not null
    SUM = "sum"  # F64; null over nothing, like all below
    AVG = "avg"  # F64
    MIN = "min"
    MAX = "max"
    COLLECT = "collect"  # a list of the values that are not null, ascending; empty over nothing
    IN_ORDER = "collect_in_order"  # the same in the order of the rows
    TOTAL = "total"  # the exact sum of integers; 0 over nothing


@frozen
class NamedAggregate:
    name: str
    function: AggregateFunction
    arg: Expr | None  # None for COUNT_ROWS
    distinct: bool
    type: ValueType


@frozen
class Aggregate:
    input: Op
    keys: tuple[NamedExpr, ...]
    aggregates: tuple[NamedAggregate, ...]


@frozen
class Project:
    input: Op
    columns: tuple[NamedExpr, ...]


@frozen
class Distinct:
    input: Op


@frozen
class SortKey:
    expr: Expr
    descending: bool = False


@frozen
class Sort:
    input: Op
    keys: tuple[SortKey, ...]
    ties: tuple[Expr, ...]


@frozen
class Slice:
    """Counts are literals or parameters, whole numbers from 0."""

    input: Op
    skip: Expr | None = None
    limit: Expr | None = None


@frozen
class Union:
    inputs: tuple[Op, ...]


@frozen
class Let:
    """Rows with values under new names, and of the variables below only those in `keep`, as (name, name below)."""

    input: Op
    columns: tuple[NamedExpr, ...]
    keep: tuple[tuple[str, str], ...]


@frozen
class Attach:
    """Binds a variable to the entity a reference names; unbound where it is null."""

    input: Op
    var: str
    part: Expr
    types: tuple[str, ...]
    edge: bool = False


@frozen
class Unwind:
    """A row for each member of a list; none for a list that is empty or null."""

    input: Op
    part: Expr
    name: str
    type: ValueType


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """A row for every walk within the bounds on hops that repeats no edge, bound as a path to `path_var`."""

    input: Op
    src: str
    dst: str
    path_var: str
    steps: tuple[EdgeStep, ...]
    dst_types: tuple[str, ...]
    min_hops: int
    max_hops: int | None
    predicate: Expr | None = None  # over dst alone
    edge_predicate: Expr | None = None  # over the edges of the path, each in turn as `edge_var`
    edge_var: str = ""
    into: bool = False
    backwards: bool = False  # the walk starts at the end of the path


@frozen
class PerRow:
    """Adds, for each row, an aggregate over the solutions the block has for it."""

    input: Op
    block: Op
    aggregate: NamedAggregate


Op = (
    NodeScan
    | Outer
    | Resumed
    | Expand
    | ShortestPath
    | Filter
    | SemiJoin
    | Optional
    | Join
    | Score
    | Rank
    | Fuse
    | Aggregate
    | Project
    | Distinct
    | Sort
    | Slice
    | Union
    | Let
    | Attach
    | Unwind
    | Trail
    | PerRow
)
