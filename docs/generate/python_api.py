"""The page about the Python interface, made from signatures and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

from omnigraph.parameters import HEADING, meanings
from omnigraph.verbs import VERBS, Description

LINE_WIDTH = 100
STARS: dict[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}
FUNCTIONS = {"init": "opening", "open": "opening", "infer": "write.infer"}
CLASSES = {  # in the order in which people meet them
    "Graph": "graph",
    "Branch": "branch",
    "WriteBlock": "branch",
    "Result": "read.result",
    "Commit": "outcomes",
    "LoadResult": "outcomes",
    "MutateResult": "outcomes",
    "MergeResult": "outcomes",
    "SchemaResult": "outcomes",
    "Conflict": "merge.conflicts",
    "Diff": "merge.diff",
    "RowDiff": "merge.diff",
    "Feed": "merge.feed",
    "Change": "merge.feed",
    "MigrationPlan": "lang.schema.migrate",
    "Analytics": "analytics",
    "Upkeep": "maintenance.upkeep",
    "OmnigraphError": "errors",
}
OPTIONS = {
    "Options": "write.input.options",
    "CsvFormat": "write.input.options",
    "Repeats": "write.repeats",
    "Wide": "write.input.mapping",
    "RowMap": "write.input.mapping",
    "ChangeFormat": "write.input.change_records",
}
_PARAMETERS = re.compile(rf"^{HEADING}$.*", re.MULTILINE | re.DOTALL)
_EXAMPLE = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


def functions() -> Iterator[tuple[str, Any]]:
    """Everything public that can be called, by its path; a branch has the verbs of a graph."""
    for name, module in FUNCTIONS.items():
        yield f"omnigraph.{name}", _found(name, module)
    for name, module in CLASSES.items():
        for member, found in members(_found(name, module)):
            if inspect.isfunction(found) and name != "Branch":
                yield f"{name}.{member}", found


def api_lines() -> Iterator[str]:
    """Functions, then classes with what they offer."""
    yield "`import omnigraph` brings the functions below, `Graph`, `Commit`, `OmnigraphError`, and what describes the"
    yield f"input of a load: {_listed(OPTIONS)}."
    yield "The other classes are what methods return. A graph behind a server"
    yield '(`omnigraph.open("https://…/graphs/people")`) has the same methods; those that work on files say so.'
    yield ""
    for name, module in FUNCTIONS.items():
        yield from _callable(f"omnigraph.{name}", _found(name, module), "##")
    for name, module in OPTIONS.items():
        yield from _options(name, _found(name, module))
    for name, module in CLASSES.items():
        yield from _class(name, _found(name, module))


def _found(name: str, module: str) -> Any:
    return getattr(import_module(f"omnigraph.{module}"), name)


def _listed(names: Iterable[str]) -> str:
    *first, last = (f"`{name}`" for name in names)
    return f"{', '.join(first)} and {last}"


def _options(name: str, kind: Any) -> Iterator[str]:
    """How to make one, and what its fields mean; its methods are for loads."""
    shown = [f"{f.name}: {f.type}{_default(f)}" for f in fields(kind)]
    yield from (f"## omnigraph.{name}", "", "```text", f"{name}(")
    yield from (f"    {one}," for one in shown)
    yield from (")", "```", "")
    yield from _doc(kind)


def _default(field: Field[Any]) -> str:
    if field.default is not MISSING:
        plain = isinstance(field.default, str | int | tuple | None)
        return f" = {field.default!r}" if plain else " = …"
    return "" if field.default_factory is MISSING else " = …"


def _class(name: str, kind: Any) -> Iterator[str]:
    yield f"## {name}"
    yield ""
    yield from _doc(kind)
    if is_dataclass(kind) and (shown := [f for f in fields(kind) if not f.name.startswith("_")]):
        yield "| field | type |"
        yield "|---|---|"
        for field in shown:
            yield f"| `{field.name}` | `{str(field.type).replace('|', chr(92) + '|')}` |"
        yield ""
    if name == "Branch":
        verbs = ", ".join(f"`{member}`" for member, _ in members(kind))
        yield f"Its verbs take what those of a graph take; left out, the branch is this one: {verbs}."
        yield ""
        return
    for member, found in members(kind):
        yield from _callable(f"{name}.{member}", found, "###")
        if name == "Graph" and not isinstance(found, property):
            yield from _verb(VERBS[member])


def _verb(verb: Description) -> Iterator[str]:
    """What is described of a verb besides its signature."""
    where = (
        "Not available through a server." if verb.route is None else f"Over HTTP: `{verb.route}`."
    )
    yield f"{verb.about} {where}" if verb.action else verb.about
    yield ""


def members(kind: Any) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class, its own first, as they are written."""
    seen: set[str] = set()
    for layer in kind.__mro__[:-1]:
        for name, found in vars(layer).items():
            shown = inspect.isfunction(found) or isinstance(found, property | cached_property)
            if not name.startswith("_") and name not in seen and shown:
                seen.add(name)
                yield name, found


def _callable(path: str, found: Any, level: str) -> Iterator[str]:
    yield f"{level} {path}"
    yield ""
    if inspect.isfunction(found):
        yield from ("```text", _signature(path.rpartition(".")[2], found), "```", "")
    yield from _doc(found)
    if inspect.isfunction(found):
        yield from _explained(path, found)


def _explained(path: str, function: Any) -> Iterator[str]:
    """A row for each parameter; a test sees that none is missing."""
    told = {name: text for name, text in explanations(path, function).items() if text}
    if not told:
        return
    yield from ("| parameter | meaning |", "|---|---|")
    for name, text in told.items():
        yield f"| `{name}` | {text.replace('|', chr(92) + '|')} |"
    yield ""


def explanations(path: str, function: Any) -> dict[str, str]:
    """What the parameters of a public function mean, by name."""
    names = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    owner, _, name = path.rpartition(".")
    return meanings(name if owner in ("omnigraph", "Graph") else path, names)


def _signature(name: str, function: Any) -> str:
    """As it is written, one parameter per line where it is long."""
    signature = inspect.signature(function)
    given = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
    shown = list(_parameters(given))
    answer = (
        ""
        if signature.return_annotation is inspect.Signature.empty
        else signature.return_annotation
    )
    line = f"{name}({', '.join(shown)}) -> {answer}"
    if len(line) <= LINE_WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {part}," for part in shown), f") -> {answer}"])


def _parameters(given: list[inspect.Parameter]) -> Iterator[str]:
    marked = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in given)
    for parameter in given:
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not marked:
            marked = True
            yield "*"
        yield _parameter(parameter)


def _parameter(parameter: inspect.Parameter) -> str:
    """A default that is an object of ours is not spelled out."""
    text = f"{STARS.get(parameter.kind, '')}{parameter.name}: {parameter.annotation}"
    if parameter.default is inspect.Parameter.empty:
        return text
    plain = isinstance(parameter.default, str | int | float | tuple | None)
    return f"{text} = {parameter.default!r}" if plain else f"{text} = …"


def _doc(found: Any) -> Iterator[str]:
    """The docstring, with its example as an example."""
    text = _PARAMETERS.sub("", inspect.getdoc(found) or "")
    example = _EXAMPLE.search(text)
    plain = _EXAMPLE.sub("", text).strip()
    if plain:
        yield plain
        yield ""
    if example:
        yield from ("```pycon", example[0].rstrip(), "```", "")
