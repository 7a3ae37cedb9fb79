"""The inverted form of some texts: which of them hold a word, how often and where.

It is a handful of flat arrays, in memory or in a file (`stored_text.py`), read through one function, given the
wanted parts of arrays. So a query touches only its own words, and nothing else has to be in memory.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.frozen import frozen
from omnigraph.read.search.analyzer import Analyzer, Words, analyze, string_buffers

Array = npt.NDArray[Any]
Wanted = tuple[str, int, int]  # an array, and the bounds of the wanted part
Read = Callable[[Sequence[Wanted]], list[Array]]
Span = tuple[int, int]
Occurrences = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]

WORDS_PER_BLOCK = 512  # of which the first is known without reading anything
PAST_LETTERS = b"\xff"  # after every letter in UTF-8
KEY_BITS = 64


class TextFacts(msgspec.Struct, frozen=True):
    """Facts about the texts that need no array."""

    rows: int
    texts: int  # that are not null
    words: int
    longest: int  # the last place of a word
    vocabulary: int
    blocks: list[bytes]  # the first word of each block of the vocabulary
    block_starts: list[int]  # where its letters begin, and where the last block ends


@frozen
class Postings:
    """The rows that hold a word, ascending, and how often each does, as narrow as they are stored."""

    rows: Array
    counts: Array


NOWHERE = (0, 0)


class Segment:
    """The inverted form of some consecutive rows.

    Arrays: `lengths` per row (words + 1; 0 for a null text); `letters` and `ends`, the vocabulary in the order of its
    bytes; `starts`, where the entries of each word begin in `rows` and `counts`; `firsts`, where its occurrences begin
    in `places`.
    """

    def __init__(self, facts: TextFacts, read: Read, nbytes: int = 0) -> None:
        self.facts = facts
        self.nbytes = nbytes
        self._read = read

    @property
    def size(self) -> int:
        """The number of rows."""
        return self.facts.rows

    def stored_lengths(self) -> Array:
        """The number of words + 1 of each row; 0 for a null text."""
        (stored,) = self._read([("lengths", 0, self.size)])
        return stored

    @cached_property
    def nulls(self) -> npt.NDArray[np.bool_]:
        """Which rows have no text."""
        if self.facts.texts == self.size:
            return np.zeros(self.size, np.bool_)
        return np.asarray(self.stored_lengths() == 0)

    def vocabulary(self) -> pa.StringArray:
        """Every word, ascending by UTF-8 bytes, which is also the order of Python strings."""
        return self._spelled(0, len(self.facts.blocks))

    def beginning_with(self, begins: str) -> npt.NDArray[np.int64]:
        """The numbers of the words with a prefix, which are side by side."""
        blocks, spelled = self.facts.blocks, begins.encode()
        first = max(bisect_right(blocks, spelled) - 1, 0)
        last = bisect_right(blocks, spelled + PAST_LETTERS)
        found = pc.starts_with(self._spelled(first, last), begins)
        return np.flatnonzero(found.to_numpy(zero_copy_only=False)) + first * WORDS_PER_BLOCK

    def _spelled(self, first: int, last: int) -> pa.StringArray:
        """The words of some blocks of the vocabulary."""
        size = max(min(last * WORDS_PER_BLOCK, self.facts.vocabulary) - first * WORDS_PER_BLOCK, 0)
        if not size:
            return pa.array([], pa.string())
        at, starts = first * WORDS_PER_BLOCK, self.facts.block_starts
        wanted: list[Wanted] = [
            ("ends", at, at + size + 1),
            ("letters", starts[first], starts[last]),
        ]
        ends, letters = self._read(wanted)
        cuts = pa.py_buffer((ends - ends[0]).astype(np.int32))
        return pa.StringArray.from_buffers(size, cuts, pa.py_buffer(letters))

    # --- where words are -------------------------------------------------------------------------------------------

    def postings(self, words: Sequence[str]) -> list[Postings]:
        """The rows that hold each of the words."""
        return self._postings([span for span, _ in self._look_up(words)])

    def holders(self, numbers: npt.NDArray[np.int64]) -> list[Array]:
        """The rows that hold some of the words with these numbers, ascending; words side by side are one read."""
        runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1) if len(numbers) else []
        starts = self._read([("starts", int(run[0]), int(run[-1]) + 2) for run in runs])
        return self._read([("rows", int(part[0]), int(part[-1])) for part in starts])

    def occurrences(self, words: Sequence[str]) -> list[Occurrences]:
        """The row and the place of each occurrence of the words, in that order."""
        found = self._look_up(words)
        entries = self._postings([span for span, _ in found])
        places = self._read([("places", *span) for _, span in found])
        return [
            (np.repeat(each.rows.astype(np.int64), each.counts), place.astype(np.int64))
            for each, place in zip(entries, places, strict=True)
        ]

    def _postings(self, spans: list[Span]) -> list[Postings]:
        wanted = [(name, *span) for span in spans for name in ("rows", "counts")]
        read = iter(self._read(wanted))
        return [Postings(next(read), next(read)) for _ in spans]

    def _look_up(self, words: Sequence[str]) -> list[tuple[Span, Span]]:
        """The ranges of the entries and occurrences of each word; empty for a missing word."""
        spelled = [word.encode() for word in words]
        blocks = [bisect_right(self.facts.blocks, word) - 1 for word in spelled]
        needed = sorted({block for block in blocks if block >= 0})
        read = iter(self._read([part for block in needed for part in self._block(block)]))
        known = {block: _Block(*(next(read) for _ in range(4))) for block in needed}
        return [
            (NOWHERE, NOWHERE) if block < 0 else known[block].spans(word)
            for word, block in zip(spelled, blocks, strict=True)
        ]

    def _block(self, block: int) -> Iterator[Wanted]:
        first = block * WORDS_PER_BLOCK
        last = min(first + WORDS_PER_BLOCK, self.facts.vocabulary)
        starts = self.facts.block_starts
        yield "letters", starts[block], starts[block + 1]
        for name in ("ends", "starts", "firsts"):
            yield name, first, last + 1


@frozen
class _Block:
    """Some consecutive words of the vocabulary."""

    letters: Array
    ends: Array
    starts: Array
    firsts: Array

    def spans(self, word: bytes) -> tuple[Span, Span]:
        letters, cuts = self.letters.data, self.ends.data  # only a few of them are read
        first = cuts[0]

        def spelled(i: int) -> bytes:
            return bytes(letters[cuts[i] - first : cuts[i + 1] - first])

        at = bisect_left(range(len(cuts) - 1), word, key=spelled)
        if at == len(cuts) - 1 or spelled(at) != word:
            return NOWHERE, NOWHERE
        starts, firsts = self.starts[at : at + 2].tolist(), self.firsts[at : at + 2].tolist()
        return (starts[0], starts[1]), (firsts[0], firsts[1])


# --- making them -------------------------------------------------------------------------------------------------


def build_segment(texts: pa.Array, analyzer: Analyzer) -> Segment:
    """Invert a column of texts, in memory."""
    facts, arrays = invert(texts, analyzer)
    nbytes = sum(array.nbytes for array in arrays.values())

    def read(wanted: Sequence[Wanted]) -> list[Array]:
        return [arrays[name][start:stop] for name, start, stop in wanted]

    return Segment(facts, read, nbytes)


def invert(texts: pa.Array, analyzer: Analyzer) -> tuple[TextFacts, Mapping[str, Array]]:
    """The arrays of a segment, each of the narrowest numbers that hold it."""
    words = analyze(texts, analyzer)
    present = texts.is_valid().to_numpy(zero_copy_only=False)
    lengths = np.bincount(words.rows, minlength=len(texts)) + present
    size, longest = len(words.vocabulary), int(words.places.max(initial=0))
    ends, letters = string_buffers(words.vocabulary)
    entries = _entries(words, len(texts), longest)
    firsts = np.append(entries.at, len(words.codes))
    starts = entries.word.searchsorted(np.arange(size + 1))
    counts = np.diff(firsts)
    arrays = {
        "lengths": _narrow(lengths),
        "letters": letters,
        "ends": ends.astype(np.uint32),
        "starts": _narrow(starts),
        "firsts": _narrow(firsts[starts]),
        "rows": _narrow(entries.row),
        "counts": _narrow(counts),
        "places": entries.places,
    }
    blocks = range(0, size, WORDS_PER_BLOCK)
    facts = TextFacts(
        rows=len(texts),
        texts=int(present.sum()),
        words=len(words.codes),
        longest=longest,
        vocabulary=size,
        blocks=[words.vocabulary[first].as_py().encode() for first in blocks],
        block_starts=[int(ends[first]) for first in blocks] + [int(ends[-1])],
    )
    return facts, arrays


@frozen
class _Entries:
    """Occurrences by word, row and place, and the pairs of word and row among them."""

    at: npt.NDArray[np.int64]  # per pair, where its occurrences begin
    word: Array
    row: Array
    places: Array


def _entries(words: Words, rows: int, longest: int) -> _Entries:
    """Word, row and place in one number, where they fit: sorting those is the fastest way."""
    row_bits, place_bits = max(rows, 1).bit_length(), longest.bit_length()
    if len(words.vocabulary).bit_length() + row_bits + place_bits > KEY_BITS:
        return _entries_apart(words)
    keys = words.codes.astype(np.uint64)
    for bits, part in ((row_bits, words.rows), (place_bits, words.places)):
        keys <<= np.uint64(bits)
        keys |= part.view(np.uint32)
    keys.sort()
    places = _narrow(keys & np.uint64((1 << place_bits) - 1), longest)
    keys >>= np.uint64(place_bits)
    at = _changes(keys)
    pairs = keys[at]
    row = pairs & np.uint64((1 << row_bits) - 1)
    return _Entries(at, (pairs >> np.uint64(row_bits)).astype(np.int64), row, places)


def _entries_apart(words: Words) -> _Entries:
    order = np.lexsort((words.places, words.rows, words.codes))
    codes, rows = words.codes[order], words.rows[order]
    at = np.union1d(_changes(codes), _changes(rows))
    return _Entries(at, codes[at].astype(np.int64), rows[at], _narrow(words.places[order]))


def _changes(values: Array) -> npt.NDArray[np.int64]:
    """Where a value differs from the one before it."""
    differs = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=differs[1:])
    return np.flatnonzero(differs)


def _narrow(values: Array, largest: int | None = None) -> Array:
    largest = int(values.max(initial=0)) if largest is None else largest
    return values.astype(np.min_scalar_type(largest))
