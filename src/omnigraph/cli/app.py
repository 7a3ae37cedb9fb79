"""All commands in one table, and the typer application made from them."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import fields
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperGroup
from typer.models import ArgumentInfo

from omnigraph.cli import completing
from omnigraph.cli.context import config
from omnigraph.cli.exits import Interrupted
from omnigraph.cli.options import OptionSet, Show, Where
from omnigraph.cli.shapes import check_shape
from omnigraph.cli.words import Word, handed_out
from omnigraph.model.frozen import frozen


@frozen
class Group:
    """A command with subcommands."""

    title: str
    functions: Mapping[str, str]


# Every command with the function that runs it, as `module.function` of this package.
SECTIONS: dict[str, dict[str, str | Group]] = {
    "Start": {
        "init": "graphs.init",
        "demo": "demo.demo",
        "load": "data.load",
        "query": "data.query",
        "mutate": "data.mutate",
        "shell": "data.shell",
        "explore": "serving.explore",
        "export": "data.export",
        "snapshot": "entities.snapshot",
        "blob": Group(
            "Read Blob properties.", {"get": "entities.get_blob", "stat": "entities.stat_blob"}
        ),
        "pipeline": Group("Run pipeline files.", {"run": "pipelines.run_pipeline"}),
        "infer": "data.infer",
        "import-rust": "graphs.import_rust",
    },
    "History and branches": {
        "branch": Group(
            "Create, list, merge and delete branches.",
            {
                "list": "branches.list_branches",
                "create": "branches.create_branch",
                "delete": "branches.delete_branch",
                "merge": "branches.merge_branch",
            },
        ),
        "merge": "branches.merge",
        "log": "history.log",
        "show": "history.show_commit",
        "diff": "history.diff",
        "changes": "history.changes",
        "tag": "branches.tag",
        "revert": "history.revert",
        "cherry-pick": "history.cherry_pick",
        "reset": "history.reset",
        "blame": "review.blame",
        "clone": "graphs.clone",
    },
    "Review": {
        "propose": "review.propose",
        "proposals": "review.proposals",
        "review": "review.review",
        "comment": "review.comment",
        "approve": "review.approve",
        "check": "review.check",
        "stats": "review.stats",
    },
    "Languages": {
        "schema": Group(
            "Show, plan and apply schemas.",
            {
                "show": "languages.show_schema",
                "plan": "languages.plan_schema",
                "apply": "languages.apply_schema",
                "translate": "languages.translate_schema",
            },
        ),
        "lint": "languages.lint",
        "fmt": "languages.fmt",
        "explain": "languages.explain",
    },
    "Operation": {
        "optimize": "maintenance.optimize",
        "embed": "maintenance.embed",
        "cleanup": "maintenance.cleanup",
        "maintain": "maintenance.maintain",
        "retention": "maintenance.retention",
        "doctor": "graphs.doctor",
        "upgrade": "graphs.upgrade",
        "serve": "serving.serve",
        "cluster": Group(
            "Manage graphs, queries and policies from files.",
            {
                "validate": "clusters.validate_cluster",
                "plan": "clusters.plan_cluster",
                "apply": "clusters.apply_cluster",
                "status": "clusters.cluster_status",
                "history": "clusters.cluster_history",
                "diff": "clusters.diff_cluster",
            },
        ),
        "mcp": "serving.mcp",
        "jobs": Group(
            "List, show and cancel jobs on a server.",
            {
                "list": "serving.list_jobs",
                "show": "serving.show_job",
                "cancel": "serving.cancel_job",
            },
        ),
        "policy": Group(
            "Validate, test and explain server policies.",
            {
                "validate": "serving.validate_policy",
                "test": "serving.test_policy",
                "explain": "serving.explain_policy",
            },
        ),
        "graphs": Group("List the graphs of a server.", {"list": "servers.list_graphs"}),
        "queries": Group("List stored queries of a server.", {"list": "servers.list_queries"}),
        "login": "servers.login",
        "logout": "servers.logout",
        "profile": Group(
            "List and show profiles.",
            {"list": "servers.list_profiles", "show": "servers.show_profile"},
        ),
        "config": Group("Show the configuration.", {"show": "serving.show_config"}),
        "version": "graphs.version",
    },
}
REQUIRED_MODULES = {"serve": "omnigraph.server.app", "explore": "omnigraph.server.app"}
COMMANDS = {
    name: section
    for section, commands in SECTIONS.items()
    for name in commands
    if name not in REQUIRED_MODULES or find_spec(REQUIRED_MODULES[name])
}
INTRODUCTION = (
    "A lakehouse graph database: typed graphs as Lance tables, with branches and atomic commits."
)
FIRST_STEPS = ("omnigraph demo", "omnigraph query --help")
EXAMPLE_WIDTH = 74  # the narrowest terminals have 80 columns
REPEATED_MAX = 2  # of a word repeated beside a graph: the two ends of a range
HELP_NAMES = {"help_option_names": ["-h", "--help"]}


@frozen
class Command:
    """One command: its words after `omnigraph`, and the function that runs it."""

    path: str
    run: Callable[..., Any]

    @property
    def examples(self) -> tuple[str, str]:
        return self.run.examples  # type: ignore[attr-defined, no-any-return]

    @property
    def description(self) -> str:
        return inspect.getdoc(self.run) or ""

    @property
    def title(self) -> str:
        return self.description.partition("\n")[0].rstrip(".")

    def help(self) -> str:
        """The examples, then the description in paragraphs that the terminal wraps."""
        paragraphs = (" ".join(part.split()) for part in self.description.split("\n\n"))
        return "\n\n".join([_examples(self.examples), *paragraphs])


def commands_of(name: str) -> Iterator[Command]:
    """The command with this name, or its subcommands; imports the module that defines it."""
    found = SECTIONS[COMMANDS[name]][name]
    group = {"": found} if isinstance(found, str) else found.functions
    for word, place in group.items():
        module, _, function = place.partition(".")
        run = getattr(import_module(f"omnigraph.cli.{module}"), function)
        yield Command(f"{name} {word}".rstrip(), run)


def every_command() -> Iterator[Command]:
    """All commands, subcommands included."""
    for name in COMMANDS:
        yield from commands_of(name)


def _examples(lines: Sequence[str]) -> str:
    """Command lines to copy; a long one continues after a backslash."""
    return "\n".join(["\b\nExamples:", *(_broken(f"  $ {line}") for line in lines)])


def _broken(line: str) -> str:
    shown = ""
    for part in re.split(r" (?=--?[a-z])", line):
        room = EXAMPLE_WIDTH - len(shown.rpartition("\n")[2])
        shown += part if not shown else f" {part}" if len(part) < room else f" \\\n      {part}"
    return shown


# --- the application ---------------------------------------------------------------------------------------------


class _InOrder(TyperGroup):
    """Commands in the order of the table; typer would list groups last."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        known = super().list_commands(ctx)
        return [name for name in COMMANDS if name in known]


