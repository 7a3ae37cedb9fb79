"""Every call of a write that a disk can refuse is refused, with every error: the answer is always true (G2, G4).

The calls are those of the operating system, made by Python and by Lance alike. After each failure somebody who shares
no memory with the writer looks: what was acknowledged is there, what failed is not, and `commit_unknown` says what it
says. Repeated under the same key on a disk that works again, the write is there exactly once.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import CODES, CommitUnknown, Kind, OmnigraphError
from omnigraph.graph import Graph, init, open_graph
from tests.support import failing_disk, rings
from tests.support.failing_disk import STAYS, FailingDisk
from tests.support.processes import acknowledge, spawn

pytestmark = pytest.mark.xdist_group("failing disks")
ERRORS = (
    "EIO", "ENOSPC", "EDQUOT", "EACCES", "EROFS", "EPERM", "EMFILE", "ENFILE", "EINTR", "ESTALE", "ENOENT",
    "ENAMETOOLONG", "EBUSY",
)  # fmt: skip
SCHEMA = "node C { k: String @key n: I64 } node D { k: String @key } edge To: C -> D"
COUNT = "match { $c: C } return { $c.k as k, $c.n as n }"
ADD = 'query q() { update C set { n: n + 1 } where k = "c" }'
ROWS = {"C": [{"k": "c", "n": 1}], "D": [{"k": "d"}], "To": [{"from": "c", "to": "d"}]}
KEY = "once"
TOLD = (Kind.DENIED, Kind.UNAVAILABLE, Kind.UNKNOWN_OUTCOME)
MISSED = {"ENOENT": (Kind.CORRUPT,)}  # something that should be there is not


@dataclass(frozen=True, slots=True)
class Operation:
    """A change, and how to see whether it was made."""

    run: Callable[[Graph], object]
    was_made: Callable[[Graph], bool]
    has_key: bool = True


def n(graph: Graph) -> int:
    (row,) = (row for row in graph.query(COUNT).rows if row["k"] == "c")
    return int(row["n"])


OPERATIONS = {
    "mutate": Operation(lambda g: g.mutate(ADD, idempotency_key=KEY), lambda g: n(g) == 1),
    "load": Operation(
        lambda g: g.load(ROWS, idempotency_key=KEY), lambda g: bool(g.query("match { $d: D } return { $d.k }").rows)
    ),
    "merge": Operation(
        lambda g: g.merge("dev"), lambda g: any(row["k"] == "dev" for row in g.query(COUNT).rows), has_key=False
    ),
    "create_branch": Operation(
        lambda g: g.create_branch("new"), lambda g: "new" in g.branches(), has_key=False
    ),
    "tag": Operation(lambda g: g.tag("t"), lambda g: "t" in g.tags(), has_key=False),
}  # fmt: skip


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = failing_disk.build(tmp_path_factory.mktemp("library"))
    if built is None:
        pytest.skip(failing_disk.MISSING)
    return built


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph whose two branches have both gone on."""
    where = tmp_path_factory.mktemp("sound") / "graph"
    graph = init(where, schema=SCHEMA)
    graph.load({"C": [{"k": "c", "n": 0}]})
    graph.create_branch("dev")
    graph.load({"C": [{"k": "dev", "n": 5}]}, branch="dev")
    graph.load({"C": [{"k": "main", "n": 7}]})
    return where


def fail_everywhere(sound: str, folder: str, name: str, count: int) -> None:
    """In a child: run the operation with each failure there is, or a sample of them, and tell every answer."""
    disk, operation = FailingDisk(), OPERATIONS[name]
    calls = _calls(disk, operation, sound, folder)
    cases = [
        (at, error, done, times)
        for at in range(len(calls))
        for error in ERRORS
        for done in (False, True)
        for times in (1, STAYS)
        if not (done and calls[at] == "open")
    ]
    some = random.Random(name).sample(cases, min(count, len(cases)))
    for number, (at, error, done, times) in enumerate(sorted(some)):
        root = f"{folder}/{number}"
        shutil.copytree(sound, root)
        graph = open_graph(root)
        graph.query(COUNT)
        disk.arm(root, at, getattr(errno, error), done=done, times=times)
        answer = _answer(operation, graph)
        disk.disarm()
        how = f"{error} at {calls[at]} {at} of {calls}, {done=}, {times=}"
        acknowledge({"root": root, "error": error, "how": how, "answer": answer})


def _calls(disk: FailingDisk, operation: Operation, sound: str, folder: str) -> list[str]:
    root = f"{folder}/whole"
    shutil.copytree(sound, root)
    graph = open_graph(root)
    graph.query(COUNT)
    disk.arm(root)
    operation.run(graph)
    return disk.disarm()


