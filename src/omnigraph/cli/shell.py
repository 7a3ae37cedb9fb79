"""The interactive shell: queries, mutations and dot commands, with completion from the schema."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.cli import suggesting
from omnigraph.cli.commits import changed_branches, commit_line, published, short
from omnigraph.cli.context import point_of
from omnigraph.cli.exits import Interrupted, UsageError
from omnigraph.cli.options import OutputFormat, Show
from omnigraph.cli.output import CONTRACTED, coloured_error, print_result, styled
from omnigraph.cli.progress import explaining_interrupts
from omnigraph.cli.removals import consent, deleted_by
from omnigraph.config import home
from omnigraph.errors import OmnigraphError
from omnigraph.lang.diagnostics import LanguageError, did_you_mean
from omnigraph.lang.languages import is_cypher_text
from omnigraph.lang.query import ast, parse_queries
from omnigraph.lang.query.calls import function_names
from omnigraph.model.catalog import Catalog
from omnigraph.wording import counted

if TYPE_CHECKING:
    from omnigraph.graph import Graph

HISTORY_LINES_MAX = 5_000
WELCOME = (
    "omnigraph shell: end a query with a blank line or `;`. `help` lists commands, `exit` leaves"
)
WORDS = {
    "help": ".help",
    "?": ".help",
    "exit": ".quit",
    "quit": ".quit",
    "\\q": ".quit",
    "\\h": ".help",
}
_TEXT_AND_COMMENTS = re.compile(r'"(\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
DELIMITERS = " \t\n{}()[],:;"
KEYWORDS = (
    "match", "return", "order", "limit", "skip", "having", "not", "exists", "optional", "union", "query",
    "insert", "update", "delete", "set", "where", "and", "or", "as", "asc", "desc", "distinct",
)  # fmt: skip
_PROPERTY = re.compile(r"\$(?P<variable>\w+)\.(?P<start>\w*)")
_BINDING = re.compile(r"\$(?P<variable>\w+)\s*:\s*(?P<type>\w+)")
_AFTER_COLON = re.compile(r"\$\w+\s*:\s*$")
_AFTER_VARIABLE = re.compile(r"(^|[{}\n]|\$\w+|\w)\s*\$\w+\s+$")
_AFTER_STATEMENT = re.compile(r"\b(insert|update|delete)\s+$")


@dataclass(slots=True)
class Shell:
    """One session on a graph."""

    graph: Graph
    branch: str
    show: Show
    actor: str | None = None
    at: str | None = None
    params: dict[str, Any] = field(default_factory=dict)
    explain: bool = False
    timer: bool = False
    running: bool = True
    yes: bool = False  # whether branches are deleted without confirmation
    typed: list[str] = field(default_factory=list)  # lines of an unfinished statement
    last: str = ""  # the statement that was run last

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
            except KeyboardInterrupt:  # drops the typed lines, or stops the running statement
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
                _remember_whole(lines)
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
            if is_command(text):
                self._command(WORDS.get(_bare(text), text.strip()))
            else:
                self.statement(text.strip().rstrip(";"))
        except OmnigraphError as error:
            suggesting.improve(error)
            print(coloured_error(error.render()), file=sys.stderr)
        if self.timer:
            print(f"{(time.perf_counter() - started) * 1000:.0f} ms", file=sys.stderr)

    def statement(self, text: str) -> None:
        self.last = text
        if _writes(text):
            consent(self.yes, deleted_by, self.graph, text)
            self._mutate(text)
            return
        if _is_about_branches(text):
            result = self.graph.query(text)
        else:
            result = self.graph.query(
                text, self.params or None, branch=self.branch, at=self.at, explain=self.explain
            )
        if self.explain:
            print(result.explain())
            return
        print_result(self.show, result)
        if self.show.format is OutputFormat.TABLE:
            print(f"{counted(len(result), 'row')} at {short(result.commit)}", file=sys.stderr)

    def _mutate(self, text: str) -> None:
        if self.at is not None:
            raise UsageError(
                "the past cannot be changed", help="`.at` without a point returns to the present."
            )
        about_branches = _is_about_branches(text)
        with explaining_interrupts(self.graph, self.branch):
            if about_branches:
                done = self.graph.mutate(text, actor=self.actor)
            else:
                done = self.graph.mutate(
                    text, self.params or None, branch=self.branch, actor=self.actor
                )
        if done.outcome is not None:
            print(changed_branches(done.outcome), file=sys.stderr)
            return
        if done.result is not None:
            print_result(self.show, done.result)
        counts = f"{counted(done.affected_nodes, 'node')}, {counted(done.affected_edges, 'edge')}"
        print(f"{counts}: {published(done.commit, self.branch)}", file=sys.stderr)

    def _command(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        found = COMMANDS.get(word)
        if found is None:
            meant = did_you_mean(word, COMMANDS)
            help = f"Did you mean `{meant}`?" if meant else "`.help` lists the commands."
            raise UsageError(f"unknown command {word}", help=help)
        found[0](self, rest.strip())


def is_command(text: str) -> bool:
    """Whether a line is a command of the shell: a dot command, or one known from other shells."""
    return text.lstrip().startswith(".") or _bare(text) in WORDS


def _bare(text: str) -> str:
    return text.strip().rstrip(";").rstrip("()").lower()


def is_complete(lines: list[str]) -> bool:
    """Whether the text typed so far is ready to run.

    A dot command is one line. A whole `query … { … }` ends with its brace; a body alone runs immediately if it fits on
    one line. Anything ends with `;` or a blank line.
    """
    text = "\n".join(lines)
    if not text.strip() or is_command(text) or not lines[-1].strip():
        return True
    if text.rstrip().endswith(";"):
        return True
    if is_cypher_text(text):
        return False  # a blank line or `;` ends it
    is_bare = not text.lstrip().startswith("query")
    return not _is_open(text) and _parses(text) and not (is_bare and len(lines) > 1)


def _writes(text: str) -> bool:
    """Whether a statement changes the graph."""
    if is_cypher_text(text):
        from omnigraph.lang.cypher import parse_cypher, writes

        return writes(parse_cypher(text))
    tree = parse_queries(text, bare=True)
    if tree.statement is not None:
        return tree.statement.writes
    return bool(tree.queries) and isinstance(tree.queries[0].body, ast.Mutation)


def _is_about_branches(text: str) -> bool:
    """Whether a statement names its branches itself, whatever the shell's branch."""
    if is_cypher_text(text):
        return False
    return isinstance(parse_queries(text, bare=True).statement, ast.BranchStatement)


