"""The pages of the reference that are made from code: commands, Python, doors, error codes, settings, metrics.

python -m omnigraph.cli.reference docs/reference
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import msgspec
import typer

from omnigraph.cli import app, exits
from omnigraph.cli.api_reference import api_lines
from omnigraph.cli.commands.explain import all_codes
from omnigraph.cli.options import Format, ProgressMode
from omnigraph.cli.parity import PARITY
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
    for name, about in sorted(VARIABLES.items()):
        lines += [f"### {name}", "", about, ""]
    lines += _server_settings()
    lines += ["## Limits", "", "A `Limits` value may be given when a graph is opened.", ""]
    lines += _table(("limit", "default", "meaning"), _members(limits.Limits))
    return _page(lines)


def _server_settings() -> Iterator[str]:
    from omnigraph.server.settings import Bounds, GraphSettings, Settings

    yield from ("## Server file", "", "What `omnigraph serve --config FILE` reads.", "")
    for name, default, about in _members(Settings):
        yield from (
            f"### {name.strip('`')}",
            "",
            f"{about or 'See below.'} Default: {default}.",
            "",
        )
    yield from ("Each of `graphs` has", "")
    yield from _table(("setting", "default", "meaning"), _members(GraphSettings))
    yield from ("and `limits` are", "")
    yield from _table(("limit", "default", "meaning"), _members(Bounds))


def metrics_page() -> str:
    """Every metric a server exposes."""
    from omnigraph.server.telemetry import Telemetry

    lines = [
        "# Metrics",
        "",
        NOTE,
        "",
        "`GET /metrics` answers in the text format of Prometheus.",
        "",
    ]
    for family in Telemetry().registry.collect():
        lines += [f"## {family.name}", "", f"{family.documentation} A {family.type}.", ""]
    return _page(lines)


def parity_page() -> str:
    """Every command with its call and its route."""
    lines = ["# One verb, three doors", "", NOTE, ""]
    lines += [
        "The same words on the command line, in Python and over HTTP (below `/graphs/{id}`).",
        "",
    ]
    rows = (
        (f"`omnigraph {name}`", _code(doors.call), _code(doors.route), doors.why)
        for name, doors in PARITY.items()
    )
    lines += _table(("command", "Python", "HTTP", "why not"), rows)
    return _page(lines)


def _code(text: str | None) -> str:
    return f"`{text}`" if text else ""


def api_page() -> str:
    """Every class and function people call."""
    return _page(["# Python", "", NOTE, "", *api_lines()])


def _members(kind: Any) -> Iterator[tuple[str, str, str]]:
    """The fields of a class with their defaults, and the comments beside them."""
    source = inspect.getsource(kind)
    for name, default in _defaults(kind):
        comment = re.search(rf"^\s+{name}:[^#\n]*#\s*(.*)$", source, re.MULTILINE)
        whole = isinstance(default, int) and not isinstance(default, bool)
        shown = f"{default:,}" if whole else "none" if default in (None, []) else str(default)
        yield f"`{name}`", shown, comment[1] if comment else ""


def _defaults(kind: Any) -> Iterator[tuple[str, Any]]:
    if is_dataclass(kind):
        yield from ((field.name, field.default) for field in fields(kind))
        return
    for field in msgspec.structs.fields(kind):
        made = field.default_factory is not msgspec.NODEFAULT
        has = field.default is not msgspec.NODEFAULT
        default = field.default_factory() if made else field.default if has else "must be given"
        yield field.name, "…" if isinstance(default, msgspec.Struct) else default


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |"
    yield ""


def _page(lines: Iterable[str]) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "api.md": api_page,
    "cli.md": cli_page,
    "errors.md": errors_page,
    "metrics.md": metrics_page,
    "parity.md": parity_page,
    "settings.md": settings_page,
}


def main(folder: str) -> None:
    """Write all pages."""
    for name, page in PAGES.items():
        Path(folder, name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
