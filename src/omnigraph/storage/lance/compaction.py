"""Rewriting fragments that are too small or hold too many deleted rows."""

from __future__ import annotations

from collections.abc import Iterable

from lance.optimize import Compaction, CompactionOptions, RewriteResult

from omnigraph.storage.lance.failures import lance_errors
from omnigraph.storage.lance.reading import LanceTable, count_reads_and_writes, describe
from omnigraph.storage.lance.staging import FRAGMENT_ROWS_MAX, RowChange


def compact(table: LanceTable) -> RowChange:
    """Write the compacted fragments: Lance plans and writes."""
    table.handle.io_stats_incremental()
    with lance_errors(f"compacting table {table.ref.path}"):
        options = CompactionOptions(target_rows_per_fragment=FRAGMENT_ROWS_MAX)
        tasks = Compaction.plan(table.handle, options).tasks
        results = [task.execute(table.handle) for task in tasks]
    count_reads_and_writes(table.handle)
    return rewritten(results)


def rewritten(results: Iterable[RewriteResult]) -> RowChange:
    """What rewritten fragments mean for the table: an ordinary Update.

    An Update, because it lets Lance assign fragment ids (a Rewrite takes them as they come, and they come as 0) and
    because row addresses change anyway: indices forget the rewritten fragments until they are built over them again.
    """
    change = RowChange()
    for result in results:
        change.new.extend(result.new_fragments)
        change.removed.extend(old.id for old in result.original_fragments)
        change.replaced |= {describe(old).identity for old in result.original_fragments}
    for fragment in change.new:
        fragment.id = 0  # Lance assigns the next free one
    return change
