"""The text of a plan, for `explain` on every engine: an operator per line, its inputs indented below.

Expressions are turned back into syntax trees and printed by `query.unparse`, so that conditions read as they were
written: parameters by name, never by value, and aggregates and rankings instead of the columns the lowering made for
them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping

from omnigraph.lang import ir
from omnigraph.lang.ir.composite import Composite
from omnigraph.lang.query import ast
from omnigraph.lang.query.unparse import format_expr, format_fields
from omnigraph.values.spelling import datetime_text
from omnigraph.values.temporal.names import TemporalOp

ARROWS = {ir.Direction.OUT: "-{}->", ir.Direction.IN: "<-{}-", ir.Direction.BOTH: "-{}-"}
ENDS = {ir.End.SRC: "from", ir.End.DST: "to"}
SEARCHES = {
    ir.AnyWord: "search",
    ir.AllWords: "search_all",
    ir.Phrase: "phrase",
    ir.Fuzzy: "fuzzy",
    ir.Prefix: "prefix",
    ir.BooleanQuery: "search_query",
}
Made = Mapping[str, ast.Expr]  # the meaning of columns made by the lowering
NOTHING: Made = {}
Tree = Callable[[ir.Expr], ast.Expr]


def plan_text(query: ir.Query) -> str:
    """The text of a compiled query.

    >>> plan_text(ir.Query("q", (), ir.Read(ir.NodeScan("p", ("Person",)), ())))
    'NodeScan $p: Person'
    """
    if isinstance(query.body, ir.Read):
        return "\n".join(_lines(query.body.plan, 0))
    return "\n".join(map(_statement, query.body.statements))


def _lines(op: ir.Op, level: int) -> Iterator[str]:
    yield "  " * level + " ".join(describe(op)).rstrip()
    for part in inputs(op):
        yield from _lines(part, level + 1)


def inputs(op: ir.Op) -> tuple[ir.Op, ...]:
    """The operators directly below; of a correlated operator the input, then the block."""
    match op:
        case ir.NodeScan() | ir.Outer() | ir.Resumed():
            return ()
        case ir.Join(left, right):
            return left, right
        case ir.Fuse(primary, secondary):
            return primary, secondary
        case ir.Union(parts):
            return parts
        case ir.SemiJoin(source, block) | ir.Optional(source, block) | ir.PerRow(source, block):
            return source, block
        case _:
            return (op.input,)


# --- operators ---------------------------------------------------------------------------------------------------


def describe(op: ir.Op) -> tuple[str, str]:
    """The name of an operator and its details."""
    return type(op).__name__, _detail(op, _made_below(op))


def _detail(op: ir.Op, made: Made) -> str:
    match op:
        case ir.NodeScan(var, types, predicate):
            return f"{_var(var)}: {'|'.join(types)}{_where(predicate)}"
        case ir.Expand() | ir.ShortestPath() | ir.Trail():
            return _walk(op) + _where(op.predicate)
        case ir.Let(_, columns, keep):
            kept = [_var(name) for name, _ in keep]
            return ", ".join(kept + [_column(column, made) for column in columns])
        case ir.Attach(_, var, part, types):
            return f"{_var(var)}: {'|'.join(types)} = {_text(part, made)}"
        case ir.Unwind(_, part, name):
            return f"{_text(part, made)} as {_var(name)}"
        case ir.PerRow(_, _, aggregate):
            return format_expr(_aggregate(aggregate, made))
        case ir.Filter(_, predicate):
            return _text(predicate, made)
        case ir.SemiJoin(measure=ir.BlockTest(aggregate, predicate)):
            return _text(predicate, {aggregate.name: _aggregate(aggregate, made)})
        case ir.SemiJoin(negated=negated):
            return "not" if negated else "exists"
        case ir.Optional(_, _, added):
            return ", ".join(map(_var, added))
        case ir.Join(_, _, on):
            return " and ".join(f"{_text(a)} = {_text(b)}" for a, b in on) or "all pairs"
        case ir.Score(_, ranking) | ir.Rank(_, ranking):
            metric = f" by {ranking.metric.value}" if isinstance(ranking, ir.Nearest) else ""
            return format_expr(_ranking(ranking)) + metric + _keep(getattr(op, "keep", None))
        case ir.Fuse():
            return format_expr(_fusion(op, made)) + _keep(op.keep)
        case ir.Aggregate(_, keys, aggregates):
            by = ", ".join(_text(key.expr, made) for key in keys)
            computed = ", ".join(format_expr(_aggregate(a, made)) for a in aggregates)
            return " ".join([computed] * bool(computed) + [f"by {by}"] * bool(by))
        case ir.Project(_, columns):
            return ", ".join(_column(column, made) for column in columns)
        case ir.Sort(_, keys, ties):
            order = [_text(key.expr, made) + " desc" * key.descending for key in keys]
            then = f" then {', '.join(_text(tie, made) for tie in ties)}" if ties else ""
            return ", ".join(order) + then
        case ir.Slice(_, skip, limit):
            counts = (("skip", skip), ("limit", limit))
            return " ".join(f"{word} {_text(count)}" for word, count in counts if count is not None)
        case ir.Resumed(values, entities):
            found = [*(entity[0] for entity in entities), *(value[0] for value in values)]
            return ", ".join(map(_var, found))
        case ir.Outer() | ir.Distinct() | ir.Union():
            return ""


def _walk(op: ir.Expand | ir.ShortestPath | ir.Trail) -> str:
    words = {ir.ShortestPath: "path", ir.Trail: "trail"}
    word = words.get(type(op), "")
    if isinstance(op, ir.ShortestPath) and op.every:
        word = "paths"
    path = f"{_var(op.path_var)} = {word} " if not isinstance(op, ir.Expand) else ""
    edge = f"{_var(op.edge_var)}:" if isinstance(op, ir.Expand) and op.edge_var else ""
    most = "" if op.max_hops is None else op.max_hops
    hops = "" if op.min_hops == op.max_hops == 1 else f"{{{op.min_hops},{most}}}"
    ways: dict[ir.Direction, list[str]] = {}
    for step in op.steps:
        ways.setdefault(step.direction, []).append(step.edge)
    arrows = [ARROWS[way].format(f"{edge}{'|'.join(names)}{hops}") for way, names in ways.items()]
    end = " (bound)" if op.into else f": {'|'.join(op.dst_types)}"
    back = " backwards" if not isinstance(op, ir.Expand) and op.backwards else ""
    return f"{path}{_var(op.src)} {' or '.join(arrows)} {_var(op.dst)}{end}{back}"


def _where(predicate: ir.Expr | None) -> str:
    return "" if predicate is None else f" where {_text(predicate)}"


def _keep(count: ir.Expr | None) -> str:
    return "" if count is None else f" keep {_text(count)}"


def _column(column: ir.NamedExpr, made: Made) -> str:
    text = _text(column.expr, made)
    return text if column.name in (text, text.removeprefix("$")) else f"{text} as {column.name}"


def _made_below(op: ir.Op) -> Made:
    """The meaning of generated columns in an operator's rows: scores, group keys and aggregates."""
    found: dict[str, ast.Expr] = {}
    for part in inputs(op):
        made = _made_below(part)
        match part:
            case ir.Aggregate(_, keys, aggregates):
                found |= {key.name: _tree(key.expr, made) for key in keys}
                found |= {a.name: _aggregate(a, made) for a in aggregates}
            case ir.Score(_, ranking, name) | ir.Rank(_, ranking, name):
                found |= {**made, name: _ranking(ranking)}
            case ir.Fuse(name=name, place=place):
                found |= {name: _fusion(part, made), place: ast.Name("place")}
            case ir.Project() | ir.Union() | ir.Distinct():
                pass  # their columns have their own names
            case _:
                found |= made
    return found


