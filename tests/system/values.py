"""What cells hold: values worth trying for each type, and when two of them are the same."""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

TEXTS = (
    "",
    "a",
    "b",
    "B",
    " ",
    "null",
    "None",
    "0",
    "caf\u00e9",  # composed
    "cafe\u0301",  # the same letters, decomposed
    "\u212a",  # KELVIN SIGN, which normalises to K
    "K",
    "\u05e9\u05dc\u05d5\u05dd",  # from right to left
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",  # a family, joined
    "\U0002f81a",  # outside the basic plane, and normalised to another letter
    "a\u0323\u0307b\u0307\u0323",  # marks in two orders
    "\u202etxt",
    "line\nbreak\ttab",
    'quote " and \\ slash',
    "base64:SGVsbG8=",
    "\x00",
    "x" * 5_000,
    "é" * 700,
)
FLOATS = (0.0, -0.0, 1.5, -2.25, math.nan, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, 0.1)
SINGLES = (
    0.0,
    -0.0,
    1.5,
    math.nan,
    math.inf,
    -math.inf,
    3.4028234663852886e38,
    1.401298464324817e-45,
)
DATES = (date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29))
MOMENTS = (
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC),
    EPOCH,
    EPOCH - timedelta(milliseconds=1),
    datetime(2024, 2, 29, 12, 30, 1, 5_000, tzinfo=UTC),
)
INTEGERS = {
    "I32": (0, 1, -1, 7, 2**31 - 1, -(2**31)),
    "I64": (0, 1, -1, 7, 2**63 - 1, -(2**63), 2**53 + 1),
    "U32": (0, 1, 7, 2**32 - 1),
    "U64": (0, 1, 7, 2**64 - 1, 2**63),
}
BLOBS = (b"", b"a", b"\x00\xff" * 40, b"base64:SGVsbG8=", b"z" * 3_000)
POOLS: dict[str, tuple[Any, ...]] = {
    "String": TEXTS,
    "Bool": (True, False),
    **INTEGERS,
    "F64": FLOATS,
    "F32": SINGLES,
    "Date": DATES,
    "DateTime": MOMENTS,
    "Blob": BLOBS,
    "[String]": ([], [""], ["a", "a"], ["e\u0301", "\u00e9"], ["x" * 300]),
    "[I64]": ([], [0], [2**63 - 1, -(2**63)], [1, 1, 2]),
    "[F64]": ([], [math.nan], [-0.0, 1.5], [math.inf, -math.inf]),
    "Vector(2)": ([1.0, 0.0], [0.5, -2.5], [3.0, 4.0]),
}
NUMBERS = (*INTEGERS, "F32", "F64")
PLAIN = ("String", "I32", "I64", "Bool")  # types whose equality nobody argues about
TYPES = tuple(POOLS)
WIDENINGS = frozenset(
    {("I32", "I64"), ("U32", "U64"), ("U32", "I64"), ("F32", "F64"), ("I32", "F64")}
)


def draw(random: Random, type_name: str, enum: tuple[str, ...] = ()) -> Any:
    """A value of a type."""
    return random.choice(enum if type_name == "enum" else POOLS[type_name])


def widened(value: Any, type_name: str) -> Any:
    """A value in another type of number, which it has to fit."""
    if value is None or isinstance(value, EitherZero) or type_name not in NUMBERS:
        return value
    return float(value) if type_name in ("F64", "F32") else int(value)


def is_of(value: Any, type_name: str) -> bool:
    """Whether a value was drawn for a type like this; a program may have meant another property of the name."""
    if value is None or isinstance(value, EitherZero):
        return True
    if type_name in NUMBERS:
        return type(value) in (int, float) and fits(value, type_name)
    if isinstance(value, list):
        members = {"[String]": str, "[I64]": int, "[F64]": float, "Vector(2)": float}.get(type_name)
        counted = type_name != "Vector(2)" or len(value) == 2
        return counted and members is not None and all(type(m) is members for m in value)
    return type(value) is type(POOLS["String" if type_name == "enum" else type_name][0])


def fits(value: Any, type_name: str) -> bool:
    """Whether a value is one of a type of numbers; a widening may have to be taken back."""
    if value is None or type_name not in NUMBERS or isinstance(value, EitherZero):
        return True
    if type_name == "F32":
        return not math.isfinite(value) or _is_single(value)
    if type_name == "F64":
        return bool(float(value) == value or math.isnan(value))
    if isinstance(value, float) and not value.is_integer():
        return False
    return bool(min(INTEGERS[type_name]) <= value <= max(INTEGERS[type_name]))


def _is_single(value: float) -> bool:
    try:
        return bool(struct.unpack("<f", struct.pack("<f", value))[0] == value)
    except OverflowError:
        return False


class EitherZero:
    """What a cell holds where two states agreed that it is zero and not on its sign."""

    def __repr__(self) -> str:
        return "EITHER_ZERO"


EITHER_ZERO = EitherZero()


def stored(value: Any) -> Any:
    """A value in a form in which two are equal exactly if the same bits are stored; every NaN is one."""
    match value:
        case EitherZero():
            return ("zero",)
        case float() if math.isnan(value):
            return ("nan",)
        case float():
            return ("float", struct.pack("<d", value))
        case bool():
            return ("bool", value)
        case datetime():
            return ("moment", (value.astimezone(UTC) - EPOCH) // timedelta(milliseconds=1))
        case date():
            return ("day", value.toordinal())
        case bytes() | bytearray() | memoryview():
            return ("bytes", bytes(value))
        case list() | tuple():
            return ("list", *map(stored, value))
        case _:
            return value


def same(one: Any, other: Any) -> bool:
    """Whether merges and diffs take two values for the same: both zeros are, and NaN is itself."""
    return bool(_compared(one) == _compared(other))


def _compared(value: Any) -> Any:
    match value:
        case EitherZero():
            return stored(0.0)
        case float() if value == 0.0:
            return stored(0.0)
        case list() | tuple():
            return ("list", *map(_compared, value))
        case _:
            return stored(value)


def shows(found: Any, expected: Any) -> bool:
    """Whether what was read is what is expected."""
    if expected is EITHER_ZERO:
        return isinstance(found, float) and found == 0.0
    return bool(stored(found) == stored(expected))
