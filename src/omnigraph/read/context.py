"""What a running query carries along: the snapshot, the parameters, the limits and the trace."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import Cancelled, DeadlineExceeded, LimitExceeded
from omnigraph.lang.evaluate import Bound
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.read.cache import SHARED, Cache
from omnigraph.read.columns import TableColumns, columns_of
from omnigraph.read.topology import Topology
from omnigraph.read.trace import Trace

ROWS_HELD_MAX = 200_000_000  # bindings of one operator's rows; about a gigabyte of positions


@dataclass(slots=True)
class Context:
    """One run of one query."""

    snapshot: Snapshot
    bound: Bound
    cache: Cache = SHARED
    deadline: float | None = None  # of time.monotonic()
    seconds: float | None = None
    rows_held_max: int = ROWS_HELD_MAX
    cancelled: Callable[[], bool] | None = None
    trace: Trace | None = None
    topologies: dict[str, Topology] = field(default_factory=dict)  # by edge type, as far as used
    _columns: dict[tuple[str, bool], TableColumns] = field(default_factory=dict)

    def columns(self, type_name: str, edge: bool = False) -> TableColumns:
        """The columns of a node or edge type, as the snapshot has them."""
        key = (type_name, edge)
        found = self._columns.get(key)
        if found is None:
            found = columns_of(self.snapshot, self.kind(type_name, edge), self.cache)
            self._columns[key] = found
        return found

    def kind(self, type_name: str, edge: bool = False) -> NodeType | EdgeType:
        catalog = self.snapshot.catalog
        return catalog.edges[type_name] if edge else catalog.nodes[type_name]

    def check(self) -> None:
        """Stop here when the time is over or nobody wants the answer any more."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise DeadlineExceeded(
                f"the query did not finish within {self.seconds} s",
                help="Allow more time with timeout=, or ask for less.",
                details={"limit": "timeout", "limit_seconds": self.seconds},
            )
        if self.cancelled is not None and self.cancelled():
            raise Cancelled("the query was cancelled")

    def admit(self, rows: int, width: int = 1) -> None:
        """Refuse to hold more intermediate rows than allowed, before memory is taken for them."""
        if rows * width > self.rows_held_max:
            raise LimitExceeded(
                f"the query would hold {rows:,} intermediate rows of {width} bindings",
                help="Filter earlier, or aggregate: counts over patterns need no rows.",
                details={
                    "limit": "rows_held_max",
                    "limit_value": self.rows_held_max,
                    "observed": rows * width,
                },
            )

    def note(self, **facts: Any) -> None:
        """Tell `explain` how the operator at hand is being done."""
        if self.trace is not None:
            self.trace.note(**facts)
