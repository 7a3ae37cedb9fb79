"""`omnigraph explore`."""

from __future__ import annotations

import re
import secrets
import sys
from contextlib import suppress
from typing import Annotated

from typer import Option

from omnigraph.cli.app import Verb
from omnigraph.cli.commands.serve import ServerMissing, address_of
from omnigraph.cli.context import address
from omnigraph.cli.exits import UsageMistake
from omnigraph.cli.options import Store, Uri, Where
from omnigraph.errors import OmnigraphError


def explore(
    uri: Uri = None,
    store: Store = None,
    bind: Annotated[str, Option("--bind", help="Where to listen.")] = "127.0.0.1:0",
    read_only: Annotated[bool, Option("--read-only", help="Change nothing.")] = False,
    no_open: Annotated[bool, Option("--no-open", help="Open no browser.")] = False,
) -> None:
    """Look at a graph in the browser: query, schema, history, merges and imports.

    It serves one graph to this machine alone, on a free port, until Ctrl-C. The address goes to stdout; it holds a
    secret without which nothing is served, so keep it to yourself.
    """
    try:
        from omnigraph.server import boot
        from omnigraph.server.routes import ui
        from omnigraph.server.settings import GraphSettings, Settings
    except ModuleNotFoundError as missing:
        raise ServerMissing(f"the package {missing.name} is not installed") from missing

    where = address(Where(store, None, None), uri)
    if where.startswith(("http://", "https://")):
        raise UsageMistake("a server has its explorer at /ui: open that address in a browser")
    ui.require_built()
    id = graph_id_of(where)
    settings = Settings({id: GraphSettings(where)}, unauthenticated=True, read_only=read_only)
    host, port = address_of(bind)

    secret = secrets.token_urlsafe(24)

    def announce(bound: str) -> None:
        link = f"http://{bound}/ui/#token={secret}&/{id}/query"
        print(link, flush=True)
        print("Ctrl-C ends it.", file=sys.stderr)
        if not no_open:
            _open(link)

    with suppress(KeyboardInterrupt):  # which is how it is meant to end
        server = boot.build(settings, {}, host=host, secret=secret)
        boot.serve(server, boot.Listen(host, port), announce)


def graph_id_of(address: str) -> str:
    """A name for a graph, from where it is.

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
        print("No browser could be opened; open the address yourself.", file=sys.stderr)


COMMAND = Verb(
    explore, ("omnigraph explore people", "omnigraph explore people --read-only --no-open")
)
