"""Every error a user can meet: one base class, few kinds, unique codes.

A kind says what the caller does next; a code says what happened. Codes are the contract, texts are not. The same
error renders alike on the command line, as JSON and in notebooks (see `render` and `to_json`), with help in the words
of the surface it is shown on: `speaking`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar


class Kind(StrEnum):
    """What the caller should do about it."""

    INVALID = "invalid"  # fix the request
    NOT_FOUND = "not_found"  # name something that exists
    CONFLICT = "conflict"  # re-read, then try again
    DENIED = "denied"  # ask for permission
    LIMIT = "limit"  # ask for less, or raise the named limit
    UNAVAILABLE = "unavailable"  # it did not happen: try again later
    UNKNOWN_OUTCOME = "unknown_outcome"  # it may have happened: look before trying again
    CORRUPT = "corrupt"  # stored data is damaged: stop and run doctor
    INTERNAL = "internal"  # a bug of ours: report it


RETRYABLE = frozenset({Kind.CONFLICT, Kind.UNAVAILABLE})
DISCREET = frozenset({Kind.INTERNAL, Kind.CORRUPT, Kind.UNAVAILABLE, Kind.UNKNOWN_OUTCOME})
LEFT_TO_THE_LOG = frozenset({"store_denied", "object_not_found", "graph_not_found"})


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a source text: character offsets, and the line and column (from 1) of its start.

    `start16`/`end16` are the same offsets in UTF-16 units, as editors count.
    """

    start: int
    end: int
    line: int
    column: int
    start16: int
    end16: int
    source: str = ""  # the name of the file, or "" for text given directly

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Code:
    """One line of the catalogue of codes: what `omnigraph explain CODE` prints."""

    code: str
    kind: Kind
    title: str
    explanation: str
    help: str


CODES: dict[str, Code] = {}
_surface = ["python"]  # the innermost of those that run: python or cli


@contextmanager
def speaking(surface: str) -> Iterator[None]:
    """Errors shown within the block give help in the words of a surface."""
    _surface.append(surface)
    try:
        yield
    finally:
        _surface.pop()


def register(code: str, kind: Kind, title: str, explanation: str, help: str) -> None:
    """Enter a code into the catalogue; a duplicate code is a bug."""
    if code in CODES:
        raise RuntimeError(f"error code {code} is defined twice")
    CODES[code] = Code(code, kind, title, explanation, help)


