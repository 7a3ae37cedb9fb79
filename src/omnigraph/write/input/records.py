"""Lines of JSON as rows of the schema's types: the fastest reading that is certain, block by block.

Three readings, each a subset of the next: `template` for lines that differ in their values alone, `arrow_json` for
lines of one type, `exact` for everything, and for every error. Blocks are read by several threads, and at most a few
are in memory besides what was made of them.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from omnigraph.errors import Violation
from omnigraph.model.catalog import Catalog, EdgeType, NodeType
from omnigraph.write.input.arrow_json import read_group
from omnigraph.write.input.exact import Record, read_record, read_row, to_part
from omnigraph.write.input.lines import Block, Lines, Mask, lines_of, refuse_oversized
from omnigraph.write.input.options import Options
from omnigraph.write.input.parts import Part, in_line_order
from omnigraph.write.input.problems import PROBLEMS_MAX, Misfit, Problems, Unsure, violation
from omnigraph.write.input.template import (
    is_simple,
    matching,
    quotes_of,
    read_columns,
    template_of,
)

Kind = NodeType | EdgeType
FORMS_MAX = 8  # templates tried per block
FORM_SHARE_MIN = 0.02  # a template that fits fewer lines ends the search
HEAD = re.compile(rb'\{[ ]*"(type|edge)"[ ]*:[ ]*"([^"\\]*)"(?=[ ]*[,}])')
THREADS_MAX = 8


@dataclass(frozen=True, slots=True)
class Format:
    """What a line is: a graph record, or a plain row of one type."""

    catalog: Catalog
    options: Options
    rows_of: Kind | None = None

    def exactly(self, line: bytes) -> Record:
        if self.rows_of is not None:
            return read_row(line, self.rows_of, self.options)
        return read_record(line, self.catalog, self.options)

    def column(self, path: tuple[str, ...]) -> str | None:
        """The column a member of the record fills; none for those that name the type."""
        match path:
            case ("data", name) if self.rows_of is None:
                return name
            case ("type" | "edge",) if self.rows_of is None:
                return None
            case ("from",) if not isinstance(self.rows_of, NodeType):
                return "src"
            case ("to",) if not isinstance(self.rows_of, NodeType):
                return "dst"
            case (name,) if self.rows_of is not None:
                return name
        return None


@dataclass(frozen=True, slots=True)
class Reading:
    """What became of a block."""

    parts: tuple[Part, ...]
    problems: tuple[Violation, ...] = ()


def read_blocks(blocks: Iterable[Block], form: Format, problems: Problems) -> Iterator[Part]:
    """The rows of all blocks, in order. What is wrong goes to `problems`; its bound ends the reading."""
    for reading in _in_threads(blocks, lambda block: read_block(block, form)):
        problems.extend(reading.problems)
        if not problems.found:
            yield from reading.parts


def _in_threads(blocks: Iterable[Block], read: Callable[[Block], Reading]) -> Iterator[Reading]:
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


def read_block(block: Block, form: Format) -> Reading:
    """The rows of one block."""
    lines, refused = refuse_oversized(lines_of(block), form.options)
    problems = [violation(why, "", block.file, number) for number, why in refused]
    parts: list[Part] = []
    lines = _by_template(lines, form, parts)
    lines = _by_type(lines, form, parts)
    _one_by_one(lines, form, parts, problems)
    problems.sort(key=lambda problem: problem.line or 0)
    placed = (replace(part, file=block.file) for part in in_line_order(parts))
    return Reading(tuple(placed), tuple(problems))


def _by_template(lines: Lines, form: Format, parts: list[Part]) -> Lines:
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


def _certain(line: bytes, form: Format) -> Record | None:
    try:
        return form.exactly(line)
    except Misfit:
        return None


def _by_type(lines: Lines, form: Format, parts: list[Part]) -> Lines:
    """Take out the lines of each type that read without doubt; the rest is returned."""
    if len(lines) < 4:
        return lines
    left = np.ones(len(lines), np.bool_)
    for kind, mask in _types(lines, form):
        try:
            group = lines.where(mask)
            parts.append(read_group(group, kind, form.options, envelope=form.rows_of is None))
        except Unsure:
            continue
        left &= ~mask
    return lines.where(left)


def _types(lines: Lines, form: Format) -> Iterator[tuple[Kind, Mask]]:
    """Lines by the type they name: by how they begin where they all begin alike, else by reading each."""
    if form.rows_of is not None:
        yield form.rows_of, np.ones(len(lines), np.bool_)
        return
    left = np.ones(len(lines), np.bool_)
    kinds: dict[str, tuple[Kind, Mask]] = {}
    while left.any():
        head = HEAD.match(lines.line(int(np.argmax(left))))
        if head is None:
            break
        same = left & lines.match(lines.starts, head[0])
        left &= ~same
        kind = _named(head[1] == b"edge", head[2].decode(errors="replace"), form.catalog)
        _gather(kinds, kind, same)
    if left.any():
        _read_types(lines, left, form, kinds)
    yield from kinds.values()


def _gather(kinds: dict[str, tuple[Kind, Mask]], kind: Kind | None, mask: Mask) -> None:
    if kind is not None:
        known = kinds.get(kind.table_id)
        kinds[kind.table_id] = (kind, mask if known is None else known[1] | mask)


def _named(edge: bool, name: str, catalog: Catalog) -> Kind | None:
    return catalog.edge(name) if edge else catalog.nodes.get(name)


class _Envelope(msgspec.Struct):
    type: str | None = None
    edge: str | None = None


_envelopes = msgspec.json.Decoder(_Envelope)


def _read_types(
    lines: Lines, left: Mask, form: Format, kinds: dict[str, tuple[Kind, Mask]]
) -> None:
    found: dict[tuple[str | None, str | None], list[int]] = {}
    for row in np.flatnonzero(left).tolist():
        try:
            envelope = _envelopes.decode(lines.line(row))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        found.setdefault((envelope.type, envelope.edge), []).append(row)
    for (node, edge), rows in found.items():
        if (node is None) == (edge is None):
            continue
        mask = np.zeros(len(lines), np.bool_)
        mask[rows] = True
        _gather(kinds, _named(edge is not None, node or edge or "", form.catalog), mask)


def _one_by_one(lines: Lines, form: Format, parts: list[Part], problems: list[Violation]) -> None:
    groups: dict[str, tuple[Kind, list[Record], list[int]]] = {}
    for number, line in lines.each():
        try:
            record = form.exactly(line)
        except Misfit as misfit:
            problems.append(violation(misfit, _type_name(form), lines.block.file, number))
            if len(problems) >= PROBLEMS_MAX:
                return
            continue
        group = groups.setdefault(record.kind.table_id, (record.kind, [], []))
        group[1].append(record)
        group[2].append(number)
    for kind, records, numbers in groups.values():
        parts.append(to_part(kind, [record.fields for record in records], numbers))


def _type_name(form: Format) -> str:
    return "" if form.rows_of is None else form.rows_of.name
