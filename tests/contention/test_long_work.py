"""Long work beside others who commit without pause: it finishes, once, and nobody waits long for it.

Small sizes here; `python -m benchmarks beside` has the large ones, and says what the company costs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.errors import WriteConflict
from omnigraph.graph import open_graph
from tests.contention.beside import (
    WORKS,
    Wrote,
    beside,
    lost_rows,
    new_graph,
    write_other_rows,
    write_same_rows,
)
from tests.support import rings

SIZE = rings.count(2_000, 50_000)
REMOTE = ("merge of changed rows", "load of new edges", "optimize")  # on S3, but for nightly runs
MET = ["merge of changed rows", "load of changed rows", "revert"]
WRITERS = rings.count(2, 4)
TIMEOUT = 240.0


@pytest.fixture(params=["disk", "s3"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "s3":
        root: str = request.getfixturevalue("s3_root")
        return root
    return str(tmp_path / "graph")


def test_all_long_work_finishes_beside_writers_of_other_rows(uri: str, tmp_path: Path) -> None:
    """One graph for each, and the same writers: what they cost is mostly their start."""
    some = REMOTE if uri.startswith("s3://") and not rings.is_nightly() else WORKS
    for number, name in enumerate(some):
        work = WORKS[name]
        own = f"{uri}-{number}"
        graph, given = new_graph(own, work, SIZE)
        with beside(own, tmp_path / f"log{number}", WRITERS, write_other_rows) as children:
            work.run(graph, SIZE, given, TIMEOUT)
        fresh = open_graph(own)
        assert list(work.check(fresh, SIZE)) == [], name
        assert list(lost_rows(fresh, children)) == [], name
        wrote = Wrote.of(children)
        assert wrote.failed == [], name
        assert wrote.commits > 0, name


@pytest.mark.parametrize("name", MET[: rings.count(1, len(MET))])
def test_work_whose_rows_others_change_is_right_or_says_who_did(name: str, tmp_path: Path) -> None:
    uri, work = str(tmp_path / "graph"), WORKS[name]
    graph, given = new_graph(uri, work, SIZE)
    with beside(uri, tmp_path / "log", WRITERS, write_same_rows, size=SIZE) as children:
        try:
            done = work.run(graph, SIZE, given, TIMEOUT)
            named = {conflict.type for conflict in getattr(done, "conflicts", ())}
        except WriteConflict as conflict:
            named = set(conflict.details["types"])
    assert Wrote.of(children).failed == []
    assert named <= {"Person"}
    assert open_graph(uri).doctor(deep=True).healthy
