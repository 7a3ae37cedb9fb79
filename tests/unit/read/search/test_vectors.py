from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from omnigraph.lang.ir import Metric
from omnigraph.read.search.vectors import (
    ESTIMATES_PER_BLOCK,
    ROWS_PER_BLOCK,
    VectorInvalid,
    distances,
    nearest,
)
from tests.unit.read.search.memory import MemoryColumns, vectors

Matrix = npt.NDArray[np.float32]
METRICS = list(Metric)


def columns_of(
    matrix: Matrix, nulls: npt.NDArray[np.bool_] | None = None, deleted: tuple[int, ...] = ()
) -> MemoryColumns:
    mask = None if nulls is None else pa.array(nulls)
    flat = pa.array(matrix.ravel())
    column = pa.FixedSizeListArray.from_arrays(flat, matrix.shape[1], mask=mask)
    return MemoryColumns([("one", column)], deleted=deleted)


def naive(row: Matrix, query: Matrix, metric: Metric) -> float:
    x, q = row.astype(np.float64), query.astype(np.float64)
    match metric:
        case Metric.L2:
            return float(((x - q) ** 2).sum())
        case Metric.DOT:
            return float(1 - (x * q).sum())
        case Metric.COSINE:
            norm = np.linalg.norm(x) * np.linalg.norm(q)
            return float(1 - (x * q).sum() / norm) if norm else 1.0


def random_matrix(seed: int, rows: int, width: int) -> Matrix:
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-3, 4)
    return (rng.standard_normal((rows, width)) * scale).astype(np.float32)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(10))
def test_distances_agree_with_the_formulas(metric: Metric, seed: int) -> None:
    matrix = random_matrix(seed, 50, 1 + seed * 7)
    query = random_matrix(seed + 100, 1, matrix.shape[1])[0]
    found = distances(columns_of(matrix), "p", query, metric)
    truth = [naive(row, query, metric) for row in matrix]
    assert found == pytest.approx(truth, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("width", [1, 3, 8, 64, 129])
def test_a_distance_does_not_depend_on_where_the_row_stands(metric: Metric, width: int) -> None:
    row = random_matrix(3, 1, width)
    query = random_matrix(4, 1, width)[0]
    columns = columns_of(np.repeat(row, ROWS_PER_BLOCK + 7, axis=0))
    everywhere = distances(columns, "p", query, metric)
    filtered = distances(columns, "p", query, metric, np.array([5, ROWS_PER_BLOCK + 1]))
    assert len({*everywhere.tolist(), *filtered.tolist()}) == 1


@pytest.mark.parametrize("seed", range(20))
def test_a_vector_is_at_distance_zero_from_itself(seed: int) -> None:
    matrix = random_matrix(seed, 3, 1 + seed * 5)
    for metric in (Metric.L2, Metric.COSINE):
        assert distances(columns_of(matrix), "p", matrix[1], metric)[1] == 0.0


def test_null_vectors_deleted_rows_and_unbound_positions_have_no_distance() -> None:
    columns = vectors([[1, 0], None, [0, 1], [1, 1]], 2, deleted=[3])
    found = distances(columns, "p", [1, 0], Metric.L2)
    assert np.isnan(found).tolist() == [False, True, False, True]
    at = distances(columns, "p", [1, 0], Metric.L2, np.array([2, -1, 0, 1]))
    assert at[[0, 2]].tolist() == [2.0, 0.0]
    assert np.isnan(at).tolist() == [False, True, False, True]
    assert np.isnan(distances(columns, "p", [1, 0], Metric.L2, np.array([-1, -1]))).all()


def test_a_zero_vector_is_at_cosine_distance_one() -> None:
    assert distances(vectors([[0, 0], [2, 0]], 2), "p", [1, 0], Metric.COSINE).tolist() == [
        1.0,
        0.0,
    ]


def test_a_slice_of_a_column_is_read_from_its_own_start() -> None:
    column = pa.array([[9, 9], [1, 0], [0, 1]], pa.list_(pa.float32(), 2)).slice(1)
    found = distances(MemoryColumns([("one", column)]), "p", [1, 0], Metric.L2)
    assert found.tolist() == [0.0, 2.0]


@pytest.mark.parametrize(
    ("vector", "metric", "message"),
    [
        ([1.0, 2.0, 3.0], Metric.L2, "holds 2 numbers"),
        ([1.0, float("nan")], Metric.L2, "not finite"),
        ([1.0, 1e300], Metric.DOT, "not finite"),
        ([0.0, 0.0], Metric.COSINE, "no direction"),
    ],
)
def test_a_query_that_does_not_fit_is_refused(
    vector: list[float], metric: Metric, message: str
) -> None:
    with pytest.raises(VectorInvalid, match=message):
        distances(vectors([[1, 0]], 2), "p", vector, metric)


# --- nearest -----------------------------------------------------------------------------------------------------


def by_distance(columns: MemoryColumns, query: Matrix, metric: Metric, count: int) -> list[int]:
    """The positions of the count nearest and of all that are as far as the last of them."""
    far = distances(columns, "p", query, metric)
    there = np.sort(far[~np.isnan(far)])
    if not count or not len(there):
        return []
    worst = there[min(count, len(there)) - 1]
    return np.flatnonzero(far <= worst).tolist()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(30))
