"""The notebook magic: `%load_ext omnigraph.magic`, then cells that start with `%%gq` or `%%cypher`.

    %%gq g --branch draft --out people
    match { $p: Person } return { $p.name }

runs the cell on the graph `g` of the notebook and keeps the result as `people`. A mutation is published. Parameters are
taken from the variables of the notebook. Long-running cells show a progress bar.
"""

from __future__ import annotations

import argparse
import shlex
from importlib import import_module
from typing import Any

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.progress import Moment, Watch
from omnigraph.storage import metrics

PERIOD_SECONDS = 0.3


class MagicMisused(OmnigraphError):
    """The first line of a %%gq cell was not understood."""

    code, kind = "magic_misused", Kind.INVALID
    default_help = "Write `%%gq GRAPH [--branch B] [--at POINT] [--name QUERY] [--out VARIABLE]`."


class _MagicWords(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise MagicMisused(message)


def load_ipython_extension(ipython: Any) -> None:
    """What `%load_ext omnigraph.magic` calls."""

    def gq(line: str, cell: str) -> Any:
        """Run the cell as a query or a mutation on a graph."""
        return run_cell(line, cell, ipython.user_ns)

    def cypher(line: str, cell: str) -> Any:
        """Run the cell, in Cypher, on a graph."""
        return run_cell(line, cell, ipython.user_ns, "cypher")

    bars = CellProgress()
    ipython.events.register("pre_run_cell", bars.begin)
    ipython.events.register("post_run_cell", bars.end)
    ipython.register_magic_function(gq, "cell", "gq")
    ipython.register_magic_function(cypher, "cell", "cypher")


class CellProgress:
    """A progress bar below the running cell while verbs of a graph run in it; removed when they are done."""

    def __init__(self) -> None:
        self._around: Any = None
        self._watch: Watch | None = None
        self._bar: Any = None

    def begin(self, _info: Any = None) -> None:
        """Before a cell: from now on its cost is counted."""
        self.end()
        self._around = metrics.operation("cell")
        self._watch = Watch("working", self._around.__enter__(), self._show, PERIOD_SECONDS)
        self._watch.start()

    def end(self, _result: Any = None) -> None:
        """After it."""
        if self._watch is not None:
            self._watch.stop()
            self._around.__exit__(None, None, None)
        if self._bar is not None:
            self._bar.update(_page(""))
        self._watch = self._around = self._bar = None

    def _show(self, moment: Moment) -> None:
        if not moment.phase.partition(", ")[2]:
            return  # a cell that does not use a graph
        if self._bar is None:
            show = import_module("IPython.display").display
            self._bar = show(_page(moment.html()), display_id=True)
        else:
            self._bar.update(_page(moment.html()))


def _page(text: str) -> Any:
    return import_module("IPython.display").HTML(text)


def run_cell(line: str, cell: str, names: dict[str, Any], language: str | None = None) -> Any:
    """Run the text of a cell with the variables of the notebook."""
    from omnigraph.lang.languages import is_cypher_text
    from omnigraph.lang.query import ast, choose, parse_queries

    given = _parse(line)
    graph: Any = names.get(given.graph)
    if not hasattr(graph, "query"):
        raise MagicMisused(f"{given.graph!r} is not a graph")
    if is_cypher_text(cell, language):
        return _cypher(graph, cell, names, given)
    file = parse_queries(cell, bare=True)
    if file.statement is not None and not file.queries:
        found = graph.mutate(cell) if file.statement.writes else graph.query(cell)
        if given.out:
            names[given.out] = found
        return found
    chosen = choose(file, given.name)
    params = {p.name: names[p.name] for p in chosen.params if p.name in names} or None
    if isinstance(chosen.body, ast.Mutation):
        found = graph.mutate(cell, params, name=given.name, branch=given.branch)
    else:
        found = graph.query(cell, params, name=given.name, branch=given.branch, at=given.at)
    if given.out:
        names[given.out] = found
    return found


def _cypher(graph: Any, cell: str, names: dict[str, Any], given: argparse.Namespace) -> Any:
    from omnigraph.lang.cypher import parameters_of, parse_cypher, writes

    tree = parse_cypher(cell)
    params = {name: names[name] for name in parameters_of(tree) if name in names} or None
    where = {"branch": given.branch, "language": "cypher"}
    run = graph.mutate if writes(tree) else graph.query
    found = run(cell, params, **where, **({} if writes(tree) else {"at": given.at}))
    if given.out:
        names[given.out] = found
    return found


def _parse(line: str) -> argparse.Namespace:
    words = _MagicWords(prog="%%gq", add_help=False)
    words.add_argument("graph", nargs="?", default="g")
    words.add_argument("--branch", default="main")
    words.add_argument("--at")
    words.add_argument("--name")
    words.add_argument("--out", "-o")
    return words.parse_args(shlex.split(line))
