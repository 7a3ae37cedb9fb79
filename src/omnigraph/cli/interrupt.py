"""What Ctrl-C leaves behind: a write is published or it is not, and the person is told which."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from omnigraph.errors import OmnigraphError

if TYPE_CHECKING:
    from omnigraph.graph import Graph

NEWER_COMMITS_MAX = 100


class Interrupted(Exception):
    """Ctrl-C, with what it left behind; an exception of ours, since typer ends the process for its own reasons."""


@contextmanager
def leaving(what: str) -> Iterator[None]:
    """Around work that is no write: an interrupt says what it leaves behind."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(what) from None


@contextmanager
def explaining_interrupts(graph: Graph, branch: str) -> Iterator[None]:
    """Around a write: an interrupt looks at the branch before it goes on."""
    before = _head(graph, branch)
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(_outcome(graph, branch, before)) from None


def _head(graph: Graph, branch: str) -> str | None:
    try:
        return graph.snapshot(branch).commit_id
    except OmnigraphError:
        return None  # a branch that the write itself would create


def _outcome(graph: Graph, branch: str, before: str | None) -> str:
    after = _head(graph, branch)
    if after == before:
        return f"nothing was published; {branch} is as it was"
    newer: list[str] = []
    for commit in graph.log(branch, limit=NEWER_COMMITS_MAX):
        if commit.id == before:
            break
        newer.append(commit.id)
    return f"{branch} moved meanwhile: {', '.join(newer)} published; `omnigraph show` tells by whom"
