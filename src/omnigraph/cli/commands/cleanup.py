"""`omnigraph cleanup`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from typer import Option

from omnigraph.cli import consent
from omnigraph.cli.app import Verb
from omnigraph.cli.commits import human_bytes
from omnigraph.cli.context import address, open_graph
from omnigraph.cli.interrupt import leaving
from omnigraph.cli.options import Show, Uri, Where, Writer, Yes
from omnigraph.cli.output import answer
from omnigraph.cli.progress import telling


def cleanup(
    where: Where,
    show: Show,
    writer: Writer,
    uri: Uri = None,
    keep: Annotated[int, Option("--keep", help="Commits to keep on each branch.")] = 10,
    older_than: Annotated[
        float | None, Option("--older-than", help="Only what is older, in days.", metavar="DAYS")
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only say what would go.")] = False,
    yes: Yes = False,
) -> None:
    """Remove old history and files nobody needs.

    The newest commits of each branch and all tagged ones stay readable. On a remote store it asks first.
    """
    named = address(where, uri)
    if consent.is_remote(named) and not dry_run:
        consent.ask(f"Remove all but the newest {keep} commits of each branch of {named}?", yes=yes)
    graph = open_graph(where, uri)
    left = "what was removed is gone; everything that is to be kept is still there"
    with leaving(left), telling("cleanup", writer.progress, quiet=show.quiet):
        done = graph.cleanup(keep, older_than, dry_run=dry_run)
    would = "would remove" if dry_run else "removed"
    said = f"{would} {done.commits_pruned:,} commits, {done.objects_deleted:,} objects"
    answer(show, f"{said}, {human_bytes(done.bytes_deleted)}", asdict(done))


COMMAND = Verb(
    cleanup,
    ("omnigraph cleanup people --dry-run", "omnigraph cleanup --store people --keep 5 --json"),
)
