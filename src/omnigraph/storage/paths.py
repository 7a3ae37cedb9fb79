"""The one place that turns a stored key into a location, so that none leads out of the graph it was found in.

A key is a relative path of plain names. On a disk nothing below the root is a link either: a graph that was received
from somebody else could otherwise read, write or delete whatever its links point to. The root itself may be a link,
because whoever opens the graph named it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from omnigraph.errors import AddressInvalid, Corrupt

OWN_FILES = "A graph holds files and folders of its own alone: put back what belongs there, or restore a backup."


def checked(key: str) -> str:
    """The key, if every part of it is a plain name."""
    for part in key.split("/"):
        if part in ("", ".", "..") or "\\" in part or not part.isprintable():
            raise AddressInvalid(f"{key!r} is not a key of an object")
    return key


def inside(root: Path, key: str) -> Path:
    """Where a key lies under a root. What is on the way there may be missing, but it may not be a link."""
    path = root
    for part in checked(key).split("/"):
        path = path / part
        try:
            mode = os.lstat(path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            break
        refuse_stray(mode, path, root)
    return root / key


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
