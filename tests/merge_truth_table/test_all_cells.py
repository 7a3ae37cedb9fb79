"""Every pair of operations on two branches, through the real merge and through its specification."""

from __future__ import annotations

import uuid

import pytest

from omnigraph.graph import Graph, init
from tests.merge_truth_table.operations import BASE, OPERATIONS, SCHEMA, Operation
from tests.merge_truth_table.specification import Verdict, broken_rules, image_of, specified


def ours_of(operation: Operation) -> str:
    return f"ours: {operation.name}"


def theirs_of(operation: Operation) -> str:
    return f"theirs: {operation.name}"


class Table:
    """A graph with two branches per operation, one for each side, all from the same start."""

    def __init__(self) -> None:
        self.graph: Graph = init(f"memory://{uuid.uuid4().hex}", schema=SCHEMA)
        self.graph.load(BASE)
        self.base = self.graph.snapshot()
        self.images = {"main": image_of(self.graph, "main", self.base.catalog)}
        for name, operation in ((f(o), o) for o in OPERATIONS for f in (ours_of, theirs_of)):
            self.graph.create_branch(name)
            operation.run(self.graph, name)
            self.images[name] = image_of(self.graph, name, self.base.catalog)

    def specified(self, ours: Operation, theirs: Operation) -> Verdict:
        names = "main", ours_of(ours), theirs_of(theirs)
        return specified(*(self.images[name] for name in names))

    def fresh(self, ours: Operation) -> str:
        """A branch on which an operation has happened."""
        name = f"target-{uuid.uuid4().hex}"
        self.graph.create_branch(name, from_=ours_of(ours))
        return name


@pytest.fixture(scope="module")
def table() -> Table:
    return Table()


def outcomes_of(ours: Operation, theirs: Operation, verdict: Verdict) -> tuple[str, ...]:
    if not theirs.steps:
        return ("already_up_to_date",)
    if not ours.steps:
        return ("fast_forward",)
    if verdict.kinds:
        return ("conflict",)
    # Two sides that did the very same to the schema and nothing to rows are the same state.
    return ("merged", "already_up_to_date") if ours is theirs else ("merged",)


@pytest.mark.parametrize("ours", OPERATIONS, ids=lambda operation: operation.name)
def test_every_merge_gives_what_the_specification_says(table: Table, ours: Operation) -> None:
    for theirs in OPERATIONS:
        cell = f"{ours.name} | {theirs.name}"
        verdict = table.specified(ours, theirs)
        target = table.fresh(ours)
        planned = table.graph.merge(theirs_of(theirs), into=target, dry_run=True)
        before = image_of(table.graph, target, table.base.catalog)
        assert before == table.images[ours_of(ours)], f"{cell}: a dry run changed the target"
        result = table.graph.merge(theirs_of(theirs), into=target)
        assert result.outcome in outcomes_of(ours, theirs, verdict), f"{cell}: {result}"
        assert {c.kind for c in result.conflicts} == verdict.kinds, f"{cell}: {result.conflicts}"
        assert (planned.outcome, planned.conflicts) == (result.outcome, result.conflicts), cell
        assert planned.counts == result.counts, f"{cell}: the dry run counted otherwise"
        after = image_of(table.graph, target, table.base.catalog)
        assert after == (before if verdict.kinds else verdict.image), f"{cell}: another state"


@pytest.mark.parametrize("strategy", ["ours", "theirs"])
@pytest.mark.parametrize("ours", OPERATIONS, ids=lambda operation: operation.name)
def test_a_strategy_settles_every_conflict_of_rows(
    table: Table, ours: Operation, strategy: str
) -> None:
    for theirs in OPERATIONS:
        cell = f"{ours.name} | {theirs.name} by {strategy}"
        kinds = table.specified(ours, theirs).kinds
        if not kinds or not ours.steps or not theirs.steps:
            continue
        target = table.fresh(ours)
        result = table.graph.merge(theirs_of(theirs), into=target, strategy=strategy)
        after = image_of(table.graph, target, table.base.catalog)
        assert not broken_rules(after), f"{cell}: {broken_rules(after)}"
        if "schema_conflict" in kinds:
            assert result.outcome == "conflict", f"{cell}: a schema has no side to take"
        elif "value_constraint_violation" in kinds and strategy != side_of_rule(ours):
            left = {c.kind for c in result.conflicts}
            assert left == {"value_constraint_violation"}, f"{cell}: {result}"
        elif "lost_value" in kinds and strategy != side_that_drops(ours):
            assert {c.kind for c in result.conflicts} == {"lost_value"}, f"{cell}: {result}"
        else:
            assert result.outcome == "merged", f"{cell}: {result}"


def side_that_drops(ours: Operation) -> str:
    """A value can go with its property, but it cannot stay without it."""
    return "ours" if ours.name == "drop the property" else "theirs"


def side_of_rule(ours: Operation) -> str:
    """A row that breaks a rule of the other side can go with its change, but the rule cannot."""
    return "ours" if ours.name == "add a rule" else "theirs"
