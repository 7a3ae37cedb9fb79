"""Checks run on one pinned state, or on two that are compared.

Each check is one query: its answer, or what differs between its answers in both states, is measured and held against
the bound the check names. A check that cannot be run, because its query does not fit the schema any more, has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import pyarrow as pa

from omnigraph.core.check_results import StoredResult, StoredRun
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import Kind, OmnigraphError
from omnigraph.lang.checks import ERROR, LOST_ROWS, NEW_ROWS, ROWS, VALUE, GraphCheck
from omnigraph.model.frozen import frozen
from omnigraph.values.spelling import fields_json, to_json

ROWS_SHOWN_MAX = 20  # of a check that failed

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


class ChecksFailed(OmnigraphError):
    """The graph would not pass its checks.

    Nothing was published. The details name the checks that failed, what they measured and within which bounds it must
    lie; `omnigraph check` shows the rows they are about.
    """

    code, kind = "checks_failed", Kind.INVALID
    default_help = (
        "Fix what the checks name, or change the checks: `omnigraph check` shows the rows."
    )


class Answered(Protocol):
    """The rows of a query in a state, at least the first ones if a number suffices, and their count."""

    def __call__(
        self, state: Snapshot, text: str, first: int | None = None, /
    ) -> tuple[pa.Table, int]: ...


@frozen
class Asking:
    """How checks get their answers."""

    answer: Answered  # of a query in a state
    same: Callable[[Snapshot, Snapshot, str], bool]  # whether it reads the same tables in both


@frozen
class CheckResult:
    """How one check ended. `rows` are the first of those it is about; `error` is why it could not be run."""

    name: str
    outcome: str  # passed, failed or skipped
    severity: str
    message: str
    measure: str
    bound: str
    measured: float | None = None
    rows: tuple[Mapping[str, Any], ...] = ()
    error: str | None = None

    @property
    def is_broken(self) -> bool:
        """Whether it is an error that it failed."""
        return self.outcome == FAILED and self.severity == ERROR

    def to_json(self) -> dict[str, Any]:
        """The shape every surface uses."""
        return fields_json(self)

    def __str__(self) -> str:
        if self.outcome == PASSED:
            return f"{self.name}: passed"
        if self.outcome == SKIPPED:
            return f"{self.name}: skipped, nothing to compare with"
        found = self.error or f"{self.measure} is {self.measured:g}, must be within {self.bound}"
        return f"{self.name}: {self.message} ({found})"


@frozen
class CheckReport:
    """The results of a graph's checks in a state, compared with one before it."""

    commit: str
    before: str | None
    results: tuple[CheckResult, ...] = ()
    time: int = 0  # when it was stored, in microseconds; None if it was not
    actor: str | None = None

    @property
    def passed(self) -> bool:
        """Whether no error-level check failed."""
        return not self.broken

    @property
    def broken(self) -> tuple[CheckResult, ...]:
        """The errors."""
        return tuple(result for result in self.results if result.is_broken)

    def summary(self) -> dict[str, str]:
        """By check how it ended: what a commit keeps of it."""
        return {result.name: result.outcome for result in self.results}

    def raise_broken(self) -> None:
        """Raise unless it passed; the error leaves out the rows."""
        if self.passed:
            return
        names = ", ".join(result.name for result in self.broken)
        reported = ("name", "message", "measure", "bound", "measured", "error")
        failed = [{name: getattr(result, name) for name in reported} for result in self.broken]
        raise ChecksFailed(f"checks failed: {names}", details={"checks": failed})

    def to_json(self) -> dict[str, Any]:
        """The shape every surface uses."""
        return {
            "commit": self.commit,
            "before": self.before,
            "passed": self.passed,
            "results": [result.to_json() for result in self.results],
            "time": self.time,
            "actor": self.actor,
        }

    def __str__(self) -> str:
        return "\n".join(map(str, self.results)) or "there are no checks"


def run_checks(
    checks: Sequence[GraphCheck], before: Snapshot | None, after: Snapshot, ask: Asking
) -> CheckReport:
    """Run checks on a state; those that compare, on the one before it, too."""
    results = tuple(_result(check, before, after, ask) for check in checks)
    return CheckReport(after.commit_id, None if before is None else before.commit_id, results)


def _result(
    check: GraphCheck, before: Snapshot | None, after: Snapshot, ask: Asking
) -> CheckResult:
    named = (check.severity, check.message, check.measure, str(check.bound))
    if check.compares and before is None:
        return CheckResult(check.name, SKIPPED, *named)
    try:
        measured, rows = _measured(check, before, after, ask)
    except OmnigraphError as error:
        if error.kind not in (Kind.INVALID, Kind.NOT_FOUND):
            raise
        return CheckResult(check.name, FAILED, *named, error=f"{error.code}: {error.message}")
    if measured is None:
        return CheckResult(check.name, SKIPPED, *named)
    if check.bound.holds(measured):
        return CheckResult(check.name, PASSED, *named, measured=measured)
    shown = tuple(to_json(row) for row in rows.slice(0, ROWS_SHOWN_MAX).to_pylist())
    return CheckResult(check.name, FAILED, *named, measured=measured, rows=shown)


