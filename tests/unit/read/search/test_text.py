from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.errors import OptionInvalid
from omnigraph.lang import ir
from omnigraph.read.cache import Cache
from omnigraph.read.search import text as text_module
from omnigraph.read.search.segments import runs_of, segments
from omnigraph.read.search.text import bm25, corpus_of, text_mask, text_match
from tests.unit.read.search import oracle
from tests.unit.read.search.memory import MemoryColumns, texts

VOCABULARY = ["run", "running", "runs", "ran", "cat", "cats", "car", "cart", "the", "of", "Art"]


def fuzzy(edits: int) -> ir.Fuzzy:
    return ir.Fuzzy(ir.Literal(edits, ir.I64))


def sentence(rng: random.Random, longest: int) -> str:
    ends = rng.choice(["", ".", "! "])
    return (
        rng.choice([" ", ", ", "-"]).join(rng.choices(VOCABULARY, k=rng.randint(0, longest))) + ends
    )


def corpus(rng: random.Random, size: int) -> list[str | None]:
    return [None if rng.random() < 0.1 else sentence(rng, 8) for _ in range(size)]


def expected(text: str | None, query: str, mode: ir.TextMode) -> bool | None:
    if text is None:
        return None
    match mode:
        case ir.AnyWord():
            return oracle.any_word(text, query)
        case ir.AllWords():
            return oracle.all_words(text, query)
        case ir.Phrase():
            return oracle.phrase(text, query)
        case ir.Fuzzy(ir.Literal(value=edits)):
            return oracle.fuzzy(text, query, edits)
        case ir.Prefix():
            return oracle.prefix(text, query)
    raise AssertionError(mode)


MODES: list[ir.TextMode] = [
    ir.AnyWord(),
    ir.AllWords(),
    ir.Phrase(),
    ir.Prefix(),
    fuzzy(0),
    fuzzy(1),
    fuzzy(2),
]


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("seed", range(40))
def test_every_mode_agrees_with_plain_python(mode: ir.TextMode, seed: int) -> None:
    rng = random.Random(seed)
    values = corpus(rng, rng.randint(0, 40))
    columns = texts(*values)
    for _ in range(5):
        query = sentence(rng, 4)
        truth = [expected(text, query, mode) for text in values]
        assert text_match(columns, "p", query, mode).to_pylist() == truth, query
        assert text_mask(columns, "p", query, mode).tolist() == [t is True for t in truth], query


@pytest.mark.parametrize("seed", range(40))
def test_bm25_agrees_with_the_formula(seed: int) -> None:
    rng = random.Random(seed)
    values = corpus(rng, rng.randint(0, 40))
    query = sentence(rng, 4)
    positions, scores = bm25(texts(*values), "p", query)
    truth = oracle.bm25(values, query)
    assert positions.tolist() == sorted(truth)
    assert scores == pytest.approx([truth[i] for i in sorted(truth)], rel=1e-12)


@pytest.mark.parametrize("best", [1, 3, 10, 100])
@pytest.mark.parametrize("seed", range(20))
def test_the_best_texts_are_those_of_all(seed: int, best: int) -> None:
    """Words as unevenly frequent as in natural language, some texts deleted, in several fragments."""
    rng = random.Random(seed)
    words = [f"w{i}x" for i in range(200)]
    weights = [1 / (1 + i) for i in range(200)]
    values = [" ".join(rng.choices(words, weights, k=rng.randint(1, 30))) for _ in range(3_000)]
    cuts = sorted(rng.sample(range(3_000), 3))
    parts = [values[a:b] for a, b in zip([0, *cuts], [*cuts, 3_000], strict=True)]
    deleted = rng.sample(range(3_000), rng.choice([0, 300]))
    columns = MemoryColumns(
        [fragment(f"f{i}", *part) for i, part in enumerate(parts)], deleted=deleted
    )
    for asked in range(1, 6):
        query = " ".join(rng.sample(words, asked))
        every = dict(zip(*map(np.ndarray.tolist, bm25(columns, "p", query)), strict=True))
        some = dict(zip(*map(np.ndarray.tolist, bm25(columns, "p", query, best=best)), strict=True))
        ranked = sorted(every, key=lambda at: (-every[at], at))[:best]
        assert some == {at: every[at] for at in some}, "a score depends on how many are wanted"
        assert sorted(some, key=lambda at: (-some[at], at))[:best] == ranked


