"""What may come out of a target: an answer, or one of our errors with everything an error needs."""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.errors import OmnigraphError
from omnigraph.lang.diagnostics import LanguageError

MESSAGE_CHARACTERS_MAX = 1 << 20


def only_ours(*works: Callable[[], object]) -> None:
    """Run all of them; anything that is raised and is not ours goes on."""
    for work in works:
        error = _raised(work)
        if error is not None:
            assert error.code, error
            assert error.help, error
            assert len(str(error)) < MESSAGE_CHARACTERS_MAX, "a message this long is no message"
        if isinstance(error, LanguageError):
            assert error.render()


def _raised(work: Callable[[], object]) -> OmnigraphError | None:
    try:
        work()
    except OmnigraphError as error:
        return error
    return None
