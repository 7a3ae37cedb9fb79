"""Data on stdout in the requested format, notes on stderr."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from omnigraph.cli.context import config
from omnigraph.cli.exits import UsageError
from omnigraph.cli.options import OutputFormat, Show
from omnigraph.model.frozen import frozen
from omnigraph.wire.contracts import CONTRACTS

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.read import Result

ROWS_SHOWN_MAX = 40
ERROR_STYLES = (  # of the first group of a line
    (re.compile(r"(error\[\w+\]:)"), "1;31"),
    (re.compile(r"(warning\[\w+\]:)"), "1;33"),
    (re.compile(r"\s*(-->.*)"), "2"),
    (re.compile(r"\s*\| *(\^+.*)"), "31"),
    (re.compile(r"\s*= (help:)"), "36"),
)
CONTRACTED = {OutputFormat(f"json-{contract}"): contract for contract in CONTRACTS}
VIOLATION_COLUMNS = ("file", "line", "type", "id", "property", "value", "message")
VIOLATIONS_SHOWN_MAX = 20
PRETTY_BYTES_MAX = 1 << 16  # larger documents are for programs: one line, no indentation


@frozen
class Sheet:
    """Rows to print in any format; `document` is shown as JSON instead, if it differs."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    types: Sequence[str] = ()
    document: Any = None
    arrow: Callable[[], pa.Table] | None = field(default=None, compare=False)

    def records(self) -> Iterator[dict[str, Any]]:
        for row in self.rows:
            yield dict(zip(self.columns, row, strict=True))


def format_of(show: Show) -> OutputFormat:
    """The requested format, else the configured one; `contract_of` has the form of JSON."""
    return OutputFormat.JSON if contract_of(show) is not None else _format(show)


def contract_of(show: Show) -> str | None:
    """The version of the Rust project whose form of JSON is requested, if any."""
    format = _format(show)
    if format in CONTRACTED:
        return CONTRACTED[format]
    wanted = config()["defaults.json"] if format is OutputFormat.JSON else None
    if wanted is not None and wanted not in CONTRACTS:
        raise UsageError(f"the form of JSON must be {' or '.join(CONTRACTS)}, not {wanted!r}")
    return wanted


def _format(show: Show) -> OutputFormat:
    if show.json and show.format not in (None, OutputFormat.JSON, *CONTRACTED):
        raise UsageError(f"--json and --format {show.format} cannot be combined")
    if show.json:
        return show.format or OutputFormat.JSON
    if show.format is not None:
        return show.format
    configured = config()["defaults.output"]
    if configured not in set(OutputFormat):
        raise UsageError(
            f"the configured output {configured!r} is not one of {', '.join(OutputFormat)}"
        )
    return OutputFormat(configured)


def note(show: Show, text: str) -> None:
    """A remark for people: on stderr, and not with --quiet."""
    if not show.quiet:
        print(text, file=sys.stderr)


def warn(text: str) -> None:
    print(styled(f"warning: {text}", "33", sys.stderr), file=sys.stderr)


def styled(text: str, style: str, stream: Any = None) -> str:
    """Text in a colour, on a terminal with colours."""
    return f"\x1b[{style}m{text}\x1b[0m" if colourful(stream or sys.stdout) else text


def coloured_error(text: str) -> str:
    """The text of errors, with colours for the message, the place and the help."""
    if not colourful(sys.stderr):
        return text
    return "\n".join(_coloured_line(line) for line in text.splitlines())


def violations_table(found: Sequence[Mapping[str, Any]]) -> str:
    """The violations of a write as a table. Columns without a value are left out."""
    from omnigraph.cli.table import draw

    names = [n for n in VIOLATION_COLUMNS if any(v.get(n) is not None for v in found)]
    rows = [[violation.get(name) for name in names] for violation in found[:VIOLATIONS_SHOWN_MAX]]
    text = draw(names, (), [["" if v is None else v for v in row] for row in rows], rows_max=0)
    more = len(found) - len(rows)
    return text if more <= 0 else f"{text}\n{more:,} more; --violations FOLDER lists all of them"


def _coloured_line(line: str) -> str:
    for pattern, style in ERROR_STYLES:
        found = pattern.match(line)
        if found is not None:
            start, end = found.span(1)
            return f"{line[:start]}{styled(line[start:end], style, sys.stderr)}{line[end:]}"
    return line


def colourful(stream: Any) -> bool:
    quiet = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not quiet and bool(stream.isatty())


# --- answers -----------------------------------------------------------------------------------------------------


def answer(show: Show, text: str, document: Any) -> None:
    """One fact: a document for programs, a sentence for people."""
    if format_of(show) in (OutputFormat.JSON, OutputFormat.JSONL):
        one_line = format_of(show) is OutputFormat.JSONL
        print_document(document, one_line=one_line, pretty=contract_of(show) is not None)
    elif text:
        print(text)


