"""What several commands share: options, sets of options, and how a command names its examples."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, TypeVar

from typer import Argument, Option

from omnigraph.model.value import value

Function = TypeVar("Function", bound=Callable[..., Any])


def examples(first: str, second: str) -> Callable[[Function], Function]:
    """Mark a function as a command whose help starts with these two command lines."""

    def mark(run: Function) -> Function:
        run.examples = (first, second)  # type: ignore[attr-defined]
        return run

    return mark


class OutputFormat(StrEnum):
    """How data is written to stdout."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    MARKDOWN = "markdown"
    ARROW = "arrow"


class ProgressMode(StrEnum):
    """How progress is reported on stderr."""

    AUTO = "auto"
    JSON = "json"
    NONE = "none"


Branch = Annotated[
    str | None, Option("--branch", "-b", help="Branch (default: main).", metavar="B")
]
At = Annotated[
    str | None,
    Option("--at", help="Commit, tag, branch, main~2, date or '@{1 hour ago}'.", metavar="POINT"),
]
Text = Annotated[str | None, Option("--expr", "-e", help="Query text.", metavar="TEXT")]
File = Annotated[str | None, Option("--file", "-f", help="Query file.", metavar="F.gq")]
Name = Annotated[str | None, Argument(help="Query in the file.", metavar="[NAME]")]
Params = Annotated[
    str | None, Option("--params", help="Parameter values, as JSON or @FILE.", metavar="JSON")
]
Language = Annotated[
    str | None, Option("--language", help="gq or cypher, where the text could be either.")
]
Engine = Annotated[str, Option("--engine", help="auto, local or spark.")]
LoadId = Annotated[
    str | None,
    Option("--load-id", help="Safe-retry key: resumes an interrupted load.", metavar="KEY"),
]
Violations = Annotated[
    str | None,
    Option("--violations", help="Write all violations to a file in here.", metavar="FOLDER"),
]
Message = Annotated[str | None, Option("--message", "-m", help="Commit message.")]
DryRun = Annotated[bool, Option("--dry-run", help="Show what would change; change nothing.")]
Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask for confirmation.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print only data and errors.")]
Uri = Annotated[str | None, Argument(help="Graph, instead of --store.", metavar="[URI]")]
Store = Annotated[
    str | None, Option("--store", "-s", help="Graph: a path, s3://… or http://…", metavar="URI")
]
Server = Annotated[
    str | None, Option("--server", help="Server URL or configured name.", metavar="URL")
]


class OptionSet:
    """Options that belong together: a command names the set as one parameter."""

    __slots__ = ()


@value
class Where(OptionSet):
    """Which graph."""

    store: Store = None
    server: Server = None
    graph: Annotated[str | None, Option("--graph", help="Graph on the server.", metavar="ID")] = (
        None
    )


@value
class Show(OptionSet):
    """How to print results."""

    format: Annotated[OutputFormat | None, Option("--format", help="Output format.")] = None
    json: Annotated[bool, Option("--json", help="Same as --format json.")] = False
    quiet: Quiet = False


@value
class WriterOptions(OptionSet):
    """Who writes, and how progress is reported."""

    actor: Annotated[str | None, Option("--as", help="Actor who writes.", metavar="ACTOR")] = None
    progress: Annotated[ProgressMode, Option("--progress", help="Progress on stderr.")] = (
        ProgressMode.AUTO
    )


@value
class CsvOptions(OptionSet):
    """How CSV files are written."""

    delimiter: Annotated[
        str | None, Option("--delimiter", help="Between cells of CSV files.", metavar="C")
    ] = None
    quote: Annotated[
        str, Option("--quote", help="Around cells of CSV files; empty: never.", metavar="C")
    ] = '"'
    column_names: Annotated[
        str | None,
        Option("--column-names", help="Columns of CSV files without a header.", metavar="A,B"),
    ] = None
    null_text: Annotated[
        str, Option("--null-text", help="CSV cell that means no value.", metavar="TEXT")
    ] = ""
    encoding: Annotated[str, Option("--encoding", help="Encoding of CSV files.")] = "utf-8"

    def reading(self) -> Any:
        """How to read what is loaded; none where nothing was said."""
        from omnigraph.write.input.options import CsvFormat, Options

        names = tuple(n.strip() for n in (self.column_names or "").split(",") if n.strip())
        form = CsvFormat(self.delimiter, self.quote, names, self.null_text, self.encoding)
        return None if form == CsvFormat() else Options(csv=form)


@value
class Merging(OptionSet):
    """How to bring changes into a branch."""

    dry_run: DryRun = False
    message: Message = None
    strategy: Annotated[
        str | None,
        Option("--strategy", help="Resolve conflicts: ours or theirs.", metavar="SIDE"),
    ] = None
