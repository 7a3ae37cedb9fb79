"""One verb, three doors: what a command is called in Python and over HTTP, or why it is not there."""

from __future__ import annotations

from dataclasses import dataclass

FILES = "about files, not about a graph"
STORE = "works on the files of a graph, beside any server"
HERE = "about this machine"


@dataclass(frozen=True, slots=True)
class Doors:
    """Where a command is found elsewhere: `call` on a graph (or in `omnigraph`), `route` below a graph's address.

    What is left out is left out for the reason in `why`.
    """

    call: str | None = None
    route: str | None = None
    why: str = ""


PARITY: dict[str, Doors] = {
    "init": Doors("omnigraph.init", why="a server serves graphs that exist"),
    "demo": Doors(why=HERE),
    "load": Doors("Graph.load", "POST /load"),
    "query": Doors("Graph.query", "POST /query"),
    "mutate": Doors("Graph.mutate", "POST /mutate"),
    "shell": Doors(why=HERE),
    "explore": Doors(why=HERE),
    "export": Doors("Graph.export", "GET /export"),
    "pipeline run": Doors("Graph.load", "POST /load"),
    "branch list": Doors("Graph.branches", "GET /branches"),
    "branch create": Doors("Graph.create_branch", "POST /branches"),
    "branch delete": Doors("Graph.delete_branch", "DELETE /branches/{name}"),
    "branch merge": Doors("Graph.merge", "POST /branches/merge"),
    "merge": Doors("Graph.merge", "POST /branches/merge"),
    "log": Doors("Graph.log", "GET /commits"),
    "show": Doors("Graph.commit", "GET /commits/{commit_id}"),
    "diff": Doors("Graph.diff", "GET /diff"),
    "changes": Doors("Graph.changes", "GET /changes"),
    "tag": Doors("Graph.tag", "POST /tags"),
    "revert": Doors("Graph.revert", "POST /revert"),
    "cherry-pick": Doors("Graph.cherry_pick", "POST /cherry-pick"),
    "reset": Doors("Graph.reset", "POST /reset"),
    "clone": Doors("Graph.clone", why=STORE),
    "schema show": Doors("Graph.schema", "GET /schema"),
    "schema plan": Doors("Graph.plan_schema", "POST /schema/plan"),
    "schema apply": Doors("Graph.apply_schema", "POST /schema/apply"),
    "lint": Doors("omnigraph.lang.query.lint_queries", "POST /query/check"),
    "fmt": Doors("omnigraph.lang.query.format_queries", why=FILES),
    "explain": Doors("omnigraph.errors.CODES", why=HERE),
    "optimize": Doors("Graph.optimize", why=STORE),
    "cleanup": Doors("Graph.cleanup", why=STORE),
    "doctor": Doors("Graph.doctor", why=STORE),
    "upgrade": Doors("omnigraph.open", why=STORE),
    "serve": Doors("omnigraph.server.boot.serve", why=HERE),
    "jobs list": Doors("omnigraph.remote.jobs.jobs", "GET /jobs"),
    "jobs show": Doors("omnigraph.remote.jobs.job", "GET /jobs/{job_id}"),
    "jobs cancel": Doors("omnigraph.remote.jobs.Job", "DELETE /jobs/{job_id}"),
    "policy validate": Doors("omnigraph.policy.cedar.read_policy", why=FILES),
    "policy test": Doors("omnigraph.policy.cases.run_cases", why=FILES),
    "policy explain": Doors("omnigraph.policy.cedar.Policy", "GET /permissions"),
    "config show": Doors("omnigraph.config.load_config", why=HERE),
    "version": Doors("omnigraph.__version__", why=HERE),
}
