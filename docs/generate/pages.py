"""The generated pages, each a function that returns its text."""

from __future__ import annotations

import ast
import inspect
import io
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from tokenize import COMMENT, generate_tokens
from typing import Any

import msgspec
import typer
from docs.generate.parity import PARITY
from docs.generate.python_api import api_lines

from omnigraph.cli import app, exits
from omnigraph.cli.languages import all_codes
from omnigraph.config import SETTINGS, VARIABLES
from omnigraph.model import limits

NOTE = "<!-- Made by `make reference`; edit the code, not this page. -->"


def cli_page() -> str:
    """Every command: its examples, what it does, its options."""
    lines = ["# Command line", "", NOTE, "", *_conventions()]
    built: Any = typer.main.get_command(app.build())
    for name, section in app.COMMANDS.items():
        match app.SECTIONS[section][name]:
            case app.Group(title):
                lines += [f"## omnigraph {name}", "", title, ""]
                for command in app.commands_of(name):
                    word = command.path.removeprefix(f"{name} ")
                    lines += _command(command, built.commands[name].commands[word].params, "###")
            case _:
                for command in app.commands_of(name):
                    lines += _command(command, built.commands[name].params)
    return _page(lines)


def _conventions() -> Iterator[str]:
    yield "Data goes to stdout, everything else to stderr. `--format json` prints exactly one document; a failure then"
    yield "prints one JSON error object on stderr. Colours appear on a terminal only, and not with `NO_COLOR`."
    yield ""
    yield "Every command takes its graph in the same ways: as the first word (`omnigraph log people`), with `--store`,"
    yield "or with `--server` and `--graph` for one on a server. Where none of them is given, `OMNIGRAPH_STORE` names"
    yield "it, else the nearest `omnigraph.yaml` (`store: people`) in the working folder or above it, else the"
    yield "[configuration](settings.md). `omnigraph --install-completion` makes Tab complete branches, tags, types and"
    yield "queries. A point in time is a commit (the full ID, or as `log` shortens it), a tag,"
    yield "a branch, `main~2`, a date or time (UTC), or `'@{1 hour ago}'`."
    yield ""
    yield "Each entry under `aliases` in the configuration becomes a command."
    yield ""
    yield "## Exit codes"
    yield ""
    yield from _table(("code", "meaning"), ((str(k), v) for k, v in exits.MEANINGS.items()))


def _command(command: app.Command, parameters: Iterable[Any], level: str = "##") -> Iterator[str]:
    yield f"{level} omnigraph {command.path}"
    yield ""
    yield from ("```text", *command.examples, "```", "")
    yield command.description
    yield ""
    rows = [_option(parameter) for parameter in parameters if not parameter.hidden]
    yield from _table(("option", "meaning"), (row for row in rows if row[0] != "`--help`"))


def _option(parameter: Any) -> tuple[str, str]:
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name}`", parameter.help or ""
    value = (
        ""
        if parameter.is_flag
        else parameter.metavar or "|".join(getattr(parameter.type, "choices", ["VALUE"]))
    )
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
        "Programs can rely on codes, not on texts. `omnigraph explain CODE` prints the same offline.",
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
    lines += [
        "The environment overrides the project's `omnigraph.yaml`, which overrides `~/.omnigraph/config.yaml`, which",
        "overrides the defaults. A project's file is the nearest one in the working folder or above it. It may set",
        "`store` (a path that begins at the file, or `s3://…`), or `server` (a name from your own file) and `graph`,",
        "and `branch` and `output`;",
    ]
    lines += [
        "`omnigraph config show --origin` shows where each value is set. The file is optional.",
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
        "Short names for servers: `servers: {prod: {url: https://graphs.example.org}}`.",
        "",
    ]
    lines += [
        "## aliases",
        "",
        "Short names for command lines: `aliases: {people: query --file people.gq all}`.",
        "",
    ]
    lines += ["## Environment", ""]
    for name, about in sorted(VARIABLES.items()):
        lines += [f"### {name}", "", about, ""]
    lines += _server_settings()
    lines += ["## Limits", "", "Pass a `Limits` value when opening a graph to change them.", ""]
    lines += _table(("limit", "default", "meaning"), _members(limits.Limits))
    return _page(lines)


def _server_settings() -> Iterator[str]:
    from omnigraph.server.settings import Bounds, GraphSettings, OidcSettings, Settings

    yield from ("## Server file", "", "The file that `omnigraph serve --config FILE` reads.", "")
    for name, default, about in _members(Settings):
        yield from (
            f"### {name.strip('`')}",
            "",
            f"{about or 'See below.'} Default: {default}.",
            "",
        )
    yield from ("Each entry of `graphs` has", "")
    yield from _table(("setting", "default", "meaning"), _members(GraphSettings))
    yield from ("each entry of `oidc` has", "")
    yield from _table(("setting", "default", "meaning"), _members(OidcSettings))
    yield from ("and `limits` has", "")
    yield from _table(("limit", "default", "meaning"), _members(Bounds))


