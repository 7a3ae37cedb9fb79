"""How long search takes, beside other engines: `python -m benchmarks.search [--texts N …] [--vectors N …]`.

Texts have thirty words as unevenly frequent as in natural language; vectors come from a few thousand clusters. Each
engine stores the same rows and then answers in a process of its own: `cold` is the first answer after it is opened,
`warm` the median of later ones, `memory` what the process holds after the first answer and how much of that came with
it. Recall is the share of the ten nearest that are found, measured against exact distances. Engines that are not
installed are left out: `pip install tantivy faiss-cpu` brings two of them. DuckDB's text index is an extension made for
one release: `pip install --target FOLDER duckdb-extension-fts`, and OMNIGRAPH_BENCH_DUCKDB=FOLDER.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks._search_engines import NEAREST, matrix

TEXT_ENGINES = ("omnigraph", "lance", "sqlite fts5", "tantivy", "duckdb")
VECTOR_ENGINES = (
    "omnigraph exact",
    "lance exact",
    "omnigraph approx",
    "lance ivf_pq",
    "faiss hnsw",
)
FOLDERS = {"duckdb": os.environ.get("OMNIGRAPH_BENCH_DUCKDB")}  # where packages of their own are
WORDS_PER_TEXT = 30
VOCABULARY = 100_000
ASKED = ((100, 20_000), (50, 500, 5_000), (300,))  # words of the queries, by how frequent they are
CLUSTERS = 2_000
QUERIES = 20


def words(count: int, rng: np.random.Generator) -> list[str]:
    """Pronounceable words, so that stemming has work to do."""
    syllables = [a + b for a in "bcdfghklmnprstv" for b in "aeiou"]
    endings = ["", "ing", "ed", "s", "ation", "ly", "er"]
    sizes = rng.integers(1, 5, count)
    return ["".join(rng.choice(syllables, n)) + str(rng.choice(endings)) for n in sizes]


def texts(count: int, rng: np.random.Generator) -> tuple[pa.Table, list[str]]:
    """Texts, and the words in them, frequent ones first."""
    vocabulary = words(VOCABULARY, rng)
    weights = 1 / np.arange(1, VOCABULARY + 1)
    shares = np.cumsum(weights / weights.sum())
    picked = shares.searchsorted(rng.random(count * WORDS_PER_TEXT)).clip(0, VOCABULARY - 1)
    spelled = pa.DictionaryArray.from_arrays(picked.astype(np.int32), pa.array(vocabulary))
    starts = np.arange(0, count * WORDS_PER_TEXT + 1, WORDS_PER_TEXT, dtype=np.int32)
    lists = pa.ListArray.from_arrays(starts, spelled.cast(pa.string()))
    slugs = pa.array(np.arange(count)).cast(pa.string())
    return pa.table({"slug": slugs, "body": pc.binary_join(lists, " ")}), vocabulary


def vectors(count: int, width: int, rng: np.random.Generator) -> pa.Table:
    centres = rng.standard_normal((CLUSTERS, width), dtype=np.float32)
    rows = centres[rng.integers(0, CLUSTERS, count)]
    rows += 0.5 * rng.standard_normal((count, width), dtype=np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), width)
    return pa.table({"slug": pa.array(np.arange(count)).cast(pa.string()), "v": column})


def told(name: str, folder: Path, **more: Any) -> dict[str, Any]:
    """What an engine says in a process of its own."""
    own = [FOLDERS[name]] if FOLDERS.get(name) else []
    asked = json.dumps({"engine": name, "folder": str(folder), "packages": own, **more})
    command = [sys.executable, "-m", "benchmarks._search_engines"]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def compare(engines: tuple[str, ...], table: pa.Table, queries: list[Any], truth: Any) -> None:
    print(
        f"  {'':18} {'build':>9} {'stored':>9} {'cold':>10} {'warm':>10} {'memory':>9} {'grown':>8}"
    )
    with tempfile.TemporaryDirectory(prefix="omnigraph-search-") as folder:
        rows = Path(folder, "rows.arrow")
        with pa.OSFile(str(rows), "w") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        for name in engines:
            compare_one(name, rows, queries, truth)


def compare_one(name: str, rows: Path, queries: list[Any], truth: Any) -> None:
    with tempfile.TemporaryDirectory(prefix="omnigraph-search-") as folder:
        place = Path(folder) / "stored"
        made = told(name, place, rows=str(rows))
        if "missing" in made:
            print(f"  {name:18} left out: {made['missing']}")
            return
        stored = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
        found = told(name, place, queries=queries)
    line = (
        f"  {name:18} {made['seconds']:7.1f} s {stored / 1e6:6.0f} MB {found['cold'] * 1e3:7.1f} ms"
    )
    line += f" {found['warm'] * 1e3:7.2f} ms {found['bytes'] / 1e6:6.0f} MB"
    line += f" {found['grown'] / 1e6:5.0f} MB"
    if truth is not None:
        share = np.mean([len(set(a) & set(b)) for a, b in zip(found["found"], truth, strict=True)])
        line += f"   recall {share / NEAREST:.3f}"
    print(line, flush=True)


def bench_texts(count: int, rng: np.random.Generator) -> None:
    table, vocabulary = texts(count, rng)
    asked = [" ".join(vocabulary[i] for i in chosen) for chosen in ASKED]
    print(f"\n{count:,} texts of {WORDS_PER_TEXT} words, the 10 best")
    compare(TEXT_ENGINES, table, asked, None)


def bench_vectors(count: int, width: int, rng: np.random.Generator) -> None:
    table = vectors(count, width, rng)
    rows = matrix(table)
    asked = rows[rng.integers(0, count, QUERIES)]
    asked += 0.1 * rng.standard_normal(asked.shape, dtype=np.float32)
    squares = np.einsum("ij,ij->i", rows, rows)
    truth = [
        [str(i) for i in np.argpartition(squares - 2 * (rows @ q), NEAREST)[:NEAREST]]
        for q in asked
    ]
    print(f"\n{count:,} vectors of {width} numbers, the {NEAREST} nearest")
    compare(VECTOR_ENGINES, table, asked.tolist(), truth)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, nargs="*", default=[100_000])
    parser.add_argument("--vectors", type=int, nargs="*", default=[100_000])
    parser.add_argument("--widths", type=int, nargs="*", default=[128])
    asked = parser.parse_args()
    rng = np.random.default_rng(1)
    for count in asked.texts:
        bench_texts(count, rng)
    for count in asked.vectors:
        for width in asked.widths:
            bench_vectors(count, width, rng)


if __name__ == "__main__":
    main()
