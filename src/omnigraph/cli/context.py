"""Resolves the graph, the point in time and the query of a command."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.cli import suggesting
from omnigraph.cli.exits import UsageError
from omnigraph.cli.options import Where
from omnigraph.config import Config, load_config
from omnigraph.errors import CommitNotFound, Kind, OmnigraphError
from omnigraph.lang.diagnostics import LanguageError
from omnigraph.lang.source import Source

if TYPE_CHECKING:
    from omnigraph.graph import Graph

PREFIX_CHARACTERS_MIN = 4
PREFIX_COMMITS_MAX = 10_000


class NoStore(UsageError):
    """No graph was given."""

    code = "no_store"
    default_help = (
        "Name it after the command or with --store, set OMNIGRAPH_STORE, or write `store: PATH` into "
        "omnigraph.yaml."
    )


class FileUnreadable(OmnigraphError):
    """A file given on the command line cannot be read."""

    code, kind = "file_unreadable", Kind.NOT_FOUND
    default_help = "Check the path and its permissions."


class PrefixAmbiguous(OmnigraphError):
    """Several commit IDs start with this prefix."""

    code, kind = "prefix_ambiguous", Kind.INVALID
    default_help = "Give more of the commit ID; `omnigraph log --json` shows it in full."


@lru_cache(maxsize=1)
def config() -> Config:
    """The settings of this process, including those of the project it was started in."""
    return load_config(folder=Path.cwd())


def address(where: Where) -> str:
    """The address of the graph: as given, else as configured."""
    store, server = where.uri or where.store, where.server
    if where.uri and where.store:
        raise UsageError(
            f"the graph is given more than once: {where.uri} and --store {where.store}"
        )
    if store and server:
        raise UsageError("give the graph with --store or with --server, not both")
    if where.graph and store:
        raise UsageError("--graph names a graph on a server: give --server URL, not --store")
    if not store and not server:
        server = config()["defaults.server"]
        store = None if where.graph else config()["defaults.store"]
    if store:
        return store
    if server:
        return _served(server, where.graph or config()["defaults.graph"])
    if where.graph:
        raise UsageError(f"--graph {where.graph} is a graph on a server: give --server URL as well")
    raise NoStore("no graph was given")


def _served(server: str, graph: str | None) -> str:
    url = config().servers.get(server, server).rstrip("/")
    if graph is None:
        raise UsageError("a server can have many graphs: choose one with --graph")
    return f"{url}/graphs/{graph}"


def open_graph(where: Where) -> Graph:
    """Open the graph."""
    import omnigraph

    return suggesting.of(omnigraph.open(address(where)))


def branch_of(branch: str | None) -> str:
    return branch or config()["defaults.branch"] or "main"


def actor_of(actor: str | None) -> str | None:
    return actor or config()["operator.actor"]


def point_of(graph: Graph, at: str | None, branch: str) -> str | None:
    """A point in time; an unknown name may be a prefix of a commit ID on the branch."""
    if at is None:
        return None
    try:
        graph.schema(branch, at)  # the cheapest call that resolves a point
    except CommitNotFound:
        found = _by_prefix(graph, at, branch)
        if found is None:
            raise
        return found
    return at


def _by_prefix(graph: Graph, text: str, branch: str) -> str | None:
    """A commit ID is `chain.number`; the chain may be shortened, or the whole if unambiguous."""
    if len(text.partition(".")[0]) < PREFIX_CHARACTERS_MIN:
        return None
    ids = [commit.id for commit in graph.log(branch, limit=PREFIX_COMMITS_MAX, maintenance=True)]
    found = [id for id in ids if _abbreviates(text, id)]
    if len(found) > 1:
        raise PrefixAmbiguous(
            f"{text!r} is a prefix of {len(found)} commit IDs", details={"commits": found[:20]}
        )
    return found[0] if found else None


def _abbreviates(text: str, id: str) -> bool:
    chain, dot, rest = text.partition(".")
    own, _, number = id.partition(".")
    return own.startswith(chain) and number == rest if dot else id.startswith(text)


# --- queries -----------------------------------------------------------------------------------------------------


def read_text(path: str) -> str:
    """A text file, or standard input for `-`."""
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        help = suggesting.file(path)
        raise FileUnreadable(f"{path} does not exist", help=help) from error
    except UnicodeDecodeError as error:
        raise FileUnreadable(f"{path} is not UTF-8 text: {error.reason}") from error
    except OSError as error:
        raise FileUnreadable(f"{path} cannot be read: {error.strerror or error}") from error


def query_text(text: str | None, file: str | None) -> Source:
    """The query given with -e or --file."""
    if (text is None) == (file is None):
        raise UsageError("give the query with -e TEXT or with --file F.gq")
    if file is not None:
        return Source(read_text(file), file)
    return Source(text or "")


@contextmanager
def errors_in(source: Source) -> Iterator[None]:
    """Add the file to errors of a language raised inside."""
    try:
        yield
    except LanguageError as error:
        found = [replace(d, span=replace(d.span, source=source.name)) for d in error.diagnostics]
        raise LanguageError(found, source) from error


def decisions_of(path: str) -> dict[str, Any]:
    """The strategy and the resolutions in a decisions file, as the explorer writes it."""
    try:
        found = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}") from error
    if isinstance(found, list):
        found = {"resolutions": found}
    if not isinstance(found, dict) or not found or set(found) - {"strategy", "resolutions"}:
        raise UsageError(
            f"{path} is not a decisions file",
            help='It holds {"strategy": …, "resolutions": […]}, or one of the two.',
        )
    return found


def params_of(given: str | None) -> dict[str, Any] | None:
    """The values of --params: a JSON object, or @FILE."""
    if given is None:
        return None
    text = read_text(given[1:]) if given.startswith("@") else given
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--params is not JSON: {error}") from error
    if not isinstance(values, dict):
        raise UsageError('--params must be a JSON object such as \'{"name": "Ada"}\'')
    return values


def settings_of(given: list[str] | None) -> dict[str, str | int] | None:
    """The values of --set, each NAME=VALUE; the last value of a name wins."""
    found: dict[str, str | int] = {}
    for pair in given or ():
        name, sign, value = pair.partition("=")
        if not sign:
            raise UsageError(f"--set takes NAME=VALUE, not {pair!r}")
        found[name.strip()] = int(value) if value.strip().isdecimal() else value.strip()
    return found or None
