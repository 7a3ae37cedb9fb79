"""Functions of mathematics, texts and lists for Cypher: for one value, and on whole columns."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from omnigraph.expressions.lists import Lists, Mask
from omnigraph.lang.ir import Function

Floats = npt.NDArray[np.float64]

FLOATS_ONLY: Mapping[Function, Callable[..., Any]] = {
    Function.POWER: np.power,
    Function.SQRT: np.sqrt,
    Function.EXP: np.exp,
    Function.LOG: np.log,
    Function.LOG10: np.log10,
    Function.SIN: np.sin,
    Function.COS: np.cos,
    Function.TAN: np.tan,
    Function.COT: lambda x: 1 / np.tan(x),
    Function.ASIN: np.arcsin,
    Function.ACOS: np.arccos,
    Function.ATAN: np.arctan,
    Function.ATAN2: np.arctan2,
    Function.DEGREES: np.degrees,
    Function.RADIANS: np.radians,
}


def _of_numbers(function: Function) -> Callable[..., float | None]:
    def compute(*args: float) -> float | None:
        with np.errstate(all="ignore"):
            found = float(FLOATS_ONLY[function](*(np.float64(arg) for arg in args)))
        return None if math.isnan(found) and not any(map(math.isnan, args)) else found

    return compute


def _quotient(a: int, b: int) -> int | None:
    return None if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


# --- lists of numbers ----------------------------------------------------------------------------------------------


def _members(given: Lists) -> Floats:
    found: Floats = given.members.to_numpy(zero_copy_only=False).astype(np.float64)
    return found


def _deviation(of_all: bool) -> Callable[[Lists, Floats], tuple[Floats, Mask]]:
    def compute(given: Lists, _: Floats) -> tuple[Floats, Mask]:
        owners, counts = given.owners, given.counts
        numbers, rows = _members(given), len(counts)
        mean = np.bincount(owners, numbers, rows) / np.maximum(counts, 1)
        squares = np.bincount(owners, (numbers - mean[owners]) ** 2, rows)
        return np.sqrt(squares / np.maximum(counts - (0 if of_all else 1), 1)), given.valid

    return compute


def _discrete(given: Lists, share: Floats) -> tuple[Floats, Mask]:
    """The percentile of a list: the first value that at least this share does not exceed."""
    place = np.maximum(np.ceil(share * given.counts).astype(np.int64) - 1, 0)
    return _at(given, place), given.counts > 0


def _continuous(given: Lists, share: Floats) -> tuple[Floats, Mask]:
    """Interpolated between the two nearest values."""
    exact = share * np.maximum(given.counts - 1, 0)
    low = np.floor(exact).astype(np.int64)
    below = _at(given, low)
    above = _at(given, np.ceil(exact).astype(np.int64))
    return below + (above - below) * (exact - low), given.counts > 0


def _at(given: Lists, place: npt.NDArray[np.int64]) -> Floats:
    numbers = _members(given)
    if not len(numbers):
        return np.zeros(len(given.counts))
    place = np.clip(place, 0, np.maximum(given.counts - 1, 0))
    found: Floats = numbers[np.minimum(given.starts + place, len(numbers) - 1)]
    return found


LISTS_ONLY: Mapping[Function, Callable[[Lists, Floats], tuple[Floats, Mask]]] = {
    Function.DEVIATION: _deviation(of_all=False),
    Function.DEVIATION_OF_ALL: _deviation(of_all=True),
    Function.PERCENTILE_DISC: _discrete,
    Function.PERCENTILE_CONT: _continuous,
}


# --- for one row ---------------------------------------------------------------------------------------------------


def _replace(text: str, what: str, by: str) -> str:
    return text.replace(what, by) if what else text


def _split(text: str, separator: str) -> tuple[str, ...]:
    return tuple(text.split(separator)) if separator else tuple(text)


def _reversed(value: Sequence[Any]) -> Sequence[Any]:
    return value[::-1]


def _epoch_millis(moment: dt.datetime) -> int:
    return math.floor(moment.timestamp() * 1000)


MATHEMATICS: Mapping[Function, Callable[..., Any]] = {
    **{function: _of_numbers(function) for function in FLOATS_ONLY},
    Function.QUOTIENT: _quotient,
    Function.ABS: abs,
    Function.CEIL: lambda x: float(math.ceil(x)) if math.isfinite(x) else x,
    Function.FLOOR: lambda x: float(math.floor(x)) if math.isfinite(x) else x,
    Function.ROUND: lambda x: float(math.floor(x + 0.5)) if math.isfinite(x) else x,
    Function.SIGN: lambda x: (x > 0) - (x < 0),
}
TEXTS: Mapping[Function, Callable[..., Any]] = {
    Function.ENDS_WITH: str.endswith,
    Function.LTRIM: str.lstrip,
    Function.RTRIM: str.rstrip,
    Function.REPLACE: _replace,
    Function.SPLIT: _split,
    Function.REVERSE: _reversed,
    Function.LEFT: lambda text, count: text[: max(count, 0)],
    Function.RIGHT: lambda text, count: text[-count:] if count > 0 else "",
    Function.EPOCH_MILLIS: _epoch_millis,
}
