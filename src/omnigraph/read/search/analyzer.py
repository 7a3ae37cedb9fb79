"""Text to words: the one analyzer behind indices, queries and scans.

A text is split at everything that is not a letter, mark or digit; ideographs and hiragana, which are written without
spaces, are words by themselves. Cutting and counting run inside Arrow over whole columns. Everything that needs Unicode
tables or a stemmer runs once per DISTINCT word.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import Stemmer

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.model.catalog import Property
from omnigraph.model.frozen import frozen

ANNOTATION = "analyzer"  # `@analyzer("simple")` on a String property
FORMAT = 1  # raised whenever the same text may give other words
REMEMBERED_CHARS_MAX = 1024  # of a query whose words are remembered
ROWS_PER_SLICE = 1 << 16  # split together; bounds the memory

_BETWEEN_WORDS = r"[^\p{L}\p{M}\p{N}]+"
_UNSPACED = r"([\p{Han}\p{Hiragana}])"

NO_NUMBERS: npt.NDArray[np.int32] = np.empty(0, np.int32)


def _letters(lower: bool) -> npt.NDArray[np.uint8]:
    """What each byte of ASCII counts as in a word; 0 where it separates words."""
    kept = (chr(byte) if byte < 128 and chr(byte).isalnum() else "\0" for byte in range(256))
    return np.frombuffer("".join(c.lower() if lower else c for c in kept).encode(), np.uint8)


LOWER_CASE, AS_WRITTEN = _letters(True), _letters(False)

_STOP_WORDS = """
a an and are as at be but by for from has have he her his i if in into is it its no not of on or our she so such that
the their them then there these they this to was we were will with you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())


class AnalyzerUnknown(OmnigraphError):
    """A property names an analyzer that does not exist."""

    code, kind = "analyzer_unknown", Kind.INVALID
    default_help = (
        'Write @analyzer("simple"), @analyzer("none") or a language: "english", "german", "french" and the others of '
        "Snowball, all listed in the guide to search."
    )


@frozen
class Analyzer:
    """The normalization of a word after splitting the text."""

    name: str
    folds: bool = True  # compatibility forms and upper case are levelled
    stops: frozenset[str] = frozenset()
    stems: str | None = None  # the language of the stemmer

    @property
    def signature(self) -> str:
        """Stored next to derived files: words of another signature may not be mixed with these."""
        return f"{self.name}/{FORMAT}/{Stemmer.version()}"

    def normalise(self, distinct: list[str]) -> list[str | None]:
        """The indexed form of each word; None for those that are left out."""
        words = [_fold(word) for word in distinct] if self.folds else distinct
        stems = _stem(words, self.stems) if self.stems else words
        return [
            None if not word or word in self.stops else stem
            for word, stem in zip(words, stems, strict=True)
        ]


ENGLISH = Analyzer("english", stops=STOP_WORDS, stems="english")
SIMPLE = Analyzer("simple")
NONE = Analyzer("none", folds=False)
SUPERSEDED = (
    "porter",
    "dutch_porter",
)  # older stemmers, kept by Snowball for what was indexed with them
LANGUAGES = tuple(name for name in Stemmer.algorithms() if name not in SUPERSEDED)
ANALYZERS = {
    **{language: Analyzer(language, stems=language) for language in LANGUAGES},
    **{analyzer.name: analyzer for analyzer in (ENGLISH, SIMPLE, NONE)},
}


def analyzer_of(prop: Property) -> Analyzer:
    """The analyzer of a property, English by default."""
    name = next((a.value for a in prop.annotations if a.name == ANNOTATION), ENGLISH.name)
    analyzer = ANALYZERS.get(str(name))
    if analyzer is None:
        raise AnalyzerUnknown(f"property '{prop.name}' names the unknown analyzer '{name}'")
    return analyzer


@frozen
class Words:
    """The words of a column of texts, in the order of the texts."""

    vocabulary: pa.StringArray  # distinct, ascending by UTF-8 bytes
    codes: npt.NDArray[np.int32]  # per word: its number in the vocabulary
    rows: npt.NDArray[np.int32]  # per word: the text it is from
    places: npt.NDArray[np.int32]  # per word: its place; words left out keep theirs


def analyze(texts: pa.Array, analyzer: Analyzer) -> Words:
    """All words of all texts; a null text has none."""
    cuts = [_cut(part, analyzer) for part in _slices(texts)]
    raw = pa.chunked_array([cut.words.dictionary for cut in cuts], pa.string()).unique()
    vocabulary, renumbered = _vocabulary(raw, analyzer)
    codes, rows, places = [NO_NUMBERS], [NO_NUMBERS], [NO_NUMBERS]
    for number, cut in enumerate(cuts):
        own = renumbered[pc.index_in(cut.words.dictionary, raw).to_numpy()]
        code = own[cut.words.indices.to_numpy()]
        kept = np.flatnonzero(code >= 0)
        codes.append(code[kept])
        rows.append(cut.rows[kept] + np.int32(number * ROWS_PER_SLICE))
        places.append(cut.places[kept])
    return Words(vocabulary, *(np.concatenate(parts) for parts in (codes, rows, places)))


