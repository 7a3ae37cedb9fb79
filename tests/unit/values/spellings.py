"""Every way to spell a value, and what a property of its type then holds, as `docs/reference/values.md` says."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np


class Refused:
    """No door takes it."""

    def __repr__(self) -> str:
        return "refused"


REFUSED = Refused()
I64_MAX, U64_MAX = 2**63 - 1, 2**64 - 1
NOON = dt.datetime(2025, 12, 31, 12, 0, 0, 123_999, tzinfo=dt.UTC)


class Case(NamedTuple):
    """A type, a JSON value and the JSON shape of what is stored."""

    kind: str
    value: Any
    stored: Any


def cases(
    kind: str, taken: dict[Any, Any] | list[tuple[Any, Any]], refused: list[Any]
) -> list[Case]:
    pairs = taken.items() if isinstance(taken, dict) else taken
    return [Case(kind, v, s) for v, s in pairs] + [Case(kind, v, REFUSED) for v in refused]


DATES = cases(
    "Date",
    {"2025-12-31": "2025-12-31", "0001-01-01": "0001-01-01", "9999-12-31": "9999-12-31",
     0: "1970-01-01", -1: "1969-12-31"},
    ["2025-W01-1", "20251231", "2025-12-32", "2025-02-30", "2025-12-31T00:00:00Z", " 2025-12-31", "2025-12-31 ",
     "2025/12/31",
     "31.12.2025", "0000-01-01", "10000-01-01", "٢٠٢٥-12-31", "noon", "", True, 1.5, 10**12, ["2025-12-31"], {}],
)  # fmt: skip
DATETIMES = cases(
    "DateTime",
    {
        "2025-12-31T23:59:59Z": "2025-12-31T23:59:59.000Z",
        "2025-12-31t23:59:59.1239z": "2025-12-31T23:59:59.123Z",
        "2025-12-31T23:59:59.123456789Z": "2025-12-31T23:59:59.123Z",
        "2025-12-31 23:59": "2025-12-31T23:59:00.000Z",
        "2025-12-31T23:59:59": "2025-12-31T23:59:59.000Z",
        "2025-12-31T23:59:59+0200": "2025-12-31T21:59:59.000Z",
        "2025-12-31T23:59:59-02:30": "2026-01-01T02:29:59.000Z",
        "2025-12-31": "2025-12-31T00:00:00.000Z",
        0: "1970-01-01T00:00:00.000Z",
        -1: "1969-12-31T23:59:59.999Z",
    },
    ["2025-12-31x23:59:59Z", "2025-W01-1T00:00:00Z", "20251231T235959Z", "2025-366", "2016-12-31T23:59:60Z",
     "2025-12-31T24:00:00Z", "2025-12-31T23:60:00Z", "2025-12-31T23:59:59+24:00", "2025-12-31T23:59:59+01:60",
     "2025-12-31T23:59:59 UTC", "2025-12-31T23:59:59[Europe/Rome]", "0001-01-01T00:00:00+01:00", "noon", "", False, 1.5,
     10**17, [], {}],
)  # fmt: skip
STRINGS = cases(
    "String", {"": "", "a": "a", " é\n": " é\n", "1": "1"}, [1, 1.5, True, ["a"], {}, "\ud800"]
)
BOOLS = cases("Bool", [(True, True), (False, False)], [0, 1, 1.0, "true", "false", "", [], {}])
SMALL = [
    case
    for kind, low, high in (("I32", -(2**31), 2**31 - 1), ("U32", 0, 2**32 - 1))
    for case in cases(
        kind,
        {7: 7, low: low, high: high},
        [low - 1, high + 1, 1.0, 1.5, 1e10, "7", "", True, [], {}],
    )
]
WIDE = [
    *cases("I64", {7: 7, "7": 7, "-7": -7, "007": 7, "+7": 7, I64_MAX: I64_MAX, str(I64_MAX): I64_MAX,
                   str(-(2**63)): -(2**63)},
           [I64_MAX + 1, str(I64_MAX + 1), 1.0, 1e18, "1.0", "1e2", "1_000", " 7", "0x10", "--7", "٣",
            "9" * 5000, "", True, [], {}]),
    *cases("U64", {7: 7, "7": 7, "-0": 0, U64_MAX: U64_MAX, str(U64_MAX): U64_MAX},
           [-1, "-1", U64_MAX + 1, str(U64_MAX + 1), 1.0, "7.0", "1_000", "0x10", "", False, [], {}]),
]  # fmt: skip
FLOATS = [
    case
    for kind in ("F32", "F64")
    for case in cases(
        kind,
        {1: 1.0, 1.5: 1.5, -0.0: -0.0, 2**60: 2.0**60, "NaN": "NaN", "Infinity": "Infinity", "-Infinity": "-Infinity"},
        ["nan", "inf", "-inf", "infinity", "+Infinity", "1.5", "1_0", "", True, [], {}, 10**400],
    )
] + cases("F32", [], [1e39, -1e39, 10**39])  # fmt: skip
LISTS = [
    *cases(
        "[I64]",
        [([], []), ([1, 2], [1, 2]), (["1"], [1])],
        [1, "1", [None], [1, None], [1.5], [[1]], {}],
    ),
    *cases("[String]", [(["", "a"], ["", "a"])], ["a", [1], [None], {"a": 1}]),
    *cases(
        "[F64]",
        [([1, 0.5], [1.0, 0.5]), (["NaN", "Infinity"], ["NaN", "Infinity"])],
        [["1"], [None]],
    ),
    *cases("[Date]", [(["2025-12-31"], ["2025-12-31"])], [["2025-W01-1"], [None]]),
    *cases("[Bool]", [([True], [True])], [[1], ["true"]]),
]
VECTORS = cases(
    "Vector(2)",
    [([1, 0.5], [1.0, 0.5]), ([0.1, 0.2], [0.10000000149011612, 0.20000000298023224])],
    [[1], [1, 2, 3], [], [1, None], [1, "2"], [1, "NaN"], [1.0, 1e39], [1, True], "1,2", 1, {}],
)
BLOBS = cases(
    "Blob",
    {"base64:aGk=": b"hi", "base64:": b""},
    ["base64:***", "base64:aGk", "aGk=", "data:text/plain;base64,aGk=", "https://example.com/x", "/etc/hostname",
     "", 5, True, [], {}],
)  # fmt: skip
ENUMS = cases("enum(glad, sad)", {"glad": "glad"}, ["other", "GLAD", "", 1, True, [], {}])
JSON = [
    *DATES,
    *DATETIMES,
    *STRINGS,
    *BOOLS,
    *SMALL,
    *WIDE,
    *FLOATS,
    *LISTS,
    *VECTORS,
    *BLOBS,
    *ENUMS,
]

# What only Python can hold, at the doors that take Python values: records, parameters and resolutions.
PYTHON = [
    *cases("Date", [(dt.date(2025, 12, 31), "2025-12-31")], [NOON]),
    *cases("DateTime", [(NOON, "2025-12-31T12:00:00.123Z"), (dt.date(2025, 12, 31), "2025-12-31T00:00:00.000Z")],
           [NOON.replace(tzinfo=None), dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=1)))]),
    *cases("String", [(uuid.UUID(int=0), str(uuid.UUID(int=0))), (np.str_("a"), "a")], [object()]),
    *cases("Bool", [(np.True_, True)], [np.int64(1)]),
    *cases("I32", [(np.int64(7), 7), (Decimal(7), 7)], [np.float64(7), Decimal("7.5"), np.int64(2**40)]),
    *cases("F64", [(np.float32(0.5), 0.5), (math.nan, "NaN"), (-math.inf, "-Infinity"),
                   (Decimal("0.5"), 0.5)], [np.bool_(1)]),
    *cases("[I64]", [((1, 2), [1, 2]), (np.array([1, 2]), [1, 2])], [np.array([0.5])]),
    *cases("[F64]", [((math.nan,), ["NaN"])], []),
    *cases("Vector(2)", [(np.array([1.0, 2.0]), [1.0, 2.0]), ((1, 2), [1.0, 2.0])], [[math.nan, 1.0], (1.0, math.inf)]),
    *cases("Blob", [(b"hi", b"hi"), (bytearray(b"hi"), b"hi")], []),
]  # fmt: skip

# Cells of CSV are texts: what is a number or a boolean elsewhere is spelt here.
CELLS = [
    *cases("Bool", {"true": True, "True": True, "FALSE": False, "1": True, "0": False}, ["yes", "t", "2", " true"]),
    *cases("I32", {"7": 7, "-7": -7, "007": 7, "+7": 7}, ["7.0", "1e2", "1_000", "0x10", "0X10", " 7",
                                                         "2147483648", "seven"]),
    *cases("U32", {"7": 7, "-0": 0}, ["-1", "4294967296"]),
    *cases("F64", {"7": 7.0, "+.5": 0.5, "5.": 5.0, "1e2": 100.0, "nan": "NaN", "NaN": "NaN",
                   "-inf": "-Infinity", "Infinity": "Infinity"},
           ["1e999", "-1e999", "1_0", "0x10", " 1", "1,5", "nan(1)"]),
    *cases("F32", {"0.1": 0.10000000149011612, "inf": "Infinity"}, ["1e39", "1e999"]),
    *cases("[I64]", {"[1, 2]": [1, 2], "[]": []}, ["1,2", "[1,]", "{}", "[null]"]),
    *cases("Vector(2)", {"[1, 0.5]": [1.0, 0.5]}, ["[1]", "1 2", "[1e999, 0]"]),
    *cases("String", {"1": "1", "true": "true", "null": "null"}, []),
    *cases("Date", {}, ["0", "19000"]),
]  # fmt: skip
