"""The exact reading of one line: every rule of the load format, every error in words.

Slow, because each line becomes Python objects; the faster ways read what they are sure of and leave the rest to this.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from omnigraph.lang.cast import parse_bytes, parse_date, parse_datetime
from omnigraph.lang.diagnostics import did_you_mean as nearest
from omnigraph.model.catalog import Catalog, EdgeType, NodeType, Property
from omnigraph.model.columns import arrow_type
from omnigraph.model.types import INTEGER_RANGES, PropType, Scalar
from omnigraph.write.input.options import Options
from omnigraph.write.input.parts import Part
from omnigraph.write.input.problems import Misfit

RESERVED = frozenset(
    {
        "_rowid",
        "_rowaddr",
        "_rowoffset",
        "_row_created_at_version",
        "_row_last_updated_at_version",
        "_tombstone",
    }
)
ENVELOPE = frozenset({"type", "edge", "id", "from", "to", "data"})
NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
Kind = NodeType | EdgeType


@dataclass(frozen=True, slots=True)
class Record:
    """One line: a type, and the fields that were given. Edges have `src` and `dst` among them."""

    kind: Kind
    fields: Mapping[str, Any] = field(default_factory=dict)


# --- lines to records --------------------------------------------------------------------------------------------


def read_record(line: bytes, catalog: Catalog, options: Options) -> Record:
    """A graph record: `{"type": …, "data": {…}}` or `{"edge": …, "from": …, "to": …, "data": {…}}`.

    An id stands in `data`, or beside it.
    """
    record = parse_object(line)
    if ("type" in record) == ("edge" in record):
        raise Misfit("a record has exactly one of 'type' and 'edge'", rule="record")
    allowed = ENVELOPE - ({"edge", "from", "to"} if "type" in record else {"type"})
    for name in record:
        _refuse_reserved(name)
        if name not in allowed:
            raise Misfit(f"unknown field '{name}' beside 'data'", rule="record", name=name)
    kind = _node_type(record, catalog) if "type" in record else _edge_type(record, catalog)
    data = record.get("data", {})
    if not isinstance(data, dict):
        raise Misfit(f"'data' must be an object, got {json_kind(data)}", rule="record", name="data")
    ends = {} if isinstance(kind, NodeType) else _ends(record)
    return Record(kind, ends | read_fields(_with_id(data, record), kind, options))


def _with_id(data: Mapping[str, Any], record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of a record with its id, wherever it stands."""
    if "id" not in record:
        return data
    outer, inner = record["id"], data.get("id", record["id"])
    if outer != inner:
        raise Misfit(
            f"'id' is {json_kind(outer)} beside 'data' and {json_kind(inner)} in it",
            rule="record",
            name="id",
        )
    return {"id": outer, **data}


def read_row(line: bytes, kind: Kind, options: Options) -> Record:
    """A plain row of a known type: its fields, and for an edge `from` and `to` beside them."""
    data = parse_object(line)
    if isinstance(kind, NodeType):
        return Record(kind, read_fields(data, kind, options))
    ends = _ends(data)
    rest = {name: value for name, value in data.items() if name not in ("from", "to")}
    return Record(kind, ends | read_fields(rest, kind, options))


