"""Ways to put another function in the place of one of the core's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

Patch = Callable[[], Any]


def swap(owner: Any, name: str, new: Any) -> Patch:
    return lambda: patch.object(owner, name, new)


def around(owner: Any, name: str, change: Callable[..., Any]) -> Patch:
    """Replace a function by one that is given the original first."""

    @contextmanager
    def patched() -> Iterator[None]:
        original = getattr(owner, name)

        def changed(*args: Any, **options: Any) -> Any:
            return change(original, *args, **options)

        with patch.object(owner, name, changed):
            yield

    return patched


def both(*patches: Patch) -> Patch:
    @contextmanager
    def patched() -> Iterator[None]:
        with ExitStack() as stack:
            for one in patches:
                stack.enter_context(one())
            yield

    return patched
