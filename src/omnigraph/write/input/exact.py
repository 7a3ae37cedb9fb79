"""The exact reading of one line: every rule of the load format, every error in words.

Slow, because each line becomes Python objects; the faster readers read what is unambiguous and leave the rest to this.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import pyarrow as pa

from omnigraph.lang.diagnostics import did_you_mean as nearest
from omnigraph.lang.schema import words
from omnigraph.model.catalog import Catalog, EdgeType, NodeOrEdgeType, NodeType, Property
from omnigraph.model.columns import arrow_type
from omnigraph.model.frozen import frozen
from omnigraph.model.types import PropType, Scalar
from omnigraph.values.misfit import Misfit, described
from omnigraph.values.reading import ReadingContext, read_value
from omnigraph.write.input.options import Options
from omnigraph.write.input.parts import InputPart

RESERVED = words.RESERVED | {"_tombstone"}
ENVELOPE = frozenset({"type", "edge", "id", "from", "to", "data"})
TEXT = PropType(Scalar.STRING)


@frozen
class Record:
    """One line: a type, and the fields that were given. Edges have `src` and `dst` among them."""

    kind: NodeOrEdgeType
    fields: Mapping[str, Any] = field(default_factory=dict)


# --- lines to records --------------------------------------------------------------------------------------------


def read_record(line: bytes, catalog: Catalog, options: Options) -> Record:
    """A graph record: `{"type": …, "data": {…}}` or `{"edge": …, "from": …, "to": …, "data": {…}}`.

    An id is in `data`, or beside it.
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
        raise Misfit(f"'data' must be an object, got {described(data)}", rule="record", name="data")
    ends = {} if isinstance(kind, NodeType) else _ends(record)
    return Record(kind, ends | read_fields(_with_id(data, record), kind, options))


def _with_id(data: Mapping[str, Any], record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of a record with its id, from either place."""
    if "id" not in record:
        return data
    outer, inner = record["id"], data.get("id", record["id"])
    if outer != inner:
        raise Misfit(
            f"'id' is {described(outer)} beside 'data' and {described(inner)} in it",
            rule="record",
            name="id",
        )
    return {"id": outer, **data}


def read_row(line: bytes, kind: NodeOrEdgeType, options: Options) -> Record:
    """A plain row of a known type: its fields, and for an edge `from` and `to` beside them."""
    data = parse_object(line)
    if isinstance(kind, NodeType):
        return Record(kind, read_fields(data, kind, options))
    ends = _ends(data)
    rest = {name: value for name, value in data.items() if name not in ("from", "to")}
    return Record(kind, ends | read_fields(rest, kind, options))


def parse_object(line: bytes) -> dict[str, Any]:
    """One strict JSON object: no duplicate members, no NaN, no text that is not Unicode."""
    try:
        value = json.loads(
            line.decode(),
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_float=_finite,
        )
    except UnicodeDecodeError as bad:
        raise Misfit(f"not UTF-8: {bad.reason} at byte {bad.start}", rule="json") from None
    except json.JSONDecodeError as bad:
        raise Misfit(f"not JSON: {bad.msg} at column {bad.colno}", rule="json") from None
    except RecursionError:
        raise Misfit("not JSON: nested too deeply", rule="json") from None
    except ValueError as bad:
        raise Misfit(f"not JSON: {bad}", rule="json") from None
    if not isinstance(value, dict):
        raise Misfit(f"a line holds one JSON object, got {described(value)}", rule="record")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        repeated = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise Misfit(f"the JSON member '{repeated}' is duplicated", rule="json", name=repeated)
    return found


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise Misfit(f"the number {text[:40]} is too large for F64", rule="range", value=text[:40])
    return number


def _no_constant(name: str) -> Any:
    raise Misfit(f"not JSON: {name} is not a JSON number", rule="json", value=name)


def _text_field(record: Mapping[str, Any], name: str) -> str:
    if name not in record:
        raise Misfit(f"the field '{name}' is missing", rule="record", name=name)
    return _text(record[name], name, "record")


def _text(value: Any, name: str, rule: str) -> str:
    try:
        text: str = read_value(value, TEXT)
    except Misfit as misfit:
        misfit.rule = rule if misfit.wrong_kind else misfit.rule
        raise misfit.at(f"'{name}'", TEXT, name) from None
    return text


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


def read_fields(data: Mapping[str, Any], kind: NodeOrEdgeType, options: Options) -> dict[str, Any]:
    """The given fields as values of their types; null is kept as None."""
    if options.compatible:
        data = {n: v for n, v in data.items() if n == "id" or _is_known(n, kind)}
    context = options.context
    return {name: _field(name, value, kind, options, context) for name, value in data.items()}


def _is_known(name: str, kind: NodeOrEdgeType) -> bool:
    """Whether a field names a property; a reserved name is refused even if unknown ones are ignored."""
    _refuse_reserved(name)
    return name in kind.properties


def _field(
    name: str, value: Any, kind: NodeOrEdgeType, options: Options, context: ReadingContext
) -> Any:
    if name == "id":
        return _text(value, "id", "type")
    prop = known_property(name, kind)
    if value is None:
        return None
    try:
        return read_value(value, prop.type, context)
    except Misfit as misfit:
        if misfit.wrong_kind and options.compatible:
            return None
        raise misfit.at(f"'{prop.name}'", prop.type, prop.name) from None


def known_property(name: str, kind: NodeOrEdgeType) -> Property:
    """The property a field names; raises if there is none."""
    prop = kind.properties.get(name)
    if prop is not None:
        return prop
    _refuse_reserved(name)
    if isinstance(kind, EdgeType) and name in ("src", "dst", "from", "to"):
        message = f"'{name}' is not a field of an edge's data; write 'from' and 'to' beside it"
        raise Misfit(message, rule="reserved", name=name)
    message = f"{kind.name} has no property '{name}'" + did_you_mean(name, kind.properties)
    raise Misfit(message, rule="unknown_field", name=name)


# --- records to columns ------------------------------------------------------------------------------------------


def to_part(
    kind: NodeOrEdgeType, records: Sequence[Mapping[str, Any]], numbers: Sequence[int]
) -> InputPart:
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
    return InputPart(kind, columns, len(records), absent, pa.array(numbers, pa.int64()))
