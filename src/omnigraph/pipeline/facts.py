"""The read set of a bulk load, for conflict detection: ids, unique values and ends of its rows and those it replaces.

Other writers publish while a load is staged and verified. Conflicts with them are detected by tokens, as for every
write (`core/conflicts.py`); those of a load are made from its own files when they are first needed, by tasks if there
are many, and kept in a file, so that they take 8 bytes of disk each and no memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from omnigraph.core.plan import Reads
from omnigraph.model.catalog import Catalog, EdgeType, NodeOrEdgeType, NodeType
from omnigraph.model.frozen import frozen
from omnigraph.model.tokens import Tokens, endpoint_tokens, id_tokens, union, unique_tokens
from omnigraph.pipeline.pinned import Pinned
from omnigraph.pipeline.row_addresses import pack, unpack
from omnigraph.pipeline.rows import kind_by_table
from omnigraph.pipeline.session import beside_each_other, parallelism
from omnigraph.pipeline.stage import answer, answers
from omnigraph.pipeline.table_versions import TableVersion, open_table
from omnigraph.pipeline.verify import Verification
from omnigraph.storage.tables import RowAddresses
from omnigraph.write.resolve import Mode, before_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STORED_ROWS = 1 << 18  # read at a time
WAVES_AT_ONCE = 2
What = Literal["new", "changed", "removed"]
Found = tuple[str, bool, bytes]  # a table, whether staged rows were made from it, sorted tokens


@frozen
class Share:
    """Rows of a type that a load writes, or stored ones that it changes or removes."""

    table_id: str
    what: What
    version: TableVersion
    fragments: tuple[int, ...] = ()
    addresses: bytes = b""

    def rows(self, kind: NodeOrEdgeType) -> pa.Table:
        """The columns of these rows that rules use."""
        table, columns = open_table(self.version.uri, self.version.ref), before_columns(kind)
        if self.what == "new":
            return pa.Table.from_batches(table.batches(columns, fragments=self.fragments))
        return table.take(unpack([self.addresses]).addresses, columns)


class LoadFacts:
    """The facts of a load by table: those of its rows, those of stored rows it replaces, and the nodes of its edges."""

    def __init__(
        self, case: Verification, pinned: Pinned, session: SparkSession | None = None
    ) -> None:
        self._case, self._pinned, self._session = case, pinned, session
        self._parts: dict[tuple[str, bool], list[Tokens]] | None = None

    def reads(self, consulted: frozenset[str]) -> dict[str, Reads]:
        """The reads that the verdict on the load depends on."""
        return {table: Reads(later=partial(self._of, table)) for table in consulted}

    def reads_of_rows(self, consulted: frozenset[str]) -> dict[str, Reads]:
        """The reads that its staged rows depend on: a merge completes them from stored ones, and finds the edges of
        removed nodes."""
        later = self._of_rows if self._case.mode is Mode.MERGE else lambda _: ()
        return {table: Reads(later=partial(later, table)) for table in consulted}

    def _of(self, table: str) -> Sequence[Tokens]:
        return [*self._of_rows(table), *self._made().get((table, False), ())]

    def _of_rows(self, table: str) -> Sequence[Tokens]:
        return self._made().get((table, True), ())

    def _made(self) -> dict[tuple[str, bool], list[Tokens]]:
        if self._parts is None:
            self._parts = {}
            with tempfile.TemporaryFile() as file:  # mapped until the last reference is dropped
                for table, of_rows, tokens in self._scanned():
                    self._parts.setdefault((table, of_rows), []).append(_mapped(file, tokens))
        return self._parts

    def _scanned(self) -> Iterator[Found]:
        session, shares = self._session, list(_shares(self._case))

        def run(wave: Sequence[Share]) -> list[Found]:
            task = _facts_task(self._pinned, wave)
            return [
                found for each in answers(session, task, len(wave), list[Found]) for found in each
            ]

        size = 1 if session is None else parallelism(session)
        waves = (shares[at : at + size] for at in range(0, len(shares), size))
        for found in beside_each_other(session, run, waves, WAVES_AT_ONCE):
            yield from found


def _shares(case: Verification) -> Iterator[Share]:
    for table, touched in case.touched.items():
        for fragment in sorted(touched.after.fresh):
            yield Share(table, "new", touched.after, (fragment,))
        both: Mapping[What, RowAddresses] = {"changed": touched.changed, "removed": touched.removed}
        for what, rows in both.items():
            for first in range(0, len(rows), STORED_ROWS):
                some = pack([rows.addresses.slice(first, STORED_ROWS)])
                yield Share(table, what, touched.base, addresses=some)


def _facts_task(pinned: Pinned, shares: Sequence[Share]) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield answer(list(_facts_of(shares[number], pinned)))

    return run


# --- the facts of rows ---------------------------------------------------------------------------------------------

Fact = tuple[str, bool, Tokens]


def _facts_of(share: Share, pinned: Pinned) -> Iterator[Found]:
    catalog = pinned.snapshot().catalog
    kind = kind_by_table(catalog, share.table_id)
    if share.what == "changed" and not _is_counted(kind):
        return
    together: dict[tuple[str, bool], list[Tokens]] = {}
    for table, of_rows, tokens in _facts(share.what, kind, catalog, share.rows(kind)):
        together.setdefault((table, of_rows), []).append(tokens)
    for (table, of_rows), parts in together.items():
        found = union(parts)
        if len(found):
            yield table, of_rows, found.tobytes()


def _facts(what: What, kind: NodeOrEdgeType, catalog: Catalog, rows: pa.Table) -> Iterator[Fact]:
    if _is_counted(kind):
        yield kind.table_id, False, endpoint_tokens("src", rows["src"])
    match what:
        case "new":
            yield kind.table_id, True, id_tokens(rows["id"])
            yield from _of_new(kind, catalog, rows)
        case "removed":
            yield kind.table_id, True, id_tokens(rows["id"])
            yield from _of_incident(kind, catalog, rows)


def _of_new(kind: NodeOrEdgeType, catalog: Catalog, rows: pa.Table) -> Iterator[Fact]:
    for group in kind.uniques:
        yield kind.table_id, False, unique_tokens(group, [rows[name] for name in group])
    if isinstance(kind, EdgeType):
        for side, name in kind.ends:
            yield catalog.nodes[name].table_id, False, id_tokens(rows[side])


def _of_incident(kind: NodeOrEdgeType, catalog: Catalog, rows: pa.Table) -> Iterator[Fact]:
    """No other edge may come to a removed node."""
    for edge in catalog.incident_edges(kind.name) if isinstance(kind, NodeType) else ():
        for side, name in edge.ends:
            if name == kind.name:
                yield edge.table_id, True, endpoint_tokens(side, rows["id"])


def _is_counted(kind: NodeOrEdgeType) -> bool:
    return isinstance(kind, EdgeType) and not kind.cardinality.is_free


def _mapped(file: IO[bytes], tokens: bytes) -> Tokens:
    start = file.seek(0, 2)
    file.write(tokens)
    file.flush()
    return np.memmap(file, np.uint64, "r", start, len(tokens) // 8)
