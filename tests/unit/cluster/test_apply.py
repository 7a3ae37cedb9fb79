"""Plans and what becomes of them: exactly what was planned, by one of those who try, or nothing."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from omnigraph.cluster.apply import apply_plan
from omnigraph.cluster.ledger import Ledger
from omnigraph.cluster.plan import make_plan, read_plan, save_plan
from omnigraph.cluster.report import compare, status
from omnigraph.cluster.resources import ClusterInvalid, ClusterMoved, DeletionUnconfirmed
from omnigraph.errors import OmnigraphError
from omnigraph.graph import init, open_graph
from tests.support import rings
from tests.support.beside import INSERT
from tests.support.caches import forget_tables
from tests.support.faulty_s3 import FaultyS3
from tests.unit.cluster.folders import FILMS, PEOPLE, applied, listed, planned, write_folder

OLDER = "node Person { name: String @key  nick: String? }"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "c")


def uri(folder: Path, id: str = "people") -> str:
    return str(folder / "graphs" / f"{id}.omni")


def test_what_is_described_comes_into_being_and_then_there_is_nothing_to_do(folder: Path) -> None:
    assert listed(planned(folder)) == [
        "create graph.films",
        "create graph.people",
        "create schema.films",
        "create schema.people",
        "create retention.people",
        "create policy.team",
        "create query.people.add",
        "create query.people.all",
    ]
    done = applied(folder, actor="ada")
    assert done is not None
    assert done.converged
    people = open_graph(uri(folder))
    assert people.schema() == PEOPLE
    kept = people.retention()
    assert kept is not None
    assert kept.keep == 50
    assert people.log()[-1].actor == "ada"
    assert applied(folder) is None
    assert [r.state for r in Ledger(str(folder)).history()] == ["applied", "applying"]


def test_a_schema_change_is_shown_step_by_step_and_made(folder: Path) -> None:
    (folder / "people.pg").write_text(OLDER)
    (folder / "people.gq").write_text("query q() { match { $p: Person } return { $p.nick as n } }")
    applied(folder)
    open_graph(uri(folder)).load({"Person": [{"name": "Ada", "nick": "A"}]})
    (folder / "people.pg").write_text(PEOPLE)
    (folder / "people.gq").unlink()
    write_folder(folder)
    plan = planned(folder)
    (change,) = [c for c in plan.changes if c.address == "schema.people"]
    kinds = sorted(step["kind"] for step in change.steps)
    assert kinds == ["add_property", "add_type", "drop_property"]
    assert change.drops
    done = apply_plan(plan)
    assert done is not None
    assert done.converged
    assert open_graph(uri(folder)).schema() == PEOPLE


def test_what_cannot_be_done_is_refused_before_anything_is(folder: Path) -> None:
    applied(folder)
    (folder / "people.pg").write_text(PEOPLE.replace("age: I64?", "age: String?"))
    (folder / "films.pg").write_text(FILMS + "\nnode Star { name: String @key }")
    plan = planned(folder)
    assert [c.address for c in plan.blocked] == ["schema.people"]
    with pytest.raises(ClusterInvalid, match=r"schema\.people"):
        apply_plan(plan)
    assert open_graph(uri(folder, "films")).schema() == FILMS


def test_a_saved_plan_is_applied_exactly_or_refused(folder: Path) -> None:
    saved = save_plan(planned(folder))
    done = apply_plan(read_plan(saved, "saved"))
    assert done is not None
    assert done.converged
    with pytest.raises(ClusterMoved, match="revision"):
        apply_plan(read_plan(saved, "saved"))
    (folder / "films.pg").write_text(FILMS + "\nnode Star { name: String @key }")
    plan = planned(folder)
    open_graph(uri(folder, "films")).apply_schema(FILMS + "\nnode Prize { name: String @key }")
    with pytest.raises(ClusterMoved, match="films"):
        apply_plan(plan)
    with pytest.raises(OmnigraphError) as wrong:
        read_plan(b"{}", "x")
    assert wrong.value.code == "plan_invalid"


def test_deleting_a_graph_needs_its_name(folder: Path) -> None:
    applied(folder)
    write_folder(folder, graphs={"people": {"schema": "people.pg"}})
    plan = planned(folder)
    assert plan.deletions == ("films",)
    with pytest.raises(DeletionUnconfirmed, match="films"):
        apply_plan(plan, delete=frozenset({"people"}))
    assert open_graph(uri(folder, "films"))
    done = apply_plan(plan, delete=frozenset({"films"}))
    assert done is not None
    assert done.converged
    assert not [file for file in Path(uri(folder, "films")).rglob("*") if file.is_file()]
    assert open_graph(uri(folder)).retention() is None
    assert not any("films" in address for address in done.revision.resources)
    assert applied(folder) is None


def test_a_graph_that_lies_elsewhere_is_adopted_and_let_go(tmp_path: Path, folder: Path) -> None:
    elsewhere = init(tmp_path / "own", PEOPLE)
    graphs = {"own": {"schema": "people.pg", "uri": "../own"}, "films": {"schema": "films.pg"}}
    write_folder(folder, graphs=graphs, policies={})
    assert listed(planned(folder))[:2] == ["create graph.films", "adopt graph.own"]
    applied(folder)
    write_folder(folder, graphs={"films": {"schema": "films.pg"}}, policies={})
    assert listed(planned(folder)) == ["release graph.own"]
    applied(folder)
    assert open_graph(elsewhere.uri).schema() == PEOPLE


def test_drift_is_shown_and_taken_back(folder: Path) -> None:
    applied(folder)
    assert status(str(folder)).drift == {}
    people = open_graph(uri(folder))
    people.apply_schema(PEOPLE + "\nnode Town { name: String @key }")
    people.set_retention(7)
    (folder / "__cluster/texts" / planned(folder).wanted.resources["policy.team"].digest).unlink()
    drift = status(str(folder)).drift
    assert sorted(drift) == ["policy.team", "retention.people", "schema.people"]
    assert listed(planned(folder)) == ["update schema.people", "update retention.people"]
    applied(folder)
    assert status(str(folder)).drift == {}, "the missing text was not kept again"
    assert open_graph(uri(folder)).schema() == PEOPLE


def test_checks_are_brought_into_force_and_taken_away(folder: Path) -> None:
    text = "query nameless() { match { $p: Person $p.age is null } return { $p.name as name } }"
    (folder / "people.checks.gq").write_text(text)
    graphs = {"people": {"schema": "people.pg", "checks": "people.checks.gq"}}
    write_folder(folder, graphs=graphs, policies={})
    assert "create checks.people" in listed(planned(folder))
    applied(folder)
    people = open_graph(uri(folder))
    assert [check.name for check in people.checks()] == ["nameless"]
    assert listed(planned(folder)) == []
    people.apply_checks("")
    assert status(str(folder)).drift == {"checks.people": "the graph has other checks"}
    assert listed(planned(folder)) == ["create checks.people"]
    applied(folder)
    assert status(str(folder)).drift == {}
    write_folder(folder, graphs={"people": {"schema": "people.pg"}}, policies={})
    assert listed(planned(folder)) == ["delete checks.people"]
    applied(folder)
    assert open_graph(uri(folder)).checks() == []
    (folder / "people.checks.gq").write_text("query q() { match { $p: Prson } return { $p } }")
    write_folder(folder, graphs=graphs, policies={})
    with pytest.raises(ClusterInvalid, match="Prson"):
        planned(folder)


def test_a_cluster_may_be_moved(tmp_path: Path, folder: Path) -> None:
    applied(folder)
    moved = folder.rename(tmp_path / "elsewhere")
    assert status(str(moved)).drift == {}
    assert listed(planned(moved)) == []
    assert open_graph(uri(moved)).schema() == PEOPLE


def test_revisions_can_be_compared(folder: Path) -> None:
    applied(folder)
    (folder / "people.pg").write_text(PEOPLE + "\nnode Town { name: String @key }")
    plan = planned(folder)
    ledger = Ledger(str(folder))
    newest = ledger.newest()
    assert newest is not None
    lines = list(compare(ledger, newest.resources, plan.wanted.resources, plan.wanted))
    assert "+node Town { name: String @key }" in lines
    assert not any("films" in line for line in lines)


# --- beside others -----------------------------------------------------------------------------------------------


def test_of_two_who_apply_at_once_one_does(folder: Path) -> None:
    applied(folder)
    plans = []
    for name in ("Star", "Prize"):
        (folder / "films.pg").write_text(f"{FILMS}\nnode {name} {{ name: String @key }}")
        plans.append(planned(folder))
    ends: list[Any] = [None, None]
    ready = threading.Barrier(2)

    def run(number: int) -> None:
        ready.wait()
        try:
            ends[number] = apply_plan(plans[number])
        except ClusterMoved as moved:
            ends[number] = moved

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = [n for n in range(2) if not isinstance(ends[n], ClusterMoved)]
    assert ends[winner].converged
    schema = open_graph(uri(folder, "films")).schema()
    assert schema == plans[winner].wanted.text("schema.films")
    assert status(str(folder)).drift == {}


def test_an_apply_that_another_one_overtakes_stops(folder: Path) -> None:
    slow = planned(folder)

    def overtaken(change: Any) -> None:
        if str(change) == "create schema.films":
            applied(folder)

    with pytest.raises(ClusterMoved, match="another apply"):
        apply_plan(slow, progress=overtaken)
    found = status(str(folder))
    assert (found.revision.state, found.drift) == ("applied", {})


def test_writers_of_a_graph_do_not_mind(folder: Path) -> None:
    applied(folder)
    people = open_graph(uri(folder))
    stop = threading.Event()
    written: list[int] = []

    def write() -> None:
        while not stop.is_set():
            people.mutate(INSERT, {"n": f"p{len(written)}", "a": 1})
            written.append(1)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for name in ("Town", "River"):
            (folder / "people.pg").write_text(f"{PEOPLE}\nnode {name} {{ name: String @key }}")
            done = applied(folder)
            assert done is not None
            assert done.converged, done.revision.errors
    finally:
        stop.set()
        writer.join()
    count = people.query("match { $p: Person } return { count($p) as n }").scalar()
    assert count == len(written)


def test_wherever_an_apply_dies_the_next_one_goes_on(faulty_s3: FaultyS3, tmp_path: Path) -> None:
    """Killed at each of its durable writes; then applied again, to the same end."""
    root = faulty_s3.address.uri("cluster")
    folder = write_folder(tmp_path / "c", storage=root)
    graphs = {
        "people": {"schema": "people.pg", "queries": ["people.gq"]},
        "new": {"schema": "films.pg"},
    }
    changed = {"storage": root, "graphs": graphs}
    applied(folder)
    start = faulty_s3.snapshot()
    (folder / "people.pg").write_text(PEOPLE + "\nnode Town { name: String @key }")
    write_folder(folder, **changed)
    faulty_s3.restore(start)
    applied(folder, delete=frozenset({"films"}))
    writes = faulty_s3.durable_writes()
    assert writes > 10
    for k in range(1, writes + 1, 1 if rings.is_nightly() else 7):
        faulty_s3.restore(start)
        forget_tables()
        faulty_s3.die_at(k, applied=bool(k % 2), deny=True)
        with pytest.raises(OmnigraphError):
            applied(folder, delete=frozenset({"films"}))
        faulty_s3.revive()
        forget_tables()
        applied(folder, delete=frozenset({"films"}))
        found = status(root)
        assert (found.revision.state, found.drift) == ("applied", {}), f"died at write {k}"
        assert sorted(a for a in found.revision.resources if a.startswith("graph.")) == [
            "graph.new",
            "graph.people",
        ]
        assert make_plan(planned(folder).wanted).changes == ()


def test_many_graphs(tmp_path: Path) -> None:
    count = rings.count(8, 50)
    graphs = {f"g{n}": {"schema": "people.pg", "queries": ["people.gq"]} for n in range(count)}
    folder = write_folder(tmp_path / "c", graphs=graphs, policies={})
    done = applied(folder)
    assert done is not None
    assert done.converged
    assert len(done.changes) == 4 * count
    assert status(str(folder)).drift == {}
