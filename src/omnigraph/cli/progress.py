"""Long operations: progress on stderr while they run, and the effects of Ctrl-C."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from omnigraph.cli.exits import Interrupted
from omnigraph.cli.options import ProgressMode, Show, WriterOptions
from omnigraph.errors import OmnigraphError
from omnigraph.progress import Moment, Watch

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.storage.metrics import Cost

NEWER_COMMITS_MAX = 100
PERIOD_SECONDS = 0.2
JSON_PERIOD_SECONDS = 1.0
CLEAR_LINE = "\r\x1b[K"


@contextmanager
def writing(
    graph: Graph, branch: str, phase: str, writer: WriterOptions, show: Show
) -> Iterator[None]:
    """Around a write: reports progress; on Ctrl-C also whether anything was published."""
    with explaining_interrupts(graph, branch), reporting(phase, writer.progress, quiet=show.quiet):
        yield


@contextmanager
def running(phase: str, writer: WriterOptions, *, quiet: bool, leaves: str) -> Iterator[None]:
    """Around other long work: reports progress; on Ctrl-C also its effects."""
    try:
        with reporting(phase, writer.progress, quiet=quiet):
            yield
    except KeyboardInterrupt:
        raise Interrupted(leaves) from None


@contextmanager
def reporting(phase: str, mode: ProgressMode, *, quiet: bool = False) -> Iterator[None]:
    """Report on the work inside, in the requested mode."""
    from omnigraph.storage import metrics

    with metrics.operation(phase) as cost:
        reporter = _reporter(phase, cost, mode, quiet)
        if reporter is None:
            yield
            return
        reporter.start()
        try:
            yield
        finally:
            reporter.stop()


def _reporter(phase: str, cost: Cost, mode: ProgressMode, quiet: bool) -> Reporter | None:
    if mode is ProgressMode.JSON:
        return Reporter(phase, cost, as_json=True)
    if quiet or mode is ProgressMode.NONE or not sys.stderr.isatty():
        return None
    return Reporter(phase, cost, as_json=False)


# --- interrupts --------------------------------------------------------------------------------------------------


@contextmanager
def explaining_interrupts(graph: Graph, branch: str) -> Iterator[None]:
    """Around a write: on an interrupt, checks the branch to report whether anything was published."""
    before = _head(graph, branch)
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(_outcome(graph, branch, before)) from None


def _head(graph: Graph, branch: str) -> str | None:
    try:
        return graph.snapshot(branch).commit_id
    except OmnigraphError:
        return None  # a branch the write itself would create


def _outcome(graph: Graph, branch: str, before: str | None) -> str:
    after = _head(graph, branch)
    if after == before:
        return f"nothing was published; {branch} is as it was"
    newer: list[str] = []
    for commit in graph.log(branch, limit=NEWER_COMMITS_MAX):
        if commit.id == before:
            break
        newer.append(commit.id)
    return f"{branch} moved meanwhile: {', '.join(newer)} published; `omnigraph show` shows by whom"


# --- progress ----------------------------------------------------------------------------------------------------


class Reporter:
    """Prints the progress of an operation: as a redrawn line, or as JSON lines."""

    def __init__(self, phase: str, cost: Cost, *, as_json: bool) -> None:
        self._as_json = as_json
        period = JSON_PERIOD_SECONDS if as_json else PERIOD_SECONDS
        self._watch = Watch(phase, cost, self._print, period)

    def start(self) -> None:
        self._watch.start()

    def stop(self) -> None:
        self._watch.stop()
        if self._as_json:
            print(
                json.dumps(self._watch.look().to_json() | {"done": True}),
                file=sys.stderr,
                flush=True,
            )
        elif self._watch.was_shown:
            sys.stderr.write(CLEAR_LINE)
            sys.stderr.flush()

    def _print(self, moment: Moment) -> None:
        if self._as_json:
            print(json.dumps(moment.to_json()), file=sys.stderr, flush=True)
        else:
            sys.stderr.write(f"{CLEAR_LINE}{moment.line(_width())}")
            sys.stderr.flush()


def _width() -> int:
    """The width of the terminal, less one: a full line would wrap on some."""
    return shutil.get_terminal_size((80, 24)).columns - 1
