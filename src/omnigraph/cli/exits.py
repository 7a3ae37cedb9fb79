"""Exit codes: the one place that maps kinds of errors to them."""

from __future__ import annotations

from omnigraph.errors import Kind, OmnigraphError

OK = 0
FAILURE = 1
USAGE = 2
INTERRUPTED = 130

EXIT_CODES = {
    Kind.INVALID: FAILURE,
    Kind.INTERNAL: FAILURE,
    Kind.NOT_FOUND: 3,
    Kind.CONFLICT: 4,
    Kind.DENIED: 5,
    Kind.LIMIT: 6,
    Kind.UNAVAILABLE: 7,
    Kind.UNKNOWN_OUTCOME: 8,
    Kind.CORRUPT: 9,
}
MEANINGS = {
    0: "success",
    1: "failure: fix the request or the data",
    2: "invalid command line",
    3: "not found",
    4: "conflict or failed precondition: read again, then decide",
    5: "permission denied",
    6: "limit exceeded: request less, or raise the limit",
    7: "unavailable: nothing was changed, try again",
    8: "unknown outcome: check before trying again",
    9: "stored data is corrupt: run `omnigraph doctor`",
    130: "interrupted with Ctrl-C",
}


class UsageError(OmnigraphError):
    """The command line is invalid."""

    code, kind = "usage", Kind.INVALID
    default_help = "`omnigraph COMMAND --help` shows how to use a command."


class Interrupted(Exception):
    """Ctrl-C, with its effects. Not a KeyboardInterrupt, on which typer would exit itself."""


def exit_code(error: OmnigraphError) -> int:
    """The exit code of a failure."""
    return USAGE if isinstance(error, UsageError) else EXIT_CODES[error.kind]
