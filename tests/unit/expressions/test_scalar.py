"""What every expression means, for single values."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.expressions.scalar import ArithmeticOverflow, evaluate
from omnigraph.lang import ir
from omnigraph.lang.cast import cast_value
from omnigraph.lang.ir import Bound
from omnigraph.lang.query import compile_query
from omnigraph.lang.tree import is_constant
from omnigraph.model.catalog import Catalog
from omnigraph.model.types import PropType, Scalar
from omnigraph.values.spelling import parse_datetime
from tests.unit.lang.query.casefile import harbour

DAY = dt.date(2024, 2, 29)
NOON = dt.datetime(2024, 2, 29, 12, 30, 15, tzinfo=dt.UTC)


def value_of(text: str, catalog: Catalog | None = None) -> Any:
    """The value of a constant expression of the language."""
    query = compile_query(
        f"query q() {{ match {{ $p: Port }} return {{ {text} as x }} }}", catalog or harbour()
    )
    assert isinstance(query.body, ir.Read)
    assert isinstance(query.body.plan, ir.Project)
    expr = query.body.plan.columns[0].expr
    assert is_constant(expr)
    return evaluate(expr, Bound(now=NOON))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("7 / 2", 3.5),
        ("7 / 0", None),
        ("7 % 0", None),
        ("-7 % 3", -1),
        ("7 % -3", 1),
        ("-7.5 % 2", -1.5),
        ("2.5 - 1", 1.5),
        ("2.5 + 1", 3.5),
        ("2.5 * 2", 5.0),
        ("-(3)", -3),
        ("18446744073709551615 > 1", True),
        ("1 = 1.0", True),
        ("2 > 1.5", True),
        ('"B" < "a"', True),
        ('"é" > "z"', True),
        ("true > false", True),
        ('cast("NaN" as F64) = cast("NaN" as F64)', False),
        ('cast("NaN" as F64) != cast("NaN" as F64)', True),
        ('cast("NaN" as F64) > 1', False),
        ('not (cast("NaN" as F64) > 1)', True),
        ('cast("NaN" as F64) <= cast("inf" as F64)', False),
        ('cast("NaN" as F64) in [cast("NaN" as F64)]', False),
        ("-0.0 = 0.0", True),
        ('lower("ÀB")', "àb"),
        ('upper("straße")', "STRAßE"),
        ('trim("  a b ")', "a b"),
        ('length("äö")', 2),
        ("length([1, 2])", 2),
        ('concat("a", "b", "c")', "abc"),
        ('substring("hello", 1, 3)', "ell"),
        ('substring("hello", 3)', "lo"),
        ('substring("hello", -3, 2)', "he"),
        ('substring("hello", 9)', ""),
        ('regex_match("hello", "l+o$")', True),
        ('regex_match("hello", "^l")', False),
        ('"hello" contains "ell"', True),
        ('"hello" contains ""', True),
        ('"hello" starts_with "he"', True),
        ("[1, 2] contains 2", True),
        ("3 in [1, 2]", False),
        ("3 not in [1, 2]", True),
        ("3 in []", False),
        ("3 in [1, null]", False),
        ("coalesce(null, 3)", 3),
        ("null is null", True),
        ("7 / 0 is null", True),
        ("7 / 0 > 1", None),
        ("7 / 0 > 1 or true", True),
        ("7 / 0 > 1 and false", False),
        ("not 7 / 0 > 1", None),
        ("[7 / 0] contains 1", False),
        ('year(date("2024-02-29"))', 2024),
        ('month(datetime("2024-02-29T12:30:15Z"))', 2),
        ('hour(datetime("2024-02-29T12:30:15+02:00"))', 10),
        ('hour(date("2024-02-29"))', 0),
        ('date_add(date("2024-02-28"), 1)', DAY),
        ('date_sub(datetime("2024-03-01T12:30:15Z"), 1)', NOON),
        ('date_add(date("9999-12-31"), 1)', None),
        ('days_between(date("2024-01-01"), date("2024-02-01"))', 31),
        ('days_between(datetime("2024-01-02T00:00:00Z"), date("2024-01-01"))', -1),
        ('days_between(date("2024-01-01"), datetime("2024-01-02T23:00:00Z"))', 1),
        ("now()", NOON),
        ('cast("12" as I64)', 12),
        ('cast("x" as I64)', None),
        ('cast("300" as I32)', 300),
        ("cast(3000000000 as I32)", None),
        ("cast(2.9 as I64)", 2),
        ("cast(-2.9 as I64)", -2),
        ("cast(1 as Bool)", True),
        ('cast("true" as Bool)', True),
        ("cast(true as String)", "true"),
        ("cast(1.5 as String)", "1.5"),
        ('cast(date("2024-02-29") as DateTime)', dt.datetime(2024, 2, 29, tzinfo=dt.UTC)),
        ('cast(datetime("2024-02-29T23:00:00-02:00") as Date)', dt.date(2024, 3, 1)),
        ('cast(datetime("2024-02-29T12:30:15Z") as String)', "2024-02-29T12:30:15.000Z"),
        ('cast(datetime("0007-01-02T00:00:00Z") as String)', "0007-01-02T00:00:00.000Z"),
        ('cast("2024-02-29" as Date)', DAY),
    ],
)
def test_value(text: str, value: Any) -> None:
    found = value_of(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "text", ["9223372036854775807 + 1", "-9223372036854775808 - 1", "9223372036854775807 * 2"]
)
def test_integers_do_not_wrap(text: str) -> None:
    with pytest.raises(ArithmeticOverflow):
        value_of(text)


def test_an_entity_is_its_type_and_id() -> None:
    row = {("a", "id"): "1", ("b", "id"): "1", ("a", "type"): "A", ("b", "type"): "B"}
    assert evaluate(ir.Same("a", "b"), Bound(), row) is False
    assert evaluate(ir.Same("a", "a"), Bound(), row) is True
    assert evaluate(ir.Same("a", "b"), Bound(), {**row, ("b", "id"): None}) is None


@given(st.text(max_size=30))
def test_any_text_can_be_cast_to_a_value_or_null(text: str) -> None:
    assert cast_value(text, ir.STRING) == text
    for scalar in set(Scalar) - {Scalar.BLOB, Scalar.STRING}:
        assert not isinstance(cast_value(text, PropType(scalar)), str)


@pytest.mark.parametrize(
    ("value", "scalar", "expected"),
    [
        (NOON, Scalar.DATE, DAY),
        (DAY, Scalar.DATE, DAY),
        (DAY, Scalar.DATETIME, dt.datetime(2024, 2, 29, tzinfo=dt.UTC)),
        (NOON, Scalar.STRING, "2024-02-29T12:30:15.000Z"),
        (DAY, Scalar.STRING, "2024-02-29"),
        (DAY, Scalar.I64, None),
        (NOON, Scalar.F64, None),
        (1.5, Scalar.BOOL, None),
        (0, Scalar.BOOL, False),
        (7, Scalar.DATE, None),
        (7, Scalar.DATETIME, None),
        (1e300, Scalar.F32, None),
        (2.9, Scalar.I64, 2),
        (float("inf"), Scalar.I64, None),
        (2**40, Scalar.I32, None),
        (True, Scalar.F64, 1.0),
        (" +7 ", Scalar.I32, 7),
        ("1_000", Scalar.F64, None),
        ("1e999", Scalar.F64, None),
        ("TRUE", Scalar.BOOL, True),
    ],
)
def test_values_of_one_type_become_values_of_another_or_null(
    value: Any, scalar: Scalar, expected: Any
) -> None:
    assert cast_value(value, PropType(scalar)) == expected


def test_times_are_read_to_the_millisecond() -> None:
    found = parse_datetime("2024-02-29t12:30:15.9999z")
    assert found == NOON.replace(microsecond=999_000)
    assert parse_datetime("0001-01-01T00:00:00+05:00") is None
