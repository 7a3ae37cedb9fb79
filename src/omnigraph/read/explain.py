"""How a result was obtained: the record of a run's operators, as text and as data."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from omnigraph.lang import ir
from omnigraph.lang.plan_text import describe, inputs
from omnigraph.read.rows import Rows
from omnigraph.storage import metrics


@dataclass(slots=True)
class Measured:
    """One operator of the plan as it ran; on Spark, which runs many as one, without figures."""

    name: str
    detail: str
    rows: int | None = None
    stands_for: int | None = None  # rows, weights counted
    seconds: float | None = None
    requests: int = 0
    bytes_read: int = 0
    facts: dict[str, Any] = field(default_factory=dict)
    inputs: list[Measured] = field(default_factory=list)
    blocks: int = 0

    def add(self, rows: Rows) -> None:
        """Another block of rows came out of it."""
        self.rows = (self.rows or 0) + rows.n
        self.stands_for = (self.stands_for or 0) + rows.total()
        self.blocks += 1
        if self.blocks > 1:
            self.facts["blocks"] = self.blocks


class Trace:
    """The tree of operators under measurement."""

    def __init__(self) -> None:
        self.root = Measured("Query", "")
        self._stack = [self.root]
        self.memory: tuple[int, int, int] | None = None  # bytes: peak, allowed and spilled

    def operator(self, op: ir.Op, blocks: Iterator[Rows]) -> Iterator[Rows]:
        """The same blocks of rows, measured; what runs below becomes an input."""
        measured = Measured(*describe(op), rows=0, stands_for=0, seconds=0.0)
        self._stack[-1].inputs.append(measured)
        while (rows := self._next(measured, blocks)) is not None:
            measured.add(rows)
            yield rows

    def _next(self, measured: Measured, blocks: Iterator[Rows]) -> Rows | None:
        self._stack.append(measured)
        started = time.perf_counter()
        try:
            with metrics.operation("read operator") as cost:
                return next(blocks, None)
        finally:
            measured.seconds = (measured.seconds or 0.0) + time.perf_counter() - started
            measured.requests += cost.ops
            measured.bytes_read += cost.bytes_read
            self._stack.pop()

    def note(self, **facts: Any) -> None:
        self._stack[-1].facts.update(facts)

    @classmethod
    def of_plan(cls, plan: ir.Op) -> Trace:
        """A plan whose operators are not measured one by one."""
        made = cls()
        made.root.inputs.append(_unmeasured(plan))
        return made


def _unmeasured(op: ir.Op) -> Measured:
    return Measured(*describe(op), inputs=[_unmeasured(part) for part in inputs(op)])


class Explanation:
    """The plan of a finished run: what each operator did, how many rows it made, what it cost."""

    def __init__(self, trace: Trace) -> None:
        self._root = trace.root
        self._memory = trace.memory

    def to_json(self) -> dict[str, Any]:
        """The plan as nested objects; the outermost has the memory of the query."""
        if not self._root.inputs:
            return {}
        names = ("query_memory_bytes", "query_memory_bytes_max", "spilled_bytes")
        memory = dict(zip(names, self._memory or (), strict=False))
        return {**_as_json(self._root.inputs[0]), **memory}

    def __str__(self) -> str:
        lines: list[str] = []
        for measured in self._root.inputs:
            _render(measured, 0, lines)
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from omnigraph.drawing.notebook import operators_html

        return operators_html(self.to_json())


def _as_json(measured: Measured) -> dict[str, Any]:
    return {
        "operator": measured.name,
        "detail": measured.detail,
        "rows": measured.rows,
        "stands_for": measured.stands_for,
        "milliseconds": None if measured.seconds is None else round(measured.seconds * 1e3, 3),
        "requests": measured.requests,
        "bytes_read": measured.bytes_read,
        **measured.facts,
        "inputs": [_as_json(m) for m in measured.inputs],
    }


def _render(measured: Measured, depth: int, lines: list[str]) -> None:
    parts = [f"{'  ' * depth}{measured.name} {measured.detail}".rstrip(), *_figures(measured)]
    lines.append("  ".join(parts))
    for child in measured.inputs:
        _render(child, depth + 1, lines)


def _figures(measured: Measured) -> Iterator[str]:
    if measured.seconds is not None:
        rows = "?" if measured.rows is None else f"{measured.rows:,}"
        if measured.stands_for not in (None, measured.rows):
            rows += f" (for {measured.stands_for:,})"
        noun = "row" if measured.rows == 1 and rows == "1" else "rows"
        yield f"[{rows} {noun}, {measured.seconds * 1e3:.2f} ms]"
    yield from (f"{k.replace('_', ' ')}: {v}" for k, v in measured.facts.items())
    if measured.requests:
        noun = "request" if measured.requests == 1 else "requests"
        yield f"{measured.requests} {noun}, {measured.bytes_read:,} bytes"
