"""Diagnostics of a text: collected, sorted, explained and rendered.

A checker reports into a `Diagnostics` and goes on; its caller ends with `raise_errors`, so that all errors of a
file are reported together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Any

from omnigraph.errors import CODES, OmnigraphError, Span
from omnigraph.lang.source import Located, Source
from omnigraph.model.frozen import frozen

ERRORS_MAX = 20
WARNINGS_MAX = 200
WORD_CHARS_MAX = 64  # of a word to find similar names for
OPTIONS_MAX = 2_000  # of the names it is compared with
LINE_CHARS_MAX = 160  # of a source line that is shown


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@frozen
class Diagnostic:
    """One finding: the problem, its place, and how to fix it."""

    code: str
    message: str
    span: Span
    label: str = ""  # a few words under the carets
    help: str = ""
    severity: Severity = Severity.ERROR
    suggestion: str | None = None  # the word that was probably meant

    def to_json(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "severity": str(self.severity),
            "message": self.message,
            "span": self.span.to_json(),
            "label": self.label,
            "help": self.help,
            "suggestion": self.suggestion,
        }


def render(found: Diagnostic, source: Source) -> str:
    """The text shape of a diagnostic, with the source line and carets under the place."""
    span = found.span
    number = str(span.line)
    gutter = " " * len(number)
    line, column = _window(source.line_text(span.line), span.column)
    width = max(1, min(span.end - span.start, len(line) - column + 1))
    pad = "".join("\t" if c == "\t" else " " for c in line[: column - 1])
    rows = [
        f"{found.severity}[{found.code}]: {found.message}",
        f"{gutter}--> {span.source or 'input'}:{span.line}:{span.column}",
        f"{gutter} |",
        f"{number} | {line}".rstrip(),
        f"{gutter} | {pad}{'^' * width} {found.label}".rstrip(),
    ]
    if found.help:
        rows.append(f"{gutter} = help: {found.help}")
    return "\n".join(rows)


def _window(line: str, column: int) -> tuple[str, int]:
    """The part of a long line that is worth showing, and where the column falls in it."""
    first = max(0, column - LINE_CHARS_MAX // 2) if len(line) > LINE_CHARS_MAX else 0
    return line[first : first + LINE_CHARS_MAX], column - first


class LanguageError(OmnigraphError):
    """A text of one of the languages has errors.

    It carries all of them in `diagnostics`; its own code, kind, place and help are those of the first.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic], source: Source) -> None:
        self.diagnostics = tuple(diagnostics)
        self.source = source
        first = self.diagnostics[0]
        self.code, self.kind = first.code, CODES[first.code].kind
        super().__init__(
            first.message,
            help=first.help or CODES[first.code].help,
            span=first.span,
            details={"diagnostics": [d.to_json() for d in self.diagnostics]},
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return LanguageError, (self.diagnostics, self.source)

    def render(self) -> str:
        return "\n\n".join(render(d, self.source) for d in self.diagnostics)


class Diagnostics:
    """Collects the findings about one source, up to a bound."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._found: dict[tuple[int, str, str], Diagnostic] = {}
        self._counts = dict.fromkeys(Severity, 0)

    @property
    def errors(self) -> int:
        return self._counts[Severity.ERROR]

    @property
    def full(self) -> bool:
        """Whether further errors would not be shown: time to stop looking."""
        return self.errors >= ERRORS_MAX

    def error(
        self,
        code: str,
        message: str,
        at: Located,
        *,
        label: str = "",
        help: str = "",
        suggestion: str | None = None,
    ) -> None:
        """Report an error; the catalogue's help is the default."""
        if not self.full:
            help = help or CODES[code].help
            span = self.source.span(at)
            self._keep(Diagnostic(code, message, span, label, help, Severity.ERROR, suggestion))

    def warn(
        self,
        code: str,
        message: str,
        at: Located,
        *,
        label: str = "",
        help: str = "",
        suggestion: str | None = None,
    ) -> None:
        """Report what is legal but probably unintended."""
        if self._counts[Severity.WARNING] < WARNINGS_MAX:
            help = help or CODES[code].help
            span = self.source.span(at)
            self._keep(Diagnostic(code, message, span, label, help, Severity.WARNING, suggestion))

    def unknown(
        self, code: str, message: str, at: Located, *, word: str, options: Iterable[str]
    ) -> None:
        """Report an unknown name, with the one that was probably meant."""
        if not self.full:
            suggestion = did_you_mean(word, options)
            help = f"Did you mean `{suggestion}`?" if suggestion else ""
            self.error(code, message, at, help=help, suggestion=suggestion)

    def _keep(self, found: Diagnostic) -> None:
        key = (found.span.start, found.code, found.message)
        if key not in self._found:
            self._found[key] = found
            self._counts[found.severity] += 1

    def sorted(self) -> tuple[Diagnostic, ...]:
        """All findings in the order of the text."""
        return tuple(sorted(self._found.values(), key=lambda d: (d.span.start, d.span.end, d.code)))

    def raise_errors(self) -> None:
        """Raise when there is an error; warnings alone do not raise."""
        errors = [d for d in self.sorted() if d.severity is Severity.ERROR]
        if errors:
            raise LanguageError(errors, self.source)


def did_you_mean(
    word: str,
    options: Iterable[str],
    aliases: Mapping[str, str] | None = None,
    *,
    likeness: float = 0.6,
) -> str | None:
    """The option that a misspelt word most likely stands for.

    >>> did_you_mean("noed", ["node", "edge"])
    'node'
    """
    if not word or len(word) > WORD_CHARS_MAX:
        return None
    known = sorted(set(options))[:OPTIONS_MAX]
    folded = word.lower()
    same = next((o for o in known if o.lower() == folded and o != word), None)
    if same is not None:
        return same
    alias = (aliases or {}).get(folded)
    if alias in known:
        return alias
    matcher = SequenceMatcher(None, "", folded, autojunk=False)
    best, score = None, likeness
    for option in known:
        found = _likeness(matcher, option.lower(), folded) if option != word else 0.0
        if found > score or (best is None and found == score):
            best, score = option, found
    return best


def _likeness(matcher: SequenceMatcher[str], option: str, word: str) -> float:
    """How alike two words are, from 0 to about 1; the same first letter and swapped letters count for more."""
    matcher.set_seq1(option)
    if matcher.real_quick_ratio() < 0.5 or matcher.quick_ratio() < 0.5:
        return 0.0
    bonus = 0.05 if word[:1] == option[:1] else 0.0
    if len(word) == len(option) and sorted(word) == sorted(option):
        bonus += 0.1
    return matcher.ratio() + bonus
