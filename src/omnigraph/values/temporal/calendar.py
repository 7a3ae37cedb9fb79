"""The proleptic Gregorian calendar in whole numbers, for years far outside those of `datetime`.

Days count from 1970-01-01.
"""

from __future__ import annotations

CYCLE_DAYS = 146_097  # of 400 years, after which months and weekdays repeat
CYCLE_YEARS = 400
MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
EPOCH_ORDINAL = 719_163  # of 1970-01-01 in `date.toordinal`


def is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def month_days(year: int, month: int) -> int:
    """The number of days in a month."""
    return 29 if month == 2 and is_leap(year) else MONTH_DAYS[month - 1]


def days_of(year: int, month: int, day: int) -> int:
    """The number of a day."""
    shifted = year - (month <= 2)  # years that begin with March
    cycle, rest = divmod(shifted, CYCLE_YEARS)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return cycle * CYCLE_DAYS + rest * 365 + rest // 4 - rest // 100 + of_year - 719_468


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number."""
    cycle, rest = divmod(days + 719_468, CYCLE_DAYS)
    of_cycle = (rest - rest // 1460 + rest // 36_524 - rest // 146_096) // 365
    of_year = rest - (365 * of_cycle + of_cycle // 4 - of_cycle // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + (3 if shifted < 10 else -9)
    day = of_year - (153 * shifted + 2) // 5 + 1
    return cycle * CYCLE_YEARS + of_cycle + (month <= 2), month, day


def weekday(days: int) -> int:
    """From 1, a Monday, to 7."""
    return (days + 3) % 7 + 1


def week_year_start(year: int) -> int:
    """The Monday of the week with the fourth of January."""
    fourth = days_of(year, 1, 4)
    return fourth - weekday(fourth) + 1


def week_of(days: int) -> tuple[int, int]:
    """The year a week belongs to, and its number."""
    year = civil(days - weekday(days) + 4)[0]  # that of its Thursday
    return year, (days - week_year_start(year)) // 7 + 1


def weeks_in(year: int) -> int:
    return (week_year_start(year + 1) - week_year_start(year)) // 7


def quarter_start(year: int, quarter: int) -> int:
    return days_of(year, quarter * 3 - 2, 1)


def plus_months(days: int, months: int) -> int:
    """The same day of another month, or the last one it has."""
    year, month, day = civil(days)
    year, month = divmod(year * 12 + month - 1 + months, 12)
    return days_of(year, month + 1, min(day, month_days(year, month + 1)))
