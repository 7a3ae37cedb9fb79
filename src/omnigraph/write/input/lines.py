"""Lines of a block by their positions, so that whole columns can be processed without Python objects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.frozen import frozen
from omnigraph.values.misfit import Misfit
from omnigraph.write.input.options import Options

Positions = np.ndarray[tuple[int], np.dtype[np.int64]]
Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]
Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]
PAD = 4096  # zeros after a block, so that a comparison at its end stays inside
PIECE_BYTES = 1 << 20
STRUCTURE = np.isin(np.arange(256), list(b"{}[],:"))
WHITE = np.isin(np.arange(256), (9, 13, 32))


@frozen
class LineBlock:
    """Some whole lines of a file. `raw` has `PAD` zeros after the last line's end."""

    raw: bytes
    size: int
    first_line: int
    file: str | None = None


@frozen
class Lines:
    """Lines of one block: `[starts, ends)` without white space around them, and their numbers in the file."""

    block: LineBlock
    starts: Positions
    ends: Positions
    numbers: Positions

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def data(self) -> Bytes:
        return np.frombuffer(self.block.raw, np.uint8)

    def where(self, mask: Mask) -> Lines:
        """The lines selected by a mask."""
        if mask.all():
            return self
        return replace(
            self, starts=self.starts[mask], ends=self.ends[mask], numbers=self.numbers[mask]
        )

    def line(self, row: int) -> bytes:
        return self.block.raw[self.starts[row] : self.ends[row]]

    def each(self) -> Iterator[tuple[int, bytes]]:
        """Numbers and bytes, one by one."""
        raw = self.block.raw
        for number, start, end in zip(
            self.numbers.tolist(), self.starts.tolist(), self.ends.tolist(), strict=True
        ):
            yield number, raw[start:end]

    def texts(self, starts: Positions, ends: Positions) -> pa.StringArray:
        """The texts between positions, which must ascend; the block must be UTF-8."""
        return slices(self.block.raw, starts, ends).cast(pa.string())

    def joined(self) -> pa.Buffer:
        """The lines with a line break after each, as one buffer."""
        picked = slices(self.block.raw, self.starts, self.ends)
        return pc.binary_join_element_wise(picked, b"\n", b"").buffers()[2]

    def match(self, positions: Positions, literal: bytes) -> Mask:
        """Whether these bytes stand at the positions: eight at a time, as long as they do."""
        data = self.block.raw
        words = np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))
        count = len(positions)
        rows = np.arange(count)
        for offset in range(0, len(literal), 8):
            piece = literal[offset : offset + 8]
            mask = np.uint64((1 << (8 * len(piece))) - 1)
            good = (words[positions + offset] & mask) == np.uint64(int.from_bytes(piece, "little"))
            if not good.all():
                rows, positions = rows[good], positions[good]
        same: Mask = np.zeros(count, np.bool_)
        same[rows] = True
        return same


def slices(raw: bytes, starts: Positions, ends: Positions) -> pa.BinaryArray:
    """The bytes between ascending positions: every other value of an array over the whole block."""
    offsets = np.empty(2 * len(starts) + 1, np.int32)
    offsets[0:-1:2], offsets[1::2] = starts, ends
    offsets[-1] = ends[-1] if len(ends) else 0
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(raw)]
    whole = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)
    return whole.take(pa.array(np.arange(0, len(offsets) - 1, 2, dtype=np.int32)))


def lines_of(block: LineBlock) -> Lines:
    """The lines of a block that are not blank."""
    breaks = np.frombuffer(block.raw, np.uint8)[: block.size] == 10
    starts, ends = _between(breaks)
    numbers = _numbers(block, breaks, starts)
    lines = Lines(block, *_stripped(block.raw, starts, ends), numbers)
    return lines.where(lines.starts < lines.ends)


def _between(breaks: Mask) -> tuple[Positions, Positions]:
    """Where the texts between line breaks begin and end; empty lines are left out."""
    padded = np.concatenate([[True], breaks, [True]])
    starts = np.flatnonzero(padded[:-1] & ~padded[1:]).astype(np.int64)
    ends = np.flatnonzero(~padded[:-1] & padded[1:]).astype(np.int64)
    return starts, ends


def _numbers(block: LineBlock, breaks: Mask, starts: Positions) -> Positions:
    """The line each of these positions is in."""
    lines = np.count_nonzero(breaks) + (not breaks[-1:].all())
    if lines == len(starts):  # none of them is empty
        return np.arange(block.first_line, block.first_line + len(starts), dtype=np.int64)
    before = np.cumsum(breaks, dtype=np.int32)
    return block.first_line + before[starts].astype(np.int64)


def _stripped(raw: bytes, starts: Positions, ends: Positions) -> tuple[Positions, Positions]:
    """Positions without white space at either end. Carriage returns are common, other white space is not."""
    data = np.frombuffer(raw, np.uint8)
    ends = ends - (data[ends - 1] == 13)
    white = (starts < ends) & (WHITE[data[starts]] | WHITE[data[ends - 1]])
    rows = np.flatnonzero(white)
    if len(rows):
        ink = ~WHITE[data]
        places = np.flatnonzero(ink).astype(np.int32)
        before = np.cumsum(ink, dtype=np.int32) - ink  # how many of them are before a position
        begin, end = starts[rows], ends[rows]
        starts[rows] = begin = np.minimum(places[before[begin]], end)
        ends[rows] = np.where(begin < end, places[before[end] - 1] + 1, end)
    return starts, ends


def refuse_oversized(lines: Lines, options: Options) -> tuple[Lines, list[tuple[int, Misfit]]]:
    """The lines within the limits, and errors for the others."""
    lengths = lines.ends - lines.starts
    if not len(lines) or lengths.max() <= options.line_structure_max:
        return lines, []
    fits: Mask = np.ones(len(lines), np.bool_)
    refused = []
    for row in np.flatnonzero(lengths > options.line_structure_max).tolist():
        why = _oversized(lines.line(row), options)
        if why is not None:
            fits[row] = False
            refused.append((int(lines.numbers[row]), Misfit(why, rule="limit")))
    return lines.where(fits), refused


def _oversized(line: bytes, options: Options) -> str | None:
    if len(line) > options.line_bytes_max:
        return f"the line is longer than line_bytes_max ({options.line_bytes_max} bytes)"
    if structural_characters(line) > options.line_structure_max:
        limit = options.line_structure_max
        return f"the line has more structure than line_structure_max ({limit} characters)"
    return None


def structural_characters(line: bytes) -> int:
    """How many of `{}[],:` stand outside texts, and one more."""
    plain = line.replace(b"\\\\", b"").replace(b'\\"', b"")  # escaped quotes do not end a text
    count, inside = 1, np.uint8(0)
    for start in range(0, len(plain), PIECE_BYTES):
        data = np.frombuffer(plain, np.uint8, min(PIECE_BYTES, len(plain) - start), start)
        quotes = np.bitwise_xor.accumulate((data == 34).view(np.uint8)) ^ inside
        count += int(np.count_nonzero(STRUCTURE[data] & (quotes == 0)))
        inside = quotes[-1]
    return count
