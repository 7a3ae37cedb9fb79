"""The commands and their help."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from importlib import import_module
from importlib.util import find_spec
from typing import Any, get_type_hints

import typer
from typer.core import TyperGroup

from omnigraph.cli.interrupt import Interrupted
from omnigraph.model.value import value

SECTIONS = {
    "Start": ("init", "demo", "load", "query", "mutate", "shell", "explore", "export", "pipeline"),
    "History and branches": (
        "branch", "merge", "log", "show", "diff", "changes", "tag", "revert", "cherry-pick", "reset", "clone",
    ),
    "Languages": ("schema", "lint", "fmt", "explain"),
    "Operation": ("optimize", "cleanup", "doctor", "upgrade", "serve", "jobs", "policy", "config", "version"),
}  # fmt: skip
NEEDS = {
    "serve": "omnigraph.server.app",
    "explore": "omnigraph.server.app",
}  # commands that exist where their module does


def _exists(command: str) -> bool:
    return command not in NEEDS or find_spec(NEEDS[command]) is not None


COMMANDS = {name: section for section, names in SECTIONS.items() for name in names if _exists(name)}
INTRODUCTION = (
    "A lakehouse graph database: typed graphs as Lance tables, with branches and atomic commits."
)
FIRST_STEPS = ("omnigraph demo", "omnigraph query --help")
EXAMPLE_WIDTH = 74  # the narrowest terminals have 80 columns


@value
class Verb:
    """A command: the function that runs it, and the two lines its help opens with."""

    run: Callable[..., Any]
    examples: tuple[str, str]
    name: str = ""

    @property
    def word(self) -> str:
        return self.name or self.run.__name__.rstrip("_")

    @property
    def title(self) -> str:
        return (inspect.getdoc(self.run) or "").partition("\n")[0].rstrip(".")

    def help(self) -> str:
        """The examples, then what the function says about itself."""
        return f"{_examples(self.examples)}\n\n{_flowing(inspect.getdoc(self.run) or '')}"


def _examples(lines: Sequence[str]) -> str:
    """Command lines to copy; one that is long goes on after a backslash."""
    return "\n".join(["\b\nExamples:", *(_broken(f"  $ {line}") for line in lines)])


def _broken(line: str) -> str:
    shown = ""
    for part in re.split(r" (?=--?[a-z])", line):
        room = EXAMPLE_WIDTH - len(shown.rpartition("\n")[2])
        shown += part if not shown else f" {part}" if len(part) < room else f" \\\n      {part}"
    return shown


def _flowing(text: str) -> str:
    """Paragraphs that the terminal breaks, not the source."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


@value
class Group:
    """A command made of commands."""

    title: str
    verbs: tuple[Verb, ...]


def command(name: str) -> Verb | Group:
    """What the module of a command offers."""
    found = import_module(f"omnigraph.cli.commands.{name.replace('-', '_')}").COMMAND
    assert isinstance(found, Verb | Group)  # noqa: S101
    return found


class _InOrder(TyperGroup):
    """Commands as they are listed here; groups of commands among them."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        known = super().list_commands(ctx)
        return [name for name in COMMANDS if name in known]


def build(words: Sequence[str] = ()) -> typer.Typer:
    """The application; with the words of a command line, only the command they name is imported."""
    opening = f"{_examples(FIRST_STEPS)}\n\n{INTRODUCTION}"
    app = typer.Typer(
        cls=_InOrder,
        help=opening,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        add_completion=not words or words[0] not in COMMANDS,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(help=opening)(_introduce)
    only = words[0] if words and words[0] in COMMANDS else None
    for name, section in COMMANDS.items():
        if only in (None, name):
            _add(app, name, command(name), section)
    return app


def _introduce() -> None:
    """A callback keeps a single command from becoming the whole application."""


def _without_command(context: typer.Context) -> None:
    """A group that is named alone shows its help."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _add(app: typer.Typer, name: str, found: Verb | Group, section: str) -> None:
    if isinstance(found, Verb):
        _add_verb(app, name, found, section)
        return
    group = typer.Typer(rich_markup_mode="rich")
    group.callback(help=found.title, invoke_without_command=True)(_without_command)
    for verb in found.verbs:
        _add_verb(group, verb.word, verb, None)
    app.add_typer(group, name=name, short_help=found.title.rstrip("."), rich_help_panel=section)


def _add_verb(app: typer.Typer, name: str, verb: Verb, section: str | None) -> None:
    register = app.command(
        name,
        help=verb.help(),
        short_help=verb.title,
        rich_help_panel=section,
        no_args_is_help=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    register(spread(verb.run))


def spread(run: Callable[..., Any]) -> Callable[..., Any]:
    """The function typer sees: a parameter that is a set of options is replaced by those options."""
    hints = get_type_hints(run, include_extras=True)
    own = inspect.signature(run).parameters
    sets = {name: hints[name] for name in own if hasattr(hints[name], "__option_set__")}
    parameters: list[inspect.Parameter] = []
    for name, parameter in own.items():
        chosen = (
            _options(sets[name]) if name in sets else [parameter.replace(annotation=hints[name])]
        )
        parameters += [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in chosen]

    def called(**given: Any) -> Any:
        for name, kind in sets.items():
            given[name] = kind(**{f.name: given.pop(f.name) for f in fields(kind)})
        try:
            return run(**given)
        except KeyboardInterrupt:
            raise Interrupted("nothing was changed") from None

    called.__name__ = run.__name__
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {p.name: p.annotation for p in parameters}
    return called


def _options(kind: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(f.name, keyword, default=f.default, annotation=hints[f.name])
        for f in fields(kind)
    ]
