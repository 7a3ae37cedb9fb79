"""Checking what a branch returns: columns and their names, grouping, having, and the order of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from omnigraph.lang import ir
from omnigraph.lang.query import ast, checked
from omnigraph.lang.query.aggregates import AggregateTyper
from omnigraph.lang.query.expressions import OPERATORS_MAX
from omnigraph.lang.query.scope import CheckContext, Reported, Scope, VarKind
from omnigraph.lang.query.search import ranking
from omnigraph.lang.query.typer import Typer, no_aggregate
from omnigraph.lang.query.unparse import format_expr
from omnigraph.lang.tree import depth, rebuild, variables, walk
from omnigraph.model.types import PropType

COPIED_NODES_MAX = 5_000  # of expressions copied in place of column names
LEVELS_MAX = 150  # of an expression that uses such names
LEAVES = (
    ir.Column,
    ir.IdOf,
    ir.TypeOf,
    ir.EndpointOf,
    ir.EntityOf,
    ir.PathOf,
    ir.PathGet,
    ir.ScoreOf,
    ir.Same,
)


@dataclass(slots=True)
class ReturnColumn:
    """A column of the result while it is being checked."""

    name: str
    expr: ir.Expr
    at: ast.Projection

    @property
    def nodes(self) -> int:
        """The size of its expression, with the column names in it expanded."""
        return sum(1 for _ in walk(self.expr))


@dataclass(slots=True)
class ReturnChecker:
    """Checks the return of one branch, then what refers to its columns."""

    context: CheckContext
    scope: Scope
    branch: ast.ReadBranch
    columns: dict[str, ReturnColumn] = field(default_factory=dict)
    aggregates: dict[ir.NamedAggregate, str] = field(default_factory=dict)
    scores: dict[ir.Ranking, str] = field(default_factory=dict)
    keys: dict[ir.Expr, str] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)  # columns with their own errors
    copied: int = 0  # nodes that column names expand to, over all uses

    # --- columns ---

    def check(self) -> None:
        if not self.branch.projections:
            self.context.diagnostics.error(
                "P1", "`return` names at least one column", self.branch.return_at
            )
        for projection in self.branch.projections:
            try:
                for column in self.projected(projection):
                    self.add(column)
            except Reported:
                self.broken.add(projection.alias or "")
        if self.is_grouped:
            self.find_keys()

    @property
    def is_grouped(self) -> bool:
        """Rows are grouped by what they return, also to return equal nodes only once."""
        return bool(self.aggregates) or bool(self.branch.having) or self.is_distinct_by_node

    @property
    def is_distinct_by_node(self) -> bool:
        return self.branch.distinct and any(_node_of(c.expr) for c in self.columns.values())

    def projected(self, node: ast.Projection) -> Iterator[ReturnColumn]:
        if isinstance(node.expr, ast.AllProperties):
            yield from self.all_properties(node, node.expr)
            return
        expr = self.whole_node(node.expr) or self.bounded(node.expr, self.typer().expr)
        yield ReturnColumn(node.alias or column_name(node.expr), expr, node)

    def whole_node(self, node: ast.Expr) -> ir.Expr | None:
        """A bare variable of a node stands for the node; None for anything else."""
        if not isinstance(node, ast.Variable) or node.name in self.context.params:
            return None
        var = self.typer().bound(node.name, node)
        if var.kind is not VarKind.NODE:
            return None
        return ir.EntityOf(var.name, ir.EntityValue(var.types, var.optional, plain=True))

    def add(self, column: ReturnColumn) -> None:
        if column.name in self.columns:
            message = f"two columns are called `{column.name}`"
            raise self.context.error("Q021", message, column.at.at)
        self.columns[column.name] = column

    def all_properties(
        self, node: ast.Projection, expr: ast.AllProperties
    ) -> Iterator[ReturnColumn]:
        """`$x.*`: the id, then the properties by name, without blobs."""
        var = self.typer().bound(expr.var, expr)
        if var.kind is VarKind.PATH or node.alias:
            message = "`.*` follows a node or an edge, and its columns already have names"
            raise self.context.error("Q016", message, node.at)
        names = ["id", *(["from", "to"] if var.kind is VarKind.EDGE else [])]
        names += [n for n, prop in sorted(var.properties.items()) if not prop.type.is_blob]
        for name in names:
            typed = self.typer().property(ast.PropertyAccess(expr.var, name, expr.at, expr.at))
            yield ReturnColumn(f"{expr.var}.{name}", typed, node)

    def typer(self) -> Typer:
        return Typer(self.context, self.scope, self.earlier, self.aggregate, self.score)

    def earlier(self, node: ast.Name) -> ir.Expr:
        """A bare word names an earlier column of the result."""
        found = self.columns.get(node.name)
        if found is None and node.name in self.broken:
            raise Reported
        if found is None:
            message = f"unknown column `{node.name}`"
            raise self.context.unknown("Q005", message, node.at, node.name, self.columns)
        self.copied += found.nodes
        if self.copied > COPIED_NODES_MAX:
            message = f"column names expand to more than {COPIED_NODES_MAX} operands"
            raise self.context.error("Q020", message, node.at)
        var = _node_of(found.expr)
        return found.expr if var is None else self.typer().expr(ast.Variable(var, node.at))

    def bounded(self, node: ast.Expr, check: Callable[[ast.Expr], ir.Expr]) -> ir.Expr:
        """Refuse an expression that exceeds the size limits once earlier columns are expanded in it."""
        copied = self.copied
        expr = check(node)
        if self.copied == copied:
            return expr
        if sum(_is_operator(part) for part in walk(expr)) > OPERATORS_MAX:
            message = f"with its columns written out, this has more than {OPERATORS_MAX} operators"
            raise self.context.error("Q020", message, node.at)
        if depth(expr) > LEVELS_MAX:
            message = f"with its columns written out, this has more than {LEVELS_MAX} levels"
            raise self.context.error("Q020", message, node.at)
        return expr

    # --- aggregates and scores ---

    def aggregate(self, typer: Typer, node: ast.Call) -> ir.Expr:
        found = AggregateTyper(self.context, self.scope, self.score).typed(typer, node)
        name = self.aggregates.setdefault(found, f"{ir.FRESH}a{len(self.aggregates)}")
        return ir.Output(name, found.type)

    def score(self, typer: Typer, node: ast.Call) -> ir.Expr:
        found = ranking(typer, node)
        return ir.ScoreOf(self.scores.setdefault(found, f"{ir.FRESH}s{len(self.scores)}"))

    # --- grouping ---

    def find_keys(self) -> None:
        """Every column without an aggregate is a key, unless it is the same for every row."""
        for column in self.columns.values():
            if not _has_aggregate(column.expr) and _reads_row(column.expr):
                self.keys.setdefault(column.expr, f"{ir.FRESH}k{len(self.keys)}")
                var = _node_of(column.expr)
                if var is not None:  # the same groups; what is ordered by a node goes by its id
                    identity = self.typer().expr(ast.Variable(var, column.at.at))
                    self.keys.setdefault(identity, f"{ir.FRESH}k{len(self.keys)}")

    def grouped(self, expr: ir.Expr, at: ast.Expr | ast.Projection) -> ir.Expr:
        """An expression over the groups: keys and aggregates instead of values of rows."""
        if expr in self.keys:
            return ir.Output(self.keys[expr], expr.type)
        if isinstance(expr, LEAVES):
            message = "a per-row value appears beside an aggregate"
            help = "Make it a separate column, which groups by it, or aggregate it."
            raise self.context.error("T9", message, at.at, help)
        return rebuild(expr, lambda child: self.grouped(child, at))

    def final_columns(self) -> tuple[ir.NamedExpr, ...]:
        """The columns of the result."""
        found = []
        for column in self.columns.values():
            try:
                expr = self.grouped(column.expr, column.at) if self.is_grouped else column.expr
            except Reported:
                continue
            found.append(ir.NamedExpr(column.name, expr))
        return tuple(found)

    def grouping(self) -> checked.Grouping | None:
        if not self.is_grouped:
            return None
        keys = tuple(ir.NamedExpr(name, expr) for expr, name in self.keys.items())
        aggregates = tuple(
            ir.NamedAggregate(name, a.function, a.arg, a.distinct, a.type)
            for a, name in self.aggregates.items()
        )
        return checked.Grouping(keys, aggregates)

    def having(self) -> tuple[ir.Expr, ...]:
        found = []
        for node in self.branch.having:
            try:
                found.append(self.grouped(self.bounded(node, self.typer().condition), node))
            except Reported:
                continue
        return tuple(found)


def _node_of(expr: ir.Expr) -> str | None:
    """The variable of the node that a column is."""
    match expr:
        case ir.EntityOf(var, ir.EntityValue(plain=True)):
            return var
        case _:
            return None


def _is_operator(node: object) -> bool:
    """Whether the parser counts it: arithmetic and negations nest without brackets."""
    return isinstance(node, ir.Arithmetic | ir.Not | ir.Call) and (
        not isinstance(node, ir.Call) or node.function is ir.Function.NEGATE
    )


def _has_aggregate(expr: ir.Expr) -> bool:
    return any(isinstance(part, ir.Output) for part in walk(expr))


def _reads_row(expr: ir.Expr) -> bool:
    return bool(variables(expr)) or any(isinstance(part, LEAVES) for part in walk(expr))


def column_name(node: ast.Expr) -> str:
    """The name of a column without an alias."""
    match node:
        case ast.PropertyAccess(var, name):
            return f"{var}.{name}"
        case ast.Variable(name) | ast.Name(name):
            return name
        case ast.Literal() | ast.TimeLiteral() | ast.ListLiteral():
            return "literal"
        case ast.Call(name, (ast.PropertyAccess() | ast.Variable() as arg,)) if (
            name in NAMED_BY_ARGUMENT
        ):
            return column_name(arg)
        case ast.Call(name):
            return name
        case ast.Cast():
            return "cast"
        case _:
            return format_expr(node)


NAMED_BY_ARGUMENT = ("count", "sum", "avg", "min", "max", "collect", "entity")


# --- order -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class OrderChecker:
    """Checks `order { … }` of a read with a single branch."""

    returns: ReturnChecker
    read: ast.Read

    @property
    def context(self) -> CheckContext:
        return self.returns.context

    def check(self) -> tuple[tuple[ir.SortKey, ...], checked.ScoreColumn | None]:
        """The sort keys, and the ranking that selects the rows, if the first key is one."""
        keys: list[ir.SortKey] = []
        rank: checked.ScoreColumn | None = None
        for index, node in enumerate(self.read.order):
            try:
                expr = self.key(node, first=index == 0)
                found = self.ranked(expr) if index == 0 else None
                if found is not None:
                    rank = found
                    self.check_rank(node, found.ranking)
                    expr = ir.ScoreOf(found.name)
                keys.append(self.sort_key(node, expr, found))
            except Reported:
                continue
        self.check_aliases()
        return tuple(keys), rank

    def key(self, node: ast.Ordering, *, first: bool) -> ir.Expr:
        if _is_ranking(node.expr) and not first:
            message = "a ranking must come first in the order, or be a column"
            raise self.context.error("Q009", message, node.at)
        typer = self.returns.typer()
        if not self.returns.is_grouped:
            typer.on_aggregate = no_aggregate
        if isinstance(node.expr, ast.Variable) and node.expr.name in self.context.params:
            message = f"the parameter `${node.expr.name}` is the same for every row"
            raise self.context.error("Q006", message, node.at)
        expr = self.returns.bounded(node.expr, typer.expr)
        if not isinstance(expr.type, PropType) or not expr.type.is_plain:
            message = f"values of type {expr.type} have no order"
            raise self.context.error("Q006", message, node.at)
        return expr

    def ranked(self, expr: ir.Expr) -> checked.ScoreColumn | None:
        if not isinstance(expr, ir.ScoreOf):
            return None
        for found, name in self.returns.scores.items():
            if name == expr.name:
                return checked.ScoreColumn(name, found)
        return None

    def check_rank(self, node: ast.Ordering, found: ir.Ranking) -> None:
        """A ranking without an end needs a limit, and keeps its direction."""
        if self.read.limit is None and isinstance(found, ir.Rrf):
            raise self.context.error("T21", "an ordering by rrf needs a limit", node.at)
        if self.read.limit is None and isinstance(found, ir.Nearest):
            raise self.context.error("T17", "an ordering by nearest needs a limit", node.at)
        best_first = not isinstance(found, ir.Nearest)
        aliased = isinstance(node.expr, ast.Name)
        if aliased and node.descending is not None and node.descending is not best_first:
            word = "desc" if best_first else "asc"
            message = "an ordering by a ranking puts the best first"
            raise self.context.error("Q006", message, node.at, f"Write `{word}`, or nothing.")

    def sort_key(
        self, node: ast.Ordering, expr: ir.Expr, rank: checked.ScoreColumn | None
    ) -> ir.SortKey:
        descending = bool(node.descending)
        if rank is not None:
            descending = not isinstance(rank.ranking, ir.Nearest)
        if self.returns.is_grouped:
            return ir.SortKey(self.returns.grouped(expr, node.expr), descending)
        if self.returns.branch.distinct:
            return ir.SortKey(self.output(expr, node), descending)
        return ir.SortKey(expr, descending)

    def output(self, expr: ir.Expr, node: ast.Ordering) -> ir.Expr:
        for column in self.returns.columns.values():
            if column.expr == expr:
                return ir.Output(column.name, expr.type)
        message = "after `distinct` only the columns of the result can be ordered by"
        raise self.context.error("Q006", message, node.at)

    def check_aliases(self) -> None:
        """nearest written in the order does not combine with column names."""
        first, *others = self.read.order or (None,)
        if first is None or not isinstance(first.expr, ast.Call) or first.expr.name != "nearest":
            return
        for node in others:
            if node is not None and isinstance(node.expr, ast.Name):
                message = "nearest(…) in the order does not combine with the name of a column"
                self.context.diagnostics.error("T18", message, node.at)


def _is_ranking(node: ast.Expr) -> bool:
    return isinstance(node, ast.Call) and node.name in ("nearest", "bm25", "rrf")
