"""Running one scenario of the TCK on a graph whose schema is made for it."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.errors import OmnigraphError
from omnigraph.lang.cypher import ast, parse_cypher, writes
from omnigraph.lang.diagnostics import LanguageError
from tests.tck.gherkin import Scenario, Step
from tests.tck.schemas import NotTyped, Typed, typed
from tests.tck.values import Actual, Expected, expected

numbers = itertools.count()
PASSED = "passed"
# Codes of what a typed graph cannot mean, and the reason they stand for.
UNTYPED = {
    "C002": "labels, types or properties nobody declared",
    "C003": "labels, types or properties nobody declared",
    "C004": "labels that change, or several unrelated ones",
    "C005": "labels, types or properties nobody declared",
    "C006": "values of several types in one place",
}
TEMPORAL = ("Temporal", "duration", "localtime", "localdatetime", "time(")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a scenario ended: passed, or the reason, and what was seen."""

    reason: str
    seen: str = ""

    @property
    def passed(self) -> bool:
        return self.reason == PASSED


class Failed(Exception):
    """The scenario runs, and its result is another one."""


def run(scenario: Scenario, graphs: Path) -> Outcome:
    """Run a scenario."""
    try:
        _Run(scenario, graphs).run()
    except NotTyped as reason:
        return Outcome(str(reason))
    except Failed as failure:
        return Outcome(_reason_of_text(scenario, "another result"), str(failure))
    except OmnigraphError as error:
        return Outcome(_reason(scenario, error), str(error)[:200])
    except Exception as error:
        return Outcome("crashed", f"{type(error).__name__}: {error}"[:200])
    return Outcome(PASSED)


def _reason(scenario: Scenario, error: OmnigraphError) -> str:
    return UNTYPED.get(error.code) or _reason_of_text(scenario, f"refused ({error.code})")


def _reason_of_text(scenario: Scenario, otherwise: str) -> str:
    text = " ".join(step.text for step in scenario.steps).lower()
    if scenario.feature.startswith("Temporal") or any(w in text for w in TEMPORAL[1:]):
        return "needs durations, local times or time zones"
    if any("there exists a procedure" in step.words for step in scenario.steps):
        return "needs a procedure of another product"
    return otherwise


class _Run:
    def __init__(self, scenario: Scenario, graphs: Path) -> None:
        self.scenario, self.graphs = scenario, graphs

    def run(self) -> None:
        setups: list[str] = []
        params: dict[str, Any] = {}
        queries: list[Step] = []
        checks: list[Step] = []
        for step in self.scenario.steps:
            words = step.words
            if words.startswith("having executed"):
                setups.append(step.text)
            elif words.startswith("parameters are"):
                params = {name: _plain(Expected(text).value()) for name, text in step.table}
            elif words.startswith(("executing query", "executing control query")):
                queries.append(step)
                checks.append(Step(""))
            elif words.startswith("the ") and words.endswith(" graph"):
                name = words.split()[1]
                setups.append((self.graphs / name / f"{name}.cypher").read_text("utf-8"))
            elif words.startswith("there exists a procedure"):
                raise NotTyped("needs a procedure of another product")
            elif (
                words.startswith(("the result should", "a ", "an "))
                and checks
                and "raised" in words
                or words.startswith("the result should")
            ):
                checks[-1] = step
        try:
            trees = [parse_cypher(text) for text in setups]
            asked = [parse_cypher(step.text) for step in queries]
        except LanguageError as error:
            if _raises(checks[-1]) and error.code != "C001":
                return
            raise
        schema = typed([*((tree, True) for tree in trees), *((tree, True) for tree in asked)])
        uri = f"memory://tck-{next(numbers)}"
        graph = _made(uri, schema)
        for text, tree in zip(setups, trees, strict=True):
            _set_up(graph, schema, text, tree)
        for step, tree, check in zip(queries, asked, checks, strict=True):
            _ask(graph, schema, step.text, tree, params, check)


def _made(uri: str, schema: Typed) -> Any:
    try:
        return omnigraph.init(uri, schema=schema.text)
    except LanguageError as error:
        raise NotTyped("a name the schema language does not allow") from error


def _raises(check: Step) -> bool:
    return "should be raised" in check.words


def _plain(value: Any) -> Any:
    match value:
        case ("list", items):
            return [_plain(item) for item in items]
        case ("map", items):
            return {name: _plain(item) for name, item in items}
        case _:
            return value


def _set_up(graph: Any, schema: Typed, text: str, tree: ast.Query) -> None:
    graph.mutate(text, language="cypher")


def _ask(
    graph: Any,
    schema: Typed,
    text: str,
    tree: ast.Query,
    params: dict[str, Any],
    check: Step,
) -> None:
    writing = writes(tree)
    try:
        if writing:
            graph.mutate(text, params, language="cypher")
            result = None
        else:
            result = graph.query(text, params, language="cypher")
    except OmnigraphError as error:
        if _raises(check) and error.code not in ("C015", "C001"):
            return
        raise
    if _raises(check):
        raise Failed(f"no error was raised: {check.words}")
    if result is not None and check.words.startswith("the result should"):
        compare(result, check, _actual(graph, schema))


def _actual(graph: Any, schema: Typed) -> Actual:
    catalog = graph.snapshot().catalog
    nodes: dict[str, Any] = {}
    edges: dict[str, Any] = {}
    for name in catalog.nodes:
        found = graph.query(f"match {{ $n: {name} }} return {{ $n }}")
        nodes |= {row["n"]["id"]: row["n"] for row in found}
    found = graph.query("MATCH ()-[r]->() RETURN r", language="cypher") if catalog.edges else ()
    edges |= {row["r"]["id"]: row["r"] for row in found}
    return Actual(schema.labels, schema.rels, nodes, edges)


def compare(result: Any, check: Step, actual: Actual) -> None:
    """Whether the rows are those of the expected table."""
    if check.words.startswith("the result should be empty"):
        if len(result):
            raise Failed(f"{len(result)} rows instead of none")
        return
    header, *rows = check.table
    if sorted(result.columns) != sorted(header):
        raise Failed(f"columns {result.columns} instead of {header}")
    places = [result.columns.index(name) for name in header]
    loose = "ignoring element order" in check.words
    wanted = [tuple(_loose(expected(cell), loose) for cell in row) for row in rows]
    kinds = result.types
    found = []
    for row in result:
        values = [row[name] for name in result.columns]
        found.append(tuple(_loose(actual.value(values[p], kinds[p]), loose) for p in places))
    if "in order" in check.words and found != wanted:
        raise Failed(f"{found[:4]} instead of {wanted[:4]}")
    if Counter(found) != Counter(wanted):
        raise Failed(f"{found[:4]} instead of {wanted[:4]}")


def _loose(value: Any, loose: bool) -> Any:
    if loose and isinstance(value, tuple) and value[:1] == ("list",):
        return ("list", tuple(sorted(value[1], key=repr)))
    return value
