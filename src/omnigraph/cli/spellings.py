"""Command lines of the Rust project, translated to ours before anything else reads them.

There are two tables: of the names of commands there, and of their options. What is the same in both needs no line
here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from omnigraph.cli.exits import UsageError
from omnigraph.model.frozen import frozen


@frozen
class Spelling:
    """The first words of a command line there and here."""

    theirs: tuple[str, ...]
    ours: tuple[str, ...]
    only_with: str = ""  # an option that distinguishes it from one of our commands


SPELLINGS = (
    Spelling(("read",), ("query",)),
    Spelling(("change",), ("mutate",)),
    Spelling(("ingest",), ("load", "--create-from", "main")),
    Spelling(("check",), ("lint",), only_with="--query"),
    Spelling(("query", "lint"), ("lint",)),
    Spelling(("query", "check"), ("lint",)),
    Spelling(("commit", "list"), ("log",)),
    Spelling(("commit", "show"), ("show",)),
    Spelling(("commit", "changes"), ("changes", "--commit")),
    Spelling(("changes", "poll"), ("changes",)),
    Spelling(("changes", "baseline"), ("changes",)),
    Spelling(("rebuild-full-text-indexes",), ("optimize",)),
    Spelling(("queries", "validate"), ("cluster", "validate")),
    Spelling(("schema", "get"), ("schema", "show")),
    Spelling(("blob", "get", "node"), ("blob", "get")),
    Spelling(("blob", "get", "edge"), ("blob", "get")),
    Spelling(("blob", "stat", "node"), ("blob", "stat")),
    Spelling(("blob", "stat", "edge"), ("blob", "stat")),
    Spelling(("repair",), ("doctor",)),
    # The ledger begins with the first apply, and plans look at the graphs themselves.
    Spelling(("cluster", "import"), ("cluster", "validate")),
    Spelling(("cluster", "refresh"), ("cluster", "status")),
    Spelling(("alias",), ()),
)
DROPPED = ""  # an option for what is always the case here
AT_FILE = "--params @"  # the file becomes part of the value
READS = {
    "--query": "--file",
    "--query-string": "--expr",
    "--snapshot": "--at",
    "--params-file": AT_FILE,
}
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "query": READS,
    "mutate": READS,
    "load": {"--from": "--create-from"},
    "export": {"--jsonl": DROPPED},
    "changes": {"--cursor": "--after", "--start": "--after", "--out": "--baseline"},
    "init": {"--force": DROPPED},
    "cluster": {"--cluster": "--config"},
    "blob": {"--snapshot": "--at"},
    "branch": {"--uri": "--store"},
    "doctor": {"--confirm": DROPPED, "--force": DROPPED},
}
# Options that stand before the command there, and whether a value follows them.
GLOBAL = {
    "--as": True,
    "--server": True,
    "--graph": True,
    "--store": True,
    "--profile": True,
    "--yes": False,
    "--quiet": False,
    "--json": False,
}
PLACES = ("server", "store", "graph", "default_graph")  # what a profile may name


def translated(words: Sequence[str], profiles: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The command line in our words; one that already is stays unchanged.

    >>> translated(["--store", "g", "read", "--query", "f.gq", "all"], {})
    ['query', '--file', 'f.gq', 'all', '--store', 'g']
    """
    moved, rest = _leading_options(words)
    rest = _renamed(rest)
    options = OPTIONS.get(rest[0], {}) if rest else {}
    found = [*_with_options(rest, options), *moved]
    return _with_profile(found, profiles)


def _leading_options(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The options before the command, and everything from the command on."""
    at = 0
    while at < len(words) and words[at].partition("=")[0] in GLOBAL:
        takes = GLOBAL[words[at].partition("=")[0]] and "=" not in words[at]
        at += 2 if takes else 1
    if at >= len(words):  # no command follows; the parser reports it
        return [], list(words)
    return list(words[:at]), list(words[at:])


def _renamed(words: list[str]) -> list[str]:
    for spelling in SPELLINGS:
        count = len(spelling.theirs)
        if tuple(words[:count]) != spelling.theirs or not _is_meant(spelling, words):
            continue
        return [*spelling.ours, *words[count:]]
    return words


def _is_meant(spelling: Spelling, words: list[str]) -> bool:
    wanted = spelling.only_with
    return not wanted or any(word.partition("=")[0] == wanted for word in words)


def _with_options(words: list[str], options: Mapping[str, str]) -> list[str]:
    found: list[str] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        name, equals, value = word.partition("=")
        ours = options.get(name)
        if ours is None:
            found.append(word)
        elif ours == AT_FILE:
            file = value if equals else (waiting.pop(0) if waiting else "")
            found += ["--params", f"@{file}"]
        elif ours != DROPPED:
            found.append(f"{ours}={value}" if equals else ours)
    return found


def _with_profile(words: list[str], profiles: Mapping[str, Mapping[str, str]]) -> list[str]:
    """`--profile NAME` stands for the options that name its graph."""
    if "--profile" not in words:
        return words
    at = words.index("--profile")
    name = words[at + 1] if at + 1 < len(words) else ""
    if name not in profiles:
        known = ", ".join(sorted(profiles)) or "none"
        raise UsageError(f"unknown profile {name!r}; known profiles: {known}")
    graph = {"default_graph": "graph"}
    given = [
        part
        for key, value in profiles[name].items()
        for part in (f"--{graph.get(key, key)}", value)
        if f"--{graph.get(key, key)}" not in words
    ]
    return [*words[:at], *words[at + 2 :], *given]
