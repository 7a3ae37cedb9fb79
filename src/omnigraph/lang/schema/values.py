"""Literals against property types: defaults, bounds and patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph.lang.cast import datetime_text, parse_date, parse_datetime
from omnigraph.model.types import INTEGER_RANGES, INTEGERS, PropType
from omnigraph.model.types import Scalar as Base

if TYPE_CHECKING:
    from omnigraph.lang.schema.ast import Scalar

F32_MAX = 3.4028234663852886e38


class Misfit(Exception):
    """A literal is not a value of the type; the text says why."""


def convert(value: Scalar | tuple[Scalar, ...], kind: PropType) -> Any:
    """A literal as a value of the type, in its JSON shape; raises `Misfit`."""
    if kind.is_blob:
        raise Misfit("a Blob has no literals")
    if not isinstance(value, tuple):
        if kind.is_list or kind.is_vector:
            raise Misfit("write a list in square brackets")
        return _convert_one(value, kind)
    if not kind.is_list and not kind.is_vector:
        raise Misfit("a list is not a single value")
    if kind.vector_dim is not None and len(value) != kind.vector_dim:
        raise Misfit(f"it has {len(value)} elements, not {kind.vector_dim}")
    return [_convert_one(item, PropType(kind.scalar)) for item in value]


def _convert_one(value: Scalar, kind: PropType) -> Scalar:
    match kind.scalar:
        case Base.BOOL:
            if not isinstance(value, bool):
                raise Misfit("write true or false")
            return value
        case Base.F32 | Base.F64:
            return _float(value, kind.scalar)
        case Base.DATE:
            return _date(value)
        case Base.DATETIME:
            return _datetime(value)
        case Base.STRING:
            return _string(value, kind)
        case _:
            return _integer(value, kind.scalar)


def _integer(value: Scalar, base: Base) -> int:
    low, high = INTEGER_RANGES[base]
    if not isinstance(value, int) or isinstance(value, bool):
        raise Misfit("write a whole number")
    if not low <= value <= high:
        raise Misfit(f"{base} holds {low} to {high}")
    return value


def _float(value: Scalar, base: Base) -> float:
    if isinstance(value, bool | str):
        raise Misfit("write a number")
    if base is Base.F32 and abs(value) > F32_MAX:
        raise Misfit("it is too large for F32")
    return float(value)


def _string(value: Scalar, kind: PropType) -> str:
    if not isinstance(value, str):
        raise Misfit('write a text in double quotes: "text"')
    if kind.enum is not None and value not in kind.enum:
        raise Misfit(f"the values are {', '.join(kind.enum)}")
    return value


def _date(value: Scalar) -> str:
    found = parse_date(value) if isinstance(value, str) else None
    if found is None:
        raise Misfit('a Date is written "2025-12-31"')
    return found.isoformat()


def _datetime(value: Scalar) -> str:
    found = parse_datetime(value) if isinstance(value, str) else None
    if found is None:
        raise Misfit('a DateTime is written "2025-12-31T23:59:59Z"')
    return datetime_text(found)


def bound_for(value: int | float | None, kind: PropType) -> int | float | None:
    """A bound of @range in the number type of its property, so that 0..60 and 0.0..60.0 mean the same."""
    if value is None:
        return None
    if kind.scalar in INTEGERS:
        return int(value) if float(value).is_integer() else value
    return float(value)


def pattern_error(pattern: str) -> str | None:
    """Why RE2 refuses a pattern, or None.

    Arrow's RE2 decides, because it is what checks the rows. It is loaded only for a schema that has patterns.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid as refusal:
        return str(refusal).removeprefix("Invalid regular expression: ")
    return None
