"""Suggestions for mistyped names of branches, tags, types and files.

Branches and tags are listed by the graph itself, so that users only see what they may read.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.errors import BranchNotFound, CommitNotFound, OmnigraphError, TableNotFound

if TYPE_CHECKING:
    from omnigraph.graph import Graph

_opened: list[Graph] = []  # by this command line; the last one is used
FILES_MAX = 2_000


def of(graph: Graph) -> Graph:
    """Remember the graph for suggestions."""
    _opened[:] = [graph]
    return graph


def improve(error: OmnigraphError) -> None:
    """Add the name that was probably meant."""
    if error.code in ("source_not_found", "graph_not_found"):
        _improve_path(error)
        return
    wanted = error.details.get("branch") or error.details.get("at") or error.details.get("type")
    if not _opened or not isinstance(wanted, str):
        return
    try:
        meant = _nearest(wanted, _names(error, _opened[-1]))
    except OmnigraphError:  # without permission to list names, none is shown
        return
    if meant is not None:
        error.help = f"Did you mean `{meant}`? {error.help}"


def _improve_path(error: OmnigraphError) -> None:
    path = error.details.get("file") or error.details.get("uri")
    if isinstance(path, str) and "://" not in path.removeprefix("file://"):
        meant = file(path.removeprefix("file://"))
        if meant is not None:
            error.help = f"{meant} {error.help}"


def _names(error: OmnigraphError, graph: Graph) -> list[str]:
    match error:
        case BranchNotFound():
            return list(graph.branches())
        case CommitNotFound():
            return [*graph.branches(), *graph.tags()]
        case TableNotFound():
            catalog = graph.snapshot().catalog
            return [*catalog.nodes, *catalog.edges]
        case _:
            return []


def file(path: str) -> str | None:
    """Help for a missing file: one beside it with a similar name."""
    folder = os.path.dirname(path)
    try:
        names = [entry.name for entry in Path(folder or ".").iterdir()][:FILES_MAX]
    except OSError:
        return f"The folder {folder} does not exist either."
    meant = _nearest(os.path.basename(path), names)
    return None if meant is None else f"Did you mean `{os.path.join(folder, meant)}`?"


def _nearest(word: str, names: list[str]) -> str | None:
    from omnigraph.lang.diagnostics import did_you_mean

    return did_you_mean(word, names)