def _ranking(ranking: ir.Ranking) -> ast.Expr:
    match ranking:
        case ir.Nearest(field, query, approx=True):
            return ast.Call("nearest", (_tree(field), _tree(query), ast.Name("approx")))
        case ir.Nearest(field, query):
            return _call("nearest", (field, query))
        case ir.Bm25(field, query):
            return _call("bm25", (field, query))
        case ir.Rrf(primary, secondary, constant):
            return ast.Call("rrf", (_ranking(primary), _ranking(secondary), _tree(constant)))


def _fusion(op: ir.Fuse, made: Made) -> ast.Expr:
    return ast.Call("rrf", (made[op.primary_score], made[op.secondary_score], _tree(op.constant)))


def _aggregate(found: ir.NamedAggregate, made: Made) -> ast.Expr:
    match found.arg:
        case None:
            return ast.Call("count", (), star=True)
        case ir.IdOf(var) | ir.Call(ir.Function.CONCAT, (ir.TypeOf(var), ir.Literal(" "), _)):
            arg: ast.Expr = ast.Variable(var)  # entities of several types count by type and id
        case expr:
            arg = _tree(expr, made)
    return ast.Call(found.function.value, (arg,), distinct=found.distinct)


# --- expressions -------------------------------------------------------------------------------------------------


