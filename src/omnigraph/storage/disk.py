"""The local disk: where the objects of a graph are, which errors it raises, and making files durable.

A key is a relative path of plain names. Nothing below the root is a link: a graph from another person could otherwise
read, write or delete whatever its links point to. The root itself may be a link, because the user who opens the graph
named it. Lance never calls fsync, so its files are synced here.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from omnigraph.errors import AddressInvalid, Corrupt, StoreDenied, StoreError, StoreUnavailable

SYNCS_AT_ONCE = 8
DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
MISSING = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR})
# The kernel checked the request and refused it. After any other error it may have been carried out, or still be.
REFUSED = DENIED | MISSING | {
    errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENAMETOOLONG, errno.EMLINK, errno.ELOOP,
    errno.EXDEV, errno.ENOMEM, errno.EBUSY, errno.EINVAL,
}  # fmt: skip


def refusal(number: int | None, message: str) -> StoreError:
    """The error for a request that had no effect."""
    if number in DENIED:
        help = (
            "Check who owns the folder, its permissions, and whether the disk is mounted read-only."
        )
        return StoreDenied(message, help=help)
    help = "Nothing was changed. Check the disk: its space, quota and health, and the number of open files."
    return StoreUnavailable(message, help=help)


@contextmanager
def disk_errors(doing: str) -> Iterator[None]:
    """Translate disk errors while preparing files that nothing refers to yet."""
    try:
        yield
    except OSError as error:
        if error.errno in MISSING:
            raise Corrupt(f"{doing} failed: {error}") from error
        raise refusal(error.errno, f"{doing} failed: {error}") from error


def sync(path: Path) -> None:
    """fsync a file or a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


OWN_FILES = "A graph contains only its own files and folders: put back what belongs there, or restore a backup."


def checked(key: str) -> str:
    """The key, if every part of it is a plain name."""
    for part in key.split("/"):
        if part in ("", ".", "..") or "\\" in part or not part.isprintable():
            raise AddressInvalid(f"{key!r} is not a key of an object")
    return key


def inside(root: Path, key: str) -> Path:
    """The path of a key under a root. Its parts may be missing, but none may be a link."""
    return Path(inside_text(root, key))


def inside_text(root: Path, key: str) -> str:
    """The same as text: every read needs it, and a path is slow to build."""
    path = folder = str(root)
    for part in checked(key).split("/"):
        path = f"{path}/{part}"
        try:
            mode = os.lstat(path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            break
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            refuse_stray(mode, Path(path), root)
    return f"{folder}/{key}"


def refuse_stray(mode: int, path: Path, root: Path) -> None:
    """Only files and folders make up a graph: links lead elsewhere, and pipes and devices never end."""
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        name = path.relative_to(root).as_posix()
        raise Corrupt(
            f"{name} under {root} is a {_kind(mode)}, which no graph contains",
            help=OWN_FILES,
            details={"object": name, "kind": _kind(mode)},
        )


def strays(root: Path) -> Iterator[str]:
    """Everything below a root that is neither a file nor a folder, and what it is."""
    for folder, names, files in os.walk(root):
        for name in (*names, *files):
            path = Path(folder, name)
            mode = os.lstat(path).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                yield f"{path.relative_to(root).as_posix()} is a {_kind(mode)}"


def _kind(mode: int) -> str:
    return "link" if stat.S_ISLNK(mode) else "device, pipe or socket"


def sync_files(folder: Path, names: Iterable[str]) -> None:
    """fsync these files of a table (a trailing slash names a whole folder), and every directory that names them."""
    files: set[Path] = set()
    for name in names:
        path = folder / name
        if name.endswith("/"):
            files |= {each for each in path.rglob("*") if each.is_file()}
        elif path.exists():
            files.add(path)
    directories = {folder, *(parent for file in files for parent in _between(file, folder))}
    with disk_errors(f"making the files of {folder} durable"):
        # In any order: nothing depends on them before all are durable.
        done = [_syncing().submit(sync, path) for path in sorted(files | directories)]
        wait(done)
        for each in done:
            each.result()


@cache
def _syncing() -> ThreadPoolExecutor:
    """A persistent thread pool: starting threads for every commit takes longer than their work."""
    return ThreadPoolExecutor(SYNCS_AT_ONCE, thread_name_prefix="omnigraph-sync")


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_syncing.cache_clear)


def sync_parents(folder: Path, root: Path) -> None:
    """fsync the directories from the root down to a new table's folder, so that the folder itself is not lost."""
    with disk_errors(f"making the folder {folder} durable"):
        for directory in _between(folder, root):
            sync(directory)
        sync(root)


def _between(path: Path, folder: Path) -> list[Path]:
    """The directories above `path` down from (and without) `folder`."""
    return [parent for parent in path.parents if parent != folder and folder in parent.parents]
