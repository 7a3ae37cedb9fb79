"""The rows a statement selects, and the reads this depends on."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from omnigraph.core.plan import Reads
from omnigraph.core.txn import WriteTxn
from omnigraph.expressions.arrow import NO_PARAMETERS, selected
from omnigraph.expressions.filters import closed, values_tested
from omnigraph.expressions.scalar import evaluate
from omnigraph.lang import ir
from omnigraph.lang.tree import conjuncts, stored_column, stored_columns
from omnigraph.model.catalog import NodeOrEdgeType
from omnigraph.model.columns import arrow_type
from omnigraph.model.frozen import frozen
from omnigraph.model.keys import key_ids
from omnigraph.model.tokens import endpoint_tokens, id_tokens

EVERYTHING = Reads(everything=True)


@frozen
class Matched:
    """The rows, and the facts that must still hold when the write is published."""

    rows: pa.Table
    reads: Reads


def matching(
    txn: WriteTxn,
    kind: NodeOrEdgeType,
    predicate: ir.Expr,
    bound: ir.Bound,
    columns: list[str],
) -> Matched:
    """The rows of a type for which a predicate is true: looked up by id or end if it names them, else scanned."""
    view = txn.view(kind.table_id)
    condition = closed(predicate, bound)
    anchor = named_rows(condition, kind)
    if anchor is None:
        return Matched(view.scan(columns, condition), EVERYTHING)
    name, values = anchor
    rows = view.lookup(name, values, [*dict.fromkeys([*columns, *stored_columns(condition)])])
    reads = Reads(id_tokens(values) if name == "id" else endpoint_tokens(name, values))
    return Matched(selected(condition, rows), reads)


# --- what names rows -------------------------------------------------------------------------------------------------


def named_rows(condition: ir.Expr, kind: NodeOrEdgeType) -> tuple[str, pa.Array] | None:
    """An indexed column and the only values a matching row can have in it."""
    equal = _equalities(condition)
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


def _equalities(condition: ir.Expr) -> dict[str, list[Any]]:
    """Columns for which a conjunction admits only listed values."""
    found: dict[str, list[Any]] = {}
    for part in conjuncts(condition):
        asked = values_tested(part, lambda expr: stored_column(expr) is not None)
        if asked is not None:
            name = stored_column(asked[0]) or ""
            found.setdefault(name, list(evaluate(asked[1], NO_PARAMETERS) or ()))
    return found


def _texts(values: list[Any]) -> pa.Array:
    return pa.array([value for value in values if value is not None], pa.string())


def _key_ids(kind: NodeOrEdgeType, keys: list[tuple[Any, ...]]) -> pa.Array:
    """The ids of keys; one with a value its property cannot hold belongs to no row."""
    ids = [_key_id(kind, key) for key in keys]
    return pa.array([i for i in ids if i is not None], pa.string())


def _key_id(kind: NodeOrEdgeType, key: tuple[Any, ...]) -> str | None:
    members = []
    for name, value in zip(kind.key or (), key, strict=True):
        prop = kind.properties.get(name)
        try:
            members.append(pa.array([value], arrow_type(prop.type) if prop else pa.string()))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            return None
    text: str | None = key_ids(members)[0].as_py()
    return text
