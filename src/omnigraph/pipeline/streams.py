"""Streams into a graph: every micro-batch is one load, published once however often Spark repeats it.

A batch is known by the stream it belongs to, which Spark keeps in the checkpoint, and its number there. A batch that
was published before its checkpoint could be written is handed over again after a restart; it is found and not loaded.
What follows a batch (compaction, a merge into another branch) changes nothing when it is done twice.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from omnigraph.errors import OptionInvalid
from omnigraph.pipeline.session import context_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger("omnigraph.pipeline")
LAG_COMMITS_MAX = 1_000
QUERY = "sql.streaming.queryId"  # under which Spark tells a batch whose it is
RowsByType = Callable[["DataFrame"], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class AfterBatches:
    """What a stream does besides loading, each time after so many batches: compaction, and a merge of its branch."""

    optimize_every: int | None = None
    merge_into: str | None = None
    merge_every: int = 1

    def __post_init__(self) -> None:
        for every in (self.optimize_every, self.merge_every):
            if every is not None and every < 1:
                raise OptionInvalid("a stream optimises and merges after one batch or more")

    def run(self, graph: Any, branch: str, number: int) -> None:
        """Follow a batch. A conflict is logged and left to people; the stream goes on."""
        if self.optimize_every and (number + 1) % self.optimize_every == 0:
            graph.optimize(branch)
        if self.merge_into is not None and (number + 1) % self.merge_every == 0:
            done = graph.merge(branch, into=self.merge_into)
            if done.outcome == "conflict":
                log.warning(
                    "%s does not merge into %s: %d conflicts; the stream goes on",
                    branch,
                    self.merge_into,
                    len(done.conflicts),
                )


def each_batch(
    graph: Any,
    rows: str | RowsByType,
    mode: str = "merge",
    *,
    stream: str | None = None,
    after: AfterBatches | None = None,
    **options: Any,
) -> Callable[[DataFrame, int], None]:
    """What `foreachBatch` calls: loads each micro-batch as one commit, exactly once.

    `graph` may be a branch of one. `rows` is the type whose rows the stream has, or a function that makes rows by type
    of a batch. `stream` names the stream where Spark does not (behind Spark Connect); a new checkpoint needs a new
    name. `after` says when to compact and to merge. Other options are those of `load`.
    """
    branch = str(options.get("branch") or getattr(graph, "name", "main"))  # a branch has a name

    def load(batch: DataFrame, number: int) -> None:
        source = {rows: batch} if isinstance(rows, str) else rows(batch)
        key = f"stream:{stream or _stream_of(batch)}:{number}"
        graph.load(source, mode, engine="spark", idempotency_key=key, **options)
        if after is not None:
            after.run(graph, branch, number)

    return load


@dataclass(frozen=True, slots=True)
class StreamLag:
    """How far a stream of changes is behind its branch: commits, and the age of the oldest of them in seconds."""

    commits: int
    seconds: float


def stream_lag(graph: Any, query: Any, branch: str = "main") -> StreamLag:
    """How far a running query over the changes of a branch is behind; counted up to a thousand commits."""
    told = query.lastProgress
    seen = None
    if told is not None:
        end = told["sources"][0]["endOffset"]
        seen = (json.loads(end) if isinstance(end, str) else end or {}).get("commit")
    behind = list(takewhile(lambda c: c.id != seen, graph.log(branch, LAG_COMMITS_MAX)))
    if not behind:
        return StreamLag(0, 0.0)
    return StreamLag(len(behind), (datetime.now(UTC) - behind[-1].time).total_seconds())


def _stream_of(batch: DataFrame) -> str:
    context = context_of(batch.sparkSession)
    found = None if context is None else context.getLocalProperty(QUERY)
    if found is None:
        raise OptionInvalid(
            "Spark does not say which stream a batch is of",
            help="Name it: each_batch(graph, type, stream='orders-1'). A new checkpoint needs a new name.",
        )
    return str(found)
