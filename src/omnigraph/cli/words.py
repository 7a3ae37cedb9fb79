"""The positional words of a command line: which of them is the graph.

Every command takes its graph first: `omnigraph show people main`. It may be omitted if --store, --server, the
environment or `omnigraph.yaml` names it, so the words are counted before they are assigned.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from omnigraph.cli.exits import UsageError
from omnigraph.model.frozen import frozen

PLACES = ("/", "./", "../", "~")


@frozen
class Word:
    """A word a command takes: its parameter, what help calls it, and whether it may be missing or repeated."""

    name: str
    shown: str
    required: bool = True
    most: int = 1
    is_number: bool = False


def handed_out(
    given: Mapping[str, Any], own: Sequence[Word], *, chosen: bool, configured: bool
) -> dict[str, Any]:
    """The words by parameter, with the graph as `uri`. `chosen`: an option names the graph; `configured`: a setting.

    >>> word = (Word("commit", "COMMIT"),)
    >>> handed_out({"uri": "people", "commit": "main"}, word, chosen=False, configured=False)
    {'uri': 'people', 'commit': 'main'}
    >>> handed_out({"uri": "main", "commit": None}, word, chosen=False, configured=True)
    {'uri': None, 'commit': 'main'}
    """
    words = [w for name in ("uri", *(word.name for word in own)) for w in _listed(given[name])]
    least, most = sum(word.required for word in own), sum(word.most for word in own)
    graph = None
    if len(words) > least and not chosen and _names_graph(words, most, configured):
        graph, words = words[0], words[1:]
        _check_order(graph, words)
    if len(words) > most:
        extra = f"unexpected argument: {words[most]}"
        raise UsageError(f"{extra}; --store already names the graph" if chosen else extra)
    found: dict[str, Any] = {"uri": graph}
    for word in own:
        taken, words = words[: word.most], words[word.most :]
        if word.required and not taken:
            raise UsageError(f"missing argument {word.shown}")
        found[word.name] = taken if word.most > 1 else _read(word, next(iter(taken), None))
    return found


def _check_order(graph: str, others: Sequence[str]) -> None:
    """If another word is a graph, the order is wrong: the error shows the right one."""
    late = next((word for word in others if _is_graph(word)), None)
    if late is not None and not is_place(graph):
        raise UsageError(
            f"the graph must come first, but {graph!r} is not a graph",
            help=f"Put {late} before {graph}, or name it with --store {late}.",
        )


def _read(word: Word, text: str | None) -> str | int | None:
    if text is None or not word.is_number:
        return text
    if not text.isascii() or not text.isdecimal():
        raise UsageError(f"{word.shown} must be a number, not {text!r}")
    return int(text)


def _names_graph(words: Sequence[str], most: int, configured: bool) -> bool:
    return len(words) > most or not configured or is_place(words[0]) or ".." in words[-1]


def is_place(word: str) -> bool:
    """Whether a word can only be an address, or a graph exists at it."""
    return "://" in word or word.startswith(PLACES) or _is_graph(word)


def _is_graph(word: str) -> bool:
    return os.path.isfile(os.path.join(word, "graph.json"))


def _listed(value: Any) -> list[str]:
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]
