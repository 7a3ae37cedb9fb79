"""`omnigraph config`."""

from __future__ import annotations

import re
from typing import Annotated

from typer import Option

from omnigraph.cli.app import Group, Verb
from omnigraph.cli.context import config
from omnigraph.cli.options import Show
from omnigraph.cli.output import Sheet, print_sheet, warn

CREDENTIALS = re.compile(r"(?<=://)[^/\s]*@")


def show_(
    show: Show,
    origin: Annotated[bool, Option("--origin", help="Say who set each.")] = False,
) -> None:
    """Print the settings in force, servers and aliases."""
    found = config()
    rows = [[v.setting.key, _shown(v.value), v.origin] for v in found.values.values()]
    for kind, entries in (("servers", found.servers), ("aliases", found.aliases)):
        rows += [[f"{kind}.{name}", _shown(v), str(found.path)] for name, v in entries.items()]
    for key in found.unknown:
        warn(f"{found.path}: there is no setting {key!r}")
    columns = ["setting", "value", "origin"]
    keep = len(columns) if origin else 2
    document = {row[0]: dict(zip(columns[1:keep], row[1:keep], strict=True)) for row in rows}
    sheet = Sheet(columns[:keep], [row[:keep] for row in rows], document=document)
    print_sheet(show, sheet, rows_max=0)


def _shown(value: str | None) -> str | None:
    """A setting as others may see it: without what stands before the host of an address."""
    return None if value is None else CREDENTIALS.sub("…@", value)


COMMAND = Group(
    "Show the settings.",
    (Verb(show_, ("omnigraph config show --origin", "omnigraph config show --json")),),
)
