"""Lines that differ only in their values, read column by column.

Programs write records of one type alike: the same members in the same order with the same spaces. The first such line
is read exactly; its structure then holds for every line with the same bytes between the values. So only
positions are compared, and the values are cut out as whole columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.frozen import frozen
from omnigraph.model.types import FLOATS, INTEGERS
from omnigraph.values.columns import to_column
from omnigraph.values.misfit import Misfit
from omnigraph.write.input.exact import Record
from omnigraph.write.input.lines import PAD, Lines, Mask, Positions
from omnigraph.write.input.options import Options
from omnigraph.write.input.parts import InputPart
from omnigraph.write.input.problems import Unsure

TOKEN = re.compile(rb'("[^"]*")|(-?[0-9][0-9.eE+-]*)|([{}:,])|[ ]+')
NUMBER = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
LITERAL_BYTES_MAX = PAD - 64
LINE_BYTES_MAX = 256 << 10

Place = Callable[[tuple[str, ...]], str | None]  # a path in the record to the column it fills


@frozen
class TemplateSlot:
    """A value of a template: the column it fills, and whether it is quoted."""

    column: str
    quoted: bool


@frozen
class Template:
    """`literals[0] slots[0] literals[1] …`: one more literal than slots."""

    literals: tuple[bytes, ...]
    slots: tuple[TemplateSlot, ...]

    @property
    def quotes(self) -> int:
        """How many quotes every line of this form has; those around a value belong to the adjacent literals."""
        return sum(literal.count(b'"') for literal in self.literals)


def template_of(line: bytes, place: Place) -> Template | None:
    """The template of a line; None for lines with arrays, escapes, truth values or nulls, nor for very long ones."""
    if len(line) > LINE_BYTES_MAX:
        return None
    literals, slots = [], []
    path: list[str] = []
    position = start = 0  # of the literal being collected
    key: str | None = None
    while position < len(line):
        token = TOKEN.match(line, position)
        if token is None or b"\\" in token[0]:
            return None
        text, number, mark = token.groups()
        if mark == b"{" and key is not None:
            path.append(key)
        elif mark == b"}" and path:
            path.pop()
        if mark in (b"{", b",", b"}"):
            key = None
        elif text is not None and key is None:
            key = text[1:-1].decode()
        elif text is not None or number is not None:
            column = place((*path, key or ""))
            if column is not None:
                quote = 0 if text is None else 1
                literals.append(line[start : token.start() + quote])
                slots.append(TemplateSlot(column, text is not None))
                start = token.end() - quote
        position = token.end()
    literals.append(line[start:])
    repeated = len({slot.column for slot in slots}) < len(slots)  # an id in `data` and beside it
    if repeated or max(map(len, literals)) > LITERAL_BYTES_MAX:
        return None
    return Template(tuple(literals), tuple(slots))


@frozen
class Quotes:
    """Where the quotes of a block are, and the number of the first one of each line."""

    positions: Positions
    first: Positions
    counts: Positions


def quotes_of(lines: Lines) -> Quotes:
    """The quotes of some lines of a block."""
    positions = np.flatnonzero(lines.data == 34)
    each, rest = divmod(len(positions), max(1, len(lines)))
    if each and not rest:  # perhaps every line has as many
        first = np.arange(0, len(positions), each)
        inside = positions[first] >= lines.starts
        if inside.all() and (positions[first + (each - 1)] < lines.ends).all():
            return Quotes(positions, first, np.full(len(lines), each))
    bounds = np.searchsorted(positions, np.stack([lines.starts, lines.ends]))
    return Quotes(positions, bounds[0], bounds[1] - bounds[0])


def is_simple(lines: Lines) -> bool:
    """Whether the block has no escapes, no control characters except line breaks, and is UTF-8."""
    raw, size = lines.block.raw, lines.block.size
    if raw.find(b"\\", 0, size) >= 0:
        return False
    data = lines.data[:size]
    control = np.count_nonzero(data < 32) - np.count_nonzero(data == 10)
    if control and control != raw.count(b"\r\n", 0, size):
        return False
    offsets = pa.py_buffer(np.array([0, size], np.int32))
    try:
        pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(raw)]).cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def matching(
    template: Template, lines: Lines, quotes: Quotes
) -> tuple[Mask, list[tuple[Positions, Positions]]]:
    """Which lines have this form, and where the values of those that do begin and end."""
    fits: Mask = quotes.counts == template.quotes
    places: list[tuple[Positions, Positions]] = []
    rows = np.flatnonzero(fits)
    at, seen = lines.starts[rows], 0
    for slot, before, after in zip(
        template.slots, template.literals[:-1], template.literals[1:], strict=True
    ):
        good = lines.match(at, before)
        begin = at + len(before)
        seen += before.count(b'"')
        end = _end(slot, after, lines.ends[rows], quotes, quotes.first[rows] + seen)
        rows, places, begin, end = _narrowed(good & (begin <= end), rows, places, begin, end)
        places.append((begin, end))
        at = end
    last = template.literals[-1]
    good = lines.match(at, last) & (at + len(last) == lines.ends[rows])
    rows, places, _, _ = _narrowed(good, rows, places, at, at)
    fits = np.zeros(len(lines), np.bool_)
    fits[rows] = True
    return fits, places


def _end(
    slot: TemplateSlot, after: bytes, line_ends: Positions, quotes: Quotes, following: Positions
) -> Positions:
    """Where a value ends: at the next quote, less what the template has between them."""
    if slot.quoted:
        return quotes.positions[following]
    gap = after.find(b'"')
    return line_ends - len(after) if gap < 0 else quotes.positions[following] - gap


def _narrowed(
    good: Mask,
    rows: Positions,
    places: list[tuple[Positions, Positions]],
    begin: Positions,
    end: Positions,
) -> tuple[Positions, list[tuple[Positions, Positions]], Positions, Positions]:
    if good.all():
        return rows, places, begin, end
    return rows[good], [(b[good], e[good]) for b, e in places], begin[good], end[good]


def read_columns(
    template: Template,
    record: Record,
    lines: Lines,
    places: list[tuple[Positions, Positions]],
    options: Options,
) -> InputPart:
    """The columns of lines that have a form; `Unsure` if a value is not clearly of its type."""
    columns = {
        slot.column: _column(slot, record, lines, begin, end, options)
        for slot, (begin, end) in zip(template.slots, places, strict=True)
    }
    return InputPart(record.kind, columns, len(lines), {}, pa.array(lines.numbers))


def _column(
    slot: TemplateSlot,
    record: Record,
    lines: Lines,
    begin: Positions,
    end: Positions,
    options: Options,
) -> pa.Array | pa.ChunkedArray:
    texts = lines.texts(begin, end)
    prop = record.kind.properties.get(slot.column)
    if prop is None or slot.column in ("id", "src", "dst"):
        if not slot.quoted:
            raise Unsure
        return texts
    try:
        values = texts if slot.quoted else _numbers(texts, lines, begin, end, prop.type.scalar)
        return to_column(values, prop.type, options.context)
    except (Misfit, pa.ArrowInvalid):
        raise Unsure from None


def _numbers(
    texts: pa.StringArray, lines: Lines, begin: Positions, end: Positions, scalar: object
) -> pa.Array:
    if scalar in FLOATS:
        if not pc.all(pc.match_substring_regex(texts, NUMBER)).as_py():
            raise Unsure
        numbers = texts.cast(pa.float64())
        if pc.any(pc.is_inf(numbers), min_count=0).as_py():
            raise Unsure  # a number that is too large
        return numbers
    data = lines.data
    first, second = data[begin], data[np.minimum(begin + 1, end)]
    single = end - begin == 1
    negative = (first == 45) & (second >= 49) & (second <= 57)
    plain = ((first >= 49) & (first <= 57)) | ((first == 48) & single) | negative
    if not plain.all():
        raise Unsure
    wanted = pa.uint64() if scalar in INTEGERS and not negative.any() else pa.int64()
    return texts.cast(wanted)
