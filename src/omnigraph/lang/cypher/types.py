"""The types of Cypher values, and which are compatible."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from omnigraph.lang import ir
from omnigraph.lang.ir import NULL, ValueType
from omnigraph.model.types import INTEGERS, NUMERIC, PropType, Scalar
from omnigraph.values.temporal.names import TemporalKind

BOOL, I64, F64 = (ir.BOOL_OR_NULL, ir.I64.with_nullable(True), ir.F64_OR_NULL)
U64 = PropType(Scalar.U64, nullable=True)
STRING = ir.STRING_OR_NULL
DATE = PropType(Scalar.DATE, nullable=True)
DATETIME = PropType(Scalar.DATETIME, nullable=True)
BLOB = PropType(Scalar.BLOB, nullable=True)
I64_MAX = 2**63 - 1
DEPTH_MAX = 16  # levels of lists and maps in the value of a parameter


def is_null(kind: ValueType) -> bool:
    return kind == NULL


def is_list(kind: ValueType) -> bool:
    return isinstance(kind, ir.ListValue) or (
        isinstance(kind, PropType) and (kind.is_list or kind.is_vector)
    )


def is_scalar(kind: ValueType, *scalars: Scalar) -> bool:
    """Whether values are single, of one of these types."""
    return isinstance(kind, PropType) and kind.is_plain and kind != NULL and kind.scalar in scalars


def is_string(kind: ValueType) -> bool:
    return is_scalar(kind, Scalar.STRING)


def is_bool(kind: ValueType) -> bool:
    return is_scalar(kind, Scalar.BOOL)


def is_integer(kind: ValueType) -> bool:
    return is_scalar(kind, *INTEGERS)


def is_number(kind: ValueType) -> bool:
    return is_scalar(kind, *NUMERIC)


def is_time(kind: ValueType) -> bool:
    return is_scalar(kind, Scalar.DATE, Scalar.DATETIME)


def temporal(kind: TemporalKind) -> ir.TemporalValue:
    """The type of temporal values that no property holds."""
    return ir.TemporalValue(kind)


def temporal_kind(kind: ValueType) -> TemporalKind | None:
    """Which temporal values a type has, those of properties among them."""
    if isinstance(kind, ir.TemporalValue):
        return kind.kind
    if is_scalar(kind, Scalar.DATE):
        return TemporalKind.DATE
    return TemporalKind.DATETIME if is_scalar(kind, Scalar.DATETIME) else None


def holds_temporal(kind: ValueType) -> bool:
    """Whether there are temporal values that no property holds in values of a type."""
    return _holds(kind, ir.TemporalValue)


def list_of(item: ValueType) -> ValueType:
    """The type of lists of it."""
    if isinstance(item, PropType) and item.is_plain:
        return PropType(item.scalar, nullable=True, is_list=True, enum=item.enum)
    return ir.ListValue(item)


def item_of(kind: ValueType) -> ValueType:
    """The type of the members of a list."""
    match kind:
        case ir.ListValue(item):
            return item
        case PropType(vector_dim=int()):
            return PropType(Scalar.F32, nullable=True)
        case PropType(is_list=True):
            return kind.element()
        case _:
            return NULL


def plain(kind: ValueType) -> ValueType:
    """Nullable, and an enum as the String it is."""
    if not isinstance(kind, PropType) or kind == NULL or kind == list_of(NULL):
        return kind
    return PropType(kind.scalar, nullable=True, is_list=kind.is_list, vector_dim=kind.vector_dim)


def common(kinds: Sequence[ValueType]) -> ValueType | None:
    """The type that holds the values of all; None if there is none."""
    found: ValueType = NULL
    for kind in kinds:
        both = _both(found, plain(kind))
        if both is None:
            return None
        found = both
    return found


def _both(one: ValueType, other: ValueType) -> ValueType | None:
    if one == other or is_null(other):
        return one
    if is_null(one):
        return other
    if is_number(one) and is_number(other):
        return I64 if is_integer(one) and is_integer(other) else F64
    if is_list(one) and is_list(other):
        item = common([item_of(one), item_of(other)])
        return None if item is None else list_of(item)
    if {temporal_kind(one), temporal_kind(other)} == {TemporalKind.DATETIME}:
        return temporal(TemporalKind.DATETIME)
    match one, other:
        case ir.RefValue(), ir.RefValue() if one.edge == other.edge:
            return ir.RefValue(tuple(dict.fromkeys(one.types + other.types)), one.edge)
        case ir.TrailValue(), ir.TrailValue():
            nodes = tuple(dict.fromkeys(one.nodes + other.nodes))
            return ir.TrailValue(nodes, tuple(dict.fromkeys(one.edges + other.edges)))
        case ir.MapValue(), ir.MapValue():
            return _both_maps(one, other)
        case _:
            return None


def _both_maps(one: ir.MapValue, other: ir.MapValue) -> ValueType | None:
    first, second = dict(one.fields), dict(other.fields)
    fields = []
    for name in dict.fromkeys((*first, *second)):
        kind = common([first.get(name, NULL), second.get(name, NULL)])
        if kind is None:
            return None
        fields.append((name, kind))
    return ir.MapValue(tuple(fields))


def of_value(value: Any, depth: int = 0) -> ValueType | None:
    """The type of a parameter's value; None if it has no single type."""
    match value:
        case None:
            return NULL
        case bool():
            return BOOL
        case int():
            return I64 if value <= I64_MAX else U64
        case float():
            return F64
        case str():
            return STRING
        case bytes():
            return BLOB
        case dt.datetime():
            return DATETIME
        case dt.date():
            return DATE
        case dt.timedelta() if not depth:
            return temporal(TemporalKind.DURATION)
        case dt.time() if not depth:
            return temporal(TemporalKind.TIME if value.tzinfo else TemporalKind.LOCAL_TIME)
        case list() | tuple() if depth < DEPTH_MAX:
            kinds = [of_value(item, depth + 1) for item in value]
            known = [kind for kind in kinds if kind is not None]
            item = common(known) if len(known) == len(kinds) else None
            return None if item is None else list_of(item)
        case Mapping() if depth < DEPTH_MAX:
            fields = {str(k): of_value(v, depth + 1) for k, v in value.items()}
            found = tuple((k, v) for k, v in fields.items() if v is not None)
            return ir.MapValue(found) if len(found) == len(fields) else None
        case _:
            return None