def print_document(document: Any, *, one_line: bool = False, pretty: bool = False) -> None:
    text = json.dumps(document, ensure_ascii=False, default=str)
    for_people = not one_line and sys.stdout.isatty() and len(text) < PRETTY_BYTES_MAX
    if pretty or for_people:
        text = json.dumps(document, ensure_ascii=False, indent=2, default=str)
    print(text)


def print_sheet(show: Show, sheet: Sheet, *, rows_max: int = ROWS_SHOWN_MAX) -> None:
    """Print rows in the requested format."""
    match format_of(show):
        case OutputFormat.TABLE:
            from omnigraph.cli.table import draw

            print(draw(sheet.columns, sheet.types, sheet.rows, rows_max=rows_max))
        case OutputFormat.JSON:
            rows = list(sheet.records())
            document = rows if sheet.document is None else sheet.document
            print_document(document, pretty=contract_of(show) is not None)
        case OutputFormat.JSONL:
            for record in sheet.records():
                print(json.dumps(record, ensure_ascii=False, default=str))
        case OutputFormat.CSV:
            sys.stdout.write(as_csv(sheet))
        case OutputFormat.KV:
            print("\n\n".join(as_pairs(sheet)))
        case OutputFormat.MARKDOWN:
            print("\n".join(as_markdown(sheet)))
        case OutputFormat.ARROW:
            _write_arrow(sheet)


def as_pairs(sheet: Sheet) -> Iterator[str]:
    """A block for each row: its number, then a line for each column."""
    for number, record in enumerate(sheet.records(), 1):
        shown = {
            name: value
            if isinstance(value, str)
            else json.dumps(value, ensure_ascii=False, default=str)
            for name, value in record.items()
        }
        yield "\n".join([f"row {number}", *(f"{name}: {text}" for name, text in shown.items())])


def print_result(show: Show, result: Result, *, rows_max: int = ROWS_SHOWN_MAX) -> None:
    """The rows of a query."""
    print_sheet(show, sheet_of(result, rows_max, format_of(show)), rows_max=rows_max)


def sheet_of(result: Result, rows_max: int, format: OutputFormat) -> Sheet:
    """A result as rows; a table only fetches the rows it shows."""
    types = [str(kind) for kind in result.types]
    if format is OutputFormat.ARROW:
        return Sheet(result.columns, (), types, arrow=result.to_arrow)
    document = result.to_json() if format is OutputFormat.JSON else None
    if format is OutputFormat.TABLE and 0 < rows_max < len(result):
        return Sheet(result.columns, _Ends(result, rows_max), types)
    rows = [] if document else [list(row.values()) for row in result.json_rows()]
    names = list(result[0]) if len(result) else result.columns
    return Sheet(names, rows, types if len(names) == len(types) else (), document)


class _Ends(Sequence[Any]):
    """The rows of a large result; only the first and the last are shown."""

    def __init__(self, result: Result, shown: int) -> None:
        from omnigraph.values.spelling import to_json

        table = result.to_arrow()
        self._count, self._half = len(result), (shown + 1) // 2
        self._head = [[to_json(v) for v in row] for row in _rows(table.slice(0, self._half))]
        first = self._count - self._half
        self._tail = [[to_json(v) for v in row] for row in _rows(table.slice(first))]

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._count))]
        if index < self._half:
            return self._head[index]
        return self._tail[index - (self._count - self._half)]


def _rows(table: Any) -> Iterable[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


# --- formats -----------------------------------------------------------------------------------------------------


def as_text(value: Any) -> str:
    """One value as a cell."""
    match value:
        case None:
            return ""
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case dict() | list():
            return json.dumps(value, ensure_ascii=False, default=str)
        case _:
            return str(value)


def as_csv(sheet: Sheet) -> str:
    """RFC 4180 with a header; null is an empty cell, as is an empty string."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(sheet.columns)
    for row in sheet.rows:
        writer.writerow([as_text(value) for value in row])
    return out.getvalue()


def as_markdown(sheet: Sheet) -> Iterator[str]:
    yield _markdown_row(sheet.columns)
    yield _markdown_row(["---"] * len(sheet.columns))
    for row in sheet.rows:
        yield _markdown_row([as_text(value) for value in row])


def _markdown_row(cells: Iterable[str]) -> str:
    escaped = (
        cell.replace("\\", "\\\\").replace("|", "\\|").replace("\n", "<br>") for cell in cells
    )
    return f"| {' | '.join(escaped)} |"


def _write_arrow(sheet: Sheet) -> None:
    import pyarrow as pa

    if sys.stdout.isatty():
        raise UsageError("Arrow is binary: redirect it to a file or a program")
    table = sheet.arrow() if sheet.arrow else pa.Table.from_pylist(list(sheet.records()))
    with pa.ipc.new_stream(sys.stdout.buffer, table.schema) as stream:
        stream.write_table(table)
