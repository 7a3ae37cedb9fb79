"""Commands about the servers a person uses: their graphs and stored queries, tokens, profiles."""

from __future__ import annotations

import sys
from typing import Annotated, Any

from typer import Argument, Option

from omnigraph.cli.context import address, config, open_graph
from omnigraph.cli.exits import UsageError
from omnigraph.cli.options import Server, Show, Where, examples, rust_shape
from omnigraph.cli.output import Sheet, answer, print_sheet

ServerName = Annotated[str, Argument(help="Configured server.", metavar="NAME")]


@examples(
    "omnigraph graphs list --server http://localhost:8080",
    "omnigraph graphs list --server prod --json",
)
@rust_shape
def list_graphs(show: Show, server: Server = None) -> None:
    """List the graphs of a server."""
    from omnigraph.remote.graph import graphs_of

    named = server or config()["defaults.server"]
    if named is None:
        raise UsageError("no server was given", help="Give --server URL, or a configured name.")
    found = graphs_of(config().servers.get(named, named))
    rows = [[graph["graph_id"], graph.get("uri", "")] for graph in found]
    print_sheet(show, Sheet(["graph", "address"], rows, document={"graphs": found}))


@examples(
    "omnigraph queries list --server http://localhost:8080 --graph people",
    "omnigraph queries list --server prod --graph people --json",
)
@rust_shape
def list_queries(where: Where, show: Show) -> None:
    """List the stored queries of a served graph; `omnigraph query NAME` runs one."""
    if not address(where).startswith(("http://", "https://")):
        raise UsageError("only a server has stored queries", help="Give --server URL --graph ID.")
    graph: Any = open_graph(where)
    found = graph.stored_queries()
    rows = [[q["name"], q.get("description") or ""] for q in found]
    print_sheet(show, Sheet(["query", "description"], rows, document={"queries": found}))


@examples("omnigraph login prod", "omnigraph login prod --token abc123")
def login(
    name: ServerName,
    show: Show,
    token: Annotated[
        str | None, Option("--token", help="The token; else it is read from standard input.")
    ] = None,
) -> None:
    """Store the token of a configured server, in a file only you can read."""
    from omnigraph.remote.credentials import store

    _known(name)
    given = (token if token is not None else sys.stdin.readline()).strip()
    if not given:
        raise UsageError("the token is empty")
    store(name, given)
    answer(show, f"logged in to {name}", {"server": name, "stored": True})


@examples("omnigraph logout prod", "omnigraph logout prod --json")
def logout(name: ServerName, show: Show) -> None:
    """Delete the stored token of a server."""
    from omnigraph.remote.credentials import store

    known = store(name, None)
    text = f"logged out of {name}" if known else f"no token was stored for {name}"
    answer(show, text, {"server": name, "removed": known})


def _known(name: str) -> None:
    if name in config().servers:
        return
    help = f"Add it to {config().path}: servers: {{{name}: {{url: https://…}}}}."
    raise UsageError(f"unknown server {name!r}", help=help)


@examples("omnigraph profile list", "omnigraph profile list --json")
def list_profiles(show: Show) -> None:
    """List the profiles of the configuration; `--profile NAME` before a command uses one."""
    found = config().profiles
    rows = [[name, _described(profile)] for name, profile in found.items()]
    document = {"profiles": {name: dict(profile) for name, profile in found.items()}}
    print_sheet(show, Sheet(["profile", "graph"], rows, document=document))


@examples("omnigraph profile show work", "omnigraph profile show work --json")
def show_profile(
    name: Annotated[str, Argument(help="Profile.", metavar="NAME")], show: Show
) -> None:
    """Show the settings of a profile."""
    profile = config().profiles.get(name)
    if profile is None:
        known = ", ".join(sorted(config().profiles)) or "none"
        raise UsageError(f"unknown profile {name!r}; known profiles: {known}")
    answer(show, _described(profile), {"name": name, **profile})


def _described(profile: Any) -> str:
    return ", ".join(f"{key} {value}" for key, value in profile.items())
