"""How long search takes over stored tables: `python -m benchmarks.search [--vectors 1000000]`.

Texts: 100,000 of twelve words each. Vectors: of 64 numbers. "of 2,000" means that other parts of a query, such as two
hops from a node, left that many positions. Prints the time of the first run, and the median of several more.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa

from omnigraph.lang import ir
from omnigraph.model.catalog import NodeType, Property
from omnigraph.model.types import PropType, Scalar
from omnigraph.read.cache import Cache
from omnigraph.read.columns import TableColumns
from omnigraph.read.search import bm25, distances, nearest, text_mask
from omnigraph.storage.lance import LanceTables
from omnigraph.storage.tables import TableEdit, TableRef

RUNS = 15
TEXTS = 100_000
WIDTH = 64
WANTED = 2_000
CACHE_BYTES = 4 << 30


def words(count: int, rng: np.random.Generator) -> list[str]:
    """Pronounceable words, so that stemming has work to do."""
    syllables = [a + b for a in "bcdfghklmnprstv" for b in "aeiou"]
    endings = ["", "ing", "ed", "s", "ation", "ly", "er"]
    stems = ["".join(rng.choice(syllables, size)) for size in rng.integers(1, 5, count)]
    return [stem + str(rng.choice(endings)) for stem in stems]


def texts(count: int, rng: np.random.Generator) -> tuple[pa.Array, list[str]]:
    """Texts whose words are as unevenly frequent as in natural language; frequent words come first in the list."""
    vocabulary = words(50_000, rng)
    weights = 1 / np.arange(1, len(vocabulary) + 1)
    picked = rng.choice(len(vocabulary), (count, 12), p=weights / weights.sum())
    spelled = np.array(vocabulary)[picked]
    return pa.array([" ".join(row) for row in spelled]), vocabulary


class Bench:
    """One table with one property, and a clock."""

    def __init__(self, column: pa.Array, kind: PropType, folder: str) -> None:
        self.folder = folder
        self.schema = pa.schema([("id", pa.string()), ("p", column.type)])
        self.kind = NodeType(
            name="T", type_id=1, table_id="t", properties={"p": Property("p", kind, 1)}
        )
        self.cache = Cache(CACHE_BYTES)
        self.store = LanceTables(folder, fsync=False)
        self.ref = self.append(self.store.create("t", self.schema), column)

    def append(self, base: TableRef, column: pa.Array) -> TableRef:
        ids = pa.array([f"{base.version}-{i}" for i in range(len(column))])
        rows = pa.table([ids, column], schema=self.schema)
        return self.store.stage(base, TableEdit(append=rows)).ref

    def columns(self, ref: TableRef | None = None) -> TableColumns:
        table = self.store.open(ref or self.ref)
        return TableColumns(self.folder, table, self.kind, self.cache)


def measure(name: str, work: Callable[[], object]) -> None:
    """Print the first time and the median of the others, in milliseconds."""
    times = []
    for _ in range(RUNS + 1):
        started = time.perf_counter()
        work()
        times.append((time.perf_counter() - started) * 1000)
    print(f"  {name:34} first {times[0]:8.2f} ms   then {statistics.median(times[1:]):8.3f} ms")


def bench_texts(rng: np.random.Generator) -> None:
    column, vocabulary = texts(TEXTS, rng)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(column, PropType(Scalar.STRING), folder)
        columns = bench.columns()
        some = np.sort(rng.choice(TEXTS, WANTED, replace=False)).astype(np.int32)
        frequent, rare = vocabulary[20], vocabulary[20_000]
        quoted = " ".join(str(column[7]).split()[4:7])
        print(f"texts: {TEXTS:,}")
        columns.column("p")
        measure(
            "search, building the index first", lambda: text_mask(columns, "p", rare, ir.AnyWord())
        )
        measure("search, frequent word", lambda: text_mask(columns, "p", frequent, ir.AnyWord()))
        measure(
            f"search of {WANTED:,}", lambda: text_mask(columns, "p", frequent, ir.AnyWord(), some)
        )
        measure("phrase of 3 words", lambda: text_mask(columns, "p", quoted, ir.Phrase()))
        for edits in (1, 2):
            mode = ir.Fuzzy(ir.Literal(edits, ir.I64))
            measure(f"fuzzy, {edits} edits", partial(text_mask, columns, "p", frequent, mode))
        measure("bm25, 2 words", lambda: bm25(columns, "p", f"{frequent} {rare}"))
        grown = bench.columns(bench.append(bench.ref, pa.array(["one more text"])))
        measure("search after appending 1 row", lambda: text_mask(grown, "p", rare, ir.AnyWord()))


def bench_vectors(count: int, rng: np.random.Generator) -> None:
    flat = pa.array(rng.standard_normal(count * WIDTH, dtype=np.float32))
    column = pa.FixedSizeListArray.from_arrays(flat, WIDTH)
    query = rng.standard_normal(WIDTH, dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(column, PropType(Scalar.F32, vector_dim=WIDTH), folder)
        columns = bench.columns()
        some = np.sort(rng.choice(count, WANTED, replace=False)).astype(np.int32)
        columns.column("p")
        print(f"vectors: {count:,} of {WIDTH} numbers")
        for metric in ir.Metric:
            work = partial(nearest, columns, "p", query, metric, count=10)
            measure(f"nearest 10, {metric.value}", work)
        measure("all distances, l2", lambda: distances(columns, "p", query, ir.Metric.L2))
        measure(
            f"nearest 10 of {WANTED:,}, l2",
            lambda: nearest(columns, "p", query, ir.Metric.L2, count=10, positions=some),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", type=int, nargs="*", default=[100_000, 1_000_000])
    rng = np.random.default_rng(1)
    bench_texts(rng)
    for count in parser.parse_args().vectors:
        bench_vectors(count, rng)


if __name__ == "__main__":
    main()
