"""Source, lexer, cursor and diagnostics: what both languages stand on."""

from __future__ import annotations

import copy
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnigraph.lang.schema  # noqa: F401  registers codes
from omnigraph.errors import CODES, Kind
from omnigraph.lang.cursor import Cursor, Unparsable
from omnigraph.lang.diagnostics import (
    ERRORS_MAX,
    Diagnostics,
    LanguageError,
    did_you_mean,
    render,
)
from omnigraph.lang.lexer import NESTING_MAX, TEXT_CHARS_MAX, Lexed, Tok, lex, quote, unquote
from omnigraph.lang.source import Place, Source


def lexed(text: str) -> tuple[Lexed, Diagnostics]:
    diagnostics = Diagnostics(Source(text))
    return lex(diagnostics), diagnostics


def cursor(text: str) -> Cursor:
    return Cursor(Diagnostics(Source(text)))


# --- source ---


def test_span_counts_lines_columns_and_utf16_units() -> None:
    source = Source("é\n  \U0001f600x", "a.pg")
    span = source.span(Place(5, 6))
    assert (span.line, span.column) == (2, 4)
    assert (span.start16, span.end16) == (6, 7)
    assert span.source == "a.pg"


def test_empty_place_is_widened_to_one_character() -> None:
    span = Source("ab").span(Place(1, 1))
    assert (span.start, span.end) == (1, 2)


def test_place_at_the_end_stays_inside_the_text() -> None:
    span = Source("ab\n").span(Place(3, 3))
    assert (span.start, span.end, span.line, span.column) == (3, 3, 2, 1)


@given(st.text("a\r\n\u00e9\U0001f600", max_size=40), st.integers(0, 40), st.integers(0, 40))
def test_spans_agree_with_a_plain_count(text: str, start: int, length: int) -> None:
    span = Source(text).span(Place(start, start + length))
    before = text[: span.start]
    assert span.line == before.count("\n") + 1
    assert span.column == len(before) - (before.rfind("\n") + 1) + 1
    assert span.start16 == len(before.encode("utf-16-le")) // 2
    assert span.end16 - span.start16 == len(text[span.start : span.end].encode("utf-16-le")) // 2


# --- lexer ---


def test_tokens_of_both_languages() -> None:
    text = '$a knows|<x>{1,4} $_ != 1..2 -> 1.5e-3 + 3d <= >= "s" @k? [*] % / - .'
    found, diagnostics = lexed(text)
    assert " ".join(found.texts).strip() == text.replace("{1,4}", " { 1 , 4 }").replace(
        "$a knows|<x>", "$a knows | < x >"
    ).replace("1..2", "1 .. 2").replace("@k?", "@ k ?").replace("[*]", "[ * ]")
    assert not diagnostics.sorted()
    assert found.kinds[-1] is Tok.END


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("1e5", ["float"]),
        ("1.5", ["float"]),
        ("1.", ["integer", "symbol"]),
        ("1..2", ["integer", "symbol", "integer"]),
        ("1e5x", ["mixed"]),
        ("10order", ["mixed"]),
        ("$x.y", ["variable", "symbol", "name"]),
        ("a//b\nc", ["name", "name"]),
        ("a/*b*/c", ["name", "name"]),
        ("a/**/c /***/ d", ["name", "name", "name"]),
        ('"a\\"b"', ["string"]),
    ],
)
def test_token_kinds(text: str, kinds: list[str]) -> None:
    found, diagnostics = lexed(text)
    assert [str(kind) for kind in found.kinds[:-1]] == kinds
    assert not diagnostics.sorted()


def test_comments_are_kept_aside_with_their_places() -> None:
    found, _ = lexed("a // one\n/* two */ b")
    assert [(c.text, c.start) for c in found.comments] == [("// one", 2), ("/* two */", 9)]


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("a # b", "P3", 3),
        ("a ; b", "P3", 3),
        ("a $ b", "P3", 3),
        ("a 'b' c", "P4", 3),
        ('a "b', "P4", 3),
        ('a "b\\x"', "P4", 5),
        ("a /* b", "P8", 3),
        ("a \ud800", "P3", 3),
        ("a \x00 b", "P3", 3),
    ],
)
def test_what_is_no_token_is_reported(text: str, code: str, column: int) -> None:
    _, diagnostics = lexed(text)
    (found,) = diagnostics.sorted()
    assert (found.code, found.span.column) == (code, column)


def test_a_byte_order_mark_is_only_legal_at_the_start() -> None:
    found, diagnostics = lexed("\ufeffnode")
    assert (found.texts[0], found.starts[0]) == ("node", 1)
    assert not diagnostics.sorted()
    assert lexed("a \ufeff")[1].errors == 1


def test_text_beyond_the_limit_is_refused() -> None:
    _, diagnostics = lexed("a" * (TEXT_CHARS_MAX + 1))
    with pytest.raises(LanguageError) as caught:
        diagnostics.raise_errors()
    assert (caught.value.code, caught.value.kind) == ("P6", Kind.LIMIT)


@given(st.text())
def test_quote_and_unquote_are_inverse(text: str) -> None:
    assert unquote(quote(text)) == text


@given(st.text(max_size=200))
def test_tokens_lie_in_order_inside_the_text(text: str) -> None:
    found, diagnostics = lexed(text)
    end = 0
    for index in range(len(found.kinds)):
        token = found.token(index)
        assert end <= token.start <= token.end <= len(text)
        assert text[token.start : token.end] == token.text
        end = token.end
    assert all(0 <= d.span.start <= d.span.end <= len(text) for d in diagnostics.sorted())


