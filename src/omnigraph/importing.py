"""Import of a graph folder of the omnigraph written in Rust: the newest state of main and its branches."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.errors import BranchNotFound
from omnigraph.graph import Graph, init
from omnigraph.model.frozen import frozen
from omnigraph.storage import metrics

if TYPE_CHECKING:
    from omnigraph.storage.lance.rust import RustGraph, RustState, RustTable

Report = Callable[[str], None]


@frozen
class Imported:
    """What was imported: the rows of each branch, by type, and its commit."""

    graph: Graph
    format: int  # the stamp of the storage it was read from
    rows: dict[str, dict[str, int]] = field(default_factory=dict)
    commits: dict[str, str | None] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The shape every surface uses."""
        branches = {
            name: {"rows": rows, "commit": self.commits[name]} for name, rows in self.rows.items()
        }
        return {"uri": self.graph.uri, "format": self.format, "branches": branches}


def import_rust(
    source: str | os.PathLike[str],
    dest: str | os.PathLike[str],
    *,
    branches: Sequence[str] | None = None,
    actor: str | None = None,
    report: Report = lambda _: None,
) -> Imported:
    """Create a graph at `dest` from a graph folder of the omnigraph written in Rust.

    Its newest state becomes one commit on main, and one on each branch (those named, or all) for what differs there.
    History stays where it is; nothing of `source` is changed.
    """
    from omnigraph.storage.lance.rust import RustGraph

    with metrics.operation("import_rust"):
        found = RustGraph(os.fspath(source))
        wanted = _chosen(found, branches)
        main = found.state()
        made = Imported(init(dest, main.schema, actor=actor), found.stamp)
        _take(made, found, main, main.tables, actor, report)
        for name in wanted:
            state = found.state(name)
            made.graph.create_branch(name, actor=actor)
            if state.schema != main.schema:
                made.graph.apply_schema(state.schema, name, actor=actor)
            changed = [table for table in state.tables if table not in main.tables]
            _take(made, found, state, changed, actor, report)
        return made


def _chosen(found: RustGraph, branches: Sequence[str] | None) -> list[str]:
    there = found.branches()
    if branches is None:
        return there
    for name in branches:
        if name not in (*there, "main"):
            raise BranchNotFound(f"there is no branch {name!r}", details={"branches": there})
    return [name for name in there if name in branches]


def _take(
    made: Imported,
    found: RustGraph,
    state: RustState,
    tables: Iterable[RustTable],
    actor: str | None,
    report: Report,
) -> None:
    """Load the tables of a branch as one commit, via files on disk, so any number of rows fits."""
    commit, rows = None, {}
    with tempfile.TemporaryDirectory(prefix="omnigraph-import-") as folder:
        files = {}
        for table in tables:
            report(f"reading {table.type_name} of {state.branch}")
            files[table.type_name] = _file(found, table, Path(folder, f"{table.type_name}.arrow"))
        if files:
            report(f"loading {state.branch}")
            message = f"Imported {state.branch} from {found.place.uri}"
            done = made.graph.load(
                files, mode="overwrite", branch=state.branch, message=message, actor=actor
            )
            rows = {**done.nodes, **done.edges}
            commit = done.commit.id if done.commit else None
    made.rows[state.branch] = rows
    made.commits[state.branch] = commit


def _file(found: RustGraph, table: RustTable, path: Path) -> str:
    batches = found.batches(table)
    first = next(batches)
    with pa.ipc.new_file(str(path), first.schema) as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)
    return str(path)
