"""Opening and creating graphs, under a policy if one is configured."""

from __future__ import annotations

import os
import warnings

from omnigraph.config import load_config
from omnigraph.graph import Graph, open_graph
from omnigraph.graph import init as create
from omnigraph.model.limits import DEFAULT, Limits


class SchemaWarning(UserWarning):
    """Something in a schema is legal, but probably a mistake."""


def open(
    uri: str | os.PathLike[str],
    *,
    limits: Limits = DEFAULT,
    group_commit: bool = True,
    policy: str | os.PathLike[str] | None = None,
    actor: str | None = None,
) -> Graph:
    """Open an existing graph: on a disk, an object store, or behind a server.

    `policy` is a file of rules for `actor`; without it, the configured one (see the guide on policies), if any.
    A server applies its own policy.
    """
    if isinstance(uri, str) and uri.startswith(("http://", "https://")):
        from omnigraph.remote.graph import RemoteGraph

        return RemoteGraph(uri)
    opened = open_graph(uri, limits=limits, group_commit=group_commit)
    return _under_policy(opened, policy, actor)


def init(
    uri: str | os.PathLike[str],
    schema: str | os.PathLike[str],
    *,
    actor: str | None = None,
    limits: Limits = DEFAULT,
) -> Graph:
    """Create a graph. Raises if one already exists there, or if the schema has mistakes.

    What is legal but probably misspelt, such as `@ky`, is a `SchemaWarning`.
    """
    made = create(uri, schema, actor=actor, limits=limits)
    _warn_of_misspelt(made.schema())
    return _under_policy(made, None, actor)


def _warn_of_misspelt(schema: str) -> None:
    from omnigraph.lang.diagnostics import render
    from omnigraph.lang.schema import check_schema
    from omnigraph.lang.source import Source

    for found in check_schema(schema):
        if found.suggestion is not None:
            warnings.warn(render(found, Source(schema)), SchemaWarning, stacklevel=3)


def _under_policy(graph: Graph, policy: str | os.PathLike[str] | None, actor: str | None) -> Graph:
    config = load_config()
    file = policy or config["operator.policy"]
    if file is None:
        return graph
    name = graph.uri.rstrip("/").rsplit("/", 1)[-1]
    from omnigraph.guarded import GuardedGraph
    from omnigraph.policy.cedar import read_policy
    from omnigraph.policy.guard import Guard

    guard = Guard(read_policy(file), actor or config["operator.actor"], name)
    return GuardedGraph(graph, guard)
