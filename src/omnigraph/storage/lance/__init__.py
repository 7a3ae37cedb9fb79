"""Tables as Lance datasets: the only package that imports lance.

In: table references, edits, typed predicates. Out: opened versions, and new unpublished versions.

- `store`: `LanceTables`, the object the core uses; each method reads as the steps of its work.
- `handles`: the one opener, its cache, the checks on opening, and the one call that commits.
- `foreign`: files that are not the table's own; `rust`: graphs of another program.
- `reading`: one opened version.
- `staging`: rows deleted and added; `absorb`: small fragments merged by appends.
- `recent`: recently written rows, still in memory.
- `altering`: columns edited; `columns`: blobs between callers and Lance.
- `indexing`: segments built, replaced, moved to another base.
- `parts`: compaction, and maintenance run by other processes;
  `rewriting`: compacted fragments, moved to another base.
- `failures`: Lance's exceptions as our errors.
"""

from omnigraph.storage.lance.store import LanceTables

__all__ = ["LanceTables"]
