"""Addresses a load may be read from: below the graph itself, or below what the operator allows.

The decision is made on the text of the address, before anything is opened or asked. Only files and S3 are read, since
neither can send us elsewhere.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable

from omnigraph.errors import Kind, OmnigraphError

SCHEMES = ("s3", "file")
UPLOADS = "uploads"


class ReferenceRefused(OmnigraphError):
    """A load may not be read from this address."""

    code, kind = "reference_refused", Kind.INVALID
    default_help = (
        "Send the records in the request, or ask the operator to allow the address with load_from."
    )


def allowed_reference(uri: str, root: str, allowed: Iterable[str]) -> str:
    """The address, if it may be read; `root` is where the graph itself lives."""
    scheme = uri.partition("://")[0] if "://" in uri else ""
    if scheme not in SCHEMES:
        raise _refused(uri, f"only {' and '.join(f'{s}://' for s in SCHEMES)} are read")
    path = uri.partition("://")[2]
    if any(part in ("", ".", "..") for part in path.removeprefix("/").split("/")):
        raise _refused(uri, "it is not a plain path")
    if any(mark in path for mark in "%\\?#@") or glob.has_magic(path) or not path.isprintable():
        raise _refused(uri, "it has characters that stand for something else")
    folders = [_folder(prefix) for prefix in (f"{_absolute(root)}/{UPLOADS}", *allowed)]
    if not any(uri.startswith(folder) for folder in folders):
        raise _refused(uri, "it is not below an allowed address")
    if scheme == "file" and not _stays_below(uri, folders):
        raise _refused(uri, "it leads elsewhere")
    return uri


def _refused(uri: str, why: str) -> ReferenceRefused:
    return ReferenceRefused(f"a load from {uri[:200]!r} is refused: {why}")


def _absolute(root: str) -> str:
    return root.rstrip("/") if "://" in root else f"file://{os.path.abspath(root)}"


def _folder(prefix: str) -> str:
    return _absolute(prefix) + "/"


def _stays_below(uri: str, folders: Iterable[str]) -> bool:
    """Whether a file is where its path says, links followed."""
    real = os.path.realpath(uri.removeprefix("file://"))
    roots = (f for f in folders if f.startswith("file://"))
    return any(real.startswith(os.path.realpath(f.removeprefix("file://")) + "/") for f in roots)
