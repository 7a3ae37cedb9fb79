"""What holds for every text, valid or not."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import OmnigraphError
from omnigraph.lang.diagnostics import ERRORS_MAX, LanguageError
from omnigraph.lang.lower import lower
from omnigraph.lang.plan_text import plan_text
from omnigraph.lang.query import (
    bind_params,
    check_query,
    compile_query,
    describe_operation,
    format_queries,
    lint_queries,
    parse_queries,
)
from omnigraph.lang.rewrite import rewrite
from omnigraph.lang.source import Source

from .casefile import findings, harbour, rules
from .strategies import broken_texts, query_texts, spaced_texts, word_soups

CHARACTERS = 'query match return{}()[]$:.,<>=!+-*/%|"\\ \n1a_'
ANY_TEXT = st.one_of(
    st.text(max_size=200), broken_texts(), word_soups(), st.text(CHARACTERS, max_size=200)
)


def error_of(text: str) -> OmnigraphError | None:
    try:
        compile_query(text, harbour())
    except OmnigraphError as error:
        return error
    return None


@given(ANY_TEXT)
@settings(max_examples=300)
def test_only_our_errors_come_out(text: str) -> None:
    lint_queries(text, harbour())
    error = error_of(text)
    assert error is None or error.help
    if not isinstance(error, LanguageError):
        return
    assert 0 < len(error.diagnostics) <= ERRORS_MAX
    for found in error.diagnostics:
        assert 0 <= found.span.start <= found.span.end <= len(text)
        assert found.help
    starts = [found.span.start for found in error.diagnostics]
    assert starts == sorted(starts)
    assert error.render()


@given(broken_texts())
def test_the_same_text_gives_the_same_diagnostics(text: str) -> None:
    assert findings(text, harbour()) == findings(text, harbour())


@given(st.one_of(query_texts(), word_soups(), spaced_texts()))
@settings(max_examples=500)
def test_formatting_keeps_meaning_and_comments(text: str) -> None:
    try:
        tree = parse_queries(text)
    except LanguageError:
        return
    printed = format_queries(text)
    again = parse_queries(printed)
    assert again == tree
    assert [c.text.strip() for c in again.comments] == [c.text.strip() for c in tree.comments]
    assert format_queries(printed) == printed


def test_formatting_keeps_every_case() -> None:
    for case in rules():
        try:
            tree = parse_queries(case.text)
        except LanguageError:
            continue
        printed = format_queries(case.text)
        assert parse_queries(printed) == tree, case.title
        assert format_queries(printed) == printed, case.title


@given(query_texts())
@settings(max_examples=200)
def test_every_checked_query_lowers(text: str) -> None:
    for query in parse_queries(text).queries:
        try:
            checked = check_query(query, harbour(), Source(text))
        except LanguageError:
            continue
        plan = rewrite(lower(checked))
        assert plan_text(plan)
        assert rewrite(plan) == plan, "rewriting again changes nothing"
        describe_operation(plan, harbour())
        bind_params(plan, {"name": "a", "low": 1})


LARGE = {
    "walks": "$a0: Port " + " ".join(f"$a{i} lane $a{i + 1}" for i in range(190)),
    "walks back": "$a190: Port " + " ".join(f"$a{i} lane $a{i + 1}" for i in range(190)),
    "pairs": " ".join(f"$a{i}: Port" for i in range(190)),
    "blocks": "$a0: Port " + " ".join(f"optional {{ $a0 lane $b{i} }}" for i in range(95)),
    "nested": "$a0: Port " + "not { $a0 lane $_ " * 28 + "}" * 28,
    "sum": "$a0: Port $a0.depth > " + "+".join(["1"] * 100),
    "brackets": "$a0: Port $a0.depth > " + "(" * 28 + "1" + " + 1)" * 28,
    "conditions": "$a0: Port " + " or ".join(f"$a0.depth > {i}" for i in range(1_000)),
}


@pytest.mark.parametrize("name", LARGE)
def test_the_largest_legal_queries_compile(name: str) -> None:
    text = f"query q() {{ match {{ {LARGE[name]} }} return {{ $a0.code }} order {{ $a0.code }} }}"
    query = compile_query(text, harbour())
    assert plan_text(query).startswith("Project $a0.code")
    assert parse_queries(format_queries(text)) == parse_queries(text)


HOSTILE = {
    "brackets": "query q() { match { $p: Port " + "(" * 65_000,
    "braces": "query q() { match { $p: Port " + "not { " * 11_000,
    "signs": "query q() { match { $p: Port $p.depth > " + "-" * 65_000,
    "negations": "query q() { match { $p: Port " + "not " * 16_000,
    "sums": "query q() { match { $p: Port $p.depth > 1" + "+1" * 32_000,
    "lists": "query q() { match { $p: Port $p.code in " + "[" * 65_000,
    "calls": "query q() { match { $p: Port " + "lower(" * 10_000,
    "traversals": "query q() { match { $p: Port " + "$p lane $_ " * 5_900,
    "text": '"' * 65_000,
    "dollars": "$" * 65_000,
    "queries": "query " * 10_900,
    "comments": "/*" * 32_000,
    "blank lines": "\n" * 65_000,
    "spaces behind": "query q() { match { $p: Port } return { $p.code } }" + " " * 65_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_answered_quickly(name: str) -> None:
    text = HOSTILE[name]
    started = time.thread_time()
    with contextlib.suppress(OmnigraphError):
        parse_queries(text)
    # The aim is 50 ms; the bound leaves room for a busy machine and still tells linear from quadratic.
    assert time.thread_time() - started < 1.0
