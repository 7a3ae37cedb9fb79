"""The inverted form of a run of texts: for every word, where it occurs. Immutable arrays, ready to be stored."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.read.arrays import stable_order
from omnigraph.read.search.analyzer import Analyzer, analyze

Int32s = npt.NDArray[np.int32]
Array = npt.NDArray[np.int32] | npt.NDArray[np.int64] | npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Segment:
    """Occurrences sorted by word, then row, then place; those of word w lie in `starts[w] : starts[w + 1]`."""

    vocabulary: (
        pa.StringArray
    )  # ascending by UTF-8 bytes, which is also the order of Python strings
    starts: npt.NDArray[np.int64]
    rows: Int32s  # per occurrence, counted from the first row of the segment
    places: Int32s  # per occurrence
    lengths: Int32s  # per row: its words; -1 for a null text

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.lengths)

    @property
    def nbytes(self) -> int:
        arrays = (self.starts, self.rows, self.places, self.lengths)
        return int(self.vocabulary.nbytes) + sum(array.nbytes for array in arrays)

    def number(self, word: str) -> int | None:
        """The number of an indexed word."""
        total = len(self.vocabulary)
        at = bisect_left(range(total), word, key=lambda i: self.vocabulary[i].as_py())
        return at if at < total and self.vocabulary[at].as_py() == word else None

    def occurrences(self, word: str) -> slice:
        """Where the occurrences of a word lie; empty for an unknown word."""
        number = self.number(word)
        return slice(0, 0) if number is None else self.numbered(number)

    def numbered(self, number: int) -> slice:
        return slice(int(self.starts[number]), int(self.starts[number + 1]))

    def to_arrays(self) -> dict[str, Array]:
        """Everything as flat arrays, for a derived file; `from_arrays` takes them back, mapped or copied."""
        offsets, letters = string_buffers(self.vocabulary)
        return {
            "letters": letters,
            "offsets": offsets,
            "starts": self.starts,
            "rows": self.rows,
            "places": self.places,
            "lengths": self.lengths,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Segment:
        letters, offsets = pa.py_buffer(arrays["letters"]), pa.py_buffer(arrays["offsets"])
        vocabulary = pa.StringArray.from_buffers(len(arrays["offsets"]) - 1, offsets, letters)
        return cls(
            vocabulary,
            arrays["starts"].astype(np.int64, copy=False),
            arrays["rows"].astype(np.int32, copy=False),
            arrays["places"].astype(np.int32, copy=False),
            arrays["lengths"].astype(np.int32, copy=False),
        )


def build_segment(texts: pa.Array, analyzer: Analyzer) -> Segment:
    """Invert a column of texts."""
    words = analyze(texts, analyzer)
    order = stable_order(words.codes, len(words.vocabulary))
    counts = np.bincount(words.codes, minlength=len(words.vocabulary))
    lengths = np.bincount(words.rows, minlength=len(texts)).astype(np.int32)
    lengths[texts.is_null().to_numpy(zero_copy_only=False)] = -1
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Segment(words.vocabulary, starts, words.rows[order], words.places[order], lengths)


def string_buffers(strings: pa.StringArray) -> tuple[Int32s, npt.NDArray[np.uint8]]:
    """Offsets from zero, and the bytes they cut."""
    _, offsets, data = strings.buffers()
    cuts = np.frombuffer(offsets, np.int32)[strings.offset : strings.offset + len(strings) + 1]
    if data is None:
        return cuts.copy(), np.empty(0, np.uint8)
    return cuts - cuts[0], np.frombuffer(data, np.uint8)[cuts[0] : cuts[-1]]