def metrics_page() -> str:
    """Every metric a server exposes."""
    from omnigraph.server.telemetry import Telemetry

    lines = [
        "# Metrics",
        "",
        NOTE,
        "",
        "`GET /metrics` returns them in the Prometheus text format.",
        "",
    ]
    for family in Telemetry().registry.collect():
        lines += [f"## {family.name}", "", f"{family.documentation} A {family.type}.", ""]
    return _page(lines)


def parity_page() -> str:
    """Every command with its call and its route."""
    lines = ["# CLI, Python and HTTP side by side", "", NOTE, ""]
    lines += ["Each command with its Python call and its HTTP route below `/graphs/{id}`.", ""]
    rows = (
        (f"`omnigraph {name}`", _code(found.call), _code(found.route), found.reason)
        for name, found in PARITY.items()
    )
    lines += _table(("command", "Python", "HTTP", "if missing, why"), rows)
    return _page(lines)


def _code(text: str | None) -> str:
    return f"`{text}`" if text else ""


def api_page() -> str:
    """Every class and function people call."""
    return _page(["# Python", "", NOTE, "", *api_lines()])


def _members(kind: Any) -> Iterator[tuple[str, str, str]]:
    """The fields of a class with their defaults, and the comments beside them."""
    comments = _comments(inspect.getsource(kind))
    for name, default in _defaults(kind):
        whole = isinstance(default, int) and not isinstance(default, bool)
        shown = f"{default:,}" if whole else "none" if default in (None, []) else str(default)
        yield f"`{name}`", shown, comments.get(name, "")


def _comments(source: str) -> dict[str, str]:
    """The comment at the end of each field of a class, which may be on a later line than its name."""
    lines = io.StringIO(textwrap.dedent(source)).readline
    at = {token.start[0]: token.string for token in generate_tokens(lines) if token.type == COMMENT}
    (kind,) = ast.parse(textwrap.dedent(source)).body
    assert isinstance(kind, ast.ClassDef)
    found = {
        field.target.id: at.get(field.end_lineno or 0, "")
        for field in kind.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
    }
    return {name: comment.removeprefix("#").strip() for name, comment in found.items()}


def _defaults(kind: Any) -> Iterator[tuple[str, Any]]:
    if is_dataclass(kind):
        yield from ((field.name, field.default) for field in fields(kind))
        return
    for field in msgspec.structs.fields(kind):
        made = field.default_factory is not msgspec.NODEFAULT
        has = field.default is not msgspec.NODEFAULT
        default = field.default_factory() if made else field.default if has else "required"
        yield field.name, "…" if isinstance(default, msgspec.Struct) else default


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |"
    yield ""


def _page(lines: Iterable[str]) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def tools_page() -> str:
    """Every tool, resource and prompt for agents."""
    from omnigraph.agents.prompts import PROMPTS
    from omnigraph.agents.resources import RESOURCES
    from omnigraph.agents.tools import TOOLS, schema_of

    lines = [
        "# Tools for agents",
        "",
        NOTE,
        "",
        "What an agent finds over MCP; see [its guide](../guides/agents.md).",
    ]
    for tool in TOOLS:
        lines += ["", f"## {tool.name}", "", f"{tool.description} It {tool.effect.value}.", ""]
        lines += [f"A policy checks `{tool.asks}`.", ""]
        shown = schema_of(tool)
        required = shown.get("required", ())
        rows = [
            (f"`{name}`", _kind(about), "required" if name in required else "", _said(about))
            for name, about in shown["properties"].items()
        ]
        lines += _table(("argument", "type", "", "meaning"), rows)
    lines += ["## Resources", ""]
    lines += _table(
        ("address", "what it is"),
        ((f"`{r.uri}`", f"{r.title}. {r.description}") for r in RESOURCES),
    )
    lines += ["## Prompts", ""]
    lines += _table(
        ("prompt", "arguments", "what it is for"),
        ((f"`{p.name}`", ", ".join(f"`{a}`" for a in p.arguments), p.description) for p in PROMPTS),
    )
    return _page(lines)


def _kind(about: dict[str, Any]) -> str:
    """The type of an argument in a word or two; null is not worth one."""
    if "anyOf" in about:
        return " or ".join(_kind(a) for a in about["anyOf"] if a.get("type") != "null")
    if "enum" in about:
        return ", ".join(f"`{value}`" for value in about["enum"] if value is not None)
    if about.get("type") == "array":
        return f"list of {_kind(about['items'])}"
    return str(about.get("type", "any"))


def _said(about: dict[str, Any]) -> str:
    default = about.get("default")
    shown = "" if default in (None, False) else f" Default: `{default}`."
    low, high = about.get("minimum"), about.get("maximum")
    told = low is not None and high is not None and high <= 1_000_000
    within = f" From {low} to {high}." if told else ""
    return f"{about.get('description', '')}{within}{shown}".strip()


PAGES: dict[str, Callable[[], str]] = {
    "api.md": api_page,
    "cli.md": cli_page,
    "errors.md": errors_page,
    "metrics.md": metrics_page,
    "parity.md": parity_page,
    "settings.md": settings_page,
    "tools.md": tools_page,
}