def test_a_search_is_blind_to_case_inflection_and_stop_words() -> None:
    columns = texts("She carries timber", "the timbers", "stone")
    assert text_mask(columns, "p", "CARRYING the", ir.AnyWord()).tolist() == [True, False, False]
    assert text_mask(columns, "p", "Timber", ir.AnyWord()).tolist() == [True, True, False]


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("query", ["", "  ", "the of", "…"])
def test_a_query_without_words_matches_nothing(mode: ir.TextMode, query: str) -> None:
    assert not text_mask(texts("the of", "", "…"), "p", query, mode).any()


def test_a_phrase_keeps_distances_across_stop_words() -> None:
    columns = texts("state of the art", "state art", "state in an art", "art of the state")
    found = text_mask(columns, "p", "the state of the art", ir.Phrase())
    assert found.tolist() == [True, False, True, False]
    assert text_mask(columns, "p", "state art", ir.Phrase()).tolist() == [False, True, False, False]


def test_a_phrase_may_repeat_a_word() -> None:
    columns = texts("new york", "new new york", "york new new")
    assert text_mask(columns, "p", "new new york", ir.Phrase()).tolist() == [False, True, False]


def test_a_phrase_does_not_reach_into_the_next_text() -> None:
    assert not text_mask(texts("big red", "barn door"), "p", "red barn", ir.Phrase()).any()


def test_ideographs_are_found_as_a_phrase() -> None:
    columns = texts("東京タワー", "京東", "京都")
    assert text_mask(columns, "p", "東京", ir.Phrase()).tolist() == [True, False, False]
    assert text_mask(columns, "p", "京", ir.AnyWord()).tolist() == [True, True, True]


def test_edits_count_characters_not_bytes() -> None:
    columns = texts("crème", "naïve")
    assert text_mask(columns, "p", "creme", fuzzy(1)).tolist() == [True, False]
    assert text_mask(columns, "p", "東", fuzzy(0)).tolist() == [False, False]


@pytest.mark.parametrize(
    "edits", [ir.Literal(-1, ir.I64), ir.Literal(None, ir.I64), ir.Param("k", ir.I64)]
)
def test_edits_that_are_no_number_are_refused(edits: ir.Expr) -> None:
    with pytest.raises(OptionInvalid, match=r"fuzzy\(\)"):
        text_mask(texts("a"), "p", "word", ir.Fuzzy(edits))


def test_positions_select_and_repeat_and_may_be_unbound() -> None:
    columns = texts("cat", None, "dog", "cat")
    at = np.array([3, 1, -1, 2, 3], np.int32)
    assert text_match(columns, "p", "cat", ir.AnyWord(), at).to_pylist() == [
        True,
        None,
        None,
        False,
        True,
    ]
    assert text_mask(columns, "p", "cat", ir.AnyWord(), at).tolist() == [
        True,
        False,
        False,
        False,
        True,
    ]


def test_an_empty_table_answers_unbound_positions() -> None:
    columns = texts()
    assert text_match(columns, "p", "cat", ir.AnyWord(), np.array([-1])).to_pylist() == [None]
    assert bm25(columns, "p", "cat")[0].tolist() == []


def test_the_analyzer_of_the_property_decides() -> None:
    exact = texts("The Running", "the run", analyzer="none")
    assert text_mask(exact, "p", "Running", ir.AnyWord()).tolist() == [True, False]
    assert text_mask(exact, "p", "the", ir.AnyWord()).tolist() == [False, True]


def test_equal_texts_score_exactly_alike_wherever_they_stand() -> None:
    columns = texts("red cat", "blue dog fish", "red cat", None, "cat red")
    positions, scores = bm25(columns, "p", "cat red blue")
    assert positions.tolist() == [0, 1, 2, 4]
    assert scores[0] == scores[2] == scores[3]


# --- versions ----------------------------------------------------------------------------------------------------


