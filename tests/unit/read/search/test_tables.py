"""Search over stored tables: every version of a random history, read in random order through one cache."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.lang import ir
from omnigraph.model.catalog import NodeType, Property
from omnigraph.model.types import PropType, Scalar
from omnigraph.read.cache import Cache
from omnigraph.read.columns import TableColumns
from omnigraph.read.search.text import bm25, text_match
from omnigraph.read.search.vectors import distances, nearest
from omnigraph.storage.lance import LanceTables
from omnigraph.storage.tables import ADDRESS, TableEdit, TableRef
from tests.unit.read.search import oracle

WORDS = ["tea", "teas", "milk", "sugar", "spoon", "the", "cup"]
TEXT = Property("text", PropType(Scalar.STRING, nullable=True), 1)
VECTOR = Property("vector", PropType(Scalar.F32, nullable=True, vector_dim=2), 2)
KIND = NodeType(name="T", type_id=1, table_id="t", properties={"text": TEXT, "vector": VECTOR})
SCHEMA = pa.schema(
    [("id", pa.string()), ("text", pa.string()), ("vector", pa.list_(pa.float32(), 2))]
)

Row = tuple[str | None, list[float] | None]


@dataclass(frozen=True)
class Version:
    ref: TableRef
    rows: dict[str, Row]


def random_row(rng: random.Random) -> Row:
    text = None if rng.random() < 0.1 else " ".join(rng.choices(WORDS, k=rng.randint(0, 6)))
    vector = None if rng.random() < 0.2 else [float(rng.randint(-3, 3)), float(rng.randint(-3, 3))]
    return text, vector


def history(store: LanceTables, rng: random.Random) -> list[Version]:
    """Versions that append and delete by turns."""
    versions = [Version(store.create("t", SCHEMA), {})]
    for step in range(8):
        last = versions[-1]
        gone = rng.sample(sorted(last.rows), k=min(len(last.rows), rng.choice([0, 0, 1, 3])))
        added = {f"{step}-{i}": random_row(rng) for i in range(rng.choice([1, 2, 30]))}
        table = pa.table(
            [
                list(added),
                [text for text, _ in added.values()],
                pa.array([vector for _, vector in added.values()], SCHEMA.field("vector").type),
            ],
            schema=SCHEMA,
        )
        there = store.open(last.ref).scan(["id"], with_address=True)
        doomed = np.isin(there["id"].to_pylist(), gone)
        delete = there[ADDRESS].combine_chunks().filter(pa.array(doomed, pa.bool_()))
        staged = store.stage(last.ref, TableEdit(delete=delete if gone else None, append=table))
        kept = {id_: row for id_, row in last.rows.items() if id_ not in gone}
        versions.append(Version(staged.ref, {**kept, **added}))
    return versions


@pytest.mark.parametrize("seed", range(6))
def test_every_version_finds_its_own_rows(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    store = LanceTables(str(tmp_path), fsync=False)
    versions = history(store, rng)
    cache = Cache()
    for version in rng.sample(versions, k=len(versions)) + versions:
        columns = TableColumns(str(tmp_path), store.open(version.ref), KIND, cache)
        check_texts(columns, version.rows, " ".join(rng.choices(WORDS, k=2)))
        check_vectors(columns, version.rows)


def there(columns: TableColumns) -> tuple[np.ndarray, list[str]]:
    live = np.arange(columns.n) if columns.live is None else np.flatnonzero(columns.live)
    return live, columns.column("id").take(pa.array(live)).to_pylist()


def check_texts(columns: TableColumns, rows: dict[str, Row], query: str) -> None:
    positions, ids = there(columns)
    assert sorted(ids) == sorted(rows)
    texts = [rows[id_][0] for id_ in ids]
    for mode, plain in ((ir.AnyWord(), oracle.any_word), (ir.Phrase(), oracle.phrase)):
        truth = [None if text is None else plain(text, query) for text in texts]
        assert text_match(columns, "text", query, mode, positions).to_pylist() == truth
    scores = oracle.bm25(texts, query)
    found, numbers = bm25(columns, "text", query)
    assert found.tolist() == positions[sorted(scores)].tolist()
    assert numbers == pytest.approx([scores[i] for i in sorted(scores)], rel=1e-12)


def check_vectors(columns: TableColumns, rows: dict[str, Row]) -> None:
    positions, ids = there(columns)
    far = distances(columns, "vector", [1.0, 2.0], ir.Metric.L2, positions)
    vectors = [rows[id_][1] for id_ in ids]
    truth = [np.nan if v is None else (v[0] - 1) ** 2 + (v[1] - 2) ** 2 for v in vectors]
    assert np.array_equal(far, truth, equal_nan=True)
    nearby, _ = nearest(columns, "vector", [1.0, 2.0], ir.Metric.L2, count=5)
    worst = np.sort(far)[: min(5, int((~np.isnan(far)).sum()))].max(initial=-1.0)
    assert nearby.tolist() == positions[far <= worst].tolist()
