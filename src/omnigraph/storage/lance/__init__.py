"""Tables as Lance datasets: the only package that imports lance.

In: table references, edits, typed predicates. Out: opened versions, and new versions nobody sees yet.

- `store`: `LanceTables`, what the core holds; each method reads as the steps of its work.
- `handles`: the one opener, its cache, what it refuses to open, and the one call that commits.
- `foreign`: files that are not the table's own; `rust`: graphs of another program.
- `reading`: one opened version.
- `staging`: rows deleted and added; `absorb`: small fragments taken along.
- `recent`: rows written lately, still in memory.
- `altering`: columns edited; `columns`: blobs between callers and Lance.
- `indexing`: segments built, replaced, carried to another base.
- `parts`: compaction, and maintenance that other processes do;
  `rewriting`: what was compacted, carried to another base.
- `failures`: what Lance raises, as errors of ours.
"""

from omnigraph.storage.lance.store import LanceTables

__all__ = ["LanceTables"]
