"""One wide table as rows of several types, by a declared mapping: every row makes nodes and edges.

A `RowMap` says what rows of one type each row of the source makes: values by SQL expressions over its columns, lists
taken apart, rows left out. The result is a table with the columns of that type, and is read as any such table is.
"""

# ruff: noqa: S608 - expressions are checked to be expressions, and names are quoted

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.catalog import Catalog
from omnigraph.model.types import PropType
from omnigraph.values.columns import Column, is_text, text_column, to_column
from omnigraph.values.misfit import Misfit
from omnigraph.values.reading import ReadingContext
from omnigraph.write.input.expressions import (
    GIVEN,
    ROW,
    Engine,
    MappingInvalid,
    Unworkable,
    checked,
    literal,
    quoted,
)
from omnigraph.write.input.folders import FolderValue
from omnigraph.write.input.lines import LineBlock, Lines, Positions, lines_of, refuse_oversized
from omnigraph.write.input.options import CsvFormat, Options
from omnigraph.write.input.parts import InputPart
from omnigraph.write.input.problems import Problems
from omnigraph.write.input.tables import RawRows, RowsOf, kind_named

LINE = "omnigraph_line"  # the text of a line of JSON


@dataclass(frozen=True, slots=True)
class RowMap:
    """Rows of one type that each row of a wide table makes.

    `values` pairs a property, `id`, `from`, `to`, or a member of an end's key like `from.day`, with an expression.
    `each` pairs a new column with a list whose items make a row each, one after the other; `where` leaves rows out.
    """

    type: str
    values: tuple[tuple[str, str], ...]
    where: str | None = None
    each: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        names = [name for name, _ in self.values]
        if not names or len(set(names)) < len(names):
            raise MappingInvalid(f"{self.type}: values have names, each given once")
        for _, expression in self.expressions():
            checked(expression)

    def expressions(self) -> Iterator[tuple[str, str]]:
        """All of its expressions, each with what it is for."""
        yield from self.each
        if self.where is not None:
            yield "where", self.where
        yield from self.values

    def query(self) -> str:
        """The rows it makes of those given, with the number of the row each comes from."""
        values = ", ".join(
            f"(\n{text}\n) AS {quoted(str(place))}" for place, (_, text) in enumerate(self.values)
        )
        return f"SELECT {ROW}, {values} FROM {self.source()}" + self._condition()

    def source(self, lists: int | None = None) -> str:
        """The rows given, with so many of the lists taken apart."""
        text = GIVEN
        for name, items in self.each[:lists]:
            text = f"(SELECT *, unnest(\n{items}\n) AS {quoted(name)} FROM {text})"
        return text

    def _condition(self) -> str:
        return "" if self.where is None else f" WHERE (\n{self.where}\n)"


@dataclass(frozen=True, slots=True)
class RowMapping:
    """What each row of a wide table becomes. `json` pairs columns with paths, for files of JSON lines."""

    rows: tuple[RowMap, ...]
    json: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if not self.rows:
            raise MappingInvalid("a mapping makes rows of at least one type")


@dataclass(frozen=True, slots=True)
class Wide:
    """A wide table to load, and what its rows become: a path, an Arrow table, a DataFrame or a list of dicts."""

    source: Any
    rows: Sequence[RowMap]
    csv: CsvFormat | None = None
    json: Sequence[tuple[str, str]] = field(default_factory=tuple)

    @property
    def mapping(self) -> RowMapping:
        return RowMapping(tuple(self.rows), tuple(self.json))


