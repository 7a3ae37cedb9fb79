"""Whole columns read as single values do: the same value in each row, or the first that does not fit, by its row."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.model.columns import arrow_type
from omnigraph.model.types import INTEGER_RANGES, PropType, Scalar
from omnigraph.values.columns import text_column, to_column
from omnigraph.values.misfit import Misfit
from omnigraph.values.reading import TYPED, ReadingContext, read_text, read_value
from tests.support.rings import count

EXAMPLES = count(60, 1000)
KINDS = [PropType(scalar) for scalar in Scalar if scalar is not Scalar.BLOB]
LISTS = [
    PropType(scalar, is_list=True)
    for scalar in (Scalar.I64, Scalar.F32, Scalar.DATETIME, Scalar.STRING)
]
VECTOR = PropType(Scalar.F32, vector_dim=2)
DIGITS = st.text("0123456789", max_size=20)
NUMBERS = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["", "-", "+", "0x", " "]),
        DIGITS,
        st.sampled_from(["", ".5", ".", "e2", "e999", "_1"]),
    ),
)
WORDS = st.sampled_from(
    ["true", "False", "1", "0", "nan", "NaN", "-inf", "Infinity", "yes", "", "noon", "é"]
)
DAYS = st.dates().map(dt.date.isoformat)
TIMES = st.builds(
    "{}{}{:02}:{:02}{}{}{}".format, DAYS, st.sampled_from("Tt x"), st.integers(0, 25), st.integers(0, 61),
    st.sampled_from(["", ":00", ":59", ":60"]), st.sampled_from(["", ".5", ".123456", ".123456789"]),
    st.sampled_from(["", "Z", "z", "+01:00", "-2359", "+24:00", "+01:60"]),
)  # fmt: skip
TEXTS = NUMBERS | WORDS | DAYS | TIMES | st.text(max_size=5)
INTEGERS = (
    st.sampled_from(
        [b + d for bounds in INTEGER_RANGES.values() for b in bounds for d in (-1, 0, 1)]
    )
    | st.integers(-9, 9)
    | st.integers(-(2**63), 2**63 - 1)
)
FLOATS = (
    st.floats(width=64)
    | st.integers(-9, 9).map(float)
    | st.sampled_from([2.0**31, 2.0**63, 2.0**64, 1e39])
)


def both(
    values: list[Any], read: Callable[[Any], Any], kind: PropType, convert: Callable[[], pa.Array]
) -> None:
    """Compares what a column becomes with what its values become, one by one."""
    expected: dict[int, Any] = {}
    for row, value in enumerate(values):
        with suppress(Misfit):
            expected[row] = None if value is None else read(value)
    if len(expected) < len(values):
        with pytest.raises(Misfit) as caught:
            convert()
        assert caught.value.row not in expected
        return
    if not any(value not in (None, []) for value in values):
        return  # a column has a type even where it has no values
    found = convert()
    assert repr(found.to_pylist()) == repr(
        pa.array(list(expected.values()), arrow_type(kind)).to_pylist()
    )


@settings(max_examples=EXAMPLES)
@given(st.sampled_from([*KINDS, *LISTS, VECTOR]), st.lists(st.none() | TEXTS, max_size=4))
def test_cells_of_text_files(kind: PropType, texts: list[str | None]) -> None:
    column = pa.array(texts, pa.string())
    both(texts, lambda text: read_text(text, kind), kind, lambda: text_column(column, kind))


@settings(max_examples=EXAMPLES)
@given(
    st.sampled_from(KINDS),
    st.lists(st.none() | TEXTS, max_size=4),
    st.sampled_from([pa.string(), pa.large_string()]),
)
def test_texts(kind: PropType, texts: list[str | None], held: pa.DataType) -> None:
    column = pa.array(texts, held)
    both(texts, lambda text: read_value(text, kind), kind, lambda: to_column(column, kind))


@settings(max_examples=EXAMPLES)
@given(
    st.sampled_from(KINDS),
    st.lists(st.none() | INTEGERS, max_size=4),
    st.booleans(),
    st.sampled_from([pa.int64(), pa.uint64(), pa.decimal128(38)]),
)
def test_integers(
    kind: PropType, numbers: list[int | None], typed: bool, held: pa.DataType
) -> None:
    context = ReadingContext(typed=typed)
    if pa.types.is_decimal(held) and (typed or kind.scalar in (Scalar.DATE, Scalar.DATETIME)):
        return  # days and milliseconds are integers, and queries have no decimals
    try:
        column = pa.array(numbers, held)
    except (pa.ArrowInvalid, OverflowError):
        return
    both(
        numbers,
        lambda number: read_value(number, kind, context),
        kind,
        lambda: to_column(column, kind, context),
    )


@settings(max_examples=EXAMPLES)
@given(st.sampled_from(KINDS), st.lists(st.none() | FLOATS, max_size=4))
def test_floats(kind: PropType, numbers: list[float | None]) -> None:
    column = pa.array(numbers, pa.float64())
    both(numbers, lambda n: read_value(n, kind, TYPED), kind, lambda: to_column(column, kind))


@settings(max_examples=EXAMPLES)
@given(
    st.lists(st.none() | st.datetimes(timezones=st.just(dt.UTC)), max_size=4),
    st.sampled_from(["us", "ns"]),
)
def test_instants(moments: list[dt.datetime | None], unit: str) -> None:
    kind = PropType(Scalar.DATETIME)
    try:
        column = pa.array(moments, pa.timestamp(unit, "UTC"))
    except (pa.ArrowInvalid, OverflowError):
        return
    both(moments, lambda m: read_value(m, kind), kind, lambda: to_column(column, kind))


@settings(max_examples=EXAMPLES)
@given(
    st.sampled_from([*LISTS, VECTOR]),
    st.lists(
        st.none()
        | st.lists(st.none() | FLOATS, max_size=3)
        | st.lists(FLOATS, min_size=2, max_size=2),
        max_size=4,
    ),
)
def test_lists(kind: PropType, rows: list[list[float | None] | None]) -> None:
    column = pa.array(rows, pa.list_(pa.float64()))
    if kind is VECTOR and any(
        v is not None and not abs(v) < 1e300 for row in rows if row for v in row
    ):
        return  # that a member is finite is a rule about rows, which columns leave to those
    both(rows, lambda row: read_value(row, kind, TYPED), kind, lambda: to_column(column, kind))


def test_a_misfit_is_named_by_its_row_across_chunks() -> None:
    column = pa.chunked_array([["1", "2"], ["3", "x"]])
    with pytest.raises(Misfit, match="got the text 'x'") as caught:
        to_column(column, PropType(Scalar.I64))
    assert caught.value.row == 3


def test_local_times_that_do_not_happen_once_are_refused_by_both() -> None:
    kind, rome = PropType(Scalar.DATETIME), ReadingContext(timezone="Europe/Rome")
    for text in ("2025-03-30T02:30:00", "2025-10-26T02:30:00"):
        moment = dt.datetime.fromisoformat(text)
        with pytest.raises(Misfit):
            read_value(moment, kind, rome)
        with pytest.raises(Misfit):
            to_column(pa.array([moment]), kind, rome)
    noon = dt.datetime(2025, 7, 1, 12)
    both(
        [noon],
        lambda m: read_value(m, kind, rome),
        kind,
        lambda: to_column(pa.array([noon]), kind, rome),
    )
