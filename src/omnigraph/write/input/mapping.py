"""One wide table as rows of several types, by a declared mapping: every row makes nodes and edges.

A `RowMap` describes the rows of one type that each source row makes: values by SQL expressions over its columns, lists
unnested, rows filtered. The result is a table with the columns of that type, and is read like any other.
"""

# ruff: noqa: S608 - expressions are checked to be expressions, and names are quoted

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from omnigraph.fingerprint import named
from omnigraph.model.catalog import Catalog
from omnigraph.model.columns import one_array
from omnigraph.model.frozen import frozen
from omnigraph.model.types import PropType
from omnigraph.read.ndjson import quoted
from omnigraph.values.columns import Column, is_text, text_column, to_column
from omnigraph.values.misfit import Misfit
from omnigraph.values.reading import ReadingContext
from omnigraph.write.input.change_records import ChangedRows, ChangeFormat
from omnigraph.write.input.expressions import (
    GIVEN,
    ROW,
    MappingInvalid,
    RowEngine,
    Unworkable,
    numbered,
    over,
    plausible,
)
from omnigraph.write.input.folders import FolderValue
from omnigraph.write.input.options import CsvFormat, Options
from omnigraph.write.input.parts import InputPart
from omnigraph.write.input.problems import Problems
from omnigraph.write.input.tables import (
    DELETED,
    ORDER,
    RawRows,
    RowShape,
    RowsOf,
    kind_named,
)


@frozen
class RowMap:
    """Rows of one type that each row of a wide table makes.

    `values` pairs a property, `id`, `from`, `to`, or a member of an end's key like `from.day`, with an expression.
    `each` pairs a new column with a list whose items make a row each; `where` filters rows.
    """

    type: str
    values: tuple[tuple[str, str], ...]
    where: str | None = None
    each: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        names = [name for name, _ in self.values]
        if not names or len(set(names)) < len(names):
            raise MappingInvalid(f"{self.type}: values need unique names")
        for _, expression in self.expressions():
            plausible(expression)

    def expressions(self) -> Iterator[tuple[str, str]]:
        """All of its expressions, each with its purpose."""
        yield from self.each
        if self.where is not None:
            yield "where", self.where
        yield from self.values

    def over(self, columns: Collection[str]) -> RowMap:
        """The same in SQL over columns: column names are quoted."""
        each, known = [], list(columns)
        for name, items in self.each:
            each.append((name, over(items, known)))
            known.append(name)
        where = None if self.where is None else over(self.where, known)
        values = tuple((name, over(text, known)) for name, text in self.values)
        return RowMap(self.type, values, where, tuple(each))

    def query(self, *, marked: bool = False) -> str:
        """The rows it makes of those given, with the number of the row each comes from, and its marks."""
        values = ", ".join(
            f"(\n{text}\n) AS {quoted(str(place))}" for place, (_, text) in enumerate(self.values)
        )
        marks = "".join(f", {name}" for name in (ORDER, DELETED) if marked)
        condition = "" if self.where is None else f" WHERE (\n{self.where}\n)"
        return f"SELECT {ROW}{marks}, {values} FROM {self.source()}{condition}"

    def source(self, lists: int | None = None) -> str:
        """The given rows, with the first `lists` lists unnested."""
        text = GIVEN
        for name, items in self.each[:lists]:
            text = f"(SELECT *, unnest(\n{items}\n) AS {quoted(name)} FROM {text})"
        return text


@frozen
class RowMapping:
    """The rows made from each row of a table: one of a type, or rows of several.

    `json` pairs columns with paths, for files of JSON lines; `changes` is the format of change records.
    """

    rows: tuple[RowMap, ...] = ()
    type: str | None = None
    json: tuple[tuple[str, str], ...] = ()
    changes: ChangeFormat | None = None
    columns: tuple[tuple[str, str], ...] = ()  # of one type: names in the table, and properties

    def __post_init__(self) -> None:
        if bool(self.rows) == (self.type is not None):
            raise MappingInvalid("a table has rows of one type, or is mapped to rows of several")

    def types(self) -> tuple[str, ...]:
        """The types it makes rows of."""
        return (self.type,) if self.type is not None else tuple(row.type for row in self.rows)


@frozen
class Wide:
    """A table to load, and its mapping: a path, an Arrow table, a DataFrame or a list of dicts.

    `rows` are mappings, or the name of the type its rows are of.
    """

    source: Any
    rows: Sequence[RowMap] | str
    csv: CsvFormat | None = None
    json: Sequence[tuple[str, str]] = ()
    changes: ChangeFormat | None = None
    columns: Sequence[tuple[str, str]] = ()

    @property
    def mapping(self) -> RowMapping:
        json, columns = tuple(self.json), tuple(self.columns)
        if isinstance(self.rows, str):
            return RowMapping((), self.rows, json, self.changes, columns)
        return RowMapping(tuple(self.rows), None, json, self.changes)

    @property
    def digest(self) -> Any:
        """What identifies it in a repeated request."""
        return named(self.source), self.mapping, self.csv


