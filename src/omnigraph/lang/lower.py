"""From a checked query to a plan.

A block becomes operators in this order: the components of its pattern, each from its root outwards; conditions;
optional blocks; conditions on what these bound; exists and not blocks. The place of an operator is part of the meaning
only for `Rank`: it is right above what introduces its variable, and above the conditions on that variable alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from omnigraph.lang import ir
from omnigraph.lang.bindings import BindingKind, BoundName, bindings
from omnigraph.lang.query import checked
from omnigraph.lang.query.ast import BlockKind
from omnigraph.lang.query.check import union_type
from omnigraph.lang.query.search import ranked_variable
from omnigraph.lang.tree import filtered, variables, walk
from omnigraph.model.frozen import frozen
from omnigraph.model.types import PropType

TEMPORARY = f"{ir.FRESH}t"  # the end of a walk that closes a cycle, which is its destination


def lower(query: checked.CheckedQuery) -> ir.Query:
    """The query in the intermediate representation, not rewritten yet."""
    body = lower_read(query.body) if isinstance(query.body, checked.CheckedRead) else query.body
    return ir.Query(query.name, query.params, body, query.description, query.instruction)


# --- reads -------------------------------------------------------------------------------------------------------


def lower_read(read: checked.CheckedRead) -> ir.Read:
    if len(read.branches) > 1:
        return lower_union(read)
    branch = read.branches[0]
    columns = tuple(ir.OutputColumn(c.name, c.expr.type) for c in branch.columns)
    plan = lower_branch(branch, read.skip, read.limit)
    if branch.grouping is not None:
        # Groups differ in their keys, all of which are columns, so `distinct` adds nothing.
        plan = ir.Project(sliced(sorted_outputs(plan, branch), read), branch.columns)
        return ir.Read(plan, columns)
    if branch.distinct:
        return ir.Read(sliced(sorted_outputs(plan, branch), read), columns)
    return ir.Read(ir.Project(sliced(sorted_rows(plan, branch), read), branch.columns), columns)


def lower_branch(
    branch: checked.CheckedBranch, skip: ir.Expr | None, limit: ir.Expr | None
) -> ir.Op:
    """The rows of one branch: wide rows, or groups, or distinct output rows."""
    plan = lower_pattern(branch, skip, limit)
    if branch.grouping is not None:
        plan = ir.Aggregate(plan, branch.grouping.keys, branch.grouping.aggregates)
        return filtered(plan, branch.having)
    if branch.distinct:
        return ir.Distinct(ir.Project(plan, branch.columns))
    return plan


def sliced(plan: ir.Op, read: checked.CheckedRead) -> ir.Op:
    if read.skip is None and read.limit is None:
        return plan
    return ir.Slice(plan, read.skip, read.limit)


def sorted_rows(plan: ir.Op, branch: checked.CheckedBranch) -> ir.Op:
    """Sort wide rows; ties by the ids of everything that is bound."""
    if not branch.order:
        return plan
    ties: list[ir.Expr] = []
    if branch.rank is not None and isinstance(branch.rank.ranking, ir.Rrf):
        ties.append(ir.ScoreOf(place_of(branch.rank.name)))
    for name, bound in sorted(bindings(plan).items()):
        kind = ir.STRING.with_nullable(bound.nullable)
        if bound.kind in (BindingKind.NODE, BindingKind.EDGE) and not name.startswith(TEMPORARY):
            ties.append(ir.IdOf(name, kind))
            ties.extend([ir.TypeOf(name, kind)] if len(bound.types) > 1 else [])
    return sort(plan, branch.order, tuple(ties))


def sorted_outputs(plan: ir.Op, branch: checked.CheckedBranch) -> ir.Op:
    """Sort groups or distinct rows; ties by the group keys or the columns."""
    if not branch.order:
        return plan
    outputs = branch.grouping.keys if branch.grouping else branch.columns
    return sort(plan, branch.order, comparable(outputs))


def sort(plan: ir.Op, keys: tuple[ir.SortKey, ...], ties: tuple[ir.Expr, ...]) -> ir.Op:
    """Sort by the keys, then by those ties that are not already keys."""
    sorted_by = [key.expr for key in keys]
    return ir.Sort(plan, keys, tuple(tie for tie in ties if tie not in sorted_by))


def comparable(columns: tuple[ir.NamedExpr, ...]) -> tuple[ir.Expr, ...]:
    """The columns that have an order, as outputs."""
    found = []
    for column in columns:
        kind = column.expr.type
        if isinstance(kind, PropType) and kind.is_plain:
            found.append(ir.Output(column.name, kind))
    return tuple(found)


def lower_union(read: checked.CheckedRead) -> ir.Read:
    plan: ir.Op | None = None
    keeps = (True, *read.keeps_duplicates)
    columns = union_columns(read.branches)
    for branch, keep in zip(read.branches, keeps, strict=True):
        rows = complete(branch, columns)
        if plan is None:
            plan = rows
        elif keep:
            inputs = plan.inputs if isinstance(plan, ir.Union) else (plan,)
            plan = ir.Union((*inputs, rows))
        else:
            plan = ir.Distinct(ir.Union((*united(plan), rows)))
    whole = plan if plan is not None else ir.Outer()
    if read.order:
        ties = tuple(ir.NamedExpr(c.name, ir.Output(c.name, c.type)) for c in columns)
        whole = sort(whole, read.order, comparable(ties))
    return ir.Read(sliced(whole, read), columns)


def united(plan: ir.Op) -> tuple[ir.Op, ...]:
    """The inputs of a union all of whose duplicates are going to be removed: the order does not matter."""
    match plan:
        case ir.Distinct(ir.Union() as union):
            return united(union)
        case ir.Union(inputs):
            return tuple(part for one in inputs for part in united(one))
        case _:
            return (plan,)


def complete(branch: checked.CheckedBranch, wanted: tuple[ir.OutputColumn, ...]) -> ir.Op:
    """The output rows of one branch of a union, in the types all branches share."""
    columns = tuple(widened(c, w.type) for c, w in zip(branch.columns, wanted, strict=True))
    branch = replace(branch, columns=columns, grouping=shaped(branch, columns))
    plan = lower_branch(branch, None, None)
    return plan if isinstance(plan, ir.Distinct) else ir.Project(plan, branch.columns)


def shaped(
    branch: checked.CheckedBranch, columns: tuple[ir.NamedExpr, ...]
) -> checked.Grouping | None:
    """The grouping, with entities among its keys in the shape the columns need."""
    if branch.grouping is None:
        return None
    wanted = {c.expr.name: c.expr.type for c in columns if isinstance(c.expr, ir.Output)}
    keys = tuple(
        ir.NamedExpr(key.name, replace(key.expr, type=kind))
        if isinstance(key.expr, ir.EntityOf)
        and isinstance(kind := wanted.get(key.name), ir.EntityValue)
        else key
        for key in branch.grouping.keys
    )
    return replace(branch.grouping, keys=keys)


def widened(column: ir.NamedExpr, kind: ir.ValueType) -> ir.NamedExpr:
    own = column.expr.type
    if isinstance(own, ir.EntityValue) and isinstance(kind, ir.EntityValue):
        return ir.NamedExpr(column.name, _shaped(column.expr, kind))
    if not isinstance(own, PropType) or not isinstance(kind, PropType) or own.scalar is kind.scalar:
        return column
    wide = ir.Call(ir.Function.COALESCE, (column.expr,), kind.with_nullable(own.nullable))
    return ir.NamedExpr(column.name, wide)


def _shaped(expr: ir.Expr, kind: ir.EntityValue) -> ir.Expr:
    match expr:
        case ir.EntityOf(var):
            return ir.EntityOf(var, kind)
        case ir.Output(name):
            return ir.Output(name, kind)
        case _:
            return expr


def union_columns(branches: tuple[checked.CheckedBranch, ...]) -> tuple[ir.OutputColumn, ...]:
    columns = []
    for parts in zip(*(b.columns for b in branches), strict=True):
        kind = union_type([p.expr.type for p in parts])
        columns.append(ir.OutputColumn(parts[0].name, kind or parts[0].expr.type))
    return tuple(columns)


# --- rankings ----------------------------------------------------------------------------------------------------


def lower_pattern(
    branch: checked.CheckedBranch, skip: ir.Expr | None, limit: ir.Expr | None
) -> ir.Op:
    """The pattern with its ranking and the scores the query reads besides."""
    plan = ranked_pattern(branch, skip, limit)
    read = scores_read(branch)
    for score in branch.scores:
        if score.name in read and score != branch.rank:
            plan = ir.Score(plan, score.ranking, score.name)
    return plan


def scores_read(branch: checked.CheckedBranch) -> frozenset[str]:
    parts: list[object] = [*branch.columns, *branch.having, *branch.order]
    if branch.grouping:
        parts += [*branch.grouping.keys, *branch.grouping.aggregates]
    nodes = (node for part in parts for node in walk(part))
    return frozenset(node.name for node in nodes if isinstance(node, ir.ScoreOf))


def ranked_pattern(
    branch: checked.CheckedBranch, skip: ir.Expr | None, limit: ir.Expr | None
) -> ir.Op:
    """The pattern; ordered by a ranking, it holds that ranking."""
    if branch.rank is None:
        return lower_block(branch.block)
    found, name, keep = branch.rank.ranking, branch.rank.name, kept(skip, limit)
    if not isinstance(found, ir.Rrf):
        return lower_block(branch.block, Ranked(found, name, keep))
    return ir.Fuse(
        primary=lower_block(branch.block, Ranked(found.primary, f"{name}a", keep)),
        secondary=lower_block(branch.block, Ranked(found.secondary, f"{name}b", keep)),
        primary_score=f"{name}a",
        secondary_score=f"{name}b",
        var=ranked_variable(found),
        constant=found.constant,
        keep=keep,
        name=name,
        place=place_of(name),
    )


def place_of(score: str) -> str:
    """The column that breaks the ties of a fused score: as in the first of its rankings, then as in the second."""
    return f"{score}p"


def kept(skip: ir.Expr | None, limit: ir.Expr | None) -> ir.Expr | None:
    """How many entities are wanted: those skipped and those shown."""
    if skip is None or limit is None:
        return limit
    return ir.Arithmetic(ir.ArithmeticOp.ADD, skip, limit, ir.I64)


@frozen
class Ranked:
    """The ranking to put above the operator that introduces its variable."""

    ranking: ir.Nearest | ir.Bm25
    name: str
    keep: ir.Expr | None

    @property
    def var(self) -> str:
        return self.ranking.field.var

    def above(self, plan: ir.Op) -> ir.Op:
        """Only nearest is cut here: matches of some word of a text are finite anyway."""
        keep = self.keep if isinstance(self.ranking, ir.Nearest) else None
        return ir.Rank(plan, self.ranking, self.name, keep)


# --- patterns ----------------------------------------------------------------------------------------------------


def lower_block(
    block: checked.CheckedBlock, ranked: Ranked | None = None, outer: frozenset[str] | None = None
) -> ir.Op:
    """The rows of a block; `outer` are the variables of the row it is correlated with, if it is nested."""
    return BlockLowering(block, ranked, outer).lower()


@dataclass(slots=True)
class BlockLowering:
    """Lowers one block; `bound` grows as operators are added."""

    block: checked.CheckedBlock
    ranked: Ranked | None
    outer: frozenset[str] | None
    bound: set[str] = field(default_factory=set)
    done: set[int] = field(default_factory=set)  # traversals, by their position in the block
    temporaries: int = 0

    def lower(self) -> ir.Op:
        plan: ir.Op | None = None
        if self.outer is not None:
            self.bound |= self.outer
            plan = self.expanded(self.rebound(ir.Outer()))
        for root in self.roots():
            if root.var not in self.bound:
                self.bound.add(root.var)
                scan = self.introduced(ir.NodeScan(root.var, root.types), root.var)
                part = self.expanded(scan)
                plan = part if plan is None else ir.Join(plan, part)
        whole = plan if plan is not None else ir.Outer()
        return self.with_nested(whole)

    def rebound(self, plan: ir.Op) -> ir.Op:
        """Conditions in braces on variables that are bound outside."""
        outer = self.outer or frozenset()
        predicates = [p for b in self.block.bindings if b.var in outer for p in b.predicates]
        return filtered(plan, tuple(predicates))

    def roots(self) -> list[checked.CheckedBinding]:
        """Where components may start: bindings in order, then the sources of traversals that none reaches."""
        ends = [checked.CheckedBinding(t.src, t.src_types, ()) for t in self.block.traversals]
        return [*self.block.bindings, *ends]

    def expanded(self, plan: ir.Op) -> ir.Op:
        """Add every traversal that touches a bound variable, until none is left."""
        progress = True
        while progress:
            progress = False
            for index, traversal in enumerate(self.block.traversals):
                if index not in self.done and {traversal.src, traversal.dst} & self.bound:
                    self.done.add(index)
                    plan = self.traversed(plan, traversal)
                    progress = True
        return plan

    def traversed(self, plan: ir.Op, found: checked.CheckedTraversal) -> ir.Op:
        if found.src in self.bound and found.dst in self.bound:
            return self.closed(plan, found)
        if found.src in self.bound:
            self.bound.add(found.dst)
            return self.introduced(walked(plan, found, found.dst), found.dst)
        self.bound.add(found.src)
        return self.introduced(walked_back(plan, found), found.src)

    def closed(self, plan: ir.Op, found: checked.CheckedTraversal) -> ir.Op:
        """Both ends are bound: walk to a temporary variable, which must be the destination."""
        self.temporaries += 1
        depth = 0 if self.outer is None else len(self.outer)
        fresh = f"{TEMPORARY}{depth}_{self.temporaries}"
        return ir.Filter(walked(plan, found, fresh), ir.Same(fresh, found.dst))

    def introduced(self, plan: ir.Op, var: str) -> ir.Op:
        """An operator that binds a variable, with the conditions in its braces, and its ranking above them."""
        predicates = [p for b in self.block.bindings if b.var == var for p in b.predicates]
        if self.ranked is None or self.ranked.var != var:
            return filtered(plan, tuple(predicates))
        return self.ranked.above(filtered(plan, (*predicates, *self.prefilters())))

    def prefilters(self) -> tuple[ir.Expr, ...]:
        """The conditions on the ranked variable alone, which select before the ranking cuts."""
        if self.ranked is None:
            return ()
        return tuple(f for f in self.block.filters if variables(f) == {self.ranked.var})

    # --- nested blocks ---

    def with_nested(self, plan: ir.Op) -> ir.Op:
        have = bindings(plan, self.outer_bindings())
        ranked = frozenset(self.prefilters())
        rest = [(f, variables(f) <= have.keys()) for f in self.block.filters if f not in ranked]
        early = tuple(f for f, is_early in rest if is_early)
        late = tuple(f for f, is_early in rest if not is_early)
        plan = filtered(plan, early)
        for nested in self.block.nested:
            if nested.kind is BlockKind.OPTIONAL:
                plan = self.optional(plan, nested.block)
        plan = filtered(plan, late)
        for nested in self.block.nested:
            if nested.kind is not BlockKind.OPTIONAL:
                inner = lower_block(nested.block, None, frozenset(self.bound))
                negated = nested.kind is BlockKind.NOT
                plan = ir.SemiJoin(plan, inner, negated, nested.measure)
        return plan

    def outer_bindings(self) -> dict[str, BoundName]:
        return dict.fromkeys(self.outer or (), BoundName(BindingKind.NODE))

    def optional(self, plan: ir.Op, block: checked.CheckedBlock) -> ir.Op:
        inner = lower_block(block, None, frozenset(self.bound))
        known = dict.fromkeys(self.bound, BoundName(BindingKind.NODE))
        found = (v for v in bindings(inner, known) if v not in self.bound)
        new = tuple(v for v in found if not v.startswith(TEMPORARY))
        self.bound |= set(new)
        plan = ir.Optional(plan, inner, new)
        if self.ranked is not None and self.ranked.var in new:
            return self.ranked.above(filtered(plan, self.prefilters()))
        return plan


def walked(plan: ir.Op, found: checked.CheckedTraversal, dst: str) -> ir.Op:
    """Walk from the source."""
    if found.path_var is not None:
        return ir.ShortestPath(
            input=plan,
            src=found.src,
            dst=dst,
            path_var=found.path_var,
            steps=found.steps,
            dst_types=found.dst_types,
            min_hops=found.min_hops,
            max_hops=found.max_hops,
            every=found.every,
        )
    return ir.Expand(
        input=plan,
        src=found.src,
        dst=dst,
        steps=found.steps,
        dst_types=found.dst_types,
        min_hops=found.min_hops,
        max_hops=found.max_hops,
        edge_var=found.edge_var,
    )


def walked_back(plan: ir.Op, found: checked.CheckedTraversal) -> ir.Op:
    """Walk from the destination, against the direction of the text."""
    steps = tuple(ir.EdgeStep(s.edge, s.direction.flipped, s.far, s.near) for s in found.steps)
    turned = replace(found, src=found.dst, dst=found.src, steps=steps)
    back = walked(plan, turned, found.src)
    return replace(back, backwards=True) if isinstance(back, ir.ShortestPath) else back
