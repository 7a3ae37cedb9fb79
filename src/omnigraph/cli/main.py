"""From the words of a command line to an exit code."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import omnigraph

if TYPE_CHECKING:
    from omnigraph.errors import OmnigraphError

GARBAGE_OBJECTS = (
    100_000  # between two collections: the objects of modules live as long as the process
)
SLEEP_AT_ONCE = "4"  # the minimum of OpenBLAS: 2**4 cycles
WANT_PANDAS = frozenset({"demo", "load", "pipeline", "serve"})  # they may use Spark, or serve


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; the entry point of the console script."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words in (["version"], ["--version"]):
        print(f"omnigraph {omnigraph.__version__}")
        return 0
    if arguments is None:
        _start_quickly(words)
    try:
        return _run(words)
    except BrokenPipeError:
        # The reader closed the pipe; the interpreter must not try to flush the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    finally:
        if arguments is None:
            _end_quickly()


def _start_quickly(words: Sequence[str]) -> None:
    """Skip what a process of one command does not need."""
    gc.set_threshold(GARBAGE_OBJECTS, 20, 100)
    if "spark" in words or WANT_PANDAS & set(words[:1]):
        return
    sys.meta_path.insert(0, _NoPandas())
    # numpy's linear algebra starts a thread per core, which spin for a while before they sleep.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", SLEEP_AT_ONCE)


def _end_quickly() -> None:
    """Leave the memory to the system: a last garbage collection took a fifth of the time of a query."""
    if "duckdb" not in sys.modules:  # which reports connections that were not closed
        gc.freeze()


class _NoPandas:
    """Hides pandas: Arrow imports it to recognise its objects, and a command line has none."""

    def find_spec(self, name: str, *_: Any) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def _run(words: list[str]) -> int:
    from omnigraph.errors import speaking

    with speaking("cli"):
        return _spoken(words)


def _spoken(words: list[str]) -> int:
    from omnigraph.cli import exits
    from omnigraph.errors import OmnigraphError

    try:
        return _invoke(words)
    except OmnigraphError as error:
        _report(error, words)
        return exits.exit_code(error)
    except exits.Interrupted as interrupt:
        print(f"\ninterrupted: {interrupt}", file=sys.stderr)
        return exits.INTERRUPTED
    except Exception as error:
        if isinstance(error, BrokenPipeError) or os.environ.get("OMNIGRAPH_DEBUG"):
            raise
        _report(_internal(error), words)
        return exits.FAILURE


def _invoke(words: list[str]) -> int:
    import typer

    from omnigraph.cli.app import build
    from omnigraph.cli.exits import Interrupted

    words = _with_alias(_in_our_words(words)) or ["--help"]
    try:
        answer: Any = build(words)(words, prog_name="omnigraph", standalone_mode=False)
    except typer.TyperException as error:
        raise _usage_error(error) from error
    except typer.Abort:
        raise Interrupted("nothing was changed") from None
    sys.stdout.flush()
    return answer if isinstance(answer, int) else 0


def serve(arguments: Sequence[str] | None = None) -> int:
    """The entry point of the console script `omnigraph-server`: `omnigraph serve`."""
    return main(["serve", *(sys.argv[1:] if arguments is None else arguments)])


def _in_our_words(words: list[str]) -> list[str]:
    """The command line, translated if it is one of the Rust project."""
    from omnigraph.cli.context import config
    from omnigraph.cli.spellings import translated

    profile = os.environ.get("OMNIGRAPH_PROFILE")
    named = ["--profile", profile] if profile and "--profile" not in words else []
    profiles = config().profiles if named or "--profile" in words else {}
    return translated([*named, *words], profiles)


def _with_alias(words: list[str]) -> list[str]:
    """The command line an alias of the configuration stands for; commands cannot be redefined."""
    from omnigraph.cli.app import COMMANDS

    if not words or words[0] in COMMANDS or words[0].startswith("-"):
        return words
    import shlex

    from omnigraph.cli.context import config

    line = config().aliases.get(words[0])
    return words if line is None else [*shlex.split(line), *words[1:]]


def _usage_error(error: Any) -> OmnigraphError:
    from omnigraph.cli.exits import UsageError

    context = getattr(error, "ctx", None)
    help = f"`{context.command_path} --help` shows how to use it." if context else None
    return UsageError(error.format_message().rstrip("."), help=help)


def _internal(error: Exception) -> OmnigraphError:
    from omnigraph.errors import OmnigraphError

    help = "This is a bug in omnigraph. Set OMNIGRAPH_DEBUG=1 to see the traceback, and report it."
    return OmnigraphError(f"{type(error).__name__}: {error}", help=help)


def _report(error: OmnigraphError, words: Sequence[str]) -> None:
    """Print one JSON object if JSON was requested, else the text with its code and help."""
    from omnigraph.cli import suggesting

    suggesting.improve(error)
    if error.code == "precondition_failed" and _wants_theirs(words):
        from omnigraph.cli.output import print_document
        from omnigraph.server.errors import body_of

        print_document(body_of(error), pretty=True)
        return
    if not _wants_json(words):
        from omnigraph.cli.output import coloured_error

        print(coloured_error(error.render()), file=sys.stderr)
        if error.details.get("violations"):
            from omnigraph.cli.output import violations_table

            print(violations_table(error.details["violations"]), file=sys.stderr)
        return
    import json

    print(json.dumps(error.to_json(), ensure_ascii=False, default=str), file=sys.stderr)


def _wants_theirs(words: Sequence[str]) -> bool:
    """Whether JSON of the Rust project is requested: there a failed precondition is a result."""
    from omnigraph.cli.context import config
    from omnigraph.wire.contracts import CONTRACTS

    said = " ".join(words)
    named = any(f"json-{contract}" in said for contract in CONTRACTS)
    return named or (config()["defaults.json"] is not None and _wants_json(words))


def _wants_json(words: Sequence[str]) -> bool:
    """Whether JSON is requested; decided from the words alone, since they may be invalid."""
    pairs = zip(words, [*words[1:], ""], strict=True)
    given = any(word == "--format" and value.startswith("json") for word, value in pairs)
    joined = any(word == "--json" or word.startswith("--format=json") for word in words)
    return given or joined or os.environ.get("OMNIGRAPH_FORMAT", "").startswith("json")


if __name__ == "__main__":
    sys.exit(main())
