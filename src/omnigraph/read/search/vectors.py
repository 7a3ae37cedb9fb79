"""Exact distances between a query vector and the vectors of a column.

Stored vectors are float32; every sum is made in float64, row by row in the same order wherever the row is, so equal
vectors are equally far and a pre-filter changes no distance. `nearest` first estimates all distances in float32 with a
proven bound of the error, and computes exactly only where the bound leaves a doubt: the answer is that of `distances`.
A column that is not in memory is read piece by piece, of a few positions only their own vectors; one that is
wanted again and fits the cache is loaded. The answers are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.lang import ir
from omnigraph.model.frozen import frozen
from omnigraph.read.arrays import as_matrix
from omnigraph.read.search.source import Bools, Columns, Positions

Float32s = npt.NDArray[np.float32]
Float64s = npt.NDArray[np.float64]
F = TypeVar("F", np.float32, np.float64)

ROWS_PER_BLOCK = 2048  # keeps a block of ordinary vectors in the processor's cache
ESTIMATES_PER_BLOCK = 1 << 14
TAKEN_ROWS = 4096  # read together, where only some vectors are read
SCANNED_PART = 16  # more than one vector in this many are found by reading all
SQUARE_MIN, SQUARE_MAX = (
    1e-30,
    1e30,
)  # squared norms for which float32 neither overflows nor underflows


class VectorInvalid(OmnigraphError):
    """A query vector does not fit the property it is compared with."""

    code, kind = "vector_invalid", Kind.INVALID
    default_help = "Give n finite numbers for a Vector(n); for cosine, not all zero."


def distances(
    columns: Columns,
    prop: str,
    vector: Sequence[float] | Float32s,
    metric: ir.Metric,
    positions: Positions | None = None,
) -> Float64s:
    """How far the vectors at the positions (default: all) are; nan for a null vector, a deleted row or position -1."""
    query = _query(vector, metric, columns, prop)
    count = columns.n if positions is None else len(positions)
    if columns.prefers_column(prop, count):
        return _distances(_vectors(columns, prop), query, metric, positions)
    if positions is not None and len(positions) * SCANNED_PART < columns.n:
        return _distances_alone(columns, prop, query, metric, positions)
    far = np.full(columns.n + 1, np.nan)  # the last one is that of position -1
    for block in _pieces(columns, prop, None):
        far[block.positions] = _distances(block.vectors, query, metric, None)
    return far[:-1] if positions is None else far[positions]


def nearest(
    columns: Columns,
    prop: str,
    vector: Sequence[float] | Float32s,
    metric: ir.Metric,
    *,
    count: int,
    positions: Positions | None = None,
) -> tuple[Positions, Float64s]:
    """The `count` nearest among the positions (default: all), with their distances; null vectors never appear.

    More are returned when several are as far as the last one: the caller breaks that tie. The order is that of the
    positions, not of the distances.
    """
    query = _query(vector, metric, columns, prop)
    wanted = columns.n if positions is None else len(positions)
    if columns.prefers_column(prop, wanted):
        if positions is None:
            return _nearest(_blocks(columns, prop), query, metric, count)
        far = _distances(_vectors(columns, prop), query, metric, positions)
        return _best(positions, far, count)
    if wanted * SCANNED_PART < columns.n and positions is not None:
        return nearest_alone(columns, prop, query, metric, count=count, positions=positions)
    return _nearest(_pieces(columns, prop, positions), query, metric, count)


def nearest_alone(
    columns: Columns,
    prop: str,
    vector: Sequence[float] | Float32s | Float64s,
    metric: ir.Metric,
    *,
    count: int,
    positions: Positions,
) -> tuple[Positions, Float64s]:
    """`nearest` that reads the vectors at the positions, and never the column."""
    query = _query(vector, metric, columns, prop)
    far = _distances_alone(columns, prop, query, metric, positions)
    return _best(positions, far, count)


def _best(positions: Positions, far: Float64s, count: int) -> tuple[Positions, Float64s]:
    near = far <= _smallest(far, count)
    return positions[near], far[near]


# --- columns as matrices -----------------------------------------------------------------------------------------


@frozen
class _Vectors:
    """A column as a matrix that shares Arrow's memory; its rows at `missing` are meaningless."""

    matrix: Float32s
    missing: Bools | None  # null vectors and deleted rows


def _vectors(columns: Columns, prop: str) -> _Vectors:
    return _matrix(columns.column(prop), None if columns.live is None else ~columns.live)


