"""The engines that `benchmarks.search` compares: how each stores texts or vectors, and answers.

Run as a program, one engine answers in a process of its own: it opens what was stored, asks for the first time, says
how much memory that took, and asks again.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

NEAREST = 10
WARM_RUNS = 15
SCHEMA = """
node Doc {
  slug: String @key
  body: String? @index
}
"""
RANKED = """
query q($q: String) {
  match { $d: Doc }
  return { $d.slug as slug, bm25($d.body, $q) as score }
  order { bm25($d.body, $q) desc }
  limit 10
}
"""

Ask = Callable[[Any], list[str]]


class Ours:
    """Texts in a graph."""

    def build(self, folder: Path, table: pa.Table) -> float:
        import omnigraph
        from omnigraph.read.search.storing import store_missing

        graph = omnigraph.init(str(folder), schema=SCHEMA)
        graph.load({"Doc": table})
        shutil.rmtree(
            folder / "_search", ignore_errors=True
        )  # a load makes them: once more, by the clock
        snapshot = graph.snapshot()
        started = time.perf_counter()
        store_missing(snapshot, snapshot.catalog.nodes["Doc"])
        return time.perf_counter() - started

    def open(self, folder: Path) -> Ask:
        import omnigraph

        graph = omnigraph.open(str(folder))
        return lambda query: [row["slug"] for row in graph.query(RANKED, {"q": query})]


class Lance:
    """Texts in a Lance table with its own inverted index."""

    def build(self, folder: Path, table: pa.Table) -> float:
        import lance

        found = lance.write_dataset(table, str(folder))
        started = time.perf_counter()
        found.create_scalar_index("body", "INVERTED", with_position=True)
        return time.perf_counter() - started

    def open(self, folder: Path) -> Ask:
        import lance

        found = lance.dataset(str(folder))

        def ask(query: str) -> list[str]:
            rows = found.to_table(columns=["slug"], full_text_query=query, limit=10)
            return [str(slug) for slug in rows["slug"].to_pylist()]

        return ask


class Sqlite:
    """Texts in SQLite's FTS5."""

    def build(self, folder: Path, table: pa.Table) -> float:
        folder.mkdir()
        with sqlite3.connect(folder / "t.db") as found:
            rows = zip(table["slug"].to_pylist(), table["body"].to_pylist(), strict=True)
            found.execute("create table doc(slug text, body text)")
            found.executemany("insert into doc values (?, ?)", rows)
            started = time.perf_counter()
            found.execute(
                "create virtual table words using fts5(body, content=doc, tokenize='porter')"
            )
            found.execute("insert into words(words) values ('rebuild')")
        return time.perf_counter() - started

    def open(self, folder: Path) -> Ask:
        found = sqlite3.connect(folder / "t.db")
        text = (
            "select slug from words join doc on doc.rowid = words.rowid "
            "where words match ? order by rank limit 10"
        )
        return lambda query: [
            row[0] for row in found.execute(text, (" OR ".join(query.split()),)).fetchall()
        ]


class Tantivy:
    """Texts in tantivy."""

    def build(self, folder: Path, table: pa.Table) -> float:
        import tantivy

        folder.mkdir()
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("slug", stored=True, tokenizer_name="raw")
        schema.add_text_field("body", tokenizer_name="en_stem")
        index = tantivy.Index(schema.build(), path=str(folder))
        started = time.perf_counter()
        writer = index.writer(heap_size=256 << 20)
        for slug, body in zip(table["slug"].to_pylist(), table["body"].to_pylist(), strict=True):
            writer.add_document(tantivy.Document(slug=slug, body=body))
        writer.commit()
        writer.wait_merging_threads()
        return time.perf_counter() - started

    def open(self, folder: Path) -> Ask:
        import tantivy

        index = tantivy.Index.open(str(folder))
        searcher = index.searcher()

        def ask(query: str) -> list[str]:
            hits = searcher.search(index.parse_query(query, ["body"]), 10).hits
            return [str(searcher.doc(address)["slug"][0]) for _, address in hits]

        return ask


class DuckDb:
    """Texts in DuckDB's full-text index, which is an extension of its own."""

    def build(self, folder: Path, table: pa.Table) -> float:
        folder.mkdir()
        with self._connected(folder) as found:
            found.register("given", table)
            found.execute("create table doc as select * from given")
            started = time.perf_counter()
            found.execute("pragma create_fts_index('doc', 'slug', 'body', stemmer = 'porter')")
            return time.perf_counter() - started

    def open(self, folder: Path) -> Ask:
        found = self._connected(folder)
        text = (
            "select slug from (select slug, fts_main_doc.match_bm25(slug, ?) as score from doc) "
            "where score is not null order by score desc limit 10"
        )
        return lambda query: [row[0] for row in found.execute(text, [query]).fetchall()]

    def _connected(self, folder: Path) -> Any:
        package = importlib.import_module("duckdb_extension_fts")

        import duckdb

        (extension,) = Path(package.__path__[0]).glob("extensions/*/fts.duckdb_extension")
        connection = duckdb.connect(str(folder / "t.db"))
        connection.execute(f"load '{extension}'")
        return connection


# --- vectors -----------------------------------------------------------------------------------------------------


def vector_schema(width: int) -> str:
    return f"node Doc {{\n  slug: String @key\n  v: Vector({width}) @index\n}}"


