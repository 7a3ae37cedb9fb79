"""A checked query: every name resolved, every expression typed, nothing planned yet. `lower` makes the plan."""

from __future__ import annotations

from omnigraph.lang import ir
from omnigraph.lang.query.ast import BlockKind
from omnigraph.model.frozen import frozen


@frozen
class CheckedBinding:
    """A variable and its types; `predicates` are the conditions written in the braces."""

    var: str
    types: tuple[str, ...]
    predicates: tuple[ir.Expr, ...]


@frozen
class CheckedTraversal:
    """A traversal as written; `steps` walk from `src` to `dst`."""

    src: str
    dst: str
    steps: tuple[ir.EdgeStep, ...]
    min_hops: int
    max_hops: int
    edge_var: str | None
    path_var: str | None
    every: bool = False  # path of the shortest

    @property
    def src_types(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(step.near for step in self.steps))

    @property
    def dst_types(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(step.far for step in self.steps))


@frozen
class Nested:
    kind: BlockKind
    block: CheckedBlock
    measure: ir.BlockTest | None = None


@frozen
class CheckedBlock:
    """A pattern. The order among clauses of one sort is that of the text; otherwise it means nothing."""

    bindings: tuple[CheckedBinding, ...]
    traversals: tuple[CheckedTraversal, ...]
    filters: tuple[ir.Expr, ...]
    nested: tuple[Nested, ...]


@frozen
class ScoreColumn:
    """A ranking whose scores the query reads under a name."""

    name: str
    ranking: ir.Ranking


@frozen
class Grouping:
    """The keys and aggregates of an aggregate query; its columns read them as `Output`."""

    keys: tuple[ir.NamedExpr, ...]
    aggregates: tuple[ir.NamedAggregate, ...]


@frozen
class CheckedBranch:
    """One pattern and what it returns; `order` and `rank` are empty in a union."""

    block: CheckedBlock
    columns: tuple[ir.NamedExpr, ...]
    grouping: Grouping | None
    having: tuple[ir.Expr, ...]
    distinct: bool
    scores: tuple[ScoreColumn, ...]
    rank: ScoreColumn | None  # the ranking the rows are ordered by first, which also selects them
    order: tuple[ir.SortKey, ...]


@frozen
class CheckedRead:
    branches: tuple[CheckedBranch, ...]
    keeps_duplicates: tuple[bool, ...]
    order: tuple[ir.SortKey, ...]  # of a union; a single branch has its own
    skip: ir.Expr | None
    limit: ir.Expr | None


@frozen
class CheckedQuery:
    name: str
    params: tuple[ir.ParamDecl, ...]
    body: CheckedRead | ir.Mutation
    description: str | None = None
    instruction: str | None = None
