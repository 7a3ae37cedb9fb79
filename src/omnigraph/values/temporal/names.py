"""The names of the kinds of temporal values, and of their operations."""

from __future__ import annotations

from enum import Enum, StrEnum


class TemporalKind(StrEnum):
    """The kinds of temporal values, by the names types have."""

    DATE = "Date"
    LOCAL_TIME = "LocalTime"
    TIME = "Time"
    LOCAL_DATETIME = "LocalDateTime"
    DATETIME = "ZonedDateTime"
    DURATION = "Duration"


class TemporalOp(Enum):
    """Operations with the meaning of their arguments; `names` are beside them."""

    READ = "read"  # (text)
    MAKE = "make"  # (values of the parts `names`)
    MAKE_OF_KNOWN = (
        "make_of_known"  # (values of the parts `names`): a null is a part that is missing
    )
    CONVERT = "convert"  # (temporal value): what it has of the kind
    PART = "part"  # (temporal value): the part names[0]
    TRUNCATE = "truncate"  # (unit, temporal value, values of the parts `names`)
    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"  # (duration, number), in any order
    DIVIDE = "/"  # (duration, number)
    BETWEEN = "between"  # (from, to), like the three below
    IN_MONTHS = "in_months"
    IN_DAYS = "in_days"
    IN_SECONDS = "in_seconds"
    TEXT = "text"  # (temporal value)
    MOMENT = "moment"  # (DateTime or time): in UTC, which comparisons look at
    INSTANT = "instant"  # (date-time): as a DateTime property compares, truncated to microseconds
    INSTANT_UP = "instant_up"  # (date-time): the same, rounded up
    STORE = "store"  # (date-time): as a DateTime property holds it
