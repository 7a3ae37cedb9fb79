"""How fast loads are: `python -m benchmarks.loading [--size M] [--runs 3] [--folder DIR]`.

The social network of the peer benchmark (S: 10,000 people, 50,000 follows; M: 100,000 and 2.4 million) is loaded from
Parquet and from NDJSON graph records, validated, in one commit; beside it the same tables written by Lance alone,
without ids, checks or a commit, and, where it is installed, loaded by Kuzu. Then 100,000 rows are merged into a
million, by a load and by Lance's `merge_insert`. Engines take turns, and the median counts.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import omnigraph
from benchmarks.peerbench.gen import DIM, EDGES, NODES, tables

SIZES: dict[str, tuple[int, int | None]] = {
    "S": (10_000, 50_000),
    "M": (100_000, None),
    "L": (2_000_000, 50_000_000),
}
LINES_ROWS_MAX = 5_000_000  # of a larger network there are no files of lines
SCHEMA = f"""
node Person {{ name: String  gender: String  age: I64  bio: String  emb: Vector({DIM}) }}
node City {{ city: String  state: String  country: String }}
node State {{ state: String  country: String }}
node Country {{ country: String }}
node Interest {{ interest: String }}
edge Follows: Person -> Person {{ since: I64 }}
edge LivesIn: Person -> City
edge HasInterest: Person -> Interest
edge CityIn: City -> State
edge StateIn: State -> Country
"""
COLUMNS = {
    "Person": ("id", "name", "gender", "age", "bio", "emb"),
    "City": ("id", "city", "state", "country"),
    "State": ("id", "state", "country"),
    "Country": ("id", "country"),
    "Interest": ("id", "interest"),
}
ENDS = {
    "Follows": ("Person", "Person"),
    "LivesIn": ("Person", "City"),
    "HasInterest": ("Person", "Interest"),
    "CityIn": ("City", "State"),
    "StateIn": ("State", "Country"),
}
MERGED, STORED = 100_000, 1_000_000


def written(folder: Path, size: str) -> dict[str, pa.Table]:
    """The graph's tables; as files, if they are not there yet."""
    persons, follows = SIZES[size]
    found: dict[str, pa.Table] = tables(persons, follows)
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "graph.jsonl").exists():
        return found
    lines = sum(table.num_rows for table in found.values()) <= LINES_ROWS_MAX
    for name, table in found.items():
        pq.write_table(table, folder / f"{name}.parquet")
        if not lines:
            continue
        (folder / f"{name}.json").write_text(
            "".join(json.dumps(r) + "\n" for r in table.to_pylist())
        )
    with (folder / "graph.jsonl").open("w") as out:
        for name, table in found.items() if lines else ():
            for row in table.to_pylist():
                out.write(json.dumps(_record(name, row)) + "\n")
    return found


def _record(name: str, row: dict[str, Any]) -> dict[str, Any]:
    if name in NODES:
        return {"type": name, "data": {**row, "id": str(row["id"])}}
    ends = {"from": str(row.pop("src")), "to": str(row.pop("dst"))}
    return {"edge": name, **ends, **({"data": row} if row else {})}


def load_by_us(source: Any, place: Path) -> float:
    graph = omnigraph.init(place, schema=SCHEMA)
    began = time.perf_counter()
    graph.load(source, mode="append", engine="local")
    return time.perf_counter() - began


def load_by_lance(folder: Path, place: Path) -> float:
    began = time.perf_counter()
    for name in [*NODES, *EDGES]:
        lance.write_dataset(pq.read_table(folder / f"{name}.parquet"), str(place / name))
    return time.perf_counter() - began


def load_by_kuzu(folder: Path, place: Path, ending: str) -> float:
    kuzu: Any = importlib.import_module("kuzu")
    place.mkdir()
    connection = kuzu.Connection(kuzu.Database(str(place / "graph.db")))
    if ending == "json":
        connection.execute("LOAD EXTENSION JSON")
    began = time.perf_counter()
    for statement in kuzu_tables():
        connection.execute(statement)
    for name in [*NODES, *EDGES]:
        file = folder / f"{name}.{ending}"
        columns = "src, dst" + (", since" if name == "Follows" else "")
        mapped = f"(LOAD FROM '{file}' RETURN {columns})"
        source = mapped if name in EDGES and ending == "json" else f"'{file}'"
        connection.execute(f"COPY {name} FROM {source}")
    return time.perf_counter() - began


