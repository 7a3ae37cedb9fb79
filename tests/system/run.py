"""Programs done to the model and to the real system, step by step, until they disagree."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from unicodedata import normalize

from omnigraph.errors import OmnigraphError
from tests.system import observe, reads
from tests.system.fresh import nursery
from tests.system.generate import Program, Step
from tests.system.model import Answer, Commit, Model, is_same
from tests.system.observe import Shown, shape_of, shown
from tests.system.schema import Impossible, State
from tests.system.values import shows
from tests.system.world import World

OF_ROWS = ("divergent_insert", "divergent_update", "delete_vs_update", "lost_value")
PRUNED = ("commit_pruned", "change_feed_gap")
ALIKE = {"merged", "already_up_to_date", "fast_forward"}


class Disagreement(AssertionError):
    """Model and system do not say the same."""


@dataclass(slots=True)
class Report:
    """How a run went."""

    failure: str | None = None
    failed_at: int | None = None
    kind: str | None = None  # a short form of the failure, the same for the same mistake
    verbs: list[str] = field(default_factory=list)  # what was really done, in order
    features: Counter[str] = field(default_factory=Counter)


def run(program: Program, bug: str | None = None) -> Report:
    """Do a program to both. The first disagreement ends it."""
    return Run(program, bug).all()


class Run:
    """One run of a program."""

    def __init__(self, program: Program, bug: str | None = None) -> None:
        self.program = program
        self.bug = bug
        self.model = Model(program.start)
        self.world = World(program.start, disk=program.disk)
        self.report = Report()

    def all(self) -> Report:
        """Every step, then a last look at everything."""
        number = 0
        try:
            for step in self.program.steps:
                self.step(step)
                number += 1
            self._everything()
        except (Disagreement, AssertionError) as failure:
            self._failed(number, str(failure), type(failure).__name__)
        except Exception as failure:
            self._failed(number, traceback.format_exc(), f"raw {type(failure).__name__}: {failure}")
        finally:
            self.world.close()
        return self.report

    def _failed(self, number: int, text: str, kind: str) -> None:
        self.report.failed_at = number
        self.report.failure = text
        self.report.kind = kind if kind.startswith("raw") else text.split("\n", 1)[0][:80]

    # --- one step ----------------------------------------------------------------------------------------------------

    def step(self, step: Step) -> None:
        if step["verb"] == "look":
            self._look(step)
            return
        saved = self.model.copied()
        try:
            answer = self.model.do(step)
        except Impossible:
            self.model = saved
            return
        arguments = {k: v for k, v in spelled(step).items() if k not in ("verb", "label")}
        try:
            done = getattr(self.world, step["verb"])(saved, **arguments)
        except Impossible:  # a refusal that comes before anybody reads what was asked
            self.model = saved
            return
        except OmnigraphError as error:
            self.report.verbs.append(step["verb"])
            self._refused(step, answer, error, saved)
            return
        self.report.verbs.append(step["verb"])
        self._accepted(step, answer, done, saved)

    def _refused(self, step: Step, answer: Answer, error: OmnigraphError, saved: Model) -> None:
        self.report.features[f"refused {error.code}"] += 1
        if error.code == "commit_pruned" and self._may_be_pruned(step, saved):
            self.model = saved
            return
        if answer.open:
            return
        check(
            str(error.code) == answer.error,
            f"{step['verb']} answered {error.code}, not {answer.error}",
            error,
        )
        if answer.rules:
            rules = {violation["rule"] for violation in error.details["violations"]}
            if (
                "endpoint" in rules & answer.rules
            ):  # who is not there may or may not have too many edges
                rules = rules - {"cardinality"} | answer.rules & {"cardinality"}
            check(
                rules == answer.rules,
                f"{step['verb']} names {sorted(rules)}, not {sorted(answer.rules)}",
                error,
            )

    def _may_be_pruned(self, step: Step, saved: Model) -> bool:
        if step["verb"] == "merge":
            return saved.may_lack_base(step["into"], step["source"])
        named = [step[k] for k in ("commit", "to", "at", "from_") if k in step]
        if step["verb"] in ("reset", "tag", "create_branch"):
            return not all(saved.is_sure(name) for name in named)
        return not all(saved.is_sure_change(saved.point(name)) for name in named)

    def _accepted(self, step: Step, answer: Answer, done: Any, saved: Model) -> None:
        verb = step["verb"]
        check(answer.error is None, f"{verb} succeeded, not {answer.error}", done)
        branch: str = step.get("branch") or step.get("into") or ""
        if answer.open:
            self._leave_open(step, answer, done, branch)
            return
        FACTS.get(verb, _no_facts)(answer, done)
        if "outcome" in answer.facts and not self._outcome(step, answer, done, saved):
            return
        commit = getattr(done, "commit", None)
        if verb == "load" or "outcome" in answer.facts or verb in ("mutate", "block", "schema"):
            check(
                (commit is None) == (answer.commit is None),
                f"{verb}: a commit where none was due, or none",
                done,
            )
        if answer.replayed:
            known = None if answer.commit is None else self.world.commits[answer.commit]
            check(
                done.replayed and (commit and commit.id) == known,
                "a key was not remembered",
                done,
            )
        elif commit is not None:
            self._settle(answer.commit, commit.id, branch)

    def _outcome(self, step: Step, answer: Answer, done: Any, saved: Model) -> bool:
        """Whether a merge came out as it should. One that changes nothing may be a commit or none."""
        wanted, found = answer.facts["outcome"], done.outcome
        self.report.features[f"{step['verb']} {found}"] += 1
        branch = step.get("into") or step["branch"]
        if (wanted != found and {wanted, found} <= ALIKE and answer.merged is not None) or step[
            "verb"
        ] == "reset":
            ours = saved.state(branch)
            after = answer.merged.state if answer.merged is not None else self.model.state(branch)
            if wanted != found and is_same(after, ours):
                self._make_or_unmake(step, answer, done, branch, after)
                return False
        tolerant = answer.merged is not None and answer.merged.may_conflict
        if tolerant and found == "conflict" and wanted != "conflict":
            check({"schema_conflict"} <= {c.kind for c in done.conflicts}, "another conflict", done)
            self.model.undo(step["label"])
            return False
        check(wanted == found, f"{step['verb']} came out as {found}, not {wanted}", done)
        if wanted == "conflict":
            self._conflicts(answer, done)
        return True

    def _conflicts(self, answer: Answer, done: Any) -> None:
        """Conflicts of rows name the row and the field; where there are some, others may be told or not."""
        assert answer.merged is not None
        kinds, wanted_kinds = {conflict.kind for conflict in done.conflicts}, answer.merged.kinds
        if "schema_conflict" in wanted_kinds:
            check("schema_conflict" in kinds, "no conflict of the schemas", done)
            return
        real = self.world.real
        wanted = {
            (k, t, real(i or ""), f) for k, t, i, f in answer.merged.conflicts if k in OF_ROWS
        }
        found = {(c.kind, c.type, c.id, c.field) for c in done.conflicts if c.kind in OF_ROWS}
        check(found == wanted, "conflicts name other rows", found, wanted)
        if not wanted and not answer.merged.may_conflict:
            check(
                kinds == wanted_kinds,
                f"conflicts by {sorted(kinds)}, not {sorted(wanted_kinds)}",
                done,
            )

    def _make_or_unmake(
        self, step: Step, answer: Answer, done: Any, branch: str, state: State
    ) -> None:
        if done.commit is None:
            self.model.undo(step["label"])
            return
        if answer.commit is None and not step.get("dry"):
            others = (self.model.head(step["source"]).label,) if step["verb"] == "merge" else ()
            self.model.adopt(step["label"], branch, state, step["verb"], *others)
        self.world.commits[step["label"]] = done.commit.id

    def _leave_open(self, step: Step, answer: Answer, done: Any, branch: str) -> None:
        """Decisions met a broken rule: whatever comes out has to be a valid state of the merged schema."""
        self.report.features["decided against a rule"] += 1
        if done.commit is None:
            return
        assert answer.merged is not None
        state = answer.merged.state
        found = observe.by_query(self.world.graph, branch, shape_of(state))
        adopted = reads.state_from(state, found, self.world.ids)
        check(not reads.broken_rules(adopted), "a merge broke a rule", done)
        others = (self.model.head(step["source"]).label,) if step["verb"] == "merge" else ()
        self.model.adopt(step["label"], branch, adopted, step["verb"], *others)
        self.world.commits[step["label"]] = done.commit.id

    def _settle(self, label: str | None, id: str, branch: str) -> None:
        """Remember what the commit is called, and look at what it shows."""
        assert label is not None
        self.world.commits[label] = id
        state = self.model.commits[label].state
        found = observe.by_query(self.world.graph, branch, shape_of(state))
        self.world.learn(state, found)
        self._compare(state, found, "a branch after the step")

    # --- looking -----------------------------------------------------------------------------------------------------

    def _look(self, step: Step) -> None:
        try:
            point = self.model.point(step["at"])
        except Impossible:
            return
        self.report.verbs.append(f"look {step['read']}")
        try:
            getattr(reads, step["read"])(self, step, point)
        except Impossible:
            return
        except OmnigraphError as error:
            pruned = error.code in PRUNED and self._reads_pruned(step)
            check(pruned, f"look {step['read']} answered {error.code}", error)

    def _reads_pruned(self, step: Step) -> bool:
        names = [step["at"], *([step["to"]] if "to" in step else [])]
        if step["read"] in ("changes", "history", "log"):
            line = (commit for name in names for commit in self.model.line(name))
            return not all(map(self.model.is_sure_change, line))
        return not all(self.model.is_sure(name) for name in names)

    def _compare(self, state: State, found: Shown, what: str) -> None:
        compare(shown(state, self.world.real), found, what)

    def _everything(self) -> None:
        """At the end: every branch and tag in every way, and a new process for all of them."""
        points = [*self.model.heads, *self.model.tags]
        for at in points:
            state = self.model.point(at).state
            found = observe.by_tables(self.world.graph, at, shape_of(state))
            self._compare(state, found, f"the tables of {at}")
            reads.check_schema(self, at, state)
        check(
            self.world.graph.branches() == sorted(self.model.heads, key=lambda b: (b != "main", b)),
            "other branches",
        )
        check(self.world.graph.tags().keys() == self.model.tags.keys(), "other tags")
        if self.program.disk:
            self.fresh([(at, self.model.point(at)) for at in points])

    def fresh(self, points: list[tuple[str, Commit]]) -> None:
        """What a process that just started sees."""
        questions = [
            ("query", self.world.point(self.model, at), shape_of(c.state)) for at, c in points
        ]
        answers = nursery().ask(self.world.uri, questions, self.bug)
        for (at, commit), (kind, found) in zip(points, answers, strict=True):
            if (kind, found) == ("refused", "commit_pruned") and not self.model.is_sure(at):
                continue
            check(kind == "shown", f"a new process: {kind} at {at}", found)
            self._compare(commit.state, found, f"a new process at {at}")


NAMES = ("branch", "into", "source", "name", "from_")


def spelled(step: Step) -> Step:
    """A step with its names in the form it asks for; what they name is the same."""
    if not step.get("decomposed"):
        return step
    return {k: normalize("NFD", v) if k in NAMES else v for k, v in step.items()}


def check(holds: bool, what: str, *more: Any) -> None:
    if not holds:
        raise Disagreement("\n".join([what, *map(str, more)]))


def compare(wanted: Shown, found: Shown, what: str) -> None:
    """Both have the same types, ids and cells."""
    if wanted.keys() != found.keys():
        raise Disagreement(f"{what}: types {sorted(found)}, not {sorted(wanted)}")
    for name, rows in wanted.items():
        if rows.keys() != found[name].keys():
            more, less = found[name].keys() - rows.keys(), rows.keys() - found[name].keys()
            raise Disagreement(
                f"{what}: rows of {name}\ntoo many {sorted(more)}, missing {sorted(less)}"
            )
        for id, row in rows.items():
            _compare_row(row, found[name][id], f"{what}: cells of {name}", id)


def _compare_row(row: Mapping[str, Any], found: Mapping[str, Any], what: str, id: str) -> None:
    if row.keys() != found.keys():
        raise Disagreement(f"{what}\n{id!r} has {sorted(found)}, not {sorted(row)}")
    for name, value in row.items():
        if not shows(found[name], value):
            raise Disagreement(f"{what}\n{id!r} has {name} = {found[name]!r}, not {value!r}")


# --- facts of answers --------------------------------------------------------------------------------------------


def _no_facts(answer: Answer, done: Any) -> None:
    pass


def _counts(answer: Answer, done: Any) -> None:
    counts = {name: n for name, n in {**done.nodes, **done.edges}.items() if n}
    check(counts == answer.facts["counts"], f"load counts {counts}, not {answer.facts['counts']}")


def _affected(answer: Answer, done: Any) -> None:
    found = done.affected_nodes, done.affected_edges
    check(
        found == answer.facts["affected"],
        f"mutate affected {found}, not {answer.facts['affected']}",
    )


def _applied(answer: Answer, done: Any) -> None:
    check(done.applied == answer.facts["applied"], f"schema applied is {done.applied}")


FACTS: dict[str, Callable[[Answer, Any], None]] = {
    "load": _counts,
    "mutate": _affected,
    "schema": _applied,
}
