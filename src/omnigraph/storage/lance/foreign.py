"""Files outside a table's folder.

A Lance manifest may name other folders as bases and assign each file to one of them. No table of a graph has any: all
its files are below its own folder. A manifest that says otherwise was tampered with.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from lance import LanceDataset
from lance.fragment import FragmentMetadata

from omnigraph.errors import AddressInvalid, Corrupt
from omnigraph.storage.disk import OWN_FILES, checked, disk_errors, inside, refuse_stray
from omnigraph.storage.lance.failures import lance_errors
from omnigraph.storage.lance.reading import fragment_files, manifest_file
from omnigraph.storage.tables import TableRef


def refuse_foreign_files(ref: TableRef, handle: LanceDataset, root: Path | None) -> None:
    """Refuse a version that reads a file outside its own folder; `root` is the graph's, if it is on a disk."""
    with lance_errors(f"reading the manifest of version {ref.version} of table {ref.path}"):
        fragments = [fragment.metadata for fragment in handle.get_fragments()]
        bases = handle.base_paths()
    if bases or any(map(_has_base, fragments)):
        raise _foreign(ref, "its manifest names another folder as the base of files")
    for fragment in fragments:
        _check_names(ref, fragment)
    if root is not None:
        with disk_errors(f"looking at the files of table {ref.path}"):
            _refuse_linked_files(ref, fragments, root)


def refuse_linked_folders(ref: TableRef, root: Path) -> None:
    """Refuse a table whose manifest, or a folder Lance reads and writes in, is a link."""
    with (
        disk_errors(f"opening version {ref.version} of table {ref.path}"),
        os.scandir(root / ref.path) as found,
    ):
        names = [entry.name for entry in found]
    for name in (*names, manifest_file(ref.version)):
        inside(root, f"{ref.path}/{name}")


def _has_base(fragment: FragmentMetadata) -> bool:
    deletions = fragment.deletion_file
    files: list[Any] = [*fragment.files, *([deletions] if deletions is not None else [])]
    overlays = fragment.to_json().get("overlays")
    return bool(overlays) or any(file.base_id is not None for file in files)


def _check_names(ref: TableRef, fragment: FragmentMetadata) -> None:
    for file in fragment.files:
        try:
            plain = "/" not in checked(file.path)
        except AddressInvalid:
            plain = False
        if not plain:
            raise _foreign(ref, f"its manifest names the data file {file.path!r}")


def _refuse_linked_files(ref: TableRef, fragments: list[FragmentMetadata], root: Path) -> None:
    for fragment in fragments:
        for name in fragment_files(fragment, has_blobs=True):
            inside(root, f"{ref.path}/{name.rstrip('/')}")
            if name.endswith("/"):
                _refuse_links_below(root / ref.path / name, root)
    _refuse_links_below(root / ref.path / "_indices", root)


def _refuse_links_below(folder: Path, root: Path) -> None:
    for base, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(base, name)
            try:
                mode = os.lstat(path).st_mode
            except FileNotFoundError:
                continue  # a collection removed it since it was listed
            refuse_stray(mode, path, root)


def _foreign(ref: TableRef, why: str) -> Corrupt:
    return Corrupt(
        f"table {ref.path} leads out of the graph: {why}",
        help=OWN_FILES,
        details={"path": ref.path, "version": ref.version},
    )
