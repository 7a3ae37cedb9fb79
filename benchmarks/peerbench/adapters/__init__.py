"""One class per engine, by the name it is called in reports.

base        what an engine has to do
ours        omnigraph
cypher      Kuzu and Ladybug
sql         DuckDB and SQLite
lance       Lance tables without a graph layer, walked by hand

Packages of peers are not dependencies of this project: an adapter imports its package when it is made.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.peerbench.adapters.base import Adapter
from benchmarks.peerbench.adapters.cypher import Kuzu, Ladybug
from benchmarks.peerbench.adapters.lance import LanceByHand
from benchmarks.peerbench.adapters.ours import Omnigraph
from benchmarks.peerbench.adapters.sql import DuckDB, SQLite

ADAPTERS: dict[str, type[Adapter]] = {
    "omnigraph": Omnigraph,
    "kuzu": Kuzu,
    "ladybug": Ladybug,
    "duckdb": DuckDB,
    "sqlite": SQLite,
    "lance": LanceByHand,
}


def make(name: str, place: Path) -> Adapter:
    return ADAPTERS[name](place)
