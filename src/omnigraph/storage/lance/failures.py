"""The one place that turns Lance's exceptions into our errors.

Lance raises ValueError, OSError and RuntimeError with the details in the message, so the message has to decide. The
guard suite raises each of these for real and fails if a message changes.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from omnigraph.errors import (
    Corrupt,
    OmnigraphError,
    StoreDenied,
    StoreError,
    StoreUnavailable,
)
from omnigraph.storage.disk import MISSING, refusal

OS_ERROR = re.compile(r"\(os error ([0-9]{1,4})\)")  # how Rust writes a system error

# In order: the first group with a word in the message decides.
SIGNS: tuple[tuple[type[OmnigraphError], tuple[str, ...]], ...] = (
    (
        StoreDenied,
        ("access denied", "accessdenied", "403 forbidden", "permission denied", "invalidaccesskey",
         "signaturedoesnotmatch", "401 unauthorized", "unauthenticated"),
    ),
    (
        StoreUnavailable,
        ("error sending request", "timed out", "timeout", "connection", "slowdown", "503 service", "500 internal",
         "502 bad", "504 gateway", "dns error", "no space left", "too many open files"),
    ),
    (
        Corrupt,
        ("not found", "no such file", "file size is too small", "invalid range", "magic", "corrupt", "decode",
         "invalid format", "out of bounds", "lanceerror(io)", "failed to read"),
    ),
)  # fmt: skip


def translated(failure: BaseException, doing: str) -> OmnigraphError:
    """Our error for an exception of Lance while `doing` something."""
    text = str(failure)
    lowered = text.lower()
    system = OS_ERROR.search(text)
    if system is not None and int(system[1]) not in MISSING | {errno.EINVAL}:
        return refusal(int(system[1]), f"{doing} failed: {text}")
    for kind, signs in SIGNS:
        if any(sign in lowered for sign in signs):
            return kind(f"{doing} failed: {text}", details={"cause": type(failure).__name__})
    return OmnigraphError(f"{doing} failed: {text}", details={"cause": type(failure).__name__})


@contextmanager
def lance_errors(doing: str) -> Iterator[None]:
    """Let our own errors through and translate all exceptions of Lance and Arrow."""
    try:
        yield
    except OmnigraphError:
        raise
    except (OSError, ValueError, RuntimeError, pa.ArrowException) as failure:
        raise translated(failure, doing) from failure


__all__ = ["StoreError", "lance_errors", "translated"]
