"""Options and sets of options shared by several commands, and the decorator for their examples."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, TypeVar

from typer import Argument, Option

from omnigraph.cli import completing
from omnigraph.cli.exits import UsageError
from omnigraph.model.frozen import frozen

Function = TypeVar("Function", bound=Callable[..., Any])


def examples(first: str, second: str) -> Callable[[Function], Function]:
    """Mark a function as a command whose help starts with these two command lines."""

    def mark(run: Function) -> Function:
        run.examples = (first, second)  # type: ignore[attr-defined]
        return run

    return mark


def rust_shape(run: Function) -> Function:
    """Mark a command whose JSON is also available in the form of the Rust project."""
    run.rust_shape = True  # type: ignore[attr-defined]
    return run


class OutputFormat(StrEnum):
    """How data is written to stdout."""

    TABLE = "table"
    JSON = "json"
    JSON_0_10 = "json-0.10"  # the form of the Rust project
    JSON_0_13 = "json-0.13"
    JSONL = "jsonl"
    CSV = "csv"
    KV = "kv"
    MARKDOWN = "markdown"
    ARROW = "arrow"


class OnError(StrEnum):
    """How a load handles rows that violate a rule."""

    REFUSE = "refuse"
    QUARANTINE = "quarantine"


class Nulls(StrEnum):
    """What a null cell does to a stored value."""

    CLEAR = "clear"
    KEEP = "keep"


class ProgressMode(StrEnum):
    """How progress is reported on stderr."""

    AUTO = "auto"
    JSON = "json"
    NONE = "none"


Types = Annotated[
    list[str] | None,
    Option(
        "--type",
        help="Only this type; repeatable.",
        metavar="T",
        autocompletion=completing.types,
    ),
]
Branch = Annotated[
    str | None,
    Option(
        "--branch",
        "-b",
        help="Branch (default: main).",
        metavar="B",
        autocompletion=completing.branches,
    ),
]
At = Annotated[
    str | None,
    Option(
        "--at",
        help="Commit, tag, branch, main~2, date or '@{1 hour ago}'.",
        metavar="POINT",
        autocompletion=completing.points,
    ),
]
Text = Annotated[str | None, Option("--expr", "-e", help="Query text.", metavar="TEXT")]
File = Annotated[str | None, Option("--file", "-f", help="Query file.", metavar="F.gq")]
Name = Annotated[
    str | None,
    Argument(help="Query in the file.", metavar="[NAME]", autocompletion=completing.queries),
]
Params = Annotated[
    str | None, Option("--params", help="Parameter values, as JSON or @FILE.", metavar="JSON")
]
Language = Annotated[
    str | None, Option("--language", help="gq or cypher, if the text could be either.")
]
Settings = Annotated[
    list[str] | None,
    Option("--set", help="Setting of this run, like a `set` line.", metavar="NAME=VALUE"),
]
Engine = Annotated[str, Option("--engine", help="auto, local or spark.")]
LoadId = Annotated[
    str | None,
    Option("--load-id", help="Safe-retry key: resumes an interrupted load.", metavar="KEY"),
]
Violations = Annotated[
    str | None,
    Option("--violations", help="Write all violations to a file in this folder.", metavar="FOLDER"),
]
Message = Annotated[str | None, Option("--message", "-m", help="Commit message.")]
DryRun = Annotated[bool, Option("--dry-run", help="Show what would change; change nothing.")]
Yes = Annotated[bool, Option("--yes", "-y", "--confirm", help="Do not ask for confirmation.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print only data and errors.")]
Uri = Annotated[
    str | None,
    Argument(
        help="Graph: a path, s3://… or http://…; same as --store.",
        metavar="[GRAPH]",
        autocompletion=completing.graphs,
    ),
]
Store = Annotated[
    str | None,
    Option("--store", "-s", help="Graph.", metavar="URI", autocompletion=completing.graphs),
]
Server = Annotated[
    str | None, Option("--server", help="Server URL or configured name.", metavar="URL")
]


class OptionSet:
    """Options that belong together: a command names the set as one parameter."""

    __slots__ = ()


@frozen
class Where(OptionSet):
    """The graph, given the same way in every command. `words` tells the graph from a command's own words."""

    uri: Uri = None
    store: Store = None
    server: Server = None
    graph: Annotated[str | None, Option("--graph", help="Graph on the server.", metavar="ID")] = (
        None
    )


@frozen
class Show(OptionSet):
    """How to print results."""

    format: Annotated[OutputFormat | None, Option("--format", help="Output format.")] = None
    json: Annotated[bool, Option("--json", help="Same as --format json.")] = False
    quiet: Quiet = False


