"""Values for parameters: what is accepted, and what is said about the rest."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pytest

from omnigraph.lang import ir
from omnigraph.lang.query import ParamInvalid, ParamMissing, bind_params, compile_query
from omnigraph.model.instants import EPOCH

from .casefile import harbour


def declared(kind: str) -> ir.Query:
    return compile_query(
        f"query q($x: {kind}) {{ match {{ $p: Port }} return {{ $p.code }} }}", harbour()
    )


MOMENT = dt.datetime(2024, 5, 31, 10, 0, 0, 123_000, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("kind", "given", "bound"),
    [
        ("String", "a", "a"),
        ("Bool", True, True),
        ("I32", -5, -5),
        ("I64", "9223372036854775807", 2**63 - 1),
        ("U64", 2**64 - 1, 2**64 - 1),
        ("U64", "18446744073709551615", 2**64 - 1),
        ("F64", 3, 3.0),
        ("F32", 0.1, 0.10000000149011612),
        ("Date", "2024-05-31", dt.date(2024, 5, 31)),
        ("Date", dt.date(2024, 5, 31), dt.date(2024, 5, 31)),
        ("DateTime", "2024-05-31T12:00:00.1239+02:00", MOMENT),
        ("DateTime", MOMENT.replace(microsecond=123_999), MOMENT),
        ("DateTime", "2024-05-31", dt.datetime(2024, 5, 31, tzinfo=dt.UTC)),
        ("[I64]", [1, "2"], (1, 2)),
        ("F64", "NaN", float("nan")),
        ("F64", float("inf"), float("inf")),
        ("Date", 1, dt.date(1970, 1, 2)),
        ("DateTime", dt.date(2024, 5, 31), dt.datetime(2024, 5, 31, tzinfo=dt.UTC)),
        ("String", uuid.UUID(int=0), str(uuid.UUID(int=0))),
        ("F64", Decimal("1.5"), 1.5),
        ("[String]?", None, None),
        ("Vector(2)", [1, 0.5], (1.0, 0.5)),
        ("String?", None, None),
    ],
)
def test_accepted(kind: str, given: Any, bound: Any) -> None:
    found = bind_params(declared(kind), {"x": given}).values["x"]
    assert repr(found) == repr(bound)


@pytest.mark.parametrize(
    ("kind", "given", "words"),
    [
        ("String", 3, "the number 3"),
        ("Bool", 1, "true or false"),
        ("I32", 2**31, "from"),
        ("I32", 1.0, "whole number"),
        ("I32", "2", "whole number"),
        ("[I32]", [1, None], "null"),
        ("I32", True, "boolean"),
        ("I64", "12x", "whole number"),
        ("I64", "--12", "whole number"),
        ("I64", "9" * 5000, "from"),
        ("U32", -1, "from"),
        ("U64", 2**64, "from"),
        ("F32", 1e39, "too large"),
        ("F64", "1", "the text"),
        ("Date", "2024-13-01", "date"),
        ("Date", MOMENT, "date"),
        ("DateTime", "noon", "time"),
        ("DateTime", dt.datetime(2024, 1, 1), "time zone"),
        ("DateTime", dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=1))), "years"),
        ("[I32]", "12", "a list"),
        ("[I32]", [1, "x"], "whole number"),
        ("Vector(2)", [1], "2 numbers, got 1"),
        ("Vector(2)", "ab", "list of 2 numbers"),
        ("Vector(2)", [1.0, 1e39], "too large"),
        ("Vector(2)", [1.0, float("nan")], "finite"),
        ("String", None, "got null"),
        ("String", {"a": 1}, "an object"),
    ],
)
def test_refused(kind: str, given: Any, words: str) -> None:
    with pytest.raises(ParamInvalid) as caught:
        bind_params(declared(kind), {"x": given})
    assert words in caught.value.message
    assert "$x" in caught.value.message
    [found] = caught.value.details["violations"]
    assert (caught.value.details["param"], found["property"]) == ("x", "x")
    assert found["message"] == caught.value.message


def test_a_missing_parameter_is_always_an_error() -> None:
    with pytest.raises(ParamMissing) as caught:
        bind_params(declared("String"), {"xx": "a"})
    assert "did you mean `x`" in caught.value.help


def test_undeclared_names_are_ignored_and_nullable_ones_default_to_null() -> None:
    assert bind_params(declared("I32?"), {"other": {}}).values == {"x": None}


def test_the_time_of_the_query_can_be_preset() -> None:
    query = declared("I32?")
    assert bind_params(query).now == EPOCH
    assert bind_params(query, now=MOMENT.replace(microsecond=123_456)).now == MOMENT
    assert bind_params(query, {"__nanograph_now": "2024-05-31T10:00:00.123Z"}).now == MOMENT
