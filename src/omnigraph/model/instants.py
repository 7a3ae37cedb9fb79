"""Instants as they are stored, in microseconds since 1970, and as Python has them: exact both ways."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros_of(time: datetime) -> int:
    return (time - EPOCH) // timedelta(microseconds=1)


def time_of(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)
