"""Temporal operations on whole columns.

Operations on stored Date and DateTime columns are computed in Arrow and numpy. Those on other temporal
values are computed by the reference, once for each distinct row of arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.expressions.comparing import Value
from omnigraph.expressions.lists import Ints
from omnigraph.expressions.scalar import kind_of_result, temporal_operation
from omnigraph.expressions.shapes import arrow_shape
from omnigraph.lang import ir
from omnigraph.model.types import PropType, Scalar
from omnigraph.values.temporal.kinds import (
    DAY_SECONDS,
    MOMENT_BYTES,
    MONTH_SECONDS,
    Duration,
    TemporalInvalid,
    decoded,
)
from omnigraph.values.temporal.names import TemporalKind, TemporalOp

Bytes = npt.NDArray[np.uint8]
SIGN, OFFSET = np.uint64(1 << 63), 1 << 31
SECOND_MICROS = 1_000_000
DAY_MICROS = DAY_SECONDS * SECOND_MICROS
DURATION_BYTES = 36
DATE_MIN, DATE_MAX = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31, in days since 1970
STORED = (Scalar.DATE, Scalar.DATETIME)


def computed(expr: ir.TemporalCall, operands: list[Value], n: int) -> pa.Array:
    """The result for every row; null where an argument is."""
    fast = FAST.get(expr.op)
    found = None if fast is None else fast(expr, operands, n)
    return _by_reference(expr, operands, n) if found is None else found


# --- by the reference ----------------------------------------------------------------------------------------------


def _by_reference(expr: ir.TemporalCall, operands: list[Value], n: int) -> pa.Array:
    """Distinct rows of arguments are numbered, and each is computed once."""
    known = np.ones(n, np.bool_)
    if expr.op is not TemporalOp.MAKE_OF_KNOWN:
        for operand in operands:
            known &= _valid(operand, n)
    codes = np.zeros(n, np.int64)
    choices: list[list[Any]] = []
    places: list[Ints] = []
    for operand, part in zip(operands, expr.args, strict=True):
        held, place = _numbered(operand, part.type, n)
        choices.append(held)
        places.append(place)
        if isinstance(operand, pa.Array):
            _, codes = np.unique(codes * len(held) + place, return_inverse=True)
    rows = np.flatnonzero(known)
    _, first, inverse = np.unique(codes[rows], return_index=True, return_inverse=True)
    operation = temporal_operation(expr)
    made = [
        operation(*(held[place[row]] for held, place in zip(choices, places, strict=True)))
        for row in rows[first].tolist()
    ]
    if isinstance(expr.type, ir.TemporalValue):
        made = [None if value is None else value.encoded() for value in made]
    index = np.zeros(n, np.int64)
    index[rows] = inverse
    return pa.array(made, arrow_shape(expr.type)).take(pa.array(index, mask=~known))


def _numbered(operand: Value, kind: ir.ValueType, n: int) -> tuple[list[Any], Ints]:
    """The distinct values of an operand, null at their end, and which of them each row has."""
    if isinstance(operand, pa.Scalar):
        return _values(pa.array([operand.as_py()], operand.type), kind), np.zeros(n, np.int64)
    encoded = operand.dictionary_encode()
    held = _values(encoded.dictionary, kind)
    place = encoded.indices.fill_null(len(held)).to_numpy(zero_copy_only=False)
    return [*held, None], place.astype(np.int64)


def texts(values: pa.Array, kind: ir.TemporalValue) -> pa.Array:
    """Temporal values as callers see them."""
    if kind.kind in MOMENT_SUFFIX:
        found = _moment_texts(values, MOMENT_SUFFIX[kind.kind])
        if found is not None:
            return found
    encoded = values.dictionary_encode()
    held = [str(decoded(value, kind.kind)) for value in encoded.dictionary.to_pylist()]
    return pa.array(held, pa.string()).take(encoded.indices)


MOMENT_SUFFIX = {TemporalKind.LOCAL_DATETIME: b"", TemporalKind.DATETIME: OFFSET.to_bytes(4, "big")}


def _moment_texts(values: pa.Array, suffix: bytes) -> pa.Array | None:
    """Those of moments in UTC of the years `datetime` has, as a column; None if there are others."""
    known = _valid(values, len(values))
    width = MOMENT_BYTES + len(suffix)
    held = values.drop_null()
    if not len(held) or pc.any(pc.not_equal(pc.binary_length(held), width)).as_py():
        return None
    rows = _rows(held.cast(pa.binary(width)), width)
    seconds, nanos = _seconds_and_nanos(rows)
    other = (rows[:, MOMENT_BYTES:] != np.frombuffer(suffix, np.uint8)).any()
    if other or _outside(seconds // DAY_SECONDS).any():
        return None
    minutes = np.datetime_as_string((seconds // 60).astype("datetime64[m]"))
    fractions, place = np.unique(nanos, return_inverse=True)
    clock = [f".{part:09}".rstrip("0") if part else "" for part in fractions.tolist()]
    shown = np.where((seconds % 60 == 0) & (nanos == 0), 60, seconds % 60)
    whole = pa.array([*(f":{second:02}" for second in range(60)), ""], pa.string())
    made = pc.binary_join_element_wise(
        pa.array(minutes, pa.string()),
        whole.take(pa.array(shown)),
        pa.array(clock, pa.string()).take(pa.array(place)),
        "Z" if suffix else "",
        "",
    )
    index = np.cumsum(known) - 1
    return made if known.all() else made.take(pa.array(index, mask=~known))


def _seconds_and_nanos(rows: Bytes) -> tuple[Ints, Ints]:
    """Of moments since 1970."""
    seconds = (rows[:, :8].copy().view(">u8").ravel().astype(np.uint64) ^ SIGN).view(np.int64)
    nanos = rows[:, 8:MOMENT_BYTES].copy().view(">u4").ravel().astype(np.int64)
    return seconds, nanos


def _outside(days: Ints) -> npt.NDArray[np.bool_]:
    """Whether they are not of the years 1 to 9999."""
    return (days < DATE_MIN) | (days > DATE_MAX)


def _rows(values: pa.Array, width: int) -> Bytes:
    """Bytes of one length and without nulls, a row of a matrix for each."""
    start = values.offset * width
    whole = np.frombuffer(values.buffers()[1], np.uint8)[start : start + len(values) * width]
    return whole.reshape(-1, width)


def _values(values: pa.Array, kind: ir.ValueType) -> list[Any]:
    """Values of a column as the reference takes them."""
    plain: list[Any] = values.to_pylist()
    if not isinstance(kind, ir.TemporalValue):
        return plain
    return [None if value is None else decoded(value, kind.kind) for value in plain]


# --- columns as they are stored ------------------------------------------------------------------------------------


def _stored(part: ir.Expr, operand: Value) -> Scalar | None:
    """Whether an operand is a column of dates or date-times."""
    kind = part.type
    if isinstance(operand, pa.Array) and isinstance(kind, PropType) and kind.scalar in STORED:
        return kind.scalar
    return None


def _valid(value: Value, n: int) -> npt.NDArray[np.bool_]:
    if isinstance(value, pa.Scalar):
        return np.full(n, value.is_valid)
    found: npt.NDArray[np.bool_] = value.is_valid().to_numpy(zero_copy_only=False)
    return found


def _micros(value: Value, n: int) -> Ints:
    """Microseconds since 1970 of dates and date-times."""
    array = pa.array([value.as_py()], value.type) if isinstance(value, pa.Scalar) else value
    if pa.types.is_date(array.type):
        days = array.cast(pa.int32()).fill_null(0).to_numpy(zero_copy_only=False)
        found = days.astype(np.int64) * DAY_MICROS
    else:
        stamps = array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64())
        found = stamps.fill_null(0).to_numpy(zero_copy_only=False)
    return np.repeat(found, n) if isinstance(value, pa.Scalar) else found


def _big_endian(values: Ints, signed: bool = True, width: int = 8) -> Bytes:
    if width == 4:
        return values.astype(">u4").view(np.uint8).reshape(-1, 4)
    flipped = values.astype(np.uint64) ^ SIGN if signed else values.astype(np.uint64)
    return flipped.astype(">u8").view(np.uint8).reshape(-1, 8)


def _as_column(parts: list[Bytes], known: npt.NDArray[np.bool_]) -> pa.Array:
    """Rows of bytes side by side, as one column."""
    whole = np.ascontiguousarray(np.concatenate(parts, axis=1))
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(whole.shape[1]), len(whole), [None, pa.py_buffer(whole.tobytes())]
    ).cast(pa.binary())
    return fixed if known.all() else fixed.take(pa.array(np.arange(len(known)), mask=~known))


def _moments(micros: Ints) -> list[Bytes]:
    seconds, rest = np.divmod(micros, SECOND_MICROS)
    return [_big_endian(seconds), _big_endian(rest * 1000, width=4)]


def _zoned(micros: Ints, known: npt.NDArray[np.bool_]) -> pa.Array:
    """Moments in UTC."""
    offsets = np.full(len(micros), OFFSET, np.int64)
    return _as_column([*_moments(micros), _big_endian(offsets, width=4)], known)


def _dates(days: Ints, known: npt.NDArray[np.bool_]) -> pa.Array:
    if _outside(days)[known].any():
        raise TemporalInvalid("a date lies outside the years 1 to 9999")
    return pa.array(days.astype(np.int32), mask=~known).cast(pa.date32())


def _part(expr: ir.TemporalCall, operands: list[Value], n: int) -> pa.Array | None:
    (part,), (value,) = expr.args, operands
    if part.type == ir.TemporalValue(TemporalKind.DURATION):
        return _duration_part(expr.names[0], value, n)
    if _stored(part, value) is None or expr.names[0] not in PARTS:
        return None
    found = PARTS[expr.names[0]](value, _micros(value, n))
    if isinstance(found, pa.Array):
        return found.cast(arrow_shape(expr.type))
    return pa.array(found, arrow_shape(expr.type), mask=~_valid(value, n))


def _of_quarter(value: pa.Array, micros: Ints) -> Ints:
    start = pc.floor_temporal(value, unit="quarter")
    found: Ints = (micros - _micros(start, len(micros))) // DAY_MICROS + 1
    return found


PARTS: Mapping[str, Callable[[pa.Array, Ints], Any]] = {
    "quarter": lambda value, _: pc.quarter(value),
    "week": lambda value, _: pc.iso_week(value),
    "weekYear": lambda value, _: pc.iso_year(value),
    "ordinalDay": lambda value, _: pc.day_of_year(value),
    "weekDay": lambda value, _: pc.day_of_week(value, count_from_zero=False, week_start=1),
    "dayOfWeek": lambda value, _: pc.day_of_week(value, count_from_zero=False, week_start=1),
    "dayOfQuarter": _of_quarter,
    "millisecond": lambda _, micros: micros // 1000 % 1000,
    "microsecond": lambda _, micros: micros % SECOND_MICROS,
    "nanosecond": lambda _, micros: micros % SECOND_MICROS * 1000,
    "epochSeconds": lambda _, micros: micros // SECOND_MICROS,
    "epochMillis": lambda _, micros: micros // 1000,
}


def _duration_part(name: str, value: Value, n: int) -> pa.Array | None:
    """The three numbers a duration holds, read from its bytes."""
    place = {"months": 12, "days": 20, "seconds": 28}.get(name)
    if place is None or not isinstance(value, pa.Array):
        return None
    known = _valid(value, n)
    rows = _rows(value.filter(pa.array(known)).cast(pa.binary(DURATION_BYTES)), DURATION_BYTES)
    numbers = rows[:, place : place + 8].copy().view(">u8").ravel().astype(np.uint64) ^ SIGN
    found = np.zeros(n, np.int64)
    found[known] = numbers.view(np.int64)
    return pa.array(found, mask=~known)


def _moment(expr: ir.TemporalCall, operands: list[Value], n: int) -> pa.Array | None:
    (part,), (value,) = expr.args, operands
    if _stored(part, value):
        return _as_column(_moments(_micros(value, n)), _valid(value, n))
    if part.type == ir.TemporalValue(TemporalKind.DATETIME):
        return pc.binary_slice(value, 0, MOMENT_BYTES)
    return None


def _store(expr: ir.TemporalCall, operands: list[Value], n: int) -> pa.Array | None:
    (part,), (value,) = expr.args, operands
    if part.type != ir.TemporalValue(TemporalKind.DATETIME):
        return None
    known = _valid(value, n)
    heads = pc.binary_slice(value, 0, MOMENT_BYTES).filter(pa.array(known))
    seconds, nanos = _seconds_and_nanos(_rows(heads.cast(pa.binary(MOMENT_BYTES)), MOMENT_BYTES))
    if _outside(seconds // DAY_SECONDS).any():
        raise TemporalInvalid("properties hold date-times of the years 1 to 9999")
    micros = np.zeros(n, np.int64)
    micros[known] = seconds * SECOND_MICROS + nanos // 1000
    return pa.array(micros, mask=~known).cast(arrow_shape(expr.type))


def _text(expr: ir.TemporalCall, operands: list[Value], n: int) -> pa.Array | None:
    (part,), (value,) = expr.args, operands
    if _stored(part, value) is Scalar.DATETIME:
        return texts(
            _zoned(_micros(value, n), _valid(value, n)), ir.TemporalValue(TemporalKind.DATETIME)
        )
    return texts(value, part.type) if isinstance(part.type, ir.TemporalValue) else None


def _convert(expr: ir.TemporalCall, operands: list[Value], n: int) -> pa.Array | None:
    (part,), (value,) = expr.args, operands
    if _stored(part, value) is None:
        return None
    return _converted(value, kind_of_result(expr.type), n)


def _converted(value: Value, kind: TemporalKind | None, n: int) -> pa.Array | None:
    match kind:
        case TemporalKind.DATE:
            return value.cast(pa.timestamp("us")).cast(pa.date32(), safe=False)
        case TemporalKind.DATETIME:
            return _zoned(_micros(value, n), _valid(value, n))
        case TemporalKind.LOCAL_DATETIME:
            return _as_column(_moments(_micros(value, n)), _valid(value, n))
        case _:
            return None


def _plus_months(days: Ints, months: int | Ints) -> Ints:
    """The same day of another month, or the last one it has."""
    dates = days.astype("datetime64[D]")
    month = dates.astype("datetime64[M]")
    place = (dates - month.astype("datetime64[D]")).astype(np.int64)
    moved = month + np.asarray(months).astype("timedelta64[M]")
    last = ((moved + 1).astype("datetime64[D]") - moved.astype("datetime64[D]")).astype(np.int64)
    found: Ints = moved.astype("datetime64[D]").astype(np.int64) + np.minimum(place, last - 1)
    return found


SHIFT_DAYS_MAX = 4_000_000  # of a duration added in Arrow; longer ones are left to the reference


def _shift(sign: int) -> Callable[[ir.TemporalCall, list[Value], int], pa.Array | None]:
    def shift(expr: ir.TemporalCall, operands: list[Value], n: int) -> pa.Array | None:
        if sign > 0 and isinstance(operands[0], pa.Scalar):
            expr = ir.TemporalCall(expr.op, expr.names, expr.args[::-1], expr.type)
            operands = operands[::-1]
        value, by = operands
        stored = _stored(expr.args[0], value)
        if stored is None or not isinstance(by, pa.Scalar) or not by.is_valid:
            return None
        duration = decoded(by.as_py(), TemporalKind.DURATION)
        assert isinstance(duration, Duration)  # noqa: S101 - nothing else is added
        if (
            max(abs(duration.months) * 31, abs(duration.days), abs(duration.seconds) // DAY_SECONDS)
            > SHIFT_DAYS_MAX
        ):
            return None
        known = _valid(value, n)
        days, rest = np.divmod(_micros(value, n), DAY_MICROS)
        days = _plus_months(days, sign * duration.months) + sign * duration.days
        if stored is Scalar.DATE:
            whole = abs(duration.seconds) // DAY_SECONDS * (1 if duration.seconds > 0 else -1)
            return _dates(days + sign * whole, known)
        if duration.nanos % 1000:
            return None
        moved = sign * (duration.total // 1000)
        return _zoned(days * DAY_MICROS + rest + moved, known)

    return shift


UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond")


def _truncate(expr: ir.TemporalCall, operands: list[Value], n: int) -> pa.Array | None:
    unit, value = operands[:2]
    stored = _stored(expr.args[1], value)
    name = unit.as_py() if isinstance(unit, pa.Scalar) else None
    kind = kind_of_result(expr.type)
    sizes = UNITS[:5] if stored is Scalar.DATE or kind is TemporalKind.DATE else UNITS
    if stored is None or expr.names or name not in sizes:
        return None
    return _converted(pc.floor_temporal(value, unit=name), kind, n)


def _between(months: bool, days: bool, rest: bool) -> Any:
    """Whole months, whole days and seconds from one column to another, as requested."""

    def between(expr: ir.TemporalCall, operands: list[Value], n: int) -> pa.Array | None:
        kinds = {part.type.scalar for part in expr.args if isinstance(part.type, PropType)}
        plain = all(isinstance(part.type, PropType) for part in expr.args)
        if not plain or len(kinds) != 1 or not kinds <= set(STORED):
            return None
        start, end = (_micros(operand, n) for operand in operands)
        known = _valid(operands[0], n) & _valid(operands[1], n)
        whole_months, whole_days = np.zeros(n, np.int64), np.zeros(n, np.int64)
        if months:
            whole_months = _months_between(start, end)
            start = _after_months(start, whole_months)
        if days:
            apart = end - start
            whole_days = np.sign(apart) * (np.abs(apart) // DAY_MICROS)
        left = (end - start - whole_days * DAY_MICROS) if rest else np.zeros(n, np.int64)
        return _durations(whole_months, whole_days, left, known)

    return between


def _months_between(start: Ints, end: Ints) -> Ints:
    first, last = (t.astype("datetime64[us]").astype("datetime64[M]") for t in (start, end))
    months = (last - first).astype(np.int64)
    ours, theirs = (
        t - m.astype("datetime64[us]").astype(np.int64) for t, m in ((start, first), (end, last))
    )
    short = ((months > 0) & (theirs < ours)).astype(np.int64)
    over = ((months < 0) & (theirs > ours)).astype(np.int64)
    found: Ints = months - short + over
    return found


def _after_months(start: Ints, months: Ints) -> Ints:
    days, rest = np.divmod(start, DAY_MICROS)
    found: Ints = _plus_months(days, months) * DAY_MICROS + rest
    return found


def _durations(months: Ints, days: Ints, micros: Ints, known: npt.NDArray[np.bool_]) -> pa.Array:
    seconds, rest = np.divmod(micros, SECOND_MICROS)
    average = months * MONTH_SECONDS + days * DAY_SECONDS + seconds
    parts = [_big_endian(average), _big_endian(rest * 1000, width=4)]
    return _as_column([*parts, *(_big_endian(part) for part in (months, days, seconds))], known)


FAST: Mapping[TemporalOp, Callable[[ir.TemporalCall, list[Value], int], pa.Array | None]] = {
    TemporalOp.PART: _part,
    TemporalOp.MOMENT: _moment,
    TemporalOp.CONVERT: _convert,
    TemporalOp.TEXT: _text,
    TemporalOp.STORE: _store,
    TemporalOp.ADD: _shift(1),
    TemporalOp.SUBTRACT: _shift(-1),
    TemporalOp.TRUNCATE: _truncate,
    TemporalOp.BETWEEN: _between(True, True, True),
    TemporalOp.IN_MONTHS: _between(True, False, False),
    TemporalOp.IN_DAYS: _between(False, True, False),
    TemporalOp.IN_SECONDS: _between(False, False, True),
}
