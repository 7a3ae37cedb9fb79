"""`omnigraph config`."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from omnigraph.cli.app import Group, Verb
from omnigraph.cli.context import config
from omnigraph.cli.options import Show
from omnigraph.cli.output import Sheet, print_sheet, warn


def show_(
    show: Show,
    origin: Annotated[bool, Option("--origin", help="Say who set each.")] = False,
) -> None:
    """Print the settings in force, servers and aliases."""
    found = config()
    rows = [[v.setting.key, v.value, v.origin] for v in found.values.values()]
    rows += [[f"servers.{name}", url, str(found.path)] for name, url in found.servers.items()]
    rows += [[f"aliases.{name}", line, str(found.path)] for name, line in found.aliases.items()]
    for key in found.unknown:
        warn(f"{found.path}: there is no setting {key!r}")
    columns = ["setting", "value", "origin"]
    keep = len(columns) if origin else 2
    document = {row[0]: dict(zip(columns[1:keep], row[1:keep], strict=True)) for row in rows}
    sheet = Sheet(columns[:keep], [row[:keep] for row in rows], document=document)
    print_sheet(show, sheet, rows_max=0)


COMMAND = Group(
    "Show the settings.",
    (Verb(show_, ("omnigraph config show --origin", "omnigraph config show --json")),),
)