def shape_of(
    mapping: RowMapping,
    catalog: Catalog,
    options: Options,
    values: tuple[FolderValue, ...] = (),
) -> RowShape:
    """Makes the rows of a mapping."""
    rows: RowShape
    if mapping.type is not None:
        named = replace(options, columns=mapping.columns or options.columns)
        rows = RowsOf(kind_named(mapping.type, catalog), catalog, named)
    else:
        rows = MappedRows(mapping, catalog, options, values)
    return rows if mapping.changes is None else ChangedRows(mapping.changes, rows)


class MappedRows:
    """Makes the rows of a mapping; a shape like that of one type."""

    def __init__(
        self,
        mapping: RowMapping,
        catalog: Catalog,
        options: Options,
        values: tuple[FolderValue, ...] = (),
    ) -> None:
        # Property names come from the mapping, not from the load's options for other tables.
        plain = replace(options, columns=())
        self._mapping, self._options, self._values = mapping, options, values
        kinds = [kind_named(row.type, catalog) for row in mapping.rows]
        self._targets = [RowsOf(kind, catalog, plain) for kind in kinds]
        self._engine = RowEngine()
        self._rows: Sequence[RowMap] = ()  # over the columns of the source

    def parts(self, raw: RawRows, problems: Problems) -> Iterator[InputPart]:
        """The rows of each type, in the order of the mapping."""
        table, lines = numbered(self._with_folders(raw.table)), raw.lines
        if self._engine.given(table):
            self._fit(table.drop_columns([ROW]))
        for row_map, target in zip(self._rows, self._targets, strict=True):
            for made in self._made(row_map, target, table, raw, problems):
                places = lines.take(one_array(made[ROW]))
                marks = [name for name in (ORDER, DELETED) if name in made.column_names]
                names = [*marks, *(name for name, _ in row_map.values)]
                values = made.drop_columns([ROW]).rename_columns(names)
                part = target.typed(values, places, raw.file, problems, either)
                if part is not None:
                    yield part

    def _with_folders(self, table: pa.Table) -> pa.Table:
        for value in self._values:
            if value.name not in table.column_names:
                column = pa.repeat(pa.scalar(value.text, pa.string()), table.num_rows)
                table = table.append_column(value.name, column)
        return table

    def _fit(self, table: pa.Table) -> None:
        """Check once, without rows, that every expression is valid over these columns."""
        folded = [name.lower() for name in table.column_names]
        repeated = [name for name in table.column_names if folded.count(name.lower()) > 1]
        if repeated:
            raise MappingInvalid(f"the source has several columns called {repeated[0]!r}")
        self._rows = [row_map.over(table.column_names) for row_map in self._mapping.rows]
        for row_map in self._rows:
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
        self, row_map: RowMap, target: RowsOf, table: pa.Table, raw: RawRows, problems: Problems
    ) -> Iterator[pa.Table]:
        """The rows made; if an expression fails, the input is halved until the failing rows are isolated."""
        self._engine.given(table)
        try:
            yield self._engine.rows(row_map.query(marked=ORDER in table.column_names))
        except Unworkable as why:
            if table.num_rows > 1:
                half = table.num_rows // 2
                for part in (table.slice(0, half), table.slice(half)):
                    yield from self._made(row_map, target, part, raw, problems)
                return
            misfit = Misfit(f"an expression cannot be evaluated: {why}", rule="expression")
            line = raw.lines[table[ROW][0].as_py()].as_py()
            problems.add(misfit.violation(target.kind.name, raw.file, line))


def either(values: Column, kind: PropType, context: ReadingContext) -> Column:
    """A column as an expression made it: texts are read as in CSV, other values are kept."""
    convert = text_column if is_text(values.type) else to_column
    return convert(values, kind, context)


@frozen
class Mapped:
    """A file of rows with other column names: pairs of a name in the file and a property."""

    path: str
    columns: tuple[tuple[str, str], ...] = ()
    csv: CsvFormat | None = None

    @property
    def digest(self) -> Any:
        """What identifies it in a repeated request."""
        return self.path, self.columns, self.csv


@frozen
class Sources:
    """Several inputs of one load: files of graph records, tables by type, and wide tables with their mappings."""

    records: tuple[str, ...] = ()
    tables: tuple[tuple[str, Any], ...] = ()
    wide: tuple[Wide, ...] = ()

    @property
    def digest(self) -> Any:
        """What identifies them in a repeated request."""
        tables = [(name, named(value)) for name, value in self.tables]
        return self.records, tables, [wide.digest for wide in self.wide]
