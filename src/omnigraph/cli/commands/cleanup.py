"""`omnigraph cleanup`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from typer import Option

from omnigraph.cli import consent
from omnigraph.cli.app import Verb
from omnigraph.cli.commits import human_bytes
from omnigraph.cli.context import address, open_graph
from omnigraph.cli.interrupt import leaving
from omnigraph.cli.options import Show, Uri, Where, Writer
from omnigraph.cli.output import answer
from omnigraph.cli.progress import telling

if TYPE_CHECKING:
    from omnigraph.core.gc import Collected


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
    yes: Annotated[bool, Option("--yes", "-y", "--confirm", help="Do not ask.")] = False,
) -> None:
    """Remove old history and files nobody needs.

    The newest commits of each branch and all tagged ones stay readable. It says first what would go, and wants
    consent: --yes (or --confirm), or an answer on a terminal.
    """
    graph = open_graph(where, uri)
    if not dry_run and not yes:
        planned = graph.cleanup(keep, older_than, dry_run=True)
        consent.ask(f"This {_said(planned)} of {address(where, uri)} for good. Go on?", yes=yes)
    left = "what was removed is gone; everything that is to be kept is still there"
    with leaving(left), telling("cleanup", writer.progress, quiet=show.quiet):
        done = graph.cleanup(keep, older_than, dry_run=dry_run)
    answer(show, _said(done), asdict(done))


def _said(done: Collected) -> str:
    would = "would remove" if done.dry_run else "removed"
    objects = f"{done.objects_deleted:,} objects, {human_bytes(done.bytes_deleted)}"
    return f"{would} {done.commits_pruned:,} commits, {objects}"


COMMAND = Verb(
    cleanup,
    (
        "omnigraph cleanup people --dry-run",
        "omnigraph cleanup --store people --keep 5 --yes --json",
    ),
)
