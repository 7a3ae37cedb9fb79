"""`omnigraph explain`."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from pkgutil import walk_packages
from typing import Annotated

from typer import Argument

import omnigraph
from omnigraph.cli.app import Verb
from omnigraph.cli.exits import EXIT_CODES
from omnigraph.cli.options import Show
from omnigraph.cli.output import Sheet, answer, print_sheet
from omnigraph.errors import CODES, Code, Kind, OmnigraphError

LIGHT = ("omnigraph.lang.schema", "omnigraph.lang.query", "omnigraph.cli.context")


class CodeUnknown(OmnigraphError):
    """There is no error code of this name."""

    code, kind = "code_unknown", Kind.NOT_FOUND
    default_help = "`omnigraph explain` lists all codes."


def explain(
    show: Show,
    code: Annotated[str | None, Argument(help="As in error[T3].", metavar="[CODE]")] = None,
) -> None:
    """Explain an error code; without one, list them all."""
    if code is None:
        rows = [[c.code, str(c.kind), c.title] for c in all_codes().values()]
        print_sheet(show, Sheet(["code", "kind", "title"], rows), rows_max=0)
        return
    found = _found(code)
    answer(show, text_of(found), document_of(found))


def _found(code: str) -> Code:
    """A code in any case; the languages are looked at first, since that is quick."""
    for catalogue in (light_codes, all_codes):
        known = catalogue()
        found = known.get(code) or known.get(code.upper()) or known.get(code.lower())
        if found is not None:
            return found
    raise _unknown(code, list(CODES))


def light_codes() -> dict[str, Code]:
    for module in LIGHT:
        import_module(module)
    return CODES


def all_codes() -> dict[str, Code]:
    """Every code there is: modules enter theirs when they are imported. Extras that are not installed add none."""
    for module in walk_packages(omnigraph.__path__, "omnigraph.", onerror=lambda _: None):
        if not module.name.endswith("__main__"):
            with suppress(ImportError):
                import_module(module.name)
    return dict(sorted(CODES.items(), key=lambda item: (item[0].islower(), item[0])))


def text_of(code: Code) -> str:
    """The long text of a code."""
    paragraphs = [f"{code.code}: {code.title} ({code.kind}, exit code {EXIT_CODES[code.kind]})"]
    paragraphs += [text for text in (code.explanation, f"help: {code.help}") if text]
    return "\n\n".join(paragraphs)


def document_of(code: Code) -> dict[str, str]:
    return {
        "code": code.code,
        "kind": str(code.kind),
        "title": code.title,
        "explanation": code.explanation,
        "help": code.help,
    }


def _unknown(code: str, known: list[str]) -> CodeUnknown:
    from omnigraph.lang.diagnostics import did_you_mean

    meant = did_you_mean(code, known)
    return CodeUnknown(
        f"there is no code {code!r}", help=f"Did you mean `{meant}`?" if meant else None
    )


COMMAND = Verb(explain, ("omnigraph explain T1", "omnigraph explain branch_not_found --json"))
