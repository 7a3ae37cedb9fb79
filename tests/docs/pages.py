"""Pages of the documentation: their fenced blocks, and how each kind is run.

- ` ```pg title="people.pg" ` and other blocks with a title are written to that file
- ` ```python ` runs in one namespace per page
- ` ```console ` runs the lines after `$ `; what is printed must hold the lines below, where `…` stands for anything
- ` ```pycon ` is a doctest
- ` ```pg ` is checked and ` ```gq ` is parsed
- ` ```yaml ` and ` ```json ` are read
- Blocks without a language, ` ```text `, ` ```mermaid `, ` ```ebnf ` and ` ```dockerfile ` are not run; a test sees
  that they hold nothing that could be
"""

from __future__ import annotations

import code
import doctest
import json
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import typer
import yaml

from omnigraph.lang.query import parse_queries
from omnigraph.lang.schema import check_schema
from tests.unit.cli import world

ROOT = Path(__file__).parents[2]
NOT_RUN = ("", "text", "mermaid", "ebnf", "dockerfile")
_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'title="(?P<name>[^"]+)"')


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block."""

    language: str
    title: str | None
    body: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [_block(text, found) for found in _FENCE.finditer(text)]


def _block(text: str, found: re.Match[str]) -> Block:
    info = found["info"].strip()
    title = _TITLE.search(info)
    line = text.count("\n", 0, found.start()) + 2
    return Block(info.split(" ")[0], title["name"] if title else None, found["body"], line)


class Interpreter(code.InteractiveInterpreter):
    """Runs the Python blocks of a page one after the other; what goes wrong is raised."""

    def showtraceback(self) -> None:
        error = sys.exc_info()[1]
        assert error is not None
        raise error


def run_page(page: Path, folder: Path) -> int:
    """Run every block of a page, in order, in a folder of its own; returns how many there were."""
    interpreter = Interpreter({"__name__": "page"})
    found = blocks(page)
    for block in found:
        try:
            run_block(block, folder, interpreter, page)
        except Exception as error:
            raise AssertionError(
                f"{page.name}:{block.line}: {type(error).__name__}: {error}"
            ) from error
    return len(found)


def run_block(block: Block, folder: Path, interpreter: Interpreter, page: Path) -> None:
    if block.title is not None:
        place = folder / block.title
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(block.body)
    match block.language:
        case "python":
            source = "\n" * (block.line - 1) + block.body
            interpreter.runcode(compile(source, str(page), "exec"))
        case "console":
            for command, printed in commands(block.body):
                run_command(command, printed, folder)
        case "pycon":
            run_doctest(block, page)
        case "yaml":
            yaml.safe_load(block.body)
        case "json":
            read_json(block.body)
        case "pg":
            check_schema(block.body)
        case "gq":
            parse_queries(block.body, bare=True)
        case language:
            assert block.title or language in NOT_RUN, f"a block of {language!r} cannot be run"


def read_json(text: str) -> None:
    """One document, or one on each line."""
    try:
        json.loads(text)
    except ValueError:
        for line in text.strip().splitlines():
            json.loads(line)


def run_doctest(block: Block, page: Path) -> None:
    """An example as an interpreter shows it; what it prints must be what is written."""
    test = doctest.DocTestParser().get_doctest(block.body, {}, page.name, str(page), block.line)
    said: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append)
    assert not said, "".join(said)


def commands(body: str) -> Iterator[tuple[str, list[str]]]:
    """Command lines, each with what is printed below it; a line that ends with a backslash goes on."""
    joined = body.replace("\\\n", " ")
    found: list[tuple[str, list[str]]] = []
    for line in joined.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.strip():
            found[-1][1].append(line)
    return iter(found)


def run_command(command: str, printed: list[str], folder: Path) -> None:
    words = shlex.split(command, comments=True)
    assert words[0] == "omnigraph", f"only omnigraph is run: {command}"
    done = world.run(folder, *words[1:])
    shown = done.out + done.err
    fails = any(line.startswith("error[") for line in printed)
    assert (done.code != 0) is fails, f"{command} ended with {done.code}: {shown}"
    for line in printed:
        assert matches(line, shown), f"{command} did not print {line!r} but:\n{shown}"


def parse_command(line: str) -> None:
    """Whether a command line that needs a bucket or a port would be understood; raises if not."""
    from omnigraph.cli import app

    words = shlex.split(line.partition("omnigraph ")[2], comments=True)
    command = typer.main.get_command(app.build(words))
    context = command.make_context("omnigraph", list(words))
    while words := [*context._protected_args, *context.args]:
        name, found, rest = command.resolve_command(context, words)  # type: ignore[attr-defined]
        assert found is not None, f"{line}: there is no command {name}"
        command, context = found, found.make_context(name, list(rest), parent=context)


def matches(line: str, shown: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in line.strip().split("…"))
    return re.search(pattern, shown) is not None


def every_page() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def relative(page: Path) -> str:
    return str(page.relative_to(ROOT))
