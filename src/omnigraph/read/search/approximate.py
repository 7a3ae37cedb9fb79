"""The nearest vectors through a stored index: most of them, and each with its exact distance.

The index of the table store names rows that are likely near; the store compares rows outside the index exactly, so
every row can be found. Here candidates are compared exactly, as any other position. Conditions and traversals come
first: when they leave few rows, those are compared without an index; when they leave many, more candidates are
requested, and if too few of them are among those left, all of those are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from omnigraph.lang import ir
from omnigraph.model.frozen import frozen
from omnigraph.read.columns import TableColumns
from omnigraph.read.search.source import Positions
from omnigraph.read.search.vectors import Float32s, Float64s, nearest, nearest_alone
from omnigraph.storage.tables import VectorTable

INDEX_ROWS_MIN = 20_000  # exact distances to fewer are computed faster
CANDIDATES = 10  # rows compared for each that is wanted
PROBES = (
    20  # partitions of the index that are read; it has at most 256, however many rows there are
)
FILTERED_PART = 8  # above one row in this many, more candidates are requested and filtered


@frozen
class _Index:
    """The index on a column."""

    table: VectorTable
    kind: str
    covered_rows: int


def approximate(
    columns: TableColumns,
    prop: str,
    vector: Sequence[float] | Float32s,
    metric: ir.Metric,
    *,
    count: int,
    positions: Positions | None = None,
    note: Callable[..., None],
) -> tuple[Positions, Float64s]:
    """See `nearest`. Notes how it was done."""
    index = _index(columns, prop, metric)
    few = positions is not None and len(positions) * FILTERED_PART < columns.n
    if index is None or few:
        note(vectors="exact: few rows" if few else "exact: no index")
        return nearest(columns, prop, vector, metric, count=count, positions=positions)
    share = 1.0 if positions is None else len(positions) / columns.n
    wanted = min(columns.n, int(np.ceil(count * CANDIDATES / share)))
    found = _candidates(columns, index, prop, vector, wanted)
    if positions is not None:
        found = found[np.isin(found, positions)]
    if len(found) < min(count, columns.n):
        note(vectors="exact: too few of the nearest are left")
        return nearest(columns, prop, vector, metric, count=count, positions=positions)
    exactly = columns.rows - index.covered_rows
    note(
        vectors=f"approximate: {index.kind} over {index.covered_rows:,} rows, "
        f"{len(found):,} compared exactly" + (f", and {exactly:,} without index" if exactly else "")
    )
    return nearest_alone(columns, prop, vector, metric, count=count, positions=found)


def _index(columns: TableColumns, prop: str, metric: ir.Metric) -> _Index | None:
    if columns.n < INDEX_ROWS_MIN or not isinstance(columns.table, VectorTable):
        return None
    rows = {f.fragment_id: f.live_rows for f in columns.fragments}
    for index in columns.table.indices():
        if (index.column, index.metric) == (prop, metric.value) and index.kind.startswith("IVF"):
            covered = sum(rows.get(i, 0) for i in index.covered_fragments)
            return _Index(columns.table, index.kind, covered)
    return None


def _candidates(
    columns: TableColumns, index: _Index, prop: str, vector: Sequence[float] | Float32s, wanted: int
) -> Positions:
    query = np.asarray(vector, np.float32).tolist()
    found = np.sort(columns.positions_at(index.table.near(prop, query, wanted, PROBES)))
    kept: Positions = found if columns.live is None else found[columns.live[found]]
    return kept
