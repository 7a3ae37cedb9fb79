"""Operations on temporal values, by name: the reference for the engines."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any

from omnigraph.values.temporal import arithmetic
from omnigraph.values.temporal.calendar import civil
from omnigraph.values.temporal.kinds import (
    LocalDateTime,
    Temporal,
    TemporalInvalid,
    Time,
    from_stored,
    kind_of,
    to_stored,
)
from omnigraph.values.temporal.making import clock_in, day_in, make
from omnigraph.values.temporal.names import TemporalKind, TemporalOp
from omnigraph.values.temporal.parts import part
from omnigraph.values.temporal.reading import read


def apply(
    op: TemporalOp, kind: TemporalKind | None, names: tuple[str, ...], args: list[Any]
) -> Any:
    """The result of an operation on values; `kind` is that of the result."""
    return OPERATIONS[op](kind, names, *args)


def convert(kind: TemporalKind, value: Temporal) -> Temporal:
    """The part of a value that is of another kind: the day of a date-time, its time, or both without the zone."""
    if isinstance(value, dt.datetime):
        value = from_stored(value)
    if kind_of(value) is kind:
        return value
    given: dict[str, Any] = {}
    if day_in(value) is not None:
        given["date"] = value
    if clock_in(value) is not None:
        given["time"] = value
    if {"date", "time"} <= given.keys():
        given = {"datetime": value}
    needed = {TemporalKind.DATE: "date", TemporalKind.LOCAL_TIME: "time", TemporalKind.TIME: "time"}
    if needed.get(kind, "date") not in given and "datetime" not in given:
        raise TemporalInvalid(f"a {kind_of(value)} has no {kind} in it")
    return make(kind, given)


def text(value: Temporal) -> str:
    """A value as it reads back."""
    if isinstance(value, dt.datetime):
        value = from_stored(value)
    return value.isoformat() if isinstance(value, dt.date) else str(value)


def _of_known(kind: TemporalKind, names: tuple[str, ...], *given: Any) -> Temporal | None:
    parts = {n: value for n, value in zip(names, given, strict=True) if value is not None}
    return make(kind, parts) if parts else None


def _moment(value: Temporal) -> int | LocalDateTime:
    return value.moment if isinstance(value, Time) else arithmetic.as_zoned(value).moment


def _truncated(kind: Any, names: tuple[str, ...], unit: str, value: Any, *given: Any) -> Temporal:
    return arithmetic.truncate(kind, unit, value, dict(zip(names, given, strict=True)))


def _stored(up: bool) -> Callable[..., dt.datetime]:
    return lambda _kind, _names, value: to_stored(arithmetic.as_zoned(value).moment, up)


def _store(value: Temporal) -> dt.datetime:
    moment = arithmetic.as_zoned(value).moment
    if not 1 <= civil(moment.days)[0] <= dt.MAXYEAR:
        raise TemporalInvalid("properties hold date-times of the years 1 to 9999")
    return to_stored(moment)


def _plain(compute: Callable[..., Any]) -> Callable[..., Any]:
    return lambda _kind, _names, *args: compute(*args)


OPERATIONS: Mapping[TemporalOp, Callable[..., Any]] = {
    TemporalOp.READ: lambda kind, _names, given: read(given, kind),
    TemporalOp.MAKE: lambda kind, names, *given: make(kind, dict(zip(names, given, strict=True))),
    TemporalOp.MAKE_OF_KNOWN: _of_known,
    TemporalOp.CONVERT: lambda kind, _names, value: convert(kind, value),
    TemporalOp.PART: lambda _kind, names, value: part(value, names[0]),
    TemporalOp.TRUNCATE: _truncated,
    TemporalOp.ADD: _plain(arithmetic.add),
    TemporalOp.SUBTRACT: _plain(arithmetic.subtract),
    TemporalOp.MULTIPLY: _plain(arithmetic.multiply),
    TemporalOp.DIVIDE: _plain(arithmetic.divide),
    TemporalOp.BETWEEN: _plain(arithmetic.between),
    TemporalOp.IN_MONTHS: _plain(arithmetic.in_months),
    TemporalOp.IN_DAYS: _plain(arithmetic.in_days),
    TemporalOp.IN_SECONDS: _plain(arithmetic.in_seconds),
    TemporalOp.TEXT: _plain(text),
    TemporalOp.MOMENT: _plain(_moment),
    TemporalOp.INSTANT: _stored(up=False),
    TemporalOp.INSTANT_UP: _stored(up=True),
    TemporalOp.STORE: _plain(_store),
}
