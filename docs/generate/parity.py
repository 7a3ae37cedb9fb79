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
    "snapshot": _verb("snapshot"),
    "blob get": _verb("blob"),
    "blob stat": _verb("blob"),
    "pipeline run": _verb("load"),
    "infer": Counterpart("omnigraph.write.infer.infer", reason=HERE),
    "import-rust": Counterpart("omnigraph.importing.import_rust", reason=STORE),
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
    "blame": _verb("blame"),
    "clone": _verb("clone"),
    "propose": _verb("propose"),
    "proposals": _verb("proposals"),
    "review": _verb("review"),
    "comment": _verb("comment"),
    "approve": _verb("approve"),
    "check": _verb("check"),
    "stats": _verb("profile"),
    "schema show": _verb("schema"),
    "schema plan": _verb("plan_schema"),
    "schema apply": _verb("apply_schema"),
    "schema translate": Counterpart(
        "omnigraph.lang.schema.translate.translate_schema", reason=HERE
    ),
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
    "cluster validate": Counterpart("omnigraph.cluster.files.read_folder", reason=FILES),
    "cluster plan": Counterpart("omnigraph.cluster.plan.make_plan", reason=STORE),
    "cluster apply": Counterpart("omnigraph.cluster.apply.apply_plan", reason=STORE),
    "cluster status": Counterpart("omnigraph.cluster.report.status", reason=STORE),
    "cluster history": Counterpart("omnigraph.cluster.ledger.Ledger", reason=STORE),
    "cluster diff": Counterpart("omnigraph.cluster.report.compare", reason=STORE),
    "mcp": Counterpart("omnigraph.agents.protocol.over_stdio", "POST /mcp"),
    "jobs list": Counterpart("omnigraph.remote.jobs.jobs", "GET /jobs"),
    "jobs show": Counterpart("omnigraph.remote.jobs.job", "GET /jobs/{job_id}"),
    "jobs cancel": Counterpart("omnigraph.remote.jobs.Job", "DELETE /jobs/{job_id}"),
    "policy validate": Counterpart("omnigraph.policy.cedar.read_policy", reason=FILES),
    "policy test": Counterpart("omnigraph.policy.cases.run_cases", reason=FILES),
    "policy explain": Counterpart("omnigraph.policy.cedar.Policy", "GET /permissions"),
    "graphs list": Counterpart("omnigraph.remote.graph.graphs_of", "GET /graphs"),
    "queries list": Counterpart("omnigraph.remote.graph.RemoteGraph", "GET /queries"),
    "login": Counterpart(reason=HERE),
    "logout": Counterpart(reason=HERE),
    "profile list": Counterpart("omnigraph.config.load_config", reason=HERE),
    "profile show": Counterpart("omnigraph.config.load_config", reason=HERE),
    "config show": Counterpart("omnigraph.config.load_config", reason=HERE),
    "version": Counterpart("omnigraph.__version__", reason=HERE),
}
