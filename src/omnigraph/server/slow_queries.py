"""The log of slow queries: their plans and the types of their parameters, never a value."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from omnigraph.errors import OmnigraphError
from omnigraph.lang import ir
from omnigraph.lang.plan_text import plan_text
from omnigraph.lang.query import Want
from omnigraph.lang.tree import transform
from omnigraph.server.request import HttpCall

log = logging.getLogger("omnigraph.server.slow")
NAMES_SHOWN_MAX = 50


@contextmanager
def watched(
    call: HttpCall, text: str, name: str | None, params: Any, branch: str, at: str | None
) -> Iterator[None]:
    """Log what takes longer than `slow_query_seconds`, whether it succeeds or not."""
    begun = time.perf_counter()
    try:
        yield
    finally:
        took = time.perf_counter() - begun
        if took >= call.bounds.slow_query_seconds and log.isEnabledFor(logging.WARNING):
            log.warning(
                "%.3f s graph=%s branch=%a at=%a actor=%s params=%s plan:\n%s",
                took,
                call.graph_id,
                branch,
                at,
                call.actor,
                kinds(params),
                _plan(call, text, name, params, branch, at),
            )


def _plan(
    call: HttpCall, text: str, name: str | None, params: Any, branch: str, at: str | None
) -> str:
    """The executed plan, with literals replaced by their types."""
    graph = call.unguarded
    try:
        schema = graph._pinned(branch, at).commit.schema
        given = params if isinstance(params, Mapping) else next(iter(params or ()), None)
        query = graph._compiled(schema, text, name, Want.READ, given)
    except OmnigraphError as error:  # a deleted branch, a text that does not compile
        return f"({error.code})"
    return plan_text(transform(query, _redacted))


def _redacted(node: Any) -> Any:
    return ir.Param(str(node.type), node.type) if isinstance(node, ir.Literal) else node


def kinds(params: Any) -> str:
    """The type of each parameter, without its value.

    >>> kinds({"name": "Ada", "ages": [36, 41], "on": True, "since": None})
    '{name: text of 3, ages: list of 2, on: boolean, since: null}'
    """
    if not isinstance(params, Mapping):
        return "{}" if params is None else f"{len(params)} times"
    shown = [f"{str(name)[:80]}: {_kind(value)}" for name, value in params.items()]
    return "{" + ", ".join(shown[:NAMES_SHOWN_MAX]) + "}"


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return f"text of {len(value)}"
        case list():
            return f"list of {len(value)}"
        case _:
            return "object"
