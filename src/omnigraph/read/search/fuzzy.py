"""Words within a few edits of another, over a whole vocabulary at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.search.segment import string_buffers


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