def query_words(query: str, analyzer: Analyzer) -> tuple[tuple[str, int], ...]:
    """The words of a query with their places, through the very code that analyses columns."""
    if len(query) > REMEMBERED_CHARS_MAX:
        return _query_words(query, analyzer)
    return _remembered_words(query, analyzer)


def _query_words(query: str, analyzer: Analyzer) -> tuple[tuple[str, int], ...]:
    # Half a surrogate pair is not a character: it separates words, as any sign does.
    words = analyze(pa.array([query.encode(errors="replace")], pa.string()), analyzer)
    spelled = words.vocabulary.take(pa.array(words.codes)).to_pylist()
    return tuple(zip(spelled, words.places.tolist(), strict=True))


_remembered_words = lru_cache(maxsize=1024)(_query_words)


def _slices(texts: pa.Array) -> Iterator[pa.Array]:
    for start in range(0, len(texts), ROWS_PER_SLICE):
        # A column too large for 32-bit offsets comes with wide ones; a slice of it does not need them.
        yield texts.slice(start, ROWS_PER_SLICE).cast(pa.string())


@frozen
class _Cut:
    """The words of some texts as they are written."""

    words: pa.DictionaryArray
    rows: npt.NDArray[np.int32]
    places: npt.NDArray[np.int32]


def _cut(texts: pa.StringArray, analyzer: Analyzer) -> _Cut:
    """Split a slice of texts. If all of them are ASCII, a table of the 128 characters suffices."""
    if pc.all(pc.string_is_ascii(texts), min_count=0).as_py():
        return _cut_ascii(texts, LOWER_CASE if analyzer.folds else AS_WRITTEN)
    lists = words_as_written(texts)
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
    # A separator at either end of a text gives an empty word, which is left out later.
    return _Cut(lists.flatten().dictionary_encode(), *_numbered(counts))


def _cut_ascii(texts: pa.StringArray, letters: npt.NDArray[np.uint8]) -> _Cut:
    """Words are runs of bytes that `letters` does not map to 0, within a text."""
    offsets, written = string_buffers(pc.fill_null(texts, ""))
    spelled = letters[written]
    inside = np.zeros(len(spelled) + 1, np.bool_)
    np.not_equal(spelled, 0, out=inside[:-1])
    begins, ends = inside.copy(), inside.copy()  # of words: also where a text begins or ends
    begins[1:] &= ~inside[:-1]
    begins[offsets[:-1]] |= inside[offsets[:-1]]
    ends[:-1] &= begins[1:] | ~inside[1:]
    begin = np.flatnonzero(begins)
    lengths = np.flatnonzero(ends) - begin + 1
    cuts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    kept = pa.py_buffer(spelled[inside[:-1]])
    words = pa.StringArray.from_buffers(len(begin), pa.py_buffer(cuts), kept)
    return _Cut(words.dictionary_encode(), *_numbered(np.diff(begin.searchsorted(offsets))))


def _numbered(counts: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int32], ...]:
    """For consecutive words, given the number in each text: the text, and the place in it."""
    rows = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    firsts = (np.cumsum(counts) - counts).astype(np.int32)
    return rows, np.arange(len(rows), dtype=np.int32) - np.repeat(firsts, counts)


def string_buffers(
    strings: pa.StringArray,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Offsets from zero, and the bytes they cut."""
    _, offsets, data = strings.buffers()
    if not len(strings) or data is None:
        return np.zeros(len(strings) + 1, np.int32), np.empty(0, np.uint8)
    cuts = np.frombuffer(offsets, np.int32)[strings.offset : strings.offset + len(strings) + 1]
    return cuts - cuts[0], np.frombuffer(data, np.uint8)[cuts[0] : cuts[-1]]


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


def _stem(words: list[str], language: str) -> list[str]:
    """Snowball's stemmer of a language; a new object per call, as threads must not share one."""
    stems: list[str] = Stemmer.Stemmer(language, 0).stemWords(words)
    return stems


def words_as_written(texts: pa.StringArray) -> pa.ListArray:
    """The words of each text in order, spelled as they are in it; some of them empty."""
    spaced = pc.replace_substring_regex(texts, _UNSPACED, r" \1 ")
    return pc.split_pattern_regex(spaced, _BETWEEN_WORDS)
