"""What tables of a lake and arrays of JSON are made of, compared with other libraries over generated input."""

from __future__ import annotations

import io
import json
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from omnigraph.write.input.json_arrays import as_lines
from omnigraph.write.input.lakes.bitmaps import MAGIC, framed, positions
from omnigraph.write.input.problems import InputInvalid

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('ab"\\[]{},: \n\tü', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text('a\\"]', max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


class Slow(io.BytesIO):
    """Gives a few bytes at a time."""

    def __init__(self, data: bytes, step: int) -> None:
        super().__init__(data)
        self.step = step

    def read(self, size: int | None = -1) -> bytes:
        return super().read(self.step)


def lines_of(data: bytes, step: int) -> list[bytes]:
    stream = as_lines(Slow(data, step), "people.json")
    text = b"".join(iter(lambda: stream.read(step), b""))
    assert len(text) == len(data)
    return [line for line in text.split(b"\n") if line.strip()]


@given(
    st.lists(st.dictionaries(st.text("ab", min_size=1), VALUES), max_size=5),
    st.integers(1, 40),
    st.sampled_from([None, 1]),
)
def test_an_array_is_lines_wherever_it_is_cut(
    items: list[object], step: int, indent: int | None
) -> None:
    data = b" \n" + json.dumps(items, indent=indent, ensure_ascii=False).encode() + b"\n "
    step = max(step, 3)  # the head must hold the bracket
    assert [json.loads(line) for line in lines_of(data, step)] == items


@pytest.mark.parametrize("text", ['[{"a": 1}', '[{"a": 1}] x', "[1] [2]", "[1]]", '["a'])
def test_an_array_that_does_not_end_well_is_refused(text: str) -> None:
    with pytest.raises(InputInvalid, match="its array"):
        lines_of(text.encode(), 100)


@pytest.mark.parametrize("seed", range(20))
def test_bitmaps_of_another_library_are_read(seed: int) -> None:
    """Few values, many, long runs, and values beyond 32 bits."""
    chance = random.Random(seed)
    values = BitMap64(chance.sample(range(1 << 18), chance.choice([0, 1, 100, 30_000])))
    for _ in range(chance.randrange(4)):
        start = chance.randrange(1 << chance.choice([17, 34]))
        values |= BitMap64(range(start, start + chance.randrange(1, 70_000)))
    if chance.random() < 0.7:
        values.run_optimize()
    vector = MAGIC.to_bytes(4, "little") + values.serialize()
    assert np.array_equal(positions(vector), np.array(list(values), np.int64))


def test_a_damaged_vector_is_refused() -> None:
    vector = MAGIC.to_bytes(4, "little") + BitMap64([1, 2, 70_000]).serialize()
    for bad in (vector[:-3], b"1234" + vector[4:], vector[:12], b""):
        with pytest.raises(InputInvalid, match="deletion vector"):
            positions(bad)
    with pytest.raises(InputInvalid, match="checksum"):
        framed(len(vector).to_bytes(4, "big") + vector + b"0000")