def test_nearest_is_what_all_distances_say(metric: Metric, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = random_matrix(seed, 300, int(rng.integers(1, 40)))
    matrix[rng.integers(0, 300, 60)] = matrix[rng.integers(0, 300, 60)]  # ties
    columns = columns_of(matrix, rng.random(300) < 0.2, deleted=(3, 4))
    query = matrix[7]
    for count in (0, 1, 10, 250, 1000):
        positions, far = nearest(columns, "p", query, metric, count=count)
        assert positions.tolist() == by_distance(columns, query, metric, count), count
        assert far.tolist() == distances(columns, "p", query, metric)[positions].tolist()


@pytest.mark.parametrize("present", [1.0, 0.5, 1e-4])
def test_the_best_of_later_blocks_are_found(present: float) -> None:
    rng = np.random.default_rng(5)
    count = 3 * ESTIMATES_PER_BLOCK + 11
    matrix = random_matrix(6, count, 2)
    columns = columns_of(matrix, rng.random(count) >= present)
    for query in matrix[[0, count // 2, count - 1]]:
        for wanted in (1, 10, count - 5):
            positions, _ = nearest(columns, "p", query, Metric.L2, count=wanted)
            assert positions.tolist() == by_distance(columns, query, Metric.L2, wanted)


@pytest.mark.parametrize("metric", METRICS)
def test_differences_below_float32_decide(metric: Metric) -> None:
    """Vectors far from the origin and close to each other: float32 sums cannot tell them apart."""
    matrix = np.full((200, 16), 1000.0, np.float32)
    matrix[:, 0] += np.random.default_rng(1).permutation(200).astype(np.float32) * np.float32(
        2**-13
    )
    columns, query = columns_of(matrix), matrix[50]
    positions, _ = nearest(columns, "p", query, metric, count=5)
    assert positions.tolist() == by_distance(columns, query, metric, 5)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("scale", [1e-40, 1e-22, 1e18, 1e37])
def test_sizes_float32_cannot_square_are_still_exact(metric: Metric, scale: float) -> None:
    rng = np.random.default_rng(2)
    matrix = (rng.standard_normal((100, 8)) * scale).astype(np.float32)
    matrix[::3] = rng.standard_normal((34, 8))
    columns = columns_of(matrix)
    for query in (matrix[0], matrix[1]):
        positions, _ = nearest(columns, "p", query, metric, count=7)
        assert positions.tolist() == by_distance(columns, query, metric, 7)


def test_a_prefilter_keeps_the_count() -> None:
    columns = columns_of(np.arange(20, dtype=np.float32).reshape(20, 1))
    allowed = np.array([15, 3, 11, 19, -1], np.int32)
    positions, far = nearest(columns, "p", [0.0], Metric.L2, count=2, positions=allowed)
    assert dict(zip(positions.tolist(), far.tolist(), strict=True)) == {3: 9.0, 11: 121.0}


def test_all_that_tie_for_the_last_place_are_returned() -> None:
    columns = vectors([[1, 0], [0, 1], [-1, 0], [0, 0]], 2)
    positions, far = nearest(columns, "p", [0, 0], Metric.L2, count=2)
    assert positions.tolist() == [0, 1, 2, 3]
    assert far.tolist() == [1.0, 1.0, 1.0, 0.0]


def test_an_empty_table_has_no_nearest() -> None:
    positions, far = nearest(vectors([], 3), "p", [1, 2, 3], Metric.COSINE, count=5)
    assert (len(positions), len(far)) == (0, 0)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(10))
def test_a_column_that_is_not_loaded_gives_the_same_answers(metric: Metric, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = random_matrix(seed, 600, int(rng.integers(1, 20)))
    matrix[rng.integers(0, 600, 90)] = matrix[rng.integers(0, 600, 90)]  # ties
    columns = columns_of(matrix, rng.random(600) < 0.2, deleted=(3, 4))
    assert columns.live is not None
    there = np.flatnonzero(columns.live).astype(np.int32)
    many, few = (np.append(rng.choice(there, n, replace=False), -1) for n in (400, 20))

    def answers() -> list[list[float]]:
        found = [distances(columns, "p", matrix[7], metric, at) for at in (None, many, few)]
        near = [
            nearest(columns, "p", matrix[7], metric, count=count, positions=at)
            for at in (None, np.sort(many), few)
            for count in (0, 1, 50, 1000)
        ]
        return [
            np.nan_to_num(a, nan=-1.0).tolist() for a in (*found, *(x for n in near for x in n))
        ]

    loaded = answers()
    columns.is_loaded = False
    assert answers() == loaded
