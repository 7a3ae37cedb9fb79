"""`omnigraph fmt`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from omnigraph.cli.app import Verb
from omnigraph.cli.context import FileUnreadable, read_text
from omnigraph.cli.exits import FAILURE, OK, UsageMistake
from omnigraph.cli.options import Show
from omnigraph.cli.output import note


def fmt(
    files: Annotated[
        list[str], Argument(help="Schemas and queries; - for stdin.", metavar="FILE…")
    ],
    show: Show,
    check: Annotated[bool, Option("--check", help="Only say which would change.")] = False,
    schema: Annotated[bool, Option("--schema", help="Standard input is a schema.")] = False,
) -> int:
    """Put .pg and .gq files into canonical form; comments stay.

    With --check nothing is written and the exit code is 1 when a file would change.
    """
    changed = [file for file in files if _format(file, check, schema)]
    for file in changed:
        note(show, f"{'would format' if check else 'formatted'} {file}")
    return FAILURE if check and changed else OK


def _format(file: str, check: bool, is_schema: bool) -> bool:
    """Whether the file was, or would be, changed."""
    before = read_text(file)
    after = formatted(before, file, is_schema)
    if file == "-" and not check:
        sys.stdout.write(after)
        return False
    if before != after and not check:
        try:
            Path(file).write_text(after, encoding="utf-8")
        except OSError as error:
            raise FileUnreadable(f"{file} cannot be written: {error}") from error
    return before != after


def formatted(text: str, file: str, is_schema: bool = False) -> str:
    """The canonical form of a file's text."""
    match Path(file).suffix:
        case ".pg":
            is_schema = True
        case ".gq":
            is_schema = False
        case _ if file != "-":
            raise UsageMistake(f"{file} is neither a schema (.pg) nor a file of queries (.gq)")
    if is_schema:
        from omnigraph.lang.schema import format_schema

        return format_schema(text, file)
    from omnigraph.lang.query import format_queries

    return format_queries(text, file)


COMMAND = Verb(fmt, ("omnigraph fmt people.pg people.gq", "omnigraph fmt --check people.gq"))
