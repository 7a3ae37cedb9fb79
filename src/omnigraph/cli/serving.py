"""Commands about servers and their settings: serve, explore, jobs, policy, config."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from omnigraph.cli import completing
from omnigraph.cli.context import actor_of, address, config, open_graph, read_text
from omnigraph.cli.exits import FAILURE, OK, UsageError
from omnigraph.cli.options import Show, Store, Where, examples
from omnigraph.cli.output import Sheet, answer, print_sheet, warn
from omnigraph.errors import Kind, OmnigraphError
from omnigraph.wording import counted

if TYPE_CHECKING:
    from omnigraph.remote.jobs import Job
    from omnigraph.server.settings import Settings

Text = str | None
JobId = Annotated[str, Argument(help="Job ID.", metavar="ID")]
PolicyFile = Annotated[
    str, Argument(help="Policy: YAML, or Cedar if it ends in .cedar.", metavar="FILE")
]
GIT_SECONDS_MAX = 2.0
CREDENTIALS = re.compile(r"(?<=://)[^/\s]*@")


class ServerMissing(OmnigraphError):
    """The packages a server needs are not installed."""

    code, kind = "server_missing", Kind.INVALID
    default_help = "Install them with `pip install 'omnigraph[server]'`."


# --- serve and explore -------------------------------------------------------------------------------------------


@examples(
    "omnigraph serve people --tokens-file tokens.json",
    "omnigraph serve people=people films=s3://bucket/films --unauthenticated",
)
def serve(
    graphs: Annotated[
        list[str] | None,
        Argument(
            help="Graphs to serve, each with its ID.",
            metavar="[ID=]GRAPH…",
            autocompletion=completing.graphs,
        ),
    ] = None,
    store: Store = None,
    named: Annotated[
        list[str] | None, Option("--graph", help="Same as ID=GRAPH.", metavar="ID=URI", hidden=True)
    ] = None,
    file: Annotated[Text, Option("--config", help="Server settings file.", metavar="YAML")] = None,
    cluster: Annotated[
        Text, Option("--cluster", help="Cluster: its folder or address.", metavar="DIR|URI")
    ] = None,
    bind: Annotated[str, Option("--bind", help="Address to listen on.")] = "127.0.0.1:8080",
    queries: Annotated[
        list[str] | None, Option("--queries", help="Stored queries: a .gq file or a folder.")
    ] = None,
    tokens: Annotated[Text, Option("--tokens-file", help="JSON file of actor: token.")] = None,
    policy: Annotated[Text, Option("--policy", help="Policy for the graphs.")] = None,
    unauthenticated: Annotated[
        bool, Option("--unauthenticated", help="Serve without tokens.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        Option("--allow-host", help="Host name to accept without tokens.", metavar="NAME"),
    ] = None,
    read_only: Annotated[bool, Option("--read-only", help="Reject all writes.")] = False,
    maintain: Annotated[
        bool, Option("--maintain/--no-maintain", help="Maintain the graphs in the background.")
    ] = True,
    workers: Annotated[
        int | None, Option("--workers", help="Number of processes.", metavar="N")
    ] = None,
    tls_cert: Annotated[Text, Option("--tls-cert", help="TLS certificate (PEM).")] = None,
    tls_key: Annotated[Text, Option("--tls-key", help="TLS private key (PEM).")] = None,
) -> None:
    """Serve graphs over HTTP.

    One process serves one or many graphs. Requests carry bearer tokens (--tokens-file, or
    OMNIGRAPH_SERVER_BEARER_TOKEN); to serve without tokens, give --unauthenticated: then it accepts requests to
    localhost, to IP addresses and to the names of --allow-host, and none from web pages of other origins. `/ui` is the
    explorer, `/docs` lists all routes. With --workers, N processes share the port. SIGHUP reloads settings, policies
    and stored queries, SIGTERM shuts down gracefully. With --cluster, changes applied to the cluster are served
    immediately.
    """
    host, port = address_of(bind)
    several = [*(graphs or ()), *("=".join(_pair(text)) for text in named or ())]
    target = _Target(several, store, file, cluster, queries, policy)

    def read() -> Settings:
        return _replaced(
            target.settings(),
            tokens,
            allow_host or [],
            unauthenticated=unauthenticated,
            read_only=read_only,
            maintain=maintain,
        )

    target.watch()
    if workers is not None:
        _supervise(read, workers, host, port, tls_cert, tls_key)
        return
    boot = _server()
    from omnigraph.server.log import log_to_stderr

    log_to_stderr()
    server = boot.build(read(), host=host)

    def again(old: Any) -> Any:
        return boot.build(read(), host=host, counts=old.admission.counts)

    boot.serve(server, boot.Listen(host, port, tls_cert, tls_key), _announce, again)


@examples(
    "omnigraph mcp people --as claude --for ada",
    "omnigraph mcp http://localhost:8080/graphs/people",
)
def mcp(
    where: Where,
    queries: Annotated[
        list[str] | None, Option("--queries", help="Stored queries: a .gq file or a folder.")
    ] = None,
    policy: Annotated[Text, Option("--policy", help="Policy for the agent.")] = None,
    actor: Annotated[
        Text, Option("--as", help="Actor of the agent's commits.", metavar="ACTOR")
    ] = None,
    person: Annotated[
        Text, Option("--for", help="Person the agent works for.", metavar="PERSON")
    ] = None,
    conversation: Annotated[
        Text, Option("--conversation", help="Conversation the changes come from.", metavar="ID")
    ] = None,
) -> None:
    """Serve a graph to an agent over stdio, with the Model Context Protocol.

    The program that runs the agent starts this command and talks to it over stdin and stdout. The agent can read
    everything, and its changes go to its own branch: to main only if a policy allows it. With a server, the token in
    OMNIGRAPH_TOKEN identifies it; a server also speaks MCP itself, at /mcp and /graphs/ID/mcp.
    """
    from omnigraph.agents.toolbox import McpMissing, Provenance, Toolbox, catalog_of_text

    try:
        from omnigraph.agents.protocol import over_stdio
    except ModuleNotFoundError as missing:
        raise McpMissing(f"the package {missing.name} is not installed") from missing
    import omnigraph

    place, name = address(where), actor_of(actor)
    is_served = place.startswith(("http://", "https://"))
    if is_served and (queries or policy or actor):
        raise UsageError("a server has its own stored queries, policy and actors")
    graph = omnigraph.open(place, policy=policy, actor=name)
    stored = {}
    if queries:
        from omnigraph.server.stored_queries import stored_queries

        stored = stored_queries(queries, catalog_of_text(graph.schema()))
    who = Provenance(None if is_served else name, person=person, conversation=conversation)
    over_stdio(Toolbox(graph, who, stored))


def _supervise(read: Callable[[], Settings], workers: int, *listen: Any) -> None:
    """Run several processes: this one only listens."""
    try:
        from omnigraph.server.listening import Listen
        from omnigraph.server.log import log_to_stderr
        from omnigraph.server.supervisor import Supervisor
    except ModuleNotFoundError as missing:
        raise ServerMissing(f"the package {missing.name} is not installed") from missing
    log_to_stderr()
    Supervisor(read, workers, Listen(*listen), _announce).run()


def _server() -> Any:
    try:
        from omnigraph.server import boot
    except ModuleNotFoundError as missing:
        raise ServerMissing(f"the package {missing.name} is not installed") from missing
    return boot


def _announce(address: str) -> None:
    """Print the line that programs starting a server wait for."""
    print(f"OMNIGRAPH_LISTEN_ADDR={address}", flush=True)


@dataclass
class _Target:
    """What to serve, from the command line."""

    graphs: list[str]
    store: str | None
    file: str | None
    cluster: str | None
    queries: list[str] | None
    policy: str | None

    def settings(self) -> Settings:
        from omnigraph.server.settings import GraphSettings, Settings, graph_id, read_settings

        if (self.file or self.cluster) and (self.queries or self.policy):
            raise UsageError("with --config and --cluster, files name queries and policies")
        pairs = self._pairs()
        if self.file is not None:
            return read_settings(self.file)
        if self.cluster is not None:
            from omnigraph.server.clusters import cluster_settings

            return cluster_settings(self.cluster)
        return Settings(
            graphs={
                graph_id(id): GraphSettings(uri=uri, queries=self.queries or [], policy=self.policy)
                for id, uri in pairs
            }
        )

    def _pairs(self) -> list[tuple[str, str]]:
        """The graphs with their ids, unless a file names them."""
        store = self.store
        if not (store or self.graphs or self.file or self.cluster):
            store = config()["defaults.store"]
        if sum(bool(given) for given in (store, self.graphs, self.file, self.cluster)) != 1:
            raise UsageError(
                "choose what to serve: GRAPH, ID=GRAPH, --store URI, --config FILE or --cluster DIR"
            )
        if store is None and len(self.graphs) == 1 and "=" not in self.graphs[0]:
            store = self.graphs[0]
        return [("default", store)] if store else [_pair(text) for text in self.graphs]

    def watch(self) -> None:
        """Reload when something is applied to the cluster."""
        if self.cluster is not None:
            from omnigraph.server.clusters import watch

            watch(self.cluster)


def _pair(text: str) -> tuple[str, str]:
    id, equals, uri = text.partition("=")
    if not equals or not uri:
        raise UsageError(f"with several graphs, each needs an ID: write ID={text}, not {text}")
    return id, uri


def _replaced(
    settings: Settings,
    tokens: str | None,
    hosts: list[str],
    *,
    unauthenticated: bool,
    read_only: bool,
    maintain: bool,
) -> Settings:
    import msgspec

    return msgspec.structs.replace(
        settings,
        tokens_file=settings.tokens_file if tokens is None else tokens,
        hosts=[*settings.hosts, *hosts],
        unauthenticated=settings.unauthenticated or unauthenticated,
        read_only=settings.read_only or read_only,
        maintain=settings.maintain and maintain,
    )


def address_of(bind: str) -> tuple[str, int]:
    """The host and port of `--bind`."""
    host, colon, port = bind.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--bind must be HOST:PORT, not {bind!r}")
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104  an empty host means everywhere


@examples("omnigraph explore people", "omnigraph explore people --read-only --no-open")
def explore(
    where: Where,
    bind: Annotated[str, Option("--bind", help="Address to listen on.")] = "127.0.0.1:0",
    read_only: Annotated[bool, Option("--read-only", help="Reject all writes.")] = False,
    no_open: Annotated[bool, Option("--no-open", help="Do not open a browser.")] = False,
    actor: Annotated[
        Text, Option("--as", help="Actor who writes (default: your name in Git).", metavar="ACTOR")
    ] = None,
) -> None:
    """Explore a graph in the browser: query, schema, history, merges and imports.

    It serves one graph to this machine only, on a free port, until Ctrl-C, and prints the address to stdout. The
    address contains a secret that every request needs: do not share it. The actor of commits is that of --as, of the
    settings, or Git's `user.name`; without any of them, the explorer asks once.
    """
    import secrets
    from contextlib import suppress

    boot = _server()
    from omnigraph.server.routes import ui
    from omnigraph.server.settings import GraphSettings, Settings

    place = address(where)
    if place.startswith(("http://", "https://")):
        raise UsageError("a server has its explorer at /ui: open that address in a browser")
    ui.require_built()
    id = graph_id_of(place)
    settings = Settings(
        {id: GraphSettings(place)}, unauthenticated=True, read_only=read_only, maintain=False
    )
    host, port = address_of(bind)
    secret = secrets.token_urlsafe(24)

    def announce(bound: str) -> None:
        link = f"http://{bound}/ui/#token={secret}&/{id}/home"
        print(link, flush=True)
        print("Press Ctrl-C to stop.", file=sys.stderr)
        if not no_open:
            _open(link)

    with suppress(KeyboardInterrupt):  # the regular way to stop it
        holder = actor_of(actor) or _name_in_git()
        server = boot.build(settings, {}, host=host, secret=secret, holder=holder)
        boot.serve(server, boot.Listen(host, port), announce)


def _name_in_git() -> str | None:
    """The user's name in Git; None if it is not set."""
    import subprocess

    try:
        done = subprocess.run(
            ["git", "config", "--get", "user.name"],  # noqa: S607
            capture_output=True,
            text=True,
            timeout=GIT_SECONDS_MAX,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    return done.stdout.strip() or None


def graph_id_of(address: str) -> str:
    """A name for a graph, from its address.

    >>> graph_id_of("s3://bucket/My films.v2/")
    'My-films-v2'
    """
    from omnigraph.server.settings import graph_id

    name = re.sub(r"[^a-zA-Z0-9]+", "-", address.rstrip("/").rsplit("/", 1)[-1]).strip("-")[:64]
    try:
        return graph_id(name)
    except OmnigraphError:
        return "default"


def _open(link: str) -> None:
    import webbrowser

    if not webbrowser.open(link):
        print("Could not open a browser; open the address yourself.", file=sys.stderr)


# --- jobs --------------------------------------------------------------------------------------------------------


@examples(
    "omnigraph jobs list --server http://localhost:8080 --graph people",
    "omnigraph jobs list --server http://localhost:8080 --graph people --json",
)
def list_jobs(where: Where, show: Show) -> None:
    """List your jobs on a server, newest first."""
    from omnigraph.drawing.history import ago

    found: list[Job] = _served(where).jobs()
    rows = [[j.id, j.kind, j.status, j.branch, ago(j.created), _progress(j)] for j in found]
    columns = ["job", "kind", "status", "branch", "when", "progress"]
    print_sheet(show, Sheet(columns, rows, document=[j.to_json() for j in found]))


@examples(
    "omnigraph jobs show 01JZX3 --server http://localhost:8080 --graph people",
    "omnigraph jobs show 01JZX3 --server http://localhost:8080 --graph people --wait",
)
def show_job(
    id: JobId,
    where: Where,
    show: Show,
    wait: Annotated[bool, Option("--wait", help="Wait until it is finished.")] = False,
) -> None:
    """Show the progress and the outcome of a job."""
    found: Job = _served(where).job(id)
    if wait:
        found = found.wait()
    answer(show, _job_text(found), found.to_json())


@examples(
    "omnigraph jobs cancel 01JZX3 --server http://localhost:8080 --graph people",
    "omnigraph jobs cancel 01JZX3 --server http://localhost:8080 --graph people --json",
)
def cancel_job(id: JobId, where: Where, show: Show) -> None:
    """Cancel a job; commits it has already published stay."""
    found: Job = _served(where).job(id).cancel()
    answer(show, _job_text(found), found.to_json())


def _served(where: Where) -> Any:
    if not address(where).startswith(("http://", "https://")):
        raise UsageError("only a server has jobs", help="Give --server URL --graph ID.")
    return open_graph(where)


def _progress(job: Job) -> str:
    return f"{job.phase} {job.done:,} of {job.total:,}".strip() if job.total else job.phase


def _job_text(job: Job) -> str:
    status = f"{job.kind} {job.id} on {job.branch}: {job.status}"
    progress = "" if job.is_finished else _progress(job)
    error = job.error.message if job.error else ""
    return ", ".join(part for part in (status, progress, error) if part)


# --- policy ------------------------------------------------------------------------------------------------------


@examples(
    "omnigraph policy validate people.policy.yaml", "omnigraph policy validate people.cedar --json"
)
def validate_policy(show: Show, file: PolicyFile) -> None:
    """Check that a policy is valid."""
    from omnigraph.policy.cedar import read_policy

    actors = read_policy(file).rules.actors
    count = "actors named in Cedar" if actors is None else counted(len(actors), "actor")
    answer(show, f"policy valid: {file} [{count}]", {"valid": True, "file": file})


@examples(
    "omnigraph policy test people.policy.yaml --tests cases.yaml",
    "omnigraph policy test people.cedar --tests cases.yaml --json",
)
def test_policy(
    show: Show,
    file: PolicyFile,
    tests: Annotated[str, Option("--tests", help="Test cases.", metavar="YAML")],
) -> int:
    """Run test cases against a policy; the exit code is 1 if one fails."""
    from omnigraph.policy.cases import parse_cases, run_cases
    from omnigraph.policy.cedar import read_policy

    cases = parse_cases(read_text(tests), tests)
    failed = [str(each) for each in run_cases(read_policy(file), cases)]
    text = f"policy tests passed: {counted(len(cases), 'case')}"
    if failed:
        text = "\n".join([*failed, f"{len(failed)} of {len(cases)} failed"])
    answer(show, text, {"cases": len(cases), "failed": failed})
    return FAILURE if failed else OK


@examples(
    "omnigraph policy explain people.policy.yaml --actor ada --action change --branch main",
    "omnigraph policy explain people.policy.yaml --actor ada --action graph_list --json",
)
def explain_policy(
    show: Show,
    file: PolicyFile,
    actor: Annotated[str, Option("--actor", help="Actor.")],
    action: Annotated[str, Option("--action", help="read, change, branch_merge, …")],
    graph: Annotated[str, Option("--graph", help="Graph.")] = "graph",
    branch: Annotated[str | None, Option("--branch", help="Branch.")] = None,
    target: Annotated[str | None, Option("--target-branch", help="Branch to merge into.")] = None,
    mode: Annotated[str | None, Option("--mode", help="Mode of a load.")] = None,
    type_name: Annotated[str | None, Option("--type", help="Node or edge type.")] = None,
) -> None:
    """Show how a policy decides a request, and which rule applies."""
    from omnigraph.policy.cedar import read_policy
    from omnigraph.policy.questions import ON_SERVER, Action, Question

    if action not in tuple(Action):
        raise UsageError(f"--action must be one of {', '.join(Action)}, not {action!r}")
    asked = Action(action)
    where = None if asked in ON_SERVER else graph
    question = Question(actor, asked, where, branch, target, mode, type_name)
    decided = read_policy(file).decide(question)
    document = {
        "decision": "allow" if decided.allowed else "deny",
        "actor": actor,
        "action": action,
        "branch": branch,
        "target_branch": target,
        "type": type_name,
        "matched_rule": decided.rule,
        "message": decided.message,
    }
    lines = (f"{name}: {value}" for name, value in document.items() if value is not None)
    answer(show, "\n".join(lines), document)


# --- config ------------------------------------------------------------------------------------------------------


@examples("omnigraph config show --origin", "omnigraph config show --json")
def show_config(
    show: Show,
    origin: Annotated[bool, Option("--origin", help="Show where each value is set.")] = False,
) -> None:
    """Print the current settings, servers and aliases."""
    found = config()
    rows = [[v.setting.key, _redacted(v.value), v.origin] for v in found.values.values()]
    for kind, entries in (("servers", found.servers), ("aliases", found.aliases)):
        rows += [[f"{kind}.{name}", _redacted(v), str(found.path)] for name, v in entries.items()]
    for key in found.unknown:
        warn(f"{found.path}: unknown setting {key!r}")
    columns = ["setting", "value", "origin"]
    keep = len(columns) if origin else 2
    document = {row[0]: dict(zip(columns[1:keep], row[1:keep], strict=True)) for row in rows}
    sheet = Sheet(columns[:keep], [row[:keep] for row in rows], document=document)
    print_sheet(show, sheet, rows_max=0)


def _redacted(value: str | None) -> str | None:
    """A value without the credentials of a URL."""
    return None if value is None else CREDENTIALS.sub("…@", value)
