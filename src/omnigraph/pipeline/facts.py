"""The read set of a bulk load, for conflict detection: the ids, unique values and ends of the rows it wrote.

Other writers publish while a load is staged and verified. Conflicts with them are detected by tokens, as for every
write (`core/conflicts.py`); those of a load are read from its own files when they are first needed, and kept in a
file, so that they take 8 bytes of disk each and no memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import IO

import numpy as np
import pyarrow as pa

from omnigraph.core.plan import Reads
from omnigraph.model.catalog import Catalog, EdgeType
from omnigraph.model.tokens import Tokens, endpoint_tokens, id_tokens, union, unique_tokens
from omnigraph.pipeline.lookups import fresh_rows
from omnigraph.pipeline.verify import Touched


class LoadFacts:
    """The facts of a load by table: those written, and the nodes of their edges."""

    def __init__(self, touched: Mapping[str, Touched], catalog: Catalog) -> None:
        self._touched = touched
        self._catalog = catalog
        self._parts: dict[str, list[Tokens]] | None = None

    def reads(self, consulted: frozenset[str]) -> dict[str, Reads]:
        """The reads that the verdict on the load depends on."""
        return {table: Reads(later=partial(self._of, table)) for table in consulted}

    def _of(self, table: str) -> Sequence[Tokens]:
        if self._parts is None:
            self._parts = self._scanned()
        return self._parts.get(table, ())

    def _scanned(self) -> dict[str, list[Tokens]]:
        found: dict[str, list[Tokens]] = {}
        with (
            tempfile.TemporaryFile() as file
        ):  # the mapping lives until its last reference is dropped
            for touched in self._touched.values():
                for rows in fresh_rows(touched):
                    for table, tokens in self._tokens(touched, rows):
                        if len(tokens):
                            found.setdefault(table, []).append(_mapped(file, tokens))
        return found

    def _tokens(self, touched: Touched, rows: pa.Table) -> Iterator[tuple[str, Tokens]]:
        kind = touched.kind
        own = [id_tokens(rows["id"])]
        own += [unique_tokens(group, [rows[name] for name in group]) for group in kind.uniques]
        if isinstance(kind, EdgeType):
            if not kind.cardinality.is_free:
                own.append(endpoint_tokens("src", rows["src"]))
            for side, name in (("src", kind.from_type), ("dst", kind.to_type)):
                yield self._catalog.nodes[name].table_id, union([id_tokens(rows[side])])
        yield kind.table_id, union(own)


def _mapped(file: IO[bytes], tokens: Tokens) -> Tokens:
    start = file.seek(0, 2)
    file.write(tokens.tobytes())
    file.flush()
    return np.memmap(file, np.uint64, "r", start, len(tokens))
