"""Temporal operations on columns come to what they come to for one row, whichever way columns are computed."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.expressions.arrow import TableRows, column
from omnigraph.expressions.scalar import evaluate
from omnigraph.lang import ir
from omnigraph.model.types import PropType, Scalar
from omnigraph.values.temporal import arithmetic
from omnigraph.values.temporal.kinds import TemporalInvalid, decoded
from omnigraph.values.temporal.names import TemporalKind as K
from omnigraph.values.temporal.names import TemporalOp as Op
from omnigraph.values.temporal.parts import PART_NAMES, TEXTS
from omnigraph.values.temporal.reading import read
from tests.support.rings import count

DATE, MOMENT = (PropType(s, nullable=True) for s in (Scalar.DATE, Scalar.DATETIME))
I64, STRING = ir.I64.with_nullable(True), ir.STRING_OR_NULL
ROWS = count(150, 5_000)
DAY, AT, LATER, UNTIL = (
    ir.Column(ir.ROW, name, kind)
    for name, kind in (("day", DATE), ("at", MOMENT), ("later", DATE), ("until", MOMENT))
)
EDGES = (dt.date.min, dt.date.max, dt.date(2016, 2, 29), dt.date(1970, 1, 1), dt.date(1900, 12, 31))


def _days(rng: random.Random) -> list[dt.date | None]:
    near = [dt.date.fromordinal(rng.randint(700_000, 740_000)) for _ in range(ROWS)]
    return [None, *EDGES, *near]


def _moments(rng: random.Random) -> list[dt.datetime | None]:
    def moment(day: dt.date) -> dt.datetime:
        clock = dt.time(rng.randrange(24), rng.randrange(60), rng.randrange(60), tzinfo=dt.UTC)
        return dt.datetime.combine(day, clock) + dt.timedelta(milliseconds=rng.randrange(1000))

    return [None if day is None else moment(day) for day in _days(rng)]


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    rng = random.Random(23)
    stamps = pa.timestamp("us", "UTC")
    columns = {
        "day": pa.array(_days(rng), pa.date32()),
        "at": pa.array(_moments(rng), stamps),
        "later": pa.array(_days(rng)[::-1], pa.date32()),
        "until": pa.array(_moments(rng)[::-1], stamps),
    }
    return pa.table(columns)


def _agree(expr: ir.Expr, rows: pa.Table) -> None:
    """The column, and the value of the reference for each row."""
    try:
        wanted = [
            evaluate(expr, ir.Bound(), {(ir.ROW, name): value for name, value in row.items()})
            for row in rows.to_pylist()
        ]
    except TemporalInvalid:
        with pytest.raises(TemporalInvalid):
            column(expr, TableRows(rows))
        return
    found = column(expr, TableRows(rows)).to_pylist()
    if isinstance(expr.type, ir.TemporalValue):
        kind = expr.type.kind
        found = [None if value is None else decoded(value, kind) for value in found]
    assert found == wanted


def _call(op: Op, args: tuple[ir.Expr, ...], kind: Any, *names: str) -> ir.Expr:
    made = ir.TemporalValue(kind) if isinstance(kind, K) and kind is not K.DATE else kind
    return ir.TemporalCall(op, names, args, DATE if made is K.DATE else made)


def _duration(text: str) -> ir.Expr:
    return ir.Literal(read(text, K.DURATION), ir.TemporalValue(K.DURATION))


@pytest.mark.parametrize("name", PART_NAMES[K.DATETIME])
def test_parts(name: str, rows: pa.Table) -> None:
    kind = STRING if name in TEXTS else I64
    _agree(_call(Op.PART, (AT,), kind, name), rows)
    if name in PART_NAMES[K.DATE]:
        _agree(_call(Op.PART, (DAY,), kind, name), rows)


@pytest.mark.parametrize("unit", arithmetic.UNITS)
def test_truncation(unit: str, rows: pa.Table) -> None:
    word = ir.Literal(unit, STRING)
    inside = rows.slice(0, 1) if unit == "millennium" else rows.filter(pa.array(_inside(rows)))
    for kind in (K.DATE, K.DATETIME, K.LOCAL_DATETIME, K.LOCAL_TIME):
        for part in (DAY, AT):
            _agree(_call(Op.TRUNCATE, (word, part), kind), inside)


def _inside(rows: pa.Table) -> list[bool]:
    """Rows away from the ends of the calendar, where truncation leads out of it."""
    far = (None, dt.date.min, dt.date.max)
    return [all(row[n] not in far for n in ("day", "later")) for row in rows.to_pylist()]


@pytest.mark.parametrize(
    "text",
    [
        "P1M",
        "P-13M",
        "P1Y2M3DT4H5M6.007S",
        "P-400D",
        "PT49H",
        "PT-49H",
        "PT0.000001S",
        "P90000Y",
        "PT0.000000001S",
        "PT0S",
    ],
)
@pytest.mark.parametrize("op", [Op.ADD, Op.SUBTRACT])
def test_sums(op: Op, text: str, rows: pa.Table) -> None:
    for held in (rows, rows.filter(pa.array(_inside(rows)))):
        _agree(_call(op, (DAY, _duration(text)), K.DATE), held)
        _agree(_call(op, (AT, _duration(text)), K.DATETIME), held)
    if op is Op.ADD:
        _agree(_call(op, (_duration(text), AT), K.DATETIME), rows)


@pytest.mark.parametrize("op", [Op.BETWEEN, Op.IN_MONTHS, Op.IN_DAYS, Op.IN_SECONDS])
def test_durations_between(op: Op, rows: pa.Table) -> None:
    one = ir.Literal(dt.datetime(2016, 2, 29, 23, 59, tzinfo=dt.UTC), MOMENT)
    for args in ((DAY, LATER), (AT, UNTIL), (AT, one), (one, AT), (DAY, AT)):
        span = _call(op, args, K.DURATION)
        _agree(span, rows)
        for name in ("months", "days", "seconds", "nanosecondsOfSecond"):
            _agree(_call(Op.PART, (span,), I64, name), rows)


def test_conversions_moments_and_texts(rows: pa.Table) -> None:
    for part in (DAY, AT):
        for kind in (K.DATE, K.DATETIME, K.LOCAL_DATETIME):
            made = _call(Op.CONVERT, (part,), kind)
            _agree(made, rows)
            _agree(_call(Op.TEXT, (made,), STRING), rows)
    _agree(_call(Op.TEXT, (AT,), STRING), rows)
    zoned = _call(Op.CONVERT, (AT,), K.DATETIME)
    far = _call(Op.ADD, (AT, _duration("P9000YT0.000000001S")), K.DATETIME)
    _agree(_call(Op.TEXT, (far,), STRING), rows)
    for made in (far, _call(Op.ADD, (AT, _duration("PT0.000000001S")), K.DATETIME)):
        _agree(_call(Op.STORE, (made,), MOMENT), rows.filter(pa.array(_inside(rows))))
    for made in (AT, zoned):
        _agree(_call(Op.MOMENT, (made,), K.LOCAL_DATETIME), rows)
        _agree(_call(Op.INSTANT, (made,), MOMENT), rows)
    time = _call(Op.CONVERT, (zoned,), K.TIME)
    _agree(_call(Op.MOMENT, (time,), I64), rows)


def test_nothing_comes_of_no_rows(rows: pa.Table) -> None:
    for expr in (
        _call(Op.CONVERT, (AT,), K.TIME),
        _call(Op.ADD, (DAY, _duration("P1M")), K.DATE),
        _call(Op.BETWEEN, (AT, UNTIL), K.DURATION),
    ):
        _agree(expr, rows.slice(0, 0))
        _agree(expr, rows.slice(0, 1))
