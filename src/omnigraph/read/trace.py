"""Recording what a run did, operator by operator; `explain.py` renders it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from omnigraph.storage import metrics


@dataclass(slots=True)
class Measured:
    """One operator of the plan as it ran."""

    name: str
    detail: str
    rows: int | None = None
    stands_for: int | None = None  # rows, weights counted
    seconds: float = 0.0
    requests: int = 0
    bytes_read: int = 0
    facts: dict[str, Any] = field(default_factory=dict)
    inputs: list[Measured] = field(default_factory=list)


class Trace:
    """The tree of operators under measurement."""

    def __init__(self) -> None:
        self.root = Measured("Query", "")
        self._stack = [self.root]

    @contextmanager
    def operator(self, name: str, detail: str) -> Iterator[Measured]:
        """Measure everything done inside, and what runs below it as its inputs."""
        measured = Measured(name, detail)
        self._stack[-1].inputs.append(measured)
        self._stack.append(measured)
        started = time.perf_counter()
        try:
            with metrics.operation("read operator") as cost:
                yield measured
        finally:
            measured.seconds = time.perf_counter() - started
            measured.requests, measured.bytes_read = cost.ops, cost.bytes_read
            self._stack.pop()

    def note(self, **facts: Any) -> None:
        self._stack[-1].facts.update(facts)
