"""Search among few, some and many: `python -m benchmarks search_filtered`.

Of a million documents: `python -m benchmarks.search_filtered 1000000`.

Documents are about topics; the topics hold 0.01 %, 1 % and 50 % of them. The same ten best documents of a topic are
asked for by words, by exact distance and by the index of vectors: through an edge to the topic and through a property,
and of a Lance table through a filter on a column with an index. Each question has a process of its own: `cold` is its
first answer, `warm` the median of later ones.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.search import texts, vectors

SHARES = {"0.01 %": 0.0001, "1 %": 0.01, "50 %": 0.5}
DOCUMENTS = 100_000
WIDTH = 64
WARM_RUNS = 15
NEAREST = 10
SCHEMA = f"""
node Topic {{ name: String @key }}
node Doc {{
  slug: String @key
  topic: String @index
  body: String? @index
  v: Vector({WIDTH}) @index
}}
edge About: Doc -> Topic
"""
RANKINGS = {
    "words": "bm25($d.body, $q) desc",
    "vectors, exact": "nearest($d.v, $v)",
    "vectors, approx": "nearest($d.v, $v, approx)",
}
PATTERNS = {
    "through an edge": "$t: Topic { name: $topic } $d: Doc $d about $t",
    "by a property": "$d: Doc { topic: $topic }",
}

Ask = Callable[[], int]


def documents(count: int) -> tuple[pa.Table, str, list[float]]:
    """The rows, words to look for, and a vector to be near to."""
    rng = np.random.default_rng(1)
    table, vocabulary = texts(count, rng)
    column = vectors(count, WIDTH, rng)["v"]
    drawn = rng.random(count)
    topics = np.full(count, "other", dtype=object)
    low = 0.0
    for name, share in SHARES.items():
        topics[(drawn >= low) & (drawn < low + share)] = name
        low += share
    table = table.append_column("topic", pa.array(topics)).append_column("v", column)
    words = " ".join(vocabulary[rank] for rank in (50, 500, 5_000))
    return table, words, column[0].as_py()


def build(folder: Path, table: pa.Table) -> None:
    import lance

    import omnigraph

    graph = omnigraph.init(str(folder / "ours"), schema=SCHEMA)
    graph.load({"Topic": [{"name": name} for name in (*SHARES, "other")], "Doc": table})
    edges = pa.table({"from": table["slug"], "to": table["topic"]})
    graph.load({"About": edges})
    graph.optimize()
    peer = lance.write_dataset(table, str(folder / "lance"))
    peer.create_scalar_index("body", "INVERTED", with_position=True)
    peer.create_scalar_index("topic", "BITMAP")
    parts = {"num_partitions": max(1, table.num_rows // 4096), "num_sub_vectors": WIDTH // 8}
    peer.create_index("v", "IVF_PQ", metric="l2", **parts)


def ours(folder: Path, asked: dict[str, Any]) -> Ask:
    import omnigraph

    graph = omnigraph.open(str(folder / "ours"))
    words = asked["ranking"] == "words"
    more = "$q: String" if words else f"$v: Vector({WIDTH})"
    text = (
        f"query q($topic: String, {more}) {{ match {{ {PATTERNS[asked['pattern']]} }} "
        f"return {{ $d.slug as slug }} order {{ {RANKINGS[asked['ranking']]} }} limit {NEAREST} }}"
    )
    params = {"topic": asked["topic"]} | ({"q": asked["q"]} if words else {"v": asked["v"]})
    return lambda: len(graph.query(text, params))


def peer(folder: Path, asked: dict[str, Any]) -> Ask:
    import lance

    table = lance.dataset(str(folder / "lance"))
    same: dict[str, Any] = {"columns": ["slug"], "filter": f"topic = '{asked['topic']}'"}
    same["prefilter"] = True
    if asked["ranking"] == "words":
        return lambda: table.to_table(full_text_query=asked["q"], limit=NEAREST, **same).num_rows
    exact = asked["ranking"] == "vectors, exact"
    how = {"use_index": False} if exact else {"nprobes": 24, "refine_factor": 10}
    near = {"column": "v", "q": asked["v"], "k": NEAREST, **how}
    return lambda: table.to_table(nearest=near, **same).num_rows


def measured(folder: Path, asked: dict[str, Any]) -> dict[str, float]:
    ask = (peer if asked["pattern"] == "lance" else ours)(folder, asked)
    times = []
    for _ in range(WARM_RUNS + 1):
        started = time.perf_counter()
        rows = ask()
        times.append((time.perf_counter() - started) * 1e3)
    return {"cold": times[0], "warm": statistics.median(times[1:]), "rows": rows}


def in_a_process(folder: Path, asked: dict[str, Any]) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.search_filtered", "--answer", str(folder)]
    done = subprocess.run(
        command, input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def run(count: int = DOCUMENTS) -> None:
    """Print the table."""
    table, words, vector = documents(count)
    with tempfile.TemporaryDirectory(prefix="omnigraph-search-") as place:
        build(Path(place), table)
        print(f"{count:,} documents, the {NEAREST} best; cold / warm in milliseconds\n")
        print(f"| search | of | {' | '.join(PATTERNS)} | Lance, a filter |")
        print("|---|---|---:|---:|---:|")
        for ranking in RANKINGS:
            for topic in SHARES:
                asked = {"ranking": ranking, "topic": topic, "q": words, "v": vector}
                cells = [
                    in_a_process(Path(place), asked | {"pattern": pattern})
                    for pattern in (*PATTERNS, "lance")
                ]
                shown = " | ".join(f"{cell['cold']:.1f} / {cell['warm']:.2f}" for cell in cells)
                print(f"| {ranking} | {topic} | {shown} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--answer"]:
        print(json.dumps(measured(Path(sys.argv[2]), json.loads(sys.stdin.read()))))
    else:
        run(*(int(text) for text in sys.argv[1:2]))
