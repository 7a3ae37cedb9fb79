"""Reading: a compiled query and one state of a graph in, a result out.

In the order of control flow:

- `execute`      `run_query`: plan, run, result; one line per operator
- `many`         `run_many`: one query for many sets of parameters
- `order`        in which order patterns are walked
- `plan`         what every operator must produce: the variables read above it, and whether repetitions count
- `context`      the state of a run; `budget` its memory and time; `explain` the record of it
- `rows`         bags of rows, as positions in tables; operators hand them on in blocks
- `scan`         where patterns start
- `expand`       one hop and several; `walk` breadth-first levels; `shortest` paths, `all_shortest` every one of them
- `trails`       walks that follow no edge twice
- `chaining`     values beside entities: named, taken from lists, turned back into entities; `refs` what names entities
- `blocks`       exists, not, optional; `joins` on equal keys, `keyed` those that look nodes up by their keys
- `measured`     blocks that are counted or aggregated
- `expressions`  where expressions get their columns from; `values` whole entities and paths
- `aggregate`    one row per group: `groups` from keys, `reductions` of values
- `relational`   output columns; `sorting` orders, of any number of rows; `spill` those on disk
- `rank`         rankings by `search`
- `result`       what a caller gets
- `export`       a whole state as files or objects of the store, `ndjson` its records; `blobs` the bytes of one property
- `analytics`    measures of a whole graph; `profile` what its columns hold
- `checking`     checks run on a state, or on two that are compared

These build on:

- `columns`      the columns of a table version, `ids` rows by id
- `edges`        the edges of a type: `topology` built and extended, `topology_files` stored, `adjacency` the arrays;
                 of many edges they are made by `edge_sorting` and are `mapped_arrays`
- `cache`        one memory budget for all of it
- `arrays`       kinds of arrays and index calculations
"""

from __future__ import annotations

from omnigraph.read.budget import PROCESS, cancelled_by
from omnigraph.read.cache import SHARED, Cache
from omnigraph.read.edges import persist_topology
from omnigraph.read.execute import run_query
from omnigraph.read.explain import Explanation
from omnigraph.read.many import run_many
from omnigraph.read.result import Result

__all__ = [
    "PROCESS",
    "SHARED",
    "Cache",
    "Explanation",
    "Result",
    "cancelled_by",
    "persist_topology",
    "run_many",
    "run_query",
]