def parse_object(line: bytes) -> dict[str, Any]:
    """One strict JSON object: no member twice, no NaN, no text that is not Unicode."""
    try:
        value = json.loads(line.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
    except UnicodeDecodeError as bad:
        raise Misfit(f"not UTF-8: {bad.reason} at byte {bad.start}", rule="json") from None
    except json.JSONDecodeError as bad:
        raise Misfit(f"not JSON: {bad.msg} at column {bad.colno}", rule="json") from None
    except RecursionError:
        raise Misfit("not JSON: nested too deeply", rule="json") from None
    except ValueError as bad:
        raise Misfit(f"not JSON: {bad}", rule="json") from None
    if not isinstance(value, dict):
        raise Misfit(f"a line holds one JSON object, got {json_kind(value)}", rule="record")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise Misfit(f"the JSON member '{twice}' occurs twice", rule="json", name=twice)
    return found


def _no_constant(name: str) -> Any:
    raise Misfit(f"not JSON: {name} is not a JSON number", rule="json", value=name)


def json_kind(value: Any) -> str:
    """What a JSON value is, in words."""
    match value:
        case None:
            return "null"
        case bool():
            return f"the boolean {json.dumps(value)}"
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the text {_short(value)}"
        case dict():
            return "an object"
        case _:
            return "an array"


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _text_field(record: Mapping[str, Any], name: str) -> str:
    if name not in record:
        raise Misfit(f"the field '{name}' is missing", rule="record", name=name)
    value = record[name]
    if not isinstance(value, str):
        raise Misfit(f"'{name}' must be a text, got {json_kind(value)}", rule="record", name=name)
    return _unicode(value, name)


def _unicode(value: str, name: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        message = f"'{name}' holds half of a surrogate pair, which is no Unicode text"
        raise Misfit(message, rule="json", name=name) from None
    return value


def _ends(record: Mapping[str, Any]) -> dict[str, str]:
    return {"src": _text_field(record, "from"), "dst": _text_field(record, "to")}


def _node_type(record: Mapping[str, Any], catalog: Catalog) -> NodeType:
    name = _text_field(record, "type")
    kind = catalog.nodes.get(name)
    if kind is None:
        raise Misfit(_unknown("node", name, catalog.nodes), rule="unknown_type", value=name)
    return kind


def _edge_type(record: Mapping[str, Any], catalog: Catalog) -> EdgeType:
    name = _text_field(record, "edge")
    kind = catalog.edge(name)
    if kind is None:
        raise Misfit(_unknown("edge", name, catalog.edges), rule="unknown_type", value=name)
    return kind


def _unknown(kind: str, name: str, known: Mapping[str, Any]) -> str:
    return f"unknown {kind} type '{name}'" + did_you_mean(name, known)


def did_you_mean(name: str, known: Mapping[str, Any]) -> str:
    """A hint at the nearest known name, or nothing."""
    near = nearest(name, known)
    return f"; did you mean '{near}'?" if near else ""


# --- fields ------------------------------------------------------------------------------------------------------


def _refuse_reserved(name: str) -> None:
    if name in RESERVED:
        raise Misfit(f"'{name}' is reserved for the storage", rule="reserved", name=name)


def read_fields(data: Mapping[str, Any], kind: Kind, options: Options) -> dict[str, Any]:
    """The given fields as values of their types; null is kept as None."""
    if options.compatible:
        data = {n: v for n, v in data.items() if n == "id" or _is_known(n, kind)}
    return {name: _field(name, value, kind, options) for name, value in data.items()}


def _is_known(name: str, kind: Kind) -> bool:
    """Whether a field names a property; one that is reserved is refused even where others are ignored."""
    _refuse_reserved(name)
    return name in kind.properties


def _field(name: str, value: Any, kind: Kind, options: Options) -> Any:
    if name == "id":
        if not isinstance(value, str):
            message = f"the id of a {kind.name} must be a text, got {json_kind(value)}"
            raise Misfit(message, rule="type", name="id", value=value)
        return _unicode(value, "id")
    prop = known_property(name, kind)
    if value is None:
        return None
    try:
        return read_value(value, prop, options)
    except WrongKind:
        if options.compatible:
            return None
        raise


def known_property(name: str, kind: Kind) -> Property:
    """The property a field names; what is no property is refused."""
    prop = kind.properties.get(name)
    if prop is not None:
        return prop
    _refuse_reserved(name)
    if isinstance(kind, EdgeType) and name in ("src", "dst", "from", "to"):
        message = f"'{name}' is not a field of an edge's data; write 'from' and 'to' beside it"
        raise Misfit(message, rule="reserved", name=name)
    message = f"{kind.name} has no property '{name}'" + did_you_mean(name, kind.properties)
    raise Misfit(message, rule="unknown_field", name=name)


def read_value(value: Any, prop: Property, options: Options) -> Any:
    """A JSON value as a value of the property's type, ready for its Arrow column."""
    kind, name = prop.type, prop.name
    if kind.vector_dim is not None:
        return _vector(value, kind.vector_dim, name)
    if not kind.is_list:
        return _scalar(value, kind.scalar, kind, name, options)
    if not isinstance(value, list):
        raise _unfit(name, kind, value)
    if any(item is None for item in value):
        raise Misfit(f"the list '{name}' contains a null", name=name, value=value)
    return [_scalar(item, kind.scalar, kind, name, options) for item in value]


class WrongKind(Misfit):
    """A JSON value of another kind than the property's, such as a text for a number."""


def _unfit(name: str, kind: PropType, value: Any) -> WrongKind:
    return WrongKind(f"'{name}' expects {kind}, got {json_kind(value)}", name=name, value=value)


def _scalar(value: Any, scalar: Scalar, kind: PropType, name: str, options: Options) -> Any:
    match scalar, value:
        case Scalar.BOOL, bool():
            return value
        case Scalar.BLOB, str():
            return blob_bytes(value, name, options)
        case Scalar.STRING, str():
            return _unicode(value, name)
        case ((Scalar.DATE | Scalar.DATETIME), str() | int()) if not isinstance(value, bool):
            return _moment(value, scalar, name)
        case ((Scalar.F32 | Scalar.F64), int() | float() | str()) if not isinstance(value, bool):
            return _float(value, scalar, kind, name)
        case ((Scalar.I32 | Scalar.I64 | Scalar.U32 | Scalar.U64), int()) if value is not True:
            return _integer(value, scalar, kind, name)
    raise _unfit(name, kind, value)


def _integer(value: int, scalar: Scalar, kind: PropType, name: str) -> int:
    if value is False:
        raise _unfit(name, kind, value)
    low, high = INTEGER_RANGES[scalar]
    if not low <= value <= high:
        message = f"'{name}' is {value}, but {scalar} holds {low} to {high}"
        raise Misfit(message, rule="range", name=name, value=str(value))
    return value


def _float(value: float | str, scalar: Scalar, kind: PropType, name: str) -> float:
    if isinstance(value, str):  # as exports write what JSON has no number for
        if value not in NOT_FINITE:
            raise _unfit(name, kind, value)
        return NOT_FINITE[value]
    try:
        number = float(value)
        if scalar is Scalar.F32:
            struct.pack("<f", number)
    except OverflowError:
        number = math.inf
    if math.isinf(number):
        message = f"'{name}' is too large for {scalar}"
        raise Misfit(message, rule="range", name=name, value=str(value))
    return number


def _moment(value: str | int, scalar: Scalar, name: str) -> dt.date | dt.datetime:
    found: dt.date | dt.datetime | None
    try:
        if scalar is Scalar.DATE:
            epoch = dt.date(1970, 1, 1)
            found = (
                parse_date(value) if isinstance(value, str) else epoch + dt.timedelta(days=value)
            )
        elif isinstance(value, str):
            found = parse_datetime(value)
        else:
            found = EPOCH + dt.timedelta(milliseconds=value)
    except OverflowError:
        found = None
    if found is None:
        raise Misfit(f"'{name}' is no {scalar}: {json_kind(value)}", name=name, value=value)
    return found


def _vector(value: Any, dimension: int, name: str) -> list[float]:
    if not isinstance(value, list):
        raise Misfit(f"'{name}' expects {dimension} numbers, got {json_kind(value)}", name=name)
    if len(value) != dimension:
        message = f"the vector '{name}' has {dimension} dimensions, got {len(value)}"
        raise Misfit(message, name=name)
    for item in value:
        if isinstance(item, bool) or not isinstance(item, int | float):
            message = f"the vector '{name}' holds numbers only, got {json_kind(item)}"
            raise Misfit(message, name=name)
    return [_float(item, Scalar.F32, PropType(Scalar.F32), name) for item in value]


def blob_bytes(value: str, name: str, options: Options) -> bytes:
    """The bytes of a blob: inline base64, or what an address holds that the allow-list admits."""
    try:
        found = parse_bytes(value)
    except ValueError as bad:
        raise Misfit(f"'{name}' is not valid base64: {bad}", name=name) from None
    return options.fetch(value, name) if found is None else found


# --- records to columns ------------------------------------------------------------------------------------------


def to_part(kind: Kind, records: Sequence[Mapping[str, Any]], numbers: Sequence[int]) -> Part:
    """Records of one type as columns."""
    structural = ("id",) if isinstance(kind, NodeType) else ("id", "src", "dst")
    given = {name for fields in records for name in fields}
    columns, absent = {}, {}
    for name in (*structural, *kind.properties):
        if name not in given:
            continue
        wanted = pa.string() if name in structural else arrow_type(kind.properties[name].type)
        columns[name] = pa.array([fields.get(name) for fields in records], wanted)
        left_out = [name not in fields for fields in records]
        if any(left_out) and name not in structural:
            absent[name] = pa.array(left_out, pa.bool_())
    return Part(kind, columns, len(records), absent, pa.array(numbers, pa.int64()))
