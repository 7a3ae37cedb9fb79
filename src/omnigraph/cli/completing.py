"""Shell completion beyond commands and options: graphs, branches, points, types, queries.

A completion must never print, prompt or fail: on any error it offers nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import Context

if TYPE_CHECKING:
    from omnigraph.graph import Graph

OFFERED_MAX = 500
FOLDERS_MAX = 1_000
_QUERY = re.compile(r"^\s*query\s+(\w+)", re.MULTILINE)


def graphs(incomplete: str) -> list[str]:
    """Folders that hold a graph, and the folders on the way to one."""
    return _starting(incomplete, lambda: _folders(incomplete))


def branches(ctx: Context, incomplete: str) -> list[str]:
    """Branches of the graph the command line names."""
    return _starting(incomplete, lambda: _graph(ctx).branches())


def points(ctx: Context, incomplete: str) -> list[str]:
    """Branches and tags; of a range such as `main..`, its second end."""
    start, dots, _ = incomplete.rpartition("..")
    dots += "." * (start.endswith("."))
    start = start.rstrip(".")

    def names() -> Iterable[str]:
        graph = _graph(ctx)
        return (f"{start}{dots}{name}" for name in (*graph.branches(), *graph.tags()))

    return _starting(incomplete, names)


def tags(ctx: Context, incomplete: str) -> list[str]:
    return _starting(incomplete, lambda: _graph(ctx).tags())


def types(ctx: Context, incomplete: str) -> list[str]:
    """Node and edge types."""

    def names() -> Iterable[str]:
        catalog = _graph(ctx).snapshot(ctx.params.get("branch") or "main").catalog
        return (*catalog.nodes, *catalog.edges)

    return _starting(incomplete, names)


def queries(ctx: Context, incomplete: str) -> list[str]:
    """Queries of the file that --file names."""
    return _starting(incomplete, lambda: _QUERY.findall(Path(ctx.params["file"]).read_text()))


def first_word(own: Callable[[Context, str], list[str]] | None) -> Any:
    """For the word that may be a graph, or a command's own word if the graph is known otherwise."""

    def offered(ctx: Context, incomplete: str) -> list[str]:
        mine = own(ctx, incomplete) if own is not None else []
        return [*mine, *graphs(incomplete)]

    return offered


def _starting(incomplete: str, names: Callable[[], Iterable[str]]) -> list[str]:
    try:
        return sorted(n for n in names() if n.startswith(incomplete))[:OFFERED_MAX]
    except Exception:  # nothing to offer
        return []


def _graph(ctx: Context) -> Graph:
    """The graph of the words so far; during completion the first of them is the graph, if it can be one."""
    from omnigraph.cli.context import open_graph
    from omnigraph.cli.options import Where
    from omnigraph.cli.words import is_place

    given = {name: ctx.params.get(name) for name in ("uri", "store", "server", "graph")}
    words = (given["uri"], *ctx.args)  # a line that ends with an option leaves words over
    given["uri"] = next((word for word in words if word and is_place(word)), None)
    return open_graph(Where(**given))


def _folders(incomplete: str) -> Iterable[str]:
    before, slash, _ = incomplete.rpartition("/")
    folder = Path(before + slash if slash else ".")
    for number, entry in enumerate(folder.expanduser().iterdir()):
        if number >= FOLDERS_MAX:
            return
        if entry.is_dir() and not entry.name.startswith("."):
            is_graph = (entry / "graph.json").is_file()
            yield f"{before}{slash}{entry.name}{'' if is_graph else '/'}"
