"""Queries made to cost more than they are worth: each ends in a bounded number of steps, with rows or a coded error.

Work is counted in calls of Python functions, which do not depend on the machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import OmnigraphError
from omnigraph.lang.query import lint_queries
from omnigraph.lang.query.calls import function_names
from omnigraph.lang.query.search import TEXT_SEARCHES
from tests.support.rings import count
from tests.support.snapshots import catalog_from

SCHEMA = """
node Person { name: String @key  age: I32?  big: I64?  size: U64?  score: F64?  light: F32?  note: String?
              active: Bool?  born: Date?  seen: DateTime?  tags: [String]? }
edge Knows: Person -> Person { since: I32? }
edge Likes: Person -> Person
"""
CATALOG = catalog_from(SCHEMA)
PEOPLE = 12
LISTED = count(15_000, 150_000)  # members of lists, and what else is long
CALLS_MAX = 5_000_000  # of Python functions, for one bomb
CALLS_OF_A_CHARACTER = 20  # a long text may cost its length


@pytest.fixture(scope="module")
def graph() -> Graph:
    made = omnigraph.init("memory://query-bombs", schema=SCHEMA)
    people = [
        {
            "name": f"p{i}",
            "age": i,
            "big": i,
            "size": i,
            "score": i / 2,
            "note": "ab",
            "tags": ["x"],
        }
        for i in range(PEOPLE)
    ]
    knows = [{"from": f"p{i}", "to": f"p{(i * 5 + 1) % PEOPLE}"} for i in range(PEOPLE)]
    made.load({"Person": people, "Knows": knows, "Likes": knows})
    return made


class TooMuch(BaseException):
    """The bomb went off. No handler of the product catches it."""


@contextmanager
def counted(calls_max: int) -> Iterator[None]:
    left = calls_max

    def note(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal left
        if event == "call":
            left -= 1
            if left < 0:
                sys.setprofile(None)
                raise TooMuch(f"more than {calls_max:,} calls")

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)


def outcome(graph: Graph, text: str, params: dict[str, Any] | None = None) -> str:
    """`rows`, or the code of the error; anything else that is raised fails the test."""
    with counted(CALLS_MAX + CALLS_OF_A_CHARACTER * len(text)):
        try:
            return "rows" if len(graph.query(text, params).rows) >= 0 else ""
        except OmnigraphError as error:
            return error.code


def match(*clauses: str, returned: str = "$p.name as name") -> str:
    return f"match {{ $p: Person {' '.join(clauses)} }} return {{ {returned} }}"


def chain(first: str, step: Callable[[str], str], length: int) -> str:
    """Columns each of which is made from the one before."""
    columns = [f"{first} as c0"]
    columns += [f"{step(f'c{i}')} as c{i + 1}" for i in range(length)]
    return ", ".join(columns)


def nest(inner: str, wrap: Callable[[str], str], depth: int) -> str:
    for _ in range(depth):
        inner = wrap(inner)
    return inner


# --- names of columns ------------------------------------------------------------------------------------------------

DOUBLING: dict[str, tuple[str, Callable[[str], str]]] = {
    "+": ("$p.age", lambda c: f"{c} + {c}"),
    "-": ("$p.age", lambda c: f"{c} - {c}"),
    "*": ("$p.score", lambda c: f"{c} * {c}"),
    "/": ("$p.score", lambda c: f"{c} / {c}"),
    "%": ("$p.age", lambda c: f"{c} % {c}"),
    "negative": ("$p.age", lambda c: f"-{c}"),
    "=": ("$p.active", lambda c: f"({c} = {c})"),
    "<": ("$p.active", lambda c: f"({c} < {c})"),
    "and": ("$p.active", lambda c: f"({c} and {c})"),
    "or": ("$p.active", lambda c: f"({c} or {c})"),
    "not": ("$p.active", lambda c: f"(not {c})"),
    "is null": ("$p.active", lambda c: f"({c} is null)"),
    "in": ("$p.tags", lambda c: f'("x" in {c})' if c == "c0" else f"({c} = {c})"),
    "contains": ("$p.note", lambda c: f"({c} contains {c})" if c == "c0" else f"({c} or {c})"),
    "cast": ("$p.age", lambda c: f"cast(cast({c} as String) as I64)"),
    "lower": ("$p.note", lambda c: f"lower({c})"),
    "upper": ("$p.note", lambda c: f"upper({c})"),
    "trim": ("$p.note", lambda c: f"trim({c})"),
    "length": ("$p.note", lambda c: f"length(concat(cast({c} as String), cast({c} as String)))"),
    "concat": ("$p.note", lambda c: f"concat({c}, {c})"),
    "substring": ("$p.note", lambda c: f"substring({c}, length({c}), length({c}))"),
    "regex_match": ("$p.note", lambda c: f'cast(regex_match({c}, "a") as String)'),
    "coalesce": ("$p.age", lambda c: f"coalesce({c}, {c}, {c})"),
    "year": ("$p.born", lambda c: f"date_add({c}, year({c}))"),
    "month": ("$p.born", lambda c: f"date_add({c}, month({c}))"),
    "day": ("$p.born", lambda c: f"date_add({c}, day({c}))"),
    "hour": ("$p.seen", lambda c: f"date_add({c}, hour({c}))"),
    "minute": ("$p.seen", lambda c: f"date_add({c}, minute({c}))"),
    "second": ("$p.seen", lambda c: f"date_add({c}, second({c}))"),
    "date_add": ("$p.born", lambda c: f"date_add({c}, 1)"),
    "date_sub": ("$p.born", lambda c: f"date_sub({c}, days_between({c}, {c}))"),
    "days_between": ("$p.born", lambda c: f"date_add({c}, days_between({c}, {c}))"),
}
NOT_OF_ONE_VALUE = {"now", "type", "entity", "nodes", "edges"}  # these take no column
SEARCHES = {*TEXT_SEARCHES, "highlight", "nearest", "bm25", "rrf"}
AGGREGATES = {"count", "sum", "avg", "min", "max", "collect"}


def test_every_function_has_a_chain() -> None:
    """A function added to the language is added here."""
    assert set(function_names()) - NOT_OF_ONE_VALUE - SEARCHES - AGGREGATES <= set(DOUBLING) | {
        "date",
        "datetime",
    }


@pytest.mark.parametrize("name", DOUBLING)
@pytest.mark.parametrize("where", ["columns", "order", "groups", "having"])
def test_chains_of_columns_cost_no_more_than_their_limit(
    graph: Graph, name: str, where: str
) -> None:
    first, step = DOUBLING[name]
    for length in (3, 40, 400)[: count(2, 3)]:
        columns = chain(first, step, length)
        tail = {
            "columns": "",
            "order": f" order {{ c{length} }}",
            "groups": "",
            "having": f" having {{ c{length} is not null }}",
        }[where]
        returned = columns + (", count(*) as n" if where in ("groups", "having") else "")
        found = outcome(graph, match(returned=returned) + tail)
        assert found == "rows" if length == 3 else found in ("rows", "Q020"), (name, length, found)
        assert found == "Q020" or length < 400


def test_the_limit_on_operators_is_not_passed_by_names_of_columns(graph: Graph) -> None:
    half = " + ".join(["$p.age"] * 60)
    text = match(returned=f"{half} as a, {half} as b, a + b as c")
    assert outcome(graph, text) == "Q020"


def test_a_shared_column_is_computed_once(graph: Graph) -> None:
    """Eleven doublings are two thousand texts to join when written out, and eleven when shared."""
    text = match(returned=chain("$p.note", lambda c: f"concat({c}, {c})", 10))
    graph.query(text)  # compiled
    with counted(20_000):
        row = graph.query(text).rows[0]
    assert len(row["c10"]) == 2 << 10


def test_texts_that_grow_too_long_are_refused(graph: Graph) -> None:
    long = "x" * (1 << 20)
    text = (
        "query q($t: String) "
        + "{"
        + match(returned=chain("concat($p.note, $t)", lambda c: f"concat({c}, {c})", 6))
        + "}"
    )
    assert outcome(graph, text, {"t": long}) == "limit_exceeded"
    constant = (
        "query q($t: String) "
        + "{"
        + match(returned=f"concat({', '.join(['$t'] * 40)}) as c")
        + "}"
    )
    assert outcome(graph, constant, {"t": long}) == "limit_exceeded"


# --- size, depth and width -------------------------------------------------------------------------------------------


def parts(count: int) -> list[str]:
    return [f'$v{i}: Person {{ name: "p1" }}' for i in range(count)]


TEXTS: dict[str, Callable[[], str]] = {
    "deep brackets": lambda: match("(" * 5_000 + "1 = 1" + ")" * 5_000),
    "deep conditions": lambda: match(
        nest("not " * 99 + "$p.active", lambda s: f"($p.active or $p.active and {s} = true)", 29)
    ),
    "deep calls": lambda: match(returned=nest("$p.note", lambda s: f"lower({s})", 29) + " as c"),
    "too many negations": lambda: match("not " * 100_000 + "$p.active"),
    "too many signs": lambda: match(returned="-" * 100_000 + "$p.age as a"),
    "a long sum": lambda: match(returned=" + ".join(["$p.age"] * 10_000) + " as a"),
    "a long conjunction": lambda: match(" and ".join(["$p.active"] * 100_000)),
    "a long disjunction": lambda: match(" or ".join(["$p.active"] * 4_000)),
    "many conditions": lambda: match(*[f"$p.age != {i}" for i in range(2_000)]),
    "many equal conditions": lambda: match(*["$p.age != 1"] * 2_000),
    "many conditions on two": lambda: match(
        "$p knows $q", *[f"$p.age + {i} != $q.age" for i in range(1_500)]
    ),
    "too many conditions": lambda: match(*["$p.active"] * 4 * LISTED),
    "many columns": lambda: match(returned=", ".join(f"$p.age as c{i}" for i in range(4_000))),
    "too many columns": lambda: match(returned=" ".join(f"1 as c{i}" for i in range(4 * LISTED))),
    "many unknown columns": lambda: match(returned=" ".join(f"x{i} as y{i}" for i in range(4_900))),
    "many unknown variables": lambda: match(*[f"$x{i}.age = 1" for i in range(2_400)]),
    "many keys of the order": lambda: match() + f" order {{ {', '.join(['$p.age + 1'] * 2_000)} }}",
    "many groups and aggregates": lambda: match(
        returned=", ".join(f"count($p.age) as a{i}, $p.age + {i} as k{i}" for i in range(1_000))
    ),
    "many bindings": lambda: match(*parts(199)),
    "too many bindings": lambda: match(*parts(10_000)),
    "a long path of hops": lambda: match(*[f"$v{i} knows $v{i + 1}" for i in range(190)]),
    "a star of hops": lambda: match('$p.name = "p1"', *[f"$p knows $v{i}" for i in range(190)]),
    "hops into each other": lambda: match(
        *[f"$a{i} knows $a{j}" for i in range(10) for j in range(10) if i < j]
    ),
    "many self-loops": lambda: match(*["$p knows $p"] * 190),
    "many edge words": lambda: match(f"$p {'|'.join(['knows'] * 4_000)} $q"),
    "too many edge words": lambda: match(f"$p {'|'.join(['knows'] * 100_000)} $q"),
    "giant hops": lambda: match("$p knows{1,2147483647} $q"),
    "giant hops that are too far": lambda: match("$p <knows>{2147483647,2147483647} $q"),
    "giant hops as a path": lambda: match("$w = path $p <knows>{1,2147483647} $q"),
    "hops beyond all numbers": lambda: match("$p knows{1,99999999999999999999999} $q"),
    "wide unions": lambda: " union ".join([match()] * 100),
    "wide unions of all": lambda: " union all ".join([match()] * 190),
    "too wide unions": lambda: " union ".join([match()] * 5_000),
    "deep not": lambda: match(nest("$p knows $p", lambda s: f"not {{ $p likes $p {s} }}", 29)),
    "deep exists": lambda: match(
        nest("$p knows $p", lambda s: f"exists {{ $p knows $p {s} }}", 29)
    ),
    "deep optional": lambda: match(
        nest("$p knows $p", lambda s: f"optional {{ $p likes $p {s} }}", 29)
    ),
    "too deep blocks": lambda: match(nest("$p knows $p", lambda s: f"not {{ {s} }}", 1_000)),
    "many blocks": lambda: match(*["not { $p knows $p }", "exists { $p likes $_ }"] * 90),
    "many optional blocks": lambda: match(*[f"optional {{ $p knows $o{i} }}" for i in range(190)]),
    "a huge list": lambda: match(f"$p.big in [{', '.join(map(str, range(LISTED)))}]"),
    "a huge list of other numbers": lambda: match(
        f"$p.age in [{', '.join(f'{i}.5' for i in range(LISTED))}]"
    ),
    "a huge list of unsigned numbers": lambda: match(
        f"$p.age in [{', '.join(str(2**63 + i) for i in range(LISTED))}]"
    ),
    "a huge list of texts": lambda: match(
        "$p.name in [" + ", ".join(f'"n{i}"' for i in range(LISTED)) + "]"
    ),
    "a huge list that holds a property": lambda: match(
        f"[{', '.join(map(str, range(LISTED)))}] contains $p.age"
    ),
    "a huge list of calculations": lambda: match(
        f"$p.age in [{', '.join(['1 + 1'] * (LISTED // 3))}]"
    ),
    "many lists": lambda: match(*["$p.age in [1, 2, 3]"] * 2_000),
    "a long text": lambda: match('$p.note = "' + "x" * 3_000_000 + '"'),
    "a text that is too long": lambda: match('$p.note = "' + "x" * 5_000_000 + '"'),
    "a long number": lambda: match("$p.big = " + "9" * 1_000_000),
    "a long fraction": lambda: match("$p.score = 0." + "9" * 1_000_000),
    "a giant exponent": lambda: match("$p.score = 1e999999999"),
    "a long pattern": lambda: match('regex_match($p.note, "' + "(a*)*" * 5_000 + 'b")'),
    "a repeated pattern": lambda: match('regex_match($p.note, "((a{0,100}){0,100}){0,100}")'),
    "a giant limit": lambda: match() + " limit 18446744073709551615",
    "a giant skip": lambda: match() + " order { $p.age } skip 18446744073709551615 limit 5",
    "a giant substring": lambda: match(
        returned="substring($p.note, 9223372036854775807, 9223372036854775807) as s"
    ),
    "many parameters": lambda: (
        "query q(" + ", ".join(f"$a{i}: I64?" for i in range(LISTED // 3)) + ") { " + match() + " }"
    ),
    "many queries": lambda: " ".join(f"query q{i}() {{ {match()} }}" for i in range(LISTED // 10)),
    "many comments": lambda: "/**/" * 4 * LISTED + match(),
    "one long name": lambda: match(returned=f"$p.{'a' * 1_000_000} as x"),
}
CODES = {"rows", "P1", "P5", "P6", "P7", "Q005", "Q012", "Q017", "Q019", "Q020", "T6", "T7", "T15", "query_ambiguous",
         "arithmetic_overflow", "limit_exceeded", "option_invalid"}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_that_is_a_bomb_goes_off_harmlessly(graph: Graph, name: str) -> None:
    text = TEXTS[name]()
    assert outcome(graph, text) in CODES
    with counted(CALLS_MAX + CALLS_OF_A_CHARACTER * len(text)):
        lint_queries(text, CATALOG)


# --- parameters ------------------------------------------------------------------------------------------------------

MANY = count(50_000, 1_000_000)
PARAMETERS: dict[str, tuple[str, str, Callable[[], Any]]] = {
    "whole numbers": ("[I64]", "$p.big in $v", lambda: list(range(MANY))),
    "whole numbers against another type": ("[I64]", "$p.age in $v", lambda: list(range(MANY))),
    "whole numbers against unsigned": ("[I64]", "$p.size in $v", lambda: list(range(MANY))),
    "fractions": ("[F64]", "$p.score in $v", lambda: [i / 3 for i in range(MANY)]),
    "fractions against narrow ones": (
        "[F64]",
        "$p.light in $v",
        lambda: [i / 3 for i in range(MANY)],
    ),
    "fractions against whole numbers": (
        "[F64]",
        "$p.age in $v",
        lambda: [i / 3 for i in range(MANY)],
    ),
    "unsigned": ("[U64]", "$p.age in $v", lambda: list(range(2**63, 2**63 + MANY))),
    "texts": ("[String]", "$p.name in $v", lambda: [f"t{i}" for i in range(MANY)]),
    "contains": ("[I64]", "$v contains $p.age", lambda: list(range(MANY))),
    "not in": ("[I64]", "$p.big not in $v", lambda: list(range(MANY))),
    "a text": ("String", "$p.note contains $v", lambda: "x" * (16 << 20)),
}
CALLS_OF_A_MEMBER = 8


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_parameter_that_is_a_bomb_goes_off_harmlessly(graph: Graph, name: str) -> None:
    kind, condition, value = PARAMETERS[name]
    text = f"query q($v: {kind}) {{ {match(condition)} }}"
    with counted(CALLS_MAX + CALLS_OF_A_MEMBER * MANY):
        assert graph.query(text, {"v": value()}).rows is not None
