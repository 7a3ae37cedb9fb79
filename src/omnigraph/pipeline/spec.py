"""Pipeline files: the sources of a load, its target branch, and the steps after it.

graph: people
branch: import
create_from: main
mode: merge
violations: wrong
sources:
  - records: data/*.jsonl
  - type: Person
    path: people.csv
    csv: {delimiter: ";"}
    columns: {E-Mail: email, Full name: name}
  - type: Knows
    jdbc: {url: "jdbc:postgresql://host/db", dbtable: friends, password: "${DB_PASSWORD}"}
    columns: {a: from, b: to}
  - path: orders.parquet
    rows:
      - type: Person
        values: {email: lower(customer), name: customer_name}
      - type: Bought
        each: {item: "string_split(items, ' ')"}
        where: item <> ''
        values: {from: lower(customer), to: {shop: shop, item: item}}
then:
  optimize: true
  merge_into: main
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from omnigraph.errors import Kind, OmnigraphError, OptionInvalid
from omnigraph.model.yaml_text import YamlRefused, read_yaml
from omnigraph.pipeline.databases import database_rows
from omnigraph.write.input.change_records import ChangeFormat, change_format
from omnigraph.write.input.expressions import MappingInvalid
from omnigraph.write.input.mapping import Mapped, RowMap, Sources, Wide
from omnigraph.write.input.options import CsvFormat, Options
from omnigraph.write.repeats import Repeats

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class PipelineInvalid(OmnigraphError):
    """The pipeline file is invalid."""

    code, kind = "pipeline_invalid", Kind.INVALID
    default_help = "The guide `docs/guides/spark.md` describes pipeline files."


class CsvSpec(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The format of CSV files; `names` are the columns of files without a header line."""

    delimiter: str | None = None
    quote: str = '"'
    names: list[str] = []
    null_text: str = ""
    encoding: str = "utf-8"

    def format(self) -> CsvFormat:
        names = tuple(self.names)
        return CsvFormat(self.delimiter, self.quote, names, self.null_text, self.encoding)


Constant = str | int | float | bool


