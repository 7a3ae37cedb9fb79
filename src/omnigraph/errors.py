"""Every error a user can meet: one base class, few kinds, unique codes.

A kind says what the caller does next; a code says what happened. Codes are the contract, texts are not. The same
error renders alike on the command line, as JSON and in notebooks: see `render` and `to_json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar


class Kind(StrEnum):
    """What the caller should do about it."""

    INVALID = "invalid"  # mend the request
    NOT_FOUND = "not_found"  # name something that exists
    CONFLICT = "conflict"  # re-read, then try again
    DENIED = "denied"  # ask for permission
    LIMIT = "limit"  # ask for less, or raise the named limit
    UNAVAILABLE = "unavailable"  # it did not happen: try again later
    UNKNOWN_OUTCOME = "unknown_outcome"  # it may have happened: look before trying again
    CORRUPT = "corrupt"  # stored data is damaged: stop and run doctor
    INTERNAL = "internal"  # a bug of ours: report it


RETRYABLE = frozenset({Kind.CONFLICT, Kind.UNAVAILABLE})


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


def register(code: str, kind: Kind, title: str, explanation: str, help: str) -> None:
    """Enter a code into the catalogue; the same code twice is a mistake of ours."""
    if code in CODES:
        raise RuntimeError(f"error code {code} is defined twice")
    CODES[code] = Code(code, kind, title, explanation, help)


class OmnigraphError(Exception):
    """Base of all errors of omnigraph.

    Subclasses name their `code` and `kind`; the first line of their docstring is the title and the rest explains.
    """

    code: str = "internal"
    kind: Kind = Kind.INTERNAL
    default_help: ClassVar[str] = "This is a bug in omnigraph. Please report it with the message."

    def __init__(
        self,
        message: str,
        *,
        help: str | None = None,
        span: Span | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.help = help if help is not None else self.default_help
        self.span = span
        self.details: dict[str, Any] = dict(details or {})

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "code" in cls.__dict__:
            title, _, text = (cls.__doc__ or cls.__name__).partition("\n")
            register(cls.code, cls.kind, title.strip().rstrip("."), text.strip(), cls.default_help)

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed when simply made again."""
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
        return self.message

    def _repr_markdown_(self) -> str:
        return f"```\n{self.render()}\n```"


register(
    "internal",
    Kind.INTERNAL,
    "Something in omnigraph went wrong",
    "",
    OmnigraphError.default_help,
)


# --- the store ---------------------------------------------------------------------------------------------------


class StoreError(OmnigraphError):
    """Base of what an object store can answer besides success."""


class ObjectNotFound(StoreError):
    """There is no object with this key."""

    code, kind = "object_not_found", Kind.NOT_FOUND
    default_help = "Check the address; `omnigraph doctor` lists what a graph should consist of."


class ObjectExists(StoreError):
    """An object with this key exists already."""

    code, kind = "object_exists", Kind.CONFLICT
    default_help = "Somebody else created it first; read it and decide again."


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
    """An object is in place, but the disk would not confirm that it survives a power cut.

    Everybody sees the object. Whether it is still there after a power cut is not known.
    """

    code, kind = "store_not_durable", Kind.UNKNOWN_OUTCOME
    default_help = "Check the disk, then look at what is there before trying again."


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
    """There is no graph at this address."""

    code, kind = "graph_not_found", Kind.NOT_FOUND
    default_help = "Create one with `omnigraph init --schema S.pg URI`, or check the address."


class GraphExists(OmnigraphError):
    """There is a graph at this address already."""

    code, kind = "graph_exists", Kind.CONFLICT
    default_help = "Open it with omnigraph.open(uri), or choose another address."


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


class BranchNotFound(OmnigraphError):
    """There is no branch with this name."""

    code, kind = "branch_not_found", Kind.NOT_FOUND
    default_help = "`omnigraph branch list` shows the branches."


class BranchExists(OmnigraphError):
    """There is a branch or tag with this name already."""

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


class CommitPruned(OmnigraphError):
    """The commit was removed by cleanup."""

    code, kind = "commit_pruned", Kind.NOT_FOUND
    default_help = "History older than the retention of `omnigraph cleanup` cannot be read; tag what must stay."


class TableNotFound(OmnigraphError):
    """The graph has no such type at this commit."""

    code, kind = "type_not_found", Kind.NOT_FOUND
    default_help = "`omnigraph schema show` prints the types of a branch."


class NameInvalid(OmnigraphError):
    """A name is not allowed."""

    code, kind = "name_invalid", Kind.INVALID
    default_help = "Names are NFC text without control characters, at most 255 bytes."


# --- writing -----------------------------------------------------------------------------------------------------


class WriteConflict(OmnigraphError):
    """Another commit got in the way of this write.

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


class IdempotencyMismatch(OmnigraphError):
    """The idempotency key was used for a different request."""

    code, kind = "idempotency_mismatch", Kind.INVALID
    default_help = "Use a new key for a new request; a key belongs to one request on one branch."


class DeadlineExceeded(OmnigraphError):
    """The time allowed for this call is over."""

    code, kind = "deadline_exceeded", Kind.LIMIT
    default_help = "Nothing was published. Allow more time with timeout=, or do less in one call."


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
    """An argument of a call is not acceptable."""

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
