"""What each command is called in Python and over HTTP, or why it is missing there."""

from __future__ import annotations

from dataclasses import dataclass

FILES = "works on files, not on a graph"
STORE = "works on the files of a graph, without a server"
HERE = "concerns this machine only"


@dataclass(frozen=True, slots=True)
class Counterpart:
    """A command elsewhere: `call` on a graph (or in `omnigraph`), `route` below the address of a graph.

    If one is missing, `reason` says why.
    """

    call: str | None = None
    route: str | None = None
    reason: str = ""


PARITY: dict[str, Counterpart] = {
    "init": Counterpart("omnigraph.init", reason="a server serves existing graphs"),
    "demo": Counterpart(reason=HERE),
    "load": Counterpart("Graph.load", "POST /load"),
    "query": Counterpart("Graph.query", "POST /query"),
    "mutate": Counterpart("Graph.mutate", "POST /mutate"),
    "shell": Counterpart(reason=HERE),
    "explore": Counterpart(reason=HERE),
    "export": Counterpart("Graph.export", "GET /export"),
    "pipeline run": Counterpart("Graph.load", "POST /load"),
    "branch list": Counterpart("Graph.branches", "GET /branches"),
    "branch create": Counterpart("Graph.create_branch", "POST /branches"),
    "branch delete": Counterpart("Graph.delete_branch", "DELETE /branches/{name}"),
    "branch merge": Counterpart("Graph.merge", "POST /branches/merge"),
    "merge": Counterpart("Graph.merge", "POST /branches/merge"),
    "log": Counterpart("Graph.log", "GET /commits"),
    "show": Counterpart("Graph.commit", "GET /commits/{commit_id}"),
    "diff": Counterpart("Graph.diff", "GET /diff"),
    "changes": Counterpart("Graph.changes", "GET /changes"),
    "tag": Counterpart("Graph.tag", "POST /tags"),
    "revert": Counterpart("Graph.revert", "POST /revert"),
    "cherry-pick": Counterpart("Graph.cherry_pick", "POST /cherry-pick"),
    "reset": Counterpart("Graph.reset", "POST /reset"),
    "clone": Counterpart("Graph.clone", reason=STORE),
    "schema show": Counterpart("Graph.schema", "GET /schema"),
    "schema plan": Counterpart("Graph.plan_schema", "POST /schema/plan"),
    "schema apply": Counterpart("Graph.apply_schema", "POST /schema/apply"),
    "lint": Counterpart("omnigraph.lang.query.lint_queries", "POST /query/check"),
    "fmt": Counterpart("omnigraph.lang.query.format_queries", reason=FILES),
    "explain": Counterpart("omnigraph.errors.CODES", reason=HERE),
    "optimize": Counterpart("Graph.optimize", reason=STORE),
    "cleanup": Counterpart("Graph.cleanup", reason=STORE),
    "doctor": Counterpart("Graph.doctor", reason=STORE),
    "upgrade": Counterpart("omnigraph.open", reason=STORE),
    "serve": Counterpart("omnigraph.server.boot.serve", reason=HERE),
    "jobs list": Counterpart("omnigraph.remote.jobs.jobs", "GET /jobs"),
    "jobs show": Counterpart("omnigraph.remote.jobs.job", "GET /jobs/{job_id}"),
    "jobs cancel": Counterpart("omnigraph.remote.jobs.Job", "DELETE /jobs/{job_id}"),
    "policy validate": Counterpart("omnigraph.policy.cedar.read_policy", reason=FILES),
    "policy test": Counterpart("omnigraph.policy.cases.run_cases", reason=FILES),
    "policy explain": Counterpart("omnigraph.policy.cedar.Policy", "GET /permissions"),
    "config show": Counterpart("omnigraph.config.load_config", reason=HERE),
    "version": Counterpart("omnigraph.__version__", reason=HERE),
}