def _text(expr: ir.Expr, made: Made = NOTHING) -> str:
    return format_expr(_tree(expr, made))


def _var(name: str) -> str:
    return "$_" if name.startswith(ir.FRESH) else f"${name}"


def _variable(name: str) -> ast.Expr:
    return ast.Variable(_var(name)[1:])


def _property(var: str, name: str) -> ast.Expr:
    return ast.Name(name) if var == ir.ROW else ast.PropertyAccess(_var(var)[1:], name)


def _call(name: str, args: Iterable[ir.Expr], made: Made = NOTHING) -> ast.Expr:
    return ast.Call(name, tuple(_tree(arg, made) for arg in args))


def _binary(symbol: str, left: ir.Expr, right: ir.Expr, made: Made) -> ast.Expr:
    return ast.Binary(ast.Operator(symbol), _tree(left, made), _tree(right, made))


def _tree(expr: ir.Expr, made: Made = NOTHING) -> ast.Expr:
    """An expression as it could be written."""
    match expr:
        case ir.Literal(value):
            return _literal(value)
        case ir.ListOf(items):
            return ast.ListLiteral(tuple(_tree(item, made) for item in items))
        case ir.Param(name):
            return ast.Variable(name)
        case ir.Now():
            return _call("now", ())
        case ir.Column(var, name):
            return _property(var, name)
        case ir.IdOf(var):
            return _property(var, "id")
        case ir.EndpointOf(var, end):
            return _property(var, ENDS[end])
        case ir.TypeOf(var):
            return ast.Call("type", (_variable(var),))
        case ir.EntityOf(var, ir.EntityValue(plain=True)):
            return _variable(var)
        case ir.EntityOf(var):
            return ast.Call("entity", (_variable(var),))
        case ir.PathOf(var):
            return _variable(var)
        case ir.PathGet(var, part):
            return ast.Call(part.value, (_variable(var),))
        case ir.ScoreOf(name) | ir.Output(name):
            return made.get(name, ast.Name(name))
        case ir.RefOf(var) | ir.TrailOf(var) | ir.ValueOf(var):
            return _variable(var)
        case _ if isinstance(expr, Composite):
            return _composite_tree(expr, lambda part: _tree(part, made))
        case _:
            return _operation(expr, made)


