"""The interactive shell: queries and mutations as they are typed, and commands that start with a dot."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.cli.commits import counted, one_line, published, short
from omnigraph.cli.completion import Completer
from omnigraph.cli.context import point_of
from omnigraph.cli.exits import UsageMistake
from omnigraph.cli.interrupt import Interrupted, explaining_interrupts
from omnigraph.cli.options import Format, Show
from omnigraph.cli.output import print_result, styled
from omnigraph.config import home
from omnigraph.errors import OmnigraphError
from omnigraph.lang.diagnostics import LanguageError, did_you_mean
from omnigraph.lang.query import ast, parse_queries

if TYPE_CHECKING:
    from omnigraph.graph import Graph

HISTORY_LINES_MAX = 5_000
WELCOME = (
    "omnigraph shell: queries end with a blank line or `;`, .help lists commands, .quit leaves"
)
_TEXT_AND_COMMENTS = re.compile(r'"(\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
DELIMITERS = " \t\n{}()[],:;"


@dataclass(slots=True)
class Shell:
    """One session: a graph and how to talk to it."""

    graph: Graph
    branch: str
    show: Show
    actor: str | None = None
    at: str | None = None
    params: dict[str, Any] = field(default_factory=dict)
    explain: bool = False
    timer: bool = False
    running: bool = True
    typed: list[str] = field(default_factory=list)  # lines of a statement that goes on

    def run(self) -> None:
        """Read, answer, repeat, until the input ends."""
        if sys.stdin.isatty():
            print(WELCOME, file=sys.stderr)
            _prepare_editing(self)
        while self.running:
            try:
                text = self._read()
                if text is None:
                    return
                if text.strip():
                    self._answer(text)
            except KeyboardInterrupt:  # drops what was typed, or stops what was running
                print(file=sys.stderr)
            except Interrupted as left:
                print(f"\ninterrupted: {left}", file=sys.stderr)

    # --- reading -------------------------------------------------------------------------------------------------

    def _read(self) -> str | None:
        """The next statement or dot command; None at the end of the input."""
        lines: list[str] = []
        self.typed = lines
        while True:
            try:
                line = input(self._prompt(bool(lines)))
            except EOFError:
                return "\n".join(lines) if lines else None
            lines.append(line)
            if is_complete(lines):
                return "\n".join(lines)

    def _prompt(self, more: bool) -> str:
        if not sys.stdin.isatty():
            return ""
        name = f"{Path(self.graph.uri).name} {self.branch}" + (f" at {self.at}" if self.at else "")
        return " " * len(name) + "| " if more else f"{name}> "

    # --- answering -----------------------------------------------------------------------------------------------

    def _answer(self, text: str) -> None:
        started = time.perf_counter()
        try:
            if text.lstrip().startswith("."):
                self._command(text.strip())
            else:
                self._statement(text.strip().rstrip(";"))
        except OmnigraphError as error:
            print(error.render(), file=sys.stderr)
        if self.timer:
            print(f"{(time.perf_counter() - started) * 1000:.0f} ms", file=sys.stderr)

    def _statement(self, text: str) -> None:
        queries = parse_queries(text, bare=True).queries
        if queries and isinstance(queries[0].body, ast.Mutation):
            self._mutate(text)
            return
        result = self.graph.query(
            text, self.params or None, branch=self.branch, at=self.at, explain=self.explain
        )
        if self.explain:
            print(result.explain())
            return
        print_result(self.show, result)
        if self.show.format is Format.TABLE:
            print(f"{counted(len(result), 'row')} at {short(result.commit)}", file=sys.stderr)

    def _mutate(self, text: str) -> None:
        if self.at is not None:
            raise UsageMistake(
                "the past cannot be changed", help="`.at` alone returns to the present."
            )
        with explaining_interrupts(self.graph, self.branch):
            done = self.graph.mutate(
                text, self.params or None, branch=self.branch, actor=self.actor
            )
        counts = f"{counted(done.affected_nodes, 'node')}, {counted(done.affected_edges, 'edge')}"
        print(f"{counts}: {published(done.commit, self.branch)}", file=sys.stderr)

    def _command(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        found = COMMANDS.get(word)
        if found is None:
            meant = did_you_mean(word, COMMANDS)
            help = f"Did you mean `{meant}`?" if meant else "`.help` lists the commands."
            raise UsageMistake(f"there is no command {word}", help=help)
        found[0](self, rest.strip())


def is_complete(lines: list[str]) -> bool:
    """Whether what was typed is to be run.

    A dot command is one line. A whole `query … { … }` ends with its brace; a body alone runs at once when it fits on
    one line. Anything ends with `;` or a blank line.
    """
    text = "\n".join(lines)
    if not text.strip() or text.lstrip().startswith(".") or not lines[-1].strip():
        return True
    if text.rstrip().endswith(";"):
        return True
    is_bare = not text.lstrip().startswith("query")
    return not _is_open(text) and _parses(text) and not (is_bare and len(lines) > 1)


def _is_open(text: str) -> bool:
    """Whether a brace waits for its partner."""
    code = _TEXT_AND_COMMENTS.sub("", text)
    return code.count("{") > code.count("}")


def _parses(text: str) -> bool:
    """Whether there is nothing to wait for; a mistake inside is better shown now than at the end."""
    try:
        parse_queries(text, bare=True)
    except LanguageError as error:
        end = len(text.rstrip().rstrip("}").rstrip())
        return error.diagnostics[0].span.start < end
    return True


# --- dot commands ------------------------------------------------------------------------------------------------


def _help(_: Shell, __: str) -> None:
    for word, (_run, about) in COMMANDS.items():
        print(f"{word:<10} {about}")


def _mode(shell: Shell, rest: str) -> None:
    if rest not in set(Format) - {Format.ARROW}:
        raise UsageMistake(
            f"the mode is one of {', '.join(f for f in Format if f != Format.ARROW)}"
        )
    shell.show = replace(shell.show, format=Format(rest))


def _branch(shell: Shell, rest: str) -> None:
    if not rest:
        for name in shell.graph.branches():
            print(styled(f"* {name}", "32") if name == shell.branch else f"  {name}")
        return
    shell.graph.snapshot(rest)
    shell.branch, shell.at = rest, None


def _at(shell: Shell, rest: str) -> None:
    shell.at = point_of(shell.graph, rest or None, shell.branch)


def _params(shell: Shell, rest: str) -> None:
    from omnigraph.cli.context import params_of

    if rest:
        shell.params = params_of(rest) or {}
    print(json.dumps(shell.params, ensure_ascii=False))


def _switch(name: str) -> Callable[[Shell, str], None]:
    def switch(shell: Shell, rest: str) -> None:
        if rest not in ("", "on", "off"):
            raise UsageMistake(f".{name} is on or off")
        setattr(shell, name, rest == "on" if rest else not getattr(shell, name))
        print(f"{name} {'on' if getattr(shell, name) else 'off'}", file=sys.stderr)

    return switch


def _schema(shell: Shell, _: str) -> None:
    print(shell.graph.schema(shell.branch, shell.at).rstrip("\n"))


def _log(shell: Shell, _: str) -> None:
    for commit in shell.graph.log(shell.branch, limit=10, at=shell.at):
        print(one_line(commit))


def _quit(shell: Shell, _: str) -> None:
    shell.running = False


COMMANDS: dict[str, tuple[Callable[[Shell, str], None], str]] = {
    ".help": (_help, "this list"),
    ".mode": (_mode, "how results are printed: table, json, jsonl, csv, markdown"),
    ".branch": (_branch, "list the branches, or go to one"),
    ".at": (_at, "read a point in time; alone: the present again"),
    ".params": (_params, "values for parameters, as JSON"),
    ".explain": (_switch("explain"), "show how queries run, instead of their rows"),
    ".timer": (_switch("timer"), "show how long things take"),
    ".schema": (_schema, "the schema in force"),
    ".log": (_log, "the newest commits"),
    ".quit": (_quit, "leave; so does Ctrl-D"),
}


# --- editing -----------------------------------------------------------------------------------------------------


def _prepare_editing(shell: Shell) -> None:
    """Line editing, history and completion, where the platform has them."""
    try:
        import readline
    except ImportError:
        return
    readline.set_completer_delims(DELIMITERS)
    readline.set_completer(_Words(shell, readline).complete)
    readline.parse_and_bind("tab: complete")
    _keep_history(readline, home() / "history")


def _keep_history(readline: Any, path: Path) -> None:
    import atexit

    with suppress(OSError):  # none was kept yet
        readline.read_history_file(path)
    readline.set_history_length(HISTORY_LINES_MAX)

    def save() -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(path)
        except OSError:
            print(f"the history could not be kept in {path}", file=sys.stderr)

    atexit.register(save)


class _Words:
    """What readline asks: the n-th completion of a word."""

    def __init__(self, shell: Shell, readline: Any) -> None:
        self._shell, self._readline = shell, readline
        self._found: list[str] = []

    def complete(self, word: str, n: int) -> str | None:
        if n == 0:
            self._found = self._candidates(word)
        return self._found[n] if n < len(self._found) else None

    def _candidates(self, word: str) -> list[str]:
        before = self._readline.get_line_buffer()[: self._readline.get_begidx()]
        if word.startswith(".") and not before.strip():
            return [name for name in COMMANDS if name.startswith(word)]
        if before.split()[:1] == [".branch"]:
            return [name for name in self._shell.graph.branches() if name.startswith(word)]
        if before.split()[:1] == [".mode"]:
            return [str(name) for name in Format if name.startswith(word)]
        catalog = self._shell.graph.snapshot(self._shell.branch, self._shell.at).catalog
        return Completer(catalog).candidates("\n".join([*self._shell.typed, before]), word)
