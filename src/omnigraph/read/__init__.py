"""Reading: a compiled query and one state of a graph in, a result out.

In the order of control flow:

- `execute`      `run_query`: plan, run, result; one line per operator
- `order`        in which order patterns are walked
- `plan`         what every operator has to deliver: which variables are read above it, and whether repetitions count
- `context`      what a run carries along; `trace` and `explain` what is recorded of it
- `rows`         bags of rows, as positions in tables
- `scan`         where patterns start
- `expand`       one hop and several; `walk` breadth-first levels; `shortest` paths
- `blocks`       exists, not, optional, join
- `expressions`  values of whole columns: `numbers`, `texts`, `lists`, `functions`, `values`, `elementwise`
- `aggregate`    groups; `relational` output columns; `rank` rankings by `search`
- `result`       what a person holds
- `export`       a whole state as files, `export_parts` as objects of the store; `blobs` the bytes of one property
- `analytics`    measures of a whole graph; `degrees` the edges that meet one node

And what they stand on:

- `columns`      the columns of a table version, `ids` rows by id
- `edges`        the edges of a type: `topology` built and extended, `topology_files` stored, `adjacency` the arrays
- `cache`        one memory budget for all of it
- `arrays`       kinds of arrays and index calculations
"""

from __future__ import annotations

from omnigraph.read.cache import SHARED, Cache
from omnigraph.read.edges import persist_topology
from omnigraph.read.execute import run_query
from omnigraph.read.explain import Explanation
from omnigraph.read.result import Result

__all__ = ["SHARED", "Cache", "Explanation", "Result", "persist_topology", "run_query"]