def _distances_alone(
    columns: Columns, prop: str, query: Float64s, metric: ir.Metric, positions: Positions
) -> Float64s:
    """Distances of which only the vectors at the positions are read, some at a time."""
    far = np.full(len(positions), np.nan)
    there = np.flatnonzero(positions >= 0)
    for start in range(0, len(there), TAKEN_ROWS):
        some = there[start : start + TAKEN_ROWS]
        at = positions[some].astype(np.int32)
        gone = None if columns.live is None else ~columns.live[at]
        far[some] = _distances(_matrix(columns.alone(prop, at), gone), query, metric, None)
    return far


def _matrix(column: pa.Array, missing: Bools | None) -> _Vectors:
    if column.null_count:
        nulls = column.is_null().to_numpy(zero_copy_only=False)
        missing = nulls if missing is None else missing | nulls
    return _Vectors(as_matrix(column), missing)


def _query(
    vector: Sequence[float] | Float32s | Float64s, metric: ir.Metric, columns: Columns, prop: str
) -> Float64s:
    """The query rounded to float32 like everything stored, so that a stored vector is at distance 0 from itself."""
    with np.errstate(over="ignore"):
        query = np.asarray(vector, np.float64).astype(np.float32)
    width = columns.kind.properties[prop].type.vector_dim
    if query.shape != (width,):
        raise VectorInvalid(f"'{prop}' holds {width} numbers per vector, the query {query.size}")
    if not np.isfinite(query).all():
        raise VectorInvalid(f"the vector compared with '{prop}' has a number that is not finite")
    if metric is ir.Metric.COSINE and not query.any():
        raise VectorInvalid(f"the vector compared with '{prop}' by cosine has no direction")
    return query.astype(np.float64)


# --- exact -------------------------------------------------------------------------------------------------------


def _distances(
    vectors: _Vectors, query: Float64s, metric: ir.Metric, positions: Positions | None
) -> Float64s:
    count = len(vectors.matrix) if positions is None else len(positions)
    far = np.empty(count)
    for start in range(0, count, ROWS_PER_BLOCK):
        block = slice(start, min(start + ROWS_PER_BLOCK, count))
        chosen = block if positions is None else positions[block]
        far[block] = _measured(vectors, chosen, query, metric)
    return far


def _measured(
    vectors: _Vectors, chosen: slice | Positions, query: Float64s, metric: ir.Metric
) -> Float64s:
    if not isinstance(chosen, slice) and chosen.min() < 0:
        return _measured_where_bound(vectors, chosen, query, metric)
    far = _between(vectors.matrix[chosen], query, metric)
    if vectors.missing is not None:
        far[vectors.missing[chosen]] = np.nan
    return far


def _measured_where_bound(
    vectors: _Vectors, chosen: Positions, query: Float64s, metric: ir.Metric
) -> Float64s:
    far = np.full(len(chosen), np.nan)
    bound = chosen >= 0
    if bound.any():
        far[bound] = _measured(vectors, chosen[bound], query, metric)
    return far


def _between(rows: Float32s, query: Float64s, metric: ir.Metric) -> Float64s:
    """Row sums by einsum, not by a matrix product: BLAS adds in an order that depends on the place of a row.

    It also uses its own threads, which under load cost more time than they save.
    """
    match metric:
        case ir.Metric.L2:
            return _square_sums(rows - query)
        case ir.Metric.DOT:
            return 1.0 - _dots(rows.astype(np.float64), query)
        case ir.Metric.COSINE:
            return 1.0 - _cosines(rows.astype(np.float64), query)


def _cosines(rows: Float64s, query: Float64s) -> Float64s:
    """A zero vector has no direction: similarity 0. One root, so that a vector is exactly similar to itself."""
    norms = np.sqrt(_square_sums(rows) * _square_sums(query[np.newaxis]))
    cosines = np.divide(_dots(rows, query), norms, out=np.zeros(len(rows)), where=norms > 0)
    return np.clip(cosines, -1.0, 1.0)


def _dots(rows: npt.NDArray[F], query: npt.NDArray[F]) -> npt.NDArray[F]:
    found: npt.NDArray[F] = np.einsum("ij,j->i", rows, query)
    return found


def _square_sums(rows: npt.NDArray[F]) -> npt.NDArray[F]:
    found: npt.NDArray[F] = np.einsum("ij,ij->i", rows, rows)
    return found


# --- estimates ---------------------------------------------------------------------------------------------------


