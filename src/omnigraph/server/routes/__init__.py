"""All routes. Authentication, policy, limits, metrics, the description and the tests of access follow this table.

The handlers by noun: `about` the server itself, `reading` (queries, found with `texts`), `blobs`, `exports`, `writing`,
`versions` (branches, tags, commits, merges) and `feed`, the changes.
"""

from __future__ import annotations

from omnigraph.policy.questions import Action
from omnigraph.server.routes import about, blobs, exports, feed, reading, versions, writing
from omnigraph.server.table import Route, Work, nothing
from omnigraph.server.wire import (
    BaselineRequest,
    BlobQuery,
    BranchQuery,
    BranchRequest,
    ChangeOutput,
    CommitOutput,
    CommitsQuery,
    DiffQuery,
    ExportQuery,
    ExportRequest,
    FeedQuery,
    InvokeRequest,
    LoadOutput,
    LoadRequest,
    MergeOutput,
    MergeRequest,
    MutateRequest,
    PageQuery,
    QueryRequest,
    ReadOutput,
    SchemaRequest,
    SnapshotOutput,
    TagRequest,
    UndoRequest,
)

A = Action

# fmt: off
ROUTES: tuple[Route, ...] = (
    # the server
    Route("GET", "/healthz", about.healthz, None, nothing, Work.NONE, flat=True, public=True),
    Route("GET", "/readyz", about.readyz, None, nothing, flat=True, public=True),
    Route("GET", "/metrics", about.metrics, None, nothing, Work.NONE, flat=True),
    Route("GET", "/openapi.json", about.openapi, None, nothing, Work.NONE, flat=True, public=True),
    Route("GET", "/docs", about.docs, None, nothing, Work.NONE, flat=True, public=True),
    Route("GET", "/graphs", about.list_graphs, A.GRAPH_LIST, about.graph_list, flat=True),
    # reading
    Route("GET", "/snapshot", reading.snapshot, A.READ, reading.read_on, query=BranchQuery,
          answer=SnapshotOutput),
    Route("GET", "/schema", reading.schema, A.READ, reading.read_on, query=BranchQuery),
    Route("POST", "/query", reading.query, A.READ, reading.read_on, body=QueryRequest,
          answer=ReadOutput),
    Route("POST", "/read", reading.read, A.READ, reading.read_on, body=QueryRequest,
          answer=ReadOutput, successor="query"),
    Route("GET", "/queries", reading.list_queries, A.READ, reading.read_main),
    Route("POST", "/queries/{name}", reading.invoke, A.INVOKE_QUERY, reading.invoke_needs,
          Work.WRITE, body=InvokeRequest),
    Route("POST", "/queries/{name}/if-graph-commit", reading.invoke, A.INVOKE_QUERY,
          reading.invoke_needs, Work.WRITE, body=InvokeRequest, conditional=True),
    Route("GET", "/blob", blobs.get_blob, A.READ, reading.read_on, query=BlobQuery),
    Route("HEAD", "/blob", blobs.stat_blob, A.READ, reading.read_on, query=BlobQuery),
    Route("GET", "/export", exports.export_state, A.EXPORT, exports.export_at, Work.EXPORT,
          query=ExportQuery),
    Route("POST", "/export", exports.export, A.EXPORT, feed.export_on, Work.EXPORT,
          body=ExportRequest),
    # writing
    Route("POST", "/mutate", writing.mutate, A.CHANGE, writing.change_on, Work.WRITE,
          body=MutateRequest, answer=ChangeOutput),
    Route("POST", "/mutate/if-graph-commit", writing.mutate, A.CHANGE, writing.change_on,
          Work.WRITE, body=MutateRequest, answer=ChangeOutput, conditional=True),
    Route("POST", "/change", writing.mutate, A.CHANGE, writing.change_on, Work.WRITE,
          body=MutateRequest, answer=ChangeOutput, successor="mutate"),
    Route("POST", "/load", writing.load, A.CHANGE, writing.load_needs, Work.LOAD,
          body=LoadRequest, answer=LoadOutput),
    Route("POST", "/load/ndjson", writing.load_ndjson, A.CHANGE, writing.load_needs, Work.LOAD,
          body=LoadRequest, answer=LoadOutput),
    Route("POST", "/ingest", writing.load, A.CHANGE, writing.load_needs, Work.LOAD,
          body=LoadRequest, answer=LoadOutput, successor="load"),
    Route("POST", "/schema/plan", writing.plan_schema, A.READ, writing.plan_needs,
          body=SchemaRequest),
    Route("POST", "/schema/apply", writing.apply_schema, A.SCHEMA_APPLY, writing.schema_needs,
          Work.WRITE, body=SchemaRequest),
    # versions
    Route("GET", "/branches", versions.list_branches, A.READ, reading.read_any),
    Route("POST", "/branches", versions.create_branch, A.BRANCH_CREATE, versions.create_needs,
          Work.WRITE, body=BranchRequest),
    Route("POST", "/branches/merge", versions.merge, A.BRANCH_MERGE, versions.merge_needs,
          Work.WRITE, body=MergeRequest, answer=MergeOutput),
    Route("DELETE", "/branches/{name}", versions.delete_branch, A.BRANCH_DELETE,
          versions.delete_needs, Work.WRITE),
    Route("GET", "/tags", versions.list_tags, A.READ, reading.read_any),
    Route("POST", "/tags", versions.create_tag, A.BRANCH_CREATE, versions.tag_needs, Work.WRITE,
          body=TagRequest),
    Route("DELETE", "/tags/{name}", versions.delete_tag, A.BRANCH_DELETE, versions.delete_needs,
          Work.WRITE),
    Route("GET", "/commits", versions.list_commits, A.READ, reading.read_on, query=CommitsQuery),
    Route("GET", "/commits/{commit_id}", versions.get_commit, A.READ, reading.read_any,
          answer=CommitOutput),
    Route("GET", "/commits/{commit_id}/changes", feed.commit_changes, A.READ, feed.commit_needs,
          query=PageQuery),
    Route("GET", "/diff", versions.diff, A.READ, versions.diff_needs, query=DiffQuery),
    Route("POST", "/revert", versions.revert, A.CHANGE, versions.undo_needs, Work.WRITE,
          body=UndoRequest, answer=MergeOutput),
    Route("POST", "/cherry-pick", versions.cherry_pick, A.CHANGE, versions.undo_needs, Work.WRITE,
          body=UndoRequest, answer=MergeOutput),
    Route("POST", "/reset", versions.reset, A.CHANGE, versions.undo_needs, Work.WRITE,
          body=UndoRequest, answer=MergeOutput),
    # the change feed
    Route("GET", "/changes", feed.poll, A.READ, reading.read_on, query=FeedQuery),
    Route("POST", "/changes/baseline", feed.baseline, A.EXPORT, feed.export_on, Work.EXPORT,
          body=BaselineRequest),
)
# fmt: on
