"""Sorting more rows than are sorted at once: runs on disk, merged within bounds, equal rows as they came in."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.read import budget, sorting
from omnigraph.read.budget import Budget
from omnigraph.read.rows import Rows
from omnigraph.read.sorting import Keyed, SortedRuns, order_by
from omnigraph.read.spill import RowsFile
from tests.support.rings import count

KEYS: dict[str, Any] = {
    "texts": (pa.string(), ["", "a", "b", "é", None]),
    "floats": (pa.float64(), [float("nan"), -0.0, 1.5, float("-inf"), None]),
    "whole": (pa.int64(), [-1, 0, 7, None]),
    "equal": (pa.int64(), [3]),
}


def _keyed(rng: random.Random, rows: int, first: int, kinds: list[tuple[str, bool]]) -> Keyed:
    keys = []
    for name, descending in kinds:
        kind, values = KEYS[name]
        keys.append((pa.array(rng.choices(values, k=rows), kind), descending))
    return Keyed(Rows(rows, columns={"place": pa.array(range(first, first + rows))}), keys)


@pytest.mark.parametrize("seed", range(count(40, 1_000)))
def test_merged_runs_are_what_one_stable_sort_gives(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    monkeypatch.setenv("OMNIGRAPH_SPILL", str(tmp_path))
    monkeypatch.setattr(sorting, "RUN_ROWS", rng.choice([1, 3, 20]))
    monkeypatch.setattr(sorting, "CHUNK_ROWS", rng.choice([1, 2, 7]))
    spills = rng.random() < 0.7
    monkeypatch.setattr(budget.Held, "fits", lambda *_: not spills)
    kinds = [(rng.choice([*KEYS]), rng.random() < 0.5) for _ in range(rng.randint(1, 3))]
    few = Budget(
        block_rows=rng.choice([2, 16, 10_000])
    )  # runs that are merged at once: two, or more
    ctx: Any = SimpleNamespace(check=lambda: None, note=lambda **_: None, budget=few)
    runs, parts, n = SortedRuns(ctx, budget.Held(few, "Sort")), [], 0
    for _ in range(rng.randint(1, 12)):
        part = _keyed(rng, rng.randint(1, 25), n, kinds)
        n += part.rows.n
        parts.append(part)
        runs.add(part)
    blocks = list(runs.merged())
    found = np.concatenate([block.rows.column("place").to_numpy() for block in blocks])
    whole = [
        (pa.concat_arrays([part.keys[k][0] for part in parts]), d) for k, (_, d) in enumerate(kinds)
    ]
    assert found.tolist() == order_by(whole, n).tolist()
    assert list(tmp_path.iterdir()) == [], "what was written is gone"


def test_what_is_on_disk_is_not_in_memory(tmp_path: Path) -> None:
    texts = pa.array(["some text of a row"] * 10_000)
    rows = Rows(len(texts), columns={"t": texts}, weight=np.ones(len(texts), np.int64))
    before = pa.total_allocated_bytes()
    file = RowsFile.write(tmp_path / "rows", [(rows, [texts])], 100)
    size = texts.nbytes
    del rows, texts
    assert pa.total_allocated_bytes() < before - 0.9 * size
    assert sum(part.n for part, _ in file.read()) == 10_000


def test_values_are_collected_in_order_on_disk_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = omnigraph.init(str(tmp_path / "g"), schema="node P { k: String @key g: I64 n: I64 }")
    numbers = list(range(600))
    random.Random(1).shuffle(numbers)
    rows = [{"k": f"p{n}", "g": n % 3, "n": n} for n in numbers]
    graph.load({"P": pa.Table.from_pylist(rows)})
    text = "MATCH (p:P) WITH p ORDER BY p.n DESC RETURN p.g AS g, collect(p.n) AS l ORDER BY g"
    wanted = [
        {"g": g, "l": sorted((n for n in numbers if n % 3 == g), reverse=True)} for g in range(3)
    ]
    assert graph.query(text).rows == wanted
    for bound in ("BLOCK_ROWS_MIN", "BLOCK_ROWS_MAX"):
        monkeypatch.setattr(budget, bound, 16)
    monkeypatch.setattr(sorting, "RUN_ROWS", 16)
    monkeypatch.setattr(sorting, "CHUNK_ROWS", 4)
    monkeypatch.setattr(budget.Held, "fits", lambda *_: False)
    assert graph.query(text).rows == wanted
