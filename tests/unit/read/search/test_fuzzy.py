from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.read.search.text import within_edits
from tests.unit.read.search.oracle import levenshtein

words = st.text(alphabet="abcé東", min_size=1, max_size=7)


@settings(max_examples=300, deadline=None)
@given(st.lists(words, unique=True, max_size=30), words, st.integers(0, 5))
def test_agrees_with_the_textbook_distance(vocabulary: list[str], word: str, edits: int) -> None:
    found = within_edits(pa.array(vocabulary, pa.string()), word, edits)
    assert found.tolist() == [i for i, w in enumerate(vocabulary) if levenshtein(w, word) <= edits]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [("kitten", "sitting", 3), ("flaw", "lawn", 2), ("ab", "ba", 2), ("same", "same", 0)],
)
def test_known_distances(a: str, b: str, expected: int) -> None:
    assert levenshtein(a, b) == expected
    assert within_edits(pa.array([a]), b, expected).tolist() == [0]
    assert within_edits(pa.array([a]), b, expected - 1).tolist() == []


def test_a_reach_beyond_every_length_finds_everything() -> None:
    assert within_edits(pa.array(["a", "quite long"]), "zz", 1_000_000).tolist() == [0, 1]