def kuzu_tables() -> list[str]:
    kinds = {"id": "INT64", "age": "INT64", "emb": f"FLOAT[{DIM}]"}
    nodes = []
    for name, columns in COLUMNS.items():
        typed = ", ".join(f"{column} {kinds.get(column, 'STRING')}" for column in columns)
        nodes.append(f"CREATE NODE TABLE {name}({typed}, PRIMARY KEY(id))")
    edges = [
        f"CREATE REL TABLE {name}(FROM {a} TO {b}{', since INT64' if name == 'Follows' else ''})"
        for name, (a, b) in ENDS.items()
    ]
    return nodes + edges


def engines(folder: Path) -> dict[str, Callable[[Path], float]]:
    """What takes turns: a name, and how it loads into an empty place."""
    files = {name: folder / f"{name}.parquet" for name in [*NODES, *EDGES]}
    found: dict[str, Callable[[Path], float]] = {
        "omnigraph, Parquet": lambda place: load_by_us(files, place),
        "omnigraph, NDJSON": lambda place: load_by_us(folder / "graph.jsonl", place),
        "Lance alone, Parquet": lambda place: load_by_lance(folder, place),
    }
    if importlib.util.find_spec("kuzu") is not None:
        found["Kuzu, Parquet"] = lambda place: load_by_kuzu(folder, place, "parquet")
        found["Kuzu, NDJSON"] = lambda place: load_by_kuzu(folder, place, "json")
    return found


def take_turns(contenders: dict[str, Callable[[Path], float]], runs: int) -> dict[str, list[float]]:
    """Every contender once per round, each in a fresh folder."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(runs):
        for name, run in contenders.items():
            with tempfile.TemporaryDirectory() as scratch:
                try:
                    seconds[name].append(run(Path(scratch) / "store"))
                except RuntimeError as failure:
                    print(f"{name}: {str(failure).splitlines()[0]}")
    return {name: found for name, found in seconds.items() if found}


def report(title: str, rows: int, seconds: dict[str, list[float]]) -> None:
    print(f"\n{title}: {rows:,} rows")
    for name, found in seconds.items():
        middle = statistics.median(found)
        print(
            f"  {name:24} {middle:7.2f} s  {rows / middle:12,.0f} rows/s  (best {min(found):.2f} s)"
        )
    for ours, theirs in RATIOS:
        if ours in seconds and theirs in seconds:
            ratio = statistics.median(seconds[ours]) / statistics.median(seconds[theirs])
            print(f"  {ours} / {theirs}: {ratio:.2f}")


RATIOS = (
    ("omnigraph, Parquet", "Kuzu, Parquet"),
    ("omnigraph, NDJSON", "Kuzu, NDJSON"),
    ("omnigraph, Parquet", "Lance alone, Parquet"),
    ("omnigraph, merge", "Lance alone, merge"),
)


def merges() -> dict[str, Callable[[Path], float]]:
    """100,000 rows, half of them new, into a million."""
    stored, given = _people(0, STORED), _people(STORED - MERGED // 2, MERGED)

    def ours(place: Path) -> float:
        graph = omnigraph.init(
            place, schema="node Person { name: String @key  age: I64  city: String }"
        )
        graph.load({"Person": stored.drop_columns(["id"])}, mode="append")
        began = time.perf_counter()
        graph.load({"Person": given.drop_columns(["id"])})
        return time.perf_counter() - began

    def theirs(place: Path) -> float:
        dataset = lance.write_dataset(stored, str(place))
        began = time.perf_counter()
        merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(given)
        return time.perf_counter() - began

    return {"omnigraph, merge": ours, "Lance alone, merge": theirs}


def _people(first: int, count: int) -> pa.Table:
    numbers = np.arange(first, first + count)
    names = pa.array([f"person {n:08}" for n in numbers])
    cities = pa.array([f"city {n % 997}" for n in numbers])
    return pa.table({"id": names, "name": names, "age": pa.array(numbers % 90), "city": cities})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=sorted(SIZES), action="append")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where generated files are kept between runs")
    chosen = parser.parse_args()
    folder = chosen.folder or Path(tempfile.mkdtemp())
    try:
        for size in chosen.size or ["S", "M"]:
            rows = sum(table.num_rows for table in written(folder / size, size).values())
            report(f"{size} graph", rows, take_turns(engines(folder / size), chosen.runs))
        report("merge into a million", MERGED, take_turns(merges(), chosen.runs))
    finally:
        if chosen.folder is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
