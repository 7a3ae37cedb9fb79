"""The pages of the reference that are made from code: commands, error codes, settings.

python -m omnigraph.cli.reference docs/reference
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer

from omnigraph.cli import app, exits
from omnigraph.cli.commands.explain import all_codes
from omnigraph.cli.options import Format, ProgressMode
from omnigraph.config import SETTINGS, VARIABLES
from omnigraph.model import limits

NOTE = "<!-- Made by `python -m omnigraph.cli.reference docs/reference`; edit the code, not this page. -->"

VALUES = {"format": "|".join(Format), "progress": "|".join(ProgressMode)}


def cli_page() -> str:
    """Every command: its examples, what it does, its options."""
    lines = ["# Command line", "", NOTE, "", *_conventions()]
    commands = typer.main.get_command(app.build()).commands  # type: ignore[attr-defined]
    for name in app.COMMANDS:
        match app.command(name):
            case app.Verb() as verb:
                lines += _command(f"omnigraph {name}", verb, commands[name])
            case app.Group(title, verbs):
                lines += [f"## omnigraph {name}", "", title, ""]
                for verb in verbs:
                    path = f"omnigraph {name} {verb.word}"
                    lines += _command(path, verb, commands[name].commands[verb.word], "###")
    return _page(lines)


def _conventions() -> Iterator[str]:
    yield "Data goes to stdout, everything else to stderr. `--format json` prints exactly one document; a failure then"
    yield "prints one JSON error object on stderr. Colours appear on a terminal only, and not with `NO_COLOR`."
    yield ""
    yield "The graph is named by `--store`, by `--server` and `--graph`, by the environment or by the"
    yield "[configuration](settings.md). Points in time are commits (whole ids, or as `log` shortens them), tags,"
    yield "branches, `main~2`, dates and times (UTC), and `'@{1 hour ago}'`."
    yield ""
    yield "A line under `aliases` in the configuration becomes a command of its own."
    yield ""
    yield "## Exit codes"
    yield ""
    yield from _table(("code", "meaning"), ((str(k), v) for k, v in exits.MEANINGS.items()))


def _command(path: str, verb: app.Verb, command: Any, level: str = "##") -> Iterator[str]:
    yield f"{level} {path}"
    yield ""
    yield from ("```text", *verb.examples, "```", "")
    yield inspect.getdoc(verb.run) or ""
    yield ""
    rows = [_option(parameter) for parameter in command.params if not parameter.hidden]
    yield from _table(("option", "meaning"), (row for row in rows if row[0] != "`--help`"))


def _option(parameter: Any) -> tuple[str, str]:
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name}`", parameter.help or ""
    value = "" if parameter.is_flag else parameter.metavar or VALUES.get(parameter.name, "VALUE")
    names = ", ".join(f"`{name}`" for name in sorted(parameter.opts, key=len, reverse=True))
    default = parameter.default
    shown = (
        f" Default: `{default}`."
        if isinstance(default, str | int) and not parameter.is_flag
        else ""
    )
    return f"{names}{f' `{value}`' if value else ''}", f"{parameter.help or ''}{shown}"


def errors_page() -> str:
    """Every code with its explanation and help."""
    lines = ["# Errors", "", NOTE, ""]
    lines += [
        "Codes are the contract, texts are not. `omnigraph explain CODE` prints the same offline.",
        "",
    ]
    for code in all_codes().values():
        lines += [f"## {code.code}", "", f"**{code.title}.** Kind `{code.kind}`, exit code "]
        lines[-1] += (
            f"{exits.USAGE if code.code in ('usage', 'no_store') else exits.EXIT_CODES[code.kind]}."
        )
        lines += ["", *([code.explanation, ""] if code.explanation else []), f"*{code.help}*", ""]
    return _page(lines)


def settings_page() -> str:
    """Every setting, variable and limit."""
    lines = ["# Settings", "", NOTE, ""]
    lines += ["The environment wins over `~/.omnigraph/config.yaml`, which wins over the defaults;"]
    lines += [
        "`omnigraph config show --origin` says who set what. A missing file is an empty one.",
        "",
    ]
    for setting in SETTINGS:
        default = f" Default: `{setting.default}`." if setting.default else ""
        lines += [
            f"## {setting.key}",
            "",
            f"{setting.about}{default} Variable: `{setting.variable}`.",
            "",
        ]
    lines += [
        "## servers",
        "",
        "Names for servers: `servers: {prod: {url: https://graphs.example.org}}`.",
        "",
    ]
    lines += [
        "## aliases",
        "",
        "Names for command lines: `aliases: {people: query --file people.gq all}`.",
        "",
    ]
    lines += ["## Environment", ""]
    lines += _table(("variable", "meaning"), ((f"`{k}`", v) for k, v in sorted(VARIABLES.items())))
    lines += ["## Limits", "", "A `Limits` value may be given when a graph is opened.", ""]
    lines += _table(("limit", "default", "meaning"), _limits())
    return _page(lines)


def _limits() -> Iterator[tuple[str, str, str]]:
    """The fields of `Limits`, with the comments beside them."""
    source = inspect.getsource(limits.Limits)
    for field in fields(limits.Limits):
        comment = re.search(rf"^\s+{field.name}:[^#\n]*#\s*(.*)$", source, re.MULTILINE)
        default = f"{field.default:,}" if isinstance(field.default, int) else str(field.default)
        yield f"`{field.name}`", default, comment[1] if comment else ""


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |"
    yield ""


def _page(lines: Iterable[str]) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli_page,
    "errors.md": errors_page,
    "settings.md": settings_page,
}


def main(folder: str) -> None:
    """Write all pages."""
    for name, page in PAGES.items():
        Path(folder, name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
