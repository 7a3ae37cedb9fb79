"""Commit times only grow, and one machine with a wrong clock does not take everybody into the future."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from omnigraph.core import layout
from omnigraph.core.clock import REAL
from omnigraph.core.commit_time import ClockWrong
from omnigraph.core.records import encode
from omnigraph.graph import Graph, init, open_graph
from omnigraph.storage.objects import numbered
from tests.support.worlds import SCHEMA, add_person

DAY = 86_400_000_000
YEARS = 50 * 365 * DAY


def with_clock(root: Path, ahead: int) -> Graph:
    """The graph as a machine sees it whose clock is this many microseconds ahead."""
    graph = open_graph(root)
    graph._repo.clock = replace(REAL, now=lambda: REAL.now() + ahead)
    return graph


@pytest.fixture
def root(tmp_path: Path) -> Path:
    init(tmp_path / "graph", schema=SCHEMA).publish(add_person("ann"))
    return tmp_path / "graph"


@pytest.mark.parametrize(
    "act",
    [
        lambda g: g.publish(add_person("bob")),
        lambda g: g.create_branch("dev"),
        lambda g: g.cleanup(keep=1),
    ],
    ids=["write", "branch", "cleanup"],
)
def test_a_clock_far_ahead_of_the_store_is_refused(
    root: Path, act: Callable[[Graph], object]
) -> None:
    before = open_graph(root).snapshot().commit.time
    with pytest.raises(ClockWrong) as refused:
        act(with_clock(root, YEARS))
    assert refused.value.details["ahead_seconds"] > 40 * 365 * 86_400
    graph = open_graph(root)
    graph.publish(add_person("cy"))
    after = graph.snapshot().commit.time
    assert before < after <= REAL.now()
    assert graph.branches() == ["main"]
    assert not [path for path in (root / "_tmp").rglob("*") if path.is_file()]


def test_clocks_may_differ_a_little_and_times_still_grow(root: Path) -> None:
    times = [open_graph(root).snapshot().commit.time]
    for ahead in (DAY // 2, 0, -YEARS, DAY // 3):
        graph = with_clock(root, ahead)
        graph.publish(add_person(f"p{len(times)}"))
        times.append(graph.snapshot().commit.time)
    assert times == sorted(set(times))
    assert times[-1] < REAL.now() + DAY


def test_a_branch_that_rested_for_long_is_written_as_ever(root: Path) -> None:
    """Whoever finds it so asks the store, which agrees."""
    head = open_graph(root).snapshot().commit
    stored = root / numbered(layout.chain_folder(head.chain), head.number)
    stored.unlink()
    stored.write_bytes(encode(msgspec.structs.replace(head, time=head.time - 30 * DAY)))
    graph = open_graph(root)
    graph.publish(add_person("bob"))
    assert head.time < graph.snapshot().commit.time <= REAL.now()


def test_a_branch_that_ends_in_the_future_is_told_by_doctor(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnigraph.core.commit_time._store_time", lambda _repo: None)
    with_clock(root, YEARS).publish(add_person("bob"))
    found = open_graph(root).doctor()
    assert found.healthy
    (finding,) = found.findings
    assert (finding.severity, finding.check) == ("warning", "times")