def name_of(kind: ValueType) -> str:
    """The name of a type in messages."""
    if is_null(kind):
        return "null"
    if kind == list_of(NULL):
        return "an empty list"
    match kind:
        case ir.RefValue(types, edge):
            word = "a relationship" if edge else "a node"
            return f"{word} ({'|'.join(types[:4])}{'|…' * (len(types) > 4)})"
        case ir.TrailValue():
            return "a path"
        case ir.MapValue():
            return "a map"
        case ir.ListValue(item):
            return f"a list of {name_of(item)}"
        case ir.TemporalValue(held):
            return str(held)
        case PropType():
            return str(kind.with_nullable(False))
        case _:
            return str(kind)


def written(kind: ValueType) -> ValueType:
    """The type of a value once its references and temporal values are written out."""
    match kind:
        case ir.RefValue(types, _, nullable):
            return ir.EntityValue(types, nullable)
        case ir.TrailValue(nullable=nullable):
            return ir.PathValue(nullable)
        case ir.ListValue(item):
            return ir.ListValue(written(item))
        case ir.MapValue(fields):
            return ir.MapValue(tuple((name, written(part)) for name, part in fields))
        case ir.TemporalValue():
            return STRING  # its text
        case PropType() if kind == NULL:
            return STRING
        case PropType() if kind == list_of(NULL):
            return list_of(STRING)
        case _:
            return kind


def carried(kind: ValueType) -> ValueType:
    """The type of a value once its references are types and ids."""
    match kind:
        case ir.RefValue():
            return ir.MapValue((("type", STRING), ("id", STRING)))
        case ir.TrailValue(nodes, edges):
            parts = (ir.RefValue(nodes), ir.RefValue(edges, edge=True))
            named = zip(("nodes", "edges"), parts, strict=True)
            return ir.MapValue(tuple((n, ir.ListValue(carried(part))) for n, part in named))
        case ir.ListValue(item):
            return ir.ListValue(carried(item))
        case ir.MapValue(fields):
            return ir.MapValue(tuple((name, carried(part)) for name, part in fields))
        case _:
            return kind


def holds_reference(kind: ValueType) -> bool:
    return _holds(kind, ir.RefValue, ir.TrailValue)


def _holds(kind: ValueType, *wanted: type[ValueType]) -> bool:
    match kind:
        case ir.ListValue(item):
            return _holds(item, *wanted)
        case ir.MapValue(fields):
            return any(_holds(part, *wanted) for _, part in fields)
        case _:
            return isinstance(kind, wanted)
