"""All routes. Authentication, policy, limits, metrics, the description and the tests of access follow this table.

`served` makes the route of a verb from its description in `omnigraph.verbs`, which defines everything but its handler.
All other routes are about the server, or are another way to a verb.

The handlers by noun: `about` the server itself and the caller, `ui` the explorer; `reading` (queries), `checks` (of
texts; the schema), `entities` and their blobs, `exports`; `writing` (mutations, several writes as one, schema changes)
and `loads`; `agents` (MCP); `jobs`; `versions` (branches, tags, commits, merges, the history of all branches) and
`feed`, the changes; `review` (checks, proposals, profiles); `clusters` plans and applies clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from omnigraph.policy.guard import Need
from omnigraph.policy.questions import Action
from omnigraph.server.request import HttpCall
from omnigraph.server.routes import (
    about,
    agents,
    checks,
    clusters,
    entities,
    exports,
    feed,
    jobs,
    loads,
    reading,
    review,
    ui,
    versions,
    writing,
)
from omnigraph.server.routing import Handler, Route, RouteWork, nothing
from omnigraph.verbs import VERBS
from omnigraph.wire.answers import (
    ChangeOutput,
    CheckOutput,
    EntityOutput,
    HistoryOutput,
    LoadOutput,
    PermissionsOutput,
    PreviewOutput,
    SessionOutput,
)
from omnigraph.wire.feed import FeedBlock
from omnigraph.wire.jobs import JobOutput, JobsOutput
from omnigraph.wire.reading import ReadOutput
from omnigraph.wire.requests import (
    BaselineRequest,
    BlobQuery,
    BranchQuery,
    ClusterRequest,
    ExportJobRequest,
    ExportRequest,
    GraphQuery,
    HistoryQuery,
    ImportRequest,
    InvokeRequest,
    LoadRequest,
    MutateRequest,
    PageQuery,
    PermissionsQuery,
    PreviewRequest,
    QueryCheckRequest,
    QueryRequest,
    SchemaCheckRequest,
)

A = Action
WORK = {"load": RouteWork.LOAD, "export": RouteWork.EXPORT}  # all other verbs read or write


def served(
    name: str,
    handler: Handler,
    needs: Callable[[HttpCall], Iterable[Need]] = nothing,
    *,
    conditional: bool = False,
) -> Route:
    """The route of a verb, which checks the policy itself; `needs` is checked before a body is read.

    A `conditional` one depends on the head of its branch.
    """
    verb = VERBS[name]
    method, path = (verb.route or "").split()
    shape: dict[str, Any] = {"body" if method == "POST" else "query": verb.request_type}
    work = WORK.get(name, RouteWork.WRITE if verb.writes else RouteWork.READ)
    path += "/if-graph-commit" if conditional else ""
    return Route(
        method,
        path,
        handler,
        verb.action,
        needs,
        work,
        **shape,
        answer=verb.answer_type,
        conditional=conditional,
        verb=verb,
    )


# fmt: off
ROUTES: tuple[Route, ...] = (
    # the server
    Route("GET", "/healthz", about.healthz, None, nothing, RouteWork.NONE, flat=True, public=True),
    Route("GET", "/readyz", about.readyz, None, nothing, flat=True, public=True),
    Route("GET", "/metrics", about.metrics, None, nothing, RouteWork.NONE, flat=True),
    Route("GET", "/openapi.json", about.openapi, None, nothing, RouteWork.NONE, flat=True, public=True),
    Route("GET", "/docs", about.docs, None, nothing, RouteWork.NONE, flat=True, public=True),
    Route("GET", "/ui", ui.index, None, nothing, RouteWork.NONE, flat=True, public=True, page=True),
    Route("GET", "/ui/{path*}", ui.page, None, nothing, RouteWork.NONE, flat=True, public=True,
          page=True),
    Route("GET", "/session", about.session, None, nothing, flat=True, answer=SessionOutput),
    Route("POST", "/mcp", agents.mcp, None, nothing, flat=True, protocol=True,
          query=GraphQuery),
    Route("GET", "/graphs", about.list_graphs, A.GRAPH_LIST, about.graph_list, flat=True),
    Route("GET", "/cluster/status", clusters.cluster_status, A.CLUSTER_PLAN, clusters.may_plan, flat=True),
    Route("POST", "/cluster/plan", clusters.plan_cluster, A.CLUSTER_PLAN, clusters.may_plan, flat=True,
          body=ClusterRequest),
    Route("POST", "/cluster/apply", clusters.apply_cluster, A.CLUSTER_APPLY, clusters.may_apply,
          RouteWork.WRITE, flat=True, body=ClusterRequest),
    # reading
    served("snapshot", reading.snapshot, reading.read_on),
    served("schema", reading.schema, reading.read_on),
    Route("GET", "/catalog", checks.catalog, A.READ, reading.read_on, query=BranchQuery),
    Route("GET", "/permissions", about.permissions, None, nothing, query=PermissionsQuery,
          answer=PermissionsOutput),
    Route("GET", "/entities/{type}/{id}", entities.entity, A.READ, entities.entity_needs,
          query=BranchQuery, answer=EntityOutput),
    served("history", entities.history, entities.entity_needs),
    served("blame", review.blame, entities.entity_needs),
    Route("POST", "/query/check", checks.check_query, A.READ, checks.check_needs,
          body=QueryCheckRequest, answer=CheckOutput),
    Route("POST", "/schema/check", checks.check_schema, A.READ, reading.read_any,
          body=SchemaCheckRequest, answer=CheckOutput),
    served("query", reading.query, reading.read_on),
    served("query_many", reading.query_many, reading.read_on),
    Route("POST", "/read", reading.read, A.READ, reading.read_on, body=QueryRequest,
          answer=ReadOutput, successor="query"),
    Route("GET", "/queries", reading.list_queries, A.READ, reading.read_main),
    Route("POST", "/queries/{name}", reading.invoke, A.INVOKE_QUERY, reading.invoke_needs,
          RouteWork.WRITE, body=InvokeRequest),
    Route("POST", "/queries/{name}/if-graph-commit", reading.invoke, A.INVOKE_QUERY,
          reading.invoke_needs, RouteWork.WRITE, body=InvokeRequest, conditional=True),
    served("blob", entities.get_blob, reading.read_on),
    Route("HEAD", "/blob", entities.stat_blob, A.READ, reading.read_on, query=BlobQuery),
    served("export", exports.export_state, exports.export_at),
    Route("POST", "/export", exports.export, A.EXPORT, feed.export_on, RouteWork.EXPORT,
          body=ExportRequest),
    # agents
    Route("POST", "/mcp", agents.mcp, None, nothing, protocol=True),
    # long work
    Route("POST", "/exports", jobs.start_export, A.EXPORT, exports.export_at, RouteWork.WRITE,
          body=ExportJobRequest, answer=JobOutput, status=202),
    Route("GET", "/exports/{job_id}", jobs.get_export, A.EXPORT, jobs.job_needs, answer=JobOutput),
    Route("GET", "/exports/{job_id}/parts/{name}", jobs.get_part, A.EXPORT, jobs.job_needs,
          RouteWork.EXPORT),
    Route("GET", "/jobs", jobs.list_jobs, None, nothing, answer=JobsOutput),
    Route("GET", "/jobs/{job_id}", jobs.get_job, None, jobs.job_needs, answer=JobOutput),
    Route("DELETE", "/jobs/{job_id}", jobs.cancel_job, None, jobs.job_needs, RouteWork.WRITE,
          answer=JobOutput),
    # writing
    served("mutate", writing.mutate, writing.change_on),
    served("mutate", writing.mutate, writing.change_on, conditional=True),
    Route("POST", "/change", writing.mutate, A.CHANGE, writing.change_on, RouteWork.WRITE,
          body=MutateRequest, answer=ChangeOutput, successor="mutate"),
    served("write", writing.write, writing.write_needs),
    served("write", writing.write, writing.write_needs, conditional=True),
    served("load", loads.load, loads.load_needs),
    Route("POST", "/load/ndjson", loads.load_ndjson, A.CHANGE, loads.load_needs, RouteWork.LOAD,
          body=LoadRequest, answer=LoadOutput, streams=True),
    Route("POST", "/import", loads.import_file, A.CHANGE, loads.load_needs, RouteWork.LOAD,
          body=ImportRequest, answer=LoadOutput, streams=True),
    Route("POST", "/import/preview", loads.preview_file, A.READ, reading.read_on, RouteWork.LOAD,
          body=PreviewRequest, answer=PreviewOutput, streams=True),
    Route("POST", "/ingest", loads.load, A.CHANGE, loads.load_needs, RouteWork.LOAD,
          body=LoadRequest, answer=LoadOutput, successor="load"),
    served("plan_schema", writing.plan_schema),
    served("apply_schema", writing.apply_schema),
    # versions
    served("branches", versions.list_branches),
    served("create_branch", versions.create_branch),
    served("merge", versions.merge),
    served("delete_branch", versions.delete_branch),
    served("tags", versions.list_tags),
    served("tag", versions.create_tag),
    served("delete_tag", versions.delete_tag),
    served("maintenance", versions.get_maintenance),
    served("retention", versions.get_retention),
    served("set_retention", versions.set_retention),
    served("log", versions.list_commits, reading.read_on),
    Route("GET", "/history", versions.history, A.READ, reading.read_any, query=HistoryQuery,
          answer=HistoryOutput),
    served("commit", versions.get_commit),
    Route("GET", "/commits/{commit_id}/changes", feed.commit_changes, A.READ, feed.commit_needs,
          query=PageQuery, answer=FeedBlock),
    served("diff", versions.diff),
    served("revert", versions.revert),
    served("cherry_pick", versions.cherry_pick),
    served("reset", versions.reset),
    # checks
    served("checks", review.checks, reading.read_on),
    served("apply_checks", review.apply_checks),
    served("check", review.check, reading.read_on),
    served("check_results", review.check_results),
    served("profile", review.profile, reading.read_on),
    # proposals
    served("proposals", review.proposals),
    served("propose", review.propose),
    served("proposal", review.proposal),
    served("review", review.review),
    served("comment", review.comment),
    served("approve", review.approve),
    served("request_changes", review.request_changes),
    served("close_proposal", review.close),
    served("merge_proposal", review.merge),
    # the change feed
    served("changes", feed.poll, reading.read_on),
    Route("POST", "/changes/baseline", feed.baseline, A.EXPORT, feed.export_on, RouteWork.EXPORT,
          body=BaselineRequest),
)
# fmt: on
