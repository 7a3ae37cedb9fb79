"""`omnigraph serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

from omnigraph.cli.app import Verb
from omnigraph.cli.exits import UsageMistake
from omnigraph.cli.options import Store
from omnigraph.errors import Kind, OmnigraphError

if TYPE_CHECKING:
    from omnigraph.server.settings import Settings

Graphs = Annotated[
    list[str] | None, Option("--graph", help="A graph to serve; repeatable.", metavar="ID=URI")
]
Text = str | None


class ServerMissing(OmnigraphError):
    """The packages a server needs are not installed."""

    code, kind = "server_missing", Kind.INVALID
    default_help = "Install them with `pip install 'omnigraph[server]'`."


def serve(
    store: Store = None,
    graph: Graphs = None,
    file: Annotated[Text, Option("--config", help="A file of settings.", metavar="YAML")] = None,
    bind: Annotated[str, Option("--bind", help="Where to listen.")] = "127.0.0.1:8080",
    queries: Annotated[
        list[str] | None, Option("--queries", help="Stored queries: a .gq file or a folder.")
    ] = None,
    tokens: Annotated[Text, Option("--tokens-file", help="JSON of actor: token.")] = None,
    policy: Annotated[Text, Option("--policy", help="A policy for the graphs.")] = None,
    unauthenticated: Annotated[
        bool, Option("--unauthenticated", help="Serve without tokens.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        Option("--allow-host", help="A name it is reached by without tokens.", metavar="NAME"),
    ] = None,
    read_only: Annotated[bool, Option("--read-only", help="Change nothing.")] = False,
    tls_cert: Annotated[Text, Option("--tls-cert", help="A certificate (PEM).")] = None,
    tls_key: Annotated[Text, Option("--tls-key", help="Its key (PEM).")] = None,
) -> None:
    """Serve graphs over HTTP.

    One process, one or many graphs. Requests carry bearer tokens (--tokens-file, or OMNIGRAPH_SERVER_BEARER_TOKEN);
    without any, --unauthenticated says that this is wanted; then it answers to localhost, to addresses and to the names
    of --allow-host, and never to web pages of others. `/ui` is the explorer, `/docs` shows all routes. SIGTERM
    ends it gracefully.
    """
    try:
        import msgspec

        from omnigraph.server import boot
    except ModuleNotFoundError as missing:
        raise ServerMissing(f"the package {missing.name} is not installed") from missing

    settings = _settings(store, graph, file, queries, policy)
    changed = _replaced(settings, tokens, unauthenticated=unauthenticated, read_only=read_only)
    changed = msgspec.structs.replace(changed, hosts=[*changed.hosts, *(allow_host or ())])
    boot.log_to_stderr()
    host, port = address_of(bind)
    boot.serve(
        boot.build(changed, host=host), boot.Listen(host, port, tls_cert, tls_key), _announce
    )


def _announce(address: str) -> None:
    """The line harnesses wait for."""
    print(f"OMNIGRAPH_LISTEN_ADDR={address}", flush=True)


def _settings(
    store: str | None,
    graphs: list[str] | None,
    file: str | None,
    queries: list[str] | None,
    policy: str | None,
) -> Settings:
    from omnigraph.server.settings import GraphSettings, Settings, graph_id, read_settings

    if sum(bool(given) for given in (store, graphs, file)) != 1:
        raise UsageMistake("name what to serve: --store URI, --graph ID=URI or --config FILE")
    if file is not None:
        if queries or policy:
            raise UsageMistake("with --config, queries and policies are named in the file")
        return read_settings(file)
    pairs = [("default", store)] if store else [_pair(text) for text in graphs or ()]
    return Settings(
        graphs={
            graph_id(id): GraphSettings(uri=str(uri), queries=queries or [], policy=policy)
            for id, uri in pairs
        }
    )


def _pair(text: str) -> tuple[str, str]:
    id, equals, uri = text.partition("=")
    if not equals or not uri:
        raise UsageMistake(f"--graph is ID=URI, not {text!r}")
    return id, uri


def _replaced(
    settings: Settings, tokens: str | None, *, unauthenticated: bool, read_only: bool
) -> Settings:
    import msgspec

    if tokens is not None:
        settings = msgspec.structs.replace(settings, tokens_file=tokens)
    if unauthenticated:
        settings = msgspec.structs.replace(settings, unauthenticated=True)
    if read_only:
        settings = msgspec.structs.replace(settings, read_only=True)
    return settings


def address_of(bind: str) -> tuple[str, int]:
    """The host and port of `--bind`."""
    host, colon, port = bind.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise UsageMistake(f"--bind is HOST:PORT, not {bind!r}")
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104  an empty host means everywhere


COMMAND = Verb(
    serve,
    (
        "omnigraph serve --store people --tokens-file tokens.json",
        "omnigraph serve --graph people=people --graph films=s3://bucket/films --unauthenticated",
    ),
)