def build(words: Sequence[str] = ()) -> typer.Typer:
    """The application; with the words of a command line, only the command they name is imported."""
    opening = f"{_examples(FIRST_STEPS)}\n\n{INTRODUCTION}"
    only = words[0] if words and words[0] in COMMANDS else None
    app = typer.Typer(
        cls=_InOrder,
        help=opening,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        add_completion=only is None,
        context_settings=HELP_NAMES,
    )
    app.callback(help=opening)(_introduce)
    for name, section in COMMANDS.items():
        if only in (None, name):
            _add(app, name, section)
    return app


def _introduce() -> None:
    """A callback keeps a single command from becoming the whole application."""


def _without_command(context: typer.Context) -> None:
    """Without a subcommand, a group shows its help."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _add(app: typer.Typer, name: str, section: str) -> None:
    match SECTIONS[section][name]:
        case Group(title):
            group = typer.Typer(rich_markup_mode="rich")
            group.callback(help=title, invoke_without_command=True)(_without_command)
            for command in commands_of(name):
                _add_command(group, command, None)
            app.add_typer(group, name=name, short_help=title.rstrip("."), rich_help_panel=section)
        case _:
            for command in commands_of(name):
                _add_command(app, command, section)


def _add_command(app: typer.Typer, command: Command, section: str | None) -> None:
    register = app.command(
        command.path.rpartition(" ")[2],
        help=command.help(),
        short_help=command.title,
        rich_help_panel=section,
        no_args_is_help=False,
        context_settings=HELP_NAMES,
    )
    register(flatten_options(command.run))


def flatten_options(run: Callable[..., Any]) -> Callable[..., Any]:
    """The function typer sees: a parameter that is a set of options is replaced by these options."""
    hints = get_type_hints(run, include_extras=True)
    own = inspect.signature(run).parameters
    sets = {name: hints[name] for name in own if _is_option_set(hints[name])}
    parameters: list[inspect.Parameter] = []
    for name, parameter in own.items():
        chosen = (
            _options(sets[name]) if name in sets else [parameter.replace(annotation=hints[name])]
        )
        parameters += [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in chosen]
    takes_graph = Where in sets.values()
    words = _words(parameters) if takes_graph else []
    if takes_graph:
        parameters = _graph_first(parameters)

    def called(**given: Any) -> Any:
        if takes_graph:
            given |= handed_out(
                given,
                words,
                chosen=bool(given["store"] or given["server"]),
                configured=bool(config()["defaults.store"] or config()["defaults.server"]),
            )
        for name, kind in sets.items():
            given[name] = kind(**{f.name: given.pop(f.name) for f in fields(kind)})
            if kind is Show:
                check_shape(given[name], run)
        try:
            return run(**given)
        except KeyboardInterrupt:
            raise Interrupted("nothing was changed") from None

    called.__name__ = run.__name__
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {p.name: p.annotation for p in parameters}
    return called


def _words(parameters: Sequence[inspect.Parameter]) -> list[Word]:
    """The words a command takes beside its graph."""
    found = []
    for parameter in parameters:
        info = _argument(parameter)
        if info is not None and parameter.name != "uri":
            kind = typing.get_args(parameter.annotation)[0]
            many = typing.get_origin(kind) is list
            required = parameter.default is inspect.Parameter.empty
            shown = (info.metavar or parameter.name.upper()).strip("[]")
            most = REPEATED_MAX if many else 1
            found.append(Word(parameter.name, shown, required, most, is_number=kind is int))
    return found


def _argument(parameter: inspect.Parameter) -> ArgumentInfo | None:
    extras = getattr(parameter.annotation, "__metadata__", ())
    return next((extra for extra in extras if isinstance(extra, ArgumentInfo)), None)


def _graph_first(parameters: Sequence[inspect.Parameter]) -> list[inspect.Parameter]:
    """The graph is the first word; since it is optional, the parser cannot require the words after it."""
    own = [p for p in parameters if _argument(p) is not None and p.name != "uri"]
    rest = [p for p in parameters if _argument(p) is None]
    uri = next(p for p in parameters if p.name == "uri")
    info: Any = _argument(uri)
    completer: Any = _argument(own[0]).autocompletion if own else None  # type: ignore[union-attr]
    first = copy(info)
    first.autocompletion = completing.first_word(completer)
    uri = uri.replace(annotation=Annotated[str | None, first])
    return [uri, *(p.replace(annotation=_optional(p), default=None) for p in own), *rest]


def _optional(parameter: inspect.Parameter) -> Any:
    kind, info, *_ = typing.get_args(parameter.annotation)
    read = str if kind is int else kind  # it may turn out to be another word
    return Annotated[read | None, info]


def _is_option_set(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, OptionSet)


def _options(kind: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(f.name, keyword, default=f.default, annotation=hints[f.name])
        for f in fields(kind)
    ]
