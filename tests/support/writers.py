"""Writing processes for tests of crashes and contention, and what must be true of a graph they have all written to.

Every write carries its own name as the commit's message, is logged before it begins and again when it was acknowledged;
a process that is killed leaves writes whose end nobody knows.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from omnigraph.core.layout import parse_commit_id
from omnigraph.core.plan import Verb
from omnigraph.core.records import Commit
from omnigraph.core.repository import Repository
from omnigraph.graph import Graph, init, open_graph
from tests.support.history import (
    Anomaly,
    Append,
    ChainCommit,
    check_acknowledged,
    check_chain,
    read_operations,
)
from tests.support.processes import acknowledge
from tests.support.verbs import add_to_each
from tests.support.worlds import SCHEMA

SHARED = ["Person"]


def schema_for(writers: int) -> str:
    """The schema of the tests with one more node type for each writer."""
    return SCHEMA + "\n".join(f"node Own{i} {{ name: String @key }}" for i in range(writers))


def new_graph(uri: str, writers: int) -> Graph:
    return init(uri, schema=schema_for(writers))


# --- in a child process


def write_nodes(uri: str, writer: str, types: Sequence[str], count: int | None = None) -> None:
    """Add nodes of these types, one commit each; without a count until killed."""
    graph = open_graph(uri)
    for number in itertools.count() if count is None else range(count):
        logged(graph, f"{writer}-{number}", add_to_each(types, f"{writer}-{number}"))


def logged(graph: Graph, name: str, verb: Verb) -> None:
    """Publish under a name, and log it as the history checkers want it."""
    process = f"{os.getpid()}"
    acknowledge({"type": "invoke", "id": name, "process": process, "time": time.monotonic()})
    done = graph.publish(verb, message=name)
    assert done.commit is not None
    acknowledge(
        {
            "type": "ok",
            "id": name,
            "process": process,
            "time": time.monotonic(),
            "commit": done.commit.number,
        }
    )


# --- judging


def chain_of(repo: Repository, branch: str = "main") -> list[ChainCommit]:
    """The commits of a branch's chain, from the store, with the writes each holds."""
    head = repo.head(branch).commit
    found = repo.chains.range(head.chain, 0, head.number)
    return [_chain_commit(commit) for commit in found if isinstance(commit, Commit)]


def _chain_commit(commit: Commit) -> ChainCommit:
    shown = parse_commit_id(commit.content)[:2] == (commit.chain, commit.number)
    # The commits of maintenance show the same state again, and have messages of their own.
    names = tuple(member.message for member in commit.members if member.message and shown)
    return ChainCommit(
        number=commit.number,
        id=f"{commit.chain}.{commit.number}",
        parent=commit.parents[0] if commit.parents else None,
        operations=names,
        appends=tuple(Append("writes", name) for name in names),
    )


def check_writes(
    uri: str, records: Iterable[Mapping[str, Any]], branch: str = "main"
) -> list[Anomaly]:
    """Everything that is wrong with a graph after these writes; by somebody who opens it anew."""
    graph = open_graph(uri)
    commits = chain_of(graph._repo, branch)
    operations = read_operations(records)
    anomalies = check_chain(commits) + check_acknowledged(commits, operations)
    committed = {name for commit in commits for name in commit.operations}
    return [*anomalies, *_check_rows(graph, branch, committed)]


def _check_rows(graph: Graph, branch: str, committed: set[str]) -> Iterable[Anomaly]:
    """A node is there exactly once for every write in the chain, and for nothing else."""
    snapshot = graph.snapshot(branch)
    rows: list[str] = []
    for kind in snapshot.catalog.nodes.values():
        ids = snapshot.table_of(kind).scan(["id"])["id"].to_pylist()
        if len(ids) != snapshot.entry(kind.table_id).rows:
            yield Anomaly(
                "miscounted", f"{kind.name} has {len(ids)} rows, the commit says otherwise"
            )
        rows += ids
    if len(rows) != len(set(rows)):
        yield Anomaly("duplicate", "a node is there twice")
    for name in sorted(committed.symmetric_difference(rows)):
        yield Anomaly("torn", f"{name} is in the chain or in the tables, but not in both")


def heads_moved(uri: str, options: Mapping[str, str] | None = None) -> list[str]:
    """Tables whose own HEAD is past its first version. Nothing may ever move one."""
    import lance

    graph = open_graph(uri)
    tables = graph.snapshot().commit.tables.values()
    return [
        entry.path
        for entry in tables
        if lance.dataset(f"{uri}/{entry.path}", storage_options=dict(options or {})).latest_version
        != 1
    ]