def _squares(matrix: Float32s) -> Float32s:
    """Squared norms, roughly; not finite where float32 overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _square_sums(matrix)


@frozen
class _VectorBlock:
    """Some vectors, where they are, and their squared norms."""

    positions: Positions
    vectors: _Vectors
    squares: Float32s


def _blocks(columns: Columns, prop: str) -> Iterator[_VectorBlock]:
    """A column that is in memory."""
    whole = _vectors(columns, prop)
    squares = columns.derived(
        f"search/squares/{prop}", lambda: _squares(whole.matrix), lambda found: found.nbytes
    )
    for start in range(0, len(squares), ESTIMATES_PER_BLOCK):
        at = slice(start, min(start + ESTIMATES_PER_BLOCK, len(squares)))
        missing = None if whole.missing is None else whole.missing[at]
        vectors = _Vectors(whole.matrix[at], missing)
        yield _VectorBlock(np.arange(at.start, at.stop), vectors, squares[at])


def _pieces(columns: Columns, prop: str, positions: Positions | None) -> Iterator[_VectorBlock]:
    """A column that is read piece by piece; all but the positions count as missing."""
    left_out = None
    if positions is not None:
        left_out = np.ones(columns.n + 1, np.bool_)  # position -1 is the last
        left_out[positions] = False
    for at, values in columns.pieces(prop):
        vectors = _matrix(values, None if left_out is None else left_out[at])
        yield _VectorBlock(at, vectors, _squares(vectors.matrix))


def _nearest(
    blocks: Iterator[_VectorBlock], query: Float64s, metric: ir.Metric, count: int
) -> tuple[Positions, Float64s]:
    """Exact distances of all that may be among the nearest, and of few others.

    Block by block, with the upper bounds of the best so far: what is certainly further away is not computed.
    """
    best, limit = np.empty(0), np.inf
    found: list[tuple[Positions, Float64s]] = [(np.empty(0, np.int64), np.empty(0))]
    for block in blocks:
        low, high = _bounds(block, query, metric)
        best = np.concatenate([best, high[high <= limit]])
        limit = _smallest(best, count)
        best = best[best <= limit]
        near = np.flatnonzero(low <= limit)
        if len(near):
            found.append((block.positions[near], _distances(block.vectors, query, metric, near)))
    positions, far = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return _best(positions, far, count)


def _bounds(block: _VectorBlock, query: Float64s, metric: ir.Metric) -> tuple[Float64s, Float64s]:
    """The minimum and maximum of each distance; infinite if unknown, nan without a vector."""
    with np.errstate(all="ignore"):
        squares = block.squares
        middle, error = _estimate(block.vectors.matrix, squares, query, metric)
        low, high = middle - error, middle + error
        sure = (squares >= SQUARE_MIN) & (squares <= SQUARE_MAX) & np.isfinite(low)
    low[~sure], high[~sure] = -np.inf, np.inf
    missing = block.vectors.missing
    if missing is not None:
        low[missing] = high[missing] = np.nan
    return low, high


def _estimate(
    matrix: Float32s, squares: Float32s, query: Float64s, metric: ir.Metric
) -> tuple[Float64s, Float64s]:
    """Distances made in float32, and how much each may be off; not finite if unknown.

    A float32 sum of n products is off by at most n * 2**-24 of the sum of their sizes, in whatever order it is made,
    and the products of two vectors have sizes that sum to at most the product of the norms. The slack is more than
    twice that, which covers the other roundings.
    """
    slack = (len(query) + 8) * 2.0**-23
    square = float(query @ query)
    dots = _dots(matrix, query.astype(np.float32)).astype(np.float64)
    wide = squares.astype(np.float64)
    norms = np.sqrt(wide * square)
    if not SQUARE_MIN <= square <= SQUARE_MAX:
        slack = np.inf
    match metric:
        case ir.Metric.L2:
            return wide - 2 * dots + square, slack * (wide + 2 * norms + square)
        case ir.Metric.DOT:
            return 1.0 - dots, slack * (1.0 + norms)
        case ir.Metric.COSINE:
            return 1.0 - dots / norms, np.full(len(dots), 4 * slack)


def _smallest(values: Float64s, count: int) -> float:
    """The count-th smallest number; infinity when there are fewer."""
    if count <= 0:
        return -np.inf
    if count > len(values):
        return np.inf
    found = float(np.partition(values, count - 1)[count - 1])
    return np.inf if np.isnan(found) else found
