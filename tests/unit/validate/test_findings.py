"""What a report carries of a value: all of a short one, the beginning of a long one, nothing JSON cannot hold."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import pytest

from omnigraph.validate.findings import (
    SHOWN_CHARACTERS_MAX,
    VALUE_CHARACTERS_MAX,
    VALUE_MEMBERS_MAX,
    plain,
    shown,
)

MOMENT = dt.datetime(2024, 5, 6, 7, 8, 9, 123_456, tzinfo=dt.timezone(dt.timedelta(hours=2)))


@pytest.mark.parametrize(
    ("value", "carried"),
    [
        ("short", "short"),
        (7, 7),
        (None, None),
        (1.5, 1.5),
        (math.inf, "inf"),
        (dt.date(2024, 5, 6), "2024-05-06"),
        (MOMENT, "2024-05-06T05:08:09.123Z"),
        (b"abc", "3 bytes"),
        ([dt.date(2024, 5, 6), b""], ["2024-05-06", "0 bytes"]),
    ],
)
def test_a_value_is_carried_as_json(value: Any, carried: Any) -> None:
    assert plain(value) == carried


def test_long_texts_and_lists_are_cut_to_their_bound() -> None:
    assert plain("x" * VALUE_CHARACTERS_MAX) == "x" * VALUE_CHARACTERS_MAX
    cut = plain("x" * (VALUE_CHARACTERS_MAX + 1))
    assert len(cut) == VALUE_CHARACTERS_MAX
    assert cut.endswith("x...")
    assert plain(list(range(100))) == list(range(VALUE_MEMBERS_MAX))


def test_messages_show_less() -> None:
    fits = "x" * (SHOWN_CHARACTERS_MAX - 2)  # and two quotes
    assert shown(fits) == f"'{fits}'"
    assert len(shown(fits + "x")) == SHOWN_CHARACTERS_MAX
    assert shown(fits + "x").endswith("...")
    assert shown(12) == "12"
