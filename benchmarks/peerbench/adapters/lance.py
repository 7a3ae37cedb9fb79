"""Lance tables without a graph layer: hops are filters over the edge table, written by hand."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.peerbench.adapters.base import Adapter, Unsupported
from benchmarks.peerbench.gen import EDGES, NODES


def _among(column: str, ids: Iterable[int]) -> str:
    return f"{column} IN ({', '.join(map(str, ids))})"


class LanceByHand(Adapter):
    def __init__(self, place: Path) -> None:
        super().__init__(place)
        import lance

        self.module: Any = lance

    @property
    def version(self) -> str:
        return str(self.module.__version__)

    def load(self, files: Path, form: str) -> None:
        if form != "parquet":
            raise Unsupported("no reader for NDJSON")
        for name in (*NODES, *EDGES):
            table = pq.read_table(files / f"{name}.parquet")
            self.module.write_dataset(table, str(self.place / name))
        self._dataset("Person").create_scalar_index("id", "BTREE")
        self._dataset("Follows").create_scalar_index("src", "BTREE")
        self._open()

    def _dataset(self, name: str) -> Any:
        return self.module.dataset(str(self.place / name))

    def _open(self) -> None:
        self.persons, self.follows = self._dataset("Person"), self._dataset("Follows")

    def reopen(self) -> None:
        self._open()

    def prepare(self) -> None:
        self._dataset("Person").create_scalar_index("bio", "INVERTED")
        self._open()

    def _walk(self, person: int, hops: int) -> list[list[int]]:
        """Whom each hop leads to."""
        levels = [[person]]
        for _ in range(hops):
            levels.append(self._followed(levels[-1]))
        return levels[1:]

    def _followed(self, persons: list[int]) -> list[int]:
        if not persons:
            return []
        found = self.follows.to_table(columns=["dst"], filter=_among("src", persons))
        ids: list[int] = found["dst"].unique().to_pylist()
        return ids

    def _older(self, ids: list[int], age: int) -> list[int]:
        chosen = f"{_among('id', ids)} AND age > {age}"
        return [self.persons.count_rows(chosen) if ids else 0]

    def point(self, person: int) -> list[int]:
        found = self.persons.to_table(columns=["name", "age"], filter=f"id = {person}")
        ages: list[int] = found["age"].to_pylist()
        return ages

    def hop1(self, person: int, age: int) -> list[int]:
        return self._older(self._walk(person, 1)[-1], age)

    def hop2(self, person: int, age: int) -> list[int]:
        return self._older(self._walk(person, 2)[-1], age)

    def hop3(self, person: int, age: int) -> list[int]:
        return self._older(self._walk(person, 3)[-1], age)

    def reach(self, person: int) -> list[int]:
        return [len(set().union(*self._walk(person, 3)) - {person})]

    def _two_away(self, person: int, **search: Any) -> list[int]:
        chosen = _among("id", self._walk(person, 2)[-1])
        found = self.persons.scanner(columns=["id"], filter=chosen, prefilter=True, **search)
        ids: list[int] = found.to_table()["id"].to_pylist()
        return ids

    def vector(self, person: int, vector: list[float]) -> list[int]:
        wanted = np.asarray(vector, np.float32)
        near = {"column": "emb", "q": wanted, "k": 10, "metric": "cosine"}
        return self._two_away(person, nearest=near)

    def text(self, person: int, word: str) -> list[int]:
        return self._two_away(person, full_text_query=word)
