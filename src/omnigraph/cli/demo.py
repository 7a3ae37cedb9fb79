"""The demo: a tour in which every step is a command line."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib.util import find_spec
from io import TextIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

from typer import Argument, Option

from omnigraph.cli.exits import UsageError
from omnigraph.cli.options import examples
from omnigraph.cli.output import styled
from omnigraph.errors import Kind, OmnigraphError

if TYPE_CHECKING:
    from omnigraph.demo.tour import TourStep

INDENT = "    "
WIDTH_MAX = 100
BOLD, DIM, CYAN, GREEN = "1", "2", "36", "32"


class DemoFailed(OmnigraphError):
    """A step of the demo failed."""

    code, kind = "demo_failed", Kind.INTERNAL
    default_help = "See the error above. `--engine local` needs neither Spark nor Java."


@examples("omnigraph demo", "omnigraph demo small-demo --small --engine local")
def demo(
    folder: Annotated[
        str, Argument(help="Folder for the demo.", metavar="[DIR]")
    ] = "omnigraph-demo",
    engine: Annotated[
        str, Option("--engine", help="spark or local; auto uses Spark if it is installed.")
    ] = "auto",
    small: Annotated[bool, Option("--small", help="Use a tenth of the data.")] = False,
    again: Annotated[bool, Option("--again", help="Replace an existing demo.")] = False,
) -> None:
    """Take a one-minute tour: load, index, search, branch, edit, review, merge, travel in time.

    It needs neither server nor network, and leaves a graph to experiment with. Every step is a command line, run as
    shown.
    """
    from omnigraph.cli.app import COMMANDS
    from omnigraph.demo.tour import steps, to_try, write_files
    from omnigraph.demo.world import Size

    chosen, place = _engine(engine), Path(folder)
    _make_room(place, again)
    size = Size(1_200, 3_000, 15_000) if small else Size()
    started = time.perf_counter()
    with _step(1, "Generate the files of a small world"):
        write_files(place, size)
        print(f"{INDENT}{size} in {place / 'files'}")
    for number, step in enumerate(steps(place, chosen), 2):
        with _step(number, step.title):
            _take(step)
    seconds = time.perf_counter() - started
    print(styled(f"Done in {seconds:.1f} s.", BOLD), "The graph is yours; three commands to try:\n")
    for words in to_try(str(place / "graph"), explorer="explore" in COMMANDS):
        print(f"{INDENT}{_joined(words)}\n")


def _engine(engine: str) -> str:
    from omnigraph.demo.tour import ENGINES

    if engine == "auto":
        return "spark" if find_spec("pyspark") else "local"
    if engine not in ENGINES:
        raise UsageError(f"--engine must be auto, spark or local, not {engine!r}")
    return engine


def _make_room(place: Path, again: bool) -> None:
    """Remove an older demo, never anything else."""
    from omnigraph.demo.tour import FILES_OF_A_DEMO

    if not place.exists() or not any(place.iterdir()):
        return
    if not all((place / name).is_file() for name in FILES_OF_A_DEMO):
        raise UsageError(f"{place} is not empty and not a demo", help="Choose another folder.")
    if not again:
        help = "Replace it with --again, or choose another folder."
        raise UsageError(f"{place} already has a demo", help=help)
    shutil.rmtree(place)


# --- printing ----------------------------------------------------------------------------------------------------


@contextmanager
def _step(number: int, title: str) -> Iterator[None]:
    """Prints the heading before a step and its time after."""
    print(styled(f"{number:>2}  {title}", BOLD), flush=True)
    started = time.perf_counter()
    yield
    print(styled(f"{INDENT}✓ {time.perf_counter() - started:.2f} s", GREEN) + "\n", flush=True)


def _take(step: TourStep) -> None:
    for line in step.text.splitlines():
        print(f"{INDENT}{styled(line, DIM)}")
    for words in step.commands:
        print("\n".join(styled(line, CYAN) for line in _wrapped(words)), flush=True)
        _run(words)


def _run(words: Sequence[str]) -> None:
    """Run one of our command lines with indented output."""
    from omnigraph.cli.main import main

    with (
        _narrower(),
        redirect_stdout(_Indented(sys.stdout)),
        redirect_stderr(_Indented(sys.stderr)),
    ):
        code = main(words)
    if code != 0:
        raise DemoFailed(f"`{_joined(words)}` ended with exit code {code}")


class _Indented(TextIOBase):
    """A stream with indented lines; redrawn lines, such as progress, stay as they are."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._fresh = stream, True

    def isatty(self) -> bool:
        return self._stream.isatty()

    def flush(self) -> None:
        self._stream.flush()

    def write(self, text: str) -> int:
        for line in text.split("\n") if "\r" in text else text.splitlines(keepends=True):
            drawn_over = line.startswith("\r")
            self._stream.write(INDENT + line if self._fresh and not drawn_over else line)
            self._fresh = drawn_over or line.endswith("\n")
        return len(text)


@contextmanager
def _narrower() -> Iterator[None]:
    """Narrow tables to leave room for the indentation."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(_width() - len(INDENT))
    try:
        yield
    finally:
        os.environ.pop("COLUMNS")
        os.environ.update({} if before is None else {"COLUMNS": before})


def _width() -> int:
    return min(WIDTH_MAX, shutil.get_terminal_size((WIDTH_MAX, 24)).columns)


def _joined(words: Sequence[str]) -> str:
    return shlex.join(["omnigraph", *words])


def _wrapped(words: Sequence[str]) -> Iterator[str]:
    """A command line to read and copy: broken before options if it is long."""
    line = f"{INDENT}$ omnigraph"
    for part in _parts(words):
        if len(line) + len(part) + 3 > _width():
            yield f"{line} \\"
            line = f"{INDENT}   "
        line += f" {part}"
    yield line


def _parts(words: Sequence[str]) -> Iterator[str]:
    """Words, and options together with their values."""
    part: list[str] = []
    for word in words:
        if word.startswith("-") and part:
            yield shlex.join(part)
            part = []
        part.append(word)
    yield shlex.join(part)