def _is_open(text: str) -> bool:
    """Whether a brace is not yet closed."""
    code = _TEXT_AND_COMMENTS.sub("", text)
    return code.count("{") > code.count("}")


def _parses(text: str) -> bool:
    """Whether the text is complete; an error before its end also counts, to be shown now."""
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
    modes = [each for each in OutputFormat if each not in (OutputFormat.ARROW, *CONTRACTED)]
    if rest not in modes:
        raise UsageError(f"the mode must be one of {', '.join(modes)}")
    shell.show = replace(shell.show, format=OutputFormat(rest))


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
            raise UsageError(f".{name} must be on or off")
        setattr(shell, name, rest == "on" if rest else not getattr(shell, name))
        print(f"{name} {'on' if getattr(shell, name) else 'off'}", file=sys.stderr)

    return switch


def _schema(shell: Shell, _: str) -> None:
    print(shell.graph.schema(shell.branch, shell.at).rstrip("\n"))


def _log(shell: Shell, _: str) -> None:
    for commit in shell.graph.log(shell.branch, limit=10, at=shell.at):
        print(commit_line(commit))


def _edit(shell: Shell, _: str) -> None:
    """Change the last statement in an editor, then run it."""
    import os
    import shlex
    import subprocess
    import tempfile

    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="omnigraph-edit-") as folder:
        file = Path(folder) / "statement.gq"
        file.write_text(shell.last + "\n", encoding="utf-8")
        try:
            subprocess.run([*shlex.split(editor), str(file)], check=True)  # noqa: S603
        except (OSError, subprocess.CalledProcessError) as failed:
            raise UsageError(
                f"the editor {editor!r} could not be used: {failed}",
                help="Set EDITOR to another one.",
            ) from failed
        text = file.read_text(encoding="utf-8").strip()
    if text:
        print(text)
        shell.statement(text.rstrip(";"))


def _quit(shell: Shell, _: str) -> None:
    shell.running = False


