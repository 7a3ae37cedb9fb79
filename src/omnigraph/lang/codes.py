"""The catalogue of the codes both languages share; each language adds its own beside its parser.

P1 to P9 are errors of spelling and syntax.
"""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.errors import Kind, register

Entry = tuple[str, str, str, str]  # code, title, explanation, help


def register_all(entries: Iterable[Entry], kind: Kind = Kind.INVALID) -> None:
    """Enter a table of codes into the catalogue."""
    for code, title, explanation, help in entries:
        register(code, kind, title, explanation, help)


SYNTAX: tuple[Entry, ...] = (
    (
        "P1",
        "Something else was expected here",
        "The text does not follow the grammar at this place. The message says what was expected and what was found.",
        "Compare the line with the grammar in the language reference.",
    ),
    (
        "P2",
        "A bracket is never closed",
        "The place is that of the opening bracket, because the missing one has none.",
        "Add the closing bracket.",
    ),
    (
        "P3",
        "A character does not belong to the language",
        "Outside strings and comments the languages use ASCII letters, digits and a few symbols.",
        "Remove the character, or put the text between double quotes.",
    ),
    (
        "P4",
        "Malformed string",
        'Strings are in double quotes. Its escapes are \\" \\\\ \\n \\r and \\t.',
        "Close the string, or double the backslash.",
    ),
    (
        "P7",
        "A number is out of range",
        "The number does not fit the place where it stands.",
        "Use a smaller number.",
    ),
    (
        "P8",
        "A comment is never closed",
        "A comment that starts with /* lasts until the next */.",
        "Close the comment with */.",
    ),
    (
        "P9",
        "A name starts with the wrong letter",
        "Types are named like Person; properties, variables and queries like first_name.",
        "Types start with an upper-case letter, everything else with a lower-case one.",
    ),
)

BOUNDS: tuple[Entry, ...] = (
    (
        "P5",
        "Brackets are nested too deeply",
        "Nesting is bounded, so that no text can exhaust the parser.",
        "Split up the inner parts.",
    ),
    (
        "P6",
        "The text is too long",
        "The length of a schema or query text is bounded.",
        "Split the text into several files.",
    ),
)

register_all(SYNTAX)
register_all(BOUNDS, Kind.LIMIT)