@frozen
class WriterOptions(OptionSet):
    """Who writes, and how progress is reported."""

    actor: Annotated[str | None, Option("--as", help="Actor who writes.", metavar="ACTOR")] = None
    progress: Annotated[ProgressMode, Option("--progress", help="Progress on stderr.")] = (
        ProgressMode.AUTO
    )


@frozen
class RepeatOptions(OptionSet):
    """How to handle several rows with one id."""

    duplicates: Annotated[
        str | None,
        Option(
            "--duplicates", help="Of rows with the same ID keep the first, the last, or refuse."
        ),
    ] = None
    version_property: Annotated[
        str | None,
        Option(
            "--version-property", help="Newer rows have a higher value; older ones are skipped."
        ),
    ] = None


@frozen
class BadRowOptions(OptionSet):
    """How to handle rows that cannot be loaded."""

    on_error: Annotated[
        OnError, Option("--on-error", help="Invalid rows: refuse all, or load the others.")
    ] = OnError.REFUSE
    quarantine: Annotated[
        str | None, Option("--quarantine", help="New file for rows left out.", metavar="FILE")
    ] = None
    max_failures: Annotated[
        int | None, Option("--max-failures", help="Rows that may be left out.", metavar="N")
    ] = None


@frozen
class CsvOptions(OptionSet):
    """The format of CSV files."""

    delimiter: Annotated[
        str | None, Option("--delimiter", help="Separator of CSV cells.", metavar="C")
    ] = None
    quote: Annotated[
        str, Option("--quote", help="Quote of CSV cells; empty: none.", metavar="C")
    ] = '"'
    column_names: Annotated[
        str | None,
        Option("--column-names", help="Columns of CSV files without a header.", metavar="A,B"),
    ] = None
    null_text: Annotated[
        str, Option("--null-text", help="CSV cell that means no value.", metavar="TEXT")
    ] = ""
    encoding: Annotated[str, Option("--encoding", help="Encoding of CSV files.")] = "utf-8"

    def form(self) -> Any:
        """The same as loads know it."""
        from omnigraph.write.input.options import CsvFormat

        names = tuple(n.strip() for n in (self.column_names or "").split(",") if n.strip())
        return CsvFormat(self.delimiter, self.quote, names, self.null_text, self.encoding)


@frozen
class ValueOptions(OptionSet):
    """How values of tables are read."""

    assume_timezone: Annotated[
        str | None,
        Option("--assume-timezone", help="Zone of date-times without one.", metavar="ZONE"),
    ] = None
    nulls: Annotated[
        Nulls, Option("--nulls", help="Null cells: clear the stored value, or keep it.")
    ] = Nulls.CLEAR


def reading(
    cells: CsvOptions, repeats: RepeatOptions, values: ValueOptions, bad: BadRowOptions
) -> Any:
    """How to read the input of a load; None if no option was given."""
    from omnigraph.write.input.options import Options
    from omnigraph.write.repeats import Repeats

    if (bad.on_error is OnError.QUARANTINE) != (bad.quarantine is not None):
        raise UsageError("--on-error quarantine and --quarantine FILE go together")
    if bad.max_failures is not None and bad.quarantine is None:
        raise UsageError("--max-failures bounds a quarantine: add --on-error quarantine")
    options = Options(
        nulls=str(values.nulls),
        assume_timezone=values.assume_timezone,
        csv=cells.form(),
        repeats=Repeats(repeats.duplicates, repeats.version_property),
        quarantine=bad.quarantine,
        failures_max=bad.max_failures,
    )
    return None if options == Options() else options


@frozen
class Merging(OptionSet):
    """How to merge changes into a branch."""

    dry_run: DryRun = False
    message: Message = None
    strategy: Annotated[
        str | None,
        Option("--strategy", help="Resolve conflicts: ours or theirs.", metavar="SIDE"),
    ] = None
    decisions: Annotated[
        str | None,
        Option(
            "--decisions",
            help="Resolve conflicts as in a JSON file; - for stdin.",
            metavar="FILE",
        ),
    ] = None

    def decided(self) -> dict[str, Any]:
        """The values of --strategy and --decisions, as arguments of a merge."""
        from omnigraph.cli.context import decisions_of

        if self.strategy is not None and self.decisions is not None:
            raise UsageError("--strategy and --decisions cannot be combined")
        return decisions_of(self.decisions) if self.decisions else {"strategy": self.strategy}
