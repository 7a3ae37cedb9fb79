"""How the process ends: the one place where kinds of errors become exit codes."""

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
    0: "it worked",
    1: "it failed: the request or the data must be mended",
    2: "the command line was not understood",
    3: "something named does not exist",
    4: "a conflict, or a lost precondition: read again and decide",
    5: "not allowed",
    6: "a limit: ask for less, or raise it",
    7: "not available: nothing happened, try again",
    8: "unknown outcome: look before trying again",
    9: "stored data is damaged: run `omnigraph doctor`",
    130: "interrupted with Ctrl-C",
}


class UsageMistake(OmnigraphError):
    """The command line was not understood."""

    code, kind = "usage", Kind.INVALID
    default_help = "`omnigraph COMMAND --help` shows how a command is used."


def exit_code(error: OmnigraphError) -> int:
    """The exit code of a failure."""
    return USAGE if isinstance(error, UsageMistake) else EXIT_CODES[error.kind]
