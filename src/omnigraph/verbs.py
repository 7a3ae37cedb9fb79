"""What a graph does apart from answering queries, gathered in one place.

`graph.py` and `versions.py` import this module with its first use, so that a query on the command line starts in half
the time.
"""

from __future__ import annotations

from omnigraph.branch import Branch
from omnigraph.core import branches
from omnigraph.core.create import create_graph
from omnigraph.core.doctor import diagnose
from omnigraph.core.first_commit import publish_first
from omnigraph.core.gc import Retention, collect
from omnigraph.core.group import Writers
from omnigraph.core.plan import Request
from omnigraph.lang.schema import compile_schema, encode_ir
from omnigraph.merge.biography import biography
from omnigraph.merge.conflicts import decisions
from omnigraph.merge.diff import diff
from omnigraph.merge.feed import changes
from omnigraph.pipeline.engine import export_by, loading, query_on_spark, spark_frames
from omnigraph.policy.guard import Need
from omnigraph.policy.questions import Action
from omnigraph.read.blobs import open_blob
from omnigraph.upkeep import Upkeep, optimize_branch
from omnigraph.write.apply_schema import apply_schema
from omnigraph.write.clone import clone_branch, clone_graph
from omnigraph.write.load import LoadOutcome, load
from omnigraph.write.merge import merge
from omnigraph.write.mutate import mutate, rehearsed
from omnigraph.write.undo import cherry_pick, reset, revert

__all__ = [
    "Action",
    "Branch",
    "LoadOutcome",
    "Need",
    "Request",
    "Retention",
    "Upkeep",
    "Writers",
    "apply_schema",
    "biography",
    "branches",
    "changes",
    "cherry_pick",
    "clone_branch",
    "clone_graph",
    "collect",
    "compile_schema",
    "create_graph",
    "decisions",
    "diagnose",
    "diff",
    "encode_ir",
    "export_by",
    "load",
    "loading",
    "merge",
    "mutate",
    "open_blob",
    "optimize_branch",
    "publish_first",
    "query_on_spark",
    "rehearsed",
    "reset",
    "revert",
    "spark_frames",
]