def fragment(name: str, *values: str | None) -> tuple[str, pa.Array]:
    return name, pa.array(values, pa.string())


@pytest.mark.parametrize("seed", range(20))
def test_many_fragments_answer_like_one(seed: int) -> None:
    rng = random.Random(seed)
    parts = [corpus(rng, rng.choice([0, 1, 1, 2, 5, 20])) for _ in range(rng.randint(1, 8))]
    columns = MemoryColumns([fragment(f"f{i}", *part) for i, part in enumerate(parts)])
    whole = texts(*(text for part in parts for text in part))
    query = sentence(rng, 3)
    for mode in MODES:
        assert text_match(columns, "p", query, mode) == text_match(whole, "p", query, mode)
    for mine, other in zip(bm25(columns, "p", query), bm25(whole, "p", query), strict=True):
        assert mine.tolist() == other.tolist()


def test_appending_leaves_the_long_segments_alone() -> None:
    cache = Cache()
    parts = [fragment("base", *["a cat"] * 100)]
    first = segments(MemoryColumns(parts, cache=cache), "p")
    for i in range(20):
        parts.append(fragment(f"f{i}", f"word{i} cat"))
        columns = MemoryColumns(parts, cache=cache)
        assert segments(columns, "p")[0].segment is first[0].segment
        assert len(segments(columns, "p")) <= 6
        assert text_mask(columns, "p", "cat", ir.AnyWord()).all()
        assert text_mask(columns, "p", f"word{i}", ir.AnyWord()).nonzero()[0].tolist() == [100 + i]


def test_runs_are_longest_first_and_cover_everything() -> None:
    parts = [fragment(f"f{i}", *["x"] * size) for i, size in enumerate([3, 1, 1, 4, 0, 2, 1])]
    runs = runs_of(MemoryColumns(parts).fragments)
    sizes = [run.size for run in runs]
    assert [run.start for run in runs] == [0, *np.cumsum(sizes)[:-1].tolist()]
    assert sum(sizes) == 12
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == len(sizes)


def test_a_deleted_row_is_neither_found_nor_counted() -> None:
    values = ["cat", "cat dog", "dog bird fish", "bird"]
    columns = texts(*values, deleted=[1, 3])
    assert text_mask(columns, "p", "cat", ir.AnyWord()).tolist() == [True, False, False, False]
    positions, scores = bm25(columns, "p", "cat dog")
    alone = bm25(texts("cat", "dog bird fish"), "p", "cat dog")
    assert positions.tolist() == [0, 2]
    assert scores.tolist() == alone[1].tolist()


def test_a_deletion_reuses_the_segment_and_an_older_version_does_not_lose_rows() -> None:
    cache = Cache()
    one = [fragment("one", "cat", "cat", "dog")]
    older = MemoryColumns(one, cache=cache)
    newer = MemoryColumns([fragment("one", "cat", None, "dog")], deleted=[1], cache=cache)
    newest = MemoryColumns([fragment("one", None, None, "dog")], deleted=[0, 1], cache=cache)
    # Read first with the row gone: what stood there is unknown, so the older version must look for itself.
    from_newer = segments(newer, "p")[0].segment
    assert segments(newest, "p")[0].segment is from_newer
    assert text_mask(older, "p", "cat", ir.AnyWord()).tolist() == [True, True, False]
    from_older = segments(older, "p")[0].segment
    assert segments(newer, "p")[0].segment is from_older
    assert text_mask(newer, "p", "cat", ir.AnyWord()).tolist() == [True, False, False]
    assert text_mask(newest, "p", "cat", ir.AnyWord()).tolist() == [False, False, False]


def test_a_word_is_read_once_for_a_version(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = texts("tea and milk", None, "milk", "tea tea", deleted=[3])
    first = [found.tolist() for found in bm25(columns, "p", "tea milk")]
    monkeypatch.setattr(text_module, "with_segments", lambda *_: pytest.fail("read again"))
    assert [found.tolist() for found in bm25(columns, "p", "milk tea")] == first
    assert corpus_of(columns, "p", "tea").holding == {"tea": 1}
