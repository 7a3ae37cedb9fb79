"""Positions in a change feed, as opaque texts: bound to graph, branch and filters, and checked when they come back."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable

import msgspec

from omnigraph.errors import Kind, OmnigraphError

TOKEN_CHARACTERS_MAX = 4096
CHECK_BYTES = 16


class CursorRejected(OmnigraphError):
    """A cursor or page token does not belong to this request."""

    code, kind = "cursor_rejected", Kind.INVALID
    default_help = "Start again from `POST /changes/baseline`, or with `start=`."


class Position(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """After a commit; with `offset`, after so many changes of the commit that follows it."""

    kind: str  # cursor, or page
    graph: str
    branch: str
    filters: str
    after: str
    offset: int = 0


def filters_of(**filters: Iterable[str] | None) -> str:
    """What a set of filters is recognised by."""
    named = {name: sorted(set(values)) for name, values in filters.items() if values is not None}
    return hashlib.sha256(msgspec.json.encode(named, order="sorted")).hexdigest()[:16]


def encode(position: Position) -> str:
    raw = msgspec.json.encode(position)
    return base64.urlsafe_b64encode(raw + _check(raw)).decode().rstrip("=")


def decode(text: str, kind: str, graph: str, branch: str, filters: str) -> Position:
    """The position a text stands for, if it was made for this very request."""
    found = _decoded(text)
    wanted = {"kind": kind, "graph": graph, "branch": branch, "filters": filters}
    for name, value in wanted.items():
        if getattr(found, name) != value:
            raise CursorRejected(f"change cursor rejected: it was made for another {name}")
    return found


def _decoded(text: str) -> Position:
    try:
        if len(text) > TOKEN_CHARACTERS_MAX:
            raise ValueError("too long")
        whole = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        raw, check = whole[:-CHECK_BYTES], whole[-CHECK_BYTES:]
        if check != _check(raw):
            raise ValueError("damaged")
        return msgspec.json.decode(raw, type=Position)
    except (ValueError, binascii.Error, msgspec.MsgspecError):
        raise CursorRejected("change cursor rejected: it is not one of ours") from None


def _check(raw: bytes) -> bytes:
    return hashlib.sha256(b"omnigraph feed\0" + raw).digest()[:CHECK_BYTES]
