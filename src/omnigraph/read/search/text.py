"""Full-text matching and BM25 over a property of one table version.

The inverted form is derived from the column itself, so the rows found never depend on which indices exist.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.errors import OptionInvalid
from omnigraph.lang import ir
from omnigraph.read.search.analyzer import analyzer_of, query_words
from omnigraph.read.search.fuzzy import within_edits
from omnigraph.read.search.segment import Segment
from omnigraph.read.search.segments import segments
from omnigraph.read.search.source import Bools, Columns, Positions

K1 = 1.2  # how soon further occurrences of a word stop counting
B = 0.75  # how much long texts are discounted

QueryWords = tuple[tuple[str, int], ...]


# --- matching ----------------------------------------------------------------------------------------------------


def text_match(
    columns: Columns,
    prop: str,
    query: str,
    mode: ir.TextMode,
    positions: Positions | None = None,
) -> pa.BooleanArray:
    """Whether the texts at the positions (default: all) match; null for a null text and for position -1."""
    hits = text_mask(columns, prop, query, mode)
    absent = [segment.lengths < 0 for segment in segments(columns, prop)]
    nulls = np.concatenate([np.empty(0, np.bool_), *absent])
    if positions is not None:
        hits, nulls = _at(positions, hits, False), _at(positions, nulls, True)
    return pa.array(hits, pa.bool_(), mask=nulls)


def text_mask(
    columns: Columns,
    prop: str,
    query: str,
    mode: ir.TextMode,
    positions: Positions | None = None,
) -> Bools:
    """`text_match` where unknown counts as false: what a filter keeps. Deleted rows never match."""
    words = query_words(query, analyzer_of(columns.kind.properties[prop]))
    hits = np.zeros(columns.n, np.bool_)
    if words:
        parts = [_matches(segment, words, mode) for segment in segments(columns, prop)]
        hits = np.concatenate([hits[:0], *parts])
    if columns.live is not None:
        hits &= columns.live
    return hits if positions is None else _at(positions, hits, False)


def _at(positions: Positions, values: Bools, unbound: bool) -> Bools:
    """The values at the positions; position -1 falls on the value put at the end."""
    return np.append(values, unbound)[positions]


def _matches(segment: Segment, words: QueryWords, mode: ir.TextMode) -> Bools:
    distinct = {word for word, _ in words}
    match mode:
        case ir.AnyWord():
            return _holding_any(segment, [segment.occurrences(word) for word in distinct])
        case ir.AllWords():
            return _holding_all(segment, distinct)
        case ir.Phrase():
            return _holding_phrase(segment, words)
        case ir.Fuzzy(edits):
            limit = _edits(edits)
            near = {n for w in distinct for n in within_edits(segment.vocabulary, w, limit)}
            return _holding_any(segment, [segment.numbered(number) for number in near])


def _edits(edits: ir.Expr) -> int:
    """The caller replaces parameters by their values; what remains to be checked is the value."""
    value = edits.value if isinstance(edits, ir.Literal) else None
    if not isinstance(value, int) or value < 0:
        raise OptionInvalid(f"the number of edits of fuzzy() must be 0 or more, not {value}")
    return value


def _holding_any(segment: Segment, slices: list[slice]) -> Bools:
    hits = np.zeros(segment.size, np.bool_)
    for part in slices:
        hits[segment.rows[part]] = True
    return hits


def _holding_all(segment: Segment, words: set[str]) -> Bools:
    hits = np.ones(segment.size, np.bool_)
    for word in words:
        hits &= _holding_any(segment, [segment.occurrences(word)])
    return hits


def _holding_phrase(segment: Segment, words: QueryWords) -> Bools:
    """Where some row has every word of the phrase at the phrase's own distances.

    Each occurrence votes for the place at which the phrase would have to begin; the phrase is there where all words
    agree. Beginnings are numbers that grow with row and place, so agreement is a search in sorted arrays, from the
    rarest word to the most frequent one.
    """
    first, last = words[0][1], words[-1][1]
    stride = 1 + int(segment.places.max(initial=0)) + last - first
    slices = [(segment.occurrences(word), place - first) for word, place in words]
    slices.sort(key=lambda item: item[0].stop - item[0].start)
    begins = _begins(segment, *slices[0], stride)
    for part, place in slices[1:]:
        others = _begins(segment, part, place, stride)
        at = np.searchsorted(others, begins)
        found = at < len(others)
        found[found] = others[at[found]] == begins[found]
        begins = begins[found]
    hits = np.zeros(segment.size, np.bool_)
    hits[begins // stride] = True
    return hits


def _begins(segment: Segment, part: slice, place: int, stride: int) -> npt.NDArray[np.int64]:
    rows = segment.rows[part].astype(np.int64)
    return rows * stride + segment.places[part] - place


# --- ranking -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Corpus:
    """What BM25 has to know of all texts together, which may be found part by part and added up."""

    texts: int  # that are not null
    words: int
    holding: Mapping[str, int]  # words of the query, and how many texts hold each

    def __add__(self, other: Corpus) -> Corpus:
        holding = {word: n + other.holding[word] for word, n in self.holding.items()}
        return Corpus(self.texts + other.texts, self.words + other.words, holding)

    @property
    def mean(self) -> float:
        """Words per text."""
        return self.words / max(self.texts, 1)


def corpus_of(columns: Columns, prop: str, query: str) -> Corpus:
    """The texts of a table version, as far as they matter to a query."""
    found = _found(columns, prop, query)
    texts, words = _size(columns, prop)
    return Corpus(texts, words, {word: len(each.rows) for word, each in found.items()})


def bm25(
    columns: Columns, prop: str, query: str, corpus: Corpus | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """The positions of the texts with some word of the query, ascending, and their scores.

    Statistics are exact: the texts of this very table version that are not null, or those of `corpus` where these
    columns are a part of it. Each distinct word of the query counts once: ln(1 + (N - n + 0.5) / (n + 0.5)) * f *
    (K1 + 1) / (f + K1 * (1 - B + B * length / mean length)), where n of N texts hold the word, and this one f times.
    Words are added in alphabetical order, so equal texts score alike.
    """
    scores, hits = np.zeros(columns.n), np.zeros(columns.n, np.bool_)
    corpus = corpus_of(columns, prop, query) if corpus is None else corpus
    for word, found in _found(columns, prop, query).items():
        scores[found.rows] += _score(found, corpus, corpus.holding[word])
        hits[found.rows] = True
    positions = np.flatnonzero(hits)
    return positions, scores[positions]


@dataclass(frozen=True, slots=True)
class _Found:
    """The texts that hold a word: where they stand, how often each holds it, and how long each is."""

    rows: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int32]


def _found(columns: Columns, prop: str, query: str) -> dict[str, _Found]:
    """The texts that hold each word of a query, words in alphabetical order."""
    analyzer = analyzer_of(columns.kind.properties[prop])
    words = {word for word, _ in query_words(query, analyzer)}
    return {word: _frequencies(columns, prop, word) for word in sorted(words)}


def _size(columns: Columns, prop: str) -> tuple[int, int]:
    """How many texts there are, and how many words they have."""
    analyzer = analyzer_of(columns.kind.properties[prop])
    kept_as = f"search/corpus/{prop}/{analyzer.signature}"
    return columns.derived(kept_as, lambda: _counted(columns, prop), lambda _: 64)


def _counted(columns: Columns, prop: str) -> tuple[int, int]:
    parts = [segment.lengths for segment in segments(columns, prop)]
    lengths = np.concatenate([np.empty(0, np.int32), *parts])
    counted = lengths >= 0 if columns.live is None else (lengths >= 0) & columns.live
    return int(counted.sum()), int(lengths[counted].sum(dtype=np.int64))


def _frequencies(columns: Columns, prop: str, word: str) -> _Found:
    rows, lengths, start = [np.empty(0, np.int64)], [np.empty(0, np.int32)], 0
    for segment in segments(columns, prop):
        rows.append(segment.rows[segment.occurrences(word)].astype(np.int64) + start)
        lengths.append(segment.lengths[rows[-1] - start])
        start += segment.size
    every, long = np.concatenate(rows), np.concatenate(lengths)
    if columns.live is not None:
        every, long = every[columns.live[every]], long[columns.live[every]]
    firsts = np.flatnonzero(np.diff(every, prepend=-1))
    return _Found(every[firsts], np.diff(firsts, append=len(every)), long[firsts])


def _score(found: _Found, corpus: Corpus, holding: int) -> npt.NDArray[np.float64]:
    rarity = math.log(1 + (corpus.texts - holding + 0.5) / (holding + 0.5))
    discount = K1 * (1 - B + B * found.lengths / corpus.mean)
    return rarity * found.counts * (K1 + 1) / (found.counts + discount)
