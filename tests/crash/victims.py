"""What victims of SIGKILL do until they are killed. A write is logged before it begins and once it is acknowledged."""

from __future__ import annotations

import itertools
import json
import os
import time
from pathlib import Path

from omnigraph.graph import open_graph
from tests.support.processes import acknowledge
from tests.support.verbs import add_to_each
from tests.support.writers import logged


def writer(uri: str, name: str) -> None:
    """Writes nodes, one commit each."""
    graph = open_graph(uri)
    for number in itertools.count():
        logged(graph, f"{name}-{number}", add_to_each(["Person"], f"{name}-{number}"))


def maintainer(uri: str, name: str) -> None:
    """Compacts and indexes all the time; a write now and then gives it something to do."""
    graph = open_graph(uri)
    for number in itertools.count():
        logged(graph, f"{name}-{number}", add_to_each(["City"], f"{name}-{number}"))
        graph.optimize()


def collector(uri: str, name: str) -> None:
    """Removes what is not needed, all the time."""
    graph = open_graph(uri)
    for number in itertools.count():
        logged(graph, f"{name}-{number}", add_to_each(["City"], f"{name}-{number}"))
        graph.cleanup(keep=100_000)


def brancher(uri: str, name: str) -> None:
    """Works on branches of its own, brings them to main, and deletes them."""
    graph = open_graph(uri)
    for number in itertools.count():
        row = f"{name}-{number}"
        graph.create_branch(row)
        graph.publish(add_to_each(["Person"], row), branch=row)
        _log("invoke", row)
        done = graph.merge(row, message=row)
        assert done.commit is not None
        _log("ok", row, int(done.commit.id.split(".")[1]))
        graph.delete_branch(row)


def commander(uri: str, name: str) -> None:
    """Loads through the command line, one command a commit."""
    for number in itertools.count():
        row = f"{name}-{number}"
        file = Path(f"{os.environ['OMNIGRAPH_TEST_LOG']}.jsonl")
        file.write_text(json.dumps({"type": "Person", "data": {"name": row}}) + "\n")
        _log("invoke", row)
        if _status(["load", "--store", uri, "--data", str(file), "--message", row, "--quiet"]):
            raise RuntimeError("the command failed")
        _log("ok", row)


def _status(command: list[str]) -> object:
    from omnigraph.cli.main import main

    try:
        main(command)
    except SystemExit as end:
        return end.code
    return 0


def _log(kind: str, row: str, commit: int | None = None) -> None:
    record: dict[str, object] = {
        "type": kind,
        "id": row,
        "process": f"{os.getpid()}",
        "time": time.monotonic(),
    }
    acknowledge(record if commit is None else {**record, "commit": commit})


VICTIMS = (writer, writer, writer, maintainer, collector, brancher, commander)
