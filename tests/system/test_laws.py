"""What must hold of any history, whatever the model says: each law by itself, over histories with schema changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

import omnigraph
from tests.support.rings import count
from tests.system import observe
from tests.system.fresh import nursery
from tests.system.generate import KEYS, program
from tests.system.merging import relaid
from tests.system.observe import Shown, by_query, shape_in, shown
from tests.system.run import Run
from tests.system.values import same
from tests.system.world import forget_memory

SEEDS = range(1000, 1000 + count(6, 40))
LENGTH = 30
LEFT_OUT = ("look", "cleanup", "clone", "optimize")
SETTLED = ("merged", "fast_forward", "already_up_to_date")


@contextmanager
def history(seed: int, *, disk: bool = False) -> Iterator[Run]:
    """A graph with branches and a past."""
    made = program(seed * 4 + (3 if disk else 0), LENGTH)  # every fourth is on a disk
    run = Run(made)
    try:
        for step in made.steps:
            if step["verb"] not in LEFT_OUT:
                run.step(step)
        if "b1" not in run.model.heads:
            run.step({"verb": "create_branch", "label": "extra", "name": "b1", "from_": "main"})
        yield run
    finally:
        run.world.close()


def whole(graph: Any, at: str) -> tuple[dict[str, dict[str, str]], Shown]:
    """The schema and every row of a point."""
    return observe.schema_shown(graph, at), by_query(graph, at, shape_in(graph, at))


def assert_alike(one: Any, other: Any) -> None:
    """Both show the same; zeros may differ in their sign."""
    assert one[0] == other[0]
    for name, rows in one[1].items():
        assert rows.keys() == other[1][name].keys(), name
        for id, row in rows.items():
            for cell, value in row.items():
                found = other[1][name][id][cell]
                assert same(value, found), f"{name} {id!r}: {cell} is {found!r}, not {value!r}"


def two_branches(run: Run, seed: int) -> tuple[str, str]:
    one, other = Random(seed).sample(sorted(run.model.heads), 2)
    return one, other


@pytest.mark.parametrize("seed", SEEDS)
def test_a_merge_is_idempotent(seed: int) -> None:
    with history(seed) as run:
        graph, (source, into) = run.world.graph, two_branches(run, seed)
        before = whole(graph, into)
        outcome = graph.merge(source, into=into, strategy="theirs").outcome
        if outcome not in SETTLED:
            assert outcome == "conflict"
            assert_alike(whole(graph, into), before)
            return
        merged = whole(graph, into)
        assert graph.merge(source, into=into).outcome == "already_up_to_date"
        assert_alike(whole(graph, into), merged)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_merge_is_symmetric_up_to_who_wins(seed: int) -> None:
    with history(seed) as run:
        graph, (one, other) = run.world.graph, two_branches(run, seed)
        graph.create_branch("left", from_=one)
        graph.create_branch("right", from_=other)
        there = graph.merge(other, into="left", strategy="ours")
        back = graph.merge(one, into="right", strategy="theirs")
        assert (there.outcome == "conflict") == (back.outcome == "conflict")
        if there.outcome != "conflict":
            assert_alike(whole(graph, "left"), whole(graph, "right"))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_merge_is_the_union_where_nothing_meets(seed: int) -> None:
    with history(seed) as run:
        graph = run.world.graph
        state = run.model.state("main")
        kinds = [k for k in state.types.values() if not k.is_edge and not k.uniques]
        base = whole(graph, "main")[1]
        added: Shown = {}
        for branch, text in (("left", "only left"), ("right", "only right")):
            graph.create_branch(branch)
            for kind in kinds:
                row = _new_row(kind, text)
                if row is not None:
                    graph.load({kind.name: [row]}, branch=branch)
            schema = graph.schema(branch).rstrip()
            graph.apply_schema(f"{schema}\nnode New{branch} {{ k: String @key }}", branch=branch)
            graph.load({f"New{branch}": [{"k": text}]}, branch=branch)
            for name, rows in whole(graph, branch)[1].items():
                new = {i: r for i, r in rows.items() if i not in base.get(name, {})}
                added.setdefault(name, {}).update(new)
        assert graph.merge("left", into="main").outcome == "fast_forward"
        assert graph.merge("right", into="main").outcome == "merged"
        union = {name: base.get(name, {}) | added.get(name, {}) for name in {*base, *added}}
        found = whole(graph, "main")
        assert_alike(found, (found[0], union))


def _new_row(kind: Any, text: str) -> dict[str, Any] | None:
    """A row that no other has, or none where its type asks for more than can be told."""
    row: dict[str, Any] = {} if kind.key else {"id": text}
    for prop in kind.props.values():
        if prop.type == "String":
            row[prop.name] = text
        elif prop.ident in (kind.key or ()):
            row[prop.name] = max(k for k in KEYS[prop.type] if isinstance(k, int)) + len(text)
        elif not prop.nullable and prop.default is None:
            return None
    return row


@pytest.mark.parametrize("seed", SEEDS)
def test_reverting_a_merge_restores_every_cell(seed: int) -> None:
    with history(seed) as run:
        graph, (source, into) = run.world.graph, two_branches(run, seed)
        before = whole(graph, into)
        merged = graph.merge(source, into=into, strategy="theirs")
        if merged.commit is None:
            assert merged.outcome in ("conflict", "already_up_to_date")
            assert_alike(whole(graph, into), before)
            return
        assert graph.revert(merged.commit.id, branch=into).outcome in SETTLED
        assert_alike(whole(graph, into), before)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cherry_pick_and_its_revert_are_nothing(seed: int) -> None:
    with history(seed) as run:
        graph, (source, into) = run.world.graph, two_branches(run, seed)
        line = list(run.model.line(source))[:-1]
        for commit in Random(seed).sample(line, min(3, len(line))):
            before = whole(graph, into)
            picked = graph.cherry_pick(
                run.world.commits[commit.label], branch=into, strategy="theirs"
            )
            if picked.commit is not None:
                assert graph.revert(picked.commit.id, branch=into).outcome in SETTLED
                assert_alike(whole(graph, into), before)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_diff_applied_gives_the_other_state(seed: int) -> None:
    with history(seed) as run:
        graph, labels = run.world.graph, sorted(run.model.commits)
        for one, other in (
            (Random(seed).sample(labels, 2) for _ in range(3)) if len(labels) > 1 else ()
        ):
            states = [run.model.commits[label].state for label in (one, other)]
            rows = shown(relaid(states[0], states[1].types), run.world.real)
            for change in graph.diff(run.world.commits[one], run.world.commits[other]):
                table = rows.setdefault(change.type, {})
                if change.operation == "delete":
                    table.pop(change.id, None)
                else:
                    kept = table.get(change.id, {}) if change.operation == "update" else {}
                    after = {n: v for n, v in change.after.items() if n != "id"}
                    table[change.id] = {**kept, **after}
            found = whole(graph, run.world.commits[other])
            assert_alike(found, (found[0], rows))


@pytest.mark.parametrize("seed", SEEDS)
def test_an_export_loads_as_the_same_state(seed: int, tmp_path: Path) -> None:
    with history(seed) as run:
        graph, (branch, _) = run.world.graph, two_branches(run, seed)
        graph.export(tmp_path, branch=branch)
        copy = omnigraph.init(f"memory://law-{seed}", schema=graph.schema(branch))
        try:
            files = [str(p) for p in sorted(tmp_path.glob("*.ndjson")) if p.stat().st_size]
            if files:
                copy.load(files)
            assert_alike(whole(copy, "main"), whole(graph, branch))
        finally:
            forget_memory(copy.uri)


@pytest.mark.parametrize("seed", SEEDS[: count(3, 12)])
def test_time_travel_does_not_depend_on_what_was_asked_before(seed: int) -> None:
    with history(seed, disk=True) as run:
        labels = sorted(run.model.commits)
        Random(seed).shuffle(labels)
        asked = {}
        for label in (*labels, *reversed(labels)):
            at, shape = run.world.commits[label], observe.shape_of(run.model.commits[label].state)
            asked[label] = by_query(run.world.graph, at, shape)
        for label in labels[:5]:
            at, shape = run.world.commits[label], observe.shape_of(run.model.commits[label].state)
            ((kind, found),) = nursery().ask(run.world.uri, [("query", at, shape)])
            assert kind == "shown", found
            assert_alike(({}, found), ({}, asked[label]))
