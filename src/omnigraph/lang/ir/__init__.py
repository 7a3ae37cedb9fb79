"""The intermediate representation of a query: what both engines run, naming nothing of either.

`expr` holds types of values and expressions, `ops` rankings and operators, `query` statements and whole queries. A
`Query` has typed parameters and a body, a `Read` (a tree of operators) or a `Mutation` (a list of statements).

Rows. An operator yields a bag of wide rows. A row holds one binding per variable (a node, an edge or a path), later
scores, and after `Project` or `Aggregate` named output columns only. Matching is homomorphic: one entity may fill
several variables. Without `Sort` the order of rows means nothing.

Entities. Node and edge ids are unique within their type only, so a variable of several types is identified by the pair
(type, id); `Same`, `Distinct` over entities, visited sets and ties all mean that pair. Variables the lowering makes up
start with a character no source text can contain (see `FRESH`).

Operators
- `NodeScan`: all nodes of the types for which the predicate is true.
- `Outer`: the leaf of a correlated block: each row of the enclosing operator's input in turn.
- `Expand`: without `edge_var`, for each row the SET of nodes reached by at least `min_hops` and at most `max_hops`
  hops, each at its shortest distance: a breadth-first walk with a visited set seeded with the source. The source
  itself is one hop away if it has a self-loop, else it is not reached; other self-loops lead nowhere new. So a walk
  finds the same pairs from either end. Parallel edges collapse. A hop follows any of `steps` whose near end has the
  type of the node it stands on.
  With `edge_var` (one hop only): one row per stored edge and orientation, parallel edges apart, a self-loop once.
  `predicate` selects among the destinations and does not prune the walk. With `into` the destination is bound already:
  the row stays iff its destination is among those reached (with `edge_var`: one row per edge that leads there).
- `ShortestPath`: `Expand` that also binds `path_var` to one shortest path per row and destination; between paths of the
  same length the one whose list of edge ids is smallest.
- `Filter`: keeps the rows for which the predicate is TRUE; unknown drops a row.
- `SemiJoin`: keeps a row iff the block, run for that row, has a solution (`negated`: has none), or with a `measure` iff
  its predicate is TRUE of what the block's solutions come to. Nothing the block binds is visible outside.
- `Optional`: every row joined with the block's solutions for it; a row without any stays once, with null for `vars`.
- `Join`: all pairs of left and right rows for which every pair of `on` is equal and not null; empty `on`: all pairs.
- `Score`: adds the column `name`, the score of each row's entity; null for those outside the ranking. Keeps all rows.
- `Rank`: as `Score`, but drops the rows outside the ranking, and with `keep` all but the `keep` best distinct entities
  of its variable (ties by id). What stands below it is filtered before the cut, what stands above it after.
- `Fuse`: reciprocal rank fusion of two runs of one pattern, see the class.
- `Aggregate`: one row per distinct tuple of keys (nulls are equal to each other, and so are NaNs); without keys
  exactly one row.
- `Project`: evaluates the output columns. `Distinct`: removes equal rows (nulls are equal). `Union`: all rows of all
  inputs, columns by position.
- `Sort`: by the keys, null smaller than everything, then by `ties` ascending, which makes the order total.
- `Slice`: skips, then cuts.

Expressions are typed: `.type` is a property type (with nullability), `EntityValue` or `PathValue`. Truth is
three-valued; a null operand makes a comparison, an arithmetic operation or a function null unless its comment says
otherwise. Numbers compare by value whatever their widths; NaN satisfies no comparison but `!=`. `+ - *` on integers
raise `arithmetic_overflow`; division by zero and a cast without a result are null.
"""

from __future__ import annotations

from omnigraph.lang.ir.expr import (
    BOOL,
    BOOL_OR_NULL,
    DATETIME,
    F64,
    F64_OR_NULL,
    FRESH,
    I64,
    ROW,
    STRING,
    STRING_OR_NULL,
    STRINGS,
    AllWords,
    And,
    AnyWord,
    Arithmetic,
    ArithmeticOp,
    BooleanQuery,
    Call,
    Cast,
    Column,
    Compare,
    CompareOp,
    Contains,
    End,
    EndpointOf,
    EntityOf,
    EntityValue,
    Expr,
    Function,
    Fuzzy,
    Has,
    Highlight,
    IdOf,
    In,
    IsNull,
    ListOf,
    Literal,
    Not,
    Now,
    Or,
    Output,
    Param,
    PathGet,
    PathOf,
    PathPart,
    PathValue,
    Phrase,
    Prefix,
    RegexMatch,
    Same,
    ScoreOf,
    StartsWith,
    TextMatch,
    TextMode,
    TypeOf,
    ValueType,
)
from omnigraph.lang.ir.ops import (
    Aggregate,
    AggregateFunction,
    BlockTest,
    Bm25,
    Direction,
    Distinct,
    EdgeStep,
    Expand,
    Filter,
    Fuse,
    Join,
    Metric,
    NamedAggregate,
    NamedExpr,
    Nearest,
    NodeScan,
    Op,
    Optional,
    Outer,
    Project,
    Rank,
    Ranking,
    Rrf,
    Score,
    SemiJoin,
    ShortestPath,
    Slice,
    Sort,
    SortKey,
    Union,
)
from omnigraph.lang.ir.query import (
    EPOCH,
    Assign,
    Bound,
    Delete,
    Insert,
    InsertRow,
    Mutation,
    OutputColumn,
    ParamDecl,
    Query,
    Read,
    Statement,
    Target,
    TargetKind,
    Update,
)

__all__ = [
    "BOOL",
    "BOOL_OR_NULL",
    "DATETIME",
    "EPOCH",
    "F64",
    "F64_OR_NULL",
    "FRESH",
    "I64",
    "ROW",
    "STRING",
    "STRINGS",
    "STRING_OR_NULL",
    "Aggregate",
    "AggregateFunction",
    "AllWords",
    "And",
    "AnyWord",
    "Arithmetic",
    "ArithmeticOp",
    "Assign",
    "BlockTest",
    "Bm25",
    "BooleanQuery",
    "Bound",
    "Call",
    "Cast",
    "Column",
    "Compare",
    "CompareOp",
    "Contains",
    "Delete",
    "Direction",
    "Distinct",
    "EdgeStep",
    "End",
    "EndpointOf",
    "EntityOf",
    "EntityValue",
    "Expand",
    "Expr",
    "Filter",
    "Function",
    "Fuse",
    "Fuzzy",
    "Has",
    "Highlight",
    "IdOf",
    "In",
    "Insert",
    "InsertRow",
    "IsNull",
    "Join",
    "ListOf",
    "Literal",
    "Metric",
    "Mutation",
    "NamedAggregate",
    "NamedExpr",
    "Nearest",
    "NodeScan",
    "Not",
    "Now",
    "Op",
    "Optional",
    "Or",
    "Outer",
    "Output",
    "OutputColumn",
    "Param",
    "ParamDecl",
    "PathGet",
    "PathOf",
    "PathPart",
    "PathValue",
    "Phrase",
    "Prefix",
    "Project",
    "Query",
    "Rank",
    "Ranking",
    "Read",
    "RegexMatch",
    "Rrf",
    "Same",
    "Score",
    "ScoreOf",
    "SemiJoin",
    "ShortestPath",
    "Slice",
    "Sort",
    "SortKey",
    "StartsWith",
    "Statement",
    "Target",
    "TargetKind",
    "TextMatch",
    "TextMode",
    "TypeOf",
    "Union",
    "Update",
    "ValueType",
]
