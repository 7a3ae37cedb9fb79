"""Lines of JSON as rows of the schema's types: the fastest reading that is safe, block by block.

Three readings, each a subset of the next: `template` for lines that differ only in their values, `arrow_json` for
lines of one type, `exact` for everything, and for every error. Blocks are read by several threads, and only a few
are in memory besides their results.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import msgspec
import numpy as np

from omnigraph.errors import Violation
from omnigraph.model.catalog import Catalog, NodeOrEdgeType, NodeType
from omnigraph.model.frozen import frozen
from omnigraph.values.misfit import Misfit
from omnigraph.write.input.arrow_json import read_group
from omnigraph.write.input.exact import Record, read_record, read_row, to_part
from omnigraph.write.input.lines import LineBlock, Lines, Mask, lines_of, refuse_oversized
from omnigraph.write.input.options import Options
from omnigraph.write.input.parts import InputPart, in_line_order
from omnigraph.write.input.problems import PROBLEMS_MAX, Problems, Unsure
from omnigraph.write.input.template import (
    is_simple,
    matching,
    quotes_of,
    read_columns,
    template_of,
)

FORMS_MAX = 8  # templates tried per block
FORM_SHARE_MIN = 0.02  # a template that fits fewer lines ends the search
HEAD = re.compile(rb'\{[ ]{0,8}"(type|edge)"[ ]{0,8}:[ ]{0,8}"([^"\\]{0,200})"(?=[ ]*[,}])')
HEADS_MAX = 32  # beginnings tried per block
RECORDS_MAX = 1 << 14  # held as Python objects
LONG_LINE_BYTES = 16 << 10  # so expensive that a few of them fill a report
THREADS_MAX = 8
UNREAD, DOOMED = -1, -2


@frozen
class LineFormat:
    """What a line is: a graph record, or a plain row of one type."""

    catalog: Catalog
    options: Options
    rows_of: NodeOrEdgeType | None = None

    def exactly(self, line: bytes) -> Record:
        if self.rows_of is not None:
            return read_row(line, self.rows_of, self.options)
        return read_record(line, self.catalog, self.options)

    @property
    def strictly(self) -> LineFormat:
        """The same without tolerated deviations: the fast readings support only the strict rules."""
        return replace(self, options=replace(self.options, compatible=False))

    def column(self, path: tuple[str, ...]) -> str | None:
        """The column a member of the record fills; None for those that name the type."""
        match path:
            case ("data", name) if self.rows_of is None:
                return name
            case ("type" | "edge",) if self.rows_of is None:
                return None
            case ("id",):
                return "id"
            case ("from",) if not isinstance(self.rows_of, NodeType):
                return "src"
            case ("to",) if not isinstance(self.rows_of, NodeType):
                return "dst"
            case (name,) if self.rows_of is not None:
                return name
        return None


@frozen
class Reading:
    """The result of reading a block."""

    parts: tuple[InputPart, ...]
    problems: tuple[Violation, ...] = ()
    is_full: bool = False  # with problems: the rest was not read


def read_blocks(
    blocks: Iterable[LineBlock], form: LineFormat, problems: Problems
) -> Iterator[InputPart]:
    """The rows of all blocks, in order. Errors go to `problems`; its bound ends the reading."""
    for reading in _in_threads(blocks, lambda block: read_block(block, form, problems.most)):
        problems.extend(reading.problems)
        if reading.is_full:
            problems.settle()
        if problems.keeps_good or not problems.found:
            yield from reading.parts


def _in_threads(
    blocks: Iterable[LineBlock], read: Callable[[LineBlock], Reading]
) -> Iterator[Reading]:
    """Read some blocks ahead, and hand the results out in order."""
    threads = min(THREADS_MAX, os.cpu_count() or 1)
    source = iter(blocks)
    first = next(source, None)
    if first is None:
        return
    second = next(source, None)
    if second is None:  # a small input needs no threads
        yield read(first)
        return
    waiting: deque[Future[Reading]] = deque()
    with ThreadPoolExecutor(threads, "omnigraph-load") as pool:
        try:
            waiting.extend(pool.submit(read, block) for block in (first, second))
            for block in source:
                waiting.append(pool.submit(read, block))
                if len(waiting) > 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for one in waiting:
                one.cancel()


def read_block(block: LineBlock, form: LineFormat, most: int = PROBLEMS_MAX) -> Reading:
    """The rows of one block, or at most `most` problems: the lines after them are not read."""
    lines, refused = refuse_oversized(lines_of(block), form.options)
    problems = [why.violation("", block.file, number) for number, why in refused]
    parts: list[InputPart] = []
    lines = _by_template(lines, form.strictly, parts)
    lines = _by_type(lines, form.strictly, parts, most)
    is_full = not _one_by_one(lines, form, parts, problems, most)
    problems.sort(key=lambda problem: problem.line or 0)
    placed = (replace(part, file=block.file) for part in in_line_order(parts))
    return Reading(tuple(placed), tuple(problems), is_full)


def _by_template(lines: Lines, form: LineFormat, parts: list[InputPart]) -> Lines:
    """Take out the lines that share a form; the rest is returned."""
    if len(lines) < 4 or not is_simple(lines):
        return lines
    quotes, left = quotes_of(lines), np.ones(len(lines), np.bool_)
    untried = left.copy()
    for _ in range(FORMS_MAX):
        row = int(np.argmax(untried))
        if not untried[row]:
            break
        template = template_of(lines.line(row), form.column)
        record = None if template is None else _certain(lines.line(row), form)
        if template is None or record is None:
            break
        fits, places = matching(template, lines, quotes)
        untried &= ~fits
        if fits.sum() < FORM_SHARE_MIN * len(lines):
            break
        try:
            parts.append(read_columns(template, record, lines.where(fits), places, form.options))
        except Unsure:
            continue
        left &= ~fits
    return lines.where(left)


def _certain(line: bytes, form: LineFormat) -> Record | None:
    try:
        return form.exactly(line)
    except Misfit:
        return None


def _by_type(lines: Lines, form: LineFormat, parts: list[InputPart], most: int) -> Lines:
    """Take out the lines of each type that read unambiguously; the rest is returned."""
    if len(lines) < 4:
        return lines
    lines, kinds = _types(lines, form, most)
    left = np.ones(len(lines), np.bool_)
    for kind, mask in kinds:
        try:
            group = lines.where(mask)
            parts.append(read_group(group, kind, form.options, envelope=form.rows_of is None))
        except Unsure:
            continue
        left &= ~mask
    return lines.where(left)


def _types(
    lines: Lines, form: LineFormat, most: int
) -> tuple[Lines, list[tuple[NodeOrEdgeType, Mask]]]:
    """Lines by the type they name, as far as they have to be read: a full report needs no more."""
    if form.rows_of is not None:
        return lines, [(form.rows_of, np.ones(len(lines), np.bool_))]
    census = _Census(lines, form)
    census.by_beginning()
    census.by_reading(most)
    doomed = np.flatnonzero(census.labels == DOOMED)
    count = len(lines) if len(doomed) < most else int(doomed[most - 1]) + 1
    labels = census.labels[:count]
    read = lines.where(np.arange(len(lines)) < count)
    return read, [(kind, labels == label) for label, kind in enumerate(census.kinds)]


class _Envelope(msgspec.Struct):
    type: str | None = None
    edge: str | None = None


_envelopes = msgspec.json.Decoder(_Envelope)


class _Census:
    """Which type each line names. A line that is certainly not a record of any type is doomed."""

    def __init__(self, lines: Lines, form: LineFormat) -> None:
        self._lines = lines
        self._form = form
        self._known: dict[str, int] = {}
        self.kinds: list[NodeOrEdgeType] = []  # by their labels
        self.labels = np.full(len(lines), UNREAD, np.int32)

    def by_beginning(self) -> None:
        """Programs write a type the same way each time: one beginning identifies many lines."""
        for _ in range(HEADS_MAX):
            left = self.labels == UNREAD
            row = int(np.argmax(left))
            head = HEAD.match(self._lines.line(row)) if left[row] else None
            if head is None:
                return
            same = left & self._lines.match(self._lines.starts, head[0])
            self.labels[same] = self._label(head[1] == b"edge", head[2].decode(errors="replace"))

    def by_reading(self, most: int) -> None:
        """The other lines one by one, until a full report of doomed lines is reached."""
        doomed = 0
        for row in map(int, np.flatnonzero(self.labels == UNREAD)):
            label = self._read(self._lines.line(row))
            self.labels[row] = label
            doomed += label == DOOMED
            if doomed >= most:
                return

    def _read(self, line: bytes) -> int:
        try:
            found = _envelopes.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return UNREAD if _certain(line, self._form) is not None else DOOMED
        if (found.type is None) == (found.edge is None):
            return DOOMED
        return self._label(found.edge is not None, found.type or found.edge or "")

    def _label(self, edge: bool, name: str) -> int:
        kind = _named(edge, name, self._form.catalog)
        if kind is None:
            return DOOMED
        if kind.table_id not in self._known:
            self._known[kind.table_id] = len(self.kinds)
            self.kinds.append(kind)
        return self._known[kind.table_id]


def _named(edge: bool, name: str, catalog: Catalog) -> NodeOrEdgeType | None:
    return catalog.edge(name) if edge else catalog.nodes.get(name)


def _one_by_one(
    lines: Lines, form: LineFormat, parts: list[InputPart], problems: list[Violation], most: int
) -> bool:
    """Whether all lines were read: a report is full at `most` problems, with long lines counting more."""
    weight = len(problems)
    groups: dict[str, list[tuple[int, Record]]] = {}
    for number, line in lines.each():
        try:
            record = form.exactly(line)
        except Misfit as misfit:
            problems.append(misfit.violation(_type_name(form), lines.block.file, number))
            weight += 1 + len(line) // LONG_LINE_BYTES
            if weight >= most:
                return False
            continue
        group = groups.setdefault(record.kind.table_id, [])
        group.append((number, record))
        if len(group) >= RECORDS_MAX:
            parts.append(_part(groups.pop(record.kind.table_id)))
    parts.extend(map(_part, groups.values()))
    return True


def _part(group: list[tuple[int, Record]]) -> InputPart:
    numbers = [number for number, _ in group]
    return to_part(group[0][1].kind, [record.fields for _, record in group], numbers)


def _type_name(form: LineFormat) -> str:
    return "" if form.rows_of is None else form.rows_of.name
