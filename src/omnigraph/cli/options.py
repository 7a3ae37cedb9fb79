"""What several commands accept. A class here is a set of options: a command names it as one parameter."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from typer import Argument, Option

from omnigraph.model.value import value


class Format(StrEnum):
    """How data is written to stdout."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    MARKDOWN = "markdown"
    ARROW = "arrow"


class ProgressMode(StrEnum):
    """How progress is told on stderr."""

    AUTO = "auto"
    JSON = "json"
    NONE = "none"


Branch = Annotated[
    str | None, Option("--branch", "-b", help="The branch; default main.", metavar="B")
]
At = Annotated[
    str | None,
    Option("--at", help="A commit, tag, branch, main~2, date or '@{1 hour ago}'.", metavar="POINT"),
]
Text = Annotated[str | None, Option("--expr", "-e", help="The query itself.", metavar="TEXT")]
File = Annotated[str | None, Option("--file", "-f", help="A file of queries.", metavar="F.gq")]
Name = Annotated[str | None, Argument(help="Which query of the file.", metavar="[NAME]")]
Params = Annotated[
    str | None,
    Option("--params", help="Values of the parameters, as JSON or @FILE.", metavar="JSON"),
]
Violations = Annotated[
    str | None,
    Option("--violations", help="List everything that is wrong in a file there.", metavar="FOLDER"),
]
Message = Annotated[str | None, Option("--message", "-m", help="Why, for the log.")]
Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask.")]
Uri = Annotated[str | None, Argument(help="The graph, instead of --store.", metavar="[URI]")]


Store = Annotated[
    str | None, Option("--store", "-s", help="The graph: a path, s3://…, http://…", metavar="URI")
]
Server = Annotated[
    str | None, Option("--server", help="A server: URL or configured name.", metavar="URL")
]


@value
class Where:
    """Which graph."""

    __option_set__: ClassVar[bool] = True

    store: Store = None
    server: Server = None
    graph: Annotated[
        str | None, Option("--graph", help="The graph on the server.", metavar="ID")
    ] = None


@value
class Show:
    """How to answer."""

    __option_set__: ClassVar[bool] = True

    format: Annotated[Format | None, Option("--format", help="How to print data.")] = None
    json: Annotated[bool, Option("--json", help="The same as --format json.")] = False
    quiet: Annotated[bool, Option("--quiet", "-q", help="Only data and errors.")] = False


@value
class Writer:
    """Who writes, and what is said while it takes long."""

    __option_set__: ClassVar[bool] = True

    actor: Annotated[str | None, Option("--as", help="Who writes.", metavar="ACTOR")] = None
    progress: Annotated[ProgressMode, Option("--progress", help="Progress on stderr.")] = (
        ProgressMode.AUTO
    )
