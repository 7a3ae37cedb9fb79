"""Disturb the n-th durable write of an operation, whatever it is: die before it, die after it, or lose the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from omnigraph.core.repository import Repository
from omnigraph.errors import StoreOutcomeUnknown
from tests.support.worlds import disturbed

WRITES = ("put_new", "put", "delete", "file")


class Died(BaseException):
    """The process is gone: nothing may catch this."""


class Fault(Enum):
    DIE_BEFORE = "die before the write"
    DIE_AFTER = "die right after the write"
    LOSE_ANSWER = "the write happens, the answer is lost"
    LOSE_REQUEST = "the write never arrives, and neither does an answer"


@dataclass
class Disturbance:
    """Counts writes and strikes at one of them. Table files are written by Lance, which retries by itself."""

    fault: Fault | None = None
    at: int = -1
    writes: int = 0
    struck: str | None = None

    def before(self, verb: str, key: str) -> None:
        if verb not in WRITES:
            return
        self.writes += 1
        if self.writes - 1 != self.at:
            return
        self.struck = f"{verb} {key}"
        if self.fault is Fault.DIE_BEFORE:
            raise Died
        if self.fault is Fault.LOSE_REQUEST and verb == "put_new":
            raise StoreOutcomeUnknown(f"no answer for {key}")

    def after(self, verb: str, key: str) -> None:
        if verb not in WRITES or self.writes - 1 != self.at:
            return
        if self.fault is Fault.DIE_AFTER:
            raise Died
        if self.fault is Fault.LOSE_ANSWER and verb == "put_new":
            raise StoreOutcomeUnknown(f"no answer for {key}")


def count_writes(repo: Repository, operation: Callable[[Repository], object]) -> int:
    """How many durable writes an operation makes when nothing goes wrong."""
    quiet = Disturbance()
    operation(disturbed(repo, quiet.before, quiet.after))
    return quiet.writes


def strike(
    repo: Repository, operation: Callable[[Repository], object], fault: Fault, at: int
) -> tuple[bool, Disturbance]:
    """Run an operation with one fault; whether it was acknowledged, and what was struck."""
    storm = Disturbance(fault, at)
    try:
        operation(disturbed(repo, storm.before, storm.after))
    except Died:
        return False, storm
    return True, storm
