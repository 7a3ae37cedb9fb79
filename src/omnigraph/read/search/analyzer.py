"""Text to words: the one analyzer behind indices, queries and scans.

A text is cut at everything that is no letter, mark or digit; ideographs and hiragana, which are written without spaces,
are words by themselves. Cutting and counting run inside Arrow over whole columns. Everything that needs Unicode tables
or a stemmer runs once per DISTINCT word.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import Stemmer

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.model.catalog import Property

ANNOTATION = "analyzer"  # `@analyzer("simple")` on a String property
FORMAT = 1  # raised whenever the same text may give other words
REMEMBERED_CHARS_MAX = 1024  # of a query whose words are remembered
ROWS_PER_SLICE = 1 << 16  # bounds the memory of what is cut at once

_BETWEEN_WORDS = r"[^\p{L}\p{M}\p{N}]+"
_BETWEEN_ASCII_WORDS = r"[^0-9A-Za-z]+"  # the same on ASCII, and far quicker to compile
_UNSPACED = r"([\p{Han}\p{Hiragana}])"

_STOP_WORDS = """
a an and are as at be but by for from has have he her his i if in into is it its no not of on or our she so such that
the their them then there these they this to was we were will with you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())


class AnalyzerUnknown(OmnigraphError):
    """A property names an analyzer that does not exist."""

    code, kind = "analyzer_unknown", Kind.INVALID
    default_help = 'Write @analyzer("english"), @analyzer("simple") or @analyzer("none").'


@dataclass(frozen=True, slots=True)
class Analyzer:
    """What happens to a word after it has been cut out of its text."""

    name: str
    folds: bool = True  # compatibility forms and upper case are levelled
    stops: frozenset[str] = frozenset()
    stems: bool = False

    @property
    def signature(self) -> str:
        """Stored next to derived files: words of another signature may not be mixed with these."""
        return f"{self.name}/{FORMAT}/{Stemmer.version()}"

    def normalise(self, distinct: list[str]) -> list[str | None]:
        """The indexed form of each word; None for those that are left out."""
        words = [_fold(word) for word in distinct] if self.folds else distinct
        stems = _stem(words) if self.stems else words
        return [
            None if not word or word in self.stops else stem
            for word, stem in zip(words, stems, strict=True)
        ]


ENGLISH = Analyzer("english", stops=STOP_WORDS, stems=True)
SIMPLE = Analyzer("simple")
NONE = Analyzer("none", folds=False)
ANALYZERS = {analyzer.name: analyzer for analyzer in (ENGLISH, SIMPLE, NONE)}


def analyzer_of(prop: Property) -> Analyzer:
    """The analyzer a property asks for, English unless it says otherwise."""
    name = next((a.value for a in prop.annotations if a.name == ANNOTATION), ENGLISH.name)
    analyzer = ANALYZERS.get(str(name))
    if analyzer is None:
        raise AnalyzerUnknown(f"property '{prop.name}' asks for the unknown analyzer '{name}'")
    return analyzer


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a column of texts, in the order of the texts."""

    vocabulary: pa.StringArray  # distinct, ascending by UTF-8 bytes
    codes: npt.NDArray[np.int32]  # per word: its number in the vocabulary
    rows: npt.NDArray[np.int32]  # per word: the text it is from
    places: npt.NDArray[np.int32]  # per word: where it stands; words left out keep their place


def analyze(texts: pa.Array, analyzer: Analyzer) -> Words:
    """All words of all texts; a null text has none."""
    cut = [_cut(part) for part in _slices(texts)]
    counts = np.concatenate([_counts(part) for part in cut] or [np.empty(0, np.int64)])
    raw = pa.chunked_array([part.flatten() for part in cut], pa.string()).dictionary_encode()
    encoded = raw.unify_dictionaries().combine_chunks()
    vocabulary, renumbered = _vocabulary(encoded.dictionary, analyzer)
    codes = renumbered[encoded.indices.to_numpy()]
    kept = codes >= 0
    rows = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    firsts = np.cumsum(counts) - counts
    places = np.arange(len(codes)) - np.repeat(firsts, counts)
    return Words(vocabulary, codes[kept], rows[kept], places[kept].astype(np.int32))


def query_words(query: str, analyzer: Analyzer) -> tuple[tuple[str, int], ...]:
    """The words of a query with their places, through the very code that analyses columns."""
    if len(query) > REMEMBERED_CHARS_MAX:
        return _query_words(query, analyzer)
    return _remembered_words(query, analyzer)


def _query_words(query: str, analyzer: Analyzer) -> tuple[tuple[str, int], ...]:
    # Half a surrogate pair is no character: it separates words, as any sign does.
    words = analyze(pa.array([query.encode(errors="replace")], pa.string()), analyzer)
    spelled = words.vocabulary.take(pa.array(words.codes)).to_pylist()
    return tuple(zip(spelled, words.places.tolist(), strict=True))


_remembered_words = lru_cache(maxsize=1024)(_query_words)


def _slices(texts: pa.Array) -> Iterator[pa.Array]:
    for start in range(0, len(texts), ROWS_PER_SLICE):
        # A column too large for 32-bit offsets comes with wide ones; a slice of it does not need them.
        yield texts.slice(start, ROWS_PER_SLICE).cast(pa.string())


def _cut(texts: pa.StringArray) -> pa.ListArray:
    """Lists of raw words. A separator at either end of a text gives an empty word, left out later."""
    if pc.all(pc.string_is_ascii(texts), min_count=0).as_py():
        return pc.split_pattern_regex(texts, _BETWEEN_ASCII_WORDS)
    spaced = pc.replace_substring_regex(texts, _UNSPACED, r" \1 ")
    return pc.split_pattern_regex(spaced, _BETWEEN_WORDS)


def _counts(lists: pa.ListArray) -> npt.NDArray[np.int64]:
    counts: npt.NDArray[np.int64] = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    return counts.astype(np.int64)


def _vocabulary(
    distinct: pa.StringArray, analyzer: Analyzer
) -> tuple[pa.StringArray, npt.NDArray[np.int32]]:
    """The sorted indexed words, and for each raw word its number among them, or -1."""
    normal = pa.array(analyzer.normalise(distinct.to_pylist()), pa.string())
    unique = normal.drop_null().unique()
    vocabulary = unique.take(pc.sort_indices(unique))
    numbers = pc.fill_null(pc.index_in(normal, vocabulary), -1)
    return vocabulary, numbers.to_numpy().astype(np.int32)


def _fold(word: str) -> str:
    if word.isascii():
        return word.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", word).casefold())


def _stem(words: list[str]) -> list[str]:
    """Snowball's English stemmer; one object per call, because it must not be shared by threads."""
    stems: list[str] = Stemmer.Stemmer("english", 0).stemWords(words)
    return stems