# --- cursor ---


def test_peek_beyond_the_end_gives_the_end() -> None:
    assert cursor("a").peek(100).kind is Tok.END


def test_names_are_told_apart_by_their_first_letter() -> None:
    assert cursor("person").ident("a name").text == "person"
    assert cursor("Person").type_name("a type").text == "Person"
    walker = cursor("Person")
    with pytest.raises(Unparsable):
        walker.ident("a name")
    (found,) = walker.diagnostics.sorted()
    assert (found.code, found.suggestion) == ("P9", "person")


def test_brackets_close_or_the_opening_one_is_named() -> None:
    walker = cursor("(a")
    with pytest.raises(Unparsable), walker.nested("(", "here"):
        walker.advance()
    (found,) = walker.diagnostics.sorted()
    assert (found.code, found.span.column) == ("P2", 1)


def test_nesting_is_bounded() -> None:
    walker = cursor("(" * 100)

    def nest() -> None:
        with walker.nested("(", "here"):
            nest()

    with pytest.raises(Unparsable):
        nest()
    (found,) = walker.diagnostics.sorted()
    assert (found.code, found.span.column) == ("P5", NESTING_MAX + 1)
    assert walker.depth == 0


def test_separated_items() -> None:
    walker = cursor("a, b, c d")
    assert [t.text for t in walker.sep_by(lambda: walker.ident("x"))] == ["a", "b", "c"]
    assert walker.at("d")


def test_integers_are_bounded_where_they_stand() -> None:
    walker = cursor("300")
    with pytest.raises(Unparsable):
        walker.integer("a byte", maximum=255)
    assert walker.diagnostics.sorted()[0].code == "P7"


# --- diagnostics ---


def test_errors_are_sorted_bounded_and_reported_once() -> None:
    source = Source("x" * 100)
    diagnostics = Diagnostics(source)
    for offset in range(50, 0, -1):
        diagnostics.error("P1", "wrong", Place(offset, offset + 1))
        diagnostics.error("P1", "wrong", Place(offset, offset + 1))
    starts = [d.span.start for d in diagnostics.sorted()]
    assert len(starts) == ERRORS_MAX
    assert starts == sorted(set(starts))
    assert diagnostics.full


def test_warnings_alone_do_not_raise() -> None:
    diagnostics = Diagnostics(Source("x"))
    diagnostics.warn("S30", "odd", Place(0, 1))
    diagnostics.raise_errors()
    assert diagnostics.sorted()[0].severity == "warning"


def test_an_error_carries_all_diagnostics_and_survives_copying() -> None:
    diagnostics = Diagnostics(Source("ab", "x.pg"))
    diagnostics.error("P5", "second", Place(1, 2))
    diagnostics.error("P1", "first", Place(0, 1), help="Do this.")
    with pytest.raises(LanguageError) as caught:
        diagnostics.raise_errors()
    error = caught.value
    assert (error.code, error.kind, error.message, error.help) == (
        "P1",
        Kind.INVALID,
        "first",
        "Do this.",
    )
    assert [d["code"] for d in error.to_json()["details"]["diagnostics"]] == ["P1", "P5"]
    assert copy.deepcopy(error).render() == error.render()


def test_rendering_points_at_the_place() -> None:
    source = Source("one\n\ttwo three\n", "f.pg")
    diagnostics = Diagnostics(source)
    diagnostics.error("P1", "not that", Place(9, 14), label="here", help="Try four.")
    assert render(diagnostics.sorted()[0], source) == (
        "error[P1]: not that\n"
        " --> f.pg:2:6\n"
        "  |\n"
        "2 | \ttwo three\n"
        "  | \t    ^^^^^ here\n"
        "  = help: Try four."
    )


def test_rendering_shows_a_part_of_a_long_line() -> None:
    source = Source("x" * 5000 + "HERE" + "y" * 5000)
    diagnostics = Diagnostics(source)
    diagnostics.error("P1", "long", Place(5000, 5004))
    text = render(diagnostics.sorted()[0], source)
    assert "HERE" in text
    assert max(map(len, text.splitlines())) < 200


@pytest.mark.parametrize(
    ("word", "options", "meant"),
    [
        ("noed", ["node", "edge"], "node"),
        ("NODE", ["node", "edge"], "node"),
        ("zzz", ["node", "edge"], None),
        ("", ["node"], None),
        ("n" * 1000, ["node"], None),
        ("src", ["src"], None),
    ],
)
def test_did_you_mean(word: str, options: list[str], meant: str | None) -> None:
    assert did_you_mean(word, options) == meant


def test_suggestions_among_many_names_are_quick() -> None:
    names = [f"Type{n}Name{n}" for n in range(2_000)]
    started = time.thread_time()
    assert did_you_mean("Type77Naem77", names) == "Type77Name77"
    assert time.thread_time() - started < 2.0


def test_the_languages_start_without_heavy_packages() -> None:
    script = (
        "import sys, omnigraph.lang.schema as s; s.compile_schema('node A { a: I32 }');"
        "print(sorted({'pyarrow', 'numpy', 'lance', 'duckdb'} & sys.modules.keys()))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_every_syntax_code_is_in_the_catalogue() -> None:
    assert {f"P{n}" for n in range(1, 10)} <= CODES.keys()
