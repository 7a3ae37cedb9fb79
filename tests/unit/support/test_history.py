"""The judge of chains and acknowledgements finds what is wrong and accepts what is right."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from tests.support.history import (
    Append,
    ChainCommit,
    Operation,
    Read,
    Status,
    check_acknowledged,
    check_chain,
    check_replay,
    read_operations,
)


def chain(*operations: str) -> list[ChainCommit]:
    """Commits 0, 1, 2… holding these operations; several in one are separated by a comma."""
    return [
        ChainCommit(n, f"c{n}", f"c{n - 1}" if n else None, tuple(text.split(",")) if text else ())
        for n, text in enumerate(operations)
    ]


def ok(id: str, invoked: float = 0, completed: float = 9, commit: int | None = None) -> Operation:
    return Operation(id, "p", Status.OK, invoked, completed, commit=commit)


def fail(id: str) -> Operation:
    return Operation(id, "p", Status.FAIL)


def info(id: str) -> Operation:
    return Operation(id, "p", Status.INFO)


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    commits: list[ChainCommit]
    operations: list[Operation] = field(default_factory=list)
    expected: tuple[str, ...] = ()


CHAINS = (
    Case("empty", []),
    Case("linear", chain("", "a", "b")),
    Case("in any order", chain("", "a", "b")[::-1]),
    Case("group commit", chain("", "a,b", "c")),
    Case("beginning pruned", chain("", "a", "b", "c")[2:]),
    Case("number missing", [*chain("", "a", "b")[:1], *chain("", "a", "b")[2:]], [], ("gap",)),
    Case("number twice", [*chain("", "a"), ChainCommit(1, "x", "c0", ("b",))], [], ("fork",)),
    Case("wrong parent", [*chain(""), ChainCommit(1, "c1", "x")], [], ("broken parent",)),
    Case("id twice", [*chain("", "a"), ChainCommit(2, "c1", "c1")], [], ("duplicate",)),
    Case("applied twice", chain("", "a", "a"), [], ("duplicate",)),
    Case("applied twice in a group", chain("", "a,a"), [], ("duplicate",)),
)

ACKNOWLEDGEMENTS = (
    Case("all there", chain("", "a", "b"), [ok("a"), ok("b")]),
    Case("failed and not there", chain("", "a"), [ok("a"), fail("b")]),
    Case("unknown and there", chain("", "a"), [info("a")]),
    Case("unknown and not there", chain(""), [info("a")]),
    Case("right number", chain("", "a"), [ok("a", commit=1)]),
    Case("one after the other", chain("", "a", "b"), [ok("a", 0, 1), ok("b", 2, 3)]),
    Case("overlapping, either way", chain("", "b", "a"), [ok("a", 0, 2), ok("b", 1, 3)]),
    Case("late landing of an unknown", chain("", "b", "a"), [info("a"), ok("b", 5, 6)]),
    Case("in one group, in order", chain("", "a,b"), [ok("a", 0, 1), ok("b", 2, 3)]),
    Case("acknowledged, not there", chain(""), [ok("a")], ("lost",)),
    Case("failed, there", chain("", "a"), [fail("a")], ("undead",)),
    Case("other number", chain("", "a"), [ok("a", commit=2)], ("misplaced",)),
    Case("nobody's", chain("", "a"), [], ("unknown operation",)),
    Case("swapped", chain("", "b", "a"), [ok("a", 0, 1), ok("b", 2, 3)], ("out of order",)),
    Case("swapped in group", chain("", "b,a"), [ok("a", 0, 1), ok("b", 2, 3)], ("out of order",)),
)


def name(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", CHAINS, ids=name)
def test_chains(case: Case) -> None:
    assert tuple(found.kind for found in check_chain(case.commits)) == case.expected


@pytest.mark.parametrize("case", ACKNOWLEDGEMENTS, ids=name)
def test_acknowledgements(case: Case) -> None:
    found = check_acknowledged(case.commits, case.operations)
    assert tuple(anomaly.kind for anomaly in found) == case.expected


def test_operations_that_prepared_the_graph_may_be_named() -> None:
    assert check_acknowledged(chain("setup", "a"), [ok("a")], known=["setup"]) == []


def test_reading_operations_need_no_commit() -> None:
    reader = replace(ok("r"), steps=(Read("x", ()),))
    assert check_acknowledged(chain(""), [reader]) == []


def grown() -> list[ChainCommit]:
    """x grows by 1 in commit 1 and by 2 in commit 2; y by 5 in commit 2."""
    first, second, third = chain("", "a", "b")
    return [
        first,
        replace(second, appends=(Append("x", 1),)),
        replace(third, appends=(Append("x", 2), Append("y", 5))),
    ]


def reader(
    snapshot: int, *steps: Append | Read, id: str = "r", at: float = 0, commit: int | None = None
) -> Operation:
    return Operation(id, "p", Status.OK, at, at + 0.5, steps, snapshot=snapshot, commit=commit)


REPLAYS = (
    Case("at each commit", grown(), [
        reader(0, Read("x", ()), id="r0", at=0),
        reader(1, Read("x", (1,)), Read("y", ()), id="r1", at=1),
        reader(2, Read("x", (1, 2)), Read("y", (5,)), id="r2", at=2),
    ]),
    Case("own appends seen", grown(), [reader(1, Append("x", 7), Read("x", (1, 7)), commit=2)]),
    Case("half a commit", grown(), [reader(2, Read("x", (1, 2)), Read("y", ()))], ("wrong read",)),
    Case("too much", grown(), [reader(1, Read("x", (1, 2)))], ("wrong read",)),
    Case("no such commit", grown(), [reader(9, Read("x", (1, 2)))], ("wrong read",)),
    Case("its own future", grown(), [reader(2, Append("x", 2), commit=2)], ("wrong read",)),
    Case("older than acknowledged", grown(), [
        reader(1, Append("x", 2), id="w", commit=2),
        replace(reader(1, Read("x", (1,)), at=1), process="q"),
    ], ("stale read",)),
    Case("going back", grown(), [
        replace(reader(2, id="r2"), invoked=0, completed=2),
        replace(reader(1, id="r1"), invoked=1, completed=3),
    ], ("non-monotonic session",)),
)  # fmt: skip


@pytest.mark.parametrize("case", REPLAYS, ids=name)
def test_replays(case: Case) -> None:
    found = check_replay(case.commits, case.operations)
    assert tuple(anomaly.kind for anomaly in found) == case.expected


def test_operations_are_read_from_the_logs_of_clients() -> None:
    records = [
        {"type": "invoke", "id": "a", "process": "p", "time": 1.0},
        {"type": "invoke", "id": "b", "process": "q", "time": 2.0, "steps": [["append", "x", 2]]},
        {"type": "ok", "id": "a", "time": 3.0, "snapshot": 0, "steps": [["read", "x", [1]]]},
    ]
    a, b = read_operations(records)
    assert (a.status, a.invoked, a.completed, a.steps) == ("ok", 1.0, 3.0, (Read("x", (1,)),))
    assert (b.status, b.steps) == (Status.INFO, (Append("x", 2),)), "a killed client may have won"
