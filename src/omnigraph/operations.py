"""What a graph does apart from answering queries, gathered in one place.

`graph.py` and `versions.py` import this module on first use, so that a query on the command line starts in half
the time.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.branch import BlockOptions, Branch, WriteBlock, Written
from omnigraph.core import branches
from omnigraph.core.check_results import store_run, stored_runs
from omnigraph.core.create import create_graph
from omnigraph.core.first_commit import publish_first
from omnigraph.core.group import Writers
from omnigraph.core.plan import NOTHING, Request, dry_run
from omnigraph.core.proposals import merge_landed
from omnigraph.core.records import RetentionPolicy
from omnigraph.lang.checks import CheckNotFound, parse_checks
from omnigraph.lang.diagnostics import LanguageError
from omnigraph.lang.query import Want
from omnigraph.lang.schema import compile_schema, encode_ir
from omnigraph.maintenance.collection import Retention, collect, retained
from omnigraph.maintenance.doctor import diagnose
from omnigraph.maintenance.embedding import count_missing, embed_missing, embedded_properties
from omnigraph.maintenance.jobs import expire
from omnigraph.maintenance.reviews import forget_reviews
from omnigraph.maintenance.status import checked, retention, set_retention
from omnigraph.maintenance.status import status as maintenance_status
from omnigraph.maintenance.upkeep import Maintainer, Upkeep, optimize_branch, store_loaded
from omnigraph.merge.blame import blame
from omnigraph.merge.conflicts import decisions
from omnigraph.merge.diff import diff
from omnigraph.merge.feed import changes
from omnigraph.merge.lineage import merge_base
from omnigraph.merge.row_history import row_history
from omnigraph.pipeline.engine import (
    answer_by,
    export_by,
    loading,
    query_on_spark,
    spark_frames,
)
from omnigraph.policy.guard import Need
from omnigraph.policy.subjects import types_read
from omnigraph.read import run_query
from omnigraph.read.blobs import open_blob
from omnigraph.read.checking import Asking, demanded, report_of, run_checks, stored_run
from omnigraph.read.profile import profile
from omnigraph.read.search.embed import settings_of
from omnigraph.write.apply_checks import apply_checks, changed_checks
from omnigraph.write.apply_schema import apply_schema
from omnigraph.write.clone import clone_branch, clone_graph
from omnigraph.write.load import LoadOutcome, load
from omnigraph.write.merge import merge
from omnigraph.write.mutate import mutate, together
from omnigraph.write.undo import cherry_pick, reset, revert