class OmnigraphError(Exception):
    """Base of all errors of omnigraph.

    Subclasses name their `code` and `kind`; the first line of their docstring is the title and the rest explains.
    `default_help` is in the words of the command line; where Python says it in others, they are in `python_help`.
    """

    code: str = "internal"
    kind: Kind = Kind.INTERNAL
    default_help: ClassVar[str] = "This is a bug in omnigraph. Please report it with the message."
    python_help: ClassVar[str | None] = None

    def __init__(
        self,
        message: str,
        *,
        help: str | None = None,
        python_help: str | None = None,
        span: Span | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self._help = {"cli": help, "python": python_help or help}
        self.span = span
        self.details: dict[str, Any] = dict(details or {})

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "default_help" in cls.__dict__ and "python_help" not in cls.__dict__:
            cls.python_help = None
        if "code" in cls.__dict__:
            title, _, text = (cls.__doc__ or cls.__name__).partition("\n")
            register(cls.code, cls.kind, title.strip().rstrip("."), text.strip(), cls.default_help)

    @property
    def help(self) -> str:
        """What to do about it, in the words of the surface that shows it."""
        return self.help_on(_surface[-1])

    @help.setter
    def help(self, text: str) -> None:
        self._help = {"cli": text, "python": text}

    def help_on(self, surface: str) -> str:
        """The help in the words of the command line ("cli") or of Python ("python")."""
        default = self.python_help if surface == "python" else None
        own = self._help[surface]
        return own if own is not None else default or self.default_help

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed when retried unchanged."""
        return self.kind in RETRYABLE

    def to_json(self) -> dict[str, Any]:
        """The one JSON shape of an error, on every surface."""
        return {
            "code": str(self.code),
            "kind": str(self.kind),
            "message": self.message,
            "help": self.help,
            "span": self.span.to_json() if self.span else None,
            "details": self.details,
            "retryable": self.retryable,
        }

    def render(self) -> str:
        """The one text shape of an error: code, message, place, help."""
        lines = [f"error[{self.code}]: {self.message}"]
        if self.span is not None:
            lines.append(f"  --> {self.span.source or 'input'}:{self.span.line}:{self.span.column}")
        if self.help:
            lines.append(f"  = help: {self.help}")
        return "\n".join(lines)

    def __str__(self) -> str:
        """The full text: what a traceback ends with."""
        return self.render().removeprefix(f"error[{self.code}]: ")

    def __format__(self, spec: str) -> str:
        """Within a sentence: the message alone."""
        return format(self.message, spec)

    def _repr_markdown_(self) -> str:
        return f"```\n{self.render()}\n```"

    def _render_traceback_(self) -> list[str]:
        """What notebooks show: the error and the line that led to it, without the frames in between."""
        if os.environ.get("OMNIGRAPH_DEBUG"):
            import traceback

            return "".join(traceback.format_exception(self)).splitlines()
        return [*_caller(self), *self.render().splitlines()]


def _caller(error: BaseException) -> Iterator[str]:
    """The last line of the traceback outside this package."""
    import linecache

    found, step = None, error.__traceback__
    while step is not None:
        frame = step.tb_frame
        if not str(frame.f_globals.get("__name__", "")).startswith(("omnigraph", "IPython")):
            found = (frame.f_code.co_filename, step.tb_lineno, frame.f_globals)
        step = step.tb_next
    if found is not None:
        text = linecache.getline(*found).strip()
        yield f"line {found[1]}: {text}" if text else f"line {found[1]}"


def known_errors() -> Iterator[type[OmnigraphError]]:
    """Every class of errors with a code of its own that has been imported."""
    waiting = [OmnigraphError]
    while waiting:
        found = waiting.pop()
        waiting += found.__subclasses__()
        if "code" in found.__dict__ and found is not OmnigraphError:
            yield found


def error_named(
    name: str,
    message: str,
    *,
    help: str | None = None,
    span: Span | None = None,
    details: Mapping[str, Any] | None = None,
) -> OmnigraphError | None:
    """An error that another process describes, by its code or the name of its class; None if neither is known.

    Constructors of subclasses differ, so that of the base class fills it.
    """
    kind = next((k for k in known_errors() if name in (k.code, k.__name__)), None)
    if kind is None:
        return None
    error = kind.__new__(kind)
    OmnigraphError.__init__(error, message, help=help, span=span, details=details)
    return error


def is_discreet(error: OmnigraphError) -> bool:
    """Whether its message might reveal paths and stores to callers of a service; it belongs in the log."""
    return error.kind in DISCREET or str(error.code) in LEFT_TO_THE_LOG


register(
    "internal",
    Kind.INTERNAL,
    "Internal error in omnigraph",
    "",
    OmnigraphError.default_help,
)


# --- the store ---------------------------------------------------------------------------------------------------


class StoreError(OmnigraphError):
    """Base of the errors of an object store."""


class ObjectNotFound(StoreError):
    """No object has this key."""

    code, kind = "object_not_found", Kind.NOT_FOUND
    default_help = "Check the address; `omnigraph doctor` lists what a graph should consist of."


class ObjectExists(StoreError):
    """An object with this key already exists."""

    code, kind = "object_exists", Kind.CONFLICT
    default_help = "Another writer created it first; read it and decide again."


class StoreDenied(StoreError):
    """The store refused the credentials or the permission."""

    code, kind = "store_denied", Kind.DENIED
    default_help = (
        "Check the credentials (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) and the bucket policy."
    )


class StoreUnavailable(StoreError):
    """The store could not be reached; nothing happened."""

    code, kind = "store_unavailable", Kind.UNAVAILABLE
    default_help = "Nothing was changed. Check the endpoint (AWS_ENDPOINT_URL) and try again."


class StoreOutcomeUnknown(StoreError):
    """The store gave no clear answer; a write may have happened."""

    code, kind = "store_outcome_unknown", Kind.UNKNOWN_OUTCOME
    default_help = "Read the object back before trying again."


class StoreNotDurable(StoreError):
    """An object was written, but the disk did not confirm that it is durable.

    The object is visible. Whether it survives a power cut is not known.
    """

    code, kind = "store_not_durable", Kind.UNKNOWN_OUTCOME
    default_help = "Check the disk, then see whether the object exists before trying again."


class StoreUnsuitable(StoreError):
    """The store lacks a guarantee that commits depend on.

    omnigraph needs create-only puts, read-after-write and list-after-write.
    """

    code, kind = "store_unsuitable", Kind.INVALID
    default_help = "Use a local disk, Amazon S3 or a server that enforces `If-None-Match: *`."


class AddressInvalid(OmnigraphError):
    """This address does not name a place where a graph can live."""

    code, kind = "address_invalid", Kind.INVALID
    default_help = (
        "Use a path, file://…, s3://bucket/prefix, memory://name or http(s)://host/graphs/id."
    )


# --- graphs, branches, commits -----------------------------------------------------------------------------------


class GraphNotFound(OmnigraphError):
    """No graph exists at this address."""

    code, kind = "graph_not_found", Kind.NOT_FOUND
    default_help = "Create one with `omnigraph init --schema S.pg URI`, or check the address."
    python_help = "Create one with omnigraph.init(uri, schema=…), or check the address."


class GraphExists(OmnigraphError):
    """A graph already exists at this address."""

    code, kind = "graph_exists", Kind.CONFLICT
    default_help = (
        "`omnigraph log URI` shows what is in it. Use it as it is, or choose another address."
    )
    python_help = "Open it with omnigraph.open(uri), or choose another address."


class FormatUnsupported(OmnigraphError):
    """The graph was written in a storage format this version does not read."""

    code, kind = "format_unsupported", Kind.INVALID
    default_help = (
        "An older format: run `omnigraph upgrade URI`. A newer one: install a newer omnigraph."
    )


class Corrupt(OmnigraphError):
    """A stored object is damaged or missing.

    Nothing is repaired silently: damage is reported where it is found, and nothing is overwritten.
    """

    code, kind = "corrupt", Kind.CORRUPT
    default_help = "Run `omnigraph doctor` on the graph; restore the named object from a backup."
    python_help = "Run g.doctor(); restore the named object from a backup."


class BranchNotFound(OmnigraphError):
    """No branch has this name."""

    code, kind = "branch_not_found", Kind.NOT_FOUND
    default_help = "`omnigraph branch list` shows the branches."
    python_help = "g.branches() lists the branches."


class BranchExists(OmnigraphError):
    """A branch or tag with this name already exists."""

    code, kind = "branch_exists", Kind.CONFLICT
    default_help = "Choose another name, or delete the existing one first."


class BranchDeleted(OmnigraphError):
    """The branch was deleted while it was being written."""

    code, kind = "branch_deleted", Kind.CONFLICT
    default_help = "Nothing was published. Write to another branch, or create it again."


class BranchProtected(OmnigraphError):
    """This branch cannot be deleted."""

    code, kind = "branch_protected", Kind.INVALID
    default_help = "The main branch always exists."


class CommitNotFound(OmnigraphError):
    """No commit, tag, branch or time matches."""

    code, kind = "commit_not_found", Kind.NOT_FOUND
    default_help = "`omnigraph log` lists the commits of a branch."
    python_help = "g.log() lists the commits of a branch, g.tags() the tags."


class CommitPruned(OmnigraphError):
    """The commit was removed by cleanup."""

    code, kind = "commit_pruned", Kind.NOT_FOUND
    default_help = "History older than the retention of `omnigraph cleanup` cannot be read; tag commits to keep them."
    python_help = "History older than the retention of g.cleanup() cannot be read; g.tag() commits to keep them."


class TableNotFound(OmnigraphError):
    """The graph does not have this type at this commit."""

    code, kind = "type_not_found", Kind.NOT_FOUND
    default_help = "`omnigraph schema show` prints the types of a branch."
    python_help = "g.schema() shows the types of a branch."


class EntityNotFound(OmnigraphError):
    """The node or edge does not exist in this state."""

    code, kind = "entity_not_found", Kind.NOT_FOUND
    default_help = "It may be on another branch, or only in history: look at its history."


class NameInvalid(OmnigraphError):
    """A name is not allowed."""

    code, kind = "name_invalid", Kind.INVALID
    default_help = "Names are NFC text without control characters, at most 255 bytes."


# --- writing -----------------------------------------------------------------------------------------------------


class WriteConflict(OmnigraphError):
    """Another commit conflicts with this write.

    The details name the commit, its actor and the types concerned. Nothing of this write is visible.
    """

    code, kind = "conflict", Kind.CONFLICT
    default_help = "Nothing was changed. Read the branch again and repeat the write."


class WritesUnseen(OmnigraphError):
    """A write reads patterns of a type that an earlier write of the same commit changes."""

    code, kind = "writes_unseen", Kind.CONFLICT
    default_help = "Publish the earlier write first: run the two one after the other."


class PreconditionFailed(OmnigraphError):
    """The branch is not at the commit the write was made conditional on."""

    code, kind = "precondition_failed", Kind.CONFLICT
    default_help = "Read the branch again and decide whether the write still makes sense."


class RetriesExhausted(OmnigraphError):
    """Other writers won every attempt within the retry budget."""

    code, kind = "retries_exhausted", Kind.CONFLICT
    default_help = "Nothing was changed. Try again, or write fewer, larger commits."


class CommitUnknown(OmnigraphError):
    """The store did not say whether the commit was published.

    The details hold the operation id. A late answer may still publish it.
    """

    code, kind = "commit_unknown", Kind.UNKNOWN_OUTCOME
    default_help = (
        "Look for the operation id with `omnigraph log`, or repeat with the same idempotency key."
    )
    python_help = "Look for the operation id in g.log(), or repeat with the same idempotency_key=."


class IdempotencyMismatch(OmnigraphError):
    """The idempotency key was used for a different request."""

    code, kind = "idempotency_mismatch", Kind.INVALID
    default_help = "Use a new key for a new request; a key belongs to one request on one branch."


class DeadlineExceeded(OmnigraphError):
    """The time allowed for this call is over."""

    code, kind = "deadline_exceeded", Kind.LIMIT
    default_help = "Nothing was published. Allow more time, or do less per call."
    python_help = "Nothing was published. Allow more time with timeout=, or do less per call."


class Cancelled(OmnigraphError):
    """The call was cancelled."""

    code, kind = "cancelled", Kind.LIMIT
    default_help = "Nothing was published."


class ForkedProcess(OmnigraphError):
    """A graph opened before a fork cannot be used in the child process."""

    code, kind = "forked_process", Kind.INVALID
    default_help = "Open the graph again in the child, or start processes with the spawn method."


class LimitExceeded(OmnigraphError):
    """A named limit was exceeded."""

    code, kind = "limit_exceeded", Kind.LIMIT
    default_help = "The details name the limit and the value observed."


class OptionInvalid(OmnigraphError):
    """An argument of a call is invalid."""

    code, kind = "option_invalid", Kind.INVALID
    default_help = "The message names the argument and what it accepts."


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule of the schema, found while writing."""

    rule: str
    type_name: str
    id: str | None
    message: str
    property: str | None = None
    value: Any = None
    file: str | None = None
    line: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "type": self.type_name,
            "id": self.id,
            "property": self.property,
            "value": self.value,
            "message": self.message,
            "file": self.file,
            "line": self.line,
            **self.extra,
        }
