from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph.model.catalog import Annotation, Property
from omnigraph.model.types import PropType, Scalar
from omnigraph.read.search.analyzer import (
    ENGLISH,
    NONE,
    ROWS_PER_SLICE,
    SIMPLE,
    Analyzer,
    AnalyzerUnknown,
    analyze,
    analyzer_of,
    query_words,
)


def words(text: str, analyzer: Analyzer = ENGLISH) -> list[str]:
    return [word for word, _ in query_words(text, analyzer)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Carrying TIMBER, carried timbers!", ["carri", "timber", "carri", "timber"]),
        ("the cat and the hat", ["cat", "hat"]),
        ("snake_case kebab-case 3.14", ["snake", "case", "kebab", "case", "3", "14"]),
        ("", []),
        ("?! … —", []),
        ("the of and", []),
        ("Straße STRASSE", ["strass", "strass"]),
        ("ΟΔΟΣ οδος", ["οδοσ", "οδοσ"]),
        ("étude e\u0301tude", ["étude", "étude"]),
        ("ﬁsh \uff26\uff29\uff33\uff28 x²", ["fish", "fish", "x2"]),
        ("京都タワー", ["京", "都", "タワー"]),
        ("Москва-река", ["москва", "река"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("a\u00a0b\tc\nd", ["b", "c", "d"]),
        ("half\ud83da pair", ["half", "pair"]),
        ("👩\u200d🚀 rocket", ["rocket"]),
    ],
)
def test_english_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_a_long_query_is_analysed_like_a_short_one() -> None:
    assert words("long texts " * 1000) == words("long texts") * 1000


def test_simple_keeps_every_word_as_it_is_but_lower_case() -> None:
    assert words("The Running Foxes", SIMPLE) == ["the", "running", "foxes"]


def test_none_changes_nothing() -> None:
    assert words("The iPhone, Straße", NONE) == ["The", "iPhone", "Straße"]


def test_stop_words_keep_their_place() -> None:
    assert query_words("state of the art", ENGLISH) == (("state", 0), ("art", 3))


def test_a_column_gives_the_words_of_each_text() -> None:
    found = analyze(pa.array(["b a b", None, "", "c!"]), SIMPLE)
    assert found.vocabulary.to_pylist() == ["a", "b", "c"]
    assert found.codes.tolist() == [1, 0, 1, 2]
    assert found.rows.tolist() == [0, 0, 0, 3]
    assert found.places.tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_long_columns_are_cut_in_slices_without_a_seam(kind: pa.DataType) -> None:
    count = ROWS_PER_SLICE + 3
    texts = [f"w{i % 7}" for i in range(count)]
    texts[-1] = "naïve"
    found = analyze(pa.array(texts, kind), SIMPLE)
    spelled = found.vocabulary.take(pa.array(found.codes)).to_pylist()
    assert spelled == texts
    assert found.rows.tolist() == list(range(count))


def test_a_text_has_the_same_words_alone_and_beside_others() -> None:
    alone = words("Grüße an alle", SIMPLE)
    beside = analyze(pa.array(["plain ascii", "Grüße an alle", "東京"]), SIMPLE)
    mine = beside.codes[beside.rows == 1]
    assert beside.vocabulary.take(pa.array(mine)).to_pylist() == alone


def prop(*annotations: Annotation) -> Property:
    return Property("bio", PropType(Scalar.STRING), 1, annotations=annotations)


def test_a_property_chooses_its_analyzer() -> None:
    assert analyzer_of(prop()) is ENGLISH
    assert analyzer_of(prop(Annotation("analyzer", "simple"))) is SIMPLE
    assert analyzer_of(prop(Annotation("analyzer", "none"))) is NONE


def test_an_unknown_analyzer_is_named() -> None:
    with pytest.raises(AnalyzerUnknown, match=r"'bio'.*'klingon'"):
        analyzer_of(prop(Annotation("analyzer", "klingon")))


def test_signatures_tell_analyzers_apart() -> None:
    assert len({a.signature for a in (ENGLISH, SIMPLE, NONE)}) == 3