class MappedRows:
    """Makes the rows of a mapping; a shape like that of one type."""

    def __init__(
        self,
        mapping: RowMapping,
        catalog: Catalog,
        options: Options,
        values: tuple[FolderValue, ...] = (),
    ) -> None:
        # Names of properties are what the mapping says, not what the load says of other tables.
        plain = replace(options, columns=())
        self._mapping, self._options, self._values = mapping, options, values
        kinds = [kind_named(row.type, catalog) for row in mapping.rows]
        self.targets = [RowsOf(kind, catalog, plain) for kind in kinds]
        self._engine = Engine()

    def parts(self, raw: RawRows, problems: Problems) -> Iterator[InputPart]:
        """The rows of each type, in the order of the mapping."""
        table, lines = self._with_folders(raw.table), raw.lines
        if self._engine.given(_numbered(table)):
            self._fit(table)
        for row_map, target in zip(self._mapping.rows, self.targets, strict=True):
            made = self._made(row_map, target, table, raw.file, lines, problems)
            if made is None:
                continue
            places = lines.take(made[ROW].combine_chunks())
            values = made.drop_columns([ROW]).rename_columns([n for n, _ in row_map.values])
            part = target.typed(values, places, raw.file, problems, either)
            if part is not None:
                yield part

    def block(self, block: LineBlock, problems: Problems) -> Iterator[InputPart]:
        """The rows that the JSON objects of some lines make."""
        if not self._mapping.json:
            raise MappingInvalid(
                "a mapping of JSON lines says which members it uses: json: [name, …]"
            )
        lines, refused = refuse_oversized(lines_of(block), self._options)
        for number, why in refused:
            problems.add(why.violation("", block.file, number))
        numbers = pa.array(lines.numbers)
        table = self._opened(lines, block.file, problems) if len(lines) else None
        if table is not None:
            yield from self.parts(RawRows(table, block.file, 1, True, numbers), problems)

    def _opened(self, lines: Lines, file: str | None, problems: Problems) -> pa.Table | None:
        """Members of objects as columns of texts, as cells of CSV are; what is no text is its JSON."""
        wrong = self._no_objects(lines)
        if len(wrong):
            for row in wrong[: problems.most].tolist():
                misfit = Misfit("a line holds one JSON object", rule="json")
                problems.add(misfit.violation("", file, int(lines.numbers[row])))
            return None
        columns = ", ".join(
            f"{LINE} ->> {literal(path)} AS {quoted(name)}" for name, path in self._mapping.json
        )
        return self._engine.rows(f"SELECT {columns} FROM {GIVEN}")

    def _no_objects(self, lines: Lines) -> Positions:
        """The lines that are no JSON objects; those which are stay with the engine."""
        try:
            texts = lines.texts(lines.starts, lines.ends)
        except (pa.ArrowInvalid, UnicodeDecodeError):
            return np.array([n for n, line in enumerate(lines.each()) if not _is_text(line[1])])
        self._engine.given(_numbered(pa.table({LINE: texts})))
        query = f"SELECT CASE WHEN json_valid({LINE}) THEN json_type({LINE}) END AS kind"
        kinds = self._engine.rows(f"{query} FROM {GIVEN}")["kind"]
        wrong = pc.fill_null(pc.not_equal(kinds, "OBJECT"), True)
        return np.flatnonzero(wrong.to_numpy())

    def _with_folders(self, table: pa.Table) -> pa.Table:
        for value in self._values:
            if value.name not in table.column_names:
                column = pa.repeat(pa.scalar(value.text, pa.string()), table.num_rows)
                table = table.append_column(value.name, column)
        return table

    def _fit(self, table: pa.Table) -> None:
        """Whether every expression can be understood over these columns: asked once, of no rows."""
        folded = [name.lower() for name in table.column_names]
        twice = [name for name in table.column_names if folded.count(name.lower()) > 1]
        if twice:
            raise MappingInvalid(f"the source has several columns called {twice[0]!r}")
        for row_map in self._mapping.rows:
            for place, (name, text) in enumerate(row_map.expressions()):
                source = row_map.source(min(place, len(row_map.each)))
                query = f"SELECT {ROW}, (\n{text}\n) AS made FROM {source} LIMIT 0"
                try:
                    self._engine.rows(query)
                except Unworkable as why:
                    raise MappingInvalid(
                        f"{row_map.type}, {name}: {text!r} does not fit the source: {why}",
                        details={"type": row_map.type, "columns": table.column_names},
                    ) from None

    def _made(
        self,
        row_map: RowMap,
        target: RowsOf,
        table: pa.Table,
        file: str | None,
        lines: pa.Int64Array,
        problems: Problems,
    ) -> pa.Table | None:
        self._engine.given(_numbered(table))
        try:
            return self._engine.rows(row_map.query())
        except Unworkable:
            row, why = self._first_bad(row_map, table)
            misfit = Misfit(f"an expression cannot be worked out: {why}", rule="expression")
            problems.add(misfit.violation(target.kind.name, file, lines[row].as_py()))
            return None

    def _first_bad(self, row_map: RowMap, table: pa.Table) -> tuple[int, str]:
        """The first row an expression fails on: the rows are halved until one is left."""
        first, size, said = 0, table.num_rows, ""
        while size > 1:
            half = size // 2
            why = self._failure(row_map, table.slice(first, half))
            first, size = (first, half) if why else (first + half, size - half)
        said = self._failure(row_map, table.slice(first, size)) or "it fails on some rows"
        return first, said

    def _failure(self, row_map: RowMap, table: pa.Table) -> str | None:
        self._engine.given(_numbered(table))
        try:
            self._engine.rows(row_map.query())
        except Unworkable as why:
            return str(why)
        return None


def either(values: Column, kind: PropType, context: ReadingContext) -> Column:
    """A column as an expression made it: texts mean what they mean in CSV, other values are taken as they are."""
    convert = text_column if is_text(values.type) else to_column
    return convert(values, kind, context)


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _numbered(table: pa.Table) -> pa.Table:
    if ROW in table.column_names:
        raise MappingInvalid(f"a source may not have a column {ROW}")
    return table.append_column(ROW, pa.array(np.arange(table.num_rows)))
