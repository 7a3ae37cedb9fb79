"""Asking before something is lost."""

from __future__ import annotations

import sys

import typer

from omnigraph.cli.exits import UsageMistake
from omnigraph.errors import Cancelled


def is_remote(uri: str) -> bool:
    """Whether others may depend on what is there."""
    return "://" in uri and not uri.startswith(("file://", "memory://"))


def ask(question: str, *, yes: bool) -> None:
    """Go on only with consent: --yes, or an answer where there is somebody to ask."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageMistake(
            f"{question} Nobody can be asked here", help="Repeat with --yes to agree."
        )
    if not typer.confirm(question, err=True):
        raise Cancelled("nothing was changed", help="Answer `y`, or repeat with --yes.")
