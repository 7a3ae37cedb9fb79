"""What a local disk can refuse, as errors of ours. All of them mean that nothing has happened."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from omnigraph.errors import Corrupt, StoreDenied, StoreError, StoreUnavailable

DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
MISSING = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR})
# The kernel looked at the request and refused it. After any other error it may have been carried out, or still be.
REFUSED = DENIED | MISSING | {
    errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENAMETOOLONG, errno.EMLINK, errno.ELOOP,
    errno.EXDEV, errno.ENOMEM, errno.EBUSY, errno.EINVAL,
}  # fmt: skip


def refusal(number: int | None, message: str) -> StoreError:
    """The error for a request of which nothing has happened."""
    if number in DENIED:
        help = (
            "Check who owns the folder, its permissions, and whether the disk is mounted read-only."
        )
        return StoreDenied(message, help=help)
    help = "Nothing was changed. Check the disk: its space, quota and health, and how many files are open."
    return StoreUnavailable(message, help=help)


@contextmanager
def disk_errors(doing: str) -> Iterator[None]:
    """Translate what a disk refuses while files are prepared that nothing refers to yet."""
    try:
        yield
    except OSError as error:
        if error.errno in MISSING:
            raise Corrupt(f"{doing} failed: {error}") from error
        raise refusal(error.errno, f"{doing} failed: {error}") from error


def sync(path: Path) -> None:
    """fsync a file, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
