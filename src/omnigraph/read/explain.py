"""How a result was obtained, as text and as data."""

from __future__ import annotations

from typing import Any

from omnigraph.lang import ir
from omnigraph.read.trace import Measured

ARROWS = {ir.Direction.OUT: "-{}->", ir.Direction.IN: "<-{}-", ir.Direction.BOTH: "-{}-"}


def describe(op: ir.Op) -> tuple[str, str]:
    """The name of an operator and what it is about."""
    name = type(op).__name__
    match op:
        case ir.NodeScan(var, types, predicate):
            return name, f"${var}: {'|'.join(types)}" + _where(predicate)
        case ir.Expand() | ir.ShortestPath():
            return name, _traversal(op) + _where(op.predicate)
        case ir.Filter(_, predicate):
            return name, spell(predicate)
        case ir.SemiJoin(_, _, negated):
            return name, "not" if negated else "exists"
        case ir.Optional(_, _, added):
            return name, ", ".join(f"${v}" for v in added)
        case ir.Join(_, _, on):
            return name, " and ".join(f"{spell(a)} = {spell(b)}" for a, b in on) or "all pairs"
        case ir.Score(_, ranking, score) | ir.Rank(_, ranking, score):
            return name, f"{type(ranking).__name__} as {score}"
        case ir.Aggregate(_, keys, aggregates):
            made = ", ".join(f"{a.function.value} as {a.name}" for a in aggregates)
            by = ", ".join(spell(k.expr) for k in keys)
            return name, made + (f" by {by}" if by else "")
        case ir.Project(_, columns):
            return name, ", ".join(c.name for c in columns)
        case ir.Sort(_, keys):
            return name, ", ".join(spell(k.expr) + (" desc" if k.descending else "") for k in keys)
        case ir.Slice(_, skip, limit):
            parts = [("skip", skip), ("limit", limit)]
            return name, " ".join(f"{word} {spell(e)}" for word, e in parts if e is not None)
        case _:
            return name, ""


def _traversal(op: ir.Expand | ir.ShortestPath) -> str:
    edges = "|".join(dict.fromkeys(s.edge for s in op.steps))
    hops = "" if op.min_hops == op.max_hops == 1 else f"{{{op.min_hops},{op.max_hops}}}"
    arrow = ARROWS[op.steps[0].direction].format(edges + hops)
    return f"${op.src} {arrow} ${op.dst}" + (" (bound)" if op.into else "")


def _where(predicate: ir.Expr | None) -> str:
    return "" if predicate is None else f" where {spell(predicate)}"


def spell(expr: ir.Expr) -> str:
    """An expression for people; not the language it was written in, but close."""
    match expr:
        case ir.Literal(value):
            return repr(value)
        case ir.Param(name):
            return f"${name}"
        case ir.Column(var, name):
            return f"${var}.{name}"
        case ir.IdOf(var) | ir.EntityOf(var) | ir.PathOf(var):
            return f"${var}"
        case ir.ScoreOf(name) | ir.Output(name):
            return name
        case ir.Compare(op, left, right):
            return f"{spell(left)} {op.value} {spell(right)}"
        case ir.Arithmetic(op, left, right):
            return f"({spell(left)} {op.value} {spell(right)})"
        case ir.And(parts):
            return " and ".join(spell(p) for p in parts)
        case ir.Or(parts):
            return "(" + " or ".join(spell(p) for p in parts) + ")"
        case ir.Not(part):
            return f"not {spell(part)}"
        case ir.IsNull(part, negated):
            return f"{spell(part)} is {'not ' if negated else ''}null"
        case ir.Call(function, args):
            return f"{function.value}({', '.join(spell(a) for a in args)})"
        case _:
            return type(expr).__name__


class Explanation:
    """The plan of a finished run: what each operator did, how many rows it made, what it cost."""

    def __init__(self, root: Measured) -> None:
        self._root = root

    def to_json(self) -> dict[str, Any]:
        """The plan as nested objects."""
        return _as_json(self._root.inputs[0]) if self._root.inputs else {}

    def __str__(self) -> str:
        lines: list[str] = []
        for measured in self._root.inputs:
            _render(measured, 0, lines)
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)


def _as_json(measured: Measured) -> dict[str, Any]:
    return {
        "operator": measured.name,
        "detail": measured.detail,
        "rows": measured.rows,
        "stands_for": measured.stands_for,
        "milliseconds": round(measured.seconds * 1e3, 3),
        "requests": measured.requests,
        "bytes_read": measured.bytes_read,
        **measured.facts,
        "inputs": [_as_json(m) for m in measured.inputs],
    }


def _render(measured: Measured, depth: int, lines: list[str]) -> None:
    rows = "?" if measured.rows is None else f"{measured.rows:,}"
    if measured.stands_for not in (None, measured.rows):
        rows += f" (for {measured.stands_for:,})"
    facts = [f"{k.replace('_', ' ')}: {v}" for k, v in measured.facts.items()]
    if measured.requests:
        facts.append(f"{measured.requests} requests, {measured.bytes_read:,} bytes")
    line = f"{'  ' * depth}{measured.name} {measured.detail}".rstrip()
    lines.append(
        f"{line}  [{rows} rows, {measured.seconds * 1e3:.2f} ms]" + "".join(f"  {f}" for f in facts)
    )
    for child in measured.inputs:
        _render(child, depth + 1, lines)