def _operation(expr: ir.Expr, made: Made) -> ast.Expr:
    match expr:
        case ir.Compare(op, left, right) | ir.Arithmetic(op, left, right):
            return _binary(op.value, left, right, made)
        case ir.In(item, members):
            return _binary("in", item, members, made)
        case ir.Has(whole, part) | ir.Contains(whole, part):
            return _binary("contains", whole, part, made)
        case ir.StartsWith(text, prefix):
            return _binary("starts_with", text, prefix, made)
        case ir.Same(left, right):
            return ast.Binary(ast.Operator.EQ, _variable(left), _variable(right))
        case ir.Not(ir.Same(left, right)):
            return ast.Binary(ast.Operator.NE, _variable(left), _variable(right))
        case ir.Not(part):
            return ast.NotExpr(_tree(part, made))
        case ir.And(parts) | ir.Or(parts):
            word = "and" if isinstance(expr, ir.And) else "or"
            return ast.Connective(word, tuple(_tree(part, made) for part in parts))
        case ir.IsNull(ir.IdOf(var), negated) if var != ir.ROW:
            return ast.IsNull(_variable(var), negated)
        case ir.IsNull(part, negated):
            return ast.IsNull(_tree(part, made), negated)
        case ir.RegexMatch(text, pattern):
            return _call("regex_match", (text, pattern), made)
        case ir.TextMatch(field, query, mode):
            edits = (mode.edits,) if isinstance(mode, ir.Fuzzy) else ()
            return _call(SEARCHES[type(mode)], (field, query, *edits), made)
        case ir.Highlight(field, query, before, after):
            return _call("highlight", (field, query, before, after), made)
        case ir.Call(ir.Function.NEGATE, (part,)):
            return ast.Negative(_tree(part, made))
        case ir.Call(ir.Function.COALESCE, (part,)):
            return _tree(part, made)  # a column of a union in the type all branches have
        case ir.Call(function, args):
            return _call(function.value, args, made)
        case ir.TemporalCall():
            return _temporal(expr, made)
        case ir.Cast(part, kind):
            return ast.Cast(_tree(part, made), kind.with_nullable(False))
        case _:
            raise TypeError(type(expr))


def _temporal(expr: ir.TemporalCall, made: Made) -> ast.Expr:
    match expr.op:
        case TemporalOp.ADD | TemporalOp.SUBTRACT | TemporalOp.MULTIPLY | TemporalOp.DIVIDE:
            return _binary(expr.op.value, expr.args[0], expr.args[1], made)
        case TemporalOp.PART:
            return _call(expr.names[0], expr.args, made)
        case TemporalOp.READ | TemporalOp.CONVERT:
            return _call(str(expr.type).rstrip("?").lower(), expr.args, made)
        case TemporalOp.MAKE:
            pairs = zip(expr.names, expr.args, strict=True)
            parts = (p for name, arg in pairs for p in (ast.Name(name), _tree(arg, made)))
            return ast.Call(str(expr.type).rstrip("?").lower(), tuple(parts))
        case _:
            return _call(expr.op.value, expr.args, made)


def _literal(value: object) -> ast.Expr:
    match value:
        case tuple():
            return ast.ListLiteral(tuple(map(_literal, value)))
        case dt.datetime():
            return ast.TimeLiteral("datetime", datetime_text(value))
        case dt.date():
            return ast.TimeLiteral("date", value.isoformat())
        case None | bool() | str() | int() | float():
            return ast.Literal(value)
        case _:  # a temporal value, by its text
            return ast.Call(type(value).__name__.lower(), (ast.Literal(str(value)),))


# --- statements --------------------------------------------------------------------------------------------------


def _statement(statement: ir.Statement) -> str:
    if isinstance(statement, ir.PatternChange):
        return "\n".join(_change(statement))
    name = statement.target.type_name
    match statement:
        case ir.Insert(_, rows):
            return f"insert {name} {', '.join(map(_row, rows))}"
        case ir.Update(_, values, predicate):
            values_set = f"set {_braces(_fields(values))}{_where(predicate)}"
            return f"update {name} {values_set}"
        case ir.Delete(_, predicate):
            return f"delete {name}{_where(predicate)}"


def _change(change: ir.PatternChange) -> Iterator[str]:
    """Each stage as its steps and, below them, the rows they run for; then the answer."""
    for stage in change.stages:
        yield from map(_step, stage.steps)
        yield from _lines(stage.read.plan, 1)
    if change.returns is not None:
        yield from _lines(change.returns.plan, 0)


