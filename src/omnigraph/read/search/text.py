"""Full-text matching and BM25 over a property of one table version.

The inverted form is made from the column itself, stored or not, so the rows found never depend on which indices exist.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import OptionInvalid
from omnigraph.lang import ir
from omnigraph.model.frozen import frozen
from omnigraph.read.arrays import distinct, reached_by
from omnigraph.read.search.analyzer import analyzer_of, string_buffers
from omnigraph.read.search.inverted import Postings, Segment
from omnigraph.read.search.queries import Clause, QueryReader, QueryWords
from omnigraph.read.search.segments import Placed, with_segments
from omnigraph.read.search.source import Bools, Columns, Positions

K1 = 1.2  # how soon further occurrences of a word stop counting
B = 0.75  # how much long texts are discounted
SLACK = 1 + 1e-9  # what rounding may add to a score
NARROW_ROWS_MAX = 2**32 - 1  # of a table whose positions fit half the bytes
LEADING = 16  # times the wanted texts, from which the score limit is estimated
FOUND_BYTES = 256  # what the texts of a word cost in the cache besides their rows
SPARSE_PART = 64  # fewer texts than one in this many are sorted rather than marked

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[Any]  # positions, as narrow as the table allows

NO_ROWS: Ints = np.empty(0, np.int64)


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
    nulls = with_segments(columns, prop, lambda placed: _joined([p.segment.nulls for p in placed]))
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
    matches = _matcher(query, QueryReader.of(columns.kind.properties[prop]), mode)
    hits = np.zeros(columns.n, np.bool_)
    if matches is not None:
        hits = with_segments(
            columns, prop, lambda placed: _joined([matches(p.segment) for p in placed])
        )
    if columns.live is not None:
        hits &= columns.live
    return hits if positions is None else _at(positions, hits, False)


def _joined(parts: Sequence[Bools]) -> Bools:
    return np.concatenate([np.empty(0, np.bool_), *parts])


def _at(positions: Positions, values: Bools, unbound: bool) -> Bools:
    """The values at the positions; position -1 falls on the value put at the end."""
    return np.append(values, unbound)[positions]


def _matcher(
    query: str, reading: QueryReader, mode: ir.TextMode
) -> Callable[[Segment], Bools] | None:
    """The test of a query on a segment; None for a query without words, which matches nothing."""
    match mode:
        case ir.BooleanQuery():
            clauses = reading.clauses(query)
            return partial(_holding_clauses, clauses=clauses, reading=reading) if clauses else None
        case ir.Prefix():
            begins = [Clause((), word) for word in reading.beginnings(query)]
            return partial(_every_clause, clauses=begins, reading=reading) if begins else None
        case _:
            words = reading.words(query)
            return partial(_matches, words=words, reading=reading, mode=mode) if words else None


def _matches(segment: Segment, words: QueryWords, reading: QueryReader, mode: ir.TextMode) -> Bools:
    distinct = sorted({word for word, _ in words})
    match mode:
        case ir.AnyWord():
            return _holding_any(segment, segment.postings(reading.expanded(distinct)))
        case ir.AllWords():
            return _every_word(segment, distinct, reading)
        case ir.Fuzzy(edits):
            limit, vocabulary = _edits(edits), segment.vocabulary()
            near = [within_edits(vocabulary, word, limit) for word in distinct]
            return _marked(segment, segment.holders(np.unique(np.concatenate(near))))
        case _:
            return _holding_phrase(segment, words)


def _every_word(segment: Segment, words: Iterable[str], reading: QueryReader) -> Bools:
    hits = np.ones(segment.size, np.bool_)
    for word in words:
        hits &= _holding_any(segment, segment.postings(reading.alternatives(word)))
    return hits


def _holding_clauses(segment: Segment, clauses: list[Clause], reading: QueryReader) -> Bools:
    """All clauses with a plus, else some without a sign, and none with a minus."""
    must = [clause for clause in clauses if clause.sign == "+"]
    free = [clause for clause in clauses if not clause.sign]
    hits = _every_clause(segment, must, reading) & ~segment.nulls
    if free and not must:
        hits &= np.logical_or.reduce([_holding_clause(segment, c, reading) for c in free])
    for clause in clauses:
        if clause.sign == "-":
            hits &= ~_holding_clause(segment, clause, reading)
    return hits


def _every_clause(segment: Segment, clauses: list[Clause], reading: QueryReader) -> Bools:
    hits = np.ones(segment.size, np.bool_)
    for clause in clauses:
        hits &= _holding_clause(segment, clause, reading)
    return hits


def _holding_clause(segment: Segment, clause: Clause, reading: QueryReader) -> Bools:
    words = clause.words
    if len(words) > 1:
        hits = _holding_phrase(segment, words)
    else:
        hits = _every_word(segment, [word for word, _ in words], reading)
    if clause.begins is not None:
        hits &= _holding_beginning(segment, clause.begins, reading)
    return hits


def _holding_beginning(segment: Segment, begins: str, reading: QueryReader) -> Bools:
    """Some word with this prefix. Those of the text are stems: `running` is found by what it is reduced to."""
    stem = [word for word, _ in reading.words(begins)]
    hits = _marked(segment, segment.holders(segment.beginning_with(begins)))
    return hits | _holding_any(segment, segment.postings(stem))


def _edits(edits: ir.Expr) -> int:
    """The caller replaces parameters by their values; what remains to be checked is the value."""
    value = edits.value if isinstance(edits, ir.Literal) else None
    if not isinstance(value, int) or value < 0:
        raise OptionInvalid(f"the number of edits of fuzzy() must be 0 or more, not {value}")
    return value


def _holding_any(segment: Segment, found: Iterable[Postings]) -> Bools:
    return _marked(segment, (each.rows for each in found))


def _marked(segment: Segment, found: Iterable[Rows]) -> Bools:
    hits = np.zeros(segment.size, np.bool_)
    for rows in found:
        hits[rows] = True
    return hits


def _holding_phrase(segment: Segment, words: QueryWords) -> Bools:
    """Where some row has every word of the phrase at the distances of the phrase.

    Each occurrence votes for the place at which the phrase would have to begin; the phrase occurs where all words
    agree. Beginnings are numbers that grow with row and place, so agreement is a search in sorted arrays, from the
    rarest word to the most frequent one.
    """
    first, last = words[0][1], words[-1][1]
    stride = 1 + segment.facts.longest + last - first
    found = segment.occurrences([word for word, _ in words])
    votes = [
        rows * stride + places - (place - first)
        for (rows, places), (_, place) in zip(found, words, strict=True)
    ]
    votes.sort(key=len)
    begins = votes[0]
    for others in votes[1:]:
        at = np.searchsorted(others, begins)
        agreed = at < len(others)
        agreed[agreed] = others[at[agreed]] == begins[agreed]
        begins = begins[agreed]
    hits = np.zeros(segment.size, np.bool_)
    hits[begins // stride] = True
    return hits


# --- ranking -----------------------------------------------------------------------------------------------------


@frozen
class Corpus:
    """BM25 statistics of all texts together, which can be computed part by part and added up."""

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
    words = _words(columns, prop, query)
    return _corpus(columns, prop, _lengths(columns, prop), _found(columns, prop, words))


def bm25(
    columns: Columns,
    prop: str,
    query: str,
    corpus: Corpus | None = None,
    *,
    best: int | None = None,
) -> tuple[Ints, Floats]:
    """The positions of the texts with some word of the query, ascending, and their scores.

    Statistics are exact: the texts of this very table version that are not null, or those of `corpus` where these
    columns are a part of it. Each distinct word of the query counts once: ln(1 + (N - n + 0.5) / (n + 0.5)) * f *
    (K1 + 1) / (f + K1 * (1 - B + B * length / mean length)), where n of N texts hold the word, and this one f times.
    Words are added in alphabetical order, so equal texts score alike. With `best`, texts may be left out that are not
    among the `best` best.
    """
    words = _words(columns, prop, query)
    lengths, found = _lengths(columns, prop), _found(columns, prop, words)
    known = _corpus(columns, prop, lengths, found) if corpus is None else corpus
    weights = {word: _rarity(known, known.holding[word]) for word in found}
    counted = _counted(columns, prop, lengths)
    discounts = _discount(np.arange(-1.0, counted.longest + 1), known.mean)
    scoring = _Scoring(found, weights, lengths, discounts, counted.shortest, columns.n)
    rows, scores = scoring.all_of(words) if best is None else scoring.best_of(words, best)
    return rows.astype(np.int64, copy=False), scores


@frozen
class _Found:
    """The texts that hold a word: their positions, and how often each holds it."""

    rows: Rows
    counts: npt.NDArray[Any]

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self.counts.nbytes + FOUND_BYTES


def _words(columns: Columns, prop: str, query: str) -> list[str]:
    """The distinct words of a query and their synonyms, in alphabetical order."""
    reading = QueryReader.of(columns.kind.properties[prop])
    return reading.expanded(word for word, _ in reading.words(query))


def _found(columns: Columns, prop: str, words: list[str]) -> dict[str, _Found]:
    """The texts that hold each word, without those that are deleted; remembered for this version."""
    kept_as = (*columns.identity, "search/word", prop, _signature(columns, prop))
    found = {word: columns.cache.get((*kept_as, word)) for word in words}
    unknown = [word for word in words if found[word] is None]
    if unknown:
        read = with_segments(columns, prop, lambda placed: _read(columns, placed, unknown))
        for word, each in read.items():
            columns.cache.put((*kept_as, word), each, each.nbytes)
        found |= read
    return found


def _signature(columns: Columns, prop: str) -> str:
    return analyzer_of(columns.kind.properties[prop]).signature


def _read(columns: Columns, placed: tuple[Placed, ...], words: list[str]) -> dict[str, _Found]:
    kind = np.uint32 if columns.n <= NARROW_ROWS_MAX else np.int64
    parts = [[(each.start, part) for part in each.segment.postings(words)] for each in placed]
    every = {word: _put_together(found, kind) for word, *found in zip(words, *parts, strict=True)}
    if columns.live is None:
        return every
    kept = {word: columns.live[found.rows] for word, found in every.items()}
    return {w: _Found(found.rows[kept[w]], found.counts[kept[w]]) for w, found in every.items()}


def _put_together(parts: Sequence[tuple[int, Postings]], kind: type[Any]) -> _Found:
    """The postings of one word in all segments; of a single one, without a copy."""
    rows = [_moved(found.rows, start, kind) for start, found in parts if len(found.rows)]
    counts = [found.counts for _, found in parts if len(found.rows)]
    if len(rows) == 1:
        return _Found(rows[0], counts[0])
    return _Found(
        np.concatenate([np.empty(0, kind), *rows]),
        np.concatenate([np.empty(0, np.uint8), *counts]),
    )


def _moved(rows: Rows, start: int, kind: type[Any]) -> Rows:
    return np.add(rows, start, dtype=kind) if start else rows.astype(kind, copy=False)


def _lengths(columns: Columns, prop: str) -> npt.NDArray[Any]:
    """By position: the number of words + 1, or 0 for a null text."""

    def joined(placed: tuple[Placed, ...]) -> npt.NDArray[Any]:
        return np.concatenate(
            [np.empty(0, np.uint8), *(p.segment.stored_lengths() for p in placed)]
        )

    return columns.derived(
        f"search/lengths/{prop}/{_signature(columns, prop)}",
        lambda: with_segments(columns, prop, joined),
        lambda found: found.nbytes,
    )


def _corpus(
    columns: Columns, prop: str, lengths: npt.NDArray[Any], found: dict[str, _Found]
) -> Corpus:
    counted = _counted(columns, prop, lengths)
    holding = {word: len(each.rows) for word, each in found.items()}
    return Corpus(counted.texts, counted.words, holding)


@frozen
class _TextCounts:
    """The texts of a table version, independent of the query."""

    texts: int
    words: int
    shortest: int  # in words, of those that have any
    longest: int


def _counted(columns: Columns, prop: str, lengths: npt.NDArray[Any]) -> _TextCounts:
    def counted() -> _TextCounts:
        known = lengths if columns.live is None else lengths[columns.live]
        texts = int(np.count_nonzero(known))
        shortest = int(known[known > 1].min(initial=np.iinfo(known.dtype).max)) - 1
        longest = int(known.max(initial=1)) - 1
        return _TextCounts(texts, int(known.sum(dtype=np.int64)) - texts, shortest, longest)

    kept_as = f"search/corpus/{prop}/{_signature(columns, prop)}"
    return columns.derived(kept_as, counted, lambda _: 64)


def _rarity(corpus: Corpus, holding: int) -> float:
    return math.log(1 + (corpus.texts - holding + 0.5) / (holding + 0.5))


def _discount(lengths: Floats, mean: float) -> Floats:
    """How much a word counts less in texts of these lengths."""
    return K1 * (1 - B + B * lengths / (mean or 1.0))


@frozen
class _Scoring:
    """What scores are made of."""

    found: dict[str, _Found]
    weights: dict[str, float]
    lengths: npt.NDArray[Any]  # plus 1, by position
    discounts: Floats  # by length plus 1
    shortest: int
    size: int

    def all_of(self, words: list[str]) -> tuple[Rows, Floats]:
        """The texts that hold some of the words, and their scores."""
        if len(words) == 1:
            found = self.found[words[0]]
            return found.rows, self._score(words[0], found.rows, found.counts)
        held = sum(len(self.found[word].rows) for word in words)
        if held * SPARSE_PART <= self.size:
            return self._few(words)
        scores, hits = np.zeros(self.size), np.zeros(self.size, np.bool_)
        for word in words:
            found = self.found[word]
            scores[found.rows] += self._score(word, found.rows, found.counts)
            hits[found.rows] = True
        rows = np.flatnonzero(hits).astype(found.rows.dtype, copy=False)
        return rows, scores[rows]

    def _few(self, words: list[str]) -> tuple[Rows, Floats]:
        held = [self.found[word].rows for word in words] or [NO_ROWS]
        rows = distinct(np.concatenate(held), self.size)
        scores = np.zeros(len(rows))
        for word in words:
            found = self.found[word]
            scores[rows.searchsorted(found.rows)] += self._score(word, found.rows, found.counts)
        return rows, scores

    def best_of(self, words: list[str], best: int) -> tuple[Rows, Floats]:
        """The same, as far as they can be among the best.

        Words that can add most come first. Once `best` texts score more than all remaining words could add, a text
        without any of the words seen so far is out, and so is one that the remaining words cannot lift as high.
        """
        most = {word: self._most(word) for word in words}
        by_weight = sorted(words, key=lambda word: -most[word])
        for i in range(1, len(words)):
            rest = SLACK * sum(most[word] for word in by_weight[i:])
            rows, scores = self.all_of(sorted(by_weight[:i]))
            if 0 < best <= len(rows):
                limit = self._reached(rows, scores, words, best)
                if rest < limit:
                    return self._at(rows[scores + rest >= limit], words)
        rows, scores = self.all_of(words)
        if 0 < best <= len(rows):
            kept = np.flatnonzero(scores >= reached_by(scores, best))
            rows, scores = rows[kept], scores[kept]
        return rows, scores

    def _reached(self, rows: Rows, scores: Floats, words: list[str], best: int) -> float:
        """A score that `best` texts reach with all words: those that are best with some of them."""
        many = min(LEADING * best, len(rows))
        leading = rows[np.flatnonzero(scores >= reached_by(scores, many))[:many]]
        return reached_by(self._at(leading, words)[1], best)

    def _at(self, rows: Rows, words: list[str]) -> tuple[Rows, Floats]:
        """The scores of some texts."""
        scores = np.zeros(len(rows))
        for word in words:
            found = self.found[word]
            at = found.rows.searchsorted(rows)
            at[at == len(found.rows)] = 0
            held = found.rows[at] == rows if len(found.rows) else np.zeros(len(rows), np.bool_)
            scores[held] += self._score(word, rows[held], found.counts[at[held]])
        return rows, scores

    def _most(self, word: str) -> float:
        """The most a word can add to a text: its highest count, in the shortest text."""
        often = int(self.found[word].counts.max(initial=0))
        if not often:
            return 0.0
        return float(self._given(word, self.discounts[self.shortest + 1], often))

    def _score(self, word: str, rows: Rows, counts: npt.NDArray[Any]) -> Floats:
        given: Floats = self._given(
            word, self.discounts[self.lengths[rows]], counts.astype(np.float64)
        )
        return given

    def _given(self, word: str, discount: Any, held: Any) -> Any:
        return self.weights[word] * held * (K1 + 1) / (held + discount)


def within_edits(vocabulary: pa.StringArray, word: str, edits: int) -> npt.NDArray[np.int64]:
    """The numbers of the words at Levenshtein distance `edits` or less, counted in characters, ascending.

    An edit inserts, removes or replaces one character. Words are compared per length, so that a length out of reach
    costs nothing.
    """
    lengths = pc.utf8_length(vocabulary).to_numpy()
    reachable = np.abs(lengths - len(word)) <= edits
    found = [
        numbers[_near(_letters(vocabulary.take(pa.array(numbers)), length), word, edits)]
        for length in np.unique(lengths[reachable]).tolist()
        for numbers in [np.flatnonzero(lengths == length)]
    ]
    return np.sort(np.concatenate([np.empty(0, np.int64), *found]))


def _letters(words: pa.StringArray, length: int) -> npt.NDArray[np.uint32]:
    """The code points of words of equal length: one line per character, one column per word."""
    _, letters = string_buffers(words)
    points = np.frombuffer(letters.tobytes().decode().encode("utf-32-le"), np.uint32)
    return np.ascontiguousarray(points.reshape(len(words), length).T)


def _near(letters: npt.NDArray[np.uint32], word: str, edits: int) -> npt.NDArray[np.intp]:
    """The columns within reach of the word.

    The classic table of edit distances, with an array over all columns in each cell. Cells further than `edits` from
    the diagonal cannot lead to a match and stay out of reach.
    """
    length, count = letters.shape
    far = np.full(count, edits + 1, np.int32)
    line = [np.full(count, j, np.int32) for j in range(length + 1)]
    for i, letter in enumerate(map(ord, word), start=1):
        above, line = line, [far] * (length + 1)
        line[0] = np.full(count, i, np.int32)
        for j in range(max(1, i - edits), min(length, i + edits) + 1):
            moved = np.minimum(above[j], line[j - 1]) + np.int32(1)
            line[j] = np.minimum(moved, above[j - 1] + (letters[j - 1] != letter))
    return np.flatnonzero(line[length] <= edits)