def vector_query(width: int, approx: bool) -> str:
    more = ", approx" if approx else ""
    return (
        f"query q($v: Vector({width})) {{ match {{ $d: Doc }} return {{ $d.slug as slug }} "
        f"order {{ nearest($d.v, $v{more}) }} limit {NEAREST} }}"
    )


class OurVectors:
    """Vectors in a graph, searched exactly, or with the index where `approx` says so."""

    def __init__(self, approx: bool) -> None:
        self._approx = approx

    def build(self, folder: Path, table: pa.Table) -> float:
        import omnigraph

        graph = omnigraph.init(str(folder), schema=vector_schema(table["v"].type.list_size))
        graph.load({"Doc": table})
        started = time.perf_counter()
        graph.optimize()
        return time.perf_counter() - started

    def open(self, folder: Path) -> Ask:
        import omnigraph

        graph = omnigraph.open(str(folder))
        width = graph.snapshot().catalog.nodes["Doc"].properties["v"].type.vector_dim
        text = vector_query(width or 0, self._approx)
        return lambda vector: [row["slug"] for row in graph.query(text, {"v": vector})]


class LanceVectors:
    """Vectors in a Lance table, searched exactly or with its IVF index."""

    def __init__(self, approx: bool) -> None:
        self._approx = approx

    def build(self, folder: Path, table: pa.Table) -> float:
        import lance

        found = lance.write_dataset(table, str(folder))
        started = time.perf_counter()
        if self._approx:
            width, rows = table["v"].type.list_size, table.num_rows
            found.create_index(
                "v",
                "IVF_PQ",
                metric="l2",
                num_partitions=max(1, rows // 4096),
                num_sub_vectors=width // 8,
            )
        return time.perf_counter() - started

    def open(self, folder: Path) -> Ask:
        import lance

        found = lance.dataset(str(folder))
        more = {"nprobes": 24, "refine_factor": 10} if self._approx else {"use_index": False}

        def ask(vector: list[float]) -> list[str]:
            asked = {"column": "v", "q": vector, "k": NEAREST, **more}
            return [
                str(s) for s in found.to_table(columns=["slug"], nearest=asked)["slug"].to_pylist()
            ]

        return ask


class Hnsw:
    """Vectors in the HNSW of FAISS, all of it in memory."""

    def build(self, folder: Path, table: pa.Table) -> float:
        import faiss

        folder.mkdir()
        started = time.perf_counter()
        index = faiss.IndexHNSWFlat(table["v"].type.list_size, 32)
        index.add(matrix(table))
        faiss.write_index(index, str(folder / "index"))
        return time.perf_counter() - started

    def open(self, folder: Path) -> Ask:
        import faiss

        index: Any = faiss.read_index(str(folder / "index"))
        index.hnsw.efSearch = 64

        def ask(vector: list[float]) -> list[str]:
            _, found = index.search(np.array([vector], np.float32), NEAREST)
            return [str(i) for i in found[0]]

        return ask


def matrix(table: pa.Table) -> np.ndarray[Any, np.dtype[np.float32]]:
    column = table["v"].combine_chunks()
    found: np.ndarray[Any, np.dtype[np.float32]] = column.flatten().to_numpy(zero_copy_only=False)
    return found.reshape(len(column), -1)


ENGINES: dict[str, Any] = {
    "omnigraph": Ours(),
    "lance": Lance(),
    "sqlite fts5": Sqlite(),
    "tantivy": Tantivy(),
    "duckdb": DuckDb(),
    "omnigraph exact": OurVectors(False),
    "omnigraph approx": OurVectors(True),
    "lance exact": LanceVectors(False),
    "lance ivf_pq": LanceVectors(True),
    "faiss hnsw": Hnsw(),
}


# --- a process of its own ----------------------------------------------------------------------------------------


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def answers(name: str, folder: Path, queries: list[Any]) -> Iterator[tuple[str, Any]]:
    """The first answer's time, what the process holds then, and the times of the others."""
    ask = ENGINES[name].open(folder)
    empty = resident_bytes()
    started = time.perf_counter()
    ask(queries[0])
    yield "cold", time.perf_counter() - started
    yield "bytes", resident_bytes()
    yield "grown", resident_bytes() - empty
    times, found = [], []
    for query in queries:
        ask(query)
        for _ in range(max(1, WARM_RUNS // len(queries))):
            started = time.perf_counter()
            found.append(ask(query))
            times.append(time.perf_counter() - started)
    yield "warm", statistics.median(times)
    yield "found", [ask(query) for query in queries]


def built(name: str, folder: Path, rows: str) -> Iterator[tuple[str, Any]]:
    """How long storing rows takes, which are in an Arrow file; or what is not installed."""
    with pa.memory_map(rows) as file:
        table = pa.ipc.open_file(file).read_all()
    try:
        yield "seconds", ENGINES[name].build(folder, table)
    except ImportError as missing:
        yield "missing", str(missing)


def main(asked: dict[str, Any]) -> None:
    name, folder = asked["engine"], Path(asked["folder"])
    sys.path[:0] = asked["packages"]
    told = (
        built(name, folder, asked["rows"])
        if "rows" in asked
        else answers(name, folder, asked["queries"])
    )
    print(json.dumps(dict(told)))


if __name__ == "__main__":
    main(json.loads(sys.stdin.read()))
