"""The state of a running query: the snapshot, the parameters, the limits and the trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import LimitExceeded
from omnigraph.lang.ir import Bound
from omnigraph.model.catalog import NodeOrEdgeType
from omnigraph.model.frozen import frozen
from omnigraph.read.budget import Budget, Held
from omnigraph.read.cache import SHARED, Cache
from omnigraph.read.columns import TableColumns, columns_of
from omnigraph.read.explain import Trace
from omnigraph.read.topology import Topology

LookedUp = dict[str, list[pa.Array] | None]


@frozen
class Handed:
    """Rows that are handed to a query (`ir.Resumed`): columns, and slots of entities as ids and names of types."""

    n: int
    columns: Mapping[str, pa.Array]
    slots: Mapping[str, tuple[pa.Array, pa.Array]]


@dataclass(slots=True)
class Context:
    """One run of one query."""

    snapshot: Snapshot
    bound: Bound
    cache: Cache = SHARED
    budget: Budget = field(default_factory=Budget)
    max_rows: int | None = None
    trace: Trace | None = None
    handed: Handed | None = None
    # By variable, if requested: the ids that were looked up, or None for any.
    looked_up: LookedUp | None = None
    numbers: dict[str, int] = field(default_factory=dict)  # of types, in references to entities
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

    def kind(self, type_name: str, edge: bool = False) -> NodeOrEdgeType:
        catalog = self.snapshot.catalog
        return catalog.edges[type_name] if edge else catalog.nodes[type_name]

    def check(self) -> None:
        """Stop here when the time is over or the query was cancelled."""
        self.budget.check()

    def sizes(self, early: bool = False) -> Iterator[int]:
        """How many rows the next block may have."""
        return self.budget.sizes(early)

    def hold(self, operator: str) -> Held:
        """An account for what an operator holds."""
        return Held(self.budget, operator)

    def admit(self, rows: int) -> None:
        """Refuse a result with more rows than the caller allows."""
        admit_rows(rows, self.max_rows)

    def note(self, **facts: Any) -> None:
        """Record for `explain` how the current operator is executed."""
        if self.trace is not None:
            self.trace.note(**facts)


def admit_rows(rows: int, max_rows: int | None) -> None:
    """Refuse a result with more rows than the caller allows."""
    if max_rows is not None and rows > max_rows:
        raise LimitExceeded(
            f"the result has more than the {max_rows:,} rows allowed",
            help="Add a limit, narrow the query, or raise max_rows.",
            details={"limit": "max_rows", "limit_value": max_rows, "observed": max_rows + 1},
        )
