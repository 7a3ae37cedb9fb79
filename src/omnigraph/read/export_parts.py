"""An export into the graph's own store, part by part, for whoever fetches them later."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from omnigraph.core import layout
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.read.export import Kind, Part, shares, write_part
from omnigraph.storage.objects import LargeObjects


def export_parts(
    repo: Repository,
    snapshot: Snapshot,
    job: str,
    format: str,
    kinds: Sequence[Kind],
    progress: Callable[[int, int], None],
) -> tuple[Part, ...]:
    """Write each type in parts of about a million rows. `progress` hears how many are done, and may raise."""
    wanted = [(kind, list(shares(snapshot, kind))) for kind in kinds]
    total, found = sum(len(groups) for _, groups in wanted), []
    objects = cast(LargeObjects, repo.objects)
    progress(0, total)
    with tempfile.TemporaryDirectory(prefix="omnigraph-export-") as folder:
        for kind, groups in wanted:
            for number, fragments in enumerate(groups):
                place = number if len(groups) > 1 else None
                part = write_part(snapshot, kind, Path(folder), format, fragments or None, place)
                file = Path(folder, part.file)
                objects.put_file(f"{layout.export_folder(job)}/{part.file}", file)
                file.unlink()
                found.append(part)
                progress(len(found), total)
    return tuple(found)
