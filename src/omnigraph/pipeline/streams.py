"""Streams into a graph: every micro-batch is one load, published once however often Spark repeats it.

A batch is identified by its stream, which Spark keeps in the checkpoint, and its number there. A batch that was
published before its checkpoint could be written is repeated after a restart; it is recognised and not loaded again.
The work after a batch (compaction, a merge into another branch) is idempotent.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from omnigraph.errors import OptionInvalid
from omnigraph.model.frozen import frozen
from omnigraph.pipeline.session import context_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from omnigraph.outcomes import Commit

log = logging.getLogger("omnigraph.pipeline")
LAG_COMMITS_MAX = 1_000
QUERY = "sql.streaming.queryId"  # under which Spark stores the stream of a batch
RowsByType = Callable[["DataFrame"], Mapping[str, Any]]


@frozen
class AfterBatches:
    """Work of a stream after every n batches: compaction, and a merge of its branch."""

    optimize_every: int | None = None
    merge_into: str | None = None
    merge_every: int = 1

    def __post_init__(self) -> None:
        for every in (self.optimize_every, self.merge_every):
            if every is not None and every < 1:
                raise OptionInvalid("a stream optimises and merges after at least one batch")

    def run(self, graph: Any, branch: str, number: int) -> None:
        """Run after a batch. A conflict is logged and left to people; the stream continues."""
        if self.optimize_every and (number + 1) % self.optimize_every == 0:
            graph.optimize(branch)
        if self.merge_into is not None and (number + 1) % self.merge_every == 0:
            done = graph.merge(branch, into=self.merge_into)
            if done.outcome == "conflict":
                log.warning(
                    "%s does not merge into %s: %d conflicts; the stream continues",
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
    """A function for `foreachBatch` that loads each micro-batch as one commit, exactly once.

    `graph` may be a branch. `rows` is the type of the stream's rows, or a function from a batch to rows by type.
    `stream` names the stream if Spark does not (with Spark Connect); a new checkpoint needs a new name. `after` sets
    when to compact and to merge. Other options are those of `load`.
    """
    branch = str(options.get("branch") or getattr(graph, "name", "main"))  # a branch has a name

    def load(batch: DataFrame, number: int) -> None:
        source = {rows: batch} if isinstance(rows, str) else rows(batch)
        key = f"stream:{stream or _stream_of(batch)}:{number}"
        graph.load(source, mode, engine="spark", idempotency_key=key, **options)
        if after is not None:
            after.run(graph, branch, number)

    return load


@frozen
class StreamLag:
    """The lag of a stream of changes behind its branch: commits, and the age of the oldest in seconds."""

    commits: int
    seconds: float


def stream_lag(graph: Any, query: Any, branch: str = "main") -> StreamLag:
    """The lag of a running query over the changes of a branch; counted up to a thousand commits.

    Of several sources that read changes of the branch, it is that of the one furthest behind.
    """
    log = list(graph.log(branch, LAG_COMMITS_MAX))
    chains = {_chain(commit.id) for commit in log}
    seen = {commit for commit in _delivered(query.lastProgress) if _chain(commit) in chains}
    behind = max((_since(commit, log) for commit in seen), key=len, default=log)
    if not behind:
        return StreamLag(0, 0.0)
    return StreamLag(len(behind), (datetime.now(UTC) - behind[-1].time).total_seconds())


def _delivered(progress: Any) -> Iterator[str]:
    """The last commits that sources of changes have delivered; other sources have offsets of other kinds."""
    for source in () if progress is None else progress["sources"]:
        end = source["endOffset"]
        with suppress(ValueError):
            end = json.loads(end) if isinstance(end, str) else end
        if isinstance(end, dict) and "commit" in end:
            yield str(end["commit"])


def _since(last: str, log: list[Commit]) -> list[Commit]:
    return list(takewhile(lambda commit: commit.id != last, log))


def _chain(commit: str) -> str:
    return commit.partition(".")[0]


def _stream_of(batch: DataFrame) -> str:
    context = context_of(batch.sparkSession)
    found = None if context is None else context.getLocalProperty(QUERY)
    if found is None:
        raise OptionInvalid(
            "Spark does not report the stream of a batch",
            help="Name it: each_batch(graph, type, stream='orders-1'). A new checkpoint needs a new name.",
        )
    return str(found)
