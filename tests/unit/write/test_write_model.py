"""Random writes of every kind, accepted and refused, against the dictionary model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from omnigraph.errors import OmnigraphError
from omnigraph.write.mutate import MutateOutcome
from omnigraph.write.resolve import Mode
from tests.support import rings
from tests.support.model import Model, Row
from tests.support.writing import Bench, bench

SCHEMA = """
node Person {
  name: String @key
  email: String? @unique
  age: I32? @range(age, 0..9)
  mood: enum(happy, sad)?
  level: I32 @default(1)
}
node Team { code: I64 @key  label: String? }
edge Likes: Person -> Person { weight: I32?  @unique(src, dst) }
edge Leads: Person -> Team @card(1..2)
edge Owns: Person -> Team @card(0..2) { since: I32?  @key(src, dst) }
"""
NAMES, EMAILS, CODES, EDGES = (
    ("a", "b", "c", "d"),
    ("x@", "y@", "z@"),
    (1, 2, 3),
    ("e1", "e2", "e3"),
)


# --- what is written -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Condition:
    """The same condition twice: as text, and as Python over a row, where None is unknown."""

    text: str
    holds: Callable[[Row], bool | None]


@dataclass(frozen=True)
class Statement:
    """The same statement twice."""

    text: str
    apply: Callable[[Model], None]


def compared(name: str, op: str, value: Any) -> Condition:
    tests: dict[str, Callable[[Any], bool]] = {
        "=": lambda v: bool(v == value),
        "!=": lambda v: bool(v != value),
        ">": lambda v: bool(v > value),
        "<=": lambda v: bool(v <= value),
    }
    stored = {"from": "src", "to": "dst"}.get(name, name)

    def holds(row: Row) -> bool | None:
        return None if row[stored] is None else tests[op](row[stored])

    return Condition(f"{name} {op} {literal(value)}", holds)


def either(one: Condition, other: Condition) -> Condition:
    def holds(row: Row) -> bool | None:
        answers = (one.holds(row), other.holds(row))
        return True if True in answers else None if None in answers else False

    return Condition(f"({one.text} or {other.text})", holds)


def negated(one: Condition) -> Condition:
    def holds(row: Row) -> bool | None:
        answer = one.holds(row)
        return None if answer is None else not answer

    return Condition(f"not ({one.text})", holds)


def literal(value: Any) -> str:
    return "null" if value is None else f'"{value}"' if isinstance(value, str) else str(value)


ages, operators = st.integers(-1, 10), st.sampled_from(["=", "!=", ">", "<="])
names, codes = st.sampled_from(NAMES), st.sampled_from(CODES)
emails = st.sampled_from(EMAILS)
OPTIONAL: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "Person": {
        "email": st.none() | emails,
        "age": st.none() | ages,
        "mood": st.none() | st.sampled_from(["happy", "sad"]),
        "level": st.integers(0, 2),
    },
    "Team": {"label": st.none() | names},
    "Likes": {"weight": st.none() | ages},
    "Leads": {},
    "Owns": {"since": st.none() | ages},
}
KEYS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "Person": {"name": names},
    "Team": {"code": codes},
    "Likes": {"src": names, "dst": names},
    "Leads": {"src": names, "dst": codes.map(str)},
    "Owns": {"src": names, "dst": codes.map(str)},
}
CONDITIONS = {
    "Person": st.builds(compared, st.just("name"), st.sampled_from(["=", "!="]), names)
    | st.builds(compared, st.just("age"), operators, ages)
    | st.builds(compared, st.just("email"), st.just("="), emails),
    "Team": st.builds(compared, st.just("code"), operators, codes)
    | st.builds(compared, st.just("label"), st.just("="), names),
    "Likes": st.builds(compared, st.sampled_from(["from", "to"]), st.just("="), names)
    | st.builds(compared, st.just("weight"), operators, ages),
    "Leads": st.builds(compared, st.just("to"), st.just("="), codes.map(str)),
    "Owns": st.builds(compared, st.just("from"), st.just("="), names)
    | st.builds(compared, st.just("since"), operators, ages),
}
types = st.sampled_from(sorted(KEYS))


def conditions(type_name: str) -> st.SearchStrategy[Condition]:
    simple = CONDITIONS[type_name]
    return simple | st.builds(either, simple, simple) | st.builds(negated, simple)


def rows_of(type_name: str, *, ids: bool = False) -> st.SearchStrategy[Row]:
    optional = dict(OPTIONAL[type_name])
    if ids and type_name in ("Likes", "Leads"):
        optional["id"] = st.sampled_from(EDGES)
    return st.fixed_dictionaries(KEYS[type_name], optional=optional)


@st.composite
def inserts(draw: st.DrawFn) -> Statement:
    name = draw(types)
    rows = draw(st.lists(rows_of(name), min_size=1, max_size=2))
    words = {"src": "from", "dst": "to"}
    texts = [", ".join(f"{words.get(k, k)}: {literal(v)}" for k, v in row.items()) for row in rows]
    body = ", ".join(f"{{ {text} }}" for text in texts)
    return Statement(f"insert {name} {body}", lambda model: model.insert(name, rows))


@dataclass(frozen=True)
class Assignment:
    """The new value of a field: a constant, or the old one plus a step."""

    field: str
    value: Any
    added: bool = False

    @property
    def text(self) -> str:
        plus = f"{self.field} + " if self.added else ""
        return f"{self.field}: {plus}{literal(self.value)}"

    def values(self, row: Row) -> Row:
        old = row[self.field]
        if not self.added:
            return {self.field: self.value}
        return {self.field: None if old is None else old + self.value}


NUMBERS = {"Person": "age", "Likes": "weight", "Owns": "since"}


def assignments(type_name: str) -> st.SearchStrategy[Assignment]:
    constants = [
        st.builds(Assignment, st.just(name), values) for name, values in OPTIONAL[type_name].items()
    ]
    number = NUMBERS.get(type_name)
    steps = st.builds(Assignment, st.just(number), st.integers(1, 3), st.just(True))
    return st.one_of(*constants, *([steps] if number is not None else []))


@st.composite
def updates(draw: st.DrawFn) -> Statement:
    name = draw(st.sampled_from([n for n in sorted(OPTIONAL) if OPTIONAL[n]]))
    where, assigned = draw(conditions(name)), draw(assignments(name))
    text = " ".join(["update", name, "set {", assigned.text, "} where", where.text])
    return Statement(text, lambda model: model.update(name, where.holds, assigned.values))


@st.composite
def deletes(draw: st.DrawFn) -> Statement:
    name = draw(types)
    where = draw(conditions(name))
    return Statement(
        f"delete {name} where {where.text}", lambda model: model.delete(name, where.holds)
    )


@st.composite
def loads(draw: st.DrawFn) -> dict[str, list[Row]]:
    chosen = draw(st.lists(types, min_size=1, max_size=3, unique=True))
    return {name: draw(st.lists(rows_of(name, ids=True), max_size=3)) for name in sorted(chosen)}


START: dict[str, list[Row]] = {
    "Person": [{"name": name, "age": i, "level": 1} for i, name in enumerate(NAMES)],
    "Team": [{"code": code} for code in CODES],
    "Likes": [{"id": "e1", "src": "a", "dst": "a"}, {"id": "e2", "src": "a", "dst": "b"}],
    "Owns": [{"src": name, "dst": "1"} for name in NAMES],
}


# --- the machine ---------------------------------------------------------------------------------------------------


class Writes(RuleBasedStateMachine):
    """Every write is made to both; they must agree on whether it is valid, on what it counts and on what is there."""

    graph: Bench
    model: Model

    @initialize()
    def begin(self) -> None:
        self.graph = bench(SCHEMA)
        self.model = Model(self.graph.catalog)
        self.load(Mode.MERGE, START)

    @rule(statements=st.lists(updates() | inserts() | inserts(), min_size=1, max_size=3))
    def construct(self, statements: list[Statement]) -> None:
        self.run(statements)

    @rule(statements=st.lists(deletes(), min_size=1, max_size=2))
    def destroy(self, statements: list[Statement]) -> None:
        self.run(statements)

    @rule(mode=st.sampled_from([Mode.MERGE, Mode.MERGE, Mode.APPEND, Mode.OVERWRITE]), rows=loads())
    def load(self, mode: Mode, rows: dict[str, list[Row]]) -> None:
        after = self.model.begin()
        for name, part in rows.items():
            after.write(name, part, mode.value)
        self.compare(after, lambda: self.graph.put(mode, **rows))

    def run(self, statements: list[Statement]) -> None:
        after = self.model.begin()
        for statement in statements:
            statement.apply(after)
        text = "query m() { " + " ".join(s.text for s in statements) + " }"
        outcome = self.compare(after, lambda: self.graph.mutate(text))
        if outcome is not None:
            assert outcome.value == MutateOutcome(after.nodes, after.edges)
            assert (outcome.commit is None) == (after.nodes + after.edges == 0)

    def compare(self, after: Model, write: Callable[[], Any]) -> Any:
        """Make the write for real; the model says whether it may succeed."""
        expected = after.broken(self.model)
        if expected:
            with pytest.raises(OmnigraphError) as caught:
                write()
            rules = {v["rule"] for v in caught.value.details["violations"]}
            assert rules == expected, caught.value.render()
            return None
        self.model = after
        return write()

    @invariant()
    def the_same_rows_are_there(self) -> None:
        for name, table in self.model.tables.items():
            assert comparable(self.graph.rows(name)) == comparable(list(table.values()))


def comparable(rows: list[Row]) -> list[str]:
    """Rows in a fixed order, without ids that each side makes up for itself."""
    made_up = [len(row["id"]) == 26 or row["id"].startswith("fresh-") for row in rows]
    return sorted(
        repr(sorted((k, v) for k, v in row.items() if not (fresh and k == "id")))
        for row, fresh in zip(rows, made_up, strict=True)
    )


TestWrites = Writes.TestCase
TestWrites.settings = settings(
    max_examples=rings.count(40, 200), stateful_step_count=rings.count(30, 40)
)
