"""What each command is called in Python and over HTTP, or why it is missing there."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.verbs import VERBS

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


def _verb(name: str) -> Counterpart:
    """A verb of a graph, which is described once."""
    route = VERBS[name].route
    return Counterpart(f"Graph.{name}", route, "" if route else STORE)


PARITY: dict[str, Counterpart] = {
    "init": Counterpart("omnigraph.init", reason="a server serves existing graphs"),
    "demo": Counterpart(reason=HERE),
    "load": _verb("load"),
    "query": _verb("query"),
    "mutate": _verb("mutate"),
    "shell": Counterpart(reason=HERE),
    "explore": Counterpart(reason=HERE),
    "export": _verb("export"),
    "pipeline run": _verb("load"),
    "infer": Counterpart("omnigraph.write.infer.infer", reason=HERE),
    "branch list": _verb("branches"),
    "branch create": _verb("create_branch"),
    "branch delete": _verb("delete_branch"),
    "branch merge": _verb("merge"),
    "merge": _verb("merge"),
    "log": _verb("log"),
    "show": _verb("commit"),
    "diff": _verb("diff"),
    "changes": _verb("changes"),
    "tag": _verb("tag"),
    "revert": _verb("revert"),
    "cherry-pick": _verb("cherry_pick"),
    "reset": _verb("reset"),
    "clone": _verb("clone"),
    "schema show": _verb("schema"),
    "schema plan": _verb("plan_schema"),
    "schema apply": _verb("apply_schema"),
    "lint": Counterpart("omnigraph.lang.query.lint_queries", "POST /query/check"),
    "fmt": Counterpart("omnigraph.lang.query.format_queries", reason=FILES),
    "explain": Counterpart("omnigraph.errors.CODES", reason=HERE),
    "optimize": _verb("optimize"),
    "embed": _verb("embed"),
    "cleanup": _verb("cleanup"),
    "maintain": _verb("maintain"),
    "retention": _verb("retention"),
    "doctor": _verb("doctor"),
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