def _answer(operation: Operation, graph: Graph) -> str:
    try:
        operation.run(graph)
    except OmnigraphError as error:
        return str(error.code)
    except BaseException as error:  # whatever it is, it must not be
        return f"raw {type(error).__name__}: {error}"
    return "ok"


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_answer_of_a_write_on_a_failing_disk_is_true(
    name: str, library: Path, sound: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    arguments = {
        "sound": str(sound),
        "folder": str(tmp_path),
        "name": name,
        "count": rings.count(10, 100),
    }
    environment = {**failing_disk.environment(library), "OMNIGRAPH_FSYNC": "1"}
    child = spawn(fail_everywhere, arguments, log=log, environment=environment)
    child.wait(3000)
    told = child.records()
    assert len(told) >= 10
    wrong = [
        f"{record['answer']}: {why}: {record['how']}"
        for record in told
        if (why := _judge(OPERATIONS[name], record))
    ]
    assert not wrong, "\n".join(wrong[:20])
    assert len({record["answer"] for record in told}) > 1


def _judge(operation: Operation, record: dict[str, Any]) -> str | None:
    """Why an answer was not true; none if it was."""
    answer, graph = record["answer"], open_graph(record["root"])
    made = operation.was_made(graph)
    if answer == "ok":
        if not made:
            return "acknowledged, but not there"
    elif answer not in CODES or CODES[answer].kind not in (*TOLD, *MISSED.get(record["error"], ())):
        return "no error of a disk"
    elif made and CODES[answer].kind is not Kind.UNKNOWN_OUTCOME:
        return "failed, but there"
    if operation.has_key or not made:
        operation.run(graph)
    if not operation.was_made(open_graph(record["root"])):
        return "not there exactly once after it was repeated"
    found = graph.doctor(deep=True)
    return None if found.healthy else str(found.findings)


@pytest.mark.parametrize("error", ERRORS)
def test_a_commit_whose_name_is_not_synced_is_unknown_whatever_the_error(
    error: str, sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody sees it, but a power cut may take it away. Repeated under its key it is there once."""
    graph = open_graph(shutil.copytree(sound, tmp_path / "graph"))
    real = os.fsync
    failed: list[Path] = []

    def fsync(descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if path.parent.name == "__manifest" and not failed:
            failed.append(path)
            raise OSError(getattr(errno, error), os.strerror(getattr(errno, error)))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(CommitUnknown) as told:
        OPERATIONS["mutate"].run(graph)
    assert not told.value.retryable
    assert failed
    again = graph.mutate(ADD, idempotency_key=KEY)
    assert again.replayed
    assert n(graph) == n(open_graph(tmp_path / "graph")) == 1


# --- disks that cannot be written ----------------------------------------------------------------------------------


def refuse_all_writes(sound: str, error: int) -> None:
    disk, graph = FailingDisk(), open_graph(sound)
    graph.query(COUNT)
    for name, operation in OPERATIONS.items():
        disk.arm(sound, 0, error, times=STAYS)
        acknowledge({"name": name, "answer": _answer(operation, graph)})
        acknowledge({"name": f"{name}, cold", "answer": _answer(operation, open_graph(sound))})
        disk.disarm()


@pytest.mark.parametrize(
    ("error", "code"),
    [("EROFS", "store_denied"), ("EACCES", "store_denied"), ("ENOSPC", "store_unavailable")],
)
def test_a_disk_that_cannot_be_written_is_called_so(
    error: str, code: str, library: Path, sound: Path, tmp_path: Path
) -> None:
    root = shutil.copytree(sound, tmp_path / "graph")
    arguments = {"sound": str(root), "error": getattr(errno, error)}
    child = spawn(
        refuse_all_writes,
        arguments,
        log=tmp_path / "log",
        environment=failing_disk.environment(library),
    )
    child.wait()
    names = (*OPERATIONS, *(f"{name}, cold" for name in OPERATIONS))
    told = {record["name"]: record["answer"] for record in child.records()}
    assert told == dict.fromkeys(names, code)


# --- graphs that are gone ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("emptied", [False, True], ids=["removed", "emptied"])
def test_a_graph_that_was_removed_does_not_come_back_in_parts(
    name: str, emptied: bool, sound: Path, tmp_path: Path
) -> None:
    root = shutil.copytree(sound, tmp_path / "graph")
    graph = open_graph(root)
    graph.query(COUNT)
    graph.branches()
    shutil.rmtree(root)
    if emptied:
        root.mkdir()
    with pytest.raises(OmnigraphError) as refused:
        OPERATIONS[name].run(graph)
    assert refused.value.code in ("graph_not_found", "corrupt", "branch_not_found")
    assert not (root / "_refs").exists()
    assert not (root / "__manifest").exists()
    assert os.listdir(tmp_path) in ([], ["graph"])