COMMANDS: dict[str, tuple[Callable[[Shell, str], None], str]] = {
    ".help": (_help, "this list"),
    ".mode": (_mode, "output format: table, json, jsonl, csv, markdown"),
    ".branch": (_branch, "list branches, or switch to one"),
    ".at": (_at, "read at a point in time; without one, at the present"),
    ".params": (_params, "parameter values, as JSON"),
    ".explain": (_switch("explain"), "show query plans instead of rows"),
    ".timer": (_switch("timer"), "show execution times"),
    ".schema": (_schema, "the schema"),
    ".log": (_log, "the newest commits"),
    ".edit": (_edit, "change the last statement in your editor (EDITOR), then run it"),
    ".quit": (_quit, "leave; also exit, quit or Ctrl-D"),
}


# --- editing -----------------------------------------------------------------------------------------------------


def _prepare_editing(shell: Shell) -> None:
    """Set up line editing, history and completion, if the platform has them."""
    try:
        import readline
    except ImportError:
        return
    readline.set_completer_delims(DELIMITERS)
    readline.set_completer(_Words(shell, readline).complete)
    readline.parse_and_bind("tab: complete")
    _keep_history(readline, home() / "history")


def _remember_whole(lines: list[str]) -> None:
    """Make a multi-line statement one entry of the history."""
    readline = sys.modules.get("readline")
    if readline is None or len(lines) < 2 or any("//" in line for line in lines):
        return
    last = readline.get_current_history_length()
    filled = [line for line in lines if line.strip()]
    kept = [readline.get_history_item(last - len(filled) + 1 + n) for n in range(len(filled))]
    if len(filled) < 2 or kept != filled:  # a repeated line is kept once
        return
    for place in range(last - 1, last - 1 - len(filled), -1):
        readline.remove_history_item(place)
    readline.add_history(" ".join(line.strip() for line in filled))


def _keep_history(readline: Any, path: Path) -> None:
    import atexit

    with suppress(OSError):  # it does not exist yet
        readline.read_history_file(path)
    readline.set_history_length(HISTORY_LINES_MAX)

    def save() -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(path)
        except OSError:
            print(f"could not save the history in {path}", file=sys.stderr)

    atexit.register(save)


class _Words:
    """The completer of readline: the n-th completion of a word."""

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
            return [str(name) for name in OutputFormat if name.startswith(word)]
        catalog = self._shell.graph.snapshot(self._shell.branch, self._shell.at).catalog
        return Completer(catalog).candidates("\n".join([*self._shell.typed, before]), word)


class Completer:
    """Completes words of queries from one catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    def candidates(self, before: str, word: str) -> list[str]:
        """The words that complete `word` after the text `before`."""
        return sorted({found for found in self._options(before, word) if found.startswith(word)})

    def _options(self, before: str, word: str) -> Iterable[str]:
        reading = _PROPERTY.fullmatch(word)
        if reading is not None:
            names = self._properties(reading["variable"], before)
            return (f"${reading['variable']}.{name}" for name in names)
        if _AFTER_COLON.search(before):
            return (*self.catalog.nodes, *self.catalog.interfaces)
        if _AFTER_STATEMENT.search(before):
            return (*self.catalog.nodes, *self.catalog.edges)
        if _AFTER_VARIABLE.search(before):
            return self._edges()
        if word.startswith("$"):
            return (f"${m['variable']}" for m in _BINDING.finditer(before))
        return (*KEYWORDS, *function_names(), *self.catalog.nodes, *self._edges())

    def _edges(self) -> Iterator[str]:
        """Edges as in patterns: with a lower-case first letter."""
        return (name[0].lower() + name[1:] for name in self.catalog.edges)

    def _properties(self, variable: str, before: str) -> set[str]:
        """The properties of the variable's type; of all types if it has none yet."""
        bound = {m["variable"]: m["type"] for m in _BINDING.finditer(before)}
        name = bound.get(variable)
        if name is not None and name in self.catalog.interfaces:
            return {"id", *self.catalog.interfaces[name].properties}
        kind = self.catalog.entity(name) if name else None
        kinds = [kind] if kind else list(self.catalog.entities())
        return {"id"} | {name for kind in kinds for name in kind.properties}
