"""`omnigraph version`."""

from __future__ import annotations

import omnigraph
from omnigraph.cli.app import Verb
from omnigraph.cli.options import Show
from omnigraph.cli.output import answer


def version(show: Show) -> None:
    """Print the version."""
    answer(show, f"omnigraph {omnigraph.__version__}", {"version": omnigraph.__version__})


COMMAND = Verb(version, ("omnigraph version", "omnigraph version --json"))
