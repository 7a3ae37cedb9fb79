"""Times survive being stored as microseconds, in every year and to the last digit."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from omnigraph.model.instants import micros_of, time_of


@pytest.mark.parametrize(
    "micros", [0, -1, 2246310554543852, 2180971630210088, -9_999_999_999_999_999]
)
def test_there_and_back(micros: int) -> None:
    assert micros_of(time_of(micros)) == micros


def test_the_first_and_the_last_moment() -> None:
    for time in (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)):
        assert time_of(micros_of(time)) == time
