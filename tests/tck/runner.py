"""Running one scenario of the TCK on a graph whose schema is made for it."""

from __future__ import annotations

import itertools
import re
import zoneinfo
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.errors import OmnigraphError
from omnigraph.lang.cypher import ast, parse_cypher, writes
from omnigraph.lang.diagnostics import LanguageError
from tests.tck.gherkin import Scenario, Step
from tests.tck.schemas import NotTyped, Typed, typed, walk
from tests.tck.values import Actual, Expected, expected

numbers = itertools.count()
PASSED = "passed"
# Codes of what a typed graph cannot mean, and the reason they stand for.
WRITE_RETURNS = "reads or returns rows after it wrote"
REASONS = {
    "C001": "not part of the language here",
    "C008": "deletes or follows paths and lists of relationships",
    "C009": "asks for a key that is computed",
    "C015": "a pattern or subquery where none can be planned yet",
    "C018": "reads what it deleted",
    "P5": "nested deeper than the bound of 32 levels",
    "validation_failed": "labels, types or properties that the schema lacks",
}
UNTYPED = {
    "C002": "labels, types or properties that the schema lacks",
    "C003": "labels, types or properties that the schema lacks",
    "C004": "labels that change, or several unrelated ones",
    "C005": "labels, types or properties that the schema lacks",
    "C006": "values of several types in one place",
    "C017": "labels, types or properties that the schema lacks",
}
NOT_STORED = "stores a local time, a duration or a time zone, which no property type holds"


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


@contextmanager
def pinned_zones() -> Iterator[None]:
    """Zones as the package tzdata has them: what systems know of the years before 1970 differs."""
    zoneinfo.reset_tzpath(())
    zoneinfo.ZoneInfo.clear_cache()
    try:
        yield
    finally:
        zoneinfo.reset_tzpath()
        zoneinfo.ZoneInfo.clear_cache()


def run(scenario: Scenario, graphs: Path) -> Outcome:
    """Run a scenario."""
    try:
        with pinned_zones():
            _Run(renamed(scenario), graphs).run()
    except NotTyped as reason:
        return Outcome(str(reason))
    except Failed as failure:
        return Outcome(_reason_of_text(scenario, "another answer"), str(failure))
    except OmnigraphError as error:
        return Outcome(_reason(scenario, error), str(error)[:200])
    except SetupRefused as refused:
        return Outcome(_reason_of_text(scenario, WRITE_RETURNS), str(refused)[:200])
    except Exception as error:
        return Outcome("crashed", f"{type(error).__name__}: {error}"[:200])
    return Outcome(PASSED)


def renamed(scenario: Scenario) -> Scenario:
    """With another name for a property called `id`: here that is the name of the id itself."""

    def other(text: str) -> str:
        text = re.sub(r"\.id\b(?!\s*\()", ".own_id", text)
        return re.sub(r"([{,]\s*)id(\s*:)", r"\1own_id\2", text)

    steps = tuple(
        Step(s.words, other(s.text), tuple(tuple(map(other, row)) for row in s.table))
        for s in scenario.steps
    )
    return replace(scenario, steps=steps)


def _reason(scenario: Scenario, error: OmnigraphError) -> str:
    reason = UNTYPED.get(error.code) or REASONS.get(error.code)
    return _reason_of_text(scenario, reason or f"refused ({error.code})")


def _reason_of_text(scenario: Scenario, otherwise: str) -> str:
    text = " ".join(step.text for step in scenario.steps).lower()
    if any(word in text for word in ("localtime(", "localdatetime(", "duration", "time(")):
        return NOT_STORED if "create (" in text else "has a date outside the years 1 to 9999"
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
        effects: dict[int, dict[str, str]] = {}
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
            elif words.startswith("the result should") or "should be raised" in words:
                checks[-1] = step
            elif "side effects" in words and checks:
                effects[len(checks) - 1] = dict(step.table)  # type: ignore[arg-type]
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
        for i, (step, tree, check) in enumerate(zip(queries, asked, checks, strict=True)):
            before = _state(graph, schema) if writes(tree) else None
            _ask(graph, schema, step.text, tree, params, check)
            if before is not None and not _raises(check):
                _check_effects(before, _state(graph, schema), effects.get(i, {}))


