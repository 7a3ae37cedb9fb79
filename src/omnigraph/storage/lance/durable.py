"""Making files survive a power cut. Lance never calls fsync."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from omnigraph.storage import metrics
from omnigraph.storage.disk import disk_errors, sync


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
        metrics.parallel([partial(sync, path) for path in sorted(files)])
        metrics.parallel([partial(sync, path) for path in sorted(directories)])


def sync_parents(folder: Path, root: Path) -> None:
    """fsync the directories from the root down to a new table's folder, so that the folder itself is not lost."""
    with disk_errors(f"making the folder {folder} durable"):
        for directory in _between(folder, root):
            sync(directory)
        sync(root)


def _between(path: Path, folder: Path) -> list[Path]:
    """The directories above `path` down from (and without) `folder`."""
    return [parent for parent in path.parents if parent != folder and folder in parent.parents]