def _step(step: ir.Step) -> str:
    match step:
        case ir.Make(target, slot, values):
            named = ", ".join(name for name, _ in values)
            return f"insert {target.type_name} {_var(slot)} {{ {named} }}"
        case ir.Put(slot, targets, values):
            named = ", ".join(name for name, _ in values)
            kinds = "|".join(t.type_name for t in targets)
            return f"update {kinds} {_var(slot)} set {{ {named} }}"  # noqa: S608 - a text for people
        case ir.Drop(slot, targets, detach):
            kinds = "|".join(t.type_name for t in targets)
            return f"delete {kinds} {_var(slot)}" + " with its edges" * detach


def _row(row: ir.InsertRow) -> str:
    ends = [ast.Field(n, _tree(e)) for n, e in (("from", row.src), ("to", row.dst)) if e]
    return _braces((*ends, *_fields(row.values)))


def _braces(fields: tuple[ast.Field, ...]) -> str:
    return f"{{ {format_fields(fields)} }}"


def _fields(values: tuple[ir.Assign, ...]) -> tuple[ast.Field, ...]:
    return tuple(ast.Field(assigned.property, _tree(assigned.value)) for assigned in values)


# --- over lists, maps and references: as calls, in the manner of `.gq` -----------------------------------------------


def _composite_tree(expr: ir.Expr, tree: Tree) -> ast.Expr:
    """An expression as a call of what it does."""

    def call(name: str, *args: ir.Expr | None) -> ast.Expr:
        return ast.Call(name, tuple(tree(arg) for arg in args if arg is not None))

    match expr:
        case ir.RefGet(part, name) | ir.FieldOf(part, name):
            return ast.Call(name, (tree(part),))
        case ir.RefType(part):
            return call("type", part)
        case ir.RefEnd(part, end):
            return call("from" if end is ir.End.SRC else "to", part)
        case ir.RefKeys(part):
            return call("keys", part)
        case ir.WrittenOut(part) | ir.Carried(part):
            return call("entity", part)
        case ir.As(part):
            return tree(part)
        case ir.MakeList(items):
            return ast.ListLiteral(tuple(map(tree, items)))
        case ir.MakeMap(items, kind):
            named = zip(kind.fields, items, strict=True)
            parts = (p for (name, _), item in named for p in (ast.Name(name), tree(item)))
            return ast.Call("map", tuple(parts))
        case ir.MakeTrail(items):
            return call("path", *items)
        case ir.TrailGet(part, edges):
            return call("edges" if edges else "nodes", part)
        case ir.MemberAt(part, index):
            return call("member", part, index)
        case ir.Sublist(part, low, high):
            return call("sublist", part, low, high)
        case ir.JoinedLists(parts):
            return call("joined", *parts)
        case ir.Numbers(first, last, step):
            return call("range", first, last, step)
        case ir.Random():
            return call("rand")
        case ir.Choice(whens, default):
            return call("case", *(part for when in whens for part in when), default)
        case ir.Alike(left, right):
            return ast.Binary(ast.Operator.EQ, tree(left), tree(right))
        case ir.Among(item, members):
            return ast.Binary(ast.Operator("in"), tree(item), tree(members))
        case ir.Apart(left, right):
            return ast.Call("apart", (ast.Variable(left), ast.Variable(right)))
        case _:
            return _over_members(expr, tree)


def _over_members(expr: ir.Expr, tree: Tree) -> ast.Expr:
    match expr:
        case ir.Each(var, part, predicate, body):
            tests = () if predicate is None else (tree(predicate),)
            return ast.Call("each", (ast.Variable(var), tree(part), *tests, tree(body)))
        case ir.Quantified(test, var, part, predicate):
            return ast.Call(test.value, (ast.Variable(var), tree(part), tree(predicate)))
        case ir.Fold(total, first, var, part, body):
            names = (ast.Variable(total), tree(first), ast.Variable(var))
            return ast.Call("fold", (*names, tree(part), tree(body)))
        case _:
            raise TypeError(type(expr))