class RowSpec(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The rows of one type made from each row of a wide table; strings are SQL expressions, other values constants."""

    type: str
    values: dict[str, Constant | dict[str, Constant]]
    where: str | None = None
    each: dict[str, str] = {}

    def row_map(self) -> RowMap:
        """The form used by loads: an end by its key is one value for each member."""
        values: list[tuple[str, str]] = []
        for name, given in self.values.items():
            if isinstance(given, dict):
                values += [(f"{name}.{member}", _sql(value)) for member, value in given.items()]
            else:
                values.append((name, _sql(given)))
        return RowMap(self.type, tuple(values), self.where, tuple(self.each.items()))


def _sql(value: Constant) -> str:
    return value if isinstance(value, str) else str(value).lower()


class ChangeSpec(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The format of change records: a named form, or expressions for their operation and order."""

    form: str | None = None
    operation: str | None = None
    order: str | None = None
    upserts: list[str] = []
    deletes: list[str] = []
    ignores: list[str] = []

    def change_format(self) -> ChangeFormat:
        """The same as loads know it."""
        if self.form is not None:
            found = change_format(self.form, self.order)
        elif self.operation is not None and self.order is not None:
            found = ChangeFormat(self.operation, self.order)
        else:
            raise PipelineInvalid("change records need either a form, or an operation and an order")
        return replace(
            found,
            upserts=_words(self.upserts) or found.upserts,
            deletes=_words(self.deletes) or found.deletes,
            ignores=_words(self.ignores) or found.ignores,
        )


def _words(given: list[str]) -> tuple[str, ...]:
    return tuple(word.lower() for word in given)


class RepeatsSpec(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """How to handle several rows with one id, late rows, and deletions."""

    keep: str | None = None
    version: str | None = None
    tombstone: str | None = None

    def repeats(self) -> Repeats:
        """The same as loads know it."""
        return Repeats(self.keep, self.version, self.tombstone)


class SourceSpec(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One source: graph records, a table of one type or a wide table, in files or read by JDBC."""

    records: str | None = None
    type: str | None = None
    path: str | None = None
    jdbc: dict[str, str | int | bool] | None = None
    columns: dict[str, str] = {}
    csv: CsvSpec | None = None
    rows: list[RowSpec] = []
    json: list[str] | dict[str, str] = []  # of lines: the members to use, or paths
    changes: str | ChangeSpec | None = None

    @property
    def is_plain(self) -> bool:
        """Whether its rows are those of one type, without a mapping."""
        return not (self.rows or self.json or self.changes)


class Then(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The steps after a successful load."""

    optimize: bool = False
    merge_into: str | None = None


class PipelineSpec(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A whole pipeline file."""

    sources: list[SourceSpec]
    graph: str | None = None
    branch: str = "main"
    create_from: str | None = None
    mode: str = "merge"
    load_id: str | None = None
    message: str | None = None
    violations: str | None = None
    duplicates: str | RepeatsSpec | None = None
    quarantine: str | None = None  # a new file for rows that cannot be loaded
    max_failures: int | None = None
    assume_timezone: str | None = None  # of date-times without one
    nulls: str = "clear"  # a null cell clears the stored value, or keeps it
    then: Then = Then()

    def options(self) -> Options:
        """The options for reading its sources."""
        given = self.duplicates
        rules = given if isinstance(given, RepeatsSpec) else RepeatsSpec(given)
        return Options(
            nulls=self.nulls,
            assume_timezone=self.assume_timezone,
            repeats=rules.repeats(),
            quarantine=self.quarantine,
            failures_max=self.max_failures,
        )


def read_spec(path: str | Path) -> PipelineSpec:
    """Read a pipeline file; paths in it are relative to its folder."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
        spec = msgspec.convert(read_yaml(text), PipelineSpec)
    except FileNotFoundError:
        raise PipelineInvalid(f"{path} does not exist") from None
    except (YamlRefused, msgspec.ValidationError, UnicodeDecodeError) as bad:
        raise PipelineInvalid(f"{path}: {bad}", details={"file": str(path)}) from None
    for number, source in enumerate(spec.sources, 1):
        _check(source, number, str(path))
    _check_options(spec, str(path))
    sources = [_placed(source, file.parent) for source in spec.sources]
    lists = None if spec.violations is None else str(file.parent / spec.violations)
    aside = None if spec.quarantine is None else str(file.parent / spec.quarantine)
    return msgspec.structs.replace(spec, sources=sources, violations=lists, quarantine=aside)


def _check(source: SourceSpec, number: int, file: str) -> None:
    named = [what for what in ("records", "path", "jdbc") if getattr(source, what) is not None]
    if len(named) != 1:
        raise PipelineInvalid(f"{file}: source {number} needs one of records, path and jdbc")
    said = [what for what in ("records", "type", "rows") if getattr(source, what)]
    if len(said) != 1:
        raise PipelineInvalid(
            f"{file}: source {number} needs a type or rows: to map to, unless it holds records"
        )
    try:
        for row in source.rows:
            row.row_map()
        _changes_of(source)
    except (MappingInvalid, OptionInvalid, PipelineInvalid) as bad:
        raise PipelineInvalid(f"{file}: source {number}: {bad.message}") from None


def _check_options(spec: PipelineSpec, file: str) -> None:
    try:
        spec.options()
    except OptionInvalid as bad:
        raise PipelineInvalid(f"{file}: {bad.message}", help=bad.help) from None


def _changes_of(source: SourceSpec) -> ChangeFormat | None:
    given = source.changes
    if isinstance(given, str):
        return change_format(given)
    return None if given is None else given.change_format()


def _placed(source: SourceSpec, folder: Path) -> SourceSpec:
    def place(path: str | None) -> str | None:
        return path if path is None or "://" in path else str(folder / path)

    return msgspec.structs.replace(source, records=place(source.records), path=place(source.path))


def sources_of(spec: PipelineSpec) -> Sources:
    """The input of the load."""
    records = tuple(s.records for s in spec.sources if s.records is not None)
    rows = [s for s in spec.sources if s.records is None]
    tables = tuple((s.type or "", _table(s)) for s in rows if s.is_plain)
    return Sources(records, tables, tuple(_wide(s) for s in rows if not s.is_plain))


def _wide(source: SourceSpec) -> Wide:
    rows = tuple(row.row_map() for row in source.rows)
    given = source.json
    json = given if isinstance(given, dict) else {name: _member(name) for name in given}
    csv = None if source.csv is None else source.csv.format()
    table = source.path if source.path is not None else _table(source)
    columns = tuple(source.columns.items())
    changes = _changes_of(source)
    return Wide(table, source.type or rows, csv, tuple(json.items()), changes, columns)


def _member(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'$."{escaped}"'


def _table(source: SourceSpec) -> Any:
    columns = tuple(source.columns.items())
    if source.path is not None:
        return Mapped(source.path, columns, None if source.csv is None else source.csv.format())
    given = {name: _filled(str(value)) for name, value in (source.jdbc or {}).items()}
    return database_rows(given, dict(columns))


def _filled(text: str) -> str:
    """Replace `${NAME}` from the environment: secrets do not belong in files."""

    def value(match: re.Match[str]) -> str:
        found = os.environ.get(match[1])
        if found is None:
            raise PipelineInvalid(f"the environment variable is not set: {match[1]}")
        return found

    return VARIABLE.sub(value, text)