def _measured(
    check: GraphCheck, before: Snapshot | None, after: Snapshot, ask: Asking
) -> tuple[float | None, pa.Table]:
    """What a check measures, and the rows it is about; None for a share of nothing."""
    if check.measure == ROWS:
        found, rows = ask.answer(after, check.text, ROWS_SHOWN_MAX)
        return float(rows), found
    if before is None:
        raise AssertionError("a comparison has two states")
    same = ask.same(before, after, check.text)
    if same and check.measure in (NEW_ROWS, LOST_ROWS):
        return 0.0, pa.table({})  # without a look at the rows
    now, _ = ask.answer(after, check.text)
    was = now if same else _answer_before(check, before, ask)
    match check.measure:
        case str(name) if name == NEW_ROWS:
            return _counted(now if was is None else without(now, was))
        case str(name) if name == LOST_ROWS:
            if was is None:
                return 0.0, now.slice(0, 0)
            lost = without(was, now)
            if not check.bound.percent:
                return _counted(lost)
            return (100.0 * lost.num_rows / was.num_rows if was.num_rows else 0.0), lost
        case str(name) if name == VALUE:
            return _change(check, was, now), now
    raise AssertionError(f"a check measures {check.measure}")


def _answer_before(check: GraphCheck, before: Snapshot, ask: Asking) -> pa.Table | None:
    """Its answer in the state before; None if the schema there lacked what it reads."""
    try:
        return ask.answer(before, check.text)[0]
    except OmnigraphError as error:
        if error.kind not in (Kind.INVALID, Kind.NOT_FOUND):
            raise
        return None


def _counted(rows: pa.Table) -> tuple[float, pa.Table]:
    return float(rows.num_rows), rows


def _change(check: GraphCheck, was: pa.Table | None, now: pa.Table) -> float | None:
    old, new = (None if table is None else _number(check, table) for table in (was, now))
    if new is None:
        raise OmnigraphError(f"the check {check.name} returned nothing to compare")
    if old is None or (check.bound.percent and old == 0):
        return None
    return 100.0 * (new - old) / abs(old) if check.bound.percent else new - old


def _number(check: GraphCheck, table: pa.Table) -> float | None:
    numeric = table.num_columns == 1 and (
        pa.types.is_integer(table.column(0).type) or pa.types.is_floating(table.column(0).type)
    )
    if table.num_rows != 1 or not numeric:
        raise ValueNotOne(f"check `{check.name}` must return one number, for @value")
    found = table.column(0)[0].as_py()
    return None if found is None else float(found)


class ValueNotOne(OmnigraphError):
    """A check of @value did not return exactly one number."""

    code, kind = "check_value", Kind.INVALID
    default_help = "Return one aggregate, such as `return { count($p) as n }`."


def without(rows: pa.Table, others: pa.Table) -> pa.Table:
    """The rows of one table minus those of another, counting repetitions."""
    import duckdb

    if not others.num_rows or not rows.num_rows:
        return rows
    names = [f"c{place}" for place in range(rows.num_columns)]
    left, right = rows.rename_columns(names), others.rename_columns(names)
    with duckdb.connect() as connection:
        connection.register("l", left)
        connection.register("r", right)
        found = connection.sql("from l except all from r").to_arrow_table()
    return found.rename_columns(rows.column_names)


# --- demanded and kept -------------------------------------------------------------------------------------------


def demanded(checks: Sequence[GraphCheck], names: Sequence[str]) -> list[GraphCheck]:
    """The checks of some names, each of which must pass whatever its severity; an error if one does not exist."""
    known = {check.name for check in checks}
    missing = sorted(set(names) - known)
    if missing:
        raise ChecksFailed(
            f"a policy requires checks that the graph does not have: {', '.join(missing)}",
            details={"checks": [{"name": name} for name in missing]},
        )
    return [replace(check, severity=ERROR) for check in checks if check.name in names]


def stored_run(repo: Repository, report: CheckReport, actor: str | None) -> StoredRun:
    """The stored form of a report."""
    kept = tuple(
        StoredResult(
            r.name, r.outcome, r.severity, r.message, r.measure, r.bound, r.measured, r.error
        )
        for r in report.results
    )
    clock = repo.clock
    return StoredRun(clock.fresh_id(), report.commit, report.before, clock.now(), actor, kept)


def report_of(run: StoredRun) -> CheckReport:
    """A report from its stored form."""
    results = (
        CheckResult(
            r.name, r.outcome, r.severity, r.message, r.measure, r.bound, r.measured, (), r.error
        )
        for r in run.results
    )
    return CheckReport(run.commit, run.before, tuple(results), run.time, run.actor)
