"""Which graph, which point in time, which query: what commands look up before they do their work."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.cli.exits import UsageMistake
from omnigraph.cli.options import Where
from omnigraph.config import Config, load_config
from omnigraph.errors import CommitNotFound, Kind, OmnigraphError
from omnigraph.lang.diagnostics import LanguageError
from omnigraph.lang.source import Source

if TYPE_CHECKING:
    from omnigraph.graph import Graph

PREFIX_CHARACTERS_MIN = 4
PREFIX_COMMITS_MAX = 10_000


class NoStore(UsageMistake):
    """No graph was named."""

    code = "no_store"
    default_help = (
        "Give --store URI, set OMNIGRAPH_STORE, or set defaults.store in the configuration."
    )


class FileUnreadable(OmnigraphError):
    """A file given on the command line cannot be read."""

    code, kind = "file_unreadable", Kind.NOT_FOUND
    default_help = "Check the path and its permissions."


class PrefixAmbiguous(OmnigraphError):
    """Several commits start like this."""

    code, kind = "prefix_ambiguous", Kind.INVALID
    default_help = "Write more of the commit's id; `omnigraph log --json` shows it whole."


@lru_cache(maxsize=1)
def config() -> Config:
    """The settings in force for this process."""
    return load_config()


def address(where: Where, uri: str | None = None) -> str:
    """The address of the graph that is meant: as given, else as configured."""
    store, server = uri or where.store, where.server
    if uri and where.store:
        raise UsageMistake("the graph is named twice: as URI and with --store")
    if store and server:
        raise UsageMistake("name the graph with --store or with --server, not both")
    if not store and not server:
        store, server = config()["defaults.store"], config()["defaults.server"]
    if store:
        return store
    if server:
        return _served(server, where.graph or config()["defaults.graph"])
    raise NoStore("no graph was named")


def _served(server: str, graph: str | None) -> str:
    url = config().servers.get(server, server).rstrip("/")
    if graph is None:
        raise UsageMistake("a server holds many graphs: name one with --graph")
    return f"{url}/graphs/{graph}"


def open_graph(where: Where, uri: str | None = None) -> Graph:
    """The graph that is meant, opened."""
    import omnigraph

    return omnigraph.open(address(where, uri))


def branch_of(branch: str | None) -> str:
    return branch or config()["defaults.branch"] or "main"


def actor_of(actor: str | None) -> str | None:
    return actor or config()["operator.actor"]


def point_of(graph: Graph, at: str | None, branch: str) -> str | None:
    """A point in time; what names nothing else may be the start of a commit's id on the branch."""
    if at is None:
        return None
    try:
        graph.schema(branch, at)  # asks for nothing but that the point is there
    except CommitNotFound:
        found = _by_prefix(graph, at, branch)
        if found is None:
            raise
        return found
    return at


def _by_prefix(graph: Graph, text: str, branch: str) -> str | None:
    """A commit is `chain.number`; the chain may be shortened, or the whole if it stays unambiguous."""
    if len(text.partition(".")[0]) < PREFIX_CHARACTERS_MIN:
        return None
    ids = [commit.id for commit in graph.log(branch, limit=PREFIX_COMMITS_MAX, maintenance=True)]
    found = [id for id in ids if _abbreviates(text, id)]
    if len(found) > 1:
        raise PrefixAmbiguous(
            f"{len(found)} commits start with {text!r}", details={"commits": found[:20]}
        )
    return found[0] if found else None


def _abbreviates(text: str, id: str) -> bool:
    chain, dot, rest = text.partition(".")
    own, _, number = id.partition(".")
    return own.startswith(chain) and number == rest if dot else id.startswith(text)


# --- what to run -------------------------------------------------------------------------------------------------


def read_text(path: str) -> str:
    """A text file, or standard input for `-`."""
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileUnreadable(f"{path} cannot be read: {error}") from error


def query_text(text: str | None, file: str | None) -> Source:
    """The query given with -e or --file."""
    if (text is None) == (file is None):
        raise UsageMistake("give the query with -e TEXT or with --file F.gq")
    if file is not None:
        return Source(read_text(file), file)
    return Source(text or "")


def named(error: LanguageError, source: Source) -> LanguageError:
    """The same errors, saying which file they are in."""
    found = [replace(d, span=replace(d.span, source=source.name)) for d in error.diagnostics]
    return LanguageError(found, source)


def params_of(given: str | None) -> dict[str, Any] | None:
    """The values of --params: a JSON object, or the file that holds one."""
    if given is None:
        return None
    text = read_text(given[1:]) if given.startswith("@") else given
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageMistake(f"--params is not JSON: {error}") from error
    if not isinstance(values, dict):
        raise UsageMistake('--params must be a JSON object such as \'{"name": "Ada"}\'')
    return values
