"""The rows a statement is about, and what finding them rested on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from omnigraph.core.plan import Reads
from omnigraph.core.txn import WriteTxn
from omnigraph.lang import ir
from omnigraph.lang.evaluate import Bound, evaluate, is_constant
from omnigraph.lang.pushdown import split
from omnigraph.lang.tree import conjuncts, transform, walk
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.model.columns import arrow_type
from omnigraph.model.keys import key_ids
from omnigraph.model.predicates import Op
from omnigraph.model.tokens import endpoint_tokens, id_tokens
from omnigraph.read.context import Context
from omnigraph.read.expressions import column, holds
from omnigraph.read.rows import Rows
from omnigraph.validate.findings import column as whole_column

EVERYTHING = Reads(everything=True)


@dataclass(frozen=True, slots=True)
class Matched:
    """The rows, and the facts that must still hold when the write is published."""

    rows: pa.Table
    reads: Reads


def matching(
    txn: WriteTxn,
    kind: NodeType | EdgeType,
    predicate: ir.Expr,
    bound: Bound,
    columns: list[str],
) -> Matched:
    """The rows of a type for which a predicate is true: looked up by id or end where it names them, else scanned."""
    view = txn.view(kind.table_id)
    anchor = _anchor(predicate, kind, bound)
    if anchor is not None:
        name, values = anchor
        rows = view.lookup(name, values, _read(columns, predicate))
        reads = Reads(id_tokens(values) if name == "id" else endpoint_tokens(name, values))
        return Matched(_filtered(rows, predicate, txn, bound), reads)
    pushed, rest = split(predicate, ir.ROW, bound)
    rows = view.scan(_read(columns, rest), pushed)
    return Matched(rows if rest is None else _filtered(rows, rest, txn, bound), EVERYTHING)


def computed(expr: ir.Expr, rows: pa.Table, txn: WriteTxn, bound: Bound) -> pa.Array:
    """The value of an expression for each row."""
    return column(_over_columns(expr), _rows(rows, expr), Context(txn.snapshot, bound))


def _filtered(rows: pa.Table, predicate: ir.Expr, txn: WriteTxn, bound: Bound) -> pa.Table:
    if not rows.num_rows:
        return rows
    mask = holds(_over_columns(predicate), _rows(rows, predicate), Context(txn.snapshot, bound))
    return rows if mask.all() else rows.filter(pa.array(mask))


# --- expressions over the columns of a table -------------------------------------------------------------------------


def _over_columns(expr: ir.Expr) -> ir.Expr:
    """The expression with its columns taken from the rows themselves instead of from a stored table."""

    def change(part: Any) -> Any:
        name = _column_name(part)
        return part if name is None else ir.Output(name, part.type)

    return transform(expr, change)


def _column_name(part: Any) -> str | None:
    match part:
        case ir.Column(_, name):
            return name
        case ir.IdOf():
            return "id"
        case ir.EndpointOf(_, end):
            return end.value
        case _:
            return None


def _names(expr: ir.Expr | None) -> Iterator[str]:
    for part in walk(expr) if expr is not None else ():
        name = _column_name(part)
        if name is not None:
            yield name


def _read(columns: list[str], expr: ir.Expr | None) -> list[str]:
    return list(dict.fromkeys([*columns, *_names(expr)]))


def _rows(rows: pa.Table, expr: ir.Expr) -> Rows:
    return Rows(rows.num_rows, columns={name: whole_column(rows, name) for name in _names(expr)})


# --- what names rows -------------------------------------------------------------------------------------------------


def _anchor(
    predicate: ir.Expr, kind: NodeType | EdgeType, bound: Bound
) -> tuple[str, pa.Array] | None:
    """A column with an index and the only values of it a matching row can have."""
    equal = _equalities(predicate, bound)
    if "id" in equal:
        return "id", _texts(equal["id"])
    if kind.key is not None and len(kind.key) == 1 and kind.key[0] in equal:
        return "id", _key_ids(kind, [(value,) for value in equal[kind.key[0]]])
    if kind.key is not None and all(len(equal.get(name, ())) == 1 for name in kind.key):
        return "id", _key_ids(kind, [tuple(equal[name][0] for name in kind.key)])
    for side in ("src", "dst"):
        if side in equal:
            return side, _texts(equal[side])
    return None


def _equalities(predicate: ir.Expr, bound: Bound) -> Mapping[str, list[Any]]:
    """Columns of which the predicate admits listed values only."""
    found: dict[str, list[Any]] = {}
    for part in conjuncts(predicate):
        match part:
            case ir.Compare(Op.EQ, left, right):
                expr, other = (right, left) if is_constant(left) else (left, right)
                values = [evaluate(other, bound)] if is_constant(other) else None
            case ir.In(expr, members) if is_constant(members):
                values = list(evaluate(members, bound) or ())
            case _:
                continue
        name = _column_name(expr)
        if name is not None and values is not None:
            found.setdefault(name, values)
    return found


def _texts(values: list[Any]) -> pa.Array:
    return pa.array([value for value in values if value is not None], pa.string())


def _key_ids(kind: NodeType | EdgeType, keys: list[tuple[Any, ...]]) -> pa.Array:
    """The ids of keys; one with a value its property cannot hold belongs to no row."""
    ids = [_key_id(kind, key) for key in keys]
    return pa.array([i for i in ids if i is not None], pa.string())


def _key_id(kind: NodeType | EdgeType, key: tuple[Any, ...]) -> str | None:
    members = []
    for name, value in zip(kind.key or (), key, strict=True):
        prop = kind.properties.get(name)
        try:
            members.append(pa.array([value], arrow_type(prop.type) if prop else pa.string()))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            return None
    text: str | None = key_ids(members)[0].as_py()
    return text
