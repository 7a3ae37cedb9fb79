"""Casts of single values: what `cast` in a query makes of them."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

from omnigraph.model.types import FLOATS, INTEGERS, PropType, Scalar
from omnigraph.values.misfit import Misfit
from omnigraph.values.reading import read_text, read_value
from omnigraph.values.spelling import datetime_text


def cast_value(value: Any, kind: PropType) -> Any:
    """A value in another type; `None` if it has no counterpart there."""
    try:
        return _cast(value, PropType(kind.scalar))
    except Misfit:
        return None


def _cast(value: Any, kind: PropType) -> Any:
    match kind.scalar, value:
        case _, None:
            return None
        case Scalar.STRING, _:
            return _string(value)
        case _, str():  # as a cell of a text file
            return read_text(value.strip(), kind)
        case Scalar.BOOL, int():
            return bool(value)
        case Scalar.DATE, dt.datetime():
            return value.astimezone(dt.UTC).date()
        case Scalar.DATE | Scalar.DATETIME, dt.date():
            return read_value(value, kind)
        case scalar, int() | float() if scalar in INTEGERS:
            return read_value(int(value), kind) if math.isfinite(value) else None
        case scalar, int() | float() if scalar in FLOATS:
            return read_value(+value, kind)  # of a Bool its number
    return None


def _string(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return repr(value)  # the shortest decimal that reads back as the same number
        case dt.datetime():
            return datetime_text(value)
        case dt.date():
            return value.isoformat()
        case _:
            return str(value)