State = dict[str, frozenset[Any]]


def _state(graph: Any, schema: Typed) -> State:
    """What the TCK counts: nodes, relationships, labels in use and the values of properties."""
    found = _actual(graph, schema)
    whole = {**found.nodes, **{f"-{k}": v for k, v in found.edges.items()}}
    own = ("id", "type", "from", "to")
    values = {
        (key, name, repr(value))
        for key, entity in whole.items()
        for name, value in entity.items()
        if name not in own and value is not None
    }
    labels = {label for n in found.nodes.values() for label in schema.labels[n["type"]]}
    return {
        "nodes": frozenset(found.nodes),
        "relationships": frozenset(found.edges),
        "labels": frozenset(labels),
        "properties": frozenset(values),
    }


def _check_effects(before: State, after: State, wanted: dict[str, str]) -> None:
    seen = {}
    for what in before:
        for sign, count in (
            ("+", len(after[what] - before[what])),
            ("-", len(before[what] - after[what])),
        ):
            if count:
                seen[sign + what] = str(count)
    if seen != wanted:
        raise Failed(f"side effects {seen} instead of {wanted}")


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
    try:
        graph.mutate(adapted(text, tree, schema), language="cypher")
    except OmnigraphError as error:
        if error.code in UNTYPED:
            raise
        raise SetupRefused(f"{error.code}: {error}") from error


class SetupRefused(Exception):
    """What a scenario starts from could not be made."""


def adapted(text: str, tree: ast.Query, schema: Typed) -> str:
    """The text with the node type of the schema where a node is created: a type stands for its set of labels."""
    edits: list[tuple[int, int, str]] = []
    for part in tree.parts:
        known: dict[str, frozenset[str]] = {}
        for clause in part.clauses:
            if isinstance(clause, ast.With | ast.Return):
                known |= {i.name: frozenset() for i in clause.projection.items}
            patterns = [n for n in walk(clause) if isinstance(n, ast.PathPattern)]
            for pattern in patterns:
                for node in pattern.nodes:
                    is_new = node.var is None or node.var not in known
                    if node.var is not None:
                        known.setdefault(node.var, frozenset(node.labels))
                    if isinstance(clause, ast.Merge) and is_new and not node.labels:
                        raise NotTyped("labels that change, or several unrelated ones")
                    if isinstance(clause, ast.Create | ast.Merge) and is_new:
                        edits.append(_edit(text, node, schema, isinstance(clause, ast.Create)))
    for start, end, label in sorted(edits, reverse=True):
        text = text[:start] + label + text[end:]
    return text


def _edit(text: str, node: ast.NodePattern, schema: Typed, made: bool) -> tuple[int, int, str]:
    name = schema.of_set.get(frozenset(node.labels))
    if name is None:
        raise NotTyped("labels that change, or several unrelated ones")
    found = re.compile(r"\(\s*(?:\w+|`[^`]*`)?").match(text, node.at.start)
    assert found is not None
    start = found.end()
    labels = re.compile(r"(?:\s*:\s*(?:\w+|`[^`]*`))*").match(text, start)
    assert labels is not None
    return start, labels.end(), f":{name}"


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
            done = graph.mutate(adapted(text, tree, schema), params, language="cypher")
            result = done.result
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
    elif check.words.startswith("the result should") and not _expects_nothing(check):
        raise Failed("no rows were returned")


def _expects_nothing(check: Step) -> bool:
    return check.words.startswith("the result should be empty")


def _actual(graph: Any, schema: Typed) -> Actual:
    catalog = graph.snapshot().catalog
    nodes: dict[str, Any] = {}
    edges: dict[str, Any] = {}
    found = graph.query("MATCH (n) RETURN n", language="cypher")
    nodes |= {row["n"]["id"]: row["n"] for row in found}
    found = graph.query("MATCH ()-[r]->() RETURN r", language="cypher") if catalog.edges else ()
    edges |= {row["r"]["id"]: row["r"] for row in found}
    return Actual(schema.labels, schema.rels, nodes, edges)


def compare(result: Any, check: Step, actual: Actual) -> None:
    """Whether the rows are those of the expected table."""
    if _expects_nothing(check):
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
