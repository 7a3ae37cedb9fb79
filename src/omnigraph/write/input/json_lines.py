"""Lines of JSON as columns of texts, for mappings and change records; the schema types them."""

# ruff: noqa: S608 - paths and names are quoted

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from omnigraph.expressions.filters import string
from omnigraph.read.ndjson import quoted
from omnigraph.values.misfit import Misfit
from omnigraph.write.input.expressions import GIVEN, MappingInvalid, RowEngine, numbered
from omnigraph.write.input.lines import LineBlock, Lines, lines_of, refuse_oversized
from omnigraph.write.input.mapping import RowMapping
from omnigraph.write.input.options import Options
from omnigraph.write.input.problems import Problems
from omnigraph.write.input.tables import RawRows

LINE = "omnigraph_line"


def opened(mapping: RowMapping) -> RowMapping:
    """The mapping of the columns that lines are opened to."""
    form = mapping.changes
    nested = form is not None and form.images is not None
    return replace(mapping, changes=form.opened()) if form is not None and nested else mapping


class JsonLines:
    """Opens the JSON objects of lines. A member that is not a text is its JSON; a missing one is null."""

    def __init__(self, mapping: RowMapping, options: Options) -> None:
        if not mapping.json:
            raise MappingInvalid(
                "a mapping of JSON lines names the members it uses: json: [name, …]"
            )
        self._mapping, self._options, self._engine = mapping, options, RowEngine()

    def rows(self, block: LineBlock, problems: Problems) -> RawRows | None:
        """The objects of some lines as rows; None on errors, which are then in `problems`."""
        lines, refused = refuse_oversized(lines_of(block), self._options)
        for number, why in refused:
            problems.add(why.violation("", block.file, number))
        if not len(lines):
            return None
        kinds = self._kinds(lines)
        if self._mapping.changes is not None:  # remnants of deletions in a log
            filled = kinds != "NULL"
            lines, kinds = lines.where(filled), kinds[filled]
        wrong = np.flatnonzero(kinds != "OBJECT")
        for row in wrong[: problems.most].tolist():
            misfit = Misfit("a line holds one JSON object", rule="json")
            problems.add(misfit.violation("", block.file, int(lines.numbers[row])))
        if len(wrong) or not len(lines):
            return None
        self._engine.given(numbered(pa.table({LINE: lines.texts(lines.starts, lines.ends)})))
        columns = [f"{text} AS {quoted(name)}" for name, text in self._columns()]
        table = self._engine.rows(f"SELECT {', '.join(columns)} FROM {GIVEN}")
        return RawRows(table, block.file, 1, True, pa.array(lines.numbers))

    def _kinds(self, lines: Lines) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
        """The kind of each line: OBJECT, NULL, another JSON type, or empty if it is not JSON."""
        try:
            texts = lines.texts(lines.starts, lines.ends)
        except (pa.ArrowInvalid, UnicodeDecodeError):
            return np.array(["OBJECT" if _is_text(t) else "" for _, t in lines.each()], object)
        self._engine.given(numbered(pa.table({LINE: texts})))
        query = f"SELECT CASE WHEN json_valid({LINE}) THEN json_type({LINE}) ELSE '' END AS kind"
        return np.asarray(self._engine.rows(f"{query} FROM {GIVEN}")["kind"], object)

    def _columns(self) -> list[tuple[str, str]]:
        """The expression of each column."""
        form, members = self._mapping.changes, self._mapping.json
        if form is None or form.images is None:
            return [(name, f"{LINE} ->> {string(path)}") for name, path in members]
        return list(form.members(LINE, members))


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
