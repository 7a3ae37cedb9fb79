"""A plan as text: one operator per line, inputs indented below. For `explain`, and for people reading tests."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from omnigraph.lang import ir
from omnigraph.lang.lexer import quote

INDENT = "  "


def outline(query: ir.Query) -> str:
    """The text of a compiled query.

    >>> outline(ir.Query("q", (), ir.Read(ir.NodeScan("p", ("Person",)), ())))
    'Scan p: Person'
    """
    if isinstance(query.body, ir.Read):
        return "\n".join(_lines(query.body.plan, 0))
    return "\n".join(statement_text(statement) for statement in query.body.statements)


def _lines(plan: ir.Op, level: int) -> Iterator[str]:
    yield INDENT * level + op_text(plan)
    for label, part in _inputs(plan):
        inner = level + 1
        if label:
            yield f"{INDENT * inner}{label}"
            inner += 1
        yield from _lines(part, inner)


def _inputs(plan: ir.Op) -> Iterator[tuple[str, ir.Op]]:
    match plan:
        case ir.NodeScan() | ir.Outer():
            return
        case ir.Join(left, right):
            yield from (("", left), ("", right))
        case ir.Fuse(primary, secondary):
            yield from (("", primary), ("", secondary))
        case ir.Union(inputs):
            yield from (("", part) for part in inputs)
        case ir.SemiJoin(source, block) | ir.Optional(source, block):
            yield from (("", source), ("block", block))
        case _:
            yield "", plan.input


def op_text(plan: ir.Op) -> str:
    """One operator without its inputs."""
    match plan:
        case ir.NodeScan(var, types, predicate):
            return f"Scan {var}: {'|'.join(types)}{_where(predicate)}"
        case ir.Outer():
            return "Outer"
        case ir.Expand():
            return _walk_text("Into" if plan.into else "Expand", plan, plan.edge_var)
        case ir.ShortestPath():
            word = "PathInto" if plan.into else "Path"
            back = " backwards" if plan.backwards else ""
            return f"{_walk_text(word, plan, plan.path_var)}{back}"
        case ir.Filter(_, predicate):
            return f"Filter {expr_text(predicate)}"
        case ir.SemiJoin(negated=negated):
            return "NotExists" if negated else "Exists"
        case ir.Optional(vars=names):
            return f"Optional {', '.join(names)}"
        case ir.Join(on=pairs):
            on = [f"{expr_text(a)} = {expr_text(b)}" for a, b in pairs]
            return f"Join{' on ' + ' and '.join(on) if on else ''}"
        case ir.Score(_, ranking, name):
            return f"Score {name} = {ranking_text(ranking)}"
        case ir.Rank(_, ranking, name, keep):
            return f"Rank {name} = {ranking_text(ranking)}{_keep(keep)}"
        case ir.Fuse():
            arms = f"{plan.primary_score}, {plan.secondary_score}, {expr_text(plan.constant)}"
            return f"Fuse {plan.name} of {plan.var} = rrf({arms}){_keep(plan.keep)}"
        case ir.Aggregate(_, keys, aggregates):
            parts = [*map(_named, keys), *map(_aggregate, aggregates)]
            return f"Aggregate {', '.join(parts)}"
        case ir.Project(_, columns):
            return f"Project {', '.join(map(_named, columns))}"
        case ir.Distinct():
            return "Distinct"
        case ir.Sort(_, keys, ties):
            ordered = [f"{expr_text(k.expr)}{' desc' * k.descending}" for k in keys]
            return f"Sort {', '.join(ordered)}; {', '.join(map(expr_text, ties))}".rstrip("; ")
        case ir.Slice(_, skip, limit):
            counts = (("skip", skip), ("limit", limit))
            return " ".join(["Slice", *(f"{w} {expr_text(c)}" for w, c in counts if c)])
        case ir.Union():
            return "Union"


def _walk_text(word: str, plan: ir.Expand | ir.ShortestPath, name: str | None) -> str:
    steps = "|".join(f"{ARROWS[s.direction]}{s.edge}" for s in plan.steps)
    one_hop = (plan.min_hops, plan.max_hops) == (1, 1)
    hops = "" if one_hop else f"{{{plan.min_hops},{plan.max_hops}}}"
    bound = f" as {name}" if name else ""
    types = "" if plan.into else f": {'|'.join(plan.dst_types)}"
    return f"{word} {plan.src} {steps}{hops} {plan.dst}{types}{bound}{_where(plan.predicate)}"


ARROWS = {ir.Direction.OUT: ">", ir.Direction.IN: "<", ir.Direction.BOTH: "<>"}


def _where(predicate: ir.Expr | None) -> str:
    return "" if predicate is None else f" where {expr_text(predicate)}"


def _keep(keep: ir.Expr | None) -> str:
    return "" if keep is None else f" keep {expr_text(keep)}"


def _named(column: ir.NamedExpr) -> str:
    return f"{column.name} = {expr_text(column.expr)}"


def _aggregate(found: ir.NamedAggregate) -> str:
    if found.arg is None:
        return f"{found.name} = count(*)"
    distinct = "distinct " * found.distinct
    return f"{found.name} = {found.function.value}({distinct}{expr_text(found.arg)})"


def ranking_text(ranking: ir.Ranking) -> str:
    match ranking:
        case ir.Nearest(field, query, metric):
            return f"nearest({expr_text(field)}, {expr_text(query)}, {metric.value})"
        case ir.Bm25(field, query):
            return f"bm25({expr_text(field)}, {expr_text(query)})"
        case ir.Rrf(primary, secondary, constant):
            arms = f"{ranking_text(primary)}, {ranking_text(secondary)}"
            return f"rrf({arms}, {expr_text(constant)})"


# --- expressions -------------------------------------------------------------------------------------------------


def expr_text(expr: ir.Expr) -> str:
    """An expression; brackets show how it is nested."""
    match expr:
        case ir.Literal(value):
            return value_text(value)
        case ir.ListOf(items):
            return f"[{', '.join(map(expr_text, items))}]"
        case ir.Param(name):
            return f"${name}"
        case ir.Now():
            return "now()"
        case ir.Column(var, name):
            return f"{var}.{name}" if var else name
        case ir.IdOf(var):
            return f"{var}.id" if var else "id"
        case ir.EndpointOf(var, end):
            return f"{var}.{end.value}" if var else end.value
        case ir.TypeOf(var):
            return f"type({var})"
        case ir.EntityOf(var):
            return f"entity({var})"
        case ir.PathOf(var):
            return var
        case ir.PathGet(var, part):
            return f"{part.value}({var})"
        case ir.ScoreOf(name):
            return f"score({name})"
        case ir.Output(name):
            return name
        case ir.TextMatch():
            return _text_match(expr)
        case _:
            return _operation_text(expr)


def _operation_text(expr: ir.Expr) -> str:
    match expr:
        case ir.Compare(op, left, right):
            return f"({expr_text(left)} {op.value} {expr_text(right)})"
        case ir.Arithmetic(symbol, left, right):
            return f"({expr_text(left)} {symbol.value} {expr_text(right)})"
        case ir.Same(first, second):
            return f"({first} is {second})"
        case ir.And(parts):
            return f"({' and '.join(map(expr_text, parts))})"
        case ir.Or(parts):
            return f"({' or '.join(map(expr_text, parts))})"
        case ir.Not(part):
            return f"not {expr_text(part)}"
        case ir.IsNull(part, negated):
            return f"({expr_text(part)} is {'not ' * negated}null)"
        case ir.In(item, members):
            return f"({expr_text(item)} in {expr_text(members)})"
        case ir.Has(items, item):
            return f"({expr_text(items)} has {expr_text(item)})"
        case ir.Contains(text, needle):
            return f"({expr_text(text)} contains {expr_text(needle)})"
        case ir.StartsWith(text, prefix):
            return f"({expr_text(text)} starts_with {expr_text(prefix)})"
        case ir.RegexMatch(text, pattern):
            return f"regex_match({expr_text(text)}, {expr_text(pattern)})"
        case ir.Call(function, args):
            return f"{function.value}({', '.join(map(expr_text, args))})"
        case ir.Cast(part, kind):
            return f"cast({expr_text(part)} as {kind.with_nullable(False)})"
        case _:
            raise TypeError(type(expr))


def _text_match(expr: ir.TextMatch) -> str:
    field, query = expr_text(expr.field), expr_text(expr.query)
    match expr.mode:
        case ir.AnyWord():
            return f"search({field}, {query})"
        case ir.AllWords():
            return f"search_all({field}, {query})"
        case ir.Phrase():
            return f"phrase({field}, {query})"
        case ir.Fuzzy(edits):
            return f"fuzzy({field}, {query}, {expr_text(edits)})"


def value_text(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return quote(value)
        case dt.date():
            return value.isoformat()
        case tuple():
            return f"[{', '.join(map(value_text, value))}]"
        case _:
            return repr(value)


# --- statements --------------------------------------------------------------------------------------------------


def statement_text(statement: ir.Statement) -> str:
    target = f"{statement.target.kind.value} {statement.target.type_name}"
    match statement:
        case ir.Insert(_, rows):
            return f"Insert {target} {', '.join(map(_row_text, rows))}"
        case ir.Update(_, values, predicate):
            return f"Update {target} {_assigned(values)} where {expr_text(predicate)}"
        case ir.Delete(_, predicate):
            return f"Delete {target} where {expr_text(predicate)}"


def _row_text(row: ir.InsertRow) -> str:
    ends = [f"{n} = {expr_text(e)}" for n, e in (("src", row.src), ("dst", row.dst)) if e]
    values = [f"{v.property} = {expr_text(v.value)}" for v in row.values]
    return f"({', '.join([*ends, *values])})"


def _assigned(values: tuple[ir.Assign, ...]) -> str:
    return ", ".join(f"{v.property} = {expr_text(v.value)}" for v in values)
