"""Values for the parameters of a query: from JSON values to values of the plan's expressions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.lang import ir
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.lang.ir import Bound
from omnigraph.lang.query.scope import RESERVED_PARAM
from omnigraph.model.instants import EPOCH
from omnigraph.model.types import PropType
from omnigraph.values.misfit import Misfit
from omnigraph.values.reading import ReadingContext, is_missing, read_value
from omnigraph.values.spelling import whole_millis

BOUND = ReadingContext(
    fetch=str
)  # the address of a blob is kept, to be read when the rows are written


class ParamMissing(OmnigraphError):
    """A parameter without a value is not nullable."""

    code, kind = "param_missing", Kind.INVALID
    default_help = "Give it a value in params=, or declare it nullable: $name: String?."


class ParamInvalid(OmnigraphError):
    """The value of a parameter does not have its declared type."""

    code, kind = "param_invalid", Kind.INVALID
    default_help = (
        "Values are JSON: texts, numbers, true and false, lists; times are RFC 3339 texts."
    )


def bind_params(
    query: ir.Query, values: Mapping[str, Any] | None = None, now: dt.datetime | None = None
) -> Bound:
    """The values of all parameters, checked against their declared types.

    A nullable parameter may be left out and is null then. Names the query does not declare are ignored.
    """
    given = dict(values or {})
    instant = _now(given.pop(RESERVED_PARAM, None), now)
    bound: dict[str, Any] = {}
    for param in query.params:
        if param.name not in given and not param.type.nullable:
            raise _missing(param, given, query)
        bound[param.name] = _bound(param, given.get(param.name))
    return Bound(bound, instant)


def _now(preset: Any, now: dt.datetime | None) -> dt.datetime:
    """The time of the query; a caller may preset it under a reserved name."""
    if preset is not None:
        return _read(RESERVED_PARAM, ir.DATETIME, preset)  # type: ignore[no-any-return]
    return whole_millis(now or EPOCH)


def _missing(param: ir.ParamDecl, given: Mapping[str, Any], query: ir.Query) -> ParamMissing:
    declared = {p.name for p in query.params}
    meant = did_you_mean(param.name, [name for name in given if name not in declared])
    help = f"`{meant}` was given; did you mean `{param.name}`?" if meant else None
    message = f"the parameter `${param.name}` of type {param.type} has no value"
    return ParamMissing(message, help=help, details={"param": param.name})


def _bound(param: ir.ParamDecl, value: Any) -> Any:
    if (value is None or is_missing(value)) and param.type.nullable:
        return None
    if isinstance(param.type, ir.TemporalValue):
        from omnigraph.values.temporal.kinds import from_python

        return from_python(value)
    if not isinstance(param.type, PropType):
        return value  # a list or a map; the query was compiled for values of its type
    return _read(param.name, param.type, value)


def _read(name: str, kind: PropType, value: Any) -> Any:
    try:
        return read_value(value, kind, BOUND)
    except Misfit as misfit:
        found = misfit.at(f"the parameter `${name}`", kind, name)
        details = {"param": name, "violations": [found.violation().to_json()]}
        raise ParamInvalid(found.message, details=details) from None
