"""The format of answers to agents: counts first, few rows, a next step; text from data is in `data` alone.

Everything outside `data` consists of constants of this program, so that a sentence stored in a graph, or put into a
name, never appears where an agent looks for instructions.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from omnigraph.errors import CODES, Kind, OmnigraphError, is_discreet
from omnigraph.lang.diagnostics import LanguageError
from omnigraph.model.frozen import frozen
from omnigraph.values.spelling import to_json

log = logging.getLogger("omnigraph.agents")

ROWS = 20  # of one answer, unless more are requested
ROWS_MAX = 200
TEXT_CHARACTERS_MAX = 400  # of one value, unless it is requested in full
LIST_ITEMS_MAX = 20
ANSWER_CHARACTERS_MAX = 40_000  # of the rows of one answer
CURSOR_CHARACTERS_MAX = 400
LEVELS_MAX = 24

NEXT_OF_KIND = {
    Kind.INVALID: "Fix the arguments and call again. `describe` shows the types, `explain_error` explains the "
    "code, and the resource omnigraph://language shows how queries are written.",
    Kind.NOT_FOUND: "Look up what exists: `describe` shows types and branches, `search` and `find_entity` rows.",
    Kind.CONFLICT: "Read the current state again, then repeat the call.",
    Kind.DENIED: "Do not try to work around it. Tell the person you work for what was refused, or work on a branch.",
    Kind.LIMIT: "Request less: fewer rows, fewer hops, a `limit` in the query, or a smaller load.",
    Kind.UNAVAILABLE: "Nothing was changed. Wait a moment and repeat the call.",
    Kind.UNKNOWN_OUTCOME: "It may have happened. Look at the branch before you repeat the call.",
    Kind.CORRUPT: "Stop, and tell the person you work for: stored data is damaged.",
    Kind.INTERNAL: "Stop, and tell the person you work for: this is a fault of the server.",
}
NEXT_OF_CODE = {
    "branch_not_found": "Create the branch with `start_branch`, or choose one that `describe` lists.",
    "branch_exists": "Write to the existing branch, or choose another name.",
    "agent_branch_required": "Omit `branch`: changes then go to your own branch, which a person can merge.",
    "cursor_invalid": "Repeat the call without `cursor` to start from the first page.",
    "tool_arguments_invalid": "Fix the arguments by the schema of the tool and call again.",
    "merge_conflicts": "Show the conflicts to the person you work for, or change your branch to resolve them.",
}


class ArgumentsInvalid(OmnigraphError):
    """The arguments of a tool do not fit its schema."""

    code, kind = "tool_arguments_invalid", Kind.INVALID
    default_help = "The schema of the tool says which arguments it takes."


class CursorInvalid(OmnigraphError):
    """The cursor is not from an earlier answer."""

    code, kind = "cursor_invalid", Kind.INVALID
    default_help = "Use `cursor` as it stands in `data.next_cursor`, with the same arguments."


@frozen
class ToolAnswer:
    """The answer of a tool; `data` holds everything that comes from the graph or from people."""

    data: Mapping[str, Any]
    next: str = ""  # what to do now: a constant
    is_error: bool = False
    error: Mapping[str, str] | None = None  # code, title, help: constants
    commit: str | None = None  # written by the call, for the log of a server

    @classmethod
    def shortened(cls, data: Mapping[str, Any], next: str = "") -> ToolAnswer:
        """An answer with long values cut and marked."""
        return cls({name: shown(value) for name, value in data.items()}, next)

    def to_json(self) -> dict[str, Any]:
        head = {} if self.error is None else {"error": dict(self.error)}
        tail = {"next": self.next} if self.next else {}
        return {**head, "data": dict(self.data), **tail}


def failure(error: OmnigraphError) -> ToolAnswer:
    """An error as an answer: its kind as constants, its details as data."""
    code = str(error.code)
    known = CODES.get(code, CODES["internal"])  # a server may be newer than we are
    about: dict[str, Any] = {"retryable": error.retryable}
    if not is_discreet(error):
        about |= {"message": error.message, "hint": error.help, "details": _details(error)}
        if error.span is not None:
            about["place"] = {"line": error.span.line, "column": error.span.column}
    return ToolAnswer(
        {name: shown(value) for name, value in about.items()},
        NEXT_OF_CODE.get(code, NEXT_OF_KIND[error.kind]),
        is_error=True,
        error={"code": code, "title": known.title, "help": known.help},
    )


def unexpected(error: Exception) -> ToolAnswer:
    """An internal error: the details go to the log only."""
    log.error("a tool failed", exc_info=error)
    return failure(OmnigraphError("internal error"))


def _details(error: OmnigraphError) -> dict[str, Any]:
    if isinstance(error, LanguageError):  # the texts of all mistakes, without their offsets
        return {"mistakes": [f"{d.message} {d.help}".strip() for d in error.diagnostics]}
    return dict(error.details)


# --- few rows ------------------------------------------------------------------------------------------------------


@frozen
class RowPage:
    """A page of rows of a result at a commit."""

    limit: int = ROWS
    skip: int = 0
    at: str | None = None  # the commit the first page was read from

    @classmethod
    def of(cls, limit: int, cursor: str | None) -> RowPage:
        """The page of a cursor; without one, the first."""
        if cursor is None:
            return cls(limit)
        try:
            raw = base64.urlsafe_b64decode(cursor[:CURSOR_CHARACTERS_MAX].encode("ascii"))
            skip, at = msgspec.json.decode(raw, type=tuple[int, str])
        except (ValueError, binascii.Error, msgspec.MsgspecError):
            raise CursorInvalid("the cursor cannot be read") from None
        if skip < 0:
            raise CursorInvalid("the cursor does not belong to this result")
        return cls(limit, skip, at)

    def after(self, count: int, commit: str) -> str:
        """The cursor of the page after `count` rows of this one."""
        raw = msgspec.json.encode((self.skip + count, commit))
        return base64.urlsafe_b64encode(raw).decode()


def paged(
    rows: Sequence[Mapping[str, Any]], page: RowPage, commit: str, *, total: int | None = None
) -> dict[str, Any]:
    """The rows of a page as data, after how many there are; `rows` begins with those of the page.

    `total` counts the rows of all pages where it is known to be more than the given ones.
    """
    count = page.skip + len(rows) if total is None else total
    kept: list[Any] = []
    room, is_short = ANSWER_CHARACTERS_MAX, False
    for row in rows[: page.limit]:
        whole = to_json(dict(row))
        small = shown(whole)
        room -= len(msgspec.json.encode(small, enc_hook=str))
        if room < 0 and kept:
            break
        is_short = is_short or small != whole
        kept.append(small)
    found: dict[str, Any] = {"count": count, "shown": len(kept), "commit": commit}
    if is_short:
        found["shortened"] = True  # long values end with an ellipsis
    if kept and page.skip + len(kept) < count:
        found["next_cursor"] = page.after(len(kept), commit)
    return {**found, "rows": kept}


def shown(value: Any, level: int = 0) -> Any:
    """A value as short JSON; omitted parts are replaced by their size."""
    if isinstance(value, str):
        if len(value) <= TEXT_CHARACTERS_MAX:
            return value
        return f"{value[:TEXT_CHARACTERS_MAX]}… ({len(value)} characters)"
    if level > LEVELS_MAX:
        return "…"
    if isinstance(value, Mapping):
        return {str(name): shown(item, level + 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        if len(value) > LIST_ITEMS_MAX and all(isinstance(item, int | float) for item in value):
            return f"… ({len(value)} numbers)"
        kept = [shown(item, level + 1) for item in value[:LIST_ITEMS_MAX]]
        more = len(value) - len(kept)
        return [*kept, f"… ({more} more)"] if more else kept
    return to_json(value)
