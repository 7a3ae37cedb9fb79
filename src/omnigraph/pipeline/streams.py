"""Streams into a graph: every micro-batch is one load, published once however often Spark repeats it.

A batch is known by the stream it belongs to, which Spark keeps in the checkpoint, and its number there. A batch that
was published before its checkpoint could be written is handed over again after a restart; it is found and not loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from omnigraph.errors import OptionInvalid
from omnigraph.pipeline.session import context_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUERY = "sql.streaming.queryId"  # under which Spark tells a batch whose it is
RowsByType = Callable[["DataFrame"], Mapping[str, Any]]


def each_batch(
    graph: Any,
    rows: str | RowsByType,
    mode: str = "merge",
    *,
    stream: str | None = None,
    **options: Any,
) -> Callable[[DataFrame, int], None]:
    """What `foreachBatch` calls: loads each micro-batch as one commit, exactly once.

    `graph` may be a branch of one. `rows` is the type whose rows the stream has, or a function that makes rows by type
    of a batch. `stream` names the stream where Spark does not (behind Spark Connect); a new checkpoint needs a new
    name. Other options are those of `load`.
    """

    def load(batch: DataFrame, number: int) -> None:
        source = {rows: batch} if isinstance(rows, str) else rows(batch)
        key = f"stream:{stream or _stream_of(batch)}:{number}"
        graph.load(source, mode, engine="spark", idempotency_key=key, **options)

    return load


def _stream_of(batch: DataFrame) -> str:
    context = context_of(batch.sparkSession)
    found = None if context is None else context.getLocalProperty(QUERY)
    if found is None:
        raise OptionInvalid(
            "Spark does not say which stream a batch is of",
            help="Name it: each_batch(graph, type, stream='orders-1'). A new checkpoint needs a new name.",
        )
    return str(found)
