"""The change feed of a served graph, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

import pyarrow as pa

from omnigraph.merge.diff import INSERT
from omnigraph.merge.feed import Change
from omnigraph.model.frozen import frozen
from omnigraph.wire.feed import FeedBlock, FeedOutput

STORED = {"from": "src", "to": "dst"}  # what loads and exports call the ends of an edge


@frozen
class RemoteFeed:
    """The changes of a branch after a commit; iterating reads them page by page."""

    pages: Callable[[Mapping[str, Any]], FeedOutput]
    query: Mapping[str, Any]
    start: str
    after: str | None
    limit: int | None  # commits
    begin: Callable[[], RemoteBaseline]

    def baseline(self) -> RemoteBaseline:
        """All rows as of now, to start from."""
        return self.begin()

    def commits(self) -> Iterator[tuple[str, list[Change]]]:
        """The id of each commit and its changes."""
        return islice(self._commits(), self.limit)

    def _commits(self) -> Iterator[tuple[str, list[Change]]]:
        held: tuple[str, list[Change]] | None = None
        for block in self._blocks():
            id = block.cause.graph_commit_id
            found = [change.value(id) for change in block.changes]
            if held is not None and held[0] == id:  # a commit may continue on the next page
                held[1].extend(found)
                continue
            if held is not None:
                yield held
            held = (id, found)
        if held is not None:
            yield held

    def _blocks(self) -> Iterator[FeedBlock]:
        position: dict[str, Any] = {"start": self.start}
        while True:
            page = self.pages({**self.query, **position})
            yield from page.blocks
            if page.next_page_token:
                position = {"page_token": page.next_page_token}
            elif page.caught_up:
                return
            else:
                position = {"cursor": page.cursor}

    def __iter__(self) -> Iterator[Change]:
        for _, changes in self.commits():
            yield from changes

    @property
    def cursor(self) -> str:
        """The position where this feed ends: `after` for the next one."""
        last = self.after or ""
        for id, _ in self.commits():
            last = id
        return last


@frozen
class RemoteBaseline:
    """All rows at one commit, and the cursor from which the feed continues."""

    cursor: str
    kinds: tuple[tuple[str, str], ...]  # kind and name of each type
    rows: Callable[[str, str], pa.Table]  # of a type, at a commit

    def batches(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Type names and rows, nodes first."""
        for _, name in self.kinds:
            found = self.rows(name, self.cursor)
            stored = [STORED.get(column, column) for column in found.column_names]
            for batch in found.rename_columns(stored).to_batches():
                yield name, batch

    def __iter__(self) -> Iterator[Change]:
        """Every row as an insertion."""
        kinds = {name: kind for kind, name in self.kinds}
        for name, batch in self.batches():
            for row in batch.to_pylist():
                yield Change(self.cursor, name, kinds[name], INSERT, row["id"], None, row)
