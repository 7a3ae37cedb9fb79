"""What a query looks for: signs, beginnings, phrases, synonyms, languages, and the marks of `highlight`."""

from __future__ import annotations

import random

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import OmnigraphError
from omnigraph.lang import ir
from omnigraph.read.search.analyzer import ANALYZERS
from omnigraph.read.search.queries import CLAUSES_MAX
from omnigraph.read.search.text import text_match
from tests.unit.read.search import oracle
from tests.unit.read.search.memory import texts
from tests.unit.read.search.test_text import VOCABULARY, corpus

SCHEMA = """
node Text { key: String @key  body: String? @synonyms("tea, chai; car, automobile, chai wagon") }
node Note { key: String @key  body: String? @synonyms("tea, chai; car, automobile") }
node Buch { key: String @key  body: String? @analyzer("german") }
interface Written { body: String? }
node One implements Written { body: String? @analyzer("none") }
node Two implements Written { body: String? }
"""


@pytest.fixture(scope="module")
def graph() -> Graph:
    made = omnigraph.init("memory://text-queries", schema=SCHEMA)
    notes = ["Green tea and steam", "A cup of chai, greenish", "Black coffee", "Automobiles", None]
    books = ["Die Häuser der Stadt", "Ein Haus", "Der Hund"]
    rows = {
        "Note": [{"key": str(i), "body": body} for i, body in enumerate(notes)],
        "Buch": [{"key": str(i), "body": body} for i, body in enumerate(books)],
        "Text": [{"key": "0", "body": "tea"}],
        "One": [{"body": "Running"}],
        "Two": [{"body": "Running"}, {"body": None}],
    }
    made.load(rows)
    return made


def found(graph: Graph, condition: str, kind: str = "Note") -> str:
    text = f"match {{ $n: {kind} {condition} }} return {{ $n.key as k }} order {{ k }}"
    return "".join(row["k"] for row in graph.query(text).rows)


@pytest.mark.parametrize("seed", range(60))
def test_signs_agree_with_plain_python(seed: int) -> None:
    rng = random.Random(seed)
    values = corpus(rng, rng.randint(1, 40))
    for _ in range(5):
        clauses = []
        for _ in range(rng.randint(1, 4)):
            word = rng.choice(VOCABULARY)
            form = rng.choice([word, f'"{word} {rng.choice(VOCABULARY)}"', word[:2] + "*"])
            clauses.append((rng.choice(["", "", "+", "-"]), form))
        query = " ".join(sign + form for sign, form in clauses)
        hits = text_match(texts(*values), "p", query, ir.BooleanQuery()).to_pylist()
        expected = [None if v is None else oracle.boolean(v, clauses) for v in values]
        assert hits == expected, query


@pytest.mark.parametrize(
    ("condition", "keys"),
    [
        ('search_query($n.body, "+tea -cup")', "0"),
        ('search_query($n.body, "-coffee")', "013"),
        ('search_query($n.body, "coffee gree*")', "012"),
        ('search_query($n.body, "\\"green tea\\" coffee")', "02"),
        ('search_query($n.body, "the")', ""),
        ('search_query($n.body, "+the +tea")', "01"),
        ('search_query($n.body, "*")', ""),
        ('prefix($n.body, "gree")', "01"),
        ('prefix($n.body, "GREE ste")', "0"),
        ('search($n.body, "tea")', "01"),
        ('search_all($n.body, "green chai")', "0"),
        ('phrase($n.body, "green chai")', ""),
        ('search_query($n.body, "car")', "3"),
        ('search_query($n.body, "tea") = false', "23"),
    ],
)
def test_what_is_found(graph: Graph, condition: str, keys: str) -> None:
    assert found(graph, condition) == keys


def test_synonyms_count_in_a_ranking(graph: Graph) -> None:
    text = 'match { $n: Note } return { $n.key as k } order { bm25($n.body, "tea") }'
    assert sorted(row["k"] for row in graph.query(text).rows) == ["0", "1"]


def test_words_are_reduced_by_the_language_of_the_property(graph: Graph) -> None:
    assert found(graph, 'search($n.body, "Haus")', "Buch") == "01"
    assert found(graph, 'search($n.body, "Hunde")', "Buch") == "2"
    assert {"german", "french", "finnish", "english", "simple", "none"} <= set(ANALYZERS)


def test_words_are_marked_in_results(graph: Graph) -> None:
    shown = (
        "match { $n: Note } return { highlight($n.body, $q) as a, highlight($n.body, $q, $b, $e) as b }"
        " order { $n.key }"
    )
    text = f"query q($q: String, $b: String, $e: String) {{ {shown} }}"
    rows = graph.query(text, {"q": "tea gree* -coffee", "b": "<", "e": ">"}).rows
    assert [row["a"] for row in rows] == [
        "**Green** **tea** and steam",
        "A cup of **chai**, **greenish**",
        "Black coffee",
        "Automobiles",
        None,
    ]
    assert rows[0]["b"] == "<Green> <tea> and steam"


def test_each_type_marks_by_its_own_analyzer(graph: Graph) -> None:
    text = (
        'match { $w: Written } return { type($w) as t, highlight($w.body, "run") as h } order { t }'
    )
    rows = [(row["t"], row["h"]) for row in graph.query(text).rows]
    assert rows == [("One", "Running"), ("Two", "**Running**"), ("Two", None)]


@pytest.mark.parametrize(
    ("condition", "kind", "message"),
    [
        ('search_query($n.body, "\\"green")', "Note", "no closing quote"),
        (
            f'search_query($n.body, "{"a " * (CLAUSES_MAX + 1)}")',
            "Note",
            f"{CLAUSES_MAX + 1} clauses",
        ),
        ('search($n.body, "tea")', "Text", "single words"),
        ("prefix($n.body)", "Note", "takes a property and a text"),
        ('highlight($n.body, "a", "b") = "c"', "Note", "marks before and after"),
        ('highlight($n.body, 1) = "c"', "Note", "String"),
    ],
)
def test_what_cannot_be_searched_for(graph: Graph, condition: str, kind: str, message: str) -> None:
    with pytest.raises(OmnigraphError, match=message):
        found(graph, condition, kind)
